/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for addresses: of small binaries whose lines are known, in every form in
 * which symbols are shipped; of this test itself, against addr2line; of damaged files.
 */
#include "tests/unit/test.h"

#include <sys/inotify.h>

#include <inttypes.h>
#include <lzma.h>

#include "symbolize/binary/image.h"
#include "symbolize/binary/ranges.h"
#include "symbolize/binary/symbols.h"
#include "tests/toolchain/elf_fixture.h"

enum { FRAMES_MAX = 32 };

/* `place` is an address within inner(), inlined into middle(), inlined into outer(). The line numbers are tested. */
static const char source[] =
    "#include <stdlib.h>\n"                                                            /* 1 */
    "int sink;\n"                                                                      /* 2 */
    "static inline __attribute__((always_inline)) void inner(int x)\n"                 /* 3 */
    "{\n"                                                                              /* 4 */
    "    __asm__ volatile(\".globl place\\nplace:\\n\\tnop\" : : \"r\"(x));\n"         /* 5 */
    "}\n"                                                                              /* 6 */
    "static inline __attribute__((always_inline)) void middle(int x)\n"                /* 7 */
    "{\n"                                                                              /* 8 */
    "    inner(x + 1);\n"                                                              /* 9 */
    "    sink++;\n"                                                                    /* 10 */
    "}\n"                                                                              /* 11 */
    "__attribute__((noinline)) int outer(int x)\n"                                     /* 12 */
    "{\n"                                                                              /* 13 */
    "    sink += x;\n"                                                                 /* 14 */
    "    middle(x);\n"                                                                 /* 15 */
    "    return abs(atoi(\"3\")) + x;\n"                                               /* 16 */
    "}\n"                                                                              /* 17 */
    "static __attribute__((noinline)) int hidden(int x)\n"                             /* 18 */
    "{\n"                                                                              /* 19 */
    "    __asm__ volatile(\".globl hidden_place\\nhidden_place:\\n\\tnop\");\n"        /* 20 */
    "    return x + sink;\n"                                                           /* 21 */
    "}\n"                                                                              /* 22 */
    "int mangled(int x) __asm__(\"_ZN3app3runEi\");\n"                                 /* 23 */
    "int mangled(int x) { return hidden(x) + outer(x); }\n"                            /* 24 */
    "int rust(int x) __asm__(\"_RNvC5crate4work\");\n"                                 /* 25 */
    "int rust(int x) { return x ^ sink; }\n"                                           /* 26 */
    "int aliased(int x) { return x * sink; }\n"                                        /* 27 */
    "int __aliased(int) __attribute__((alias(\"aliased\")));\n"                        /* 28 */
    "int _a(int) __attribute__((weak, alias(\"aliased\")));\n"                         /* 29 */
    "__asm__(\".section .text.zz, \\\"ax\\\"\\n.globl unsized\\nunsized: ret\\n nop\\n nop\\n.globl next\\nnext: ret\\n.text\");\n" /* 30 */
    "int part(int x) __asm__(\"split.part.0\");\n"                                     /* 31 */
    "int part(int x) { return x - sink; }\n";                                          /* 32 */

/* Compiles `source` to the shared object `name`. */
static void compile(const struct fixture *f, const char *name, const char *flags)
{
    fixture_write(f, "source.c", source, sizeof source - 1);
    assert_true(fixture_run(f, "cc -shared -fPIC -O2 %s -Wl,--build-id -o %s source.c", flags, name));
}

static struct symbols *open_files(const struct fixture *f, const char *binary, const char *debug)
{
    char binary_path[512], debug_path[512];
    struct binary_files files = {.binary = binary ? binary_path : NULL, .debug = debug ? debug_path : NULL};
    struct symbols *s;

    snprintf(binary_path, sizeof binary_path, "%s/%s", f->dir, binary ? binary : "");
    snprintf(debug_path, sizeof debug_path, "%s/%s", f->dir, debug ? debug : "");
    OK(symbols_open(&files, &s));
    return s;
}

static void assert_frame(const struct symbol_frame *frame, const char *function, uint32_t line, bool inlined)
{
    const char *slash = strrchr(frame->file, '/');

    assert_string_equal(frame->function, function);
    if (line) {
        assert_non_null(slash);
        assert_string_equal(slash + 1, "source.c");
    }
    assert_int_equal(frame->line, line);
    assert_int_equal(frame->inlined, inlined);
}

static void assert_inlines(struct symbols *s, uint64_t place)
{
    struct symbol_frame frames[FRAMES_MAX];

    assert_int_equal(symbols_lookup(s, place, frames, FRAMES_MAX), 3);
    assert_frame(&frames[0], "inner", 5, true);
    assert_frame(&frames[1], "middle", 9, true);
    assert_frame(&frames[2], "outer", 15, false);
    assert_true(frames[0].column > 0 && frames[1].column > 0);
    assert_int_equal(symbols_quality(s), SYMBOLS_DWARF);
}

static void assert_name(struct symbols *s, uint64_t vaddr, const char *function, uint64_t offset)
{
    struct symbol_frame frames[FRAMES_MAX];
    uint32_t count = symbols_lookup(s, vaddr, frames, FRAMES_MAX);

    assert_true(count >= 1);
    assert_string_equal(frames[count - 1].function, function);
    assert_int_equal(frames[count - 1].offset, offset);
}

TEST_WITH(dwarf, fixture_init, fixture_deinit)
{
    static const char *const flags[] = {"-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gz", "-gdwarf-4 -fdebug-types-section"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        compile(f, "a.so", flags[i]);
        uint64_t place = fixture_symbol(f, "a.so", "place"), outer = fixture_symbol(f, "a.so", "outer");
        struct symbols *s = open_files(f, "a.so", "a.so");
        assert_inlines(s, place);
        assert_name(s, place, "outer", place - outer);
        symbols_close(s);

        assert_true(fixture_run(f, "objcopy -R .debug_aranges a.so b.so"));
        s = open_files(f, "b.so", "b.so");
        assert_inlines(s, place);
        symbols_close(s);
    }
}

TEST_WITH(separate_debug_file, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    compile(f, "a.so", "-g");
    uint64_t place = fixture_symbol(f, "a.so", "place");
    assert_true(fixture_run(f, "objcopy --only-keep-debug a.so a.debug && strip -o s.so a.so"));
    struct symbols *s = open_files(f, "s.so", "a.debug");
    assert_inlines(s, place);
    symbols_close(s);
    s = open_files(f, NULL, "a.debug");
    assert_inlines(s, place);
    symbols_close(s);
}

TEST_WITH(dwz, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    if (!fixture_run(f, "command -v dwz >/dev/null")) {
        print_message("dwz is not installed\n");
        skip();
    }
    compile(f, "a.so", "-gdwarf-4");
    uint64_t place = fixture_symbol(f, "a.so", "place");
    assert_true(fixture_run(f, "mkdir -p usr/lib/debug/.dwz && objcopy --only-keep-debug a.so usr/lib/debug/a.debug &&"
                               "cp usr/lib/debug/a.debug usr/lib/debug/b.debug && cd usr/lib/debug &&"
                               "dwz -m .dwz/common -M /usr/lib/debug/.dwz/common a.debug b.debug"));
    char binary[512], debug[512], supplement[512];
    struct binary_files files = {.binary = binary, .debug = debug, .supplement = supplement};
    struct symbols *s;
    snprintf(binary, sizeof binary, "%s/a.so", f->dir);
    snprintf(debug, sizeof debug, "%s/usr/lib/debug/a.debug", f->dir);
    snprintf(supplement, sizeof supplement, "%s/usr/lib/debug/.dwz/common", f->dir);
    OK(symbols_open(&files, &s));
    assert_inlines(s, place);
    symbols_close(s);
}

TEST_WITH(symbol_tables, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    compile(f, "a.so", "-g0");
    uint64_t hidden = fixture_symbol(f, "a.so", "hidden"), place = fixture_symbol(f, "a.so", "hidden_place");
    uint64_t aliased = fixture_symbol(f, "a.so", "aliased"), unsized = fixture_symbol(f, "a.so", "unsized");
    uint64_t mangled = fixture_symbol(f, "a.so", "_ZN3app3runEi"), rust = fixture_symbol(f, "a.so", "_RNvC5crate4work");
    uint64_t part = fixture_symbol(f, "a.so", "split.part.0");
    struct symbols *s = open_files(f, "a.so", "a.so");
    assert_int_equal(symbols_quality(s), SYMBOLS_TABLE);
    assert_name(s, hidden, "hidden", 0);
    assert_name(s, place, "hidden", place - hidden); /* and not the label */
    assert_name(s, aliased, "aliased", 0);
    assert_name(s, unsized + 2, "unsized", 2);
    assert_name(s, unsized + 3, "next", 0);
    assert_name(s, mangled, "app::run(int)", 0);
    assert_name(s, rust, "crate::work", 0);
    assert_name(s, part, "split.part.0", 0);
    assert_name(s, 0x10, "", 0);
    symbols_close(s);

    assert_true(fixture_run(f, "strip -o s.so a.so"));
    s = open_files(f, "s.so", "s.so");
    assert_int_equal(symbols_quality(s), SYMBOLS_EXPORTED);
    assert_name(s, aliased + 1, "aliased", 1);
    assert_name(s, hidden, "", 0); /* and not the exported function before it */
    symbols_close(s);
}

/* Debug information that has no mangled names, as compilers write for some debuggers: the table of symbols has the rest of the name. */
TEST_WITH(methods_without_mangled_names, fixture_init, fixture_deinit)
{
    static const char method[] = "namespace app { struct S { int run(int); }; int S::run(int x) { return x * 3; } }";
    struct fixture *f = *state;

    fixture_write(f, "method.cc", method, sizeof method - 1);
    assert_true(fixture_run(f, "$(command -v clang || command -v clang-14) -shared -fPIC -g -gsce -o a.so method.cc"));
    struct symbols *s = open_files(f, "a.so", "a.so");
    uint64_t run = fixture_symbol(f, "a.so", "_ZN3app1S3runEi");
    assert_int_equal(symbols_quality(s), SYMBOLS_DWARF);
    assert_name(s, run + 1, "app::S::run(int)", 1);
    symbols_close(s);
}

TEST_WITH(minidebuginfo, fixture_init, fixture_deinit)
{
    static uint8_t plain[1 << 20], packed[1 << 20];
    struct fixture *f = *state;
    char path[512];
    size_t packed_len = 0;

    compile(f, "a.so", "-g0");
    uint64_t hidden = fixture_symbol(f, "a.so", "hidden");
    assert_true(fixture_run(f, "objcopy --only-keep-debug a.so mini"));
    snprintf(path, sizeof path, "%s/mini", f->dir);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    size_t len = fread(plain, 1, sizeof plain, in);
    fclose(in);
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, plain, len, packed, &packed_len, sizeof packed),
                     LZMA_OK);
    fixture_write(f, "mini.xz", packed, packed_len);
    assert_true(fixture_run(f, "strip -o s.so a.so && objcopy --add-section .gnu_debugdata=mini.xz s.so m.so"));
    struct symbols *s = open_files(f, "m.so", "m.so");
    assert_int_equal(symbols_quality(s), SYMBOLS_MINI);
    assert_name(s, hidden, "hidden", 0);
    symbols_close(s);

    /* Cut and damaged, it is as if it were not there. */
    for (size_t cut = 0; cut < packed_len; cut += 97) {
        fixture_write(f, "mini.xz", packed, cut ? cut : 1);
        assert_true(fixture_run(f, "objcopy --add-section .gnu_debugdata=mini.xz s.so m.so"));
        s = open_files(f, "m.so", "m.so");
        assert_name(s, hidden, "", 0);
        symbols_close(s);
    }
}

TEST_WITH(plt, fixture_init, fixture_deinit)
{
    static const char *const flags[] = {"-g0", "-g0 -fcf-protection -Wl,-z,ibtplt", "-g0 -Wl,-z,now -fno-plt"};
    struct fixture *f = *state;
    struct symbol_frame frames[FRAMES_MAX];

    for (size_t i = 0; i < 2; i++) {
        bool found = false;
        compile(f, "a.so", flags[i]);
        assert_true(fixture_run(f, "strip a.so"));
        struct symbols *s = open_files(f, "a.so", "a.so");
        for (uint64_t at = 0x1000; at < 0x1100; at++) {
            symbols_lookup(s, at, frames, FRAMES_MAX);
            found = found || !strcmp(frames[0].function, "atoi@plt") || !strcmp(frames[0].function, "strtol@plt");
        }
        assert_true(found);
        symbols_close(s);
    }
}

/* A library's calls of its own function of which one of two versions is chosen at its start name no symbol. */
TEST_WITH(plt_of_chosen, fixture_init, fixture_deinit)
{
    static const char text[] =
        "static int one(int x) { return x + 1; }\n"
        "static int two(int x) { return x + 2; }\n"
        "static int (*pick(void))(int) { return __builtin_cpu_supports(\"avx2\") ? one : two; }\n"
        "int _chosen(int) __attribute__((ifunc(\"pick\"), visibility(\"protected\")));\n"
        "int chosen(int) __attribute__((ifunc(\"pick\"), visibility(\"protected\")));\n"
        "int calls(int x) { return chosen(x) + 1; }\n";
    struct fixture *f = *state;
    struct symbol_frame frames[FRAMES_MAX];

    fixture_write(f, "chosen.c", text, sizeof text - 1);
    for (unsigned stripped = 0; stripped < 2; stripped++) {
        unsigned stubs = 0;
        assert_true(fixture_run(f, "cc -shared -fPIC -O2 %s -o c.so chosen.c", stripped ? "-s" : ""));
        struct symbols *s = open_files(f, "c.so", "c.so");
        for (uint64_t at = 0x1000; at < 0x1100; at++) {
            symbols_lookup(s, at, frames, FRAMES_MAX);
            stubs += !strcmp(frames[0].function, "chosen@plt");
        }
        assert_int_equal(stubs, 16);
        symbols_close(s);
    }
}

TEST_WITH(nothing, fixture_init, fixture_deinit)
{
    struct binary_files none = {0};
    struct symbol_frame frames[FRAMES_MAX];
    struct symbols *s;
    uint64_t vaddr;

    OK(symbols_open(&none, &s));
    assert_int_equal(symbols_quality(s), SYMBOLS_NONE);
    assert_int_equal(symbols_lookup(s, 0x1000, frames, FRAMES_MAX), 1);
    assert_string_equal(frames[0].function, "");
    assert_string_equal(frames[0].file, "");
    assert_int_equal(symbols_lookup(s, 0x1000, frames, 0), 0);
    assert_false(symbols_vaddr(s, 0, &vaddr));
    symbols_close(s);
}

TEST_WITH(file_offsets, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    uint64_t vaddr;

    compile(f, "a.so", "-g0 -Wl,-Ttext-segment=0x200000");
    uint64_t outer = fixture_symbol(f, "a.so", "outer");
    struct symbols *s = open_files(f, "a.so", "a.so");
    assert_true(outer >= 0x200000);
    assert_true(symbols_vaddr(s, outer - 0x200000, &vaddr));
    assert_int_equal(vaddr, outer);
    assert_false(symbols_vaddr(s, 1ull << 40, &vaddr));
    symbols_close(s);
}

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Against the simple way: look at every range. */
TEST_WITH(ranges, fixture_init, fixture_deinit)
{
    uint64_t seed = 7;

    for (int round = 0; round < 300; round++) {
        struct ranges r = {0};
        struct range all[40];
        uint32_t count = (uint32_t)(random_next(&seed) % 40);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t low = random_next(&seed) % 100;
            all[i] = (struct range){low, low + random_next(&seed) % 30, i};
            assert_true(ranges_add(&r, all[i].low, all[i].high, i));
        }
        assert_true(ranges_finish(&r));
        for (uint64_t at = 0; at < 140; at++) {
            const struct range *best = NULL, *found = ranges_find(&r, at);
            for (uint32_t i = 0; i < count; i++)
                if (at >= all[i].low && at < all[i].high &&
                    (!best || all[i].high - all[i].low <= best->high - best->low))
                    best = &all[i];
            assert_int_equal(found == NULL, best == NULL);
            if (best)
                assert_int_equal(found->value, best->value);
        }
        ranges_deinit(&r);
    }
}

/* The start of every function of this program, and every call in it, by addr2line and by us. */
TEST_WITH(addr2line, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char line[8192], self[512];
    uint32_t checked = 0;

    if (!fixture_run(f, "command -v addr2line >/dev/null")) {
        print_message("addr2line is not installed\n");
        skip();
    }
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(len > 0);
    self[len] = 0;
    assert_true(fixture_run(f, "cp '%s' self && nm -S self | grep -i ' t ' | awk 'NF == 4 {print \"0x\" $1}' >list", self));
    assert_true(fixture_run(f, "objdump -d --no-show-raw-insn self | grep '^ .*call' | sed 's/^ */0x/; s/:.*//' >>list"));
    assert_true(fixture_run(f, "addr2line -a -i -f -C -e self <list >expected"));
    struct symbols *s = open_files(f, "self", "self");
    char path[512];
    snprintf(path, sizeof path, "%s/expected", f->dir);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    struct symbol_frame frames[FRAMES_MAX];
    uint32_t count = 0, at = 0;
    uint64_t vaddr = 0;
    bool has_lines = false;
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "0x", 2)) {
            assert_true(at == count || !has_lines);
            vaddr = strtoull(line, NULL, 16);
            count = symbols_lookup(s, vaddr, frames, FRAMES_MAX);
            at = 0;
            has_lines = frames[0].line != 0;
            continue;
        }
        char place[8192];
        assert_non_null(fgets(place, sizeof place, in));
        if (!has_lines)
            continue; /* of the C library's startup files; addr2line names their source, without lines */
        assert_true(at < count);
        assert_string_equal(frames[at].function, line);
        char *number = strrchr(place, ':');
        assert_non_null(number);
        *number++ = 0;
        assert_int_equal(frames[at].line, strtoul(number, NULL, 10));
        /* Not the file: addr2line 2.40 names the unit's where a function stands in an included one. */
        at++;
        checked++;
    }
    fclose(in);
    print_message("%u frames compared\n", checked);
    assert_true(checked > 20);
    symbols_close(s);
}

static void look_around(struct symbols *s)
{
    struct symbol_frame frames[FRAMES_MAX];
    size_t total = 0;

    for (uint64_t at = 0x1000; at < 0x1400; at += 5) {
        uint32_t count = symbols_lookup(s, at, frames, FRAMES_MAX);
        assert_true(count >= 1 && count <= FRAMES_MAX);
        for (uint32_t i = 0; i < count; i++)
            total += strlen(frames[i].function) + strlen(frames[i].file);
    }
    assert_true(total < SIZE_MAX);
}

/* Whatever the file says: no crash. */
TEST_WITH(damaged_files, fixture_init, fixture_deinit)
{
    static uint8_t good[1 << 18], bad[1 << 18];
    struct fixture *f = *state;
    char path[512];
    uint64_t seed = 3;
    const char *rounds_text = getenv("DAMAGE_ROUNDS");
    long rounds = rounds_text ? atol(rounds_text) : 1500;

    compile(f, "a.so", "-gdwarf-5");
    snprintf(path, sizeof path, "%s/a.so", f->dir);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    size_t len = fread(good, 1, sizeof good, in);
    fclose(in);
    assert_true(len > 0 && len < sizeof good);
    for (long round = 0; round < rounds; round++) {
        struct symbols *s;
        size_t bad_len = len;
        memcpy(bad, good, len);
        uint64_t changes = 1 + random_next(&seed) % 12;
        for (uint64_t i = 0; i < changes; i++) {
            static const uint8_t values[] = {0, 0xff, 0x7f, 0x80, 1};
            uint64_t pick = random_next(&seed);
            uint64_t where = pick % 4 ? random_next(&seed) % len : pick % 8 ? len - 1 - random_next(&seed) % 2500
                                                                          : random_next(&seed) % 800;
            bad[where] = pick & 64 ? values[pick % 5] : (uint8_t)random_next(&seed);
        }
        if (round % 10 == 0)
            bad_len = random_next(&seed) % len;
        struct error *err = symbols_open_memory(bad, bad_len, &s);
        if (err) {
            error_destroy(err);
            continue;
        }
        look_around(s);
        symbols_close(s);
    }
}

/* No system call failed: the message is about what is there, and names no errno. */
TEST_WITH(no_regular_file, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    struct image image;
    char expected[128];

    struct error *err = image_read(f->dir, &image);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_FORMAT);
    snprintf(expected, sizeof expected, "%s: is not a regular file", f->dir);
    assert_string_equal(error_text(err), expected);
    error_destroy(err);
}

/* How often the file was opened since the last call. */
static unsigned times_opened(int watch)
{
    _Alignas(struct inotify_event) char events[4096];
    unsigned count = 0;
    ssize_t n;

    while ((n = read(watch, events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < n; count++)
            at += (ssize_t)(sizeof(struct inotify_event) + ((struct inotify_event *)(events + at))->len);
    }
    return count;
}

/* Opens f/name and looks around in it, while `trap`, which its DWARF names, is a FIFO: nobody may open that. */
static void assert_trap_is_left_alone(struct fixture *f, const char *name, const char *trap)
{
    char path[256], trap_path[256];
    struct symbols *s;

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    snprintf(trap_path, sizeof trap_path, "%s/%s", f->dir, trap);
    assert_true(fixture_run(f, "rm -f %s && mkfifo %s", trap, trap));
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, trap_path, IN_OPEN) >= 0);
    const struct binary_files files = {.binary = path, .debug = path};
    alarm(300); /* without a writer the FIFO would be waited for */
    OK(symbols_open(&files, &s));
    look_around(s);
    alarm(0);
    symbols_close(s);
    assert_int_equal(times_opened(watch), 0);
    close(open(trap_path, O_RDONLY | O_NONBLOCK));
    assert_int_equal(times_opened(watch), 1);
    close(watch);
}

/* The owner of a binary cuts it while it is in use: no SIGBUS, and what was read is still there. */
TEST_WITH(cut_later, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[256];

    compile(f, "a.so", "-g");
    uint64_t place = fixture_symbol(f, "a.so", "place");
    snprintf(path, sizeof path, "%s/a.so", f->dir);
    if (!geteuid())
        assert_int_equal(chown(path, 65534, 65534), 0); /* what only root may cut is mapped */
    struct symbols *s = open_files(f, "a.so", NULL);
    assert_int_equal(truncate(path, 0), 0);
    assert_inlines(s, place);
    symbols_close(s);
}

/* libdw opens no file by itself, such as a supplement that was not found. */
TEST_WITH(opens_nothing, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    if (!fixture_run(f, "command -v dwz >/dev/null")) {
        print_message("dwz is not installed\n");
        skip();
    }
    compile(f, "a.so", "-gdwarf-4");
    assert_true(fixture_run(f, "cp a.so b.so && dwz -m common -M $PWD/common a.so b.so && test -e common"));
    assert_trap_is_left_alone(f, "a.so", "common");
}

/*
 * So many functions with the same long list of ranges, 16 bytes apart; only the last one has another
 * name. With no bound it takes minutes to read.
 */
TEST_WITH(many_ranges, fixture_init, fixture_deinit)
{
    enum { FUNCTIONS = 3000, RANGES = 3000 };
    const struct fixture *f = *state;
    char path[512], text[2048];
    struct binary_files files = {.binary = path, .debug = path};
    struct symbol_frame frame;
    struct symbols *s;

    int len = snprintf(text, sizeof text,
        ".text\n.globl code\n.type code,@function\ncode: .zero %d,0x90\n.size code,.-code\n"
        ".section .debug_abbrev,\"\",@progbits\n"
        "abbrev: .uleb128 1,0x11; .byte 1; .uleb128 0x11,1, 0x12,7, 0,0\n" /* a unit: low and high pc */
        ".uleb128 2,0x2e; .byte 0; .uleb128 3,8, 0x55,0x17, 0,0\n"          /* a function: name, ranges */
        ".uleb128 0\n"
        ".section .debug_info,\"\",@progbits\n.long end-start\n"
        "start: .short 4\n.long abbrev\n.byte 8\n.uleb128 1\n.quad code, %d\n"
        ".rept %d\n.uleb128 2\n.asciz \"other\"\n.long list\n.endr\n"
        ".uleb128 2\n.asciz \"last\"\n.long list\n.byte 0\nend:\n"
        ".section .debug_ranges,\"\",@progbits\nlist:\n.set i,0\n"
        ".rept %d\n.quad i,i+8\n.set i,i+16\n.endr\n.quad 0,0\n", RANGES * 16, RANGES * 16, FUNCTIONS, RANGES);
    assert_true(len > 0 && (size_t)len < sizeof text);
    fixture_write(f, "a.s", text, (size_t)len);
    assert_true(fixture_run(f, "cc -shared -nostdlib -o a.so a.s"));
    uint64_t code = fixture_symbol(f, "a.so", "code");
    snprintf(path, sizeof path, "%s/a.so", f->dir);
    OK(symbols_open(&files, &s));
    assert_int_equal(symbols_lookup(s, code + 1, &frame, 1), 1);
    assert_string_equal(frame.function, "last");
    /* It comes after more ranges than so small a file may have: only its first one is read. */
    assert_int_equal(symbols_lookup(s, code + (RANGES - 1) * 16 + 1, &frame, 1), 1);
    assert_string_equal(frame.function, "other");
    symbols_close(s);
}
