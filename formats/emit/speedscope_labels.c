/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/speedscope_labels.h"

#include <stdlib.h>

#include "formats/emit/event_order.h"
#include "formats/emit/names.h"

enum {
    VALUES_MOST = 50, /* profiles of each event */
    GILS = EMIT_GIL_NOT_HELD + 1,
};

void speedscope_labels_deinit(struct speedscope_labels *l)
{
    counts_deinit(&l->counts);
    intern_deinit(&l->names);
    VEC_DEINIT(&l->set_first);
    VEC_DEINIT(&l->set_names);
    VEC_DEINIT(&l->values);
}

bool speedscope_labels_add(struct speedscope_labels *l, const struct emit_sample *sample)
{
    if (!sample->label_set && sample->gil == EMIT_GIL_UNKNOWN)
        return true;
    if (sample->label_set > UINT32_MAX / GILS - 1)
        return false;
    return counts_add(&l->counts, l->model, sample, sample->label_set * GILS + sample->gil);
}

/* ---- names ---- */

/* The number of a name; INTERN_NONE: out of memory, or more work than the limit. */
static uint32_t name_id(struct speedscope_labels *l, const char *key, const char *value)
{
    struct buf text = {0}, clean = {0};

    buf_printf(&text, "%s %s", key, value);
    bool ok = limits_work(l->limits, 500 + 10 * (uint64_t)text.len_bytes);
    if (ok)
        name_plain(buf_cstr(&text), &clean);
    uint32_t id = !ok || text.bad || clean.bad ? INTERN_NONE
                                        : intern_id(&l->names, clean.data, (uint32_t)clean.len_bytes, NULL);
    buf_deinit(&text);
    buf_deinit(&clean);
    return id;
}

/* Names the GIL's states, by enum emit_gil from HELD on; then the labels of each set. */
static struct error *name_all(struct speedscope_labels *l)
{
    if (name_id(l, "GIL", "held") == INTERN_NONE || name_id(l, "GIL", "not held") == INTERN_NONE)
        return error_no_memory();
    for (uint32_t set = 0; set < l->model->label_set_count; set++) {
        const struct emit_label_set *labels = &l->model->label_sets[set];
        if (!VEC_PUSH(&l->set_first, (uint32_t)l->set_names.count))
            return error_no_memory();
        for (uint32_t i = 0; i < labels->count; i++) {
            uint32_t name = name_id(l, labels->labels[i].key, labels->labels[i].value);
            if (name == INTERN_NONE || !VEC_PUSH(&l->set_names, name))
                return error_no_memory();
        }
    }
    return VEC_PUSH(&l->set_first, (uint32_t)l->set_names.count) ? NULL : error_no_memory();
}

static uint32_t gil_name(uint32_t gil)
{
    return gil - EMIT_GIL_HELD;
}

/* Does a row of the counts, by its owner, have the value? */
static bool has_value(const struct speedscope_labels *l, uint32_t owner, uint32_t name)
{
    uint32_t set = owner / GILS, gil = owner % GILS;

    if (gil != EMIT_GIL_UNKNOWN && gil_name(gil) == name)
        return true;
    for (uint32_t i = l->set_first.data[set]; i < l->set_first.data[set + 1]; i++) {
        if (l->set_names.data[i] == name)
            return true;
    }
    return false;
}

/* ---- values ---- */

static int compare_values(const void *a, const void *b, void *arg)
{
    const struct speedscope_value *va = a, *vb = b;
    int order = event_order(arg, va->event, vb->event);

    if (order)
        return order;
    if (va->weight != vb->weight)
        return va->weight < vb->weight ? 1 : -1;
    return (va->name > vb->name) - (va->name < vb->name);
}

/* The weight of each name in the samples of one event, by name. */
static struct error *weigh_event(const struct speedscope_labels *l, uint32_t event, uint64_t *weights)
{
    const struct map *counts = &l->counts.events.data[event];

    for (uint64_t i = 0; i < counts->slot_count; i++) {
        const struct map_slot *slot = &counts->slots[i];
        uint32_t set = (uint32_t)(slot->key >> 32) / GILS, gil = (uint32_t)(slot->key >> 32) % GILS;
        if (!slot->used)
            continue;
        uint64_t weight = counts_get(&l->counts, slot)->weight;
        if (gil != EMIT_GIL_UNKNOWN)
            weights[gil_name(gil)] += weight;
        for (uint32_t k = l->set_first.data[set]; k < l->set_first.data[set + 1]; k++)
            weights[l->set_names.data[k]] += weight;
        if (!limits_work(l->limits, 10 + 4 * (uint64_t)(l->set_first.data[set + 1] - l->set_first.data[set])))
            return error_no_memory();
    }
    return NULL;
}

/* Adds the heaviest values of an event, and forgets the weights. */
static struct error *take_values(struct speedscope_labels *l, uint32_t event, uint64_t *weights)
{
    size_t from = l->values.count;

    for (uint32_t name = 0; name < l->names.count; name++) {
        struct speedscope_value value = {.event = event, .name = name, .weight = weights[name]};
        if (value.weight && !VEC_PUSH(&l->values, value))
            return error_no_memory();
        weights[name] = 0;
    }
    if (l->values.count == from)
        return NULL;
    qsort_r(l->values.data + from, l->values.count - from, sizeof *l->values.data, compare_values, (void *)l->model);
    if (l->values.count - from > VALUES_MOST)
        l->values.count = from + VALUES_MOST;
    return limits_work(l->limits, 100 * (uint64_t)l->names.count) ? NULL : error_no_memory();
}

struct error *speedscope_labels_end(struct speedscope_labels *l)
{
    TRY(name_all(l));
    uint64_t *weights = calloc(l->names.count, sizeof *weights);
    struct error *err = weights ? NULL : error_no_memory();

    for (uint32_t event = 0; !err && event < l->counts.events.count; event++) {
        if (l->counts.events.data[event].count)
            err = weigh_event(l, event, weights);
        if (!err)
            err = take_values(l, event, weights);
    }
    free(weights);
    if (!err && l->values.count)
        qsort_r(l->values.data, l->values.count, sizeof *l->values.data, compare_values, (void *)l->model);
    return err;
}

struct error *speedscope_labels_sum(const struct speedscope_labels *l, const struct speedscope_value *value,
                                    struct speedscope_sum *sum)
{
    const struct map *counts = &l->counts.events.data[value->event];

    for (uint64_t i = 0; i < counts->slot_count; i++) {
        const struct map_slot *slot = &counts->slots[i];
        uint32_t owner = (uint32_t)(slot->key >> 32);
        if (!slot->used)
            continue;
        if (!limits_work(l->limits, 20 + 2 * (uint64_t)l->model->label_sets[owner / GILS].count))
            return error_no_memory();
        if (!has_value(l, owner, value->name))
            continue;
        uint32_t stack = speedscope_stacks_find(sum->stacks, (uint32_t)slot->key);
        if (!speedscope_sum_add(sum, stack, counts_get(&l->counts, slot)->weight))
            return error_no_memory();
    }
    return NULL;
}
