/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples are kept in a queue, by time. What memory they are of is, for each process, a list of ranges by address that do
 * not overlap, in which a range that is gone is found by halving.
 */
#include "capture/session/growth.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/map.h"
#include "formats/base/vec.h"

/* What all samples together may take. One process may have as much as it leaves free, so there is always some left for others. */
#define KEPT_MAX_BYTES ((size_t)32 << 20)
#define RANGES_MAX 4096 /* of a process: parts of one mapping are ranges of their own */

struct young {
    struct wire_sample *sample; /* owned; NULL: it was handed on or dropped */
    uint32_t len_bytes;
    uint64_t left_bytes; /* of the memory that it is of */
};

struct young_range {
    uint64_t start, end;
    uint64_t number; /* of the sample, counted from the first one ever */
};

/* A VEC. */
struct young_ranges {
    struct young_range *data;
    size_t count, cap;
};

struct young_process {
    uint32_t tgid;
    size_t kept_bytes;
    struct young_ranges ranges; /* by address */
};

struct growth {
    growth_fn put;
    void *ctx;
    VEC(struct young) queue;
    uint64_t first; /* number of the first one in the queue */
    VEC(struct young_process) processes;
    struct map by_tgid; /* -> index of `processes` */
    size_t kept_bytes;
    uint64_t dropped, dropped_bytes, unsettled_bytes;
};

struct error *growth_create(growth_fn put, void *ctx, struct growth **out)
{
    struct growth *g = calloc(1, sizeof *g);

    if (!g)
        return error_no_memory();
    g->put = put;
    g->ctx = ctx;
    *out = g;
    return NULL;
}

void growth_destroy(struct growth *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->queue.count; i++)
        free(g->queue.data[i].sample);
    for (size_t i = 0; i < g->processes.count; i++)
        VEC_DEINIT(&g->processes.data[i].ranges);
    VEC_DEINIT(&g->queue);
    VEC_DEINIT(&g->processes);
    map_deinit(&g->by_tgid);
    free(g);
}

uint64_t growth_dropped_bytes(const struct growth *g)
{
    return g->dropped_bytes;
}

uint64_t growth_dropped(const struct growth *g)
{
    return g->dropped;
}

uint64_t growth_unsettled_bytes(const struct growth *g)
{
    return g->unsettled_bytes;
}

/* ---- the ranges of a process ---- */

static struct young_process *find(const struct growth *g, uint32_t tgid)
{
    const uint64_t *at = map_get(&g->by_tgid, tgid);

    return at ? &g->processes.data[*at] : NULL;
}

static struct error *add_process(struct growth *g, uint32_t tgid, struct young_process **out)
{
    struct young_process p = {.tgid = tgid};

    *out = find(g, tgid);
    if (*out)
        return NULL;
    if (!VEC_PUSH(&g->processes, p))
        return error_no_memory();
    *out = &g->processes.data[g->processes.count - 1];
    return map_set(&g->by_tgid, tgid, g->processes.count - 1) ? NULL : error_no_memory();
}

/* The process has no ranges any more. */
static void remove_process(struct growth *g, struct young_process *p)
{
    struct young_process *last = &g->processes.data[g->processes.count - 1];

    map_remove(&g->by_tgid, p->tgid);
    VEC_DEINIT(&p->ranges);
    if (p != last) {
        *p = *last;
        *map_get(&g->by_tgid, p->tgid) = (uint64_t)(p - g->processes.data);
    }
    g->processes.count--;
}

/* The first range that ends behind `address`. */
static size_t range_behind(const struct young_process *p, uint64_t address)
{
    size_t low = 0, high = p->ranges.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->ranges.data[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_ranges(struct young_process *p, size_t from, size_t count)
{
    struct young_range *at = p->ranges.data + from;

    memmove(at, at + count, (p->ranges.count - from - count) * sizeof *at);
    p->ranges.count -= count;
}

static struct error *insert_range(struct young_process *p, const struct young_range *range)
{
    size_t at = range_behind(p, range->start);

    if (!VEC_RESERVE(&p->ranges, p->ranges.count + 1))
        return error_no_memory();
    memmove(p->ranges.data + at + 1, p->ranges.data + at, (p->ranges.count - at) * sizeof *range);
    p->ranges.data[at] = *range;
    p->ranges.count++;
    return NULL;
}

static struct young *young_of(struct growth *g, uint64_t number)
{
    return &g->queue.data[number - g->first];
}

/* The same for a part of a range; where there are too many, that part counts as growth. */
static struct error *add_part(struct growth *g, struct young_process *p, const struct young_range *part)
{
    if (p->ranges.count < RANGES_MAX)
        return insert_range(p, part);
    g->unsettled_bytes += part->end - part->start;
    return NULL;
}

/* Takes the part of the ranges that lies in [start, end) away; `taken`, if not NULL, receives the parts. */
static struct error *take_away(struct growth *g, struct young_process *p, uint64_t start, uint64_t end, struct young_ranges *taken)
{
    for (size_t i = range_behind(p, start); i < p->ranges.count && p->ranges.data[i].start < end;) {
        struct young_range *r = &p->ranges.data[i];
        struct young_range part = {r->start > start ? r->start : start, r->end < end ? r->end : end, r->number};
        struct young_range behind = {part.end, r->end, r->number};
        if (taken && !VEC_PUSH(taken, part))
            return error_no_memory();
        young_of(g, r->number)->left_bytes -= part.end - part.start;
        if (r->start < part.start) {
            r->end = part.start;
            i++;
            if (behind.start < behind.end)
                TRY(add_part(g, p, &behind));
        } else if (behind.start < behind.end) {
            *r = behind;
        } else {
            remove_ranges(p, i, 1);
        }
    }
    return NULL;
}

/* ---- samples ---- */

/* Hands the sample on if there is something left, and forgets its memory. */
static struct error *settle(struct growth *g, struct young *y)
{
    struct wire_sample *m = y->sample;
    uint64_t all = m->grown_bytes, left = y->left_bytes, period = m->period;
    struct error *err = NULL;

    y->sample = NULL;
    g->kept_bytes -= y->len_bytes;
    find(g, m->tgid)->kept_bytes -= y->len_bytes;
    if (left < all)
        m->period = (uint64_t)((double)period * ((double)left / (double)all));
    g->dropped_bytes += period - m->period;
    if (m->period)
        err = g->put(g->ctx, m, y->len_bytes);
    else
        g->dropped++;
    free(m);
    return err;
}

/* Forgets the ranges of samples that were settled. */
static void forget_settled(struct growth *g, struct young_process *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->ranges.count; i++) {
        uint64_t number = p->ranges.data[i].number;
        if (number >= g->first && young_of(g, number)->sample)
            p->ranges.data[kept++] = p->ranges.data[i];
    }
    p->ranges.count = kept;
}

/* Takes what was settled out of the queue and the lists. */
static void tidy(struct growth *g)
{
    size_t count = 0;

    while (count < g->queue.count && !g->queue.data[count].sample)
        count++;
    memmove(g->queue.data, g->queue.data + count, (g->queue.count - count) * sizeof *g->queue.data);
    g->queue.count -= count;
    g->first += count;
    for (size_t i = g->processes.count; i--;) {
        struct young_process *p = &g->processes.data[i];
        forget_settled(g, p);
        if (!p->ranges.count && !p->kept_bytes)
            remove_process(g, p);
    }
}

struct error *growth_settle(struct growth *g, uint64_t time_ns)
{
    struct error *err = NULL;
    bool settled = false;

    for (size_t i = 0; i < g->queue.count && !err; i++) {
        struct young *y = &g->queue.data[i];
        if (!y->sample)
            continue;
        if (y->sample->time_ns + WIRE_YOUNG_NS > time_ns)
            break;
        err = settle(g, y);
        settled = true;
    }
    if (settled)
        tidy(g);
    return err;
}

struct error *growth_settle_process(struct growth *g, uint32_t tgid)
{
    struct error *err = NULL;

    if (tgid != UINT32_MAX && !find(g, tgid))
        return NULL;
    for (size_t i = 0; i < g->queue.count && !err; i++) {
        struct young *y = &g->queue.data[i];
        if (y->sample && (tgid == UINT32_MAX || y->sample->tgid == tgid))
            err = settle(g, y);
    }
    tidy(g);
    return err;
}

struct error *growth_add(struct growth *g, const struct wire_sample *sample, uint32_t len_bytes)
{
    struct young y = {.len_bytes = len_bytes, .left_bytes = sample->grown_bytes};
    struct young_range range = {sample->grown_start, sample->grown_start + sample->grown_bytes, g->first + g->queue.count};
    struct young_process *p;

    TRY(add_process(g, sample->tgid, &p));
    if (range.end <= range.start || p->kept_bytes + len_bytes > KEPT_MAX_BYTES - g->kept_bytes ||
        p->ranges.count >= RANGES_MAX) {
        g->unsettled_bytes += sample->period;
        return g->put(g->ctx, sample, len_bytes);
    }
    TRY(take_away(g, p, range.start, range.end, NULL)); /* what lay there is gone, or the memory were not new */
    y.sample = malloc(len_bytes);
    if (!y.sample || !VEC_PUSH(&g->queue, y)) {
        free(y.sample);
        return error_no_memory();
    }
    memcpy(y.sample, sample, len_bytes);
    g->kept_bytes += len_bytes;
    p->kept_bytes += len_bytes;
    return insert_range(p, &range);
}

/* Puts parts that were taken away to where they were moved. */
static struct error *put_back(struct growth *g, struct young_process *p, const struct wire_unmap *unmap, const struct young_ranges *taken)
{
    TRY(take_away(g, p, unmap->moved_to, unmap->moved_to + unmap->kept_len_bytes, NULL));
    for (size_t i = 0; i < taken->count; i++) {
        struct young_range part = taken->data[i];
        uint64_t kept_end = unmap->start + unmap->kept_len_bytes;
        part.end = part.end < kept_end ? part.end : kept_end;
        if (part.start >= part.end)
            continue;
        young_of(g, part.number)->left_bytes += part.end - part.start;
        part.start += unmap->moved_to - unmap->start;
        part.end += unmap->moved_to - unmap->start;
        TRY(add_part(g, p, &part));
    }
    return NULL;
}

struct error *growth_unmap(struct growth *g, const struct wire_unmap *unmap)
{
    struct young_process *p = find(g, unmap->tgid);
    uint64_t end = unmap->start + unmap->len_bytes;
    struct young_ranges taken = {0};

    if (!p || end <= unmap->start || unmap->kept_len_bytes > unmap->len_bytes ||
        unmap->moved_to + unmap->kept_len_bytes < unmap->moved_to)
        return NULL;
    struct error *err = take_away(g, p, unmap->start, end, unmap->moved_to ? &taken : NULL);
    if (!err && unmap->moved_to)
        err = put_back(g, p, unmap, &taken);
    VEC_DEINIT(&taken);
    return err;
}
