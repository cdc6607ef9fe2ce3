/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests to stores of profiles, read by decoders that share no code with what writes them. */
#include "tests/unit/test.h"

#include <jansson.h>
#include <string.h>

#include "formats/base/base64.h"
#include "symbolize/push/store.h"

static const struct profile_label labels[] = {
    {"__name__", "process_cpu"},
    {"host", "a\"b\\c\n\x7f\xe2\x80\xae"},
    {"service_name", "shop</script>"},
};
static const uint8_t data[] = {0x1f, 0x8b, 0, 0xff, '"', 7};

static struct push_profile profile_of(size_t len_bytes)
{
    return (struct push_profile){.labels = labels, .label_count = 3, .data = data, .len_bytes = len_bytes};
}

/* ---- Protocol Buffers ---- */

struct message {
    const uint8_t *at, *end;
};

static uint64_t take_varint(struct message *m)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        assert_true(m->at < m->end);
        uint8_t byte = *m->at++;
        v |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return v;
    }
    fail_msg("a varint without an end");
    return 0;
}

/* The next field, which has to be this one, of bytes. */
static struct message take_field(struct message *m, uint64_t field)
{
    assert_int_equal(take_varint(m), field << 3 | 2);
    uint64_t len = take_varint(m);
    assert_true(len <= (uint64_t)(m->end - m->at));
    struct message inner = {m->at, m->at + len};
    m->at = inner.end;
    return inner;
}

static void assert_bytes(struct message m, const void *bytes, size_t len_bytes)
{
    assert_int_equal(m.end - m.at, len_bytes);
    assert_memory_equal(m.at, bytes, len_bytes);
}

TEST(pyroscope)
{
    struct push_profile profile = profile_of(sizeof data);
    struct buf body = {0};

    store_pyroscope.put_body(&profile, &body);
    assert_false(body.bad);
    struct message request = {body.data, body.data + body.len_bytes};
    struct message series = take_field(&request, 1);
    assert_ptr_equal(request.at, request.end);
    for (int i = 0; i < 3; i++) {
        struct message label = take_field(&series, 1);
        assert_bytes(take_field(&label, 1), labels[i].name, strlen(labels[i].name));
        assert_bytes(take_field(&label, 2), labels[i].value, strlen(labels[i].value));
        assert_ptr_equal(label.at, label.end);
    }
    struct message sample = take_field(&series, 2);
    assert_ptr_equal(series.at, series.end);
    assert_bytes(take_field(&sample, 1), data, sizeof data);
    assert_ptr_equal(sample.at, sample.end);
    buf_deinit(&body);
}

/* ---- JSON ---- */

static size_t decode_base64(const char *text, uint8_t *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    unsigned count = 0;
    size_t len = 0;

    assert_int_equal(strlen(text) % 4, 0);
    for (; *text && *text != '='; text++) {
        const char *digit = strchr(digits, *text);
        assert_non_null(digit);
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count >= 8)
            out[len++] = (uint8_t)(bits >> (count -= 8));
    }
    assert_true(strspn(text, "=") == strlen(text) && strlen(text) < 3);
    return len;
}

TEST(parca)
{
    for (size_t len = 0; len <= sizeof data; len++) {
        struct push_profile profile = profile_of(len);
        struct buf body = {0};
        store_parca.put_body(&profile, &body);
        assert_false(body.bad);
        json_t *request = json_loadb((char *)body.data, body.len_bytes, JSON_REJECT_DUPLICATES, NULL);
        json_t *pairs, *samples;
        const char *profile_text;
        int normalized;
        assert_non_null(request);
        assert_int_equal(json_unpack(request, "{s:b, s:[{s:{s:o!}, s:o!}!]!}", "normalized", &normalized, "series", "labels", "labels",
                                     &pairs, "samples", &samples), 0);
        assert_true(normalized);
        assert_int_equal(json_array_size(pairs), 3);
        for (size_t i = 0; i < 3; i++) {
            const char *name, *value;
            assert_int_equal(json_unpack(json_array_get(pairs, i), "{s:s, s:s!}", "name", &name, "value", &value), 0);
            assert_string_equal(name, labels[i].name);
            assert_string_equal(value, labels[i].value);
        }
        assert_int_equal(json_unpack(samples, "[{s:s!}!]", "raw_profile", &profile_text), 0);
        uint8_t back[sizeof data + 3];
        assert_int_equal(decode_base64(profile_text, back), len);
        assert_memory_equal(back, data, len);
        json_decref(request);
        buf_deinit(&body);
    }
}

/* RFC 4648, section 10. */
TEST(base64)
{
    static const char *const vectors[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"},
    };
    char out[16];

    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        size_t len = strlen(vectors[i][0]);
        assert_int_equal(base64_encode((const uint8_t *)vectors[i][0], len, out), strlen(vectors[i][1]));
        assert_int_equal(BASE64_CHARS(len), strlen(vectors[i][1]));
        assert_memory_equal(out, vectors[i][1], strlen(vectors[i][1]));
    }
}
