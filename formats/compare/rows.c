/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what there are enough samples of, kind by kind. */
#include "formats/compare/rows.h"

#include <math.h>

#include "formats/compare/row_sizes.h"

/* Fills in what one side's runs have on average. */
static void fill_side(const struct test_rows *r, const struct test_row *row, enum side side, double *value, double *share, double *samples)
{
    size_t from = side == SIDE_OLD ? 0 : r->sides->old_count, to = side == SIDE_OLD ? r->sides->old_count : r->sides->runs.count;

    for (size_t i = from; i < to; i++) {
        const struct side_run *run = &r->sides->runs.data[i];
        double n = (double)(to - from), work = run->run->work > 0 && r->by_work ? run->run->work : 1;
        *samples += row->part[i] / n;
        *value += row->part[i] * run->weight / work / n;
        *share += row->whole[i] > 0 ? fmin(row->part[i] / row->whole[i], 1) / n : 0;
    }
}

/* Adds a row, if there are enough samples. */
static struct error *add_row(struct test_rows *r, struct test_row *row)
{
    struct compare_row *shown = &row->shown;

    if (!row_is_enough(r, row))
        return NULL;
    fill_side(r, row, SIDE_OLD, &shown->old_value, &shown->old_share, &shown->old_samples);
    fill_side(r, row, SIDE_NEW, &shown->new_value, &shown->new_share, &shown->new_samples);
    if (!(shown->old_samples > 0 && shown->new_samples > 0)) {
        row->one_sided = true;
        shown->match = shown->new_samples > 0 ? COMPARE_NEW : COMPARE_VANISHED;
    }
    return limits_take(r->sides->set->limits, sizeof *row) && VEC_PUSH(&r->rows, *row) ? NULL : error_no_memory();
}

static uint32_t either(const uint32_t *number)
{
    return number[SIDE_NEW] != RUN_SET_NONE ? number[SIDE_NEW] : number[SIDE_OLD];
}

/* A row without samples yet; part, whole and dispersion have room for the runs. False: out of memory. */
static bool row_init(struct test_rows *r, struct test_row *row, enum compare_kind kind, uint32_t subject)
{
    size_t runs = r->sides->runs.count;
    double *numbers = arena_calloc(&r->arena, 2 * runs, sizeof *numbers);

    *row = (struct test_row){.subject = subject, .call_node = CALL_NODE_NONE, .within = CALL_NODE_NONE, .part = numbers,
                        .whole = numbers + runs};
    row->is_part = kind == COMPARE_NODE || kind == COMPARE_NODE_SELF || kind == COMPARE_LINE;
    row->shown = COMPARE_ROW_OF(kind);
    if (subject != RUN_SET_NONE) {
        const struct subject *s = &r->match->subjects.data[subject];
        row->shown.function = either(s->function);
        row->shown.match = s->match;
        row->shown.code = s->code;
        if (s->function[SIDE_OLD] != row->shown.function)
            row->shown.old_function = s->function[SIDE_OLD];
    }
    return numbers;
}

static bool is_ignored(const struct test_rows *r, uint32_t subject)
{
    const struct run_set *set = r->sides->set;

    if (!r->options->is_ignored || subject == RUN_SET_NONE)
        return false;
    const struct run_function *f = &set->functions.data[either(r->match->subjects.data[subject].function)];
    return r->options->is_ignored(r->options->ctx, run_set_text_get(set, f->file), run_set_text_get(set, f->name));
}

/* Mean samples of a node; 0: too few to be measured. */
static double node_samples(const struct test_rows *r, uint32_t node)
{
    const struct measure *m = measures_get(&r->nodes, node);
    double sum = 0;

    for (size_t i = 0; i < r->sides->runs.count && m; i++)
        sum += m[i].total;
    return sum / (double)r->sides->runs.count;
}

/* The nearest caller that does other things as well; CALL_NODE_NONE: there is none. */
static uint32_t find_whole(const struct test_rows *r, uint32_t node)
{
    double part = node_samples(r, node);
    uint32_t whole = r->tree.nodes.data[node].parent;

    while (whole != CALL_NODE_NONE && node_samples(r, whole) - part < row_least_samples(r))
        whole = r->tree.nodes.data[whole].parent;
    return whole;
}

/* The total of a node as a part of its caller's, or its self as a part of its own: of the node `within`. */
static struct error *add_node(struct test_rows *r, uint32_t node, enum compare_kind kind, uint32_t within)
{
    const struct call_node *n = &r->tree.nodes.data[node];
    bool self = kind == COMPARE_NODE_SELF;
    const struct measure *part = measures_get(&r->nodes, node), *whole = measures_get(&r->nodes, within);
    struct test_row row;

    if (!part || !whole)
        return NULL;
    if (!row_init(r, &row, kind, n->subject))
        return error_no_memory();
    row.call_node = node;
    row.within = within;
    row.shown.node = either(n->node);
    row.shown.within = either(r->tree.nodes.data[within].node);
    for (size_t i = 0; i < r->sides->runs.count; i++) {
        row.part[i] = self ? part[i].self : part[i].total;
        row.whole[i] = whole[i].total;
        row.dispersion += (self ? part[i].self_dispersion : part[i].total_dispersion) / (double)r->sides->runs.count;
    }
    return add_row(r, &row);
}

/* Marks the nodes of which a node below them is all: they are no rows. */
static struct error *mark_passages(const struct test_rows *r, uint8_t *is_passage)
{
    for (size_t i = 0; i < r->nodes.rows; i++) {
        uint32_t node = r->nodes.thing_of[i], parent = r->tree.nodes.data[node].parent;
        if (parent != CALL_NODE_NONE && node_samples(r, parent) - node_samples(r, node) < row_least_samples(r))
            is_passage[parent] = 1;
    }
    return limits_work(r->sides->set->limits, 4 * r->nodes.rows * r->sides->runs.count) ? NULL : error_no_memory();
}

static struct error *add_nodes(struct test_rows *r)
{
    uint8_t *is_passage = calloc(1, r->tree.nodes.count);
    struct error *err = is_passage ? mark_passages(r, is_passage) : error_no_memory();

    for (size_t i = 0; i < r->nodes.rows && !err; i++) {
        uint32_t node = r->nodes.thing_of[i], whole;
        if (node == CALL_NODE_ROOT || is_ignored(r, r->tree.nodes.data[node].subject))
            continue;
        whole = is_passage[node] ? CALL_NODE_NONE : find_whole(r, node);
        if (whole != CALL_NODE_NONE)
            err = add_node(r, node, COMPARE_NODE, whole);
        if (!err)
            err = add_node(r, node, COMPARE_NODE_SELF, node);
    }
    free(is_passage);
    return err;
}

/* Functions: the total only of those that call others. */
static struct error *add_function(struct test_rows *r, uint32_t subject, enum compare_kind kind)
{
    const struct measure *m = measures_get(&r->functions, subject);
    bool self = kind == COMPARE_FUNCTION_SELF;
    double callees = 0;
    struct test_row row;

    for (size_t i = 0; i < r->sides->runs.count; i++)
        callees += m[i].total - m[i].self;
    if (!self && callees < row_least_samples(r) * (double)r->sides->runs.count)
        return NULL;
    if (!row_init(r, &row, kind, subject))
        return error_no_memory();
    for (size_t i = 0; i < r->sides->runs.count; i++) {
        row.part[i] = self ? m[i].self : m[i].total;
        row.whole[i] = fmax(r->all[i], row.part[i]);
        row.dispersion += (self ? m[i].self_dispersion : m[i].total_dispersion) / (double)r->sides->runs.count;
    }
    return add_row(r, &row);
}

static struct error *add_functions(struct test_rows *r)
{
    for (size_t i = 0; i < r->functions.rows; i++) {
        uint32_t subject = r->functions.thing_of[i];
        if (is_ignored(r, subject))
            continue;
        TRY(add_function(r, subject, COMPARE_FUNCTION_SELF));
        TRY(add_function(r, subject, COMPARE_FUNCTION_TOTAL));
    }
    return NULL;
}

static struct error *add_lines(struct test_rows *r)
{
    for (size_t i = 0; i < r->line_measures.rows; i++) {
        uint32_t class = r->line_measures.thing_of[i];
        const struct line_class *line = &r->lines.classes.data[class];
        const struct measure *part = measures_get(&r->line_measures, class), *whole = measures_get(&r->functions, line->subject);
        struct test_row row;
        if (!whole || is_ignored(r, line->subject))
            continue;
        if (!row_init(r, &row, COMPARE_LINE, line->subject))
            return error_no_memory();
        row.shown.line = either(line->line);
        row.dispersion = 1;
        for (size_t run = 0; run < r->sides->runs.count; run++) {
            row.part[run] = part[run].total;
            row.whole[run] = whole[run].self;
        }
        TRY(add_row(r, &row));
    }
    return NULL;
}

/* Files with time in more than one function: of others the function says it. */
static struct error *add_modules(struct test_rows *r)
{
    const struct file_match *files = &r->match->files;
    uint32_t *owners = calloc(files->classes.count + 1, sizeof *owners);
    struct error *err = owners ? NULL : error_no_memory();

    for (size_t i = 0; i < r->functions.rows && !err; i++) {
        const struct measure *m = measures_get(&r->functions, r->functions.thing_of[i]);
        double self = 0;
        for (size_t run = 0; run < r->sides->runs.count; run++)
            self += m[run].self;
        owners[r->match->subjects.data[r->functions.thing_of[i]].file] += self > 0;
    }
    for (size_t i = 0; i < r->modules.rows && !err; i++) {
        uint32_t file = r->modules.thing_of[i];
        const struct measure *m = measures_get(&r->modules, file);
        struct test_row row;
        if (owners[file] < 2)
            continue;
        if (!row_init(r, &row, COMPARE_MODULE, RUN_SET_NONE)) {
            err = error_no_memory();
            break;
        }
        row.shown.module = files->classes.data[file].path;
        for (size_t run = 0; run < r->sides->runs.count; run++) {
            row.part[run] = m[run].total;
            row.whole[run] = fmax(r->all[run], m[run].total);
            row.dispersion += m[run].total_dispersion / (double)r->sides->runs.count;
        }
        err = add_row(r, &row);
    }
    free(owners);
    return err;
}

struct error *rows_init(struct test_rows *r, const struct sides *s, const struct match *match, const struct compare_options *options,
                        bool by_work)
{
    *r = (struct test_rows){.sides = s, .match = match, .options = options, .by_work = by_work, .arena.limits = s->set->limits};
    TRY(row_sizes_measure(r, row_least_samples(r)));
    TRY(row_sizes_factors(r));
    TRY(add_nodes(r));
    TRY(add_functions(r));
    TRY(add_lines(r));
    return add_modules(r);
}

void rows_deinit(struct test_rows *r)
{
    call_tree_deinit(&r->tree);
    line_match_deinit(&r->lines);
    measures_deinit(&r->nodes);
    measures_deinit(&r->functions);
    measures_deinit(&r->line_measures);
    measures_deinit(&r->modules);
    free(r->factors);
    free(r->all);
    arena_deinit(&r->arena);
    VEC_DEINIT(&r->rows);
}
