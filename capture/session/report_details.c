/* SPDX-License-Identifier: Apache-2.0 */
/* The account that `pycap record -v` writes at its end: every tick, and what recording cost. */
#include "capture/session/report_details.h"

#include <inttypes.h>
#include <sys/resource.h>

#include "capture/host/errand.h"
#include "capture/host/messages.h"
#include "capture/host/procfs.h"

static void print_own_cost(const struct session *s, FILE *f)
{
    uint64_t most = procfs_own_resident_most();
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    messages_write(f, "%.2f s of CPU in pycap, %" PRIu64 " KiB resident at most.\n",
            (double)(outputs_cpu_ns(s->outputs) + errand_cpu_ns()) / NS_PER_S + (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
            (most ? most : (uint64_t)usage.ru_maxrss * 1024) / 1024);
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

/* Writes what became of the switches away from threads whose waits are recorded. */
static void print_switches(const struct session *s, uint32_t event, FILE *f)
{
    uint64_t stats[WIRE_EVENT_STAT_COUNT];

    sampler_event_stats(s->sampler, event, stats);
    messages_write(f, "Waits: %" PRIu64 ", of which %" PRIu64 " with a stack and %" PRIu64 " that another one at the same place "
                   "stands for.\n", stats[WIRE_EVENT_TICKS], stats[WIRE_EVENT_SAMPLED], stats[WIRE_EVENT_THINNED]);
}

/* Writes what became of the calls that gave memory. */
static void print_growth(const struct session *s, uint32_t event, FILE *f)
{
    uint64_t stats[WIRE_EVENT_STAT_COUNT], grown, sent;

    sampler_event_stats(s->sampler, event, stats);
    sampler_grown_bytes(s->sampler, &grown, &sent);
    messages_write(f, "Memory: %" PRIu64 " calls gave %" PRIu64 " KiB; %" PRIu64 " had a stack; %" PRIu64 " KiB soon came back.\n",
                   stats[WIRE_EVENT_TICKS], grown / 1024, stats[WIRE_EVENT_SAMPLED], growth_dropped_bytes(s->growth) / 1024);
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
    if (s->events.list[event].source->kind != EVENT_CLOCK)
        messages_write(f, "Samples of %s on all CPUs: ", s->events.list[event].source->name);
    else if (s->events.count > 1)
        messages_write(f, "Ticks of %s: ", s->events.list[event].source->name);
    else
        messages_write(f, "Ticks: ");
    messages_write(f, "%" PRIu64 ", of which %" PRIu64 " idle, %" PRIu64 " in other processes and %" PRIu64 " sampled",
                   stats[WIRE_EVENT_TICKS], stats[WIRE_EVENT_IDLE], stats[WIRE_EVENT_OTHERS],
                   stats[WIRE_EVENT_SAMPLED] + stats[WIRE_EVENT_RING_FULL]);
    if (unwanted)
        messages_write(f, " (%" PRIu64 " of them in processes that are not recorded)", unwanted);
    if (stats[WIRE_EVENT_THINNED])
        messages_write(f, "; %" PRIu64 " count in the sample of a later one", stats[WIRE_EVENT_THINNED]);
    if (stats[WIRE_EVENT_NESTED])
        messages_write(f, "; %" PRIu64 " came while the sampler was running", stats[WIRE_EVENT_NESTED]);
    if (skipped && s->events.count > 1)
        messages_write(f, "; the kernel skipped %" PRIu64, skipped);
    messages_write(f, ".\n");
}

/* Writes how often tasks were looked at, and what that cost. */
static void print_looks(const struct session *s, FILE *f)
{
    struct task_looks_counts c = task_looks_counts(s->tasks);
    double looks = c.looks ? (double)c.looks : 1;

    messages_write(f, "Looks at tasks: %" PRIu64 ", of which %" PRIu64 " found that their loops had slept; %.2f ms each. At most %"
                   PRIu64 " tasks waited at once.\n", c.looks, c.still, (double)c.spent_ns / looks / 1e6, c.most);
}

/* Writes how much of the kernel's memory unwind tables take. */
static void print_tables(const struct session *s, FILE *f)
{
    const struct table_words *w = tables_words(s->tables);

    messages_write(f, "Unwind tables: %" PRIu32 " MiB, of at most %" PRIu32 ".\n", w->count / WIRE_CHUNK_WORDS, w->max / WIRE_CHUNK_WORDS);
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

void report_details(const struct session *s, FILE *f)
{
    struct trace_builder_counts c = trace_builder_counts(s->builder);
    uint64_t with_python = c.python_complete + c.python_cut;

    if (with_python)
        messages_write(f, "Python stacks that reached their root: %.2f %% of %" PRIu64 ".\n",
                       100.0 * (double)c.python_complete / (double)with_python, with_python);
    if (s->tasks)
        print_looks(s, f);
    if (s->proc) {
        proc_cost(s, f);
        return;
    }
    for (uint32_t i = 0; i < s->events.count; i++) {
        if (s->events.list[i].source->kind == EVENT_WAIT)
            print_switches(s, i, f);
        else if (s->events.list[i].source->kind == EVENT_GROWTH)
            print_growth(s, i, f);
        else if (s->events.list[i].source->kind != EVENT_TASK)
            print_ticks(s, i, f);
    }
    if (s->tables)
        print_tables(s, f);
    bpf_cost(s, f);
}
