/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of a page for what its samples refer to: threads, stacks and so on are numbered in the order in which they first
 * come. So a page, which may be one of many parts of an output, holds only those of the model that it needs.
 */
#ifndef FORMATS_EMIT_HTML_NUMBERS_H
#define FORMATS_EMIT_HTML_NUMBERS_H

#include "formats/base/map.h"
#include "formats/base/vec.h"

/* {.number_of.limits = …} is empty. */
struct html_numbers {
    struct map number_of; /* index in the model -> number */
    VEC(uint32_t) list;   /* by number: the index in the model */
};

static inline void html_numbers_deinit(struct html_numbers *n)
{
    limits_give(n->number_of.limits, n->list.count * sizeof *n->list.data);
    VEC_DEINIT(&n->list);
    map_deinit(&n->number_of);
}

/* Has it a number? */
static inline bool html_numbers_has(const struct html_numbers *n, uint32_t index)
{
    return map_get(&n->number_of, index);
}

/* The number of an index that has one. */
static inline uint32_t html_numbers_get(const struct html_numbers *n, uint32_t index)
{
    return (uint32_t)*map_get(&n->number_of, index);
}

/* Finds the number of an index of the model, or gives it the next one. False: out of memory. */
static inline bool html_numbers_find(struct html_numbers *n, uint32_t index, uint32_t *number)
{
    const uint64_t *known = map_get(&n->number_of, index);

    *number = known ? (uint32_t)*known : (uint32_t)n->list.count;
    if (known)
        return true;
    if (!limits_take(n->number_of.limits, sizeof index))
        return false;
    if (VEC_PUSH(&n->list, index))
        return map_set(&n->number_of, index, *number);
    limits_give(n->number_of.limits, sizeof index);
    return false;
}

#endif
