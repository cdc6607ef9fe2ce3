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
#include "bpf/live_stack.h"
#include "bpf/python_retry.h"
#include "bpf/sampler_ring.h"
#include "bpf/wire.h"

const volatile __u32 sample_native_stack_bytes = 0; /* copy at most this much of the user stack; 0: nothing */
const volatile __u32 sample_every_stack = 0;        /* copy it with each sample, not only if the unwinder could not go on */
const volatile __u32 sample_native = 0;             /* enum wire_native: how to unwind natively */
const volatile __u32 sample_unconfigured = 0;                /* processes that user space has not configured, too */
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
const volatile __u32 sample_check_unwind = 0;       /* unwind natively with and without cached rows, and compare */
volatile __u32 tables_changes = 0;  /* raised before and after unwind tables change: odd while they do */
volatile __u32 rows_generation = 0; /* changes when user space has taken an unwind table out: see bpf/native_rows.h */
volatile __u64 unwound_otherwise[2] = {}; /* of a stack that differed: how it ended without cached rows and with, and frames above bit 32 */
volatile __u32 code_generation = 0; /* changes when user space has forgotten the code objects it was sent */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u32);
    __type(value, struct wire_process);
} processes SEC(".maps");

/* Of a process in which two interpreters run: the one whose states are looked for where the first has none. As above; BPF does not write. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, WIRE_RIVALS);
    __type(key, __u32);
    __type(value, struct wire_process);
} rivals SEC(".maps");

/*
 * How many entries there are, in `processes` and of threads in `waits`, of processes with such a tgid (modulo its size). At
 * most switches between threads nobody is followed: this says so without a look-up. User space counts what it adds, too.
 */
__u32 followed[WIRE_FOLLOWED] = {0};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384); /* user space sets it */
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
    __uint(max_entries, 4096); /* user space sets it */
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
    __u64 unread;           /* the search ended at memory that could not be read: it may have one */
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384); /* user space sets it */
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

/*
 * Unwind tables lie in words of 8 bytes, and these in chunks: an array takes all of its memory when it is made, so user space
 * makes one when it needs more (capture/sampler/table_chunks.h). All chunks are of one size: then both look-ups are a few
 * instructions, not calls. User space writes to chunks, modules and mappings through mmap, and sets how many there may be.
 */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, 1);
        __uint(key_size, sizeof(__u32));
        __uint(value_size, WIRE_CHUNK_BYTES);
    });
} table_chunks SEC(".maps");

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
static __always_inline struct live_stack *native_live(struct native_unwind *u);
int native_word(__u64 address);
/* The words from `at` on; `mask` leaves out those behind which not enough follow. */
static __always_inline void *table_words(__u32 at, __u32 mask)
{
    __u32 number = at >> WIRE_CHUNK_SHIFT, first = 0;
    void *chunk = bpf_map_lookup_elem(&table_chunks, &number);
    __u64 *words = chunk ? bpf_map_lookup_elem(chunk, &first) : 0, in = at;

    WALK_BOUND(in, mask);
    return words ? words + in : 0;
}
/* Element `n`, of so many words (a power of two), of a part of the current module's table. */
#define NATIVE_ELEMENT(start, count, n, size)                                                                   \
    ({                                                                                                          \
        __u32 element_ = (n);                                                                                   \
        element_ < (count) ? table_words((start) + element_ * (size), WIRE_CHUNK_WORDS - (size)) : (void *)0;   \
    })
#define NATIVE_MAPPING(u, address) native_find(u, address)
#define NATIVE_ROW(u, n) NATIVE_ELEMENT((u)->mapping.row_start, (u)->mapping.row_count, n, 1)
#define NATIVE_INDEX(u, n) NATIVE_ELEMENT((u)->mapping.index_start, (u)->mapping.index_count, n, 1)
#define NATIVE_WIDE(u, n) NATIVE_ELEMENT((u)->mapping.wide_start, (u)->mapping.wide_count, n, WIRE_WIDE_WORDS)
#define NATIVE_STACK(u) native_live(u)
#define NATIVE_READ(u, address) native_word(address)
#include "bpf/native_rows.h"

/* What is read from the current task's structures. */
struct task_facts {
    __u64 start_boottime_ns, exec_generation;
    __u64 thread_pointer;
    __u64 memory;      /* address of its struct mm_struct; 0: a kernel thread has none */
    __u64 stack_start; /* the first thread's: where the kernel put the arguments */
    __u32 flags;
};

/* For which process an epoch of struct walk_codes goes on while its counter stands (bpf/sampler_codes.h). */
struct code_owner {
    __u64 start_boottime_ns, exec_generation;
    __u64 epoch;
    __u32 tgid;
    __u32 generation; /* scratch.code_generation */
    __u32 counter;    /* 0: there is none */
    __u32 reserved;
};
#define CODE_OWNERS 16 /* a power of two */

/* What came of an unwinding. */
struct unwound {
    __u64 frames; /* all of them, mixed */
    __u64 last_cfa;
    __u32 count, end, other, guesses;
};

/*
 * State and buffers of a CPU: an element of an ordinary array map, since values of per-CPU maps have 32 KiB at most.
 */
#define SENT_CODES 256
/* Where the parts of a message begin at most: behind the largest ones before them. */
#define MESSAGE_PYTHON_AT (sizeof(struct wire_sample) + WIRE_KERNEL_MAX * 8)
#define MESSAGE_NATIVE_AT (MESSAGE_PYTHON_AT + WIRE_PYTHON_MAX * sizeof(struct wire_python))
#define MESSAGE_TASK_AT (MESSAGE_NATIVE_AT + WIRE_NATIVE_MAX * sizeof(struct native_frame))
#define MESSAGE_STACK_AT (MESSAGE_TASK_AT + WIRE_TASK_MAX)
/* Bounds an offset, by instructions that the compiler keeps. The verifier looks at those that are not out of bounds first. */
#define MESSAGE_BOUND(offset, most) asm volatile("if %0 > %1 goto +1\ngoto +1\n%0 = %1" : "+r"(offset) : "i"(most))
/* What a sample may have while the ring fills up: Python entries, native frames, and bytes with its copy of the stack. */
#define CUT_ENTRIES 256
#define CUT_BYTES (16 << 10)
struct scratch {
    struct py_walk walk;
    struct code_copy copy;
    struct native_unwind native;
    struct live_stack live; /* of the sample; empty where it was not read */
    __u32 python_at, native_at; /* where their entries go in the message */
    __u32 mapping_start, mapping_count; /* the process's part of `mappings`; the count is read when it is needed */
    __u32 mapping_key;                  /* of that list, as in struct wire_process */
    __u32 mapping_low, mapping_high;    /* of the search */
    __u32 space;
    __u32 code_generation; /* of `code_generation`, that `space` is of */
    struct code_owner code_owners[CODE_OWNERS]; /* by tgid */
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
    __u32 rows_generation; /* of `rows_generation`, that `rows` are of */
    struct native_row rows[NATIVE_ROWS];
    struct unwound unwound; /* only where both ways of unwinding are compared, as the next */
    __u32 tables_changes;   /* of `tables_changes`, when the first began */
    union {
        struct wire_sample sample;
        __u8 message[MESSAGE_STACK_AT + WIRE_STACK_ROOM]; /* without copies of stacks user space leaves their part out */
    };
};
_Static_assert(__builtin_offsetof(struct scratch, message) + sizeof(((struct scratch *)0)->message) == sizeof(struct scratch),
               "the message's end can be left out");
/* A program that runs on a CPU that came online later finds none: as if one that was interrupted had it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* user space sets it to one more than the highest CPU that is online */
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct scratch)); /* by its size, which user space may lower */
} scratches SEC(".maps");

/* The stack that was read for the sample, for a walker in a scratch. */
static __always_inline struct live_stack *native_live(struct native_unwind *u)
{
    return (void *)u - offsetof(struct scratch, native) + offsetof(struct scratch, live);
}

static __always_inline const struct live_stack *walk_live(const struct py_walk *w)
{
    return (const void *)w - offsetof(struct scratch, walk) + offsetof(struct scratch, live);
}

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
    stage_start();
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

static __always_inline void add_stat(__u32 stat, __u64 count)
{
    __u64 *n = bpf_map_lookup_elem(&stats, &stat);

    if (n)
        *n += count;
}

static __always_inline void count_stat(__u32 stat)
{
    add_stat(stat, 1);
}

/* Counts time as spent in the sampler; `stat` says at what. */
static __always_inline void count_time(__u32 stat, __u64 ns)
{
    add_stat(stat, ns);
}

/* Counts the time since `start_ns`, in which no stack was taken: only of some looks, since to read the clock takes time as well. */
static __always_inline void count_look_time(__u64 start_ns)
{
    /* Clocks count nanoseconds, so these bits are as good as random. */
    if (!(start_ns & (WIRE_LOOKS_TIMED - 1) << 4))
        count_time(WIRE_STAT_LOOK_NS, (bpf_ktime_get_ns() - start_ns) * WIRE_LOOKS_TIMED);
}

/* How long a message may be. */
static __always_inline __u64 message_most_bytes(void)
{
    return sample_native_stack_bytes ? MESSAGE_STACK_AT + WIRE_STACK_MAX : MESSAGE_STACK_AT;
}

static __always_inline struct wire_python *python_entries(struct scratch *s)
{
    __u64 at = s->python_at;

    MESSAGE_BOUND(at, MESSAGE_PYTHON_AT);
    return (void *)(s->message + at);
}

static __always_inline struct native_frame *native_entries(struct scratch *s)
{
    __u64 at = s->native_at;

    MESSAGE_BOUND(at, MESSAGE_NATIVE_AT);
    return (void *)(s->message + at);
}

#endif
