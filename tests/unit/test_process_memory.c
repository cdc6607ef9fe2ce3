/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples lie between readings, and what it means when they do not add up to what a process grew by. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/summary/memory_table.h"
#include "symbolize/summary/process_memory.h"

enum { PAGE = 4096, CPUS = 2 };

struct world {
    struct summary s;
    struct trace_process_memory now;
};

static void set_up(struct world *w, const char *event, uint64_t period)
{
    const struct summary_file file = {.kernel = "6.18.1", .cpu_count = CPUS};
    const struct process_row process = {.pid = 10, .parent_pid = 1, .comm = "p", .name = "p", .title = "", .name_and_title = "p", .container = ""};
    const enum memory_event memory = process_memory_event(event, strcmp(event, "memory-growth") ? "faults" : "bytes");
    const struct event_row row = {.name = event, .memory = memory, .period = period,
                                  .bytes = memory == MEMORY_FAULTS ? PAGE : 0};

    *w = (struct world){.now = {.process = 1, .time_ns = 100}};
    assert_true(VEC_PUSH(&w->s.files, file) && VEC_PUSH(&w->s.processes, process) && VEC_PUSH(&w->s.events, row));
}

static void tear_down(struct world *w)
{
    VEC_DEINIT(&w->s.files);
    VEC_DEINIT(&w->s.processes);
    VEC_DEINIT(&w->s.events);
    VEC_DEINIT(&w->s.losses);
    VEC_DEINIT(&w->s.memory);
    VEC_DEINIT(&w->s.memory_of_process);
    map_deinit(&w->s.memory_of);
}

static void read_at(struct world *w, uint64_t time_ns)
{
    w->now.time_ns = time_ns;
    assert_true(process_memory_reading(&w->s, 0, &w->now));
}

static void sample_at(struct world *w, uint64_t time_ns, uint64_t value)
{
    process_memory_sample(&w->s, 1, 0, &(struct trace_sample){.time_ns = time_ns, .value = value});
}

static enum memory_finding finding(const struct world *w)
{
    return process_memory_account(&w->s, NULL, &w->s.memory.data[0], 0).finding;
}

/* Samples may come behind the reading that is younger than they are, and before the one that is older. */
TEST(times)
{
    struct world w;

    set_up(&w, "page-faults", 1);
    sample_at(&w, 150, 1000); /* of a process that was not read yet */
    read_at(&w, 100);
    sample_at(&w, 99, 1000);
    sample_at(&w, 100, 1);
    sample_at(&w, 200, 2);
    sample_at(&w, 120, 4);
    assert_int_equal(w.s.memory.data[0].events[0].value, 1);
    read_at(&w, 300);
    assert_int_equal(w.s.memory.data[0].events[0].value, 7);
    sample_at(&w, 290, 8);
    sample_at(&w, 301, 1000); /* behind the last reading */
    assert_int_equal(w.s.memory.data[0].events[0].value, 15);
    process_memory_sample(&w.s, 2, 0, &(struct trace_sample){.time_ns = 200, .value = 1}); /* another process */
    process_memory_sample(&w.s, 100, 0, &(struct trace_sample){.time_ns = 200, .value = 1});
    assert_int_equal(w.s.memory.data[0].events[0].value, 15);
    tear_down(&w);
}

/* The next file of a rotation goes on; another recording begins again, and what lies between is not counted. */
TEST(files)
{
    const struct summary_file file = {.kernel = "6.18.1", .cpu_count = CPUS};
    struct world w;

    set_up(&w, "page-faults", 1);
    read_at(&w, 100);
    w.now.anonymous_bytes = 10 * PAGE;
    read_at(&w, 200);
    assert_true(VEC_PUSH(&w.s.files, file));
    read_at(&w, 200);
    sample_at(&w, 150, 3);
    sample_at(&w, 250, 4);
    w.now.anonymous_bytes = 30 * PAGE;
    read_at(&w, 300);
    assert_int_equal(w.s.memory.data[0].change.anonymous, 30 * PAGE);
    assert_int_equal(w.s.memory.data[0].events[0].value, 7);
    assert_int_equal(w.s.memory.data[0].change.time_ns, 200);
    assert_true(VEC_PUSH(&w.s.files, file));
    w.now.anonymous_bytes = 100 * PAGE;
    sample_at(&w, 350, 5);
    read_at(&w, 400);
    sample_at(&w, 350, 5);
    sample_at(&w, 450, 1);
    w.now.anonymous_bytes = 101 * PAGE;
    read_at(&w, 500);
    assert_int_equal(w.s.memory.data[0].change.anonymous, 31 * PAGE);
    assert_int_equal(w.s.memory.data[0].events[0].value, 8);
    assert_int_equal(w.s.memory.count, 1);
    tear_down(&w);
}

/* Grows by `anonymous` pages and `file` ones with so many faults, as samples have it and as the kernel has. */
static enum memory_finding told(struct world *w, int64_t anonymous, int64_t file, uint64_t sampled, uint64_t counted)
{
    read_at(w, w->now.time_ns + 1000); /* another recording, so that nothing is left of the test before */
    w->s.memory.data[0].change = (struct memory_change){0};
    memset(w->s.memory.data[0].events, 0, sizeof w->s.memory.data[0].events);
    sample_at(w, w->now.time_ns + 1, sampled);
    w->now.anonymous_bytes += (uint64_t)anonymous * PAGE;
    w->now.file_bytes += (uint64_t)file * PAGE;
    w->now.minor_faults += counted;
    read_at(w, w->now.time_ns + 2);
    return finding(w);
}

TEST(findings)
{
    const struct process_row child = {.pid = 11, .parent_pid = 10, .comm = "c", .name = "c", .title = "", .name_and_title = "c", .container = ""};
    const struct loss_row loss = {.reason = LOSS_ring_full, .name = "ring_full", .event = "page-faults", .count = 6};
    struct world w;

    set_up(&w, "page-faults", 1);
    w.now.anonymous_bytes = UINT64_C(1) << 40;
    assert_int_equal(told(&w, 1000, 0, 1000, 1000), MEMORY_AGREES);
    assert_int_equal(told(&w, 1000, 0, 1002, 1002), MEMORY_AGREES); /* each CPU has a period that is not over */
    assert_int_equal(told(&w, 1000, 0, 1003, 1003), MEMORY_RETURNED);
    assert_int_equal(told(&w, 1000, 0, 998, 998), MEMORY_AGREES);
    assert_int_equal(told(&w, 1000, 100, 1090, 1090), MEMORY_FILES);
    assert_int_equal(told(&w, 1000, 100, 1200, 1200), MEMORY_RETURNED);
    assert_int_equal(told(&w, -500, 0, 10, 10), MEMORY_RETURNED);
    assert_int_equal(told(&w, 1000, 0, 2, 2), MEMORY_HUGE);
    assert_int_equal(told(&w, 1000, 0, 2, 1000), MEMORY_FILLED);
    assert_true(VEC_PUSH(&w.s.losses, loss));
    assert_int_equal(told(&w, 1000, 0, 990, 1000), MEMORY_LOST);
    assert_int_equal(told(&w, 1000, 0, 2, 2), MEMORY_HUGE); /* so few that were lost do not explain it */
    assert_true(VEC_PUSH(&w.s.processes, child));
    assert_int_equal(told(&w, 0, 0, 500, 500), MEMORY_COPIED);
    tear_down(&w);
    /* At a period of 16, and with counts that each CPU holds back a part of. */
    set_up(&w, "page-faults", 16);
    assert_int_equal(told(&w, 1000, 0, 1280, 1280), MEMORY_AGREES);
    assert_int_equal(told(&w, 1000, 0, 1600, 1600), MEMORY_RETURNED);
    tear_down(&w);
    set_up(&w, "page-faults", 1);
    w.s.files.data[0].kernel = "6.12.3";
    assert_int_equal(told(&w, 1000, 0, 1128, 1128), MEMORY_AGREES);
    assert_int_equal(told(&w, 1000, 0, 1200, 1200), MEMORY_RETURNED);
    tear_down(&w);
}

/* Growth is of mappings: what page faults did does not matter. */
TEST(mappings)
{
    struct world w;

    set_up(&w, "memory-growth", PAGE);
    read_at(&w, 100);
    sample_at(&w, 150, 50 * PAGE);
    w.now.data_bytes = 49 * PAGE;
    w.now.anonymous_bytes = 1000 * PAGE;
    read_at(&w, 200);
    assert_int_equal(finding(&w), MEMORY_AGREES);
    sample_at(&w, 190, 500 * PAGE);
    assert_int_equal(finding(&w), MEMORY_RETURNED);
    const struct memory_account a = process_memory_account(&w.s, NULL, &w.s.memory.data[0], 0);
    assert_int_equal(a.growth_bytes, 49 * PAGE);
    assert_int_equal(a.bytes, 550 * PAGE);
    tear_down(&w);
}

/* Numbers that cannot be do no harm. */
TEST(nonsense)
{
    struct world w;

    set_up(&w, "page-faults", UINT64_MAX);
    w.now = (struct trace_process_memory){1, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    read_at(&w, 1);
    w.now = (struct trace_process_memory){.process = 1};
    read_at(&w, UINT64_MAX);
    sample_at(&w, 2, UINT64_MAX);
    sample_at(&w, 2, UINT64_MAX);
    finding(&w);
    read_at(&w, 1); /* back in time: not counted */
    assert_int_equal(w.s.memory.data[0].last.time_ns, UINT64_MAX);
    char *out = NULL;
    size_t len;
    FILE *stream = open_memstream(&out, &len);
    OK(memory_table_print(&w.s, NULL, true, stream));
    fclose(stream);
    assert_non_null(strstr(out, "page-faults"));
    free(out);
    tear_down(&w);
}
