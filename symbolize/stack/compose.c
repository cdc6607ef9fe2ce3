/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/compose.h"

#include "formats/cpython/code.h"

enum {
    DEPTH_MAX = 4096, /* frames of one list, more than pycap writes; a deeper stack is cut outside and marked */
    STEP_WORK = 30,   /* for a frame of a stack, see limits.h */
};

void composer_deinit(struct composer *c)
{
    snapshots_deinit(&c->snapshots);
    VEC_DEINIT(&c->touched);
    VEC_DEINIT(&c->kernel);
    VEC_DEINIT(&c->python);
    VEC_DEINIT(&c->native);
    VEC_DEINIT(&c->ids);
    VEC_DEINIT(&c->merge_native);
    VEC_DEINIT(&c->run_start);
    VEC_DEINIT(&c->runs);
    merge_output_deinit(&c->merged);
    composed_cache_deinit(&c->cache);
    buf_deinit(&c->key);
}

void composer_clear(struct composer *c)
{
    c->touched.count = 0;
    snapshots_clear(&c->snapshots);
}

static struct error *work(const struct composer *c, uint64_t steps)
{
    return limits_work(c->limits, steps) ? NULL : error_no_memory();
}

/* Puts the ids of a stack's frames into c->ids. Frames of another kind than the list's are left out. */
static struct error *list_ids(struct composer *c, const struct epoch *e, uint32_t stack, uint8_t type, bool *cut)
{
    uint32_t depth = e->stacks.data[stack].depth;
    size_t kept = 0;

    TRY(work(c, STEP_WORK * (uint64_t)(depth < DEPTH_MAX ? depth : DEPTH_MAX)));
    *cut = depth > DEPTH_MAX;
    if (!VEC_RESERVE(&c->ids, depth < DEPTH_MAX ? depth : DEPTH_MAX))
        return error_no_memory();
    c->ids.count = epoch_stack_frames(e, stack, c->ids.data, DEPTH_MAX);
    for (size_t i = 0; i < c->ids.count; i++) {
        if (e->frames.data[c->ids.data[i]].type == type)
            c->ids.data[kept++] = c->ids.data[i];
    }
    c->ids.count = kept;
    return NULL;
}

static struct error *list_kernel(struct composer *c, const struct epoch *e, const struct trace_tuple *t)
{
    bool cut;

    TRY(list_ids(c, e, t->kernel_stack, TRACE_kernel_frame, &cut));
    if (!VEC_RESERVE(&c->kernel, c->ids.count))
        return error_no_memory();
    for (c->kernel.count = 0; c->kernel.count < c->ids.count; c->kernel.count++)
        TRY(frames_number(c->frames, e, c->ids.data[c->kernel.count], 0, &c->kernel.data[c->kernel.count]));
    return NULL;
}

static struct error *list_python(struct composer *c, const struct epoch *e, const struct trace_tuple *t,
                                 uint32_t interpreter, struct merge_input *in)
{
    bool cut;

    TRY(list_ids(c, e, t->python_stack, TRACE_python_frame, &cut));
    if (!VEC_RESERVE(&c->python, c->ids.count) || !VEC_RESERVE(&c->run_start, c->ids.count))
        return error_no_memory();
    c->python.count = c->ids.count;
    for (size_t i = 0; i < c->ids.count; i++) {
        TRY(frames_number(c->frames, e, c->ids.data[i], interpreter, &c->python.data[i]));
        c->run_start.data[i] = e->frames.data[c->ids.data[i]].flags & TRACE_FRAME_RUN_END;
    }
    in->python_count = (uint32_t)c->python.count;
    in->run_start = c->run_start.data;
    in->python_end = cut ? LOSS_python_too_deep : t->python_end;
    return NULL;
}

static struct error *put_native(struct composer *c, uint32_t expansion)
{
    return VEC_PUSH(&c->native, expansion) && VEC_PUSH(&c->merge_native, c->frames->expansions.data[expansion].merge) ? NULL
                                                                                                                    : error_no_memory();
}

static struct error *put_runs(struct composer *c, const struct epoch_join *join, bool snapshot)
{
    TRY(work(c, join->run_count * (uint64_t)(snapshot ? 10 + c->snapshots.frames.count : 10)));
    for (uint32_t i = 0; i < join->run_count; i++) {
        uint64_t value = join->runs[2 * i], reason = join->runs[2 * i + 1];
        struct merge_run run;
        if (join->kind == TRACE_JOIN_RECORD && snapshot)
            run = snapshots_join(&c->snapshots, value, reason);
        else if (join->kind == TRACE_JOIN_INDEX)
            run = (struct merge_run){.native = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX,
                                     .reason = reason < UINT32_MAX ? (uint32_t)reason : UINT32_MAX};
        else
            run = (struct merge_run){.reason = LOSS_join_mismatch};
        if (!VEC_PUSH(&c->runs, run))
            return error_no_memory();
    }
    return NULL;
}

static struct error *list_native(struct composer *c, struct epoch *e, const struct trace_tuple *t, uint64_t time_ns,
                                 struct merge_input *in)
{
    uint32_t expansion;
    bool cut = false;

    in->native_end = t->native_end;
    if (t->native_stack) {
        TRY(list_ids(c, e, t->native_stack, TRACE_native_frame, &cut));
        for (size_t i = 0; i < c->ids.count; i++) {
            TRY(frames_number(c->frames, e, c->ids.data[i], 0, &expansion));
            TRY(put_native(c, expansion));
        }
    } else if (t->snapshot) {
        TRY(snapshots_unwind(&c->snapshots, c->modules, e, t->snapshot, time_ns, &in->native_end));
        epoch_release_stack(e, t->snapshot);
        for (uint32_t i = (uint32_t)c->snapshots.frames.count; i--;) {
            struct snapshot_frame f = snapshots_frame(&c->snapshots, e, t->snapshot, i);
            TRY(frames_native(c->frames, e, f.module, f.offset, f.return_address ? TRACE_FRAME_RETURN : 0, &expansion));
            TRY(put_native(c, expansion));
        }
    }
    in->native = c->merge_native.data;
    in->native_count = (uint32_t)c->native.count;
    if (cut)
        in->native_end = LOSS_native_too_deep;
    if (e->joins.data[t->join].kind == TRACE_JOIN_COUNT) {
        if (!VEC_RESERVE(&c->runs, in->python_count))
            return error_no_memory();
        merge_join_by_count(in, c->runs.data);
        c->runs.count = in->python_count;
    } else {
        TRY(put_runs(c, &e->joins.data[t->join], t->snapshot && !t->native_stack));
    }
    if (cut && e->joins.data[t->join].kind == TRACE_JOIN_INDEX) {
        /* The indices of the join count from outer frames that were cut off. */
        uint32_t gone = e->stacks.data[t->native_stack].depth - DEPTH_MAX;
        for (size_t i = 0; i < c->runs.count; i++) {
            struct merge_run *run = &c->runs.data[i];
            if (run->native > gone)
                run->native -= gone;
            else if (run->native)
                *run = (struct merge_run){.reason = LOSS_join_outside};
        }
    }
    in->runs = c->runs.data;
    in->run_count = (uint32_t)c->runs.count;
    return NULL;
}

/* Notes the module of a frame, once for the stack; counts the frame, and notes whether its name is missing, if shown. */
static struct error *touch(struct composer *c, struct composed *out, const struct expansion *x, bool shown)
{
    bool unresolved = shown && x->unresolved;

    out->native_count += shown;
    out->native_unnamed += unresolved;
    if (x->module == FRAMES_NO_MODULE)
        return NULL;
    if (c->last_touched < c->touched.count && c->last_touched >= out->modules_first && c->touched.data[c->last_touched] >> 1 == x->module) {
        c->touched.data[c->last_touched] |= unresolved; /* frames of a module stand together */
        return NULL;
    }
    TRY(work(c, out->modules_count));
    for (uint32_t i = out->modules_first; i < out->modules_first + out->modules_count; i++) {
        if (c->touched.data[i] >> 1 == x->module) {
            c->touched.data[i] |= unresolved;
            c->last_touched = i;
            return NULL;
        }
    }
    out->modules_count++;
    c->last_touched = (uint32_t)c->touched.count;
    return VEC_PUSH(&c->touched, x->module << 1 | unresolved) ? NULL : error_no_memory();
}

static struct error *step(struct composer *c, uint32_t *stack, uint32_t frame)
{
    *stack = model_stack(c->model, *stack, frame);
    return *stack == MODEL_NONE ? error_no_memory() : NULL;
}

/* True if `inner`, which `outer` called, is the function that it was called for. A recursion is another call. */
static bool is_one_call(const struct composer *c, struct expanded outer, struct expanded inner)
{
    const struct emit_frame *frames = c->model->view.frames;

    return c->options.interpreter == MERGE_HIDE_INTERPRETER && outer.layer != DEMANGLE_NO_LAYER &&
           (inner.layer == DEMANGLE_NO_LAYER || inner.layer > outer.layer) &&
           frames[inner.frame].function == frames[outer.frame].function; /* texts of the model are there once */
}

/*
 * Adds the functions of a native frame that are shown. *last is the one before, or {0}. Of the functions that one call
 * passes through (enum demangle_layer) the innermost stands for all.
 */
static struct error *step_native(struct composer *c, struct composed *out, const struct expansion *x, uint64_t functions,
                                 struct expanded *last)
{
    for (uint32_t k = 0; k < x->count; k++) {
        struct expanded function = c->frames->expanded.data[x->first + k];
        if (!(functions >> k & 1))
            continue;
        if (is_one_call(c, *last, function))
            out->stack = c->model->stacks.data[out->stack].parent;
        TRY(step(c, &out->stack, function.frame));
        *last = function;
    }
    return NULL;
}

static struct error *build_stack(struct composer *c, struct composed *out)
{
    static const char *const marks[] = {
        [MERGE_TORN] = "[torn]", [MERGE_TRUNCATED] = "[truncated]", [MERGE_NO_PYTHON] = "[no Python frames]"};
    struct expanded last = {0};

    out->stack = EMIT_NO_STACK;
    out->modules_first = (uint32_t)c->touched.count;
    for (size_t i = 0; c->options.interpreter == MERGE_HIDE_INTERPRETER && i < c->native.count; i++)
        TRY(touch(c, out, &c->frames->expansions.data[c->native.data[i]], false));
    for (size_t i = 0; i < c->merged.slots.count; i++) {
        struct merge_slot slot = c->merged.slots.data[i];
        uint32_t frame;
        if (slot.kind != MERGE_NATIVE)
            last = (struct expanded){0};
        switch (slot.kind) {
        case MERGE_KERNEL:
            TRY(step(c, &out->stack, c->kernel.data[slot.index]));
            break;
        case MERGE_PYTHON:
            out->python_count++;
            out->python_unnamed += !strcmp(c->model->view.frames[c->python.data[slot.index]].function, PY_STRING_UNREADABLE);
            TRY(step(c, &out->stack, c->python.data[slot.index]));
            break;
        case MERGE_NATIVE: {
            const struct expansion *x = &c->frames->expansions.data[c->native.data[slot.index]];
            TRY(step_native(c, out, x, slot.functions, &last));
            TRY(touch(c, out, x, true));
            break;
        }
        case MERGE_TORN:
        case MERGE_TRUNCATED:
        case MERGE_NO_PYTHON:
            TRY(frames_mark(c->frames, marks[slot.kind], &frame));
            TRY(step(c, &out->stack, frame));
            break;
        }
    }
    return NULL;
}

/* All that build() depends on: the lists, which hold numbers of the model, and what stands beside them. */
static struct error *put_key(struct composer *c, const struct merge_input *in)
{
    const uint32_t head[] = {in->kernel_count, in->native_count,        in->python_count, in->run_count,
                             in->python_end,   in->native_end, in->is_part};

    buf_clear(&c->key);
    buf_put(&c->key, head, sizeof head);
    buf_put(&c->key, c->kernel.data, in->kernel_count * sizeof *c->kernel.data);
    buf_put(&c->key, c->native.data, in->native_count * sizeof *c->native.data);
    buf_put(&c->key, c->python.data, in->python_count * sizeof *c->python.data);
    buf_put(&c->key, in->runs, in->run_count * sizeof *in->runs);
    buf_put(&c->key, in->run_start, in->python_count * sizeof *in->run_start);
    return c->key.bad ? error_no_memory() : NULL;
}

static struct error *build(struct composer *c, const struct merge_input *in, struct composed *out)
{
    if (!merge_layout(in, &c->merged))
        return error_no_memory();
    out->python_end = in->python_end;
    out->native_end = in->native_end;
    out->join_end = c->merged.join_end;
    out->no_frame = c->merged.no_frame;
    out->in_interpreter = c->merged.in_interpreter;
    out->outermost = c->native.count ? c->native.data[0] : MODEL_NONE;
    return build_stack(c, out);
}

/* The same from what was built of equal lists before. *found false: nothing was. */
static struct error *build_again(struct composer *c, struct composed *out, bool *found)
{
    const struct composed *known = composed_cache_find(&c->cache, &c->key);

    *found = known;
    if (!known)
        return NULL;
    *out = *known;
    out->modules_first = (uint32_t)c->touched.count;
    for (uint32_t i = 0; i < known->modules_count; i++) {
        if (!VEC_PUSH(&c->touched, c->cache.modules.data[known->modules_first + i]))
            return error_no_memory();
    }
    return NULL;
}

struct error *compose(struct composer *c, struct epoch *e, uint32_t tuple, uint32_t interpreter, uint64_t time_ns,
                      struct composed *out)
{
    const struct trace_tuple *t = &e->tuples.data[tuple];
    struct merge_input in = {
        .interpreter = c->options.interpreter,
        .is_part = c->options.python_only && (t->native_stack || t->snapshot || t->kernel_stack)};
    bool found;

    c->kernel.count = c->native.count = c->merge_native.count = c->runs.count = 0;
    TRY(list_python(c, e, t, interpreter, &in));
    if (!c->options.python_only) {
        TRY(list_kernel(c, e, t));
        TRY(list_native(c, e, t, time_ns, &in));
    }
    in.kernel_count = (uint32_t)c->kernel.count;
    TRY(put_key(c, &in));
    TRY(build_again(c, out, &found));
    if (!found) {
        TRY(build(c, &in, out));
        composed_cache_put(&c->cache, &c->key, out, out->modules_count ? &c->touched.data[out->modules_first] : NULL);
    }
    out->snapshot = t->snapshot && !t->native_stack && !c->options.python_only;
    return NULL;
}
