/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles and messages on the pipe: what is written is read, and nothing else is. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/emit/emit.h"
#include "symbolize/push/message.h"

#define S UINT64_C(1000000000)

static const struct profile_label shop[] = {{"__name__", "process_cpu"}, {"host", "web-1"}, {"service_name", "caf\xc3\xa9"}};

static struct push_profile made(void)
{
    return (struct push_profile){.window_begin_ns = 30 * S, .window_end_ns = 45 * S, .last_ns = 44 * S, .chunk = 2,
                                 .samples = 1000, .rows = 7, .labels = shop, .label_count = 3, .data = "pprof", .len_bytes = 5,
                                 .raw_len_bytes = 900};
}

static void assert_refused(const struct buf *bytes, size_t len_bytes, const char *why)
{
    struct profile_label labels[PROFILE_LABELS_MAX];
    struct push_profile read;
    uint8_t *exact = malloc(len_bytes + !len_bytes); /* nothing behind it, so that reading on is seen */

    memcpy(exact, bytes->data, len_bytes);
    struct error *err = profile_read(exact, len_bytes, labels, &read);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_FORMAT);
    assert_non_null(strstr(error_text(err), why));
    error_destroy(err);
    free(exact);
}

TEST(round_trip)
{
    struct push_profile wrote = made(), read;
    struct profile_label labels[PROFILE_LABELS_MAX];
    struct buf bytes = {0};
    char before[PROFILE_SERIES_BYTES], after[PROFILE_SERIES_BYTES];

    profile_put(&wrote, &bytes);
    OK(profile_read(bytes.data, bytes.len_bytes, labels, &read));
    assert_int_equal(read.window_begin_ns, 30 * S);
    assert_int_equal(read.window_end_ns, 45 * S);
    assert_int_equal(read.last_ns, 44 * S);
    assert_int_equal(read.chunk, 2);
    assert_int_equal(read.samples, 1000);
    assert_int_equal(read.rows, 7);
    assert_int_equal(read.raw_len_bytes, 900);
    assert_int_equal(read.len_bytes, 5);
    assert_memory_equal(read.data, "pprof", 5);
    assert_int_equal(read.label_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(read.labels[i].name, shop[i].name);
        assert_string_equal(read.labels[i].value, shop[i].value);
    }
    profile_series(&wrote, before);
    profile_series(&read, after);
    assert_string_equal(before, after);
    for (size_t len = 0; len < bytes.len_bytes; len++)
        assert_refused(&bytes, len, "no profile");
    buf_put_u8(&bytes, 0);
    assert_refused(&bytes, bytes.len_bytes, "behind it");
    buf_deinit(&bytes);
}

/* The series is all labels and nothing else; no label reads as a part of another. */
TEST(series)
{
    const struct profile_label other[] = {{"a", "b"}, {"c", "d"}}, shifted[] = {{"a", "bc"}, {"d", ""}};
    struct push_profile p = made(), q = made();
    char one[PROFILE_SERIES_BYTES], two[PROFILE_SERIES_BYTES];

    q.window_begin_ns = 0;
    q.chunk = 9;
    profile_series(&p, one);
    profile_series(&q, two);
    assert_string_equal(one, two);
    assert_int_equal(strlen(one), PROFILE_SERIES_BYTES - 1);
    p.labels = other;
    q.labels = shifted;
    p.label_count = q.label_count = 2;
    profile_series(&p, one);
    profile_series(&q, two);
    assert_string_not_equal(one, two);
    p.label_count = 1;
    profile_series(&p, two);
    assert_string_not_equal(one, two);
}

static void assert_labels_refused(const struct profile_label *labels, uint32_t count, const char *why)
{
    struct push_profile p = made();
    struct buf bytes = {0};

    p.labels = labels;
    p.label_count = count;
    profile_put(&p, &bytes);
    assert_refused(&bytes, bytes.len_bytes, why);
    buf_deinit(&bytes);
}

TEST(labels)
{
    char longest[PROFILE_LABEL_VALUE_MAX + 2], name[PROFILE_LABEL_NAME_MAX + 2];
    struct profile_label many[PROFILE_LABELS_MAX + 1], named[] = {{"__name__", "x"}, {name, "y"}}, long_value[] = {{"__name__", longest}};
    char names[PROFILE_LABELS_MAX + 1][4];

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_labels_refused((struct profile_label[]){{"host", "a"}}, 1, "lacks");
    assert_labels_refused(NULL, 0, "lacks");
    assert_labels_refused((struct profile_label[]){{"__name__", "a"}, {"__name__", "a"}}, 2, "sorted");
    assert_labels_refused((struct profile_label[]){{"host", "a"}, {"__name__", "a"}}, 2, "sorted");
    assert_labels_refused((struct profile_label[]){{"__name__", ""}}, 1, "rules");
    assert_labels_refused((struct profile_label[]){{"__name__", "\xc3"}}, 1, "rules");
    assert_labels_refused((struct profile_label[]){{"__name__", "a"}, {"a.b", "c"}}, 2, "rules");
    assert_labels_refused((struct profile_label[]){{"7a", "c"}, {"__name__", "a"}}, 2, "rules");
    assert_labels_refused((struct profile_label[]){{"", "c"}, {"__name__", "a"}}, 2, "rules");
    assert_labels_refused(long_value, 1, "rules");
    assert_labels_refused(named, 2, "rules");
    for (int i = 0; i <= PROFILE_LABELS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "l%02d", i);
        many[i] = (struct profile_label){names[i], "v"};
    }
    many[0].name = "__name__";
    assert_labels_refused(many, PROFILE_LABELS_MAX + 1, "too many");
}

TEST(time)
{
    struct push_profile early = made(), late = made();
    struct buf bytes = {0};

    early.last_ns = 30 * S - 1;
    late.last_ns = 45 * S;
    profile_put(&early, &bytes);
    assert_refused(&bytes, bytes.len_bytes, "window");
    buf_clear(&bytes);
    profile_put(&late, &bytes);
    assert_refused(&bytes, bytes.len_bytes, "window");
    buf_deinit(&bytes);
}

static void assert_name(const char *event, const char *name)
{
    const struct emit_event e = {.name = event};
    struct buf out = {0};

    profile_put_name(&e, &out);
    assert_string_equal(buf_cstr(&out), name);
    buf_deinit(&out);
}

TEST(names)
{
    assert_name("cpu-clock", "process_cpu");
    assert_name("task-clock", "process_cpu");
    assert_name("off-cpu", "off_cpu");
    assert_name("page-faults", "page_faults");
    assert_name("gil-blame", "gil_blame");
    assert_name("syscalls:sys_enter_read", "syscalls_sys_enter_read");
    assert_name("4k", "_4k");
    assert_name("", "unknown");
    assert_name("d\xc3\xa9j\xc3\xa0", "d__j__");
}

/* ---- messages ---- */

static int ends[2];

static int open_pipe(void **state)
{
    (void)state;
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

static int close_pipe(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* Sends a message through the pipe; `bytes` keeps what the message that was read points to. */
static struct converter_message sent(const struct converter_message *message, struct buf *bytes, struct profile_label labels[])
{
    const struct profile_pipe pipe = {ends[1]};
    struct converter_message got;
    struct message_head head;
    uint8_t begin[MESSAGE_HEAD_BYTES];

    OK(message_write(&pipe, message));
    assert_int_equal(read(ends[0], begin, sizeof begin), sizeof begin);
    OK(message_read_head(begin, &head));
    assert_int_equal(head.event, message->event);
    buf_clear(bytes);
    assert_non_null(buf_reserve(bytes, head.len_bytes + 1));
    assert_int_equal(read(ends[0], bytes->data, head.len_bytes + 1), head.len_bytes);
    OK(message_read(head, bytes->data, labels, &got));
    return got;
}

TEST_WITH(messages, open_pipe, close_pipe)
{
    struct profile_label labels[PROFILE_LABELS_MAX];
    struct buf bytes = {0};
    struct converter_message m = {.event = CONVERTER_PROFILE, .profile = made()};

    m = sent(&m, &bytes, labels);
    assert_int_equal(m.profile.rows, 7);
    assert_string_equal(m.profile.labels[1].value, "web-1");
    m = sent(&(struct converter_message){.event = CONVERTER_LOST, .text = "ring_full", .count = 1ull << 40, .is_sample = true}, &bytes, labels);
    assert_string_equal(m.text, "ring_full");
    assert_true(m.count == 1ull << 40 && m.is_sample);
    m = sent(&(struct converter_message){.event = CONVERTER_END, .damaged = true}, &bytes, labels);
    assert_true(m.damaged && !m.ended);
    m = sent(&(struct converter_message){.event = CONVERTER_END, .ended = true}, &bytes, labels);
    assert_true(m.ended && !m.damaged);
    m = sent(&(struct converter_message){.event = CONVERTER_FAILED, .text = "no \x1b[2J\n"}, &bytes, labels);
    assert_string_equal(m.text, "no \\x1b[2J\\x0a");
    buf_deinit(&bytes);
}

/* A long text is cut, but not within a character. */
TEST_WITH(long_text, open_pipe, close_pipe)
{
    struct profile_label labels[PROFILE_LABELS_MAX];
    char text[2 * MESSAGE_TEXT_MAX + 1];
    struct buf bytes = {0};

    for (size_t i = 0; i < sizeof text - 1; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof text - 1] = 0;
    struct converter_message m = sent(&(struct converter_message){.event = CONVERTER_TEXT, .text = text}, &bytes, labels);
    assert_int_equal(strlen(m.text), MESSAGE_TEXT_MAX - 2);
    m = sent(&(struct converter_message){.event = CONVERTER_LOST, .text = text}, &bytes, labels);
    assert_int_equal(strlen(m.text), MESSAGE_TEXT_MAX - 2);
    buf_deinit(&bytes);
}

static void assert_message_refused(struct message_head head, const char *bytes)
{
    struct profile_label labels[PROFILE_LABELS_MAX];
    struct converter_message m;
    struct error *err = message_read(head, bytes, labels, &m);

    assert_non_null(err);
    assert_int_equal(err->code, ERROR_FORMAT);
    error_destroy(err);
}

static void assert_head_refused(uint32_t event, uint32_t len_bytes)
{
    const uint32_t head[] = {event, len_bytes};
    struct message_head out;
    struct error *err = message_read_head(head, &out);

    assert_non_null(err);
    error_destroy(err);
}

TEST_WITH(bad_messages, open_pipe, close_pipe)
{
    assert_head_refused(CONVERTER_FAILED + 1, 0);
    assert_head_refused(UINT32_MAX, 0);
    assert_head_refused(CONVERTER_PROFILE, MESSAGE_BYTES_MAX + 1);
    assert_head_refused(CONVERTER_TEXT, MESSAGE_BYTES_MAX);
    assert_message_refused((struct message_head){CONVERTER_TEXT, 2}, "ab");          /* no NUL */
    assert_message_refused((struct message_head){CONVERTER_TEXT, 3}, "a\0b");        /* two texts */
    assert_message_refused((struct message_head){CONVERTER_TEXT, 3}, "a\x1b");       /* a terminal would obey it */
    assert_message_refused((struct message_head){CONVERTER_LOST, 4}, "abc");         /* no count */
    assert_message_refused((struct message_head){CONVERTER_END, 0}, "");
    assert_message_refused((struct message_head){CONVERTER_END, 3}, "\0\x01");
    assert_message_refused((struct message_head){CONVERTER_PROFILE, 2}, "\0");
}

TEST_WITH(over_limit, open_pipe, close_pipe)
{
    const struct profile_pipe pipe = {ends[1]};
    struct converter_message m = {.event = CONVERTER_PROFILE, .profile = made()};
    uint8_t byte;

    m.profile.len_bytes = PROFILE_BYTES_MAX + 1;
    struct error *err = message_write(&pipe, &m);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_LIMIT);
    error_destroy(err);
    assert_int_equal(read(ends[0], &byte, 1), -1); /* nothing was written */
}
