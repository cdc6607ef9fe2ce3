/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints, as JSON, what a comparison of runs is made of: for each row the part, the whole and the measure x with its variance v
 * in each run, and what the test made of them, before causes are looked for.
 *
 * usage: compare_dump OLD_RUNS BASELINE...    the first OLD_RUNS runs of the files are the old ones, the others the new ones
 * Exit: 0; 1: what is wrong goes to the standard error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "formats/compare/baseline.h"
#include "formats/compare/conditions.h"
#include "formats/compare/estimates.h"
#include "formats/compare/rows.h"

static void stop_if(struct error *err)
{
    if (!err)
        return;
    fprintf(stderr, "compare_dump: %s\n", error_text(err));
    exit(1);
}

static json_t *numbers(const double *values, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

static json_t *fit_of(const struct moderated_fit *f)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "tau2", f->tau2, "d0", isinf(f->d0) ? -1.0 : f->d0, "s02", f->s02, "df", f->df);
}

static json_t *row_of(const struct test_rows *r, const struct test_row *row)
{
    const struct run_set *set = r->sides->set;
    const struct compare_row *shown = &row->shown;
    size_t runs = r->sides->runs.count;
    double *x = calloc(2 * runs, sizeof *x);
    const char *name = "", *file = "";

    if (shown->function != RUN_SET_NONE) {
        name = run_set_text_get(set, set->functions.data[shown->function].name);
        file = run_set_text_get(set, set->functions.data[shown->function].file);
    }
    row_measure(r, row, x, x + runs);
    json_t *out = json_pack("{s:i, s:i, s:s, s:s, s:b, s:b, s:f, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}", "kind",
                            (int)shown->kind, "family", (int)row_family_of(shown->kind), "file", file, "function", name,
                            "is_part", row->is_part, "one_sided", row->one_sided, "dispersion", row->dispersion, "part",
                            numbers(row->part, runs), "whole", numbers(row->whole, runs), "x", numbers(x, runs), "v",
                            numbers(x + runs, runs), "difference", row->measured.difference, "error", row->measured.error, "df",
                            row->measured.df, "p", shown->p, "q", shown->q);
    free(x);
    return out;
}

static json_t *dump(const struct test_rows *r)
{
    json_t *rows = json_array(), *fits = json_array();

    for (size_t i = 0; i < FAMILIES; i++)
        json_array_append_new(fits, fit_of(&r->fits[i]));
    for (size_t i = 0; i < r->rows.count; i++)
        json_array_append_new(rows, row_of(r, &r->rows.data[i]));
    size_t runs = r->sides->runs.count;
    json_t *weights = json_array(), *times = json_array();
    for (size_t i = 0; i < runs; i++)
        json_array_append_new(weights, json_real(r->sides->runs.data[i].weight));
    /* What size factors are made of. */
    for (size_t i = 0; i < r->functions.rows * runs; i++)
        json_array_append_new(times, json_real(r->functions.table[i].self * r->sides->runs.data[i % runs].weight));
    return json_pack("{s:i, s:f, s:o, s:o, s:o, s:o, s:o}", "old_runs", (int)r->sides->old_count, "least", ROW_VARIANCE_LEAST,
                     "factors", numbers(r->factors, runs), "weights", weights, "times", times, "fits", fits, "rows", rows);
}

int main(int argc, char **argv)
{
    struct run_set set;
    struct sides sides;
    struct match match;
    struct test_rows rows;
    struct comparison c = {0};
    uint32_t order[1024];

    if (argc < 3 || !run_set_init(&set, NULL))
        return 1;
    for (int i = 2; i < argc; i++)
        stop_if(baseline_read(argv[i], &set));
    size_t old = strtoul(argv[1], NULL, 10);
    if (old > set.runs.count || set.runs.count > sizeof order / sizeof *order)
        return 1;
    for (uint32_t i = 0; i < set.runs.count; i++)
        order[i] = i;
    stop_if(sides_init(&sides, &set, order, old, order + old, set.runs.count - old, NULL));
    stop_if(conditions_check(&sides, true, &c));
    stop_if(match_init(&match, &sides));
    stop_if(rows_init(&rows, &sides, &match, &(struct compare_options){0}, c.by_work));
    stop_if(estimates_test(&rows));
    json_t *out = dump(&rows);
    int written = out ? json_dumpf(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) : -1;
    json_decref(out);
    rows_deinit(&rows);
    match_deinit(&match);
    sides_deinit(&sides);
    comparison_deinit(&c);
    run_set_deinit(&set);
    return written || fflush(stdout) ? 1 : 0;
}
