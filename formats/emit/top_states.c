/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/top_states.h"

#include <stdlib.h>
#include <string.h>

#include "formats/emit/names.h"

enum { SHOWN_MOST = 2, SHOWN_LEAST_PERCENT = 5 };

void top_states_deinit(struct top_states *s)
{
    if (s->rows)
        limits_give(s->limits, s->row_count * sizeof *s->rows);
    free(s->rows);
    s->rows = NULL;
}

/* What the samples of a stack waited for; NULL: they did not. */
static const char *wait_of(const struct emit_model *m, uint32_t stack)
{
    return stack == EMIT_NO_STACK ? NULL : m->frames[m->stacks[stack].frame].wait;
}

uint32_t top_states_of(const struct top_states *s, uint32_t stack)
{
    const char *wait = wait_of(s->model, stack), *name = wait ? wait : "on CPU";
    uint32_t i = 0;

    while (i < s->count && strcmp(s->names[i], name))
        i++;
    return i < TOP_STATES ? i : TOP_STATES - 1;
}

void top_states_add(struct top_states *s, uint32_t stack, uint64_t weight)
{
    const char *wait = wait_of(s->model, stack);
    uint32_t state = top_states_of(s, stack);

    if (state == s->count)
        s->names[s->count++] = state == TOP_STATES - 1 ? "other" : wait ? wait : "on CPU";
    s->weights[state] += weight;
    s->waits |= wait != NULL;
}

bool top_states_rows(struct top_states *s, uint32_t count)
{
    if (!s->waits)
        return true;
    if (!s->rows) {
        if (!limits_take(s->limits, count * sizeof *s->rows))
            return false;
        s->row_count = count;
        s->rows = calloc(count ? count : 1, sizeof *s->rows);
    }
    if (!s->rows || !limits_work(s->limits, 16 * (uint64_t)count))
        return false;
    memset(s->rows, 0, count * sizeof *s->rows);
    return true;
}

uint32_t top_states_own(const struct emit_model *m, uint32_t stack)
{
    uint32_t native = EMIT_NO_STACK, kernel = EMIT_NO_STACK;

    if (!wait_of(m, stack))
        return stack;
    for (uint32_t at = m->stacks[stack].parent; at != EMIT_NO_STACK; at = m->stacks[at].parent) {
        enum emit_frame_kind kind = m->frames[m->stacks[at].frame].kind;
        if (kind == EMIT_PYTHON)
            return at;
        if (kind == EMIT_NATIVE && native == EMIT_NO_STACK)
            native = at;
        if (kind == EMIT_KERNEL && kernel == EMIT_NO_STACK)
            kernel = at;
    }
    return native != EMIT_NO_STACK ? native : kernel != EMIT_NO_STACK ? kernel : stack;
}

uint32_t top_states_order(const struct top_states *s, const uint64_t *weights, uint32_t order[TOP_STATES])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t at = count;
        if (!weights[i])
            continue;
        for (; at && weights[order[at - 1]] < weights[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        count++;
    }
    return count;
}

void top_states_put(const struct top_states *s, const uint64_t *weights, struct buf *out)
{
    uint32_t order[TOP_STATES], count = top_states_order(s, weights, order);
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += (double)weights[order[i]];
    for (uint32_t i = 0; i < count && i < SHOWN_MOST; i++) {
        double percent = 100 * (double)weights[order[i]] / sum;
        if (percent < SHOWN_LEAST_PERCENT)
            break;
        buf_put_str(out, i ? ", " : "");
        name_plain(s->names[order[i]], out);
        if (percent <= 100 - SHOWN_LEAST_PERCENT)
            buf_printf(out, " %.0f%%", percent);
    }
}
