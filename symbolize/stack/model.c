/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/model.h"

#include <string.h>

bool model_init(struct model *m)
{
    return model_text(m, "", 0) == 0;
}

void model_deinit(struct model *m)
{
    intern_deinit(&m->texts);
    intern_deinit(&m->frame_keys);
    intern_deinit(&m->event_keys);
    intern_deinit(&m->process_keys);
    intern_deinit(&m->thread_keys);
    map_deinit(&m->stack_keys);
    VEC_DEINIT(&m->frames);
    VEC_DEINIT(&m->stacks);
    VEC_DEINIT(&m->events);
    VEC_DEINIT(&m->processes);
    VEC_DEINIT(&m->threads);
    VEC_DEINIT(&m->text);
}

uint32_t model_text(struct model *m, const char *text, size_t len_bytes)
{
    len_bytes = strnlen(text, len_bytes);
    m->text.count = 0;
    if (len_bytes >= UINT32_MAX || !VEC_RESERVE(&m->text, len_bytes + 1))
        return MODEL_NONE;
    if (len_bytes)
        memcpy(m->text.data, text, len_bytes);
    m->text.data[len_bytes] = 0;
    return intern_id(&m->texts, m->text.data, (uint32_t)len_bytes + 1, NULL);
}

const char *model_text_get(const struct model *m, uint32_t text)
{
    return (const char *)intern_get(&m->texts, text)->data;
}

uint32_t model_frame(struct model *m, const struct model_frame *frame)
{
    /* Without padding, which would tell equal frames apart. */
    struct {
        uint64_t address, symbol_offset;
        uint32_t kind, inlined, function, file, module, line, column, function_line;
    } key = {frame->address, frame->symbol_offset, frame->kind, frame->inlined, frame->function,
             frame->file,    frame->module,        frame->line, frame->column,  frame->function_line};
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
                               .function_line = frame->function_line};
    shown.function = model_text_get(m, frame->function);
    shown.file = model_text_get(m, frame->file);
    shown.module = model_text_get(m, frame->module);
    if (!VEC_PUSH(&m->frames, shown))
        return MODEL_NONE;
    m->view.frames = m->frames.data;
    m->view.frame_count = (uint32_t)m->frames.count;
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
    if (m->stacks.count >= MODEL_NONE - 1 || !map_set(&m->stack_keys, key, id) || !VEC_PUSH(&m->stacks, stack))
        return MODEL_NONE;
    m->view.stacks = m->stacks.data;
    m->view.stack_count = (uint32_t)m->stacks.count;
    return id;
}

uint32_t model_event(struct model *m, uint32_t name, uint32_t unit)
{
    uint32_t key[2] = {name, unit};
    bool added;
    uint32_t id = intern_id(&m->event_keys, key, sizeof key, &added);

    if (id == INTERN_NONE || !added)
        return id;
    struct emit_event event = {.name = model_text_get(m, name), .unit = model_text_get(m, unit)};
    event.is_time = !strcmp(event.unit, "ns");
    if (!VEC_PUSH(&m->events, event))
        return MODEL_NONE;
    m->view.events = m->events.data;
    m->view.event_count = (uint32_t)m->events.count;
    return id;
}

uint32_t model_process(struct model *m, const struct model_process_key *key, uint32_t comm)
{
    bool added;
    uint32_t id = intern_id(&m->process_keys, key, sizeof *key, &added);

    if (id == INTERN_NONE)
        return MODEL_NONE;
    if (added && !VEC_PUSH(&m->processes, ((struct emit_process){.pid = key->tgid})))
        return MODEL_NONE;
    m->processes.data[id].comm = model_text_get(m, comm);
    m->view.processes = m->processes.data;
    m->view.process_count = (uint32_t)m->processes.count;
    return id;
}

uint32_t model_thread(struct model *m, uint32_t process, uint32_t tid, uint32_t name)
{
    uint32_t key[2] = {process, tid};
    bool added;
    uint32_t id = intern_id(&m->thread_keys, key, sizeof key, &added);

    if (id == INTERN_NONE)
        return MODEL_NONE;
    if (added && !VEC_PUSH(&m->threads, ((struct emit_thread){.process = process, .tid = tid})))
        return MODEL_NONE;
    m->threads.data[id].name = model_text_get(m, name);
    m->view.threads = m->threads.data;
    m->view.thread_count = (uint32_t)m->threads.count;
    return id;
}
