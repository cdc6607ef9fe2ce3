/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which thread state the running thread has: where the Python frame walk begins
 * (bpf/python_walk.h), and which interpreter and which asyncio task run there.
 *
 * A state is found by the thread-local variable of 3.12+, the runtime's current state,
 * the pthread key, or the lists of interpreters and their states, and is believed only
 * when it agrees with the running thread.
 */
#ifndef BPF_PYTHON_THREAD_H
#define BPF_PYTHON_THREAD_H

#include "bpf/walk.h"

#define WALK_WINDOW_MASK 8191
#define WALK_FRAME_MAX 120 /* bytes of a frame that are looked at */
#define WALK_HEADER_MASK 255
#define WALK_SEEN 64
#define WALK_BYTECODE_MAX (1 << 28)
#define WALK_THREADS_MAX (1 << 22) /* more indexes of bytecode than there can be threads */
#define WALK_TLS_MODULES_MAX 4096  /* more modules with thread-local storage are not believed */

/* glibc's dtv_t: a module's TLS block and what to free. */
#define DTV_ENTRY_BYTES 16
/* glibc's struct pthread_key_data: a sequence number and a value. The first keys' lie in the thread's descriptor. */
#define PTHREAD_KEY_BYTES 16
#define PTHREAD_FIRST_KEYS 32

/* What was found out about a code object earlier in the same sample. */
struct walk_seen {
    PY_U64 code;
    PY_U32 sample; /* number of the sample it is valid for */
    PY_U32 fingerprint;
    union {
        PY_U32 first_traceable_bytes; /* 3.11+ */
        PY_U32 generator;             /* up to 3.10: a generator's or a coroutine's */
    };
    PY_U32 state; /* 0, or the loss reason: it is no code object, or could not be read */
    PY_U64 bytecode; /* where the copy begins that the sample's newest frame runs; 0: not read */
};

struct py_walk {
    struct py_layout layout;
    struct wire_process process;
    PY_U64 thread_pointer;
    PY_U64 stack_pointer; /* user; 0 unknown */
    PY_U64 tstate;
    /* Read from the state `read`, until a walk begins there; newest: what tstate_frame names. */
    PY_U64 read, handle, interp, newest;
    PY_U64 record; /* 3.10 to 3.12: of its newest activation, on a native stack or embedded in the state itself */
    PY_U64 interp_id;           /* all ones: unknown */
    PY_U32 gil;                 /* WIRE_GIL_KNOWN, WIRE_GIL */
    PY_U32 task_len;            /* bytes of `task`; 0: no task runs, or its name is not known */
    PY_U64 frame;  /* next to look at */
    PY_U64 cframe; /* of the run being walked, 3.11 and 3.12 */
    PY_U64 first_cframe; /* of the newest activation */
    PY_U64 window_start, window_len;
    PY_U32 sample; /* counts up; names the entries of `seen` that are valid */
    PY_U32 count;  /* entries made */
    PY_U32 frame_count;
    PY_U32 end;       /* loss reason that ended it; LOSS_complete */
    PY_U32 open_run;  /* frames since the last end of a run */
    PY_U32 last_shim; /* the last element was a shim or an entry frame */
    PY_U32 retried;   /* 1: begun again one activation further out; 2: and that broke too */
    PY_U32 window_hits;
    PY_U32 bytecode_index; /* of the newest frame; WALK_THREADS_MAX: none met yet */
    /* The code object of the newest entry that was not in `seen`: to be copied if it is new. */
    PY_U64 new_code;
    PY_U32 new_fingerprint;
    PY_U32 list_left; /* thread states still to look at */
    PY_U64 list_interp, list_tstate;
    PY_U64 list_nearest;   /* how far above the stack pointer the nearest record lies */
    PY_U64 current_interp; /* up to 3.11: the interpreter of the runtime's current state, another thread's */
    PY_U32 list_others;    /* the list of the interpreters but for the main one */
    PY_U32 doubtful;       /* the thread has a state, but whether it runs in that one can't be told */
    PY_U64 small[16];
    struct walk_seen seen[WALK_SEEN];
    PY_U8 header[WALK_HEADER_MASK + 1 + 8];
    PY_U8 task[WIRE_TASK_MAX + 8];
    PY_U8 direct[WALK_FRAME_MAX + 8 + 128];
    PY_U8 window[WALK_WINDOW_MASK + 1 + 8];
#ifndef __bpf__
    struct walk_memory memory;
#endif
};

WALK_INLINE int walk_read_u64(struct py_walk *w, PY_U64 address, PY_U64 *out)
{
    if (WALK_READ(w, &w->small[0], 8, address))
        return 1;
    *out = w->small[0];
    return 0;
}

/* Reads a thread state's fields, all at once: the thread's handle is the last of them. 0 when it could be read. */
WALK_INLINE int walk_fields(struct py_walk *w, PY_U64 tstate)
{
    PY_U64 len = (PY_U64)w->layout.tstate_thread_id + 8;

    w->read = 0;
    WALK_BOUND(len, WALK_HEADER_MASK);
    if (!tstate || WALK_READ(w, w->header, len, tstate))
        return 1;
    w->read = tstate;
    w->handle = WALK_U64(w->header, w->layout.tstate_thread_id, WALK_HEADER_MASK);
    w->interp = WALK_U64(w->header, w->layout.tstate_interp, WALK_HEADER_MASK);
    w->newest = WALK_U64(w->header, w->layout.tstate_frame, WALK_HEADER_MASK);
    w->record = w->layout.tstate_cframe ? WALK_U64(w->header, w->layout.tstate_cframe, WALK_HEADER_MASK) : w->newest;
    return 0;
}

/* A thread state is the thread's own when it names the thread's pthread handle, which is its thread pointer. */
WALK_INLINE int walk_is_own(struct py_walk *w, PY_U64 tstate)
{
    return !walk_fields(w, tstate) && w->handle == ARCH_PTHREAD_SELF(w->thread_pointer);
}

/*
 * Up to 3.12 a subinterpreter's first state names the thread that made it, whichever runs it. Where activations have
 * records these tell, for they lie on the stack of the thread that runs it: between its stack pointer and its
 * descriptor, or, in the main thread, whose descriptor lies elsewhere, not far above the stack pointer. Whether the
 * state that was read runs here: 1 yes, 0 no, -1 cannot be told.
 */
WALK_INLINE int walk_runs_here(struct py_walk *w)
{
    PY_U64 room = w->thread_pointer - w->stack_pointer;

    if (w->layout.tstate_root_cframe == PY_NONE || !w->stack_pointer || w->record == w->read + w->layout.tstate_root_cframe)
        return -1;
    return w->record - w->stack_pointer < (room < WALK_NATIVE_STACK_BYTES ? room : WALK_NATIVE_STACK_BYTES);
}

/* The value of a thread-local variable, `kind` and `where` as in struct wire_process. 0 when it could be read. */
WALK_INLINE int walk_tls(struct py_walk *w, PY_U32 kind, PY_U64 offset, PY_U64 where, PY_U64 *out)
{
    PY_U64 module = 0, block = 0;

    if (kind == PY_TLS_LOCAL_EXEC)
        return walk_read_u64(w, w->thread_pointer + offset, out);
    if (kind == PY_TLS_DESCRIPTOR || kind == PY_TLS_SLOT) {
        if (walk_read_u64(w, kind == PY_TLS_SLOT ? where : where + 8, &offset))
            return 1;
        if (kind == PY_TLS_SLOT || ARCH_TLSDESC_IS_OFFSET(offset))
            return walk_read_u64(w, w->thread_pointer + offset, out);
        where = offset;
        if (walk_read_u64(w, where + 8, &offset))
            return 1;
    }
    return walk_read_u64(w, where, &module) || !module || module >= WALK_TLS_MODULES_MAX ||
           walk_read_u64(w, ARCH_DTV(w->thread_pointer), &block) ||
           walk_read_u64(w, block + DTV_ENTRY_BYTES * module, &block) ||
           block + 1 <= 1 || walk_read_u64(w, block + offset, out);
}

/* Where the list of interpreters begins, into w->list_interp. 0 when there is one. */
WALK_INLINE int walk_list_head(struct py_walk *w)
{
    PY_U64 head = w->process.interpreters;

    if (!head && w->layout.runtime_interpreters_head == PY_NONE)
        return 1;
    if (!head)
        head = w->process.runtime + w->layout.runtime_interpreters_head;
    return walk_read_u64(w, head, &w->list_interp) || !w->list_interp;
}

/*
 * Whether the state that the pthread key names is the thread's: into w->tstate. Up to 3.11 it names the thread's first
 * one for good, and the thread may run in a subinterpreter: then w->list_others says that their states are to be looked
 * at, too. `doubted` is the runtime's current state when that names this thread, but has its records elsewhere.
 */
WALK_INLINE int walk_is_kept(struct py_walk *w, PY_U64 value, PY_U64 doubted)
{
    PY_U64 next = 0;

    if (!walk_is_own(w, value) && (!w->read || walk_runs_here(w) <= 0))
        return 0;
    w->tstate = value;
    if (doubted && w->layout.tstate_root_cframe == PY_NONE && value != doubted) {
        /* Frames in both: it has called the subinterpreter, or another thread runs that one. */
        if (w->newest) {
            w->tstate = 0;
            w->doubtful = 1;
            return 1;
        }
        w->tstate = value = doubted;
    }
    if (value == doubted) {
        w->gil = WIRE_GIL_KNOWN | WIRE_GIL;
        return 1;
    }
    if (w->process.tls_kind == PY_TLS_NONE && w->layout.runtime_tstate_current != PY_NONE && !walk_list_head(w) &&
        !walk_read_u64(w, w->list_interp + w->layout.interp_next, &next))
        w->list_others = next != 0;
    return 1;
}

/*
 * The current thread's state by the ways that cost a read or two: the thread-local variable (3.12+; null while the
 * GIL is released), the runtime's current state (3.11; another thread's when this one has released the GIL), the
 * pthread key (3.14 and older) or the second thread-local variable (3.15+), which stay. Leaves w->tstate. Returns 1
 * when it is settled: found, or sure that there is none.
 *
 * The first two name a state only while its thread holds the GIL, so they answer that as well; w->gil says it.
 */
WALK_INLINE int walk_find_tstate(struct py_walk *w)
{
    PY_U64 value = 0, key = 0, doubted = 0;
    int here, key_known = w->process.key_slots && (w->process.thread_key || w->layout.runtime_tss_key != PY_NONE);

    w->tstate = w->read = w->current_interp = 0;
    w->gil = w->list_others = w->doubtful = 0;
    if (w->process.tls_kind != PY_TLS_NONE) {
        if (!walk_tls(w, w->process.tls_kind, w->process.tls_offset, w->process.tls_module, &value)) {
            if (walk_is_own(w, value) || (w->read && walk_runs_here(w) > 0)) {
                w->tstate = value;
                w->gil = w->layout.free_threaded ? 0 : WIRE_GIL_KNOWN | WIRE_GIL;
                return 1;
            }
            if (!value && !w->layout.free_threaded)
                w->gil = WIRE_GIL_KNOWN;
        }
    } else if (w->layout.runtime_tstate_current != PY_NONE) {
        if (!walk_read_u64(w, w->process.runtime + w->layout.runtime_tstate_current, &value)) {
            if (!walk_fields(w, value)) {
                here = walk_runs_here(w);
                /* Without records: a subinterpreter's state is not sure to be this thread's. */
                if (w->layout.tstate_root_cframe == PY_NONE && w->handle == ARCH_PTHREAD_SELF(w->thread_pointer) && key_known &&
                    (walk_read_u64(w, w->interp + w->layout.interp_next, &key) || key))
                    here = 0;
                if (here > 0 || (here < 0 && w->handle == ARCH_PTHREAD_SELF(w->thread_pointer))) {
                    w->tstate = value;
                    w->gil = WIRE_GIL_KNOWN | WIRE_GIL;
                    return 1;
                }
                if (w->handle == ARCH_PTHREAD_SELF(w->thread_pointer))
                    doubted = value;
                w->current_interp = w->interp;
            }
            w->gil = WIRE_GIL_KNOWN;
        }
    }
    if (w->process.gilstate_kind != PY_TLS_NONE &&
        !walk_tls(w, w->process.gilstate_kind, w->process.gilstate_offset, w->process.gilstate_module, &value)) {
        if (!value)
            return 1;
        if (walk_is_own(w, value)) {
            w->tstate = value;
            return 1;
        }
    }
    if (w->process.key_slots && w->process.thread_key) {
        int number;
        /* Up to 3.6 the key's number is a variable of its own, -1 as long as there is none. */
        if (!WALK_READ(w, &number, sizeof number, w->process.thread_key) && number >= 0 && number < PTHREAD_FIRST_KEYS &&
            !walk_read_u64(w, w->thread_pointer + w->process.key_slots + PTHREAD_KEY_BYTES * (PY_U64)(PY_U32)number, &value)) {
            if (!value)
                return 1;
            if (walk_is_kept(w, value, doubted))
                return !w->list_others;
        }
    } else if (w->process.key_slots && w->layout.runtime_tss_key != PY_NONE) {
        /* The key's number is an int behind an int that says whether it was created. */
        if (!walk_read_u64(w, w->process.runtime + w->layout.runtime_tss_key - 4, &key) && (PY_U32)key) {
            key >>= 32;
            if (key < PTHREAD_FIRST_KEYS && !walk_read_u64(w, w->thread_pointer + w->process.key_slots + PTHREAD_KEY_BYTES * key, &value)) {
                if (!value)
                    return 1;
                if (walk_is_kept(w, value, doubted))
                    return !w->list_others;
            }
        }
    }
    return 0;
}

/* Begins the walk over the lists of interpreters and their thread states: for libcs and builds where nothing else serves. */
WALK_INLINE int walk_list_begin(struct py_walk *w, PY_U32 limit)
{
    w->list_tstate = 0;
    w->list_left = limit;
    w->list_nearest = ~0ull;
    if (w->list_others && w->layout.tstate_root_cframe == PY_NONE)
        w->list_nearest = w->newest ? 0 : ~0ull;
    else if (w->list_others && walk_runs_here(w) > 0)
        w->list_nearest = w->record - w->stack_pointer;
    return walk_list_head(w);
}

/*
 * A state of a subinterpreter, when the thread is known by another one: it runs in the one whose record is nearest to
 * the stack pointer. Without records it runs in the only one that has frames; are there two, it can't be told, nor when
 * the GIL's holder runs a subinterpreter that this thread may have entered. 1: that ended it.
 */
WALK_INLINE int walk_list_other(struct py_walk *w)
{
    if (walk_fields(w, w->list_tstate))
        return 0;
    if (w->layout.tstate_root_cframe == PY_NONE) {
        if (!w->newest || (w->handle != ARCH_PTHREAD_SELF(w->thread_pointer) && (w->list_nearest || w->interp != w->current_interp)))
            return 0;
        w->doubtful = !w->list_nearest;
        w->tstate = w->doubtful ? 0 : w->list_tstate;
        w->list_nearest = 0;
        return (int)w->doubtful;
    }
    if (walk_runs_here(w) > 0 && w->record - w->stack_pointer < w->list_nearest) {
        w->list_nearest = w->record - w->stack_pointer;
        w->tstate = w->list_tstate;
    }
    return 0;
}

/* One thread state. 1: ended, w->tstate is set when found; w->list_left is 0 when the limit ended it. */
WALK_INLINE int walk_list_step(struct py_walk *w)
{
    if (!w->list_left)
        return 1;
    w->list_left--;
    if (!w->list_tstate) {
        if (!w->list_interp || walk_read_u64(w, w->list_interp + w->layout.interp_threads_head, &w->list_tstate) ||
            walk_read_u64(w, w->list_interp + w->layout.interp_next, &w->list_interp))
            return 1;
        /* The main interpreter is the last one. */
        return !w->list_interp && (!w->list_tstate || w->list_others);
    }
    if (w->list_others) {
        if (walk_list_other(w))
            return 1;
    } else if (walk_is_own(w, w->list_tstate)) {
        w->tstate = w->list_tstate;
        return 1;
    }
    return walk_read_u64(w, w->list_tstate + w->layout.tstate_next, &w->list_tstate);
}

/* Which interpreter the thread is in, from w->tstate: w->interp, w->interp_id. */
WALK_INLINE void walk_interpreter(struct py_walk *w)
{
    w->interp_id = ~0ull;
    if ((w->read == w->tstate || !walk_fields(w, w->tstate)) && w->interp && w->layout.interp_id != PY_NONE)
        walk_read_u64(w, w->interp + w->layout.interp_id, &w->interp_id);
}

/*
 * The name of the asyncio task that runs in the thread, as the object stands in memory, into w->task: a str as far as
 * it fits, or the int of a task that nobody has asked for its name. Which of them, the reader sees by its type. A task
 * whose type is smaller than asyncio's own is written in Python and has its name elsewhere.
 */
WALK_INLINE void walk_task(struct py_walk *w)
{
    const struct py_layout *l = &w->layout;
    PY_U64 task, name, size, len = (PY_U64)w->process.task_name + 8, chars, data;
    PY_U32 state, kind;

    w->task_len = 0;
    if (!w->process.running_task || walk_read_u64(w, w->tstate + w->process.running_task, &task) || !task)
        return;
    WALK_BOUND(len, WALK_HEADER_MASK);
    if (WALK_READ(w, w->header, len, task) ||
        (PY_U8)WALK_U64(w->header, w->process.task_is_task, WALK_HEADER_MASK) != 1)
        return;
    name = WALK_U64(w->header, w->process.task_name, WALK_HEADER_MASK);
    /* tp_basicsize: behind the type's own header and its name. */
    size = WALK_U64(w->header, l->code_type, WALK_HEADER_MASK);
    if (!name || walk_read_u64(w, size + l->code_type + 24, &size) || size < w->process.task_size)
        return;
    /* The smallest str takes as much as is read here, for small objects come in multiples of 16 bytes. */
    len = (PY_U64)l->str_ascii_data + 8;
    WALK_BOUND(len, WALK_HEADER_MASK);
    if (WALK_READ(w, w->task, len, name))
        return;
    chars = WALK_U64(w->task, l->str_length, WALK_HEADER_MASK);
    state = WALK_U32(w->task, l->str_state, WALK_HEADER_MASK);
    kind = state >> l->str_kind_shift & 7;
    data = state >> l->str_ascii_shift & 1 ? l->str_ascii_data : l->str_compact_data;
    if (chars < WIRE_TASK_MAX)
        data += chars * kind;
    else
        data = WIRE_TASK_MAX;
    if (data > WIRE_TASK_MAX)
        data = WIRE_TASK_MAX;
    if (data > len) {
        len = data;
        WALK_BOUND(len, 2 * WIRE_TASK_MAX - 1);
        if (len > WIRE_TASK_MAX || WALK_READ(w, w->task, len, name))
            return;
    }
    w->task_len = len;
}

#endif
