/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the status line and the summary of `pycap record`. */
#include "capture/session/report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/host/errand.h"
#include "capture/host/messages.h"
#include "capture/session/advice.h"
#include "capture/session/flight.h"
#include "capture/session/report_details.h"
#include "capture/session/session_accounts.h"
#include "capture/session/session_budget.h"
#include "capture/session/session_files.h"
#include "capture/trace/trace_losses.h"
#include "capture/trace/trace_accounts.h"
#include "formats/base/numbers.h"
#include "formats/base/size_text.h"

#define REFUSALS_SHOWN 8
/* A recording that begins later than this says so. */
#define LATE_NS NS_PER_S
/* --unwind-memory is proposed in such steps, and is at most so much. */
#define TABLES_STEP_MIB 16
#define TABLES_MOST_MIB 1024
/* Processes that use less than this share of a CPU mostly wait. */
#define BUSY_SHARE 0.5

void report_status(struct session *s, uint64_t time_ns)
{
    struct size_text size;

    s->status_ns = time_ns;
    session_sum_losses(s);
    messages_clear_line(s->o->messages);
    messages_write(s->o->messages, "%.0f s  %s  %s  %" PRIu64 " lost  %s", (double)(time_ns - s->start_ns) / 1e9,
                   messages_count(processes_counts(s->processes).python, "Python process").text,
                   messages_count(trace_builder_counts(s->builder).samples, "sample").text, session_lost_samples(s),
                   size_text(session_bytes(s), &size));
    if (s->flight)
        messages_write(s->o->messages, "  %s", flight_writes(s) ? "writing an event" : "standing by");
    if (s->budget.rate < s->budget.options.rate) {
        messages_write(s->o->messages, "  at ");
        session_print_rates(s, s->o->messages);
    }
    fflush(s->o->messages);
}

/* The samples that are in the files. */
static uint64_t report_samples(const struct session *s)
{
    if (s->flight)
        return flight_counts(s).samples;
    return trace_builder_counts(s->builder).samples - s->unwritten;
}

/* The last file that was completed. */
static const char *last_file(const struct session *s)
{
    return outputs_path(s->outputs) ? outputs_path(s->outputs) : s->o->output;
}

static void print_steps(const struct session *s, FILE *f)
{
    messages_write(f, "The rate was lowered %s, and is ", messages_count(s->budget.steps, "time").text);
    session_print_rates(s, f);
    messages_write(f, " at the end; weights take that into account.\n");
}

/* Who was refused what: the processes that a reader may have to look at. */
static void print_refusals(const struct session *s, FILE *f)
{
    uint32_t count;
    const struct refusal *r = trace_builder_most_refused(s->builder, &count);

    if (count)
        messages_write(f, "Processes that met a limit (LIMITS in pycap(1)), and how often:\n");
    for (uint32_t i = 0; i < count && i < REFUSALS_SHOWN; i++)
        messages_write(f, "  %8u  %-16s %-16s %8" PRIu64 "\n", r[i].tgid, r[i].comm, trace_loss_name(r[i].reason),
                       r[i].count);
    if (count > REFUSALS_SHOWN)
        messages_write(f, "  and %" PRIu32 " more\n", count - REFUSALS_SHOWN);
}

/* The processes that are recorded. */
static const char *whose(const struct session_options *o)
{
    if (o->command || o->pid_count || o->filter)
        return "the processes asked for";
    return o->include_non_python ? "programs" : "Python processes";
}

/* Samples that were lost of what is recorded: ticks are skipped on all CPUs, whoever runs there. */
static uint64_t own_lost(const struct session *s)
{
    uint64_t lost = session_lost_samples(s);

    for (uint32_t i = 0; s->sampler && i < s->events.count; i++) {
        uint64_t skipped = s->event_losses[i][LOSS_tick_skipped];
        lost -= skipped - trace_builder_own_ticks(s->builder, i, skipped);
    }
    return lost;
}

/* Where the ticks of the event fell, or what else is its due; false: that is not known, or there are several events. */
static bool print_due(const struct session *s, FILE *f)
{
    const struct event_source *source = s->events.list[0].source;
    uint64_t stats[WIRE_EVENT_STAT_COUNT];
    struct number ours, all;

    if (!s->sampler || s->events.count != 1 || !event_has_counter(source))
        return false;
    sampler_event_stats(s->sampler, 0, stats);
    messages_write(f, "%s of ", grouped(trace_builder_event_samples(s->builder, 0), &ours));
    if (source->kind == EVENT_CLOCK)
        messages_write(f, "%s", counted(stats[WIRE_EVENT_TICKS], "tick", "ticks", &all));
    else
        messages_write(f, "%s of %s on all CPUs", counted(stats[WIRE_EVENT_TICKS], "sample", "samples", &all), source->name);
    messages_write(f, " fell on %s; ", whose(s->o));
    return true;
}

/* Without BPF it is time that is lost. */
static bool print_lost_time(const struct session *s, uint64_t lost, FILE *f)
{
    uint32_t clock = event_list_first(&s->events, EVENT_CLOCK);
    struct number share;

    if (!s->losses[LOSS_time_unseen] || clock == EVENT_NONE)
        return false;
    uint64_t lost_ns = lost * event_period(&s->events.list[clock]), all_ns = lost_ns + trace_builder_event_value(s->builder, clock);
    messages_write(f, "%.3f s of %.3f s of CPU time (%s) has no sample", (double)lost_ns / 1e9, (double)all_ns / 1e9,
                   share_text(lost_ns, all_ns, &share));
    return true;
}

/* Whether samples were lost, or time was not seen. */
static void print_lost(const struct session *s, FILE *f)
{
    uint64_t lost = own_lost(s), unseen = s->losses[LOSS_children_unseen];
    bool goes_on = print_due(s, f);
    struct number n;

    if (!print_lost_time(s, lost, f)) {
        if (lost)
            messages_write(f, "%s lost", counted(lost, "sample was", "samples were", &n));
        else
            messages_write(f, "%s sample was lost", goes_on ? "no" : "No");
    }
    if (unseen)
        messages_write(f, "%s %.3f s of CPU time of child processes was not seen", lost ? ", and" : ", but",
                       (double)(unseen * event_period(&s->events.list[0])) / 1e9);
    messages_write(f, ".\n");
}

/* The time that samples of a clock stand for, in ns; 0: no clock was sampled all the time at one rate. */
static uint64_t busy_ns(const struct session *s)
{
    const struct event *event = &s->events.list[0];

    if (!s->sampler || s->events.count != 1 || event->source->kind != EVENT_CLOCK || s->budget.steps)
        return 0;
    return trace_builder_counts(s->builder).samples * event_period(event);
}

static void print_waiting(const struct session *s, double seconds, FILE *f)
{
    double busy = (double)busy_ns(s) / 1e9;

    if (busy > 0 && seconds > 0 && busy < BUSY_SHARE * seconds)
        messages_write(f, "%s used a CPU for %.0f %% of the time. Threads that wait are not sampled; --wall records them, too.\n",
                       trace_builder_counts(s->builder).processes == 1 ? "It" : "They", 100 * busy / seconds);
}

/* Processes whose asyncio tasks were to be looked at, and could not be. */
static void print_tasks(const struct session *s, FILE *f)
{
    struct task_looks_counts c = s->tasks ? task_looks_counts(s->tasks) : (struct task_looks_counts){0};
    struct number n;

    if (c.too_old)
        messages_write(f, "%s ran CPython before 3.12, whose asyncio tasks cannot be looked at.\n",
                       counted(c.too_old, "process", "processes", &n));
    if (c.unknown)
        messages_write(f, "%s ran a build of CPython of which it is not known where asyncio tasks are: they were not looked at.\n",
                       counted(c.unknown, "process", "processes", &n));
    if (s->tasks && !c.processes && !c.too_old && !c.unknown)
        messages_write(f, "No process had asyncio tasks.\n");
}

/* Whether the module's file is not to be found later: it is gone already, in a container, or in a temporary folder. */
static bool is_fleeting(const struct module *m)
{
    static const char *const folders[] = {"/tmp/", "/var/tmp/", "/dev/shm/"};
    struct statx sx;

    if (m->unreadable || m->kind != TRACE_MODULE_ELF)
        return false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!strncmp(m->path, folders[i], strlen(folders[i])))
            return true;
    }
    return statx(AT_FDCWD, m->path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &sx) || sx.stx_ino != m->inode;
}

static void print_fleeting(const struct session *s, FILE *f)
{
    uint32_t count = 0;
    struct number n;

    for (uint32_t i = 0; !s->o->archive && i < modules_count(s->modules); i++) {
        const struct module *m = modules_get(s->modules, i);
        count += trace_builder_module_use(s->builder, m) == MODULE_FRAMED && is_fleeting(m);
    }
    if (count)
        messages_write(f, "%s in containers or temporary folders, or gone: record with --archive FILE to keep the names of "
                          "%s functions.\n",
                       counted(count, "binary is", "binaries are", &n), count == 1 ? "its" : "their");
}

/* What could not be used of the file that PYCAP_NOTE names. */
static void print_note(const struct session *s, FILE *f)
{
    const struct command_note *note = &s->note;
    struct number n;

    if (note->cut_bytes)
        messages_write(f, "PYCAP_NOTE was written too much: of its %s the first %u were read, and units of work do not count.\n",
                       counted(note->cut_bytes + NOTE_BYTES_MAX, "byte", "bytes", &n), NOTE_BYTES_MAX);
    if (note->refused_lines)
        messages_write(f, "PYCAP_NOTE: %s left out. Lines are KEY=VALUE of printable ASCII, of at most %u keys; those of work "
                          "are whole numbers.\n",
                       counted(note->refused_lines, "line was", "lines were", &n), NOTE_FACTS_MAX);
}

/* Whether native stacks were the same with and without cached rows. */
static void print_unwinds(const struct session *s, FILE *f)
{
    struct sampler_unwinds u = sampler_unwinds(s->sampler);
    struct number twice, out;

    messages_write(f, "%s unwound with and without cached rows: %" PRIu64 " differed. %.2f %% of %" PRIu64 " frames had a cached row; "
                   "%s taken out.\n",
                   counted(u.twice, "native stack was", "native stacks were", &twice), u.otherwise,
                   u.frames ? 100.0 * (double)u.cached / (double)u.frames : 0, u.frames,
                   counted(u.taken_out, "table was", "tables were", &out));
    if (u.otherwise)
        messages_write(f, "The last that differed: %" PRIu32 " frames (%s) without, %" PRIu32 " frames (%s) with.\n", u.without.frames,
                       trace_loss_name(u.without.end), u.with.frames, trace_loss_name(u.with.end));
}

static uint64_t mib_of_words(uint64_t words)
{
    return (words * sizeof(uint64_t) + (1 << 20) - 1) >> 20;
}

/* What there was no room for. More is proposed than was wanted: of what is free between tables not all can be used. */
static void print_tables(const struct session *s, FILE *f)
{
    const struct table_wants *w = tables_wants(s->tables);
    uint64_t wanted = mib_of_words(w->most), max = mib_of_words(tables_words(s->tables)->max);
    uint64_t propose = (wanted + wanted / 8) / TABLES_STEP_MIB * TABLES_STEP_MIB + TABLES_STEP_MIB;

    if (!w->most)
        return;
    messages_write(f, "Up to %" PRIu64 " MiB of unwind tables were wanted at once, and %" PRIu64 " MiB fitted", wanted, mib_of_words(w->most_had));
    if (max < table_maker_max(s->table_maker))
        messages_write(f, ", for no more could be had");
    else if (max < TABLES_MOST_MIB)
        messages_write(f, ": --unwind-memory %" PRIu64 "M", propose < TABLES_MOST_MIB ? propose : TABLES_MOST_MIB);
    messages_write(f, ". Left out at one time or another:");
    for (int i = 0; i < TABLES_LEFT_OUT && w->left_out[i].name; i++)
        messages_write(f, "%s %s (%s%" PRIu64 " MiB)", i ? "," : "", w->left_out[i].name, w->left_out[i].more ? "more than " : "",
                       mib_of_words(w->left_out[i].words));
    messages_write(f, "\n");
}

/* What else befell a file that could not be written is known for all that was sampled, not for what is in it. */
static void print_losses(const struct session *s, FILE *f)
{
    uint64_t samples = trace_builder_counts(s->builder).samples;

    if (s->flight && s->file_count)
        messages_write(f, "All the time, whether it is in a file or not:\n");
    for (uint32_t i = 0; i < LOSS_LIMIT; i++) {
        bool told = s->o->verbose || !loss_is_minor(i, s->losses[i], samples);
        if (i != LOSS_complete && s->losses[i] && told && (!s->write_failed || i == LOSS_not_written))
            messages_write(f, "  %-22s %10" PRIu64 "  %s\n", trace_loss_name(i), s->losses[i], trace_loss_meaning(i));
    }
    print_refusals(s, f);
    errand_print_late(f);
}

/* Of the files of events. What they lack has ticks of others among it: the reasons follow, and a file's summary has its own. */
static void print_lost_of_events(const struct session *s, FILE *f)
{
    if (!flight_counts(s).lost)
        messages_write(f, "No sample was lost.\n");
}

/* Where to, and how much. Nothing, where there is no file. */
static void print_files(const struct session *s, FILE *f)
{
    struct size_text size;

    if (s->file_count > 1)
        messages_write(f, " into %u files (%s); the last is %s%s", s->file_count, size_text(session_bytes(s), &size), last_file(s),
                       s->o->keep && s->file_count > s->o->keep ? ", and not all are kept" : "");
    else if (s->file_count)
        messages_write(f, " into %s (%s)", last_file(s), size_text(session_bytes(s), &size));
}

/* What is in the files after a write that failed. */
static void print_written(const struct session *s, FILE *f)
{
    struct number samples;

    messages_write(f, "Recorded %s", counted(report_samples(s), "sample", "samples", &samples));
    print_files(s, f);
    if (s->unwritten)
        messages_write(f, "; %s could not be written", grouped(s->unwritten, &samples));
    else if (!s->last_written)
        messages_write(f, "; what came then could not be written");
    messages_write(f, ".\n");
}

/* What is in the files of events, and of how much that is a part. */
static void print_events(const struct session *s, double seconds, FILE *f)
{
    const struct flight_counts c = flight_counts(s);
    uint64_t all = trace_builder_counts(s->builder).samples;
    struct number n;

    messages_write(f, "Recorded %s", counted(c.samples, "sample", "samples", &n));
    if (!c.failed)
        messages_write(f, " in %.1f s", (double)c.duration_ns / 1e9);
    print_files(s, f);
    messages_write(f, "; %s taken in all, in %.1f s.\n", counted(all, "was", "were", &n), seconds);
}

static void print_recorded(const struct session *s, double seconds, FILE *f)
{
    struct trace_builder_counts c = trace_builder_counts(s->builder);
    struct number samples, processes;

    messages_write(f, "Recorded %s of %s in %.1f s", counted(c.samples, "sample", "samples", &samples),
                   counted(c.processes, "process", "processes", &processes), seconds);
    print_files(s, f);
    if (!s->file_count)
        messages_write(f, ", of which nothing was written: there was no event (SIGUSR1%s)",
                       s->o->when ? ", or a condition of --when" : "");
    messages_write(f, ".\n");
    if (s->start_ns - s->begun_ns > LATE_NS)
        messages_write(f, "Recording began %.1f s after pycap was started.\n", (double)(s->start_ns - s->begun_ns) / 1e9);
}

/* Whether the last file has a sample that could be shown. */
static bool last_file_has_samples(const struct session *s)
{
    if (s->flight)
        return flight_counts(s).last_samples;
    return s->write_failed ? s->last_written : report_samples(s);
}

/* How to go on: nothing is left of what went into a device. */
static void print_next(const struct session *s, FILE *f)
{
    if (s->file_count && last_file_has_samples(s) && !session_has_reader(s))
        messages_write(f, "Next: pysym %s\n", last_file(s));
}

void report_summary(struct session *s, uint64_t end_ns)
{
    FILE *f = s->o->messages;
    uint64_t samples = report_samples(s);
    double seconds = (double)(end_ns - s->start_ns) / 1e9;

    if (s->write_failed)
        print_written(s, f);
    else if (s->flight && s->file_count)
        print_events(s, seconds, f);
    else
        print_recorded(s, seconds, f);
    if (trace_builder_counts(s->builder).samples && !s->write_failed) {
        if (s->flight)
            print_lost_of_events(s, f);
        else
            print_lost(s, f);
        print_waiting(s, seconds, f);
    }
    print_tasks(s, f);
    if (s->o->check_unwind && s->sampler)
        print_unwinds(s, f);
    print_losses(s, f);
    if (s->tables)
        print_tables(s, f);
    print_note(s, f);
    if (s->o->verbose)
        report_details(s, f);
    if (s->budget.steps)
        print_steps(s, f);
    if (s->budget.fixed > 0)
        session_print_fixed(s, f);
    if (s->reason == TRACE_END_FULL)
        messages_write(f, "The capture ended at --max-size.\n");
    advice_left_behind(s);
    if (!samples && !s->write_failed)
        advice_no_sample(s);
    if (!samples)
        return;
    print_fleeting(s, f);
    print_next(s, f);
}
