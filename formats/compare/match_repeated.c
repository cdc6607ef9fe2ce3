/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs up functions of one name in three steps, each of which only looks at what is left. */
#include "formats/compare/match_repeated.h"

#include <stdlib.h>

static void pair_up(struct repeated *old, size_t o, struct repeated *new, size_t n)
{
    old[o].partner = (uint32_t)n;
    new[n].partner = (uint32_t)o;
}

static void match_lines(struct repeated *old, size_t old_count, struct repeated *new, size_t new_count)
{
    for (size_t o = 0, n = 0; o < old_count && n < new_count;) {
        if (old[o].first_line != new[n].first_line) {
            old[o].first_line < new[n].first_line ? o++ : n++;
            continue;
        }
        if (old[o].fingerprint == new[n].fingerprint || !old[o].fingerprint || !new[n].fingerprint)
            pair_up(old, o, new, n);
        o++;
        n++;
    }
}

/* A function that is left, for sorting by code. */
struct left_over {
    uint64_t fingerprint;
    size_t index;
};

static int by_fingerprint(const void *a, const void *b)
{
    uint64_t x = ((const struct left_over *)a)->fingerprint, y = ((const struct left_over *)b)->fingerprint;

    return (x > y) - (x < y);
}

/* The functions with a known code that have no partner. */
static size_t collect_left(const struct repeated *functions, size_t count, struct left_over *out)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        if (functions[i].partner == REPEATED_NONE && functions[i].fingerprint)
            out[left++] = (struct left_over){functions[i].fingerprint, i};
    qsort(out, left, sizeof *out, by_fingerprint);
    return left;
}

/* How many from `from` on have the same code. */
static size_t same_code(const struct left_over *left, size_t from, size_t count)
{
    size_t to = from;

    while (to < count && left[to].fingerprint == left[from].fingerprint)
        to++;
    return to - from;
}

static bool match_fingerprints(struct repeated *old, size_t old_count, struct repeated *new, size_t new_count)
{
    struct left_over *olds = calloc(old_count + new_count + 1, sizeof *olds), *news = olds + old_count;

    if (!olds)
        return false;
    size_t old_left = collect_left(old, old_count, olds), new_left = collect_left(new, new_count, news);
    for (size_t o = 0, n = 0; o < old_left && n < new_left;) {
        size_t old_same = same_code(olds, o, old_left), new_same = same_code(news, n, new_left);
        int order = by_fingerprint(&olds[o], &news[n]);
        if (!order && old_same == 1 && new_same == 1)
            pair_up(old, olds[o].index, new, news[n].index);
        o += order <= 0 ? old_same : 0;
        n += order >= 0 ? new_same : 0;
    }
    free(olds);
    return true;
}

/* How many from `from` on have no partner. */
static size_t gap(const struct repeated *functions, size_t from, size_t count)
{
    size_t to = from;

    while (to < count && functions[to].partner == REPEATED_NONE)
        to++;
    return to - from;
}

static void match_gap(struct repeated *old, size_t o, size_t old_count, struct repeated *new, size_t n, size_t new_count)
{
    size_t count = gap(old, o, old_count);

    if (count != gap(new, n, new_count))
        return;
    while (count--)
        pair_up(old, o + count, new, n + count);
}

bool match_repeated(struct repeated *old, size_t old_count, struct repeated *new, size_t new_count)
{
    for (size_t i = 0; i < old_count; i++)
        old[i].partner = REPEATED_NONE;
    for (size_t i = 0; i < new_count; i++)
        new[i].partner = REPEATED_NONE;
    match_lines(old, old_count, new, new_count);
    if (!match_fingerprints(old, old_count, new, new_count))
        return false;
    /* From the end, so that what is paired up here does not count as one that gaps lie between. */
    for (size_t o = old_count; o-- > 0;)
        if (old[o].partner != REPEATED_NONE)
            match_gap(old, o + 1, old_count, new, old[o].partner + 1, new_count);
    match_gap(old, 0, old_count, new, 0, new_count);
    return true;
}
