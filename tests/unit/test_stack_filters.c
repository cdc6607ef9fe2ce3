/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for stacks that users choose with: each by itself, their order, and what is said where nothing is left. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "symbolize/options.h"
#include "symbolize/stack/stack_groups.h"
#include "symbolize/stack/stack_map.h"
#include "symbolize/stack/stack_nothing.h"

static uint32_t text(struct model *m, const char *s)
{
    return model_text(m, s, strlen(s));
}

/*
 * A frame from one word: "f" a Python function in /srv/app/f.py, "f@/dir/x.py" in that file, "+f" a native one in
 * /usr/lib/libf.so, "+f@/dir/x.so" in that binary, "^f" the kernel's, "[f]" a mark. "f:12" has a line.
 */
static uint32_t frame(struct model *m, const char *word)
{
    char function[128], path[160];
    enum emit_frame_kind kind = *word == '+' ? EMIT_NATIVE : *word == '^' ? EMIT_KERNEL : *word == '[' ? EMIT_MARK : EMIT_PYTHON;
    const char *name = word + (kind == EMIT_NATIVE || kind == EMIT_KERNEL), *at = strchr(name, '@'), *line = strchr(name, ':');
    int len = (int)strcspn(name, "@:");

    snprintf(function, sizeof function, "%.*s", len, name);
    if (at)
        snprintf(path, sizeof path, "%s", at + 1);
    else
        snprintf(path, sizeof path, kind == EMIT_PYTHON ? "/srv/app/%s.py" : "/usr/lib/lib%s.so", function);
    struct model_frame f = {.kind = kind, .mapping = EMIT_NO_MAPPING};
    f.function = text(m, function);
    f.line = line && !at ? (uint32_t)atoi(line + 1) : 0;
    if (kind == EMIT_PYTHON) {
        f.file = text(m, path);
        f.module = text(m, "/usr/bin/python3.11");
    } else if (kind != EMIT_MARK) {
        f.module = text(m, kind == EMIT_KERNEL ? "[kernel.kallsyms]" : path);
    }
    return model_frame(m, &f);
}

/* Frames with blanks between them, outermost first. */
static uint32_t stack(struct model *m, const char *words)
{
    uint32_t number = EMIT_NO_STACK;
    char copy[512], *rest, *word;

    snprintf(copy, sizeof copy, "%s", words);
    for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        number = model_stack(m, number, frame(m, word));
    return number;
}

static const char *spelled(const struct model *m, uint32_t number)
{
    static char out[1024];
    char before[1024] = "";

    for (out[0] = 0; number != EMIT_NO_STACK; number = m->stacks.data[number].parent) {
        const struct emit_frame *f = &m->frames.data[m->stacks.data[number].frame];
        char line[16] = "";
        if (f->line)
            snprintf(line, sizeof line, ":%u", f->line);
        snprintf(out, sizeof out, "%s%s%s%.900s", f->function, line, *before ? " " : "", before);
        strcpy(before, out);
    }
    return out;
}

struct view {
    struct options options;
    struct model model;
    struct stack_map map;
};

static void view_init(struct view *v, int count, const char *const *words)
{
    char *argv[24] = {(char *)"pysym", (char *)"t.bin", (char *)"-f", (char *)"folded"};

    *v = (struct view){0};
    for (int i = 0; i < count; i++)
        argv[4 + i] = (char *)words[i];
    OK(options_parse(4 + count, argv, &v->options));
    assert_true(model_init(&v->model, NULL));
    OK(stack_map_init(&v->map, &v->model, &v->options.stacks, stack_rules));
}
#define VIEW(v, ...) \
    view_init(v, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})

static void view_deinit(struct view *v)
{
    stack_map_deinit(&v->map);
    model_deinit(&v->model);
    options_deinit(&v->options);
}

static const char *shown(struct view *v, const char *words, uint64_t weight)
{
    uint32_t number;
    bool kept;

    OK(stack_map_find(&v->map, stack(&v->model, words), 0, weight, &number, &kept));
    return kept ? spelled(&v->model, number) : "dropped";
}

/* ---- each rule ---- */

TEST(each_rule)
{
    static const struct {
        const char *words[7], *from, *to;
    } cases[] = {
        {{"--focus", "wor"}, "main work +memcpy", "main work memcpy"},
        {{"--focus", "libmem"}, "main work +memcpy", "main work memcpy"},
        {{"--focus", "app/work"}, "main work", "main work"},
        {{"--focus", "^work$"}, "main working", "dropped"},
        {{"--focus", "python3"}, "main work", "dropped"}, /* the interpreter is no module of Python frames */
        {{"--focus", "function:app"}, "main work", "dropped"},
        {{"--focus", "file:app"}, "main work", "main work"},
        {{"--focus", "module:work"}, "main work", "dropped"},
        {{"--focus", "module:mem"}, "main +memcpy", "main memcpy"},
        {{"--focus", "main", "--focus", "mem"}, "main work", "dropped"}, /* both */
        {{"--focus", "main", "--focus", "mem"}, "main +memcpy", "main memcpy"},
        {{"--focus", "x"}, "", "dropped"},
        {{"--ignore", "work"}, "main work", "dropped"},
        {{"--ignore", "work", "--ignore", "play"}, "main rest", "main rest"},
        {{"--ignore", "work", "--ignore", "play"}, "main play", "dropped"},
        {{"--root-at", "work"}, "main work help work leaf", "work help work leaf"},
        {{"--root-at", "work"}, "main rest", "dropped"},
        {{"--root-at", "help", "--root-at", "work"}, "main work help", "work help"},
        {{"--callers-of", "work"}, "main work help work leaf", "main work help work"},
        {{"--callers-of", "work"}, "main rest", "dropped"},
        {{"--hide", "help"}, "main help work help", "main work"},
        {{"--hide", "help", "--hide", "main"}, "main help work help", "work"},
        {{"--hide", "."}, "main help", ""},
        {{"--show", "help", "--show", "libm"}, "main help +memcpy ^read", "help memcpy"},
        {{"--layer", "python"}, "[torn] +start main +memcpy ^read", "[torn] main"},
        {{"--layer", "native,kernel"}, "+start main +memcpy ^read", "start memcpy read"},
        {{"--group", "layer"}, "[torn] +start +run main work +a ^b ^c", "[torn] native Python native kernel"},
        {{"--group", "file"}, "+a main +b main", "/usr/lib/liba.so /srv/app/main.py /usr/lib/libb.so /srv/app/main.py"},
        {{"--collapse-recursion"}, "f f f g", "f g"},
        {{"--collapse-recursion"}, "f:1 f:2 f:3 g:4", "f:3 g:4"}, /* the line where the time was spent */
        {{"--collapse-recursion"}, "m a b a b a b c", "m a b c"},
        {{"--collapse-recursion"}, "a b c a b c a b", "a b c a b"},
        {{"--collapse-recursion"}, "f@/x.py f@/y.py", "f f"}, /* two functions of one name */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct view v;
        int count = 0;
        while (count < 7 && cases[i].words[count])
            count++;
        view_init(&v, count, cases[i].words);
        for (int again = 0; again < 2; again++)
            assert_string_equal(shown(&v, cases[i].from, 1), cases[i].to);
        view_deinit(&v);
    }
}

TEST(names_of_groups)
{
    static const struct {
        const char *word, *module, *package;
    } cases[] = {
        {"f@/venv/lib/python3.12/site-packages/django/db/models/__init__.py", "django.db.models", "django"},
        {"f@/venv/lib/python3.12/site-packages/six.py", "six", "six"},
        {"f@/usr/lib/python3/dist-packages/yaml/loader.py", "yaml.loader", "yaml"},
        {"f@/usr/lib/python3.12/json/decoder.py", "json.decoder", "json"},
        {"f@/usr/lib/python3.13t/threading.py", "threading", "threading"},
        {"f@/srv/app/views.py", "views", "app"},
        {"f@views.py", "views", "views"},
        {"f@/views.py", "views", "views"},
        {"f@<string>", "<string>", "<string>"},
        {"f@<frozen_importlib._bootstrap>", "<frozen_importlib._bootstrap>", "<frozen_importlib._bootstrap>"},
        {"f@/home/python/app/x.py", "x", "app"}, /* a folder of that name is no library */
        {"+f@/usr/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6", "libc.so.6"},
        {"+f@/v/site-packages/numpy/core/_multi.cpython-312-x86_64-linux-gnu.so", "_multi.cpython-312-x86_64-linux-gnu.so",
         "numpy"},
        {"+f@/v/site-packages/numpy.libs/libopenblas.so", "libopenblas.so", "numpy"},
        {"+f@/usr/lib/python3.12/lib-dynload/_json.cpython-312-x86_64-linux-gnu.so",
         "_json.cpython-312-x86_64-linux-gnu.so", "_json"},
        {"f@/srv/app/", "[unknown]", "app"}, {"f@/usr/lib/python3.12/", "[unknown]", "[unknown]"},
        {"+f@/usr/lib/", "[unknown]", "[unknown]"},
        {"^read", "[kernel.kallsyms]", "[kernel.kallsyms]"},
    };
    struct model m = {0};
    struct buf out = {0};

    assert_true(model_init(&m, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t number = frame(&m, cases[i].word);
        buf_clear(&out);
        stack_group_name(STACK_GROUP_MODULE, &m.frames.data[number], &out);
        assert_string_equal(buf_cstr(&out), cases[i].module);
        buf_clear(&out);
        stack_group_name(STACK_GROUP_PACKAGE, &m.frames.data[number], &out);
        assert_string_equal(buf_cstr(&out), cases[i].package);
    }
    const struct emit_frame frozen = {.kind = EMIT_PYTHON, .function = "f", .file = "<frozen importlib._bootstrap>", .module = ""};
    buf_clear(&out);
    stack_group_name(STACK_GROUP_MODULE, &frozen, &out);
    assert_string_equal(buf_cstr(&out), "importlib._bootstrap");
    buf_clear(&out);
    stack_group_name(STACK_GROUP_PACKAGE, &frozen, &out);
    assert_string_equal(buf_cstr(&out), "importlib");
    buf_deinit(&out);
    model_deinit(&m);
}

/* ---- their order ---- */

TEST(order)
{
    struct view v;

    /* Samples are chosen, and stacks cut, by frames that are hidden afterwards. */
    VIEW(&v, "--hide", "helper", "--focus", "helper", "--root-at", "helper");
    assert_string_equal(shown(&v, "main helper work leaf", 1), "work leaf");
    assert_string_equal(shown(&v, "main work leaf", 1), "dropped");
    view_deinit(&v);
    /* A sample is ignored for what --root-at would cut off. */
    VIEW(&v, "--root-at", "work", "--ignore", "main");
    assert_string_equal(shown(&v, "main work", 1), "dropped");
    view_deinit(&v);
    /* Groups are of what is shown, and recur where functions do not. */
    VIEW(&v, "--collapse-recursion", "--group", "file", "--hide", "between");
    assert_string_equal(shown(&v, "a@/x.py b@/x.py between c@/x.py d@/y.py e@/x.py f@/y.py", 1), "/x.py /y.py");
    view_deinit(&v);
    /* The stack begins first, then it ends. */
    VIEW(&v, "--callers-of", "f", "--root-at", "g");
    assert_string_equal(shown(&v, "f g h", 1), "dropped");
    assert_string_equal(shown(&v, "f g h f i", 1), "g h f");
    view_deinit(&v);
}

/* ---- what is said where nothing is left ---- */

static void says(struct view *v, const char *wanted)
{
    struct error *err = stack_nothing_left(&v->map);

    if (!*wanted) {
        assert_null(err);
        return;
    }
    assert_non_null(err);
    assert_string_equal(error_text(err), wanted);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
}

TEST(nothing_left)
{
    static const struct {
        const char *words[6], *text;
    } cases[] = {
        {{"--focus", "handel_request"},
         "no function, file or module matches 'handel_request' (--focus); functions with similar names: handle_request"},
        {{"--focus", "Handle"},
         "no function, file or module matches 'Handle' (--focus); functions with similar names: handle_request"},
        {{"--root-at", "file:zz"}, "no file matches 'file:zz' (--root-at); functions with the most time: read, query"},
        {{"--show", "zz"}, "no function, file or module matches 'zz' (--show); functions with the most time: read, query"},
        {{"--focus", "query", "--ignore", "main"},
         "nothing is left by --ignore main of those that pass --focus query; functions with the most time: read, query"},
        {{"--focus", "read", "--focus", "query"},
         "no sample passes --focus read --focus query; functions with the most time: read, query"},
        {{"--focus", "query", "--root-at", "read"}, /* which matches, but no sample that --focus left */
         "no sample passes --root-at read of those that pass --focus query; functions with the most time: read, query"},
        {{"--layer", "native"}, "no sample passes --layer native; functions with the most time: read, query"},
        {{"--hide", "."}, "nothing is left by --hide .; functions with the most time: read, query"},
        {{"--focus", "query"}, ""},
        {{"--hide", "zz"}, ""},
        {{"--labels"}, ""},
        {{"--group", "file"}, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct view v;
        int count = 0;
        while (count < 6 && cases[i].words[count])
            count++;
        view_init(&v, count, cases[i].words);
        shown(&v, "main handle_request query", 3);
        shown(&v, "main handle_request ^read", 4);
        says(&v, cases[i].text);
        view_deinit(&v);
    }
}

TEST(nothing_matched)
{
    struct buf text = {0};
    struct view v;

    VIEW(&v, "--hide", "main", "--hide", "x", "--hide", "^main", "--ignore", "file:zz");
    shown(&v, "main work", 1);
    assert_true(stack_nothing_matched(&v.map, &text));
    assert_string_equal(buf_cstr(&text), "no frame of these samples matches --ignore 'file:zz', --hide 'x'");
    view_deinit(&v);
    buf_clear(&text);
    VIEW(&v, "--hide", "main");
    shown(&v, "main work", 1);
    assert_false(stack_nothing_matched(&v.map, &text));
    assert_int_equal(text.len_bytes, 0);
    view_deinit(&v);
    buf_deinit(&text);
}

/* ---- patterns ---- */

/* Of a name that is too long only the beginning counts. */
TEST(patterns)
{
    char name[PATTERN_NAME_LIMIT_BYTES + 10];
    struct pattern *p;

    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    name[PATTERN_NAME_LIMIT_BYTES] = 'b';
    OK(pattern_create("--comm", "b", &p));
    assert_false(pattern_finds(p, name));
    name[PATTERN_NAME_LIMIT_BYTES - 1] = 'b';
    assert_true(pattern_finds(p, name));
    pattern_destroy(p);
    struct error *err = pattern_create_for_frames("--focus", "file:(", &p);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_USAGE);
    assert_non_null(strstr(error_text(err), "--focus wants a regular expression, not 'file:(': "));
    error_destroy(err);
    err = pattern_create_for_frames("--focus", "file:", &p);
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), "it is empty"));
    error_destroy(err);
    OK(pattern_create("--comm", "file:x", &p)); /* of a process no part can be meant */
    assert_int_equal(pattern_part(p), PATTERN_ANY_PART);
    assert_true(pattern_finds(p, "profile:x"));
    pattern_destroy(p);
}

/* Names have parentheses and brackets. */
TEST(patterns_of_names)
{
    static const struct {
        const char *text, *name;
        bool is_found;
    } names[] = {
        {"spawn", "app.py (spawn)", true},
        {"app.py (spawn)", "app.py (spawn)", true},
        {"app.py (spawn)", "app.py (spawn) \"x\"", false},
        {"[celeryd: celer", "[celeryd: celer", true}, /* no expression */
        {"[celeryd: celer", "celeryd", false},
        {"Thread-1 (f)", "Thread-1 (f)", true},
        {"Thread-1 (f)", "Thread-1 f", true},
    };
    struct pattern *p;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        OK(pattern_create_for_names("--comm", names[i].text, &p));
        if (pattern_finds(p, names[i].name) != names[i].is_found)
            fail_msg("%s in %s", names[i].text, names[i].name);
        pattern_destroy(p);
    }
    struct error *err = pattern_create_for_names("--comm", "", &p);
    assert_non_null(err);
    error_destroy(err);
}

TEST(given)
{
    struct given_option options[] = {{"pid", "1,2"}, {"gil", NULL}, {"comm", "a b"}, {"pid", "it's"}, {"task", ""}};
    const struct given given = {options, 5, 5};
    struct buf text = {0};

    given_put(&given, NULL, &text);
    assert_string_equal(buf_cstr(&text), "--pid 1,2 --gil --comm 'a b' --pid 'it'\\''s' --task ''");
    buf_clear(&text);
    given_put(&given, "pid", &text);
    assert_string_equal(buf_cstr(&text), "--pid 1,2 --pid 'it'\\''s'");
    buf_deinit(&text);
}
