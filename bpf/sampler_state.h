/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the sampler's parts share: the settings of user space, the maps, and the state of
 * the sample that a CPU takes.
 */
#ifndef BPF_SAMPLER_STATE_H
#define BPF_SAMPLER_STATE_H

#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#include "bpf/code_copy.h"
#include "bpf/python_retry.h"
#include "bpf/wire.h"

const volatile __u32 sample_native_stack_bytes = 0; /* copy at most this much of the user stack; 0: nothing */
const volatile __u32 sample_every_stack = 0;        /* copy it with each sample, not only if the unwinder could not go on */
const volatile __u32 sample_native = 0;             /* enum wire_native: how to unwind natively */
const volatile __u32 sample_unconfigured = 0;                /* processes that user space has not configured, too */
const volatile __u32 sample_wake_bytes = 1 << 20;   /* wake user space when the ring holds more */
/* Code objects are sent while the ring holds less than this, so that samples always find room. */
const volatile __u32 code_most_bytes = 1 << 20;
/* While the ring holds more than this, samples lose what makes them large: who sends large ones shall lose first. */
const volatile __u32 sample_whole_bytes = 1 << 20;
const volatile __u32 sample_timed = 0;              /* count the time spent here */
const volatile __u32 sample_kernel = 1;
const volatile __u32 sample_event_count = 1;
/* What a sample of each event stands for; 0: what the context says. A clock's context goes on naming its event's first
   period. */
volatile __u64 sample_periods[WIRE_EVENT_MAX] = {0};
const volatile __u32 sample_python = 1;
volatile __u32 code_generation = 0; /* changes when user space has forgotten the code objects it was sent */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20); /* user space sets it */
} ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u32);
    __type(value, struct wire_process);
} processes SEC(".maps");

/*
 * How many entries there are, in `processes` and of threads in `waits`, of processes with such a tgid (modulo its size). At
 * most switches between threads nobody is followed: this says so without a look-up. User space counts what it adds, too.
 */
__u32 followed[WIRE_FOLLOWED] = {0};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, __u32);
    __type(value, struct wire_unknown);
} unknown SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, struct py_layout);
} layouts SEC(".maps");

/* Code objects that were sent to user space. */
struct code_key {
    __u64 code;
    __u32 fingerprint;
    __u32 space; /* of the address space: pid, start time and image, mixed */
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 131072);
    __type(key, struct code_key);
    __type(value, __u32);
} codes SEC(".maps");

/* What an address space has sent of code objects in a second, key code_key.space. */
struct code_spent {
    __u64 second, bytes;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32);
    __type(value, struct code_spent);
} code_spent SEC(".maps");

/* What a search over the lists of thread states found: a thread's state (0: it has none), and when. */
struct thread_key {
    __u32 tid, space;
};
struct thread_value {
    __u64 tstate;           /* 0: it has none */
    __u64 time_ns, wait_ns; /* when it was searched for, and how long not to do so again */
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct thread_key);
    __type(value, struct thread_value);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, WIRE_LOSS_COUNT);
    __type(key, __u32);
    __type(value, __u64);
} losses SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, WIRE_STAT_COUNT);
    __type(key, __u32);
    __type(value, __u64);
} stats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, WIRE_EVENT_MAX);
    __type(key, __u32);
    __type(value, struct wire_event_stats);
} event_stats SEC(".maps");

/* The kernel's number of a perf event -> index of the event. Filled only where there are several. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1); /* user space sets it to events x CPUs */
    __type(key, __u64);
    __type(value, __u32);
} event_numbers SEC(".maps");

/* Unwind tables and mappings. User space sets their sizes and writes to them through mmap. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct unwind_row);
} unwind_rows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} unwind_index SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct unwind_wide);
} unwind_wide_rows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct wire_module);
} modules SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct wire_mapping);
} mappings SEC(".maps");

struct native_unwind;
static __always_inline __u32 native_find(struct native_unwind *u, __u64 address);
/* Element `n` of the current module's part of an array. */
#define NATIVE_ELEMENT(map, start, count, n)                                       \
    ({                                                                             \
        __u32 element_ = (n);                                                      \
        void *found_ = 0;                                                          \
        if (element_ < (count)) {                                                  \
            element_ += (start);                                                   \
            found_ = bpf_map_lookup_elem(&map, &element_);                         \
        }                                                                          \
        found_;                                                                    \
    })
#define NATIVE_MAPPING(u, address) native_find(u, address)
#define NATIVE_ROW(u, n) NATIVE_ELEMENT(unwind_rows, (u)->mapping.row_start, (u)->mapping.row_count, n)
#define NATIVE_INDEX(u, n) NATIVE_ELEMENT(unwind_index, (u)->mapping.index_start, (u)->mapping.index_count, n)
#define NATIVE_WIDE(u, n) NATIVE_ELEMENT(unwind_wide_rows, (u)->mapping.wide_start, (u)->mapping.wide_count, n)
#include "bpf/native_unwind.h"

/* What is read from the current task's structures. */
struct task_facts {
    __u64 start_boottime_ns, exec_generation;
    __u64 thread_pointer;
    __u64 memory;      /* address of its struct mm_struct; 0: a kernel thread has none */
    __u64 stack_start; /* the first thread's: where the kernel put the arguments */
    __u32 flags;
};

/*
 * State and buffers of a CPU: an element of an ordinary array map, since values of per-CPU maps have 32 KiB at most.
 */
#define SENT_CODES 256
#define SAMPLE_BUFFER_MASK 262143
/* What a sample may have while the ring fills up: Python entries, native frames, and bytes with its copy of the stack. */
#define CUT_ENTRIES 256
#define CUT_BYTES (16 << 10)
struct scratch {
    struct py_walk walk;
    struct code_copy copy;
    struct native_unwind native;
    __u32 python_at, native_at; /* where their entries go in the message */
    __u32 mapping_start, mapping_count; /* the process's part of `mappings` */
    __u32 mapping_low, mapping_high;    /* of the search */
    __u32 space;
    struct code_key sent[SENT_CODES]; /* code objects that are in `codes` */
    __u32 code_bytes, code_count; /* of code objects that were sent for this sample */
    __u32 cut;                    /* the ring fills up: the sample has to be small */
    __u64 snapshot_start, snapshot_at; /* where the user stack goes in the message, and its next page */
    __u64 snapshot_address;
    __u64 snapshot_left;
    __u32 snapshot_pages; /* that were tried */
    struct pt_regs regs;
    struct task_facts facts;
    /*
     * Set for as long as a program uses this CPU's scratch, an LRU map or the ring. The kernel lets no perf_event program
     * interrupt another one, but programs of other types may be interrupted by those, in an NMI even; then LRU maps and
     * the ring are in a state that must not be met, so a second scratch would not do.
     */
    __u32 busy;
    union {
        struct wire_sample sample;
        __u8 message[SAMPLE_BUFFER_MASK + 1 + WIRE_STACK_MAX + 4096];
    };
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* user space sets it to the number of possible CPUs */
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline void count_followed(__u32 tgid, int more)
{
    __sync_fetch_and_add(&followed[tgid & (WIRE_FOLLOWED - 1)], more);
}

/* Whether something may be known of a process. */
static __always_inline int may_be_followed(__u32 tgid)
{
    return *(volatile __u32 *)&followed[tgid & (WIRE_FOLLOWED - 1)] != 0;
}

/* Adds a process to those that are followed, or changes what is known of it. It is counted first: who finds it finds the count. */
static __always_inline void follow(__u32 tgid, const struct wire_process *process)
{
    count_followed(tgid, 1);
    if (!bpf_map_update_elem(&processes, &tgid, process, BPF_NOEXIST))
        return;
    count_followed(tgid, -1);
    bpf_map_update_elem(&processes, &tgid, process, BPF_EXIST);
}

static __always_inline struct scratch *scratch_get(void)
{
    __u32 cpu = bpf_get_smp_processor_id();

    return bpf_map_lookup_elem(&scratches, &cpu);
}

/* Takes this CPU's scratch until scratch_leave(); NULL where a program that was interrupted has it. */
static __always_inline struct scratch *scratch_enter(void)
{
    struct scratch *s = scratch_get();

    /* Volatile: whoever interrupts us must find it set before we touch anything. */
    if (!s || *(volatile __u32 *)&s->busy)
        return 0;
    *(volatile __u32 *)&s->busy = 1;
    return s;
}

static __always_inline void scratch_leave(struct scratch *s)
{
    asm volatile("" ::: "memory");
    *(volatile __u32 *)&s->busy = 0;
}

static __always_inline void count_loss(__u32 reason)
{
    __u64 *n = bpf_map_lookup_elem(&losses, &reason);

    if (n)
        ++*n;
}

static __always_inline void count_losses(__u32 reason, __u64 count)
{
    __u64 *n = bpf_map_lookup_elem(&losses, &reason);

    if (n)
        *n += count;
}

/* Counts the loss of a part of a sample; not if user space may drop the sample, which then shows what it lacks. */
static __always_inline void count_part_loss(struct scratch *s, __u32 reason)
{
    if (sample_unconfigured || !(s->sample.flags & (WIRE_UNCONFIGURED | WIRE_STALE)))
        count_loss(reason);
}

static __always_inline void count_stat(__u32 stat)
{
    __u64 *n = bpf_map_lookup_elem(&stats, &stat);

    if (n)
        ++*n;
}

/* Counts time as spent in the sampler; `stat` says at what. */
static __always_inline void count_time(__u32 stat, __u64 ns)
{
    __u64 *spent = bpf_map_lookup_elem(&stats, &stat);

    if (spent)
        *spent += ns;
}

/* Counts the time since `start_ns`, in which no stack was taken: only of some looks, since to read the clock takes time as well. */
static __always_inline void count_look_time(__u64 start_ns)
{
    /* Clocks count nanoseconds, so these bits are as good as random. */
    if (!(start_ns & (WIRE_LOOKS_TIMED - 1) << 4))
        count_time(WIRE_STAT_LOOK_NS, (bpf_ktime_get_ns() - start_ns) * WIRE_LOOKS_TIMED);
}

/* A sample wakes nobody, unless the ring would be full before user space drains it next. */
static __always_inline __u64 ring_flags(void)
{
    return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > sample_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Where a part of the message goes. Behind the mask there is room for the largest part. */
static __always_inline void *message_at(struct scratch *s, __u32 at)
{
    __u64 to = at;

    WALK_BOUND(to, SAMPLE_BUFFER_MASK);
    return s->message + to;
}

#endif
