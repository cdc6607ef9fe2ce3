/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares our decoding of line tables with what CPython says of them: text of tests/tools/make-linetable-golden.py
 * or tests/tools/line-truth.py, whose forms the former describes.
 */
#ifndef TESTS_TOOLS_LINE_TRUTH_H
#define TESTS_TOOLS_LINE_TRUTH_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/cpython/code.h"

struct line_truth {
    struct py_code code;
    uint8_t *table;
    char name[256];              /* of the code object, for messages */
    uint64_t code_objects, bytes; /* so much bytecode was compared */
    char wrong[1024];            /* what differed first; "" if nothing did */
};

static inline bool line_truth_code(struct line_truth *t, const char *line)
{
    int table_at = 0;

    if (sscanf(line, "code %255s %" SCNd64 " %u %n", t->name, &t->code.first_line, &t->code.code_len_bytes,
               &table_at) != 3 ||
        !table_at)
        return false;
    const char *hex = line + table_at;
    size_t len = strspn(hex, "0123456789abcdef") / 2;
    free(t->table);
    t->table = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        if (!t->table || sscanf(hex + 2 * i, "%2hhx", &t->table[i]) != 1)
            return false;
    t->code.line_table = (struct py_string){1, len, t->table, len};
    t->code_objects++;
    return true;
}

static inline bool line_truth_is(const char *text, bool has, int32_t value)
{
    return strcmp(text, "-") == 0 ? !has : has && atoi(text) == value;
}

static inline bool line_truth_stretch(struct line_truth *t, const char *line)
{
    char text[4][16];
    int64_t start, end;

    if (sscanf(line, "at %" SCNd64 " %" SCNd64 " %15s %15s %15s %15s", &start, &end, text[0], text[1], text[2],
               text[3]) != 6 ||
        start < 0 || end > t->code.code_len_bytes)
        return false;
    for (int64_t offset = start; offset < end; offset++) {
        bool exact;
        struct py_position p = py_code_position(&t->code, offset, &exact);
        if (!line_truth_is(text[0], exact, p.line) || (exact && !line_truth_is(text[1], exact, p.end_line)) ||
            !line_truth_is(text[2], p.has_columns, p.column) ||
            !line_truth_is(text[3], p.has_columns, p.end_column) || !p.has_line) {
            snprintf(t->wrong, sizeof t->wrong, "%s: offset %d: %d-%d:%d-%d exact %d, but CPython says %s", t->name,
                     (int)offset, (int)p.line, (int)p.end_line, (int)p.column, (int)p.end_column, exact, line);
            return true;
        }
        t->bytes++;
    }
    return true;
}

/* Reads all of `f`; true when it is such text, and nothing differs. The caller frees `table`. */
static inline bool line_truth_check(struct line_truth *t, FILE *f)
{
    char *line = NULL;
    size_t cap = 0;

    while (!t->wrong[0] && getline(&line, &cap, f) > 0)
        if (line[0] != '#' && sscanf(line, "python %x", &t->code.python_version) != 1 && !line_truth_code(t, line) &&
            !line_truth_stretch(t, line))
            snprintf(t->wrong, sizeof t->wrong, "no such line: %s", line);
    free(line);
    return !t->wrong[0];
}

#endif
