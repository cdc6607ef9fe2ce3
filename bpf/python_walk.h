/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The Python frame walk: from a thread's state to a list of (code object, instruction).
 *
 * One piece of code for the BPF program and for the host (bpf/walk.h). A caller finds the thread state
 * (bpf/python_thread.h), begins the walk, and makes steps until one says that it has ended. Each step is one frame.
 *
 * How frames are chained differs per version (formats/cpython/layout.h):
 * - up to 3.10: thread state -> newest PyFrameObject -> f_back … NULL. Each frame has an activation of the eval loop of
 *   its own; in 3.10 a _PyCFrame for each, as in 3.11. Frames lie anywhere in the heap, so each costs a read.
 * - 3.11: thread state -> _PyCFrame (on the native stack, one per activation of the eval loop) -> newest frame ->
 *   previous … NULL. `is_entry` marks the outermost frame of an activation's run. A coroutine through which throw() went on
 *   to what it awaits has the mark, and no activation (walk_was_thrown()).
 * - 3.12: begins like 3.11; a run ends with a shim frame (owner 3) on the native stack.
 * - 3.13: thread state -> newest frame; runs end with a shim.
 * - 3.15: like 3.13; behind the outermost shim comes a last one, embedded in the thread state.
 * From 3.11 on, frames of ordinary calls lie side by side in the thread's data stack, older ones lower, so one read from
 * the start of the page up to the frame serves many.
 *
 * Of each frame's code object the header is read and a fingerprint made, because addresses of code objects are used again.
 * A code object that occurs again in the same sample is looked up in a small table instead. So it is in later samples, for as
 * long as it is known that no code object was made since (bpf/sampler_codes.h).
 *
 * In free-threaded 3.14 and later each thread runs its own copy of the bytecode: the frame says which, the code object
 * where it is.
 *
 * A walk is complete when it reached the root. In 3.11 the last frame is an entry, and the chain of _PyCFrames is at the
 * one embedded in the thread state; in 3.12 and later the last element is a shim without a predecessor. Everything else is
 * torn, and the walk ends with that reason. A chain that comes back to a frame it had is torn, too.
 *
 * In 3.11 and 3.12 the newest _PyCFrame may be half made: bpf/python_retry.h.
 */
#ifndef BPF_PYTHON_WALK_H
#define BPF_PYTHON_WALK_H

#include "bpf/python_name.h"
#include "bpf/python_thread.h"
#include "bpf/python_thrown.h"

enum { PY_OWNER_GENERATOR = 1, PY_OWNER_SHIM = 3, PY_OWNER_MAX = 4 };
/* Bits of co_flags: generator, coroutine, iterable coroutine, asynchronous generator. In 2.7 only the first exists. */
#define PY_CODE_GENERATOR 0x3a0

#define WALK_BYTECODE_MAX (1 << 28)        /* an instruction further from its bytecode's start is not believed */
#define WALK_SET_UP_BYTES 16               /* so far before it at most a frame points that is being set up */
#define WALK_BYTECODE_INDEX_NONE (1 << 22) /* more copies of bytecode than there can be threads */
#define WALK_WINDOW_FIRST 1024             /* bytes of the data stack that the first window takes */
#define WALK_STEPS_MAX (4 * WIRE_PYTHON_MAX) /* frames that are looked at, shown or not */
#define WALK_IN_PAGE_MIN 64                /* a frame nearer to its page's start is read alone */

/* Adds an entry; `word` is an address with WIRE_* bits. */
#define WALK_PUT(entries, w, word, print, bytes)                       \
    do {                                                               \
        PY_U64 put_ = (w)->result.entry_count;                         \
        WALK_BOUND(put_, WIRE_PYTHON_MAX - 1);                         \
        (entries)[put_].address = (word);                              \
        (entries)[put_].fingerprint = (print);                         \
        (entries)[put_].offset = (bytes);                              \
        (w)->result.entry_count++;                                     \
    } while (0)

/* The frames form a ring. What led there is not known: what stays is the run that is known to be sound. */
WALK_INLINE PY_U32 walk_ring(struct py_walk *w)
{
    w->result.entry_count = w->cursor.sound_count;
    return LOSS_python_torn;
}

/* ---- code objects ---- */

/* The fingerprint of the code object whose header is in w->scratch.header. 0, or the loss reason. */
WALK_INLINE PY_U32 walk_fingerprint(struct py_walk *w, PY_U32 *out)
{
    const struct py_layout *l = &w->config.layout;
    const PY_U8 *h = w->scratch.header;
    PY_U64 name = WALK_U64(h, l->code_name, WALK_HEADER_MASK), hash = 0, version;

    if (l->code_version != PY_NONE)
        version = WALK_U32(h, l->code_version, WALK_HEADER_MASK);
    /* No version counter: the name's cached hash tells functions apart that got the same addresses. */
    else if (walk_read_u64(w, name + l->str_hash, &version))
        return LOSS_code_fault;
    if (l->code_version == PY_NONE && version == WALK_NAME_HASH_NONE) {
        if (WALK_NAME_MIX(w, name))
            return LOSS_code_fault;
        version = w->scratch.word;
    }
    hash = walk_mix(hash, name);
    hash = walk_mix(hash, version);
    hash = walk_mix(hash, WALK_U64(h, l->code_filename, WALK_HEADER_MASK));
    if (l->code_qualname != PY_NONE)
        hash = walk_mix(hash, WALK_U64(h, l->code_qualname, WALK_HEADER_MASK));
    hash = walk_mix(hash, WALK_U64(h, l->code_line_table, WALK_HEADER_MASK));
    hash = walk_mix(hash, WALK_U64(h, l->code_code ? l->code_code : l->code_size, WALK_HEADER_MASK));
    hash = walk_mix(hash, ((PY_U64)WALK_U32(h, l->code_first_line, WALK_HEADER_MASK) << 32) |
                              WALK_U32(h, l->code_flags, WALK_HEADER_MASK));
    *out = (PY_U32)(hash ^ (hash >> 32));
    return 0;
}

/*
 * Reads the header of the code object at `address` into w->scratch.header, and from it what the walk needs to know into
 * `out`, with its fingerprint. Returns out->state: 0, or the loss reason.
 */
WALK_INLINE PY_U32 walk_read_code(struct py_walk *w, PY_U64 address, struct walk_code *out)
{
    const struct py_layout *l = &w->config.layout;
    const PY_U8 *h = w->scratch.header;
    PY_U64 len = l->code_len_bytes;
    PY_U32 traceable = 0, state, print = 0;

    WALK_BOUND(len, WALK_HEADER_MASK);
    if (WALK_READ(w, w->scratch.header, len, address))
        state = LOSS_code_fault;
    else if (WALK_U64(h, l->code_type, WALK_HEADER_MASK) != w->config.process.code_type)
        state = LOSS_bad_code;
    else
        state = walk_fingerprint(w, &print);
    if (l->frame_kind == PY_FRAMES_OBJECT)
        traceable = (WALK_U32(h, l->code_flags, WALK_HEADER_MASK) & PY_CODE_GENERATOR) != 0;
    else if (l->code_first_traceable != PY_NONE)
        traceable = 2 * WALK_U32(h, l->code_first_traceable, WALK_HEADER_MASK);
    out->address = address;
    out->epoch = w->codes.epoch;
    out->fingerprint = print;
    out->bytecode = 0;
    out->first_traceable_bytes = traceable < WALK_TRACEABLE_MAX ? traceable : WALK_TRACEABLE_MAX;
    out->state = state;
    if (state) {
        w->codes.doubted = 1;
        return state;
    }
    w->result.new_code = address;
    w->result.new_fingerprint = print;
    /* Counted up after each that is made, 0 for those that had no number any more. */
    if (w->codes.counter && WALK_U32(h, l->code_version, WALK_HEADER_MASK) >= w->codes.counter)
        w->codes.wrong = 1;
    return 0;
}

/* Looks up a code object in the table; reads it when it is not there. */
WALK_INLINE struct walk_code *walk_lookup_code(struct py_walk *w, PY_U64 address)
{
    PY_U64 slot = (address >> 4) ^ (address >> 12);
    struct walk_code *code;

    WALK_BOUND(slot, WALK_CODES - 1);
    code = &w->codes.seen[slot];
    if (code->address != address || code->epoch != w->codes.epoch)
        walk_read_code(w, address, code);
    return code;
}

/*
 * Free-threaded: where the copy of the bytecode begins that a frame runs; 0 when that cannot be told. All frames of a
 * thread run the copy with the thread's index, but for generators that another thread began and where there was no room
 * for a copy.
 */
WALK_INLINE PY_U64 walk_bytecode(struct py_walk *w, struct walk_code *code, PY_U64 frame)
{
    PY_U64 copies, start;
    PY_U32 index;

    if (WALK_READ(w, &w->scratch.word, sizeof index, frame + w->config.layout.frame_tlbc_index))
        return 0;
    index = (PY_U32)w->scratch.word;
    if (w->cursor.bytecode_index == WALK_BYTECODE_INDEX_NONE)
        w->cursor.bytecode_index = index;
    if (code->bytecode && index == w->cursor.bytecode_index)
        return code->bytecode;
    /* An array of pointers behind its length. */
    if (index >= WALK_BYTECODE_INDEX_NONE || walk_read_u64(w, code->address + w->config.layout.code_tlbc, &copies) ||
        walk_read_u64(w, copies + 8 + 8 * (PY_U64)index, &start))
        return 0;
    if (index == w->cursor.bytecode_index)
        code->bytecode = start;
    return start;
}

/* ---- beginning ---- */

/*
 * Puts the cursor at a frame, with no entries so far. 3.11 and 3.12: the _PyCFrame of the frame's activation and the one
 * before it; 0: not known.
 */
WALK_INLINE void walk_place(struct py_walk *w, PY_U64 frame, PY_U64 cframe, PY_U64 older)
{
    struct walk_cursor *c = &w->cursor;

    c->frame = frame;
    c->cframe = cframe;
    c->older_cframe = older;
    c->mark = 0;
    c->steps = c->open_run = c->run_ended = 0;
    c->sound_count = c->contradicted = 0;
    w->result.entry_count = w->result.frame_count = 0;
}

/* Puts the cursor at the newest frame of an activation of the eval loop, by its _PyCFrame. 0: it could be read. */
WALK_INLINE int walk_place_record(struct py_walk *w, PY_U64 cframe)
{
    PY_U64 current, previous, at = cframe + w->config.layout.cframe_current_frame;

    /* They lie side by side. */
    if (walk_read_stack_u64(w, at, &current) || walk_read_stack_u64(w, at + sizeof current, &previous))
        return 1;
    walk_place(w, current, cframe, previous);
    return 0;
}

/*
 * Moves on to a frame. 1: the walk was there before. As Brent does it: one frame is remembered, a later one at each power
 * of two.
 */
WALK_INLINE int walk_advance(struct walk_cursor *c, PY_U64 frame)
{
    if (frame == c->mark)
        return 1;
    if (!(c->steps & (c->steps + 1)))
        c->mark = frame;
    c->steps++;
    c->frame = frame;
    return 0;
}

/* Clears what belongs to one stack and reads the thread state. 0: done; else w->result.end says why not. */
WALK_INLINE int walk_clear(struct py_walk *w)
{
    struct walk_cursor *c = &w->cursor;

    w->result.entry_count = w->result.frame_count = w->result.restarts = 0;
    w->result.new_code = 0;
    c->first_cframe = c->tried = c->scanned = 0;
    c->attempt = c->doubted = 0;
    walk_place(w, 0, 0, 0);
    c->bytecode_index = WALK_BYTECODE_INDEX_NONE;
    w->frames.start = w->frames.len_bytes = w->frames.hits = 0;
    if (!w->codes.counter)
        w->codes.epoch = ++w->codes.newest;
    w->result.end = LOSS_thread_state_fault;
    if (w->tstate.address != w->result.tstate && walk_read_tstate(w, w->result.tstate))
        return 1;
    w->tstate.address = 0; /* the next walk wants the state as it is then */
    return 0;
}

/* Where the walk begins, from w->result.tstate. 0 when there is a frame to look at; else w->result.end says why not. */
WALK_INLINE int walk_begin(struct py_walk *w)
{
    struct walk_cursor *c = &w->cursor;

    if (walk_clear(w))
        return 1;
    c->frame = w->tstate.newest;
    if (walk_has_records(w)) {
        c->first_cframe = w->tstate.newest;
        if (walk_place_record(w, c->first_cframe))
            return 1;
    }
    w->result.end = 0;
    /* A thread that runs no Python code has no frames. With records that is the one in the thread state, or greenlet's. */
    if (!c->frame && (c->first_cframe == w->result.tstate + w->config.layout.tstate_root_cframe || !c->first_cframe ||
                      w->config.process.flags & WIRE_PROCESS_GREENLETS))
        w->result.end = LOSS_complete;
    return w->result.end != 0;
}

/* ---- frames on the data stack, 3.11 and later (_PyInterpreterFrame) ---- */

/* The members of a frame that the walk looks at. */
struct walk_frame {
    PY_U64 code, previous, instr;
    PY_U8 owner, is_entry;
};

/* Reads a window of the data stack up to the end of the frame at `frame`, which has `len` bytes. */
WALK_INLINE void walk_move_window(struct py_walk *w, PY_U64 frame, PY_U64 len)
{
    PY_U64 want = frame & (ARCH_PAGE_BYTES - 1);

    /* The first time a little, since a frame in a generator has no neighbours; then from the page's start. */
    if (!w->frames.hits && want > WALK_WINDOW_FIRST)
        want = WALK_WINDOW_FIRST;
    want += len;
    WALK_BOUND(want, WALK_FRAMES_MASK);
    w->frames.start = frame + len - want;
    w->frames.len_bytes = 0;
    if (!WALK_READ(w, w->frames.bytes, want, w->frames.start))
        w->frames.len_bytes = want;
}

WALK_INLINE int walk_in_window(const struct py_walk *w, PY_U64 frame, PY_U64 len)
{
    return frame >= w->frames.start && frame - w->frames.start + len <= w->frames.len_bytes;
}

/* Reads the frame at `frame`, or finds it in the window: its bytes are in w->frames.bytes, from *at on. 0: done. */
WALK_INLINE int walk_frame_bytes(struct py_walk *w, PY_U64 frame, PY_U64 *at)
{
    PY_U64 len = w->config.layout.frame_len_bytes;

    if (len > WALK_FRAME_MAX)
        len = WALK_FRAME_MAX;
    if (walk_in_window(w, frame, len)) {
        w->frames.hits++;
    } else {
        /* A shim lies on the native stack; it must not cost the window over the data stack. */
        if (frame - w->config.stack_pointer >= WALK_NATIVE_STACK_BYTES &&
            (frame & (ARCH_PAGE_BYTES - 1)) >= WALK_IN_PAGE_MIN)
            walk_move_window(w, frame, len);
        if (!walk_in_window(w, frame, len)) {
            WALK_BOUND(len, WALK_FRAME_APART_MASK);
            *at = WALK_FRAME_APART;
            return WALK_READ(w, w->frames.bytes + WALK_FRAME_APART, len, frame) != 0;
        }
    }
    *at = frame - w->frames.start;
    return 0;
}

/* Takes a frame's members from bytes that were read. */
#define WALK_TAKE_FRAME(f, l, bytes, at, mask)                                                                       \
    do {                                                                                                             \
        (f)->code = WALK_U64(bytes, (at) + (l)->frame_code, mask) & ~(PY_U64)(l)->code_tag_mask;                     \
        (f)->previous = WALK_U64(bytes, (at) + (l)->frame_previous, mask);                                           \
        (f)->instr = WALK_U64(bytes, (at) + (l)->frame_instr, mask);                                                 \
        (f)->owner = (PY_U8)WALK_U64(bytes, (at) + (l)->frame_owner, mask);                                          \
        (f)->is_entry = 0;                                                                                           \
        if ((l)->frame_is_entry != PY_NONE)                                                                          \
            (f)->is_entry = (PY_U8)WALK_U64(bytes, (at) + (l)->frame_is_entry, mask);                                \
    } while (0)

/* Reads the frame that the cursor is at. 0, or the loss reason. */
WALK_INLINE PY_U32 walk_read_frame(struct py_walk *w, struct walk_frame *f)
{
    const struct py_layout *l = &w->config.layout;
    const struct live_stack *live = walk_live(w);
    PY_U64 at, frame = w->cursor.frame;

    /* A shim lies on the native stack. */
    if (live && live_stack_has(live, frame, l->frame_len_bytes)) {
        at = frame - live->start;
        WALK_TAKE_FRAME(f, l, live->bytes, at, LIVE_STACK_MASK);
    } else {
        if (walk_frame_bytes(w, frame, &at))
            return LOSS_python_fault;
        WALK_TAKE_FRAME(f, l, w->frames.bytes, at, WALK_FRAMES_MASK);
    }
    return f->owner > PY_OWNER_MAX ? LOSS_python_torn : 0;
}

/* Ends the run of frames, if there is one: `record` is the address of its activation's record on the native stack. */
WALK_INLINE void walk_end_run(struct py_walk *w, struct wire_python *entries, PY_U64 record)
{
    if (w->cursor.open_run)
        WALK_PUT(entries, w, record | WIRE_RUN, 0, 0);
    w->cursor.open_run = 0;
    w->cursor.run_ended = 1;
}

/* Adds the frame that the cursor is at, also if its code object cannot be read now. 0, or the loss reason. */
WALK_INLINE PY_U32 walk_put_frame(struct py_walk *w, struct wire_python *entries, const struct walk_frame *f)
{
    const struct py_layout *l = &w->config.layout;
    struct walk_code *code = walk_lookup_code(w, f->code);
    PY_U64 word = f->code, start = f->code + l->code_bytecode;
    PY_S64 offset = (PY_S64)(f->instr - start), traceable = code->first_traceable_bytes;

    if (code->state) {
        /* Not resident perhaps: the frame stays, and user space tries again. */
        if (code->state == LOSS_bad_code || (!w->result.frame_count && walk_has_records(w) && !w->cursor.doubted))
            return code->state;
        word |= WIRE_UNREAD;
        traceable = 0;
        if (l->code_tlbc || offset < -WALK_SET_UP_BYTES || offset > WALK_BYTECODE_MAX)
            traceable = offset = WIRE_OFFSET_UNKNOWN;
    } else if (l->code_tlbc) {
        start = walk_bytecode(w, code, w->cursor.frame);
        offset = (PY_S64)(f->instr - start);
        /* Not known, or an array that was given back meanwhile: the frame stays. */
        if (!start || offset < 0 || offset > WALK_BYTECODE_MAX) {
            code->bytecode = 0;
            traceable = offset = WIRE_OFFSET_UNKNOWN;
        }
    } else if (offset > 0x7fffffff || offset < -0x7fffffff) {
        return LOSS_python_torn;
    }
    if (f->owner == PY_OWNER_GENERATOR)
        word |= WIRE_GENERATOR;
    else if (offset < traceable)
        return 0; /* a frame that is still being set up is not shown by Python either */
    WALK_PUT(entries, w, word, code->fingerprint, (int)offset);
    w->result.frame_count++;
    w->cursor.open_run++;
    return 0;
}

/*
 * 3.11 and 3.12, at the end of the newest run: whether that activation's _PyCFrame was whole. What was called then comes
 * from the frame that the _PyCFrame before it names, and that does not change until the call returns. 0, or the loss reason.
 */
WALK_INLINE PY_U32 walk_check_record(struct py_walk *w, PY_U64 caller)
{
    struct walk_cursor *c = &w->cursor;
    PY_U64 older = c->older_cframe, expected = 0;

    /* greenlet exchanges what the record below a greenlet's outermost frame says. */
    if (!older || w->config.process.flags & WIRE_PROCESS_GREENLETS)
        return 0;
    c->older_cframe = 0;
    if (!walk_read_stack_u64(w, older + w->config.layout.cframe_current_frame, &expected) && expected == caller) {
        c->sound_count = w->result.entry_count;
        return 0;
    }
    c->contradicted = 1;
    return c->doubted ? 0 : LOSS_python_torn;
}

/* Adds what the cursor is at: a frame, or the end of a run, or, in 3.11, both. 0, or the loss reason. */
WALK_INLINE PY_U32 walk_put(struct py_walk *w, struct wire_python *entries, const struct walk_frame *f)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 older = 0;
    PY_U32 reason;
    int unread;

    if (l->frame_kind == PY_FRAMES_SHIM && f->owner >= PY_OWNER_SHIM) {
        /* A shim is a local variable of its activation: its own address is the record. */
        walk_end_run(w, entries, w->cursor.frame);
        return walk_check_record(w, f->previous);
    }
    reason = walk_put_frame(w, entries, f);
    if (reason)
        return reason;
    w->cursor.run_ended = 0;
    if (l->frame_kind == PY_FRAMES_ENTRY && f->is_entry) {
        unread = walk_read_stack_u64(w, w->cursor.cframe + l->cframe_previous, &older);
        if (!unread && f->owner == PY_OWNER_GENERATOR && walk_was_thrown(w, f->previous, older)) {
            walk_join_run(w, entries);
            return 0;
        }
        walk_end_run(w, entries, w->cursor.cframe);
        if (unread)
            return LOSS_python_torn;
        w->cursor.cframe = older;
        return walk_check_record(w, f->previous);
    }
    return 0;
}

/* Whether the walk has come to the root, now that there is no frame left: LOSS_complete, or the loss reason. */
WALK_INLINE PY_U32 walk_root(struct py_walk *w)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 record = w->cursor.cframe, root = w->result.tstate + l->tstate_root_cframe;

    if (!w->cursor.run_ended)
        return LOSS_python_torn;
    if (l->frame_kind != PY_FRAMES_ENTRY || record == root)
        return LOSS_complete;
    /* Below the outermost frame of a greenlet lies a record that greenlet made, and then the root. */
    if (w->config.process.flags & WIRE_PROCESS_GREENLETS && !walk_read_u64(w, record + l->cframe_previous, &record) &&
        record == root)
        return LOSS_complete;
    return LOSS_python_torn;
}

/* The walk of an activation that may be half made has ended: drops what nothing speaks for. */
WALK_INLINE void walk_end_doubted(struct py_walk *w, const struct wire_python *entries)
{
    if (w->cursor.contradicted && w->result.end == LOSS_complete)
        w->result.end = LOSS_python_torn;
    if (w->cursor.contradicted || (w->result.end != LOSS_complete && entries[0].address & WIRE_UNREAD))
        w->result.entry_count = 0;
}

/*
 * One frame. Returns 1 when the walk has ended; w->result.end says how, and in 3.11 and 3.12 walk_retry() whether it goes on
 * elsewhere. Sets w->result.new_code when the frame's code object was not met before in this sample. `entries` has room for
 * WIRE_PYTHON_MAX.
 */
WALK_INLINE int walk_step(struct py_walk *w, struct wire_python *entries)
{
    struct walk_frame f = {0};
    PY_U32 reason;

    w->result.new_code = 0;
    if (w->result.entry_count >= WIRE_PYTHON_MAX - 2 || w->cursor.steps >= WALK_STEPS_MAX) {
        w->result.end = LOSS_python_too_deep;
        return 1;
    }
    reason = walk_read_frame(w, &f);
    if (!reason)
        reason = walk_put(w, entries, &f);
    if (!reason && !f.previous)
        reason = walk_root(w);
    if (!reason && walk_advance(&w->cursor, f.previous))
        reason = walk_ring(w);
    w->result.end = reason;
    if (reason && w->cursor.doubted)
        walk_end_doubted(w, entries);
    return reason != 0;
}

/* ---- frames that are objects, up to 3.10 (PyFrameObject) ---- */

/* As walk_begin(), for these frames. */
WALK_INLINE int walk_object_begin(struct py_walk *w)
{
    const struct py_layout *l = &w->config.layout;

    if (walk_clear(w))
        return 1;
    w->cursor.frame = w->tstate.newest;
    if (l->tstate_cframe && walk_read_u64(w, w->result.tstate + l->tstate_cframe, &w->cursor.cframe))
        return 1;
    w->result.end = w->cursor.frame ? 0 : LOSS_complete;
    return w->result.end != 0;
}

/* The record that follows, in 3.10; 0 when the chain has come to the one embedded in the thread state, or is broken. */
WALK_INLINE PY_U64 walk_object_record(struct py_walk *w)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 record = w->cursor.cframe;

    if (!record || record == w->result.tstate + l->tstate_root_cframe)
        return 0;
    if (walk_read_stack_u64(w, record + l->cframe_previous, &w->cursor.cframe))
        w->cursor.cframe = 0;
    return record;
}

/* Adds a frame; `number` is that of its instruction, negative when the frame has not begun. 0, or the loss reason. */
WALK_INLINE PY_U32 walk_object_put(struct py_walk *w, struct wire_python *entries, PY_U64 address, int number)
{
    const struct walk_code *code = walk_lookup_code(w, address);

    if (code->state == LOSS_bad_code)
        return LOSS_bad_code;
    int offset = number < 0 ? -1 : number > WALK_BYTECODE_MAX ? WIRE_OFFSET_UNKNOWN : number * w->config.layout.instr_unit_bytes;
    if (code->state)
        WALK_PUT(entries, w, address | WIRE_UNREAD, 0, offset);
    else
        WALK_PUT(entries, w, address | (code->first_traceable_bytes ? WIRE_GENERATOR : 0), code->fingerprint, offset);
    w->result.frame_count++;
    if (w->config.layout.tstate_cframe)
        WALK_PUT(entries, w, walk_object_record(w) | WIRE_RUN, 0, 0);
    return 0;
}

/* The chain of frames is at its end; in 3.10 so should be the records. */
WALK_INLINE PY_U32 walk_object_root(struct py_walk *w, struct wire_python *entries)
{
    PY_U64 record;

    if (!w->config.layout.tstate_cframe)
        return LOSS_complete;
    /* The newest activation may have its record before its frame. More than one too many: frames are missing. */
    record = walk_object_record(w);
    if (!record)
        return LOSS_complete;
    WALK_PUT(entries, w, record | WIRE_RUN, 0, 0);
    return walk_object_record(w) ? LOSS_python_torn : LOSS_complete;
}

/* As walk_step(), for these frames. */
WALK_INLINE int walk_object_step(struct py_walk *w, struct wire_python *entries)
{
    const struct py_layout *l = &w->config.layout;
    const PY_U8 *b = w->frames.bytes;
    PY_U64 len = l->frame_len_bytes, previous;

    w->result.new_code = 0;
    w->result.end = LOSS_python_too_deep;
    if (w->result.entry_count >= WIRE_PYTHON_MAX - 3)
        return 1;
    WALK_BOUND(len, WALK_HEADER_MASK);
    w->result.end = LOSS_python_fault;
    if (WALK_READ(w, w->frames.bytes, len, w->cursor.frame))
        return 1;
    w->result.end = walk_object_put(w, entries, WALK_U64(b, l->frame_code, WALK_HEADER_MASK),
                                    (int)WALK_U32(b, l->frame_instr, WALK_HEADER_MASK));
    if (w->result.end)
        return 1;
    previous = WALK_U64(b, l->frame_previous, WALK_HEADER_MASK);
    if (!previous)
        w->result.end = walk_object_root(w, entries);
    else if (walk_advance(&w->cursor, previous))
        w->result.end = walk_ring(w);
    return w->result.end != 0;
}

#endif
