/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps are kept by place and joined as they come free; what waits is kept by time. */
#include "capture/binary/extents.h"

#include <string.h>

bool extents_init(struct extents *e, uint32_t total)
{
    *e = (struct extents){.total = total};
    return !total || VEC_PUSH(&e->free, ((struct space_extent){.count = total}));
}

void extents_deinit(struct extents *e)
{
    VEC_DEINIT(&e->free);
    VEC_DEINIT(&e->waiting);
}

bool extents_take(struct extents *e, uint32_t count, uint32_t *start)
{
    *start = 0;
    if (!count)
        return true;
    for (size_t i = 0; i < e->free.count; i++) {
        struct space_extent *gap = &e->free.data[i];
        if (gap->count < count)
            continue;
        *start = gap->start;
        gap->start += count;
        gap->count -= count;
        e->used += count;
        if (!gap->count) {
            e->free.count--;
            memmove(gap, gap + 1, (e->free.count - i) * sizeof *gap);
        }
        return true;
    }
    return false;
}

/* Into the list of gaps, joined with its neighbours. */
static bool release(struct extents *e, const struct space_extent *x)
{
    size_t i = 0;

    if (!VEC_RESERVE(&e->free, e->free.count + 1))
        return false;
    struct space_extent *gaps = e->free.data;
    while (i < e->free.count && gaps[i].start < x->start)
        i++;
    bool left = i && gaps[i - 1].start + gaps[i - 1].count == x->start;
    bool right = i < e->free.count && x->start + x->count == gaps[i].start;
    if (left && right) {
        gaps[i - 1].count += x->count + gaps[i].count;
        e->free.count--;
        memmove(gaps + i, gaps + i + 1, (e->free.count - i) * sizeof *gaps);
    } else if (left) {
        gaps[i - 1].count += x->count;
    } else if (right) {
        gaps[i].start = x->start;
        gaps[i].count += x->count;
    } else {
        memmove(gaps + i + 1, gaps + i, (e->free.count - i) * sizeof *gaps);
        gaps[i] = *x;
        e->free.count++;
    }
    e->used -= x->count;
    return true;
}

void extents_return(struct extents *e, uint32_t start, uint32_t count)
{
    if (count)
        release(e, &(struct space_extent){.start = start, .count = count});
}

bool extents_grow(struct extents *e, uint32_t count)
{
    if (!count)
        return true;
    e->used += count; /* until they are free */
    if (!release(e, &(struct space_extent){.start = e->total, .count = count})) {
        e->used -= count;
        return false;
    }
    e->total += count;
    return true;
}

uint32_t extents_end_gap(const struct extents *e)
{
    const struct space_extent *last = e->free.count ? &e->free.data[e->free.count - 1] : NULL;

    return last && last->start + last->count == e->total ? last->count : 0;
}

bool extents_give(struct extents *e, uint32_t start, uint32_t count, uint64_t time_ns)
{
    struct space_extent x = {start, count, time_ns};
    size_t at = e->waiting.count;

    if (!count)
        return true;
    if (!VEC_PUSH(&e->waiting, x))
        return false;
    /* Times nearly always rise. A process that ended a while ago is dropped late. */
    while (at && e->waiting.data[at - 1].time_ns > time_ns)
        at--;
    memmove(e->waiting.data + at + 1, e->waiting.data + at, (e->waiting.count - 1 - at) * sizeof x);
    e->waiting.data[at] = x;
    return true;
}

bool extents_free_after_grace(struct extents *e, uint64_t time_ns)
{
    size_t done = 0;
    bool ok = true;

    while (done < e->waiting.count && e->waiting.data[done].time_ns < time_ns)
        ok &= release(e, &e->waiting.data[done++]);
    if (!done)
        return true;
    e->waiting.count -= done;
    memmove(e->waiting.data, e->waiting.data + done, e->waiting.count * sizeof *e->waiting.data);
    return ok;
}
