/* SPDX-License-Identifier: Apache-2.0 */
/* A list, which is short: windows are taken out as they end, and names of losses are few. */
#include "symbolize/pass/loss_windows.h"

#include <string.h>

void loss_windows_deinit(struct loss_windows *w)
{
    limits_give(w->limits, w->rows.count * sizeof *w->rows.data);
    intern_deinit(&w->texts);
    VEC_DEINIT(&w->rows);
    VEC_DEINIT(&w->taken);
}

/* Equal texts have one address. NULL: out of memory. */
static const char *keep(struct loss_windows *w, const char *text)
{
    uint32_t id = intern_id(&w->texts, text, (uint32_t)strlen(text) + 1, NULL);

    return id == INTERN_NONE ? NULL : (const char *)intern_get(&w->texts, id)->data;
}

bool loss_windows_add(struct loss_windows *w, const struct loss_window_row *row)
{
    struct loss_window_row added = *row;

    added.loss.name = keep(w, row->loss.name);
    added.loss.event = keep(w, row->loss.event);
    added.loss.meaning = keep(w, row->loss.meaning);
    if (!added.loss.name || !added.loss.event || !added.loss.meaning || !limits_work(w->limits, 100 + w->rows.count))
        return false;
    for (size_t i = 0; i < w->rows.count; i++) {
        struct loss_window_row *known = &w->rows.data[i];
        if (known->window != row->window || known->capture != row->capture || known->loss.name != added.loss.name ||
            known->loss.event != added.loss.event)
            continue;
        known->loss.count += row->loss.count;
        known->last_ns = row->last_ns > known->last_ns ? row->last_ns : known->last_ns;
        return true;
    }
    return limits_take(w->limits, sizeof added) && VEC_PUSH(&w->rows, added);
}

static bool is_before(const struct loss_window_row *a, const struct loss_window_row *b)
{
    return a->window < b->window || (a->window == b->window && a->capture < b->capture);
}

bool loss_windows_take(struct loss_windows *w, uint64_t window, struct window_losses *out)
{
    const struct loss_window_row *first = NULL;
    size_t left = 0;

    *out = (struct window_losses){0};
    for (size_t i = 0; i < w->rows.count; i++) {
        const struct loss_window_row *row = &w->rows.data[i];
        if (row->window < window && (!first || is_before(row, first)))
            first = row;
    }
    if (!first)
        return true;
    out->window = first->window;
    out->capture = first->capture;
    w->taken.count = 0;
    if (!limits_work(w->limits, 10 * w->rows.count) || !VEC_RESERVE(&w->taken, w->rows.count))
        return false;
    for (size_t i = 0; i < w->rows.count; i++) {
        const struct loss_window_row row = w->rows.data[i];
        if (row.window != out->window || row.capture != out->capture) {
            w->rows.data[left++] = row;
            continue;
        }
        out->last_ns = row.last_ns > out->last_ns ? row.last_ns : out->last_ns;
        w->taken.data[w->taken.count++] = row.loss;
    }
    limits_give(w->limits, (w->rows.count - left) * sizeof *w->rows.data);
    w->rows.count = left;
    out->losses = w->taken.data;
    out->count = (uint32_t)w->taken.count;
    return true;
}
