/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/compare/line_map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/intern.h"
#include "formats/base/vec.h"

/* A text as numbers: equal lines have equal ones. */
struct numbered_lines {
    VEC(uint32_t) lines;
};

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && strchr(" \t\f", *at))
        at++;
    return at;
}

static bool number_lines(const char *text, struct intern *known, struct numbered_lines *out)
{
    while (*text) {
        const char *end = text + strcspn(text, "\n"), *from = skip_blanks(text, end), *last = end;
        while (last > from && strchr(" \t\f\r", last[-1]))
            last--;
        uint32_t id = intern_id(known, from, (uint32_t)(last - from), NULL);
        if (id == INTERN_NONE || !VEC_PUSH(&out->lines, id))
            return false;
        text = *end ? end + 1 : end;
    }
    return true;
}

/* The parts of both texts that lie between what they begin and end with alike. */
struct middle {
    const uint32_t *old_lines, *new_lines;
    int64_t old_count, new_count;
    uint32_t first; /* lines before it */
};

/*
 * The furthest points reached with each number of edits. With d edits the diagonals from -d to d are reached in steps of two;
 * furthest[d * d + d + k] is how many old lines are behind on diagonal k (old lines less new lines), so the rows for
 * successive d lie behind each other.
 */
struct reached {
    VEC(int32_t) furthest;
    struct limits *limits;
};

static int32_t at(const struct reached *r, int64_t d, int64_t k)
{
    return r->furthest.data[d * d + d + k];
}

/* Whether the path to diagonal k with d edits comes from k + 1, by a line that was added, rather than from k - 1. */
static bool comes_from_above(const struct reached *r, int64_t d, int64_t k)
{
    return k == -d || (k != d && at(r, d - 1, k - 1) < at(r, d - 1, k + 1));
}

static int64_t start_on(const struct reached *r, int64_t d, int64_t k)
{
    if (!d)
        return 0;
    return comes_from_above(r, d, k) ? at(r, d - 1, k + 1) : at(r, d - 1, k - 1) + 1;
}

enum search { SEARCH_FOUND, SEARCH_ON, SEARCH_FAILED };

/* Goes as far as d edits lead. */
static enum search search_row(const struct middle *m, struct reached *r, int64_t d)
{
    size_t count = (size_t)((d + 1) * (d + 1));

    if (!VEC_EXTEND_COUNTED(r->limits, &r->furthest, count))
        return SEARCH_FAILED;
    for (int64_t k = -d; k <= d; k += 2) {
        int64_t x = start_on(r, d, k), y = x - k, from = x;
        while (x < m->old_count && y >= 0 && y < m->new_count && m->old_lines[x] == m->new_lines[y])
            x++, y++;
        r->furthest.data[d * d + d + k] = (int32_t)x;
        if (!limits_work(r->limits, 4 + 2 * (uint64_t)(x - from)))
            return SEARCH_FAILED;
        if (x >= m->old_count && y >= m->new_count)
            return SEARCH_FOUND;
    }
    return SEARCH_ON;
}

/* Goes back from the end, and notes the lines that are alike on the way. */
static void note_alike(const struct middle *m, const struct reached *r, int64_t d, struct line_map *map)
{
    int64_t x = m->old_count, y = m->new_count;

    for (; d >= 0; d--) {
        int64_t k = x - y, start = start_on(r, d, k);
        for (; x > start; x--, y--)
            map->new_lines[m->first + (uint32_t)x - 1] = m->first + (uint32_t)y;
        if (d) {
            bool above = comes_from_above(r, d, k);
            x = above ? x : x - 1;
            y = above ? y - 1 : y;
        }
    }
}

static bool map_middle(const struct middle *m, struct limits *limits, struct line_map *map)
{
    struct reached r = {.limits = limits};
    enum search state = SEARCH_ON;
    int64_t d = -1;

    while (state == SEARCH_ON && d < LINE_MAP_EDITS_MAX)
        state = search_row(m, &r, ++d);
    if (state == SEARCH_FOUND)
        note_alike(m, &r, d, map);
    limits_give(limits, r.furthest.count * sizeof *r.furthest.data);
    VEC_DEINIT(&r.furthest);
    return state != SEARCH_FAILED;
}

/* Maps what both begin and end with, and then what lies between. */
static bool map_lines(const struct numbered_lines *old, const struct numbered_lines *new, struct limits *limits, struct line_map *map)
{
    size_t old_count = old->lines.count, new_count = new->lines.count, first = 0, shorter = old_count < new_count ? old_count : new_count;

    for (; first < shorter && old->lines.data[first] == new->lines.data[first]; first++)
        map->new_lines[first] = (uint32_t)first + 1;
    while (old_count > first && new_count > first && old->lines.data[old_count - 1] == new->lines.data[new_count - 1])
        map->new_lines[--old_count] = (uint32_t)new_count--;
    struct middle m = {.old_lines = old->lines.data + first, .new_lines = new->lines.data + first,
                       .old_count = (int64_t)(old_count - first), .new_count = (int64_t)(new_count - first), .first = (uint32_t)first};
    return !m.old_count || !m.new_count || map_middle(&m, limits, map);
}

struct error *line_map_init(struct line_map *map, const char *old_text, const char *new_text, struct limits *limits)
{
    struct numbered_lines old = {0}, new = {0};
    struct intern known = {0};

    *map = (struct line_map){0};
    bool good = limits_work(limits, 10 * (uint64_t)(strlen(old_text) + strlen(new_text))) && number_lines(old_text, &known, &old) &&
                number_lines(new_text, &known, &new);
    if (good) {
        map->count = (uint32_t)old.lines.count;
        map->new_lines = calloc(old.lines.count + 1, sizeof *map->new_lines);
        good = map->new_lines && map_lines(&old, &new, limits, map);
    }
    intern_deinit(&known);
    VEC_DEINIT(&old.lines);
    VEC_DEINIT(&new.lines);
    return good ? NULL : error_no_memory();
}

void line_map_deinit(struct line_map *map)
{
    free(map->new_lines);
    *map = (struct line_map){0};
}

uint32_t line_map_get(const struct line_map *map, uint32_t old_line)
{
    return old_line && old_line <= map->count ? map->new_lines[old_line - 1] : 0;
}
