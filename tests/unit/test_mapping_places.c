/* SPDX-License-Identifier: Apache-2.0 */
/* Where lists of mappings lie that the sampler reads: shared by equal processes, and not used again under a sample. */
#include "tests/unit/test.h"

#include "capture/process/mapping_places.h"

enum { USER = 1000, LISTS = 16, S = 1000000000 };

static struct wire_mapping lists[LISTS];
static struct mapping_places places;
static struct quotas *quotas;

static int setup(void **state)
{
    (void)state;
    memset(lists, 0, sizeof lists);
    return quotas_create(&quotas) || mapping_places_init(&places, quotas, lists, LISTS);
}

static int teardown(void **state)
{
    (void)state;
    mapping_places_deinit(&places);
    quotas_destroy(quotas);
    return 0;
}

/* A list of that many mappings, the first at `start`: it is laid and held. */
static uint32_t lay(uint32_t slot, uint64_t start, uint32_t count, uint64_t time_ns)
{
    struct wire_mapping list[LISTS] = {{.count = count}};
    uint32_t place;

    for (uint32_t i = 0; i < count; i++)
        list[1 + i] = (struct wire_mapping){.start = start + i, .end = start + i + 1};
    OK(mapping_places_lay(&places, slot, list, count + 1, time_ns, &place));
    mapping_places_hold(&places, place);
    return place;
}

static const struct wire_mapping *list_at(uint32_t place)
{
    return lists + mapping_places_at(&places, place)->start;
}

TEST_WITH(equal_ones_are_shared, setup, teardown)
{
    OK(quotas_begin(quotas, 0, USER, false));
    OK(quotas_begin(quotas, 1, USER, false));
    uint32_t a = lay(0, 1000, 3, S), b = lay(1, 2000, 3, S);
    assert_true(a && b && a != b);
    assert_int_equal(lay(1, 1000, 3, S), a);
    assert_int_not_equal(lay(1, 1000, 2, S), a);
    assert_int_equal(list_at(a)->count, 3);
    assert_int_equal(list_at(a)[3].start, 1002);
    assert_int_equal(mapping_places_find(&places, mapping_places_at(&places, a)->id), a);
    /* The one that paid goes, and the other has to. */
    assert_true(mapping_places_release(&places, a, 0, S));
    mapping_places_pay(&places, a, 1);
    assert_int_equal(lay(0, 1000, 3, S), a);
    assert_false(mapping_places_release(&places, a, 0, S));
}

/* A sample that goes by a list finds its number in front of it, until something else may lie there. */
TEST_WITH(numbers_go_before_places_are_used, setup, teardown)
{
    OK(quotas_begin(quotas, 0, USER, false));
    uint32_t a = lay(0, 1000, 9, S), number = mapping_place_key(mapping_places_at(&places, a));
    uint64_t id = mapping_places_at(&places, a)->id;
    const struct wire_mapping *old = list_at(a);
    assert_true(number && old->key == number);
    assert_false(mapping_places_release(&places, a, 0, 2 * (uint64_t)S));
    assert_int_equal(mapping_places_find(&places, id), 0);
    assert_int_equal(old->key, number);
    assert_int_equal(lay(0, 2000, 9, 2 * (uint64_t)S), 0); /* there is no room yet */
    OK(mapping_places_free(&places, 2 * (uint64_t)S));
    assert_int_equal(old->key, number);
    OK(mapping_places_free(&places, 2 * (uint64_t)S + 1));
    assert_int_equal(old->key, 0);
    /* Smaller ones come to lie there, of which the second has no head where the old one had it. */
    uint32_t b = lay(0, 3000, 2, 3 * (uint64_t)S), c = lay(0, 4000, 2, 3 * (uint64_t)S);
    assert_true(b && c);
    assert_int_not_equal(list_at(b)->key, number);
    assert_int_not_equal(list_at(b)->key, list_at(c)->key);
}
