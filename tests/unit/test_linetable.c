/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables against what CPython itself says of them (testdata/linetable, made by
 * tests/tools/make-linetable-golden.py), cut at every byte, and made of random bytes.
 */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/cpython/code.h"
#include "tests/tools/line_truth.h"

static void check_golden(const char *path)
{
    struct line_truth truth = {0};
    FILE *f = fopen(path, "r");

    if (!f)
        fail_msg("%s: cannot be opened", path);
    if (!line_truth_check(&truth, f))
        fail_msg("%s: %s", path, truth.wrong);
    assert_true(truth.bytes > 2000);
    free(truth.table);
    fclose(f);
}

TEST(python_2_7) { check_golden("testdata/linetable/2.7.txt"); }
TEST(python_3_6) { check_golden("testdata/linetable/3.6.txt"); }
TEST(python_3_9) { check_golden("testdata/linetable/3.9.txt"); }
TEST(python_3_10) { check_golden("testdata/linetable/3.10.txt"); }
TEST(python_3_11) { check_golden("testdata/linetable/3.11.txt"); }
TEST(python_3_12) { check_golden("testdata/linetable/3.12.txt"); }
TEST(python_3_13) { check_golden("testdata/linetable/3.13.txt"); }
TEST(python_3_14) { check_golden("testdata/linetable/3.14.txt"); }
TEST(python_3_15) { check_golden("testdata/linetable/3.15.txt"); }

static const uint32_t versions[] = {0x020712f0, 0x03060ff0, 0x030912f0, 0x030a0df0, 0x030b07f0, 0x030d00f0};
#define VERSION_COUNT (sizeof versions / sizeof *versions)

static struct py_code code_of(uint32_t version, const uint8_t *table, uint64_t len)
{
    return (struct py_code){.python_version = version, .first_line = 10, .line_table = {1, len, table, len}};
}

static void assert_inexact(const struct py_code *code, int64_t offset, int32_t line)
{
    bool exact = true;
    struct py_position p = py_code_position(code, offset, &exact);

    assert_false(exact);
    assert_true(p.has_line);
    assert_false(p.has_columns);
    assert_int_equal(p.line, line);
    assert_int_equal(p.end_line, line);
}

TEST(before_first_instruction)
{
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        struct py_code code = code_of(versions[i], (const uint8_t *)"\2\1\2\1", 4);
        assert_inexact(&code, -1, 10);
        assert_inexact(&code, -2, 10);
        assert_inexact(&code, INT64_MIN, 10);
    }
}

TEST(missing_table)
{
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        struct py_code code = {.python_version = versions[i], .first_line = 10};
        assert_inexact(&code, 0, 10);
        assert_inexact(&code, INT64_MAX, 10);
    }
}

/* A trace may be newer than its reader: a table of an unknown version is not taken for one that is known. */
TEST(unknown_version)
{
    static const uint8_t locations[] = {0xe8, 0x02, 0xe8, 0x04, 0xe8, 0x06};
    struct py_code code = code_of(0x030b07f0, locations, sizeof locations);
    bool exact;

    assert_int_equal(py_code_position(&code, 4, &exact).line, 16);
    assert_true(exact);
    code.python_version = 0x040000f0;
    assert_inexact(&code, 4, 10);
    code.python_version = 0;
    assert_inexact(&code, 4, 10);
}

/* Cut: what the rest still says is exact, what lay behind gets the nearest line before. */
TEST(cut_table)
{
    static const uint8_t locations[] = {0xe8, 0x02, 0xe8, 0x04, 0xe8, 0x06}; /* one unit each, +1 +2 +3 */
    static const uint8_t pairs[] = {2, 1, 2, 2, 2, 3};
    struct py_code code = code_of(0x030b07f0, locations, sizeof locations);
    bool exact;

    code.line_table.len_bytes = 5;
    assert_int_equal(py_code_position(&code, 2, &exact).line, 13);
    assert_true(exact);
    assert_inexact(&code, 4, 13);
    code = code_of(0x030a0df0, pairs, sizeof pairs);
    code.line_table.len_bytes = 5;
    assert_int_equal(py_code_position(&code, 2, &exact).line, 13);
    assert_true(exact);
    assert_inexact(&code, 4, 13);
    code = code_of(0x030912f0, pairs, sizeof pairs);
    code.line_table.len_bytes = 4;
    assert_int_equal(py_code_position(&code, 3, &exact).line, 11);
    assert_true(exact);
    assert_inexact(&code, 4, 13);
    code.line_table.len = 4;
    assert_int_equal(py_code_position(&code, 4, &exact).line, 13);
    assert_true(exact);
    code.code_len_bytes = 6;
    assert_inexact(&code, 6, 13);
}

TEST(no_line)
{
    static const uint8_t locations[] = {0xe8, 0x02, 0xf8, 0xe8, 0x02};
    static const uint8_t pairs[] = {2, 1, 2, 0x80, 2, 1};
    struct py_code code = code_of(0x030b07f0, locations, sizeof locations);
    bool exact;

    assert_inexact(&code, 2, 11);
    assert_int_equal(py_code_position(&code, 4, &exact).line, 12);
    code = code_of(0x030a0df0, pairs, sizeof pairs);
    assert_inexact(&code, 2, 11);
    assert_int_equal(py_code_position(&code, 4, &exact).line, 12);
}

/* Numbers that no table of CPython has: the answer is inexact, not undefined. */
TEST(absurd_numbers)
{
    uint8_t table[4000];
    struct py_code code = code_of(0x030b07f0, table, sizeof table);
    bool exact;

    for (size_t i = 0; i + 8 <= sizeof table; i += 8)
        memcpy(table + i, "\xef\x7e\x7f\x7f\x7f\x7f\x03\xf8", 8); /* line += 2^31 - 1 */
    struct py_position p = py_code_position(&code, 7000, &exact);
    assert_false(exact);
    assert_int_equal(p.line, 10);
    memcpy(table, "\xf0\x00\x7f\x7f\x7f\x7f\x7f\x03\x7f\x7f\x7f\x7f\x7f\x03\x01",
           15); /* end line and column 2^32 - 1 */
    p = py_code_position(&code, 0, &exact);
    assert_true(exact);
    assert_int_equal(p.end_line, 10);
    assert_false(p.has_columns);
    code.first_line = INT64_MAX;
    p = py_code_position(&code, 0, &exact);
    assert_false(exact);
    assert_false(p.has_line);
}

TEST(last_line)
{
    static const uint8_t locations[] = {0xe8, 0x0a, 0xf8, 0xe8, 0x03, 0xe8, 0x02}; /* +5, no line, -1, +1 */
    static const uint8_t ranges[] = {2, 5, 2, 0x80, 2, 0xff, 2, 1}, pairs[] = {2, 5, 2, 0xff, 2, 1};
    struct py_code code = code_of(0x030b07f0, locations, sizeof locations);

    assert_int_equal(py_code_last_line(&code), 15);
    code.line_table.len_bytes = 2; /* cut: as far as it says */
    assert_int_equal(py_code_last_line(&code), 15);
    code.line_table.len_bytes = 0;
    assert_int_equal(py_code_last_line(&code), 10);
    code = code_of(0x030a0df0, ranges, sizeof ranges);
    assert_int_equal(py_code_last_line(&code), 15);
    code = code_of(0x030912f0, pairs, sizeof pairs);
    assert_int_equal(py_code_last_line(&code), 15);
    code = code_of(0x020712f0, pairs, sizeof pairs); /* unsigned */
    assert_int_equal(py_code_last_line(&code), 10 + 5 + 255 + 1);
    code.python_version = 0x040000f0; /* unknown */
    assert_int_equal(py_code_last_line(&code), 10);
    code.first_line = INT64_MAX;
    assert_int_equal(py_code_last_line(&code), 0);
}

/* The last line is the greatest that any instruction has. */
static void check_last_line(const struct py_code *code)
{
    int32_t greatest = (int32_t)code->first_line;
    bool exact;

    for (int64_t offset = 0; offset < 1100; offset++) {
        struct py_position p = py_code_position(code, offset, &exact);
        greatest = exact && p.line > greatest ? p.line : greatest;
    }
    assert_true(py_code_last_line(code) >= greatest);
}

TEST(random_bytes)
{
    uint8_t table[64];
    bool exact;

    srand(1);
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof table; i++)
            table[i] = (uint8_t)(rand() >> 7);
        /* On the heap, so that a step past the end is seen. */
        size_t len = (size_t)rand() % sizeof table;
        uint8_t *copy = malloc(len + 1);
        memcpy(copy, table, len);
        uint8_t *tight = realloc(copy, len ? len : 1);
        struct py_code code = code_of(versions[round % VERSION_COUNT], tight, len);
        code.first_line = (int64_t)rand() << 20;
        py_code_position(&code, rand() % 1000, &exact);
        py_code_last_line(&code);
        if (round % 100 == 0) {
            code.first_line = 1000;
            check_last_line(&code);
        }
        free(tight);
    }
}
