/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coroutines that a task waits in. Each has its frame in itself; while it is suspended at an await, what it awaits lies
 * on the frame's stack of values.
 */
#include "capture/asyncio/task_walk.h"

#define STEPS_MAX (4 * TASK_READER_FRAMES_MAX)
#define LATE_STEPS 256 /* steps between two looks at the clock */
#define COROUTINE_BYTES_MAX 256
#define STATE_SUSPENDED (-1) /* 3.12: FRAME_SUSPENDED */
#define RESUME_AWAITS 2      /* the least argument of RESUME behind an await */

/* Whether the coroutine shows that it awaits something. */
static bool awaits(const struct task_walk *w, int8_t state, uint64_t instr)
{
    const struct py_behaviour *version = w->objects.version;
    uint8_t next[2]; /* opcode, argument */

    if (version->awaits != PY_AWAITS_RESUME)
        return state == version->awaits_number;
    return state == STATE_SUSPENDED && py_object_bytes(&w->objects, instr + 2, next, sizeof next) &&
           next[0] == version->awaits_number && next[1] >= RESUME_AWAITS;
}

/* The object that a suspended coroutine awaits; 0: none, or it cannot be read. `bytes` are the coroutine's. */
static uint64_t awaited(struct task_walk *w, uint64_t coroutine, const uint8_t *bytes)
{
    const struct py_layout *l = w->objects.layout;
    enum py_awaits how = w->objects.version->awaits;
    uint32_t frame = l->coroutine_frame;
    uint64_t end, object;

    if (!awaits(w, (int8_t)bytes[l->coroutine_state], py_u64_of(bytes + frame + l->frame_instr)))
        return 0;
    if (how == PY_AWAITS_RESUME || how == PY_AWAITS_COUNTED) {
        uint32_t values;
        memcpy(&values, bytes + frame + l->frame_stack, sizeof values);
        end = coroutine + frame + l->frame_locals + 8 * (uint64_t)values;
    } else {
        end = py_u64_of(bytes + frame + l->frame_stack);
    }
    end -= how == PY_AWAITS_BELOW ? 16 : 8;
    return py_object_u64(&w->objects, end, &object) ? object & ~UINT64_C(7) : 0;
}

/* Puts the coroutine's frame into `entry`. False: it has none, or it is no frame. */
static bool frame_of(struct task_walk *w, uint64_t coroutine, const uint8_t *bytes, struct wire_python *entry)
{
    const struct py_layout *l = w->objects.layout;
    const uint8_t *b = bytes + l->coroutine_frame;
    struct py_walk *walk = w->walk;
    const struct walk_frame f = {.code = py_u64_of(b + l->frame_code) & ~(uint64_t)l->code_tag_mask,
                                 .instr = py_u64_of(b + l->frame_instr),
                                 .owner = PY_OWNER_GENERATOR};

    if (!f.code)
        return false;
    walk->result.entry_count = walk->result.frame_count = 0;
    walk->cursor.doubted = 1; /* a code object that cannot be read is no reason to begin again elsewhere */
    walk->cursor.frame = coroutine + l->coroutine_frame;
    return !walk_put_frame(walk, entry, &f) && walk->result.entry_count;
}

void task_frames_add(struct task_walk *w, struct task *task)
{
    const struct py_layout *l = w->objects.layout;
    uint64_t at = task->coroutine, len = (uint64_t)l->coroutine_frame + l->frame_locals;
    struct wire_python entries[TASK_READER_FRAMES_MAX];
    uint8_t bytes[COROUTINE_BYTES_MAX + 8];
    uint32_t count = 0;

    if (len > COROUTINE_BYTES_MAX)
        return;
    for (uint32_t i = 0; i < STEPS_MAX && at; i++) {
        enum task_kind kind = task_walk_kind_of(w, at);
        if (i % LATE_STEPS == LATE_STEPS - 1 && w->is_late(w->objects.ctx))
            break;
        if (kind == TASK_KIND_STEP) {
            if (!py_object_u64(&w->objects, at + w->objects.header, &at))
                break;
            continue;
        }
        if (kind != TASK_KIND_COROUTINE || !py_object_bytes(&w->objects, at, bytes, len) ||
            !frame_of(w, at, bytes, &entries[count % TASK_READER_FRAMES_MAX]))
            break;
        count++;
        at = awaited(w, at, bytes);
    }
    task->first_frame = (uint32_t)w->out->frames.count;
    for (; count && task->frame_count < TASK_READER_FRAMES_MAX; task->frame_count++) {
        if (!VEC_PUSH(&w->out->frames, entries[--count % TASK_READER_FRAMES_MAX])) {
            w->no_memory = true;
            return;
        }
    }
}
