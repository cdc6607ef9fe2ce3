/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Python frames of 3.11 that an exception was thrown through.
 *
 * throw() of a coroutine or generator that awaits another one goes on to that one: the interpreter puts the frame of the
 * first into the chain, as what the activation that called throw() is running, and does not run it before the second has
 * returned. So that frame has no activation of its own, though is_entry, left of the last time it ran, speaks of one.
 * asyncio throws whatever a task's future has failed with, so all coroutines of the task but the innermost are of this
 * kind until it waits again. Shown they are in the run of what they await, where they would be otherwise.
 */
#ifndef BPF_PYTHON_THROWN_H
#define BPF_PYTHON_THROWN_H

#include "bpf/python_state.h"

/*
 * Whether the frame of a coroutine or generator, which was just added, has no activation of its own. `older` is the activation
 * before the one that it would have. If it had, the older one would have been running its `caller`. Only frames at the
 * beginning of a run are asked about, and not those of the newest run, which is checked otherwise (walk_check_record()).
 */
WALK_INLINE int walk_was_thrown(struct py_walk *w, PY_U64 caller, PY_U64 older)
{
    PY_U64 current = 0;

    if (w->cursor.open_run != 1 || w->cursor.older_cframe)
        return 0;
    return !older || (!walk_read_stack_u64(w, older + w->config.layout.cframe_current_frame, &current) && current != caller);
}

/* Puts such a frame into the run of what it awaits: it changes places with that run's end. */
WALK_INLINE void walk_join_run(struct py_walk *w, struct wire_python *entries)
{
    PY_U64 last = w->result.entry_count - 1, before = w->result.entry_count - 2;
    struct wire_python end;

    WALK_BOUND(last, WIRE_PYTHON_MAX - 1);
    WALK_BOUND(before, WIRE_PYTHON_MAX - 1);
    w->cursor.run_ended = 1;
    end = entries[before];
    if (w->result.entry_count < 2 || !(end.address & WIRE_RUN))
        return;
    entries[before] = entries[last];
    entries[last] = end;
    w->cursor.open_run = 0;
}

#endif
