/* SPDX-License-Identifier: Apache-2.0 */
/* Where unwind tables lie, how that grows, and which make room for others. */
#include "tests/unit/test.h"

#include <string.h>

#include "capture/binary/extents.h"
#include "capture/binary/table_space.h"
#include "capture/binary/table_victims.h"
#include "capture/binary/table_wants.h"

/* ---- space ---- */

static uint32_t take(struct extents *e, uint32_t count)
{
    uint32_t start;

    assert_true(extents_take(e, count, &start));
    return start;
}

TEST(space_waits)
{
    struct extents e;
    uint32_t start;

    assert_true(extents_init(&e, 30));
    assert_int_equal(take(&e, 10), 0);
    assert_int_equal(take(&e, 10), 10);
    assert_int_equal(take(&e, 10), 20);
    assert_false(extents_take(&e, 1, &start));
    /* Given back out of order: each is free by its own time, not by that of what was given back before it. */
    assert_true(extents_give(&e, 20, 10, 300));
    assert_true(extents_give(&e, 0, 10, 100));
    assert_true(extents_give(&e, 10, 10, 200));
    for (size_t i = 1; i < e.waiting.count; i++)
        assert_true(e.waiting.data[i - 1].time_ns <= e.waiting.data[i].time_ns);
    assert_true(extents_free_after_grace(&e, 100));
    assert_false(extents_take(&e, 1, &start));
    assert_true(extents_free_after_grace(&e, 101));
    assert_int_equal(e.used, 20);
    assert_true(extents_free_after_grace(&e, 201));
    assert_int_equal(take(&e, 20), 0);
    assert_true(extents_free_after_grace(&e, 301));
    assert_int_equal(take(&e, 10), 20);
    extents_deinit(&e);
}

/* There is more room when it is needed, and where it is needed: at the end. */
TEST(space_grows)
{
    struct extents e;

    assert_true(extents_init(&e, 0));
    assert_int_equal(extents_end_gap(&e), 0);
    assert_true(extents_grow(&e, 10));
    assert_int_equal(take(&e, 6), 0);
    assert_int_equal(extents_end_gap(&e), 4);
    assert_true(extents_grow(&e, 10));
    assert_int_equal(e.used, 6);
    assert_int_equal(extents_end_gap(&e), 14);
    assert_int_equal(take(&e, 14), 6);
    assert_int_equal(extents_end_gap(&e), 0);
    assert_true(extents_give(&e, 0, 6, 1));
    assert_true(extents_free_after_grace(&e, 2));
    assert_int_equal(extents_end_gap(&e), 0);
    extents_deinit(&e);
}

/* ---- who makes room ---- */

enum { MINE = 1, OTHER = 2, THIRD = 3 };

/* Places side by side, of 10 words each, all of the memory: used so long ago, by these processes. */
static bool choose(const uint32_t ago_s[4], const pid_t pids[4], uint64_t count, bool leaves[4])
{
    struct table_place places[4];
    struct extents e;
    uint32_t start;

    assert_true(extents_init(&e, 40));
    assert_true(extents_take(&e, 40, &start));
    for (uint32_t i = 0; i < 4; i++)
        places[i] = (struct table_place){.number = i, .start = 10 * i, .count = 10, .used_s = 1000 - ago_s[i], .cold_s = 10, .pid = pids[i]};
    bool room = table_victims_choose(places, 4, &e, &(struct table_wish){.count = count, .max = 40, .now_s = 1000, .pid = MINE});
    for (uint32_t i = 0; i < 4; i++)
        leaves[places[i].number] = places[i].leaves;
    extents_deinit(&e);
    return room;
}

TEST(cold_ones_make_room_if_it_is_enough)
{
    static const pid_t pids[4] = {MINE, OTHER, THIRD, THIRD + 1};
    static const struct {
        uint32_t ago_s[4];
        uint64_t count;
        bool room, leaves[4];
    } cases[] = {
        {{0, 9, 10, 0}, 10, true, {false, false, true, false}},
        {{0, 9, 10, 0}, 11, false, {false}}, /* nobody leaves in vain */
        {{30, 9, 20, 40}, 10, true, {false, false, false, true}}, /* unused for longest */
        {{30, 9, 20, 40}, 20, true, {false, false, true, true}}, /* side by side: the first stays, though it is colder */
        {{30, 9, 20, 40}, 21, false, {false}},
        {{9, 9, 9, 9}, 1, false, {false}},
        {{40, 40, 40, 40}, 40, true, {true, true, true, true}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool leaves[4];
        assert_int_equal(choose(cases[i].ago_s, pids, cases[i].count, leaves), cases[i].room);
        assert_memory_equal(leaves, cases[i].leaves, sizeof leaves);
    }
}

TEST(who_has_most_gives_what_is_in_use)
{
    static const uint32_t used[4] = {1, 2, 3, 4}, cold[4] = {1, 2, 30, 40};
    bool leaves[4];

    assert_true(choose(used, (pid_t[]){OTHER, OTHER, OTHER, THIRD}, 10, leaves));
    assert_true(!leaves[0] && !leaves[1] && leaves[2] && !leaves[3]);
    assert_false(choose(used, (pid_t[]){OTHER, OTHER, OTHER, THIRD}, 30, leaves)); /* it would have less than the one that asks */
    assert_false(choose(used, (pid_t[]){OTHER, OTHER, THIRD, MINE}, 10, leaves));
    assert_false(choose(used, (pid_t[]){MINE, MINE, MINE, OTHER}, 10, leaves));
    /* A process with half of the memory gives of its own. */
    assert_true(choose(cold, (pid_t[]){MINE, MINE, MINE, OTHER}, 10, leaves));
    assert_true(leaves[2] && !leaves[3]);
}

/* What may come still is room, for which nobody leaves; and with it those at the end make more. */
TEST(memory_that_may_come_counts)
{
    struct table_place place = {.start = 10, .count = 10, .used_s = 0, .cold_s = 10, .pid = OTHER};
    struct extents e;
    uint32_t start;

    assert_true(extents_init(&e, 20));
    assert_true(extents_take(&e, 20, &start));
    assert_true(table_victims_choose(&place, 1, &e, &(struct table_wish){.count = 20, .max = 40, .now_s = 1000, .pid = MINE}));
    assert_false(place.leaves);
    assert_true(table_victims_choose(&place, 1, &e, &(struct table_wish){.count = 30, .max = 40, .now_s = 1000, .pid = MINE}));
    assert_true(place.leaves);
    assert_false(table_victims_choose(&place, 1, &e, &(struct table_wish){.count = 31, .max = 40, .now_s = 1000, .pid = MINE}));
    assert_false(place.leaves);
    extents_deinit(&e);
}

TEST(what_is_wanted_is_counted_once)
{
    struct table_wants w = {0};

    table_wants_lack(&w, 1, 100, 50, "/a/liba.so", false);
    table_wants_lack(&w, 1, 100, 50, "/b/liba.so", false); /* a copy, in another container */
    assert_int_equal(w.most, 150);
    assert_int_equal(w.most_had, 50);
    table_wants_lack(&w, 2, 10, 40, "b", false);
    table_wants_lack(&w, 3, 300, 0, "c", true);
    table_wants_lack(&w, 4, 20, 0, "d", false);
    assert_int_equal(w.most, 430);
    assert_string_equal(w.left_out[0].name, "c");
    assert_true(w.left_out[0].more);
    assert_string_equal(w.left_out[1].name, "liba.so");
    assert_string_equal(w.left_out[2].name, "d");
    table_wants_forget(&w, 1, 100);
    assert_int_equal(w.lacking_words, 430);
    table_wants_forget(&w, 1, 100);
    table_wants_forget(&w, 1, 100);
    assert_int_equal(w.lacking_words, 330);
    assert_int_equal(w.most, 430);
    table_wants_deinit(&w);
}

/* ---- tables in memory that grows ---- */

/* Words of a space, and what is said to whoever asks for more. */
struct words {
    uint64_t data[64];
    uint32_t count, refused, asked;
};

static struct error *grow(void *ctx, uint32_t more, uint32_t *count)
{
    struct words *w = ctx;

    w->asked++;
    if (!w->refused)
        w->count += more;
    *count = w->count;
    return NULL;
}

TEST(space_of_tables)
{
    struct unwind_row rows[5] = {{.pc = 7}};
    struct unwind_wide wide[1] = {{.cfa = {.offset = 9}}};
    uint64_t index[2] = {11, 12};
    const struct unwind_table table = {
        .rows = rows, .row_count = 5, .index = index, .index_count = 2, .index_first = 3, .wide = wide, .wide_count = 1};
    struct words w = {.count = 16};
    struct table_space s;
    struct wire_module place;
    bool there;

    assert_true(table_space_init(&s, &(struct table_words){.words = w.data, .count = 16, .max = 40, .grow = grow, .ctx = &w}));
    assert_int_equal(table_words_of(&table), 12);
    for (uint32_t i = 0; i < 3; i++) {
        OK(table_space_put(&s, &table, &place, &there));
        assert_true(there);
        assert_int_equal(table_space_start(&place), 12 * i); /* a wide row begins at a multiple of its size */
        assert_int_equal(table_space_words(&place), 12);
        assert_true(table_space_equals(&s, &place, &table));
    }
    assert_int_equal(w.asked, 2);
    assert_int_equal(w.count, 36); /* no more than is needed */
    index[1]++;
    assert_false(table_space_equals(&s, &place, &table));
    OK(table_space_put(&s, &table, &place, &there));
    assert_false(there);
    assert_int_equal(w.asked, 2); /* there may not be so many */
    s.words.max = 60;
    w.refused = 1;
    OK(table_space_put(&s, &table, &place, &there));
    assert_false(there);
    OK(table_space_put(&s, &table, &place, &there));
    assert_int_equal(w.asked, 3); /* what was refused is not asked for again */
    assert_int_equal(s.words.max, 36);
    table_space_deinit(&s);
}

/* What nobody has seen comes back at once, whatever else is waiting. */
TEST(space_returned)
{
    struct extents e;
    uint32_t start;

    assert_true(extents_init(&e, 30));
    assert_int_equal(take(&e, 10), 0);
    assert_int_equal(take(&e, 20), 10);
    assert_true(extents_give(&e, 0, 10, 500));
    extents_return(&e, 10, 20);
    assert_int_equal(e.used, 10);
    assert_int_equal(e.waiting.count, 1);
    assert_int_equal(take(&e, 20), 10);
    assert_false(extents_take(&e, 1, &start));
    extents_return(&e, 0, 0);
    assert_true(extents_free_after_grace(&e, 501));
    assert_int_equal(take(&e, 10), 0);
    extents_deinit(&e);
}
