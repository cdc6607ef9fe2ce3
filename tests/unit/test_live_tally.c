/* SPDX-License-Identifier: Apache-2.0 */
/* What the live view adds up: shares of an interval, sums since the start, and that its memory is bounded. */
#include "tests/unit/live_model.h"

#include <stdio.h>

static const struct live_row nothing;

/* The row of a place; one of zeros if there is none. */
static struct live_row row_of(const struct live_tally *t, const struct live_view *v, const char *function, uint32_t line)
{
    const struct live_places *places = live_tally_places(t, v->by_line);
    struct live_rows rows = {0};
    struct live_row found = nothing;

    assert_true(live_rows_make(&rows, t, v));
    for (size_t i = 0; i < rows.list.count; i++) {
        const struct live_place *place = &places->list.data[rows.list.data[i].number];
        if (!strcmp(place->function, function) && (!v->by_line || place->line == line))
            found = rows.list.data[i];
    }
    live_rows_deinit(&rows);
    return found;
}

static void expect(const struct live_tally *t, const struct live_view *v, const char *function, uint64_t self_ms, uint64_t total_ms,
                   uint64_t all_self_ms, uint64_t all_total_ms)
{
    struct live_row row = row_of(t, v, function, 0);

    assert_int_equal(row.now.self, self_ms * NS_PER_MS);
    assert_int_equal(row.now.total, total_ms * NS_PER_MS);
    assert_int_equal(row.all.self, all_self_ms * NS_PER_MS);
    assert_int_equal(row.all.total, all_total_ms * NS_PER_MS);
}

TEST(functions)
{
    struct live_tally *t = new_tally();
    struct live_view v = {0};

    add_sample(t, 100, LIVE_EVENT_CPU, 0, STACK_COMPUTE);
    add_sample(t, 200, LIVE_EVENT_CPU, 0, STACK_WORK);
    add_sample(t, 300, LIVE_EVENT_CPU, 1, STACK_AGAIN);
    add_sample(t, 400, LIVE_EVENT_CPU, 2, EMIT_NO_STACK);
    assert_int_equal(live_tally_figures(t)->serial, 0); /* the interval has not ended */
    pass_time(t, 1000);
    const struct live_figures *f = live_tally_figures(t);
    assert_int_equal(f->serial, 1);
    assert_int_equal(f->length_ns, NS_PER_S);
    assert_int_equal(f->all.samples, 4);
    assert_int_equal(f->all.ns[LIVE_RAN], 40 * NS_PER_MS);
    assert_int_equal(f->all.gil_held_ns, 20 * NS_PER_MS);
    expect(t, &v, "main", 0, 30, 0, 30);
    expect(t, &v, "work", 20, 30, 20, 30); /* once for each sample, though it calls itself */
    expect(t, &v, "compute", 10, 10, 10, 10);
    expect(t, &v, "[no frames]", 10, 10, 10, 10);

    v.python_only = true;
    expect(t, &v, "work", 30, 30, 30, 30); /* what compute took is its */
    expect(t, &v, "compute", 0, 0, 0, 0);

    v = (struct live_view){.by_line = true};
    assert_int_equal(row_of(t, &v, "work", 12).now.self, 10 * NS_PER_MS);
    assert_int_equal(row_of(t, &v, "work", 12).now.total, 30 * NS_PER_MS);
    assert_int_equal(row_of(t, &v, "work", 14).now.total, 10 * NS_PER_MS);
    live_tally_destroy(t);
}

TEST(intervals)
{
    struct live_tally *t = new_tally();
    const struct live_view v = {0};

    add_sample(t, 900, LIVE_EVENT_CPU, 0, STACK_WORK);
    add_sample(t, 1000, LIVE_EVENT_CPU, 0, STACK_WORK);
    add_sample(t, 500, LIVE_EVENT_CPU, 0, STACK_MAIN); /* of another event, say: it stands behind those, in one block */
    assert_int_equal(live_tally_figures(t)->serial, 0);
    assert_null(live_tally_block(t));
    expect(t, &v, "work", 20, 20, 20, 20);
    expect(t, &v, "main", 10, 30, 10, 30);
    assert_int_equal(live_tally_figures(t)->length_ns, NS_PER_S);
    add_sample(t, 1500, LIVE_EVENT_CPU, 0, STACK_WORK);
    assert_null(live_tally_block(t)); /* a short one, since much was written */
    assert_int_equal(live_tally_figures(t)->serial, 1);
    pass_time(t, 2000);
    expect(t, &v, "work", 10, 10, 30, 30);
    pass_time(t, 3500); /* nothing ran */
    assert_int_equal(live_tally_figures(t)->length_ns, 1500 * NS_PER_MS);
    assert_int_equal(live_tally_figures(t)->all.samples, 0);
    expect(t, &v, "work", 0, 0, 30, 30);

    live_tally_freeze(t, true);
    add_sample(t, 5000, LIVE_EVENT_CPU, 0, STACK_WORK);
    pass_time(t, 5100);
    add_sample(t, 9000, LIVE_EVENT_CPU, 0, STACK_WORK);
    pass_time(t, 9001);
    assert_int_equal(live_tally_figures(t)->serial, 3);
    expect(t, &v, "work", 0, 0, 30, 30);
    live_tally_freeze(t, false);
    assert_null(live_tally_block(t));
    assert_int_equal(live_tally_figures(t)->length_ns, 5501 * NS_PER_MS);
    expect(t, &v, "work", 20, 20, 50, 50);
    add_sample(t, 9002, LIVE_EVENT_CPU, 0, STACK_WORK);
    assert_null(live_tally_end(t, "over"));
    expect(t, &v, "work", 20, 20, 60, 60); /* a short rest is no interval */
    assert_true(live_tally_figures(t)->ended);
    live_tally_destroy(t);
}

TEST(waits)
{
    struct live_tally *t = new_tally();
    struct live_view v = {.measure = LIVE_WAITED};

    add_sample(t, 100, LIVE_EVENT_WAITS, 1, STACK_WAITS);
    add_sample(t, 150, LIVE_EVENT_BLAME, 0, STACK_WORK); /* nobody's own time */
    add_sample(t, 200, LIVE_EVENT_CPU, 0, STACK_WORK);
    pass_time(t, 1000);
    /* The wait is the time of the Python function that waits. */
    expect(t, &v, "work", 10, 10, 10, 10);
    expect(t, &v, "compute", 0, 10, 0, 10);
    expect(t, &v, "[wait: lock]", 0, 0, 0, 0);
    assert_int_equal(live_tally_figures(t)->all.wait_ns[EMIT_WAIT_LOCK], 10 * NS_PER_MS);
    v.measure = LIVE_RAN;
    expect(t, &v, "work", 10, 10, 10, 10);

    struct live_rows rows = {0};
    v.table = LIVE_THREADS;
    assert_true(live_rows_make(&rows, t, &v));
    assert_int_equal(rows.list.count, 2);
    assert_int_equal(live_tally_threads(t)->list.data[rows.list.data[0].number].tid, 100);
    assert_int_equal(rows.list.data[1].deeds.wait_ns[EMIT_WAIT_LOCK], 10 * NS_PER_MS);
    live_rows_deinit(&rows);
    live_tally_destroy(t);
}

TEST(threads)
{
    struct live_tally *t = new_tally();
    struct live_view v = {.pid = 100, .tid = 101};
    struct live_rows rows = {0};

    add_sample(t, 100, LIVE_EVENT_CPU, 0, STACK_WORK);
    add_sample(t, 200, LIVE_EVENT_CPU, 1, STACK_COMPUTE);
    add_sample(t, 300, LIVE_EVENT_CPU, 1, STACK_COMPUTE);
    add_sample(t, 400, LIVE_EVENT_CPU, 2, STACK_MAIN);
    pass_time(t, 1000);
    expect(t, &v, "compute", 20, 20, 20, 20);
    expect(t, &v, "main", 0, 20, 0, 20);
    v.tid = 0;
    expect(t, &v, "main", 0, 30, 0, 30);
    v.table = LIVE_PROCESSES;
    v.pid = 0;
    assert_true(live_rows_make(&rows, t, &v));
    assert_int_equal(rows.list.count, 2);
    assert_int_equal(rows.whole_now, 40 * NS_PER_MS);
    assert_int_equal(rows.list.data[0].now.self, 30 * NS_PER_MS);
    snprintf(v.search, sizeof v.search, "%s", "MAIL");
    assert_true(live_rows_make(&rows, t, &v));
    assert_int_equal(rows.list.count, 1);
    live_rows_deinit(&rows);
    live_tally_destroy(t);
}

/* The model is another one after a while, with other numbers for the same things. */
TEST(renewed)
{
    static const struct emit_frame frames[] = {
        {.kind = EMIT_PYTHON, .function = "work", .file = "/srv/app.py", .module = "", .line = 12, .function_line = 10},
        {.kind = EMIT_PYTHON, .function = "main", .file = "/srv/app.py", .module = "", .line = 3, .function_line = 1},
    };
    static const struct emit_stack stacks[] = {{EMIT_NO_STACK, 1, 1}, {0, 0, 2}};
    struct emit_model other = live_model;
    struct live_tally *t = new_tally();
    const struct live_view v = {0};

    other.frames = frames;
    other.frame_count = 2;
    other.stacks = stacks;
    other.stack_count = 2;
    add_sample(t, 100, LIVE_EVENT_CPU, 0, STACK_WORK);
    assert_null(live_tally_model(t, &other));
    add_sample(t, 200, LIVE_EVENT_CPU, 0, 1);
    pass_time(t, 1000);
    expect(t, &v, "work", 20, 20, 20, 20);
    expect(t, &v, "main", 0, 20, 0, 20);
    assert_null(live_tally_model(t, NULL));
    assert_null(live_tally_end(t, ""));
    live_tally_destroy(t);
}

/* What came while the view stood still counts when it goes on, also behind the end. */
TEST(frozen_at_the_end)
{
    struct live_tally *t = new_tally();
    const struct live_view v = {0};

    add_sample(t, 100, LIVE_EVENT_CPU, 0, STACK_WORK);
    pass_time(t, 1000);
    live_tally_freeze(t, true);
    add_sample(t, 1500, LIVE_EVENT_CPU, 0, STACK_WORK);
    pass_time(t, 4000);
    assert_null(live_tally_end(t, "over"));
    assert_null(live_tally_model(t, NULL));
    assert_true(live_tally_figures(t)->ended);
    expect(t, &v, "work", 10, 10, 10, 10);
    live_tally_freeze(t, false);
    expect(t, &v, "work", 10, 10, 20, 20);
    assert_string_equal(live_tally_figures(t)->ending, "over");
    assert_int_equal(live_tally_figures(t)->length_ns, 3 * NS_PER_S);
    live_tally_freeze(t, false);
    expect(t, &v, "work", 10, 10, 20, 20);
    live_tally_destroy(t);
}

/* A thread's name is known some time after its first sample. */
TEST(names_come_later)
{
    struct emit_thread threads[] = {{0, 100, "python3"}};
    struct emit_model named = live_model;
    struct live_tally *t = new_tally();

    named.threads = threads;
    named.thread_count = 1;
    assert_null(live_tally_model(t, &named));
    add_sample(t, 100, LIVE_EVENT_CPU, 0, STACK_WORK);
    threads[0].name = "MainThread";
    pass_time(t, 1000);
    assert_string_equal(live_tally_threads(t)->list.data[1].name, "python3");
    add_sample(t, 1100, LIVE_EVENT_CPU, 0, STACK_WORK);
    pass_time(t, 2000);
    assert_int_equal(live_tally_threads(t)->list.count, 2);
    assert_string_equal(live_tally_threads(t)->list.data[1].name, "MainThread");
    live_tally_destroy(t);
}

/* Of several events one is shown, CPU time before others, whichever comes first, and the same one in each model. */
TEST(events)
{
    static const struct emit_event events[] = {{.name = "page-faults", .unit = "faults"}, {.name = "cs", .unit = "switches"},
                                               {.name = "cpu-clock", .unit = "ns", .kind = EVENT_CPU_TIME}};
    static const struct emit_event turned[] = {{.name = "cs", .unit = "switches"}, {.name = "page-faults", .unit = "faults"}};
    struct emit_model several = live_model, others = live_model;
    struct live_tally *t = new_tally();
    const struct live_view v = {0};

    several.events = events;
    several.event_count = 3;
    assert_null(live_tally_model(t, &several));
    add_sample(t, 100, 0, 0, STACK_MAIN);
    add_sample(t, 200, 2, 0, STACK_WORK);
    add_sample(t, 300, 1, 0, STACK_MAIN);
    pass_time(t, 1000);
    assert_string_equal(live_tally_figures(t)->event, "cpu-clock");
    assert_true(live_figures_are_cpu(live_tally_figures(t)));
    assert_int_equal(live_tally_figures(t)->all.samples, 1);
    expect(t, &v, "work", 10, 10, 10, 10);
    live_tally_destroy(t);

    t = new_tally();
    several.event_count = 2;
    assert_null(live_tally_model(t, &several));
    add_sample(t, 100, 0, 0, STACK_WORK);
    add_sample(t, 200, 1, 0, STACK_MAIN);
    others.events = turned;
    others.event_count = 2;
    assert_null(live_tally_model(t, &others));
    add_sample(t, 300, 0, 0, STACK_MAIN);
    add_sample(t, 400, 1, 0, STACK_WORK);
    pass_time(t, 1000);
    assert_string_equal(live_tally_figures(t)->event, "page-faults");
    assert_int_equal(live_tally_figures(t)->all.gil_known_ns, 0); /* which would be of faults */
    expect(t, &v, "work", 20, 20, 20, 20);
    expect(t, &v, "main", 0, 20, 0, 20);
    live_tally_destroy(t);
}

/* Far more functions and threads than there is room for: bounded memory, and no time is lost. */
TEST(bounded)
{
    enum { ROUNDS = 30, PER_ROUND = 4000 };
    static struct emit_frame frames[PER_ROUND];
    static struct emit_stack stacks[PER_ROUND];
    static struct emit_thread threads[PER_ROUND];
    static char names[PER_ROUND][32];
    struct emit_model model = live_model;
    struct live_tally *t = new_tally();
    struct live_view v = {0};
    struct live_rows rows = {0};
    uint64_t self = 0, ran = 0;

    model.frames = frames;
    model.stacks = stacks;
    model.threads = threads;
    model.frame_count = model.stack_count = model.thread_count = PER_ROUND;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < PER_ROUND; i++) {
            snprintf(names[i], sizeof names[i], "f%u_%u", round, i);
            frames[i] = (struct emit_frame){.kind = EMIT_PYTHON, .function = names[i], .file = "/srv/app.py", .module = "", .line = i + 1};
            stacks[i] = (struct emit_stack){EMIT_NO_STACK, i, 1};
            threads[i] = (struct emit_thread){0, 1000 + round * PER_ROUND + i, "t"};
        }
        assert_null(live_tally_model(t, &model));
        for (uint32_t i = 0; i < PER_ROUND; i++)
            add_sample(t, round * 1000 + 1, LIVE_EVENT_CPU, i, i);
        pass_time(t, round * 1000 + 1000);
        assert_true(live_tally_threads(t)->list.count <= LIVE_THREADS_MAX);
        for (int by = 0; by < LIVE_BYS; by++) {
            assert_true(live_tally_places(t, by)->list.count <= LIVE_PLACES_MAX);
            assert_true(live_tally_cells(t, by)->list.count <= LIVE_CELLS_MAX + 1);
        }
    }
    assert_true(live_rows_make(&rows, t, &v));
    for (size_t i = 0; i < rows.list.count; i++)
        self += rows.list.data[i].all.self;
    assert_int_equal(self, (uint64_t)ROUNDS * PER_ROUND * 10 * NS_PER_MS);
    v.table = LIVE_THREADS;
    assert_true(live_rows_make(&rows, t, &v));
    for (size_t i = 0; i < rows.list.count; i++)
        ran += rows.list.data[i].all.self;
    assert_int_equal(ran, self);
    live_rows_deinit(&rows);
    assert_null(live_tally_model(t, NULL));
    live_tally_destroy(t);
}

static struct live_weight *cell_at(struct live_cells *c, uint32_t thread, uint32_t place, uint64_t serial)
{
    struct live_weight *weights = live_cells_at(c, thread, &place, serial);

    assert_non_null(weights);
    return weights;
}

/* Cells whose threads come and go are folded, others stay as they are. */
TEST(cells_fold)
{
    struct live_cells c = {0};
    uint32_t threads[] = {0, 0, 1};

    cell_at(&c, 1, 7, 1)->self = 5;
    cell_at(&c, 1, 7, 1)->total = 9;
    cell_at(&c, 2, 7, 1)->self = 3;
    live_cells_end_interval(&c, 1);
    cell_at(&c, 2, 7, 2)->self = 4;
    live_cells_end_interval(&c, 2);
    assert_true(live_cells_renumber(&c, threads, false, 2));
    assert_int_equal(c.list.count, 2);
    assert_int_equal(c.list.data[0].thread, LIVE_OTHERS);
    assert_int_equal(c.list.data[0].all[0].self, 5);
    assert_int_equal(c.list.data[1].thread, 1);
    assert_int_equal(c.list.data[1].all[0].self, 7);
    assert_int_equal(live_cell_now(&c.list.data[1], 2, 0).self, 4);
    assert_int_equal(live_cell_now(&c.list.data[0], 2, 0).self, 0);
    assert_true(live_cells_renumber(&c, threads, true, 2)); /* what was idle is of others, and thread 1 became thread 0 */
    assert_int_equal(c.list.data[0].place, LIVE_OTHERS);
    assert_int_equal(c.list.data[0].all[0].self, 5);
    assert_int_equal(c.list.data[0].all[0].total, 5);
    assert_int_equal(c.list.data[1].place, 7);
    live_cells_deinit(&c);
}

/* Where there is no room for the cells of a thread, its stacks count once among others, however deep they are. */
TEST(others_once)
{
    enum { DEEP = 40, THREADS = 1700 };
    static struct emit_frame frames[DEEP];
    static struct emit_stack stacks[DEEP];
    static struct emit_thread threads[THREADS];
    static char names[DEEP][16];
    struct emit_model model = live_model;
    struct live_tally *t = new_tally();
    uint64_t self = 0, total = 0;

    model.frames = frames;
    model.stacks = stacks;
    model.threads = threads;
    model.frame_count = model.stack_count = DEEP;
    model.thread_count = THREADS;
    for (uint32_t i = 0; i < DEEP; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        frames[i] = (struct emit_frame){.kind = EMIT_PYTHON, .function = names[i], .file = "/srv/app.py", .module = "", .line = i + 1};
        stacks[i] = (struct emit_stack){i ? i - 1 : EMIT_NO_STACK, i, i + 1};
    }
    for (uint32_t i = 0; i < THREADS; i++)
        threads[i] = (struct emit_thread){0, 1000 + i, "t"};
    assert_null(live_tally_model(t, &model));
    for (uint32_t i = 0; i < THREADS; i++)
        add_sample(t, 1, LIVE_EVENT_CPU, i, DEEP - 1);
    pass_time(t, 1000);
    const struct live_cells *cells = live_tally_cells(t, LIVE_BY_FUNCTION);
    assert_int_equal(cells->list.count, LIVE_CELLS_MAX + 1);
    for (size_t i = 0; i < cells->list.count; i++) {
        const struct live_cell *cell = &cells->list.data[i];
        self += cell->all[LIVE_RAN].self;
        if (cell->thread == LIVE_OTHERS && cell->place == LIVE_OTHERS)
            total = cell->all[LIVE_RAN].total;
    }
    assert_int_equal(self, (uint64_t)THREADS * 10 * NS_PER_MS);
    assert_true(total > 0 && total < self / 10);
    assert_null(live_tally_model(t, NULL));
    live_tally_destroy(t);
}

static void tick(struct live_tally *t, uint64_t ms)
{
    assert_null(live_tally_clock(t, 1000 * NS_PER_S + ms * NS_PER_MS));
}

/* A recorder that says until when it has written all ends intervals; what it writes before that belongs to them. */
TEST(paced)
{
    struct live_tally *t = new_tally();
    const struct live_figures *f = live_tally_figures(t);

    tick(t, 0);
    tick(t, 1000);
    uint64_t serial = f->serial;
    assert_int_equal(f->all.samples, 0);
    for (uint64_t second = 1; second < 4; second++) {
        for (uint64_t event = 0; event < 2; event++) { /* what is of one event comes behind all of the other */
            for (uint64_t at = 100; at < 1000; at += 100)
                add_sample(t, second * 1000 + at, event ? LIVE_EVENT_WAITS : LIVE_EVENT_CPU, 0, STACK_WORK);
        }
        pass_time(t, second * 1000 + 1500); /* what else is in the trace */
        assert_int_equal(f->serial, serial);
        tick(t, second * 1000 + 1000 - second); /* a little early */
        assert_int_equal(f->serial, ++serial);
        assert_int_equal(f->all.samples, 9);
        assert_int_equal(f->length_ns, 999 * NS_PER_MS);
    }
    /* The last one lasts as long as the recording. */
    live_tally_last(t, 1000 * NS_PER_S + 4800 * NS_PER_MS);
    add_sample(t, 4500, LIVE_EVENT_CPU, 0, STACK_WORK);
    assert_null(live_tally_end(t, "over"));
    assert_int_equal(f->serial, serial + 1);
    assert_int_equal(f->all.samples, 1);
    assert_null(live_tally_model(t, NULL));
    live_tally_destroy(t);
}

/* A file has two clocks where an epoch begins, and perhaps epochs that follow soon on each other: samples' times count there. */
TEST(clocks_of_a_file)
{
    struct live_tally *t = new_tally();
    const struct live_figures *f = live_tally_figures(t);

    tick(t, 0);
    tick(t, 0);
    tick(t, 1);
    uint64_t serial = f->serial;
    for (uint64_t second = 1; second <= 3; second++)
        pass_time(t, second * 1000);
    assert_int_equal(f->serial, serial + 3);
    tick(t, 3500); /* an epoch, and another one soon after */
    tick(t, 4500);
    serial = f->serial;
    for (uint64_t second = 5; second <= 9; second++)
        pass_time(t, second * 1000);
    assert_int_equal(f->serial, serial);
    for (uint64_t second = 10; second <= 13; second++)
        pass_time(t, second * 1000);
    assert_int_equal(f->serial, serial + 4);
    assert_null(live_tally_model(t, NULL));
    live_tally_destroy(t);
}

/* Losses are those of samples, and times may be nonsense. */
TEST(losses)
{
    struct live_tally *t = new_tally();

    live_tally_loss(t, LOSS_ring_full, 7);
    live_tally_loss(t, LOSS_python_torn, 3); /* the sample is there */
    live_tally_loss(t, 1000000, 2);
    pass_time(t, 1000);
    assert_int_equal(live_tally_figures(t)->lost_by[LOSS_ring_full], 7);
    assert_int_equal(live_tally_figures(t)->lost, 7 + (loss_class_is_sample(trace_loss_class(1000000)) ? 2 : 0));
    live_tally_time(t, UINT64_MAX);
    add_sample(t, 2000, LIVE_EVENT_CPU, 0, STACK_WORK);
    live_tally_time(t, 0);
    assert_null(live_tally_end(t, ""));
    live_tally_destroy(t);
}
