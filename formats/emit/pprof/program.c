/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/program.h"

#include <string.h>

struct candidate {
    const char *path; /* the model has each text once */
    uint64_t samples;
};

struct candidates {
    VEC(struct candidate) list;
    struct map by_path; /* address of the text -> index */
};

/* Finds the path of the interpreter that runs the innermost Python frame; NULL: the stack has none. False: over a limit. */
static bool find_interpreter(const struct pprof_samples *s, uint32_t stack, const char **path)
{
    const struct emit_model *m = s->model;

    *path = NULL;
    for (; stack != EMIT_NO_STACK && !*path; stack = m->stacks[stack].parent) {
        const struct emit_frame *f = &m->frames[m->stacks[stack].frame];
        if (f->kind == EMIT_PYTHON && f->module[0] == '/')
            *path = f->module;
        if (!limits_work(s->limits, 2))
            return false;
    }
    return true;
}

static bool count(struct candidates *c, const struct pprof_samples *s, const struct pprof_row *row)
{
    const char *path;

    if (!find_interpreter(s, row->stack, &path))
        return false;
    if (!path)
        return true;
    uint64_t key = (uint64_t)(uintptr_t)path;
    uint64_t *known = map_get(&c->by_path, key);
    if (known) {
        c->list.data[*known].samples = pprof_sum(c->list.data[*known].samples, row->samples);
        return true;
    }
    return map_set(&c->by_path, key, c->list.count) &&
           VEC_PUSH(&c->list, ((struct candidate){.path = path, .samples = row->samples}));
}

/* The binary of that path, one with a build ID first; EMIT_NO_MAPPING: none is known. */
static uint32_t find_binary(const struct emit_model *m, const char *path)
{
    uint32_t found = EMIT_NO_MAPPING;

    for (uint32_t i = 0; i < m->mapping_count; i++) {
        if (strcmp(m->mappings[i].path, path))
            continue;
        if (m->mappings[i].build_id_len)
            return i;
        found = found == EMIT_NO_MAPPING ? i : found;
    }
    return found;
}

static struct error *add(const struct emit_model *m, const char *path, struct pprof_tables *tables)
{
    uint32_t binary = find_binary(m, path);
    uint32_t mapping = binary == EMIT_NO_MAPPING ? pprof_named_mapping(tables, path) : pprof_program(tables, binary);

    return mapping == PPROF_NONE ? error_no_memory() : NULL;
}

struct error *pprof_add_program(const struct pprof_samples *samples, struct pprof_tables *tables)
{
    struct candidates c = {.by_path.limits = samples->limits};
    const struct candidate *best = NULL;
    bool ok = true;

    for (size_t i = 0; ok && i < samples->rows.count; i++)
        ok = count(&c, samples, &samples->rows.data[i]);
    for (size_t i = 0; i < c.list.count; i++)
        best = best && best->samples >= c.list.data[i].samples ? best : &c.list.data[i];
    struct error *err = !ok ? error_no_memory() : best ? add(samples->model, best->path, tables) : NULL;
    VEC_DEINIT(&c.list);
    map_deinit(&c.by_path);
    return err;
}
