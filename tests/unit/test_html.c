/* SPDX-License-Identifier: Apache-2.0 */
/* A page for browsers: how its data is packed, numbers at their bounds, what it keeps in memory, and the texts in it. */
#include "tests/unit/emit_fixture.h"

#include <zlib.h>

#include "formats/base/bytes.h"
#include "formats/emit/html/assets.h"
#include "formats/emit/html/packed.h"

/* ---- reading a page ---- */

static uint32_t digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);

    assert_true(at && *at);
    return (uint32_t)(at - digits);
}

/* The bytes of an element, unpacked, with a 0 behind them; NULL: there is no such element. The caller frees them. */
static char *unpack(const char *page, const char *id, size_t *len_bytes)
{
    enum { ROOM = 1 << 22 };
    char begin[80];
    struct buf packed = {0};

    snprintf(begin, sizeof begin, "<script type=\"text/plain\" id=\"%s\" data-count=\"", id);
    const char *text = strstr(page, begin);
    if (!text)
        return NULL;
    text = strchr(text + strlen(begin), '>') + 1;
    size_t len = strcspn(text, "<");
    assert_int_equal(len % 4, 0);
    assert_memory_equal(text + len, "</script>\n", 10);
    for (size_t i = 0; i < len; i += 4) {
        unsigned left = text[i + 2] == '=' ? 1 : text[i + 3] == '=' ? 2 : 3;
        uint32_t three = digit_of(text[i]) << 18 | digit_of(text[i + 1]) << 12;
        three |= left > 1 ? digit_of(text[i + 2]) << 6 : 0;
        three |= left > 2 ? digit_of(text[i + 3]) : 0;
        for (unsigned k = 0; k < left; k++)
            buf_put_u8(&packed, (uint8_t)(three >> (16 - 8 * k)));
    }
    char *out = malloc(ROOM + 1);
    uLongf room = ROOM;
    assert_int_equal(uncompress((Bytef *)out, &room, packed.data, packed.len_bytes), Z_OK);
    out[room] = 0;
    *len_bytes = room;
    buf_deinit(&packed);
    return out;
}

/* The numbers of a column: exactly these. */
static void expect_column(const char *page, const char *id, const uint64_t *expected, size_t count)
{
    size_t len_bytes;
    char *data = unpack(page, id, &len_bytes);

    assert_non_null(data);
    struct bytes b = bytes_of(data, len_bytes);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bytes_uleb(&b), expected[i]);
    assert_false(b.bad);
    assert_int_equal(bytes_left(&b), 0);
    free(data);
}
#define EXPECT_COLUMN(page, id, ...)                                                                   \
    expect_column(page, id, (const uint64_t[]){__VA_ARGS__}, sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

static bool has_element(const char *page, const char *id)
{
    size_t len_bytes;
    char *data = unpack(page, id, &len_bytes);

    free(data);
    return data;
}

static json_t *head_of(const char *page)
{
    size_t len_bytes;
    char *text = unpack(page, "head", &len_bytes);

    assert_non_null(text);
    json_t *head = json_loadb(text, len_bytes, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_object(head));
    free(text);
    return head;
}

/* ---- packing ---- */

/* Any length comes back, whatever remains for the last digits of base64; of a long one little is in memory. */
TEST(packed)
{
    static const size_t lengths[] = {0, 1, 2, 3, 4, 100, 4095, 4096, 4097, 20000, 66000, 300001, 1000003};
    const size_t count = sizeof lengths / sizeof *lengths;

    for (size_t n = 0; n < 2 * count; n++) {
        struct limits limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX};
        struct spool spool;
        struct html_packed packed = {.limits = &limits, .spool = n < count ? NULL : &spool};
        size_t i = n % count;
        struct buf data = {0};
        char *page = NULL;
        size_t page_bytes, len_bytes;
        uint32_t random = 1;
        spool_init(&spool);
        for (size_t k = 0; k < lengths[i]; k++) {
            random = random * 1103515245 + 12345;
            buf_put_u8(&data, (uint8_t)(random >> 16));
        }
        FILE *out = open_memstream(&page, &page_bytes);
        OK(html_packed_put(&packed, data.data, data.len_bytes / 3));
        OK(html_packed_put(&packed, data.data + data.len_bytes / 3, data.len_bytes - data.len_bytes / 3));
        if (packed.spool)
            assert_true(limits.memory_used < 200000 && packed.packed.cap_bytes < 200000);
        else
            assert_true(limits.memory_used + 8192 > lengths[i]);
        OK(html_packed_write(&packed, "it", 7, out));
        assert_int_equal(fclose(out), 0);
        html_packed_deinit(&packed);
        spool_deinit(&spool);
        assert_int_equal(limits.memory_used, 0);
        assert_non_null(strstr(page, "id=\"it\" data-count=\"7\">"));
        char *found = unpack(page, "it", &len_bytes);
        assert_int_equal(len_bytes, lengths[i]);
        assert_memory_equal(found, data.data, len_bytes);
        free(found);
        free(page);
        buf_deinit(&data);
    }
}

/* A page without samples has no columns, and all the rest. */
TEST(no_samples)
{
    struct synthetic s = {0};

    setup_one(&s);
    char *page = emit(&s, "html", plain);
    assert_false(has_element(page, "sample-stack"));
    json_t *head = head_of(page);
    assert_int_equal(json_integer_value(json_object_get(head, "sampleCount")), 0);
    assert_int_equal(json_array_size(json_object_get(head, "processes")), 0);
    json_decref(head);
    EXPECT_COLUMN(page, "stacks", );
    free(page);
    synthetic_deinit(&s);
}

/* A column of zeros is left out; where something follows them, they are there. */
TEST(columns)
{
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t stack = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "f.py", 1, 1, 1));
    for (uint64_t i = 0; i < 3; i++)
        synthetic_sample(&s, (struct emit_sample){.value = 10, .stack = i < 2 ? EMIT_NO_STACK : stack});
    synthetic_sample(&s, (struct emit_sample){.value = 11, .stack = EMIT_NO_STACK, .gil = EMIT_GIL_NOT_HELD, .owed = true});
    char *page = emit(&s, "html", plain);
    EXPECT_COLUMN(page, "sample-stack", 0, 0, 1, 0);
    EXPECT_COLUMN(page, "sample-value", 0, 0, 0, 12);
    EXPECT_COLUMN(page, "sample-flags", 0, 0, 0, 2 | 8);
    static const char *const zeros[] = {"thread", "event", "time", "labels", "capture"};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        char id[32];
        snprintf(id, sizeof id, "sample-%s", zeros[i]);
        assert_false(has_element(page, id));
    }
    free(page);
    synthetic_deinit(&s);
}

/* Numbers end where JavaScript's integers do; nothing is before the start of its capture. */
TEST(bounds)
{
    static const uint64_t largest = UINT64_C(1) << 53;
    static const struct emit_capture capture = {.name = "t", .hostname = "", .kernel_release = "", .machine = "",
                                                .cpu_model = "", .recorder = "", .start_ns = 1000000000};
    struct synthetic s = {0};

    setup_one(&s);
    s.model.captures = &capture;
    s.model.capture_count = 1;
    static const uint64_t times[] = {1000499999, 1000500000, 999999999, 0, 2000000000, UINT64_MAX};
    static const uint64_t values[] = {1, UINT64_MAX, largest, largest - 1, 0, 1};
    for (size_t i = 0; i < 6; i++)
        synthetic_sample(&s, (struct emit_sample){.time_ns = times[i], .value = values[i], .stack = EMIT_NO_STACK});
    char *page = emit(&s, "html", plain);
    EXPECT_COLUMN(page, "sample-time", 0, 2, 1, 0, 4000, (UINT64_MAX - 1000000000) / 500000 * 2 - 4000);
    EXPECT_COLUMN(page, "sample-value", 0, largest, largest, largest, 1, 0);
    free(page);
    synthetic_deinit(&s);
}

/* ---- memory ---- */

static struct error *emit_limited(const struct synthetic *s, struct limits *limits)
{
    struct emit_options options = plain;
    FILE *out = fopen("/dev/null", "w");

    assert_non_null(out);
    options.limits = limits;
    struct error *err = synthetic_emit(s, emitter_find("html"), &options, out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(limits->memory_used, 0);
    return err;
}

/* All that is kept counts in the limits, and is given back; whatever the limit, what exceeds it is an error. */
TEST(memory)
{
    struct synthetic s = {0};
    struct limits unlimited = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX};
    unsigned failures = 0;

    synthetic_demo(&s, 20000);
    OK(emit_limited(&s, &unlimited));
    for (uint64_t max = 1000; max < 4 << 20; max += max / 4) {
        struct limits limits = {.memory_max = max, .work_max = UINT64_MAX};
        struct error *err = emit_limited(&s, &limits);
        assert_int_equal(limits.exceeded, err != NULL);
        failures += err != NULL;
        error_destroy(err);
    }
    assert_true(failures > 10);
    struct limits busy = {.memory_max = UINT64_MAX, .work_max = unlimited.work_done / 2};
    struct error *err = emit_limited(&s, &busy);
    assert_non_null(err);
    assert_true(busy.exceeded);
    error_destroy(err);
    synthetic_deinit(&s);
}

/* One of many parts takes little before it has much: no stream of zlib's for a few samples. */
TEST(small_part)
{
    struct synthetic s = {0};
    struct limits limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX};
    struct emit_options options = plain;
    const struct emitter *emitter = emitter_find("html");
    void *emitting = NULL;

    synthetic_demo(&s, 100);
    options.limits = &limits;
    OK(emitter->begin(&s.model, &options, stdout, &emitting));
    struct emit_capture capture = {.name = ""};
    s.model.captures = &capture;
    s.model.capture_count = 1;
    for (size_t i = 0; i < s.samples.count; i++)
        OK(emitter->sample(emitting, &s.samples.data[i]));
    assert_true(limits.memory_used < 8192);
    emitter->destroy(emitting);
    assert_int_equal(limits.memory_used, 0);
    synthetic_deinit(&s);
}

/* ---- the page ---- */

/* The program has the page, with one place for the title and then one for the data. */
TEST(places)
{
    const char *title = strstr(html_page, HTML_PLACE_TITLE), *data = strstr(html_page, HTML_PLACE_DATA);

    assert_memory_equal(html_page, "<!DOCTYPE html>\n", 16);
    assert_true(title && data && title < data);
    assert_null(strstr(title + 1, HTML_PLACE_TITLE));
    assert_null(strstr(data + 1, HTML_PLACE_DATA));
    assert_string_equal(html_page + strlen(html_page) - 8, "</html>\n");
}

struct fake_summary {
    struct emit_summary summary;
    bool fails;
};

static struct error *print_fake(struct emit_summary *summary, bool brief, FILE *out)
{
    if (((struct fake_summary *)summary)->fails) /* its first member */
        return error_create(ERROR_FORMAT, "no summary today");
    fputs(brief ? "fine\n" : "all is \xe2\x80\xae\"fine\"\n\x1b[31m</script>\n", out);
    return NULL;
}

/* The texts of the summary are there word by word. */
TEST(summary)
{
    struct fake_summary fake = {.summary.print = print_fake};
    struct emit_options options = plain;
    struct synthetic s = {0};

    setup_small(&s);
    options.summary = &fake.summary;
    char *page = emit(&s, "html", options);
    json_t *head = head_of(page);
    assert_string_equal(json_string_value(json_object_get(head, "verdict")), "fine\n");
    assert_string_equal(json_string_value(json_object_get(head, "summary")),
                        "all is \xe2\x80\xae\"fine\"\n\x1b[31m</script>\n");
    json_decref(head);
    free(page);
    fake.fails = true;
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    struct error *err = synthetic_emit(&s, emitter_find("html"), &options, out);
    assert_non_null(strstr(error_text(err), "no summary today"));
    error_destroy(err);
    fclose(out);
    synthetic_deinit(&s);
}

struct fake_sources {
    struct emit_sources sources;
    unsigned asked;
};

static struct error *find_fake(struct emit_sources *sources, const struct emit_model *model, const char *file,
                               const struct emit_source **found)
{
    static const struct emit_source source = {
        .path = "/home/me/x.py", .text = "x = '</script>'\n", .len_bytes = 16, .match = EMIT_SOURCE_CHANGED};
    (void)model;

    ((struct fake_sources *)sources)->asked++; /* its first member */
    *found = strcmp(file, "/srv/x.py") ? NULL : &source;
    return NULL;
}

/* Source is in the page only if it is asked for, a file once. */
TEST(sources)
{
    struct fake_sources fake = {.sources.find = find_fake};
    struct emit_options options = plain;
    struct synthetic s = {0};

    setup_small(&s);
    uint32_t other = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "g", "/srv/y.py", 1, 1, 1));
    sample(&s, 0, other);
    options.sources = &fake.sources;
    for (unsigned embed = 0; embed < 2; embed++) {
        options.embed_source = embed;
        char *page = emit(&s, "html", options);
        json_t *head = head_of(page), *list = json_object_get(head, "sources");
        assert_int_equal(json_array_size(list), embed);
        assert_int_equal(fake.asked, 2 * embed);
        if (embed) {
            json_t *source = json_array_get(list, 0);
            assert_string_equal(json_string_value(json_object_get(source, "file")), "/srv/x.py");
            assert_string_equal(json_string_value(json_object_get(source, "path")), "/home/me/x.py");
            assert_string_equal(json_string_value(json_object_get(source, "match")), "changed");
            assert_string_equal(json_string_value(json_object_get(source, "text")), "x = '</script>'\n");
        }
        json_decref(head);
        free(page);
    }
    synthetic_deinit(&s);
}
