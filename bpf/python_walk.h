/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The Python frame walk: from a thread's state to a list of (code object, instruction).
 *
 * One piece of code for the BPF program and for the host (tests over recorded
 * address spaces, the capture backend without BPF); what differs is how memory is
 * read. All state lies in struct py_walk, in a map's value under BPF, so that each
 * step is a function the verifier looks at once.
 *
 * How frames are chained differs per version (formats/cpython/layout.h):
 * - up to 3.10: thread state -> newest PyFrameObject -> f_back … NULL. Each frame has an
 *   activation of its own; 3.10 has a _PyCFrame for each, like 3.11. They lie about in the
 *   heap, so each costs a read.
 * - 3.11: thread state -> _PyCFrame (on the native stack, one per activation of the
 *   eval loop) -> newest frame -> previous … NULL. `is_entry` marks the outermost frame
 *   of an activation's run.
 * - 3.12: the same start; a run ends with a shim frame (owner 3) on the native stack.
 * - 3.13: thread state -> newest frame; runs end with a shim.
 * - 3.15: likewise; behind the outermost shim comes a last one, embedded in the thread state.
 * Frames of ordinary calls lie side by side in the thread's data stack, older ones
 * lower, so one read from the start of the page up to the frame serves many.
 *
 * For each frame the code object's header is read and a fingerprint made, because
 * addresses of code objects are reused. A code object met before in the same
 * sample is looked up in a small table instead.
 *
 * In free-threaded 3.14+ each thread runs a copy of the bytecode of its own: a frame says which, the code object
 * where it is.
 *
 * A walk is complete when it reached the root: 3.11 the last frame is an entry and
 * the _PyCFrame chain is at the one embedded in the thread state; 3.12+ the last
 * element is a shim without a predecessor. Everything else is torn and says so.
 * Just after 3.11 and 3.12 enter an activation, its _PyCFrame is published before its
 * current_frame is set: then the walk starts again from the _PyCFrame before it.
 */
#ifndef BPF_PYTHON_WALK_H
#define BPF_PYTHON_WALK_H

#include "bpf/wire.h"

/* Reasons, as in formats/trace/losses.def. */
#ifdef __bpf__
enum loss_reason {
#define LOSS(number, name, meaning) LOSS_##name = number,
#include "formats/trace/losses.def"
#undef LOSS
};
#define WALK_INLINE static __attribute__((always_inline)) inline
/* An offset into a buffer of `mask` + 1 bytes (and slack), in a form that neither the compiler can lose nor the verifier miss. */
#define WALK_BOUND(offset, mask) asm volatile("%0 &= %1" : "+r"(offset) : "i"(mask))
#define WALK_READ(walk, out, len_bytes, address) bpf_probe_read_user((out), (len_bytes), (const void *)(address))
#else
#include <string.h>

#include "formats/trace/trace.h"
#define WALK_INLINE static inline
#define WALK_BOUND(offset, mask) ((offset) &= (mask))
/* Reads another process's memory, or a recording of it; 0 when all of it could be read. */
struct walk_memory {
    int (*read)(void *ctx, void *out, uint32_t len_bytes, uint64_t address);
    void *ctx;
};
#define WALK_READ(walk, out, len_bytes, address) \
    (walk)->memory.read((walk)->memory.ctx, (out), (uint32_t)(len_bytes), (address))
#endif

#define WALK_PAGE 4096
#define WALK_WINDOW_MASK 8191
#define WALK_FRAME_MAX 120 /* bytes of a frame that are looked at */
#define WALK_HEADER_MASK 255
#define WALK_SEEN 64
#define WALK_BYTECODE_MAX (1 << 28)
#define WALK_THREADS_MAX (1 << 22) /* more indexes of bytecode than there can be threads */
/* Frames of the innermost run lie within this many bytes above the stack pointer when they are shims. */
#define WALK_NATIVE_STACK_BYTES (64ull << 20)

enum { PY_OWNER_GENERATOR = 1, PY_OWNER_SHIM = 3, PY_OWNER_MAX = 4 };
/* Bits of co_flags: generator, coroutine, iterable coroutine, asynchronous generator. In 2.7 only the first exists. */
#define PY_CODE_GENERATOR 0x3a0

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

/* A value at an offset that only the run knows; buffers have 8 bytes of slack behind the mask. */
#define WALK_U64(buffer, offset, mask)                           \
    ({                                                           \
        PY_U64 at_ = (offset), value_;                           \
        WALK_BOUND(at_, mask);                                   \
        __builtin_memcpy(&value_, (buffer) + at_, sizeof value_); \
        value_;                                                  \
    })
#define WALK_U32(buffer, offset, mask) ((PY_U32)WALK_U64(buffer, offset, mask))

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
    return !walk_fields(w, tstate) && w->handle == w->thread_pointer;
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
        if (kind == PY_TLS_SLOT || (PY_S64)offset < 0)
            return walk_read_u64(w, w->thread_pointer + offset, out);
        where = offset;
        if (walk_read_u64(w, where + 8, &offset))
            return 1;
    }
    /* glibc: the thread control block's second word is the DTV, an array of 16-byte entries by module number. */
    return walk_read_u64(w, where, &module) || !module || module >= 4096 ||
           walk_read_u64(w, w->thread_pointer + 8, &block) || walk_read_u64(w, block + 16 * module, &block) ||
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
                if (w->layout.tstate_root_cframe == PY_NONE && w->handle == w->thread_pointer && key_known &&
                    (walk_read_u64(w, w->interp + w->layout.interp_next, &key) || key))
                    here = 0;
                if (here > 0 || (here < 0 && w->handle == w->thread_pointer)) {
                    w->tstate = value;
                    w->gil = WIRE_GIL_KNOWN | WIRE_GIL;
                    return 1;
                }
                if (w->handle == w->thread_pointer)
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
        if (!WALK_READ(w, &number, sizeof number, w->process.thread_key) && number >= 0 && number < 32 &&
            !walk_read_u64(w, w->thread_pointer + w->process.key_slots + 16 * (PY_U64)(PY_U32)number, &value)) {
            if (!value)
                return 1;
            if (walk_is_kept(w, value, doubted))
                return !w->list_others;
        }
    } else if (w->process.key_slots && w->layout.runtime_tss_key != PY_NONE) {
        /* The key's number is an int behind an int that says whether it was created. */
        if (!walk_read_u64(w, w->process.runtime + w->layout.runtime_tss_key - 4, &key) && (PY_U32)key) {
            key >>= 32;
            if (key < 32 && !walk_read_u64(w, w->thread_pointer + w->process.key_slots + 16 * key, &value)) {
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
        if (!w->newest || (w->handle != w->thread_pointer && (w->list_nearest || w->interp != w->current_interp)))
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

WALK_INLINE PY_U64 walk_mix(PY_U64 hash, PY_U64 value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 29);
}

/*
 * Reads a code object's header into w->header and makes its fingerprint. `known` is where it was found in this
 * sample, or will be remembered. Returns 0, or the loss reason.
 */
WALK_INLINE PY_U32 walk_code(struct py_walk *w, PY_U64 code, struct walk_seen *known)
{
    PY_U64 len = w->layout.code_len_bytes, hash = 0, version;
    const PY_U8 *h = w->header;

    known->code = code;
    known->sample = w->sample;
    known->fingerprint = 0;
    known->first_traceable_bytes = 0;
    known->bytecode = 0;
    WALK_BOUND(len, WALK_HEADER_MASK);
    if (WALK_READ(w, w->header, len, code)) {
        known->state = LOSS_code_fault;
        return LOSS_code_fault;
    }
    if (WALK_U64(h, w->layout.code_type, WALK_HEADER_MASK) != w->process.code_type) {
        known->state = LOSS_bad_code;
        return LOSS_bad_code;
    }
    PY_U64 name = WALK_U64(h, w->layout.code_name, WALK_HEADER_MASK);
    if (w->layout.code_version != PY_NONE) {
        version = WALK_U32(h, w->layout.code_version, WALK_HEADER_MASK);
    } else {
        /* No version counter: the name's cached hash tells functions apart that got the same addresses. */
        if (walk_read_u64(w, name + w->layout.str_hash, &version)) {
            known->state = LOSS_code_fault;
            return LOSS_code_fault;
        }
    }
    hash = walk_mix(hash, name);
    hash = walk_mix(hash, version);
    hash = walk_mix(hash, WALK_U64(h, w->layout.code_filename, WALK_HEADER_MASK));
    if (w->layout.code_qualname != PY_NONE)
        hash = walk_mix(hash, WALK_U64(h, w->layout.code_qualname, WALK_HEADER_MASK));
    hash = walk_mix(hash, WALK_U64(h, w->layout.code_line_table, WALK_HEADER_MASK));
    hash = walk_mix(hash, WALK_U64(h, w->layout.code_code ? w->layout.code_code : w->layout.code_size, WALK_HEADER_MASK));
    hash = walk_mix(hash, ((PY_U64)WALK_U32(h, w->layout.code_first_line, WALK_HEADER_MASK) << 32) |
                              WALK_U32(h, w->layout.code_flags, WALK_HEADER_MASK));
    known->fingerprint = (PY_U32)(hash ^ (hash >> 32));
    if (w->layout.frame_kind == PY_FRAMES_OBJECT)
        known->generator = WALK_U32(h, w->layout.code_flags, WALK_HEADER_MASK) & PY_CODE_GENERATOR;
    else if (w->layout.code_first_traceable != PY_NONE)
        known->first_traceable_bytes = 2 * WALK_U32(h, w->layout.code_first_traceable, WALK_HEADER_MASK);
    known->state = 0;
    w->new_code = code;
    w->new_fingerprint = known->fingerprint;
    return 0;
}

/*
 * Where the copy of the bytecode begins that a frame runs; 0 when that can't be told. The frames of a thread run
 * copies of one index, but for generators that another thread began, and where there was no room for a copy.
 */
WALK_INLINE PY_U64 walk_bytecode(struct py_walk *w, struct walk_seen *known, PY_U64 code, PY_U64 frame)
{
    PY_U64 value;
    PY_U32 index;

    if (WALK_READ(w, &w->small[0], sizeof index, frame + w->layout.frame_tlbc_index))
        return 0;
    index = (PY_U32)w->small[0];
    if (w->bytecode_index == WALK_THREADS_MAX)
        w->bytecode_index = index;
    if (known->bytecode && index == w->bytecode_index)
        return known->bytecode;
    if (index >= WALK_THREADS_MAX || walk_read_u64(w, code + w->layout.code_tlbc, &value) ||
        walk_read_u64(w, value + 8 + 8 * (PY_U64)index, &value))
        return 0;
    if (index == w->bytecode_index)
        known->bytecode = value;
    return value;
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

/* Where the walk begins, from w->tstate. 0 when there is a frame to look at; else w->end says why not. */
WALK_INLINE int walk_begin(struct py_walk *w)
{
    PY_U64 frame = 0;

    w->count = w->frame_count = w->open_run = w->retried = w->window_hits = 0;
    w->window_start = w->window_len = 0;
    w->bytecode_index = WALK_THREADS_MAX;
    w->cframe = 0;
    w->last_shim = 0;
    w->end = LOSS_thread_state_fault;
    w->sample++;
    if (w->read != w->tstate && walk_fields(w, w->tstate))
        return 1;
    w->read = 0; /* the next walk wants it as it is then */
    frame = w->newest;
    if (w->layout.tstate_root_cframe != PY_NONE) {
        w->cframe = w->first_cframe = frame;
        if (walk_read_u64(w, w->cframe + w->layout.cframe_current_frame, &frame))
            return 1;
    }
    w->frame = frame;
    w->end = frame ? 0 : LOSS_complete; /* a thread that runs no Python code has no frames */
    return w->end != 0;
}

/* Starts over at an activation of the eval loop, given its _PyCFrame. 0 when there is a frame to look at. */
WALK_INLINE int walk_restart(struct py_walk *w, PY_U64 cframe)
{
    PY_U64 frame = 0;

    if (!cframe || walk_read_u64(w, cframe + w->layout.cframe_current_frame, &frame) || !frame)
        return 1;
    w->cframe = cframe;
    w->frame = frame;
    w->count = w->frame_count = w->open_run = w->last_shim = 0;
    return 0;
}

/*
 * The chain broke. The newest activation may be half made: what its _PyCFrame names as its frame is then what an
 * earlier activation left on the stack. Start again from the one before it, whose record is sound. If that breaks
 * too, the trouble lies further out: back to the newest, and what is there is torn.
 */
WALK_INLINE int walk_broken(struct py_walk *w, PY_U32 reason)
{
    PY_U64 cframe;

    if (w->layout.tstate_root_cframe != PY_NONE && w->retried < 2) {
        w->retried++;
        if (w->retried == 2) {
            if (!walk_restart(w, w->first_cframe))
                return 0;
        } else if (!walk_read_u64(w, w->first_cframe + w->layout.cframe_previous, &cframe) && !walk_restart(w, cframe)) {
            return 0;
        }
    }
    w->end = reason;
    return 1;
}

/* Ends the run: `record` is the address of its record on the native stack. */
#define WALK_PUT(entries, w, word, print, bytes)                       \
    do {                                                               \
        PY_U64 put_ = (w)->count;                                      \
        WALK_BOUND(put_, WIRE_PYTHON_MAX - 1);                         \
        (entries)[put_].address = (word);                              \
        (entries)[put_].fingerprint = (print);                         \
        (entries)[put_].offset = (bytes);                              \
        (w)->count++;                                                  \
    } while (0)

/*
 * One frame. Returns 1 when the walk has ended (w->end says how). Sets w->new_code when the frame's code object
 * was not met earlier in this sample. `entries` has room for WIRE_PYTHON_MAX.
 */
WALK_INLINE int walk_step(struct py_walk *w, struct wire_python *entries)
{
    const struct py_layout *l = &w->layout;
    PY_U64 frame = w->frame, code, previous, instr, fields;
    PY_U64 len = l->frame_len_bytes;
    PY_U64 at;
    PY_U32 owner, entry = 0;

    w->new_code = 0;
    if (w->count >= WIRE_PYTHON_MAX - 2) {
        w->end = LOSS_python_too_deep;
        return 1;
    }
    if (len > WALK_FRAME_MAX)
        len = WALK_FRAME_MAX;
    at = frame - w->window_start;
    if (frame < w->window_start || at + len > w->window_len) {
        /* A shim lies on the native stack; it must not cost the window over the data stack. */
        PY_U64 above = frame - w->stack_pointer;
        PY_U64 in_page = frame & (WALK_PAGE - 1);
        PY_U64 want;
        if (above >= WALK_NATIVE_STACK_BYTES && in_page >= 64) {
            /* The first time a little, for a frame in a generator has no neighbours; then to the page's start. */
            want = w->window_hits ? in_page : (in_page > 1024 ? 1024 : in_page);
            want += len;
            WALK_BOUND(want, WALK_WINDOW_MASK);
            w->window_start = frame + len - want;
            w->window_len = 0;
            if (!WALK_READ(w, w->window, want, w->window_start)) {
                w->window_len = want;
                at = frame - w->window_start;
            }
        }
        if (frame < w->window_start || at + len > w->window_len) {
            PY_U64 want_direct = len;
            WALK_BOUND(want_direct, 127);
            if (WALK_READ(w, w->direct, want_direct, frame))
                return walk_broken(w, LOSS_python_fault);
            code = WALK_U64(w->direct, l->frame_code, 127);
            previous = WALK_U64(w->direct, l->frame_previous, 127);
            instr = WALK_U64(w->direct, l->frame_instr, 127);
            fields = WALK_U64(w->direct, l->frame_owner, 127);
            if (l->frame_is_entry != PY_NONE)
                entry = (PY_U8)WALK_U64(w->direct, l->frame_is_entry, 127);
            goto have;
        }
    } else {
        w->window_hits++;
    }
    code = WALK_U64(w->window, at + l->frame_code, WALK_WINDOW_MASK);
    previous = WALK_U64(w->window, at + l->frame_previous, WALK_WINDOW_MASK);
    instr = WALK_U64(w->window, at + l->frame_instr, WALK_WINDOW_MASK);
    fields = WALK_U64(w->window, at + l->frame_owner, WALK_WINDOW_MASK);
    if (l->frame_is_entry != PY_NONE)
        entry = (PY_U8)WALK_U64(w->window, at + l->frame_is_entry, WALK_WINDOW_MASK);
have:
    owner = (PY_U8)fields;
    if (owner > PY_OWNER_MAX)
        return walk_broken(w, LOSS_python_torn);
    code &= ~(PY_U64)l->code_tag_mask;
    if (l->frame_kind == PY_FRAMES_SHIM && owner >= PY_OWNER_SHIM) {
        /* A shim is a local variable of its activation: its own address is the record. */
        if (w->open_run) {
            WALK_PUT(entries, w, frame | WIRE_RUN, 0, 0);
            w->open_run = 0;
        }
        w->last_shim = 1;
    } else {
        PY_U64 slot = (code >> 4) ^ (code >> 12);
        struct walk_seen *known;
        PY_U32 state;
        PY_U64 start;
        PY_S64 offset, traceable;

        WALK_BOUND(slot, WALK_SEEN - 1);
        known = &w->seen[slot];
        if (known->code == code && known->sample == w->sample)
            state = known->state;
        else
            state = walk_code(w, code, known);
        if (state == LOSS_bad_code)
            return walk_broken(w, LOSS_bad_code);
        if (state) {
            /* Not resident perhaps: the frame stays, and user space tries again. */
            if (w->frame_count == 0 && w->retried < 2 && l->tstate_root_cframe != PY_NONE)
                return walk_broken(w, state);
            WALK_PUT(entries, w, code | WIRE_UNREAD, 0, 0);
            w->frame_count++;
            w->open_run++;
        } else {
            traceable = known->first_traceable_bytes;
            start = code + l->code_bytecode;
            offset = (PY_S64)(instr - start);
            if (l->code_tlbc) {
                start = walk_bytecode(w, known, code, frame);
                offset = (PY_S64)(instr - start);
                /* Not known, or an array that was given back meanwhile: the frame stays, its line is the function's. */
                if (!start || offset < 0 || offset > WALK_BYTECODE_MAX) {
                    known->bytecode = 0;
                    traceable = offset = -2;
                }
            }
            /* A frame that is still being set up is not shown by Python either. */
            if (owner == PY_OWNER_GENERATOR || offset >= traceable) {
                PY_U64 word = code;
                if (owner == PY_OWNER_GENERATOR)
                    word |= WIRE_GENERATOR;
                if (offset > 0x7fffffff || offset < -0x7fffffff)
                    return walk_broken(w, LOSS_python_torn);
                WALK_PUT(entries, w, word, known->fingerprint, (int)offset);
                w->frame_count++;
                w->open_run++;
            }
        }
        w->last_shim = 0;
        if (l->frame_kind == PY_FRAMES_ENTRY && entry) {
            if (w->open_run) {
                WALK_PUT(entries, w, w->cframe | WIRE_RUN, 0, 0);
                w->open_run = 0;
            }
            w->last_shim = 1;
            if (walk_read_u64(w, w->cframe + l->cframe_previous, &w->cframe))
                return walk_broken(w, LOSS_python_torn);
        }
    }
    if (!previous) {
        PY_U64 record = w->cframe, root = w->tstate + l->tstate_root_cframe;
        /* Below the outermost frame of a greenlet lies a record that greenlet made, and then the root. */
        if (l->frame_kind == PY_FRAMES_ENTRY && record != root && w->process.flags & WIRE_PROCESS_GREENLETS &&
            walk_read_u64(w, record + l->cframe_previous, &record))
            return walk_broken(w, LOSS_python_torn);
        if (!w->last_shim || (l->frame_kind == PY_FRAMES_ENTRY && record != root))
            return walk_broken(w, LOSS_python_torn);
        w->end = LOSS_complete;
        return 1;
    }
    w->frame = previous;
    return 0;
}

/* ---- frames that are objects, up to 3.10 ---- */

WALK_INLINE int walk_object_begin(struct py_walk *w)
{
    w->count = w->frame_count = w->open_run = w->retried = w->window_hits = w->last_shim = 0;
    w->window_start = w->window_len = 0;
    w->cframe = w->first_cframe = 0;
    w->new_code = 0;
    w->end = LOSS_thread_state_fault;
    w->sample++;
    if (w->read != w->tstate && walk_fields(w, w->tstate))
        return 1;
    w->read = 0;
    w->frame = w->newest;
    if (w->layout.tstate_cframe && walk_read_u64(w, w->tstate + w->layout.tstate_cframe, &w->cframe))
        return 1;
    w->end = w->frame ? 0 : LOSS_complete;
    return w->end != 0;
}

/* The record that follows, in 3.10; 0 when the chain has come to the one embedded in the thread state, or broke. */
WALK_INLINE PY_U64 walk_object_record(struct py_walk *w)
{
    PY_U64 record = w->cframe;

    if (!record || record == w->tstate + w->layout.tstate_root_cframe)
        return 0;
    if (walk_read_u64(w, record + w->layout.cframe_previous, &w->cframe))
        w->cframe = 0;
    return record;
}

/* As walk_step(), for these frames. */
WALK_INLINE int walk_object_step(struct py_walk *w, struct wire_python *entries)
{
    const struct py_layout *l = &w->layout;
    PY_U64 code, slot, word, len = l->frame_len_bytes, previous;
    struct walk_seen *known;
    PY_U32 state;
    int number;

    w->new_code = 0;
    if (w->count >= WIRE_PYTHON_MAX - 3) {
        w->end = LOSS_python_too_deep;
        return 1;
    }
    WALK_BOUND(len, 255);
    if (WALK_READ(w, w->direct, len, w->frame)) {
        w->end = LOSS_python_fault;
        return 1;
    }
    code = WALK_U64(w->direct, l->frame_code, 127);
    previous = WALK_U64(w->direct, l->frame_previous, 127);
    number = (int)WALK_U32(w->direct, l->frame_instr, 127);
    slot = (code >> 4) ^ (code >> 12);
    WALK_BOUND(slot, WALK_SEEN - 1);
    known = &w->seen[slot];
    if (known->code == code && known->sample == w->sample)
        state = known->state;
    else
        state = walk_code(w, code, known);
    if (state == LOSS_bad_code) {
        w->end = LOSS_bad_code;
        return 1;
    }
    if (state) {
        WALK_PUT(entries, w, code | WIRE_UNREAD, 0, 0);
    } else {
        word = code;
        if (known->generator)
            word |= WIRE_GENERATOR;
        if (number < 0)
            number = -1; /* not begun */
        else
            number *= l->instr_unit_bytes;
        WALK_PUT(entries, w, word, known->fingerprint, number);
    }
    w->frame_count++;
    if (l->tstate_cframe)
        WALK_PUT(entries, w, walk_object_record(w) | WIRE_RUN, 0, 0);
    w->frame = previous;
    if (previous)
        return 0;
    w->end = LOSS_complete;
    if (l->tstate_cframe) {
        /* The newest activation may have its record before its frame. More than one too many: frames are missing. */
        word = walk_object_record(w);
        if (word) {
            WALK_PUT(entries, w, word | WIRE_RUN, 0, 0);
            if (walk_object_record(w))
                w->end = LOSS_python_torn;
        }
    }
    return 1;
}

#endif
