/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/model.h"

#include <string.h>

#include "symbolize/trace/wall.h"

bool model_init(struct model *m, struct limits *limits)
{
    struct intern *const tables[] = {&m->texts, &m->frame_keys, &m->event_keys, &m->process_keys, &m->first_program_keys,
                                     &m->thread_keys, &m->mapping_keys, &m->label_keys, &m->code_keys};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        tables[i]->arena.limits = limits;
    m->stack_keys.limits = m->exact_keys.limits = m->arena.limits = m->limits = limits;
    m->view.filters = "";
    return model_text(m, "", 0) == 0 && model_label_set(m, NULL, 0) == 0 &&
           model_code(m, &(struct emit_code){0}) == EMIT_NO_CODE;
}

/* What was taken for rows of the lists, a list's rows all together. */
static void give_lists(const struct model *m)
{
    limits_give(m->limits, m->frames.count * sizeof *m->frames.data + m->codes.count * sizeof *m->codes.data +
                               m->stacks.count * sizeof *m->stacks.data + m->processes.count * sizeof *m->processes.data +
                               m->threads.count * sizeof *m->threads.data + m->exact_times.count * sizeof *m->exact_times.data +
                               m->thread_states.count * sizeof *m->thread_states.data);
}

void model_deinit(struct model *m)
{
    give_lists(m);
    intern_deinit(&m->texts);
    intern_deinit(&m->frame_keys);
    intern_deinit(&m->event_keys);
    intern_deinit(&m->process_keys);
    intern_deinit(&m->first_program_keys);
    VEC_DEINIT(&m->first_programs);
    intern_deinit(&m->thread_keys);
    intern_deinit(&m->mapping_keys);
    intern_deinit(&m->label_keys);
    intern_deinit(&m->code_keys);
    map_deinit(&m->stack_keys);
    arena_deinit(&m->arena);
    VEC_DEINIT(&m->frames);
    VEC_DEINIT(&m->codes);
    VEC_DEINIT(&m->stacks);
    VEC_DEINIT(&m->events);
    VEC_DEINIT(&m->totals);
    VEC_DEINIT(&m->processes);
    VEC_DEINIT(&m->threads);
    VEC_DEINIT(&m->mappings);
    VEC_DEINIT(&m->label_sets);
    VEC_DEINIT(&m->exact_times);
    VEC_DEINIT(&m->thread_states);
    map_deinit(&m->exact_keys);
    buf_deinit(&m->scratch);
}

uint32_t model_text(struct model *m, const char *text, size_t len_bytes)
{
    len_bytes = len_bytes ? strnlen(text, len_bytes) : 0; /* of no bytes there may be no address */
    if (!limits_work(m->limits, 40 + len_bytes / 4))
        return MODEL_NONE;
    buf_clear(&m->scratch);
    buf_put(&m->scratch, text, len_bytes);
    buf_put_u8(&m->scratch, 0);
    if (m->scratch.bad || len_bytes >= UINT32_MAX)
        return MODEL_NONE;
    return intern_id(&m->texts, m->scratch.data, (uint32_t)len_bytes + 1, NULL);
}

const char *model_text_get(const struct model *m, uint32_t text)
{
    return (const char *)intern_get(&m->texts, text)->data;
}

enum { FRAME_INLINED = 1 << 0, FRAME_RETURN_ADDRESS = 1 << 1 };

/*
 * A frame's key has no padding, which would tell equal frames apart. function_end is no part of it: of a function that was
 * edited while it was recorded, frames that look the same stay the same.
 */
struct frame_key {
    uint64_t address, symbol_offset;
    uint32_t kind, flags;
    uint32_t function, file, module, line, column, function_line, mapping, builtin, wait, code;
};
_Static_assert(sizeof(struct frame_key) == 2 * sizeof(uint64_t) + 12 * sizeof(uint32_t), "no padding");

struct model_frame model_frame_get(const struct model *m, uint32_t frame)
{
    struct frame_key k;

    memcpy(&k, intern_get(&m->frame_keys, frame)->data, sizeof k);
    return (struct model_frame){.kind = k.kind,
                                .function = k.function,
                                .file = k.file,
                                .module = k.module,
                                .builtin = k.builtin,
                                .wait = k.wait,
                                .line = k.line,
                                .column = k.column,
                                .function_line = k.function_line,
                                .function_end = m->frames.data[frame].function_end,
                                .mapping = k.mapping,
                                .code = k.code,
                                .address = k.address,
                                .symbol_offset = k.symbol_offset,
                                .inlined = k.flags & FRAME_INLINED,
                                .return_address = k.flags & FRAME_RETURN_ADDRESS};
}

uint32_t model_frame(struct model *m, const struct model_frame *frame)
{
    const struct frame_key key = {.address = frame->address,
                                  .symbol_offset = frame->symbol_offset,
                                  .kind = frame->kind,
                                  .flags = (frame->inlined ? FRAME_INLINED : 0u) |
                                           (frame->return_address ? FRAME_RETURN_ADDRESS : 0u),
                                  .function = frame->function,
                                  .file = frame->file,
                                  .module = frame->module,
                                  .builtin = frame->builtin,
                                  .wait = frame->wait,
                                  .line = frame->line,
                                  .column = frame->column,
                                  .function_line = frame->function_line,
                                  .mapping = frame->mapping,
                                  .code = frame->code};
    bool added;
    uint32_t id = intern_id(&m->frame_keys, &key, sizeof key, &added);

    if (id == INTERN_NONE || !added)
        return id;
    struct emit_frame shown = {.kind = frame->kind,
                               .line = frame->line,
                               .column = frame->column,
                               .address = frame->address,
                               .symbol_offset = frame->symbol_offset,
                               .inlined = frame->inlined,
                               .return_address = frame->return_address,
                               .function_line = frame->function_line,
                               .function_end = frame->function_end,
                               .mapping = frame->mapping,
                               .code = frame->code};
    shown.function = model_text_get(m, frame->function);
    shown.file = model_text_get(m, frame->file);
    shown.module = model_text_get(m, frame->module);
    shown.builtin = frame->builtin ? model_text_get(m, frame->builtin) : NULL;
    shown.wait = frame->wait ? model_text_get(m, frame->wait) : NULL;
    if (!limits_take(m->limits, sizeof shown) || !VEC_PUSH(&m->frames, shown))
        return MODEL_NONE;
    m->view.frames = m->frames.data;
    m->view.frame_count = (uint32_t)m->frames.count;
    return id;
}

uint32_t model_code(struct model *m, const struct emit_code *code)
{
    const uint32_t key[] = {(uint32_t)(code->fingerprint >> 32), (uint32_t)code->fingerprint, code->table_bytes,
                            code->first_line, code->is_qualified};
    bool added;
    uint32_t id = intern_id(&m->code_keys, key, sizeof key, &added);

    if (id == INTERN_NONE || !added)
        return id;
    if (!limits_take(m->limits, sizeof *code) || !VEC_PUSH(&m->codes, *code))
        return MODEL_NONE;
    m->view.codes = m->codes.data;
    m->view.code_count = (uint32_t)m->codes.count;
    return id;
}

/* From the first executable segment to the end of the last. */
static void find_range(struct emit_mapping *mapping)
{
    for (uint32_t i = 0; i < mapping->segment_count; i++) {
        const struct emit_segment *s = &mapping->segments[i];
        uint64_t end;
        if (!(s->flags & 1) || __builtin_add_overflow(s->vaddr, s->memory_size, &end) || end == s->vaddr)
            continue;
        if (mapping->start == mapping->end || s->vaddr < mapping->start) {
            mapping->start = s->vaddr;
            mapping->offset = s->file_offset;
        }
        if (end > mapping->end)
            mapping->end = end;
    }
}

uint32_t model_mapping(struct model *m, const struct model_mapping *mapping)
{
    bool added;

    buf_clear(&m->scratch);
    buf_put_u32(&m->scratch, mapping->path);
    buf_put_u32(&m->scratch, mapping->build_id_len);
    buf_put(&m->scratch, mapping->build_id, mapping->build_id_len);
    for (uint32_t i = 0; i < mapping->segment_count; i++) {
        const struct emit_segment *s = &mapping->segments[i];
        const uint64_t key[] = {s->vaddr, s->file_offset, s->file_size, s->memory_size, s->flags};
        buf_put(&m->scratch, key, sizeof key);
    }
    if (m->scratch.bad || m->scratch.len_bytes > UINT32_MAX)
        return MODEL_NONE;
    uint32_t id = intern_id(&m->mapping_keys, m->scratch.data, (uint32_t)m->scratch.len_bytes, &added);
    if (id == INTERN_NONE || !added)
        return id;
    struct emit_mapping shown = {.path = model_text_get(m, mapping->path),
                                 .build_id_len = mapping->build_id_len,
                                 .segment_count = mapping->segment_count};
    if (shown.build_id_len)
        shown.build_id = arena_dup(&m->arena, mapping->build_id, shown.build_id_len);
    if (shown.segment_count)
        shown.segments =
            arena_dup(&m->arena, mapping->segments, shown.segment_count * sizeof *shown.segments);
    if ((shown.build_id_len && !shown.build_id) || (shown.segment_count && !shown.segments))
        return MODEL_NONE;
    find_range(&shown);
    if (!VEC_PUSH(&m->mappings, shown))
        return MODEL_NONE;
    m->view.mappings = m->mappings.data;
    m->view.mapping_count = (uint32_t)m->mappings.count;
    return id;
}

void model_mapping_is_elsewhere(struct model *m, uint32_t mapping)
{
    m->mappings.data[mapping].is_elsewhere = true;
}

/* ---- labels and exact times ---- */

_Static_assert((int)EMIT_WAIT_BLOCKED == TRACE_WAIT_BLOCKED && (int)EMIT_WAIT_GIL == TRACE_WAIT_GIL &&
                   (int)EMIT_WAIT_STOP_THE_WORLD == TRACE_WAIT_STOP_THE_WORLD && (int)EMIT_WAIT_EVENT_LOOP == TRACE_WAIT_EVENT_LOOP,
               "numbers of the trace");

static enum emit_wait wait_of(uint64_t kind)
{
    return kind < EMIT_WAIT_OTHER ? (enum emit_wait)kind : EMIT_WAIT_OTHER;
}

/* Notes what the formats know of a label. */
static void understand(struct emit_label_set *set, const struct emit_label *label)
{
    if (!strcmp(label->key, trace_label_key(TRACE_LABEL_interpreter))) {
        set->interpreter = label->value;
    } else if (!strcmp(label->key, trace_label_key(TRACE_LABEL_system_call))) {
        set->system_call = label->value;
    } else if (!strcmp(label->key, trace_label_key(TRACE_LABEL_wait))) {
        uint32_t kind = EMIT_WAIT_BLOCKED;
        while (kind < EMIT_WAIT_OTHER && strcmp(label->value, trace_value_meaning(TRACE_ENUM_wait_kind, kind)))
            kind++;
        set->wait = wait_of(kind);
    }
}

bool model_exact_time(struct model *m, uint32_t thread, uint64_t kind, uint64_t ns, uint64_t count)
{
    struct emit_exact_time row = {.thread = thread, .wait = wait_of(kind)};
    uint64_t key = (uint64_t)thread << 32 | row.wait;
    uint64_t *known = map_get(&m->exact_keys, key);

    if (!known) {
        if (!limits_take(m->limits, sizeof row) || !map_set(&m->exact_keys, key, m->exact_times.count) ||
            !VEC_PUSH(&m->exact_times, row))
            return false;
        known = map_get(&m->exact_keys, key);
        m->view.exact_times = m->exact_times.data;
        m->view.exact_time_count = (uint32_t)m->exact_times.count;
    }
    m->exact_times.data[*known].ns += ns;
    m->exact_times.data[*known].count += count;
    return true;
}

bool model_thread_state(struct model *m, const struct emit_thread_state *state)
{
    if (!limits_take(m->limits, sizeof *state) || !VEC_PUSH(&m->thread_states, *state))
        return false;
    m->view.thread_states = m->thread_states.data;
    m->view.thread_state_count = (uint32_t)m->thread_states.count;
    return true;
}

uint32_t model_label_set(struct model *m, const struct model_label *labels, uint32_t count)
{
    bool added;
    uint32_t id = intern_id(&m->label_keys, labels, count * (uint32_t)sizeof *labels, &added);

    if (id == INTERN_NONE || !added)
        return id;
    struct emit_label *shown = arena_calloc(&m->arena, count ? count : 1, sizeof *shown);
    struct emit_label_set set = {.labels = shown, .count = count};
    if (!shown)
        return MODEL_NONE;
    for (uint32_t i = 0; i < count; i++) {
        shown[i].key = model_text_get(m, labels[i].key);
        shown[i].value = model_text_get(m, labels[i].value);
        understand(&set, &shown[i]);
    }
    if (!VEC_PUSH(&m->label_sets, set))
        return MODEL_NONE;
    m->view.label_sets = m->label_sets.data;
    m->view.label_set_count = (uint32_t)m->label_sets.count;
    return id;
}

uint32_t model_stack(struct model *m, uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)(parent + 1) << 32 | frame;
    const uint64_t *known = map_get(&m->stack_keys, key);

    if (known)
        return (uint32_t)*known;
    struct emit_stack stack = {
        .parent = parent, .frame = frame, .depth = parent == EMIT_NO_STACK ? 1 : m->stacks.data[parent].depth + 1};
    uint32_t id = (uint32_t)m->stacks.count;
    if (m->stacks.count >= MODEL_NONE - 1 || !limits_take(m->limits, sizeof stack) || !map_set(&m->stack_keys, key, id) || !VEC_PUSH(&m->stacks, stack))
        return MODEL_NONE;
    m->view.stacks = m->stacks.data;
    m->view.stack_count = (uint32_t)m->stacks.count;
    return id;
}

uint32_t model_event(struct model *m, uint32_t name, uint32_t unit, enum event_value kind)
{
    uint32_t key[3] = {name, unit, kind};
    bool added;
    uint32_t id = intern_id(&m->event_keys, key, sizeof key, &added);

    if (id == INTERN_NONE || !added)
        return id;
    struct emit_event event = {.name = model_text_get(m, name), .unit = model_text_get(m, unit), .kind = kind};
    if (!VEC_PUSH(&m->events, event) || !VEC_PUSH(&m->totals, (struct emit_total){0}))
        return MODEL_NONE;
    m->view.events = m->events.data;
    m->view.totals = m->totals.data;
    m->view.event_count = (uint32_t)m->events.count;
    return id;
}

uint32_t model_event_of(struct model *m, const struct epoch *e, uint32_t event)
{
    const struct trace_event *def = &e->events.data[event].def;
    enum event_value kind = epoch_event_kind(e, event);
    bool wall = m->wall && wall_part_of(e, event) != WALL_NOTHING;
    const char *name = wall ? WALL_EVENT : epoch_text(e, def->name);
    const char *unit = event_is_bytes(kind) ? TRACE_UNIT_BYTES : epoch_text(e, def->unit);
    uint32_t name_text = model_text(m, name, strlen(name)), unit_text = model_text(m, unit, strlen(unit));

    if (name_text == MODEL_NONE || unit_text == MODEL_NONE)
        return MODEL_NONE;
    return model_event(m, name_text, unit_text, wall ? EVENT_WALL_TIME : kind);
}

/* The number of the first program of a process, which is `program` if none came before. */
static uint32_t first_program_of(struct model *m, const struct process_identity *key, uint32_t program)
{
    struct process_identity process = *key;
    bool added;

    process.exec_generation = 0;
    uint32_t id = intern_id(&m->first_program_keys, &process, sizeof process, &added);
    if (id == INTERN_NONE || (added && !VEC_PUSH(&m->first_programs, program)))
        return MODEL_NONE;
    return m->first_programs.data[id];
}

uint32_t model_process(struct model *m, const struct process_identity *key, const struct model_process *shown)
{
    bool added;
    uint32_t id = intern_id(&m->process_keys, key, sizeof *key, &added);

    if (id == INTERN_NONE)
        return MODEL_NONE;
    if (added && !limits_take(m->limits, sizeof(struct emit_process)))
        return MODEL_NONE;
    uint32_t first = added ? first_program_of(m, key, id) : 0;
    if (first == MODEL_NONE || (added && !VEC_PUSH(&m->processes, ((struct emit_process){.pid = key->tgid, .first_program = first}))))
        return MODEL_NONE;
    struct emit_process *process = &m->processes.data[id];
    process->parent_pid = shown->parent_pid;
    process->comm = model_text_get(m, shown->comm);
    process->name = model_text_get(m, shown->name);
    process->title = shown->title ? model_text_get(m, shown->title) : NULL;
    process->container = model_text_get(m, shown->container);
    process->cgroup = model_text_get(m, shown->cgroup);
    process->free_threaded = shown->free_threaded;
    process->ended |= shown->ended;
    if (process->other_version && process->other_version == shown->python_version) /* pycap has taken the other one for the first */
        process->other_version = process->python_version;
    process->python_version = shown->python_version;
    m->view.processes = m->processes.data;
    m->view.process_count = (uint32_t)m->processes.count;
    return id;
}

void model_other_python(struct model *m, uint32_t process, uint32_t version)
{
    m->processes.data[process].other_version = version;
}

uint32_t model_thread(struct model *m, uint32_t process, uint32_t tid, uint32_t name)
{
    uint32_t key[2] = {process, tid};
    bool added;
    uint32_t id = intern_id(&m->thread_keys, key, sizeof key, &added);

    if (id == INTERN_NONE)
        return MODEL_NONE;
    if (added && !limits_take(m->limits, sizeof(struct emit_thread)))
        return MODEL_NONE;
    if (added && !VEC_PUSH(&m->threads, ((struct emit_thread){.process = process, .tid = tid})))
        return MODEL_NONE;
    m->threads.data[id].name = model_text_get(m, name);
    m->view.threads = m->threads.data;
    m->view.thread_count = (uint32_t)m->threads.count;
    return id;
}

void model_name_thread(struct model *m, uint32_t thread, uint32_t name)
{
    m->threads.data[thread].name = model_text_get(m, name);
}
