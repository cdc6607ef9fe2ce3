/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The state of a Python walk, one struct per role: what the caller asks for, the thread state that was read, the search
 * for it, the cursor, the result, and two caches.
 *
 * All of it lies in a map's value under BPF, so that the steps of a walk can be functions without arguments, which the
 * verifier looks at once. The walk itself is in bpf/python_thread.h and bpf/python_walk.h.
 */
#ifndef BPF_PYTHON_STATE_H
#define BPF_PYTHON_STATE_H

#include "bpf/live_stack.h"

#define WALK_FRAME_MAX PY_FRAME_READ_MAX /* bytes of a frame that are looked at */
#define WALK_FRAMES_MASK 8191    /* of walk_frames.bytes */
#define WALK_FRAME_APART 8064    /* where in walk_frames.bytes a frame outside of the window is read to */
#define WALK_FRAME_APART_MASK 127
#define WALK_HEADER_MASK 255
#define WALK_CODES 512           /* code objects that are remembered; a power of two */
#define WALK_TRACEABLE_MAX 0xffffff

/* Set by the caller before a walk. The walk does not write to it. */
struct walk_config {
    struct py_layout layout;
    struct wire_process process;
    PY_U64 thread_pointer;
    PY_U64 stack_pointer; /* of user mode; 0: not known */
    PY_U32 one_thread;    /* the process has no other thread; looked at up to 3.9 only */
    PY_U32 reserved;
};

/* The thread state (PyThreadState) that was read last. */
struct walk_tstate {
    PY_U64 address;     /* 0: none was read, or it has to be read again */
    PY_U64 handle;      /* the pthread handle of its thread */
    PY_U64 interpreter; /* address of its PyInterpreterState */
    PY_U64 newest;      /* what tstate_frame points to: the newest frame; in 3.11 and 3.12 the newest _PyCFrame */
    PY_U64 record;      /* 3.10 to 3.12: the newest _PyCFrame; on a native stack, or the one in the state itself */
};

/* The search for the thread's state, where more than a read or two is needed (walk_list_step). */
struct walk_search {
    PY_U64 interpreter, tstate; /* to look at next */
    /* The distance from the stack pointer up to the nearest record so far; without records 0 when a state with frames
       was found. WALK_DISTANCE_NONE: there is none yet. */
    PY_U64 nearest;
    PY_U64 current_interpreter; /* up to 3.11: that of the runtime's current state, when that is another thread's */
    PY_U32 left;                /* thread states that may still be looked at */
    PY_U32 subinterpreters;     /* the thread is known by a state, and may run in one of a subinterpreter */
    PY_U32 unread;              /* memory could not be read: where no state was found, there may be one */
};
#define WALK_DISTANCE_NONE (~0ull)

/* Where the walk over the frames has come to. */
struct walk_cursor {
    PY_U64 frame;        /* to look at next */
    PY_U64 cframe;       /* 3.10 to 3.12: the _PyCFrame of the activation that is being walked */
    /* 3.11 and 3.12 (bpf/python_retry.h). */
    PY_U64 first_cframe; /* of the newest activation */
    PY_U64 older_cframe; /* the one before that at which the walk began, until that is checked; 0: nothing to check */
    PY_U64 tried;        /* how far from the newest what was tried last lies, a _PyCFrame or a frame; 0: none was */
    PY_U64 found;        /* of a search; in memory, so that the verifier does not follow its value */
    PY_U64 scanned;      /* bytes of the stack beyond the newest that were searched */
    PY_U32 attempt;      /* enum walk_attempt: what comes next */
    PY_U32 doubted;      /* the newest activation is looked at once more, for want of a better one */
    PY_U32 contradicted; /* the newest activation's run ends elsewhere than the _PyCFrame before it says */
    PY_U32 sound_count;  /* entries of the newest run, once it was seen to end where it must */
    PY_U64 mark;         /* a frame where the walk has been */
    PY_U32 steps;        /* frames that were looked at */
    PY_U32 open_run;     /* frames since a run ended */
    PY_U32 run_ended;    /* the last element ended a run: a shim, or an entry frame */
    PY_U32 bytecode_index; /* free-threaded: the newest frame's, or WALK_BYTECODE_INDEX_NONE */
};

/* What the walk found. */
struct walk_result {
    PY_U64 tstate;         /* the running thread's state; 0: it has none, or none was found */
    PY_U64 interpreter;    /* address of the PyInterpreterState it runs in; 0: could not be read */
    PY_U64 interpreter_id; /* WIRE_INTERPRETER_ID_NONE: not known */
    PY_U32 alone;          /* there has never been another interpreter in the process, as far as that was looked at */
    PY_U32 reserved;
    PY_U32 gil;            /* WIRE_GIL_KNOWN, WIRE_GIL */
    PY_U32 ambiguous;      /* the thread has several states, and which of them it runs in can't be told */
    PY_U32 entry_count;    /* entries made, frames and ends of runs */
    PY_U32 frame_count;
    PY_U32 end;            /* the loss reason that ended it; LOSS_complete; 0: it has not ended */
    PY_U32 restarts;       /* times the walk was begun again elsewhere */
    /* The code object of the newest entry, when it was not met before in this sample: to be copied if it is new. */
    PY_U64 new_code;
    PY_U32 new_fingerprint;
    PY_U32 task_len_bytes; /* of `task`; 0: no task runs, or its name is not known */
    PY_U8 task[WIRE_TASK_MAX + 8] __attribute__((aligned(8))); /* so that words of it are written at once */
};

/* What was found out about a code object, earlier in the same sample or since when no code object was made. */
struct walk_code {
    PY_U64 address;
    PY_U64 epoch; /* it is valid in */
    PY_U32 fingerprint;
    PY_U32 first_traceable_bytes : 24; /* 3.11+; up to 3.10 whether it is a generator's or a coroutine's */
    PY_U32 state : 8; /* 0, or the loss reason: it is no code object, or could not be read */
    PY_U64 bytecode; /* free-threaded: where the newest frame's copy of the bytecode begins; 0: not read */
};
/* Code objects that were met. An address is that of another code object once the first is gone: so each epoch forgets all. */
struct walk_codes {
    PY_U64 epoch;   /* of this sample */
    PY_U64 newest;  /* epoch that was given out */
    PY_U32 counter; /* the process's counter of code objects (bpf/sampler_codes.h); 0: the epoch ends with the sample */
    PY_U32 doubted; /* a code object could not be read or sent: all are to be read again in the next sample */
    PY_U32 wrong;   /* one was met that `counter` cannot have numbered */
    PY_U32 reserved;
    struct walk_code seen[WALK_CODES];
};

/*
 * Frames as they were read: a window over the thread's data stack, whose frames lie side by side, and from
 * WALK_FRAME_APART on a frame that lies elsewhere.
 */
struct walk_frames {
    PY_U64 start, len_bytes; /* the window, in the process; len_bytes 0: there is none */
    PY_U32 hits;             /* frames that were found in it */
    PY_U8 bytes[WALK_FRAMES_MASK + 1 + 8];
};

/* Where memory is read to. */
struct walk_scratch {
    PY_U64 word;
    PY_U8 header[WALK_HEADER_MASK + 1 + 8]; /* the beginning of an object; after walk_read_code() a code object's */
};

struct py_walk {
    struct walk_config config;
    struct walk_tstate tstate;
    struct walk_search search;
    struct walk_cursor cursor;
    struct walk_result result;
    struct walk_codes codes;
    struct walk_frames frames;
    struct walk_scratch scratch;
#ifndef __bpf__
    struct walk_memory memory;
    const struct live_stack *live; /* NULL: nothing of the stack was read beforehand */
#endif
};

#ifndef __bpf__
static_assert(ARCH_PAGE_BYTES + WALK_FRAME_MAX <= WALK_FRAME_APART, "the window ends before the frame apart");
static_assert(WALK_FRAME_APART + WALK_FRAME_APART_MASK <= WALK_FRAMES_MASK, "that frame lies in the buffer");
#endif

/*
 * Hooks. The part of the stack that was read for the sample, or NULL where a walk reads everything itself; and whether one of
 * `registers` has a value, which is a function of its own under BPF: the verifier would look at each register for each value.
 */
#ifdef __bpf__
static __attribute__((always_inline)) inline const struct live_stack *walk_live(const struct py_walk *w);
int has_register(PY_U64 value);
#define WALK_HAS_REGISTER(registers, value) ((void)(registers), has_register(value))
#else
static inline const struct live_stack *walk_live(const struct py_walk *w)
{
    return w->live;
}
static inline int walk_has_register(const PY_U64 *registers, PY_U64 value)
{
    for (int i = 0; i < ARCH_GENERAL_REGISTERS; i++) {
        if (registers[i] == value)
            return 1;
    }
    return 0;
}
#define WALK_HAS_REGISTER(registers, value) walk_has_register(registers, value)
#endif

WALK_INLINE int walk_read_u64(struct py_walk *w, PY_U64 address, PY_U64 *out)
{
    if (WALK_READ(w, &w->scratch.word, sizeof w->scratch.word, address)) {
        w->search.unread = 1;
        return 1;
    }
    *out = w->scratch.word;
    return 0;
}

/* The same for what lies on the thread's stack, most likely. */
WALK_INLINE int walk_read_stack_u64(struct py_walk *w, PY_U64 address, PY_U64 *out)
{
    const struct live_stack *live = walk_live(w);

    return (!live || live_stack_u64(live, address, out)) && walk_read_u64(w, address, out);
}

#endif
