/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and stacks as lines of JSON: exact values, where the two tables go, names and times that change, and memory. */
#include "formats/emit/json.h"
#include "tests/unit/emit_fixture.h"

/* Numbers at their ends, a label that is there twice, and a sample without frames. */
static void setup_ends(struct synthetic *s)
{
    static const struct emit_label labels[] = {{"asyncio task", "fetch"}, {"asyncio task", "again"}, {"interpreter", "2"}};
    static const struct emit_label_set sets[] = {{0}, {.labels = labels, .count = 3}};
    static const struct emit_capture capture = {.name = "t.bin", .hostname = "vm"};

    setup_one(s);
    s->model.captures = &capture;
    s->model.capture_count = 1;
    s->model.label_sets = sets;
    s->model.label_set_count = 2;
    uint32_t stack = synthetic_stack(s, EMIT_NO_STACK, synthetic_native(s, "copy", "/usr/lib/libc.so.6", 0xfffffffffffffff0, 0));
    synthetic_sample(s, (struct emit_sample){.time_ns = 10000001000, .value = UINT64_MAX, .stack = stack, .label_set = 1});
    synthetic_sample(s, (struct emit_sample){.time_ns = UINT64_MAX, .value = 1, .stack = EMIT_NO_STACK});
}

TEST(ends)
{
    struct synthetic s = {0};

    setup_ends(&s);
    assert_true(contains(&s, "ndjson", plain, "\"address\":\"0xfffffffffffffff0\""));
    assert_true(contains(&s, "ndjson", plain, "\"value\":18446744073709551615,"));
    assert_true(contains(&s, "ndjson", plain, "\"time_ns\":18446744073709551615,"));
    assert_true(contains(&s, "ndjson", plain, "\"labels\":{\"asyncio task\":\"fetch\",\"interpreter\":\"2\"},"));
    synthetic_deinit(&s);
}

/* The rows of a type. */
static void put_rows(const char *text, const char *begin, struct buf *out)
{
    for (const char *row = text; *row; row = strchr(row, '\n') + 1) {
        if (!strncmp(row, begin, strlen(begin)))
            buf_put(out, row, (size_t)(strchr(row, '\n') + 1 - row));
    }
}

struct fake_files {
    struct emit_files files;
    char *path, *text;
    size_t len;
    FILE *out;
};

static struct error *create_fake(struct emit_files *files, const char *path, FILE **out)
{
    struct fake_files *f = (struct fake_files *)files; /* its first member */

    f->path = strdup(path);
    *out = f->out = open_memstream(&f->text, &f->len);
    return NULL;
}

/* Of two files one has the samples of a stream, the other the stacks. */
TEST(two_files)
{
    static const char *const names[][2] = {
        {"t.ndjson", "t.stacks.ndjson"}, {"t.json", "t.json.stacks.ndjson"}, {".ndjson", ".ndjson.stacks.ndjson"}};
    struct synthetic s = {0};
    struct buf samples = {0}, stacks = {0};

    setup_ends(&s);
    char *text = emit(&s, "ndjson", plain);
    put_rows(text, "{\"type\":\"sample\"", &samples);
    put_rows(text, "{\"type\":\"stack\"", &stacks);
    assert_int_equal(samples.len_bytes + stacks.len_bytes, strlen(text));
    free(text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fake_files f = {.files = {.folder = "/tmp/", .name = names[i][0], .create = create_fake}};
        struct emit_options options = plain;
        options.files = &f.files;
        expect(&s, "ndjson", options, buf_cstr(&samples));
        assert_non_null(f.out);
        assert_int_equal(fclose(f.out), 0);
        assert_string_equal(f.path, names[i][1]);
        assert_string_equal(f.text, buf_cstr(&stacks));
        free(f.path);
        free(f.text);
    }
    buf_deinit(&samples);
    buf_deinit(&stacks);
    synthetic_deinit(&s);
}

/* Where the second file is, is said. */
TEST(remark)
{
    struct synthetic s = {0};
    struct fake_files f = {.files = {.folder = "/tmp/", .name = "t.ndjson", .create = create_fake}};
    struct emit_options options = plain;
    const struct emitter *emitter = emitter_find("ndjson");
    void *emitting = NULL;

    setup_ends(&s);
    OK(emitter->begin(&s.model, &options, stdout, &emitting));
    assert_null(emitter->remark(emitting));
    emitter->destroy(emitting);
    options.files = &f.files;
    OK(emitter->begin(&s.model, &options, stdout, &emitting));
    assert_string_equal(emitter->remark(emitting), "the stacks are in t.stacks.ndjson, beside it");
    emitter->destroy(emitting);
    fclose(f.out);
    free(f.path);
    free(f.text);
    synthetic_deinit(&s);
}

static void take_sample_of(void *state, uint32_t thread)
{
    const struct emit_sample sample = {.time_ns = 10000001000, .thread = thread, .stack = EMIT_NO_STACK};

    assert_null(emitter_find("ndjson")->sample(state, &sample));
}

/* A row has the names of its time; threads whose numbers are a power of two apart do not take each other's. */
TEST(names_change)
{
    static const struct emit_capture capture = {.name = "t.bin", .hostname = "vm"};
    static const struct emit_label_set no_labels = {0};
    static const char *const expected[] = {"MainThread", "renamed", "other", "renamed", "renamed", "other"};
    const struct emitter *ndjson = emitter_find("ndjson");
    struct synthetic s = {0};
    char long_name[2000], *text = NULL;
    size_t len, row = 0;
    void *emitter = NULL;

    setup_one(&s);
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    for (uint32_t i = 1; i <= 1024; i++)
        synthetic_thread(&s, 0, 101 + i, i == 1024 ? "other" : i == 512 ? long_name : "");
    s.model.captures = &capture;
    s.model.label_sets = &no_labels;
    FILE *out = open_memstream(&text, &len);
    assert_null(ndjson->begin(&s.model, &plain, out, &emitter));
    take_sample_of(emitter, 0);
    s.threads.data[0].name = "renamed";
    take_sample_of(emitter, 0);
    take_sample_of(emitter, 1024);
    take_sample_of(emitter, 0);
    take_sample_of(emitter, 512);
    take_sample_of(emitter, 0);
    s.processes.data[0].container = "1f2e";
    take_sample_of(emitter, 1024);
    assert_null(ndjson->end(emitter));
    ndjson->destroy(emitter);
    fclose(out);
    const char *at = text;
    for (; (at = strstr(at, "\"thread\":\"")); row++) {
        at += strlen("\"thread\":\"");
        assert_memory_equal(at, row < 4 ? expected[row] : row == 4 ? long_name : expected[row - 1], 5);
    }
    assert_int_equal(row, 7);
    assert_non_null(strstr(text, "\"container\":\"1f2e\",\"pid\":100,\"process\":\"python3\",\"title\":\"\",\"comm\":\"python3\",\"tid\":1125"));
    free(text);
    synthetic_deinit(&s);
}

/* What the clocks say may be missing or made up. */
TEST(times)
{
    static const struct {
        struct emit_capture clocks;
        const char *shown;
    } cases[] = {
        {{.realtime_ns = 0}, "\"time\":null"},
        {{.realtime_ns = 1, .monotonic_ns = 10000001001}, "\"time\":\"1970-01-01T00:00:00.000000Z\""},
        {{.realtime_ns = UINT64_MAX, .monotonic_ns = 10000001000}, "\"time\":\"2554-07-21T23:34:33.709551Z\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct synthetic s = {0};
        struct emit_capture capture = cases[i].clocks;
        setup_small(&s);
        capture.name = capture.hostname = "";
        s.model.captures = &capture;
        s.model.capture_count = 1;
        assert_true(contains(&s, "ndjson", plain, cases[i].shown));
        synthetic_deinit(&s);
    }
}

/* The value of a text is exact, whatever is in it, and the text does nothing to a terminal. */
TEST(text_from_elsewhere)
{
    static const char *const cases[][2] = {
        {"", "\"\""},
        {"plain \xc3\xa9 \xf0\x9f\x90\x8d", "\"plain \xc3\xa9 \xf0\x9f\x90\x8d\""},
        {"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
        {"\x1b[31m\n\x7f", "\"\\u001b[31m\\u000a\\u007f\""},
        {"\xe2\x80\xae" "evil", "\"\\u202eevil\""},
        {"\xf3\xa0\x80\x81", "\"\\udb40\\udc01\""}, /* a tag, above U+FFFF */
        {"\xff" "a\xe2\x80", "\"\xef\xbf\xbd" "a\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* half of a pair is no UTF-8 */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};
        json_put_foreign(cases[i][0], &out);
        assert_string_equal(buf_cstr(&out), cases[i][1]);
        buf_deinit(&out);
    }
}

/* What is kept of the stacks that were written counts in the limits; what was not written takes nothing. */
TEST(memory)
{
    enum { STACKS = 4000 };
    struct synthetic s = {0};
    struct limits limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX};
    struct emit_options options = plain;
    const struct emitter *emitter = emitter_find("ndjson");
    uint32_t stack = EMIT_NO_STACK, first;
    void *emitting = NULL;

    setup_ends(&s);
    uint32_t frame = synthetic_python(&s, "f", "f.py", 1, 1, 1);
    first = s.model.stack_count;
    for (uint32_t i = 0; i < STACKS; i++)
        stack = synthetic_stack(&s, i % 2 ? stack : EMIT_NO_STACK, frame);
    struct emit_sample sample = {.value = 1, .stack = stack};
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    options.limits = &limits;
    OK(emitter->begin(&s.model, &options, out, &emitting));
    OK(emitter->sample(emitting, &sample));
    uint64_t used = limits.memory_used;
    assert_true(used < STACKS * sizeof(uint32_t));
    for (sample.stack = first; sample.stack < first + STACKS; sample.stack++)
        OK(emitter->sample(emitting, &sample));
    assert_true(limits.memory_used - used >= STACKS * sizeof(uint32_t));
    emitter->destroy(emitting);
    assert_int_equal(limits.memory_used, 0);
    assert_int_equal(fclose(out), 0);
    synthetic_deinit(&s);
}
