/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that reads files of strangers: whose turn it is, and what becomes of a job that does not end. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "capture/binary/worker.h"
#include "formats/base/clock.h"

STARTS_THREADS;

#define SOON_NS (20 * NS_PER_S) /* a bound for slow machines; nothing waits that long */

struct test_job {
    struct worker_job job;
    int read_fd; /* the job waits until it can read a byte there; -1: it does not wait */
    bool polls;  /* the job computes until it is told to stop */
};
static atomic_uint destroyed;

static void run_job(struct worker_job *job, const atomic_bool *stop)
{
    const struct test_job *j = (struct test_job *)job;
    char byte;

    while (j->read_fd >= 0 && read(j->read_fd, &byte, 1) < 0 && errno == EINTR)
        continue;
    while (j->polls && !atomic_load(stop))
        continue;
}

static void destroy_job(struct worker_job *job)
{
    atomic_fetch_add(&destroyed, 1);
    free(job);
}

static struct worker_job *new_job_of(uint32_t owner, uint32_t process, uint32_t number, int read_fd, bool polls)
{
    struct test_job *j = calloc(1, sizeof *j);

    assert_non_null(j);
    j->job = (struct worker_job){.process = process, .owner = owner, .number = number, .run = run_job, .destroy = destroy_job};
    j->read_fd = read_fd;
    j->polls = polls;
    return &j->job;
}

/* Of an owner with one process. */
static struct worker_job *new_job(uint32_t owner, uint32_t number, int read_fd, bool polls)
{
    return new_job_of(owner, owner, number, read_fd, polls);
}

static void begin(void)
{
}

static struct worker_job *next_done(struct worker *w)
{
    struct worker_job *job;

    while (!(job = worker_take(w)))
        assert_true(worker_wait(w, now_ns() + SOON_NS));
    return job;
}

/* Takes so many jobs. place[N] becomes the position in which job N was done. */
static void take_all(struct worker *w, uint32_t count, uint32_t *place)
{
    for (uint32_t i = 0; i < count; i++) {
        struct worker_job *job = next_done(w);
        place[job->number] = i;
        job->destroy(job);
    }
}

TEST(owners_take_turns)
{
    struct worker *w;
    int gate[2];

    OK(worker_create(begin, &w));
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    assert_true(worker_add(w, new_job(1, 0, gate[0], false)));
    /* While the first one waits, one owner asks for much, two others for little. */
    for (uint32_t i = 1; i <= 100; i++)
        assert_true(worker_add(w, new_job(7, i, -1, false)));
    assert_true(worker_add(w, new_job(8, 1001, -1, false)));
    assert_true(worker_add(w, new_job(9, 1002, -1, false)));
    assert_true(worker_is_busy(w));
    assert_null(worker_take(w));
    assert_int_equal(write(gate[1], "x", 1), 1);
    uint32_t place[2000] = {0};
    take_all(w, 103, place);
    assert_int_equal(place[0], 0);
    assert_true(place[1001] <= 4 && place[1002] <= 4);
    for (uint32_t i = 2; i <= 100; i++)
        assert_true(place[i] > place[i - 1]);
    assert_false(worker_is_busy(w));
    worker_destroy(w);
    close(gate[0]);
    close(gate[1]);
}

/* One owner has a hundred processes with ten jobs each, another one process with one. */
TEST(many_processes_have_one_turn)
{
    struct worker *w;
    int gate[2];

    OK(worker_create(begin, &w));
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    assert_true(worker_add(w, new_job_of(7, 99, 0, gate[0], false)));
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(worker_add(w, new_job_of(7, 100 + i % 100, 1 + i, -1, false)));
    assert_true(worker_add(w, new_job_of(8, 1, 1001, -1, false)));
    assert_int_equal(write(gate[1], "x", 1), 1);
    uint32_t place[1002] = {0};
    take_all(w, 1002, place);
    assert_true(place[1001] <= 2);
    /* Its own processes take turns, too. */
    for (uint32_t i = 1; i <= 1000; i++)
        assert_in_range(place[i], i, i + 1);
    assert_false(worker_is_busy(w));
    worker_destroy(w);
    close(gate[0]);
    close(gate[1]);
}

TEST(the_queue_has_an_end)
{
    struct worker *w;
    int gate[2];
    uint32_t added = 0;

    OK(worker_create(begin, &w));
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    assert_true(worker_add(w, new_job(1, 0, gate[0], false)));
    atomic_store(&destroyed, 0);
    while (worker_add(w, new_job(7, 1, -1, false)))
        added++;
    assert_true(added <= WORKER_JOBS_OF_OWNER && added >= WORKER_JOBS_OF_OWNER - 1);
    assert_int_equal(atomic_load(&destroyed), 1); /* the refused one */
    assert_true(worker_add(w, new_job(8, 2, -1, false)));
    assert_int_equal(write(gate[1], "x", 1), 1);
    worker_destroy(w);
    /* A thread that is late is not waited for, and destroys its job itself. */
    for (uint64_t until = now_ns() + SOON_NS; atomic_load(&destroyed) < added + 3 && now_ns() < until;)
        usleep(1000);
    assert_int_equal(atomic_load(&destroyed), added + 3);
    close(gate[0]);
    close(gate[1]);
}

TEST(a_stuck_job_is_given_up)
{
    struct worker *w;
    int gate[2];
    uint32_t number = 0;

    OK(worker_create(begin, &w));
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    atomic_store(&destroyed, 0);
    assert_true(worker_add(w, new_job(7, 42, gate[0], false)));
    assert_true(worker_add(w, new_job(8, 43, -1, false)));
    assert_false(worker_wait(w, now_ns() + 20 * NS_PER_MS));
    assert_false(worker_give_up(w, now_ns(), &number)); /* it has not been long */
    bool given_up = false; /* as soon as the thread has begun it */
    for (uint64_t until = now_ns() + SOON_NS; !given_up && now_ns() < until; usleep(1000))
        given_up = worker_give_up(w, now_ns() + 2 * WORKER_STUCK_NS, &number);
    assert_true(given_up);
    assert_int_equal(number, 42);
    struct worker_job *job = next_done(w); /* another thread goes on */
    assert_int_equal(job->number, 43);
    job->destroy(job);
    assert_false(worker_add(w, new_job(7, 44, -1, false))); /* no more of this owner */
    assert_true(worker_add(w, new_job(8, 45, -1, false)));
    job = next_done(w);
    assert_int_equal(job->number, 45);
    job->destroy(job);
    /* The abandoned one returns at last: its job is destroyed, and nobody takes it for done. */
    uint32_t before = atomic_load(&destroyed);
    assert_int_equal(write(gate[1], "x", 1), 1);
    for (uint64_t until = now_ns() + SOON_NS; atomic_load(&destroyed) == before && now_ns() < until;)
        usleep(1000);
    assert_int_equal(atomic_load(&destroyed), before + 1);
    assert_null(worker_take(w));
    worker_destroy(w);
}

/* One owner can hang two threads, whatever the number of its processes. Others' jobs are done all the same. */
TEST(one_owner_hangs_few)
{
    struct worker *w;
    int gate[2];
    uint32_t number = 0;

    OK(worker_create(begin, &w));
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    for (uint32_t i = 1; i <= 4; i++)
        assert_true(worker_add(w, new_job_of(1000, i, i, gate[0], false)));
    for (uint32_t i = 1; i <= WORKER_HANGS_OF_OWNER; i++) {
        while (!worker_give_up(w, now_ns() + 2 * WORKER_STUCK_NS, &number)) /* until the thread has begun */
            usleep(1000);
        assert_int_equal(number, i);
    }
    for (uint32_t i = 3; i <= 4; i++) { /* they were waiting */
        struct worker_job *job = next_done(w);
        assert_int_equal(job->number, i);
        assert_true(job->undone);
        job->destroy(job);
    }
    assert_false(worker_add(w, new_job_of(1000, 5, 5, -1, false)));
    assert_true(worker_add(w, new_job_of(1001, 6, 6, -1, false)));
    struct worker_job *other = next_done(w);
    assert_int_equal(other->number, 6);
    assert_false(other->undone);
    other->destroy(other);
    worker_destroy(w);
    assert_int_equal(write(gate[1], "xx", 2), 2);
}

TEST(the_end_does_not_wait)
{
    struct worker *w;
    int gate[2];

    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    OK(worker_create(begin, &w));
    assert_true(worker_add(w, new_job(7, 1, gate[0], false)));
    while (!worker_is_busy(w))
        usleep(1000);
    worker_destroy(w); /* or this test never ends: nobody writes into the pipe */
    /* One that computes is told to stop. */
    OK(worker_create(begin, &w));
    atomic_store(&destroyed, 0);
    assert_true(worker_add(w, new_job(7, 2, -1, true)));
    worker_destroy(w);
    assert_int_equal(write(gate[1], "x", 1), 1);
}
