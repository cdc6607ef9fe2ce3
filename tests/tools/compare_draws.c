/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often comparisons of real runs are wrong, and how often they find what is there: draws runs from baseline files,
 * again and again, and compares them as pysym diff does.
 *
 * usage: compare_draws [-d DRAWS] [-s SEED] [-n OLDxNEW] OLD.pyb                 both sides are drawn from OLD: nothing changed
 *        compare_draws [-d DRAWS] [-s SEED] [-n OLDxNEW] OLD.pyb NEW.pyb NAME    NAME is the function that changed
 *        compare_draws -o SMALL.pyb -b BYTES OLD.pyb    writes the runs in so many bytes: what has least samples is left out
 *
 * A draw takes as many runs of each side as -n says (3x3, 5x5, 10x10 and 10x1, if there is none), each at most once. The
 * same files, draws and seed give the same lines, NAME=VALUE with rates in percent and their 95 % intervals:
 *   nothing changed: for each kind of row and for all, rows: in a draw; low: the rows with p < 5 %, whose interval takes the
 *   draw as the unit, since the rows of one draw depend on each other. any: draws with any finding. total: draws in which the
 *   total has p < 5 %, which is a test of its own.
 *   NAME changed: found: draws with a finding of that function; first: in which it is the first one; code: in which it is said
 *   that its code changed, or that it is new; others: draws with a finding of another function.
 * What the intervals leave out: all draws are from the same recordings.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/compare/baseline.h"
#include "formats/compare/comparison.h"
#include "tests/tools/random.h"

static const double alpha = 0.05;

static const char *const kind_names[COMPARE_KINDS] = {
    [COMPARE_TOTAL] = "total", [COMPARE_NODE] = "node", [COMPARE_NODE_SELF] = "node_self",
    [COMPARE_FUNCTION_SELF] = "function_self", [COMPARE_FUNCTION_TOTAL] = "function_total", [COMPARE_LINE] = "line",
    [COMPARE_MODULE] = "module",
};

struct size {
    size_t old_runs, new_runs;
};

/* The runs that are drawn from: the first old_count are old, the others new; if there is no new one, all are both. */
struct recordings {
    struct run_set set;
    size_t old_count;
    const char *changed; /* the function that did; NULL: nothing */
};

/* Counts of one draw, summed over draws with what a ratio's interval needs. */
struct ratio {
    double of, in;                   /* "low" rows, and all */
    double of_of, of_in, in_in;      /* sums of products */
};

struct tally {
    struct ratio kinds[COMPARE_KINDS], all;
    uint64_t draws, any, found, first, code, others;
};

static void stop(const char *why)
{
    fprintf(stderr, "compare_draws: %s\n", why);
    exit(1);
}

static void stop_if(struct error *err)
{
    if (err)
        stop(error_text(err));
}

static void ratio_add(struct ratio *r, double of, double in)
{
    r->of += of;
    r->in += in;
    r->of_of += of * of;
    r->of_in += of * in;
    r->in_in += in * in;
}

/* The ratio in percent, with the interval of a ratio of sums over draws (Cochran, Sampling Techniques, 1977, 6.4). */
static void print_ratio(const char *name, const struct ratio *r, uint64_t draws)
{
    double rate = r->in > 0 ? r->of / r->in : 0, n = (double)draws;
    double squares = fmax(r->of_of - 2 * rate * r->of_in + rate * rate * r->in_in, 0);
    double error = r->in > 0 && draws > 1 ? sqrt(squares * n / (n - 1)) / r->in : 0;

    printf(" %s: rows=%.1f low=%.2f (%.2f to %.2f)", name, r->in / n, 100 * rate, 100 * fmax(rate - 1.96 * error, 0),
           100 * (rate + 1.96 * error));
}

/* A share of draws in percent, with its interval (Wilson, Journal of the American Statistical Association 22, 1927). */
static void print_share(const char *name, uint64_t count, uint64_t draws)
{
    double n = (double)draws, p = (double)count / n, z = 1.96, middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));

    printf(" %s=%.1f (%.1f to %.1f)", name, 100 * p, 100 * fmax(middle - half, 0), 100 * fmin(middle + half, 1));
}

/* The first `count` numbers become a random choice of all. */
static void choose(struct random *chance, uint32_t *numbers, size_t all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t other = i + (size_t)(random_uniform(chance) * (double)(all - i));
        uint32_t number = numbers[i];
        numbers[i] = numbers[other];
        numbers[other] = number;
    }
}

static bool is_finding(const struct compare_row *row)
{
    return (row->answer == COMPARE_SLOWER || row->answer == COMPARE_FASTER) && row->because == COMPARE_NO_ROW;
}

static bool is_changed(const struct recordings *r, const struct compare_row *row)
{
    return row->function != RUN_SET_NONE && row->answer == COMPARE_SLOWER &&
           !strcmp(run_set_text_get(&r->set, r->set.functions.data[row->function].name), r->changed);
}

/* What became of the function that changed. */
static void count_findings(const struct recordings *r, const struct comparison *c, struct tally *t)
{
    bool found = false, others = false, code = false;

    for (size_t i = 1; i < c->rows.count && is_finding(&c->rows.data[i]); i++) {
        const struct compare_row *row = &c->rows.data[i];
        bool changed = is_changed(r, row);
        others |= !changed;
        code |= changed && (row->code == COMPARE_CODE_CHANGED || row->match == COMPARE_NEW);
        found |= changed;
        t->first += i == 1 && changed;
    }
    t->found += found;
    t->code += code;
    t->others += others;
}

static void count_rows(const struct comparison *c, struct tally *t)
{
    double low[COMPARE_KINDS] = {0}, rows[COMPARE_KINDS] = {0}, all_low = 0, all_rows = 0;
    bool any = false;

    for (size_t i = 0; i < c->rows.count; i++) {
        const struct compare_row *row = &c->rows.data[i];
        rows[row->kind] += row->tested;
        low[row->kind] += row->tested && row->p < alpha;
        any |= i > 0 && row->answer != COMPARE_CANNOT_TELL;
    }
    for (int kind = 0; kind < COMPARE_KINDS; kind++) {
        ratio_add(&t->kinds[kind], low[kind], rows[kind]);
        all_low += kind == COMPARE_TOTAL ? 0 : low[kind];
        all_rows += kind == COMPARE_TOTAL ? 0 : rows[kind];
    }
    ratio_add(&t->all, all_low, all_rows);
    t->any += any;
}

static void draw(struct recordings *r, struct size size, uint32_t *numbers, struct random *chance, struct tally *t)
{
    size_t all = r->set.runs.count, old = r->changed ? r->old_count : all;
    const struct compare_options options = {0};
    struct comparison c;

    choose(chance, numbers, old, r->changed ? size.old_runs : size.old_runs + size.new_runs);
    if (r->changed)
        choose(chance, numbers + old, all - old, size.new_runs);
    const uint32_t *new_runs = r->changed ? numbers + old : numbers + size.old_runs;
    stop_if(compare_runs(&r->set, numbers, size.old_runs, new_runs, size.new_runs, &options, &c));
    if (!c.conclusive)
        stop("nothing can be concluded of these runs");
    t->draws++;
    count_rows(&c, t);
    if (r->changed)
        count_findings(r, &c, t);
    comparison_deinit(&c);
}

static void print_tally(const struct recordings *r, struct size size, const struct tally *t)
{
    printf("%zux%zu draws=%" PRIu64, size.old_runs, size.new_runs, t->draws);
    if (r->changed) {
        print_share("found", t->found, t->draws);
        print_share("first", t->first, t->draws);
        print_share("code", t->code, t->draws);
        print_share("others", t->others, t->draws);
    } else {
        print_share("any", t->any, t->draws);
        print_ratio("all", &t->all, t->draws);
        for (int kind = 0; kind < COMPARE_KINDS; kind++)
            print_ratio(kind_names[kind], &t->kinds[kind], t->draws);
    }
    printf("\n");
}

static void print_draws(struct recordings *r, struct size size, uint64_t draws, uint64_t seed)
{
    size_t all = r->set.runs.count, old = r->changed ? r->old_count : all, need_new = r->changed ? size.new_runs : 0;
    uint32_t *numbers = malloc((all + 1) * sizeof *numbers);
    struct random chance = random_of(seed);
    struct tally t = {0};

    if (!numbers)
        stop("out of memory");
    if (old < (r->changed ? size.old_runs : size.old_runs + size.new_runs) || all - old < need_new)
        stop("there are too few runs to draw from");
    for (size_t i = 0; i < all; i++)
        numbers[i] = (uint32_t)i;
    for (uint64_t i = 0; i < draws; i++)
        draw(r, size, numbers, &chance, &t);
    print_tally(r, size, &t);
    free(numbers);
}

/* A smaller baseline of the same runs, for test data. */
static void write_small(const struct run_set *set, uint64_t max_bytes, const char *path)
{
    struct buf bytes = {0};
    struct baseline_written what;

    stop_if(baseline_encode(set, max_bytes, &bytes, &what));
    FILE *out = fopen(path, "we");
    if (!out || fwrite(bytes.data, 1, bytes.len_bytes, out) != bytes.len_bytes || fclose(out))
        stop("the file cannot be written");
    printf("%zu runs in %zu bytes, without what has less than %g samples in each\n", set->runs.count, bytes.len_bytes,
           what.least_samples);
    buf_deinit(&bytes);
}

static void stop_usage(void)
{
    stop("usage: compare_draws [-d DRAWS] [-s SEED] [-n OLDxNEW] OLD.pyb [NEW.pyb NAME], or -o SMALL.pyb -b BYTES OLD.pyb");
}

static uint64_t number_of(const char *text, uint64_t most)
{
    char *end;
    uint64_t number = strtoull(text, &end, 10);

    if (end == text || *end || !number || number > most)
        stop("a number is missing or too large");
    return number;
}

int main(int argc, char **argv)
{
    static const struct size usual[] = {{3, 3}, {5, 5}, {10, 10}, {10, 1}};
    uint64_t draws = 400, seed = 1, max_bytes = BASELINE_MAX_BYTES;
    const char *small = NULL;
    struct size only = {0};
    struct recordings r = {0};
    int option;

    while ((option = getopt(argc, argv, "d:s:n:o:b:")) != -1) {
        if (option == 'd')
            draws = number_of(optarg, 1000000);
        else if (option == 's')
            seed = number_of(optarg, UINT64_MAX);
        else if (option == 'o')
            small = optarg;
        else if (option == 'b')
            max_bytes = number_of(optarg, BASELINE_MAX_BYTES);
        else if (option != 'n' || sscanf(optarg, "%zux%zu", &only.old_runs, &only.new_runs) != 2)
            stop_usage();
    }
    if (argc - optind != 1 && (small || argc - optind != 3))
        stop_usage();
    if (!run_set_init(&r.set, NULL))
        stop("out of memory");
    stop_if(baseline_read(argv[optind], &r.set));
    r.old_count = r.set.runs.count;
    if (argc - optind == 3) {
        stop_if(baseline_read(argv[optind + 1], &r.set));
        r.changed = argv[optind + 2];
    }
    if (small)
        write_small(&r.set, max_bytes, small);
    for (size_t i = 0; !small && i < (only.old_runs ? 1 : sizeof usual / sizeof *usual); i++)
        print_draws(&r, only.old_runs ? only : usual[i], draws, seed);
    run_set_deinit(&r.set);
    return 0;
}
