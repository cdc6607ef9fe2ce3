/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a trace has an END record is seen without reading it all: like the reader would see it, cut anywhere. */
#include "tests/unit/test.h"
#include "tests/unit/trace_fixture.h"

#include <fcntl.h>

#include "formats/trace/ending.h"

/* A trace of several blocks and two epochs. */
static int made(bool with_end)
{
    const struct trace_writer_options options = {.block_max_bytes = 200};
    struct trace_end end = {.time_ns = 9, .reason = TRACE_END_SIGNAL};
    struct trace_writer *w;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", &options, 5, &w));
    for (int epoch = 0; epoch < 2; epoch++) {
        char text[32];
        if (epoch)
            trace_writer_new_epoch(w, 7);
        for (int i = 0; i < 100; i++) {
            snprintf(text, sizeof text, "string %d", i);
            trace_writer_cstr(w, text);
        }
    }
    if (with_end)
        trace_writer_put(w, TRACE_end, &end);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
    return fd;
}

static bool has_end(int fd)
{
    bool ended;

    OK(trace_has_end(fd, "t", &ended));
    return ended;
}

TEST(whole_traces)
{
    int with = made(true), without = made(false);

    assert_true(has_end(with));
    assert_false(has_end(without));
    close(with);
    close(without);
}

TEST(cut_anywhere)
{
    int fd = made(true);
    off_t len = lseek(fd, 0, SEEK_END);

    for (off_t at = len - 1; at >= 0; at--) {
        assert_int_equal(ftruncate(fd, at), 0);
        assert_false(has_end(fd));
    }
    close(fd);
}

/* A byte that is wrong in the last block, or where blocks say how long they are. */
TEST(damage)
{
    int fd = made(true);
    off_t len = lseek(fd, 0, SEEK_END);
    uint8_t byte;

    for (off_t at = len - 1; at >= len - TRACE_BLOCK_HEADER_BYTES; at--) {
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x55;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_false(has_end(fd));
        byte ^= 0x55;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_true(has_end(fd));
    close(fd);
}

/* One trace was appended to another: the last one decides. */
TEST(appended)
{
    int fd = made(true), more = made(false);
    struct buf bytes = contents(more);

    lseek(fd, 0, SEEK_END);
    assert_int_equal(write(fd, bytes.data, bytes.len_bytes), bytes.len_bytes);
    assert_false(has_end(fd));
    buf_deinit(&bytes);
    bytes = contents(fd);
    int last = made(true);
    struct buf end = contents(last);
    lseek(fd, 0, SEEK_END);
    assert_int_equal(write(fd, end.data, end.len_bytes), end.len_bytes);
    assert_true(has_end(fd));
    buf_deinit(&bytes);
    buf_deinit(&end);
    close(fd);
    close(more);
    close(last);
}

TEST(no_trace)
{
    int fd = memory_file();

    assert_false(has_end(fd));
    assert_int_equal(write(fd, "something else, that is long enough to hold a header of a block", 60), 60);
    assert_false(has_end(fd));
    close(fd);
}
