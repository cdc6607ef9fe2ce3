/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as a table: what is read, what is refused in which words, and how --help looks. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/options.h"

struct target {
    const char *text;
    uint32_t number;
    uint64_t size, duration_ns;
    bool on, off;
    enum { RED, GREEN } colour;
    struct option_texts texts;
    struct option_numbers numbers;
    uint32_t counted;
    const char *level;
};

static const char *const colours[] = {"red", "green", NULL};

static struct error *count(const struct option_row *row, const char *argument, void *target)
{
    (void)row, (void)argument;
    ((struct target *)target)->counted++;
    return NULL;
}

static struct error *note_level(const struct option_row *row, const char *argument, void *target)
{
    (void)row;
    ((struct target *)target)->level = argument ? argument : "bare";
    return NULL;
}

#define MEMBER(member) .offset = offsetof(struct target, member)
static const struct option_row rows[] = {
    {"text", 't', "TEXT", "any text", option_set_text, MEMBER(text)},
    {"number", 'n', "N", "a number\nin two lines", option_set_u32, MEMBER(number), 1, 100, "a number, 1 to 100"},
    OPTION_HEADING("more"),
    {"size", 0, "N", "a size", option_set_size, MEMBER(size), 16, UINT64_C(1) << 40, "a size, 16 to 1024G"},
    {"duration-of-a-long-name", 0, "TIME", "a time", option_set_duration, MEMBER(duration_ns), .wants = "a duration"},
    {"on", 0, NULL, "on", option_set_true, MEMBER(on), .with = "text number"},
    {"off", 'x', NULL, "off", option_set_false, MEMBER(off), .without = "on tex"},
    {"colour", 'c', "NAME", "red or green", option_set_choice, MEMBER(colour), .wants = "red or green", .names = colours},
    {"add", 0, "TEXT", NULL, option_add_text, MEMBER(texts)},
    {"ids", 0, "N,...", NULL, option_add_numbers, MEMBER(numbers), 1, 1000, "numbers"},
    {NULL, 'g', NULL, "a letter only", count},
    {"level", 'l', "N", "how much", note_level, .may_be_bare = true},
    {NULL},
};

/* Reads a command line, words apart by spaces; the error's text, or "" for none. */
static const char *read_line(struct target *target, int *rest, const char *line)
{
    static char text[512], copy[512];
    char *argv[32] = {"program"};
    int argc = 1;

    *target = (struct target){.off = true};
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    struct error *err = options_read(rows, argc, argv, true, target, rest);
    snprintf(text, sizeof text, "%s", err ? error_text(err) : "");
    error_destroy(err);
    VEC_DEINIT(&target->texts);
    VEC_DEINIT(&target->numbers);
    return text;
}

TEST(values)
{
    struct target t;
    int rest;

    assert_string_equal(read_line(&t, &rest, "-t word --number=7 --size 2k --on -x --colour green -gg -- rest"),
                        "--off and --on exclude each other");
    assert_string_equal(read_line(&t, &rest, "-t x --number=7 --size 2K --on -c green -gg word --text no"), "");
    assert_int_equal(t.number, 7);
    assert_int_equal(t.size, 2048);
    assert_true(t.on && t.off && t.colour == GREEN && t.counted == 2);
    assert_int_equal(rest, 10); /* the first word that is no option ends them */
    assert_string_equal(read_line(&t, &rest, "--duration-of-a-long-name 1.5m"), "");
    assert_int_equal(t.duration_ns, UINT64_C(90000000000));
    assert_string_equal(read_line(&t, &rest, "--size 1024G"), "");
    assert_true(t.size == UINT64_C(1) << 40);
}

/* An argument that may be left out belongs to its option only behind "=" or right behind the letter. */
TEST(bare)
{
    struct target t;
    int rest;

    assert_string_equal(read_line(&t, &rest, "--level word"), "");
    assert_string_equal(t.level, "bare");
    assert_int_equal(rest, 2);
    assert_string_equal(read_line(&t, &rest, "-l word"), "");
    assert_string_equal(t.level, "bare");
    assert_string_equal(read_line(&t, &rest, "--level=3 word"), "");
    assert_string_equal(t.level, "3");
    assert_string_equal(read_line(&t, &rest, "-gl4"), "");
    assert_string_equal(t.level, "4");
}

TEST(lists)
{
    struct target t = {0};
    char *argv[] = {"program", "--ids", "1,2", "--add", "a", "--ids", "2,3", "--add", "b", NULL};
    int rest;

    assert_null(options_read(rows, 9, argv, false, &t, &rest));
    assert_int_equal(t.numbers.count, 3);
    assert_int_equal(t.numbers.data[2], 3);
    assert_int_equal(t.texts.count, 2);
    assert_string_equal(t.texts.data[1], "b");
    VEC_DEINIT(&t.texts);
    VEC_DEINIT(&t.numbers);
}

TEST(refused)
{
    static const char *const cases[][2] = {
        {"--nope", "unknown option --nope"},
        {"--nope=3", "unknown option --nope"},
        {"--nmber=3", "unknown option --nmber: did you mean --number?"},
        {"--sizes 3", "unknown option --sizes: did you mean --size?"},
        {"-z", "unknown option -z"},
        {"-gz", "unknown option -z"},
        {"-gzg", "unknown option -z"},
        {"--off -zg", "unknown option -z"},
        {"-gt", "-t wants an argument"},
        {"--on=3", "--on takes no argument"},
        {"-t", "-t wants an argument"},
        {"--text", "--text wants an argument"},
        {"--number 0", "--number wants a number, 1 to 100, not '0'"},
        {"--number 101", "--number wants a number, 1 to 100, not '101'"},
        {"--number -1", "--number wants a number, 1 to 100, not '-1'"},
        {"--number 1x", "--number wants a number, 1 to 100, not '1x'"},
        {"--number 99999999999999999999", "--number wants a number, 1 to 100, not '99999999999999999999'"},
        {"--size 15", "--size wants a size, 16 to 1024G, not '15'"},
        {"--size 1025G", "--size wants a size, 16 to 1024G, not '1025G'"},
        {"--size 16777216T", "--size wants a size, 16 to 1024G, not '16777216T'"},
        {"--size 18446744073709551615k", "--size wants a size, 16 to 1024G, not '18446744073709551615k'"},
        {"--duration-of-a-long-name nan", "--duration-of-a-long-name wants a duration, not 'nan'"},
        {"--duration-of-a-long-name 1e9d", "--duration-of-a-long-name wants a duration, not '1e9d'"},
        {"--duration-of-a-long-name s", "--duration-of-a-long-name wants a duration, not 's'"},
        {"--duration-of-a-long-name 1dd", "--duration-of-a-long-name wants a duration, not '1dd'"},
        {"--colour blue", "--colour wants red or green, not 'blue'"},
        {"--ids 1,,2", "--ids wants numbers, not '1,,2'"},
        {"--ids 1,", "--ids wants numbers, not '1,'"},
        {"--on", "--on needs --text or --number"},
    };
    struct target t;
    int rest;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(read_line(&t, &rest, cases[i][0]), cases[i][1]);
}

TEST(help)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    options_print(rows, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "  -t, --text TEXT       any text\n"
                              "  -n, --number N        a number\n"
                              "                        in two lines\n"
                              "\n"
                              "more:\n"
                              "      --size N          a size\n"
                              "      --duration-of-a-long-name TIME  a time\n"
                              "      --on              on\n"
                              "  -x, --off             off\n"
                              "  -c, --colour NAME     red or green\n"
                              "  -g                    a letter only\n"
                              "  -l, --level[=N]       how much\n");
    free(text);
}
