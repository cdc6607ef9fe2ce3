/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files that ask for more memory or time than there is, and files whose owner changes them while they are read. They
 * are sparse, so they cost the test nothing either.
 */
#include "tests/unit/test.h"

#define XXH_INLINE_ALL
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/base/clock.h"
#include "formats/base/hex.h"
#include "formats/cpython/image.h"
#include "formats/elf/cfi_file.h"
#include "formats/elf/identity.h"
#include "formats/elf/unwind_table.h"
#include "formats/elf/window.h"

enum { SECTIONS_AT = 0x1000, NAMES_AT = 0x2000, NOTE_AT = 0x3000, CODE_AT = 0x10000, FUNCTION_BYTES = 16 };

static uint64_t resident_most(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static void put(int fd, uint64_t at, const void *data, size_t len_bytes)
{
    assert_int_equal(pwrite(fd, data, len_bytes, (off_t)at), len_bytes);
}

/* A shared library of so many bytes, all of it one segment. The section headers are the caller's. */
static int make_file(uint64_t len_bytes, uint16_t section_count, uint16_t names)
{
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
        .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof header, .e_phoff = 64, .e_phnum = 1,
        .e_phentsize = sizeof(Elf64_Phdr), .e_shoff = SECTIONS_AT, .e_shnum = section_count,
        .e_shentsize = sizeof(Elf64_Shdr), .e_shstrndx = names,
    };
    const Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = len_bytes, .p_memsz = len_bytes};
    int fd = memfd_create("made", MFD_CLOEXEC);

    assert_true(fd >= 0 && !ftruncate(fd, (off_t)len_bytes));
    put(fd, 0, &header, sizeof header);
    put(fd, 64, &load, sizeof load);
    return fd;
}

/* Eight million sections, by the number in the first one: libelf would allocate two gigabytes for them. */
TEST(section_count)
{
    const Elf64_Shdr first = {.sh_size = 8 << 20};
    struct elf_section s = {0};
    struct elf_file f;
    int fd = make_file((uint64_t)(8 << 20) * sizeof first + SECTIONS_AT, 0, 1);

    put(fd, SECTIONS_AT, &first, sizeof first);
    uint64_t before = resident_most();
    OK(elf_file_open(fd, "made", NULL, &f));
    assert_true(f.is_elf);
    assert_int_equal(f.segments.count, 1);
    assert_int_equal(f.section_count, 0);
    assert_false(elf_file_next_section(&f, &s));
    elf_file_close(&f);
    void *image = mmap(NULL, (8 << 20) * sizeof first, PROT_READ, MAP_PRIVATE, fd, 0);
    OK(elf_file_open_memory(image, (8 << 20) * sizeof first, "made", &f));
    assert_true(f.is_elf);
    assert_null(elf_file_handle(&f));
    elf_file_close(&f);
    munmap(image, (8 << 20) * sizeof first);
    assert_true(resident_most() - before < 32 << 20);
    close(fd);
}

/* Tables of dynamic symbols, names and symbols of gigabytes, in a file that says it is an interpreter. */
TEST(long_sections)
{
    enum { COUNT = 6 };
    static const char names[] = "\0.PyRuntime\0.shstrtab\0.dynsym\0.symtab\0.strtab";
    const uint64_t gib = UINT64_C(1) << 30;
    const Elf64_Shdr sections[COUNT] = {
        {0},
        {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_WRITE, .sh_addr = CODE_AT, .sh_offset = CODE_AT, .sh_size = gib},
        {.sh_name = 12, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof names},
        {.sh_name = 22, .sh_type = SHT_DYNSYM, .sh_offset = CODE_AT, .sh_size = 3 * gib, .sh_link = 5},
        {.sh_name = 30, .sh_type = SHT_SYMTAB, .sh_offset = CODE_AT, .sh_size = 3 * gib, .sh_link = 5},
        {.sh_name = 38, .sh_type = SHT_STRTAB, .sh_offset = CODE_AT, .sh_size = 3 * gib},
    };
    const Elf64_Sym symbol = {.st_name = 0x7ffffff0, .st_info = STT_FUNC, .st_shndx = 1};
    int fd = make_file(4 * gib, COUNT, 2);
    struct py_image python;

    put(fd, SECTIONS_AT, sections, sizeof sections);
    put(fd, NAMES_AT, names, sizeof names);
    for (int i = 0; i < 1000; i++)
        put(fd, CODE_AT + 24 * (unsigned)i, &symbol, sizeof symbol);
    uint64_t before = resident_most();
    OK(py_image_read(fd, "made", &python));
    assert_true(python.is_python && python.refused);
    py_image_deinit(&python);
    assert_true(resident_most() - before < 32 << 20);
    close(fd);
}

/* ---- identity ---- */

static uint32_t id_kind_of(int fd, const struct elf_stop *stop)
{
    struct elf_identity id;
    struct elf_file f;

    OK(elf_file_open(fd, "made", stop, &f));
    OK(elf_identity_of(&f, &id));
    uint32_t kind = id.id_kind;
    elf_identity_deinit(&id);
    elf_file_close(&f);
    return kind;
}

/* Notes of GNU properties are padded to 8 bytes, as their segment says, and others to 4: a build ID is found behind either. */
TEST(padding_of_notes)
{
    static const uint32_t property[] = {4, 4, 5, 0x554e47 /* "GNU" */, 1}, build_id[] = {4, 8, NT_GNU_BUILD_ID, 0x554e47, 0x11111111, 0x22222222};
    const uint16_t count = 2;

    for (unsigned align = 4; align <= 8; align += 4) {
        uint64_t second = (sizeof property + align - 1) / align * align;
        const Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = second + sizeof build_id, .p_align = align};
        int fd = make_file(1 << 20, 0, 0);
        struct elf_identity id;

        put(fd, offsetof(Elf64_Ehdr, e_phnum), &count, sizeof count);
        put(fd, 64 + sizeof note, &note, sizeof note);
        put(fd, NOTE_AT, property, sizeof property);
        put(fd, NOTE_AT + second, build_id, sizeof build_id);
        OK(elf_identity_read(fd, "made", &id));
        assert_true(elf_identity_is(&id, ELF_ID_BUILD_ID, (const uint8_t *)(build_id + 4), 8));
        elf_identity_deinit(&id);
        close(fd);
    }
}

/* Contents are hashed of ELF files: of large ones parts. Sixteen terabytes, the longest file of ext4, would take hours. */
TEST(what_is_hashed)
{
    static const char script[] = "#!/bin/sh\n";
    int fd = make_file(1 << 20, 0, 0);

    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_CONTENT_HASH);
    assert_int_equal(ftruncate(fd, (off_t)(UINT64_C(1) << 43)), 0);
    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_PARTS_HASH);
    close(fd);
    fd = memfd_create("script", MFD_CLOEXEC);
    put(fd, 0, script, sizeof script);
    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_NONE);
    close(fd);
}

enum { PARTS_COUNT = 5, PIECE = 16 << 10, SYMTAB_AT = 64 << 20, SYMTAB_BYTES = 5 << 20, STRINGS_AT = 80 << 20, DYNSYM_AT = 96 << 20 };

/* As docs/trace-format.md says it. */
static void take_range(int fd, uint64_t at, uint64_t len_bytes, XXH3_state_t *state)
{
    static uint8_t bytes[4 << 20];

    assert_int_equal(pread(fd, bytes, len_bytes, (off_t)at), len_bytes);
    XXH3_128bits_update(state, bytes, len_bytes);
}

static void take_pieces(int fd, uint64_t at, uint64_t len_bytes, XXH3_state_t *state)
{
    for (uint64_t i = 0; i < 255; i++)
        take_range(fd, at + i * ((len_bytes - PIECE) / 255), PIECE, state);
    take_range(fd, at + len_bytes - PIECE, PIECE, state);
}

/* Whether a file has the hash that an independent reader computes; that one is stored. */
static bool has_hash_of_parts(int fd, uint64_t len_bytes, uint8_t hash[static 16])
{
    XXH3_state_t *state = XXH3_createState();
    XXH128_canonical_t expected;
    struct elf_identity id;

    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &len_bytes, 8);
    take_pieces(fd, 0, len_bytes, state);
    take_range(fd, SECTIONS_AT, PARTS_COUNT * sizeof(Elf64_Shdr), state);
    take_pieces(fd, SYMTAB_AT, SYMTAB_BYTES, state);
    take_range(fd, STRINGS_AT, 1000, state);
    take_range(fd, DYNSYM_AT, 4 << 20, state);
    take_range(fd, STRINGS_AT + 1000, 1, state);
    XXH128_canonicalFromHash(&expected, XXH3_128bits_digest(state));
    XXH3_freeState(state);
    memcpy(hash, expected.digest, 16);
    OK(elf_identity_read(fd, "made", &id));
    bool same = elf_identity_is(&id, ELF_ID_PARTS_HASH, hash, 16);
    elf_identity_deinit(&id);
    return same;
}

static int make_large(uint64_t len_bytes)
{
    const Elf64_Shdr sections[PARTS_COUNT] = {
        {0},
        {.sh_type = SHT_DYNSYM, .sh_offset = DYNSYM_AT, .sh_size = 4 << 20, .sh_link = 4},
        {.sh_type = SHT_SYMTAB, .sh_offset = SYMTAB_AT, .sh_size = SYMTAB_BYTES, .sh_link = 3},
        {.sh_type = SHT_STRTAB, .sh_offset = STRINGS_AT, .sh_size = 1000},
        {.sh_type = SHT_STRTAB, .sh_offset = STRINGS_AT + 1000, .sh_size = 1},
    };
    int fd = make_file(len_bytes, PARTS_COUNT, 0);

    put(fd, SECTIONS_AT, sections, sizeof sections);
    return fd;
}

TEST(hash_of_parts)
{
    const uint64_t len_bytes = ELF_HASHED_BYTES_MAX + 12345, distance = (len_bytes - PIECE) / 255;
    const uint64_t seen[] = {15, len_bytes - 1, distance, 100 * distance + PIECE - 1, SECTIONS_AT + 2 * sizeof(Elf64_Shdr) + 16,
                             SYMTAB_AT, SYMTAB_AT + SYMTAB_BYTES - 1, STRINGS_AT + 999, STRINGS_AT + 1000, DYNSYM_AT + PIECE};
    uint8_t before[16], after[16], one = 1, zero = 0;
    int fd = make_large(len_bytes);

    assert_true(has_hash_of_parts(fd, len_bytes, before));
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        put(fd, seen[i], &one, 1);
        assert_true(has_hash_of_parts(fd, len_bytes, after));
        assert_memory_not_equal(before, after, 16);
        put(fd, seen[i], &zero, 1);
    }
    put(fd, distance - 1, &one, 1); /* between two pieces */
    assert_true(has_hash_of_parts(fd, len_bytes, after));
    assert_memory_equal(before, after, 16);
    assert_int_equal(ftruncate(fd, (off_t)len_bytes + 1), 0);
    assert_true(has_hash_of_parts(fd, len_bytes + 1, after));
    assert_memory_not_equal(before, after, 16);
    assert_int_equal(ftruncate(fd, (off_t)ELF_HASHED_BYTES_MAX), 0);
    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_CONTENT_HASH);
    close(fd);
}

/* Headers of what the file does not have: the rest of it counts. */
TEST(hash_of_missing_parts)
{
    const uint64_t len_bytes = ELF_HASHED_BYTES_MAX + 1;
    const Elf64_Shdr outside[] = {
        {.sh_type = SHT_DYNSYM, .sh_offset = len_bytes - 9, .sh_size = 10, .sh_link = UINT32_MAX},
        {.sh_type = SHT_SYMTAB, .sh_offset = UINT64_MAX, .sh_size = UINT64_MAX, .sh_link = 0},
    };
    static const struct elf_stop late = {.deadline_ns = 1};
    int fd = make_large(len_bytes);

    put(fd, SECTIONS_AT + sizeof *outside, outside, sizeof outside);
    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_PARTS_HASH);
    assert_int_equal(id_kind_of(fd, &late), ELF_ID_NONE);
    put(fd, offsetof(Elf64_Ehdr, e_shoff), &len_bytes, sizeof len_bytes);
    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_PARTS_HASH);
    close(fd);
}

static void expect_htlhash(const char *data, size_t len_bytes, const char *expected)
{
    struct elf_identity id = {0};
    struct elf_file f;
    int fd = memfd_create("made", MFD_CLOEXEC);

    put(fd, 0, data, len_bytes);
    OK(elf_file_open(fd, "made", NULL, &f));
    elf_identity_add_htlhash(&f, &id);
    assert_int_equal(id.htlhash_len, sizeof id.htlhash);
    assert_string_equal(hex_of(id.htlhash, sizeof id.htlhash).text, expected);
    assert_int_equal(ftruncate(fd, 0), 0); /* meanwhile */
    elf_identity_add_htlhash(&f, &id);
    assert_int_equal(id.htlhash_len, len_bytes ? 0 : sizeof id.htlhash);
    elf_file_close(&f);
    close(fd);
}

/* As Python's hashlib has it of the first and the last 4096 bytes, which may overlap, and the length. */
TEST(htlhash)
{
    static char data[10000];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 % 251);
    expect_htlhash(data, 0, "af5570f5a1810b7af78caf4bc70a660f");
    expect_htlhash(data, 10, "6e69e3eceec23248495ea841ce473404");
    expect_htlhash(data, 5000, "35cfe5afede7a362b4d9237093292e7f");
    expect_htlhash(data, 10000, "371b5a7020f97fd0a7de174436c348bf");
}

/* ---- windows ---- */

TEST(window)
{
    enum { WORDS = 6 << 20, OFFSET = 12, LEN = WORDS * 4 - OFFSET };
    uint32_t *words = malloc(WORDS * sizeof *words);
    int fd = memfd_create("words", MFD_CLOEXEC);
    uint64_t random = 1;

    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u;
    put(fd, 0, words, WORDS * sizeof *words);
    struct elf_window *w = elf_window_create(fd, NULL, OFFSET, LEN);
    assert_non_null(w);
    const uint8_t *kept = NULL, *all = (const uint8_t *)words + OFFSET;
    uint64_t kept_at = 0, kept_len = 0;
    for (int i = 0; i < 2000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = (random >> 32) % LEN, len = 1 + (random >> 12) % (i % 3 ? 100 : ELF_WINDOW_NEED_MAX);
        len = len < LEN - at ? len : LEN - at;
        const uint8_t *bytes = elf_window_need(w, at, len);
        assert_ptr_equal(bytes, w->base + at);
        assert_memory_equal(bytes, all + at, len);
        if (kept)
            assert_memory_equal(kept, all + kept_at, kept_len);
        kept = bytes;
        kept_at = at;
        kept_len = len;
        assert_true(w->loaded <= ELF_WINDOW_CHUNKS);
    }
    assert_null(elf_window_need(w, LEN - 3, 4));
    assert_null(elf_window_need(w, UINT64_MAX, 2));
    assert_null(elf_window_need(w, 0, ELF_WINDOW_NEED_MAX + 1));
    assert_false(w->failed);
    elf_window_destroy(w);

    w = elf_window_create(fd, NULL, OFFSET, LEN);
    assert_non_null(elf_window_need(w, 0, 100));
    assert_int_equal(ftruncate(fd, LEN / 2), 0);
    assert_null(elf_window_need(w, LEN - 100, 100));
    assert_true(w->failed);
    elf_window_destroy(w);
    close(fd);
    free(words);
}

/* ---- call frame information that is longer than a window ---- */

/* `count` functions, each with an FDE of 32 bytes: CFA rsp+8, and from the second byte on rsp+16 or rsp+24. */
static int make_functions(uint32_t count)
{
    static const char names[] = "\0.eh_frame\0.shstrtab";
    static const uint8_t cie[24] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
    const uint64_t frame_at = CODE_AT + (uint64_t)count * FUNCTION_BYTES, len = sizeof cie + 32 * (uint64_t)count;
    const Elf64_Shdr sections[] = {
        {0},
        {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addr = frame_at, .sh_offset = frame_at, .sh_size = len},
        {.sh_name = 11, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof names},
    };
    int fd = make_file(frame_at + len, 3, 2);
    uint8_t *frame = calloc(1, len);

    put(fd, SECTIONS_AT, sections, sizeof sections);
    put(fd, NAMES_AT, names, sizeof names);
    memcpy(frame, cie, sizeof cie);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = sizeof cie + 32 * (uint64_t)i;
        const uint32_t words[4] = {28, (uint32_t)at + 4, (uint32_t)(CODE_AT + i * FUNCTION_BYTES - (frame_at + at + 8)),
                                   FUNCTION_BYTES};
        const uint8_t program[] = {0, 0x41, 0x0e, i % 2 ? 16 : 24};
        memcpy(frame + at, words, sizeof words);
        memcpy(frame + at + sizeof words, program, sizeof program);
    }
    put(fd, frame_at, frame, len);
    free(frame);
    return fd;
}

TEST(long_eh_frame)
{
    enum { COUNT = 600000 };
    const struct unwind_limits enough = {.rows_max = 2 * COUNT + 1}, less = {.rows_max = 2 * COUNT - 1},
                               fewer = {.rows_max = COUNT - 1};
    int fd = make_functions(COUNT);
    struct unwind_table *t, *u;

    OK(unwind_table_build(fd, "made", &enough, &t));
    assert_int_equal(t->row_count, 2 * COUNT + 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t vaddr = CODE_AT + (uint64_t)i * FUNCTION_BYTES;
        assert_int_equal(unwind_table_lookup(t, vaddr).cfa8, 1);
        assert_int_equal(unwind_table_lookup(t, vaddr + 1).cfa8, i % 2 ? 2 : 3);
    }
    assert_int_equal(unwind_table_lookup(t, CODE_AT + (uint64_t)COUNT * FUNCTION_BYTES).type, UNWIND_NONE);
    unwind_table_destroy(t);
    for (int i = 0; i < 2; i++) {
        struct error *err = unwind_table_build(fd, "made", i ? &less : &fewer, &u);
        assert_non_null(err);
        assert_int_equal(err->code, ERROR_LIMIT);
        error_destroy(err);
    }
    close(fd);
}

/* ---- being told to stop ---- */

TEST(stop)
{
    atomic_bool flag = true;
    const struct elf_stop stops[] = {{.flag = &flag}, {.deadline_ns = now_ns() - 1}};
    int fd = make_functions(100);
    struct unwind_table *t;
    uint8_t byte;

    for (size_t i = 0; i < 2; i++) {
        const struct unwind_limits limits = {.stop = &stops[i]};
        assert_true(elf_stop_reached(&stops[i]));
        assert_false(elf_read(fd, &stops[i], 0, &byte, 1));
        assert_int_equal(id_kind_of(fd, &stops[i]), ELF_ID_NONE);
        struct error *err = unwind_table_build(fd, "made", &limits, &t);
        assert_non_null(err);
        error_destroy(err);
    }
    flag = false;
    const struct elf_stop later = {.flag = &flag, .deadline_ns = now_ns() + 3600 * NS_PER_S};
    assert_false(elf_stop_reached(&later));
    assert_true(elf_read(fd, &later, 0, &byte, 1));
    assert_int_equal(id_kind_of(fd, &later), ELF_ID_CONTENT_HASH);
    close(fd);
}

/* A stop that comes while the sections are read leaves no table, rather than one with holes. */
TEST(stop_half_way)
{
    int fd = make_functions(400000);
    struct elf_file f;
    struct cfi_section section;
    struct cfi_fde fde;
    uint64_t offset = 0, met = 0;
    atomic_bool flag = false;
    const struct elf_stop stop = {.flag = &flag};

    OK(elf_file_open(fd, "made", &stop, &f));
    OK(cfi_find_section(&f, false, &section));
    assert_non_null(section.window);
    while (cfi_next(&section, &offset, &fde))
        flag = ++met >= 1000;
    assert_true(met >= 1000 && met < 400000);
    assert_true(section.window->failed);
    elf_file_close(&f);
    close(fd);
}
