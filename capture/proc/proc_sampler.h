/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling without privilege: the Python frames of processes whose memory we may read
 * (our children, or our user's where ptrace is not restricted), by the same walker that
 * BPF runs, over process_vm_readv(). No native and no kernel frames.
 *
 * Nothing stops the process, so its stack may change while it is read. The way out is
 * the scheduler. A thread cannot run while we run on the CPU that it is bound to: we go
 * there, which takes it off, read, and leave. The kernel's records prove that it did
 * not run meanwhile: it is ours that runs on the CPU where it stands, and the number of
 * times it was given a CPU is the same before and after (schedstat). Such a stack is
 * exact. Where that is not possible (a CPU we may not use), the stack is read several
 * times. When the readings differ it is marked, and only the outer frames that they
 * have in common are kept.
 *
 * A sample stands for the CPU time that its thread has used since its last one, to the
 * nanosecond. A thread is sampled only when it has used some and runs or wants to: what
 * it used before it began to wait is carried over to its next sample.
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
/* `children`: of the processes that are followed, too. */
struct error *proc_sampler_create(struct processes *processes, uint64_t frequency_hz, bool children,
                                  struct proc_sampler **out);
void proc_sampler_destroy(struct proc_sampler *s);
/* Follows a process. `born`: its whole life is to be sampled. */
struct error *proc_sampler_follow(struct proc_sampler *s, uint32_t tgid, bool born);
/* Why a process cannot be sampled, with what to do about it; NULL when it can be. */
struct error *proc_sampler_check(const struct processes *processes, uint32_t tgid);
/* One round over all threads: hands over struct wire_sample messages, valid during the call. */
struct error *proc_sampler_round(struct proc_sampler *s, sampler_fn fn, void *ctx);
/* How long to wait until the next round: the period, give or take a fifth, so as not to march in step with a program. */
uint64_t proc_sampler_wait_ns(struct proc_sampler *s);

void proc_sampler_set_rate(struct proc_sampler *s, uint64_t frequency_hz);
/* What it samples, in place of cpu-clock. */
const struct event_source *proc_sampler_event(void);
/* Adds to `losses`. */
void proc_sampler_losses(const struct proc_sampler *s, uint64_t losses[LOSS_LIMIT]);

struct proc_sampler_counts {
    uint64_t samples;
    uint64_t still;   /* of them, of a thread that was shown not to have run while it was read */
    uint64_t read_ns; /* wall time of reading them */
};
struct proc_sampler_counts proc_sampler_counts(const struct proc_sampler *s);

#endif
