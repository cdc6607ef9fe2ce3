/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile: a gzipped message of Protocol Buffers, for `go tool pprof` and for stores of profiles such as Pyroscope
 * and Parca. (profile.proto of github.com/google/pprof)
 *
 * The format is a sum: rows of a stack, labels and values. So samples are added up while they come, and everything is
 * written at the end. What suits its readers:
 *
 *  - system_name, the mangled name of a function, stays empty. Where it is that of `name`, pprof takes the name for one of
 *    C++ and removes what stands in <>: then <module>, <lambda> and <listcomp> are one function without a name.
 *  - pprof adds up functions of one name, whatever their files, unless told otherwise (-filefunctions, -lines). So the
 *    name of a module's code has the file in it: <module shop/app>. --qualify does so for all functions of Python.
 *  - Python frames are in a mapping "[python]" and have no address: of a frame in a real binary pprof would look the name
 *    up. Brackets tell it that there is nothing to be found.
 *  - Native code without a name has no line but an address, so that pprof and stores can look it up by build ID.
 *  - The interpreter's mapping is the first, which pprof shows as the file of the profile.
 *  - Ids count 1, 2, 3 without gaps: Parca refuses others.
 *  - Stores refuse profiles that are too large for them. Then each call of end() writes a whole profile of the next rows
 *    (struct emit_most).
 */
#include <stdlib.h>

#include "formats/emit/emit.h"
#include "formats/emit/pprof/facts.h"
#include "formats/emit/pprof/fields.h"
#include "formats/emit/pprof/labels.h"
#include "formats/emit/pprof/program.h"
#include "formats/emit/pprof/samples.h"
#include "formats/emit/pprof/stacks.h"
#include "formats/emit/pprof/tables.h"
#include "formats/emit/pprof/types.h"
#include "formats/emit/protobuf.h"

enum { ROW_WORK = 100, LOCATION_WORK = 10 }; /* see limits.h */
enum { ROW_BYTES = 8, VALUE_BYTES = 4 };     /* what a row takes but for locations, values and labels; and a value, about */

/* A row of the profile. Different rows of samples can become one of these, where they differ in what is not shown. */
struct row {
    uint32_t node, group;
    uint64_t samples, value;
};

struct pprof {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct pprof_samples samples;
    struct pprof_tables tables;
    struct pprof_stacks stacks;
    struct pprof_types types;
    /* Of the profile that end() writes: */
    struct intern groups;     /* the place of the event (pprof_types), as uint32_t, and the encoded labels */
    VEC(uint32_t) group_of;   /* by owner (pprof_samples) */
    VEC(struct row) rows;
    struct map row_of;        /* group << 32 | node -> row */
    uint64_t rows_len_bytes;  /* as they are written, or a little more */
    struct emit_chunk chunk;
    size_t next;              /* of the rows of `samples`: the first that is in no profile yet */
    VEC(uint64_t) locations;  /* scratch, like the rest */
    VEC(uint64_t) values;
    struct buf message, field;
    struct gzip gzip;
};

static struct error *pprof_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    struct pprof *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory();
    p->model = model;
    p->options = *options;
    p->out = out;
    pprof_samples_init(&p->samples, model, &p->options);
    *state = p;
    return NULL;
}

static struct error *pprof_sample(void *state, const struct emit_sample *sample)
{
    struct pprof *p = state;

    return pprof_samples_add(&p->samples, sample) ? NULL : error_no_memory();
}

/* Forgets the profile that was written, if any, but not the samples. */
static void forget_profile(struct pprof *p)
{
    pprof_tables_deinit(&p->tables);
    pprof_stacks_deinit(&p->stacks);
    pprof_types_deinit(&p->types);
    intern_deinit(&p->groups);
    limits_give(p->options.limits, p->group_of.count * sizeof *p->group_of.data + p->rows.count * sizeof *p->rows.data);
    VEC_DEINIT(&p->group_of);
    VEC_DEINIT(&p->rows);
    map_deinit(&p->row_of);
    gzip_deinit(&p->gzip);
    p->tables = (struct pprof_tables){0};
    p->stacks = (struct pprof_stacks){0};
    p->types = (struct pprof_types){0};
    p->groups = (struct intern){.arena.limits = p->options.limits};
    p->row_of = (struct map){.limits = p->options.limits};
    p->chunk = (struct emit_chunk){0};
    p->rows_len_bytes = 0;
}

/* ---- rows ---- */

static struct emit_most most_of(const struct pprof *p)
{
    return p->options.part ? p->options.part->most : (struct emit_most){0};
}

/* Finds the group of each owner. */
static struct error *group_owners(struct pprof *p)
{
    struct buf key = {0};
    bool ok = true;

    for (uint32_t i = 0; ok && i < p->samples.owners.count; i++) {
        struct pprof_owner owner = pprof_samples_owner(&p->samples, i);
        buf_clear(&key);
        buf_put_u32(&key, p->types.places.data[owner.event]);
        ok = pprof_put_labels(&p->samples, &p->tables, &owner, &key) &&
             limits_work(p->options.limits, ROW_WORK + key.len_bytes);
        uint32_t group = ok ? intern_id(&p->groups, key.data, (uint32_t)key.len_bytes, NULL) : INTERN_NONE;
        ok = group != INTERN_NONE && limits_take(p->options.limits, sizeof group) && VEC_PUSH(&p->group_of, group);
    }
    buf_deinit(&key);
    return ok ? NULL : error_no_memory();
}

/* What the row takes, as it is written. */
static uint64_t row_len_bytes(const struct pprof *p, uint32_t node, uint32_t group)
{
    uint32_t depth = p->stacks.nodes.data[node].depth, depth_max = most_of(p).depth;
    uint32_t id_len_bytes = (32 - (uint32_t)__builtin_clz(p->tables.locations.count | 1) + 6) / 7;

    depth = depth_max && depth > depth_max ? depth_max : depth;
    return ROW_BYTES + (uint64_t)depth * id_len_bytes + 2 * VALUE_BYTES * p->types.types.count + intern_get(&p->groups, group)->len_bytes;
}

static bool add_row(struct pprof *p, const struct pprof_row *from)
{
    uint32_t node = pprof_stacks_node(&p->stacks, from->stack), group = p->group_of.data[from->owner];
    uint64_t key = (uint64_t)group << 32 | node;

    if (node == PPROF_NONE)
        return false;
    p->chunk.samples = pprof_sum(p->chunk.samples, from->samples);
    const uint64_t *known = map_get(&p->row_of, key);
    if (known) {
        struct row *row = &p->rows.data[*known];
        row->samples = pprof_sum(row->samples, from->samples);
        row->value = pprof_sum(row->value, from->value);
        return true;
    }
    p->rows_len_bytes += row_len_bytes(p, node, group);
    return limits_take(p->options.limits, sizeof(struct row)) && map_set(&p->row_of, key, p->rows.count) &&
           VEC_PUSH(&p->rows, ((struct row){node, group, from->samples, from->value}));
}

/* Never without a row, so that all get into some profile. */
static bool is_full(const struct pprof *p)
{
    const struct emit_most most = most_of(p);

    return p->rows.count && ((most.rows && p->rows.count >= most.rows) ||
                             (most.raw_bytes && p->rows_len_bytes + p->tables.len_bytes >= most.raw_bytes));
}

/* As many as the profile may have. */
static struct error *make_rows(struct pprof *p)
{
    TRY(group_owners(p));
    for (; p->next < p->samples.rows.count && !is_full(p); p->next++) {
        if (!add_row(p, &p->samples.rows.data[p->next]))
            return error_no_memory();
    }
    return NULL;
}

/* ---- writing ---- */

/*
 * Leaves the middle out of `p->locations` where they are deeper than the reader takes them. Some stores would cut the inner
 * end, and so show time at functions that did not spend it.
 */
static struct error *cut_stack(struct pprof *p, const struct row *row)
{
    const size_t depth_max = most_of(p).depth;

    if (!depth_max || p->locations.count <= depth_max)
        return NULL;
    const size_t outer = depth_max / 2, inner = depth_max - outer;
    uint32_t mark = pprof_stacks_truncated(&p->stacks);
    if (mark == PPROF_NONE)
        return error_no_memory();
    p->locations.data[inner - 1] = mark;
    memmove(p->locations.data + inner, p->locations.data + p->locations.count - outer, outer * sizeof *p->locations.data);
    p->locations.count = depth_max;
    p->chunk.cut_samples = pprof_sum(p->chunk.cut_samples, row->samples);
    return NULL;
}

static struct error *write_row(struct pprof *p, const struct row *row)
{
    const struct intern_entry *group = intern_get(&p->groups, row->group);
    uint32_t place;

    memcpy(&place, group->data, sizeof place);
    p->locations.count = p->values.count = 0;
    for (uint32_t node = row->node; node != PPROF_NONE; node = p->stacks.nodes.data[node].parent) {
        if (!limits_work(p->options.limits, LOCATION_WORK) || !VEC_PUSH(&p->locations, p->stacks.nodes.data[node].location))
            return error_no_memory();
    }
    if (!limits_work(p->options.limits, ROW_WORK + 4 * p->types.types.count) ||
        !VEC_EXTEND_ZERO(&p->values, 2 * p->types.types.count))
        return error_no_memory();
    TRY(cut_stack(p, row));
    p->values.data[2 * place] = row->samples;
    p->values.data[2 * place + 1] = row->value;
    buf_clear(&p->message);
    buf_clear(&p->field);
    protobuf_put_packed(&p->message, PPROF_SAMPLE_LOCATIONS, p->locations.data, p->locations.count);
    protobuf_put_packed(&p->message, PPROF_SAMPLE_VALUES, p->values.data, p->values.count);
    buf_put(&p->message, group->data + sizeof place, group->len_bytes - sizeof place);
    protobuf_put_message(&p->field, PPROF_SAMPLE, &p->message);
    return pprof_write(&p->gzip, &p->field);
}

static struct error *pprof_end(void *state)
{
    struct pprof *p = state;

    forget_profile(p);
    TRY(pprof_tables_init(&p->tables, p->model, p->options.limits));
    TRY(pprof_stacks_init(&p->stacks, p->model, &p->options, &p->tables));
    TRY(pprof_types_init(&p->types, &p->samples, &p->options, &p->tables));
    TRY(pprof_add_program(&p->samples, &p->tables));
    TRY(make_rows(p));
    TRY(gzip_begin(&p->gzip, p->out));
    TRY(pprof_types_write(&p->types, p->model, &p->tables, &p->gzip));
    for (size_t i = 0; i < p->rows.count; i++)
        TRY(write_row(p, &p->rows.data[i]));
    TRY(pprof_facts_write(&p->samples, &p->options, &p->tables, &p->gzip));
    TRY(pprof_tables_write(&p->tables, &p->gzip));
    TRY(gzip_end(&p->gzip));
    p->chunk.rows = p->rows.count;
    p->chunk.raw_bytes = p->gzip.stream.total_in;
    p->chunk.more = p->next < p->samples.rows.count;
    return NULL;
}

static void pprof_chunk(const void *state, struct emit_chunk *out)
{
    *out = ((const struct pprof *)state)->chunk;
}

static void pprof_destroy(void *state)
{
    struct pprof *p = state;

    if (!p)
        return;
    pprof_samples_deinit(&p->samples);
    forget_profile(p);
    VEC_DEINIT(&p->locations);
    VEC_DEINIT(&p->values);
    buf_deinit(&p->message);
    buf_deinit(&p->field);
    free(p);
}

const struct emitter emitter_pprof = {
    .name = "pprof",
    .description = "for go tool pprof, and for stores of profiles: Pyroscope, Parca and others",
    .extension = ".pb.gz",
    .qualifies = true,
    .shows_labels = true,
    .binary = true,
    .begin = pprof_begin,
    .sample = pprof_sample,
    .end = pprof_end,
    .chunk = pprof_chunk,
    .destroy = pprof_destroy,
};
