/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where a sample's time goes, and what it reads of the program's memory, stage by stage: for tests/bench/stages.py, which
 * reads the array from outside. It is only in the sampler of build/tools/pycap_stages: code that the verifier would find dead
 * it removes piece by piece, which takes longer than it takes to look at the rest of the sampler.
 *
 * The counters belong to no CPU. They are right where what is sampled runs on one CPU alone.
 */
#ifndef BPF_STAGES_H
#define BPF_STAGES_H

/* In the order of the sampler. tests/bench/stages.py has the same. */
enum stage {
    STAGE_BEGIN,  /* whose tick it is, and whether it is sampled; the registers */
    STAGE_KERNEL, /* kernel frames */
    STAGE_STACK,  /* the innermost part of the user stack, read at once */
    STAGE_THREAD, /* the thread's state in CPython, the GIL, the interpreter */
    STAGE_PYTHON, /* Python frames and their code objects */
    STAGE_NATIVE, /* native frames */
    STAGE_REST,   /* the task's name, a copy of the stack */
    STAGE_SEND,
    STAGE_COUNT
};
#ifdef PYCAP_STAGES
struct wire_stage stage_counts[STAGE_COUNT] SEC(".data.stages");
struct wire_stage stage_now SEC(".data.stages"); /* since the last stage ended; `ns` is when that was, 0: nothing is counted */

/* A sample may begin here. */
static __always_inline void stage_start(void)
{
    stage_now.reads = stage_now.read_bytes = 0;
    stage_now.ns = bpf_ktime_get_ns();
}

/* What has begun is no sample of a process that user space knows: it isn't counted. */
static __always_inline void stage_drop(void)
{
    stage_now.ns = 0;
}

/* A read of the program's memory. */
static __always_inline void stage_read(__u64 len_bytes)
{
    stage_now.reads++;
    stage_now.read_bytes += len_bytes;
}

/* The stage has ended, and the next one begins. */
static __always_inline void stage_end(enum stage stage)
{
    if (!stage_now.ns)
        return;
    __u64 now_ns = bpf_ktime_get_ns();
    stage_counts[stage].samples++;
    stage_counts[stage].ns += now_ns - stage_now.ns;
    stage_counts[stage].reads += stage_now.reads;
    stage_counts[stage].read_bytes += stage_now.read_bytes;
    stage_now.reads = stage_now.read_bytes = 0;
    stage_now.ns = now_ns;
}
#else
#define stage_start() ((void)0)
#define stage_drop() ((void)0)
#define stage_read(len_bytes) ((void)0)
#define stage_end(stage) ((void)0)
#endif

#endif
