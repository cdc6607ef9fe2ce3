/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the worker's thread and its owner both see is under one lock. Each thread has a struct of its own beside, so that an
 * abandoned one sees that it is, should it ever return. The last of all frees the worker.
 */
#include "capture/binary/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "capture/host/quiet_thread.h"
#include "formats/base/clock.h"
#include "formats/base/vec.h"

/* So many threads may hang at once, of eight owners at least. Until one returns nothing is done. */
#define ABANDONED_MAX 16
/* How long the end of a job is waited for at the worker's own end. */
#define END_NS (100 * NS_PER_MS)

struct job_list {
    struct worker_job *first, *last;
    uint32_t count;
};

struct process_jobs {
    uint64_t process;
    struct job_list jobs; /* never empty */
};

struct owner_jobs {
    uint64_t owner;
    VEC(struct process_jobs) processes; /* never empty */
    uint32_t turn; /* index of the process whose job is next */
    uint32_t waiting;
};

struct thread_state {
    struct worker *worker;
    pthread_t thread;
    struct worker_job *job; /* NULL: it waits for one */
    uint64_t since_ns, cpu_ns; /* when it began with the job: CLOCK_MONOTONIC, and the thread's own CPU time */
    atomic_bool stop;
    bool begun, abandoned, ended;
};

/* A job that was abandoned; it may return yet. */
struct hang {
    const struct thread_state *thread; /* NULL: it returned */
    uint64_t process, owner, until_ns;
};

struct worker {
    void (*begin)(void);
    pthread_mutex_t lock;
    pthread_cond_t wake, finished;
    VEC(struct owner_jobs) owners;
    uint32_t turn; /* index of the owner whose job is next */
    uint32_t waiting;
    struct job_list done;
    struct thread_state *current; /* NULL: too many were abandoned */
    uint32_t abandoned_alive;
    struct hang hangs[ABANDONED_MAX]; /* until_ns 0: a free place */
    bool ending;
    bool orphaned; /* worker_destroy() has left it to abandoned threads */
    int event_fd;
};

/* ---- lists; under the lock ---- */

static void append(struct job_list *list, struct worker_job *job)
{
    job->next = NULL;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
    list->count++;
}

static struct worker_job *take_first(struct job_list *list)
{
    struct worker_job *job = list->first;

    if (!job)
        return NULL;
    list->first = job->next;
    if (!list->first)
        list->last = NULL;
    list->count--;
    job->next = NULL;
    return job;
}

static void destroy_all(struct job_list *list)
{
    for (struct worker_job *job; (job = take_first(list));)
        job->destroy(job);
}

static bool is_over(const struct hang *h, uint64_t time_ns)
{
    return !h->thread && h->until_ns <= time_ns;
}

/* Whether jobs of its process, or of its owner, have hung lately. */
static bool is_banned(const struct worker *w, const struct worker_job *job, uint64_t time_ns)
{
    uint32_t of_owner = 0;

    for (uint32_t i = 0; i < ABANDONED_MAX; i++) {
        const struct hang *h = &w->hangs[i];
        if (is_over(h, time_ns))
            continue;
        if (h->process == job->process)
            return true;
        of_owner += h->owner == job->owner;
    }
    return of_owner >= WORKER_HANGS_OF_OWNER;
}

/* The owner's jobs; those of one without any are made. NULL: memory ran out. */
static struct owner_jobs *jobs_of(struct worker *w, uint64_t owner)
{
    size_t at = 0;

    while (at < w->owners.count && w->owners.data[at].owner != owner)
        at++;
    if (at == w->owners.count && !VEC_PUSH(&w->owners, ((struct owner_jobs){.owner = owner})))
        return NULL;
    return &w->owners.data[at];
}

static bool append_to_process(struct owner_jobs *of, struct worker_job *job)
{
    size_t at = 0;

    while (at < of->processes.count && of->processes.data[at].process != job->process)
        at++;
    if (at == of->processes.count && !VEC_PUSH(&of->processes, ((struct process_jobs){.process = job->process})))
        return false;
    append(&of->processes.data[at].jobs, job);
    of->waiting++;
    return true;
}

/* Takes out an owner who has no job left. */
static void remove_owner(struct worker *w, struct owner_jobs *of)
{
    VEC_DEINIT(&of->processes);
    memmove(of, of + 1, (size_t)(w->owners.data + --w->owners.count - of) * sizeof *of);
}

static bool add_job(struct worker *w, struct worker_job *job)
{
    if (is_banned(w, job, now_ns()))
        return false;
    if (!w->current || w->waiting >= WORKER_JOBS_MAX)
        return false;
    struct owner_jobs *of = jobs_of(w, job->owner);
    if (!of || of->waiting >= WORKER_JOBS_OF_OWNER)
        return false;
    if (!append_to_process(of, job)) {
        if (!of->waiting)
            remove_owner(w, of);
        return false;
    }
    w->waiting++;
    return true;
}

static struct worker_job *next_of_owner(struct owner_jobs *of)
{
    if (of->turn >= of->processes.count)
        of->turn = 0;
    struct process_jobs *p = &of->processes.data[of->turn];
    struct worker_job *job = take_first(&p->jobs);
    of->waiting--;
    if (p->jobs.count)
        of->turn++;
    else
        memmove(p, p + 1, (--of->processes.count - of->turn) * sizeof *p);
    return job;
}

static struct worker_job *next_job(struct worker *w)
{
    if (!w->owners.count)
        return NULL;
    if (w->turn >= w->owners.count)
        w->turn = 0;
    struct owner_jobs *of = &w->owners.data[w->turn];
    struct worker_job *job = next_of_owner(of);
    w->waiting--;
    if (of->waiting)
        w->turn++;
    else
        remove_owner(w, of);
    return job;
}

static void remove_all(struct worker *w)
{
    for (size_t i = 0; i < w->owners.count; i++) {
        struct owner_jobs *of = &w->owners.data[i];
        for (size_t k = 0; k < of->processes.count; k++)
            destroy_all(&of->processes.data[k].jobs);
        VEC_DEINIT(&of->processes);
    }
    w->owners.count = 0;
}

static void worker_free(struct worker *w)
{
    VEC_DEINIT(&w->owners);
    if (w->event_fd >= 0)
        close(w->event_fd);
    pthread_cond_destroy(&w->wake);
    pthread_cond_destroy(&w->finished);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* ---- the thread ---- */

/* Returns the next job to run. Those whose process or owner has been banned since are returned undone. */
static struct worker_job *next_to_run(struct worker *w)
{
    struct worker_job *job;

    while ((job = next_job(w)) && is_banned(w, job, now_ns())) {
        job->undone = true;
        append(&w->done, job);
        if (eventfd_write(w->event_fd, 1))
            continue; /* it is readable already */
    }
    return job;
}

/* An abandoned thread has returned. */
static void end_hang(struct worker *w, const struct thread_state *t)
{
    for (uint32_t i = 0; i < ABANDONED_MAX; i++) {
        if (w->hangs[i].thread == t)
            w->hangs[i].thread = NULL;
    }
}

static void *work(void *ctx)
{
    struct thread_state *t = ctx;
    struct worker *w = t->worker;

    w->begin();
    pthread_mutex_lock(&w->lock);
    t->begun = true;
    pthread_cond_broadcast(&w->finished);
    while (!w->ending && !t->abandoned) {
        t->job = next_to_run(w);
        if (!t->job) {
            pthread_cond_wait(&w->wake, &w->lock);
            continue;
        }
        t->since_ns = now_ns();
        t->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        pthread_mutex_unlock(&w->lock);
        t->job->run(t->job, &t->stop);
        pthread_mutex_lock(&w->lock);
        if (t->abandoned) {
            t->job->destroy(t->job);
            break;
        }
        append(&w->done, t->job);
        t->job = NULL;
        pthread_cond_signal(&w->finished);
        if (eventfd_write(w->event_fd, 1))
            continue; /* it is readable already */
    }
    t->ended = true;
    pthread_cond_signal(&w->finished);
    end_hang(w, t);
    bool abandoned = t->abandoned, last = abandoned && !--w->abandoned_alive && w->orphaned;
    pthread_mutex_unlock(&w->lock);
    if (abandoned)
        free(t);
    if (last)
        worker_free(w);
    return NULL;
}

static struct error *start_thread(struct worker *w)
{
    struct thread_state *t = calloc(1, sizeof *t);

    if (!t)
        return error_no_memory();
    t->worker = w;
    int e = quiet_thread_start(&t->thread, work, t);
    if (e) {
        free(t);
        return error_os(e, "a thread cannot be started");
    }
    w->current = t;
    return NULL;
}

/* ---- its owner ---- */

struct error *worker_create(void (*begin)(void), struct worker **out)
{
    struct worker *w = calloc(1, sizeof *w);
    pthread_condattr_t clock;

    if (!w)
        return error_no_memory();
    w->begin = begin;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, NULL);
    pthread_cond_init(&w->finished, &clock);
    pthread_condattr_destroy(&clock);
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct error *err = w->event_fd < 0 ? error_os(errno, "an event cannot be created") : start_thread(w);
    if (err) {
        worker_destroy(w);
        return err;
    }
    /* The list of system calls that comes later lets no thread change its user. */
    pthread_mutex_lock(&w->lock);
    while (!w->current->begun)
        pthread_cond_wait(&w->finished, &w->lock);
    pthread_mutex_unlock(&w->lock);
    *out = w;
    return NULL;
}

/* The place of a new hang: a free one, else that of the one that returned and is over first. */
static struct hang *hang_place(struct worker *w)
{
    struct hang *best = NULL;

    for (uint32_t i = 0; i < ABANDONED_MAX; i++) {
        struct hang *h = &w->hangs[i];
        if (!h->thread && (!best || h->until_ns < best->until_ns))
            best = h;
    }
    return best;
}

static void abandon(struct worker *w, uint64_t time_ns)
{
    struct thread_state *t = w->current;

    t->abandoned = true;
    w->abandoned_alive++;
    atomic_store(&t->stop, true);
    pthread_detach(t->thread);
    w->current = NULL;
    struct hang *h = hang_place(w);
    if (h && t->job)
        *h = (struct hang){t, t->job->process, t->job->owner, time_ns + WORKER_BAN_NS};
}

/* Whether the thread has ended, a moment later if it has to. */
static bool end_thread(struct worker *w)
{
    const struct timespec until = timespec_of_ns(now_ns() + END_NS);

    atomic_store(&w->current->stop, true);
    while (!w->current->ended) {
        if (pthread_cond_timedwait(&w->finished, &w->lock, &until))
            break;
    }
    return w->current->ended;
}

void worker_destroy(struct worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->wake);
    if (w->current && !end_thread(w))
        abandon(w, now_ns());
    remove_all(w);
    destroy_all(&w->done);
    struct thread_state *ended = w->current;
    if (ended) { /* it needs the lock no more */
        pthread_join(ended->thread, NULL);
        free(ended);
    }
    w->orphaned = w->abandoned_alive;
    bool orphaned = w->orphaned;
    pthread_mutex_unlock(&w->lock);
    if (!orphaned)
        worker_free(w);
}

bool worker_add(struct worker *w, struct worker_job *job)
{
    pthread_mutex_lock(&w->lock);
    bool added = add_job(w, job);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (!added)
        job->destroy(job);
    return added;
}

struct worker_job *worker_take(struct worker *w)
{
    eventfd_t count;

    pthread_mutex_lock(&w->lock);
    struct worker_job *job = take_first(&w->done);
    if (!w->done.first && eventfd_read(w->event_fd, &count))
        count = 0; /* it was not readable */
    pthread_mutex_unlock(&w->lock);
    return job;
}

bool worker_wait(struct worker *w, uint64_t until_ns)
{
    const struct timespec until = timespec_of_ns(until_ns);

    pthread_mutex_lock(&w->lock);
    while (!w->done.first && w->current && !pthread_cond_timedwait(&w->finished, &w->lock, &until))
        continue;
    bool any = w->done.first != NULL;
    pthread_mutex_unlock(&w->lock);
    return any;
}

bool worker_is_busy(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool busy = w->waiting || (w->current && w->current->job);
    pthread_mutex_unlock(&w->lock);
    return busy;
}

int worker_fd(const struct worker *w)
{
    return w->event_fd;
}

/* A thread that waits for the kernel uses next to no time of a CPU. */
static bool is_stuck(const struct thread_state *t, uint64_t time_ns)
{
    clockid_t clock;

    if (!t->job || time_ns < t->since_ns + WORKER_STUCK_NS)
        return false;
    if (time_ns >= t->since_ns + WORKER_LONG_NS)
        return true;
    return !pthread_getcpuclockid(t->thread, &clock) && clock_ns(clock) - t->cpu_ns < (time_ns - t->since_ns) / 32;
}

bool worker_give_up(struct worker *w, uint64_t time_ns, uint32_t *number)
{
    pthread_mutex_lock(&w->lock);
    bool stuck = w->current && is_stuck(w->current, time_ns);
    if (stuck) {
        *number = w->current->job->number;
        abandon(w, time_ns);
    }
    if (!w->current && w->abandoned_alive < ABANDONED_MAX)
        error_destroy(start_thread(w));
    pthread_mutex_unlock(&w->lock);
    return stuck;
}
