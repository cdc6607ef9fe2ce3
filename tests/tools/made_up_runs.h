/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a made-up program whose truth is known, as a run set has them: what pysym diff would read from recordings.
 *
 * The program: main() calls 40 functions, or has them called by `handlers` functions that share them. Eight functions have
 * 25, 15, 10, 8, 6, 5, 4 and 3 % of the time, the others equal parts of the remaining 24 %. A function has two lines, with
 * 70 and 30 % of its time, and is in one of five files. Runs do the same number of units of work.
 */
#ifndef TESTS_TOOLS_MADE_UP_RUNS_H
#define TESTS_TOOLS_MADE_UP_RUNS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/compare/run_set.h"
#include "tests/tools/random.h"

enum { MADE_FUNCTIONS = 40, MADE_FILES = 5, MADE_HANDLERS_MAX = 8 };

/* How runs differ from each other. */
struct made_noise {
    double samples;  /* of a run, on average */
    double cv;       /* of each function's own factor */
    double machine;  /* of a factor of all functions */
    double mix;      /* of a factor of each handler: how often it is called */
    double clumps;   /* samples come so many at a time; 1: independent of each other */
    uint32_t handlers; /* 0: main() calls the functions itself */
};

/* What changed in a run. */
struct made_change {
    int function;    /* that got slower, and whose code changed; with growth 0 nothing did */
    double growth;   /* 0.1: by 10 % */
    double all;      /* all of the program got slower */
};

/* A set with the program in it; runs are added by made_run(). */
struct made_program {
    struct run_set set;
    uint32_t handlers;
    uint32_t main_node, handler_nodes[MADE_HANDLERS_MAX], nodes[MADE_FUNCTIONS];
    uint32_t functions[MADE_FUNCTIONS];
    uint32_t codes[MADE_FUNCTIONS][2]; /* before and after a change */
    uint32_t lines[MADE_FUNCTIONS][2][2];
};

static inline double made_share(int function)
{
    static const double large[] = {0.25, 0.15, 0.10, 0.08, 0.06, 0.05, 0.04, 0.03};
    enum { LARGE = sizeof large / sizeof *large };

    return function < LARGE ? large[function] : 0.24 / (MADE_FUNCTIONS - LARGE);
}

static inline void made_check(bool good)
{
    if (!good) {
        fprintf(stderr, "made_up_runs: out of memory\n");
        exit(1);
    }
}

static inline uint32_t made_text(struct run_set *s, const char *text)
{
    uint32_t id = run_set_text(s, text, strlen(text));

    made_check(id != RUN_SET_NONE);
    return id;
}

/* A function of that name, and its node below `parent`. */
static inline uint32_t made_function(struct run_set *s, const char *file, const char *name, uint32_t parent, uint32_t *node)
{
    struct run_function f = {.file = made_text(s, file), .name = made_text(s, name), .first_line = 10};
    uint32_t id = run_set_function(s, &f);

    *node = run_set_node(s, parent, id);
    made_check(id != RUN_SET_NONE && *node != RUN_SET_NONE);
    return id;
}

static inline void made_codes(struct made_program *p, int function)
{
    for (uint32_t c = 0; c < 2; c++) {
        struct run_code code = {.function = p->functions[function], .first_line = 10, .table_bytes = 60 + c};
        code.fingerprint = 1000 + 2 * (uint64_t)function + c;
        p->codes[function][c] = run_set_code(&p->set, &code);
        for (uint32_t i = 0; i < 2; i++) {
            struct run_line line = {.code = p->codes[function][c], .line = 12 + c + 3 * i};
            p->lines[function][c][i] = run_set_line(&p->set, &line);
            made_check(line.code != RUN_SET_NONE && p->lines[function][c][i] != RUN_SET_NONE);
        }
    }
}

static inline void made_program_init(struct made_program *p, uint32_t handlers)
{
    char file[32], name[32];
    uint32_t node;

    p->handlers = handlers;
    made_check(run_set_init(&p->set, NULL));
    made_function(&p->set, "app/main.py", "main", RUN_SET_ROOT, &p->main_node);
    for (uint32_t i = 0; i < handlers; i++) {
        snprintf(name, sizeof name, "handle_%u", i);
        made_function(&p->set, "app/handlers.py", name, p->main_node, &p->handler_nodes[i]);
    }
    for (int i = 0; i < MADE_FUNCTIONS; i++) {
        node = handlers ? p->handler_nodes[(uint32_t)i % handlers] : p->main_node;
        snprintf(file, sizeof file, "app/module_%d.py", i % MADE_FILES);
        snprintf(name, sizeof name, "work_%02d", i);
        p->functions[i] = made_function(&p->set, file, name, node, &p->nodes[i]);
        made_codes(p, i);
    }
}

static inline void made_program_deinit(struct made_program *p)
{
    run_set_deinit(&p->set);
}

/* Sums by number, which become cells. */
struct made_sums {
    double *self, *total;
    size_t count;
};

static inline struct made_sums made_sums_of(size_t count)
{
    struct made_sums s = {calloc(count, sizeof(double)), calloc(count, sizeof(double)), count};

    made_check(s.self && s.total);
    return s;
}

static inline void made_cells(struct made_sums *s, double clumps, struct run_cells *cells)
{
    for (size_t i = 0; i < s->count; i++) {
        struct run_cell cell = {(uint32_t)i, (float)clumps, (float)clumps, s->self[i], s->total[i]};
        made_check(!(cell.total > 0) || VEC_PUSH(cells, cell));
    }
    free(s->self);
    free(s->total);
}

static inline struct run *made_run_facts(struct made_program *p)
{
    struct run_set *s = &p->set;
    char name[32];
    struct run *run;

    snprintf(name, sizeof name, "%zu.bin", s->runs.count);
    made_check((run = run_set_add(s)));
    run->name = made_text(s, name);
    run->kernel_release = made_text(s, "6.12.0");
    run->machine = made_text(s, "x86_64");
    run->cpu_model = made_text(s, "a CPU");
    run->backend = made_text(s, "bpf");
    run->native = made_text(s, "tables");
    run->pythons = made_text(s, "3.12");
    run->cpu_count = 2;
    run->start_realtime_ns = s->runs.count * UINT64_C(100000000000);
    run->duration_ns = UINT64_C(40000000000);
    run->work = 20000;
    return run;
}

/* What a run spent where. */
struct made_tables {
    struct made_sums nodes, functions, codes, lines, modules;
    uint64_t samples;
    double total;
};

/* A function's samples: `mean` on average, of that weight each. `code`: 1 after a change. */
static inline void made_work(struct made_program *p, struct random *r, int function, int code, double mean, double clumps,
                             double weight, struct made_tables *t)
{
    const struct run_set *s = &p->set;
    uint32_t module = s->functions.data[p->functions[function]].file;
    double value = 0;

    for (int line = 0; line < 2; line++) {
        double count = clumps * random_poisson(r, mean * (line ? 0.3 : 0.7) / clumps);
        uint32_t number = p->lines[function][code][line];
        t->lines.self[number] = t->lines.total[number] = count * weight;
        t->samples += (uint64_t)count;
        value += count * weight;
    }
    t->nodes.self[p->nodes[function]] = t->functions.self[p->functions[function]] = value;
    t->codes.self[p->codes[function][code]] = t->codes.total[p->codes[function][code]] = value;
    t->modules.self[module] += value;
    t->modules.total[module] += value;
    for (uint32_t node = p->nodes[function]; node != RUN_SET_NONE; node = s->nodes.data[node].parent) {
        t->nodes.total[node] += value;
        if (s->nodes.data[node].function != RUN_SET_NONE)
            t->functions.total[s->nodes.data[node].function] += value;
    }
    t->total += value;
}

/* Adds a run of the program; returns its number. */
static inline uint32_t made_run(struct made_program *p, struct random *r, const struct made_noise *n, struct made_change change)
{
    enum { HZ = 99 };
    struct run_set *s = &p->set;
    struct run *run = made_run_facts(p);
    struct run_event event = {.name = made_text(s, "cpu-clock"), .unit = made_text(s, "nanoseconds"), .kind = EVENT_CPU_TIME,
                              .frequency_hz = HZ, .weight = 1e9 / HZ};
    struct made_tables t = {made_sums_of(s->nodes.count), made_sums_of(s->functions.count), made_sums_of(s->codes.count),
                            made_sums_of(s->lines.count), made_sums_of(s->texts.count), 0, 0};
    double all = n->samples * exp(n->machine * random_normal(r)) * (1 + change.all), mix[MADE_HANDLERS_MAX];

    for (uint32_t i = 0; i < p->handlers; i++)
        mix[i] = exp(n->mix * random_normal(r));
    for (int i = 0; i < MADE_FUNCTIONS; i++) {
        bool grown = i == change.function && change.growth > 0;
        double own = exp(n->cv * random_normal(r) - n->cv * n->cv / 2) * (grown ? 1 + change.growth : 1);
        double called = p->handlers ? mix[(uint32_t)i % p->handlers] : 1;
        made_work(p, r, i, grown, all * made_share(i) * own * called, n->clumps, event.weight, &t);
    }
    event.samples = event.ticks = t.samples;
    event.total = t.total;
    made_cells(&t.nodes, n->clumps, &event.nodes);
    made_cells(&t.functions, n->clumps, &event.functions);
    made_cells(&t.codes, 1, &event.codes);
    made_cells(&t.lines, 1, &event.lines);
    made_cells(&t.modules, 1, &event.modules);
    made_check(VEC_PUSH(&run->events, event));
    return (uint32_t)s->runs.count - 1;
}

#endif
