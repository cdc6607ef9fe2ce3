/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that stays is told from memory that comes and goes: whole mappings, parts of them, moved ones, many at once. */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdlib.h>

#include "capture/session/growth.h"
#include "formats/base/buf.h"

#define MS UINT64_C(1000000)
#define KIB 1024

struct fixture {
    struct growth *growth;
    struct buf text;
    uint64_t put_bytes, put_count;
    bool is_quiet;
};

/* A line for each sample: its process, the memory's address, and what it stands for in KiB. */
static struct error *put(void *fixture, const struct wire_sample *m, uint32_t len_bytes)
{
    struct fixture *f = fixture;

    assert_true(len_bytes >= sizeof *m + 8);
    assert_int_equal(*(const uint64_t *)(m + 1), m->grown_start); /* the stack is the one that was kept */
    f->put_bytes += m->period;
    f->put_count++;
    if (!f->is_quiet)
        buf_printf(&f->text, "%u %" PRIx64 " %" PRIu64 "\n", m->tgid, (uint64_t)m->grown_start, (uint64_t)m->period / KIB);
    return NULL;
}

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    *state = &f;
    return growth_create(put, &f, &f.growth) != NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    growth_destroy(f->growth);
    buf_deinit(&f->text);
    return 0;
}

static void grow_by(struct fixture *f, uint64_t time_ms, uint32_t tgid, uint64_t start, uint64_t kib, uint64_t stands_for_kib)
{
    struct {
        struct wire_sample sample;
        uint64_t stack;
    } m = {.sample = {.type = WIRE_SAMPLE, .time_ns = time_ms * MS, .tgid = tgid, .grown_start = start,
                      .grown_bytes = kib * KIB, .period = stands_for_kib * KIB},
           .stack = start};

    assert_null(growth_add(f->growth, &m.sample, sizeof m));
}

static void grow(struct fixture *f, uint64_t time_ms, uint32_t tgid, uint64_t start, uint64_t kib)
{
    grow_by(f, time_ms, tgid, start, kib, kib);
}

static void gone(struct fixture *f, uint32_t tgid, uint64_t start, uint64_t kib)
{
    const struct wire_unmap m = {.type = WIRE_UNMAP, .tgid = tgid, .start = start, .len_bytes = kib * KIB};

    assert_null(growth_unmap(f->growth, &m));
}

static void moved(struct fixture *f, uint32_t tgid, uint64_t start, uint64_t kib, uint64_t to, uint64_t kept_kib)
{
    const struct wire_unmap m = {.type = WIRE_UNMAP, .tgid = tgid, .start = start, .len_bytes = kib * KIB, .moved_to = to,
                                 .kept_len_bytes = kept_kib * KIB};

    assert_null(growth_unmap(f->growth, &m));
}

static void assert_put(struct fixture *f, const char *expected)
{
    assert_string_equal(buf_cstr(&f->text), expected);
    buf_deinit(&f->text);
    f->text = (struct buf){0};
}

static void settle(struct fixture *f, uint64_t time_ms, const char *expected)
{
    assert_null(growth_settle(f->growth, time_ms * MS));
    assert_put(f, expected);
}

/* What stays is handed on after its time, what is given back before that is not, and what is given back later was growth. */
TEST_WITH(churn, setup, teardown)
{
    struct fixture *f = *state;

    grow(f, 0, 1, 0x100000, 64);
    grow(f, 100, 1, 0x200000, 256);
    grow(f, 200, 2, 0x100000, 128); /* another process has the same address */
    gone(f, 1, 0x100000, 64);
    settle(f, 849, "");
    settle(f, 850, "1 200000 256\n");
    gone(f, 1, 0x200000, 256);
    settle(f, 2000, "2 100000 128\n");
    assert_int_equal(growth_dropped(f->growth), 1);
    assert_int_equal(growth_dropped_bytes(f->growth), 64 * KIB);
    assert_int_equal(growth_unsettled_bytes(f->growth), 0);
}

/* Allocators map more than they need and give both ends back; a sample may stand for more than its own memory. */
TEST_WITH(parts, setup, teardown)
{
    struct fixture *f = *state;

    grow_by(f, 0, 1, 0x100000, 256, 512);
    grow(f, 0, 1, 0x180000, 64);
    gone(f, 1, 0x0f0000, 64 + 64); /* its first 64 KiB, and what lies before */
    gone(f, 1, 0x120000, 64);      /* out of the middle */
    gone(f, 1, 0x120000, 64);      /* again, which changes nothing */
    gone(f, 1, 0x130000, 512);     /* its end, and all of the next */
    settle(f, 1000, "1 100000 128\n");
    assert_int_equal(growth_dropped_bytes(f->growth), (384 + 64) * KIB);
}

/* A block that is made larger in place, or moved: what it was stays with the stack that made it. */
TEST_WITH(moved, setup, teardown)
{
    struct fixture *f = *state;

    grow(f, 0, 1, 0x100000, 128);
    moved(f, 1, 0x100000, 128, 0x400000, 128);
    grow(f, 10, 1, 0x420000, 128);
    gone(f, 1, 0x100000, 128); /* nothing is there any more */
    moved(f, 1, 0x400000, 256, 0x800000, 64); /* and smaller: its end is gone */
    settle(f, 1000, "1 100000 64\n");
    assert_int_equal(growth_dropped(f->growth), 1);
    grow(f, 2000, 1, 0x100000, 64);
    grow(f, 2000, 1, 0x200000, 64);
    moved(f, 1, 0x100000, 64, 0x200000, 64); /* over memory that is gone by that */
    settle(f, 3000, "1 100000 64\n");
}

/* Memory that is new where some was known already: what was there is gone, though nothing has said so. */
TEST_WITH(unseen, setup, teardown)
{
    struct fixture *f = *state;

    grow(f, 0, 1, 0x100000, 128);
    grow(f, 10, 1, 0x110000, 128);
    settle(f, 1000, "1 100000 64\n1 110000 128\n");
}

/* What a process has when it ends is growth. */
TEST_WITH(end, setup, teardown)
{
    struct fixture *f = *state;

    grow(f, 0, 1, 0x100000, 64);
    grow(f, 1, 2, 0x200000, 64);
    grow(f, 2, 1, 0x300000, 64);
    gone(f, 1, 0x100000, 32);
    assert_null(growth_settle_process(f->growth, 1));
    assert_put(f, "1 100000 32\n1 300000 64\n");
    assert_null(growth_settle_process(f->growth, 1));
    assert_null(growth_settle_process(f->growth, 3));
    assert_put(f, "");
    grow(f, 3, 1, 0x100000, 64);
    gone(f, 1, 0x300000, 64); /* of the one before */
    assert_null(growth_settle_process(f->growth, UINT32_MAX));
    assert_put(f, "2 200000 64\n1 100000 64\n");
}

/* Lengths that overflow, moves to where addresses end: nothing comes of them. */
TEST_WITH(nonsense, setup, teardown)
{
    struct fixture *f = *state;

    grow(f, 0, 1, 0x100000, 64);
    assert_null(growth_unmap(f->growth, &(struct wire_unmap){.tgid = 1, .start = 0x1000, .len_bytes = UINT64_MAX}));
    assert_null(growth_unmap(f->growth, &(struct wire_unmap){.tgid = 1, .start = 0x100000, .len_bytes = 4096,
                                                            .moved_to = UINT64_MAX - 4096, .kept_len_bytes = 8192}));
    assert_null(growth_unmap(f->growth, &(struct wire_unmap){.tgid = 1, .start = 0x100000, .len_bytes = 4096,
                                                            .moved_to = UINT64_MAX - 4096, .kept_len_bytes = 4096}));
    assert_null(growth_unmap(f->growth, &(struct wire_unmap){.tgid = 1, .start = 0x300000}));
    settle(f, 1000, "1 100000 64\n");
    grow(f, 2000, 1, UINT64_MAX - 4095, 64); /* cannot be told from what is not there: it is growth at once */
    assert_put(f, "1 fffffffffffff000 64\n");
    assert_int_equal(growth_unsettled_bytes(f->growth), 64 * KIB);
}

/* However much comes, no byte is counted twice or forgotten; what is too much is growth, and counted. */
TEST_WITH(flood, setup, teardown)
{
    enum { COUNT = 40000, LARGE = 16 << 10 };
    struct fixture *f = *state;
    struct wire_sample *m = calloc(1, LARGE);

    f->is_quiet = true;
    assert_non_null(m);
    for (uint64_t i = 0; i < COUNT; i++) {
        *m = (struct wire_sample){.type = WIRE_SAMPLE, .time_ns = i, .tgid = (uint32_t)(i % 3), .grown_start = (i + 1) << 20,
                                  .grown_bytes = 8192, .period = 8192};
        *(uint64_t *)(m + 1) = m->grown_start;
        assert_null(growth_add(f->growth, m, LARGE));
        if (i % 2)
            gone(f, m->tgid, m->grown_start + 4096, 4);
    }
    free(m);
    assert_true(f->put_count > COUNT / 2); /* 32 MiB hold 2,048 of them */
    assert_true(growth_unsettled_bytes(f->growth) == f->put_bytes);
    assert_null(growth_settle_process(f->growth, UINT32_MAX));
    assert_int_equal(f->put_bytes + growth_dropped_bytes(f->growth), COUNT * UINT64_C(8192));
    assert_true(growth_dropped_bytes(f->growth) > 0);
}

/* One mapping that is given back page by page, every other one: it is in many parts. */
TEST_WITH(comb, setup, teardown)
{
    struct fixture *f = *state;

    grow(f, 0, 1, 1 << 30, 65536 * 4);
    for (uint64_t i = 0; i < 65536; i += 2)
        gone(f, 1, (1 << 30) + i * 4096, 4);
    f->is_quiet = true;
    assert_null(growth_settle(f->growth, 1000 * MS));
    assert_int_equal(f->put_bytes + growth_dropped_bytes(f->growth), 65536 * UINT64_C(4096));
    assert_true(f->put_bytes >= 32768 * UINT64_C(4096));
    assert_true(growth_dropped_bytes(f->growth) >= 4096 * UINT64_C(4096));
}
