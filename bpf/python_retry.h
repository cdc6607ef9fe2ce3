/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Python frames of 3.11 and 3.12 when the newest activation of the eval loop is half made.
 *
 * _PyEval_EvalFrameDefault() first names its _PyCFrame in the thread state and only then fills it in. Compilers widen that
 * gap to some twenty instructions: GCC stores current_frame and previous together, at its end. Until then both are what
 * an earlier activation left at that place of the stack: frames that have returned, or a ring, when the shim there
 * names as the caller's frame the one that is being entered. A thread is interrupted in the gap once in some hundred to
 * some thousand samples. What is true then:
 * - The _PyCFrame before it, and all that follows from it. Its address is in a register for the first half of the gap.
 * - In 3.12, for the second half: the frame that is entered, in a register. Its `previous` is the new shim, which names
 *   the frame of the caller.
 * - In 3.11, for the second half: a register that names the caller's frame. The _PyCFrame before it names that, too.
 * - With compilers that keep the order of the source, `previous` of the half-made _PyCFrame.
 * The frame that is entered has not begun; Python does not show such frames either.
 *
 * A second gap, of a few instructions, is a call without a new activation: current_frame names the frame that is entered
 * before that frame's `previous` names its caller. The caller is in a register.
 *
 * The walk does not know that it is in the gap. It learns that the chain is broken, or ends elsewhere than it must
 * (walk_check_record), and then tries these in turn. Each has to lead to the root.
 */
#ifndef BPF_PYTHON_RETRY_H
#define BPF_PYTHON_RETRY_H

#include "bpf/python_fast.h"

enum walk_attempt {
    WALK_BY_RECORD,   /* by registers that may name a _PyCFrame, one after another */
    WALK_BY_LINK,     /* by registers that may name the frame that calls the newest one, one after another */
    WALK_BY_FRAME,    /* 3.12: by a register that names the frame that is being entered */
    WALK_BY_CALLER,   /* 3.11: by a register that names the caller's frame, as the _PyCFrame before it does */
    WALK_BY_PREVIOUS, /* by what the newest _PyCFrame says */
    WALK_BY_NEWEST,   /* the newest once more: the trouble lies further out, or cannot be mended */
    WALK_BY_NOTHING,
};

/* A shim and the _PyCFrame are local variables of the same call. */
#define WALK_LOCALS_BYTES 1024
#define WALK_LINK_BYTES (64 << 10) /* a frame's caller lies no further below it in the thread's data stack */
#define WALK_SCAN_BYTES 512      /* of the stack are looked at in one go, */
#define WALK_SCAN_PART_BYTES 64
#define WALK_SCAN_MAX_BYTES 8192 /* and so many in all: those between two activations */

/* Whether a _PyCFrame may lie at `address`: further out on the stack than the newest, or in the thread state. */
WALK_INLINE int walk_is_older(const struct py_walk *w, PY_U64 address)
{
    return address == w->result.tstate + w->config.layout.tstate_root_cframe ||
           (!(address & 7) && address - w->cursor.first_cframe - 1 < WALK_NATIVE_STACK_BYTES);
}

/* The innermost _PyCFrame that a register may name, further out than the one that was tried last; 0: there is none. */
WALK_INLINE PY_U64 walk_next_record(struct py_walk *w, const PY_U64 *registers)
{
    struct walk_cursor *c = &w->cursor;

    c->found = 0;
    WALK_UNROLL
    for (int i = 0; i < ARCH_GENERAL_REGISTERS; i++) {
        PY_U64 distance = registers[i] - c->first_cframe;
        if (distance > c->tried && distance - 1 < c->found - 1 && walk_is_older(w, registers[i]))
            c->found = distance;
        WALK_FORGET();
    }
    c->tried = c->found;
    return c->found ? c->first_cframe + c->found : 0;
}

/*
 * Puts the cursor at the nearest frame below the newest one that a register may name, further away than the one that was
 * tried last: a frame that the newest activation runs, if its run ends as it must. 1: there is none.
 */
WALK_INLINE int walk_try_link(struct py_walk *w, const PY_U64 *registers)
{
    struct walk_cursor *c = &w->cursor;

    if (walk_place_record(w, c->first_cframe))
        return 1;
    c->found = 0;
    WALK_UNROLL
    for (int i = 0; i < ARCH_GENERAL_REGISTERS; i++) {
        PY_U64 distance = c->frame - registers[i];
        if (distance > c->tried && distance - 1 < c->found - 1 && distance < WALK_LINK_BYTES && !(registers[i] & 7))
            c->found = distance;
        WALK_FORGET();
    }
    c->tried = c->found;
    c->frame -= c->found;
    return !c->found;
}

/* 3.12: the frame that is being entered, by a register that names it: its shim is a new one. 0: there is none. */
WALK_INLINE PY_U64 walk_find_entered(struct py_walk *w, const PY_U64 *registers)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 shim = 0, owner = 0;

    WALK_UNROLL
    for (int i = 0; i < ARCH_GENERAL_REGISTERS; i++) {
        WALK_FORGET();
        if (registers[i] & 7 || walk_read_u64(w, registers[i] + l->frame_previous, &shim) ||
            shim - w->cursor.first_cframe + WALK_LOCALS_BYTES >= 2 * WALK_LOCALS_BYTES ||
            walk_read_u64(w, shim + l->frame_owner, &owner))
            continue;
        if ((PY_U8)owner == PY_OWNER_SHIM)
            return registers[i];
    }
    return 0;
}

/*
 * 3.11: a few words of the stack, which were read from `start` on, from the offset `at` on: sets cursor.found to the address of
 * the first that a register has, too, and that may be a _PyCFrame's current_frame. The member `previous` lies behind it.
 */
WALK_INLINE void walk_scan_part(struct py_walk *w, const PY_U64 *registers, PY_U64 start, PY_U64 at)
{
    struct walk_cursor *c = &w->cursor;

    for (int i = 0; i < WALK_SCAN_PART_BYTES && !c->found; i += 8) {
        PY_U64 frame = WALK_U64(w->frames.bytes, at + i, WALK_FRAMES_MASK);
        if (frame && walk_is_older(w, WALK_U64(w->frames.bytes, at + i + 8, WALK_FRAMES_MASK)) &&
            WALK_HAS_REGISTER(registers, frame))
            c->found = start + at + i;
        WALK_FORGET();
    }
}

/* A function of its own under BPF: the verifier looks at each round of a loop. */
#ifdef __bpf__
int scan_part(PY_U64 start, PY_U64 at);
#define WALK_SCAN_PART(w, registers, start, at) ((void)(registers), scan_part(start, at))
#else
#define WALK_SCAN_PART(w, registers, start, at) walk_scan_part(w, registers, start, at)
#endif

/* 3.11: the innermost _PyCFrame on the next piece of the stack whose current_frame a register names, too; 0: there is none. */
WALK_INLINE PY_U64 walk_scan_records(struct py_walk *w, const PY_U64 *registers)
{
    struct walk_cursor *c = &w->cursor;
    PY_U64 start = c->first_cframe + w->config.layout.cframe_previous + c->scanned;

    c->scanned += WALK_SCAN_BYTES;
    c->found = w->frames.len_bytes = 0;
    if (WALK_READ(w, w->frames.bytes, WALK_SCAN_BYTES + 8, start))
        return 0;
    for (PY_U64 at = 0; at < WALK_SCAN_BYTES && !c->found; at += WALK_SCAN_PART_BYTES)
        WALK_SCAN_PART(w, registers, start, at);
    if (!c->found)
        return 0;
    c->scanned -= start + WALK_SCAN_BYTES - ARCH_WORD_BYTES - c->found; /* goes on behind what was found */
    return c->found - w->config.layout.cframe_current_frame;
}

/* Puts the cursor at the activation whose _PyCFrame may lie at `record`, or at no frame. */
WALK_INLINE void walk_try_record(struct py_walk *w, PY_U64 record)
{
    if (!walk_is_older(w, record) || walk_place_record(w, record) || !walk_is_older(w, w->cursor.older_cframe))
        walk_place(w, 0, 0, 0);
}

/*
 * The walk has ended. If the newest activation may be the reason, puts the cursor where it may begin instead; that may
 * be no frame, and then the next step ends the walk again. `registers` are the thread's in user mode, in DWARF's order, if
 * they are `known`; a pointer that may be NULL is more than the verifier of 5.10 follows. 1: the end stands.
 */
WALK_INLINE int walk_retry(struct py_walk *w, const PY_U64 *registers, int known)
{
    struct walk_cursor *c = &w->cursor;
    PY_U64 record = 0, root = w->result.tstate + w->config.layout.tstate_root_cframe;

    if (w->result.end == LOSS_complete || w->result.end == LOSS_python_too_deep || !walk_has_records(w) ||
        w->config.layout.frame_kind == PY_FRAMES_OBJECT || c->attempt == WALK_BY_NOTHING)
        return 1;
    w->result.restarts++;
    w->result.end = 0;
    if (c->attempt == WALK_BY_RECORD && !known)
        c->attempt = WALK_BY_PREVIOUS;
    if (c->attempt == WALK_BY_RECORD) {
        record = walk_next_record(w, registers);
        if (!record)
            c->attempt = WALK_BY_LINK;
    }
    if (c->attempt == WALK_BY_LINK && walk_try_link(w, registers))
        c->attempt = w->config.layout.frame_kind == PY_FRAMES_SHIM ? WALK_BY_FRAME : WALK_BY_CALLER;
    if (record && record == root) {
        /* The outermost activation is being entered: no frame has begun. */
        walk_place(w, 0, 0, 0);
        w->result.end = LOSS_complete;
        return 1;
    }
    if (record) {
        walk_try_record(w, record);
    } else if (c->attempt == WALK_BY_FRAME) {
        c->attempt = WALK_BY_PREVIOUS;
        walk_place(w, walk_find_entered(w, registers), 0, 0);
    } else if (c->attempt == WALK_BY_CALLER) {
        walk_try_record(w, walk_scan_records(w, registers));
        if (c->scanned >= WALK_SCAN_MAX_BYTES)
            c->attempt = WALK_BY_PREVIOUS;
    } else if (c->attempt == WALK_BY_PREVIOUS) {
        c->attempt = WALK_BY_NEWEST;
        if (walk_read_u64(w, c->first_cframe + w->config.layout.cframe_previous, &record))
            record = 0;
        walk_try_record(w, record);
    } else if (c->attempt == WALK_BY_NEWEST) {
        c->attempt = WALK_BY_NOTHING;
        c->doubted = 1;
        if (walk_place_record(w, c->first_cframe))
            walk_place(w, 0, 0, 0);
    }
    return 0;
}

#ifndef __bpf__
/* The whole walk, from w->result.tstate; w->result.end says how it ended. `registers` as for walk_retry(); NULL: not known. */
static inline void walk_all(struct py_walk *w, const PY_U64 *registers, struct wire_python *entries)
{
    if (w->config.layout.frame_kind == PY_FRAMES_OBJECT) {
        if (!walk_object_begin(w)) {
            while (!walk_object_step(w, entries)) {
            }
        }
    } else if (!walk_begin(w)) {
        do {
            while (walk_fast(w, entries) || !walk_step(w, entries)) {
            }
        } while (!walk_retry(w, registers, registers != NULL));
    }
}
#endif

#endif
