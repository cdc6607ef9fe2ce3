/* SPDX-License-Identifier: Apache-2.0 */
/* Measures nodes, functions, lines and files, and from the functions the runs themselves. */
#include "formats/compare/row_sizes.h"

#include <math.h>

#include "formats/stats/size_factors.h"

/* Nodes and functions whose parts may be rows; lines, and files by the functions that are in them. */
static struct error *measure_nodes(struct test_rows *r, double least)
{
    const struct run_set *set = r->sides->set;
    struct measured nodes = {MEASURES_OF_NODES, {r->tree.of_node[SIDE_OLD], r->tree.of_node[SIDE_NEW]}, set->nodes.count,
                             r->tree.nodes.count};
    struct measured functions = {MEASURES_OF_FUNCTIONS, {r->match->of_function[SIDE_OLD], r->match->of_function[SIDE_NEW]},
                                 set->functions.count, r->match->subjects.count};
    struct measured lines = {MEASURES_OF_LINES, {r->lines.of_line[SIDE_OLD], r->lines.of_line[SIDE_NEW]}, set->lines.count,
                             r->lines.classes.count};

    TRY(measures_init(&r->nodes, r->sides, &nodes, least));
    TRY(measures_init(&r->functions, r->sides, &functions, least));
    return measures_init(&r->line_measures, r->sides, &lines, least);
}

/* A module is known by the text of its file. */
static struct error *measure_modules(struct test_rows *r, double least)
{
    size_t texts = r->sides->set->texts.count;
    uint32_t *file = malloc((texts + 1) * sizeof *file);

    if (!file)
        return error_no_memory();
    for (uint32_t i = 0; i < texts; i++)
        file[i] = file_match_class(&r->match->files, i);
    struct measured modules = {MEASURES_OF_MODULES, {file, file}, texts, r->match->files.classes.count};
    struct error *err = measures_init(&r->modules, r->sides, &modules, least);
    free(file);
    return err;
}

struct error *row_sizes_measure(struct test_rows *r, double least)
{
    TRY(call_tree_init(&r->tree, r->sides->set, r->match));
    TRY(line_match_init(&r->lines, r->sides, r->match, r->options));
    TRY(measure_nodes(r, least));
    return measure_modules(r, least);
}

/* The own times of functions by run; the caller frees them. NULL: out of memory. */
static double *own_times(const struct test_rows *r)
{
    size_t runs = r->sides->runs.count, count = r->functions.rows * runs;
    double *times = malloc((count + 1) * sizeof *times);

    for (size_t i = 0; i < count && times; i++)
        times[i] = r->functions.table[i].self * r->sides->runs.data[i % runs].weight;
    return times;
}

/* Too few functions have time in all runs: then the runs' whole times must do. */
static bool are_too_few(const double *times, size_t rows, size_t runs)
{
    size_t complete = 0;

    for (size_t i = 0; i < rows; i++) {
        size_t run = 0;
        while (run < runs && times[i * runs + run] > 0)
            run++;
        complete += run == runs;
    }
    return complete < SIZE_FACTOR_ROWS_LEAST;
}

static struct error *fill_size_factors(struct test_rows *r)
{
    size_t runs = r->sides->runs.count;
    struct weighted_number *scratch = malloc((r->functions.rows + 1) * sizeof *scratch);
    double *times = own_times(r), mean = 0;

    if (scratch && times && !are_too_few(times, r->functions.rows, runs)) {
        size_factors(times, r->functions.rows, runs, r->factors, scratch);
    } else {
        for (size_t i = 0; i < runs; i++)
            r->factors[i] = fmax(r->all[i], 0.5) * r->sides->runs.data[i].weight;
    }
    for (size_t i = 0; i < runs; i++)
        mean += log(r->factors[i]) / (double)runs;
    for (size_t i = 0; i < runs; i++)
        r->factors[i] = exp(log(r->factors[i]) - mean);
    bool ok = scratch && times;
    free(scratch);
    free(times);
    return ok ? NULL : error_no_memory();
}

struct error *row_sizes_factors(struct test_rows *r)
{
    size_t runs = r->sides->runs.count;

    r->factors = malloc((runs + 1) * sizeof *r->factors);
    r->all = malloc((runs + 1) * sizeof *r->all);
    if (!r->factors || !r->all)
        return error_no_memory();
    for (size_t i = 0; i < runs; i++) {
        r->all[i] = side_samples(&r->sides->runs.data[i], r->sides->runs.data[i].event->total);
        r->factors[i] = r->sides->runs.data[i].run->work;
    }
    return r->by_work ? NULL : fill_size_factors(r);
}
