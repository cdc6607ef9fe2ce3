/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables in arrays that are too small for all of them, with the worker at work; and the space in such arrays. A
 * build with CFLAGS=-fsanitize=thread holds the two threads against each other.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/binary/extents.h"
#include "capture/binary/tables.h"
#include "capture/host/procfs_maps.h"
#include "formats/base/clock.h"
#include "formats/trace/trace.h"

/* ---- space ---- */

static uint32_t take(struct extents *e, uint32_t count)
{
    uint32_t start;

    assert_true(extents_take(e, count, &start));
    return start;
}

static void test_space_waits(void **state)
{
    struct extents e;
    uint32_t start;

    (void)state;
    assert_true(extents_init(&e, 30));
    assert_int_equal(take(&e, 10), 0);
    assert_int_equal(take(&e, 10), 10);
    assert_int_equal(take(&e, 10), 20);
    assert_false(extents_take(&e, 1, &start));
    /* Given back out of order: each is free by its own time, not by that of what was given back before it. */
    assert_true(extents_give(&e, 20, 10, 300));
    assert_true(extents_give(&e, 0, 10, 100));
    assert_true(extents_give(&e, 10, 10, 200));
    for (size_t i = 1; i < e.waiting.count; i++)
        assert_true(e.waiting.data[i - 1].time_ns <= e.waiting.data[i].time_ns);
    assert_true(extents_free_after_grace(&e, 100));
    assert_false(extents_take(&e, 1, &start));
    assert_true(extents_free_after_grace(&e, 101));
    assert_int_equal(e.used, 20);
    assert_true(extents_free_after_grace(&e, 201));
    assert_int_equal(take(&e, 20), 0);
    assert_true(extents_free_after_grace(&e, 301));
    assert_int_equal(take(&e, 10), 20);
    extents_deinit(&e);
}

/* What nobody has seen comes back at once, whatever else is waiting. */
static void test_space_returned(void **state)
{
    struct extents e;
    uint32_t start;

    (void)state;
    assert_true(extents_init(&e, 30));
    assert_int_equal(take(&e, 10), 0);
    assert_int_equal(take(&e, 20), 10);
    assert_true(extents_give(&e, 0, 10, 500));
    extents_return(&e, 10, 20);
    assert_int_equal(e.used, 10);
    assert_int_equal(e.waiting.count, 1);
    assert_int_equal(take(&e, 20), 10);
    assert_false(extents_take(&e, 1, &start));
    extents_return(&e, 0, 0);
    assert_true(extents_free_after_grace(&e, 501));
    assert_int_equal(take(&e, 10), 0);
    extents_deinit(&e);
}

/* ---- tables ---- */

enum { MODULES_MAX = 12, ROUNDS = 6 };

struct library {
    struct code_mapping mapping;
    struct unwind_table *table; /* what its table has to be */
};

struct libraries {
    struct modules *modules;
    struct procfs_mapping maps[MODULES_MAX];
    struct library list[MODULES_MAX];
    uint32_t count;
    uint32_t rows, index, wide; /* of the largest */
};

static void keep_largest(uint32_t *largest, uint32_t count)
{
    *largest = count > *largest ? count : *largest;
}

/* The binaries that this program itself has mapped. */
static void find_libraries(struct libraries *l)
{
    *l = (struct libraries){0};
    OK(modules_create(&l->modules));
    struct procfs_maps maps;
    OK(procfs_maps_open(getpid(), &maps));
    while (l->count < MODULES_MAX && procfs_maps_next(&maps, &l->maps[l->count])) {
        const struct procfs_mapping *m = &l->maps[l->count];
        struct library *library = &l->list[l->count];
        struct error *err;
        if (m->path[0] != '/')
            continue;
        *library = (struct library){.mapping = {.address = m->start,
                                                .length = m->end - m->start,
                                                .file_offset = m->file_offset,
                                                .device_major = m->device_major,
                                                .device_minor = m->device_minor,
                                                .inode = m->inode,
                                                .path = m->path}};
        OK(modules_find(l->modules, &(struct module_asker){.pid = getpid()}, &library->mapping, &library->mapping.module));
        if (!library->mapping.module || library->mapping.module->kind != TRACE_MODULE_ELF)
            continue;
        int fd = open(m->path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        err = unwind_table_build(fd, m->path, NULL, &library->table);
        close(fd);
        error_destroy(err);
        if (err || !library->table->row_count) {
            unwind_table_destroy(library->table);
            continue;
        }
        keep_largest(&l->rows, library->table->row_count);
        keep_largest(&l->index, library->table->index_count);
        keep_largest(&l->wide, library->table->wide_count);
        l->count++;
    }
    procfs_maps_close(&maps);
    assert_true(l->count > 3);
}

static void free_libraries(struct libraries *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        unwind_table_destroy(l->list[i].table);
    modules_destroy(l->modules);
}

static void check_view(const struct unwind_table *view, const struct unwind_table *expected)
{
    assert_int_equal(view->row_count, expected->row_count);
    assert_int_equal(view->index_count, expected->index_count);
    assert_int_equal(view->wide_count, expected->wide_count);
    assert_memory_equal(view->rows, expected->rows, view->row_count * sizeof *view->rows);
    assert_memory_equal(view->index, expected->index, view->index_count * sizeof *view->index);
}

static bool view_of(struct tables *t, const struct library *l, uint64_t time_ns, struct unwind_table *view)
{
    uint64_t base;
    uint32_t reason;

    OK(tables_view(t, getpid(), &l->mapping, time_ns, view, &base, &reason));
    if (reason) {
        assert_int_equal(reason, LOSS_table_missing);
        return false;
    }
    check_view(view, l->table);
    return true;
}

/* What was used STEP_NS ago is cold, and what was taken out then is free. */
#define STEP_NS (20 * NS_PER_S)

/* There is room for one large table. While the worker builds, what is served is right, and the rest is said to be missing. */
static uint64_t view_while_building(struct tables *t, const struct libraries *l, uint64_t time_ns)
{
    struct unwind_table view;

    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < l->count; i++) {
            struct wire_mapping mapping;
            OK(tables_map(t, getpid(), &l->list[i].mapping, time_ns, true, &mapping));
            assert_int_not_equal(mapping.module, WIRE_MODULE_NONE);
        }
        for (uint32_t i = 0; i < l->count; i++)
            view_of(t, &l->list[i], time_ns += STEP_NS, &view);
    }
    return time_ns;
}

/* Nothing is being built any more: each table that is asked for is served, from where it waits for room if need be. */
static void view_one_by_one(struct tables *t, const struct libraries *l, const struct tables_memory *memory, uint64_t time_ns)
{
    uint32_t served_waiting = 0;
    struct unwind_table view;

    for (uint32_t i = 0; i < 2 * l->count; i++)
        OK(tables_poll(t, time_ns += STEP_NS));
    for (uint32_t i = 0; i < l->count; i++) {
        assert_true(view_of(t, &l->list[i], time_ns += STEP_NS, &view));
        served_waiting += view.rows < memory->rows || view.rows >= memory->rows + memory->row_count;
        for (uint32_t k = 0; k < l->count; k++) /* each takes one cold table out, until there is room */
            OK(tables_poll(t, time_ns += STEP_NS));
        assert_true(view_of(t, &l->list[i], time_ns, &view));
        assert_true(view.rows >= memory->rows && view.rows < memory->rows + memory->row_count);
    }
    assert_true(served_waiting > 0);
}

static void test_tables_wait_for_room(void **state)
{
    struct libraries l;
    struct tables *t;

    (void)state;
    find_libraries(&l);
    struct tables_memory memory = {
        .rows = calloc(l.rows, sizeof *memory.rows),
        .index = calloc(l.index, sizeof *memory.index),
        .wide = calloc(l.wide + 1, sizeof *memory.wide),
        .modules = calloc(MODULES_MAX, sizeof *memory.modules),
        .row_count = l.rows,
        .index_count = l.index,
        .wide_count = l.wide + 1,
        .module_count = MODULES_MAX,
    };
    assert_true(memory.rows && memory.index && memory.wide && memory.modules);
    OK(tables_create(&memory, &t));
    view_one_by_one(t, &l, &memory, view_while_building(t, &l, 1000 * NS_PER_S));
    tables_destroy(t);
    free(memory.rows);
    free(memory.index);
    free(memory.wide);
    free(memory.modules);
    free_libraries(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_space_waits),
        cmocka_unit_test(test_space_returned),
        cmocka_unit_test(test_tables_wait_for_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
