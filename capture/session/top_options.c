/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `pycap record` are taken from there: they mean the same. */
#include "capture/session/top_options.h"

#include <assert.h>
#include <string.h>

static_assert(offsetof(struct top_options, record) == 0, "a member has one offset in both");

static const char *const taken[] = {"pid",    "no-inherit", "subprocesses", "comm",       "cgroup",  "container", "all", "cpu",
                                    "duration", "rate",     "event",        "count",      "wall",    "max-cpu",   "max-memory",
                                    "nice",   "ring-size",  "native",       "no-native",  "no-kernel", "unwind-memory", "backend",
                                    "no-sandbox", "help",   "version"};

#define OWN(member) .offset = offsetof(struct top_options, member)
static const struct option_row own_rows[] = {
    OPTION_HEADING("what is shown first (keys change it)"),
    {"sort", 0, "BY", "self (the default) or total", option_set_text, OWN(sort)},
    {"by", 0, "WHAT", "function (the default) or line", option_set_text, OWN(by)},
    {"python-only", 0, NULL, "Python frames only", option_set_true, OWN(python_only)},
};

enum { OWN_COUNT = sizeof own_rows / sizeof *own_rows, TAKEN_COUNT = sizeof taken / sizeof *taken };

struct rows {
    struct option_row rows[TAKEN_COUNT + OWN_COUNT + 2];
};

static struct rows rows_of_top(void)
{
    struct rows all = {.rows = {OPTION_HEADING("as pycap record has them")}};
    size_t n = 1;

    for (size_t i = 0; i < TAKEN_COUNT; i++)
        all.rows[n++] = record_option_row(taken[i]);
    for (size_t i = 0; i < OWN_COUNT; i++)
        all.rows[n++] = own_rows[i];
    return all;
}

void top_options_print(FILE *out)
{
    struct rows all = rows_of_top();

    options_print(all.rows, out);
}

static void set_shown(struct top_options *o)
{
    size_t n = 0;

    o->shown[n++] = "-f";
    o->shown[n++] = "live";
    if (o->sort) {
        o->shown[n++] = "--sort";
        o->shown[n++] = o->sort;
    }
    if (o->by) {
        o->shown[n++] = "--by";
        o->shown[n++] = o->by;
    }
    if (o->python_only)
        o->shown[n++] = "--python-only";
    o->shown[n++] = "-";
    o->shown[n] = NULL;
}

static bool is_one_of(const char *word, const char *first, const char *second)
{
    return !word || !strcmp(word, first) || !strcmp(word, second);
}

struct error *top_options_read(struct top_options *o, int argc, char **argv)
{
    struct rows all = rows_of_top();

    *o = (struct top_options){0};
    TRY(record_options_read_rows(&o->record, all.rows, "pycap top", argc, argv));
    if (!is_one_of(o->sort, "self", "total"))
        return error_create(ERROR_USAGE, "--sort wants self or total, not '%s'", o->sort);
    if (!is_one_of(o->by, "function", "line"))
        return error_create(ERROR_USAGE, "--by wants function or line, not '%s'", o->by);
    o->record.session.quiet = true;
    set_shown(o);
    return NULL;
}

void top_options_deinit(struct top_options *o)
{
    record_options_deinit(&o->record);
}
