/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling without privilege: records the Python frames of processes whose memory pycap
 * may read (its children, or processes of the same user where ptrace is not restricted).
 * It runs the same frame walker as BPF, over process_vm_readv(). There are no native and
 * no kernel frames.
 *
 * Nothing stops the process, so its stack may change while it is read. To prevent that,
 * pycap binds itself to the CPU on whose run queue the thread is. While pycap runs there,
 * the thread cannot. Two facts from the kernel prove that the thread did not run during
 * the reading: its CPU is pycap's, and the number of times it was given a CPU (schedstat)
 * is the same before and after. Such a stack is exact. Where binding is not possible
 * (pycap may not use that CPU), the stack is read several times. If the readings differ,
 * the sample is marked, and only the outer frames that they have in common are kept.
 *
 * A sample stands for the CPU time that its thread has used since its previous sample, in
 * nanoseconds. A thread is sampled only when it has used CPU time and is runnable. What a
 * thread used before it began to wait is added to its next sample. What it used after its last sample has none, and is known
 * by its process's clock, which has the time of threads that have ended: it is counted (LOSS_time_unseen).
 *
 * Waits are looked at in the same way: a thread that is asleep at a look is sampled, for the
 * time that it was asleep since its last sample; one that wants to run, for its time in run
 * queues. The kernel's counts make these times exact (task_time.h). What the thread waited
 * for is seen only at the looks: short waits by chance, each as likely as it is long. A thread
 * that has not run since the last look waits on, and is not read again.
 */
#ifndef CAPTURE_PROC_PROC_SAMPLER_H
#define CAPTURE_PROC_PROC_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/process/processes.h"
#include "capture/sampler/sampler.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct proc_sampler;
struct proc_sampler_options {
    uint64_t frequency_hz;
    bool children;        /* follow the children of followed processes, too */
    uint32_t clock_event; /* index of the event that counts CPU time; EVENT_NONE: it is not sampled */
    uint32_t wait_event;  /* the same for waits */
};
/* `processes` is borrowed. */
struct error *proc_sampler_create(struct processes *processes, const struct proc_sampler_options *options,
                                  struct proc_sampler **out);
void proc_sampler_destroy(struct proc_sampler *s);
/*
 * Adds processes to sample, and with `children` those that descend from them already. Their CPU time up to now needs no
 * samples.
 */
struct error *proc_sampler_follow(struct proc_sampler *s, const uint32_t *pids, uint32_t count);
/* Returns an error that says why the kernel does not let pycap read the memory of a process, and what to do about it. */
struct error *proc_sampler_refused(uint32_t tgid);
/* Why a process cannot be sampled, with what to do about it; NULL when it can be. */
struct error *proc_sampler_check(const struct processes *processes, uint32_t tgid);
/*
 * Looks at all threads once, and calls `fn` with messages that are valid during that call. A struct wire_sample: a sample.
 * With WIRE_WAITS it is one of a wait that may last, and its period how long it is known to have lasted since time_ns. A
 * struct wire_wait: until then that wait lasted. A struct wire_thread: what is known of a thread that has ended.
 */
struct error *proc_sampler_round(struct proc_sampler *s, sampler_fn fn, void *ctx);
/* When the last round began, CLOCK_MONOTONIC. Waits of which no end was reported went on then. */
uint64_t proc_sampler_looked_ns(const struct proc_sampler *s);
/* Calls `fn` with the time of each thread that is looked at, where waits are sampled. */
struct error *proc_sampler_threads(struct proc_sampler *s, struct error *(*fn)(void *ctx, const struct wire_thread *thread),
                                   void *ctx);
/*
 * How long to wait until the next round: the period, varied at random by up to a fifth to avoid lockstep with a
 * program.
 */
uint64_t proc_sampler_wait_ns(struct proc_sampler *s);

void proc_sampler_set_rate(struct proc_sampler *s, uint64_t frequency_hz);
/* The event that the trace names for these samples; it takes the place of cpu-clock. */
const struct event_source *proc_sampler_event(void);
/* The next round leaves nothing out, as it is the last one before a process is reaped. */
void proc_sampler_hurry(struct proc_sampler *s);
/* No round comes any more: what threads have used since their last samples is lost. */
void proc_sampler_finish(struct proc_sampler *s);
/* Adds the losses so far to `losses`. */
void proc_sampler_losses(const struct proc_sampler *s, uint64_t losses[LOSS_LIMIT]);

struct proc_sampler_counts {
    uint64_t samples;
    uint64_t still;   /* samples of a thread that provably did not run while it was read */
    uint64_t read_ns; /* wall time that reading all samples took */
};
struct proc_sampler_counts proc_sampler_counts(const struct proc_sampler *s);

#endif
