/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file: what is written is read, the writer recognises what it wrote before,
 * and both say clearly why they cannot go on. Records are tested by walking their
 * table, so a new one is tested by being there.
 */
#include "tests/unit/test.h"
#include "tests/unit/trace_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

TEST(every_record_comes_back)
{
    static const uint32_t block_sizes[] = {1, 100, 5000, 0};
    struct generator g = {.state = 88172645463325252u};
    static struct trace_record written[TYPES * ROUNDS];

    for (size_t k = 0; k < sizeof block_sizes / sizeof block_sizes[0]; k++) {
        struct trace_writer_options options = {.block_max_bytes = block_sizes[k]};
        struct trace_writer *w;
        struct trace_reader *r;
        struct trace_record rec;
        bool more;
        int fd = memory_file();
        OK(trace_writer_create(fd, "t", &options, 5, &w));
        uint32_t count = write_generated(w, &g, written);
        OK(trace_writer_finish(w));
        trace_writer_destroy(w);

        lseek(fd, 0, SEEK_SET);
        OK(trace_reader_open_fd(fd, "t", &r));
        OK(trace_reader_next(r, &rec, &more));
        assert_true(more && rec.type == TRACE_epoch && rec.epoch.number == 0 && rec.epoch.time_ns == 5);
        for (uint32_t i = 0; i < count; i++) {
            OK(trace_reader_next(r, &rec, &more));
            assert_true(more);
            assert_int_equal(rec.type, written[i].type);
            assert_same(trace_record_type(rec.type), record_of(&rec), record_of(&written[i]));
        }
        OK(trace_reader_next(r, &rec, &more));
        assert_false(more);
        const struct trace_reader_stats *stats = trace_reader_stats(r);
        assert_int_equal(stats->damage_count, 0);
        assert_int_equal(stats->record_count, count + 1);
        assert_int_equal(stats->file_bytes, lseek(fd, 0, SEEK_END));
        assert_true(stats->ended);
        trace_reader_close(r);
        close(fd);
    }
    arena_deinit(&g.arena);
}

/* ---- what the writer recognises ---- */

TEST(interning)
{
    struct trace_writer *w;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", NULL, 0, &w));
    assert_int_equal(trace_writer_cstr(w, NULL), 0);
    assert_int_equal(trace_writer_cstr(w, ""), 0);
    assert_int_equal(trace_writer_cstr(w, "a"), 1);
    assert_int_equal(trace_writer_cstr(w, "b"), 2);
    assert_int_equal(trace_writer_string(w, "a", 1), 1);
    /* A string that was put is one more, whatever it says; ids stay in step. */
    struct trace_string put = {.data = {(const uint8_t *)"a", 1}};
    trace_writer_put(w, TRACE_string, &put);
    assert_int_equal(put.id, 3);
    assert_int_equal(trace_writer_cstr(w, "c"), 4);

    /* Frames of all kinds share one count; equal numbers of another kind are another frame. */
    struct trace_native_frame native = {.offset = 7};
    struct trace_python_frame python = {.offset = 7};
    struct trace_kernel_frame kernel = {.address = 7};
    assert_int_equal(trace_writer_intern(w, TRACE_native_frame, &native), 1);
    assert_int_equal(trace_writer_intern(w, TRACE_python_frame, &python), 2);
    assert_int_equal(trace_writer_intern(w, TRACE_kernel_frame, &kernel), 3);
    struct trace_native_frame again = {.id = 99, .offset = 7};
    assert_int_equal(trace_writer_intern(w, TRACE_native_frame, &again), 1);
    assert_int_equal(again.id, 1);

    trace_writer_new_epoch(w, 9);
    assert_int_equal(trace_writer_epoch(w), 1);
    assert_int_equal(trace_writer_cstr(w, "b"), 1);
    assert_int_equal(trace_writer_intern(w, TRACE_kernel_frame, &kernel), 1);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);

    struct buf b = contents(fd);
    struct outcome o = read_bytes(b.data, b.len_bytes);
    assert_int_equal(o.by_epoch[0], 1 + 4 + 3);
    assert_int_equal(o.by_epoch[1], 1 + 2);
    buf_deinit(&b);
    close(fd);
}

TEST(stacks)
{
    struct trace_writer *w;
    struct trace_reader *r;
    struct trace_record rec;
    bool more;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", NULL, 0, &w));
    for (uint64_t i = 0; i < 6; i++)
        trace_writer_intern(w, TRACE_native_frame, &(struct trace_native_frame){.offset = i});
    assert_int_equal(trace_writer_stack(w, NULL, 0), 0);
    assert_int_equal(trace_writer_stack(w, (uint32_t[]){1, 2, 3, 4}, 4), 4);
    assert_int_equal(trace_writer_stack(w, (uint32_t[]){1, 2, 3, 4}, 4), 4);
    assert_int_equal(trace_writer_stack(w, (uint32_t[]){1, 2}, 2), 2);
    assert_int_equal(trace_writer_stack(w, (uint32_t[]){1, 2, 5, 6}, 4), 6);
    assert_int_equal(trace_writer_stack(w, (uint32_t[]){2}, 1), 7);
    assert_int_equal(trace_writer_stack(w, (uint32_t[]){1, 2, 5, 6, 6, 6}, 6), 9);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);

    /* Four records: what a stack shares with known ones is not written again. */
    static const struct {
        uint32_t first, parent, count;
        uint64_t frames[4];
    } expected[] = {{1, 0, 4, {1, 2, 3, 4}}, {5, 2, 2, {5, 6}}, {7, 0, 1, {2}}, {8, 6, 2, {6, 6}}};
    size_t seen = 0;
    lseek(fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        if (rec.type != TRACE_stack)
            continue;
        assert_int_equal(rec.stack.first_id, expected[seen].first);
        assert_int_equal(rec.stack.parent, expected[seen].parent);
        assert_int_equal(rec.stack.frames.count, expected[seen].count);
        assert_memory_equal(rec.stack.frames.values, expected[seen].frames, expected[seen].count * sizeof(uint64_t));
        seen++;
    }
    assert_int_equal(seen, 4);
    trace_reader_close(r);
    close(fd);
}

TEST(samples)
{
    static const struct trace_sample samples[] = {
        {.time_ns = 1000, .thread = 1, .tuple = 1, .cpu = 3},
        {.time_ns = 990, .thread = 1, .tuple = 0, .cpu = 70000, .flags = TRACE_SAMPLE_VALUE, .value = UINT64_MAX},
        {.time_ns = UINT64_MAX, .thread = 1, .tuple = 1, .flags = TRACE_SAMPLE_GIL | TRACE_SAMPLE_GIL_KNOWN},
        {.time_ns = 0, .thread = 1, .tuple = 1, .flags = TRACE_SAMPLE_LABELS, .label_set = 1},
        {.time_ns = 1, .thread = 1, .tuple = 1, .flags = TRACE_SAMPLE_LABELS | TRACE_SAMPLE_VALUE},
        {.time_ns = 2, .thread = 1, .tuple = 1, .label_set = 1},
    };
    enum { COUNT = sizeof samples / sizeof samples[0] };
    struct trace_writer *w;
    struct trace_reader *r;
    struct trace_record rec = {0};
    bool more;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", NULL, 0, &w));
    define_basics(w);
    struct trace_event second = {.period = 5};
    trace_writer_put(w, TRACE_event, &second);
    trace_writer_intern(w, TRACE_label_set, &(struct trace_label_set){.pairs = {(uint64_t[]){1, 2}, 1}});
    for (int i = 0; i < COUNT; i++) {
        trace_writer_sample(w, 1, &samples[i]);
        trace_writer_sample(w, second.id, &samples[COUNT - 1 - i]);
    }
    assert_int_equal(trace_writer_sample_count(w), 2 * COUNT);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);

    lseek(fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(fd, "t", &r));
    for (uint32_t event = 1; event <= 2; event++) {
        do {
            OK(trace_reader_next(r, &rec, &more));
            assert_true(more);
        } while (rec.type != TRACE_samples);
        assert_int_equal(rec.samples.event, event);
        assert_int_equal(rec.samples.count, COUNT);
        struct trace_sample_iter it;
        struct trace_sample got;
        trace_samples_begin(&it, &rec.samples, 77);
        for (int i = 0; i < COUNT; i++) {
            const struct trace_sample *want = &samples[event == 1 ? i : COUNT - 1 - i];
            assert_true(trace_samples_next(&it, &got));
            assert_int_equal(got.time_ns, want->time_ns);
            assert_int_equal(got.thread, want->thread);
            assert_int_equal(got.tuple, want->tuple);
            assert_int_equal(got.cpu, want->cpu);
            assert_int_equal(got.label_set, want->label_set);
            assert_int_equal(got.value, want->flags & TRACE_SAMPLE_VALUE ? want->value : 77);
            assert_int_equal(got.flags & ~TRACE_SAMPLE_LABELS, want->flags & ~TRACE_SAMPLE_LABELS);
        }
        assert_false(trace_samples_next(&it, &got));
    }
    trace_reader_close(r);
    close(fd);
}

/* The samples that the reader checked are those that decoding the record again gives; of very many it keeps none. */
TEST(checked_samples)
{
    static const uint32_t counts[] = {1, 1000, 65536, 65537, 3};
    struct trace_writer_options options = {.block_max_bytes = 4 << 20};
    struct trace_writer *w;
    struct trace_reader *r;
    struct trace_record rec = {0};
    bool more;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", &options, 0, &w));
    define_basics(w);
    trace_writer_intern(w, TRACE_label_set, &(struct trace_label_set){.pairs = {(uint64_t[]){1, 2}, 1}});
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        for (uint32_t i = 0; i < counts[k]; i++)
            trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = i * UINT64_C(1000003) % 77777, .thread = 1, .tuple = i % 2, .cpu = i,
                                                             .flags = i % 3 ? TRACE_SAMPLE_VALUE : 0, .value = i, .label_set = i % 5 == 0});
        trace_writer_flush(w);
    }
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
    lseek(fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(fd, "t", &r));
    for (size_t k = 0; k < sizeof counts / sizeof *counts;) {
        struct trace_sample_iter decoded, checked;
        struct trace_sample x = {0}, y = {0};
        OK(trace_reader_next(r, &rec, &more));
        assert_true(more);
        assert_true(rec.type == TRACE_samples || !rec.checked_samples);
        if (rec.type != TRACE_samples)
            continue;
        assert_int_equal(rec.samples.count, counts[k]);
        assert_int_equal(rec.checked_samples != NULL, counts[k++] <= 65536);
        trace_samples_begin(&decoded, &rec.samples, 77);
        trace_samples_begin_checked(&checked, &rec, 77);
        while (trace_samples_next(&decoded, &x)) {
            assert_true(trace_samples_next(&checked, &y));
            assert_true(x.time_ns == y.time_ns && x.thread == y.thread && x.tuple == y.tuple && x.cpu == y.cpu);
            assert_true(x.flags == y.flags && x.value == y.value && x.label_set == y.label_set);
        }
        assert_false(trace_samples_next(&checked, &y));
    }
    trace_reader_close(r);
    close(fd);
}

/* A sample of a busy capture takes eight bytes before compression. */
TEST(sample_size)
{
    struct buf b = {0};
    uint64_t time_ns = 123456789;

    for (uint32_t i = 0; i < 1000; i++) {
        struct trace_sample s = {.time_ns = time_ns + 100000, .thread = i % 100, .tuple = i, .cpu = i % 64, .flags = 8};
        trace_sample_encode(&b, &s, time_ns);
        time_ns = s.time_ns;
    }
    assert_in_range(b.len_bytes, 6000, 9000);
    buf_deinit(&b);
}

TEST(epoch_due)
{
    struct trace_writer_options options = {.epoch_max_bytes = 1000, .epoch_min_ns = 400, .epoch_max_ns = 500};
    struct trace_writer *w;
    int fd = memory_file();
    char text[600];

    OK(trace_writer_create(fd, "t", &options, 100, &w));
    assert_false(trace_writer_epoch_due(w, 100));
    assert_false(trace_writer_epoch_due(w, 50)); /* a clock that was read earlier */
    assert_false(trace_writer_epoch_due(w, 599));
    assert_true(trace_writer_epoch_due(w, 600));
    memset(text, 'x', sizeof text);
    trace_writer_string(w, text, sizeof text);
    assert_false(trace_writer_epoch_due(w, 100));
    trace_writer_flush(w);
    trace_writer_string(w, text, sizeof text - 1);
    assert_true(trace_writer_epoch_due(w, 100));
    trace_writer_new_epoch(w, 600);
    assert_false(trace_writer_epoch_due(w, 600));
    OK(trace_writer_finish(w));
    /* Once more is harmless; writing on is not possible. */
    OK(trace_writer_finish(w));
    trace_writer_cstr(w, "late");
    assert_true(trace_writer_failed(w));
    trace_writer_destroy(w);

    struct buf b = contents(fd);
    assert_int_equal(read_bytes(b.data, b.len_bytes).stats.damage_count, 0);
    buf_deinit(&b);
    close(fd);
}

/* An epoch of the least age ends when its samples take eight times as many bytes as what they refer to. */
TEST(epoch_ends_when_paid)
{
    struct trace_writer_options options = {.epoch_min_ns = 400, .epoch_max_ns = 4000};
    struct trace_writer *w;
    int fd = memory_file();
    char text[600];
    uint64_t count = 0;

    OK(trace_writer_create(fd, "t", &options, 0, &w));
    define_basics(w);
    memset(text, 'x', sizeof text);
    trace_writer_string(w, text, sizeof text);
    trace_writer_flush(w); /* written or not: what counts is what the epoch holds */
    while (!trace_writer_epoch_due(w, 400)) {
        trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = 100 * count, .thread = 1});
        if (++count % 50 == 0)
            trace_writer_flush(w);
        assert_true(count < 10000);
    }
    assert_in_range(count, 8 * sizeof text / 9, 8 * sizeof text / 3);
    assert_false(trace_writer_epoch_due(w, 399));
    trace_writer_new_epoch(w, 400);
    assert_false(trace_writer_epoch_due(w, 4399));
    assert_true(trace_writer_epoch_due(w, 4400)); /* without a sample, too */
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
    close(fd);
}

/* ---- times of clocks ---- */

enum { TIMES = 4000, PERIOD_NS = 10101010, GRAIN_NS = 4096 };
struct times {
    uint64_t ns[3][TIMES]; /* of samples of the events 1 and 2, and of mappings */
    uint32_t count[3];
};

/* What happens one after the other, at times of any distance, and what of each kind is in the file. */
static void put_times(struct trace_writer *w, struct times *put, uint64_t *time_ns)
{
    uint64_t random = 1;

    for (int i = 0; i < TIMES; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint32_t kind = random >> 60 < 12 ? 0 : 1 + (random >> 60 & 1);
        *time_ns += (random >> 40) % ((random >> 33 & 1) ? 300 : 30000);
        put->ns[kind][put->count[kind]++] = *time_ns;
        if (kind < 2)
            trace_writer_sample(w, kind + 1, &(struct trace_sample){.time_ns = *time_ns, .thread = 1});
        else
            trace_writer_put(w, TRACE_mapping, &(struct trace_mapping){.process = 1, .time_ns = *time_ns, .length = 4096});
    }
}

static void take_times(int fd, struct times *taken)
{
    struct trace_reader *r;
    struct trace_record rec;
    struct trace_sample_iter it;
    struct trace_sample sample;
    bool more;

    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    OK(trace_reader_open_fd(fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        if (rec.type == TRACE_mapping)
            taken->ns[2][taken->count[2]++] = rec.mapping.time_ns;
        if (rec.type != TRACE_samples)
            continue;
        uint32_t kind = rec.samples.event - 1;
        trace_samples_begin(&it, &rec.samples, 1);
        while (trace_samples_next(&it, &sample))
            taken->ns[kind][taken->count[kind]++] = sample.time_ns;
    }
    trace_reader_close(r);
}

/* A clock's times are rounded, all others are exact, and nothing comes before what was before it. */
TEST(times_of_a_clock)
{
    struct times *put = calloc(2, sizeof *put), *taken = put + 1;
    struct trace_writer *w;
    int fd = memory_file();
    uint64_t time_ns = 1000000001;
    uint32_t at[3] = {0}, rounded = 0, kept = 0;

    assert_non_null(put);
    OK(trace_writer_create(fd, "t", NULL, time_ns, &w));
    define_basics(w);
    trace_writer_put(w, TRACE_event, &(struct trace_event){.period = 1});
    trace_writer_clock(w, 1, PERIOD_NS);
    put_times(w, put, &time_ns);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
    take_times(fd, taken);
    for (uint64_t newest_ns = 1000000001; at[0] < put->count[0];) {
        int next = 0;
        for (int kind = 1; kind < 3; kind++)
            next = at[kind] < put->count[kind] && put->ns[kind][at[kind]] < put->ns[next][at[next]] ? kind : next;
        uint64_t was_ns = put->ns[next][at[next]], is_ns = taken->ns[next][at[next]];
        at[next]++;
        assert_true(next ? is_ns == was_ns : is_ns <= was_ns && is_ns + GRAIN_NS > was_ns && is_ns >= newest_ns);
        assert_true(next || is_ns == was_ns || is_ns % GRAIN_NS == 0);
        rounded += is_ns % GRAIN_NS == 0;
        kept += !next && is_ns == was_ns && is_ns % GRAIN_NS;
        newest_ns = next ? was_ns : newest_ns;
    }
    for (int kind = 0; kind < 3; kind++)
        assert_int_equal(put->count[kind], taken->count[kind]);
    assert_true(rounded > TIMES / 4 && kept > TIMES / 16);
    free(put);
    close(fd);
}

/* The finer the interval the finer the times; and what an epoch says of its events ends with it. */
TEST(grains_of_clocks)
{
    static const uint64_t cases[][2] = {{1001001, 256}, {10101010, 4096}, {UINT64_MAX, 4096}, {4096, 2}, {2048, 1}, {2047, 1}, {0, 1}};
    const uint64_t time_ns = UINT64_C(1) << 40 | 0xfff;
    struct times *taken = calloc(1, sizeof *taken);
    struct trace_writer *w;
    int fd = memory_file();

    assert_non_null(taken);
    OK(trace_writer_create(fd, "t", NULL, 0, &w));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (i)
            trace_writer_new_epoch(w, 0);
        define_basics(w);
        trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = time_ns, .thread = 1});
        trace_writer_clock(w, 1, cases[i][0]);
        trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = time_ns, .thread = 1});
    }
    trace_writer_clock(w, 2, 1000);
    assert_true(trace_writer_failed(w)); /* there is no such event */
    trace_writer_destroy(w);
    take_times(fd, taken);
    assert_int_equal(taken->count[0], 2 * (sizeof cases / sizeof *cases - 1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases - 1; i++) {
        assert_int_equal(taken->ns[0][2 * i], time_ns);
        assert_int_equal(taken->ns[0][2 * i + 1], time_ns & -cases[i][1]);
    }
    free(taken);
    close(fd);
}

/* What does not fit into an epoch is left out, and begins no error: the next epoch has room. */
TEST(epoch_full)
{
    enum { LEN = 15 << 20 };
    uint8_t *zeros = calloc(1, LEN);
    struct trace_string record = {.data = {zeros, LEN}};
    struct trace_writer *w;
    int fd = memory_file(), count = 0;

    assert_non_null(zeros);
    OK(trace_writer_create(fd, "t", NULL, 0, &w));
    define_basics(w);
    for (; !trace_writer_epoch_full(w); count++) {
        assert_true(count < 40);
        trace_writer_put(w, TRACE_string, &record);
    }
    assert_int_equal(count, 34); /* of 512 MiB 16 are kept for the end */
    assert_false(trace_writer_failed(w) || trace_writer_full(w));
    assert_true(trace_writer_epoch_due(w, 0));
    assert_int_equal(trace_writer_cstr(w, "more"), 0);
    uint64_t samples = trace_writer_sample_count(w);
    trace_writer_sample(w, 1, &(struct trace_sample){.thread = 1});
    assert_int_equal(trace_writer_sample_count(w), samples);

    trace_writer_new_epoch(w, 1);
    assert_false(trace_writer_epoch_full(w) || trace_writer_epoch_due(w, 1));
    assert_int_equal(trace_writer_cstr(w, "more"), 1);
    while (!trace_writer_epoch_full(w))
        trace_writer_put(w, TRACE_string, &record);
    trace_writer_closing(w);
    assert_int_not_equal(trace_writer_cstr(w, "the end"), 0);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
    struct buf b = contents(fd);
    struct outcome read = read_bytes(b.data, b.len_bytes);
    assert_int_equal(read.stats.damage_count, 0);
    assert_int_equal(read.stats.epoch_count, 2);
    buf_deinit(&b);
    free(zeros);
    close(fd);
}

/* Whatever does not compress: the file keeps to its limit, and what was refused is not taken for known at the end. */
TEST(size_limit)
{
    for (uint64_t most = 4096; most < 4200; most++) {
        struct trace_writer_options options = {.max_bytes = most, .epoch_max_bytes = 1000};
        struct trace_writer *w;
        int fd = memory_file();
        uint32_t seed = (uint32_t)most, strings = 0;
        char text[40];

        OK(trace_writer_create(fd, "t", &options, 0, &w));
        while (!trace_writer_full(w)) {
            for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
            strings += trace_writer_string(w, text, 8 + seed % 32) != 0;
            assert_true(strings < 1000);
        }
        assert_int_equal(trace_writer_string(w, text, sizeof text), 0);
        assert_false(trace_writer_epoch_due(w, 0));
        trace_writer_flush(w);
        assert_in_range(trace_writer_bytes(w), most - 200, most);
        trace_writer_closing(w);
        struct trace_loss loss = {.reason = LOSS_file_full, .name = trace_writer_cstr(w, "file_full"), .count = 1};
        assert_int_equal(loss.name, strings + 1);
        trace_writer_put(w, TRACE_loss, &loss);
        OK(trace_writer_finish(w));
        assert_in_range(trace_writer_bytes(w), most - 200, most + 150);
        trace_writer_destroy(w);
        struct buf b = contents(fd);
        assert_int_equal(read_bytes(b.data, b.len_bytes).stats.damage_count, 0);
        buf_deinit(&b);
        close(fd);
    }
}

/* What breaks a rule of the reader is refused by the writer. */
TEST(writer_keeps_the_rules)
{
    static const char *const texts[] = {
        "t: not written: thread.process: no process is named",
        "t: not written: thread.process: process 5 is not defined",
        "t: not written: stack.frames: frame 9 is not defined",
        "t: not written: sample: event 3 is not defined",
        "t: not written: sample: no thread is named",
        "t: not written: sample: tuple 8 is not defined",
        "t: not written: sample: unknown flags 0x100",
        "t: records of type 1 are not for callers to write",
        "t: records of type 3 define no id",
        "t: not written: module.segments: a list of 99999999 rows is too long",
        "t: a record of 16777238 bytes is longer than a block may be",
        "t: not written: image.data: 16777217 bytes are more than a block may hold",
    };
    uint8_t *large = calloc(1, TRACE_BLOCK_LIMIT_BYTES + 1);

    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct trace_writer *w;
        int fd = memory_file();
        OK(trace_writer_create(fd, "t", NULL, 0, &w));
        define_basics(w);
        struct trace_module module = {.kind = TRACE_MODULE_ANONYMOUS};
        trace_writer_put(w, TRACE_module, &module);
        struct trace_image image = {.module = module.id, .data = {large, TRACE_BLOCK_LIMIT_BYTES}};
        switch (i) {
        case 0:
            trace_writer_put(w, TRACE_thread, &(struct trace_thread){.tid = 1});
            break;
        case 1:
            trace_writer_put(w, TRACE_thread, &(struct trace_thread){.process = 5});
            break;
        case 2:
            assert_int_equal(trace_writer_stack(w, (uint32_t[]){1, 9}, 2), 0);
            break;
        case 3:
            trace_writer_sample(w, 3, &(struct trace_sample){.thread = 1});
            break;
        case 4:
            trace_writer_sample(w, 1, &(struct trace_sample){.tuple = 1});
            break;
        case 5:
            trace_writer_sample(w, 1, &(struct trace_sample){.thread = 1, .tuple = 8});
            break;
        case 6:
            trace_writer_sample(w, 1, &(struct trace_sample){.thread = 1, .flags = 256});
            break;
        case 7:
            trace_writer_put(w, TRACE_epoch, &(struct trace_epoch){0});
            break;
        case 8:
            trace_writer_intern(w, TRACE_clock, &(struct trace_clock){0});
            break;
        case 9:
            module.segments.count = 99999999;
            trace_writer_put(w, TRACE_module, &module);
            break;
        case 10:
            trace_writer_put(w, TRACE_image, &image);
            break;
        case 11:
            image.data.len_bytes++;
            trace_writer_put(w, TRACE_image, &image);
            break;
        }
        assert_true(trace_writer_failed(w));
        /* All that follows returns at once. */
        assert_int_equal(trace_writer_cstr(w, "x"), 0);
        trace_writer_sample(w, 1, &(struct trace_sample){.thread = 1});
        trace_writer_new_epoch(w, 1);
        trace_writer_flush(w);
        struct error *err = trace_writer_error(w);
        assert_non_null(err);
        assert_string_equal(error_text(err), texts[i]);
        error_destroy(err);
        assert_null(trace_writer_error(w));
        err = trace_writer_finish(w);
        assert_non_null(err);
        error_destroy(err);
        trace_writer_destroy(w);
        close(fd);
    }
    free(large);
}

/* A record as long as a block may be goes through. */
TEST(large_record)
{
    const size_t len = TRACE_BLOCK_LIMIT_BYTES - 100;
    uint8_t *large = calloc(1, len);
    struct trace_writer *w;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", NULL, 0, &w));
    define_basics(w);
    struct trace_module module = {.kind = TRACE_MODULE_ANONYMOUS};
    trace_writer_put(w, TRACE_module, &module);
    struct trace_image image = {.module = module.id, .data = {large, len}};
    trace_writer_sample(w, 1, &(struct trace_sample){.thread = 1});
    trace_writer_put(w, TRACE_image, &image);
    trace_writer_sample(w, 1, &(struct trace_sample){.thread = 1});
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
    struct buf b = contents(fd);
    struct outcome o = read_bytes(b.data, b.len_bytes);
    assert_int_equal(o.stats.damage_count, 0);
    assert_int_equal(o.samples, 2);
    assert_true(b.len_bytes < 20000);
    buf_deinit(&b);
    free(large);
    close(fd);
}

TEST(other_files)
{
    static const char text[] = "#!/usr/bin/env python3\nprint('hello')\n";
    struct trace_reader *r;

    assert_opening_fails("", 0, ERROR_TRUNCATED, "t: is empty");
    assert_opening_fails(text, sizeof text - 1, ERROR_FORMAT, "t: is not a pycap trace");
    assert_opening_fails("x", 1, ERROR_FORMAT, "t: is not a pycap trace");
    assert_opening_fails("\x1f\x8b\x08", 3, ERROR_FORMAT, "t: is compressed: unpack it with gunzip first");
    assert_opening_fails("\x28\xb5\x2f\xfd", 4, ERROR_FORMAT,
                         "t: is compressed: unpack it with unzstd first; "
                         "or name an archive of binaries with --archive, after the trace");
    assert_opening_fails("PERFILE2", 8, ERROR_FORMAT, "t: is a file of perf, not of pycap: perf script reads it");
    struct error *err = trace_reader_open("/no/such/trace.bin", &r);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    assert_string_equal(error_text(err), "/no/such/trace.bin: cannot open: No such file or directory");
    error_destroy(err);
    err = trace_reader_open("/", &r);
    assert_non_null(err);
    assert_string_equal(error_text(err), "/: cannot read: Is a directory");
    error_destroy(err);
}

TEST(versions)
{
    struct buf b = small_trace();
    struct trace_file_header h = trace_file_header_unpack(b.data);

    assert_int_equal(h.version, TRACE_VERSION);
    assert_int_equal(h.header_len_bytes, TRACE_FILE_HEADER_BYTES);
    h.version = 9;
    trace_file_header_pack(&h, b.data);
    struct outcome o = read_bytes(b.data, b.len_bytes);
    assert_int_equal(o.stats.version, 9);
    assert_int_equal(o.stats.damage_count, 0);
    assert_true(o.stats.ended);
    h.least_reader = 7;
    trace_file_header_pack(&h, b.data);
    assert_opening_fails(b.data, b.len_bytes, ERROR_VERSION,
                         "t: needs a pysym that reads format version 7; this one reads up to 1");
    h.least_reader = 1;
    h.reserved = 1;
    trace_file_header_pack(&h, b.data);
    assert_opening_fails(b.data, b.len_bytes, ERROR_FORMAT, "t: the file header breaks the rules of the format");
    buf_deinit(&b);
}

/* ---- what the system does to a writer ---- */

TEST(full_disk)
{
    struct trace_writer *w;
    int fd = open("/dev/full", O_WRONLY);

    if (fd < 0)
        skip();
    struct error *err = trace_writer_create(fd, "/mnt/x/trace.bin", NULL, 0, &w);
    assert_non_null(err);
    assert_null(w);
    assert_string_equal(error_text(err), "/mnt/x/trace.bin: cannot write: No space left on device");
    error_destroy(err);
    close(fd);
}

/* The disk fills in the middle of a block: what was whole before is read. */
TEST(short_write)
{
    struct buf whole = small_trace();
    struct layout l = layout_of(&whole);
    struct rlimit before;
    char path[] = "/tmp/test_trace.XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = l.blocks[1].end + 20, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct trace_writer_options options = {.block_max_bytes = 150};
    struct trace_writer *w;
    OK(trace_writer_create(fd, path, &options, 0, &w));
    for (int i = 0; i < 100; i++) {
        char text[32];
        snprintf(text, sizeof text, "string number %d", i);
        trace_writer_cstr(w, text);
    }
    assert_true(trace_writer_failed(w));
    struct error *err = trace_writer_finish(w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_IO);
    assert_int_equal(err->os_errno, EFBIG);
    assert_string_equal(err->path, path);
    error_destroy(err);
    assert_int_equal(trace_writer_bytes(w), small.rlim_cur);
    trace_writer_destroy(w);
    close(fd);

    struct trace_reader *r;
    OK(trace_reader_open(path, &r));
    struct outcome o = drain(r);
    assert_true(o.records > 1);
    assert_int_equal(o.stats.damage_count, 1);
    assert_string_equal(o.first.reason, "the file ends inside a block");
    unlink(path);
    buf_deinit(&whole);
}

static ssize_t write_while_room(void *ctx, int fd, const void *data, size_t len_bytes)
{
    if (*(const bool *)ctx)
        return write(fd, data, len_bytes);
    errno = ENOSPC;
    return -1;
}

/* The samples of a block that could not be written do not count as written. */
TEST(written_samples)
{
    bool room = true;
    const struct trace_writer_options options = {.write = write_while_room, .write_ctx = &room};
    struct trace_writer *w;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", &options, 0, &w));
    define_basics(w);
    for (uint64_t i = 1; i <= 3; i++)
        trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = i, .thread = 1});
    assert_int_equal(trace_writer_written_count(w), 0);
    trace_writer_flush(w);
    assert_int_equal(trace_writer_written_count(w), 3);
    trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = 4, .thread = 1});
    room = false;
    trace_writer_flush(w);
    assert_true(trace_writer_failed(w));
    assert_int_equal(trace_writer_written_count(w), 3);
    trace_writer_destroy(w);
    close(fd);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
}

/* Through a pipe that is full most of the time, while signals interrupt both ends. */
static void through_pipe(int flags)
{
    enum { STRINGS = 60000 };
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    struct sigaction quiet = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &quiet, NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    if (!child) {
        setitimer(ITIMER_REAL, &often, NULL);
        struct trace_writer_options options = {.zstd_level = 1};
        struct trace_writer *w;
        struct error *err;
        close(ends[0]);
        fcntl(ends[1], F_SETFL, flags);
        err = trace_writer_create(ends[1], "pipe", &options, 0, &w);
        for (uint64_t i = 0, x = 1; !err && i < STRINGS; i++) {
            uint64_t noise[8];
            for (int k = 0; k < 8; k++)
                noise[k] = x = x * 6364136223846793005u + 1442695040888963407u;
            trace_writer_string(w, noise, sizeof noise);
        }
        if (!err)
            err = trace_writer_finish(w);
        _exit(err ? 1 : 0);
    }
    close(ends[1]);
    usleep(50000); /* for the pipe to fill, and signals to meet a write that has written nothing */
    setitimer(ITIMER_REAL, &often, NULL);
    struct trace_reader *r;
    OK(trace_reader_open_fd(ends[0], "pipe", &r));
    struct outcome o = drain(r);
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(o.records, STRINGS + 1);
    assert_int_equal(o.stats.damage_count, 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
}

TEST(pipe)
{
    through_pipe(0);
    through_pipe(O_NONBLOCK);
}

/* ---- text ---- */

static void assert_printed(const struct trace_record *rec, const char *expected)
{
    struct buf text = {0};

    trace_record_print(rec, &text);
    assert_string_equal(buf_cstr(&text), expected);
    buf_deinit(&text);
}

TEST(print)
{
    struct trace_record rec = {.type = TRACE_string};
    rec.string = (struct trace_string){.id = 3, .data = {(const uint8_t *)"a\"b\n\xc3\xa4", 6}};

    assert_printed(&rec, "string id=3 data=\"a\\\"b\\n\\xc3\\xa4\"\n");
    rec.string.data = (struct trace_bytes){(const uint8_t *)"\x1b[31m", 5};
    assert_printed(&rec, "string id=3 data=<1b5b33316d>\n");
    /* A number is not text, whatever its bytes are. */
    rec = (struct trace_record){.type = TRACE_module, .module = {.id = 1, .htlhash = {(const uint8_t *)"abc", 3}}};
    assert_printed(&rec, "module id=1 kind=0 id_kind=0 build_id=<> path=0 file_size=0 segments=[] eval_ranges=[] flags=0 htlhash=<616263>\n");
    rec = (struct trace_record){.type = TRACE_join, .join = {.id = 1, .runs = {(uint64_t[]){2, 0, 0, 30}, 2}}};
    assert_printed(&rec, "join id=1 kind=0 runs=[2,0 0,30]\n");
    rec.type = TRACE_python_frame;
    rec.python_frame = (struct trace_python_frame){.id = 4, .code = 2, .offset = -6, .flags = 1};
    assert_printed(&rec, "python_frame id=4 code=2 offset=-6 flags=1\n");
    rec = (struct trace_record){.type = TRACE_kernel_frame, .kernel_frame = {.id = 4, .address = 0xffffffff81000000}};
    assert_printed(&rec, "kernel_frame id=4 address=0xffffffff81000000 symbol=0\n");
    char digits[200];
    memset(digits, '7', sizeof digits);
    rec = (struct trace_record){.type = TRACE_string, .string = {.data = {(const uint8_t *)digits, sizeof digits}}};
    char expected[200];
    snprintf(expected, sizeof expected, "string id=0 data=\"%.64s\"+136\n", digits);
    assert_printed(&rec, expected);
    rec.type = 12345;
    assert_printed(&rec, "unknown type=12345\n");
}

TEST(names)
{
    assert_string_equal(trace_loss_name(LOSS_ring_full), "ring_full");
    assert_string_equal(trace_loss_meaning(LOSS_ring_full), "sample lost: the ring buffer was full (a larger --ring-size helps)");
    assert_null(trace_loss_name(0));
    assert_null(trace_loss_meaning(LOSS_LIMIT));
    for (uint32_t i = 1; i < LOSS_LIMIT; i++)
        assert_true(!trace_loss_name(i) == !trace_loss_meaning(i));
    /* A number that is not known, or never was given, has no class. */
    for (uint32_t i = 0; i <= LOSS_LIMIT; i++)
        assert_int_equal(trace_loss_class(i) == LOSS_CLASS_unknown, !trace_loss_name(i));
    assert_int_equal(trace_loss_class(LOSS_complete), LOSS_CLASS_complete);
    assert_int_equal(trace_loss_class(UINT32_MAX), LOSS_CLASS_unknown);
    assert_null(trace_record_type(0));
    assert_null(trace_record_type(TRACE_TYPE_LIMIT));
    for (uint32_t i = 1; i < TRACE_TYPE_LIMIT; i++) {
        const struct trace_record_type *type = trace_record_type(i);
        assert_non_null(type);
        assert_int_equal(type->number, i);
        /* A DEFS field names its list. */
        for (uint32_t k = 0; k < type->field_count; k++) {
            bool found = type->fields[k].type != TRACE_F_DEFS;
            for (uint32_t n = 0; n < type->field_count; n++)
                found |= type->fields[n].type == TRACE_F_LIST && !strcmp(type->fields[n].name, type->fields[k].meaning);
            assert_true(found);
        }
    }
}

/* What the two programs do with a reason follows from its class alone. */
TEST(loss_classes)
{
    static const uint32_t lost[] = {LOSS_ring_full,   LOSS_tick_skipped, LOSS_nested,   LOSS_process_gone,
                                    LOSS_time_unseen, LOSS_known_late,   LOSS_file_full, LOSS_epoch_full,
                                    LOSS_wait_memory, LOSS_hit_quota, LOSS_reader_slow, LOSS_not_written};
    uint32_t found = 0;

    for (uint32_t reason = 0; reason < LOSS_LIMIT; reason++)
        found += loss_class_is_sample(trace_loss_class(reason));
    assert_int_equal(found, sizeof lost / sizeof lost[0]);
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++)
        assert_true(loss_class_is_sample(trace_loss_class(lost[i])));
    assert_false(loss_class_is_sample(trace_loss_class(LOSS_LIMIT)));
    assert_int_equal(trace_loss_class(LOSS_not_yet_known), LOSS_CLASS_expected);
    assert_int_equal(trace_loss_class(LOSS_stale_config), LOSS_CLASS_outdated);
    assert_int_equal(trace_loss_class(LOSS_python_torn), LOSS_CLASS_python);
    assert_int_equal(trace_loss_class(LOSS_run_limit), LOSS_CLASS_retired);
}

TEST(values_and_labels)
{
    assert_string_equal(trace_value_meaning(TRACE_ENUM_end_reason, TRACE_END_FULL), "ended at its size limit");
    assert_string_equal(trace_value_meaning(TRACE_ENUM_module_kind, 0), "ELF file");
    assert_string_equal(trace_value_meaning(TRACE_ENUM_python_flag, TRACE_CODE_DEBUG), "debug build");
    assert_null(trace_value_meaning(TRACE_ENUM_python_flag, 0));
    for (uint32_t i = 0; i < TRACE_ENUM_COUNT; i++)
        assert_null(trace_value_meaning(i, UINT32_MAX));
    assert_string_equal(trace_label_key(TRACE_LABEL_task), "asyncio task");
    assert_true(trace_label_is_shown(trace_label_key(TRACE_LABEL_interpreter)));
    assert_false(trace_label_is_shown(trace_label_key(TRACE_LABEL_task)));
    assert_false(trace_label_is_shown("of a later version"));
    for (uint32_t i = 0; i < TRACE_LABEL_COUNT; i++) {
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(trace_label_key(i), trace_label_key(k));
    }
}
