/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of symbols of generated code in the trace: how many bytes of them, and where. The test is itself the process
 * whose /tmp/perf-PID.map is read, and plays several.
 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/host.h"
#include "capture/host/quotas.h"
#include "capture/trace/trace_builder.h"
#include "capture/trace/trace_losses.h"
#include "capture/trace/trace_parts.h"
#include "tests/unit/trace_fixture.h"

enum { PROCESSES = 9, MIB = 1 << 20 };

static const uint64_t burst = 0
#define QUOTA(name, loss, unit, per_second, burst, pool, first) + (QUOTA_##name == QUOTA_perf_map_bytes ? (burst) : 0)
#include "capture/host/quotas.def"
#undef QUOTA
    ;

struct world {
    char path[64];
    struct host host;
    struct settings settings;
    struct process list[PROCESSES];
    struct processes *processes;
    struct trace_writer *writer;
    struct trace_builder *builder;
    int fd;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    snprintf(w->path, sizeof w->path, "/tmp/perf-%d.map", getpid());
    w->fd = memory_file();
    OK(processes_create(&(struct processes_options){0}, NULL, &w->processes));
    OK(trace_writer_create(w->fd, "t", NULL, 1, &w->writer));
    const struct trace_builder_options options = {
        .writer = w->writer, .host = &w->host, .processes = w->processes, .settings = &w->settings};
    OK(trace_builder_create(&options, &w->builder));
    OK(trace_builder_begin_epoch(w->builder, 1));
    for (uint32_t i = 0; i < PROCESSES; i++) {
        w->list[i] = (struct process){.slot = i, .tgid = (uint32_t)getpid(), .exec_generation = i};
        OK(quotas_begin(w->processes->quotas, i, 1000, false));
        struct process_note *n = trace_notes_process(&w->builder->notes, &w->list[i]);
        assert_non_null(n);
        perf_map_file_module(&n->perf_map, &w->list[i], w->writer, w->builder->epoch); /* as a sample in such code does */
    }
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    unlink(w->path);
    trace_builder_destroy(w->builder);
    trace_writer_destroy(w->writer);
    processes_destroy(w->processes);
    close(w->fd);
    free(w);
    return 0;
}

/* Writes a table of `len_bytes` in lines of 64, which compress well or not at all. */
static void write_table(const struct world *w, uint64_t len_bytes, bool random)
{
    FILE *f = fopen(w->path, "we");
    uint64_t seed = 88172645463325252u;

    assert_non_null(f);
    for (uint64_t i = 0; i < len_bytes; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        fputc(i % 64 == 63 ? '\n' : random ? (int)(' ' + seed % 95) : 'x', f);
    }
    assert_int_equal(fclose(f), 0);
}

/* How many tables the trace has, of how many bytes, and how many epochs and process losses of that kind. */
struct found {
    uint64_t tables, bytes, epochs, lost;
};

static struct found finish(struct world *w)
{
    struct found found = {0};
    struct trace_reader *r;
    struct trace_record rec;
    bool more;

    OK(trace_builder_perf_maps(w->builder, 2));
    OK(trace_writer_finish(w->writer));
    lseek(w->fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(w->fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        found.tables += rec.type == TRACE_perf_map;
        found.bytes += rec.type == TRACE_perf_map ? rec.perf_map.text.len_bytes : 0;
    }
    assert_int_equal(trace_reader_stats(r)->damage_count, 0);
    found.epochs = trace_reader_stats(r)->epoch_count;
    trace_reader_close(r);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        uint64_t counts[QUOTA_COUNT] = {0};
        quotas_refused(w->processes->quotas, i, counts);
        found.lost += counts[QUOTA_perf_map_bytes];
    }
    return found;
}

/* More tables than an epoch takes are written in several. */
TEST_WITH(many_begin_epochs, set_up, tear_down)
{
    struct world *w = *state;

    quotas_scale(w->processes->quotas, QUOTA_perf_map_bytes, 100, 1);
    write_table(w, PERF_MAP_MAX_BYTES, false);
    struct found found = finish(w);
    assert_int_equal(found.tables, PROCESSES);
    assert_int_equal(found.bytes, PROCESSES * PERF_MAP_MAX_BYTES);
    assert_int_equal(found.epochs, 2);
    assert_int_equal(found.lost, 0);
}

/* While nothing can be written they are counted; when it can, they are written. */
TEST_WITH(reader_that_stopped, set_up, tear_down)
{
    struct world *w = *state;

    write_table(w, 6400, false);
    trace_writer_hold(w->writer, true);
    OK(trace_builder_perf_maps(w->builder, 2));
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_perf_map_cut], PROCESSES);
    trace_writer_hold(w->writer, false);
    struct found found = finish(w);
    assert_int_equal(found.tables, PROCESSES);
    assert_int_equal(found.epochs, 2);
}

/* What counts is what they take in the file. */
TEST_WITH(quota_of_what_is_stored, set_up, tear_down)
{
    struct world *w = *state;
    uint64_t bytes = burst / 2 / MIB * MIB;

    write_table(w, bytes, true);
    struct found found = finish(w);
    assert_in_range(found.tables, 2, PROCESSES - 1);
    assert_int_equal(found.lost, PROCESSES - found.tables);
    assert_true(found.bytes <= 4 * burst);
}

/* A table that compresses is still read, which costs time. */
TEST_WITH(quota_of_what_is_read, set_up, tear_down)
{
    struct world *w = *state;

    write_table(w, PERF_MAP_MAX_BYTES, false);
    struct found found = finish(w);
    assert_in_range(found.tables, 1, PROCESSES - 1);
    assert_int_equal(found.lost, PROCESSES - found.tables);
}

/* One that does not fit even alone is left out. */
TEST_WITH(one_too_large, set_up, tear_down)
{
    struct world *w = *state;

    write_table(w, PERF_MAP_MAX_BYTES, true);
    struct found found = finish(w);
    assert_int_equal(found.tables, 0);
    assert_int_equal(found.lost, PROCESSES);
}
