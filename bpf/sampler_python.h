/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Python part of a sample: frames, copies of code objects that occur for the first
 * time, and the name of the running task.
 */
#ifndef BPF_SAMPLER_PYTHON_H
#define BPF_SAMPLER_PYTHON_H

#include <bpf/bpf_core_read.h>

#include "bpf/sampler_codes.h"

/* Steps that a function makes, and so on: each is called from a loop, and the verifier looks at each round of a loop. */
#define WALK_ROUNDS 16
#define WALK_ROUNDS_MANY 12
#define WALK_ROUNDS_MAX (WIRE_PYTHON_MAX * 3 / 2 / WALK_ROUNDS / WALK_ROUNDS_MANY) /* most steps make an entry */
#define LIST_STEPS 8
#define LIST_LIMIT 4096            /* thread states that are looked at */
/* When a thread without a state is searched for again: soon at first, since a new thread may be about to get one. */
#define LIST_RETRY_NS 1000000ull
#define LIST_RETRY_MAX_NS 1000000000ull

/* A process may send this much of code objects for one sample, and in one second. */
#define CODE_SAMPLE_BYTES (256 << 10)
#define CODE_SECOND_BYTES (2 << 20)
/* And so many for one sample. */
#define CODE_SAMPLE_COUNT 256
/* What came of a few steps of the walk. */
enum { STEPS_ENDED = 1, STEPS_NEW_CODE = 2 };

/*
 * Whether another code object may be sent. A process that makes new ones all the time must take no room that the samples
 * of others need. What is not sent is not lost: user space reads it from the process, as far as its quotas allow.
 */
static __always_inline int may_send_code(struct scratch *s)
{
    struct code_spent first = {.second = s->sample.time_ns >> 30};

    if (s->code_bytes >= CODE_SAMPLE_BYTES || ring_held_bytes() >= code_most_bytes)
        return 0;
    struct code_spent *spent = bpf_map_lookup_elem(&code_spent, &s->space);
    if (!spent || spent->second != first.second) {
        bpf_map_update_elem(&code_spent, &s->space, &first, BPF_ANY);
        return 1;
    }
    return spent->bytes < CODE_SECOND_BYTES;
}

static __always_inline void count_sent_code(struct scratch *s, __u64 len_bytes)
{
    struct code_spent *spent = bpf_map_lookup_elem(&code_spent, &s->space);

    s->code_bytes += len_bytes;
    if (spent)
        spent->bytes += len_bytes;
}

/* Sends the code object that the walk has just read. A function of its own: it is rare, and the walk needs the registers. */
__attribute__((noinline)) int send_new_code(void)
{
    struct scratch *s = scratch_get();
    __u32 one = 1;

    if (!s)
        return 0;
    s->walk.codes.doubted++; /* until it is sent */
    if (!may_send_code(s))
        return 0;
    struct code_key key = {.code = s->walk.result.new_code, .fingerprint = s->walk.result.new_fingerprint, .space = s->space};
    s->copy.event.type = WIRE_CODE;
    s->copy.event.fingerprint = key.fingerprint;
    s->copy.event.time_ns = s->sample.time_ns;
    s->copy.event.tgid = s->sample.tgid;
    s->copy.event.flags = s->sample.flags & WIRE_RIVAL;
    s->copy.event.start_boottime_ns = s->sample.start_boottime_ns;
    s->copy.event.exec_generation = s->sample.exec_generation;
    s->copy.event.address = key.code;
    __u64 len = copy_code(&s->walk, &s->copy);
    if (len > sizeof s->copy.event + COPY_BUFFER_MASK)
        len = sizeof s->copy.event + COPY_BUFFER_MASK;
    if (ring_send(&s->copy.event, len)) {
        count_loss(LOSS_code_ring_full);
        return 0;
    }
    count_sent_code(s, len);
    bpf_map_update_elem(&codes, &key, &one, BPF_ANY);
    count_stat(WIRE_STAT_CODES);
    s->walk.codes.doubted--;
    return 0;
}

/* Whether the code object that the walk has just read is to be sent: it was not before. */
static __always_inline int is_new_code(struct scratch *s)
{
    struct code_key key = {.code = s->walk.result.new_code, .fingerprint = s->walk.result.new_fingerprint, .space = s->space};

    if (!key.code)
        return 0;
    /* What this CPU has looked up a moment ago costs no look into the map. */
    __u64 slot = (key.code >> 4) ^ (key.code >> 12);
    WALK_BOUND(slot, SENT_CODES - 1);
    struct code_key *sent = &s->sent[slot];
    if (sent->code == key.code && sent->fingerprint == key.fingerprint && sent->space == key.space)
        return 0;
    if (bpf_map_lookup_elem(&codes, &key)) {
        *sent = key;
        return 0;
    }
    if (s->code_count++ < CODE_SAMPLE_COUNT)
        return 1;
    s->walk.codes.doubted = 1;
    return 0;
}

/* walk_name_mix(), for the process that is being walked. */
__attribute__((noinline)) int name_mix(__u64 name)
{
    struct scratch *s = scratch_get();

    return !s || walk_name_mix(&s->walk, name);
}

/* Frames of which nothing has to be read. 0: python_step() is to make the next step. */
__attribute__((noinline)) int python_fast(void)
{
    struct scratch *s = scratch_get();

    return s ? walk_fast(&s->walk, python_entries(s)) : 0;
}

/* A frame; whether its code object is new is for the caller to see to: to send it as well does not fit on one stack. */
__attribute__((noinline)) int python_step(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return STEPS_ENDED;
    int ended = walk_step(&s->walk, python_entries(s)) ? STEPS_ENDED : 0;
    return is_new_code(s) ? ended | STEPS_NEW_CODE : ended;
}

/* The same for a frame that is an object. */
__attribute__((noinline)) int object_step(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return STEPS_ENDED;
    int ended = walk_object_step(&s->walk, python_entries(s)) ? STEPS_ENDED : 0;
    return is_new_code(s) ? ended | STEPS_NEW_CODE : ended;
}

/* Whether a general register of the thread has a value. */
__attribute__((noinline)) int has_register(__u64 value)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    for (int i = 0; i < ARCH_GENERAL_REGISTERS; i++) {
        if (s->sample.registers[i] == value)
            return 1;
    }
    return 0;
}

/* walk_scan_part(), with the thread's registers. */
__attribute__((noinline)) int scan_part(__u64 start, __u64 at)
{
    struct scratch *s = scratch_get();

    if (s)
        walk_scan_part(&s->walk, s->sample.registers, start, at);
    return 0;
}

/* Begins the walk again elsewhere, if that may help. 1: its end stands. */
__attribute__((noinline)) int python_retry(void)
{
    struct scratch *s = scratch_get();

    return !s || walk_retry(&s->walk, s->sample.registers, s->sample.flags & WIRE_REGISTERS_OK);
}

/* Some frames, and the code objects that are new. 1: the walk has ended. */
__attribute__((noinline)) int walk_some(int objects)
{
    for (int i = 0; i < WALK_ROUNDS; i++) {
        if (!objects && python_fast())
            continue;
        int step = objects ? object_step() : python_step();
        if (step & STEPS_NEW_CODE)
            send_new_code();
        if (step & STEPS_ENDED && (objects || python_retry()))
            return 1;
    }
    return 0;
}

/* Many frames. 1: the walk has ended. */
__attribute__((noinline)) int walk_many(int objects)
{
    for (int i = 0; i < WALK_ROUNDS_MANY; i++) {
        if (walk_some(objects))
            return 1;
    }
    return 0;
}

/* All frames, unless there is `none` to look at. */
static __always_inline void walk_frames(int objects, int none)
{
    for (int i = 0; !none && i < WALK_ROUNDS_MAX; i++)
        none = walk_many(objects);
}

/* A few thread states of the lists. 1: the search has ended. */
__attribute__((noinline)) int list_steps(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 1;
    for (int i = 0; i < LIST_STEPS; i++) {
        if (walk_list_step(&s->walk))
            return 1;
    }
    return 0;
}

/* Searches the lists of thread states, for threads whose state is not named elsewhere; remembers what it found. */
__attribute__((noinline)) int list_find(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    struct thread_key key = {.tid = s->sample.tid, .space = s->space};
    struct thread_value *known = bpf_map_lookup_elem(&threads, &key);
    __u64 wait_ns = LIST_RETRY_NS;
    if (known && !s->walk.search.subinterpreters) {
        if (known->tstate && walk_is_own(&s->walk, known->tstate)) {
            s->walk.result.tstate = known->tstate;
            return 0;
        }
        s->walk.search.unread = known->unread != 0;
        if (!known->tstate && s->sample.time_ns - known->time_ns < known->wait_ns)
            return 0;
        if (!known->tstate)
            wait_ns = known->wait_ns < LIST_RETRY_MAX_NS / 2 ? known->wait_ns * 2 : LIST_RETRY_MAX_NS;
    }
    count_stat(WIRE_STAT_LISTS);
    s->walk.search.unread = 0;
    if (!walk_list_begin(&s->walk, LIST_LIMIT)) {
        for (int i = 0; i < LIST_LIMIT / LIST_STEPS; i++) {
            if (list_steps())
                break;
        }
        if (!s->walk.search.left)
            count_loss(LOSS_thread_state_walk);
    }
    if (s->walk.search.subinterpreters)
        return 0;
    struct thread_value found = {.tstate = s->walk.result.tstate, .time_ns = s->sample.time_ns, .wait_ns = wait_ns,
                                 .unread = s->walk.search.unread};
    bpf_map_update_elem(&threads, &key, &found, BPF_ANY);
    return 0;
}

/* Finds the thread's state, for the process and the thread in s->walk.config, by whichever way the interpreter offers. */
__attribute__((noinline)) int find_tstate(void)
{
    struct scratch *s = scratch_get();

    if (s && !walk_find_tstate(&s->walk))
        list_find();
    return 0;
}

/* Whether the process has no other thread; asked only where the walk may need it (walk_find_by_runtime()). */
static __always_inline __u32 has_one_thread(const struct scratch *s)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();

    return !walk_has_records(&s->walk) && s->walk.config.layout.runtime_tstate_current != PY_NONE &&
           BPF_CORE_READ(task, signal, nr_threads) == 1;
}

/* Looks for a state in the other interpreter that runs in the process. */
__attribute__((noinline)) int find_in_rival(void)
{
    struct scratch *s = scratch_get();
    struct wire_process *rival;
    struct py_layout *layout;
    __u32 index;

    if (!s || !(rival = bpf_map_lookup_elem(&rivals, &s->sample.tgid)))
        return 0;
    index = rival->layout;
    if (!(layout = bpf_map_lookup_elem(&layouts, &index)))
        return 0;
    s->walk.config.layout = *layout;
    s->walk.config.process = *rival;
    s->space ^= 0x27d4eb2fu; /* it has states and code objects of its own */
    s->sample.flags |= WIRE_RIVAL;
    find_tstate();
    if (!s->walk.result.tstate)
        s->sample.flags &= ~WIRE_RIVAL;
    return 0;
}

/* Takes the Python frames, to s->python_at in the message; s->sample.python_end says how that ended. */
__attribute__((noinline)) int walk_python(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    s->walk.config.one_thread = has_one_thread(s);
    find_tstate();
    if (!s->walk.result.tstate && s->walk.config.process.flags & WIRE_PROCESS_RIVAL)
        find_in_rival();
    if (!s->walk.result.tstate) {
        /* Python does not know this thread. Up to 3.11 the thread may run with a state that another thread made. */
        s->sample.flags |= s->walk.config.process.tls_kind != PY_TLS_NONE ? s->walk.result.gil : 0;
        if (s->walk.result.ambiguous) {
            s->sample.python_end = LOSS_interpreter_unsure;
            count_loss(LOSS_interpreter_unsure);
        } else if (s->walk.search.unread) {
            s->sample.flags |= WIRE_STATE_UNREAD;
        }
        return 0;
    }
    s->sample.flags |= s->walk.result.gil;
    s->sample.thread_handle = s->walk.config.thread_pointer;
    walk_interpreter(&s->walk);
    s->sample.interpreter = s->walk.result.interpreter;
    s->sample.interpreter_id = s->walk.result.interpreter_id;
    stage_end(STAGE_THREAD);
    codes_begin(s);
    if (s->walk.config.layout.frame_kind == PY_FRAMES_OBJECT) {
        walk_frames(1, walk_object_begin(&s->walk));
    } else {
        walk_frames(0, walk_begin(&s->walk));
    }
    codes_end(s);
    if (!s->walk.result.end)
        s->walk.result.end = LOSS_python_too_deep;
    s->sample.python_end = s->walk.result.end;
    if (s->walk.result.end != LOSS_complete)
        count_loss(s->walk.result.end);
    if (s->walk.result.restarts)
        count_stat(WIRE_STAT_RETRIES);
    return 0;
}

/* Appends the name of the running task to the message, at `at`. Returns its length in bytes. */
__attribute__((noinline)) int append_task(__u32 at)
{
    struct scratch *s = scratch_get();
    __u64 to = at, len;

    if (!s)
        return 0;
    walk_task(&s->walk);
    len = s->walk.result.task_len_bytes;
    MESSAGE_BOUND(to, MESSAGE_TASK_AT);
    WALK_BOUND(len, 2 * WIRE_TASK_MAX - 1);
    if (!len || len > WIRE_TASK_MAX || bpf_probe_read_kernel(s->message + to, len, s->walk.result.task))
        return 0;
    s->sample.task_len_bytes = len;
    return (int)len;
}

#endif
