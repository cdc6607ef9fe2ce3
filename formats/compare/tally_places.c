/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/compare/tally_places.h"

#include <string.h>

bool tally_places_init(struct tally_places *p, const struct emit_model *model, struct run_set *set)
{
    *p = (struct tally_places){.model = model, .set = set, .path_keys.limits = set->limits};
    return VEC_PUSH(&p->paths, ((struct tally_path){.parent = TALLY_NO_PATH, .code = RUN_SET_NONE}));
}

void tally_places_deinit(struct tally_places *p)
{
    VEC_DEINIT(&p->stacks);
    VEC_DEINIT(&p->frames);
    VEC_DEINIT(&p->paths);
    VEC_DEINIT(&p->pending);
    map_deinit(&p->path_keys);
}

static uint32_t text_of(struct run_set *set, const char *text)
{
    return run_set_text(set, text, strlen(text));
}

/* Code and line of a Python frame. */
static bool find_frame(struct tally_places *p, uint32_t frame, struct tally_frame *out)
{
    const struct emit_frame *f = &p->model->frames[frame];
    const struct emit_code *code = f->code == EMIT_NO_CODE ? NULL : &p->model->codes[f->code];

    if (!limits_take(p->set->limits, (frame < p->frames.count ? 0 : frame + 1 - p->frames.count) * sizeof *out) ||
        !VEC_EXTEND_NONE(&p->frames, (size_t)frame + 1))
        return false;
    *out = p->frames.data[frame];
    if (out->code != RUN_SET_NONE)
        return true;
    struct run_function function = {.file = text_of(p->set, f->file),
                                    .name = text_of(p->set, f->function),
                                    .first_line = f->function_line,
                                    .unqualified = code && !code->is_qualified};
    struct run_code of = {.first_line = f->function_line};
    if (code) {
        of.fingerprint = code->fingerprint;
        of.table_bytes = code->table_bytes;
    }
    if (function.file == RUN_SET_NONE || function.name == RUN_SET_NONE ||
        (of.function = run_set_function(p->set, &function)) == RUN_SET_NONE ||
        (out->code = run_set_code(p->set, &of)) == RUN_SET_NONE)
        return false;
    out->line = run_set_line(p->set, &(struct run_line){.code = out->code, .line = f->line});
    p->frames.data[frame] = *out;
    return out->line != RUN_SET_NONE;
}

/* The node of a function that `node` calls: one of those that lead to it, if it is the function's. */
static uint32_t node_below(struct tally_places *p, uint32_t node, uint32_t function)
{
    const struct run_set *set = p->set;

    for (uint32_t n = node; n != RUN_SET_ROOT; n = set->nodes.data[n].parent) {
        if (set->nodes.data[n].function == function)
            return n;
        if (!limits_work(set->limits, 2))
            return RUN_SET_NONE;
    }
    return run_set_node(p->set, node, function);
}

static bool path_below(struct tally_places *p, uint32_t path, uint32_t code, uint32_t *out)
{
    const struct run_set *set = p->set;
    uint32_t function = set->codes.data[code].function;

    *out = path;
    for (uint32_t n = path; n != TALLY_NO_PATH; n = p->paths.data[n].parent) {
        if (set->codes.data[p->paths.data[n].code].function == function)
            return true;
        if (!limits_work(set->limits, 2))
            return false;
    }
    uint64_t key = (uint64_t)path << 32 | code;
    const uint64_t *known = map_get(&p->path_keys, key);
    *out = known ? (uint32_t)*known : (uint32_t)p->paths.count;
    return known || (p->paths.count < RUN_SET_NONE && limits_take(set->limits, sizeof(struct tally_path)) &&
                     map_set(&p->path_keys, key, *out) &&
                     VEC_PUSH(&p->paths, ((struct tally_path){.parent = path, .code = code})));
}

/* The place of a stack from that of its callers, which it keeps unless a Python frame was added. */
static bool go_down(struct tally_places *p, uint32_t frame, struct tally_place *place)
{
    struct tally_frame python;

    if (p->model->frames[frame].kind != EMIT_PYTHON)
        return true;
    if (!find_frame(p, frame, &python))
        return false;
    place->line = python.line;
    place->node = node_below(p, place->node, p->set->codes.data[python.code].function);
    return place->node != RUN_SET_NONE && path_below(p, place->path, python.code, &place->path);
}

bool tally_place_of(struct tally_places *p, uint32_t stack, struct tally_place *out)
{
    const struct emit_stack *stacks = p->model->stacks;
    struct limits *limits = p->set->limits;

    *out = (struct tally_place){.node = RUN_SET_ROOT, .path = TALLY_NO_PATH, .line = RUN_SET_NONE};
    if (stack == EMIT_NO_STACK)
        return true;
    if (!limits_take(limits, (stack < p->stacks.count ? 0 : stack + 1 - p->stacks.count) * sizeof *out) ||
        !VEC_EXTEND_NONE(&p->stacks, (size_t)stack + 1))
        return false;
    p->pending.count = 0;
    for (uint32_t s = stack; s != EMIT_NO_STACK; s = stacks[s].parent) {
        if (p->stacks.data[s].node != RUN_SET_NONE) {
            *out = p->stacks.data[s];
            break;
        }
        if (!VEC_PUSH(&p->pending, s))
            return false;
    }
    while (p->pending.count) {
        uint32_t s = p->pending.data[--p->pending.count];
        if (!go_down(p, stacks[s].frame, out))
            return false;
        p->stacks.data[s] = *out;
    }
    return true;
}
