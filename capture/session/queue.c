/* SPDX-License-Identifier: Apache-2.0 */
/* Messages lie behind each other in one buffer; what is sorted are their places. */
#include "capture/session/queue.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"

struct queued_item {
    uint64_t time_ns;
    uint64_t at; /* in the bytes; also tells the order of arrival */
    uint32_t kind, len_bytes;
};

struct queue {
    VEC(struct queued_item) items;
    uint8_t *bytes, *spare;
    size_t used, cap, spare_cap;
};

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

static int by_time(const void *a, const void *b)
{
    const struct queued_item *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

struct error *queue_run(struct queue *q, uint64_t until_ns, queue_fn fn, void *ctx)
{
    size_t done = 0, kept = 0;
    struct error *err = NULL;

    if (!q->items.count)
        return NULL;
    qsort(q->items.data, q->items.count, sizeof *q->items.data, by_time); /* no two items are equal */
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
    return err;
}
