/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a summary has gathered: summary.c fills it in, summary_print.c prints it. It owns its texts; all are printable.
 */
#ifndef SYMBOLIZE_SUMMARY_SUMMARY_DATA_H
#define SYMBOLIZE_SUMMARY_SUMMARY_DATA_H

#include <string.h>

#include "formats/base/event_value.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"
#include "symbolize/stack/resolve.h"

struct pair {
    const char *key, *value;
};

struct summary_file {
    const char *path, *name; /* as the user gave it; as outputs call it */
    const char *hostname, *kernel, *machine, *tool, *cpu_model; /* NULL until a HOST record came */
    uint32_t cpu_count;
    uint64_t memory_bytes; /* 0: the trace does not say */
    bool has_clock, has_start;
    uint64_t start_ns, last_ns; /* CLOCK_MONOTONIC */
    uint64_t clock_monotonic_ns, clock_realtime_ns;
    uint64_t sample_count; /* that passed the filters */
    bool has_snapshots;
    VEC(struct pair) meta;
    bool has_end;
    struct trace_end end;
    struct trace_reader_stats stats;
    VEC(struct trace_damage) damages;
};

/* What an event says of memory. */
enum memory_event { MEMORY_NOTHING, MEMORY_FAULTS, MEMORY_MAPPED };

struct event_row {
    const char *name, *unit;
    uint64_t frequency_hz, period;
    uint64_t bytes; /* of one count; 0: it does not count bytes */
    enum memory_event memory;
    enum event_value kind;
    uint64_t sample_count, value, first_value;
    bool values_differ;
    /* Changes of the period during the recording: how many, the last period, the reasons (each once). */
    uint64_t change_count, last_period;
    VEC(const char *) reasons;
};

struct process_row {
    uint32_t pid, parent_pid, version, flags;
    uint32_t boot;              /* the boot of a host in which its pid means something */
    uint64_t start_boottime_ns; /* in that boot */
    const char *comm, *cmdline;
    const char *name, *title, *container; /* title: "": none */
    const char *name_and_title;           /* in one text: gunicorn "shop: worker" */
    uint64_t sample_count;
    uint32_t thread; /* one of its threads, in the model; SUMMARY_NO_ROW: none was sampled */
    uint32_t first_file, last_file; /* that it is in */
};
/* A thread of the model. */
struct thread_row {
    uint64_t sample_count, time_ns;
    uint64_t gil_wait_ns; /* it waited for the GIL */
    uint64_t blame_ns;    /* others waited for what it held */
};
/* Does a label set say that a thread waits for the GIL? */
enum gil_label { GIL_LABEL_UNKNOWN, GIL_LABEL_NO, GIL_LABEL_YES };
/* What was sampled of a thread of the epoch. */
struct thread_tally {
    uint64_t sample_count, time_ns, gil_wait_ns, blame_ns;
    uint32_t shown; /* its number in the model; SUMMARY_NO_ROW: stacks are not resolved, or nothing was sampled */
};
/* What threads waited for, exactly, by enum trace_wait_kind. */
struct wait_row {
    uint32_t kind;
    uint64_t ns, count;
};
/* What the kernel counts of a process's memory: sums of the changes between readings that belong together. */
struct memory_change {
    int64_t anonymous, file, shared, swapped, data; /* bytes */
    uint64_t faults; /* of both kinds */
    uint64_t time_ns;
};
/* Samples of an event of memory: those between the first and the last reading, and those that came since. */
struct memory_samples {
    uint32_t event; /* a row */
    uint64_t value, later;
};
enum { MEMORY_EVENTS = 8 };
struct memory_row {
    uint32_t process; /* a row */
    uint32_t file;    /* of the last reading */
    uint64_t begin_ns; /* since when readings and samples belong together: a recording that is not interrupted */
    struct trace_process_memory last;
    struct memory_change change;
    struct memory_samples events[MEMORY_EVENTS];
    uint32_t event_count;
};
struct label_row {
    const char *key, *value;
    uint64_t sample_count;
};
struct loss_row {
    uint32_t reason;
    const char *name;
    const char *event; /* whose samples they were; "": of no event in particular */
    uint64_t count;
};

/* Ticks of an event on all CPUs, by name: all but those of idle CPUs, and of them those that fell on what is recorded. */
struct tick_row {
    const char *event;
    uint64_t busy, own;
};

/* What was lost of one process. */
struct process_loss_row {
    uint32_t pid, reason;
    const char *process, *name; /* what it is called; the name of the reason */
    uint64_t count;
};

#define SUMMARY_NO_ROW UINT32_MAX

struct summary {
    struct limits *limits; /* borrowed; NULL: none */
    struct intern texts, event_keys, process_keys, boot_keys, loss_keys, process_loss_keys, label_keys;
    VEC(struct summary_file) files;
    VEC(struct event_row) events;
    VEC(struct process_row) processes;
    VEC(struct thread_row) threads; /* by number in the model */
    const char *time_event;         /* whose values are the threads' time; NULL: no event is a clock */
    VEC(struct loss_row) losses;
    VEC(struct tick_row) ticks;
    VEC(struct process_loss_row) process_losses;
    VEC(struct label_row) labels;
    VEC(struct wait_row) waits;
    VEC(struct memory_row) memory;
    struct map memory_of; /* row of a process -> index of memory */
    struct map waited; /* thread << 32 | label set, of the model -> ns of its samples of waits */
    uint64_t on_cpu_ns; /* of the threads whose waits were recorded; 0: of none */
    uint64_t gil_known_count, gil_count;
    uint64_t late_count;
    /* Of the current epoch, by its ids. */
    VEC(uint32_t) event_of; /* a row, or SUMMARY_NO_ROW */
    VEC(struct thread_tally) thread_tallies;
    VEC(uint32_t) memory_of_process; /* an index of memory, or SUMMARY_NO_ROW */
    VEC(uint64_t) label_samples;
    VEC(enum gil_label) gil_labels; /* by label set */
};

static inline uint64_t summary_duration_ns(const struct summary_file *f)
{
    return f->has_start && f->last_ns > f->start_ns ? f->last_ns - f->start_ns : 0;
}

/* Of different names. */
static inline bool summary_has_several_events(const struct summary *s)
{
    for (size_t i = 1; i < s->events.count; i++) {
        if (strcmp(s->events.data[i].name, s->events.data[0].name))
            return true;
    }
    return false;
}

/* The value of a META record; NULL: the file has no record of that key. */
static inline const char *summary_setting(const struct summary_file *f, const char *key)
{
    for (size_t i = 0; i < f->meta.count; i++) {
        if (!strcmp(f->meta.data[i].key, key))
            return f->meta.data[i].value;
    }
    return NULL;
}

/* Number of samples for which a stack was recorded. */
static inline uint64_t ends_total(const struct resolver_ends *ends)
{
    uint64_t total = 0;

    for (uint32_t i = LOSS_complete; i <= LOSS_LIMIT; i++)
        total += ends->count[i];
    return total;
}

#endif
