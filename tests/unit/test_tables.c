/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables in memory that is too small for all of them, with the worker at work. A
 * build with CFLAGS=-fsanitize=thread holds the two threads against each other.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/binary/table_space.h"
#include "capture/binary/tables.h"
#include "capture/host/procfs_maps.h"
#include "formats/base/clock.h"
#include "formats/trace/trace.h"

STARTS_THREADS;

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
    uint32_t words; /* of the largest */
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
        modules_settle(l->modules, now_ns() + 60 * NS_PER_S); /* on a busy machine the worker is not waited for */
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
        keep_largest(&l->words, (uint32_t)table_words_of(library->table));
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

/* Where the sampler finds it, too. */
static bool lies_in(const struct unwind_table *view, const struct tables_memory *memory)
{
    const uint64_t *rows = (const uint64_t *)view->rows;

    return rows >= memory->words.words && rows < memory->words.words + memory->words.count;
}

static struct module_asker this_process(void)
{
    return (struct module_asker){.pid = getpid(), .life = 1};
}

static bool view_of(struct tables *t, const struct library *l, uint64_t time_ns, struct unwind_table *view)
{
    uint64_t base;
    uint32_t reason;

    const struct module_asker asker = this_process();
    OK(tables_view(t, &asker, &l->mapping, time_ns, view, &base, &reason));
    if (reason) {
        assert_true(reason == LOSS_table_missing || reason == LOSS_table_no_room);
        return false;
    }
    check_view(view, l->table);
    return true;
}

/* What was used STEP_NS ago is cold, and what was taken out then is free. */
#define STEP_NS (20 * NS_PER_S)

/*
 * The same, when the worker has built the table, for which pycap does not wait long: under a sanitizer that takes seconds.
 * A table that found no room is asked for again later, so the clock goes on.
 */
static bool view_when_built(struct tables *t, const struct library *l, uint64_t *time_ns, struct unwind_table *view)
{
    for (uint64_t until_ns = now_ns() + 60 * NS_PER_S; now_ns() < until_ns; usleep(5000)) {
        if (view_of(t, l, *time_ns, view))
            return true;
        *time_ns += STEP_NS;
    }
    return false;
}

/* There is room for one large table. While the worker builds, what is served is right, and the rest is said to be missing. */
static uint64_t view_while_building(struct tables *t, const struct libraries *l, uint64_t time_ns)
{
    struct unwind_table view;

    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < l->count; i++) {
            struct wire_mapping mapping;
            const struct module_asker asker = this_process();
            OK(tables_map(t, &asker, &l->list[i].mapping, time_ns, true, &mapping));
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

    for (uint32_t i = 0; i < l->count; i++)
        assert_true(view_when_built(t, &l->list[i], &time_ns, &view));
    for (uint32_t i = 0; i < 2 * l->count; i++)
        OK(tables_poll(t, time_ns += STEP_NS));
    for (uint32_t i = 0; i < l->count; i++) {
        time_ns += STEP_NS;
        assert_true(view_when_built(t, &l->list[i], &time_ns, &view));
        served_waiting += !lies_in(&view, memory);
        for (uint32_t k = 0; k < l->count; k++) /* each takes one cold table out, until there is room */
            OK(tables_poll(t, time_ns += STEP_NS));
        assert_true(view_of(t, &l->list[i], time_ns, &view));
        assert_true(lies_in(&view, memory));
    }
    assert_true(served_waiting > 0);
}

TEST(tables_wait_for_room)
{
    struct libraries l;
    struct tables *t;

    find_libraries(&l);
    struct tables_memory memory = {
        .words = {.words = calloc(l.words, sizeof *memory.words.words), .count = l.words, .max = l.words},
        .modules = calloc(MODULES_MAX, sizeof *memory.modules),
        .module_count = MODULES_MAX,
    };
    assert_true(memory.words.words && memory.modules);
    OK(tables_create(&memory, l.modules, &t));
    view_one_by_one(t, &l, &memory, view_while_building(t, &l, 1000 * NS_PER_S));
    tables_destroy(t);
    free(memory.words.words);
    free(memory.modules);
    free_libraries(&l);
}

/* ---- copies of one library ---- */

#define LIBRARY "/lib/x86_64-linux-gnu/libm.so.6"
enum { COPIES = 4, COPY_WORDS = 1 << 18 };

struct copies {
    char dir[64];
    struct modules *modules;
    struct tables *tables;
    struct tables_memory memory;
    struct library copy[COPIES];
    char *paths[COPIES];
};

/* Turns some rules of the kind "the frame's address is the stack pointer and so much" into wrong ones. */
static void change_rules(uint8_t *data, size_t len, uint8_t offset)
{
    uint32_t changed = 0;

    for (size_t i = 0; i + 40 < len && changed < 10000; i++) {
        /* advance_loc, def_cfa_offset */
        if (data[i] >= 0x41 && data[i] < 0x48 && data[i + 1] == 0x0e && data[i + 2] == 16) {
            data[i + 2] = offset;
            changed++;
        }
    }
    assert_true(changed > 0);
}

/* Copies the library into another file and maps it; with `change`, its rules have that offset. */
static void make_copy(struct copies *c, uint32_t at, uint8_t change)
{
    struct library *library = &c->copy[at];
    struct stat st;

    assert_true(asprintf(&c->paths[at], "%s/%u.so", c->dir, at) > 0);
    int in = open(LIBRARY, O_RDONLY | O_CLOEXEC), out = open(c->paths[at], O_RDWR | O_CREAT | O_CLOEXEC, 0700);
    assert_true(in >= 0 && out >= 0 && !fstat(in, &st));
    uint8_t *data = malloc((size_t)st.st_size);
    assert_non_null(data);
    assert_int_equal(pread(in, data, (size_t)st.st_size, 0), st.st_size);
    if (change)
        change_rules(data, (size_t)st.st_size, change);
    assert_int_equal(write(out, data, (size_t)st.st_size), st.st_size);
    free(data);
    close(in);
    assert_int_equal(fstat(out, &st), 0);
    void *address = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, out, 0);
    assert_ptr_not_equal(address, MAP_FAILED);
    close(out);
    library->mapping = (struct code_mapping){.address = (uintptr_t)address,
                                             .length = (uint64_t)st.st_size,
                                             .device_major = major(st.st_dev),
                                             .device_minor = minor(st.st_dev),
                                             .inode = st.st_ino,
                                             .path = c->paths[at]};
    OK(modules_find(c->modules, &(struct module_asker){.pid = getpid()}, &library->mapping, &library->mapping.module));
    assert_non_null(library->mapping.module);
    modules_settle(c->modules, now_ns() + 60 * NS_PER_S);
}

static void copies_init(struct copies *c, uint32_t words)
{
    *c = (struct copies){.dir = "/tmp/pycap-test-tables-XXXXXX"};
    assert_non_null(mkdtemp(c->dir));
    c->memory = (struct tables_memory){
        .words = {.words = calloc(words, sizeof *c->memory.words.words), .count = words, .max = words},
        .modules = calloc(MODULES_MAX, sizeof *c->memory.modules),
        .module_count = MODULES_MAX,
    };
    assert_true(c->memory.words.words && c->memory.modules);
    OK(modules_create(&c->modules));
    OK(tables_create(&c->memory, c->modules, &c->tables));
}

static void copies_deinit(struct copies *c)
{
    tables_destroy(c->tables);
    modules_destroy(c->modules);
    for (uint32_t i = 0; i < COPIES; i++) {
        if (!c->paths[i])
            continue;
        munmap((void *)(uintptr_t)c->copy[i].mapping.address, c->copy[i].mapping.length);
        unlink(c->paths[i]);
        free(c->paths[i]);
    }
    rmdir(c->dir);
    free(c->memory.words.words);
    free(c->memory.modules);
}

/* Views a copy's table for a process until it is there; at most so many times. False: it got none. */
static bool view_copy(struct copies *c, uint32_t at, pid_t pid, uint64_t *time_ns, uint32_t tries)
{
    struct unwind_table view;
    uint64_t base;
    uint32_t reason = 0;

    for (uint32_t i = 0; i < tries; i++) {
        OK(tables_view(c->tables, &(struct module_asker){.pid = pid, .life = (uint64_t)pid}, &c->copy[at].mapping, *time_ns += NS_PER_MS, &view, &base, &reason));
        if (!reason && lies_in(&view, &c->memory))
            return true;
        usleep(1000);
    }
    return false;
}

TEST(equal_tables_lie_once)
{
    uint64_t time_ns = 1000 * NS_PER_S;
    struct copies c;

    if (access(LIBRARY, R_OK))
        skip();
    copies_init(&c, COPY_WORDS);
    make_copy(&c, 0, 120); /* the forged one comes first */
    make_copy(&c, 1, 0);
    make_copy(&c, 2, 0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct elf_identity *id = &c.copy[i].mapping.module->identity;
        assert_true(elf_identity_is(id, ELF_ID_BUILD_ID, c.copy[0].mapping.module->identity.build_id, id->build_id_len));
        assert_true(view_copy(&c, i, 1, &time_ns, 10000));
    }
    const struct wire_module *m = c.memory.modules;
    assert_int_not_equal(m[0].row_start, m[1].row_start);
    assert_true(m[1].row_count > 0);
    assert_int_equal(m[1].row_start, m[2].row_start);
    assert_int_equal(m[1].row_count, m[2].row_count);
    copies_deinit(&c);
}

/* The memory is full with tables of one process, all in use. Another's gets in nevertheless. */
TEST(who_has_most_gives)
{
    uint64_t time_ns = 1000 * NS_PER_S;
    struct unwind_table *table;
    struct copies c;

    if (access(LIBRARY, R_OK))
        skip();
    int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
    OK(unwind_table_build(fd, LIBRARY, NULL, &table));
    close(fd);
    uint32_t words = (uint32_t)table_words_of(table);
    unwind_table_destroy(table);
    copies_init(&c, 3 * words + words / 2); /* for three tables, not for four */
    for (uint32_t i = 0; i < 3; i++) {
        make_copy(&c, i, (uint8_t)(96 + 8 * i));
        assert_true(view_copy(&c, i, 1, &time_ns, 10000));
    }
    make_copy(&c, 3, 0);
    assert_false(view_copy(&c, 3, 1, &time_ns, 30)); /* one more of its own */
    time_ns += 11 * NS_PER_S; /* it is tried again after a while */
    for (uint32_t i = 0; i < 3; i++)
        assert_true(view_copy(&c, i, 1, &time_ns, 1));
    assert_true(view_copy(&c, 3, 2, &time_ns, 10000));
    copies_deinit(&c);
}

/* Nobody's table would make room for it: more memory would. */
TEST(a_table_that_is_too_large)
{
    uint64_t base, time_ns = 1000 * NS_PER_S;
    struct unwind_table view;
    uint32_t reason = 0;
    struct copies c;

    if (access(LIBRARY, R_OK))
        skip();
    copies_init(&c, 100);
    make_copy(&c, 0, 0);
    for (uint32_t i = 0; i < 50; i++) {
        OK(tables_view(c.tables, &(struct module_asker){.pid = 1, .life = 1}, &c.copy[0].mapping, time_ns += NS_PER_MS, &view, &base, &reason));
        assert_true(reason == LOSS_table_no_room || (i < 49 && reason == LOSS_table_missing));
        usleep(1000);
    }
    assert_int_equal(tables_wants(c.tables)->most, 200); /* it was not built to its end */
    assert_string_equal(tables_wants(c.tables)->left_out[0].name, "0.so");
    assert_true(tables_wants(c.tables)->left_out[0].more);
    assert_int_equal(c.memory.modules[0].row_start, 0); /* not WIRE_TABLE_NONE: the sampler says the same */
    copies_deinit(&c);
}

/*
 * There is room for one of two that are used by turns. Who is in stays, and the other is not built in vain; when their turns become
 * longer they change places once, and then no more, for each that comes back stays for longer.
 */
TEST(two_by_turns)
{
    uint64_t time_ns = 1000 * NS_PER_S, base;
    struct unwind_table view;
    uint32_t in[] = {0, 0}, reason;
    struct copies c;

    if (access(LIBRARY, R_OK))
        skip();
    copies_init(&c, COPY_WORDS);
    make_copy(&c, 0, 96);
    make_copy(&c, 1, 104);
    assert_true(view_copy(&c, 0, 1, &time_ns, 10000));
    uint32_t words = table_space_words(&c.memory.modules[0]);
    tables_destroy(c.tables);
    memset(c.memory.modules, 0, MODULES_MAX * sizeof *c.memory.modules);
    c.memory.words.count = c.memory.words.max = words + words / 2;
    OK(tables_create(&c.memory, c.modules, &c.tables));
    assert_true(view_copy(&c, 0, 1, &time_ns, 10000));
    for (int i = 0; i < 40; i++) {
        assert_true(view_copy(&c, 0, 1, &time_ns, 1));
        time_ns += 3 * NS_PER_S;
        assert_false(view_copy(&c, 1, 1, &time_ns, 3));
        time_ns += 3 * NS_PER_S;
    }
    OK(tables_view(c.tables, &(struct module_asker){.pid = 1, .life = 1}, &c.copy[1].mapping, time_ns, &view, &base, &reason));
    assert_int_equal(reason, LOSS_table_no_room);
    assert_in_range(tables_wants(c.tables)->most, 2 * words - words / 16, 2 * words + words / 16);
    assert_string_equal(tables_wants(c.tables)->left_out[0].name, "1.so");
    for (int i = 0; i < 40; i++) {
        in[0] += view_copy(&c, 0, 1, &time_ns, 30);
        time_ns += 15 * NS_PER_S;
        in[1] += view_copy(&c, 1, 1, &time_ns, 30);
        time_ns += 15 * NS_PER_S;
    }
    assert_true((in[0] > 35 && in[1] < 5) || (in[1] > 35 && in[0] < 5));
    copies_deinit(&c);
}

static bool is_second(void *ctx, uint32_t number)
{
    (void)ctx;
    return number == 1;
}

/* There are more files than numbers: those that nobody uses any more make room. */
TEST(numbers_are_given_again)
{
    uint64_t time_ns = 1000 * NS_PER_S;
    uint32_t count;
    struct copies c;

    if (access(LIBRARY, R_OK))
        skip();
    copies_init(&c, COPY_WORDS);
    tables_destroy(c.tables);
    c.memory.module_count = 2;
    OK(tables_create(&c.memory, c.modules, &c.tables));
    for (uint32_t i = 0; i < 3; i++)
        make_copy(&c, i, (uint8_t)(96 + 8 * i));
    assert_true(view_copy(&c, 0, 1, &time_ns, 10000));
    assert_true(view_copy(&c, 1, 1, &time_ns, 10000));
    assert_int_equal(tables_lacked(c.tables), 0);
    assert_false(view_copy(&c, 2, 1, &time_ns, 1));
    assert_int_equal(tables_lacked(c.tables), 1);
    uint32_t rows = c.memory.modules[0].row_start;
    OK(tables_reclaim(c.tables, is_second, NULL, time_ns, &count));
    assert_int_equal(count, 1);
    assert_int_equal(c.memory.modules[0].row_count, 0);
    assert_true(view_copy(&c, 2, 1, &time_ns, 10000));
    assert_int_not_equal(c.memory.modules[0].row_start, rows); /* where a sample may still read nothing is laid */
    assert_true(view_copy(&c, 1, 1, &time_ns, 1));
    assert_false(view_copy(&c, 0, 1, &time_ns, 1));
    copies_deinit(&c);
}
