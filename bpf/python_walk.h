/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The Python frame walk: from a thread's state to a list of (code object, instruction).
 *
 * One piece of code for the BPF program and for the host (bpf/walk.h). All state lies
 * in struct py_walk (bpf/python_thread.h), in a map's value under BPF, so that each step
 * is a function the verifier looks at once.
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

#include "bpf/python_thread.h"

enum { PY_OWNER_GENERATOR = 1, PY_OWNER_SHIM = 3, PY_OWNER_MAX = 4 };
/* Bits of co_flags: generator, coroutine, iterable coroutine, asynchronous generator. In 2.7 only the first exists. */
#define PY_CODE_GENERATOR 0x3a0

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
        PY_U64 in_page = frame & (ARCH_PAGE_BYTES - 1);
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
