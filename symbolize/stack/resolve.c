/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"
#include "symbolize/stack/captures.h"
#include "symbolize/stack/compose.h"
#include "symbolize/stack/faces.h"
#include "symbolize/stack/frames.h"
#include "symbolize/stack/interpreter_names.h"
#include "symbolize/stack/model.h"
#include "symbolize/stack/source_stamps.h"
#include "symbolize/stack/stack_map.h"

/* By id of the epoch; all MODEL_NONE until they are looked up. */
struct thread_state {
    uint32_t thread, interpreter; /* of the model: a thread, a text */
    uint32_t name_tries; /* samples that may still tell its name */
};
struct event_state {
    uint32_t event; /* of the model */
    uint32_t bytes; /* that one count stands for, see epoch_event_bytes() */
    uint32_t rate;  /* of the newest capture, see captures_find_rate() */
};
/* By the epoch's label set; MODEL_NONE until it is looked up. */
struct label_state {
    uint32_t set;  /* of the model */
    uint32_t mark; /* the frame of what was waited for; MODEL_NONE: the set has no such label */
};
/* A tuple is resolved once for each interpreter (path) that it was sampled with, in practice once. */
struct tuple_state {
    uint32_t interpreter;
    uint32_t next; /* of the same tuple, for another interpreter; MODEL_NONE: the last one */
    uint32_t sample_count, repeat_count; /* of them, those that repeat the stack of another sample, see repeats_stack() */
    struct composed composed;
    uint32_t taker; /* its stack for events of memory, see without_allocator() */
};

struct resolver {
    struct resolver_options options;
    struct model model;
    struct modcache *modules;
    struct resolver_stats stats;
    uint32_t python;      /* the version of the last code object */
    bool several_pythons; /* they differ */
    struct end_places native_ends;
    uint32_t file_number;
    bool reads_once; /* the current file cannot be read again: use its tables of symbols as they come */

    struct frames frames;
    struct faces faces;
    struct composer composer;
    struct stack_map stack_map;
    struct captures captures;
    struct source_stamps source_stamps;

    /* Of the epoch. */
    VEC(struct thread_state) thread_states;
    VEC(struct event_state) event_states;
    VEC(uint32_t) process_states; /* the model's numbers, MODEL_NONE until they are looked up */
    size_t renamed_count;         /* of the epoch's renamed processes, those whose new names the model has */
    VEC(uint32_t) tuple_heads;                  /* in tuple_states: the first for a tuple, or MODEL_NONE */
    VEC(struct tuple_state) tuple_states;
    VEC(struct label_state) label_states;
    VEC(struct model_label) labels; /* scratch */
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
    source_stamps_init(&r->source_stamps, &r->model);
    r->model.wall = options->wall;
    if (options->filters)
        r->model.view.filters = options->filters;
    if (!err)
        err = stack_map_init(&r->stack_map, &r->model, &r->options.stacks, stack_rules);
    if (err) {
        resolver_destroy(r);
        return err;
    }
    frames_init(&r->frames, &r->model, r->modules);
    r->frames.names_codes = options->fingerprints;
    r->frames.names_modules = options->interpreter == MERGE_HIDE_INTERPRETER;
    faces_init(&r->faces, &r->model, &r->frames);
    r->composer = (struct composer){.options = {.interpreter = options->interpreter,
                                                .python_only = options->python_only},
                                    .limits = options->limits,
                                    .model = &r->model,
                                    .modules = r->modules,
                                    .frames = &r->frames};
    *out = r;
    return NULL;
}

void resolver_destroy(struct resolver *r)
{
    if (!r)
        return;
    composer_deinit(&r->composer);
    faces_deinit(&r->faces);
    frames_deinit(&r->frames);
    modcache_destroy(r->modules);
    model_deinit(&r->model);
    VEC_DEINIT(&r->thread_states);
    VEC_DEINIT(&r->process_states);
    VEC_DEINIT(&r->event_states);
    VEC_DEINIT(&r->tuple_heads);
    VEC_DEINIT(&r->tuple_states);
    VEC_DEINIT(&r->label_states);
    VEC_DEINIT(&r->labels);
    stack_map_deinit(&r->stack_map);
    captures_deinit(&r->captures);
    source_stamps_deinit(&r->source_stamps);
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

const struct end_places *resolver_native_ends(const struct resolver *r)
{
    return &r->native_ends;
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

static struct error *work(const struct resolver *r, uint64_t steps)
{
    return limits_work(r->options.limits, steps) ? NULL : error_no_memory();
}

/* ---- samples ---- */

static struct error *find_event(struct resolver *r, const struct epoch *e, uint32_t event)
{
    if (!VEC_EXTEND_NONE(&r->event_states, e->events.count))
        return error_no_memory();
    uint32_t number = model_event_of(&r->model, e, event);
    uint32_t rate = captures_find_rate(&r->captures, number);
    if (number == MODEL_NONE || !limits_work(r->options.limits, rate == CAPTURES_NO_RATE ? 0 : rate))
        return error_no_memory();
    r->event_states.data[event] = (struct event_state){.event = number, .bytes = epoch_event_bytes(e, event), .rate = rate};
    return NULL;
}

/*
 * The weight of a sample in the model: bytes for page faults, else the value in the trace. A process may put any number into
 * the field of a tracepoint, and a forged trace anywhere: then the event's samples weigh INT64_MAX in all, so that no sum of some
 * of them is too large for whoever adds them up.
 */
static void weigh(const struct resolver *r, const struct event_state *event, const struct trace_sample *sample, struct emit_sample *out)
{
    const uint64_t left = INT64_MAX - r->model.totals.data[event->event].all_value;

    out->event = event->event;
    if (__builtin_mul_overflow(sample->value, (uint64_t)(event->bytes ? event->bytes : 1), &out->value) || out->value > left)
        out->value = left;
    out->faults = event->bytes > 1 ? out->value / event->bytes : 0;
}

static struct error *name_process(struct resolver *r, const struct epoch *e, uint32_t process)
{
    const struct process_identity identity = epoch_process_identity(e, process, r->file_number);

    if (!VEC_EXTEND_NONE(&r->process_states, e->processes.count))
        return error_no_memory();
    return faces_process(&r->faces, e, process, &identity, &r->process_states.data[process]);
}

/* Gives the model the new names of processes that it knows. */
static struct error *name_renamed(struct resolver *r, const struct epoch *e)
{
    for (; r->renamed_count < e->renamed.count; r->renamed_count++) {
        uint32_t process = e->renamed.data[r->renamed_count];
        if (process < r->process_states.count && r->process_states.data[process] != MODEL_NONE)
            TRY(name_process(r, e, process));
    }
    return NULL;
}

static struct error *name_thread(struct resolver *r, const struct epoch *e, uint32_t thread)
{
    uint32_t process = e->threads.data[thread].def.process;
    struct thread_state *state = &r->thread_states.data[thread];

    return faces_thread(&r->faces, e, thread, r->process_states.data[process], &state->thread, &state->name_tries);
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
    if (!captures_record(&r->captures, e, rec) || !source_stamps_record(&r->source_stamps, e, rec))
        return error_no_memory();
    TRY(name_renamed(r, e));
    if (rec->type == TRACE_code) {
        r->several_pythons |= r->python && rec->code.python_version != r->python;
        r->python = rec->code.python_version;
    } else if (rec->type == TRACE_process_name || rec->type == TRACE_process_exit) {
        uint32_t process = rec->type == TRACE_process_exit ? rec->process_exit.process : rec->process_name.process;
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

/*
 * A stack without what the kernel and the C library have at its inner end: taking memory is what they are for, so it is the
 * function that they did it for that grows. A stack of nothing else stays as it is.
 */
static uint32_t without_allocator(const struct resolver *r, uint32_t stack)
{
    for (uint32_t at = stack; at != EMIT_NO_STACK; at = r->model.stacks.data[at].parent) {
        const struct emit_frame *frame = &r->model.view.frames[r->model.stacks.data[at].frame];
        bool serves = frame->kind == EMIT_KERNEL ||
                      (frame->kind == EMIT_NATIVE && frame->module && path_owner(frame->module) == MERGE_OWNER_C_LIBRARY);
        if (!serves)
            return at;
    }
    return stack;
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
    TRY(compose(&r->composer, e, tuple, interpreter, time_ns, &state.composed));
    state.taker = r->options.interpreter == MERGE_HIDE_INTERPRETER ? without_allocator(r, state.composed.stack) : state.composed.stack;
    *out = (uint32_t)r->tuple_states.count;
    if (!VEC_PUSH(&r->tuple_states, state))
        return error_no_memory();
    r->tuple_heads.data[tuple] = *out;
    return NULL;
}

/* The mark of what a thread waits for: "[wait: lock]". */
static struct error *find_wait_mark(struct resolver *r, uint32_t wait, uint32_t *out)
{
    struct model_frame mark = {.kind = EMIT_MARK, .mapping = EMIT_NO_MAPPING, .wait = wait};
    struct buf text = {0};

    buf_printf(&text, "[wait: %s]", model_text_get(&r->model, wait));
    mark.function = text.bad ? MODEL_NONE : model_text(&r->model, buf_cstr(&text), text.len_bytes);
    buf_deinit(&text);
    *out = mark.function == MODEL_NONE ? MODEL_NONE : model_frame(&r->model, &mark);
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

/* What is known of a label set of the epoch. */
static struct error *find_label_set(struct resolver *r, const struct epoch *e, uint32_t set, struct label_state *out)
{
    const struct trace_list *pairs = &e->label_sets.data[set].pairs;

    if (!VEC_EXTEND_NONE(&r->label_states, e->label_sets.count))
        return error_no_memory();
    *out = r->label_states.data[set];
    if (out->set != MODEL_NONE)
        return NULL;
    r->labels.count = 0;
    for (uint64_t i = 0; i < pairs->count; i++) {
        struct model_label label;
        TRY(frames_string(&r->frames, e, (uint32_t)pairs->values[2 * i], &label.key));
        TRY(frames_string(&r->frames, e, (uint32_t)pairs->values[2 * i + 1], &label.value));
        if (!VEC_PUSH(&r->labels, label))
            return error_no_memory();
        if (!strcmp(model_text_get(&r->model, label.key), trace_label_key(TRACE_LABEL_wait)))
            TRY(find_wait_mark(r, label.value, &out->mark));
    }
    out->set = model_label_set(&r->model, r->labels.data, (uint32_t)r->labels.count);
    if (out->set == MODEL_NONE)
        return error_no_memory();
    r->label_states.data[set] = *out;
    return NULL;
}

/* Sets the sample's labels and its stack as it was recorded; the innermost frame says what a thread waited for. */
static struct error *find_stack(struct resolver *r, const struct epoch *e, const struct trace_sample *sample,
                                const struct tuple_state *tuple, struct emit_sample *out)
{
    struct label_state labels = {.mark = MODEL_NONE};

    if (sample->label_set)
        TRY(find_label_set(r, e, sample->label_set, &labels));
    out->label_set = labels.set;
    out->stack = r->model.events.data[out->event].kind == EVENT_MEMORY ? tuple->taker : tuple->composed.stack;
    if (labels.mark != MODEL_NONE)
        out->stack = model_stack(&r->model, out->stack, labels.mark);
    return out->stack == MODEL_NONE && labels.mark != MODEL_NONE ? error_no_memory() : NULL;
}

static void add_to_totals(struct resolver *r, const struct event_state *event, const struct emit_sample *sample, bool kept)
{
    struct emit_total *total = &r->model.totals.data[sample->event];

    captures_saw_sample(&r->captures, event->rate);
    total->all_samples++;
    total->all_value += sample->value;
    if (!kept)
        return;
    total->shown_samples++;
    total->shown_value += sample->value;
    total->interpreter_value += sample->in_interpreter ? sample->value : 0;
}

/* The version of CPython whose frames a sample has; 0: it has none. */
static uint32_t version_of(const struct epoch *e, uint32_t tuple)
{
    uint32_t stack = e->tuples.data[tuple].python_stack;
    const struct epoch_frame *frame = stack ? &e->frames.data[e->stacks.data[stack].frame] : NULL;

    return frame && frame->type == TRACE_python_frame ? e->codes.data[frame->ref].python_version : 0;
}

/* Where code of several versions ran: a process may have two interpreters, of which its record names the first. */
static void find_other_python(struct resolver *r, const struct epoch *e, const struct trace_sample *sample)
{
    uint32_t process = e->threads.data[sample->thread].def.process, version = version_of(e, sample->tuple);

    if (version && e->processes.data[process].def.python_version && version != e->processes.data[process].def.python_version)
        model_other_python(&r->model, r->process_states.data[process], version);
}

/* No stack was taken for blame, nor for the waits that one of their place stands for. */
static bool repeats_stack(const struct resolver *r, const struct emit_sample *sample)
{
    return sample->owed || r->model.events.data[sample->event].kind == EVENT_BLAME;
}

struct error *resolver_sample(struct resolver *r, struct epoch *e, uint32_t event, const struct trace_sample *sample,
                              struct emit_sample *out, bool *kept)
{
    uint32_t number = sample->tuple < r->tuple_heads.count ? r->tuple_heads.data[sample->tuple] : MODEL_NONE;

    TRY(name_renamed(r, e));
    if (sample->thread >= r->thread_states.count || r->thread_states.data[sample->thread].thread == MODEL_NONE)
        TRY(find_thread(r, e, sample->thread));
    struct thread_state *thread = &r->thread_states.data[sample->thread];
    if (event >= r->event_states.count || r->event_states.data[event].event == MODEL_NONE)
        TRY(find_event(r, e, event));
    if (number == MODEL_NONE || r->tuple_states.data[number].interpreter != thread->interpreter)
        TRY(find_tuple(r, e, sample->tuple, thread->interpreter, sample->time_ns, &number));
    if (thread->name_tries)
        TRY(faces_look(&r->faces, e, sample->tuple, sample->thread, thread->thread, thread->interpreter, &thread->name_tries));

    if (r->several_pythons)
        find_other_python(r, e, sample);
    struct tuple_state *state = &r->tuple_states.data[number];
    out->time_ns = sample->time_ns;
    weigh(r, &r->event_states.data[event], sample, out);
    out->thread = thread->thread;
    out->cpu = sample->cpu;
    out->capture = r->file_number - 1;
    out->continues = sample->flags & TRACE_SAMPLE_CONTINUES;
    out->lasts = sample->flags & TRACE_SAMPLE_LASTS;
    out->owed = sample->flags & TRACE_SAMPLE_OWED;
    out->gil = !(sample->flags & TRACE_SAMPLE_GIL_KNOWN) ? EMIT_GIL_UNKNOWN
               : sample->flags & TRACE_SAMPLE_GIL      ? EMIT_GIL_HELD
                                                       : EMIT_GIL_NOT_HELD;
    TRY(find_stack(r, e, sample, state, out));
    out->in_interpreter = state->composed.in_interpreter;
    *kept = true;
    if (!stack_map_is_identity(&r->stack_map))
        TRY(stack_map_find(&r->stack_map, out->stack, out->label_set, out->value, &out->stack,
                           kept));
    add_to_totals(r, &r->event_states.data[event], out, *kept);
    if (!*kept)
        return NULL;
    state->sample_count++;
    state->repeat_count += repeats_stack(r, out);
    captures_saw_time(&r->captures, sample->time_ns);
    return NULL;
}

struct error *resolver_leave_out(struct resolver *r, const struct epoch *e, uint32_t event, const struct trace_sample *sample)
{
    struct emit_sample left_out = {0};

    TRY(name_renamed(r, e));
    if (event >= r->event_states.count || r->event_states.data[event].event == MODEL_NONE)
        TRY(find_event(r, e, event));
    weigh(r, &r->event_states.data[event], sample, &left_out);
    add_to_totals(r, &r->event_states.data[event], &left_out, false);
    return NULL;
}

struct error *resolver_thread_time(struct resolver *r, const struct epoch *e, const struct trace_thread_time *time)
{
    if (stack_map_chooses(&r->stack_map))
        return NULL;
    if (time->thread >= r->thread_states.count || r->thread_states.data[time->thread].thread == MODEL_NONE)
        TRY(find_thread(r, e, time->thread));
    uint32_t thread = r->thread_states.data[time->thread].thread;
    bool ok = model_exact_time(&r->model, thread, EMIT_WAIT_NONE, time->on_cpu_ns, 0);
    for (uint64_t i = 0; ok && i < time->waits.count; i++) {
        const uint64_t *row = &time->waits.values[3 * i];
        ok = model_exact_time(&r->model, thread, row[0] ? row[0] : EMIT_WAIT_OTHER, row[1], row[2]);
    }
    return ok ? NULL : error_no_memory();
}

struct error *resolver_thread_state(struct resolver *r, const struct epoch *e, const struct trace_thread_state *state)
{
    struct emit_thread_state shown = {.capture = r->file_number - 1, .time_ns = state->time_ns, .since_ns = state->since_ns,
                                      .state = state->state < EMIT_STATES ? (enum emit_kernel_state)state->state : EMIT_STATE_UNKNOWN};

    if (stack_map_chooses(&r->stack_map))
        return NULL;
    if (state->thread >= r->thread_states.count || r->thread_states.data[state->thread].thread == MODEL_NONE)
        TRY(find_thread(r, e, state->thread));
    shown.thread = r->thread_states.data[state->thread].thread;
    return model_thread_state(&r->model, &shown) ? NULL : error_no_memory();
}

const struct stack_map *resolver_stack_map(const struct resolver *r)
{
    return &r->stack_map;
}

static void count_end(struct resolver_ends *ends, uint32_t end, uint64_t samples)
{
    ends->count[end < LOSS_LIMIT ? end : LOSS_LIMIT] += samples;
}

static void count_place(struct resolver *r, const struct composed *state, uint64_t samples)
{
    if (state->native_end == LOSS_complete || state->outermost == MODEL_NONE)
        return;
    const struct expansion *x = &r->frames.expansions.data[state->outermost];
    const struct emit_frame *frame = &r->model.view.frames[r->frames.expanded.data[x->first].frame];
    end_places_add(&r->native_ends, state->native_end, frame->module, frame->function, samples);
}

void resolver_end_epoch(struct resolver *r)
{
    for (size_t i = 0; i < r->tuple_states.count; i++) {
        const struct composed *state = &r->tuple_states.data[i].composed;
        if (r->tuple_states.data[i].next != MODEL_NONE)
            limits_give(r->options.limits, sizeof *r->tuple_states.data);
        uint64_t samples = r->tuple_states.data[i].sample_count;
        bool unresolved = false;
        for (uint32_t k = 0; k < state->modules_count; k++) {
            uint32_t touched = r->composer.touched.data[state->modules_first + k];
            struct modcache_entry *m = modcache_get(r->modules, touched >> 1);
            m->sample_count += samples;
            if (touched & 1)
                m->unresolved_count += samples;
            unresolved |= touched & 1;
        }
        r->stats.sample_count += samples;
        r->stats.snapshot_count += state->snapshot ? samples : 0;
        r->stats.unresolved_count += unresolved ? samples : 0;
        r->stats.native_frame_count += samples * state->native_count;
        r->stats.native_unnamed_count += samples * state->native_unnamed;
        r->stats.python_frame_count += samples * state->python_count;
        r->stats.python_unnamed_count += samples * state->python_unnamed;
        r->stats.no_frame_count += state->no_frame ? samples : 0;
        for (uint32_t k = 0; k < MERGE_NO_FRAME_LIMIT; k++)
            r->stats.no_frame[k] += state->no_frame >> k & 1 ? samples : 0;
        const uint64_t stacks = samples - r->tuple_states.data[i].repeat_count;
        count_end(&r->stats.python, state->python_end, stacks);
        count_end(&r->stats.native, state->native_end, stacks);
        count_place(r, state, stacks);
        count_end(&r->stats.join, state->join_end, stacks);
    }
    frames_clear(&r->frames);
    r->thread_states.count = r->process_states.count = 0;
    r->event_states.count = r->label_states.count = r->renamed_count = 0;
    r->tuple_heads.count = r->tuple_states.count = 0;
    composer_clear(&r->composer);
}
