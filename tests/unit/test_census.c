/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads of this very process have a stack: by samples, by waits that go on, or because they have ended. */
#include "tests/unit/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "capture/session/census.h"
#include "formats/base/clock.h"
#include "formats/trace/trace.h"

STARTS_THREADS;

#define BEGUN NS_PER_S

struct fixture {
    struct waits *waits;
    struct census *census;
    pthread_t thread;
    uint32_t own, other; /* thread ids */
    sem_t begun, may_end;
};

static struct error *put(void *ctx, const struct wire_sample *m, uint32_t len_bytes)
{
    (void)ctx, (void)m, (void)len_bytes;
    return NULL;
}

static void *run(void *fixture)
{
    struct fixture *f = fixture;

    f->other = (uint32_t)syscall(SYS_gettid);
    sem_post(&f->begun);
    sem_wait(&f->may_end);
    return NULL;
}

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){.own = (uint32_t)syscall(SYS_gettid)};
    *state = &f;
    if (waits_create(put, NULL, NULL, &f.waits) || census_create(f.waits, &f.census) || sem_init(&f.begun, 0, 0) ||
        sem_init(&f.may_end, 0, 0) || pthread_create(&f.thread, NULL, run, &f))
        return 1;
    while (sem_wait(&f.begun))
        ;
    census_begin(f.census, BEGUN);
    return census_list(f.census, (uint32_t)getpid()) != NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->thread) {
        sem_post(&f->may_end);
        pthread_join(f->thread, NULL);
    }
    census_destroy(f->census);
    waits_destroy(f->waits);
    return 0;
}

static void saw(struct fixture *f, uint32_t tid, uint32_t python_end)
{
    const struct wire_sample sample = {.type = WIRE_SAMPLE, .tid = tid, .python_end = python_end};

    census_saw(f->census, &sample);
}

/* A sanitizer may have threads of its own: they count as seen. */
static void saw_all_others(struct fixture *f)
{
    struct procfs_pids threads = {0};

    assert_null(procfs_threads(getpid(), &threads));
    for (size_t i = 0; i < threads.list.count; i++) {
        uint32_t tid = (uint32_t)threads.list.data[i];
        if (tid != f->own && tid != f->other)
            saw(f, tid, 0);
    }
    VEC_DEINIT(&threads.list);
}

TEST_WITH(by_samples, setup, teardown)
{
    struct fixture *f = *state;

    saw_all_others(f);
    assert_false(census_is_complete(f->census, BEGUN));
    assert_int_equal(census_missing(f->census), 2);
    saw(f, f->own, LOSS_complete);
    assert_false(census_is_complete(f->census, BEGUN));
    assert_int_equal(census_missing(f->census), 1);
    saw(f, f->other, 0);
    assert_true(census_is_complete(f->census, BEGUN));
}

/* A stack with a hole is waited for a better one, but not for ever. */
TEST_WITH(poor_stacks, setup, teardown)
{
    struct fixture *f = *state;

    saw_all_others(f);
    saw(f, f->own, 0);
    saw(f, f->other, LOSS_thread_state_fault);
    assert_false(census_is_complete(f->census, BEGUN + CENSUS_BETTER_NS - 1));
    assert_true(census_is_complete(f->census, BEGUN + CENSUS_BETTER_NS));
}

TEST_WITH(a_good_stack_stays_good, setup, teardown)
{
    struct fixture *f = *state;

    saw_all_others(f);
    saw(f, f->own, 0);
    saw(f, f->other, 0);
    saw(f, f->other, LOSS_thread_state_fault);
    assert_true(census_is_complete(f->census, BEGUN));
}

/* A wait whose stacks are yet to be read does not count; once they are, it does. */
TEST_WITH(by_waits, setup, teardown)
{
    struct fixture *f = *state;
    const struct wire_sample wait = {.type = WIRE_SAMPLE, .flags = WIRE_WAITS, .tid = f->other, .time_ns = 5};

    saw_all_others(f);
    saw(f, f->own, 0);
    assert_null(waits_begin_unread(f->waits, &wait, sizeof wait));
    assert_null(waits_kept(f->waits, f->other));
    assert_false(census_is_complete(f->census, BEGUN));
    assert_null(waits_complete(f->waits, &wait, sizeof wait));
    assert_non_null(waits_kept(f->waits, f->other));
    assert_true(census_is_complete(f->census, BEGUN));
}

TEST_WITH(a_thread_that_ends, setup, teardown)
{
    struct fixture *f = *state;

    saw_all_others(f);
    saw(f, f->own, 0);
    assert_false(census_is_complete(f->census, BEGUN));
    sem_post(&f->may_end);
    pthread_join(f->thread, NULL);
    f->thread = 0;
    /* Joining returns when the kernel is about to remove it. */
    uint64_t now = BEGUN;
    for (int i = 0; i < 5000 && !census_is_complete(f->census, now); i++) {
        usleep(1000);
        now += NS_PER_S;
    }
    assert_int_equal(census_missing(f->census), 0);
}

TEST_WITH(a_process_that_is_not_there, setup, teardown)
{
    struct fixture *f = *state;
    struct census *census;

    assert_null(census_create(f->waits, &census));
    census_begin(census, BEGUN);
    assert_null(census_list(census, UINT32_MAX / 2));
    assert_true(census_is_complete(census, BEGUN));
    census_destroy(census);
}
