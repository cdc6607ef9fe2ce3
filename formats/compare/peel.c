/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in groups of the same whole; the groups from the deepest on; in each one cause after the other. */
#include "formats/compare/peel.h"

#include <math.h>

#include "formats/compare/peel_group.h"

/* Rows that stay findings without being compared with their siblings are those behind so many causes. */
enum { CAUSES_MAX = 1000, CAUSES_OF_GROUP_MAX = 64 };

static uint64_t group_key(const struct test_row *row)
{
    return row->shown.kind == COMPARE_LINE ? UINT64_C(1) << 32 | row->subject : row->within;
}

static bool is_peeled(const struct test_row *row)
{
    return row->is_part && row->shown.tested;
}

/* Groups in order of their depth, the deepest first: parents have lower numbers than their children. Lines come first. */
static int deeper_first(const void *a, const void *b)
{
    uint64_t x = ((const struct peel_group *)a)->key, y = ((const struct peel_group *)b)->key;

    return (x < y) - (x > y);
}

/* Which row belongs to which group, the deepest groups first. */
static struct error *make_groups(struct peeling *p)
{
    struct test_rows *r = p->rows;
    struct map numbers = {.limits = r->sides->set->limits};
    bool ok = true;

    for (uint32_t i = 0; i < r->rows.count && ok; i++) {
        const struct test_row *row = &r->rows.data[i];
        if (!is_peeled(row))
            continue;
        uint64_t key = group_key(row), *known = map_get(&numbers, key);
        uint32_t number = known ? (uint32_t)*known : (uint32_t)p->groups.count;
        if (!known)
            ok = map_set(&numbers, key, number) && VEC_PUSH(&p->groups, ((struct peel_group){.key = key}));
        ok = ok && VEC_PUSH(&p->groups.data[number].members, i);
    }
    map_deinit(&numbers);
    if (!ok)
        return error_no_memory();
    qsort(p->groups.data, p->groups.count, sizeof *p->groups.data, deeper_first);
    for (uint32_t i = 0; i < p->groups.count; i++)
        if (p->groups.data[i].key < r->tree.nodes.count)
            p->group_of[p->groups.data[i].key] = i;
    return NULL;
}

static bool is_discovery(const struct peeling *p, uint32_t row)
{
    return p->rows->rows.data[row].shown.p <= p->p_most;
}

/* The row's time was found to be a cause: takes it out of all sums that it is in, from its siblings up to the root. */
static struct error *take_out(struct peeling *p, const struct peel_group *g, uint32_t cause)
{
    struct test_rows *r = p->rows;
    const struct test_row *row = &r->rows.data[cause];

    TRY(peel_group_take_out(p, g, cause));
    for (uint32_t node = row->within, whole; node != CALL_NODE_NONE; node = whole) {
        p->caller_of[node] = p->causes;
        whole = r->tree.nodes.data[node].parent;
        if (whole != CALL_NODE_NONE && p->group_of[whole] != PEEL_NO_GROUP)
            TRY(peel_group_take_out(p, &p->groups.data[p->group_of[whole]], cause));
        if (!limits_work(r->sides->set->limits, 4))
            return error_no_memory();
    }
    return NULL;
}

static void answer(struct peeling *p, uint32_t number)
{
    struct test_row *row = &p->rows->rows.data[number];

    row->shown.answer = p->states[number].difference > 0 ? COMPARE_SLOWER : COMPARE_FASTER;
    row->p = p->states[number].p;
}

/* Answers a row that causes explain. */
static void explain(struct peeling *p, uint32_t number)
{
    const struct peel_row *state = &p->states[number];
    struct compare_row *shown = &p->rows->rows.data[number].shown;

    shown->answer = state->below != COMPARE_NO_ROW ? COMPARE_OF_CALLEES : COMPARE_GAVE_WAY;
    shown->because = state->below != COMPARE_NO_ROW ? state->below : state->beside;
}

/* Divides the discoveries of the group that have no answer into explained ones and those in *open. */
static struct error *sort_out(struct peeling *p, struct peel_group *g)
{
    g->open.count = 0;
    for (size_t i = 0; i < g->members.count; i++) {
        uint32_t number = g->members.data[i];
        struct peel_row *state = &p->states[number];
        if (!is_discovery(p, number) || p->rows->rows.data[number].shown.answer != COMPARE_CANNOT_TELL)
            continue;
        TRY(peel_row_test(p, number));
        if (state->p > p->p_most)
            explain(p, number);
        else if (!VEC_PUSH(&g->open, number))
            return error_no_memory();
    }
    return NULL;
}

static struct error *peel_group(struct peeling *p, struct peel_group *g)
{
    for (int causes = 0;; causes++) {
        TRY(sort_out(p, g));
        if (!g->open.count)
            return NULL;
        if (causes == CAUSES_OF_GROUP_MAX || p->causes == CAUSES_MAX)
            break;
        uint32_t cause;
        TRY(peel_group_choose(p, g, &cause));
        answer(p, cause);
        p->causes++;
        TRY(take_out(p, g, cause));
    }
    for (size_t i = 0; i < g->open.count; i++)
        answer(p, g->open.data[i]);
    return NULL;
}

static struct error *peel_all(struct peeling *p)
{
    TRY(make_groups(p));
    for (size_t i = 0; i < p->groups.count; i++)
        TRY(peel_group(p, &p->groups.data[i]));
    return peel_rows_show(p);
}

struct error *peel(struct test_rows *r, double p_most)
{
    struct peeling p = {.rows = r, .p_most = p_most};
    struct error *err = peeling_init(&p) ? NULL : error_no_memory();

    if (!err)
        err = peel_all(&p);
    peeling_deinit(&p);
    return err;
}
