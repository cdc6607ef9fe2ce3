/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a table of each family, has it tested, and turns logarithms into changes. */
#include "formats/compare/estimates.h"

#include <math.h>

#include "formats/stats/discoveries.h"
#include "formats/stats/means.h"
#include "formats/stats/runs_needed.h"
#include "formats/stats/welch.h"

static const double CONFIDENCE = 0.9, POWER = 0.8;
/* Changes are cut here, at a factor of 10^9, so that what nothing is known of stays a number. */
static const double LOG_CHANGE_MAX = 20.7;

static double change_of(double log_change)
{
    return expm1(fmax(fmin(log_change, LOG_CHANGE_MAX), -LOG_CHANGE_MAX));
}

/* What a share is cut to: that of what is gone is below 0. */
static double cut_share(double share, bool is_new)
{
    return is_new ? fmax(fmin(share, 1), 0) : fmin(fmax(share, -1), 0);
}

void estimates_show(struct test_row *row)
{
    struct compare_row *shown = &row->shown;
    const struct estimate *e = &row->estimate;
    double low, high;

    shown->tested = e->df > 0;
    shown->error = shown->tested ? e->error : 0;
    shown->df = e->df;
    estimate_interval(e, CONFIDENCE, &low, &high);
    if (row->one_sided) {
        bool is_new = shown->match == COMPARE_NEW;
        shown->change = e->difference;
        shown->low = shown->tested ? cut_share(low, is_new) : 0;
        shown->high = shown->tested ? cut_share(high, is_new) : 0;
    } else {
        shown->change = change_of(e->difference);
        shown->low = shown->tested ? change_of(low) : 0;
        shown->high = shown->tested ? change_of(high) : 0;
    }
}

/* The tables of a family: the rows that both sides have. */
struct family_table {
    double *x, *v, *scratch;
    struct moderated_row *out;
    size_t *rows; /* their numbers */
    size_t count;
};

static bool belongs(const struct test_row *row, enum row_family family)
{
    return row_family_of(row->shown.kind) == family && !row->one_sided;
}

static bool table_init(struct family_table *t, const struct test_rows *r, enum row_family family)
{
    size_t runs = r->sides->runs.count, count = 0;

    for (size_t i = 0; i < r->rows.count; i++)
        count += belongs(&r->rows.data[i], family);
    *t = (struct family_table){.x = malloc((count * runs + 1) * sizeof *t->x),
                               .v = malloc((count * runs + 1) * sizeof *t->v),
                               .scratch = malloc((count + 1) * sizeof *t->scratch),
                               .out = malloc((count + 1) * sizeof *t->out),
                               .rows = malloc((count + 1) * sizeof *t->rows)};
    if (!t->x || !t->v || !t->scratch || !t->out || !t->rows)
        return false;
    for (size_t i = 0; i < r->rows.count; i++) {
        if (!belongs(&r->rows.data[i], family))
            continue;
        row_measure(r, &r->rows.data[i], t->x + t->count * runs, t->v + t->count * runs);
        t->rows[t->count++] = i;
    }
    return true;
}

static void table_deinit(struct family_table *t)
{
    free(t->x);
    free(t->v);
    free(t->scratch);
    free(t->out);
    free(t->rows);
}

static struct error *test_family(struct test_rows *r, enum row_family family)
{
    size_t runs = r->sides->runs.count;
    struct family_table t;
    struct error *err = table_init(&t, r, family) ? NULL : error_no_memory();

    if (!err && !limits_work(r->sides->set->limits, 60 * (uint64_t)(t.count * runs)))
        err = error_no_memory();
    if (!err) {
        const struct moderated_table table = {.x = t.x, .v = t.v, .rows = t.count, .old_runs = r->sides->old_count,
                                              .new_runs = runs - r->sides->old_count, .least = ROW_VARIANCE_LEAST};
        err = moderated_test(&table, &r->fits[family], t.out, t.scratch);
    }
    for (size_t i = 0; i < t.count && !err; i++) {
        struct test_row *row = &r->rows.data[t.rows[i]];
        row->measured = row->estimate = t.out[i].estimate;
        row->variance = t.out[i].variance;
        row->shown.p = row->p = t.out[i].p;
        estimates_show(row);
    }
    table_deinit(&t);
    return err;
}

/*
 * Is the share of what one side alone has over 0? Its error is that of the log odds of the runs that have it, by the
 * family's variance: share (1 - share) times that.
 */
static void test_against_none(const struct test_rows *r, struct test_row *row, double *x, double *v)
{
    bool is_new = row->shown.match == COMPARE_NEW, is_part = row->is_part;
    size_t old = r->sides->old_count, runs = r->sides->runs.count, from = is_new ? old : 0, count = is_new ? runs - old : old;
    struct moderated_fit fit = r->fits[row_family_of(row->shown.kind)];
    double df = (double)count - 1, row_df, share = is_new ? row->shown.new_share : row->shown.old_share;

    row->is_part = true; /* of all, if it is a time */
    row_measure(r, row, x, v);
    row->is_part = is_part;
    if (!(fit.df_max > 0))
        fit.df_max = fit.df;
    double spread = count > 1 ? squares_about(x + from, count, mean_of(x + from, count)) / df : 0;
    row->variance = moderated_variance(&fit, spread, df, mean_of(v + from, count), &row_df);
    row->estimate.difference = is_new ? share : -share;
    row->estimate.error = fmax(share * (1 - share) * sqrt(row->variance / (double)count), 1e-12);
    row->estimate.df = fit.df > 0 ? fmin(row_df > 0 ? row_df : fit.df, fit.df_max) : 0;
    row->shown.p = row->p = estimate_p(&row->estimate);
    row->measured = row->estimate;
    estimates_show(row);
}

static struct error *test_one_sided(struct test_rows *r)
{
    size_t runs = r->sides->runs.count;
    double *x = malloc(2 * runs * sizeof *x);

    for (size_t i = 0; i < r->rows.count && x; i++)
        if (r->rows.data[i].one_sided)
            test_against_none(r, &r->rows.data[i], x, x + runs);
    free(x);
    return x ? NULL : error_no_memory();
}

struct error *estimates_correct(struct test_rows *r)
{
    size_t count = r->rows.count, *order = malloc((count + 1) * sizeof *order);
    double *p = calloc(count + 1, sizeof *p), *q = calloc(count + 1, sizeof *q);
    bool ok = order && p && q;

    for (size_t i = 0; i < count && ok; i++)
        p[i] = row_is_explained(&r->rows.data[i]) ? 1 : r->rows.data[i].p;
    if (ok)
        discovery_q(p, count, q, order);
    for (size_t i = 0; i < count && ok; i++)
        if (!row_is_explained(&r->rows.data[i]))
            r->rows.data[i].shown.q = q[i];
    free(order);
    free(p);
    free(q);
    return ok ? NULL : error_no_memory();
}

/* How many runs a side would tell a change of this size; 0: none is enough. */
static double runs_for(double difference, double variance, double prior_df, double alpha)
{
    const struct runs_wanted wanted = {difference, variance, prior_df, alpha, POWER};
    uint64_t runs = variance > 0 && fabs(difference) > 0 ? runs_needed(&wanted) : RUNS_NOT_FEASIBLE;

    return runs < RUNS_NOT_FEASIBLE ? (double)runs : 0;
}

struct error *estimates_test(struct test_rows *r)
{
    for (enum row_family family = 0; family < FAMILIES; family++)
        TRY(test_family(r, family));
    TRY(test_one_sided(r));
    return estimates_correct(r);
}

double estimates_runs_needed(const struct test_rows *r, const struct test_row *row, double alpha)
{
    if (row->one_sided || !row->shown.tested)
        return 0;
    return runs_for(row->measured.difference, row->variance, r->fits[row_family_of(row->shown.kind)].d0,
                    runs_alpha_of_many(alpha, r->rows.count));
}

struct error *estimates_total(const struct test_rows *r, bool comparable, double alpha, struct compare_row *out)
{
    size_t runs = r->sides->runs.count, old = r->sides->old_count;
    double *x = malloc(3 * runs * sizeof *x), *value = x + runs, *samples = x + 2 * runs;
    struct test_row row = {.shown = COMPARE_ROW_OF(COMPARE_TOTAL)};
    struct welch welch;

    if (!x)
        return error_no_memory();
    for (size_t i = 0; i < runs; i++) {
        double work = r->by_work ? r->sides->runs.data[i].run->work : 1;
        samples[i] = r->all[i];
        value[i] = r->all[i] * r->sides->runs.data[i].weight / work;
        x[i] = log(r->all[i] + 0.5) + log(r->sides->runs.data[i].weight) - log(work);
    }
    row.shown.old_value = row_side_mean(r, SIDE_OLD, value);
    row.shown.new_value = row_side_mean(r, SIDE_NEW, value);
    row.shown.old_samples = row_side_mean(r, SIDE_OLD, samples);
    row.shown.new_samples = row_side_mean(r, SIDE_NEW, samples);
    row.shown.old_share = row.shown.new_share = 1;
    struct error *err = welch_test(x, old, x + old, runs - old, &welch);
    free(x);
    TRY(err);
    row.estimate = welch.estimate;
    estimates_show(&row);
    row.shown.p = row.shown.q = estimate_p(&row.estimate);
    row.shown.runs_needed = row.shown.tested ? runs_for(row.estimate.difference, welch.variance, 0, alpha / 2) : 0;
    if (!comparable) {
        row.shown.tested = false;
        row.shown.change = row.shown.low = row.shown.high = row.shown.error = row.shown.df = row.shown.runs_needed = 0;
        row.shown.p = row.shown.q = 1;
    }
    *out = row.shown;
    return NULL;
}
