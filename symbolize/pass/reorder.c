/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/reorder.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/sort.h"

void reorder_deinit(struct reorder *o)
{
    VEC_DEINIT(&o->held);
    VEC_DEINIT(&o->last_ns);
}

static int by_time(const void *a, const void *b)
{
    const struct emit_sample *x = a, *y = b;

    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Stable: samples of the same time keep their order. */
static bool sort_held(struct reorder *o)
{
    o->unsorted = !sort_stable(o->held.data, o->held.count, sizeof *o->held.data, by_time);
    return !o->unsorted;
}

static struct error *put(struct reorder *o, struct emit_sample *sample)
{
    while (o->last_ns.count <= sample->thread) {
        if (!VEC_PUSH(&o->last_ns, 0))
            return error_no_memory();
    }
    uint64_t *last = &o->last_ns.data[sample->thread];
    if (sample->time_ns < *last) {
        sample->time_ns = *last;
        o->late_count++;
    }
    *last = sample->time_ns;
    return o->emitter->sample(o->state, sample);
}

/* Passes on all samples up to that time. */
static struct error *release(struct reorder *o, uint64_t until_ns)
{
    size_t out = 0;

    if (o->unsorted && !sort_held(o))
        return error_no_memory();
    for (; out < o->held.count && o->held.data[out].time_ns <= until_ns; out++)
        TRY(put(o, &o->held.data[out]));
    o->held.count -= out;
    if (out && o->held.count)
        memmove(o->held.data, o->held.data + out, o->held.count * sizeof *o->held.data);
    return NULL;
}

struct error *reorder_sample(struct reorder *o, const struct emit_sample *sample)
{
    if (o->held.count && sample->time_ns < o->held.data[o->held.count - 1].time_ns)
        o->unsorted = true;
    if (sample->time_ns > o->newest_ns)
        o->newest_ns = sample->time_ns;
    if (!VEC_PUSH(&o->held, *sample))
        return error_no_memory();
    if (o->held.count >= REORDER_MAX_SAMPLES) {
        /* Too many samples are held back: pass on the older half. */
        if (o->unsorted && !sort_held(o))
            return error_no_memory();
        return release(o, o->held.data[o->held.count / 2].time_ns);
    }
    /* Wait until twice the window is held, so that each sample is moved only a few times. */
    if (o->newest_ns - o->held.data[0].time_ns > 2 * REORDER_WINDOW_NS && o->newest_ns > REORDER_WINDOW_NS)
        return release(o, o->newest_ns - REORDER_WINDOW_NS);
    return NULL;
}

struct error *reorder_flush(struct reorder *o)
{
    struct error *err = release(o, UINT64_MAX);

    o->newest_ns = 0;
    return err;
}
