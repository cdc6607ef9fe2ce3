/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the status line and the summary of `pycap record`. */
#include "capture/session/report.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "capture/host/messages.h"
#include "capture/host/privileges.h"
#include "capture/session/session_budget.h"
#include "capture/session/session_files.h"
#include "capture/trace/trace_losses.h"
#include "formats/base/size_text.h"

#define REFUSALS_SHOWN 8

struct error *report_no_python(const struct session *s, const struct process *p)
{
    const char *unopened = process_unopened(p);
    char without[128];

    privileges_missing_to_read(&s->host, without);
    if (p->forbidden)
        return error_create(ERROR_PERMISSION, "process %u (%s): /proc/%u/maps may not be read%s", p->tgid, p->comm, p->tgid,
                            without);
    if (unopened)
        return error_create(ERROR_PERMISSION,
                            "process %u (%s): %s cannot be opened%s, and no other file that it maps is a CPython interpreter "
                            "(-a records such processes, too)",
                            p->tgid, p->comm, unopened, without);
    return error_create(ERROR_UNSUPPORTED,
                        "process %u (%s) is not CPython: no file that it maps is an interpreter (-a records such "
                        "processes, too)",
                        p->tgid, p->comm);
}

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
    if (s->budget.rate < s->budget.options.rate) {
        messages_write(s->o->messages, "  at ");
        session_print_rates(s, s->o->messages);
    }
    fflush(s->o->messages);
}

/* The last file that was completed. */
static const char *last_file(const struct session *s)
{
    return outputs_path(s->outputs) ? outputs_path(s->outputs) : s->o->output;
}

static void print_own_cost(const struct session *s, FILE *f)
{
    uint64_t most = procfs_own_resident_most();
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    messages_write(f, "%.2f s of CPU in pycap, %" PRIu64 " KiB resident at most.\n",
            (double)outputs_cpu_ns(s->outputs) / NS_PER_S + (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
            (most ? most : (uint64_t)usage.ru_maxrss * 1024) / 1024);
}

static const char *filter_options(const struct filter *f)
{
    return !f->cgroups.count ? "--comm" : !f->comms.count ? "--cgroup" : "--comm and --cgroup";
}

static void proc_cost(const struct session *s, FILE *f)
{
    struct proc_sampler_counts c = proc_sampler_counts(s->proc);

    if (!c.samples)
        return;
    messages_write(f, "Cost: %.1f us to read a sample (%.1f %% of them while the thread was kept from running), ",
            (double)c.read_ns / (double)c.samples / 1000, 100.0 * (double)c.still / (double)c.samples);
    print_own_cost(s, f);
}

/*
 * Writes what became of the ticks of an event, by the sampler's own counters. A process that may turn out to be Python
 * is sampled until that is known. So sampled = recorded + unwanted (not Python after all) + lost.
 */
static void print_ticks(const struct session *s, uint32_t event, FILE *f)
{
    uint64_t stats[WIRE_EVENT_STAT_COUNT], unwanted = 0, skipped = s->skipped[event];

    sampler_event_stats(s->sampler, event, stats);
    for (uint32_t i = 0; i < s->cpu_count; i++)
        unwanted += trace_builder_unwanted(s->builder, event, (uint32_t)s->cpus[i]);
    if (s->events.count > 1)
        messages_write(f, "Ticks of %s: ", s->events.list[event].source->name);
    else
        messages_write(f, "Ticks: ");
    messages_write(f, "%" PRIu64 ", of which %" PRIu64 " idle, %" PRIu64 " in other processes and %" PRIu64 " sampled",
                   stats[WIRE_EVENT_TICKS], stats[WIRE_EVENT_IDLE], stats[WIRE_EVENT_OTHERS],
                   stats[WIRE_EVENT_SAMPLED] + stats[WIRE_EVENT_RING_FULL]);
    if (unwanted)
        messages_write(f, " (%" PRIu64 " of them in processes that are not recorded)", unwanted);
    if (stats[WIRE_EVENT_NESTED])
        messages_write(f, "; %" PRIu64 " came while the sampler was running", stats[WIRE_EVENT_NESTED]);
    if (skipped && s->events.count > 1)
        messages_write(f, "; the kernel skipped %" PRIu64, skipped);
    messages_write(f, ".\n");
}

static void print_steps(const struct session *s, FILE *f)
{
    messages_write(f, "The rate was lowered %s, and is ", messages_count(s->budget.steps, "time").text);
    session_print_rates(s, f);
    messages_write(f, " at the end; weights take that into account.\n");
}

static void bpf_cost(const struct session *s, FILE *f)
{
    uint64_t run_ns, run_count;

    sampler_run_time(s->sampler, &run_ns, &run_count);
    messages_write(f, "Cost: ");
    if (run_ns && run_count)
        messages_write(f, "%.2f us of BPF a tick, ", (double)run_ns / (double)run_count / 1000);
    print_own_cost(s, f);
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

void report_summary(struct session *s, uint64_t end_ns)
{
    FILE *f = s->o->messages;
    struct trace_builder_counts c = trace_builder_counts(s->builder);
    uint64_t bytes = session_bytes(s);
    double seconds = (double)(end_ns - s->start_ns) / 1e9;
    struct size_text size;

    messages_write(f, "Recorded %s of %s in %.1f s into %s (%s", messages_count(c.samples, "sample").text,
                   messages_count(c.processes, "process").text, seconds, last_file(s), size_text(bytes, &size));
    if (c.samples)
        messages_write(f, ", %.0f bytes a sample", (double)bytes / (double)c.samples);
    messages_write(f, ").\n");
    uint64_t with_python = c.python_complete + c.python_cut;
    if (with_python)
        messages_write(f, "Python stacks that reached their root: %.2f %% of %" PRIu64 ".\n",
                100.0 * (double)c.python_complete / (double)with_python, with_python);
    for (uint32_t i = 0; i < LOSS_LIMIT; i++) {
        if (i != LOSS_complete && s->losses[i])
            messages_write(f, "  %-22s %10" PRIu64 "  %s\n", trace_loss_name(i), s->losses[i], trace_loss_meaning(i));
    }
    print_refusals(s, f);
    if (s->proc) {
        proc_cost(s, f);
    } else if (s->sampler) {
        for (uint32_t i = 0; i < s->events.count; i++)
            print_ticks(s, i, f);
        bpf_cost(s, f);
    }
    if (s->file_count > 1)
        messages_write(f, "%u files were written; the one named above is the last%s.\n", s->file_count,
                       s->o->keep ? ", and not all are kept" : "");
    if (s->budget.steps)
        print_steps(s, f);
    if (s->reason == TRACE_END_FULL)
        messages_write(f, "The capture ended at --max-size.\n");
    if (c.samples && strcmp(s->o->output, "-"))
        messages_write(f, "Next: pysym %s --format speedscope -o profile.speedscope.json\n", last_file(s));
    else if (!c.samples && s->o->filter)
        messages_write(f, "No sample fell on a %sprocess that passes %s: is there one, and was it idle?%s\n",
                s->o->include_non_python ? "" : "Python ", filter_options(s->o->filter),
                s->o->include_non_python ? "" : " 'pycap info' lists what can be recorded.");
    else if (!c.samples)
        messages_write(f, "No sample fell on a Python process: were they idle? 'pycap info' lists what can be recorded.\n");
}
