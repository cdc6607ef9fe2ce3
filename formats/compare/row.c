/* SPDX-License-Identifier: Apache-2.0 */
/* The measure of a row. */
#include "formats/compare/row.h"

#include <math.h>

#include "formats/stats/means.h"

enum row_family row_family_of(enum compare_kind kind)
{
    switch (kind) {
    case COMPARE_NODE:
    case COMPARE_NODE_SELF:
        return FAMILY_NODES;
    case COMPARE_FUNCTION_SELF:
        return FAMILY_FUNCTIONS;
    case COMPARE_FUNCTION_TOTAL:
        return FAMILY_TOTALS;
    case COMPARE_LINE:
        return FAMILY_LINES;
    case COMPARE_MODULE:
        return FAMILY_MODULES;
    case COMPARE_TOTAL:
    case COMPARE_KINDS:
        break;
    }
    return FAMILY_NONE;
}

double row_mean(const struct test_rows *r, const double *by_run)
{
    return mean_of(by_run, r->sides->runs.count);
}

double row_side_mean(const struct test_rows *r, enum side side, const double *by_run)
{
    size_t old = r->sides->old_count;

    return side == SIDE_OLD ? mean_of(by_run, old) : mean_of(by_run + old, r->sides->runs.count - old);
}

void row_measure(const struct test_rows *r, const struct test_row *row, double *x, double *v)
{
    for (size_t i = 0; i < r->sides->runs.count; i++) {
        double half = row->dispersion / 2, k = row->part[i] + half, rest = fmax(row->whole[i] - row->part[i], 0) + half;
        if (row->is_part) {
            x[i] = log(k) - log(rest);
            v[i] = row->dispersion * (1 / k + 1 / rest);
        } else {
            x[i] = log(k) + log(r->sides->runs.data[i].weight) - log(r->factors[i]);
            v[i] = row->dispersion / k;
        }
    }
}

double row_least_samples(const struct test_rows *r)
{
    return r->options->least_samples > 0 ? r->options->least_samples : 10;
}

static double least_parent_samples(const struct test_rows *r)
{
    return r->options->least_parent_samples > 0 ? r->options->least_parent_samples : 50;
}

bool row_is_enough(const struct test_rows *r, const struct test_row *row)
{
    double old_runs = (double)r->sides->old_count, new_runs = (double)r->sides->runs.count - old_runs;
    double part = measures_mean(r->sides, row_side_mean(r, SIDE_OLD, row->part) * old_runs,
                                row_side_mean(r, SIDE_NEW, row->part) * new_runs);
    double whole = row_mean(r, row->whole), least = row_least_samples(r) * row->dispersion;

    if (part < least || whole - part < least)
        return false;
    return !row->is_part || (whole >= least_parent_samples(r) && row_side_mean(r, SIDE_OLD, row->whole) > 0 &&
                             row_side_mean(r, SIDE_NEW, row->whole) > 0);
}
