/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF side as seen from user space: loading, attaching to a perf event on every
 * CPU, configuring processes, draining the ring, reading counters. Only this file's
 * implementation knows libbpf.
 */
#ifndef CAPTURE_SAMPLER_SAMPLER_H
#define CAPTURE_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/sampler/perf_events.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct sampler_options {
    struct event_list events;   /* complete */
    const int *cpus;            /* online CPUs to sample */
    uint32_t cpu_count;
    uint32_t stack_bytes;       /* of the user stack, at most; 0: never copied */
    bool every_stack;           /* copied for every sample, not only where the native unwind could not go on */
    bool kernel, python;
    bool unconfigured;                   /* processes that were not handed over, too: kernel and native frames */
    enum wire_native native;    /* how to unwind natively in the kernel */
    uint32_t table_bytes;       /* memory for unwind tables; 0: 32 MiB */
    uint32_t ring_bytes;        /* a power of two of pages; 0: by rate and CPUs */
    bool timed;                 /* sampler_cpu_ns() is wanted */
};

struct sampler;
/* Loads the programs and opens the events, disabled. An error says what this host lacks. */
struct error *sampler_open(const struct sampler_options *options, struct sampler **out);
void sampler_close(struct sampler *s);
struct error *sampler_enable(struct sampler *s);
struct error *sampler_disable(struct sampler *s);

/* The arrays that unwind tables are laid into; valid while the sampler is open. All NULL without tables. */
struct tables_memory;
void sampler_tables(struct sampler *s, struct tables_memory *memory);
/* Has a part of one of the arrays mapped; to be called before it is touched first. `ctx` is the sampler. */
struct error *sampler_map_pages(void *ctx, const void *start, size_t len_bytes);
/* The array of mappings, likewise. */
struct wire_mapping *sampler_mappings(const struct sampler *s, uint32_t *count);

/* The index of a layout, stored once. */
struct error *sampler_layout(struct sampler *s, const struct py_layout *layout, uint32_t *index);
struct error *sampler_set_process(struct sampler *s, uint32_t tgid, const struct wire_process *process);
/* What the BPF side has for it now (bound, perhaps inherited at fork); false when nothing. */
bool sampler_get_process(struct sampler *s, uint32_t tgid, struct wire_process *process);
void sampler_remove_process(struct sampler *s, uint32_t tgid);
/* Forgets processes that it inherited by fork and `wanted` does not want, where their news were lost. */
void sampler_prune(struct sampler *s, bool (*wanted)(void *ctx, uint32_t tgid), void *ctx);
/*
 * Ticks of a process that was not named in time, after the while that such a process is sampled anyway; those of what
 * ran as this process before `since_ns` are left out.
 */
uint64_t sampler_late_ticks(struct sampler *s, uint32_t tgid, uint64_t since_ns);
/* How many ticks all CPUs can have had in a time; all ones where the kernel finds the period. */
uint64_t sampler_most_ticks(const struct sampler *s, uint64_t time_ns);

/* Hands over the messages that have come (struct wire_*, valid during the call), in the order they were made per CPU. */
typedef struct error *(*sampler_fn)(void *ctx, const void *message, uint32_t len_bytes);
struct error *sampler_drain(struct sampler *s, sampler_fn fn, void *ctx);

/* The file descriptor that becomes readable when the ring is a quarter full: drain sooner. */
int sampler_wake_fd(const struct sampler *s);

/* Sums over CPUs since the start. Losses that are not of one event. */
void sampler_losses(struct sampler *s, uint64_t losses[WIRE_LOSS_COUNT]);
/* Losses of the samples of one event: what is added to `losses`. */
void sampler_event_losses(struct sampler *s, uint32_t event, uint64_t losses[LOSS_LIMIT]);
void sampler_event_stats(struct sampler *s, uint32_t event, uint64_t stats[WIRE_EVENT_STAT_COUNT]);

struct sampler_ticks {
    int cpu;
    struct perf_event_count event; /* the kernel's own account */
    uint64_t seen;       /* times the program ran */
    uint64_t seen_idle;  /* of them, for the idle task */
    uint64_t seen_others; /* of them, for processes that are not to be sampled */
};
struct error *sampler_ticks(struct sampler *s, uint32_t event, struct sampler_ticks *ticks); /* cpu_count of them */
/* Run time of the sampling program, where the kernel counts it (kernel.bpf_stats_enabled). */
void sampler_run_time(struct sampler *s, uint64_t *run_ns, uint64_t *run_count);

/* CPU time of the sampling program on all CPUs; 0 unless `timed`. */
uint64_t sampler_cpu_ns(struct sampler *s);
/* Code objects that were sent are sent again when they are met. */
void sampler_forget_codes(struct sampler *s);
/* An event has another rate or period from now on. */
struct error *sampler_change_event(struct sampler *s, uint32_t event, const struct event *to);
/* Any map's fd: used to try whether CAP_BPF is still needed once everything is attached. */
int sampler_map_fd(const struct sampler *s);

#endif
