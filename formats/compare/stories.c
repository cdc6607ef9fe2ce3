/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what the rows of each function say, and chooses the one that tells it. */
#include "formats/compare/stories.h"

#include <math.h>

#include "formats/compare/row_order.h"

enum direction {
    UP,
    DOWN,
    DIRECTIONS,
};

/* One-sided 5 % of the normal distribution. */
static const double CLEARLY = 1.645;
/* The part of a function's samples that must lie in nodes, so that these can say that it is their callers. */
static const double MOST = 0.5;

/* What is known of a function, or a file. */
struct story {
    uint32_t cause[DIRECTIONS];  /* the surest of its nodes that are causes; COMPARE_NO_ROW */
    uint32_t causes[DIRECTIONS]; /* how many there are */
    uint32_t self, total;        /* its rows, if they are discoveries */
    uint32_t below[DIRECTIONS];  /* the surest cause below one of its nodes; of a file: of its rows that others explain */
    uint32_t lead[DIRECTIONS];   /* the row that tells it */
    uint32_t node;               /* its node with most samples; CALL_NODE_NONE */
    double node_samples;
    double change, error2, samples; /* of its nodes, each weighed by its samples; squares; their sum */
};

struct telling {
    struct test_rows *rows;
    double p_most;
    struct story *stories;  /* by subject */
    struct story *files;    /* by class of files: `lead` */
    uint32_t *row_of_node;  /* by call node: its row; COMPARE_NO_ROW */
};

static enum direction direction_of(const struct test_row *row)
{
    return row->measured.difference > 0 ? UP : DOWN;
}

static enum compare_answer answer_of(enum direction d)
{
    return d == UP ? COMPARE_SLOWER : COMPARE_FASTER;
}

static struct test_row *row_at(const struct telling *t, uint32_t number)
{
    return &t->rows->rows.data[number];
}

static bool is_node(const struct test_row *row)
{
    return row->call_node != CALL_NODE_NONE;
}

/* A part that moved, and owes it to no other. */
static bool is_cause(const struct test_row *row)
{
    return row->shown.answer == COMPARE_SLOWER || row->shown.answer == COMPARE_FASTER;
}

static bool is_discovery(const struct telling *t, const struct test_row *row)
{
    return row->shown.tested && row->shown.p <= t->p_most;
}

/* Keeps the surer one of two rows. */
static void keep_surest(const struct telling *t, uint32_t *best, uint32_t row)
{
    if (*best == COMPARE_NO_ROW ||
        row_surest_order(t->rows->sides->set, &row_at(t, row)->shown, &row_at(t, *best)->shown) < 0)
        *best = row;
}

static void tell(const struct telling *t, uint32_t row, enum compare_answer answer, uint32_t because)
{
    struct compare_row *shown = &row_at(t, row)->shown;

    shown->answer = answer;
    shown->because = because == row ? COMPARE_NO_ROW : because;
}

static void clear(struct story *s)
{
    memset(s, 0, sizeof *s);
    s->self = s->total = COMPARE_NO_ROW;
    s->node = CALL_NODE_NONE;
    for (enum direction d = 0; d < DIRECTIONS; d++)
        s->cause[d] = s->below[d] = s->lead[d] = COMPARE_NO_ROW;
}

/* What a node's row says about its function. */
static void add_node(struct telling *t, uint32_t number)
{
    const struct test_row *row = row_at(t, number);
    struct story *s = &t->stories[row->subject];
    double samples = row_mean(t->rows, row->part);

    if (row->shown.kind == COMPARE_NODE) {
        t->row_of_node[row->call_node] = number;
        if (row->shown.tested && !row->one_sided) {
            s->change += samples * row->measured.difference;
            s->error2 += samples * samples * row->measured.error * row->measured.error;
            s->samples += samples;
        }
    }
    if (is_cause(row)) {
        enum direction d = row->shown.answer == COMPARE_SLOWER ? UP : DOWN;
        s->causes[d]++;
        keep_surest(t, &s->cause[d], number);
    }
}

static void collect(struct telling *t)
{
    struct test_rows *r = t->rows;

    for (uint32_t i = 0; i < r->rows.count; i++) {
        const struct test_row *row = row_at(t, i);
        if (is_node(row))
            add_node(t, i);
        else if (row->shown.kind == COMPARE_FUNCTION_SELF && is_discovery(t, row))
            t->stories[row->subject].self = i;
        else if (row->shown.kind == COMPARE_FUNCTION_TOTAL && is_discovery(t, row))
            t->stories[row->subject].total = i;
    }
    for (size_t i = 0; i < r->nodes.rows; i++) {
        uint32_t node = r->nodes.thing_of[i], subject = r->tree.nodes.data[node].subject;
        const struct measure *m = measures_get(&r->nodes, node);
        double samples = 0;
        for (size_t run = 0; run < r->sides->runs.count; run++)
            samples += m[run].total;
        if (subject != RUN_SET_NONE && samples > t->stories[subject].node_samples) {
            t->stories[subject].node_samples = samples;
            t->stories[subject].node = node;
        }
    }
}

/* Lets the callers of each cause know of it. */
static struct error *collect_below(struct telling *t)
{
    const struct call_tree *tree = &t->rows->tree;

    for (uint32_t i = 0; i < t->rows->rows.count; i++) {
        const struct test_row *row = row_at(t, i);
        if (!is_node(row) || !is_cause(row))
            continue;
        enum direction d = row->shown.answer == COMPARE_SLOWER ? UP : DOWN;
        uint32_t node = tree->nodes.data[row->call_node].parent;
        for (; node != CALL_NODE_NONE; node = tree->nodes.data[node].parent) {
            uint32_t subject = tree->nodes.data[node].subject;
            if (subject != RUN_SET_NONE && subject != row->subject)
                keep_surest(t, &t->stories[subject].below[d], i);
            if (!limits_work(t->rows->sides->set->limits, 10))
                return error_no_memory();
        }
    }
    return NULL;
}

/*
 * The nearest of the function's largest node and its callers that says why the time moved: a cause, or one that gave way.
 * COMPARE_NO_ROW: none does.
 */
static uint32_t find_reason(const struct telling *t, const struct story *s, enum direction d)
{
    const struct call_tree *tree = &t->rows->tree;

    for (uint32_t node = s->node; node != CALL_NODE_NONE; node = tree->nodes.data[node].parent) {
        uint32_t number = t->row_of_node[node];
        const struct test_row *row = number == COMPARE_NO_ROW ? NULL : row_at(t, number);
        if (row && (row->shown.answer == answer_of(d) || (row->shown.answer == COMPARE_GAVE_WAY && direction_of(row) == d)))
            return number;
    }
    return COMPARE_NO_ROW;
}

/* The function's time moved as that of a node did: with its callers, or because a sibling of these moved. */
static void tell_by_reason(struct telling *t, uint32_t function, uint32_t reason)
{
    if (reason != COMPARE_NO_ROW && row_at(t, reason)->shown.answer == COMPARE_GAVE_WAY)
        tell(t, function, COMPARE_GAVE_WAY, row_at(t, reason)->shown.because);
    else
        tell(t, function, COMPARE_OF_CALLERS, reason);
}

/* Did the function's time move more than its share of its callers' did? */
static bool is_of_callers(const struct telling *t, const struct story *s, const struct test_row *row)
{
    double sign = direction_of(row) == UP ? 1 : -1;

    if (row->one_sided || !(s->samples >= MOST * row_mean(t->rows, row->part)))
        return false;
    double change = s->change / s->samples, error2 = s->error2 / (s->samples * s->samples);
    return sign * (row->measured.difference - change) > CLEARLY * sqrt(error2 + row->measured.error * row->measured.error);
}

/* Tells a function with causes among its nodes: by the node if it is one, else by its own row, if that is a discovery. */
static void tell_by_nodes(struct telling *t, struct story *s, uint32_t function, enum direction d)
{
    bool is_one_sided = function != COMPARE_NO_ROW && row_at(t, function)->one_sided;

    s->lead[d] = function != COMPARE_NO_ROW && (s->causes[d] > 1 || is_one_sided) ? function : s->cause[d];
}

/* Tells a row of a function without causes among its nodes. Of those that gave way not even the direction is its own. */
static void tell_alone(struct telling *t, struct story *s, uint32_t function, enum direction d)
{
    const struct test_row *row = row_at(t, function);
    uint32_t reason = find_reason(t, s, d);
    bool gave_way = reason != COMPARE_NO_ROW && row_at(t, reason)->shown.answer == COMPARE_GAVE_WAY;

    if (row->shown.kind == COMPARE_FUNCTION_TOTAL && s->lead[d] != COMPARE_NO_ROW)
        tell(t, function, answer_of(d), s->lead[d]);
    else if (row->shown.kind == COMPARE_FUNCTION_TOTAL && s->below[d] != COMPARE_NO_ROW)
        tell(t, function, COMPARE_OF_CALLEES, s->below[d]);
    else if (gave_way || is_of_callers(t, s, row))
        tell_by_reason(t, function, reason);
    else
        tell(t, function, answer_of(d), s->lead[d] = function);
}

/* The function's row that moved in this direction. What is new or gone is told by its total. */
static uint32_t function_row(const struct telling *t, const struct story *s, enum direction d)
{
    uint32_t self = s->self, total = s->total;

    if (self != COMPARE_NO_ROW && direction_of(row_at(t, self)) != d)
        self = COMPARE_NO_ROW;
    if (total != COMPARE_NO_ROW && direction_of(row_at(t, total)) != d)
        total = COMPARE_NO_ROW;
    if (total != COMPARE_NO_ROW && row_at(t, total)->one_sided)
        return total;
    return self != COMPARE_NO_ROW ? self : total;
}

static void tell_function(struct telling *t, struct story *s)
{
    const uint32_t rows[] = {s->self, s->total};

    for (enum direction d = 0; d < DIRECTIONS; d++) {
        uint32_t function = function_row(t, s, d);
        if (s->causes[d])
            tell_by_nodes(t, s, function, d);
        else if (function != COMPARE_NO_ROW && row_at(t, function)->one_sided)
            s->lead[d] = function;
        for (size_t i = 0; i < 2; i++) {
            if (rows[i] == COMPARE_NO_ROW || direction_of(row_at(t, rows[i])) != d)
                continue;
            if (s->causes[d] || row_at(t, rows[i])->one_sided)
                tell(t, rows[i], answer_of(d), s->lead[d]);
            else
                tell_alone(t, s, rows[i], d);
        }
    }
}

/* Nodes and lines of a function whose change is told by another row. Where the function got slower, its other lines gave way. */
static void tell_parts(struct telling *t)
{
    for (uint32_t i = 0; i < t->rows->rows.count; i++) {
        const struct test_row *row = row_at(t, i);
        if (!row->is_part || !is_cause(row))
            continue;
        const uint32_t *leads = t->stories[row->subject].lead;
        enum direction d = row->shown.answer == COMPARE_SLOWER ? UP : DOWN;
        if (row->shown.kind == COMPARE_LINE && leads[d] == COMPARE_NO_ROW && leads[!d] != COMPARE_NO_ROW)
            tell(t, i, COMPARE_GAVE_WAY, leads[!d]);
        else
            tell(t, i, row->shown.answer, leads[d]);
    }
}

/* What is new, and called by what is new, is told there; so is what is gone. */
static void nest_one_sided(struct telling *t)
{
    const struct call_tree *tree = &t->rows->tree;

    for (size_t i = 0; i < t->rows->match->subjects.count; i++) {
        const struct story *s = &t->stories[i];
        enum direction d = s->lead[UP] != COMPARE_NO_ROW ? UP : DOWN;
        if (s->lead[d] == COMPARE_NO_ROW || !row_at(t, s->lead[d])->one_sided || s->node == CALL_NODE_NONE)
            continue;
        for (uint32_t node = tree->nodes.data[s->node].parent; node != CALL_NODE_NONE; node = tree->nodes.data[node].parent) {
            uint32_t subject = tree->nodes.data[node].subject;
            uint32_t caller = subject == RUN_SET_NONE ? COMPARE_NO_ROW : t->stories[subject].lead[d];
            if (caller != COMPARE_NO_ROW && caller != s->lead[d] && row_at(t, caller)->one_sided) {
                tell(t, s->lead[d], COMPARE_OF_CALLERS, caller);
                break;
            }
        }
    }
}

/* Files: told by their surest function, or as the one of those that others explain. */
static void tell_files(struct telling *t)
{
    struct test_rows *r = t->rows;

    for (uint32_t i = 0; i < r->rows.count; i++) {
        const struct test_row *row = row_at(t, i);
        if (row->subject == RUN_SET_NONE || row->shown.kind == COMPARE_LINE)
            continue;
        struct story *file = &t->files[r->match->subjects.data[row->subject].file];
        if (is_cause(row))
            keep_surest(t, &file->lead[row->shown.answer == COMPARE_SLOWER ? UP : DOWN], i);
        else if (row->shown.answer != COMPARE_CANNOT_TELL)
            keep_surest(t, &file->below[direction_of(row)], i);
    }
    for (uint32_t i = 0; i < r->rows.count; i++) {
        const struct test_row *row = row_at(t, i);
        if (row->shown.kind != COMPARE_MODULE || !is_discovery(t, row))
            continue;
        const struct story *file = &t->files[file_match_class(&r->match->files, row->shown.module)];
        enum direction d = direction_of(row);
        if (file->lead[d] == COMPARE_NO_ROW && file->below[d] != COMPARE_NO_ROW)
            tell(t, i, row_at(t, file->below[d])->shown.answer, row_at(t, file->below[d])->shown.because);
        else
            tell(t, i, answer_of(d), file->lead[d]);
    }
}

/* A row that is told by one that is told elsewhere is told there. */
static void follow(struct telling *t)
{
    for (uint32_t i = 0; i < t->rows->rows.count; i++) {
        uint32_t *because = &row_at(t, i)->shown.because;
        for (int steps = 0; steps < 8 && *because != COMPARE_NO_ROW; steps++) {
            uint32_t next = row_at(t, *because)->shown.because;
            if (next == COMPARE_NO_ROW || next == i)
                break;
            *because = next;
        }
    }
}

static struct error *tell_all(struct telling *t)
{
    size_t subjects = t->rows->match->subjects.count, files = t->rows->match->files.classes.count;

    for (size_t i = 0; i < subjects; i++)
        clear(&t->stories[i]);
    for (size_t i = 0; i < files; i++)
        clear(&t->files[i]);
    memset(t->row_of_node, 0xff, t->rows->tree.nodes.count * sizeof *t->row_of_node);
    collect(t);
    TRY(collect_below(t));
    for (size_t i = 0; i < subjects; i++)
        tell_function(t, &t->stories[i]);
    tell_parts(t);
    nest_one_sided(t);
    tell_files(t);
    follow(t);
    return NULL;
}

struct error *stories_tell(struct test_rows *r, double p_most)
{
    struct telling t = {.rows = r, .p_most = p_most,
                        .stories = malloc((r->match->subjects.count + 1) * sizeof *t.stories),
                        .files = malloc((r->match->files.classes.count + 1) * sizeof *t.files),
                        .row_of_node = malloc((r->tree.nodes.count + 1) * sizeof *t.row_of_node)};
    struct error *err = t.stories && t.files && t.row_of_node ? tell_all(&t) : error_no_memory();

    free(t.stories);
    free(t.files);
    free(t.row_of_node);
    return err;
}
