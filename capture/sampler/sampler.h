/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF sampler as seen from user space: loads it, attaches it to perf events on every
 * CPU, configures it for processes, drains its rings, reads its counters. Only sampler.c
 * uses libbpf.
 */
#ifndef CAPTURE_SAMPLER_SAMPLER_H
#define CAPTURE_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/sampler/map_sizes.h"
#include "capture/sampler/perf_events.h"
#include "capture/sampler/wait_maps.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct table_maker;
struct sampler_options {
    struct event_list events;   /* event_list_complete() was called */
    const int *cpus;            /* online CPUs to sample; borrowed */
    uint32_t cpu_count;
    uint32_t cpu_end;           /* above the highest number of a CPU that is online; 0: that is not known */
    struct map_sizes sizes;     /* of its tables */
    uint32_t stack_bytes;       /* copy at most this much of a user stack; 0: never copy */
    bool every_stack;           /* copy it for every sample, not only when the native unwind could not complete */
    bool kernel, python;        /* record kernel frames, Python frames */
    bool unconfigured;          /* also sample processes that are not configured: kernel and native frames only */
    enum wire_native native;    /* how to unwind native frames in the kernel */
    struct table_maker *table_maker; /* of memory for unwind tables; borrowed; NULL: there are none */
    uint32_t ring_bytes;        /* of all rings, a power of two of pages; 0: chosen by rate and CPUs */
    bool wakers;                /* with waits: also who ends them */
    bool timed;                 /* count CPU time, for sampler_cpu_time() */
    bool queued;                /* follow how long threads wait for a CPU, for sampler_queued_ns() */
    bool check_unwind;          /* unwind by tables a second time without cached rows, for sampler_unwinds() */
};

struct sampler;
/* Loads the BPF programs and opens the events, disabled. Once disabled, waits cannot be enabled again. An error says what this host lacks. */
struct error *sampler_open(const struct sampler_options *options, struct sampler **out);
void sampler_close(struct sampler *s);
struct error *sampler_enable(struct sampler *s);
struct error *sampler_disable(struct sampler *s);

/* Stores where unwind tables lie; valid while the sampler is open. All are NULL when it does not use tables. */
struct tables_memory;
void sampler_tables(struct sampler *s, struct tables_memory *memory);
/* Maps a part of the array of mappings. Call before the first access to that part. `ctx` is the sampler. */
struct error *sampler_map_pages(void *ctx, const void *start, size_t len_bytes);
/* Returns the array of mappings and stores its length; NULL when the sampler does not use tables. */
struct wire_mapping *sampler_mappings(const struct sampler *s, uint32_t *count);

/* Gives the sampler a layout of CPython's objects, with its index for wire_process (capture/process/layout_slots.h). */
struct error *sampler_set_layout(struct sampler *s, uint32_t index, const struct py_layout *layout);
/* Configures a process, or replaces its configuration. See process_map_set() for `*full`. */
struct error *sampler_set_process(struct sampler *s, uint32_t tgid, const struct wire_process *process, bool *full);
/*
 * Reads the current configuration of a process; BPF may have changed it (bound it to a process identity) or copied it
 * from the parent at a fork. False when the process is not configured.
 */
bool sampler_get_process(struct sampler *s, uint32_t tgid, struct wire_process *process);
/* Describes the interpreter that runs in a process beside the first one. False: there is no room. sampler_remove_process() forgets it. */
bool sampler_set_rival(struct sampler *s, uint32_t tgid, const struct wire_process *rival);
bool sampler_get_rival(const struct sampler *s, uint32_t tgid, struct wire_process *rival);
/* Whose a process was when it began a program; false: that is not known, or forgotten. */
bool sampler_get_owner(const struct sampler *s, uint32_t tgid, struct wire_owner *owner);
/* Names a process that may turn out to be Python: hits of tracepoints are recorded for the short while that this takes. */
void sampler_expect(struct sampler *s, uint32_t tgid);
void sampler_remove_process(struct sampler *s, uint32_t tgid);
/*
 * Removes the configuration of all processes for which `wanted` returns false. After lost side-band events the sampler
 * may have children of forks configured that pycap does not know.
 */
void sampler_prune(struct sampler *s, bool (*wanted)(void *ctx, uint32_t tgid), void *ctx);
/*
 * Returns how many ticks of a process were lost because it was configured too late. (For a short while the sampler
 * samples processes that it does not know; these ticks came after that.) Ticks before `since_ns` do not count.
 */
uint64_t sampler_late_ticks(struct sampler *s, uint32_t tgid, uint64_t since_ns);
/* The most ticks that all CPUs together can have in `time_ns`; UINT64_MAX when the kernel chooses the period. */
uint64_t sampler_most_ticks(const struct sampler *s, uint64_t time_ns);

/* Calls `fn` for each message in the rings (a struct wire_*, valid during that call). Those of one CPU come in order, and so
   do those about the waits of a thread. What comes meanwhile is taken, too, but of it no more than fits: programs that send
   all the time do not make it last. */
typedef struct error *(*sampler_fn)(void *ctx, const void *message, uint32_t len_bytes);
struct error *sampler_drain(struct sampler *s, sampler_fn fn, void *ctx);

/* The size of all rings together. */
uint32_t sampler_ring_bytes(const struct sampler *s);
/* A file descriptor that becomes readable when a ring is a quarter full and should be drained. */
int sampler_wake_fd(const struct sampler *s);

/* Losses since the start that belong to no single event, summed over all CPUs. */
void sampler_losses(struct sampler *s, uint64_t losses[WIRE_LOSS_COUNT]);
/* Adds to `losses` those of the samples of one event. */
void sampler_event_losses(struct sampler *s, uint32_t event, uint64_t losses[LOSS_LIMIT]);
void sampler_event_stats(struct sampler *s, uint32_t event, uint64_t stats[WIRE_EVENT_STAT_COUNT]);

struct sampler_ticks {
    int cpu;
    struct perf_event_count event; /* the kernel's own account */
    uint64_t seen;       /* times the program ran */
    uint64_t seen_idle;  /* of these, in the idle task */
    uint64_t seen_others; /* of these, in processes that are not sampled */
    uint64_t thinned;     /* of these, waits that another one's stack stands for */
    uint64_t sampled;     /* of these, those that a sample was sent of */
    uint64_t nested, ring_full, refused; /* of these, those that are losses (sampler_event_losses()) */
    uint64_t unsettled;   /* of these, those that the program was at work on, whose sample may have been sent or not */
};
/* Reads the ticks of an event on each CPU; `ticks` has room for cpu_count elements. */
struct error *sampler_ticks(struct sampler *s, uint32_t event, struct sampler_ticks *ticks);
/*
 * Hits of a tracepoint, since sampler_enable(), at which the kernel did not run the sampler: another BPF program ran on that
 * CPU, or a system call was at work on a BPF map there. 0 for other events, and before Linux 6.7, which does not count them.
 */
uint64_t sampler_hits_skipped(const struct sampler *s, uint32_t event);
/* Run time and number of runs of the sampling program; 0 unless the kernel counts them (kernel.bpf_stats_enabled). */
void sampler_run_time(struct sampler *s, uint64_t *run_ns, uint64_t *run_count);

/*
 * Calls `fn` for each thread whose waits are recorded and that has not ended, with its sums up to its last switch. They
 * are read while threads run, unless the sampler is disabled.
 */
struct error *sampler_threads(struct sampler *s, wait_thread_fn fn, void *ctx);
/*
 * Calls `fn` for each thread that ended while the ring had no room for it, and forgets it. Call when the ring has been
 * drained: what was sent of a thread before is to be known.
 */
struct error *sampler_ended_threads(struct sampler *s, wait_thread_fn fn, void *ctx);
/* Reads what is known of a thread; false: its waits are not recorded. */
bool sampler_get_thread(const struct sampler *s, uint32_t tid, struct wire_thread *thread);

/* Calls `fn` for each call site that owes time: waits of which no stack was taken since the last that had one. */
struct error *sampler_owed(struct sampler *s, wait_site_fn fn, void *ctx);

/*
 * Goes over all threads, and calls `fn` for waits of which no stack was taken (bpf/sampler_sleep.h): those that have lasted
 * for `stackless_ns`, and those of threads that were seen asleep by a call before, at least `noted_ns` ago, and have not
 * been switched to since. The message is a sample without user stacks: flags WIRE_WAITS and, if it was counted when it
 * began, WIRE_CONTINUES; thread_handle is the thread pointer. From then on a struct wire_wait comes when the wait ends.
 * Does nothing where waits are not recorded.
 */
struct error *sampler_sleepers(struct sampler *s, uint64_t noted_ns, uint64_t stackless_ns, wait_message_fn fn, void *ctx);

/*
 * Goes over all threads, and stores how long those of the processes that are sampled have waited for a CPU, all together, since
 * the first call. Needs options.queued. An error says what this kernel lacks.
 */
struct error *sampler_queued_ns(struct sampler *s, uint64_t *queued_ns);
/*
 * Calls `fn` for the account of each lock of an interpreter (GIL) that threads have waited for; wire_gil_waited_ns() compares
 * two states of it. A new one is 0 since gil->since_ns. There are some only where waits are recorded.
 */
struct error *sampler_gils(struct sampler *s, wait_gil_fn fn, void *ctx);

/* How long others have waited, in ns, for what a thread holds that left its CPU at `out_ns`; see wait_maps_blame(). */
uint64_t sampler_blame(struct sampler *s, uint32_t tid, uint64_t out_ns, uint64_t time_ns);

/*
 * CPU time of the sampling programs on all CPUs, and what of it no rate changes: looks at switches at which no stack was
 * taken. 0 unless `timed`.
 */
void sampler_cpu_time(struct sampler *s, uint64_t *cpu_ns, uint64_t *look_ns);

/* What came of unwinding with and without cached rows (options.check_unwind; else all is 0). */
struct sampler_unwinds {
    uint64_t twice, otherwise; /* stacks that were unwound both ways, and those of them that were not the same */
    uint64_t frames, cached;   /* of these stacks: all, and those whose rows were cached */
    uint64_t taken_out;        /* tables */
    struct {
        uint32_t end, frames; /* the loss reason that ended it */
    } without, with; /* the last that differed */
};
struct sampler_unwinds sampler_unwinds(struct sampler *s);
/* Forgets which code objects were sent: each is sent again when it is next seen. */
void sampler_forget_codes(struct sampler *s);
/* Changes the rate or period of an event from now on. */
struct error *sampler_change_event(struct sampler *s, uint32_t event, const struct event *to);
/*
 * What memory growth was counted, in bytes: all that processes were given, and of it what samples stand for that were sent.
 * 0 unless it is recorded.
 */
void sampler_grown_bytes(struct sampler *s, uint64_t *grown, uint64_t *sent);
/* Any map fd; used to probe whether CAP_BPF is still needed after attach. */
int sampler_map_fd(const struct sampler *s);

#endif
