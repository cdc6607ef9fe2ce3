/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/trace/epoch.h"

#include <stdlib.h>
#include <string.h>

static void drop_stack(struct epoch *e, uint32_t snapshot)
{
    struct trace_bytes *stack = &e->snapshots.data[snapshot].stack;

    limits_give(e->limits, stack->len_bytes);
    free((void *)stack->data); /* load_snapshot() allocated it */
    *stack = (struct trace_bytes){0};
}

void epoch_release_stack(struct epoch *e, uint32_t snapshot)
{
    uint32_t *users = snapshot < e->snapshot_users.count ? &e->snapshot_users.data[snapshot] : NULL;

    if (users && *users)
        --*users;
    if (!users || !*users)
        drop_stack(e, snapshot);
}

static bool load_tuple(struct epoch *e, const struct trace_tuple *tuple)
{
    if (tuple->snapshot) {
        if (!VEC_EXTEND_ZERO(&e->snapshot_users, (size_t)tuple->snapshot + 1))
            return false;
        e->snapshot_users.data[tuple->snapshot]++;
    }
    return VEC_PUSH(&e->tuples, *tuple);
}

/* Empties the epoch; the vectors keep their memory. */
static void forget(struct epoch *e)
{
    for (size_t i = 0; i < e->events.count; i++)
        VEC_DEINIT(&e->events.data[i].changes);
    for (size_t i = 0; i < e->processes.count; i++)
        address_space_deinit(&e->processes.data[i].mappings);
    for (size_t i = 0; i < e->snapshots.count; i++)
        drop_stack(e, (uint32_t)i);
    e->strings.count = e->events.count = e->processes.count = e->threads.count = e->modules.count = 0;
    e->codes.count = e->frames.count = e->kernel_symbols.count = e->stacks.count = 0;
    e->renamed.count = e->snapshots.count = e->snapshot_users.count = e->joins.count = e->tuples.count = e->label_sets.count = 0;
    arena_deinit(&e->arena);
    limits_give(e->limits, e->taken_bytes);
    e->taken_bytes = 0;
}

void epoch_deinit(struct epoch *e)
{
    forget(e);
    VEC_DEINIT(&e->strings);
    VEC_DEINIT(&e->events);
    VEC_DEINIT(&e->processes);
    VEC_DEINIT(&e->renamed);
    VEC_DEINIT(&e->threads);
    VEC_DEINIT(&e->modules);
    VEC_DEINIT(&e->codes);
    VEC_DEINIT(&e->frames);
    VEC_DEINIT(&e->kernel_symbols);
    VEC_DEINIT(&e->stacks);
    VEC_DEINIT(&e->snapshots);
    VEC_DEINIT(&e->snapshot_users);
    VEC_DEINIT(&e->joins);
    VEC_DEINIT(&e->tuples);
    VEC_DEINIT(&e->label_sets);
    *e = (struct epoch){0};
}

/* Puts the entry of id 0 into every vector. */
static bool begin(struct epoch *e)
{
    e->begun = true;
    e->arena.limits = e->limits;
    return VEC_PUSH(&e->strings, ((struct epoch_string){.text = ""})) &&
           VEC_PUSH(&e->events, (struct epoch_event){0}) && VEC_PUSH(&e->processes, (struct epoch_process){0}) &&
           VEC_PUSH(&e->threads, (struct epoch_thread){0}) && VEC_PUSH(&e->modules, (struct epoch_module){0}) &&
           VEC_PUSH(&e->codes, (struct trace_code){0}) && VEC_PUSH(&e->frames, (struct epoch_frame){0}) &&
           VEC_PUSH(&e->kernel_symbols, (struct trace_kernel_symbol){0}) &&
           VEC_PUSH(&e->stacks, (struct epoch_stack){0}) && VEC_PUSH(&e->snapshots, (struct trace_snapshot){0}) &&
           VEC_PUSH(&e->joins, (struct epoch_join){0}) && VEC_PUSH(&e->tuples, (struct trace_tuple){0}) &&
           VEC_PUSH(&e->label_sets, (struct trace_label_set){0});
}

/* Copies borrowed bytes into the epoch's arena. */
static bool keep_bytes(struct epoch *e, struct trace_bytes *bytes)
{
    if (!bytes->len_bytes)
        return true;
    bytes->data = arena_dup(&e->arena, bytes->data, bytes->len_bytes);
    return bytes->data != NULL;
}

static bool keep_list(struct epoch *e, struct trace_list *list, uint64_t width)
{
    if (!list->count)
        return true;
    list->values = arena_dup(&e->arena, list->values, list->count * width * sizeof *list->values);
    return list->values != NULL;
}

/* Characters may have four bytes. */
static void cut_text(struct trace_bytes *text)
{
    if (text->len_bytes > TRACE_TEXT_LIMIT_BYTES)
        text->len_bytes = TRACE_TEXT_LIMIT_BYTES;
}

static bool load_code(struct epoch *e, struct trace_code code)
{
    cut_text(&code.name);
    cut_text(&code.qualname);
    cut_text(&code.filename);
    return keep_bytes(e, &code.name) && keep_bytes(e, &code.qualname) && keep_bytes(e, &code.filename) &&
           keep_bytes(e, &code.line_table) && VEC_PUSH(&e->codes, code);
}

static bool load_module(struct epoch *e, struct trace_module module)
{
    return keep_bytes(e, &module.build_id) && keep_bytes(e, &module.htlhash) && keep_list(e, &module.segments, 5) &&
           keep_list(e, &module.eval_ranges, 2) && VEC_PUSH(&e->modules, ((struct epoch_module){.def = module}));
}

static bool load_image(struct epoch *e, struct trace_image image)
{
    struct epoch_module *module = &e->modules.data[image.module];

    if (!image.module || module->image.len_bytes || image.data.len_bytes > TRACE_IMAGE_LIMIT_BYTES)
        return true;
    if (!keep_bytes(e, &image.data))
        return false;
    module->image = image.data;
    module->image_address = image.address;
    return true;
}

static bool load_mapping(struct epoch *e, const struct trace_mapping *m)
{
    struct epoch_process *process = &e->processes.data[m->process];
    struct mapping_change change = {.time_ns = m->time_ns, .unmapped = m->change == TRACE_MAPPING_UNMAPPED};

    if (!m->process || m->change > 1)
        return true;
    change.mapping = (struct mapping){
        .address = m->address, .file_offset = m->file_offset, .module = m->module, .protection = m->protection};
    if (__builtin_add_overflow(m->address, m->length, &change.mapping.end))
        return true;
    /* Before 0.2 the first one. */
    if (m->change == TRACE_MAPPING_MAPPED && e->modules.data[m->module].def.eval_ranges.count &&
        (!process->interpreter || m->flags & TRACE_MAPPING_INTERPRETER))
        process->interpreter = m->module;
    return address_space_add(&process->mappings, &change);
}

static bool load_stack(struct epoch *e, const struct trace_stack *s)
{
    uint32_t parent = s->parent;

    for (uint64_t i = 0; i < s->frames.count; i++) {
        uint64_t frame = s->frames.values[i];
        struct epoch_stack step = {.parent = parent,
                                   .frame = frame < e->frames.count ? (uint32_t)frame : 0,
                                   .depth = e->stacks.data[parent].depth + 1};
        parent = (uint32_t)e->stacks.count;
        if (!VEC_PUSH(&e->stacks, step))
            return false;
    }
    return true;
}

static bool load_period(struct epoch *e, const struct trace_period *p)
{
    struct epoch_event *event = &e->events.data[p->event];
    struct epoch_period change = {.time_ns = p->time_ns, .period = p->period};

    if (!p->event)
        return true;
    if (!VEC_PUSH(&event->changes, change))
        return false;
    for (size_t i = event->changes.count - 1; i && event->changes.data[i - 1].time_ns > change.time_ns; i--) {
        event->changes.data[i] = event->changes.data[i - 1];
        event->changes.data[i - 1] = change;
        if (!limits_work(e->limits, 5)) /* hardly any are out of order */
            return false;
    }
    return true;
}

static bool load_string(struct epoch *e, const struct trace_string *s)
{
    uint64_t len = s->data.len_bytes < TRACE_TEXT_LIMIT_BYTES ? s->data.len_bytes : TRACE_TEXT_LIMIT_BYTES;
    struct epoch_string string = {.len_bytes = (uint32_t)len};

    string.text = arena_strndup(&e->arena, (const char *)s->data.data, len);
    return string.text && VEC_PUSH(&e->strings, string);
}

static bool load_frame(struct epoch *e, uint32_t type, uint32_t flags, uint32_t ref, int64_t at)
{
    struct epoch_frame frame = {.type = (uint8_t)type, .flags = (uint8_t)flags, .ref = ref, .at = at};

    return VEC_PUSH(&e->frames, frame);
}

bool epoch_outermost(const struct epoch *e, uint32_t stack, uint32_t max, uint32_t *ids, uint32_t *count, struct limits *limits)
{
    enum { STEP_WORK = 5 }; /* for a frame that is passed, see limits.h */
    uint32_t depth = e->stacks.data[stack].depth;

    if (!limits_work(limits, STEP_WORK * (uint64_t)depth))
        return false;
    *count = depth < max ? depth : max;
    for (; depth; depth--, stack = e->stacks.data[stack].parent) {
        if (depth <= max)
            ids[depth - 1] = e->stacks.data[stack].frame;
    }
    return true;
}

const struct machine *epoch_machine(const struct epoch *e)
{
    return e->has_host ? e->machine : machine_by_name("x86_64");
}

static bool load_host(struct epoch *e, const struct trace_host *host)
{
    memset(e->boot_id, 0, sizeof e->boot_id);
    if (host->boot_id.len_bytes == sizeof e->boot_id)
        memcpy(e->boot_id, host->boot_id.data, sizeof e->boot_id);
    e->kernel_build_id_len = 0;
    if (host->kernel_build_id.len_bytes && host->kernel_build_id.len_bytes <= sizeof e->kernel_build_id) {
        e->kernel_build_id_len = (uint32_t)host->kernel_build_id.len_bytes;
        memcpy(e->kernel_build_id, host->kernel_build_id.data, e->kernel_build_id_len);
    }
    e->has_host = true;
    e->machine = machine_by_name(epoch_text(e, host->machine));
    e->page_size = host->page_size;
    return true;
}

static void load_process_name(struct epoch *e, const struct trace_process_name *named)
{
    struct epoch_process *process = &e->processes.data[named->process];

    process->comm = named->comm;
    if (named->cmdline)
        process->def.cmdline = named->cmdline;
}

static void load_thread_name(struct epoch *e, const struct trace_thread_name *named)
{
    struct epoch_thread *thread = &e->threads.data[named->thread];

    if (named->name)
        thread->name = named->name;
    if (named->python_name)
        thread->python_name = named->python_name;
}

/* The stack has memory of its own, since most snapshots are needed but once: see epoch_release_stack(). */
static bool load_snapshot(struct epoch *e, struct trace_snapshot snapshot)
{
    struct trace_bytes stack = snapshot.stack;

    snapshot.stack = (struct trace_bytes){0};
    if (!keep_list(e, &snapshot.registers, 1) || !VEC_PUSH(&e->snapshots, snapshot))
        return false;
    if (!stack.len_bytes)
        return true;
    if (!limits_take(e->limits, stack.len_bytes))
        return false;
    uint8_t *copy = malloc(stack.len_bytes);
    if (!copy) {
        limits_give(e->limits, stack.len_bytes);
        return false;
    }
    memcpy(copy, stack.data, stack.len_bytes);
    e->snapshots.data[e->snapshots.count - 1].stack = (struct trace_bytes){copy, stack.len_bytes};
    return true;
}

static bool load_join(struct epoch *e, const struct trace_join *join)
{
    struct trace_list runs = join->runs;

    if (!keep_list(e, &runs, 2))
        return false;
    const struct epoch_join kept = {.kind = join->kind, .run_count = (uint32_t)runs.count, .runs = runs.values};
    return VEC_PUSH(&e->joins, kept);
}

static bool load_label_set(struct epoch *e, struct trace_label_set set)
{
    return keep_list(e, &set.pairs, 2) && VEC_PUSH(&e->label_sets, set);
}

static bool load(struct epoch *e, const struct trace_record *rec)
{
    if (e->left_out >> rec->type & 1)
        return rec->type != TRACE_snapshot || VEC_PUSH(&e->snapshots, (struct trace_snapshot){0});
    switch (rec->type) {
    case TRACE_string:
        return load_string(e, &rec->string);
    case TRACE_host:
        return load_host(e, &rec->host);
    case TRACE_event:
        return VEC_PUSH(&e->events, ((struct epoch_event){.def = rec->event}));
    case TRACE_period:
        return load_period(e, &rec->period);
    case TRACE_process:
        return VEC_PUSH(&e->processes, ((struct epoch_process){
                                            .def = rec->process, .comm = rec->process.comm, .mappings.limits = e->limits}));
    case TRACE_process_exit:
        e->processes.data[rec->process_exit.process].ended = true;
        return true;
    case TRACE_process_name:
        load_process_name(e, &rec->process_name);
        return true;
    case TRACE_thread:
        return VEC_PUSH(&e->threads, ((struct epoch_thread){.def = rec->thread, .name = rec->thread.name}));
    case TRACE_thread_name:
        load_thread_name(e, &rec->thread_name);
        return true;
    case TRACE_module:
        return load_module(e, rec->module);
    case TRACE_image:
        return load_image(e, rec->image);
    case TRACE_mapping:
        return load_mapping(e, &rec->mapping);
    case TRACE_code:
        return load_code(e, rec->code);
    case TRACE_python_frame:
        return load_frame(e, rec->type, rec->python_frame.flags, rec->python_frame.code,
                          rec->python_frame.flags & TRACE_FRAME_LINE_UNKNOWN ? EPOCH_AT_UNKNOWN : rec->python_frame.offset);
    case TRACE_native_frame:
        return load_frame(e, rec->type, rec->native_frame.flags, rec->native_frame.module,
                          (int64_t)rec->native_frame.offset);
    case TRACE_kernel_symbol:
        return VEC_PUSH(&e->kernel_symbols, rec->kernel_symbol);
    case TRACE_kernel_frame:
        return load_frame(e, rec->type, 0, rec->kernel_frame.symbol, (int64_t)rec->kernel_frame.address);
    case TRACE_stack:
        return load_stack(e, &rec->stack);
    case TRACE_snapshot:
        return load_snapshot(e, rec->snapshot);
    case TRACE_join:
        return load_join(e, &rec->join);
    case TRACE_tuple:
        return load_tuple(e, &rec->tuple);
    case TRACE_label_set:
        return load_label_set(e, rec->label_set);
    default:
        return true;
    }
}

/*
 * What a record takes in memory beside its bytes and lists: here, and in the tables by id that resolve.h keeps as long
 * as the epoch.
 */
static uint64_t cost_of(const struct trace_record *rec)
{
    switch (rec->type) {
    case TRACE_string:
        return sizeof(struct epoch_string);
    case TRACE_event:
        return sizeof(struct epoch_event) + 16;
    case TRACE_period:
        return sizeof(struct epoch_period);
    case TRACE_process:
        return sizeof(struct epoch_process) + 64;
    case TRACE_thread:
        return sizeof(struct epoch_thread) + 32;
    case TRACE_module:
        return sizeof(struct epoch_module) + 16;
    case TRACE_mapping:
        return sizeof(struct mapping_change) + 2 * sizeof(struct mapping);
    case TRACE_code:
        return sizeof(struct trace_code);
    case TRACE_python_frame:
    case TRACE_native_frame:
    case TRACE_kernel_frame:
        return sizeof(struct epoch_frame) + 16;
    case TRACE_kernel_symbol:
        return sizeof(struct trace_kernel_symbol);
    case TRACE_stack:
        return sizeof(struct epoch_stack) * rec->stack.frames.count;
    case TRACE_snapshot:
        return sizeof(struct trace_snapshot);
    case TRACE_join:
        return sizeof(struct epoch_join);
    case TRACE_tuple:
        return sizeof(struct trace_tuple) + 96;
    case TRACE_label_set:
        return sizeof(struct trace_label_set) + 16;
    default:
        return 0;
    }
}

struct error *epoch_load(struct epoch *e, const struct trace_record *rec)
{
    uint64_t cost = e->left_out >> rec->type & 1 ? 0 : cost_of(rec);

    if (rec->type == TRACE_epoch) {
        forget(e);
        e->begun = false;
        e->number = rec->epoch.number;
        e->time_ns = rec->epoch.time_ns;
    }
    if (!e->begun && !begin(e))
        return error_no_memory();
    if (!limits_take(e->limits, cost))
        return error_no_memory();
    e->taken_bytes += cost;
    return load(e, rec) ? NULL : error_no_memory();
}

struct process_identity epoch_process_identity(const struct epoch *e, uint32_t process, uint32_t file)
{
    static const uint8_t no_boot_id[16];
    const struct trace_process *def = &e->processes.data[process].def;
    struct process_identity identity = {
        .start_boottime_ns = def->start_boottime_ns, .exec_generation = def->exec_generation, .tgid = def->tgid};

    memcpy(identity.boot_id, e->boot_id, sizeof identity.boot_id);
    if (!memcmp(e->boot_id, no_boot_id, sizeof no_boot_id))
        identity.file = file;
    return identity;
}

uint32_t epoch_event_bytes(const struct epoch *e, uint32_t event)
{
    const char *unit = epoch_text(e, e->events.data[event].def.unit);

    return !strcmp(unit, TRACE_UNIT_BYTES) ? 1 : strcmp(unit, TRACE_UNIT_FAULTS) ? 0 : e->page_size;
}

enum event_value epoch_event_kind(const struct epoch *e, uint32_t event)
{
    const struct trace_event *def = &e->events.data[event].def;
    const char *unit = epoch_text(e, def->unit);

    if (!strcmp(unit, "ns")) {
        switch (def->kind) {
        case TRACE_EVENT_OFF_CPU: return EVENT_OFF_CPU;
        case TRACE_EVENT_BLAME: return EVENT_BLAME;
        case TRACE_EVENT_TASK: return EVENT_TASK_WAIT;
        case TRACE_EVENT_COUNTED: return EVENT_COUNTED_TIME;
        default: return EVENT_CPU_TIME;
        }
    }
    if (epoch_event_bytes(e, event))
        return !strcmp(unit, TRACE_UNIT_FAULTS) || !strcmp(epoch_text(e, def->name), TRACE_MEMORY_GROWTH) ? EVENT_MEMORY : EVENT_BYTES;
    return def->kind == TRACE_EVENT_COUNTED ? EVENT_COUNT : EVENT_AMOUNT;
}

uint64_t epoch_period_at(const struct epoch *e, uint32_t event, uint64_t time_ns)
{
    const struct epoch_event *ev = &e->events.data[event];
    size_t lo = 0, hi = ev->changes.count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (ev->changes.data[mid].time_ns <= time_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? ev->changes.data[lo - 1].period : ev->def.period;
}

uint32_t epoch_stack_frames(const struct epoch *e, uint32_t stack, uint32_t *frames, uint32_t max)
{
    uint32_t depth = e->stacks.data[stack].depth;
    uint32_t count = depth < max ? depth : max;

    for (uint32_t i = count; i; i--) {
        frames[i - 1] = e->stacks.data[stack].frame;
        stack = e->stacks.data[stack].parent;
    }
    return count;
}
