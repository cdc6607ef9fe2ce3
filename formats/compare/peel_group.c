/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rows again without what was taken out, and weighs which one explains the others. */
#include "formats/compare/peel_group.h"

#include <math.h>

#include "formats/compare/estimates.h"
#include "formats/compare/row_order.h"

/* Among so many of the surest the cause is looked for, and by so many it is judged. */
enum { CANDIDATES_MAX = 8, WITNESSES_MAX = 16 };
/* What changed code is worth, in squares of standard errors: 2 ln 10, a likelihood of ten to one. */
static const double CHANGED_CODE = 4.6;
/* Of a part of which too little is left, or of its whole. */
static const struct estimate NOTHING_KNOWN = {0};

bool peeling_init(struct peeling *p)
{
    struct test_rows *r = p->rows;
    size_t runs = r->sides->runs.count, nodes = r->tree.nodes.count;

    p->arena.limits = r->sides->set->limits;
    p->states = arena_calloc(&p->arena, r->rows.count + 1, sizeof *p->states);
    p->group_of = arena_alloc(&p->arena, (nodes + 1) * sizeof *p->group_of);
    p->caller_of = arena_calloc(&p->arena, nodes + 1, sizeof *p->caller_of);
    p->scratch = arena_calloc(&p->arena, 5 * runs, sizeof *p->scratch);
    if (!p->states || !p->group_of || !p->caller_of || !p->scratch)
        return false;
    memset(p->group_of, 0xff, (nodes + 1) * sizeof *p->group_of);
    for (size_t i = 0; i < r->rows.count; i++) {
        const struct test_row *row = &r->rows.data[i];
        p->states[i] = (struct peel_row){.below = COMPARE_NO_ROW, .beside = COMPARE_NO_ROW, .p = row->shown.p,
                                         .difference = row->estimate.difference};
    }
    return true;
}

void peeling_deinit(struct peeling *p)
{
    for (size_t i = 0; i < p->groups.count; i++) {
        VEC_DEINIT(&p->groups.data[i].members);
        VEC_DEINIT(&p->groups.data[i].open);
    }
    VEC_DEINIT(&p->groups);
    arena_deinit(&p->arena);
}

/* Tests a row of these parts and wholes by what its family's fit says. Where there is too little left p is 1. */
static struct error *retest(const struct peeling *p, const struct test_row *row, enum row_family family, struct moderated_row *out)
{
    const struct sides *s = p->rows->sides;
    size_t runs = s->runs.count;
    double *x = p->scratch + 2 * runs, *v = p->scratch + 3 * runs;
    const struct moderated_table table = {.x = x, .v = v, .rows = 1, .old_runs = s->old_count, .new_runs = runs - s->old_count};

    if (!limits_work(s->set->limits, 100 * (uint64_t)runs))
        return error_no_memory();
    *out = (struct moderated_row){.estimate = NOTHING_KNOWN, .p = 1};
    if (row->is_part && !row_is_enough(p->rows, row))
        return NULL;
    row_measure(p->rows, row, x, v);
    return moderated_apply(&table, &p->rows->fits[family], out);
}

/* The row without what was taken out of it, in the scratch of `p`; with what is inside it, where that is wanted. */
static struct test_row reduced(const struct peeling *p, uint32_t number, bool with_inside)
{
    const struct peel_row *state = &p->states[number];
    struct test_row row = p->rows->rows.data[number];
    size_t runs = p->rows->sides->runs.count;
    double *part = p->scratch, *whole = p->scratch + runs;

    for (size_t i = 0; i < runs; i++) {
        double inside = state->inside && !with_inside ? state->inside[i] : 0;
        part[i] = fmax(row.part[i] - inside, 0);
        whole[i] = fmax(row.whole[i] - inside - (state->outside ? state->outside[i] : 0), part[i]);
    }
    row.part = part;
    row.whole = whole;
    return row;
}

struct error *peel_row_test(struct peeling *p, uint32_t number)
{
    struct peel_row *state = &p->states[number];
    struct moderated_row tested;

    /* What one side alone has is new whatever the others do. */
    if (!state->changed || p->rows->rows.data[number].one_sided)
        return NULL;
    struct test_row row = reduced(p, number, false);
    TRY(retest(p, &row, row_family_of(row.shown.kind), &tested));
    state->p = tested.p;
    state->difference = tested.estimate.difference;
    state->changed = false;
    return NULL;
}

static double square_of(const struct estimate *e)
{
    return e->df > 0 && e->error > 0 ? (e->difference / e->error) * (e->difference / e->error) : 0;
}

/* How much the row's own time moved, in squares of standard errors. */
static struct error *own_movement(struct peeling *p, uint32_t number, double *out)
{
    struct test_row row = reduced(p, number, false);
    struct moderated_row tested;

    row.is_part = false;
    TRY(retest(p, &row, FAMILY_FUNCTIONS, &tested));
    *out = square_of(&tested.estimate);
    return NULL;
}

/* How much the row moved in what is left of its whole without a sibling. */
static struct error *movement_without(struct peeling *p, uint32_t number, uint32_t sibling, double *out)
{
    size_t runs = p->rows->sides->runs.count;
    double *taken = p->scratch + 4 * runs;
    struct test_row other = reduced(p, sibling, false), row;
    struct moderated_row tested;

    memcpy(taken, other.part, runs * sizeof *taken);
    row = reduced(p, number, false);
    for (size_t i = 0; i < runs; i++)
        row.whole[i] = fmax(row.whole[i] - taken[i], row.part[i]);
    TRY(retest(p, &row, row_family_of(row.shown.kind), &tested));
    *out = square_of(&tested.estimate);
    return NULL;
}

/* How badly it explains the others if this row is the cause. */
static struct error *judge(struct peeling *p, const uint32_t *rows, size_t count, const double *own, size_t candidate,
                           double *out)
{
    *out = p->rows->rows.data[rows[candidate]].shown.code == COMPARE_CODE_CHANGED ? -CHANGED_CODE : 0;
    for (size_t i = 0; i < count; i++) {
        double moved;
        if (i == candidate)
            continue;
        TRY(movement_without(p, rows[i], rows[candidate], &moved));
        *out += moved + own[i];
    }
    return NULL;
}

/* Is a surer than b? */
static bool is_surer(const struct peeling *p, uint32_t a, uint32_t b)
{
    const struct run_set *set = p->rows->sides->set;

    if (p->states[a].p != p->states[b].p)
        return p->states[a].p < p->states[b].p;
    return row_surest_order(set, &p->rows->rows.data[a].shown, &p->rows->rows.data[b].shown) < 0;
}

/* The surest open rows, in order. */
static size_t find_surest(const struct peeling *p, const struct peel_group *g, uint32_t *out)
{
    size_t count = 0;

    for (size_t i = 0; i < g->open.count; i++) {
        uint32_t row = g->open.data[i];
        size_t to = count < WITNESSES_MAX ? count++ : count - 1;
        if (to == WITNESSES_MAX - 1 && i >= WITNESSES_MAX && !is_surer(p, row, out[to]))
            continue;
        for (; to && is_surer(p, row, out[to - 1]); to--)
            out[to] = out[to - 1];
        out[to] = row;
    }
    return count;
}

/* What one side alone has is a cause: the surest such row. COMPARE_NO_ROW: there is none. */
static uint32_t find_one_sided(const struct peeling *p, const struct peel_group *g)
{
    uint32_t best = COMPARE_NO_ROW;

    for (size_t i = 0; i < g->open.count; i++) {
        uint32_t row = g->open.data[i];
        if (p->rows->rows.data[row].one_sided && (best == COMPARE_NO_ROW || is_surer(p, row, best)))
            best = row;
    }
    return best;
}

struct error *peel_group_choose(struct peeling *p, const struct peel_group *g, uint32_t *cause)
{
    uint32_t rows[WITNESSES_MAX] = {0};
    double own[WITNESSES_MAX] = {0}, best = INFINITY;

    *cause = find_one_sided(p, g);
    if (*cause != COMPARE_NO_ROW)
        return NULL;
    size_t count = find_surest(p, g, rows);
    *cause = rows[0];
    for (size_t i = 0; i < count && count > 1; i++)
        TRY(own_movement(p, rows[i], &own[i]));
    for (size_t i = 0; i < count && i < CANDIDATES_MAX && count > 1; i++) {
        double badness;
        TRY(judge(p, rows, count, own, i, &badness));
        if (badness < best - 1e-9 * fabs(best)) {
            best = badness;
            *cause = rows[i];
        }
    }
    return NULL;
}

/* Adds what is taken out to the sum, which is made where there is none yet. */
static bool add_to(struct peeling *p, double **sum, const double *taken)
{
    size_t runs = p->rows->sides->runs.count;

    if (!*sum)
        *sum = arena_calloc(&p->arena, runs, sizeof **sum);
    for (size_t i = 0; i < runs && *sum; i++)
        (*sum)[i] += taken[i];
    return *sum;
}

struct error *peel_group_take_out(struct peeling *p, const struct peel_group *g, uint32_t cause)
{
    size_t runs = p->rows->sides->runs.count;
    struct test_row taken = reduced(p, cause, false);

    if (!limits_work(p->rows->sides->set->limits, 4 * (uint64_t)g->members.count * runs))
        return error_no_memory();
    for (size_t i = 0; i < g->members.count; i++) {
        uint32_t number = g->members.data[i];
        const struct test_row *row = &p->rows->rows.data[number];
        struct peel_row *state = &p->states[number];
        bool is_caller = row->shown.kind == COMPARE_NODE && p->caller_of[row->call_node] == p->causes;
        uint32_t *because = is_caller ? &state->below : &state->beside;
        if (number == cause)
            continue;
        if (!add_to(p, is_caller ? &state->inside : &state->outside, taken.part))
            return error_no_memory();
        if (*because == COMPARE_NO_ROW || is_surer(p, cause, *because))
            *because = cause;
        state->changed = true;
    }
    return NULL;
}

struct error *peel_rows_show(struct peeling *p)
{
    for (uint32_t i = 0; i < p->rows->rows.count; i++) {
        struct test_row *row = &p->rows->rows.data[i];
        struct moderated_row tested;
        if (!p->states[i].outside || row->one_sided)
            continue;
        struct test_row without = reduced(p, i, true);
        TRY(retest(p, &without, row_family_of(row->shown.kind), &tested));
        row->estimate = tested.estimate;
        estimates_show(row);
    }
    return NULL;
}
