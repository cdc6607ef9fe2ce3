// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sampler: runs at each tick of a perf event on every CPU.
 *
 * For a process that user space has configured it takes the kernel stack, the user
 * registers, the Python frames (bpf/python_walk.h), the native frames
 * (bpf/native_unwind.h) and, where those could not be had or where it is asked for, a
 * copy of the live part of the user stack, and puts them into one ring buffer without
 * waking anybody. A code object that was not met before in this address space is copied into
 * the ring just before the sample that refers to it. The parts are independent of
 * each other; what fails is counted by reason and costs nothing else.
 *
 * Loops: each step is a function of its own (global, so that the verifier looks at it
 * once, on every kernel since 5.10), called from a bounded loop. State and buffers lie
 * in an ordinary array map with an element per CPU, since per-CPU maps end at 32 KiB.
 */
#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/code_copy.h"
#include "bpf/python_walk.h"
#include "bpf/wire.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 sample_native_stack_bytes = 0; /* copy at most so much of the user stack; 0: none */
const volatile __u32 sample_every_stack = 0;        /* copy it always, not only where the unwinder could not go on */
const volatile __u32 sample_native = 0;             /* enum wire_native: how to unwind natively */
const volatile __u32 sample_all = 0;                /* processes that user space has not configured, too */
const volatile __u32 sample_wake_bytes = 1 << 20;   /* user space is woken when the ring holds more */
const volatile __u32 sample_timed = 0;              /* count the time spent here */
const volatile __u32 sample_kernel = 1;
/* What a sample stands for. A clock's context goes on naming the period that its event was made with. */
volatile __u64 sample_period = 0;
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

/* Code objects that were sent. */
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

/* Thread states that only the list had: per thread, the state (0: none) and when that was found out. */
struct thread_key {
    __u32 tid, space;
};
struct thread_value {
    __u64 tstate, time_ns;
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

/* Unwind tables and mappings, written by user space through mmap; their sizes are user space's to set. */
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

#define SENT_CODES 256
#define SAMPLE_BUFFER_MASK 262143
struct scratch {
    struct py_walk walk;
    struct code_copy copy;
    struct native_unwind native;
    __u32 python_at, native_at; /* where their entries go in the message */
    __u32 mapping_start, mapping_count; /* the process's part of `mappings` */
    __u32 mapping_low, mapping_high;    /* of the search */
    __u32 space;
    __u32 steps;
    struct code_key sent[SENT_CODES]; /* code objects that `codes` has */
    __u64 snapshot_at; /* where the next page of the user stack goes */
    __u64 snapshot_address;
    __u64 snapshot_left;
    struct pt_regs regs;
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

static __always_inline struct scratch *scratch_get(void)
{
    __u32 cpu = bpf_get_smp_processor_id();

    return bpf_map_lookup_elem(&scratches, &cpu);
}

static __always_inline void count_loss(__u32 reason)
{
    __u64 *n = bpf_map_lookup_elem(&losses, &reason);

    if (n)
        ++*n;
}

/* Of a part of a sample. One that may not be wanted in the end says so by what it lacks only. */
static __always_inline void count_part_loss(struct scratch *s, __u32 reason)
{
    if (sample_all || !(s->sample.flags & (WIRE_UNCONFIGURED | WIRE_STALE)))
        count_loss(reason);
}

static __always_inline void count_stat(__u32 stat)
{
    __u64 *n = bpf_map_lookup_elem(&stats, &stat);

    if (n)
        ++*n;
}

/* Nobody is woken for a sample, unless the ring fills sooner than the next time of draining. */
static __always_inline __u64 ring_flags(void)
{
    return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > sample_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Sends the code object that the walk has just met, unless it was sent before. */
static __always_inline void code_met(struct scratch *s)
{
    struct code_key key = {.code = s->walk.new_code, .fingerprint = s->walk.new_fingerprint, .space = s->space};
    __u32 one = 1;

    /* What this CPU met a moment ago costs no look into the map. */
    __u64 slot = (key.code >> 4) ^ (key.code >> 12);
    WALK_BOUND(slot, SENT_CODES - 1);
    struct code_key *sent = &s->sent[slot];
    if (sent->code == key.code && sent->fingerprint == key.fingerprint && sent->space == key.space)
        return;
    if (bpf_map_lookup_elem(&codes, &key)) {
        *sent = key;
        return;
    }
    s->copy.event.type = WIRE_CODE;
    s->copy.event.fingerprint = key.fingerprint;
    s->copy.event.time_ns = s->sample.time_ns;
    s->copy.event.tgid = s->sample.tgid;
    s->copy.event.layout = s->walk.process.layout;
    s->copy.event.start_boottime_ns = s->sample.start_boottime_ns;
    s->copy.event.exec_generation = s->sample.exec_generation;
    s->copy.event.address = key.code;
    __u64 len = copy_code(&s->walk, &s->copy);
    if (len > sizeof s->copy.event + COPY_BUFFER_MASK)
        len = sizeof s->copy.event + COPY_BUFFER_MASK;
    if (bpf_ringbuf_output(&ring, &s->copy.event, len, ring_flags())) {
        count_loss(LOSS_code_ring_full);
        return;
    }
    bpf_map_update_elem(&codes, &key, &one, BPF_ANY);
    count_stat(WIRE_STAT_CODES);
}

/* Where a part of the message goes. What is behind the mask has room for the largest part. */
static __always_inline void *message_at(struct scratch *s, __u32 at)
{
    __u64 to = at;

    WALK_BOUND(to, SAMPLE_BUFFER_MASK);
    return s->message + to;
}

/* A few frames. 1: the walk has ended. */
__attribute__((noinline)) int python_steps(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 1;
    struct wire_python *entries = message_at(s, s->python_at);
    for (int i = 0; i < 4; i++) {
        int ended = walk_step(&s->walk, entries);
        if (s->walk.new_code)
            code_met(s);
        if (ended)
            return 1;
    }
    return 0;
}

/* Likewise, of frames that are objects. */
__attribute__((noinline)) int object_steps(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 1;
    struct wire_python *entries = message_at(s, s->python_at);
    for (int i = 0; i < 4; i++) {
        int ended = walk_object_step(&s->walk, entries);
        if (s->walk.new_code)
            code_met(s);
        if (ended)
            return 1;
    }
    return 0;
}

__attribute__((noinline)) int list_steps(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 1;
    for (int i = 0; i < 8; i++) {
        if (walk_list_step(&s->walk))
            return 1;
    }
    return 0;
}

#define LIST_LIMIT 4096
#define LIST_RETRY_NS 1000000000ull

/* The way over the list of thread states, for where the quick ways do not serve; remembers what it found. */
__attribute__((noinline)) int list_find(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    struct thread_key key = {.tid = s->sample.tid, .space = s->space};
    struct thread_value *known = bpf_map_lookup_elem(&threads, &key);
    if (known && !s->walk.list_others) {
        if (known->tstate && walk_is_own(&s->walk, known->tstate)) {
            s->walk.tstate = known->tstate;
            return 0;
        }
        if (!known->tstate && s->sample.time_ns - known->time_ns < LIST_RETRY_NS)
            return 0;
    }
    count_stat(WIRE_STAT_LISTS);
    if (!walk_list_begin(&s->walk, LIST_LIMIT)) {
        for (int i = 0; i < LIST_LIMIT / 8; i++) {
            if (list_steps())
                break;
        }
        if (!s->walk.list_left)
            count_loss(LOSS_thread_state_walk);
    }
    if (s->walk.list_others)
        return 0;
    struct thread_value found = {.tstate = s->walk.tstate, .time_ns = s->sample.time_ns};
    bpf_map_update_elem(&threads, &key, &found, BPF_ANY);
    return 0;
}

/* Python frames, at s->python_at; how it ended into s->sample.python_end. */
__attribute__((noinline)) int walk_python(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    if (!walk_find_tstate(&s->walk))
        list_find();
    if (!s->walk.tstate) {
        /* A thread that Python does not know. Up to 3.11 it may run with a state that another thread made. */
        s->sample.flags |= s->walk.process.tls_kind != PY_TLS_NONE ? s->walk.gil : 0;
        if (s->walk.doubtful) {
            s->sample.python_end = LOSS_no_thread_state;
            count_loss(LOSS_no_thread_state);
        }
        return 0;
    }
    s->sample.flags |= s->walk.gil;
    s->sample.thread_handle = s->walk.thread_pointer;
    walk_interpreter(&s->walk);
    s->sample.interpreter = s->walk.interp;
    s->sample.interpreter_id = s->walk.interp_id;
    if (s->walk.layout.frame_kind == PY_FRAMES_OBJECT) {
        if (!walk_object_begin(&s->walk)) {
            for (int i = 0; i < WIRE_PYTHON_MAX / 4; i++) {
                if (object_steps())
                    break;
            }
            if (!s->walk.end)
                s->walk.end = LOSS_python_too_deep;
        }
    } else if (!walk_begin(&s->walk)) {
        for (int i = 0; i < WIRE_PYTHON_MAX / 4; i++) {
            if (python_steps())
                break;
        }
        if (!s->walk.end)
            s->walk.end = LOSS_python_too_deep;
    }
    s->sample.python_end = s->walk.end;
    if (s->walk.end != LOSS_complete)
        count_loss(s->walk.end);
    if (s->walk.retried)
        count_stat(WIRE_STAT_RETRIES);
    return 0;
}

/* Appends the name of the running task to the message at `at`. */
__attribute__((noinline)) int append_task(__u32 at)
{
    struct scratch *s = scratch_get();
    __u64 to = at, len;

    if (!s)
        return 0;
    walk_task(&s->walk);
    len = s->walk.task_len;
    WALK_BOUND(to, SAMPLE_BUFFER_MASK);
    WALK_BOUND(len, 2 * WIRE_TASK_MAX - 1);
    if (!len || len > WIRE_TASK_MAX || bpf_probe_read_kernel(s->message + to, len, s->walk.task))
        return 0;
    s->sample.task_len_bytes = len;
    return (int)len;
}

/* Sets u->mapping to the mapping that holds `address`, and to where its module's table lies. 0, or the loss reason. */
static __always_inline __u32 native_find(struct native_unwind *u, __u64 address)
{
    struct scratch *s = scratch_get();

    if (!s)
        return LOSS_no_mapping;
    if (sample_native == WIRE_NATIVE_FRAME_POINTERS) {
        u->mapping.start = 0;
        u->mapping.end = ~0ull;
        u->mapping.flags = NATIVE_NO_TABLE | NATIVE_BY_POINTERS;
        return 0;
    }
    s->mapping_low = 0;
    s->mapping_high = s->mapping_count;
    for (int i = 0; i < 20; i++) {
        __u32 low = s->mapping_low, high = s->mapping_high;
        if (low >= high)
            break;
        __u32 middle = low + (high - low) / 2, at = s->mapping_start + middle;
        struct wire_mapping *m = bpf_map_lookup_elem(&mappings, &at);
        if (!m)
            return LOSS_no_mapping;
        if (m->end <= address)
            s->mapping_low = middle + 1;
        else
            s->mapping_high = middle;
    }
    if (s->mapping_low >= s->mapping_count)
        return LOSS_no_mapping;
    __u32 at = s->mapping_start + s->mapping_low;
    struct wire_mapping *m = bpf_map_lookup_elem(&mappings, &at);
    if (!m || address < m->start || address >= m->end)
        return LOSS_no_mapping;
    u->mapping.start = m->start;
    u->mapping.end = m->end;
    u->mapping.base = m->base;
    u->mapping.flags = m->flags & WIRE_MAPPING_ANONYMOUS ? NATIVE_NO_TABLE : 0;
    u->mapping.row_count = 0;
    if (u->mapping.flags)
        return 0;
    __u32 number = m->module;
    if (number == WIRE_NO_MODULE)
        return LOSS_no_module;
    struct wire_module *module = bpf_map_lookup_elem(&modules, &number);
    if (!module || !module->row_count)
        return module && module->row_start == WIRE_NO_TABLE ? LOSS_no_unwind_info : LOSS_table_missing;
    module->used_s = s->sample.time_ns / 1000000000;
    u->mapping.row_start = module->row_start;
    u->mapping.row_count = module->row_count;
    u->mapping.index_start = module->index_start;
    u->mapping.index_first = module->index_first;
    u->mapping.index_count = module->index_count;
    u->mapping.wide_start = module->wide_start;
    u->mapping.wide_count = module->wide_count;
    return 0;
}

/* Two native frames. 1: the unwinding has ended. */
__attribute__((noinline)) int native_steps(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 1;
    struct native_frame *frames = message_at(s, s->native_at);
    return native_step(&s->native, frames) || native_step(&s->native, frames);
}

/* Native frames, at s->native_at. */
__attribute__((noinline)) int unwind_native(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    for (int i = 0; i < WIRE_REGISTERS; i++)
        s->native.registers[i] = s->sample.registers[i];
    native_begin(&s->native);
    for (int i = 0; i < WIRE_NATIVE_MAX / 2 + 1; i++) {
        if (native_steps())
            break;
    }
    s->sample.native_end = s->native.end;
    s->sample.native_last_cfa = s->native.last_cfa;
    return 0;
}

/* One page of the user stack. 1: no more. */
__attribute__((noinline)) int snapshot_step(void)
{
    struct scratch *s = scratch_get();

    if (!s || !s->snapshot_left)
        return 1;
    __u64 to = s->snapshot_at, len = 4096 - (s->snapshot_address & 4095);
    if (len > s->snapshot_left)
        len = s->snapshot_left;
    WALK_BOUND(to, SAMPLE_BUFFER_MASK);
    WALK_BOUND(len, 8191);
    if (len > 4096 || bpf_probe_read_user(s->message + to, len, (void *)s->snapshot_address))
        return 1;
    s->snapshot_at += len;
    s->snapshot_address += len;
    s->snapshot_left -= len;
    s->sample.stack_len_bytes += len;
    return 0;
}

/*
 * Appends the live part of the user stack at `at`, with the red zone if it is there: OpenSSL's SHA-512 for AVX2 keeps
 * its CFA in it.
 */
__attribute__((noinline)) int append_stack(__u32 at)
{
    struct scratch *s = scratch_get();
    __u64 to = at, len, sp;

    if (!s)
        return 0;
    sp = s->sample.registers[7];
    len = s->sample.stack_size;
    if (!bpf_probe_read_user(&s->snapshot_address, 8, (void *)(sp - WIRE_RED_ZONE))) {
        s->sample.flags |= WIRE_STACK_BELOW;
        sp -= WIRE_RED_ZONE;
        len += len ? WIRE_RED_ZONE : 0;
    }
    if (!len || len > sample_native_stack_bytes) {
        if (len)
            count_part_loss(s, LOSS_stack_cut);
        len = sample_native_stack_bytes;
    } else {
        s->sample.flags |= WIRE_STACK_WHOLE;
    }
    if (len > WIRE_STACK_MAX)
        len = WIRE_STACK_MAX;
    WALK_BOUND(to, SAMPLE_BUFFER_MASK);
    WALK_BOUND(len, WIRE_STACK_MAX * 2 - 1);
    if (!len || len > WIRE_STACK_MAX)
        return 0;
    if (!bpf_probe_read_user(s->message + to, len, (void *)sp)) {
        s->sample.stack_len_bytes = len;
        return 0;
    }
    /* Some of it is not there: page by page as far as it goes. */
    s->snapshot_at = to;
    s->snapshot_address = sp;
    s->snapshot_left = len;
    for (int i = 0; i < WIRE_STACK_MAX / 4096 + 1; i++) {
        if (snapshot_step())
            break;
    }
    if (s->sample.stack_len_bytes < len) {
        s->sample.flags &= ~WIRE_STACK_WHOLE;
        if (s->sample.stack_size)
            count_part_loss(s, LOSS_stack_fault);
    }
    return 0;
}

static __always_inline void registers_from(struct wire_sample *m, const struct pt_regs *r)
{
    m->registers[0] = r->ax;
    m->registers[1] = r->dx;
    m->registers[2] = r->cx;
    m->registers[3] = r->bx;
    m->registers[4] = r->si;
    m->registers[5] = r->di;
    m->registers[6] = r->bp;
    m->registers[7] = r->sp;
    m->registers[8] = r->r8;
    m->registers[9] = r->r9;
    m->registers[10] = r->r10;
    m->registers[11] = r->r11;
    m->registers[12] = r->r12;
    m->registers[13] = r->r13;
    m->registers[14] = r->r14;
    m->registers[15] = r->r15;
    m->registers[16] = r->ip;
}

/* What is read of the current task. */
struct task_facts {
    __u64 start_boottime_ns, exec_generation;
    __u64 thread_pointer;
    __u64 memory;      /* struct mm_struct; 0: a kernel thread's */
    __u64 stack_start; /* of the first thread: where the kernel put the arguments */
    __u32 flags;
};

/* Where the kernel gives a pointer whose type the verifier knows (5.11+), fields are loaded without a call for each. */
static __always_inline void task_read(struct task_facts *facts)
{
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
        struct task_struct *task = bpf_get_current_task_btf();
        struct mm_struct *mm = task->mm;

        facts->start_boottime_ns = task->group_leader->start_boottime;
        facts->exec_generation = task->self_exec_id;
        facts->thread_pointer = task->thread.fsbase;
        facts->memory = (__u64)mm;
        facts->stack_start = mm ? mm->start_stack : 0;
        facts->flags = task->flags;
    } else {
        struct task_struct *task = (void *)bpf_get_current_task();

        facts->start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
        facts->exec_generation = BPF_CORE_READ(task, self_exec_id);
        facts->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
        facts->memory = (__u64)BPF_CORE_READ(task, mm);
        facts->stack_start = BPF_CORE_READ(task, mm, start_stack);
        facts->flags = BPF_CORE_READ(task, flags);
    }
}

/* The user registers as they were when the task entered the kernel. */
static __always_inline int registers_of_task(struct scratch *s)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    void *at;

    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
        at = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
    else
        at = (char *)BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - sizeof s->regs;
    if (bpf_probe_read_kernel(&s->regs, sizeof s->regs, at) || (s->regs.cs & 3) != 3)
        return 1;
    registers_from(&s->sample, &s->regs);
    return 0;
}

/*
 * What stopped the unwinder is something that user space can do better: it knows the mappings as they were at this
 * very time, and can wait for a table.
 */
static __always_inline int native_needs_help(__u32 end)
{
    return end == LOSS_table_missing || end == LOSS_no_mapping || end == LOSS_no_module;
}

/*
 * How far the user stack reaches. A thread that pthread_create() made has its control block, which the thread
 * pointer names, at the upper end of its stack; the first thread's stack ends where the kernel put the arguments.
 */
static __always_inline __u64 stack_size_of(const struct task_facts *facts, __u64 sp)
{
    if (facts->thread_pointer > sp && facts->thread_pointer - sp < WALK_NATIVE_STACK_BYTES)
        return facts->thread_pointer - sp;
    if (facts->stack_start > sp && facts->stack_start - sp < WALK_NATIVE_STACK_BYTES)
        return facts->stack_start - sp;
    return 0;
}

/* Whether a process that user space has not named was first met so lately that it may yet be named. */
static __always_inline int is_fresh(const struct task_facts *facts, __u32 tgid, __u64 now_ns)
{
    if (facts->flags & PF_KTHREAD)
        return 0;
    struct wire_unknown now = {
        .start_boottime_ns = facts->start_boottime_ns,
        .exec_generation = facts->exec_generation,
        .first_ns = now_ns,
    };
    struct wire_unknown *known = bpf_map_lookup_elem(&unknown, &tgid);
    if (!known || known->start_boottime_ns != now.start_boottime_ns || known->exec_generation != now.exec_generation) {
        bpf_map_update_elem(&unknown, &tgid, &now, BPF_ANY);
        return 1;
    }
    if (now_ns - known->first_ns < WIRE_UNKNOWN_NS)
        return 1;
    __sync_fetch_and_add(&known->ticks, 1);
    return 0;
}

static __always_inline int take_sample(struct bpf_perf_event_data *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32;

    count_stat(WIRE_STAT_TICKS);
    if (!tgid) {
        count_stat(WIRE_STAT_IDLE);
        return 0;
    }
    struct wire_process *process = bpf_map_lookup_elem(&processes, &tgid);
    __u64 now_ns = bpf_ktime_get_ns();
    struct task_facts facts;
    task_read(&facts);
    if (process ? process->flags & WIRE_PROCESS_IGNORE : !sample_all && !is_fresh(&facts, tgid, now_ns)) {
        count_stat(WIRE_STAT_OTHERS);
        return 0;
    }
    struct scratch *s = scratch_get();
    if (!s)
        return 0;
    count_stat(WIRE_STAT_SAMPLES);

    struct wire_sample *m = &s->sample;
    m->type = WIRE_SAMPLE;
    m->flags = process ? 0 : WIRE_UNCONFIGURED;
    m->time_ns = now_ns;
    m->tgid = tgid;
    m->tid = id;
    m->cpu = bpf_get_smp_processor_id();
    m->event = 0;
    m->start_boottime_ns = facts.start_boottime_ns;
    m->exec_generation = facts.exec_generation;
    m->period = sample_period ? sample_period : ctx->sample_period;
    m->stack_size = 0;
    m->kernel_count = m->python_count = m->stack_len_bytes = m->python_end = 0;
    m->native_count = m->native_end = 0;
    m->thread_handle = m->interpreter = 0;
    m->interpreter_id = ~0ull;
    m->task_len_bytes = 0;
    m->native_last_cfa = ~0ull;

    /* The first sample after user space named the process says which image was meant. */
    if (!process) {
        /* With no configuration there is nothing that could be out of date. */
    } else if (!process->exec_generation_1) {
        process->start_boottime_ns = m->start_boottime_ns;
        process->exec_generation_1 = m->exec_generation + 1;
    } else if (process->exec_generation_1 != m->exec_generation + 1 ||
               process->start_boottime_ns != m->start_boottime_ns) {
        m->flags |= WIRE_STALE;
    }

    s->walk.thread_pointer = facts.thread_pointer;
    s->walk.stack_pointer = 0;
    if ((*(volatile unsigned long *)&ctx->regs.cs & 3) == 3) {
        registers_from(m, &ctx->regs);
        m->flags |= WIRE_REGISTERS_OK;
    } else {
        m->flags |= WIRE_IN_KERNEL;
        if (!facts.memory)
            m->flags |= WIRE_KERNEL_THREAD;
        else if (!registers_of_task(s))
            m->flags |= WIRE_REGISTERS_OK;
        else
            count_part_loss(s, LOSS_no_user_registers);
    }
    if (m->flags & WIRE_REGISTERS_OK)
        s->walk.stack_pointer = m->registers[7];

    __u64 at = sizeof *m;
    if (sample_kernel && m->flags & WIRE_IN_KERNEL) {
        long len = bpf_get_stack(ctx, s->message + sizeof *m, WIRE_KERNEL_MAX * 8, 0);
        if (len > 0) {
            m->kernel_count = (__u64)len / 8;
            at += (__u64)m->kernel_count * 8;
        } else {
            count_part_loss(s, LOSS_kernel_stack_fault);
        }
    }

    s->walk.count = 0;
    if (m->flags & WIRE_REGISTERS_OK)
        m->stack_size = stack_size_of(&facts, m->registers[7]);
    /*
     * A process that may well be no Python at all brings neither its stack nor a copy: hosts that start many programs
     * would fill the ring with them.
     */
    int blind = !process && !sample_all;
    int unwind = sample_native && m->flags & WIRE_REGISTERS_OK && !blind;
    if (unwind) {
        /* Of a new image the mappings are not known here: user space unwinds it. */
        int known = process && !(m->flags & WIRE_STALE);
        s->mapping_start = known ? process->mapping_start : 0;
        s->mapping_count = known ? process->mapping_count : 0;
    }
    if (!(m->flags & WIRE_STALE) && sample_python && process && process->runtime) {
        __u32 index = process->layout;
        struct py_layout *layout = bpf_map_lookup_elem(&layouts, &index);
        if (layout) {
            s->walk.layout = *layout;
            s->walk.process = *process;
            s->space = (__u32)(m->start_boottime_ns ^ (m->start_boottime_ns >> 32)) * 0x9e3779b1u ^
                       tgid * 0x85ebca6bu ^ (__u32)m->exec_generation * 0xc2b2ae35u ^ code_generation * 0x27d4eb2fu;
            s->python_at = at;
            walk_python();
            m->python_count = s->walk.count;
            at += (__u64)m->python_count * sizeof(struct wire_python);
        }
    }
    if (unwind) {
        s->native_at = at;
        unwind_native();
        m->native_count = s->native.count;
        at += (__u64)m->native_count * sizeof(struct native_frame);
    }
    if (m->thread_handle && s->walk.process.running_task)
        at += append_task(at);
    if (sample_native_stack_bytes && m->flags & WIRE_REGISTERS_OK && !blind &&
        (sample_every_stack || native_needs_help(m->native_end))) {
        append_stack(at);
        at += m->stack_len_bytes;
    }
    if (at > sizeof s->message || bpf_ringbuf_output(&ring, s->message, at, ring_flags()))
        count_loss(LOSS_ring_full);
    return 0;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
    __u64 start = sample_timed ? bpf_ktime_get_ns() : 0;
    __u32 stat = WIRE_STAT_CPU_NS;

    take_sample(ctx);
    __u64 *spent = sample_timed ? bpf_map_lookup_elem(&stats, &stat) : 0;
    if (spent)
        *spent += bpf_ktime_get_ns() - start;
    return 0;
}

/*
 * A forked child runs the same image at the same addresses: it is sampled from its first tick on, before user
 * space has heard of it. Its own start time binds it at the first sample.
 */
SEC("raw_tracepoint/sched_process_fork")
int forked(struct bpf_raw_tracepoint_args *ctx)
{
    struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
    __u32 tgid = BPF_CORE_READ(parent, tgid), child_tgid = BPF_CORE_READ(child, tgid);
    struct wire_process copy, *process;

    if (tgid == child_tgid)
        return 0; /* a thread */
    process = bpf_map_lookup_elem(&processes, &tgid);
    if (!process)
        return 0;
    /* A parent that has a newer image than its configuration hands nothing on. */
    if (process->exec_generation_1 && process->exec_generation_1 != BPF_CORE_READ(parent, self_exec_id) + 1)
        return 0;
    copy = *process;
    copy.start_boottime_ns = BPF_CORE_READ(child, start_boottime);
    copy.exec_generation_1 = BPF_CORE_READ(child, self_exec_id) + 1;
    copy.flags |= WIRE_PROCESS_INHERITED;
    bpf_map_update_elem(&processes, &child_tgid, &copy, BPF_ANY);
    return 0;
}
