/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of pysym: their names, and which options each takes. See options.h. */
#include "symbolize/options.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/nearest.h"

/* What to do instead of giving options that a command does not take. */
struct answer {
    const char *names, *text;
};

/* The options that diff and baseline take of pysym's own. */
#define TAKEN_BY_COMPARISONS                                                                                                  \
    "output pid tid comm exe cgroup container thread cpu task subinterpreter event gil time around focus ignore root-at "     \
    "callers-of hide show collapse-recursion archive symfs sysroot no-host debuginfod max-memory max-output strict quiet help "   \
    "version"

static const struct answer instead_of_comparisons[] = {
    {"json", "say -f json"},
    {"split window", "it writes one report; --pid, --thread or --time choose samples"},
    {"merge threads labels", "it adds up what a run did; --pid, --thread or --task choose samples"},
    {"wall", "it compares one event: --event off-cpu has the waits"},
    {"sort by min", "its rows are those that changed, the surest first; --top says how many"},
    {"group layer", "it compares functions of Python, and their modules"},
    {"function nolineno columns", "it compares functions, and their lines where these can be told"},
    {"interpreter show-interpreter", "the interpreter's time counts for the function that it ran"},
    {"source embed-source", "say --old-source and --new-source"},
    {"verbose", "pysym FILE -f summary -v shows one recording"},
    {"format top full-filenames python-only", "it writes the file that pysym diff --baseline reads"},
    {"baseline force fail-on budget look old-source new-source", "it is for pysym diff --baseline FILE -- NEW..."},
    {NULL, NULL},
};

/* What a store can be asked for does not depend on one reader's view, and traces are read without a network. */
#define TAKEN_BY_PUSH                                                                                                         \
    "pid tid comm exe cgroup container thread cpu task subinterpreter event gil time focus ignore root-at callers-of hide "   \
    "show layer group collapse-recursion function nolineno qualify interpreter show-interpreter python-only archive symfs "   \
    "sysroot no-host max-memory help version"

static const struct answer instead_of_push[] = {
    {"format output max-output", "it sends pprof; pysym FILE -o profile.pb.gz writes it"},
    {"split merge threads", "--label pid={pid} or --label thread={thread} keeps processes or threads apart"},
    {"labels label-cpu", "stores would make a series of each value; --label NAME=RULE chooses what makes one"},
    {"wall", "stores add up one event at a time: cpu-clock and off-cpu are types of profiles there"},
    {"around", "it is for looking at one recording; --time chooses samples"},
    {"top sort by min json columns full-filenames", "what is shown is chosen where the store is asked"},
    {"source embed-source all-lines context", "stores keep no source text; pysym annotate shows it"},
    {"quiet", "it says nothing but what failed; --verbose says more"},
    {"debuginfod", "traces are read in a process without a network; name binaries with --archive, --symfs or --sysroot"},
    {"strict", "it exits with 3 when something was not sent; what recordings lost is the series pycap_lost"},
    {NULL, NULL},
};

static const struct pysym_command {
    const char *name, *title;
    const char *usage;             /* in short */
    const struct option_row *rows; /* options of its own */
    const char *takes;             /* those that it takes of pysym's own and of other commands; NULL: all of pysym's own */
    const struct answer *instead;  /* for some of the others */
} commands[] = {
    [COMMAND_CONVERT] = {"", "pysym"},
    [COMMAND_DIFF] = {"diff", "pysym diff", "diff OLD... -- NEW...", options_compare_rows,
                      TAKEN_BY_COMPARISONS " format top full-filenames python-only", instead_of_comparisons},
    [COMMAND_BASELINE] = {"baseline", "pysym baseline", "baseline OLD... -o main.pyb", NULL,
                          TAKEN_BY_COMPARISONS " work work-note", instead_of_comparisons},
    [COMMAND_PUSH] = {"push", "pysym push", "push --pyroscope URL|--parca URL FILE|DIR...", options_push_rows, TAKEN_BY_PUSH,
                      instead_of_push},
};
#define COMMANDS (sizeof commands / sizeof *commands)

enum options_command options_command_of(int argc, char **argv)
{
    for (size_t c = COMMAND_CONVERT + 1; argc > 1 && c < COMMANDS; c++) {
        if (!strcmp(argv[1], commands[c].name))
            return (enum options_command)c;
    }
    return COMMAND_CONVERT;
}

const char *options_command_name(const struct options *o)
{
    return commands[o->command].title;
}

/* ---- options that a command does not take ---- */

static bool has_row(const struct option_row *rows, const char *name)
{
    for (; rows && !options_at_end(rows); rows++) {
        if (rows->name && !strcmp(rows->name, name))
            return true;
    }
    return false;
}

static struct error *refuse(const struct option_row *row, const char *argument, void *target)
{
    const struct pysym_command *command = &commands[((const struct options *)target)->command];

    (void)argument;
    for (const struct answer *a = command->instead; a && a->names; a++) {
        if (options_list_has(a->names, row->name))
            return error_create(ERROR_USAGE, "%s takes no --%s: %s", command->title, row->name, a->text);
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (has_row(commands[i].rows, row->name))
            return error_create(ERROR_USAGE, "--%s is for pysym %s", row->name, commands[i].usage);
    }
    return error_create(ERROR_USAGE, "%s takes no --%s: it is for other outputs", command->title, row->name);
}

/* ---- the table ---- */

/* Does the command take an option of `owner`, which is COMMAND_CONVERT for pysym's own? */
static bool takes(enum options_command command, enum options_command owner, const char *name)
{
    return command == owner || (commands[command].takes && options_list_has(commands[command].takes, name));
}

/* Adds the owner's rows, those that are shown with the headings above them, or those that are refused. The first of a name counts. */
static void put_rows(struct option_table *table, const struct option_row *rows, enum options_command owner,
                     enum options_command command, bool shown)
{
    const struct option_row *heading = NULL;

    for (; rows && !options_at_end(rows); rows++) {
        bool is_option = rows->name || rows->letter;
        if (!is_option)
            heading = rows;
        if (!is_option || takes(command, owner, rows->name) != shown || has_row(table->rows, rows->name))
            continue;
        if (shown && heading)
            table->rows[table->count++] = *heading;
        heading = NULL;
        struct option_row *row = &table->rows[table->count++];
        *row = *rows;
        if (!shown) {
            row->set = refuse;
            row->help = NULL;
        }
        assert(table->count <= OPTIONS_MAX);
    }
}

void options_table_init(struct option_table *table, const struct option_row *own, enum options_command command)
{
    *table = (struct option_table){0};
    for (int shown = 1; shown >= 0; shown--) {
        put_rows(table, commands[command].rows, command, command, shown);
        for (size_t c = 0; c < COMMANDS; c++) {
            if (c != command)
                put_rows(table, commands[c].rows, (enum options_command)c, command, shown);
        }
        put_rows(table, own, COMMAND_CONVERT, command, shown);
    }
}

/* ---- words that were meant as commands ---- */

struct error *options_check_word(const char *word)
{
    struct nearest nearest = nearest_to(word, strlen(word));

    for (size_t c = COMMAND_CONVERT + 1; c < COMMANDS; c++) {
        if (!strcmp(word, commands[c].name))
            return error_create(ERROR_USAGE, "write %s first, before options: pysym %s (a trace called %s is ./%s)", word, word, word, word);
    }
    if (strlen(word) < 3 || strpbrk(word, "./") || !access(word, F_OK))
        return NULL;
    for (size_t c = COMMAND_CONVERT + 1; c < COMMANDS; c++)
        nearest_consider(&nearest, commands[c].name);
    if (!strcmp(word, "compare") || !strcmp(word, "cmp"))
        nearest.name = "diff";
    for (size_t c = COMMAND_CONVERT + 1; nearest.name && c < COMMANDS; c++) {
        if (!strcmp(nearest.name, commands[c].name))
            return error_create(ERROR_USAGE, "there is no file %s: did you mean pysym %s?", word, commands[c].usage);
    }
    return NULL;
}
