/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of binaries: what is taken out of them, and what hostile ones get; and binaries without their code. */
#include "tests/unit/test.h"

#include <dirent.h>
#include <sys/stat.h>

#include "formats/elf/identity.h"
#include "formats/elf/links.h"
#include "formats/elf/strip.h"
#include "symbolize/binary/archive.h"
#include "symbolize/binary/binaries.h"
#include "symbolize/binary/image.h"
#include "symbolize/binary/symbols.h"
#include "symbolize/unwind/unwind_module.h"
#include "tests/toolchain/elf_fixture.h"

static const char ours[] = "0123456789abcdef0123456789abcdef01234567";

/*
 * `full` with symbols and DWARF, `good` without, `good.debug` split off it, `other` of another build, `plain` without
 * ID.
 */
static void make_files(const struct fixture *f)
{
    static const char source[] = "#include <string.h>\n"
                                 "const char table[5000] = {1, 2, 3}; char data[3000] = {1};\n"
                                 "static inline int deep(int x) { return x * table[x & 7]; }\n"
                                 "__attribute__((noinline)) int f(int x) { return deep(x) + (int)strlen(data); }\n"
                                 "int g(int x) { return f(x) + 1; }\n"
                                 "__asm__(\".globl back\\n.type back, @function\\nback: mov $15, %rax\\nsyscall\\n\"\n"
                                 "        \".size back, . - back\");\n";

    fixture_write(f, "source.c", source, sizeof source - 1);
    assert_true(fixture_run(f, "cc -g -O2 -shared -fPIC -Wl,--build-id=0x%s -o full source.c && strip -o good full &&"
                               "objcopy --only-keep-debug full good.debug && objcopy --add-gnu-debuglink=good.debug good &&"
                               "cc -O1 -shared -fPIC -Wl,--build-id -o other source.c &&"
                               "cc -O1 -shared -fPIC -Wl,--build-id=none -o plain source.c", ours));
    setenv("TMPDIR", f->dir, 1);
}

static char *path_of(const struct fixture *f, const char *name)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", f->dir, name);
    return path;
}

static uint32_t count_in(const struct fixture *f, const char *name)
{
    struct archive_files *a;

    OK(archive_files_open(path_of(f, name), NULL, &a));
    uint32_t count = archive_files_count(a);
    archive_files_close(a);
    return count;
}

static void assert_error(const struct fixture *f, const char *name, enum error_code code, const char *text)
{
    struct archive_files *a = NULL;
    struct error *err = archive_files_open(path_of(f, name), NULL, &a);

    if (!err)
        fail_msg("%s was read", name);
    if (err->code != code || !strstr(error_text(err), text) || !strstr(error_text(err), name))
        fail_msg("%s: %s", name, error_text(err));
    error_destroy(err);
}

/* Whatever the names say, the ELF files are taken, and nothing comes to lie anywhere. */
TEST_WITH(members, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    make_files(f);
    assert_true(fixture_run(f, "mkdir t && cd t && mkdir -p a/b && cp ../good a/b/elf && cp ../good.debug a/b/debug &&"
                               "cp ../source.c . && : >empty && ln -s /etc/passwd link && ln a/b/elf hard &&"
                               "mkfifo pipe && cd .. && tar cf a.tar -C t a source.c empty link hard pipe &&"
                               "zstd -q a.tar -o a.tar.zst && gzip -k a.tar && bzip2 -k a.tar && xz -k a.tar"));
    static const char *const names[] = {"a.tar", "a.tar.zst", "a.tar.gz", "a.tar.bz2", "a.tar.xz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(count_in(f, names[i]), 2);
    assert_true(fixture_run(f, "mkdir empty && touch before after2 after && find . | sort >before && tar cPf b.tar --transform='s,^,../../../../../,' good other &&"
                               "tar cPf c.tar --transform='s,^,/etc/,' good && tar cf d.tar good && tar rf d.tar good && tar rf d.tar good"));
    assert_int_equal(count_in(f, "b.tar"), 2);
    assert_int_equal(count_in(f, "c.tar"), 1);
    assert_int_equal(count_in(f, "d.tar"), 3);
    assert_true(fixture_run(f, "rm [bcd].tar && find . | sort >after && cat before | diff - after"));
}

TEST_WITH(refused, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    make_files(f);
    assert_error(f, "absent.tar", ERROR_NOT_FOUND, "cannot be read");
    assert_true(fixture_run(f, "cp source.c text && tar cf a.tar good && head -c 3000 a.tar >short.tar &&"
                               "tar cf - full other | zstd -q >w.zst && head -c -60 w.zst >short.tar.zst && : >nothing &&"
                               "cp good big && truncate -s 5G big && tar cSf sparse.tar big"));
    assert_error(f, "text", ERROR_FORMAT, "is damaged or not an archive");
    assert_error(f, "short.tar", ERROR_FORMAT, "is damaged or not an archive");
    assert_error(f, "short.tar.zst", ERROR_FORMAT, "is damaged or not an archive");
    assert_error(f, "sparse.tar", ERROR_LIMIT, "more than 4 GiB");
    /* Many holes that together are too much, each small on disk. */
    assert_true(fixture_run(f, "truncate -s 3G big && for i in 1 2 3 4 5 6 7 8 9 10 11; do ln big h$i; done &&"
                               "tar cSf sparse2.tar --hard-dereference h*"));
    assert_error(f, "sparse2.tar", ERROR_LIMIT, "more than 32 GiB");
}

/* A small archive that unpacks to much more than binaries do: TMPDIR may be memory. */
TEST_WITH(bomb, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct archive_files *a;

    NOT_SANITIZED();
    setenv("TMPDIR", f->dir, 1);
    assert_true(fixture_run(f, "(printf '\\177ELF'; head -c 280M /dev/zero | tr '\\0' A) >big && tar cf - big | zstd -q >bomb.tar.zst &&"
                               "rm big"));
    struct error *err = archive_files_open(path_of(f, "bomb.tar.zst"), NULL, &a);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_LIMIT);
    error_destroy(err);
}

/* Zeros take no room, but time. */
TEST_WITH(bomb_of_zeros, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    NOT_SANITIZED();
    make_files(f);
    assert_true(fixture_run(f, "for i in 1 2 3 4 5 6; do cp good z$i && truncate -s +46M z$i; done && tar cf - z? | zstd -q >z.tar.zst &&"
                               "tar cf - z? | gzip -1 >z.tar.gz && tar cf z.tar --sparse z? && (cat z.tar.gz; head -c 3M /dev/urandom) >big.tar.gz"));
    assert_error(f, "z.tar.zst", ERROR_LIMIT, "unpacks to more than 256 MiB and 200 times its size");
    assert_int_equal(count_in(f, "z.tar"), 6);
    assert_int_equal(count_in(f, "z.tar.gz"), 6); /* of 1.2 MB: not out of proportion */
    /* Text that is skipped counts, too. */
    assert_true(fixture_run(f, "rm z* && truncate -s 276M z1 && tar cf - z1 good | zstd -q >z.tar.zst"));
    assert_error(f, "z.tar.zst", ERROR_LIMIT, "unpacks to more than 256 MiB and 200 times its size");
    /* Packed twice: the inside is no archive. */
    assert_true(fixture_run(f, "tar cf a.tar good && gzip -k a.tar && gzip -c a.tar.gz >twice.tar.gz"));
    assert_int_equal(count_in(f, "a.tar.gz"), 1);
    assert_error(f, "twice.tar.gz", ERROR_FORMAT, "is damaged or not an archive");
}

/* What no trace names is not unpacked, as far as names in the archive tell. */
TEST_WITH(wanted_members, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct named_ids named = {0};
    struct archive_files *a;
    uint8_t id[20];

    make_files(f);
    for (int i = 0; i < 20; i++)
        sscanf(ours + 2 * i, "%2hhx", &id[i]);
    assert_true(named_ids_add(&named, id, sizeof id));
    assert_true(fixture_run(f, "mkdir -p lib/%s lib/%.38sff .build-id/aa && cp good lib/%s/elf && cp good.debug lib/%s/debug &&"
                               "cp other lib/%.38sff/elf && cp other plain-name && cp good .build-id/aa/bb.debug &&"
                               "tar cf w.tar lib plain-name .build-id && zstd -q w.tar", ours, ours, ours, ours, ours));
    for (int packed = 0; packed < 2; packed++) {
        OK(archive_files_open(path_of(f, packed ? "w.tar.zst" : "w.tar"), &named, &a));
        assert_int_equal(archive_files_count(a), 4);
        for (uint32_t i = 0; i < 4; i++)
            assert_null(strstr(archive_files_get(a, i)->name, "ff/elf"));
        archive_files_close(a);
        assert_int_equal(count_in(f, packed ? "w.tar.zst" : "w.tar"), 5);
    }
    named_ids_deinit(&named);
}

TEST(names_of_members)
{
    static const char *const wanted[] = {"", "elf", "/elf", "x/0011223344556677/elf", "0011223344556677/debug", "[vdso]/0011223344556677/vdso",
                                         "x/001122334455667700000000/elf", "x/ff11223344556677/elf.debug", "x/FF11223344556677/elf",
                                         "x/ff112233445566/elf", "x/ff1122334455667/elf", "x/a-ff11223344556677/elf", "x/ff11223344556677/",
                                         ".build-id/ff/11223344556677.debug", "x/0011223344556677/y", "x/01/1122334455667788/elf", "01/1122334455667788/debug"};
    static const char *const unwanted[] = {"x/ff11223344556677/elf", "ff11223344556677/debug", "x/00112233445566770001/elf", "/001122334455667788/vdso",
                                           "x/0000000000000000/elf", "x/02/1122334455667788/elf", "x01/1122334455667788/elf"};
    static const uint8_t divided[] = {0x01, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
    static const uint8_t id[] = {0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77};
    struct named_ids named = {0};

    assert_false(named_ids_want(&named, wanted[3]));
    assert_true(named_ids_add(&named, id, sizeof id));
    assert_true(named_ids_add(&named, id, 0));
    assert_true(named_ids_add(&named, divided, sizeof divided));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!named_ids_want(&named, wanted[i]))
            fail_msg("%s", wanted[i]);
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        if (named_ids_want(&named, unwanted[i]))
            fail_msg("%s", unwanted[i]);
    named_ids_deinit(&named);
}

/* Any byte may be wrong: an error, or other contents; never worse. Runs under the sanitizers, too. */
TEST_WITH(damaged, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct image whole;
    unsigned seed = 11;

    make_files(f);
    assert_true(fixture_run(f, "tar cf a.tar good.debug good && zstd -q a.tar"));
    for (int kind = 0; kind < 2; kind++) {
        OK(image_read(path_of(f, kind ? "a.tar.zst" : "a.tar"), &whole));
        for (int round = 0; round < 150; round++) {
            struct archive_files *a = NULL;
            uint8_t *bad = malloc(whole.len_bytes);
            memcpy(bad, whole.data, whole.len_bytes);
            for (int i = 0; i < 3; i++) {
                seed = seed * 1103515245 + 12345;
                uint64_t span = round % 2 ? 2048 : whole.len_bytes; /* headers of the tar and of the first ELF */
                bad[seed / 16 % span] ^= (uint8_t)(1 + seed % 255);
            }
            fixture_write(f, "bad", bad, whole.len_bytes);
            free(bad);
            struct error *err = archive_files_open(path_of(f, "bad"), NULL, &a);
            error_destroy(err);
            archive_files_close(err ? NULL : a);
        }
        image_deinit(&whole);
    }
}

TEST_WITH(search, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char one[256], two[256];
    const char *archives[] = {one, two, NULL};
    const struct binaries_options options = {.archives = archives, .no_host = true};
    struct binary_files files;
    struct binaries *b;
    struct symbols *s;
    uint8_t id[20];

    make_files(f);
    assert_true(fixture_run(f, "tar cf 1.tar other plain && tar cf 2.tar good.debug good"));
    snprintf(one, sizeof one, "%s/1.tar", f->dir);
    snprintf(two, sizeof two, "%s/2.tar", f->dir);
    for (int i = 0; i < 20; i++)
        sscanf(ours + 2 * i, "%2hhx", &id[i]);
    OK(binaries_create(&options, &b));
    struct binary_key key = {.build_id = id, .build_id_len = 20, .id_kind = ELF_ID_BUILD_ID, .path = "/x/libf.so"};
    OK(binaries_find(b, &key, &files));
    assert_string_equal(files.source, "archive");
    assert_string_equal(files.debug_source, "archive");
    assert_non_null(strstr(files.binary, "2.tar:good"));
    assert_non_null(strstr(files.debug, "2.tar:good.debug"));
    assert_true(files.binary_fd > 2 && files.debug_fd > 2);
    OK(symbols_open(&files, &s));
    assert_int_equal(symbols_quality(s), SYMBOLS_DWARF);
    symbols_close(s);
    binary_files_deinit(&files);
    /* Not there by another ID. */
    id[0]++;
    OK(binaries_find(b, &key, &files));
    assert_null(files.binary);
    assert_non_null(files.problem);
    binary_files_deinit(&files);
    binaries_destroy(b);
}

/* ---- without code ---- */

/* Of an image, which stays as it is. */
static void plan_strip(const uint8_t *image, uint64_t len_bytes, struct elf_strip *out)
{
    struct elf_file f;

    OK(elf_file_open_memory(image, len_bytes, "", &f));
    OK(elf_strip(&f, out));
    elf_file_close(&f);
}

static void strip_file(const struct fixture *f, const char *from, const char *to, uint64_t *left_out)
{
    struct elf_strip strip, of_file;
    struct elf_file file;
    struct image image;
    uint64_t last = 0;

    OK(image_read(path_of(f, from), &image));
    uint8_t *bytes = (uint8_t *)image.data;
    plan_strip(bytes, image.len_bytes, &strip);
    int fd = open(path_of(f, from), O_RDONLY | O_CLOEXEC);
    OK(elf_file_open(fd, from, NULL, &file));
    OK(elf_strip(&file, &of_file));
    elf_file_close(&file);
    close(fd);
    *left_out = 0;
    assert_int_equal(of_file.left_out.list.count, strip.left_out.list.count);
    for (size_t i = 0; i < strip.left_out.list.count; i++) {
        const struct elf_extent *e = &strip.left_out.list.data[i];
        assert_true(e->start >= last && e->start < e->end && e->end <= image.len_bytes);
        assert_memory_equal(e, &of_file.left_out.list.data[i], sizeof *e);
        *left_out += e->end - e->start;
        last = e->end;
    }
    /* In one piece and in small ones. */
    uint8_t *pieces = malloc(image.len_bytes + 1);
    memcpy(pieces, bytes, image.len_bytes);
    elf_strip_apply(&strip, 0, bytes, image.len_bytes);
    for (uint64_t at = 0; at < image.len_bytes; at += 3)
        elf_strip_apply(&of_file, at, pieces + at, image.len_bytes - at < 3 ? image.len_bytes - at : 3);
    assert_memory_equal(pieces, bytes, image.len_bytes);
    free(pieces);
    fixture_write(f, to, bytes, image.len_bytes);
    elf_strip_deinit(&strip);
    elf_strip_deinit(&of_file);
    image_deinit(&image);
}

static void assert_same_names(const struct fixture *f, const char *x, const char *y)
{
    struct binary_files a = {.binary = path_of(f, x), .debug = a.binary}, b = {.binary = path_of(f, y), .debug = b.binary};
    struct symbol_frame one[8], two[8];
    struct symbols *s, *t;
    unsigned named = 0;

    OK(symbols_open(&a, &s));
    OK(symbols_open(&b, &t));
    assert_int_equal(symbols_quality(s), symbols_quality(t));
    for (uint64_t vaddr = 0; vaddr < 0x8000; vaddr++) {
        uint32_t count = symbols_lookup(s, vaddr, one, 8);
        assert_int_equal(symbols_lookup(t, vaddr, two, 8), count);
        for (uint32_t i = 0; i < count; i++) {
            assert_string_equal(one[i].function, two[i].function);
            assert_string_equal(one[i].file, two[i].file);
            assert_int_equal(one[i].line, two[i].line);
            named += *one[i].function != 0;
        }
    }
    assert_true(named > 50);
    symbols_close(s);
    symbols_close(t);
}

TEST_WITH(strip, fixture_init, fixture_deinit)
{
    static const char *const names[] = {"full", "good"};
    struct fixture *f = *state;
    uint64_t left_out;

    make_files(f);
    for (int i = 0; i < 2; i++) {
        struct elf_identity id = {0}, thin_id = {0};
        strip_file(f, names[i], "thin", &left_out);
        assert_true(left_out > 8000); /* table, data, code */
        int fd = open(path_of(f, names[i]), O_RDONLY), thin = open(path_of(f, "thin"), O_RDONLY);
        OK(elf_identity_read(fd, "full", &id));
        OK(elf_identity_read(thin, "thin", &thin_id));
        assert_int_equal(id.build_id_len, thin_id.build_id_len);
        assert_memory_equal(id.build_id, thin_id.build_id, id.build_id_len);
        assert_int_equal(id.segments.count, thin_id.segments.count);
        for (size_t k = 0; k < id.segments.count; k++) {
            const struct elf_segment *x = &id.segments.data[k], *y = &thin_id.segments.data[k];
            assert_true(x->vaddr == y->vaddr && x->offset == y->offset && x->file_size == y->file_size &&
                        x->mem_size == y->mem_size && x->flags == y->flags);
        }
        elf_identity_deinit(&id);
        elf_identity_deinit(&thin_id);
        close(fd);
        close(thin);
        assert_same_names(f, names[i], "thin");
        /* The stub of the PLT has its name, from its code; the signal trampoline is known by its code. */
        assert_true(fixture_run(f, "! cmp -s %s thin && readelf -SW thin | grep -q ' .text *NOBITS' &&"
                                   "readelf -SW thin | grep -q ' .eh_frame *PROGBITS'", names[i]));
        uint64_t back = fixture_symbol(f, "full", "back");
        struct unwind_module *m;
        uint8_t code[9];
        OK(unwind_module_open(path_of(f, "thin"), NULL, &m));
        assert_true(unwind_module_read(m, back, code, sizeof code));
        assert_memory_equal(code, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", sizeof code);
        unwind_module_close(m);
    }
    /* Twice is once. */
    uint64_t again;
    strip_file(f, "thin", "thinner", &again);
    assert_int_equal(again, 0);
    assert_true(fixture_run(f, "cmp thin thinner"));
    /* What is no ELF file stays. */
    strip_file(f, "source.c", "same", &left_out);
    assert_int_equal(left_out, 0);
    assert_true(fixture_run(f, "cmp source.c same"));
}

/* Headers that lie: never out of bounds, and the headers themselves stay. */
TEST_WITH(strip_hostile, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct image image;
    unsigned seed = 3;

    make_files(f);
    OK(image_read(path_of(f, "good"), &image));
    Elf64_Ehdr header;
    memcpy(&header, image.data, sizeof header);
    for (int round = 0; round < 3000; round++) {
        struct elf_strip strip;
        uint64_t len = round % 3 ? image.len_bytes : seed / 8 % image.len_bytes;
        uint8_t *bad = malloc(len + 1);
        memcpy(bad, image.data, len);
        for (int i = 0; i < 4 && len > sizeof header; i++) {
            seed = seed * 1103515245 + 12345;
            uint64_t at = i % 2 ? seed / 16 % sizeof header : header.e_shoff + seed / 16 % (64 * header.e_shnum);
            if (at < len)
                bad[at] = (uint8_t)(seed >> 8);
        }
        plan_strip(bad, len, &strip);
        for (size_t i = 0; i < strip.left_out.list.count; i++)
            assert_true(strip.left_out.list.data[i].start >= sizeof header && strip.left_out.list.data[i].end <= len);
        for (uint64_t at = 0; at < len; at += 1000)
            elf_strip_apply(&strip, at, bad + at, len - at < 1000 ? len - at : 1000);
        elf_strip_deinit(&strip);
        free(bad);
    }
    image_deinit(&image);
}

/* So many sections over the same code and the same endless name: work must not be their product. */
TEST(strip_overlapping)
{
    enum { SECTIONS = 65000, AREA = 16 << 20, NAMES_AT = 4096, NAMES = 1 << 20, CODE_AT = NAMES_AT + NAMES, TABLE_AT = CODE_AT + AREA };
    static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    static const uint64_t at[] = {CODE_AT + SECTIONS, CODE_AT + AREA / 2 + 3, CODE_AT + AREA - sizeof trampoline};
    const uint64_t len = TABLE_AT + (uint64_t)SECTIONS * sizeof(Elf64_Shdr);
    struct elf_strip strip;
    uint8_t *image = calloc(1, len);

    assert_non_null(image);
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_machine = EM_X86_64, .e_shoff = TABLE_AT,
                         .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS, .e_shstrndx = 1};
    memcpy(image, &header, sizeof header);
    memset(image + NAMES_AT, 'x', NAMES - 1);
    memset(image + CODE_AT, 0x90, AREA);
    for (size_t i = 0; i < 3; i++)
        memcpy(image + at[i], trampoline, sizeof trampoline);
    Elf64_Shdr *sections = (Elf64_Shdr *)(image + TABLE_AT);
    sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = NAMES};
    for (uint32_t i = 2; i < SECTIONS; i++)
        sections[i] = (Elf64_Shdr){.sh_name = i, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                   .sh_offset = CODE_AT + i, .sh_size = AREA - i};
    plan_strip(image, len, &strip);
    elf_strip_apply(&strip, 0, image, len);
    assert_int_equal(strip.left_out.list.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(strip.left_out.list.data[i].start, i ? at[i - 1] + sizeof trampoline : CODE_AT + 2);
        assert_int_equal(strip.left_out.list.data[i].end, at[i]);
    }
    for (uint32_t i = 2; i < SECTIONS; i++)
        assert_int_equal(sections[i].sh_type, SHT_NOBITS);
    elf_strip_deinit(&strip);
    /* A table of names that does not end leaves all unnamed, and what has no name stays. */
    sections[2].sh_type = SHT_PROGBITS;
    image[CODE_AT - 1] = 'x';
    plan_strip(image, len, &strip);
    elf_strip_apply(&strip, 0, image, len);
    assert_int_equal(strip.left_out.list.count, 0);
    assert_int_equal(sections[2].sh_type, SHT_PROGBITS);
    elf_strip_deinit(&strip);
    free(image);
}

/* Code that is all trampolines: what is remembered of it has an end. A trampoline may lie across pieces of any size. */
TEST(strip_trampolines)
{
    enum { COUNT = 1 << 20, CODE_AT = 4096, EACH = 10, NAMES = 64, TABLE_AT = CODE_AT + COUNT * EACH + NAMES };
    static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    const uint64_t len = TABLE_AT + 3 * sizeof(Elf64_Shdr);
    struct elf_strip strip;
    uint8_t *image = calloc(1, len);

    assert_non_null(image);
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_machine = EM_X86_64, .e_shoff = TABLE_AT,
                         .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 1};
    memcpy(image, &header, sizeof header);
    for (uint64_t i = 0; i < COUNT; i++)
        memcpy(image + CODE_AT + i * EACH, trampoline, sizeof trampoline);
    memcpy(image + TABLE_AT - NAMES, "\0.text", 7);
    Elf64_Shdr *sections = (Elf64_Shdr *)(image + TABLE_AT);
    sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = TABLE_AT - NAMES, .sh_size = NAMES};
    sections[2] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                               .sh_offset = CODE_AT, .sh_size = (uint64_t)COUNT * EACH};
    plan_strip(image, len, &strip);
    assert_int_equal(strip.left_out.list.count, 1 << 16);
    for (uint64_t i = 0; i < strip.left_out.list.count; i++) {
        assert_int_equal(strip.left_out.list.data[i].start, CODE_AT + i * EACH + sizeof trampoline);
        assert_int_equal(strip.left_out.list.data[i].end, CODE_AT + (i + 1) * EACH);
    }
    elf_strip_deinit(&strip);
    free(image);
}

TEST_WITH(links, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct elf_links links;

    make_files(f);
    int fd = open(path_of(f, "good"), O_RDONLY), debug = open(path_of(f, "good.debug"), O_RDONLY);
    OK(elf_links_read(fd, &links));
    assert_string_equal(links.debug, "good.debug");
    assert_true(elf_crc_matches(debug, links.debug_crc));
    assert_false(elf_crc_matches(fd, links.debug_crc));
    assert_null(links.supplement);
    elf_links_deinit(&links);
    OK(elf_links_read(debug, &links));
    assert_null(links.debug);
    elf_links_deinit(&links);
    close(fd);
    close(debug);
    /* A path and a build ID. */
    assert_true(fixture_run(f, "printf '../x/y.debug\\0\\1\\2\\3\\4' >alt &&"
                               "objcopy --add-section .gnu_debugaltlink=alt good alt.so &&"
                               "printf 'no-id\\0' >alt && objcopy --add-section .gnu_debugaltlink=alt good none.so &&"
                               "printf 'a/../b\\0\\0\\1\\2\\3\\4' >link && objcopy --remove-section .gnu_debuglink good x.so &&"
                               "objcopy --add-section .gnu_debuglink=link x.so slash.so"));
    fd = open(path_of(f, "alt.so"), O_RDONLY);
    OK(elf_links_read(fd, &links));
    assert_string_equal(links.supplement, "../x/y.debug");
    assert_int_equal(links.supplement_id_len, 4);
    assert_memory_equal(links.supplement_id, "\1\2\3\4", 4);
    elf_links_deinit(&links);
    close(fd);
    static const char *const without[] = {"none.so", "slash.so"};
    for (int i = 0; i < 2; i++) {
        fd = open(path_of(f, without[i]), O_RDONLY);
        OK(elf_links_read(fd, &links));
        assert_null(links.supplement);
        if (i)
            assert_null(links.debug);
        elf_links_deinit(&links);
        close(fd);
    }
}
