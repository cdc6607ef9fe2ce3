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
 * thread used before it began to wait is added to its next sample.
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
/* `children`: follow the children of followed processes, too. `processes` is borrowed. */
struct error *proc_sampler_create(struct processes *processes, uint64_t frequency_hz, bool children,
                                  struct proc_sampler **out);
void proc_sampler_destroy(struct proc_sampler *s);
/*
 * Adds processes to sample, and with `children` those that descend from them already. Their CPU time up to now needs no
 * samples.
 */
struct error *proc_sampler_follow(struct proc_sampler *s, const uint32_t *pids, uint32_t count);
/* Why a process cannot be sampled, with what to do about it; NULL when it can be. */
struct error *proc_sampler_check(const struct processes *processes, uint32_t tgid);
/* Samples all threads once; calls `fn` with a struct wire_sample message for each sample, valid during that call. */
struct error *proc_sampler_round(struct proc_sampler *s, sampler_fn fn, void *ctx);
/*
 * How long to wait until the next round: the period, varied at random by up to a fifth to avoid lockstep with a
 * program.
 */
uint64_t proc_sampler_wait_ns(struct proc_sampler *s);

void proc_sampler_set_rate(struct proc_sampler *s, uint64_t frequency_hz);
/* The event that the trace names for these samples; it takes the place of cpu-clock. */
const struct event_source *proc_sampler_event(void);
/* Adds the losses so far to `losses`. */
void proc_sampler_losses(const struct proc_sampler *s, uint64_t losses[LOSS_LIMIT]);

struct proc_sampler_counts {
    uint64_t samples;
    uint64_t still;   /* samples of a thread that provably did not run while it was read */
    uint64_t read_ns; /* wall time that reading all samples took */
};
struct proc_sampler_counts proc_sampler_counts(const struct proc_sampler *s);

#endif
