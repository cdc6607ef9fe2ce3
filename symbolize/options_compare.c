/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `pysym diff` and `pysym baseline`. See options.h. */
#include "symbolize/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/report_choice.h"

/* ---- the options of comparisons ---- */

static bool read_small(const char **at, uint32_t *out)
{
    char *end;
    unsigned long value = **at >= '1' && **at <= '9' ? strtoul(*at, &end, 10) : 0;

    if (!value || value > LOOKS_MOST)
        return false;
    *out = (uint32_t)value;
    *at = end;
    return true;
}

static struct error *set_look(const struct option_row *row, const char *argument, void *target)
{
    struct compare_request *r = &((struct options *)target)->compare;
    const char *at = argument;

    if (!read_small(&at, &r->look) || *at++ != '/' || !read_small(&at, &r->looks) || *at || r->look > r->looks)
        return option_refuse(row, argument);
    return NULL;
}

#define MEMBER(member) .offset = offsetof(struct options, compare.member)

const struct option_row options_compare_rows[] = {
    OPTION_HEADING("what is compared, and judged"),
    {"baseline", 0, "FILE", "old runs that pysym baseline wrote; may be repeated", option_add_text, MEMBER(old_baselines)},
    {"work", 0, "FILE", "how much work runs did: lines of a run's file and a number", option_set_text, MEMBER(work)},
    {"work-note", 0, "KEY", "the key that counts work in what programs wrote into PYCAP_NOTE (default: work)", option_set_text,
     MEMBER(work_note)},
    {"force", 0, NULL, "compare runs that are not alike, too", option_set_true, MEMBER(force)},
    {"fail-on", 0, "RULE", "exit with 4 if RULE is surely broken, like 'total 2%' or 'function app.render:* 5%';\n"
     "may be repeated", option_add_text, MEMBER(rules)},
    {"budget", 0, "FILE", "a file of rules, one on each line", option_set_text, MEMBER(budget)},
    {"look", 0, "K/N", "this is the Kth of N comparisons of more and more runs: all together err as one", set_look,
     .wants = "which look this is of how many, like 2/5, of 1000 at most"},
    {"old-source", 0, "DIR", "where source files of the old runs are: lines are compared where code changed, too",
     option_set_text, MEMBER(old_source), .with = "new-source"},
    {"new-source", 0, "DIR", "and those of the new runs", option_set_text, MEMBER(new_source), .with = "old-source"},
    {NULL},
};

/* ---- reading ---- */

/*
 * Stands for "--" while options are read, which moves words: what is before it are old runs. It is told by its address,
 * and begins with no dash, so that options may stand behind it.
 */
static char divider[] = "\n--";

static struct error *put_divider(char **words, int count)
{
    for (int i = 0, met = 0; i < count; i++) {
        if (strcmp(words[i], "--") != 0)
            continue;
        if (met++)
            return error_create(ERROR_USAGE, "-- stands twice: old runs stand before it, new ones behind it");
        words[i] = divider;
    }
    return NULL;
}

static struct error *take_words(struct options *o, char **words, int count)
{
    bool divided = false;

    for (int i = 0; i < count; i++) {
        if (words[i] == divider) {
            divided = true;
            o->compare.old_count = o->inputs.count;
        } else if (!VEC_PUSH(&o->inputs, words[i])) {
            return error_no_memory();
        }
    }
    o->compare.divided = divided;
    return NULL;
}

struct error *options_compare_read(struct options *o, const struct option_row *own, int argc, char **argv)
{
    struct option_table table;
    int rest;

    options_table_init(&table, own, o->command);
    char **words = calloc((size_t)argc + 1, sizeof *words);
    if (!words)
        return error_no_memory();
    memcpy(words, argv + 1, (size_t)(argc - 1) * sizeof *words); /* the command stands where programs have their names */
    struct error *err = put_divider(words + 1, argc - 2);
    if (!err)
        err = options_read(table.rows, argc - 1, words, false, o, &rest);
    if (!err)
        err = take_words(o, words + rest, argc - 1 - rest);
    free(words);
    return err;
}

static struct error *check_diff(struct options *o)
{
    struct compare_request *r = &o->compare;
    size_t old = r->old_baselines.count + r->old_count, count = o->inputs.count;

    if (!r->divided && r->old_baselines.count)
        old = r->old_baselines.count;
    else if (!r->divided && count == 2)
        return error_create(ERROR_USAGE, "put -- between old and new runs: pysym diff %s -- %s", o->inputs.data[0],
                            o->inputs.data[1]);
    else if (!r->divided)
        return error_create(ERROR_USAGE, "put -- between old and new runs: pysym diff OLD... -- NEW...");
    if (!old)
        return error_create(ERROR_USAGE, "name the old runs before --, or a --baseline");
    if (r->old_count == count)
        return error_create(ERROR_USAGE, "name the new runs%s", r->divided ? " behind --" : ": pysym diff --baseline FILE -- NEW...");
    if (o->filters.events.count > 1)
        return error_create(ERROR_USAGE, "pysym diff compares one event: give --event once");
    return report_choose(o->format, o->output, &o->choice, &r->report);
}

static struct error *check_baseline(struct options *o)
{
    struct compare_request *r = &o->compare;

    if (r->divided)
        return error_create(ERROR_USAGE, "pysym baseline takes old runs alone, without --: pysym baseline OLD... -o main.pyb");
    if (!o->inputs.count)
        return error_create(ERROR_USAGE, "name the runs: pysym baseline OLD... -o main.pyb");
    if (!o->output && isatty(STDOUT_FILENO))
        return error_create(ERROR_USAGE, "a baseline is not written to a terminal: name a file, like -o main.pyb");
    r->old_count = o->inputs.count;
    o->choice = (struct format_choice){.kind = OUTPUT_BASELINE};
    return NULL;
}

/* Native functions are named only for patterns, which may mean them, and for the page, which shows them. */
static bool needs_native(const struct options *o)
{
    size_t patterns = 0;

    for (int i = 0; i < STACK_PATTERN_COUNT; i++)
        patterns += o->stacks.patterns[i].count;
    return patterns || o->choice.emitter;
}

struct error *options_compare_check(struct options *o)
{
    TRY(o->command == COMMAND_DIFF ? check_diff(o) : check_baseline(o));
    o->python_only |= !needs_native(o);
    return NULL;
}

/* ---- --help ---- */

void options_compare_help(const struct option_row *own, enum options_command command, FILE *out)
{
    struct option_table table;

    options_table_init(&table, own, command);
    if (command == COMMAND_BASELINE) {
        fputs("usage: pysym baseline OLD... -o FILE [options]\n"
              "\n"
              "Keeps what pysym diff needs of runs, without their samples: a small file, like main.pyb. Baselines may be\n"
              "among OLD, so that more runs can be added to one.\n",
              out);
    } else {
        fputs("usage: pysym diff OLD... -- NEW... [-f FORMAT] [-o OUT] [options]\n"
              "       pysym diff --baseline FILE -- NEW... [-f FORMAT] [-o OUT] [options]\n"
              "\n"
              "Says which functions surely take more or less time in the new runs than in the old ones. A run is one\n"
              "recording of the same work: three on each side at least, five or ten to see changes of a few percent.\n"
              "\n"
              "formats (default: by the extension of OUT, else text):\n",
              out);
        report_choice_print(out);
    }
    options_print(table.rows, out);
    fputs("\nexit status: 0 good, 1 failed, 2 wrong usage, 3 done but incomplete (with --strict)", out);
    fputs(command == COMMAND_DIFF ? ",\n4 a rule is surely broken, 5 undecided and the rules say `undecided fail`\n" : "\n", out);
}
