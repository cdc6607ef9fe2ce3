/* SPDX-License-Identifier: Apache-2.0 */
/* Source files: found only below the folders that were named, decoded as Python does, and compared with what ran. */
#include <sys/stat.h>

#include "symbolize/source/source_path.h"
#include "symbolize/source/source_text.h"
#include "symbolize/source/sources.h"
#include "tests/tools/emit_synthetic.h"
#include "tests/unit/folder_fixture.h"

/* ---- paths ---- */

TEST(clean)
{
    static const char *const cases[][2] = {
        {"/a/b.py", "/a/b.py"}, {"//a//b.py/", "/a/b.py"},   {"a/./b.py", "a/b.py"},    {"/a/../../b.py", "/b.py"}, {"../../b.py", "b.py"},
        {"/a/b/../c.py", "/a/c.py"}, {"a/..", NULL}, {"/", NULL}, {"", NULL}, {"<string>", NULL}, {"..", NULL}, {"/..", NULL}, {"a/b/../../c", "c"},
    };
    char *longest = malloc(100000);
    struct buf out = {0};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_clear(&out);
        bool is_path = source_path_clean(cases[i][0], &out);
        assert_int_equal(is_path, cases[i][1] != NULL);
        if (is_path)
            assert_string_equal(buf_cstr(&out), cases[i][1]);
    }
    memset(longest, 'a', 99999);
    longest[99999] = 0;
    assert_false(source_path_clean(longest, &out));
    free(longest);
    buf_deinit(&out);
    assert_string_equal(source_path_in("/app/x.py", "/app"), "x.py");
    assert_string_equal(source_path_in("/app/x.py", "/"), "app/x.py");
    assert_null(source_path_in("/application/x.py", "/app"));
    assert_null(source_path_in("/app", "/app"));
    assert_string_equal(source_path_shorter("/a/b/c"), "b/c");
    assert_null(source_path_shorter("/a"));
}

/* ---- encodings ---- */

TEST(decode)
{
#define BYTES(text) (text), sizeof(text) - 1
    static const struct {
        const char *bytes;
        size_t len;
        const char *text;
    } cases[] = {
        {BYTES("x = 'caf\xc3\xa9'\n"), "x = 'caf\xc3\xa9'\n"},
        {BYTES("\xef\xbb\xbf# coding: latin-1\n"), "# coding: latin-1\n"},
        {BYTES("# -*- coding: latin-1 -*-\n'\xe9'"), "# -*- coding: latin-1 -*-\n'\xc3\xa9'"},
        {BYTES("#!/usr/bin/python\n# vim: set fileencoding=ISO_8859-1 :\n\xe9"),
         "#!/usr/bin/python\n# vim: set fileencoding=ISO_8859-1 :\n\xc3\xa9"},
        {BYTES("\n\n# coding: latin-1\n\xe9"), "\n\n# coding: latin-1\n\\xe9"},
        {BYTES("x = 1 # coding: latin-1\n\xe9"), "x = 1 # coding: latin-1\n\\xe9"},
        {BYTES("import os\n# coding: latin-1\n\xe9"), "import os\n# coding: latin-1\n\\xe9"},
        {BYTES("# coding=euc-jp\n\xa4\xa2 a"), "# coding=euc-jp\n\\xa4\\xa2 a"},
        {BYTES("# coding: ascii\n\xc3\xa9"), "# coding: ascii\n\\xc3\\xa9"},
        {BYTES("a\r\nb\rc\n"), "a\nb\nc\n"},
        {BYTES("a\0b\xff\xc3"), "a\\x00b\\xff\\xc3"},
        {BYTES("#coding:"), "#coding:"},
        {BYTES(""), ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};
        source_text_decode((const uint8_t *)cases[i].bytes, cases[i].len, &out);
        assert_string_equal(buf_cstr(&out), cases[i].text);
        assert_int_equal(out.len_bytes, strlen(cases[i].text));
        buf_deinit(&out);
    }
}

/* ---- places ---- */

struct world {
    const struct fixture *f;
    struct synthetic s;
    struct emit_model model;
    struct emit_source_stamp stamp;
    struct sources *sources;
    const char *arguments[4];
};

static void begin(struct world *w, const struct fixture *f, const char *const *arguments)
{
    struct option_texts texts = {.data = w->arguments};

    *w = (struct world){.f = f};
    for (; arguments[texts.count]; texts.count++) {
        char *text = malloc(200);
        const char *equals = strchr(arguments[texts.count], '=');
        int from = equals ? (int)(equals + 1 - arguments[texts.count]) : 0;
        snprintf(text, 200, "%.*s%s/%s", from, arguments[texts.count], f->dir, arguments[texts.count] + from);
        w->arguments[texts.count] = text;
    }
    texts.data = w->arguments;
    OK(sources_create(&texts, NULL, &w->sources));
}

static void end(struct world *w)
{
    sources_destroy(w->sources);
    for (size_t i = 0; i < 4; i++)
        free((char *)w->arguments[i]);
    synthetic_deinit(&w->s);
}

static void frame(struct world *w, const char *function, const char *file, uint32_t line, uint32_t function_line)
{
    synthetic_python(&w->s, function, file, line, 0, function_line);
}

static void stamp(struct world *w, const char *file, uint64_t size, int64_t modified_ns)
{
    w->stamp = (struct emit_source_stamp){.file = file, .size_bytes = size, .modified_ns = modified_ns};
}

/* What is found; NULL: nothing. */
static const struct emit_source *find(struct world *w, const char *file)
{
    struct emit_sources *sources = sources_for_emitters(w->sources);
    const struct emit_source *found, *again;

    w->model = w->s.model;
    w->model.source_stamps = &w->stamp;
    w->model.source_stamp_count = w->stamp.file ? 1 : 0;
    OK(sources->find(sources, &w->model, file, &found));
    OK(sources->find(sources, &w->model, file, &again));
    assert_ptr_equal(found, again);
    return found;
}

static void expect_path(struct world *w, const char *file, const char *path)
{
    const struct emit_source *found = find(w, file);
    char whole[200];

    if (!path) {
        if (found)
            fail_msg("%s: found %s", file, found->path);
        return;
    }
    snprintf(whole, sizeof whole, "%s/%s", w->f->dir, path);
    if (!found)
        fail_msg("%s: not found", file);
    else
        assert_string_equal(found->path, whole);
}

TEST_WITH(places, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    struct world w;

    assert_true(fixture_run(f, "mkdir -p src/shop src/app/shop other && echo 1 >src/shop/cart.py && echo 2 >src/app/shop/cart.py && "
                               "echo 3 >src/top.py && echo 4 >other/__init__.py && echo 5 >other/x.py && echo 6 >src/shop/__init__.py"));
    begin(&w, f, (const char *const[]){"src", NULL});
    expect_path(&w, "/srv/app/shop/cart.py", "src/app/shop/cart.py"); /* the longest end that is there */
    expect_path(&w, "/srv/shop/cart.py", "src/shop/cart.py");
    expect_path(&w, "/usr/src/top.py", "src/top.py");
    expect_path(&w, "shop/cart.py", "src/shop/cart.py");
    expect_path(&w, "/x/../shop/./cart.py", "src/shop/cart.py");
    expect_path(&w, "/srv/shop/no.py", NULL);
    expect_path(&w, "/srv/shop", NULL); /* a folder */
    expect_path(&w, "<string>", NULL);
    expect_path(&w, "", NULL);
    end(&w);

    begin(&w, f, (const char *const[]){"/srv/app=src", "other", NULL});
    expect_path(&w, "/srv/app/shop/cart.py", "src/shop/cart.py");
    expect_path(&w, "/srv/application/shop/cart.py", NULL);
    expect_path(&w, "/srv/app/x.py", "other/x.py");
    /* Another package's, not this one's; but the folder may be the package. */
    expect_path(&w, "/usr/lib/json/__init__.py", NULL);
    expect_path(&w, "/usr/lib/other/__init__.py", "other/__init__.py");
    end(&w);

    begin(&w, f, (const char *const[]){"=src", NULL});
    expect_path(&w, "/srv/shop/cart.py", "src/shop/cart.py");
    end(&w);
}

TEST(missing_folder)
{
    const char *arguments[] = {"/nonexistent"}, *bad[] = {"<x>=/"};
    const struct option_texts texts = {.data = arguments, .count = 1}, wrong = {.data = bad, .count = 1};
    struct sources *sources;

    struct error *err = sources_create(&texts, NULL, &sources);
    assert_non_null(strstr(error_text(err), "/nonexistent"));
    error_destroy(err);
    err = sources_create(&wrong, NULL, &sources);
    assert_int_equal(err->code, ERROR_USAGE);
    error_destroy(err);
}

/* Links stay in the folder; what is no regular file or too large is no source. */
TEST_WITH(hostile_files, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    struct world w;

    assert_true(fixture_run(f, "mkdir -p src/sub && echo secret >secret.py && ln -s ../secret.py src/out.py && ln -s \"$PWD/secret.py\" src/absolute.py && "
                               "ln -s .. src/up && ln -s loop.py src/loop.py && mkfifo src/fifo.py && echo 1 >src/sub/in.py && "
                               "ln -s sub/in.py src/link.py && truncate -s 4194305 src/large.py && truncate -s 4194304 src/most.py && "
                               "ln -s /etc src/etc"));
    begin(&w, f, (const char *const[]){"src", NULL});
    expect_path(&w, "out.py", NULL);
    expect_path(&w, "absolute.py", NULL);
    expect_path(&w, "up/secret.py", NULL);
    expect_path(&w, "loop.py", NULL);
    expect_path(&w, "fifo.py", NULL);
    expect_path(&w, "etc/passwd", NULL);
    expect_path(&w, "/../secret.py", NULL);
    expect_path(&w, "../../../../../../../../etc/passwd", NULL);
    expect_path(&w, "/etc/passwd", NULL);
    expect_path(&w, "/dev/stdin", NULL);
    expect_path(&w, "/proc/self/cmdline", NULL);
    expect_path(&w, "link.py", "src/link.py");
    expect_path(&w, "large.py", NULL);
    expect_path(&w, "most.py", "src/most.py");
    end(&w);
}

/* ---- is it the one that ran? ---- */

static void expect_match(struct world *w, const char *file, enum emit_source_match match, const char *reason)
{
    const struct emit_source *found = find(w, file);

    assert_non_null(found);
    assert_string_equal(found->reason, reason);
    assert_int_equal(found->match, match);
}

static const char *write_module(const struct fixture *f)
{
    /* 49 bytes, 6 lines */
    assert_true(fixture_run(f, "mkdir -p src/p && printf 'import os\\n\\n@cached\\ndef add():\\n    return 1\\nA = 2\\n' >src/p/m.py && "
                               "touch -d @1000000000.5 src/p/m.py"));
    return "/srv/p/m.py";
}

TEST_WITH(match, fixture_init, fixture_deinit)
{
    static const struct {
        int64_t modified_ns;
        uint64_t size;
        enum emit_source_match match;
        const char *reason;
    } cases[] = {
        {INT64_C(1000000000500000000), 49, EMIT_SOURCE_SAME, ""},
        {INT64_C(1000000000000000000), 49, EMIT_SOURCE_SAME, ""}, /* an archive keeps whole seconds */
        {INT64_C(1000000001500000000), 49, EMIT_SOURCE_UNKNOWN, "it has the same size, and another date"},
        {INT64_C(1000000000500000000), 50, EMIT_SOURCE_CHANGED, "50 bytes ran, and it has 49"},
    };
    const struct fixture *f = *state;
    struct world w;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *file = write_module(f);
        begin(&w, f, (const char *const[]){"src", NULL});
        frame(&w, "add", file, 5, 3);
        stamp(&w, file, cases[i].size, cases[i].modified_ns);
        expect_match(&w, file, cases[i].match, cases[i].reason);
        end(&w);
    }
    begin(&w, f, (const char *const[]){"src", NULL});
    stamp(&w, "/srv/p/m.py", 0, 0);
    w.stamp.several = true;
    expect_match(&w, "/srv/p/m.py", EMIT_SOURCE_UNKNOWN, "several files of this name ran, or it changed meanwhile");
    end(&w);
}

/* What ran contradicts a text, also where the trace knows no size. */
TEST_WITH(contradictions, fixture_init, fixture_deinit)
{
    static const struct {
        const char *function;
        uint32_t line, function_line;
        const char *reason; /* NULL: nothing contradicts */
    } cases[] = {
        {"add", 5, 3, NULL},
        {"add", 5, 4, NULL},
        {"Cart.add", 5, 4, NULL},
        {"f.<locals>.add", 5, 4, NULL},
        {"<module>", 6, 1, NULL},
        {"<module>", 7, 1, "line 7 ran, and it has 6 lines"},
        {"add.<locals>.<lambda>", 5, 5, NULL},
        {"add", 5, 5, "add began at line 5, and there it does not"},
        {"ad", 5, 4, "ad began at line 4, and there it does not"},
        {"sub", 5, 3, "sub began at line 3, and there it does not"},
        {"add", 5, 99, "add began at line 99, and there it does not"},
        {"\xc3\xa9t\xc3\xa9", 5, 1, NULL},
        {"", 5, 0, NULL},
    };
    const struct fixture *f = *state;
    struct world w;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *file = write_module(f);
        begin(&w, f, (const char *const[]){"src", NULL});
        frame(&w, "other", "/srv/other.py", 1000, 999);
        frame(&w, cases[i].function, file, cases[i].line, cases[i].function_line);
        expect_match(&w, file, cases[i].reason ? EMIT_SOURCE_CHANGED : EMIT_SOURCE_UNKNOWN,
                     cases[i].reason ? cases[i].reason : "the trace does not say");
        end(&w);
    }
}

/* Of several files of a name the one that ran is taken. */
TEST_WITH(best, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    struct world w;

    assert_true(fixture_run(f, "mkdir -p a/p b/p c && printf 'x\\n' >a/p/m.py && printf 'def f(): 1\\n' >b/p/m.py && printf 'y\\n' >c/m.py"));
    begin(&w, f, (const char *const[]){"a", "b", NULL});
    frame(&w, "f", "/srv/p/m.py", 1, 1);
    expect_path(&w, "/srv/p/m.py", "b/p/m.py");
    end(&w);
    begin(&w, f, (const char *const[]){"a", "b", NULL});
    stamp(&w, "/srv/p/m.py", 2, 1);
    expect_path(&w, "/srv/p/m.py", "a/p/m.py"); /* of the right size, if not of the right date */
    end(&w);
    /* One that has the name alone in common, and other functions, is another's. */
    begin(&w, f, (const char *const[]){"c", NULL});
    frame(&w, "f", "/srv/p/m.py", 1, 1);
    expect_path(&w, "/srv/p/m.py", NULL);
    end(&w);
}

/* Looking costs work, which has a limit. */
TEST_WITH(limits, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    const char *arguments[] = {f->dir};
    const struct option_texts texts = {.data = arguments, .count = 1};
    struct limits limits = {.memory_max = 1 << 20, .work_max = 100000};
    struct emit_model model = {0};
    const struct emit_source *found;
    struct sources *sources;
    struct error *err = NULL;
    char file[300];

    OK(sources_create(&texts, &limits, &sources));
    for (int i = 0; i < 100 && !err; i++) {
        snprintf(file, sizeof file, "/a/b/c/d/e/f%d.py", i);
        err = sources_for_emitters(sources)->find(sources_for_emitters(sources), &model, file, &found);
    }
    assert_non_null(err);
    assert_true(limits.exceeded);
    error_destroy(err);
    sources_destroy(sources);
}
