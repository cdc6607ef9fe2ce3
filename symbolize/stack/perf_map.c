/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/perf_map.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { LINES_MAX = 1 << 21, NAME_MAX_BYTES = 4096, NO_LINE = UINT32_MAX };
/* Of memory. Each line is cut into two pieces at most, and looking for these takes more for a while. */
#define LINE_COST (3 * sizeof(struct perf_map_line) + 32)

void perf_map_deinit(struct perf_map *m)
{
    limits_give(m->names.limits, m->lines.count * LINE_COST);
    VEC_DEINIT(&m->lines);
    VEC_DEINIT(&m->pieces);
    VEC_DEINIT(&m->piece_starts);
    arena_deinit(&m->names);
    *m = (struct perf_map){0};
}

/* ---- reading ---- */

static bool parse_hex(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *p = *at;
    unsigned digits = 0;

    *out = 0;
    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p += 2;
    for (; p < end && digits <= 16; p++, digits++) {
        uint8_t c = *p | 0x20;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
        if (digit > 15)
            break;
        *out = *out << 4 | (unsigned)digit;
    }
    *at = p;
    return digits && digits <= 16;
}

static bool skip_blanks(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;

    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    bool some = p > *at;
    *at = p;
    return some;
}

static bool add_line(struct perf_map *m, const uint8_t *p, const uint8_t *end)
{
    struct perf_map_line line;
    uint64_t size;

    if (p == end)
        return true;
    if (end[-1] == '\r')
        end--;
    if (m->lines.count == LINES_MAX || !parse_hex(&p, end, &line.start) || !skip_blanks(&p, end) ||
        !parse_hex(&p, end, &size) || !skip_blanks(&p, end) || p == end || !size ||
        __builtin_add_overflow(line.start, size, &line.end)) {
        m->bad_count++;
        return true;
    }
    size_t len = (size_t)(end - p) < NAME_MAX_BYTES ? (size_t)(end - p) : NAME_MAX_BYTES;
    const uint8_t *nul = memchr(p, 0, len);
    line.name = arena_strndup(&m->names, (const char *)p, nul ? (size_t)(nul - p) : len);
    return line.name && limits_take(m->names.limits, LINE_COST) && VEC_PUSH(&m->lines, line);
}

bool perf_map_add(struct perf_map *m, const uint8_t *text, uint64_t len_bytes)
{
    uint64_t from = 0;

    if (m->read_len && len_bytes >= m->read_len && text[m->read_len - 1] == '\n' &&
        XXH3_64bits(text, m->read_len) == m->read_hash)
        from = m->read_len;
    m->read_len = len_bytes;
    m->read_hash = XXH3_64bits(text, len_bytes);
    for (const uint8_t *p = text + from, *end = text + len_bytes; p < end;) {
        const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
        const uint8_t *line_end = newline ? newline : end;
        if (!add_line(m, p, line_end))
            return false;
        p = line_end + (newline != NULL);
    }
    m->unfinished = true;
    return true;
}

/* ---- looking up ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static size_t index_of(const uint64_t *points, size_t count, uint64_t value)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points[middle] <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : SIZE_MAX;
}

/*
 * Every boundary cuts the addresses into intervals. The lines paint them, the last one first, and what is painted stays:
 * `next[i]` leads to the first interval from i on that is not painted yet, so that each is painted once however lines
 * overlap.
 */
static bool finish(struct perf_map *m)
{
    size_t n = m->lines.count, count = 0;

    if (!limits_work(m->names.limits, 200 * n))
        return false;
    uint64_t *points = malloc((2 * n + 1) * sizeof *points);
    uint32_t *next = malloc((2 * n + 1) * sizeof *next), *owner = malloc((2 * n + 1) * sizeof *owner);
    bool ok = points && next && owner;

    m->pieces.count = m->piece_starts.count = 0;
    for (size_t i = 0; ok && i < n; i++) {
        points[2 * i] = m->lines.data[i].start;
        points[2 * i + 1] = m->lines.data[i].end;
    }
    if (ok && n)
        qsort(points, 2 * n, sizeof *points, compare_u64);
    for (size_t i = 0; ok && i < 2 * n; i++)
        if (!count || points[count - 1] != points[i])
            points[count++] = points[i];
    for (size_t i = 0; ok && i <= count; i++) {
        next[i] = (uint32_t)i;
        owner[i] = NO_LINE;
    }
    for (size_t line = n; ok && line-- > 0;) {
        size_t end = index_of(points, count, m->lines.data[line].end);
        uint32_t i = (uint32_t)index_of(points, count, m->lines.data[line].start);
        for (;;) {
            while (next[i] != i) { /* path halving, as in union-find */
                next[i] = next[next[i]];
                i = next[i];
            }
            if (i >= end)
                break;
            owner[i] = (uint32_t)line;
            next[i] = i + 1;
        }
    }
    for (size_t i = 0; ok && i + 1 < count; i++) {
        if (owner[i] == NO_LINE)
            continue;
        struct perf_map_line piece = m->lines.data[owner[i]];
        piece.end = points[i + 1];
        ok = VEC_PUSH(&m->pieces, piece) && VEC_PUSH(&m->piece_starts, points[i]);
    }
    free(points);
    free(next);
    free(owner);
    m->unfinished = false;
    return ok;
}

const struct perf_map_line *perf_map_find(struct perf_map *m, uint64_t address)
{
    if (m->unfinished && !finish(m)) /* without memory for the table its lines have no names */
        m->pieces.count = m->piece_starts.count = 0;
    size_t i = index_of(m->piece_starts.data, m->piece_starts.count, address);
    return i < m->pieces.count && address < m->pieces.data[i].end ? &m->pieces.data[i] : NULL;
}
