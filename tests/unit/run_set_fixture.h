/* SPDX-License-Identifier: Apache-2.0 */
/* A small run made by hand, for tests of sets and of the files that keep them. */
#ifndef TESTS_UNIT_RUN_SET_FIXTURE_H
#define TESTS_UNIT_RUN_SET_FIXTURE_H

#include "tests/unit/test.h"

#include <string.h>

#include "formats/compare/run_set.h"

static inline uint32_t set_text(struct run_set *s, const char *t)
{
    return run_set_text(s, t, strlen(t));
}

static inline uint32_t set_function(struct run_set *s, const char *file, const char *name, uint32_t first_line, bool unqualified)
{
    return run_set_function(s, &(struct run_function){set_text(s, file), set_text(s, name), first_line, unqualified});
}

static inline void set_cell(struct run_cells *cells, uint32_t id, double self, double total)
{
    assert_true(VEC_PUSH(cells, ((struct run_cell){.id = id, .dispersion = 2, .self_dispersion = 3, .self = self, .total = total})));
}

/* One without dispersion: of a code, a line, a module. */
static inline void set_plain_cell(struct run_cells *cells, uint32_t id, double self, double total)
{
    assert_true(VEC_PUSH(cells, ((struct run_cell){.id = id, .dispersion = 1, .self_dispersion = 1, .self = self, .total = total})));
}

/* main -> f, with 30 of 100 in f. `main` is the second function of the set, and the first node is of no run. */
static inline struct run *set_run(struct run_set *s)
{
    struct run *run = run_set_add(s);
    uint32_t f = set_function(s, "x.py", "f", 7, false), main = set_function(s, "x.py", "main", 1, false);
    struct run_event event = {.name = set_text(s, "cpu-clock"), .unit = set_text(s, "ns"), .kind = EVENT_CPU_TIME, .frequency_hz = 99,
                              .period = 10, .samples = 10, .total = 100, .weight = 10, .ticks = 11, .lost = 1};

    assert_non_null(run);
    run->name = set_text(s, "one.bin");
    run->host = set_text(s, "secret-host");
    run->pythons = set_text(s, "3.12");
    run->cpu_count = 4;
    run->start_realtime_ns = 5;
    run->work = 1.5;
    run->has_command = true;
    assert_true(VEC_PUSH(&run->notes, ((struct run_note){set_text(s, "work"), set_text(s, "1.5")})));
    run_set_node(s, RUN_SET_ROOT, f);
    uint32_t node = run_set_node(s, RUN_SET_ROOT, main), leaf = run_set_node(s, node, f);
    uint32_t code = run_set_code(s, &(struct run_code){f, 7, 40, 99});
    set_cell(&event.nodes, RUN_SET_ROOT, 0, 100);
    set_cell(&event.nodes, node, 70, 100);
    set_cell(&event.nodes, leaf, 30, 30);
    set_cell(&event.functions, f, 30, 30);
    set_cell(&event.functions, main, 70, 100);
    set_plain_cell(&event.codes, code, 30, 30);
    set_plain_cell(&event.lines, run_set_line(s, &(struct run_line){code, 8}), 30, 30);
    set_plain_cell(&event.modules, set_text(s, "x.py"), 100, 100);
    assert_true(VEC_PUSH(&run->events, event));
    return run;
}

#endif
