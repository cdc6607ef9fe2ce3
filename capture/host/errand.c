/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread waits for errands. One that is late keeps its thread, which is abandoned: the next errand starts another. Each
 * thread has a struct of its own, so that an abandoned one sees that it is when its call returns, should it ever return.
 */
#include "capture/host/errand.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "capture/host/quiet_thread.h"
#include "formats/base/clock.h"

struct errand_thread {
    pthread_t thread;
    pthread_cond_t wake, finished;
    struct errand *errand; /* NULL: it waits for one */
    bool begun;            /* with the errand */
    bool abandoned, ending;
};

/* Bans that are remembered: more than threads can be held up at once. */
#define BANS (4 * ERRAND_HELD_UP_MAX)

/* Whose main loop must not wait is the process. */
static struct {
    atomic_bool begun;
    pthread_t owner;
    pthread_mutex_t lock; /* of what the threads see */
    struct errand_thread *current; /* NULL: the next errand starts one */
    uint32_t held_up;
    /* of the owner */
    uint64_t allowance_ns, allowed_ns; /* of waiting in vain, and when it was last topped up */
    struct {
        pid_t pid;
        uint64_t until_ns;
    } bans[BANS];
    uint32_t next_ban;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the thread ---- */

static void thread_free(struct errand_thread *t)
{
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->finished);
    free(t);
}

static void *work(void *ctx)
{
    struct errand_thread *t = ctx;

    pthread_mutex_lock(&state.lock);
    while (!t->ending) {
        struct errand *e = t->errand;
        if (!e) {
            pthread_cond_wait(&t->wake, &state.lock);
            continue;
        }
        t->begun = true;
        pthread_mutex_unlock(&state.lock);
        e->run(e);
        pthread_mutex_lock(&state.lock);
        if (t->abandoned) {
            state.held_up--;
            pthread_mutex_unlock(&state.lock);
            e->destroy(e);
            thread_free(t);
            return NULL;
        }
        t->errand = NULL;
        pthread_cond_signal(&t->finished);
    }
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

static struct errand_thread *start_thread(void)
{
    struct errand_thread *t = calloc(1, sizeof *t);
    pthread_condattr_t clock;

    if (!t)
        return NULL;
    pthread_cond_init(&t->wake, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&t->finished, &clock);
    pthread_condattr_destroy(&clock);
    if (quiet_thread_start(&t->thread, work, t)) {
        thread_free(t);
        return NULL;
    }
    return t;
}

/* ---- its owner ---- */

static bool is_banned(pid_t pid, uint64_t time_ns)
{
    for (uint32_t i = 0; i < BANS; i++) {
        if (state.bans[i].pid == pid && state.bans[i].until_ns > time_ns)
            return true;
    }
    return false;
}

/* How long may be waited for the next errand. */
static uint64_t patience_ns(uint64_t time_ns)
{
    state.allowance_ns += (time_ns - state.allowed_ns) / ERRAND_WAITS_SHARE;
    state.allowed_ns = time_ns;
    if (state.allowance_ns > ERRAND_WAITS_MAX_NS)
        state.allowance_ns = ERRAND_WAITS_MAX_NS;
    if (state.allowance_ns < ERRAND_WAIT_LEAST_NS)
        return ERRAND_WAIT_LEAST_NS;
    return state.allowance_ns < ERRAND_WAIT_NS ? state.allowance_ns : ERRAND_WAIT_NS;
}

/* Under the lock. */
static void abandon(struct errand_thread *t, pid_t pid, uint64_t waited_ns, uint64_t time_ns)
{
    t->abandoned = true;
    pthread_detach(t->thread);
    state.current = NULL;
    state.held_up++;
    state.allowance_ns -= waited_ns < state.allowance_ns ? waited_ns : state.allowance_ns;
    state.bans[state.next_ban].pid = pid;
    state.bans[state.next_ban].until_ns = time_ns + ERRAND_BAN_NS;
    state.next_ban = (state.next_ban + 1) % BANS;
}

/*
 * Under the lock. Whether the errand was done in time; else its thread is abandoned. The time is counted in steps that begin
 * anew whenever this thread runs: while the machine, or this thread, stood still the other one could not run either. Where
 * only the other one has no CPU, as when that of a virtual machine stands still, its errand has not begun.
 */
static bool wait_for(struct errand_thread *t, pid_t pid, uint64_t began_ns)
{
    uint64_t left_ns = patience_ns(began_ns), begin_ns = state.allowance_ns > left_ns ? state.allowance_ns - left_ns : 0;

    while (t->errand) {
        uint64_t step_ns = left_ns < ERRAND_STEP_NS ? left_ns : ERRAND_STEP_NS;
        const struct timespec until = timespec_of_ns(now_ns() + step_ns);
        if (pthread_cond_timedwait(&t->finished, &state.lock, &until) != ETIMEDOUT || !t->errand)
            continue;
        if (!t->begun && begin_ns >= step_ns) {
            begin_ns -= step_ns;
            continue;
        }
        left_ns -= step_ns;
        if (!left_ns) {
            uint64_t time_ns = now_ns();
            abandon(t, pid, time_ns - began_ns, time_ns);
            return false;
        }
    }
    return true;
}

bool errand_threads_used(void)
{
    return atomic_load(&state.begun) && pthread_equal(state.owner, pthread_self());
}

bool errand_run(struct errand *e)
{
    if (!errand_threads_used()) {
        e->run(e);
        return true;
    }
    uint64_t time_ns = now_ns();
    pthread_mutex_lock(&state.lock);
    bool possible = !is_banned(e->pid, time_ns) && state.held_up < ERRAND_HELD_UP_MAX;
    if (possible && !state.current)
        state.current = start_thread();
    struct errand_thread *t = possible ? state.current : NULL;
    if (!t) {
        pthread_mutex_unlock(&state.lock);
        e->destroy(e);
        errno = EBUSY;
        return false;
    }
    t->errand = e;
    t->begun = false;
    pthread_cond_signal(&t->wake);
    bool done = wait_for(t, e->pid, time_ns);
    pthread_mutex_unlock(&state.lock);
    if (!done)
        errno = EBUSY;
    return done;
}

void errand_threads_begin(void)
{
    state.owner = pthread_self();
    state.allowance_ns = ERRAND_WAITS_MAX_NS;
    state.allowed_ns = now_ns();
    atomic_store(&state.begun, true);
}

void errand_threads_end(void)
{
    atomic_store(&state.begun, false);
    pthread_mutex_lock(&state.lock);
    struct errand_thread *t = state.current;
    state.current = NULL;
    if (t) {
        t->ending = true;
        pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&state.lock);
    if (t) {
        pthread_join(t->thread, NULL);
        thread_free(t);
    }
}
