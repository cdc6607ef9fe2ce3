/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/merge.h"

/* True if all its functions are the eval loop or call machinery. */
static bool only_machinery(const struct merge_native *native, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!native[i].eval_loop && native[i].outer_machinery < native[i].function_count)
            return false;
    }
    return true;
}

/*
 * At its end the eval loop takes its frame out of the chain and then calls _Py_CheckFunctionResult, which calls
 * PyErr_Occurred by way of the PLT, and so on: the stack may get four frames deeper.
 */
enum { HALF_FRAMES = 5 };

void merge_join_by_count(const struct merge_input *in, struct merge_run *runs)
{
    uint32_t count = 0, first = 0, innermost = 0, i;

    for (i = in->native_count; i-- && !(count && in->native[i].switches_stacks);) {
        if (in->native[i].eval_loop && !count++)
            innermost = i;
    }
    first = i + 1; /* of the native frames that are looked at */
    bool whole = (in->native_end == LOSS_complete || first) && in->python_end == LOSS_complete;
    /* True if the newest activation may be one without a Python frame. */
    bool half = count && innermost + HALF_FRAMES >= in->native_count;
    for (i = 0; i < in->python_count; i++)
        runs[i] = (struct merge_run){.reason = whole ? LOSS_join_mismatch : LOSS_join_no_native};
    if (whole ? count != in->python_count && !(half && count == in->python_count + 1)
              : !count || (half && !only_machinery(in->native + first, innermost - first)))
        return;
    /* How many frames at the outer end of either stack have no counterpart. */
    uint32_t skip = whole || count <= in->python_count ? 0 : count - in->python_count;
    uint32_t run = whole || count >= in->python_count ? 0 : in->python_count - count;
    for (i = first; i < in->native_count && run < in->python_count; i++) {
        if (!in->native[i].eval_loop)
            continue;
        if (skip)
            skip--;
        else
            runs[run++] = (struct merge_run){.native = i + 1};
    }
}

void merge_output_deinit(struct merge_output *out)
{
    VEC_DEINIT(&out->slots);
    VEC_DEINIT(&out->starts);
    VEC_DEINIT(&out->joins);
    VEC_DEINIT(&out->native);
    VEC_DEINIT(&out->loops);
}

/* Finds where the runs begin. The first frame always begins one: a cut stack lacks the start of its outermost run. */
static bool find_runs(const struct merge_input *in, struct merge_output *out)
{
    out->starts.count = 0;
    for (uint32_t i = 0; i < in->python_count; i++) {
        if ((!i || in->run_start[i]) && !VEC_PUSH(&out->starts, i))
            return false;
    }
    return VEC_PUSH(&out->starts, in->python_count);
}

/* The join is used as a whole or not at all. */
static bool join_fits(const struct merge_input *in, uint32_t run_count)
{
    uint32_t before = 0;

    if (in->run_count != run_count)
        return false;
    for (uint32_t i = 0; i < run_count; i++) {
        uint32_t native = in->runs[i].native;
        if (native > in->native_count || (native && native < before))
            return false;
        if (native)
            before = native;
    }
    return true;
}

/* Fills out->joins with the joins to use, and counts them. */
static bool check_join(const struct merge_input *in, struct merge_output *out)
{
    uint32_t run_count = (uint32_t)out->starts.count - 1;
    bool has_native = in->native_count != 0 || in->native_end != 0;
    uint32_t why = !in->native_count ? LOSS_join_no_native : !join_fits(in, run_count) ? LOSS_join_mismatch : 0;

    out->joined_count = out->unjoined_count = out->join_end = 0;
    out->joins.count = 0;
    if (!VEC_RESERVE(&out->joins, run_count))
        return false;
    for (uint32_t i = 0; i < run_count; i++) {
        struct merge_run run = why ? (struct merge_run){.reason = why} : in->runs[i];
        out->joins.data[out->joins.count++] = run;
        if (run.native)
            out->joined_count++;
        else if (!out->unjoined_count++)
            out->join_end = run.reason > LOSS_complete ? run.reason : LOSS_join_mismatch;
    }
    if (!has_native)
        out->join_end = 0;
    else if (run_count && !out->unjoined_count)
        out->join_end = LOSS_complete;
    return true;
}

/* The module that a hidden frame belongs to; for a trampoline, the module of the eval frame that it called. */
static uint32_t hidden_module(const struct merge_input *in, uint32_t i)
{
    return in->native[in->native[i].module == MERGE_NO_MODULE && i + 1 < in->native_count ? i + 1 : i].module;
}

/* True if call machinery of `i` adjoins the neighbour, and the neighbour is hidden. */
static bool adjoins(const struct merge_input *in, const struct merge_slot *shown, uint32_t i, uint32_t neighbour)
{
    return !shown[neighbour].functions && shown[i].functions && in->native[i].module == hidden_module(in, neighbour);
}

/* Bits for that many functions, from the outermost. */
static uint64_t functions_mask(uint32_t count)
{
    return count < MERGE_FUNCTIONS_MAX ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* Hides joined frames and the call machinery that adjoins them, directly or through other call machinery. */
static void hide_joined(const struct merge_input *in, struct merge_output *out)
{
    struct merge_slot *shown = out->native.data;

    for (size_t i = 0; i < out->joins.count; i++) {
        uint32_t native = out->joins.data[i].native;
        if (native)
            shown[native - 1].functions = 0;
        if (native > 1 && in->native[native - 2].forwards && in->native[native - 1].module != MERGE_NO_MODULE)
            shown[native - 2].functions = 0;
    }
    for (uint32_t i = 1; i < in->native_count; i++) {
        if (adjoins(in, shown, i, i - 1))
            shown[i].functions &= ~functions_mask(in->native[i].outer_machinery);
    }
    for (uint32_t i = in->native_count; i-- > 1;) {
        const struct merge_native *n = &in->native[i - 1];
        if (adjoins(in, shown, i - 1, i))
            shown[i - 1].functions &= functions_mask(n->function_count - n->inner_machinery);
    }
}

/* Hides the trampolines that are left: those of activations without a run, before their call, or after it returned. */
static void hide_trampolines(const struct merge_input *in, struct merge_output *out)
{
    struct merge_slot *shown = out->native.data;

    for (uint32_t i = in->native_count; i--;) {
        const struct merge_native *n = &in->native[i];
        bool calls = i + 1 < in->native_count && n[1].eval_loop && n[1].module != MERGE_NO_MODULE;
        if (!n->trampoline && !(n->forwards && calls))
            continue;
        shown[i].functions = 0;
        if (i && n[-1].module != MERGE_NO_MODULE && n[-1].inner_machinery == n[-1].function_count)
            shown[i - 1].functions = 0;
    }
}

/* Finds the activations of the eval loop: by its address, and by the join for a trace that has no address of it. */
static bool find_loops(const struct merge_input *in, struct merge_output *out)
{
    if (!VEC_RESERVE(&out->loops, in->native_count))
        return false;
    for (uint32_t i = 0; i < in->native_count; i++)
        out->loops.data[i] = in->native[i].eval_loop;
    for (size_t i = 0; i < out->joins.count; i++) {
        if (out->joins.data[i].native)
            out->loops.data[out->joins.data[i].native - 1] = true;
    }
    return true;
}

/* Rules 8 and 9. */
static void hide_interpreter(const struct merge_input *in, struct merge_output *out)
{
    struct merge_slot *shown = out->native.data;
    uint32_t outer = UINT32_MAX; /* the last activation in a binary that is not the interpreter's own */
    bool interpreter = false;    /* the frame is the interpreter's, and hidden */

    for (uint32_t i = 0; i < in->native_count; i++) {
        const struct merge_native *n = &in->native[i];
        bool hidden = !shown[i].functions;
        shown[i].functions &= ~n->helpers;
        if (n->owner == MERGE_OWNER_INTERPRETER) {
            shown[i].functions &= n->kept;
            interpreter = !shown[i].functions;
        } else if (out->loops.data[i] && n->module != MERGE_NO_MODULE) {
            for (uint32_t k = outer; k < i && in->native[outer].module == n->module; k++) {
                if (in->native[k].module == n->module)
                    shown[k].functions &= in->native[k].kept;
            }
            shown[i].functions = 0;
            outer = i;
            interpreter = true;
        } else if (n->serves_caller && interpreter) {
            shown[i].functions = 0;
        } else if (outer != UINT32_MAX && in->native[outer].module == n->module) {
            shown[i].functions &= n->kept | n->foreign;
            interpreter = !shown[i].functions;
        } else {
            interpreter = hidden;
        }
    }
    out->in_interpreter = interpreter && in->python_count && !in->kernel_count;
}

/* Rule 10. */
static void hide_start(const struct merge_input *in, struct merge_output *out)
{
    bool joined = !out->joins.count || out->joins.data[0].native;
    uint32_t first = 0, end;

    if (in->native_end != LOSS_complete && !(in->python_end == LOSS_complete && joined))
        return;
    if (in->native_count && in->native[0].owner == MERGE_OWNER_INTERPRETER && !out->loops.data[0])
        first = 1; /* _start, which the linker put into the program */
    for (end = first; end < in->native_count && in->native[end].owner == MERGE_OWNER_C_LIBRARY;)
        end++;
    if (end == in->native_count || in->native[end].owner != MERGE_OWNER_INTERPRETER)
        return;
    for (uint32_t i = first; i < end; i++)
        out->native.data[i].functions = 0;
}

static bool hide(const struct merge_input *in, struct merge_output *out)
{
    if (!VEC_RESERVE(&out->native, in->native_count))
        return false;
    for (uint32_t i = 0; i < in->native_count; i++)
        out->native.data[i] = (struct merge_slot){
            .kind = MERGE_NATIVE, .index = i, .functions = functions_mask(in->native[i].function_count)};
    out->in_interpreter = false;
    if (in->interpreter == MERGE_SHOW_ALL)
        return true;
    if (out->joined_count)
        hide_joined(in, out);
    /* Without Python frames the names of trampolines are all that is known, unless the Python stack is really empty. */
    if (in->python_count || in->python_end == LOSS_complete)
        hide_trampolines(in, out);
    if (in->interpreter == MERGE_HIDE_CALLS)
        return true;
    if (!find_loops(in, out))
        return false;
    hide_interpreter(in, out);
    hide_start(in, out);
    return true;
}

static void find_no_frame(const struct merge_input *in, struct merge_output *out)
{
    bool inside = false, outside = false; /* of another activation; of where a greenlet begins */
    size_t run = out->joins.count;

    out->no_frame = 0;
    if (in->python_end != LOSS_complete || out->unjoined_count)
        return;
    for (uint32_t i = in->native_count; i--;) {
        const struct merge_native *n = &in->native[i];
        size_t before = run;
        while (run && out->joins.data[run - 1].native == i + 1)
            run--;
        bool joined = run < before;
        if (n->eval_loop && !joined) {
            bool clears = n->clears_frame || (i + 1 < in->native_count && n[1].clears_frame);
            out->no_frame |= 1u << (outside ? MERGE_NO_FRAME_GREENLET
                                : !inside ? MERGE_NO_FRAME_EDGE
                                : clears ? MERGE_NO_FRAME_CLEARING : MERGE_NO_FRAME_OTHER);
        }
        outside |= inside && n->switches_stacks;
        inside |= joined || n->eval_loop;
    }
}

static void put(struct merge_output *out, enum merge_kind kind, uint32_t index)
{
    out->slots.data[out->slots.count++] = (struct merge_slot){.kind = kind, .index = index};
}

static void put_run(struct merge_output *out, size_t run)
{
    for (uint32_t i = out->starts.data[run]; i < out->starts.data[run + 1]; i++)
        put(out, MERGE_PYTHON, i);
}

static bool python_mark(const struct merge_input *in, enum merge_kind *kind)
{
    if (in->python_end <= LOSS_complete)
        return false;
    enum loss_class class = trace_loss_class(in->python_end);
    if (!in->python_count &&
        (class == LOSS_CLASS_no_python || class == LOSS_CLASS_outdated || class == LOSS_CLASS_expected))
        return false;
    *kind = in->python_end == LOSS_python_too_deep ? MERGE_TRUNCATED : MERGE_TORN;
    return true;
}

bool merge_layout(const struct merge_input *in, struct merge_output *out)
{
    size_t most = (size_t)in->kernel_count + in->native_count + in->python_count + 2;
    enum merge_kind mark = MERGE_TORN;
    size_t run = 0;

    out->slots.count = 0;
    if (!VEC_RESERVE(&out->slots, most) || !find_runs(in, out) || !check_join(in, out) || !hide(in, out))
        return false;
    find_no_frame(in, out);

    size_t run_count = out->joins.count;
    bool has_mark = python_mark(in, &mark);
    /*
     * The mark stands before the outermost run: at the outer end of the stack, unless that run is joined. If the inner
     * frames are missing, the mark stands in their place.
     */
    bool mark_inside = has_mark && in->python_end == LOSS_python_changed;
    has_mark = has_mark && !mark_inside;
    bool mark_outside = has_mark && (!run_count || !out->joins.data[0].native);
    if (mark_outside)
        put(out, mark, 0);
    else if (in->native_count && in->native_end > LOSS_complete && in->python_end != LOSS_complete)
        put(out, MERGE_TRUNCATED, 0);
    for (; run < run_count && !out->joins.data[run].native; run++)
        put_run(out, run);
    for (uint32_t i = 0; i < in->native_count; i++) {
        if (out->native.data[i].functions)
            out->slots.data[out->slots.count++] = out->native.data[i];
        if (run >= run_count || out->joins.data[run].native != i + 1)
            continue;
        if (!run && has_mark)
            put(out, mark, 0);
        /*
         * Put the runs of this frame, and the following runs that are not joined: they stand above the next native
         * frame.
         */
        do
            put_run(out, run++);
        while (run < run_count && (!out->joins.data[run].native || out->joins.data[run].native == i + 1));
    }
    if (mark_inside)
        put(out, mark, 0);
    for (uint32_t i = 0; i < in->kernel_count; i++)
        put(out, MERGE_KERNEL, i);
    if (in->interpreter == MERGE_HIDE_INTERPRETER && !out->slots.count && (in->native_count || in->is_part))
        put(out, MERGE_NO_PYTHON, 0);
    return true;
}
