/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The same steps as walk_step() (bpf/python_walk.h) makes, for frames of 3.11 and later of which nothing has to be read: they
 * lie in the window over the data stack or in the part of the native stack that was read, and their code objects are known.
 * Whatever else there is to do about a frame, it leaves that frame alone, and walk_step() does it.
 */
#ifndef BPF_PYTHON_FAST_H
#define BPF_PYTHON_FAST_H

#include "bpf/python_walk.h"

#define WALK_FAST 4 /* frames and shims that one call steps over */

/* Adds an entry, of a frame or of a run's end. */
WALK_INLINE void walk_fast_put(struct py_walk *w, struct wire_python *entries, PY_U64 word, PY_U32 fingerprint, int offset)
{
    PY_U64 put = w->result.entry_count;

    WALK_BOUND(put, WIRE_PYTHON_MAX - 1);
    entries[put].address = word;
    entries[put].fingerprint = fingerprint;
    entries[put].offset = offset;
    w->result.entry_count++;
}

/* A frame in the window, `at` its bytes. The frame that it was called from; 0: it is left alone. */
WALK_INLINE PY_U64 walk_fast_frame(struct py_walk *w, struct wire_python *entries, PY_U64 at)
{
    const struct py_layout *l = &w->config.layout;
    const struct live_stack *live = walk_live(w);
    struct walk_cursor *c = &w->cursor;
    PY_U64 next_record = 0, caller = 0;
    struct walk_frame f;

    WALK_TAKE_FRAME(&f, l, w->frames.bytes, at, WALK_FRAMES_MASK);
    PY_U64 slot = (f.code >> 4) ^ (f.code >> 12);
    WALK_BOUND(slot, WALK_CODES - 1);
    const struct walk_code *code = &w->codes.seen[slot];
    PY_S64 offset = (PY_S64)(f.instr - f.code - l->code_bytecode);
    if (code->address != f.code || code->epoch != w->codes.epoch || code->state || f.owner > PY_OWNER_GENERATOR ||
        f.previous == c->mark || offset > 0x7fffffff || offset < (PY_S64)code->first_traceable_bytes)
        return 0;
    if (!f.previous)
        return 0;
    if (!f.is_entry) {
        c->open_run++;
        c->run_ended = 0;
    } else if (c->older_cframe || !live || live_stack_u64(live, c->cframe + l->cframe_previous, &next_record)) {
        return 0;
    } else if (f.owner == PY_OWNER_GENERATOR && /* walk_was_thrown() */
               (live_stack_u64(live, next_record + l->cframe_current_frame, &caller) || caller != f.previous)) {
        return 0;
    }
    walk_fast_put(w, entries, f.code | (f.owner == PY_OWNER_GENERATOR ? WIRE_GENERATOR : 0), code->fingerprint, (int)offset);
    w->result.frame_count++;
    w->frames.hits++;
    if (f.is_entry) {
        walk_fast_put(w, entries, c->cframe | WIRE_RUN, 0, 0);
        c->open_run = 0;
        c->run_ended = 1;
        c->cframe = next_record;
    }
    return f.previous;
}

/* A shim on the native stack, `at` its bytes. The frame from which its activation was called; 0: it is left alone. */
WALK_INLINE PY_U64 walk_fast_shim(struct py_walk *w, struct wire_python *entries, PY_U64 at)
{
    const struct py_layout *l = &w->config.layout;
    const struct live_stack *live = walk_live(w);
    struct walk_cursor *c = &w->cursor;
    PY_U64 previous = WALK_U64(live->bytes, at + l->frame_previous, LIVE_STACK_MASK);
    PY_U8 owner = (PY_U8)WALK_U64(live->bytes, at + l->frame_owner, LIVE_STACK_MASK);

    if (owner < PY_OWNER_SHIM || owner > PY_OWNER_MAX || !previous || previous == c->mark || c->older_cframe)
        return 0;
    if (c->open_run)
        walk_fast_put(w, entries, c->frame | WIRE_RUN, 0, 0);
    c->open_run = 0;
    c->run_ended = 1;
    return previous;
}

/* A frame or a shim; the cursor is in memory, so that the verifier sees the same state after each. 0: it is left alone. */
WALK_INLINE int walk_fast_step(struct py_walk *w, struct wire_python *entries)
{
    const struct live_stack *live = walk_live(w);
    struct walk_cursor *c = &w->cursor;
    PY_U64 frame = c->frame, at = frame - w->frames.start, len = w->config.layout.frame_len_bytes, previous = 0;

    if (w->result.entry_count >= WIRE_PYTHON_MAX - 2 || c->steps >= WALK_STEPS_MAX)
        return 0;
    if (w->frames.len_bytes >= len && at <= w->frames.len_bytes - len)
        previous = walk_fast_frame(w, entries, at);
    else if (live && w->config.layout.frame_kind == PY_FRAMES_SHIM && live_stack_has(live, frame, len))
        previous = walk_fast_shim(w, entries, frame - live->start);
    if (!previous)
        return 0;
    /* As walk_advance(), where this is compared with what is remembered. */
    if (!(c->steps & (c->steps + 1)))
        c->mark = previous;
    c->steps++;
    c->frame = previous;
    return 1;
}

/*
 * Up to WALK_FAST frames and shims. Returns 1 when there may be more of them, 0 when walk_step() is to make the next step.
 * `entries` as there.
 */
WALK_INLINE int walk_fast(struct py_walk *w, struct wire_python *entries)
{
    /* Where code objects are remembered for one sample only, the next one is new more often than not after one that is. */
    if (w->config.layout.code_tlbc || w->cursor.doubted || (!w->codes.counter && w->result.new_code))
        return 0;
    for (int i = 0; i < WALK_FAST; i++) {
        if (!walk_fast_step(w, entries))
            return 0;
        WALK_FORGET();
    }
    return 1;
}

#endif
