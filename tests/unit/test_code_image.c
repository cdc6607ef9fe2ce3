/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF file of Python names that perf-data writes, read back with libdw as hotspot does: each frame's address must have
 * the frame's name, file and line.
 */
#include "tests/unit/test.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "formats/emit/perf_data/code_image.h"
#include "tests/tools/emit_synthetic.h"

#define TEXT_COUNT 20

struct scene {
    struct synthetic s;
    struct emit_options options;
    struct code_image *image;
    char *file; /* its content */
    size_t len_bytes;
    const uint8_t *build_id;
    char path[40];
    Dwfl *dwfl;
    Dwfl_Module *module;
};

static uint32_t python(struct scene *sc, const char *function, const char *file, uint32_t line, uint32_t first, uint32_t end)
{
    return synthetic_frame(&sc->s, (struct emit_frame){.kind = EMIT_PYTHON,
                                                       .function = function,
                                                       .file = file,
                                                       .line = line,
                                                       .mapping = EMIT_NO_MAPPING,
                                                       .function_line = first,
                                                       .function_end = end});
}

static uint32_t native(struct scene *sc, const char *function, const char *module, const char *file, uint32_t line)
{
    return synthetic_frame(&sc->s, (struct emit_frame){.kind = EMIT_NATIVE,
                                                       .function = function,
                                                       .module = module,
                                                       .file = file,
                                                       .line = line,
                                                       .mapping = EMIT_NO_MAPPING});
}

/* The frames come first, since the model's pointer to them moves as they are added. */
static void begin(struct scene *sc)
{
    OK(code_image_create(&sc->s.model, &sc->options, &sc->image));
}

static uint64_t address_of(struct scene *sc, uint32_t frame)
{
    uint64_t address, again;

    OK(code_image_address(sc->image, frame, &address));
    OK(code_image_address(sc->image, frame, &again));
    assert_int_equal(address, again);
    assert_true(address % 2 == 1 && address < CODE_IMAGE_MAX_BYTES);
    return address;
}

static struct error *finish(struct scene *sc)
{
    struct names names;
    struct error *err = names_init(&names, &sc->s.model, &sc->options);

    if (!err)
        err = code_image_finish(sc->image, &names);
    names_deinit(&names);
    if (!err)
        sc->build_id = code_image_build_id(sc->image);
    return err;
}

/* Gives all frames addresses, in order, and opens the file with libdwfl. */
static void write_image(struct scene *sc)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = dwfl_offline_section_address};
    const unsigned char *id;
    GElf_Addr where;

    for (uint32_t i = 0; i < sc->s.model.frame_count; i++)
        address_of(sc, i);
    OK(finish(sc));
    FILE *out = open_memstream(&sc->file, &sc->len_bytes);
    assert_non_null(out);
    OK(code_image_write(sc->image, out));
    assert_int_equal(fclose(out), 0);

    strcpy(sc->path, "/tmp/code-image-XXXXXX");
    int fd = mkstemp(sc->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, sc->file, sc->len_bytes), (ssize_t)sc->len_bytes);
    close(fd);
    sc->dwfl = dwfl_begin(&callbacks);
    assert_non_null(sc->dwfl);
    dwfl_report_begin(sc->dwfl);
    sc->module = dwfl_report_elf(sc->dwfl, "python-code", sc->path, -1, 0, false);
    if (!sc->module)
        fail_msg("%s", dwfl_errmsg(-1));
    dwfl_report_end(sc->dwfl, NULL, NULL);
    assert_int_equal(dwfl_module_build_id(sc->module, &id, &where), CODE_IMAGE_ID_BYTES);
    assert_memory_equal(id, sc->build_id, CODE_IMAGE_ID_BYTES);
}

static void end(struct scene *sc)
{
    if (sc->dwfl)
        dwfl_end(sc->dwfl);
    if (*sc->path)
        unlink(sc->path);
    code_image_destroy(sc->image);
    synthetic_deinit(&sc->s);
    free(sc->file);
    *sc = (struct scene){0};
}

/* `file` NULL: it has no line. The addresses around a caller's count, too: some readers look one byte below. */
static void expect_at(struct scene *sc, uint64_t address, const char *symbol, const char *file, uint32_t line)
{
    for (uint64_t at = address - 1; at <= address; at++) {
        const char *name = dwfl_module_addrname(sc->module, at);
        int found_line = 0;
        assert_non_null(name);
        assert_string_equal(name, symbol);
        Dwfl_Line *found = dwfl_module_getsrc(sc->module, at);
        const char *path = found ? dwfl_lineinfo(found, NULL, &found_line, NULL, NULL, NULL) : NULL;
        if (!file) {
            assert_int_equal(found_line, 0);
            continue;
        }
        if (!path)
            fail_msg("no line at %#lx: %s", (unsigned long)at, dwfl_errmsg(-1));
        assert_string_equal(path, file);
        assert_int_equal((uint32_t)found_line, line);
    }
}

static void expect(struct scene *sc, uint32_t frame, const char *symbol, const char *file, uint32_t line)
{
    uint64_t address;

    OK(code_image_address(sc->image, frame, &address));
    expect_at(sc, address, symbol, file, line);
}

/* How many symbols have this name. */
static int symbols_named(struct scene *sc, const char *symbol)
{
    int count = 0;

    for (int i = 0; i < dwfl_module_getsymtab(sc->module); i++) {
        GElf_Sym sym;
        const char *name = dwfl_module_getsym(sc->module, i, &sym, NULL);
        count += name && !strcmp(name, symbol);
    }
    return count;
}

/* ---- functions and lines ---- */

TEST(lines)
{
    struct scene sc = {0};
    uint32_t run[3], above, below, half, twice;

    /* Lines of a function, among those of others, out of order. */
    run[0] = python(&sc, "C.run", "/srv/app.py", 12, 10, 20);
    uint32_t other = python(&sc, "other", "/srv/lib.py", 7, 5, 9);
    run[1] = python(&sc, "C.run", "/srv/app.py", 10, 10, 20);
    uint32_t last = python(&sc, "last", "/srv/app.py", 90, 90, 90);
    run[2] = python(&sc, "C.run", "/srv/app.py", 20, 10, 20);
    /* The same line again, which differs in its column only. */
    twice = python(&sc, "C.run", "/srv/app.py", 12, 10, 20);
    sc.s.frames.data[twice].column = 9;
    /* Lines that its end did not announce. */
    above = python(&sc, "C.run", "/srv/app.py", 21, 10, 25);
    below = python(&sc, "C.run", "/srv/app.py", 3, 10, 20);
    half = python(&sc, "C.run", "/srv/app.py", 0, 10, 20);
    begin(&sc);
    assert_false(code_image_is_used(sc.image));
    assert_int_equal(address_of(&sc, run[0]), address_of(&sc, twice));
    assert_true(code_image_is_used(sc.image));
    write_image(&sc);
    expect(&sc, run[0], "py::C.run:app.py", "/srv/app.py", 12);
    expect(&sc, run[1], "py::C.run:app.py", "/srv/app.py", 10);
    expect(&sc, run[2], "py::C.run:app.py", "/srv/app.py", 20);
    expect(&sc, other, "py::other:lib.py", "/srv/lib.py", 7);
    expect(&sc, last, "py::last:app.py", "/srv/app.py", 90);
    expect(&sc, above, "py::C.run:app.py", "/srv/app.py", 21);
    expect(&sc, below, "py::C.run:app.py", "/srv/app.py", 3);
    expect(&sc, half, "py::C.run:app.py", NULL, 0);
    assert_int_equal(symbols_named(&sc, "py::C.run:app.py"), 2); /* and one for what its end did not announce */
    assert_int_equal(symbols_named(&sc, "py::other:lib.py"), 1);
    end(&sc);
}

/* A function whose end is unknown gets blocks as its lines come. */
TEST(unknown_end)
{
    enum { LINES = 3000 };
    struct scene sc = {0};

    for (uint32_t i = 0; i < LINES; i++)
        python(&sc, "f", "/srv/app.py", 1 + i * 7 % LINES, 1, 0);
    begin(&sc);
    write_image(&sc);
    for (uint32_t i = 0; i < LINES; i++)
        expect(&sc, i, "py::f:app.py", "/srv/app.py", 1 + i * 7 % LINES);
    assert_int_equal(symbols_named(&sc, "py::f:app.py"), 5); /* 16, 64, 256, 1024 and 4096 slots */
    end(&sc);
}

/* Lambdas, and functions that were defined again: equal names, but another first line. */
TEST(equal_names)
{
    struct scene sc = {0};

    uint32_t a = python(&sc, "<lambda>", "/srv/app.py", 3, 3, 3);
    uint32_t b = python(&sc, "<lambda>", "/srv/app.py", 4, 4, 4);
    uint32_t c = python(&sc, "f", "/srv/app.py", 12, 10, 19);
    uint32_t d = python(&sc, "f", "/srv/app.py", 12, 11, 29);
    /* Files of one name, and functions of one name in them. */
    uint32_t e = python(&sc, "setup", "/srv/shop/__init__.py", 1, 1, 2);
    uint32_t f = python(&sc, "setup", "/srv/cart/__init__.py", 1, 1, 2);
    begin(&sc);
    write_image(&sc);
    expect(&sc, a, "py::<lambda>:app.py", "/srv/app.py", 3);
    expect(&sc, b, "py::<lambda>:app.py", "/srv/app.py", 4);
    expect(&sc, c, "py::f:app.py", "/srv/app.py", 12);
    expect(&sc, d, "py::f:app.py", "/srv/app.py", 12);
    expect(&sc, e, "py::setup:shop/__init__.py", "/srv/shop/__init__.py", 1);
    expect(&sc, f, "py::setup:cart/__init__.py", "/srv/cart/__init__.py", 1);
    assert_int_equal(symbols_named(&sc, "py::<lambda>:app.py"), 2);
    assert_int_equal(symbols_named(&sc, "py::f:app.py"), 2);
    end(&sc);
}

TEST(full_paths)
{
    struct scene sc = {.options.full_paths = true};

    uint32_t f = python(&sc, "f", "/srv/app.py", 3, 1, 5);
    begin(&sc);
    write_image(&sc);
    expect(&sc, f, "py::f:/srv/app.py", "/srv/app.py", 3);
    end(&sc);
}

TEST(extreme_lines)
{
    struct scene sc = {0};

    uint32_t huge = python(&sc, "huge", "/srv/app.py", UINT32_MAX, 1, UINT32_MAX);
    uint32_t greatest = python(&sc, "huge", "/srv/app.py", INT32_MAX, 1, UINT32_MAX);
    uint32_t one = python(&sc, "huge", "/srv/app.py", 1, 1, UINT32_MAX);
    uint32_t zero = python(&sc, "zero", "/srv/app.py", 0, 0, 0);
    uint32_t end_first = python(&sc, "upside", "/srv/app.py", 5, 9, 2);
    uint32_t top = python(&sc, "top", "/srv/app.py", UINT32_MAX, UINT32_MAX - 1, UINT32_MAX);
    uint32_t bottom = python(&sc, "top", "/srv/app.py", INT32_MAX, INT32_MAX - 1, INT32_MAX);
    begin(&sc);
    write_image(&sc);
    assert_true(sc.len_bytes < 10000); /* slots are not reserved for what nobody could have written */
    expect(&sc, huge, "py::huge:app.py", NULL, 0); /* libdw would refuse the file's other lines, too */
    expect(&sc, greatest, "py::huge:app.py", "/srv/app.py", INT32_MAX);
    expect(&sc, one, "py::huge:app.py", "/srv/app.py", 1);
    expect(&sc, zero, "py::zero:app.py", NULL, 0);
    expect(&sc, end_first, "py::upside:app.py", "/srv/app.py", 5);
    expect(&sc, top, "py::top:app.py", NULL, 0);
    expect(&sc, bottom, "py::top:app.py", "/srv/app.py", INT32_MAX);
    end(&sc);
}

TEST(many_lines)
{
    enum { FUNCTIONS = 1000, LINES = 100 };
    static char names[FUNCTIONS][TEXT_COUNT], symbols[FUNCTIONS][3 * TEXT_COUNT];
    struct scene sc = {0};

    for (uint32_t f = 0; f < FUNCTIONS; f++) {
        snprintf(names[f], sizeof *names, "function_%u", f);
        snprintf(symbols[f], sizeof *symbols, "py::function_%u:%s.py", f, f % 3 ? "a" : "b");
    }
    for (uint32_t line = 0; line < LINES; line++) {
        for (uint32_t f = 0; f < FUNCTIONS; f++)
            python(&sc, names[f], f % 3 ? "/srv/a.py" : "/srv/b.py", 1000 * f + 1 + line, 1000 * f + 1, 1000 * f + LINES);
    }
    begin(&sc);
    write_image(&sc);
    for (uint32_t i = 0; i < FUNCTIONS * LINES; i += 7) {
        uint32_t f = i % FUNCTIONS;
        expect(&sc, i, symbols[f], f % 3 ? "/srv/a.py" : "/srv/b.py", 1000 * f + 1 + i / FUNCTIONS);
    }
    end(&sc);
}

/* ---- what is no Python ---- */

TEST(marks)
{
    struct scene sc = {0};

    uint32_t torn = synthetic_mark(&sc.s, "[torn]"), task = synthetic_mark(&sc.s, "[asyncio task fetch]");
    begin(&sc);
    uint64_t no_frames = address_of(&sc, EMIT_NO_STACK);
    write_image(&sc);
    expect(&sc, torn, "[torn]", NULL, 0);
    expect(&sc, task, "[asyncio task fetch]", NULL, 0);
    expect_at(&sc, no_frames, "[no frames]", NULL, 0);
    end(&sc);
}

/* A native function has lines of several files; its binary tells it from others of its name. */
TEST(native)
{
    struct scene sc = {0};

    uint32_t a = native(&sc, "parse", "/usr/lib/liba.so", "/src/parse.c", 10);
    uint32_t b = native(&sc, "parse", "/usr/lib/liba.so", "/src/parse.h", 3);
    uint32_t c = native(&sc, "parse", "/usr/lib/libb.so", "/src/other.c", 10);
    uint32_t d = native(&sc, "parse", "/usr/lib/liba.so", "", 0);
    uint32_t unknown = native(&sc, "", "/usr/lib/libc.so.6", "", 0), jit = native(&sc, "", "/tmp/perf-12.map", "", 0);
    uint32_t vdso = native(&sc, "", "[vdso]", "", 0);
    uint32_t same_file = python(&sc, "f", "/src/parse.h", 4, 4, 4);
    begin(&sc);
    write_image(&sc);
    expect(&sc, a, "parse", "/src/parse.c", 10);
    expect(&sc, b, "parse", "/src/parse.h", 3);
    expect(&sc, c, "parse", "/src/other.c", 10);
    expect(&sc, d, "parse", NULL, 0);
    assert_int_equal(symbols_named(&sc, "parse"), 2);
    expect(&sc, unknown, "[libc.so.6]", NULL, 0);
    expect(&sc, jit, "[jit]", NULL, 0);
    expect(&sc, vdso, "[vdso]", NULL, 0);
    expect(&sc, same_file, "py::f:parse.h", "/src/parse.h", 4);
    end(&sc);
}

/* ---- hostile input ---- */

TEST(hostile_names)
{
    static char longest[10001];
    static char symbol[10020];
    static const struct {
        const char *function, *file, *symbol, *path;
    } cases[] = {
        {"a\nb", "/srv/x\ny.py", "py::a_b:x_y.py", "/srv/x_y.py"},
        {"\xff\xfe", "/srv/\xff.py", "py::\xef\xbf\xbd\xef\xbf\xbd:\xef\xbf\xbd.py", "/srv/\xef\xbf\xbd.py"},
        {"_Z3foov", "/srv/a.py", "py::_Z3foov:a.py", "/srv/a.py"},
        {"camlFoo__bar", "/srv/a.py", "py::camlFoo__bar:a.py", "/srv/a.py"},
        {"_private", "/srv/a.py", "py::_private:a.py", "/srv/a.py"},
        {"f(x);g->h", "/srv/a;b.py", "py::f[x]:g\xe2\x86\x92h:a:b.py", "/srv/a;b.py"},
        {"[torn]", "/srv/a.py", "py::[torn]:a.py", "/srv/a.py"},
        {"", "/srv/a.py", "py::[unknown]:a.py", "/srv/a.py"},
        {"f", "", "py::f", NULL},
        {"f", " ", "py::f:", "[unknown]"},
        {"f", "<string>", "py::f:<string>", "<string>"},
        {"<frozen>", "<frozen importlib._bootstrap>", "py::<frozen>:<frozen importlib._bootstrap>",
         "<frozen importlib._bootstrap>"},
        {longest, "/srv/a.py", symbol, "/srv/a.py"},
    };
    const uint32_t count = sizeof cases / sizeof *cases;
    struct scene sc = {0};

    memset(longest, 'x', sizeof longest - 1);
    snprintf(symbol, sizeof symbol, "py::%s:a.py", longest);
    for (uint32_t i = 0; i < count; i++)
        python(&sc, cases[i].function, cases[i].file, 5, 5, 5);
    begin(&sc);
    write_image(&sc);
    for (uint32_t i = 0; i < count; i++)
        expect(&sc, i, cases[i].symbol, cases[i].path, 5);
    end(&sc);
}

/* Lines that a table claims, but nobody has seen, take room up to a limit. */
TEST(reserved_lines)
{
    enum { FUNCTIONS = 400, CLAIMED = 60000 };
    static char names[FUNCTIONS][TEXT_COUNT];
    struct scene sc = {0};

    for (uint32_t f = 0; f < FUNCTIONS; f++) {
        snprintf(names[f], sizeof *names, "f%u", f);
        python(&sc, names[f], "/srv/a.py", 100, 1, CLAIMED);
    }
    begin(&sc);
    for (uint32_t f = 0; f < FUNCTIONS; f++)
        assert_true(address_of(&sc, f) < 34 << 20); /* not 48 MB */
    end(&sc);
}

/* Memory is counted, given back, and its limit an error. */
TEST(limits)
{
    static char path[60000];

    memset(path, 'p', sizeof path - 1);
    for (uint64_t max = 1000; ; max *= 2) {
        struct limits limits = {.memory_max = max, .work_max = UINT64_MAX};
        struct scene sc = {.options.limits = &limits};
        uint64_t address;
        struct error *err = NULL;
        for (uint32_t i = 0; i < 1000; i++)
            python(&sc, "f", path, i + 1, i + 1, i + 1);
        begin(&sc);
        for (uint32_t i = 0; !err && i < 1000; i++)
            err = code_image_address(sc.image, i, &address);
        if (!err)
            err = finish(&sc);
        assert_int_equal(limits.exceeded, err != NULL);
        bool done = !err;
        error_destroy(err);
        end(&sc);
        assert_int_equal(limits.memory_used, 0);
        if (done) {
            assert_true(max > 200000 && max < 10000000);
            return;
        }
    }
}

/* ---- build IDs ---- */

static void setup_small(struct scene *sc, const char *function, uint32_t line)
{
    *sc = (struct scene){0};
    python(sc, function, "/srv/a.py", line, 1, 9);
    python(sc, "g", "/srv/b.py", 2, 1, 9);
    begin(sc);
    write_image(sc);
}

TEST(equal_input)
{
    struct scene a, b, name, line;

    setup_small(&a, "f", 3);
    setup_small(&b, "f", 3);
    setup_small(&name, "h", 3);
    setup_small(&line, "f", 4);
    assert_int_equal(a.len_bytes, b.len_bytes);
    assert_memory_equal(a.file, b.file, a.len_bytes);
    assert_memory_not_equal(a.build_id, name.build_id, CODE_IMAGE_ID_BYTES);
    assert_memory_not_equal(a.build_id, line.build_id, CODE_IMAGE_ID_BYTES);
    end(&a);
    end(&b);
    end(&name);
    end(&line);
}
