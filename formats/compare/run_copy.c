/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a run from one set to another. Numbers are looked up once each, when a cell of the run first needs them, so that
 * what only other runs have is not copied.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/compare/run_set.h"

/* By number in the set that is copied from: the number here; RUN_SET_NONE until it is looked up. */
struct run_copy {
    struct run_set *to;
    const struct run_set *from;
    const struct run_choice *choice;
    VEC(uint32_t) texts, functions, codes, nodes, lines;
    VEC(uint32_t) path; /* scratch */
};

typedef struct error *copy_fn(struct run_copy *c, uint32_t id, uint32_t *out);

static struct error *copy_text(struct run_copy *c, uint32_t id, uint32_t *out)
{
    uint32_t *known = &c->texts.data[id];

    if (*known == RUN_SET_NONE) {
        const struct intern_entry *text = intern_get(&c->from->texts, id);
        *known = run_set_text(c->to, (const char *)text->data, text->len_bytes - 1);
    }
    *out = *known;
    return *out == RUN_SET_NONE ? error_no_memory() : NULL;
}

static struct error *copy_function(struct run_copy *c, uint32_t id, uint32_t *out)
{
    uint32_t *known = &c->functions.data[id];

    if (*known == RUN_SET_NONE) {
        struct run_function function = c->from->functions.data[id];
        TRY(copy_text(c, function.file, &function.file));
        TRY(copy_text(c, function.name, &function.name));
        *known = run_set_function(c->to, &function);
    }
    *out = *known;
    return *out == RUN_SET_NONE ? error_no_memory() : NULL;
}

static struct error *copy_code(struct run_copy *c, uint32_t id, uint32_t *out)
{
    uint32_t *known = &c->codes.data[id];

    if (*known == RUN_SET_NONE) {
        struct run_code code = c->from->codes.data[id];
        TRY(copy_function(c, code.function, &code.function));
        *known = run_set_code(c->to, &code);
    }
    *out = *known;
    return *out == RUN_SET_NONE ? error_no_memory() : NULL;
}

static struct error *copy_line(struct run_copy *c, uint32_t id, uint32_t *out)
{
    uint32_t *known = &c->lines.data[id];

    if (*known == RUN_SET_NONE) {
        struct run_line line = c->from->lines.data[id];
        TRY(copy_code(c, line.code, &line.code));
        *known = run_set_line(c->to, &line);
    }
    *out = *known;
    return *out == RUN_SET_NONE ? error_no_memory() : NULL;
}

/* Parents come first. */
static struct error *copy_node(struct run_copy *c, uint32_t id, uint32_t *out)
{
    c->path.count = 0;
    for (uint32_t node = id; c->nodes.data[node] == RUN_SET_NONE; node = c->from->nodes.data[node].parent) {
        if (!VEC_PUSH(&c->path, node))
            return error_no_memory();
    }
    while (c->path.count) {
        uint32_t node = c->path.data[--c->path.count], function;
        TRY(copy_function(c, c->from->nodes.data[node].function, &function));
        c->nodes.data[node] = run_set_node(c->to, c->nodes.data[c->from->nodes.data[node].parent], function);
        if (c->nodes.data[node] == RUN_SET_NONE)
            return error_no_memory();
    }
    *out = c->nodes.data[id];
    return NULL;
}

static int compare_cells(const void *a, const void *b)
{
    const struct run_cell *ca = a, *cb = b;

    return (ca->id > cb->id) - (ca->id < cb->id);
}

/* Those that have `least` in `samples`, by number; NULL: all. */
static struct error *copy_cells(struct run_copy *c, const struct run_cells *from, copy_fn *copy, const double *samples, double least,
                                struct run_cells *to)
{
    if (!limits_take(c->to->limits, from->count * sizeof *to->data) || !limits_work(c->to->limits, 100 * from->count) ||
        !VEC_RESERVE(to, from->count))
        return error_no_memory();
    for (size_t i = 0; i < from->count; i++) {
        struct run_cell cell = from->data[i];
        if (samples && samples[cell.id] < least)
            continue;
        TRY(copy(c, cell.id, &cell.id));
        to->data[to->count++] = cell;
    }
    if (to->count)
        qsort(to->data, to->count, sizeof *to->data, compare_cells);
    return NULL;
}

static struct error *copy_event(struct run_copy *c, const struct run_event *from, struct run_event *to)
{
    *to = *from;
    to->nodes = to->functions = to->codes = to->lines = to->modules = (struct run_cells){0};
    TRY(copy_text(c, from->name, &to->name));
    TRY(copy_text(c, from->unit, &to->unit));
    const struct run_choice *o = c->choice;
    TRY(copy_cells(c, &from->nodes, copy_node, o->nodes, o->least_nodes, &to->nodes));
    TRY(copy_cells(c, &from->functions, copy_function, o->functions, o->least_functions, &to->functions));
    TRY(copy_cells(c, &from->codes, copy_code, NULL, 0, &to->codes));
    TRY(copy_cells(c, &from->lines, copy_line, o->lines, o->least_lines, &to->lines));
    return copy_cells(c, &from->modules, copy_text, NULL, 0, &to->modules);
}

static struct error *copy_facts(struct run_copy *c, struct run *to)
{
    uint32_t *const texts[] = {&to->name,   &to->host,    &to->kernel_release, &to->machine,  &to->cpu_model, &to->recorder,
                               &to->backend, &to->native, &to->pythons,        &to->programs, &to->filters};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TRY(copy_text(c, *texts[i], texts[i]));
    return NULL;
}

static struct error *copy_run(struct run_copy *c, const struct run *from, struct run *to)
{
    *to = *from;
    memset(&to->notes, 0, sizeof to->notes);
    memset(&to->events, 0, sizeof to->events);
    if (c->choice->no_host)
        to->host = 0;
    TRY(copy_facts(c, to));
    uint64_t lists_bytes = from->notes.count * sizeof *to->notes.data + from->events.count * sizeof *to->events.data;
    if (!limits_take(c->to->limits, lists_bytes) ||
        !VEC_RESERVE(&to->notes, from->notes.count) || !VEC_RESERVE(&to->events, from->events.count))
        return error_no_memory();
    for (size_t i = 0; i < from->notes.count; i++) {
        struct run_note note = from->notes.data[i];
        TRY(copy_text(c, note.key, &note.key));
        TRY(copy_text(c, note.value, &note.value));
        to->notes.data[to->notes.count++] = note;
    }
    for (size_t i = 0; i < from->events.count; i++)
        TRY(copy_event(c, &from->events.data[i], &to->events.data[to->events.count++]));
    return NULL;
}

/* Nothing has been looked up but the roots. The tables are as long as those of all runs of the other set together. */
static bool begin_copy(struct run_copy *c)
{
    const struct run_set *from = c->from;
    uint64_t items = (uint64_t)from->texts.count + from->functions.count + from->codes.count + from->nodes.count + from->lines.count;
    bool ok = limits_work(c->to->limits, items) && VEC_EXTEND_NONE(&c->texts, from->texts.count) && VEC_EXTEND_NONE(&c->functions, from->functions.count) &&
              VEC_EXTEND_NONE(&c->codes, from->codes.count) && VEC_EXTEND_NONE(&c->nodes, from->nodes.count) &&
              VEC_EXTEND_NONE(&c->lines, from->lines.count);

    if (ok)
        c->nodes.data[RUN_SET_ROOT] = RUN_SET_ROOT;
    return ok;
}

struct error *run_set_copy_chosen(struct run_set *s, const struct run_set *from, uint32_t run, const struct run_choice *choice)
{
    struct run_copy c = {.to = s, .from = from, .choice = choice};
    struct run *to = run_set_add(s);
    struct error *err = to && begin_copy(&c) ? copy_run(&c, &from->runs.data[run], to) : error_no_memory();

    VEC_DEINIT(&c.texts);
    VEC_DEINIT(&c.functions);
    VEC_DEINIT(&c.codes);
    VEC_DEINIT(&c.nodes);
    VEC_DEINIT(&c.lines);
    VEC_DEINIT(&c.path);
    return err;
}

struct error *run_set_copy(struct run_set *s, const struct run_set *from, uint32_t run)
{
    static const struct run_choice all = {0};

    return run_set_copy_chosen(s, from, run, &all);
}
