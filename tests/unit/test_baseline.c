/* SPDX-License-Identifier: Apache-2.0 */
/* Baseline files: what is written comes back, and nothing else is taken for a baseline. */
#include "tests/unit/test.h"
#include "tests/unit/run_set_fixture.h"

#include <math.h>
#include <stdio.h>
#include <zlib.h>

#include "formats/base/bytes.h"
#include "formats/compare/baseline.h"

static void encode(const struct run_set *s, struct buf *out)
{
    struct baseline_written what;

    buf_clear(out);
    OK(baseline_encode(s, BASELINE_MAX_BYTES, out, &what));
    assert_int_equal(what.len_bytes, out->len_bytes);
    assert_int_equal(what.left_out, 0);
}

/* Two runs, of which the second has an event more; every field has a value. */
static void setup(struct run_set *s)
{
    assert_true(run_set_init(s, NULL));
    set_run(s);
    struct run *run = set_run(s);
    run->name = set_text(s, "two.bin");
    run->kernel_release = set_text(s, "6.1.0");
    run->machine = set_text(s, "x86_64");
    run->cpu_model = set_text(s, "cpu");
    run->recorder = set_text(s, "pycap");
    run->backend = set_text(s, "bpf");
    run->native = set_text(s, "tables");
    run->programs = set_text(s, "gunicorn");
    run->filters = set_text(s, "--pid 1");
    run->duration_ns = UINT64_C(1) << 40;
    run->command_wall_ns = 77;
    struct run_event event = {.name = set_text(s, "off-cpu"), .unit = set_text(s, "ns"), .kind = EVENT_TASK_WAIT,
                              .samples = 2, .total = 3e17, .weight = 0.3};
    set_plain_cell(&event.nodes, RUN_SET_ROOT, 0x1p52 + 1, 3e17); /* a hundred threads wait for a month */
    assert_true(VEC_PUSH(&run->events, event));
}

static void expect_cells(const struct run_cells *a, const struct run_cells *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_true(a->data[i].self == b->data[i].self && a->data[i].total == b->data[i].total);
        assert_true(a->data[i].dispersion == b->data[i].dispersion && a->data[i].self_dispersion == b->data[i].self_dispersion);
    }
}

static void expect_event(const struct run_event *a, const struct run_event *b)
{
    assert_true(a->kind == b->kind &&
                a->frequency_hz == b->frequency_hz);
    assert_true(a->period == b->period && a->samples == b->samples && a->ticks == b->ticks && a->lost == b->lost);
    assert_true(a->total == b->total && a->weight == b->weight);
}

TEST(round_trip)
{
    struct run_set from, to;
    struct buf bytes = {0}, again = {0};

    setup(&from);
    encode(&from, &bytes);
    assert_true(baseline_has_magic(bytes.data, bytes.len_bytes));
    assert_true(run_set_init(&to, NULL));
    OK(baseline_decode("b.pyb", bytes.data, bytes.len_bytes, &to));
    assert_int_equal(to.runs.count, 2);
    const struct run *a = &from.runs.data[1], *b = &to.runs.data[1];
    const uint32_t ta[] = {a->name, a->kernel_release, a->machine, a->cpu_model, a->recorder, a->backend, a->native, a->pythons, a->programs, a->filters};
    const uint32_t tb[] = {b->name, b->kernel_release, b->machine, b->cpu_model, b->recorder, b->backend, b->native, b->pythons, b->programs, b->filters};
    for (size_t i = 0; i < sizeof ta / sizeof *ta; i++)
        assert_string_equal(run_set_text_get(&from, ta[i]), run_set_text_get(&to, tb[i]));
    assert_true(b->cpu_count == 4 && b->start_realtime_ns == 5 && b->duration_ns == a->duration_ns && b->has_command);
    assert_true(b->command_wall_ns == 77 && b->work == 1.5);
    assert_string_equal(run_set_text_get(&to, b->notes.data[0].key), "work");
    assert_int_equal(b->events.count, 2);
    for (size_t i = 0; i < 2; i++)
        expect_event(&a->events.data[i], &b->events.data[i]);
    const struct run_event *ea = &a->events.data[0], *eb = &b->events.data[0];
    expect_cells(&ea->nodes, &eb->nodes);
    expect_cells(&ea->codes, &eb->codes);
    expect_cells(&ea->lines, &eb->lines);
    expect_cells(&ea->modules, &eb->modules);
    assert_int_equal(eb->functions.count, 2);
    uint32_t f = set_function(&to, "x.py", "f", 7, false);
    assert_int_equal(to.functions.count, 2);
    assert_true(eb->functions.data[0].id == f || eb->functions.data[1].id == f);
    assert_true(eb->functions.data[eb->functions.data[1].id == f].self == 30);
    assert_int_equal(to.codes.data[eb->codes.data[0].id].fingerprint, 99);
    /* What is read and written again is the same file. */
    encode(&to, &again);
    assert_int_equal(again.len_bytes, bytes.len_bytes);
    assert_memory_equal(again.data, bytes.data, bytes.len_bytes);
    run_set_deinit(&from);
    run_set_deinit(&to);
    buf_deinit(&bytes);
    buf_deinit(&again);
}

/* Two files read after one another are one baseline of all their runs. */
TEST(merge)
{
    struct run_set from, to;
    struct buf bytes = {0};

    setup(&from);
    encode(&from, &bytes);
    assert_true(run_set_init(&to, NULL));
    for (int i = 0; i < 2; i++)
        OK(baseline_decode("b.pyb", bytes.data, bytes.len_bytes, &to));
    assert_int_equal(to.runs.count, 4);
    assert_int_equal(to.functions.count, 2);
    assert_true(run_is_same(&to.runs.data[1], &to.runs.data[3]));
    assert_false(run_is_same(&to.runs.data[0], &to.runs.data[3]));
    run_set_deinit(&from);
    run_set_deinit(&to);
    buf_deinit(&bytes);
}

static bool has_text(const struct buf *bytes, const char *text)
{
    return memmem(bytes->data, bytes->len_bytes, text, strlen(text));
}

/* docs/privacy.md says what is in it. */
TEST(no_host)
{
    struct run_set s;
    struct buf bytes = {0};

    setup(&s);
    encode(&s, &bytes);
    assert_true(has_text(&bytes, "gunicorn"));
    assert_false(has_text(&bytes, "secret-host"));
    run_set_deinit(&s);
    buf_deinit(&bytes);
}

static enum error_code decode_code(const void *data, size_t len_bytes)
{
    struct run_set s;

    assert_true(run_set_init(&s, NULL));
    struct error *err = baseline_decode("b.pyb", data, len_bytes, &s);
    enum error_code code = err ? err->code : 0;
    assert_true(!err || s.runs.count == 0); /* all or nothing */
    error_destroy(err);
    run_set_deinit(&s);
    return code;
}

TEST(damage)
{
    struct run_set s;
    struct buf bytes = {0};

    setup(&s);
    encode(&s, &bytes);
    for (size_t len = 0; len < bytes.len_bytes; len++) {
        enum error_code code = decode_code(bytes.data, len);
        assert_int_equal(code, len < BASELINE_MAGIC_BYTES ? ERROR_FORMAT : ERROR_TRUNCATED);
    }
    for (size_t i = 0; i < 8 * bytes.len_bytes; i++) {
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_true(decode_code(bytes.data, bytes.len_bytes) != 0);
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    assert_int_equal(decode_code(bytes.data, bytes.len_bytes), 0);
    buf_put_u8(&bytes, 0);
    assert_int_equal(decode_code(bytes.data, bytes.len_bytes), ERROR_FORMAT);
    run_set_deinit(&s);
    buf_deinit(&bytes);
}

/* ---- files made by hand ---- */

static void put_crc(struct buf *b, size_t from)
{
    buf_put_u32(b, (uint32_t)crc32(0, b->data + from, (uInt)(b->len_bytes - from)));
}

static void put_header(struct buf *b, uint32_t version, uint32_t least_reader)
{
    buf_clear(b);
    buf_put(b, "\x89PYB\r\n\x1a\n", 8);
    buf_put_u32(b, version);
    buf_put_u32(b, least_reader);
    put_crc(b, 0);
}

static void put_section(struct buf *b, uint8_t type, const void *data, uint32_t len_bytes)
{
    size_t from = b->len_bytes;

    buf_put_u8(b, type);
    buf_put_u32(b, len_bytes);
    buf_put(b, data, len_bytes);
    put_crc(b, from);
}

/* Two texts, one function, one code, one node, one line, no run. */
static const char texts[] = "\2\0\1a", functions[] = "\1\1\1\5\0", codes[] = "\1\0\5\7........", nodes[] = "\1\0\0", lines[] = "\1\0\6";
static const struct {
    const char *data;
    uint32_t len_bytes;
} tables[] = {{0}, {texts, 4}, {functions, 5}, {codes, 12}, {nodes, 3}, {lines, 3}};

/* The file with another table in place of its own. */
static enum error_code decode_with(uint8_t type, const char *data, uint32_t len_bytes)
{
    struct buf b = {0};

    put_header(&b, 1, 1);
    for (uint8_t t = 1; t <= 5; t++)
        put_section(&b, t, t == type ? data : tables[t].data, t == type ? len_bytes : tables[t].len_bytes);
    if (type > 5)
        put_section(&b, type, data, len_bytes);
    put_section(&b, 0, NULL, 0);
    enum error_code code = decode_code(b.data, b.len_bytes);
    buf_deinit(&b);
    return code;
}

TEST(contents)
{
    static const struct {
        uint8_t type;
        const char *data;
        uint32_t len_bytes;
    } bad[] = {
        {1, "\3\0\1a\1a", 6},              /* a text twice */
        {1, "\2\1a\1b", 5},                /* the first one is not empty */
        {1, "\2\0\2a", 4},                 /* cut */
        {1, "\2\0\2\0a", 5},               /* a NUL in a text */
        {1, "\xff\xff\xff\xff\x0f\0", 6},  /* more than there can be */
        {2, "\1\2\1\5\0", 5},              /* a text that is not there */
        {2, "\2\1\1\5\0\1\1\6\0", 9},      /* a qualified name twice */
        {3, "\1\1\5\7........", 12},       /* a function that is not there */
        {4, "\1\1\0", 3},                  /* its own parent */
        {4, "\2\0\0\0\0", 5},              /* twice */
        {5, "\1\1\6", 3},                  /* a code that is not there */
        {6, "\0\0\0\0\0\0\0\0\0\0", 10},   /* a run that is cut */
    };

    assert_int_equal(decode_with(0, NULL, 0), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(decode_with(bad[i].type, bad[i].data, bad[i].len_bytes), ERROR_FORMAT);
    /* Unknown sections are skipped, but not checked any less. */
    assert_int_equal(decode_with(200, "anything", 8), 0);
}

/* A run with one event of one node, told by its bytes from the weight on. */
static enum error_code decode_event(double weight, const char *data, uint32_t len_bytes)
{
    struct buf event = {0}, run = {0};
    uint64_t bits;

    memcpy(&bits, &weight, sizeof bits);
    buf_put(&event, "\1\1\1\0\0\1\1\0", 8);
    buf_put_u64(&event, bits);
    buf_put(&event, data, len_bytes);
    for (int i = 0; i < 10 + 5 + 8 + 1; i++)
        buf_put_u8(&run, 0);
    buf_put_u8(&run, 1);
    buf_put_uleb(&run, event.len_bytes);
    buf_put(&run, event.data, event.len_bytes);
    enum error_code code = decode_with(6, (const char *)run.data, (uint32_t)run.len_bytes);
    buf_deinit(&event);
    buf_deinit(&run);
    return code;
}

TEST(events)
{
    assert_int_equal(decode_event(1, "\1\5\1\0\5\1\0\0\0\0\0\0", 12), 0);
    assert_int_equal(decode_event(1, "\1\5\1\0\5\1\0\0\0\0\0\0more", 16), 0); /* of a newer version */
    assert_int_equal(decode_event(1, "\0\5\1\0\5\1\0\0\0\0\0\0", 12), ERROR_FORMAT); /* no unit */
    assert_int_equal(decode_event(0, "\1\5\1\0\5\1\0\0\0\0\0\0", 12), ERROR_FORMAT);
    assert_int_equal(decode_event(-1, "\1\5\1\0\5\1\0\0\0\0\0\0", 12), ERROR_FORMAT);
    assert_int_equal(decode_event((double)NAN, "\1\5\1\0\5\1\0\0\0\0\0\0", 12), ERROR_FORMAT);
    assert_int_equal(decode_event(1, "\1\5\1\2\5\1\0\0\0\0\0\0", 12), ERROR_FORMAT); /* node 2 */
    assert_int_equal(decode_event(1, "\1\5\1\0\5\6\0\0\0\0\0\0", 12), ERROR_FORMAT); /* more self than total */
    assert_int_equal(decode_event(1, "\1\5\1\0\0\0\0\0\0\0\0\0", 12), ERROR_FORMAT); /* a cell of nothing */
    assert_int_equal(decode_event(1, "\1\5\1\0\5\1\xc0\xff\x3f\0\0\0\0\0", 14), 0); /* the greatest dispersion */
    assert_int_equal(decode_event(1, "\1\5\1\0\5\1\xc1\xff\x3f\0\0\0\0\0", 14), ERROR_FORMAT);
    assert_int_equal(decode_event(1, "\1\5\3\0\5\1\0\0\0\1\0\0\0\0\0\0\0", 17), ERROR_FORMAT); /* three of two nodes */
}

TEST(version)
{
    struct buf b = {0};
    struct run_set s;

    put_header(&b, 9, 1); /* written by a newer one, for us, too */
    for (uint8_t t = 1; t <= 5; t++)
        put_section(&b, t, tables[t].data, tables[t].len_bytes);
    put_section(&b, 0, NULL, 0);
    assert_int_equal(decode_code(b.data, b.len_bytes), 0);
    put_header(&b, 9, 2);
    assert_true(run_set_init(&s, NULL));
    struct error *err = baseline_decode("b.pyb", b.data, b.len_bytes, &s);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_VERSION);
    assert_string_equal(error_text(err), "b.pyb: the baseline is of version 9: this pysym reads up to version 1, a newer one is needed");
    error_destroy(err);
    /* Sections in another order. */
    put_header(&b, 1, 1);
    put_section(&b, 2, tables[2].data, tables[2].len_bytes);
    err = baseline_decode("b.pyb", b.data, b.len_bytes, &s);
    assert_string_equal(error_text(err), "b.pyb: offset 20: a section FUNCTIONS of the baseline where none belongs");
    error_destroy(err);
    run_set_deinit(&s);
    buf_deinit(&b);
}

/* ---- sizes ---- */

/* Ten runs of a service: `count` functions, each below two others, on three lines each. */
static void fill(struct run_set *s, uint32_t count, double step)
{
    char name[80];

    assert_true(run_set_init(s, NULL));
    for (uint32_t r = 0; r < 10; r++) {
        struct run *run = run_set_add(s);
        struct run_event e = {.name = set_text(s, "cpu-clock"), .unit = set_text(s, "ns"), .kind = EVENT_CPU_TIME, .samples = 1000, .weight = step};
        snprintf(name, sizeof name, "run-%u.bin", r);
        run->name = set_text(s, name);
        uint32_t node = RUN_SET_ROOT;
        for (uint32_t i = 0; i < count; i++) {
            snprintf(name, sizeof name, "/srv/app/venv/lib/python3.12/site-packages/package%u/module%u.py", i % 20, i % 200);
            uint32_t file = set_text(s, name);
            snprintf(name, sizeof name, "SomeClass%u.some_method_%u", i % 100, i);
            uint32_t f = run_set_function(s, &(struct run_function){file, set_text(s, name), i, false});
            uint32_t code = run_set_code(s, &(struct run_code){f, i, 80, (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15)});
            double self = step * (1 + (i * 7 + r) % 30), total = self * 3 + step * (count - i);
            node = run_set_node(s, i % 20 ? node : RUN_SET_ROOT, f);
            set_cell(&e.nodes, node, self, total);
            set_cell(&e.functions, f, self, total);
            set_plain_cell(&e.codes, code, self, total);
            for (uint32_t line = 0; line < 3; line++)
                set_plain_cell(&e.lines, run_set_line(s, &(struct run_line){code, i + line}), self, self);
            e.total += self;
        }
        assert_true(VEC_PUSH(&run->events, e));
    }
}

/* 2,000 nodes fit, whether samples weigh the same or not; where more do not, the smallest are left out and the others stay. */
TEST(size)
{
    struct baseline_written what;
    struct run_set s, to;
    struct buf b = {0};

    fill(&s, 2000, 10101010);
    OK(baseline_encode(&s, BASELINE_MAX_BYTES, &b, &what));
    assert_true(what.len_bytes < BASELINE_MAX_BYTES && what.left_out == 0);
    size_t all = b.len_bytes;
    buf_clear(&b);
    OK(baseline_encode(&s, all - 1000, &b, &what));
    assert_true(b.len_bytes <= all - 1000);
    assert_true(what.left_out > 0 && what.least_samples > 0);
    assert_true(run_set_init(&to, NULL));
    OK(baseline_decode("b.pyb", b.data, b.len_bytes, &to));
    const struct run_event *from = &s.runs.data[3].events.data[0], *kept = &to.runs.data[3].events.data[0];
    assert_true(kept->nodes.count + kept->lines.count < from->nodes.count + from->lines.count);
    assert_int_equal(kept->functions.count, 2000);
    assert_true(kept->functions.data[77].self == from->functions.data[77].self);
    struct error *err = baseline_encode(&s, 1000, &b, &what);
    assert_int_equal(err->code, ERROR_LIMIT);
    error_destroy(err);
    run_set_deinit(&to);
    run_set_deinit(&s);
    fill(&s, 2000, 10101011);
    for (size_t i = 0; i < s.runs.count; i++)
        s.runs.data[i].events.data[0].total += 1; /* so that sums have no unit in common */
    buf_clear(&b);
    OK(baseline_encode(&s, BASELINE_MAX_BYTES, &b, &what));
    assert_true(what.len_bytes <= BASELINE_MAX_BYTES);
    run_set_deinit(&s);
    buf_deinit(&b);
}

TEST(limits)
{
    struct run_set from, to;
    struct buf bytes = {0};
    bool fitted = false;

    setup(&from);
    encode(&from, &bytes);
    for (uint64_t max = 0; !fitted; max += 512) {
        struct limits limits = {.memory_max = max, .work_max = UINT64_MAX};
        assert_true(max < 1 << 20);
        struct error *err = run_set_init(&to, &limits) ? baseline_decode("b.pyb", bytes.data, bytes.len_bytes, &to) : error_no_memory();
        fitted = !err;
        assert_true(fitted || limits.exceeded);
        error_destroy(err);
        run_set_deinit(&to);
    }
    run_set_deinit(&from);
    buf_deinit(&bytes);
}

TEST(file)
{
    char path[] = "/tmp/test_baseline.XXXXXX";
    struct baseline_written what;
    struct run_set s, to;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    setup(&s);
    FILE *out = fdopen(fd, "wb");
    OK(baseline_write(&s, out, &what));
    assert_int_equal(ftell(out), what.len_bytes);
    assert_int_equal(fclose(out), 0);
    assert_true(run_set_init(&to, NULL));
    OK(baseline_read(path, &to));
    assert_int_equal(to.runs.count, 2);
    assert_int_equal(remove(path), 0);
    struct error *err = baseline_read(path, &to);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
    run_set_deinit(&s);
    run_set_deinit(&to);
}
