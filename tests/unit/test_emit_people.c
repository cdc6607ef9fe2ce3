/* SPDX-License-Identifier: Apache-2.0 */
/* The formats for people that show stacks: thresholds, terminals, and deep stacks in tree, brief and svg. */
#include "formats/emit/stack_tree.h"
#include "formats/emit/xml.h"
#include "tests/unit/emit_fixture.h"

/* main calls parse (60 %) and render (30 %), and a hundredth of the time is in each of ten others. */
static void setup_calls(struct synthetic *s)
{
    setup_one(s);
    uint32_t run = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "run", "/srv/a.py", 2, 0, 1));
    uint32_t main = synthetic_stack(s, run, synthetic_python(s, "main", "/srv/a.py", 9, 0, 5));
    uint32_t parse = synthetic_stack(s, main, synthetic_python(s, "parse", "/srv/b.py", 30, 0, 20));
    uint32_t parse_too = synthetic_stack(s, main, synthetic_python(s, "parse", "/srv/b.py", 31, 0, 20));
    uint32_t copy = synthetic_stack(s, parse, synthetic_native(s, "memcpy", "/usr/lib/libc.so.6", 0x1000, 4));
    uint32_t render = synthetic_stack(s, main, synthetic_python(s, "render", "/srv/b.py", 50, 0, 50));
    uint32_t call = synthetic_stack(s, render, synthetic_kernel(s, "do_syscall_64", "[kernel.kallsyms]", 0xffff, 4));
    uint32_t wait = synthetic_stack(s, call, synthetic_mark(s, "[torn]"));

    for (int i = 0; i < 40; i++)
        sample(s, 0, copy);
    for (int i = 0; i < 20; i++)
        sample(s, 0, parse_too);
    for (int i = 0; i < 29; i++)
        sample(s, 0, render);
    sample(s, 0, wait);
    for (int i = 0; i < 10; i++) {
        static const char *const names[] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"};
        sample(s, 0, synthetic_stack(s, main, synthetic_python(s, names[i], "/srv/c.py", 1, 0, 1)));
    }
}

static const struct emit_options usual = {.name = "test", .exporter = "pysym test", .top_count = 10, .min_share = -1};

/* ---- tree ---- */

/* Without --min calls below half a percent are left out; with 0 none. */
TEST(tree_thresholds)
{
    struct synthetic s = {0};
    struct emit_options options = usual;

    setup_calls(&s);
    assert_true(contains(&s, "tree", usual, "`- f9 (c.py:1)\n"));
    for (int i = 0; i < 900; i++)
        sample(&s, 0, s.samples.data[0].stack);
    assert_true(contains(&s, "tree", usual, "each less than 0.5%]\n"));
    options.min_share = 0;
    assert_true(contains(&s, "tree", options, "`- f9 (c.py:1)\n"));
    assert_true(contains(&s, "tree", options, "  [torn]\n"));
    synthetic_deinit(&s);
}

/* On a terminal lines fit, layers have colours, and what joins calls is drawn. */
TEST(tree_on_a_terminal)
{
    struct synthetic s = {0};
    struct emit_options options = usual;
    char *save = NULL;

    setup_calls(&s);
    options.terminal = (struct emit_terminal){.columns = 60, .blocks = true};
    char *text = emit(&s, "tree", options);
    strtok_r(text, "\n", &save);
    for (int i = 0; i < 2; i++)
        strtok_r(NULL, "\n", &save); /* the head and the titles may wrap */
    for (char *line; (line = strtok_r(NULL, "\n", &save)) && strncmp(line, "Left", 4);) {
        size_t columns = 0;
        for (const char *c = line; *c; c++)
            columns += (*c & 0xc0) != 0x80;
        assert_true(columns <= 60);
    }
    free(text);
    assert_true(contains(&s, "tree", options, "P \xe2\x94\x9c\xe2\x94\x80 parse (b.py:20)\n"));
    options.terminal.colours = true;
    assert_true(contains(&s, "tree", options, "\033[33mmemcpy\033[0m\n"));
    assert_true(contains(&s, "tree", options, "\033[36mP Python\033[0m"));
    synthetic_deinit(&s);
}

/* A stack that branches at each of 900 levels: indentation has an end, and lines say how deep they are. */
TEST(tree_of_deep_stacks)
{
    struct synthetic s = {0};
    struct emit_options options = usual;
    char *save = NULL;
    size_t longest = 0;

    setup_one(&s);
    uint32_t down = synthetic_python(&s, "down", "/srv/a.py", 1, 0, 1), aside = synthetic_python(&s, "aside", "/srv/a.py", 2, 0, 2);
    uint32_t stack = synthetic_stack(&s, EMIT_NO_STACK, down);
    for (int i = 0; i < 900; i++) {
        sample(&s, 0, synthetic_stack(&s, stack, aside));
        stack = synthetic_stack(&s, stack, down);
    }
    sample(&s, 0, stack);
    options.min_share = 0;
    char *text = emit(&s, "tree", options);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        longest = strlen(line) > longest ? strlen(line) : longest;
    assert_in_range(longest, 100, 140);
    free(text);
    assert_true(contains(&s, "tree", options, "P +1 |  |  ") && contains(&s, "tree", options, "P +876 |  |  "));
    synthetic_deinit(&s);
}

/* ---- brief ---- */

static struct error *print_summary(struct emit_summary *summary, bool brief, FILE *out)
{
    (void)summary;
    fprintf(out, "the %s summary\n\n", brief ? "brief" : "whole");
    return NULL;
}

TEST(brief_golden)
{
    struct synthetic s = {0};
    struct emit_options options = usual;
    struct emit_summary summary = {.print = print_summary};

    setup_calls(&s);
    s.samples.data[0].gil = EMIT_GIL_HELD;
    s.samples.data[1].gil = EMIT_GIL_NOT_HELD;
    options.summary = &summary;
    expect(&s, "brief", options,
           "the brief summary\n"
           "\n"
           "100 samples of cpu-clock: 1.0 s of CPU time\n"
           "python3 (pid 100)\n"
           "\n"
           "   self          total         function (17 in all)\n"
           "  40.0% 0.40 s  40.0%  0.40 s  memcpy\n"
           "  29.0% 0.29 s  30.0%  0.30 s  render (/srv/b.py:50)\n"
           "  20.0% 0.20 s  60.0%  0.60 s  parse (/srv/b.py:20)\n"
           "   1.0% 0.01 s   1.0%  0.01 s  [torn]\n"
           "   1.0% 0.01 s   1.0%  0.01 s  f0 (/srv/c.py:1)\n"
           "   1.0% 0.01 s   1.0%  0.01 s  f1 (/srv/c.py:1)\n"
           "   1.0% 0.01 s   1.0%  0.01 s  f2 (/srv/c.py:1)\n"
           "   1.0% 0.01 s   1.0%  0.01 s  f3 (/srv/c.py:1)\n"
           "   1.0% 0.01 s   1.0%  0.01 s  f4 (/srv/c.py:1)\n"
           "   1.0% 0.01 s   1.0%  0.01 s  f5 (/srv/c.py:1)\n"
           "\n"
           "  total         main paths, from the outermost function inwards\n"
           "  40.0% 0.40 s  run > main > parse > memcpy\n"
           "  30.0% 0.30 s  run > main > render\n"
           "\n"
           "   self         line of Python, with the native code and the kernel that it called\n"
           "  40.0% 0.40 s  parse (/srv/b.py:30)\n"
           "  30.0% 0.30 s  render (/srv/b.py:50)\n"
           "  20.0% 0.20 s  parse (/srv/b.py:31)\n"
           "   1.0% 0.01 s  f0 (/srv/c.py:1)\n"
           "   1.0% 0.01 s  f1 (/srv/c.py:1)\n"
           "   1.0% 0.01 s  f2 (/srv/c.py:1)\n"
           "   1.0% 0.01 s  f3 (/srv/c.py:1)\n"
           "   1.0% 0.01 s  f4 (/srv/c.py:1)\n"
           "\n"
           "GIL:     held in 50.0 % of the samples of Python threads that ran (pysym FILE -f gil: by whom, and who waited)\n"
           "Further: pysym FILE -f tree         who calls whom, with shares\n"
           "         pysym annotate FUNCTION FILE --source DIR   its lines, with their source\n"
           "         pysym FILE -f top --top 50 more functions; --focus RE, --pid N, --time FROM,TO choose\n"
           "         pysym FILE -f summary -v   how it was recorded, and all that was lost\n");
    synthetic_deinit(&s);
}

/* However much there is, it is one page. */
TEST(brief_is_a_page)
{
    struct synthetic s = {0};
    struct emit_options options = usual;

    synthetic_demo(&s, 3000);
    for (int i = 0; i < 6; i++)
        synthetic_event(&s, "page-faults", "faults", false);
    for (int i = 0; i < 3000; i++)
        s.samples.data[i].event = (uint32_t)i % 7;
    for (enum emit_merge merge = EMIT_MERGE_DEFAULT; merge <= EMIT_MERGE_THREAD; merge++) {
        options.merge = merge;
        char *text = emit(&s, "brief", options);
        size_t lines = 0;
        for (const char *c = text; *c; c++) {
            lines += *c == '\n';
            assert_true(*c == '\n' || (unsigned char)*c >= ' ');
        }
        assert_in_range(lines, 20, 60);
        assert_non_null(strstr(text, "and 4 other events (--event NAME shows one)\n"));
        free(text);
    }
    synthetic_deinit(&s);
}

/* A path through many functions loses its middle; a loss is told in its own words. */
TEST(brief_paths_and_losses)
{
    static const struct emit_loss losses[] = {{.name = "torn", .meaning = "the stack changed meanwhile", .event = "", .count = 1234}};
    static const struct emit_capture capture = {.name = "test", .hostname = "", .kernel_release = "", .machine = "", .cpu_model = "",
                                                .recorder = "", .losses = losses, .loss_count = 1};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    struct synthetic s = {0};
    uint32_t stack = EMIT_NO_STACK;

    setup_one(&s);
    for (int i = 0; i < 9; i++)
        stack = synthetic_stack(&s, stack, synthetic_python(&s, names[i], "/srv/a.py", 1, 0, 1));
    sample(&s, 0, stack);
    s.model.captures = &capture;
    s.model.capture_count = 1;
    assert_true(contains(&s, "brief", usual, " 100.0% 10.0 ms  a > [3 more] > e > f > g > h > i\n"));
    assert_true(contains(&s, "brief", usual, "Missing: 1,234: the stack changed meanwhile\n"));
    synthetic_deinit(&s);
}

/* ---- svg ---- */

/* The picture ends at a height, and says so. */
TEST(svg_of_deep_stacks)
{
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t down = synthetic_python(&s, "down", "/srv/a.py", 1, 0, 1), stack = EMIT_NO_STACK;
    for (int i = 0; i < 900; i++)
        stack = synthetic_stack(&s, stack, down);
    sample(&s, 0, stack);
    char *svg = emit(&s, "svg", usual);
    assert_non_null(strstr(svg, "width=\"1200\" height=\"2412\""));
    assert_non_null(strstr(svg, "what it calls is left out"));
    free(svg);
    synthetic_deinit(&s);
}

TEST(xml)
{
    static const char hostile[] = "<a b=\"c\">&amp; \x01\x1b[31m \xff \xef\xbf\xbe\xef\xbf\xbf caf\xc3\xa9\n";
    struct buf text = {0};

    xml_put(hostile, sizeof hostile - 1, &text);
    assert_string_equal(buf_cstr(&text), "&lt;a b=&quot;c&quot;&gt;&amp;amp; \xef\xbf\xbd\xef\xbf\xbd[31m \xef\xbf\xbd "
                                         "\xef\xbf\xbd\xef\xbf\xbd caf\xc3\xa9\n");
    buf_deinit(&text);
}

/* ---- the tree of stacks ---- */

TEST(stack_tree_limits)
{
    struct limits limits = {.memory_max = 1 << 20, .work_max = 1 << 20};
    struct synthetic s = {0};
    struct stack_tree tree;
    uint32_t names[2] = {0, 1}, stack = EMIT_NO_STACK;

    setup_one(&s);
    uint32_t frame = synthetic_python(&s, "down", "/srv/a.py", 1, 0, 1);
    for (int i = 0; i < 100000; i++)
        stack = synthetic_stack(&s, stack, frame);
    assert_true(stack_tree_init(&tree, &s.model, &limits, NULL));
    assert_true(stack_tree_add(&tree, STACK_TREE_ROOT, s.stacks.data[0].parent, names, 5));
    assert_true(stack_tree_add(&tree, STACK_TREE_ROOT, 3, names, 7));
    assert_true(stack_tree_sum(&tree, STACK_TREE_ROOT));
    assert_int_equal(tree.nodes.data[STACK_TREE_ROOT].total, 12);
    assert_false(stack_tree_add(&tree, STACK_TREE_ROOT, stack, names, 1));
    assert_true(limits.exceeded);
    stack_tree_deinit(&tree);
    assert_int_equal(limits.memory_used, 0);
    synthetic_deinit(&s);
}
