/* SPDX-License-Identifier: Apache-2.0 */
/* What a flight recorder keeps, what it drops, and what a file gets of it. */
#include "tests/unit/test.h"

#include "capture/session/flight_store.h"
#include "formats/base/buf.h"

static int setup(void **state)
{
    return (*state = flight_store_create()) == NULL;
}

static int teardown(void **state)
{
    flight_store_destroy(*state);
    return 0;
}

static void add(struct flight_store *f, const char *text)
{
    assert_true(flight_store_add(f, text, strlen(text)));
}

/* A part that begins at `time_ns` and has two blocks: its letter twice and three times. */
static void part(struct flight_store *f, uint64_t time_ns, const char *letter)
{
    char text[4] = {*letter, *letter, *letter};

    assert_true(flight_store_begin(f, time_ns));
    add(f, text + 1);
    add(f, text);
}

/* Up to `most` of the blocks that the file still lacks, with spaces between them. */
static void assert_next(struct flight_store *f, int most, const char *expected)
{
    struct buf text = {0};
    const void *data;
    size_t len;

    while (most-- > 0 && flight_store_next(f, &data, &len))
        buf_printf(&text, "%s%.*s", text.len_bytes ? " " : "", (int)len, (const char *)data);
    assert_string_equal(buf_cstr(&text), expected);
    buf_deinit(&text);
}

static void assert_file(struct flight_store *f, const char *expected)
{
    uint64_t samples, lost;

    flight_store_write(f);
    assert_next(f, 100, expected);
    flight_store_written(f, &samples, &lost);
}

TEST_WITH(empty, setup, teardown)
{
    struct flight_store *f = *state;

    assert_int_equal(flight_store_bytes(f), 0);
    assert_int_equal(flight_store_since_ns(f), 0);
    assert_false(flight_store_add(f, "x", 1)); /* there is no part */
    flight_store_drop_before(f, 100);
    flight_store_drop_above(f, 0);
    assert_file(f, "");
}

TEST_WITH(reaches_back, setup, teardown)
{
    struct flight_store *f = *state;

    part(f, 10, "a");
    part(f, 20, "b");
    part(f, 30, "c");
    flight_store_drop_before(f, 19);
    assert_file(f, "aa aaa bb bbb cc ccc");
    flight_store_drop_before(f, 20);
    assert_file(f, "bb bbb cc ccc");
    assert_int_equal(flight_store_since_ns(f), 20);
    flight_store_drop_before(f, 1000);
    assert_file(f, "cc ccc"); /* the newest stays */
    assert_int_equal(flight_store_bytes(f), 5);
}

TEST_WITH(bytes, setup, teardown)
{
    struct flight_store *f = *state;

    part(f, 10, "a");
    part(f, 20, "b");
    part(f, 30, "c");
    assert_int_equal(flight_store_bytes(f), 15);
    assert_int_equal(flight_store_part_bytes(f), 5);
    flight_store_drop_above(f, 14);
    assert_int_equal(flight_store_bytes(f), 10);
    flight_store_drop_above(f, 0);
    assert_int_equal(flight_store_bytes(f), 5);
    assert_file(f, "cc ccc");
}

/* Blocks and parts that come while the file is written are in it, too, and those it lacks are not dropped. */
TEST_WITH(goes_on, setup, teardown)
{
    struct flight_store *f = *state;
    uint64_t samples, lost;

    part(f, 10, "a");
    flight_store_count(f, 1, 100);
    part(f, 20, "b");
    flight_store_count(f, 2, 200);
    flight_store_write(f);
    assert_next(f, 1, "aa");
    flight_store_drop_above(f, 0);
    assert_next(f, 2, "aaa bb");
    flight_store_drop_above(f, 0); /* the first part is in the file */
    assert_int_equal(flight_store_bytes(f), 5);
    assert_next(f, 100, "bbb");
    assert_next(f, 100, "");
    add(f, "late");
    part(f, 30, "c");
    assert_next(f, 100, "late cc ccc");
    flight_store_count(f, 4, 400);
    flight_store_written(f, &samples, &lost);
    assert_int_equal(samples, 7);
    assert_int_equal(lost, 700);
    part(f, 40, "d");
    assert_next(f, 100, ""); /* no file is written */
    assert_file(f, "bb bbb late cc ccc dd ddd");
    flight_store_drop_before(f, 1000);
    assert_file(f, "dd ddd");
}

/* The sums of a file are those of its parts, whatever was dropped before and between. */
TEST_WITH(sums, setup, teardown)
{
    struct flight_store *f = *state;
    uint64_t samples = 0, lost = 0;

    for (uint64_t i = 1; i <= 50; i++) {
        part(f, i, "x");
        flight_store_count(f, i, 1000 * i);
        flight_store_drop_above(f, 20);
    }
    flight_store_write(f);
    flight_store_written(f, &samples, &lost);
    assert_int_equal(samples, 47 + 48 + 49 + 50);
    assert_int_equal(lost, 1000 * (47 + 48 + 49 + 50));
}
