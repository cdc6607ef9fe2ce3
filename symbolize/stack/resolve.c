/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/resolve.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"
#include "symbolize/stack/captures.h"
#include "symbolize/stack/frames.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/model.h"
#include "symbolize/stack/snapshot.h"
#include "symbolize/stack/stack_map.h"

enum {
    DEPTH_MAX = 4096, /* frames of one list, more than pycap writes; a deeper stack is cut outside and marked */
    STEP_WORK = 30,   /* for a frame of a stack, see limits.h */
};

/* By id of the epoch; all MODEL_NONE until they are looked up. */
struct thread_state {
    uint32_t thread, interpreter; /* of the model: a thread, a text */
};
struct event_state {
    uint32_t event; /* of the model */
    uint32_t bytes; /* that one count stands for, see epoch_event_bytes() */
};
/* A tuple is resolved once for each interpreter (path) that it was sampled with, in practice once. */
struct tuple_state {
    uint32_t interpreter, stack;
    uint32_t next; /* of the same tuple, for another interpreter; MODEL_NONE: the last one */
    uint32_t sample_count;
    uint32_t python_end, native_end, join_end, no_frame;
    uint32_t modules_first, modules_count; /* in resolver.touched */
    bool snapshot;
};

struct resolver {
    struct resolver_options options;
    struct model model;
    struct modcache *modules;
    struct resolver_stats stats;
    uint32_t file_number;
    bool reads_once; /* the current file cannot be read again: use its tables of symbols as they come */

    struct frames frames;
    struct stack_map stack_map;
    struct captures captures;

    /* Of the epoch. */
    VEC(struct thread_state) thread_states;
    VEC(struct event_state) event_states;
    VEC(uint32_t) process_states; /* the model's numbers, MODEL_NONE until they are looked up */
    VEC(uint32_t) tuple_heads;                  /* in tuple_states: the first for a tuple, or MODEL_NONE */
    VEC(struct tuple_state) tuple_states;
    VEC(uint32_t) label_set_states; /* the model's numbers; 0, the empty set, until they are looked up */
    VEC(uint32_t) touched; /* module cache index << 1 | unresolved */
    struct snapshots snapshots;

    /* Scratch for the current tuple, lists outermost first. */
    VEC(uint32_t) kernel, python, native; /* emit frames, emit frames, expansions */
    VEC(uint32_t) ids;
    VEC(struct model_label) labels;
    VEC(struct merge_native) merge_native;
    VEC(bool) run_start;
    VEC(struct merge_run) runs;
    struct merge_output merged;
};

struct error *resolver_create(const struct resolver_options *options, struct resolver **out)
{
    struct resolver *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory();
    r->options = *options;
    r->captures.model = &r->model;
    struct error *err = model_init(&r->model, options->limits)
                            ? modcache_create(&options->binaries, options->limits, &r->modules)
                            : error_no_memory();
    if (!err)
        err = stack_map_init(&r->stack_map, &r->model, &r->options.stacks, stack_rules);
    if (err) {
        resolver_destroy(r);
        return err;
    }
    frames_init(&r->frames, &r->model, r->modules);
    *out = r;
    return NULL;
}

void resolver_destroy(struct resolver *r)
{
    if (!r)
        return;
    snapshots_deinit(&r->snapshots);
    frames_deinit(&r->frames);
    modcache_destroy(r->modules);
    model_deinit(&r->model);
    VEC_DEINIT(&r->thread_states);
    VEC_DEINIT(&r->process_states);
    VEC_DEINIT(&r->event_states);
    VEC_DEINIT(&r->tuple_heads);
    VEC_DEINIT(&r->tuple_states);
    VEC_DEINIT(&r->label_set_states);
    VEC_DEINIT(&r->labels);
    stack_map_deinit(&r->stack_map);
    captures_deinit(&r->captures);
    VEC_DEINIT(&r->touched);
    VEC_DEINIT(&r->kernel);
    VEC_DEINIT(&r->python);
    VEC_DEINIT(&r->native);
    VEC_DEINIT(&r->ids);
    VEC_DEINIT(&r->merge_native);
    VEC_DEINIT(&r->run_start);
    VEC_DEINIT(&r->runs);
    merge_output_deinit(&r->merged);
    free(r);
}

const struct emit_model *resolver_model(const struct resolver *r)
{
    return &r->model.view;
}

const struct resolver_stats *resolver_stats(const struct resolver *r)
{
    return &r->stats;
}

struct modcache *resolver_modules(const struct resolver *r)
{
    return r->modules;
}

bool resolver_unwinds(const struct resolver *r)
{
    return !r->options.python_only;
}

struct error *resolver_begin_file(struct resolver *r, const struct input *input)
{
    const char *again = input_again(input);

    r->file_number++;
    r->reads_once = !again;
    modcache_begin_file(r->modules, again ? again : input->path);
    return captures_begin(&r->captures, input_title(input->path)) ? NULL : error_no_memory();
}

/* ---- stacks ---- */

static struct error *work(const struct resolver *r, uint64_t steps)
{
    return limits_work(r->options.limits, steps) ? NULL : error_no_memory();
}

/* Puts the ids of a stack's frames into r->ids. Frames of another kind than the list's are left out. */
static struct error *list_ids(struct resolver *r, const struct epoch *e, uint32_t stack, uint8_t type, bool *cut)
{
    uint32_t depth = e->stacks.data[stack].depth;
    size_t kept = 0;

    TRY(work(r, STEP_WORK * (uint64_t)(depth < DEPTH_MAX ? depth : DEPTH_MAX)));
    *cut = depth > DEPTH_MAX;
    if (!VEC_RESERVE(&r->ids, depth < DEPTH_MAX ? depth : DEPTH_MAX))
        return error_no_memory();
    r->ids.count = epoch_stack_frames(e, stack, r->ids.data, DEPTH_MAX);
    for (size_t i = 0; i < r->ids.count; i++) {
        if (e->frames.data[r->ids.data[i]].type == type)
            r->ids.data[kept++] = r->ids.data[i];
    }
    r->ids.count = kept;
    return NULL;
}

static struct error *list_kernel(struct resolver *r, const struct epoch *e, const struct trace_tuple *t)
{
    bool cut;

    TRY(list_ids(r, e, t->kernel_stack, TRACE_kernel_frame, &cut));
    if (!VEC_RESERVE(&r->kernel, r->ids.count))
        return error_no_memory();
    for (r->kernel.count = 0; r->kernel.count < r->ids.count; r->kernel.count++)
        TRY(frames_number(&r->frames, e, r->ids.data[r->kernel.count], 0, &r->kernel.data[r->kernel.count]));
    return NULL;
}

static struct error *list_python(struct resolver *r, const struct epoch *e, const struct trace_tuple *t,
                                 uint32_t interpreter, struct merge_input *in)
{
    bool cut;

    TRY(list_ids(r, e, t->python_stack, TRACE_python_frame, &cut));
    if (!VEC_RESERVE(&r->python, r->ids.count) || !VEC_RESERVE(&r->run_start, r->ids.count))
        return error_no_memory();
    r->python.count = r->ids.count;
    for (size_t i = 0; i < r->ids.count; i++) {
        TRY(frames_number(&r->frames, e, r->ids.data[i], interpreter, &r->python.data[i]));
        r->run_start.data[i] = e->frames.data[r->ids.data[i]].flags & TRACE_FRAME_RUN_END;
    }
    in->python_count = (uint32_t)r->python.count;
    in->run_start = r->run_start.data;
    in->python_end = cut ? LOSS_python_too_deep : t->python_end;
    return NULL;
}

static struct error *put_native(struct resolver *r, uint32_t expansion)
{
    const struct expansion *x = &r->frames.expansions.data[expansion];
    static_assert(FRAMES_NO_MODULE == MERGE_NO_MODULE, "one number for both");
    struct merge_native native = {.module = x->maybe_trampoline ? MERGE_NO_MODULE : x->module,
                                  .function_count = x->count,
                                  .outer_machinery = x->outer_machinery,
                                  .inner_machinery = x->inner_machinery,
                                  .eval_loop = x->eval_loop,
                                  .switches_stacks = x->switches_stacks,
                                  .trampoline = x->trampoline,
                                  .clears_frame = x->clears_frame};

    return VEC_PUSH(&r->native, expansion) && VEC_PUSH(&r->merge_native, native) ? NULL : error_no_memory();
}

static struct error *put_runs(struct resolver *r, const struct epoch_join *join, bool snapshot)
{
    TRY(work(r, join->run_count * (uint64_t)(snapshot ? 10 + r->snapshots.frames.count : 10)));
    for (uint32_t i = 0; i < join->run_count; i++) {
        uint64_t value = join->runs[2 * i], reason = join->runs[2 * i + 1];
        struct merge_run run;
        if (join->kind == TRACE_JOIN_RECORD && snapshot)
            run = snapshots_join(&r->snapshots, value, reason);
        else if (join->kind == TRACE_JOIN_INDEX)
            run = (struct merge_run){.native = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX,
                                     .reason = reason < UINT32_MAX ? (uint32_t)reason : UINT32_MAX};
        else
            run = (struct merge_run){.reason = LOSS_join_mismatch};
        if (!VEC_PUSH(&r->runs, run))
            return error_no_memory();
    }
    return NULL;
}

static struct error *list_native(struct resolver *r, struct epoch *e, const struct trace_tuple *t, uint64_t time_ns,
                                 struct merge_input *in)
{
    uint32_t expansion;
    bool cut = false;

    in->native_end = t->native_end;
    if (t->native_stack) {
        TRY(list_ids(r, e, t->native_stack, TRACE_native_frame, &cut));
        for (size_t i = 0; i < r->ids.count; i++) {
            TRY(frames_number(&r->frames, e, r->ids.data[i], 0, &expansion));
            TRY(put_native(r, expansion));
        }
    } else if (t->snapshot) {
        TRY(snapshots_unwind(&r->snapshots, r->modules, e, t->snapshot, time_ns, &in->native_end));
        epoch_release_stack(e, t->snapshot);
        for (uint32_t i = (uint32_t)r->snapshots.frames.count; i--;) {
            struct snapshot_frame f = snapshots_frame(&r->snapshots, e, t->snapshot, i);
            TRY(frames_native(&r->frames, e, f.module, f.offset, f.return_address, &expansion));
            TRY(put_native(r, expansion));
        }
    }
    in->native = r->merge_native.data;
    in->native_count = (uint32_t)r->native.count;
    if (cut)
        in->native_end = LOSS_native_too_deep;
    if (e->joins.data[t->join].kind == TRACE_JOIN_COUNT) {
        if (!VEC_RESERVE(&r->runs, in->python_count))
            return error_no_memory();
        merge_join_by_count(in, r->runs.data);
        r->runs.count = in->python_count;
    } else {
        TRY(put_runs(r, &e->joins.data[t->join], t->snapshot && !t->native_stack));
    }
    if (cut && e->joins.data[t->join].kind == TRACE_JOIN_INDEX) {
        /* The indices of the join count from outer frames that were cut off. */
        uint32_t gone = e->stacks.data[t->native_stack].depth - DEPTH_MAX;
        for (size_t i = 0; i < r->runs.count; i++) {
            struct merge_run *run = &r->runs.data[i];
            if (run->native > gone)
                run->native -= gone;
            else if (run->native)
                *run = (struct merge_run){.reason = LOSS_join_outside};
        }
    }
    in->runs = r->runs.data;
    in->run_count = (uint32_t)r->runs.count;
    return NULL;
}

/* Notes the modules whose frames are shown, each once, and whether a name is missing. */
static struct error *touch(struct resolver *r, struct tuple_state *state, const struct expansion *x)
{
    if (x->module == FRAMES_NO_MODULE)
        return NULL;
    TRY(work(r, state->modules_count));
    for (uint32_t i = 0; i < state->modules_count; i++) {
        uint32_t *touched = &r->touched.data[state->modules_first + i];
        if (*touched >> 1 == x->module) {
            *touched |= x->unresolved;
            return NULL;
        }
    }
    state->modules_count++;
    return VEC_PUSH(&r->touched, x->module << 1 | x->unresolved) ? NULL : error_no_memory();
}

static struct error *step(struct resolver *r, uint32_t *stack, uint32_t frame)
{
    *stack = model_stack(&r->model, *stack, frame);
    return *stack == MODEL_NONE ? error_no_memory() : NULL;
}

static struct error *build_stack(struct resolver *r, struct tuple_state *state)
{
    state->stack = EMIT_NO_STACK;
    state->modules_first = (uint32_t)r->touched.count;
    for (size_t i = 0; i < r->merged.slots.count; i++) {
        struct merge_slot slot = r->merged.slots.data[i];
        uint32_t frame;
        switch (slot.kind) {
        case MERGE_KERNEL:
            TRY(step(r, &state->stack, r->kernel.data[slot.index]));
            break;
        case MERGE_PYTHON:
            TRY(step(r, &state->stack, r->python.data[slot.index]));
            break;
        case MERGE_NATIVE: {
            const struct expansion *x = &r->frames.expansions.data[r->native.data[slot.index]];
            for (uint32_t k = 0; k < slot.count; k++)
                TRY(step(r, &state->stack, r->frames.expanded.data[x->first + slot.first + k]));
            TRY(touch(r, state, x));
            break;
        }
        case MERGE_TORN:
        case MERGE_TRUNCATED:
            TRY(frames_mark(&r->frames, slot.kind == MERGE_TORN ? "[torn]" : "[truncated]", &frame));
            TRY(step(r, &state->stack, frame));
            break;
        }
    }
    return NULL;
}

static struct error *resolve_tuple(struct resolver *r, struct epoch *e, uint32_t tuple, uint64_t time_ns,
                                   struct tuple_state *state)
{
    const struct trace_tuple *t = &e->tuples.data[tuple];
    struct merge_input in = {.show_interpreter = r->options.show_interpreter};

    r->kernel.count = r->native.count = r->merge_native.count = r->runs.count = 0;
    TRY(list_python(r, e, t, state->interpreter, &in));
    if (!r->options.python_only) {
        TRY(list_kernel(r, e, t));
        TRY(list_native(r, e, t, time_ns, &in));
    }
    in.kernel_count = (uint32_t)r->kernel.count;
    if (!merge_layout(&in, &r->merged))
        return error_no_memory();
    state->python_end = in.python_end;
    state->native_end = in.native_end;
    state->join_end = r->merged.join_end;
    state->no_frame = r->merged.no_frame;
    state->snapshot = t->snapshot && !t->native_stack && !r->options.python_only;
    return build_stack(r, state);
}

/* ---- samples ---- */

static struct error *find_event(struct resolver *r, const struct epoch *e, uint32_t event)
{
    if (!VEC_EXTEND_NONE(&r->event_states, e->events.count))
        return error_no_memory();
    uint32_t number = model_event_of(&r->model, e, event);
    if (number == MODEL_NONE)
        return error_no_memory();
    r->event_states.data[event] = (struct event_state){.event = number, .bytes = epoch_event_bytes(e, event)};
    return NULL;
}

/* The weight of a sample in the model: bytes for page faults, else the value in the trace. */
static void weigh(const struct resolver *r, const struct event_state *event, const struct trace_sample *sample,
                  struct emit_sample *out)
{
    out->event = event->event;
    out->value = sample->value;
    out->faults = r->model.events.data[event->event].is_bytes ? sample->value : 0;
    /* A nonsensical value in a forged trace becomes the largest number. */
    if (event->bytes && __builtin_mul_overflow(sample->value, (uint64_t)event->bytes, &out->value))
        out->value = UINT64_MAX;
}

static struct error *name_process(struct resolver *r, const struct epoch *e, uint32_t process)
{
    const struct epoch_process *p = &e->processes.data[process];
    const struct process_identity identity = epoch_process_identity(e, process, r->file_number);
    uint32_t comm;

    if (!VEC_EXTEND_NONE(&r->process_states, e->processes.count))
        return error_no_memory();
    TRY(frames_string(&r->frames, e, p->comm, &comm));
    uint32_t number = model_process(&r->model, &identity, comm);
    if (number == MODEL_NONE)
        return error_no_memory();
    r->process_states.data[process] = number;
    return NULL;
}

static struct error *name_thread(struct resolver *r, const struct epoch *e, uint32_t thread)
{
    const struct epoch_thread *t = &e->threads.data[thread];
    struct thread_state *state = &r->thread_states.data[thread];
    uint32_t name;

    TRY(frames_string(&r->frames, e, t->python_name ? t->python_name : t->name, &name));
    uint32_t number = model_thread(&r->model, r->process_states.data[t->def.process], t->def.tid, name);
    if (number == MODEL_NONE)
        return error_no_memory();
    state->thread = number;
    return NULL;
}

static struct error *find_thread(struct resolver *r, const struct epoch *e, uint32_t thread)
{
    uint32_t process = e->threads.data[thread].def.process;
    const struct epoch_process *p = &e->processes.data[process];

    if (!VEC_EXTEND_NONE(&r->thread_states, e->threads.count) ||
        !VEC_EXTEND_NONE(&r->process_states, e->processes.count))
        return error_no_memory();
    if (r->process_states.data[process] == MODEL_NONE)
        TRY(name_process(r, e, process));
    TRY(frames_string(&r->frames, e, p->interpreter ? e->modules.data[p->interpreter].def.path : p->def.exe,
                      &r->thread_states.data[thread].interpreter));
    return name_thread(r, e, thread);
}

struct error *resolver_record(struct resolver *r, const struct epoch *e, const struct trace_record *rec)
{
    if (!captures_record(&r->captures, e, rec))
        return error_no_memory();
    if (rec->type == TRACE_process_name) {
        uint32_t process = rec->process_name.process;
        if (process < r->process_states.count && r->process_states.data[process] != MODEL_NONE)
            return name_process(r, e, process);
    } else if (rec->type == TRACE_thread_name) {
        uint32_t thread = rec->thread_name.thread;
        if (thread < r->thread_states.count && r->thread_states.data[thread].thread != MODEL_NONE)
            return name_thread(r, e, thread);
    } else if (rec->type == TRACE_perf_map && r->reads_once) {
        return modcache_add_perf_map(r->modules, e, &rec->perf_map);
    }
    return NULL;
}

static struct error *find_tuple(struct resolver *r, struct epoch *e, uint32_t tuple, uint32_t interpreter,
                                uint64_t time_ns, uint32_t *out)
{
    if (!VEC_EXTEND_NONE(&r->tuple_heads, e->tuples.count))
        return error_no_memory();
    for (uint32_t i = r->tuple_heads.data[tuple]; i != MODEL_NONE; i = r->tuple_states.data[i].next) {
        TRY(work(r, 10));
        if (r->tuple_states.data[i].interpreter == interpreter) {
            *out = i;
            return NULL;
        }
    }
    struct tuple_state state = {.interpreter = interpreter, .next = r->tuple_heads.data[tuple]};
    TRY(work(r, 200));
    if (state.next != MODEL_NONE && !limits_take(r->options.limits, sizeof state))
        return error_no_memory();
    TRY(resolve_tuple(r, e, tuple, time_ns, &state));
    *out = (uint32_t)r->tuple_states.count;
    if (!VEC_PUSH(&r->tuple_states, state))
        return error_no_memory();
    r->tuple_heads.data[tuple] = *out;
    return NULL;
}

/* The model's number of a label set of the epoch. */
static struct error *find_label_set(struct resolver *r, const struct epoch *e, uint32_t set, uint32_t *out)
{
    const struct trace_list *pairs = &e->label_sets.data[set].pairs;

    if (!VEC_EXTEND_ZERO(&r->label_set_states, e->label_sets.count))
        return error_no_memory();
    *out = r->label_set_states.data[set];
    if (*out || !pairs->count) /* 0 is the empty set, and until it was looked up any other */
        return NULL;
    r->labels.count = 0;
    for (uint64_t i = 0; i < pairs->count; i++) {
        struct model_label label;
        TRY(frames_string(&r->frames, e, (uint32_t)pairs->values[2 * i], &label.key));
        TRY(frames_string(&r->frames, e, (uint32_t)pairs->values[2 * i + 1], &label.value));
        if (!VEC_PUSH(&r->labels, label))
            return error_no_memory();
    }
    *out = model_label_set(&r->model, r->labels.data, (uint32_t)r->labels.count);
    if (*out == MODEL_NONE)
        return error_no_memory();
    r->label_set_states.data[set] = *out;
    return NULL;
}

static void add_to_totals(struct emit_total *total, const struct emit_sample *sample, bool kept)
{
    total->all_samples++;
    total->all_value += sample->value;
    if (!kept)
        return;
    total->shown_samples++;
    total->shown_value += sample->value;
    total->interpreter_value += sample->in_interpreter ? sample->value : 0;
}

struct error *resolver_sample(struct resolver *r, struct epoch *e, uint32_t event, const struct trace_sample *sample,
                              struct emit_sample *out, bool *kept)
{
    uint32_t number = sample->tuple < r->tuple_heads.count ? r->tuple_heads.data[sample->tuple] : MODEL_NONE;

    if (sample->thread >= r->thread_states.count || r->thread_states.data[sample->thread].thread == MODEL_NONE)
        TRY(find_thread(r, e, sample->thread));
    const struct thread_state *thread = &r->thread_states.data[sample->thread];
    if (event >= r->event_states.count || r->event_states.data[event].event == MODEL_NONE)
        TRY(find_event(r, e, event));
    if (number == MODEL_NONE || r->tuple_states.data[number].interpreter != thread->interpreter)
        TRY(find_tuple(r, e, sample->tuple, thread->interpreter, sample->time_ns, &number));

    struct tuple_state *state = &r->tuple_states.data[number];
    out->time_ns = sample->time_ns;
    weigh(r, &r->event_states.data[event], sample, out);
    out->thread = thread->thread;
    out->cpu = sample->cpu;
    out->capture = r->file_number - 1;
    out->label_set = 0;
    if (sample->label_set)
        TRY(find_label_set(r, e, sample->label_set, &out->label_set));
    out->stack = state->stack;
    out->in_interpreter = false;
    *kept = true;
    if (!stack_map_is_identity(&r->stack_map))
        TRY(stack_map_find(&r->stack_map, state->stack, out->label_set, &out->stack, kept));
    add_to_totals(&r->model.totals.data[out->event], out, *kept);
    if (!*kept)
        return NULL;
    state->sample_count++;
    captures_saw_time(&r->captures, sample->time_ns);
    return NULL;
}

static void count_end(struct resolver_ends *ends, uint32_t end, uint64_t samples)
{
    ends->count[end < LOSS_LIMIT ? end : LOSS_LIMIT] += samples;
}

void resolver_end_epoch(struct resolver *r)
{
    for (size_t i = 0; i < r->tuple_states.count; i++) {
        const struct tuple_state *state = &r->tuple_states.data[i];
        uint64_t samples = state->sample_count;
        bool unresolved = false;
        for (uint32_t k = 0; k < state->modules_count; k++) {
            uint32_t touched = r->touched.data[state->modules_first + k];
            struct modcache_entry *m = modcache_get(r->modules, touched >> 1);
            m->sample_count += samples;
            if (touched & 1)
                m->unresolved_count += samples;
            unresolved |= touched & 1;
        }
        r->stats.sample_count += samples;
        r->stats.snapshot_count += state->snapshot ? samples : 0;
        r->stats.unresolved_count += unresolved ? samples : 0;
        r->stats.no_frame_count += state->no_frame ? samples : 0;
        for (uint32_t k = 0; k < MERGE_NO_FRAME_LIMIT; k++)
            r->stats.no_frame[k] += state->no_frame >> k & 1 ? samples : 0;
        count_end(&r->stats.python, state->python_end, samples);
        count_end(&r->stats.native, state->native_end, samples);
        count_end(&r->stats.join, state->join_end, samples);
    }
    frames_clear(&r->frames);
    r->thread_states.count = r->process_states.count = 0;
    r->event_states.count = r->label_set_states.count = 0;
    r->tuple_heads.count = r->tuple_states.count = r->touched.count = 0;
    snapshots_clear(&r->snapshots);
}
