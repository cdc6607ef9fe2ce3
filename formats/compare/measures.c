/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the cells of all runs: sums, by which things get rows, and then the table. */
#include "formats/compare/measures.h"

#include <math.h>

/* What a baseline file may claim: more would make variances that are no numbers. */
static const float DISPERSION_MAX = 1e6f;

static const struct run_cells *cells_of(const struct run_event *e, enum measures_of of)
{
    switch (of) {
    case MEASURES_OF_NODES:
        return &e->nodes;
    case MEASURES_OF_FUNCTIONS:
        return &e->functions;
    case MEASURES_OF_LINES:
        return &e->lines;
    case MEASURES_OF_MODULES:
        return &e->modules;
    }
    return NULL;
}

static uint32_t thing_of(const struct measured *what, enum side side, uint32_t id)
{
    return id < what->id_count ? what->thing[side][id] : RUN_SET_NONE;
}

/* Gives things with enough samples a row. */
static bool choose_rows(struct measures *m, const struct sides *s, const struct measured *what, double least)
{
    double (*sums)[SIDE_COUNT] = calloc(what->thing_count + 1, sizeof *sums);

    m->row_of = malloc((what->thing_count + 1) * sizeof *m->row_of);
    m->thing_of = malloc((what->thing_count + 1) * sizeof *m->thing_of);
    for (size_t i = 0; i < m->runs && sums; i++) {
        const struct side_run *run = &s->runs.data[i];
        const struct run_cells *cells = cells_of(run->event, what->of);
        for (size_t j = 0; j < cells->count; j++) {
            uint32_t thing = thing_of(what, side_of(s, i), cells->data[j].id);
            if (thing != RUN_SET_NONE)
                sums[thing][side_of(s, i)] += side_samples(run, cells->data[j].total);
        }
    }
    for (size_t i = 0; i < what->thing_count && sums && m->row_of && m->thing_of; i++) {
        bool enough = measures_mean(s, sums[i][SIDE_OLD], sums[i][SIDE_NEW]) >= least;
        m->row_of[i] = enough ? (uint32_t)m->rows : RUN_SET_NONE;
        if (enough)
            m->thing_of[m->rows++] = (uint32_t)i;
    }
    free(sums);
    return sums && m->row_of && m->thing_of;
}

static float dispersion(float value)
{
    return value > 1 ? fminf(value, DISPERSION_MAX) : 1;
}

static void fill_row(struct measure *to, const struct side_run *run, const struct run_cell *cell)
{
    double total = side_samples(run, cell->total), self = side_samples(run, cell->self);

    to->total += total;
    to->self += fmin(self, total);
    to->total_dispersion = fmaxf(to->total_dispersion, dispersion(cell->dispersion));
    to->self_dispersion = fmaxf(to->self_dispersion, dispersion(cell->self_dispersion));
}

static void fill(struct measures *m, const struct sides *s, const struct measured *what)
{
    for (size_t i = 0; i < m->rows * m->runs; i++)
        m->table[i] = (struct measure){.total_dispersion = 1, .self_dispersion = 1};
    for (size_t i = 0; i < m->runs; i++) {
        const struct side_run *run = &s->runs.data[i];
        const struct run_cells *cells = cells_of(run->event, what->of);
        for (size_t j = 0; j < cells->count; j++) {
            uint32_t thing = thing_of(what, side_of(s, i), cells->data[j].id);
            if (thing != RUN_SET_NONE && m->row_of[thing] != RUN_SET_NONE)
                fill_row(&m->table[m->row_of[thing] * m->runs + i], run, &cells->data[j]);
        }
    }
}

struct error *measures_init(struct measures *m, const struct sides *s, const struct measured *what, double least)
{
    uint64_t cells = 0;

    *m = (struct measures){.runs = s->runs.count, .limits = s->set->limits};
    for (size_t i = 0; i < m->runs; i++)
        cells += cells_of(s->runs.data[i].event, what->of)->count;
    if (!limits_work(m->limits, 10 * cells + what->thing_count) || !choose_rows(m, s, what, least) ||
        !limits_take(m->limits, m->rows * m->runs * sizeof *m->table))
        return error_no_memory();
    m->table = malloc((m->rows * m->runs + 1) * sizeof *m->table);
    if (!m->table)
        return error_no_memory();
    fill(m, s, what);
    return NULL;
}

void measures_deinit(struct measures *m)
{
    if (m->table)
        limits_give(m->limits, m->rows * m->runs * sizeof *m->table);
    free(m->row_of);
    free(m->thing_of);
    free(m->table);
    *m = (struct measures){0};
}

const struct measure *measures_get(const struct measures *m, uint32_t thing)
{
    uint32_t row = m->row_of[thing];

    return row == RUN_SET_NONE ? NULL : m->table + row * m->runs;
}
