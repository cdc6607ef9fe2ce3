/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/when/gil_waits.h"

#include <stdlib.h>

void gil_waits_deinit(struct gil_waits *g)
{
    VEC_DEINIT(&g->last);
    VEC_DEINIT(&g->now);
}

struct error *gil_waits_add(void *gil_waits, const struct wire_gil_key *key, const struct wire_gil *gil, uint64_t time_ns)
{
    struct gil_waits *g = gil_waits;

    return VEC_PUSH(&g->now, ((struct gil_wait){*key, *gil, time_ns})) ? NULL : error_no_memory();
}

static int compare(const void *a, const void *b)
{
    const struct wire_gil_key *x = &((const struct gil_wait *)a)->key, *y = &((const struct gil_wait *)b)->key;

    if (x->tgid != y->tgid)
        return x->tgid < y->tgid ? -1 : 1;
    return (x->address > y->address) - (x->address < y->address);
}

/* What was waited since an account was last read; `before` NULL: since it was opened, after the last look. */
static uint64_t waited_ns(const struct gil_wait *before, const struct gil_wait *now)
{
    if (before && before->gil.since_ns == now->gil.since_ns)
        return wire_gil_waited_ns(before->gil.waits, before->time_ns, now->gil.waits, now->time_ns);
    return wire_gil_waited_ns(0, now->gil.since_ns, now->gil.waits, now->time_ns);
}

void gil_waits_end_look(struct gil_waits *g)
{
    struct gil_wait *spare = g->last.data;
    size_t cap = g->last.cap, k = 0;

    if (g->now.count)
        qsort(g->now.data, g->now.count, sizeof *g->now.data, compare);
    for (size_t i = 0; g->looked && i < g->now.count; i++) {
        while (k < g->last.count && compare(&g->last.data[k], &g->now.data[i]) < 0)
            k++;
        bool known = k < g->last.count && !compare(&g->last.data[k], &g->now.data[i]);
        g->total_ns += waited_ns(known ? &g->last.data[k] : NULL, &g->now.data[i]);
    }
    g->looked = true;
    /* The arrays change places. */
    g->last.data = g->now.data;
    g->last.count = g->now.count;
    g->last.cap = g->now.cap;
    g->now.data = spare;
    g->now.count = 0;
    g->now.cap = cap;
}
