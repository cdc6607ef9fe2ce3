/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One after the other is taken out of a copy of the list of gaps, first who was used longest ago, until a gap is large enough. Only
 * those in that gap leave.
 */
#include "capture/binary/table_victims.h"

#include <stdlib.h>

#include "formats/base/map.h"

static int by_use(const void *a, const void *b)
{
    const struct table_place *x = a, *y = b;

    if (x->used_s != y->used_s)
        return x->used_s < y->used_s ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

/* Who may be asked to give. */
struct givers {
    const struct table_wish *wish;
    uint64_t own;          /* words that the process of the wish has */
    pid_t largest;         /* which has more than that one will have: it gives what is in use, too; 0: there is none */
    uint64_t largest_has;
    bool own_only;         /* the process of the wish has half of all, and gives of its own */
};

static struct givers givers_of(const struct table_place *places, size_t count, const struct table_wish *wish)
{
    struct givers r = {.wish = wish};
    struct map sums = {0};

    for (size_t i = 0; i < count; i++) {
        const uint64_t *before = map_get(&sums, (uint64_t)places[i].pid);
        uint64_t sum = (before ? *before : 0) + places[i].count;
        if (!map_set(&sums, (uint64_t)places[i].pid, sum))
            break;
        if (places[i].pid == wish->pid)
            r.own = sum;
        if (sum > r.largest_has) {
            r.largest_has = sum;
            r.largest = places[i].pid;
        }
    }
    map_deinit(&sums);
    if (r.largest == wish->pid || r.largest_has <= r.own + wish->count)
        r.largest = 0;
    r.own_only = !r.largest && r.own >= wish->max / 2;
    return r;
}

static bool may_leave(struct givers *r, const struct table_place *p)
{
    bool cold = (uint64_t)p->used_s + p->cold_s <= r->wish->now_s;

    if (r->largest && p->pid == r->largest && (cold || r->largest_has > r->own + r->wish->count)) {
        r->largest_has -= p->count;
        return true;
    }
    return cold && (!r->own_only || p->pid == r->wish->pid);
}

/* The gap that is large enough; NULL: none is. */
static const struct space_extent *gap_for(const struct extents *e, uint64_t count)
{
    for (size_t i = 0; i < e->free.count; i++) {
        if (e->free.data[i].count >= count)
            return &e->free.data[i];
    }
    return NULL;
}

/* The gaps as they are, with what will soon be free, and what there may be more. False: out of memory. */
static bool copy_gaps(const struct extents *from, uint32_t max, struct extents *to)
{
    *to = (struct extents){.total = from->total, .used = from->used};
    for (size_t i = 0; i < from->free.count; i++) {
        if (!VEC_PUSH(&to->free, from->free.data[i]))
            return false;
    }
    for (size_t i = 0; i < from->waiting.count; i++)
        extents_return(to, from->waiting.data[i].start, from->waiting.data[i].count);
    return extents_grow(to, max > from->total ? max - from->total : 0);
}

bool table_victims_choose(struct table_place *places, size_t count, const struct extents *extents, const struct table_wish *wish)
{
    const struct space_extent *gap = NULL;
    struct givers givers = givers_of(places, count, wish);
    struct extents free_then;
    size_t tried = 0;

    if (count)
        qsort(places, count, sizeof *places, by_use);
    if (copy_gaps(extents, wish->max, &free_then)) {
        while (!(gap = gap_for(&free_then, wish->count)) && tried < count) {
            struct table_place *p = &places[tried++];
            p->leaves = may_leave(&givers, p);
            if (p->leaves)
                extents_return(&free_then, p->start, p->count);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct table_place *p = &places[i];
        p->leaves &= i < tried && gap && p->start >= gap->start && p->start - gap->start < gap->count;
    }
    bool room = gap != NULL;
    extents_deinit(&free_then);
    return room;
}
