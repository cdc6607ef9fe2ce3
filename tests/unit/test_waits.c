/* SPDX-License-Identifier: Apache-2.0 */
/* From a stack at the switch away and a length at the switch back to samples: pieces, run queues, what was owed. */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdlib.h>

#include "capture/session/waits.h"
#include "formats/base/buf.h"

struct fixture {
    struct waits *waits;
    struct buf text;
    uint64_t blame_ns; /* of each wait, so far */
};

/*
 * A line for each sample: tid, time, weight, kind, + where it goes on, what is said of the call site: length, owed; who ended
 * it; and the blame.
 */
static struct error *put(void *fixture, const struct wire_sample *m, uint32_t len_bytes)
{
    struct buf *ctx = &((struct fixture *)fixture)->text;

    assert_int_equal(len_bytes, sizeof *m + 8);
    assert_true(!m->waited_ns == !!(m->flags & WIRE_LASTS)); /* only the last part of a kind knows its length */
    assert_int_equal(*(const uint64_t *)(m + 1), m->tid * UINT64_C(1000)); /* the stack is the one that was kept */
    buf_printf(ctx, "%u %" PRIu64 " %" PRIu64 " %u%s", m->tid, (uint64_t)m->time_ns, (uint64_t)m->period, m->wait_kind,
               m->flags & WIRE_CONTINUES ? "+" : "");
    if (m->waited_ns)
        buf_printf(ctx, " of %" PRIu64, (uint64_t)m->waited_ns);
    if (m->owed_ns)
        buf_printf(ctx, " owed %" PRIu64, (uint64_t)m->owed_ns);
    if (m->waker_kind)
        buf_printf(ctx, " by %u %u/%u", m->waker_kind, m->waker_tgid, m->waker_tid);
    if (m->blame_ns || m->owed_blame_ns)
        buf_printf(ctx, " blame %" PRIu64 " %" PRIu64, (uint64_t)m->blame_ns, (uint64_t)m->owed_blame_ns);
    buf_put_u8(ctx, '\n');
    return NULL;
}

static uint64_t blame(void *fixture, const struct wire_sample *m)
{
    (void)m;
    return ((struct fixture *)fixture)->blame_ns;
}

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    *state = &f;
    return waits_create(put, blame, &f, &f.waits) != NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    waits_destroy(f->waits);
    buf_deinit(&f->text);
    return 0;
}

struct message {
    struct wire_sample sample;
    uint64_t stack;
};

static struct message message(uint32_t tid, uint64_t out_ns)
{
    return (struct message){{.type = WIRE_SAMPLE, .flags = WIRE_WAITS, .tid = tid, .time_ns = out_ns,
                             .wait_kind = WIRE_WAIT_LOCK}, tid * UINT64_C(1000)};
}

static void begin(struct fixture *f, uint32_t tid, uint64_t out_ns)
{
    struct message m = message(tid, out_ns);

    assert_null(waits_begin(f->waits, &m.sample, sizeof m));
}

/* A wait that was met as it lasted. `flags`: WIRE_CONTINUES, or 0. */
static void meet(struct fixture *f, uint32_t tid, uint64_t out_ns, uint32_t flags)
{
    struct message m = message(tid, out_ns);

    m.sample.flags |= flags;
    assert_null(waits_begin_unread(f->waits, &m.sample, sizeof m));
}

/* Its stacks have been read, which show something else. */
static void complete(struct fixture *f, uint32_t tid, uint64_t out_ns)
{
    struct message m = message(tid, out_ns);

    m.sample.wait_kind = WIRE_WAIT_STOPPED;
    assert_null(waits_complete(f->waits, &m.sample, sizeof m));
}

static void end(struct fixture *f, uint32_t tid, uint64_t out_ns, uint64_t in_ns, uint64_t queue_ns, uint64_t owed_ns,
                uint64_t owed_queue_ns)
{
    struct wire_wait wait = {.type = WIRE_WAIT, .tid = tid, .out_ns = out_ns, .in_ns = in_ns, .queue_ns = queue_ns,
                             .owed_ns = owed_ns, .owed_queue_ns = owed_queue_ns};

    assert_null(waits_end(f->waits, &wait));
}

static void assert_samples(struct fixture *f, const char *want)
{
    assert_string_equal(buf_cstr(&f->text), want);
    buf_clear(&f->text);
}

TEST_WITH(lengths, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    begin(f, 8, 110);
    assert_samples(f, "");
    end(f, 7, 100, 150, 0, 0, 0);
    assert_samples(f, "7 150 50 3 of 50\n");
    end(f, 8, 110, 190, 0, 1000, 0); /* and how long waits without a stack were */
    assert_samples(f, "8 190 80 3 of 80 owed 1000\n");
    end(f, 8, 110, 190, 0, 0, 0); /* it is over */
    assert_samples(f, "");
}

/* The wait is over when the thread is woken; then it waits for a CPU. */
TEST_WITH(run_queue, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    end(f, 7, 100, 150, 20, 1000, 300);
    assert_samples(f, "7 130 30 3 of 30 owed 1000\n7 150 20 4+ of 20 owed 300\n");
    begin(f, 7, 200); /* another thread had its place: all of it in the queue */
    end(f, 7, 200, 250, 50, 0, 0);
    assert_samples(f, "7 200 0 3 of 1\n7 250 50 4+ of 50\n");
}

/* What lasts is handed on while it does, and adds up to its length. */
TEST_WITH(pieces, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    begin(f, 8, 1050);
    assert_null(waits_pieces(f->waits, 1099, 1000));
    assert_samples(f, "");
    assert_null(waits_pieces(f->waits, 1100, 1000));
    assert_samples(f, "7 1100 1000 3\n");
    assert_null(waits_pieces(f->waits, 2200, 1000));
    assert_samples(f, "7 2200 1100 3+\n8 2200 1150 3\n");
    end(f, 7, 100, 2500, 0, 9, 0);
    assert_samples(f, "7 2500 300 3+ of 2400 owed 9\n");
    /* A piece reached into the time in the run queue: that has less left. */
    end(f, 8, 1050, 2250, 100, 0, 0);
    assert_samples(f, "8 2200 0 3+ of 1100\n8 2250 50 4+ of 100\n");
    begin(f, 7, 3000);
    assert_null(waits_pieces(f->waits, 3010, 0)); /* the end of the recording */
    assert_samples(f, "7 3010 10 3\n");
}

/* Who wakes it is known when it is woken, and not of the pieces before. */
TEST_WITH(waker, setup, teardown)
{
    struct fixture *f = *state;
    const struct wire_wait wait = {.type = WIRE_WAIT, .tid = 7, .out_ns = 100, .in_ns = 2200, .queue_ns = 20,
                                   .waker_kind = WIRE_WAKER_THREAD, .waker_tgid = 5, .waker_tid = 6};

    begin(f, 7, 100);
    assert_null(waits_pieces(f->waits, 1100, 1000));
    assert_null(waits_end(f->waits, &wait));
    assert_samples(f, "7 1100 1000 3\n7 2180 1080 3+ of 2080 by 1 5/6\n7 2200 20 4+ of 20 by 1 5/6\n");
    begin(f, 7, 3000);
    end(f, 7, 3000, 3050, 0, 0, 0);
    assert_samples(f, "7 3050 50 3 of 50\n");
}

/* A file ends: what has lasted is handed on up to there, and no more than that later. */
TEST_WITH(cut, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    begin(f, 8, 1500);
    assert_null(waits_pieces(f->waits, 1200, 1000));
    assert_samples(f, "7 1200 1100 3\n");
    assert_null(waits_cut(f->waits, 2000, 1000));
    assert_samples(f, "7 2000 800 3+\n");
    assert_null(waits_cut(f->waits, 2000, 1000));
    assert_null(waits_cut(f->waits, 1900, 1000));
    assert_samples(f, "");
    end(f, 7, 100, 2300, 0, 0, 0);
    end(f, 8, 1500, 2300, 0, 0, 0);
    assert_samples(f, "7 2300 300 3+ of 2200\n8 2300 800 3 of 800\n");
}

/* The end found no room in the ring: the call site owes all of it again, so pieces of it are not counted twice. */
TEST_WITH(lost_end, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    assert_null(waits_pieces(f->waits, 600, 0));
    assert_samples(f, "7 600 500 3\n");
    begin(f, 7, 900);
    end(f, 7, 900, 1000, 0, 700, 0);
    assert_samples(f, "7 1000 0 3 of 100 owed 300\n");
    end(f, 9, 1, 2, 0, 0, 0); /* of no known stack */
    begin(f, 7, 2000);
    end(f, 7, 1500, 1600, 0, 0, 0); /* of another wait */
    assert_samples(f, "");
}

static void end_blamed(struct fixture *f, uint64_t out_ns, uint64_t in_ns, uint64_t blame_ns, uint64_t owed_blame_ns)
{
    struct wire_wait wait = {.type = WIRE_WAIT, .tid = 7, .out_ns = out_ns, .in_ns = in_ns, .blame_ns = blame_ns,
                             .owed_blame_ns = owed_blame_ns};

    assert_null(waits_end(f->waits, &wait));
}

/* What others lost meanwhile comes with the pieces, and adds up to what the sampler says at the end. */
TEST_WITH(blame, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    end_blamed(f, 100, 150, 120, 30);
    assert_samples(f, "7 150 50 3 of 50 blame 120 30\n");
    begin(f, 7, 200);
    assert_null(waits_pieces(f->waits, 300, 0));
    f->blame_ns = 70;
    assert_null(waits_pieces(f->waits, 400, 0));
    assert_null(waits_pieces(f->waits, 500, 0)); /* nobody waited any more */
    f->blame_ns = 90;
    assert_null(waits_pieces(f->waits, 600, 0));
    end_blamed(f, 200, 650, 100, 5);
    assert_samples(f, "7 300 100 3\n7 400 100 3+ blame 70 0\n7 500 100 3+\n7 600 100 3+ blame 20 0\n"
                      "7 650 50 3+ of 450 blame 10 5\n");
}

/* The end of a wait was lost: then its site owes the blame again, of which pieces were handed on. */
TEST_WITH(lost_blame, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    f->blame_ns = 400;
    assert_null(waits_pieces(f->waits, 600, 0));
    assert_samples(f, "7 600 500 3 blame 400 0\n");
    begin(f, 7, 900);
    f->blame_ns = 10; /* of another wait */
    assert_null(waits_pieces(f->waits, 950, 0));
    assert_samples(f, "7 950 50 3 blame 10 0\n");
    end_blamed(f, 900, 1000, 15, 450);
    assert_samples(f, "7 1000 0 3+ of 100 blame 0 55\n");
}

TEST_WITH(ended_thread, setup, teardown)
{
    struct fixture *f = *state;

    for (uint32_t tid = 1; tid <= 5; tid++)
        begin(f, tid, 10 * tid);
    waits_forget(f->waits, 1);
    waits_forget(f->waits, 5);
    waits_forget(f->waits, 5);
    for (uint32_t tid = 1; tid <= 5; tid++)
        end(f, tid, 10 * tid, 100, 0, 0, 0);
    assert_samples(f, "2 100 80 3 of 80\n3 100 70 3 of 70\n4 100 60 3 of 60\n");
}

/* What is met as it lasts is handed on once it is read, from its beginning on; what ends or is cut off before, as it is. */
TEST_WITH(unread, setup, teardown)
{
    struct fixture *f = *state;

    meet(f, 7, 100, 0);
    meet(f, 8, 100, WIRE_CONTINUES);
    meet(f, 9, 100, 0);
    assert_null(waits_pieces(f->waits, 2000, 1000));
    assert_samples(f, "");
    assert_non_null(waits_unread(f->waits, 7, 100));
    assert_null(waits_unread(f->waits, 7, 101));
    complete(f, 7, 100);
    assert_null(waits_unread(f->waits, 7, 100));
    assert_null(waits_pieces(f->waits, 2100, 1000));
    assert_samples(f, "7 2100 2000 6\n");
    end(f, 7, 100, 2500, 0, 0, 0);
    assert_samples(f, "7 2500 400 6+ of 2400\n");
    end(f, 8, 100, 2500, 0, 0, 0);
    assert_samples(f, "8 2500 2400 3+ of 2400\n");
    complete(f, 8, 100); /* too late */
    complete(f, 9, 200); /* of another wait */
    assert_null(waits_pieces(f->waits, 3000, 0));
    assert_samples(f, "9 3000 2900 3\n");
}

/* The thread ran while it was read: only its end, if that is told, says how long the wait was. */
TEST_WITH(doubted, setup, teardown)
{
    struct fixture *f = *state;

    meet(f, 7, 100, 0);
    meet(f, 8, 100, WIRE_CONTINUES);
    waits_doubt(f->waits, 7);
    waits_doubt(f->waits, 8);
    waits_doubt(f->waits, 9);
    complete(f, 7, 100);
    assert_null(waits_pieces(f->waits, 2000, 1000));
    end(f, 7, 100, 300, 0, 0, 0);
    assert_samples(f, "7 300 200 3 of 200\n");
    assert_null(waits_pieces(f->waits, 3000, 0)); /* the call site owes that of 8 */
    assert_samples(f, "");
    begin(f, 8, 2500);
    end(f, 8, 2500, 2600, 0, 0, 0);
    assert_samples(f, "8 2600 100 3 of 100\n");
}

/* Messages that make no sense do no harm. */
TEST_WITH(nonsense, setup, teardown)
{
    struct fixture *f = *state;

    begin(f, 7, 100);
    end(f, 7, 100, 90, 0, 0, 0);
    end(f, 7, 100, 150, 51, 0, 0);
    assert_samples(f, "");
    assert_null(waits_pieces(f->waits, 50, 0)); /* before it began */
    assert_samples(f, "");
    assert_int_equal(waits_refused(f->waits), 0);
}

/* How many threads of a process wait with large stacks until no more is kept; tids from `first` on. */
static uint32_t fill(struct fixture *f, uint32_t tgid, uint32_t first)
{
    enum { LARGE = 64 << 10 };
    struct wire_sample *m = calloc(1, LARGE);
    uint64_t refused = waits_refused(f->waits);
    uint32_t count = 0;

    assert_non_null(m);
    *m = (struct wire_sample){.type = WIRE_SAMPLE, .flags = WIRE_WAITS, .tgid = tgid};
    for (; count < 2000; count++) {
        m->tid = first + count;
        assert_null(waits_begin(f->waits, m, LARGE));
        if (waits_refused(f->waits) > refused)
            break;
    }
    free(m);
    return count;
}

/* A process that makes many threads wait in deep stacks leaves room for others, and gives all of it back. */
TEST_WITH(shares_of_memory, setup, teardown)
{
    struct fixture *f = *state;

    assert_int_equal(fill(f, 1, 10000), 512); /* half of 64 MiB */
    assert_int_equal(fill(f, 2, 20000), 256);
    assert_int_equal(fill(f, 3, 30000), 128);
    for (uint32_t tid = 10000; tid < 10512; tid++)
        waits_forget(f->waits, tid);
    assert_int_equal(fill(f, 1, 10000), 320);
    assert_int_equal(waits_refused(f->waits), 4);
}
