/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of an old text in a new one: as many as a table of longest common subsequences finds, in order, and alike. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/compare/line_map.h"

static void check(const char *old_text, const char *new_text, const uint32_t *wanted, uint32_t count)
{
    struct line_map map;

    OK(line_map_init(&map, old_text, new_text, NULL));
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(line_map_get(&map, i + 1), wanted[i]);
    assert_int_equal(line_map_get(&map, 0), 0);
    assert_int_equal(line_map_get(&map, count + 1), 0);
    line_map_deinit(&map);
}

TEST(edits)
{
    check("a\nb\nc\n", "a\nb\nc", (uint32_t[]){1, 2, 3}, 3);
    check("a\nb\nc\n", "new\na\nb\nc\n", (uint32_t[]){2, 3, 4}, 3);
    check("a\nb\nc\n", "a\nx\nc\n", (uint32_t[]){1, 0, 3}, 3);
    check("a\nb\nc\n", "", (uint32_t[]){0, 0, 0}, 3);
    check("", "a\n", NULL, 0);
    check("a\nb\nc\nd\n", "c\nd\na\nb\n", (uint32_t[]){0, 0, 1, 2}, 4);
    check("def f():\n    return 1\n", "class C:\n\tdef f():\n\t\treturn 1\r\n", (uint32_t[]){2, 3}, 2);
}

enum { LINES = 12 };

static uint32_t longest_common(const char *a, const char *b)
{
    uint32_t table[LINES + 1][LINES + 1] = {0};

    for (size_t i = 0; a[i]; i++) {
        for (size_t j = 0; b[j]; j++) {
            uint32_t best = table[i][j + 1] > table[i + 1][j] ? table[i][j + 1] : table[i + 1][j];
            table[i + 1][j + 1] = a[i] == b[j] ? table[i][j] + 1 : best;
        }
    }
    return table[strlen(a)][strlen(b)];
}

/* Draws up to LINES letters, and the text that has each on a line of its own. */
static void draw(uint32_t *random, char letters[LINES + 1], char text[2 * LINES + 1])
{
    size_t len = (*random = *random * 1664525 + 1013904223) >> 16 & 0xffff;

    len %= LINES + 1;
    for (size_t i = 0; i < len; i++) {
        *random = *random * 1664525 + 1013904223;
        letters[i] = text[2 * i] = (char)('a' + (*random >> 16) % 3);
        text[2 * i + 1] = '\n';
    }
    letters[len] = text[2 * len] = 0;
}

TEST(shortest)
{
    char a[LINES + 1], b[LINES + 1], a_text[2 * LINES + 1], b_text[2 * LINES + 1];
    uint32_t random = 1;

    for (int round = 0; round < 5000; round++) {
        struct line_map map;
        uint32_t found = 0, last = 0;
        draw(&random, a, a_text);
        draw(&random, b, b_text);
        OK(line_map_init(&map, a_text, b_text, NULL));
        for (uint32_t i = 1; i <= strlen(a); i++) {
            uint32_t line = line_map_get(&map, i);
            if (!line)
                continue;
            assert_true(line > last && a[i - 1] == b[line - 1]);
            last = line;
            found++;
        }
        assert_int_equal(found, longest_common(a, b));
        line_map_deinit(&map);
    }
}

/* Texts that have nothing in common but their ends cost no more than LINE_MAP_EDITS_MAX allows. */
TEST(different_texts)
{
    enum { COUNT = 50000, LEN = 8 };
    struct limits limits = {.memory_max = UINT64_C(1) << 30, .work_max = UINT64_C(1) << 30};
    char *old_text = malloc(COUNT * LEN + 1), *new_text = malloc(COUNT * LEN + 1);
    struct line_map map;

    for (int i = 0; i < COUNT; i++) {
        snprintf(old_text + LEN * i, LEN + 1, "o%06d\n", i);
        snprintf(new_text + LEN * i, LEN + 1, "n%06d\n", i);
    }
    memcpy(new_text, old_text, LEN);
    memcpy(new_text + (COUNT - 1) * LEN, old_text + (COUNT - 1) * LEN, LEN);
    OK(line_map_init(&map, old_text, new_text, &limits));
    assert_int_equal(line_map_get(&map, 1), 1);
    assert_int_equal(line_map_get(&map, 2), 0);
    assert_int_equal(line_map_get(&map, COUNT), COUNT);
    assert_int_equal(limits.memory_used, 0);
    line_map_deinit(&map);
    limits.work_max = limits.work_done + 1000;
    struct error *err = line_map_init(&map, old_text, new_text, &limits);
    assert_non_null(err);
    assert_true(limits.exceeded);
    error_destroy(err);
    line_map_deinit(&map);
    free(old_text);
    free(new_text);
}
