/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/stacks.h"

#include <string.h>

#include "formats/emit/code_places.h"

enum { FRAME_WORK = 60, STACKS_A_STEP = 8 }; /* see limits.h */

struct error *pprof_stacks_init(struct pprof_stacks *s, const struct emit_model *model,
                                const struct emit_options *options, struct pprof_tables *tables)
{
    *s = (struct pprof_stacks){.model = model, .options = options, .tables = tables, .node_ids.limits = options->limits};
    return names_init(&s->names, model, options);
}

void pprof_stacks_deinit(struct pprof_stacks *s)
{
    if (s->model)
        names_deinit(&s->names);
    if (s->options)
        limits_give(s->options->limits, s->nodes.count * sizeof *s->nodes.data);
    VEC_DEINIT(&s->nodes);
    VEC_DEINIT(&s->node_of);
    map_deinit(&s->node_ids);
    VEC_DEINIT(&s->todo);
    VEC_DEINIT(&s->lines);
    buf_deinit(&s->text);
}

/* ---- functions ---- */

static bool add_line(struct pprof_stacks *s, const struct emit_frame *f)
{
    struct pprof_function function = {.start_line = f->function_line};

    buf_clear(&s->text);
    names_put_function(&s->names, f, s->options->qualify, &s->text);
    function.name = pprof_string(s->tables, &s->text);
    function.file = pprof_plain_string(s->tables, f->file);
    if (function.name == PPROF_NONE || function.file == PPROF_NONE)
        return false;
    struct pprof_line line = {.function = pprof_function(s->tables, &function),
                              .line = f->line,
                              .column = s->options->columns ? f->column : 0};
    return line.function != PPROF_NONE && VEC_PUSH(&s->lines, line);
}

/* ---- locations ---- */

/*
 * Native code without a name gets no line if its binary can be found again: then pprof and stores can look the name up.
 * Whatever else has no name, such as code made at run time, is called by its mapping.
 */
static bool is_open_to_lookup(const struct pprof_stacks *s, const struct emit_frame *f)
{
    if (*f->function || f->kind != EMIT_NATIVE || f->mapping == EMIT_NO_MAPPING)
        return false;
    const struct emit_mapping *m = &s->model->mappings[f->mapping];
    return m->path[0] == '/' && m->segment_count;
}

/* The mapping of a frame, and its address there. */
static uint32_t mapping_of(struct pprof_stacks *s, const struct emit_frame *f, uint64_t *address)
{
    *address = 0;
    if (f->kind == EMIT_PYTHON || f->kind == EMIT_MARK)
        return pprof_named_mapping(s->tables, "[python]");
    if (f->mapping == EMIT_NO_MAPPING)
        return pprof_named_mapping(s->tables, f->kind == EMIT_KERNEL ? "[kernel.kallsyms]" : "[unknown]");
    if (name_is_generated(f->module)) /* its address means something in its process alone */
        return pprof_named_mapping(s->tables, NAME_GENERATED);
    return pprof_binary(s->tables, f->mapping, f->address - f->return_address, address);
}

static void note_lines(struct pprof_mapping *mapping, const struct emit_frame *f, bool inlined)
{
    mapping->has_functions = true;
    mapping->has_files |= *f->file != 0;
    mapping->has_lines |= f->line != 0;
    mapping->has_inlined |= inlined;
}

static uint32_t location_of_mark(struct pprof_stacks *s, const char *mark)
{
    const struct emit_frame frame = {.kind = EMIT_MARK, .function = mark, .file = "", .module = ""};
    uint64_t address;

    s->lines.count = 0;
    uint32_t mapping = mapping_of(s, &frame, &address);
    if (mapping == PPROF_NONE || !add_line(s, &frame))
        return PPROF_NONE;
    note_lines(&s->tables->mappings.data[mapping - 1], &frame, false);
    return pprof_location(s->tables, mapping, 0, s->lines.data, s->lines.count);
}

uint32_t pprof_stacks_truncated(struct pprof_stacks *s)
{
    return location_of_mark(s, "[truncated]");
}

/* The stack from which `stack`'s innermost location was called: behind the frames that were inlined into one. */
static uint32_t callers_of(const struct emit_model *m, uint32_t stack)
{
    for (;;) {
        const struct emit_frame *f = &m->frames[m->stacks[stack].frame];
        uint32_t parent = m->stacks[stack].parent;
        if (!f->inlined || parent == EMIT_NO_STACK || !code_place_is_same(f, &m->frames[m->stacks[parent].frame]))
            return parent;
        stack = parent;
    }
}

/* The innermost location of a stack. */
static uint32_t location_of(struct pprof_stacks *s, uint32_t stack)
{
    const struct emit_model *m = s->model;
    uint32_t end = callers_of(m, stack);
    const struct emit_frame *f = NULL;
    uint64_t address;

    s->lines.count = 0;
    for (; stack != end; stack = m->stacks[stack].parent) {
        f = &m->frames[m->stacks[stack].frame];
        if (!limits_work(s->options->limits, FRAME_WORK) || (!is_open_to_lookup(s, f) && !add_line(s, f)))
            return PPROF_NONE;
    }
    uint32_t mapping = mapping_of(s, f, &address);
    if (mapping == PPROF_NONE)
        return PPROF_NONE;
    if (s->lines.count)
        note_lines(&s->tables->mappings.data[mapping - 1], f, s->lines.count > 1);
    return pprof_location(s->tables, mapping, address, s->lines.data, s->lines.count);
}

/* ---- nodes ---- */

static uint32_t child_of(struct pprof_stacks *s, uint32_t parent, uint32_t location)
{
    uint64_t key = (uint64_t)(parent + 1) << 32 | location;
    const uint64_t *known = map_get(&s->node_ids, key);

    if (location == PPROF_NONE || known)
        return known ? (uint32_t)*known : PPROF_NONE;
    uint32_t id = (uint32_t)s->nodes.count;
    if (s->nodes.count >= PPROF_NONE - 1 || !limits_take(s->options->limits, sizeof(struct pprof_node)) ||
        !map_set(&s->node_ids, key, id) ||
        !VEC_PUSH(&s->nodes, ((struct pprof_node){parent, location, parent == PPROF_NONE ? 1 : s->nodes.data[parent].depth + 1})))
        return PPROF_NONE;
    return id;
}

/* Of many small profiles each does this anew. */
static bool extend_nodes(struct pprof_stacks *s)
{
    return limits_work(s->options->limits, (s->model->stack_count - s->node_of.count) / STACKS_A_STEP) &&
           VEC_EXTEND_NONE(&s->node_of, s->model->stack_count);
}

uint32_t pprof_stacks_node(struct pprof_stacks *s, uint32_t stack)
{
    uint32_t node = PPROF_NONE;

    if (stack == EMIT_NO_STACK)
        return child_of(s, PPROF_NONE, location_of_mark(s, NAME_NO_FRAMES));
    if (s->node_of.count < s->model->stack_count && !extend_nodes(s))
        return PPROF_NONE;
    /* Outwards to the first part that has a node, then inwards again. */
    s->todo.count = 0;
    for (; stack != EMIT_NO_STACK; stack = callers_of(s->model, stack)) {
        node = s->node_of.data[stack];
        if (node != PPROF_NONE)
            break;
        if (!limits_work(s->options->limits, FRAME_WORK) || !VEC_PUSH(&s->todo, stack))
            return PPROF_NONE;
    }
    while (s->todo.count) {
        stack = s->todo.data[--s->todo.count];
        node = child_of(s, node, location_of(s, stack));
        if (node == PPROF_NONE)
            return PPROF_NONE;
        s->node_of.data[stack] = node;
    }
    return node;
}
