/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as folded stacks with two counts, "main;serve;score 620000 660000", as flamegraph.pl and inferno take them
 * for differential flame graphs: the own time of each call path, the mean of the old runs and that of the new, in
 * microseconds (in its own unit where the event is no time), as if all runs had done as much work. Those pictures colour all
 * differences, chance included: what has surely changed stands in the other reports.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "formats/compare/report/words.h"
#include "formats/compare/report/writers.h"

/* Adds a side's mean to `sums`, by node. */
static void add_side(const struct comparison *c, const uint32_t *runs, size_t count, const double *factors, double *sums)
{
    const char *event = run_set_text_get(c->set, c->event);

    for (size_t i = 0; i < count; i++) {
        const struct run_event *e = run_event_find(c->set, &c->set->runs.data[runs[i]], event);
        for (size_t k = 0; e && k < e->nodes.count; k++)
            sums[e->nodes.data[k].id] += e->nodes.data[k].self / factors[i] / (double)count;
    }
}

/* What values are multiplied by, so that they are of a run of mean size again. */
static double mean_factor(const struct comparison *c)
{
    double sum = 0;

    for (size_t i = 0; i < c->factors.count; i++)
        sum += c->factors.data[i];
    return c->factors.count ? sum / (double)c->factors.count : 1;
}

/* A count for the pictures, which want whole numbers. */
static uint64_t whole(double value)
{
    return value > 0 ? (uint64_t)llround(fmin(value, 0x1p62)) : 0;
}

static struct error *folded_report(const struct report *r, FILE *out)
{
    const struct comparison *c = r->comparison;
    size_t count = c->set->nodes.count;
    double *sums = calloc(2 * count, sizeof *sums), scale = mean_factor(c) / (event_is_time(c->kind) ? 1000 : 1);
    struct buf text = {0};
    bool ok = sums;

    if (!ok)
        return error_no_memory();
    add_side(c, c->old_runs.data, c->old_runs.count, c->factors.data, sums);
    add_side(c, c->new_runs.data, c->new_runs.count, c->factors.data + c->old_runs.count, sums + count);
    for (uint32_t node = 0; ok && node < count; node++) {
        uint64_t old_value = whole(sums[node] * scale), new_value = whole(sums[count + node] * scale);
        if (!old_value && !new_value)
            continue;
        if (node == RUN_SET_ROOT)
            buf_put_str(&text, "[no Python]");
        words_put_path(r, node, &text);
        buf_printf(&text, " %" PRIu64 " %" PRIu64 "\n", old_value, new_value);
        ok = limits_work(c->set->limits, 100 + 4 * text.len_bytes) && !text.bad;
        fwrite(text.data, 1, ok ? text.len_bytes : 0, out);
        buf_clear(&text);
    }
    free(sums);
    buf_deinit(&text);
    return ok ? NULL : error_no_memory();
}

const struct report_format report_folded = {.name = "folded",
                                            .description = "call paths with two counts, for differential flame graphs",
                                            .extension = ".folded",
                                            .write = folded_report};
