/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs made by hand, for comparing. A stack is a text, the callers first:
 *
 *     app.py:main;app.py:serve;lib/util.py:parse+3
 *
 * Behind FILE:NAME there may stand, in this order: ~ (the name is not qualified), @N (the code's fingerprint, else one of file
 * and name), !N (its first line, else 10), ^N (the bytes of its table of lines, else 100), +N (the line, of the owner, counted
 * from the first one).
 */
#ifndef TESTS_UNIT_COMPARE_FIXTURE_H
#define TESTS_UNIT_COMPARE_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/compare/comparison.h"

#define MADE_WEIGHT 1e6 /* of a sample, in nanoseconds */

/* The run that is being made: cells by id. */
struct made_run {
    struct run_cells nodes, functions, codes, lines, modules;
    double total;
    uint32_t number;
};

struct made {
    struct run_set set;
    struct made_run now;
    uint64_t random;
};

static inline uint32_t made_text(struct made *m, const char *text)
{
    return run_set_text(&m->set, text, strlen(text));
}

static inline void made_init(struct made *m)
{
    *m = (struct made){.random = 1};
    assert_true(run_set_init(&m->set, NULL));
}

/* A uniform number below 1, the same in each test. */
static inline double made_random(struct made *m)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(m->random >> 11) * 0x1p-53;
}

/* A count around `mean`: that of a sampler, times what runs differ by. */
static inline double made_count(struct made *m, double mean, double spread)
{
    double normal[2];

    for (int i = 0; i < 2; i++) {
        normal[i] = -6;
        for (int k = 0; k < 12; k++)
            normal[i] += made_random(m);
    }
    mean *= exp(spread * normal[0]);
    return fmax(round(mean + sqrt(mean) * normal[1]), 0);
}

static inline void made_cell(struct run_cells *cells, uint32_t id, double self, double total)
{
    assert_true(VEC_EXTEND_ZERO(cells, id + 1));
    struct run_cell *c = &cells->data[id];
    *c = (struct run_cell){id, 1, 1, c->self + self, c->total + total};
}

struct made_frame {
    uint32_t function, code, line, file;
};

/* One component of a stack. */
static inline struct made_frame made_frame(struct made *m, const char *text, size_t len)
{
    char copy[256], *name, *rest;
    struct run_code code = {.first_line = 10, .table_bytes = 100};
    struct run_function f = {0};
    uint32_t line = 0;

    assert_true(len < sizeof copy);
    memcpy(copy, text, len);
    copy[len] = 0;
    name = strchr(copy, ':');
    assert_non_null(name);
    *name++ = 0;
    for (rest = name; *rest && !strchr("~@!^+", *rest); rest++)
        code.fingerprint = code.fingerprint * 31 + (uint8_t)*rest;
    for (const char *s = copy; *s; s++)
        code.fingerprint = code.fingerprint * 31 + (uint8_t)*s;
    for (char mark = *rest; mark;) {
        *rest++ = 0;
        uint64_t number = mark == '~' ? 1 : strtoull(rest, &rest, 10);
        if (mark == '~')
            f.unqualified = true;
        else if (mark == '@')
            code.fingerprint = number;
        else if (mark == '!')
            code.first_line = (uint32_t)number;
        else if (mark == '^')
            code.table_bytes = (uint32_t)number;
        else
            line = (uint32_t)number;
        mark = *rest;
    }
    f.file = made_text(m, copy);
    f.name = made_text(m, name);
    f.first_line = code.first_line;
    code.function = run_set_function(&m->set, &f);
    return (struct made_frame){code.function, run_set_code(&m->set, &code), code.first_line + line, f.file};
}

/* Adds samples of a stack to the run that is being made. Recursion is not collapsed: stacks should have none. */
static inline void made_samples(struct made *m, const char *stack, double samples)
{
    double value = samples * MADE_WEIGHT;
    uint32_t node = RUN_SET_ROOT;

    m->now.total += value;
    made_cell(&m->now.nodes, RUN_SET_ROOT, *stack ? 0 : value, value);
    for (const char *s = stack, *end; *s; s = *end ? end + 1 : end) {
        end = strchrnul(s, ';');
        struct made_frame f = made_frame(m, s, (size_t)(end - s));
        double self = *end ? 0 : value;
        node = run_set_node(&m->set, node, f.function);
        made_cell(&m->now.nodes, node, self, value);
        made_cell(&m->now.functions, f.function, self, value);
        made_cell(&m->now.codes, f.code, self, value);
        if (*end)
            continue;
        made_cell(&m->now.lines, run_set_line(&m->set, &(struct run_line){f.code, f.line}), value, value);
        made_cell(&m->now.modules, f.file, value, value);
    }
}

/* The cells with time. */
static inline struct run_cells made_cells(struct run_cells *all)
{
    struct run_cells out = {0};

    for (size_t i = 0; i < all->count; i++)
        if (all->data[i].total > 0)
            assert_true(VEC_PUSH(&out, all->data[i]));
    VEC_DEINIT(all);
    return out;
}

/* Ends the run: it becomes one of the set, recorded as all others. Its number. */
static inline uint32_t made_run(struct made *m, const char *name)
{
    struct run_event e = {.name = made_text(m, "task-clock"), .unit = made_text(m, "ns"), .kind = EVENT_CPU_TIME, .frequency_hz = 999,
                          .samples = (uint64_t)(m->now.total / MADE_WEIGHT), .total = m->now.total, .weight = MADE_WEIGHT};
    struct run run = {.name = made_text(m, name), .kernel_release = made_text(m, "6.1.0-18-amd64"),
                      .machine = made_text(m, "x86_64"), .cpu_model = made_text(m, "A CPU"), .backend = made_text(m, "bpf"),
                      .native = made_text(m, "tables"), .pythons = made_text(m, "3.12"), .cpu_count = 2, .has_command = true};

    e.ticks = e.samples;
    e.nodes = made_cells(&m->now.nodes);
    e.functions = made_cells(&m->now.functions);
    e.codes = made_cells(&m->now.codes);
    e.lines = made_cells(&m->now.lines);
    e.modules = made_cells(&m->now.modules);
    assert_true(VEC_PUSH(&run.events, e));
    struct run *added = run_set_add(&m->set);
    assert_non_null(added);
    *added = run;
    m->now.total = 0;
    return (uint32_t)m->set.runs.count - 1;
}

static inline void made_deinit(struct made *m)
{
    run_set_deinit(&m->set);
}

/* Compares the first `old` runs of the set with the next `new` ones. */
static inline struct error *made_compare(struct made *m, size_t old, size_t new, const struct compare_options *options,
                                         struct comparison *out)
{
    uint32_t numbers[64];

    assert_true(old + new <= 64);
    for (size_t i = 0; i < old + new; i++)
        numbers[i] = (uint32_t)i;
    return compare_runs(&m->set, numbers, old, numbers + old, new, options, out);
}

/* The row of a kind and function, the first in order; COMPARE_NO_ROW. */
static inline uint32_t made_find(const struct comparison *c, enum compare_kind kind, const char *name)
{
    for (uint32_t i = 0; i < c->rows.count; i++) {
        const struct compare_row *row = &c->rows.data[i];
        if (row->kind == kind && row->function != RUN_SET_NONE &&
            !strcmp(run_set_text_get(c->set, c->set->functions.data[row->function].name), name))
            return i;
    }
    return COMPARE_NO_ROW;
}

static inline const struct compare_row *made_row(const struct comparison *c, enum compare_kind kind, const char *name)
{
    uint32_t row = made_find(c, kind, name);

    if (row == COMPARE_NO_ROW)
        fail_msg("no row of kind %d for %s", (int)kind, name);
    return &c->rows.data[row];
}

static inline const char *made_name(const struct comparison *c, const struct compare_row *row)
{
    return row->function == RUN_SET_NONE ? "" : run_set_text_get(c->set, c->set->functions.data[row->function].name);
}

/* No figure is a NaN or infinite, and `because` is a row that is told by none. */
static inline void made_check(const struct comparison *c)
{
    for (size_t i = 0; i < c->rows.count; i++) {
        const struct compare_row *r = &c->rows.data[i];
        const double figures[] = {r->old_value, r->new_value, r->old_share, r->new_share, r->old_samples, r->new_samples,
                                  r->change, r->low, r->high, r->p, r->q, r->df, r->error, r->runs_needed};
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            if (!isfinite(figures[k]))
                fail_msg("row %zu: figure %zu is %g", i, k, figures[k]);
        assert_true(r->low <= r->high && r->p >= 0 && r->p <= 1 && r->q <= 1);
        if (r->because == COMPARE_NO_ROW)
            continue;
        assert_true(r->because < c->rows.count && r->because != i);
        assert_int_equal(c->rows.data[r->because].because, COMPARE_NO_ROW);
    }
}

/* Prints all rows, to look at while a test is written. */
static inline void made_print(const struct comparison *c)
{
    for (size_t i = 0; i < c->rows.count; i++) {
        const struct compare_row *r = &c->rows.data[i];
        fprintf(stderr, "%zu kind %d %s answer %d because %d match %d code %d: %.1f -> %.1f, %+.3f (%+.3f %+.3f) p %.2g q %.2g df %.1f\n",
                i, (int)r->kind, made_name(c, r), (int)r->answer, (int)r->because, (int)r->match, (int)r->code, r->old_samples,
                r->new_samples, r->change, r->low, r->high, r->p, r->q, r->df);
    }
}

#endif
