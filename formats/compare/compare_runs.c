/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a comparison, in order. */
#include "formats/compare/comparison.h"

#include <math.h>

#include "formats/base/sort.h"
#include "formats/compare/conditions.h"
#include "formats/compare/estimates.h"
#include "formats/compare/findings.h"
#include "formats/compare/match.h"
#include "formats/compare/row_order.h"
#include "formats/compare/rows.h"

static const double ALPHA = 0.05;
/* How many runs would tell is worked out for so many rows: it takes a search each. */
enum { RUNS_NEEDED_ROWS = 1000 };

/* A row with its number, to be sorted. */
struct placed {
    const struct run_set *set;
    const struct compare_row *row;
    uint32_t number;
};

/* 0: findings, 1: what findings or others explain, 2: the rest. */
static int rank(const struct compare_row *row)
{
    return compare_row_is_finding(row) ? 0 : row->answer != COMPARE_CANNOT_TELL ? 1 : 2;
}

static int compare_placed(const void *a, const void *b)
{
    const struct compare_row *x = ((const struct placed *)a)->row, *y = ((const struct placed *)b)->row;
    const struct run_set *set = ((const struct placed *)a)->set;

    if (rank(x) != rank(y))
        return rank(x) - rank(y);
    if (rank(x) < 2)
        return row_surest_order(set, x, y);
    double x_time = x->old_value + x->new_value, y_time = y->old_value + y->new_value;
    if (x_time != y_time)
        return x_time > y_time ? -1 : 1;
    return row_name_order(set, x, y);
}

/* Copies the rows behind the total, in their order; `because` becomes a number of that order. */
static struct error *place_rows(const struct test_rows *r, double alpha, struct comparison *out)
{
    size_t count = r->rows.count;
    struct placed *order = malloc((count + 1) * sizeof *order);
    uint32_t *place = malloc((count + 1) * sizeof *place);
    bool ok = order && place && limits_take(r->sides->set->limits, count * sizeof *out->rows.data);

    for (uint32_t i = 0; i < count && ok; i++)
        order[i] = (struct placed){r->sides->set, &r->rows.data[i].shown, i};
    ok = ok && sort_stable(order, count, sizeof *order, compare_placed);
    for (uint32_t i = 0; i < count && ok; i++) {
        ok = VEC_PUSH(&out->rows, *order[i].row);
        place[order[i].number] = (uint32_t)out->rows.count - 1;
        if (ok && i < RUNS_NEEDED_ROWS)
            out->rows.data[out->rows.count - 1].runs_needed = estimates_runs_needed(r, &r->rows.data[order[i].number], alpha);
    }
    for (size_t i = 1; i < out->rows.count && ok; i++) {
        uint32_t *because = &out->rows.data[i].because;
        *because = *because == COMPARE_NO_ROW ? COMPARE_NO_ROW : place[*because];
    }
    free(order);
    free(place);
    return ok ? NULL : error_no_memory();
}

static struct error *test_rows(struct test_rows *r, double alpha, struct comparison *out)
{
    struct compare_row total;
    bool comparable = true;

    for (size_t i = 0; i < out->problems.count; i++)
        comparable &= out->problems.data[i].kind != COMPARE_NO_WORK;
    TRY(estimates_test(r));
    TRY(estimates_total(r, comparable, alpha, &total));
    for (size_t i = 0; i < r->rows.count; i++)
        out->tested_rows += r->rows.data[i].shown.tested;
    if (out->conclusive) {
        TRY(findings_answer(r, alpha));
        if (total.tested && total.p < alpha)
            total.answer = total.change > 0 ? COMPARE_SLOWER : COMPARE_FASTER;
    }
    if (!VEC_PUSH(&out->rows, total))
        return error_no_memory();
    for (size_t i = 0; i < r->sides->runs.count; i++)
        if (!VEC_PUSH(&out->factors, r->factors[i]))
            return error_no_memory();
    return place_rows(r, alpha, out);
}

static struct error *list_runs(const struct sides *s, struct comparison *out)
{
    for (size_t i = 0; i < s->runs.count; i++) {
        uint32_t number = s->runs.data[i].number;
        bool ok = side_of(s, i) == SIDE_OLD ? VEC_PUSH(&out->old_runs, number) : VEC_PUSH(&out->new_runs, number);
        if (!ok)
            return error_no_memory();
    }
    return NULL;
}

static struct error *compare_sides(struct sides *s, const struct compare_options *options, struct comparison *out)
{
    double alpha = options->alpha > 0 ? options->alpha : ALPHA;
    const struct run_event *event = s->runs.data[0].event;
    struct match match;
    struct test_rows rows = {0};

    out->event = event->name;
    out->unit = event->unit;
    out->kind = event->kind;
    TRY(conditions_check(s, options->force, out));
    TRY(list_runs(s, out));
    struct error *err = match_init(&match, s);
    if (!err)
        err = rows_init(&rows, s, &match, options, out->by_work);
    if (!err)
        err = test_rows(&rows, alpha, out);
    rows_deinit(&rows);
    match_deinit(&match);
    return err;
}

struct error *compare_runs(struct run_set *set, const uint32_t *old_runs, size_t old_count, const uint32_t *new_runs,
                           size_t new_count, const struct compare_options *options, struct comparison *out)
{
    struct sides sides;

    *out = (struct comparison){.set = set};
    struct error *err = sides_init(&sides, set, old_runs, old_count, new_runs, new_count, options->event);
    if (!err)
        err = compare_sides(&sides, options, out);
    sides_deinit(&sides);
    return err;
}

void comparison_deinit(struct comparison *c)
{
    VEC_DEINIT(&c->old_runs);
    VEC_DEINIT(&c->new_runs);
    VEC_DEINIT(&c->factors);
    VEC_DEINIT(&c->problems);
    VEC_DEINIT(&c->rows);
    *c = (struct comparison){0};
}
