/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/compare/run_set.h"

#include <string.h>

_Static_assert(RUN_SET_NONE == INTERN_NONE, "what could not be interned has no number");

bool run_set_init(struct run_set *s, struct limits *limits)
{
    struct intern *const tables[] = {&s->texts, &s->function_keys, &s->code_keys, &s->line_keys};

    *s = (struct run_set){.limits = limits, .node_keys.limits = limits};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        tables[i]->arena.limits = limits;
    return run_set_text(s, "", 0) == 0 && limits_take(limits, sizeof(struct run_node)) &&
           VEC_PUSH(&s->nodes, ((struct run_node){.parent = RUN_SET_NONE, .function = RUN_SET_NONE}));
}

static void event_deinit(struct run_event *e)
{
    VEC_DEINIT(&e->nodes);
    VEC_DEINIT(&e->functions);
    VEC_DEINIT(&e->codes);
    VEC_DEINIT(&e->lines);
    VEC_DEINIT(&e->modules);
}

void run_set_deinit(struct run_set *s)
{
    for (size_t i = 0; i < s->runs.count; i++) {
        struct run *run = &s->runs.data[i];
        for (size_t k = 0; k < run->events.count; k++)
            event_deinit(&run->events.data[k]);
        VEC_DEINIT(&run->events);
        VEC_DEINIT(&run->notes);
    }
    VEC_DEINIT(&s->runs);
    VEC_DEINIT(&s->functions);
    VEC_DEINIT(&s->codes);
    VEC_DEINIT(&s->nodes);
    VEC_DEINIT(&s->lines);
    intern_deinit(&s->texts);
    intern_deinit(&s->function_keys);
    intern_deinit(&s->code_keys);
    intern_deinit(&s->line_keys);
    map_deinit(&s->node_keys);
    buf_deinit(&s->scratch);
}

uint32_t run_set_text(struct run_set *s, const char *text, size_t len_bytes)
{
    len_bytes = len_bytes ? strnlen(text, len_bytes) : 0; /* of no bytes there may be no address */
    if (len_bytes >= UINT32_MAX || !limits_work(s->limits, 40 + len_bytes / 4))
        return RUN_SET_NONE;
    buf_clear(&s->scratch);
    buf_put(&s->scratch, text, len_bytes);
    buf_put_u8(&s->scratch, 0);
    return s->scratch.bad ? RUN_SET_NONE : intern_id(&s->texts, s->scratch.data, (uint32_t)len_bytes + 1, NULL);
}

const char *run_set_text_get(const struct run_set *s, uint32_t text)
{
    return (const char *)intern_get(&s->texts, text)->data;
}

/* Adds `item` behind the last one of a list whose keys are in `keys`, unless they have it. */
#define INTERNED(s, list, keys, key, item)                                                                      \
    do {                                                                                                        \
        bool added_;                                                                                            \
        uint32_t id_ = limits_work((s)->limits, 40) ? intern_id(&(s)->keys, key, sizeof key, &added_) : RUN_SET_NONE; \
        if (id_ != RUN_SET_NONE && added_ &&                                                                    \
            (!limits_take((s)->limits, sizeof(item)) || !VEC_PUSH(&(s)->list, item)))                           \
            return RUN_SET_NONE;                                                                                \
        return id_;                                                                                             \
    } while (0)

uint32_t run_set_function(struct run_set *s, const struct run_function *function)
{
    const uint32_t key[] = {function->file, function->name, function->unqualified,
                            function->unqualified ? function->first_line : 0};

    INTERNED(s, functions, function_keys, key, *function);
}

uint32_t run_set_code(struct run_set *s, const struct run_code *code)
{
    const uint32_t key[] = {code->function, code->first_line, code->table_bytes, (uint32_t)code->fingerprint,
                            (uint32_t)(code->fingerprint >> 32)};

    INTERNED(s, codes, code_keys, key, *code);
}

uint32_t run_set_line(struct run_set *s, const struct run_line *line)
{
    const uint32_t key[] = {line->code, line->line};

    INTERNED(s, lines, line_keys, key, *line);
}

uint32_t run_set_node(struct run_set *s, uint32_t parent, uint32_t function)
{
    uint64_t key = (uint64_t)parent << 32 | function;
    const uint64_t *known = map_get(&s->node_keys, key);

    if (!limits_work(s->limits, 40))
        return RUN_SET_NONE;
    if (known)
        return (uint32_t)*known;
    if (s->nodes.count >= RUN_SET_NONE || !limits_take(s->limits, sizeof(struct run_node)) ||
        !map_set(&s->node_keys, key, s->nodes.count) ||
        !VEC_PUSH(&s->nodes, ((struct run_node){.parent = parent, .function = function})))
        return RUN_SET_NONE;
    return (uint32_t)s->nodes.count - 1;
}

struct run *run_set_add(struct run_set *s)
{
    if (s->runs.count >= RUN_SET_NONE || !limits_take(s->limits, sizeof(struct run)) || !VEC_PUSH(&s->runs, (struct run){0}))
        return NULL;
    return &s->runs.data[s->runs.count - 1];
}

const struct run_event *run_event_find(const struct run_set *s, const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->events.count; i++) {
        if (!strcmp(run_set_text_get(s, run->events.data[i].name), name))
            return &run->events.data[i];
    }
    return NULL;
}

bool run_is_same(const struct run *a, const struct run *b)
{
    if (!a->start_realtime_ns || a->start_realtime_ns != b->start_realtime_ns || a->duration_ns != b->duration_ns ||
        a->events.count != b->events.count)
        return false;
    for (size_t i = 0; i < a->events.count; i++) {
        const struct run_event *ea = &a->events.data[i], *eb = &b->events.data[i];
        if (ea->name != eb->name || ea->samples != eb->samples || memcmp(&ea->total, &eb->total, sizeof ea->total) != 0)
            return false;
    }
    return true;
}
