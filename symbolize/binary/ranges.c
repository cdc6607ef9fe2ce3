/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nesting is resolved once: a sweep over all starts and ends keeps the ranges that
 * hold the current address in a heap, narrowest on top, and writes a piece whenever the
 * top changes. Finding is then a binary search.
 */
#include "symbolize/binary/ranges.h"

bool ranges_add(struct ranges *r, uint64_t low, uint64_t high, uint32_t value)
{
    struct range row = {low, high, value};

    return low >= high || VEC_PUSH(&r->rows, row);
}

void ranges_deinit(struct ranges *r)
{
    VEC_DEINIT(&r->rows);
}

static int by_low(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static bool narrower(const struct range *x, const struct range *y)
{
    uint64_t x_len = x->high - x->low, y_len = y->high - y->low;

    return x_len != y_len ? x_len < y_len : x->value > y->value;
}

struct heap {
    VEC(struct range) rows;
};

static bool heap_push(struct heap *h, struct range row)
{
    if (!VEC_PUSH(&h->rows, row))
        return false;
    struct range *d = h->rows.data;
    for (size_t i = h->rows.count - 1; i && narrower(&d[i], &d[(i - 1) / 2]); i = (i - 1) / 2) {
        struct range t = d[i];
        d[i] = d[(i - 1) / 2];
        d[(i - 1) / 2] = t;
    }
    return true;
}

static void heap_pop(struct heap *h)
{
    struct range *d = h->rows.data;
    size_t count = --h->rows.count;

    d[0] = d[count];
    for (size_t i = 0;;) {
        size_t least = i, left = 2 * i + 1;
        for (size_t child = left; child < left + 2 && child < count; child++)
            if (narrower(&d[child], &d[least]))
                least = child;
        if (least == i)
            return;
        struct range t = d[i];
        d[i] = d[least];
        d[least] = t;
        i = least;
    }
}

static bool put_piece(struct ranges *out, uint64_t low, uint64_t high, uint32_t value)
{
    struct range *last = out->rows.count ? &out->rows.data[out->rows.count - 1] : NULL;

    if (last && last->high == low && last->value == value) {
        last->high = high;
        return true;
    }
    return ranges_add(out, low, high, value);
}

bool ranges_finish(struct ranges *r)
{
    struct ranges out = {0};
    struct heap open = {0};
    uint64_t at = 0;
    size_t next = 0;
    bool ok = true;

    if (r->rows.count)
        qsort(r->rows.data, r->rows.count, sizeof *r->rows.data, by_low);
    while (ok && (next < r->rows.count || open.rows.count)) {
        if (!open.rows.count)
            at = r->rows.data[next].low;
        while (ok && next < r->rows.count && r->rows.data[next].low <= at)
            ok = heap_push(&open, r->rows.data[next++]);
        while (open.rows.count && open.rows.data[0].high <= at)
            heap_pop(&open);
        if (!ok || !open.rows.count)
            continue;
        uint64_t end = open.rows.data[0].high;
        if (next < r->rows.count && r->rows.data[next].low < end)
            end = r->rows.data[next].low;
        ok = put_piece(&out, at, end, open.rows.data[0].value);
        at = end;
    }
    VEC_DEINIT(&open.rows);
    VEC_DEINIT(&r->rows);
    *r = out;
    return ok;
}

const struct range *ranges_find(const struct ranges *r, uint64_t address)
{
    size_t low = 0, high = r->rows.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (address < r->rows.data[middle].low)
            high = middle;
        else
            low = middle + 1;
    }
    return low && address < r->rows.data[low - 1].high ? &r->rows.data[low - 1] : NULL;
}
