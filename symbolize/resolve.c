/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/cpython/code.h"
#include "symbolize/merge.h"
#include "symbolize/model.h"
#include "symbolize/snapshot.h"

enum {
    DEPTH_MAX = 1 << 15, /* frames of one list; a deeper one loses its outermost frames and is marked */
    INLINE_MAX = 64,
    NO_MODULE = -1,
};

/* A native address as it is shown: its function and what was inlined there. */
struct expansion {
    uint32_t first, count; /* in resolver.expanded; outermost first */
    uint32_t module;       /* in the module cache, NO_MODULE for an absolute address */
    bool call_machinery, unresolved;
};

/* What makes native addresses equal across processes and epochs. */
struct native_key {
    uint64_t offset;
    uint32_t module, path, return_address, zero;
};

/* By id of the epoch. */
struct frame_state {
    uint32_t number;      /* emit frame, or expansion for a native frame; + 1, 0 unknown */
    uint32_t interpreter; /* Python: whose name it bears */
};
struct module_state {
    uint32_t index_plus1, path; /* in the module cache; text */
};
struct thread_state {
    uint32_t thread_plus1, interpreter; /* in the model; text */
};
/* A tuple is resolved once for each interpreter (path) that it was sampled with, in practice once. */
struct tuple_state {
    uint32_t interpreter, stack, next_plus1;
    uint32_t sample_count;
    uint32_t python_end, native_end, join_end;
    uint32_t modules_first, modules_count; /* in resolver.touched */
    bool snapshot;
};

struct resolver {
    bool show_interpreter, python_only;
    struct model model;
    struct modcache *modules;
    struct resolver_stats stats;
    uint32_t file_number;

    struct intern native_keys; /* key n has expansion n */
    VEC(struct expansion) expansions;
    VEC(uint32_t) expanded;

    /* Of the epoch. */
    VEC(struct frame_state) frame_states;
    VEC(struct module_state) module_states;
    VEC(struct thread_state) thread_states;
    VEC(uint32_t) process_states; /* model process + 1 */
    VEC(uint32_t) event_states;   /* model event + 1 */
    VEC(uint32_t) tuple_heads;    /* tuple_states index + 1 */
    VEC(struct tuple_state) tuple_states;
    VEC(uint32_t) touched;        /* module cache index << 1 | unresolved */
    struct snapshots snapshots;

    /* Scratch of the tuple at hand, lists outermost first. */
    VEC(uint32_t) kernel, python, native; /* emit frames, emit frames, expansions */
    VEC(uint32_t) ids;
    VEC(struct merge_native) merge_native;
    VEC(bool) run_start;
    VEC(struct merge_run) runs;
    struct merge_output merged;
    struct buf text;
};

struct error *resolver_create(const struct resolver_options *options, struct resolver **out)
{
    struct resolver *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory();
    r->show_interpreter = options->show_interpreter;
    r->python_only = options->python_only;
    struct error *err = model_init(&r->model) ? modcache_create(&options->binaries, &r->modules) : error_no_memory();
    if (err) {
        resolver_destroy(r);
        return err;
    }
    *out = r;
    return NULL;
}

void resolver_destroy(struct resolver *r)
{
    if (!r)
        return;
    snapshots_deinit(&r->snapshots);
    modcache_destroy(r->modules);
    model_deinit(&r->model);
    intern_deinit(&r->native_keys);
    VEC_DEINIT(&r->expansions);
    VEC_DEINIT(&r->expanded);
    VEC_DEINIT(&r->frame_states);
    VEC_DEINIT(&r->module_states);
    VEC_DEINIT(&r->thread_states);
    VEC_DEINIT(&r->process_states);
    VEC_DEINIT(&r->event_states);
    VEC_DEINIT(&r->tuple_heads);
    VEC_DEINIT(&r->tuple_states);
    VEC_DEINIT(&r->touched);
    VEC_DEINIT(&r->kernel);
    VEC_DEINIT(&r->python);
    VEC_DEINIT(&r->native);
    VEC_DEINIT(&r->ids);
    VEC_DEINIT(&r->merge_native);
    VEC_DEINIT(&r->run_start);
    VEC_DEINIT(&r->runs);
    merge_output_deinit(&r->merged);
    buf_deinit(&r->text);
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

void resolver_begin_file(struct resolver *r)
{
    r->file_number++;
}

/* Makes a cache by id reach as far as the epoch does, with zeroes. */
#define REACH(v, reach) (VEC_RESERVE(v, reach) ? (zero_from((v)->data, &(v)->count, sizeof *(v)->data, reach), true) : false)
static void zero_from(void *data, size_t *count, size_t size_bytes, size_t reach)
{
    if (*count >= reach)
        return;
    memset((char *)data + *count * size_bytes, 0, (reach - *count) * size_bytes);
    *count = reach;
}

static struct error *text_of(struct resolver *r, const char *text, size_t len_bytes, uint32_t *out)
{
    *out = model_text(&r->model, text, len_bytes);
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

static struct error *string_of(struct resolver *r, const struct epoch *e, uint32_t string, uint32_t *out)
{
    return text_of(r, epoch_text(e, string), e->strings.data[string].len_bytes, out);
}

/* ---- frames ---- */

static struct error *put_frame(struct resolver *r, const struct model_frame *frame, uint32_t *out)
{
    *out = model_frame(&r->model, frame);
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

static struct error *code_text(struct resolver *r, uint32_t form, uint64_t len, struct trace_bytes data, uint32_t *out)
{
    buf_clear(&r->text);
    py_string_text(form, len, data, &r->text);
    if (r->text.bad)
        return error_no_memory();
    return text_of(r, (const char *)r->text.data, r->text.len_bytes, out);
}

static struct error *python_frame(struct resolver *r, const struct epoch *e, const struct epoch_frame *f,
                                  uint32_t interpreter, uint32_t *out)
{
    const struct trace_code *code = &e->codes.data[f->ref];
    struct model_frame frame = {.kind = EMIT_PYTHON, .module = interpreter};

    if (code->qualname_form)
        TRY(code_text(r, code->qualname_form, code->qualname_len, code->qualname, &frame.function));
    else
        TRY(code_text(r, code->name_form, code->name_len, code->name, &frame.function));
    if (code->filename_form)
        TRY(code_text(r, code->filename_form, code->filename_len, code->filename, &frame.file));
    if (f->ref) {
        bool exact;
        if (code->first_line > 0 && code->first_line < UINT32_MAX)
            frame.function_line = (uint32_t)code->first_line;
        struct py_position position = py_code_position(code, f->at, &exact);
        if (position.has_line && position.line > 0)
            frame.line = (uint32_t)position.line;
        if (position.has_columns && exact && position.column >= 0)
            frame.column = (uint32_t)position.column + 1;
    }
    return put_frame(r, &frame, out);
}

static struct error *kernel_frame(struct resolver *r, const struct epoch *e, const struct epoch_frame *f, uint32_t *out)
{
    const struct trace_kernel_symbol *symbol = &e->kernel_symbols.data[f->ref];
    struct model_frame frame = {.kind = EMIT_KERNEL, .address = (uint64_t)f->at};

    if (f->ref) {
        TRY(string_of(r, e, symbol->name, &frame.function));
        frame.symbol_offset = frame.address - symbol->address;
    }
    if (symbol->module) {
        buf_clear(&r->text);
        buf_printf(&r->text, "[%s]", epoch_text(e, symbol->module));
        if (r->text.bad)
            return error_no_memory();
        TRY(text_of(r, (const char *)r->text.data, r->text.len_bytes, &frame.module));
    } else {
        TRY(text_of(r, "[kernel.kallsyms]", sizeof "[kernel.kallsyms]" - 1, &frame.module));
    }
    return put_frame(r, &frame, out);
}

static struct error *mark_frame(struct resolver *r, const char *mark, uint32_t *out)
{
    struct model_frame frame = {.kind = EMIT_MARK};

    TRY(text_of(r, mark, strlen(mark), &frame.function));
    return put_frame(r, &frame, out);
}

static bool segment_vaddr(const struct trace_list *segments, uint64_t offset, uint64_t *vaddr)
{
    for (uint64_t i = 0; i < segments->count; i++) {
        const uint64_t *s = segments->values + 5 * i; /* vaddr, file offset, file size, … */
        if (offset >= s[1] && offset - s[1] < s[2]) {
            *vaddr = s[0] + (offset - s[1]);
            return true;
        }
    }
    return false;
}

/* Names a native address; a return address by the call before it. */
static struct error *expand(struct resolver *r, const struct epoch *e, uint32_t module, const struct native_key *key)
{
    struct expansion x = {.first = (uint32_t)r->expanded.count, .module = key->module, .call_machinery = true};
    struct symbol_frame found[INLINE_MAX] = {{.function = "", .file = ""}};
    uint32_t count = 1;

    if (key->module != (uint32_t)NO_MODULE) {
        struct symbols *symbols;
        uint64_t offset = key->offset - key->return_address, vaddr;
        TRY(modcache_symbols(r->modules, key->module, &symbols));
        if (symbols_vaddr(symbols, offset, &vaddr) ||
            segment_vaddr(&e->modules.data[module].def.segments, offset, &vaddr))
            count = symbols_lookup(symbols, vaddr, found, INLINE_MAX);
    }
    x.unresolved = !found[count - 1].function[0];
    for (uint32_t i = count; i--;) {
        const struct symbol_frame *s = &found[i];
        struct model_frame frame = {.kind = EMIT_NATIVE, .module = key->path, .line = s->line, .column = s->column,
                                    .address = key->offset, .inlined = s->inlined && i + 1 < count};
        uint32_t number;
        if (s->function[0] && !frame.inlined)
            frame.symbol_offset = s->offset + key->return_address;
        x.call_machinery = x.call_machinery && merge_is_call_machinery(s->function);
        TRY(text_of(r, s->function, strlen(s->function), &frame.function));
        TRY(text_of(r, s->file, strlen(s->file), &frame.file));
        TRY(put_frame(r, &frame, &number));
        if (!VEC_PUSH(&r->expanded, number))
            return error_no_memory();
    }
    x.count = (uint32_t)r->expanded.count - x.first;
    return VEC_PUSH(&r->expansions, x) ? NULL : error_no_memory();
}

/* The expansion of an address in a module of the epoch, 0 for an absolute one. */
static struct error *native_frame(struct resolver *r, const struct epoch *e, uint32_t module, uint64_t offset,
                                  bool return_address, uint32_t *out)
{
    struct native_key key = {.offset = offset, .module = (uint32_t)NO_MODULE, .return_address = return_address};
    bool added;

    if (module) {
        if (!REACH(&r->module_states, e->modules.count))
            return error_no_memory();
        struct module_state *state = &r->module_states.data[module];
        if (!state->index_plus1) {
            uint32_t index;
            TRY(modcache_index(r->modules, e, module, &index));
            TRY(string_of(r, e, e->modules.data[module].def.path, &state->path));
            state->index_plus1 = index + 1;
        }
        key.module = state->index_plus1 - 1;
        key.path = state->path;
    }
    *out = intern_id(&r->native_keys, &key, sizeof key, &added);
    if (*out == INTERN_NONE)
        return error_no_memory();
    return added ? expand(r, e, module, &key) : NULL;
}

/* The number that stands for a frame of the epoch in the list of its kind. */
static struct error *frame_number(struct resolver *r, const struct epoch *e, uint32_t id, uint32_t interpreter,
                                  uint32_t *out)
{
    struct frame_state *state = &r->frame_states.data[id];
    const struct epoch_frame *f = &e->frames.data[id];
    bool python = f->type == TRACE_python_frame;

    if (state->number && (!python || state->interpreter == interpreter)) {
        *out = state->number - 1;
        return NULL;
    }
    if (python)
        TRY(python_frame(r, e, f, interpreter, out));
    else if (f->type == TRACE_native_frame)
        TRY(native_frame(r, e, f->ref, (uint64_t)f->at, f->flags & TRACE_FRAME_RETURN, out));
    else
        TRY(kernel_frame(r, e, f, out));
    *state = (struct frame_state){.number = *out + 1, .interpreter = interpreter};
    return NULL;
}

/* ---- stacks ---- */

/* The ids of a stack's frames into r->ids. A frame of another kind than the list's has no place in it. */
static struct error *list_ids(struct resolver *r, const struct epoch *e, uint32_t stack, uint8_t type, bool *cut)
{
    uint32_t depth = e->stacks.data[stack].depth;
    size_t kept = 0;

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
        TRY(frame_number(r, e, r->ids.data[r->kernel.count], 0, &r->kernel.data[r->kernel.count]));
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
        TRY(frame_number(r, e, r->ids.data[i], interpreter, &r->python.data[i]));
        r->run_start.data[i] = e->frames.data[r->ids.data[i]].flags & TRACE_FRAME_RUN_END;
    }
    in->python_count = (uint32_t)r->python.count;
    in->run_start = r->run_start.data;
    in->python_end = cut ? LOSS_python_too_deep : t->python_end;
    return NULL;
}

static struct error *put_native(struct resolver *r, uint32_t expansion)
{
    const struct expansion *x = &r->expansions.data[expansion];
    struct merge_native native = {.module = x->module, .call_machinery = x->call_machinery};

    return VEC_PUSH(&r->native, expansion) && VEC_PUSH(&r->merge_native, native) ? NULL : error_no_memory();
}

static struct error *put_runs(struct resolver *r, const struct epoch_join *join, bool snapshot)
{
    for (uint32_t i = 0; i < join->run_count; i++) {
        uint64_t value = join->runs[2 * i], reason = join->runs[2 * i + 1];
        struct merge_run run;
        if (join->kind == 1 && snapshot)
            run = snapshots_join(&r->snapshots, value, reason);
        else if (join->kind == 0)
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
            TRY(frame_number(r, e, r->ids.data[i], 0, &expansion));
            TRY(put_native(r, expansion));
        }
    } else if (t->snapshot) {
        TRY(snapshots_unwind(&r->snapshots, r->modules, e, t->snapshot, time_ns, &in->native_end));
        for (uint32_t i = (uint32_t)r->snapshots.frames.count; i--;) {
            struct snapshot_frame f = snapshots_frame(&r->snapshots, e, t->snapshot, i);
            TRY(native_frame(r, e, f.module, f.offset, f.return_address, &expansion));
            TRY(put_native(r, expansion));
        }
    }
    TRY(put_runs(r, &e->joins.data[t->join], t->snapshot && !t->native_stack));
    if (cut) {
        /* The indices of the join count from frames that are gone. */
        in->native_end = LOSS_native_too_deep;
        uint32_t gone = e->stacks.data[t->native_stack].depth - DEPTH_MAX;
        for (size_t i = 0; i < r->runs.count; i++) {
            struct merge_run *run = &r->runs.data[i];
            if (run->native > gone)
                run->native -= gone;
            else if (run->native)
                *run = (struct merge_run){.reason = LOSS_join_outside};
        }
    }
    in->native = r->merge_native.data;
    in->native_count = (uint32_t)r->native.count;
    in->runs = r->runs.data;
    in->run_count = (uint32_t)r->runs.count;
    return NULL;
}

/* Notes the modules whose frames are shown, each once, and worse if a name is missing. */
static struct error *touch(struct resolver *r, struct tuple_state *state, const struct expansion *x)
{
    if (x->module == (uint32_t)NO_MODULE)
        return NULL;
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
            const struct expansion *x = &r->expansions.data[r->native.data[slot.index]];
            for (uint32_t k = 0; k < x->count; k++)
                TRY(step(r, &state->stack, r->expanded.data[x->first + k]));
            TRY(touch(r, state, x));
            break;
        }
        case MERGE_TORN:
        case MERGE_TRUNCATED:
            TRY(mark_frame(r, slot.kind == MERGE_TORN ? "[torn]" : "[truncated]", &frame));
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
    struct merge_input in = {.show_interpreter = r->show_interpreter};

    if (!REACH(&r->frame_states, e->frames.count))
        return error_no_memory();
    r->kernel.count = r->native.count = r->merge_native.count = r->runs.count = 0;
    TRY(list_python(r, e, t, state->interpreter, &in));
    if (!r->python_only) {
        TRY(list_kernel(r, e, t));
        TRY(list_native(r, e, t, time_ns, &in));
    }
    in.kernel_count = (uint32_t)r->kernel.count;
    if (!merge_layout(&in, &r->merged))
        return error_no_memory();
    state->python_end = in.python_end;
    state->native_end = in.native_end;
    state->join_end = r->merged.join_end;
    state->snapshot = t->snapshot && !t->native_stack && !r->python_only;
    return build_stack(r, state);
}

/* ---- samples ---- */

static struct error *find_event(struct resolver *r, const struct epoch *e, uint32_t event, uint32_t *out)
{
    uint32_t name, unit;

    if (!REACH(&r->event_states, e->events.count))
        return error_no_memory();
    if (!r->event_states.data[event]) {
        TRY(string_of(r, e, e->events.data[event].def.name, &name));
        TRY(string_of(r, e, e->events.data[event].def.unit, &unit));
        uint32_t number = model_event(&r->model, name, unit);
        if (number == MODEL_NONE)
            return error_no_memory();
        r->event_states.data[event] = number + 1;
    }
    *out = r->event_states.data[event] - 1;
    return NULL;
}

static struct error *name_process(struct resolver *r, const struct epoch *e, uint32_t process)
{
    static const uint8_t no_boot_id[16];
    const struct epoch_process *p = &e->processes.data[process];
    struct model_process_key key = {.start_boottime_ns = p->def.start_boottime_ns,
                                    .exec_generation = p->def.exec_generation, .tgid = p->def.tgid};
    uint32_t comm;

    memcpy(key.boot_id, e->boot_id, sizeof key.boot_id);
    if (!memcmp(e->boot_id, no_boot_id, sizeof no_boot_id))
        key.file = r->file_number;
    if (!REACH(&r->process_states, e->processes.count))
        return error_no_memory();
    TRY(string_of(r, e, p->comm, &comm));
    uint32_t number = model_process(&r->model, &key, comm);
    if (number == MODEL_NONE)
        return error_no_memory();
    r->process_states.data[process] = number + 1;
    return NULL;
}

static struct error *name_thread(struct resolver *r, const struct epoch *e, uint32_t thread)
{
    const struct epoch_thread *t = &e->threads.data[thread];
    struct thread_state *state = &r->thread_states.data[thread];
    uint32_t name;

    TRY(string_of(r, e, t->python_name ? t->python_name : t->name, &name));
    uint32_t number = model_thread(&r->model, r->process_states.data[t->def.process] - 1, t->def.tid, name);
    if (number == MODEL_NONE)
        return error_no_memory();
    state->thread_plus1 = number + 1;
    return NULL;
}

static struct error *find_thread(struct resolver *r, const struct epoch *e, uint32_t thread)
{
    uint32_t process = e->threads.data[thread].def.process;
    const struct epoch_process *p = &e->processes.data[process];

    if (!REACH(&r->thread_states, e->threads.count) || !REACH(&r->process_states, e->processes.count))
        return error_no_memory();
    if (!r->process_states.data[process])
        TRY(name_process(r, e, process));
    TRY(string_of(r, e, p->interpreter ? e->modules.data[p->interpreter].def.path : p->def.exe,
                  &r->thread_states.data[thread].interpreter));
    return name_thread(r, e, thread);
}

struct error *resolver_rename(struct resolver *r, const struct epoch *e, const struct trace_record *rec)
{
    if (rec->type == TRACE_process_name) {
        uint32_t process = rec->process_name.process;
        if (process < r->process_states.count && r->process_states.data[process])
            return name_process(r, e, process);
    } else if (rec->type == TRACE_thread_name) {
        uint32_t thread = rec->thread_name.thread;
        if (thread < r->thread_states.count && r->thread_states.data[thread].thread_plus1)
            return name_thread(r, e, thread);
    }
    return NULL;
}

static struct error *find_tuple(struct resolver *r, struct epoch *e, uint32_t tuple, uint32_t interpreter,
                                uint64_t time_ns, uint32_t *out)
{
    if (!REACH(&r->tuple_heads, e->tuples.count))
        return error_no_memory();
    for (uint32_t i = r->tuple_heads.data[tuple]; i; i = r->tuple_states.data[i - 1].next_plus1) {
        if (r->tuple_states.data[i - 1].interpreter == interpreter) {
            *out = i - 1;
            return NULL;
        }
    }
    struct tuple_state state = {.interpreter = interpreter, .next_plus1 = r->tuple_heads.data[tuple]};
    TRY(resolve_tuple(r, e, tuple, time_ns, &state));
    *out = (uint32_t)r->tuple_states.count;
    if (!VEC_PUSH(&r->tuple_states, state))
        return error_no_memory();
    r->tuple_heads.data[tuple] = *out + 1;
    return NULL;
}

struct error *resolver_sample(struct resolver *r, struct epoch *e, uint32_t event, const struct trace_sample *sample,
                              struct emit_sample *out)
{
    uint32_t number = 0;

    if (sample->thread >= r->thread_states.count || !r->thread_states.data[sample->thread].thread_plus1)
        TRY(find_thread(r, e, sample->thread));
    const struct thread_state *thread = &r->thread_states.data[sample->thread];
    if (event < r->event_states.count && r->event_states.data[event])
        out->event = r->event_states.data[event] - 1;
    else
        TRY(find_event(r, e, event, &out->event));
    if (sample->tuple < r->tuple_heads.count && r->tuple_heads.data[sample->tuple] &&
        r->tuple_states.data[r->tuple_heads.data[sample->tuple] - 1].interpreter == thread->interpreter)
        number = r->tuple_heads.data[sample->tuple] - 1;
    else
        TRY(find_tuple(r, e, sample->tuple, thread->interpreter, sample->time_ns, &number));

    struct tuple_state *state = &r->tuple_states.data[number];
    state->sample_count++;
    out->time_ns = sample->time_ns;
    out->value = sample->value;
    out->thread = thread->thread_plus1 - 1;
    out->cpu = sample->cpu;
    out->stack = state->stack;
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
        count_end(&r->stats.python, state->python_end, samples);
        count_end(&r->stats.native, state->native_end, samples);
        count_end(&r->stats.join, state->join_end, samples);
    }
    r->frame_states.count = r->module_states.count = r->thread_states.count = r->process_states.count = 0;
    r->event_states.count = r->tuple_heads.count = r->tuple_states.count = r->touched.count = 0;
    snapshots_clear(&r->snapshots);
}
