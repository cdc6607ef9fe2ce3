/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an instruction to its source position.
 *
 * Every encoding is a list of steps through the bytecode, each with a change of the line,
 * starting at co_firstlineno. Decoding walks it up to the step that covers the instruction.
 *   PY_LINES_UNSIGNED   up to 3.5, co_lnotab: pairs (bytes, lines), both unsigned
 *   PY_LINES_SIGNED     3.6 to 3.9: the same, lines signed
 *   PY_LINES_RANGES     3.10, co_linetable: pairs (bytes, lines), lines signed, -128: no line
 *                       (PEP 626)
 *   PY_LINES_LOCATIONS  from 3.11: entries of varying length with columns (PEP 657;
 *                       Objects/locations.md, InternalDocs/code_objects.md in CPython's sources)
 * Tables come from a trace file and may be cut or garbage: then the answer is inexact, or the
 * line where the function begins; there always is one.
 */
#include <limits.h>

#include "formats/base/bytes.h"
#include "formats/cpython/code.h"
#include "formats/cpython/version.h"

/* The position that a step gives its instructions. */
struct step {
    int64_t line, end_line; /* wide enough: no table is long enough to overflow it */
    int64_t last_line;      /* the greatest line so far */
    int32_t column, end_column; /* -1: unknown */
    bool has_line;
};

static void move_to(struct step *step, int64_t line)
{
    step->line = line;
    if (line > step->last_line)
        step->last_line = line;
}

static bool fits(int64_t line)
{
    return line >= INT32_MIN && line <= INT32_MAX;
}

static struct py_position position(const struct step *step)
{
    struct py_position p = {.has_line = true, .line = (int32_t)step->line};

    p.end_line = fits(step->end_line) ? (int32_t)step->end_line : p.line;
    if (step->has_line && step->column >= 0 && step->end_column >= 0) {
        p.has_columns = true;
        p.column = step->column;
        p.end_column = step->end_column;
    }
    return p;
}

static bool walk_lnotab(struct bytes *b, bool is_signed, bool cut, int64_t offset, struct step *step)
{
    int64_t address = 0;

    while (bytes_left(b) >= 2) {
        address += bytes_u8(b);
        if (address > offset)
            return true;
        uint8_t lines = bytes_u8(b);
        move_to(step, step->line + (is_signed ? (int8_t)lines : lines));
    }
    return !cut;
}

static bool walk_ranges(struct bytes *b, int64_t offset, struct step *step)
{
    int64_t end = 0;

    while (bytes_left(b) >= 2) {
        end += bytes_u8(b);
        int8_t lines = (int8_t)bytes_u8(b);
        if (lines != -128)
            move_to(step, step->line + lines);
        if (offset < end)
            return lines != -128;
    }
    return false;
}

/* Six bits a byte, the lowest first; bit 6: more follow. */
static uint32_t read_varint(struct bytes *b)
{
    uint32_t v = 0;

    for (unsigned shift = 0; shift < 30; shift += 6) {
        uint8_t byte = bytes_u8(b);
        v |= (uint32_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            return v;
    }
    /* The sixth byte has room for two bits. */
    uint8_t byte = bytes_u8(b);
    if (byte & 0x7c)
        b->bad = true;
    return v | (uint32_t)(byte & 3) << 30;
}

static int64_t read_svarint(struct bytes *b)
{
    uint32_t v = read_varint(b);

    return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

static int32_t read_column(struct bytes *b)
{
    uint32_t v = read_varint(b);

    return v > INT32_MAX ? -1 : (int32_t)v - 1;
}

/* Codes of an entry of the location table. */
enum { SHORT_LAST = 9, ONE_LINE_FIRST = 10, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };

static bool walk_locations(struct bytes *b, int64_t offset, struct step *step)
{
    int64_t end = 0;

    while (bytes_left(b)) {
        struct step next = {.line = step->line, .column = -1, .end_column = -1, .has_line = true};
        uint8_t head = bytes_u8(b), code = head >> 3 & 15;
        if (!(head & 0x80))
            return false;
        end += ((head & 7) + 1) * 2;
        if (code <= SHORT_LAST) {
            uint8_t columns = bytes_u8(b);
            next.column = code << 3 | (columns >> 4 & 7);
            next.end_column = next.column + (columns & 15);
        } else if (code < NO_COLUMNS) {
            next.line += code - ONE_LINE_FIRST;
            next.column = bytes_u8(b);
            next.end_column = bytes_u8(b);
        } else if (code == NO_COLUMNS || code == LONG) {
            next.line += read_svarint(b);
        } else {
            next.has_line = false;
        }
        next.end_line = next.line;
        if (code == LONG) {
            next.end_line += read_varint(b);
            next.column = read_column(b);
            next.end_column = read_column(b);
        }
        if (b->bad)
            return false;
        next.last_line = step->last_line;
        move_to(&next, next.line);
        *step = next;
        if (offset < end)
            return next.has_line;
    }
    return false;
}

/* Does the table have a line for `offset`? `cut`: its end is missing. */
static bool walk_table(enum py_lines lines, struct bytes *b, bool cut, int64_t offset, struct step *step)
{
    switch (lines) {
    case PY_LINES_UNSIGNED:
    case PY_LINES_SIGNED:
        return walk_lnotab(b, lines == PY_LINES_SIGNED, cut, offset, step);
    case PY_LINES_RANGES:
        return walk_ranges(b, offset, step);
    case PY_LINES_LOCATIONS:
        return walk_locations(b, offset, step);
    }
    return false;
}

static struct step first_step(const struct py_code *code)
{
    return (struct step){code->first_line, code->first_line, code->first_line, -1, -1, true};
}

/* Walks the table of the code object, whose first line fits, up to the instruction at `offset`. */
static bool walk(const struct py_code *code, int64_t offset, struct step *step)
{
    const struct py_behaviour *version = py_behaviour_of(code->python_version);
    bool cut = code->line_table.len_bytes < code->line_table.len;
    struct bytes b = bytes_of(code->line_table.data, code->line_table.len_bytes);

    return version && offset >= 0 && code->line_table.form == 1 && walk_table(version->lines, &b, cut, offset, step);
}

int32_t py_code_last_line(const struct py_code *code)
{
    struct step step = first_step(code);

    if (!fits(code->first_line))
        return 0;
    walk(code, INT64_MAX, &step);
    return fits(step.last_line) ? (int32_t)step.last_line : (int32_t)code->first_line;
}

struct py_position py_code_position(const struct py_code *code, int64_t offset, bool *exact)
{
    const struct py_behaviour *version = py_behaviour_of(code->python_version);
    struct step step = first_step(code);

    *exact = false;
    if (!fits(code->first_line))
        return (struct py_position){0};
    *exact = walk(code, offset, &step);
    if (code->code_len_bytes && offset >= code->code_len_bytes)
        *exact = false;
    if (!fits(step.line)) {
        *exact = false;
        step.line = code->first_line;
    }
    if (!*exact)
        step.has_line = false; /* columns belong to exact answers only */
    if (!*exact || version->lines != PY_LINES_LOCATIONS)
        step.end_line = step.line;
    return position(&step);
}
