/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages lie behind each other in one buffer; what is sorted are their places. What comes from one ring, or from the side-band
 * of one CPU, is nearly in order: runs that are in order are merged until one is left.
 */
#include "capture/session/queue.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"

struct queued_item {
    uint64_t time_ns;
    uint64_t at; /* in the bytes */
    uint32_t kind, len_bytes;
};

struct queue {
    VEC(struct queued_item) items;  /* in their order of arrival, while none is being handed out */
    VEC(struct queued_item) merged; /* room for as many */
    VEC(size_t) runs;               /* where each begins */
    uint8_t *bytes, *spare;
    size_t used, cap, spare_cap;
    uint32_t calm_runs; /* in a row, that needed a small part of the buffer */
};

/* After so many calm runs a buffer that is larger than this is given back. */
#define KEPT_BYTES ((size_t)1 << 20)
#define CALM_RUNS 64

struct error *queue_create(struct queue **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : error_no_memory();
}

void queue_destroy(struct queue *q)
{
    if (!q)
        return;
    VEC_DEINIT(&q->items);
    VEC_DEINIT(&q->merged);
    VEC_DEINIT(&q->runs);
    free(q->bytes);
    free(q->spare);
    free(q);
}

uint32_t queue_count(const struct queue *q)
{
    return (uint32_t)q->items.count;
}

static bool reserve(uint8_t **bytes, size_t *cap, size_t need)
{
    size_t grown = *cap ? *cap : 1 << 16;

    if (need <= *cap)
        return true;
    while (grown < need)
        grown *= 2;
    uint8_t *p = realloc(*bytes, grown);
    if (!p)
        return false;
    *bytes = p;
    *cap = grown;
    return true;
}

struct error *queue_add(struct queue *q, uint64_t time_ns, uint32_t kind, const void *data, uint32_t len_bytes)
{
    struct queued_item item = {.time_ns = time_ns, .at = q->used, .kind = kind, .len_bytes = len_bytes};

    if (!reserve(&q->bytes, &q->cap, q->used + len_bytes) || !VEC_PUSH(&q->items, item))
        return error_no_memory();
    memcpy(q->bytes + q->used, data, len_bytes);
    q->used += ((size_t)len_bytes + 7) & ~(size_t)7;
    if (q->used > q->cap && !reserve(&q->bytes, &q->cap, q->used))
        return error_no_memory();
    return NULL;
}

static bool find_runs(struct queue *q)
{
    q->runs.count = 0;
    for (size_t i = 0; i < q->items.count; i++) {
        if ((!i || q->items.data[i].time_ns < q->items.data[i - 1].time_ns) && !VEC_PUSH(&q->runs, i))
            return false;
    }
    return true;
}

/* Of equal times what arrived first, which is in the first run, comes first. */
static void merge_two(struct queue *q, size_t first, size_t second, size_t end)
{
    const struct queued_item *items = q->items.data;

    for (size_t a = first, b = second, to = first; to < end; to++) {
        bool from_first = b == end || (a < second && items[a].time_ns <= items[b].time_ns);
        q->merged.data[to] = items[from_first ? a++ : b++];
    }
}

/* Brings the items into the order of time, and of arrival where times are equal. False: out of memory. */
static bool sort_items(struct queue *q)
{
    if (!find_runs(q) || !VEC_RESERVE(&q->merged, q->items.count))
        return false;
    while (q->runs.count > 1) {
        size_t kept = 0;
        for (size_t r = 0; r < q->runs.count; r += 2) {
            size_t first = q->runs.data[r];
            size_t second = r + 1 < q->runs.count ? q->runs.data[r + 1] : q->items.count;
            merge_two(q, first, second, r + 2 < q->runs.count ? q->runs.data[r + 2] : q->items.count);
            q->runs.data[kept++] = first;
        }
        q->runs.count = kept;
        struct queued_item *data = q->items.data;
        size_t cap = q->items.cap;
        q->items.data = q->merged.data;
        q->items.cap = q->merged.cap;
        q->merged.data = data;
        q->merged.cap = cap;
    }
    return true;
}

/* A burst may have made the buffers as large as the sampler's: when it is long over, the one that is empty goes. */
static void give_back(struct queue *q, size_t used)
{
    q->calm_runs = used > q->spare_cap / 8 ? 0 : q->calm_runs + (q->calm_runs < CALM_RUNS);
    if (q->calm_runs < CALM_RUNS || q->spare_cap <= KEPT_BYTES)
        return;
    free(q->spare);
    q->spare = NULL;
    q->spare_cap = 0;
}

struct error *queue_run(struct queue *q, uint64_t until_ns, queue_fn fn, void *ctx)
{
    size_t done = 0, kept = 0, all = q->used;
    struct error *err = NULL;

    if (!q->items.count)
        return NULL;
    if (!sort_items(q))
        return error_no_memory();
    for (; done < q->items.count && !err; done++) {
        const struct queued_item *i = &q->items.data[done];
        if (i->time_ns > until_ns)
            break;
        err = fn(ctx, i->kind, i->time_ns, q->bytes + i->at, i->len_bytes);
    }
    /* What stays moves to the front of the other buffer, in its order of arrival as far as times are equal. */
    size_t used = 0;
    for (size_t k = done; k < q->items.count; k++) {
        struct queued_item item = q->items.data[k];
        size_t len = ((size_t)item.len_bytes + 7) & ~(size_t)7;
        if (!reserve(&q->spare, &q->spare_cap, used + len)) {
            error_destroy(err);
            return error_no_memory();
        }
        memcpy(q->spare + used, q->bytes + item.at, item.len_bytes);
        item.at = used;
        used += len;
        q->items.data[kept++] = item;
    }
    q->items.count = kept;
    uint8_t *bytes = q->bytes;
    size_t cap = q->cap;
    q->bytes = q->spare;
    q->cap = q->spare_cap;
    q->spare = bytes;
    q->spare_cap = cap;
    q->used = used;
    give_back(q, all);
    return err;
}
