/* SPDX-License-Identifier: Apache-2.0 */
/* Packed names beside a plain list of them, searched from end to end. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/packed_symbols.h"

#define NAMES 20000
#define BASE UINT64_C(0xffffffff81000000)

struct plain {
    uint64_t address;
    char name[48], module[16];
};
static struct plain plain[NAMES];

static uint64_t draw(void)
{
    static uint64_t x = 88172645463325252;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

/* Of what was added: the highest address up to this one, of equal ones the first. */
static const struct plain *find_plain(size_t count, uint64_t address)
{
    const struct plain *best = NULL;

    for (size_t i = 0; i < count; i++) {
        if (plain[i].address <= address && (!best || plain[i].address > best->address))
            best = &plain[i];
    }
    return best;
}

static void check(struct packed_symbols *n, size_t count, uint64_t address)
{
    const struct plain *want = find_plain(count, address);
    struct packed_symbol name;
    bool found = packed_symbols_find(n, address, &name);

    assert_int_equal(found, want != NULL);
    if (!want)
        return;
    assert_int_equal(name.address, want->address);
    assert_string_equal(name.name, want->name);
    assert_string_equal(name.module, want->module);
}

/* Names whose addresses come in order up to a tenth of them, some twice; of a few modules. */
static struct packed_symbols *make(size_t count, unsigned out_of_order)
{
    struct packed_symbols *n = packed_symbols_create();
    uint64_t address = BASE;

    assert_non_null(n);
    for (size_t i = 0; i < count; i++) {
        struct plain *p = &plain[i];
        address += draw() % 4 * 16;
        p->address = draw() % 100 < out_of_order ? BASE - 4096 + draw() % (64 * NAMES) : address;
        snprintf(p->name, sizeof p->name, "name_of_function_%zu_%u", i, (unsigned)(draw() % 1000));
        p->module[0] = 0;
        if (!(draw() % 3))
            snprintf(p->module, sizeof p->module, "module%u", (unsigned)(draw() % 5));
        assert_true(packed_symbols_add(n, p->address, p->name, strlen(p->name), p->module, strlen(p->module)));
    }
    assert_true(packed_symbols_end(n));
    return n;
}

static void look(size_t count, unsigned out_of_order)
{
    struct packed_symbols *n = make(count, out_of_order);

    for (int i = 0; i < 2000; i++)
        check(n, count, BASE - 8192 + draw() % (64 * NAMES + 16384));
    for (size_t i = 0; i < count; i += count / 200 + 1) {
        check(n, count, plain[i].address - 1);
        check(n, count, plain[i].address);
        check(n, count, plain[i].address + 1);
    }
    check(n, count, 0);
    check(n, count, UINT64_MAX);
    packed_symbols_destroy(n);
}

TEST(in_order)
{
    look(NAMES, 0);
}

TEST(out_of_order)
{
    look(NAMES, 10);
    look(NAMES, 100);
}

TEST(few)
{
    for (size_t count = 0; count < 5; count++)
        look(count, 50);
}

/* A name that is longer than any of the kernel's is cut, and its neighbours are found. */
TEST(long)
{
    struct packed_symbols *n = packed_symbols_create();
    struct packed_symbol name;
    char text[5000];

    memset(text, 'x', sizeof text);
    assert_true(packed_symbols_add(n, 100, "before", 6, NULL, 0));
    assert_true(packed_symbols_add(n, 200, text, sizeof text, NULL, 0));
    assert_true(packed_symbols_add(n, 50, text, sizeof text, NULL, 0));
    assert_true(packed_symbols_add(n, 300, "behind", 6, NULL, 0));
    assert_true(packed_symbols_end(n));
    assert_true(packed_symbols_find(n, 299, &name));
    assert_int_equal(name.address, 200);
    assert_in_range(strlen(name.name), 512, 1024);
    assert_true(packed_symbols_find(n, 99, &name));
    assert_in_range(strlen(name.name), 512, 1024);
    assert_true(packed_symbols_find(n, 300, &name));
    assert_string_equal(name.name, "behind");
    packed_symbols_destroy(n);
}

/* Addresses that come before those of the kernel, as on some machines, and the same one among both. */
TEST(ties)
{
    struct packed_symbols *n = packed_symbols_create();
    struct packed_symbol name;

    assert_true(packed_symbols_add(n, 100, "first", 5, NULL, 0));
    assert_true(packed_symbols_add(n, 100, "alias", 5, NULL, 0));
    assert_true(packed_symbols_add(n, 200, "second", 6, NULL, 0));
    assert_true(packed_symbols_add(n, 100, "late", 4, "m", 1));
    assert_true(packed_symbols_add(n, 40, "low", 3, "m", 1));
    assert_true(packed_symbols_add(n, 40, "low alias", 9, "m", 1));
    assert_true(packed_symbols_end(n));
    assert_true(packed_symbols_find(n, 150, &name));
    assert_string_equal(name.name, "first");
    assert_string_equal(name.module, "");
    assert_true(packed_symbols_find(n, 99, &name));
    assert_string_equal(name.name, "low");
    assert_string_equal(name.module, "m");
    assert_false(packed_symbols_find(n, 39, &name));
    packed_symbols_destroy(n);
}
