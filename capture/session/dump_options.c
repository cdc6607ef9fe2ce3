/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `pycap record` whose options mean the same here are taken from there. */
#include "capture/session/dump_options.h"

#include <assert.h>
#include <string.h>

static_assert(offsetof(struct dump_options, record) == 0, "a member has one offset in both");

/* How long stacks are waited for, and how often threads that run are sampled meanwhile. */
#define TIMEOUT_NS NS_PER_S
#define RATE_HZ 997

#define OWN(member) .offset = offsetof(struct dump_options, member)
static const struct option_row own_rows[] = {
    {"timeout", 't', "TIME", "wait at most so long for the stacks of all threads (1)", option_set_duration,
     OWN(record.session.duration_ns), .wants = "a duration: seconds, or 200ms"},
    {"output", 'o', "FILE", "write a trace to FILE and show nothing; pysym -f threads FILE shows it; - for standard output",
     option_set_text, OWN(record.session.output)},
    {"json", 0, NULL, "JSON instead of text", option_set_true, OWN(json), .without = "output"},
    {"python-only", 0, NULL, "show Python frames only", option_set_true, OWN(python_only), .without = "output"},
    {"merge", 0, "WHAT", "thread: each thread by itself, also where several have the same stack", option_set_text, OWN(merge),
     .without = "output"},
    {NULL},
};

static const char *const taken[] = {"pid", "no-inherit", "subprocesses", "all", "native", "no-native", "no-kernel", "backend",
                                    "cmdline", "no-sandbox", "help", "version"};

enum { OWN_COUNT = sizeof own_rows / sizeof *own_rows - 1, TAKEN_COUNT = sizeof taken / sizeof *taken };

struct rows {
    struct option_row rows[OWN_COUNT + TAKEN_COUNT + 1];
};

/* Which processes first, then what is this command's own. */
static struct rows rows_of_dump(void)
{
    struct rows all = {0};
    size_t n = 0;

    all.rows[n++] = record_option_row(taken[0]);
    for (size_t i = 0; i < OWN_COUNT; i++)
        all.rows[n++] = own_rows[i];
    for (size_t i = 1; i < TAKEN_COUNT; i++)
        all.rows[n++] = record_option_row(taken[i]);
    return all;
}

void dump_options_print(FILE *out)
{
    struct rows all = rows_of_dump();

    options_print(all.rows, out);
}

/* What is recorded: threads that run by a clock, those that wait, and tasks of asyncio. */
static struct error *set_events(struct record_options *o)
{
    struct session_options *s = &o->session;

    s->frequency_hz = RATE_HZ;
    TRY(event_list_add(&s->events, "cpu-clock,off-cpu,task-wait"));
    TRY(event_list_complete(&s->events, s->frequency_hz, 0));
    TRY(event_list_resolve(&s->events, NULL));
    s->frequency_hz = event_list_frequency(&s->events);
    return NULL;
}

static void set_shown(struct dump_options *o)
{
    size_t n = 0;

    o->shown[n++] = "-f";
    o->shown[n++] = "threads";
    if (o->json)
        o->shown[n++] = "--json";
    if (o->python_only)
        o->shown[n++] = "--python-only";
    if (o->merge) {
        o->shown[n++] = "--merge";
        o->shown[n++] = o->merge;
    }
    o->shown[n++] = "-";
    o->shown[n] = NULL;
}

struct error *dump_options_read(struct dump_options *o, int argc, char **argv)
{
    struct session_options *s = &o->record.session;
    struct rows all = rows_of_dump();
    int rest;

    *o = (struct dump_options){0};
    record_options_default(&o->record);
    s->output = NULL;
    s->duration_ns = TIMEOUT_NS;
    s->quiet = true;
    s->at_once = true;
    TRY(options_read(all.rows, argc, argv, false, o, &rest));
    if (o->record.help || o->record.version)
        return NULL;
    if (rest < argc && !argv[rest][strspn(argv[rest], "0123456789")])
        return error_create(ERROR_USAGE, "name the process with -p: pycap dump -p %s", argv[rest]);
    if (rest < argc)
        return error_create(ERROR_USAGE, "dump takes processes that run, by -p PID, and no command such as '%s'", argv[rest]);
    if (!o->record.pids.count)
        return error_create(ERROR_USAGE, "name the process with -p PID; pycap info lists those that run Python");
    s->pids = o->record.pids.data;
    s->pid_count = (uint32_t)o->record.pids.count;
    set_shown(o);
    return set_events(&o->record);
}

void dump_options_deinit(struct dump_options *o)
{
    record_options_deinit(&o->record);
}
