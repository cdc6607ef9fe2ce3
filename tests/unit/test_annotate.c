/* SPDX-License-Identifier: Apache-2.0 */
/* Source lines with their time, as text and as JSON. */
#include "formats/emit/source_lines.h"
#include "tests/unit/emit_fixture.h"

/* One source, for every file that ends in its name. */
struct one_source {
    struct emit_sources face;
    const char *end;
    struct emit_source source;
};

static struct error *find_one(struct emit_sources *face, const struct emit_model *model, const char *file, const struct emit_source **found)
{
    struct one_source *one = (struct one_source *)face;
    size_t len = strlen(file), end = strlen(one->end);

    (void)model;
    *found = len >= end && !strcmp(file + len - end, one->end) ? &one->source : NULL;
    return NULL;
}

static struct one_source source_of(const char *end, const char *text, enum emit_source_match match, const char *reason)
{
    return (struct one_source){.face = {find_one}, .end = end,
                               .source = {.path = "/home/x.py", .text = text, .len_bytes = strlen(text), .match = match, .reason = reason}};
}

#define LEGEND \
    "\nself: the line itself; native: C code that it called; kernel: what either had the kernel do; total: with all\n" \
    "that it called\n"

/* ---- what is counted ---- */

/* Native code without the kernel below it; a built-in of the kernel called by Python itself. */
TEST(layers)
{
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t run = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "run", "/srv/x.py", 2, 0, 1));
    uint32_t native = synthetic_native(&s, "work", "/lib/w.so", 0x1000, 0);
    s.frames.data[native].file = "/src/w.c";
    s.frames.data[native].line = 7;
    uint32_t work = synthetic_stack(&s, run, native);
    uint32_t kernel = synthetic_kernel(&s, "ksys_read", "[kernel.kallsyms]", 0xffffffff81000000, 0);
    sample(&s, 0, run);
    sample(&s, 0, work);
    sample(&s, 0, work);
    sample(&s, 0, synthetic_stack(&s, work, kernel));
    sample(&s, 0, synthetic_stack(&s, run, kernel));
    assert_true(contains(&s, "annotate", plain,
                         "    self  native  kernel   total    time  line  function\n"
                         "   20.0%   40.0%   40.0%  100.0% 50.0 ms     2  run\n"));
    struct emit_options o = plain;
    o.annotate = "w.c";
    assert_true(contains(&s, "annotate", o,
                         "/src/w.c: 30.0 ms, 60.0 %, of which 30.0 ms in its own lines\n"));
    /* What the kernel did for Python itself is not the line's of a native file. */
    assert_true(contains(&s, "annotate", o,
                         "    self  kernel   total    time  line  function\n"
                         "   40.0%   20.0%   60.0% 30.0 ms     7  work\n"));
    synthetic_deinit(&s);
}

TEST(recursion_counts_once)
{
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t f = synthetic_python(&s, "f", "/srv/x.py", 2, 0, 1), stack = EMIT_NO_STACK;
    for (int i = 0; i < 900; i++)
        stack = synthetic_stack(&s, stack, f);
    sample(&s, 0, stack);
    sample(&s, 0, synthetic_stack(&s, stack, synthetic_python(&s, "g", "/srv/x.py", 9, 0, 8)));
    assert_true(contains(&s, "annotate", plain,
                         "   50.0%  100.0% 20.0 ms     2  f\n"
                         "   50.0%   50.0% 10.0 ms     9  g\n"));
    synthetic_deinit(&s);
}

/* A wait is the time of the line that waits, whatever it called to do so. */
TEST(wait)
{
    struct synthetic s = {0};

    setup_one(&s);
    s.events.data[0] = (struct emit_event){.name = "off-cpu", .unit = "ns", .kind = EVENT_OFF_CPU};
    uint32_t run = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "run", "/srv/x.py", 2, 0, 1));
    uint32_t lock = synthetic_stack(&s, run, synthetic_native(&s, "sem_wait", "/lib/libc.so.6", 0x1000, 0));
    uint32_t wait = synthetic_mark(&s, "[wait: lock]");
    s.frames.data[wait].wait = "lock";
    sample(&s, 0, synthetic_stack(&s, lock, wait));
    assert_true(contains(&s, "annotate", plain, "  100.0%  100.0% 10.0 ms     2  run\n"));
    synthetic_deinit(&s);
}

/* ---- what is named ---- */

static void setup_names(struct synthetic *s)
{
    setup_one(s);
    sample(s, 0, synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "Cart.add", "/srv/shop/cart.py", 12, 0, 10)));
    sample(s, 0, synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "Cart.add.<locals>.<lambda>", "/srv/shop/cart.py", 14, 0, 14)));
    sample(s, 0, synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "Cart.sum", "/srv/shop/cart.py", 20, 0, 19)));
    sample(s, 0, synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "add", "/srv/old/cart.py", 3, 0, 2)));
}

TEST(names)
{
    static const struct {
        const char *name, *has, *has_not;
    } cases[] = {
        {"cart.py", "/srv/old/cart.py: 10.0 ms", NULL},
        {"shop/cart.py", "/srv/shop/cart.py: 30.0 ms", "/srv/old"},
        {"/srv/old/cart.py", "/srv/old/cart.py: 10.0 ms", "/srv/shop"},
        {"Cart.add", "Cart.add in /srv/shop/cart.py, from line 10: 20.0 ms, 50.0 %, of which 20.0 ms", "    20  "},
        {"add", "add in /srv/old/cart.py, from line 2: 10.0 ms", "Cart.sum"},
        {"old/cart.py:add", "add in /srv/old/cart.py, from line 2: 10.0 ms", "/srv/shop"},
        {"Cart", "Cart in /srv/shop/cart.py, from line 10: 30.0 ms", "/srv/old"},
    };
    struct synthetic s = {0};

    setup_names(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct emit_options o = plain;
        o.annotate = cases[i].name;
        char *text = emit(&s, "annotate", o);
        if (!strstr(text, cases[i].has) || (cases[i].has_not && strstr(text, cases[i].has_not)))
            fail_msg("%s:\n%s", cases[i].name, text);
        free(text);
    }
    synthetic_deinit(&s);
}

TEST(unknown_name)
{
    static const char *const cases[][2] = {{"crat.py", "did you mean cart.py?"}, {"Cart.ad", "did you mean Cart.add?"},
                                           {"Cart.summ", "did you mean Cart.sum?"}, {"xyzzy", "without a name annotate shows the hottest files"},
                                           {"art.py", "did you mean cart.py?"}, {"shop/cart.py:12", "did you mean cart.py?"},
                                           {"sem_wait", "'sem_wait' ran, but its lines are not known"},
                                           {"12:x", "ran in the samples (pysym annotate [FILE|FUNCTION] TRACE...)"}};
    struct synthetic s = {0};

    setup_names(&s);
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_native(&s, "sem_wait", "/lib/libc.so.6", 0x1000, 0)));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct emit_options o = plain;
        FILE *out = fopen("/dev/null", "w");
        o.annotate = cases[i][0];
        struct error *err = synthetic_emit(&s, emitter_find("annotate"), &o, out);
        assert_non_null(err);
        if (!strstr(error_text(err), cases[i][1]))
            fail_msg("%s", error_text(err));
        error_destroy(err);
        fclose(out);
    }
    synthetic_deinit(&s);
}

/* ---- with a text ---- */

static const char text_of_15[] = "import os\n\nL3\nL4\nL5\nL6\n# seven\n\n@cached\ndef f():\n    a = 1\n\tb()\n    return a\nL14\nL15";

static void setup_f(struct synthetic *s)
{
    setup_one(s);
    for (int i = 0; i < 3; i++)
        sample(s, 0, synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "f", "/srv/x.py", 12, 0, 9)));
}

TEST(hot_parts)
{
    struct one_source one = source_of("x.py", text_of_15, EMIT_SOURCE_SAME, "");
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_f(&s);
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "<module>", "/srv/x.py", 1, 0, 1)));
    o.sources = &one.face;
    o.context_lines = 1;
    expect(&s, "annotate", o,
           "4 samples of cpu-clock: 40.0 ms of CPU time\n"
           "\n"
           "/srv/x.py: 40.0 ms, 100 %, of which 40.0 ms in its own lines\n"
           "source: /home/x.py (the file that ran, by size and date)\n"
           "\n"
           "    self   total    time  line  source\n"
           "   25.0%   25.0% 10.0 ms     1  import os\n"
           "                             2\n"
           "                           ...\n"
           "                             9  @cached\n"
           "                            10  def f():\n"
           "                            11      a = 1\n"
           "   75.0%   75.0% 30.0 ms    12          b()\n"
           "                            13      return a\n"
           LEGEND);
    /* A function alone: nothing of the text before it. */
    o.annotate = "f";
    o.context_lines = 9;
    s.frames.data[0].function_end = 13;
    assert_true(contains(&s, "annotate", o,
                         "line  source\n"
                         "                             9  @cached\n"));
    assert_false(strstr(text_of_15, "L16"));
    o.annotate = NULL;
    o.all_lines = true;
    assert_true(contains(&s, "annotate", o, "                            14  L14\n                            15  L15\n\nself:"));
    /* Where only much is asked for. */
    o.all_lines = false;
    o.context_lines = 0;
    o.min_share = 0.5;
    assert_true(contains(&s, "annotate", o,
                         "   75.0%   75.0% 30.0 ms    12          b()\n"
                         "and 1 more line, with 25.0 % of the time (--all-lines shows all)\n"));
    synthetic_deinit(&s);
}

static void sample_line(struct synthetic *s, uint32_t line, int count)
{
    uint32_t stack = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "<module>", "/srv/x.py", line, 0, 1));

    for (int i = 0; i < count; i++)
        sample(s, 0, stack);
}

/* What takes less than a hundredth is left out, unless it stands between two that do not, or 0 is asked for. */
TEST(what_is_left_out)
{
    struct one_source one = source_of("x.py", text_of_15, EMIT_SOURCE_SAME, "");
    struct synthetic s = {0};
    struct limits limits = {.memory_max = 1 << 20, .work_max = 1 << 20};
    struct emit_options o = plain;

    setup_one(&s);
    sample_line(&s, 3, 100);
    sample_line(&s, 4, 1);
    sample_line(&s, 5, 98);
    sample_line(&s, 14, 1);
    o.sources = &one.face;
    o.limits = &limits;
    o.min_share = -1;
    assert_true(contains(&s, "annotate", o,
                         "   50.0%   50.0% 1.00 s     3  L3\n"
                         "    0.5%    0.5% 0.01 s     4  L4\n"
                         "   49.0%   49.0% 0.98 s     5  L5\n"
                         "and 1 more line, with 0.5 % of the time (--all-lines shows all)\n"));
    assert_int_equal(limits.memory_used, 0);
    o.min_share = 0;
    assert_true(contains(&s, "annotate", o,
                         "                          ...\n"
                         "    0.5%    0.5% 0.01 s    14  L14\n"
                         "\nself:"));
    synthetic_deinit(&s);
}

TEST(changed)
{
    struct one_source one = source_of("x.py", "one\ntwo\n", EMIT_SOURCE_CHANGED, "line 12 ran, and it has 2 lines");
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_f(&s);
    o.sources = &one.face;
    assert_true(contains(&s, "annotate", o,
                         "source: /home/x.py\n"
                         "This is not what ran: line 12 ran, and it has 2 lines. Its lines may be others.\n"));
    assert_true(contains(&s, "annotate", o, "  100.0%  100.0% 30.0 ms    12  (not in this text) f\n"));
    one.source.match = EMIT_SOURCE_UNKNOWN;
    one.source.reason = "the trace does not say";
    assert_true(contains(&s, "annotate", o, "source: /home/x.py (perhaps not what ran: the trace does not say)\n"));
    one.end = "other.py";
    assert_true(contains(&s, "annotate", o, "source: not found where --source says"));
    synthetic_deinit(&s);
}

/* Nothing of a text or a name is obeyed by a terminal. */
TEST(hostile_text)
{
    struct one_source one = source_of("x.py", "\x1b[2Jred\n\xe2\x80\xaeturned\n\xff\n", EMIT_SOURCE_CHANGED, "");
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_one(&s);
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "\x1b]0;f\a", "/srv/\x1b[1mx.py", 2, 0, 1)));
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "/srv/\x1b[1mx.py", 4000000000u, 0, 1)));
    for (int with_text = 0; with_text < 4; with_text++) {
        o.sources = with_text & 1 ? &one.face : NULL;
        o.json = with_text & 2;
        char *text = emit(&s, "annotate", o);
        assert_null(strchr(text, '\x1b'));
        assert_null(strchr(text, '\a'));
        assert_null(strstr(text, "\xe2\x80\xae"));
        assert_null(strchr(text, '\xff'));
        free(text);
    }
    synthetic_deinit(&s);
}

TEST(terminal)
{
    struct one_source one = source_of("x.py", text_of_15, EMIT_SOURCE_SAME, "");
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_f(&s);
    o.sources = &one.face;
    o.context_lines = 1;
    o.terminal = (struct emit_terminal){.columns = 40, .colours = true};
    assert_true(contains(&s, "annotate", o, "\x1b[36m  100.0%\x1b[0m  100.0% 30.0 ms    12          b()\n"));
    assert_true(contains(&s, "annotate", o, "    10  \x1b[2mdef f():\x1b[0m\n"));
    /* What does not fit is cut off: 16 columns are the least that a line has. */
    one = source_of("x.py", "0123456789abcdef\n0123456789abcdefg\n\t9abcdef\n\t9abcdefgh\n\t\ta\n1\n2\n3\nd\n@c\n1\nf\n",
                    EMIT_SOURCE_SAME, "");
    o.all_lines = true;
    o.terminal.colours = false;
    assert_true(contains(&s, "annotate", o,
                         "     1  0123456789abcdef\n"
                         "                             2  0123456789abcde\xe2\x80\xa6\n"
                         "                             3          9abcdef\n"
                         "                             4          9abcdef\xe2\x80\xa6\n"
                         "                             5          \xe2\x80\xa6\n"));
    synthetic_deinit(&s);
}

TEST(json)
{
    struct one_source one = source_of("x.py", text_of_15, EMIT_SOURCE_UNKNOWN, "the trace does not say");
    struct synthetic s = {0};
    struct emit_options o = plain;
    json_error_t error;
    const char *function, *text, *match, *file;
    json_int_t line, self, total, all;

    setup_f(&s);
    o.sources = &one.face;
    o.json = true;
    o.annotate = "f";
    char *bytes = emit(&s, "annotate", o);
    json_t *json = json_loads(bytes, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(json);
    json_t *event = json_array_get(json_object_get(json, "events"), 0);
    json_t *section = json_array_get(json_object_get(event, "sections"), 0);
    json_t *first = json_array_get(json_object_get(section, "lines"), 0);
    assert_int_equal(json_unpack(event, "{s:I}", "weight_ns", &all), 0);
    assert_int_equal(all, 30000000);
    assert_int_equal(json_unpack(section, "{s:s,s:s,s:{s:s}}", "file", &file, "function", &function, "source", "match", &match), 0);
    assert_string_equal(file, "/srv/x.py");
    assert_string_equal(function, "f");
    assert_string_equal(match, "unknown");
    assert_int_equal(json_unpack(first, "{s:I,s:s,s:s,s:I,s:I}", "line", &line, "function", &function, "text", &text,
                                 "self_weight_ns", &self, "total_weight_ns", &total), 0);
    assert_int_equal(line, 12);
    assert_string_equal(text, "\tb()");
    assert_int_equal(self, 30000000);
    assert_int_equal(total, 30000000);
    json_decref(json);
    free(bytes);
    synthetic_deinit(&s);
}

TEST(no_samples)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_one(&s);
    o.annotate = "x.py";
    expect(&s, "annotate", o, "0 samples\n");
    synthetic_deinit(&s);
}

/* ---- lines of a text ---- */

TEST(source_lines)
{
    static const struct {
        const char *text, *last;
        uint32_t count;
    } cases[] = {{"", NULL, 0}, {"a", "a", 1}, {"a\n", "a", 1}, {"\n", "", 1}, {"a\n\nb", "b", 3}, {"a\nb\n\n", "", 3}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct source_lines lines;
        size_t len = 99;
        assert_true(source_lines_init(&lines, cases[i].text, strlen(cases[i].text)));
        assert_int_equal(source_lines_count(&lines), cases[i].count);
        assert_null(source_lines_get(&lines, 0, &len));
        assert_null(source_lines_get(&lines, cases[i].count + 1, &len));
        const char *last = source_lines_get(&lines, cases[i].count, &len);
        if (cases[i].last) {
            assert_int_equal(len, strlen(cases[i].last));
            assert_memory_equal(last, cases[i].last, len);
        }
        source_lines_deinit(&lines);
    }
}
