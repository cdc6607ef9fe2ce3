/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of mappings that processes share, their paths, and the limits of both. */
#include "tests/unit/test.h"

#include <stdio.h>

#include "capture/binary/code_mappings.h"
#include "capture/process/process.h"

static struct code_mapping mapping_of(uint64_t address, uint64_t length, uint64_t time_ns, const char *path)
{
    return (struct code_mapping){.address = address, .length = length, .time_ns = time_ns, .path = path};
}

static enum code_mappings_result add(struct code_mappings *m, struct code_pool *pool, uint64_t address, uint64_t time_ns,
                                     const char *path)
{
    struct code_mapping mapping = mapping_of(address, 0x1000, time_ns, path);
    size_t at;

    return code_mappings_add(m, pool, &mapping, &at);
}

/* `count` mappings with a gap between any two, at times that rise with the address. */
static void fill(struct code_mappings *m, struct code_pool *pool, uint32_t count, const char *path)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(add(m, pool, 0x100000 + i * UINT64_C(0x2000), 1 + i, path), CODE_MAPPINGS_ADDED);
}

TEST(paths_are_kept_once)
{
    struct paths paths = {0};
    char text[64];

    const char *a = paths_hold(&paths, "/lib/a.so");
    assert_string_equal(a, "/lib/a.so");
    assert_int_equal(paths_cost(&paths, "/lib/a.so"), 0);
    assert_true(paths_cost(&paths, "/lib/b.so") >= 10);
    uint64_t bytes = paths.bytes;
    assert_ptr_equal(paths_hold(&paths, "/lib/a.so"), a);
    assert_int_equal(paths.bytes, bytes);
    paths_release(&paths, a);
    assert_int_equal(paths_cost(&paths, "/lib/a.so"), 0);
    paths_release(&paths, a);
    assert_true(paths_cost(&paths, "/lib/a.so") > 0);
    /* The table grows, and every path is still found. */
    const char *held[1000];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "/lib/%d.so", i);
        held[i] = paths_hold(&paths, text);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "/lib/%d.so", i);
        assert_string_equal(held[i], text);
        assert_int_equal(paths_cost(&paths, text), 0);
    }
    for (int i = 0; i < 1000; i++)
        paths_release(&paths, held[i]);
    assert_int_equal(paths.count, 0);
    paths_deinit(&paths);
}

/* A child costs nothing until it maps something, and then not the mappings themselves. */
TEST(fork_shares)
{
    struct code_pool pool = {0};
    struct code_mappings parent = {0}, child[100];
    char path[4001];

    memset(path, 'a', 4000);
    path[0] = '/';
    path[4000] = 0;
    fill(&parent, &pool, 8000, path);
    uint64_t bytes = code_pool_bytes(&pool);
    assert_true(bytes < 8000 * 200);
    for (int i = 0; i < 100; i++)
        code_mappings_share(&child[i], &parent, 9000);
    assert_int_equal(code_pool_bytes(&pool), bytes);
    assert_true(code_mappings_are_shared(&parent, &child[7]));
    code_mappings_set_place(&parent, 5);
    assert_int_equal(code_mappings_place(&child[7]), 5);
    /* What was mapped before the fork is the child's since the fork. */
    assert_int_equal(code_mappings_time(&child[7], code_mappings_at(&child[7], 0)), 9000);
    assert_int_equal(code_mappings_time(&parent, code_mappings_at(&parent, 0)), 1);
    assert_int_equal(add(&child[7], &pool, 0x100000, 9500, "/new"), CODE_MAPPINGS_ADDED);
    assert_false(code_mappings_are_shared(&parent, &child[7]));
    assert_int_equal(code_mappings_place(&child[7]), 0);
    assert_int_equal(code_mappings_place(&parent), 5);
    assert_true(code_pool_bytes(&pool) < bytes + 8192 * sizeof(void *) + 1000);
    assert_string_equal(code_mappings_at(&child[7], 0)->path, "/new");
    assert_string_equal(code_mappings_at(&parent, 0)->path, path);
    assert_int_equal(code_mappings_time(&child[7], code_mappings_at(&child[7], 0)), 9500);
    /* Cutting one that is shared leaves the other's as it is. */
    struct code_mapping middle = mapping_of(0x102400, 0x400, 9600, "/middle");
    size_t at;
    assert_int_equal(code_mappings_add(&child[7], &pool, &middle, &at), CODE_MAPPINGS_ADDED);
    assert_int_equal(code_mappings_find(&child[7], 0x102000)->length, 0x400);
    assert_int_equal(code_mappings_find(&child[7], 0x102fff)->address, 0x102800);
    assert_int_equal(code_mappings_find(&parent, 0x102000)->length, 0x1000);
    code_mappings_deinit(&parent);
    assert_int_equal(code_mappings_count(&child[0]), 8000);
    for (int i = 0; i < 100; i++)
        code_mappings_deinit(&child[i]);
    assert_int_equal(pool.bytes, 0);
    code_pool_deinit(&pool);
}

static void read_at(struct code_mappings *m, struct code_pool *pool, uint64_t time_ns, const char *last)
{
    for (uint32_t i = 0; i < 30; i++)
        assert_int_equal(add(m, pool, 0x100000 + i * UINT64_C(0x2000), time_ns, i == 29 ? last : "/lib/a.so"), CODE_MAPPINGS_ADDED);
    code_mappings_unify(m, pool);
}

/* Workers that were forked before the capture, each of which is read from /proc by itself. */
TEST(equal_lists_are_shared)
{
    struct code_pool pool = {0};
    struct code_mappings m[100] = {0}, other = {0}, early = {0}, grown = {0};

    read_at(&m[0], &pool, 500, "/lib/b.so");
    uint64_t bytes = code_pool_bytes(&pool);
    for (int i = 1; i < 100; i++) {
        read_at(&m[i], &pool, 500 + (uint64_t)i, "/lib/b.so");
        assert_true(code_mappings_are_shared(&m[0], &m[i]));
    }
    assert_int_equal(code_pool_bytes(&pool), bytes);
    /* Each has its mappings since its own reading. */
    assert_int_equal(code_mappings_time(&m[0], code_mappings_at(&m[0], 3)), 500);
    assert_int_equal(code_mappings_time(&m[42], code_mappings_at(&m[42], 3)), 542);
    /* Not one that differs, nor one that is known since an earlier time, of which the other knows nothing. */
    read_at(&other, &pool, 700, "/lib/c.so");
    assert_false(code_mappings_are_shared(&m[0], &other));
    read_at(&early, &pool, 499, "/lib/b.so");
    assert_false(code_mappings_are_shared(&m[0], &early));
    /* Nor one whose mappings came one by one. */
    fill(&grown, &pool, 30, "/lib/a.so");
    code_mappings_unify(&grown, &pool);
    assert_int_equal(code_mappings_time(&grown, code_mappings_at(&grown, 7)), 8);
    /* Who changes one has its own, and a later one is equal to what has not changed. */
    assert_int_equal(add(&m[5], &pool, 0x100000, 900, "/new"), CODE_MAPPINGS_ADDED);
    assert_false(code_mappings_are_shared(&m[0], &m[5]));
    assert_string_equal(code_mappings_at(&m[6], 0)->path, "/lib/a.so");
    code_mappings_deinit(&m[7]);
    read_at(&m[7], &pool, 950, "/lib/b.so");
    assert_true(code_mappings_are_shared(&m[0], &m[7]));
    for (int i = 0; i < 100; i++)
        code_mappings_deinit(&m[i]);
    code_mappings_deinit(&other);
    code_mappings_deinit(&early);
    code_mappings_deinit(&grown);
    assert_int_equal(pool.bytes, 0);
    assert_int_equal(pool.lists.count, 0);
    code_pool_deinit(&pool);
}

/* The only holder of a list changes it in place: nobody finds the old one any more. */
TEST(a_changed_list_is_not_found)
{
    struct code_pool pool = {0};
    struct code_mappings a = {0}, b = {0};

    read_at(&a, &pool, 0, "/lib/b.so");
    assert_int_equal(add(&a, &pool, 0x100000, 5, "/new"), CODE_MAPPINGS_ADDED);
    read_at(&b, &pool, 0, "/lib/b.so");
    assert_false(code_mappings_are_shared(&a, &b));
    assert_string_equal(code_mappings_at(&b, 0)->path, "/lib/a.so");
    code_mappings_deinit(&a);
    code_mappings_deinit(&b);
    assert_int_equal(pool.lists.count, 0);
    code_pool_deinit(&pool);
}

/* New mappings at ever new addresses, never one that is gone: the list does not grow for ever. */
TEST(flood)
{
    struct code_pool pool = {0};
    struct code_mappings m = {0};

    assert_int_equal(add(&m, &pool, 0x1000, 1, "/lib/libc.so.6"), CODE_MAPPINGS_ADDED);
    fill(&m, &pool, CODE_MAPPINGS_MAX - 1, "/flood");
    assert_int_equal(code_mappings_count(&m), CODE_MAPPINGS_MAX);
    for (uint32_t i = CODE_MAPPINGS_MAX; i < 3 * CODE_MAPPINGS_MAX; i++)
        assert_int_equal(add(&m, &pool, 0x100000 + i * UINT64_C(0x2000), i, "/flood"), CODE_MAPPINGS_ADDED);
    assert_true(code_mappings_count(&m) <= CODE_MAPPINGS_MAX);
    assert_true(code_mappings_count(&m) > CODE_MAPPINGS_MAX / 3);
    /* What does not flood stays, the newest of the flood too. */
    assert_non_null(code_mappings_find(&m, 0x1000));
    assert_non_null(code_mappings_find(&m, 0x100000 + (3 * CODE_MAPPINGS_MAX - 1) * UINT64_C(0x2000)));
    code_mappings_deinit(&m);
    code_pool_deinit(&pool);
}

/* With equal times there still is room again; a path that is not in a full list gets none, but what it covers goes. */
TEST(full)
{
    struct code_pool pool = {0};
    struct code_mappings m = {0};
    char path[32];

    for (uint32_t i = 0; i < CODE_MAPPINGS_MAX; i++) {
        snprintf(path, sizeof path, "/lib/%u", i);
        assert_int_equal(add(&m, &pool, 0x100000 + i * UINT64_C(0x2000), 0, path), CODE_MAPPINGS_ADDED);
    }
    assert_int_equal(add(&m, &pool, 0x1000, 1, "/one-more"), CODE_MAPPINGS_UNCHANGED);
    assert_int_equal(code_mappings_count(&m), CODE_MAPPINGS_MAX);
    assert_int_equal(add(&m, &pool, 0x100000, 1, "/over-the-first"), CODE_MAPPINGS_CUT);
    assert_null(code_mappings_find(&m, 0x100000));
    assert_int_equal(add(&m, &pool, 0x102000, 1, "/now-there-is-room"), CODE_MAPPINGS_ADDED);
    code_mappings_deinit(&m);
    code_pool_deinit(&pool);
}

/* Who fills the memory of all gets no more; others do. */
TEST(memory_of_all)
{
    struct code_pool pool = {0};
    struct code_mappings greedy[64] = {0}, modest = {0};
    uint32_t full = 0;
    char path[4001], name[32];

    for (uint32_t k = 0; k < 64; k++) {
        for (uint32_t i = 0; i < CODE_MAPPINGS_MAX; i++)
            full += add(&greedy[k], &pool, 0x100000 + i * UINT64_C(0x2000), i, "/greedy") == CODE_MAPPINGS_UNCHANGED;
    }
    assert_true(full > 0);
    assert_true(code_pool_bytes(&pool) < CODE_MAPPINGS_BYTES + 64 * CODE_MAPPINGS_FEW * 200);
    for (uint32_t i = 0; i < CODE_MAPPINGS_FEW; i++) {
        snprintf(name, sizeof name, "/lib/%u", i);
        assert_int_equal(add(&modest, &pool, 0x100000 + i * UINT64_C(0x2000), i, name), CODE_MAPPINGS_ADDED);
    }
    memset(path, 'a', 4000);
    path[4000] = 0;
    struct code_mappings other = {0};
    assert_int_equal(add(&other, &pool, 0x1000, 1, path), CODE_MAPPINGS_UNCHANGED);
    assert_int_equal(add(&other, &pool, 0x1000, 1, "/short"), CODE_MAPPINGS_ADDED);
    for (uint32_t k = 0; k < 64; k++)
        code_mappings_deinit(&greedy[k]);
    code_mappings_deinit(&modest);
    code_mappings_deinit(&other);
    assert_int_equal(pool.bytes, 0);
    code_pool_deinit(&pool);
}

TEST(keep)
{
    struct code_pool pool = {0};
    struct code_mappings m = {0}, child;
    const struct address_range some[] = {{0x0, 0x100000}, {0x102000, 0x103000}, {0x106800, 0x106900}};

    assert_true(code_mappings_keep(&m, &pool, some, 3));
    fill(&m, &pool, 5, "/a");
    code_mappings_share(&child, &m, 100);
    assert_true(code_mappings_keep(&child, &pool, &(struct address_range){0, UINT64_MAX}, 1));
    assert_true(code_mappings_are_shared(&m, &child)); /* nothing changed */
    assert_true(code_mappings_keep(&child, &pool, some, 3));
    assert_int_equal(code_mappings_count(&m), 5);
    assert_int_equal(code_mappings_count(&child), 2);
    assert_int_equal(code_mappings_at(&child, 0)->address, 0x102000);
    assert_int_equal(code_mappings_at(&child, 1)->address, 0x106000);
    assert_true(code_mappings_keep(&child, &pool, NULL, 0));
    assert_int_equal(code_mappings_count(&child), 0);
    code_mappings_deinit(&child);
    code_mappings_deinit(&m);
    assert_int_equal(pool.bytes, 0);
    code_pool_deinit(&pool);
}

/* A file that was put in the other's place under its name is another one; what only one side can know tells nothing. */
TEST(other_files)
{
    const struct code_mapping a = {.device_major = 8, .device_minor = 1, .inode = 5, .inode_generation = 7, .by_event = true};
    struct code_mapping b = a;

    assert_false(code_mapping_is_other_file(&a, &b));
    b.inode = 6;
    assert_true(code_mapping_is_other_file(&a, &b));
    b.by_event = false;
    assert_true(code_mapping_is_other_file(&a, &b));
    b = a;
    b.inode_generation = 8; /* the same inode, for another file */
    assert_true(code_mapping_is_other_file(&a, &b));
    b.by_event = false;
    assert_false(code_mapping_is_other_file(&a, &b));
    b.device_minor = 2;
    assert_false(code_mapping_is_other_file(&a, &b));
    b.by_event = true;
    assert_true(code_mapping_is_other_file(&a, &b));
}

TEST(replaced)
{
    struct code_pool pool = {0};
    struct code_mappings m = {0};

    add(&m, &pool, 0x1000, 1, "/a");
    add(&m, &pool, 0x3000, 1, "/b");
    assert_int_equal(code_mappings_at(&m, 0)->replaced_ns + code_mappings_at(&m, 1)->replaced_ns, 0);
    add(&m, &pool, 0x2000, 2, "/c"); /* between them */
    assert_int_equal(code_mappings_at(&m, 1)->replaced_ns, 0);
    add(&m, &pool, 0x2800, 3, "/d"); /* over the ends of two */
    assert_int_equal(code_mappings_count(&m), 4);
    assert_int_equal(code_mappings_find(&m, 0x2800)->replaced_ns, 3);
    assert_int_equal(code_mappings_cut(&m, &pool, 0x8000, 0x1000), CODE_MAPPINGS_UNCHANGED);
    assert_int_equal(code_mappings_cut(&m, &pool, 0x1800, 0x1000), CODE_MAPPINGS_CUT);
    assert_null(code_mappings_find(&m, 0x1800));
    assert_null(code_mappings_find(&m, 0x27ff));
    assert_non_null(code_mappings_find(&m, 0x17ff));
    assert_non_null(code_mappings_find(&m, 0x2800));
    code_mappings_deinit(&m);
    assert_int_equal(pool.bytes, 0);
    code_pool_deinit(&pool);
}

/* What is unwound by the same rows as what was there before took nothing's place; but it may lie where something had. */
TEST(unwound_alike)
{
    struct code_mapping mapping = {.address = 0x10000, .length = 0x3000, .file_offset = 0x3000, .time_ns = 5, .path = "/a"};
    struct code_pool pool = {0};
    struct code_mappings m = {0};
    size_t at;

    assert_int_equal(code_mappings_add(&m, &pool, &mapping, &at), CODE_MAPPINGS_ADDED);
    mapping.address += 0x1000; /* mprotect() of its end: another extent of the same */
    mapping.file_offset += 0x1000;
    mapping.length = 0x2000;
    mapping.time_ns = 6;
    assert_int_equal(code_mappings_add(&m, &pool, &mapping, &at), CODE_MAPPINGS_ADDED);
    assert_int_equal(code_mappings_at(&m, at)->replaced_ns, 0);
    mapping.file_offset += 0x1000; /* another part of the file there */
    mapping.time_ns = 7;
    assert_int_equal(code_mappings_add(&m, &pool, &mapping, &at), CODE_MAPPINGS_ADDED);
    assert_int_equal(code_mappings_at(&m, at)->replaced_ns, 7);
    mapping.inode++; /* another file under that name */
    mapping.time_ns = 8;
    assert_int_equal(code_mappings_add(&m, &pool, &mapping, &at), CODE_MAPPINGS_ADDED);
    assert_int_equal(code_mappings_at(&m, at)->replaced_ns, 8);
    /* Generated code has no rows. Where it grows, or is mapped once more, the file is still what was there before. */
    add(&m, &pool, 0x12000, 9, "//anon");
    assert_int_equal(code_mappings_find(&m, 0x12000)->replaced_ns, 9);
    add(&m, &pool, 0x12000, 10, "");
    assert_int_equal(code_mappings_find(&m, 0x12000)->replaced_ns, 9);
    add(&m, &pool, 0x20000, 11, "//anon");
    add(&m, &pool, 0x20800, 12, "//anon");
    assert_int_equal(code_mappings_find(&m, 0x20800)->replaced_ns, 0);
    code_mappings_deinit(&m);
    code_pool_deinit(&pool);
}

/* Frames behind one in a library that the sampler took for the one before are cut off. */
TEST(trusted_frames)
{
    const struct native_frame frames[] = {{0x1010 | NATIVE_EXACT, 1}, {0x3010, 2}, {0x1020, 3}, {0x5010, 4}};
    struct process p = {0};
    struct code_pool pool = {0};

    process_listed(&p, 50);
    process_listed(&p, 100); /* nothing was replaced: it may be an older one as well */
    assert_int_equal(p.lists[0].since_ns, 50);
    add(&p.mappings, &pool, 0x1000, 1, "/a");
    add(&p.mappings, &pool, 0x3000, 2, "/b");
    add(&p.mappings, &pool, 0x5000, 3, "/c");
    assert_int_equal(process_trusted_frames(&p, frames, 4, 120), 4);
    add(&p.mappings, &pool, 0x3000, 110, "/d");
    process_replaced(&p, 110, false);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 120), 2);
    assert_int_equal(process_trusted_frames(&p, frames + 2, 2, 120), 2);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 105), 4); /* of before */
    /* The sampler has the new list since then, but a sample before that had the old one. */
    process_listed(&p, 130);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 140), 4);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 120), 2);
    /* Something that is not known lies there now. */
    process_replaced(&p, 150, true);
    assert_int_equal(code_mappings_cut(&p.mappings, &pool, 0x1000, 0x1000), CODE_MAPPINGS_CUT);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 160), 1);
    assert_int_equal(process_trusted_frames(&p, frames, 1, 160), 1);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 145), 4); /* before that */
    /* Of a sample that is older than the lists that are kept, nothing that was replaced is trusted. */
    add(&p.mappings, &pool, 0x1000, 160, "/a");
    for (uint64_t ns = 200; ns < 200 + SAMPLER_LISTS_KEPT; ns++) {
        process_replaced(&p, ns - 10, false);
        process_listed(&p, ns);
    }
    assert_int_equal(process_trusted_frames(&p, frames, 4, 199), 2);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 204), 4);
    /* It never had a list. */
    memset(p.lists, 0, sizeof p.lists);
    assert_int_equal(process_trusted_frames(&p, frames, 4, 160), 4);
    code_mappings_deinit(&p.mappings);
    code_pool_deinit(&pool);
}
