/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of threads: those that were there at the end, process by process. Times of several captures are of several clocks, so
 * the end is that of all captures of a host, by the time of day; where a capture does not know that, its own.
 */
#include "formats/emit/threads/list.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/map.h"
#include "formats/base/sort.h"
#include "formats/emit/capture_facts.h"
#include "formats/emit/threads/facts.h"
#include "formats/emit/threads/task_list.h"

/* By what a capture's times are related to those of others. */
struct host_end {
    uint64_t newest_ns, end_ns; /* of its samples; of its captures */
};

struct ends {
    struct intern hosts;
    VEC(struct host_end) of_host;
    uint32_t *host_of; /* by capture */
};

void threads_list_deinit(struct threads_list *list)
{
    VEC_DEINIT(&list->threads);
    VEC_DEINIT(&list->tasks);
    VEC_DEINIT(&list->processes);
}

/* ---- ends ---- */

static void ends_deinit(struct ends *e)
{
    intern_deinit(&e->hosts);
    VEC_DEINIT(&e->of_host);
    free(e->host_of);
}

static bool find_host(struct ends *e, const struct emit_capture *capture, uint32_t number)
{
    const uint32_t none[] = {number, 0}; /* no host has a name like that */
    bool timed = capture->realtime_ns, added;

    uint32_t host = timed ? intern_id(&e->hosts, capture->hostname, (uint32_t)strlen(capture->hostname), &added)
                          : intern_id(&e->hosts, none, sizeof none, &added);
    e->host_of[number] = host;
    return host != INTERN_NONE && (!added || VEC_PUSH(&e->of_host, (struct host_end){0}));
}

/* Times of different hosts are never compared. */
static uint64_t time_of(const struct emit_capture *capture, uint64_t monotonic_ns)
{
    return capture->realtime_ns ? capture_realtime_ns(capture, monotonic_ns) : monotonic_ns;
}

static void note_time(const struct threads *t, struct ends *e, uint32_t capture, uint64_t monotonic_ns)
{
    struct host_end *host = &e->of_host.data[e->host_of[capture]];
    uint64_t time_ns = time_of(&t->model->captures[capture], monotonic_ns);

    host->newest_ns = time_ns > host->newest_ns ? time_ns : host->newest_ns;
}

/* Finds when each host was last seen: at its newest sample, unless the recording went on for long without any. */
static bool ends_init(struct ends *e, const struct threads *t)
{
    const struct emit_model *m = t->model;

    e->hosts.arena.limits = t->options.limits;
    e->host_of = calloc(m->capture_count ? m->capture_count : 1, sizeof *e->host_of);
    if (!e->host_of)
        return false;
    for (uint32_t i = 0; i < m->capture_count; i++) {
        const struct emit_capture *c = &m->captures[i];
        if (!find_host(e, c, i))
            return false;
        struct host_end *host = &e->of_host.data[e->host_of[i]];
        uint64_t end_ns = time_of(c, c->start_ns + c->duration_ns);
        host->end_ns = !t->options.times_chosen && end_ns > host->end_ns ? end_ns : host->end_ns;
    }
    for (size_t i = 0; i < t->newest.count; i++) {
        if (t->newest.data[i].seen)
            note_time(t, e, t->newest.data[i].capture, t->newest.data[i].time_ns);
    }
    for (size_t i = 0; i < t->tasks.list.count; i++)
        note_time(t, e, t->tasks.list.data[i].capture, t->tasks.list.data[i].until_ns);
    for (size_t i = 0; i < e->of_host.count; i++) {
        struct host_end *host = &e->of_host.data[i];
        bool calm = host->end_ns > host->newest_ns && host->end_ns - host->newest_ns > NS_PER_S;
        host->end_ns = calm ? host->end_ns : host->newest_ns;
    }
    return true;
}

/* ---- threads ---- */

/* Those that run, or would, come first. */
static uint32_t rank_of(const struct shown_thread *e)
{
    if (e->holds_gil)
        return 0;
    if (e->slept_since || e->newest->stackless)
        return e->state->state == EMIT_STATE_RUNS ? 1 : 5;
    if (!e->still)
        return 1;
    switch (e->waits) {
    case EMIT_WAIT_NONE:
        return 1;
    case EMIT_WAIT_RUN_QUEUE:
    case EMIT_WAIT_PREEMPTED:
        return 2;
    case EMIT_WAIT_GIL:
    case EMIT_WAIT_STOP_THE_WORLD:
        return 3;
    case EMIT_WAIT_UNINTERRUPTIBLE:
        return 4;
    default:
        return 5;
    }
}

/* Has it left its CPU after its newest sample? That may say so itself: `ran` is whether it ran then, or soon after. */
static bool has_slept_since(const struct emit_thread_state *state, const struct thread_newest *n, bool ran)
{
    bool sleeps = state && state->state > EMIT_STATE_RUNS;

    return sleeps && state->capture == n->capture && (state->since_ns > n->time_ns || (ran && state->time_ns > n->time_ns));
}

static struct shown_thread entry_of(const struct threads *t, uint32_t thread, uint64_t end_ns)
{
    const struct emit_model *m = t->model;
    const struct thread_newest *n = &t->newest.data[thread];
    const struct emit_label_set *set = &m->label_sets[n->label_set];
    uint64_t time_ns = time_of(&m->captures[n->capture], n->time_ns), ago_ns = end_ns > time_ns ? end_ns - time_ns : 0;
    bool still = set->wait == EMIT_WAIT_NONE || n->lasts || (!t->tells_lasting && ago_ns <= THREADS_NOW_NS);
    const struct emit_thread_state *state = t->state_of[thread] ? &m->thread_states[t->state_of[thread] - 1] : NULL;

    return (struct shown_thread){
        .thread = thread,
        .newest = n,
        .interpreter = set->interpreter,
        .system_call = set->system_call,
        .task = threads_label(set, "asyncio task"),
        .ago_ns = ago_ns,
        .waits = set->wait,
        .still = still,
        .state = state,
        .slept_since = has_slept_since(state, n, set->wait == EMIT_WAIT_NONE || !still),
        .process = m->threads[thread].process,
        .pid = m->processes[m->threads[thread].process].pid,
        .tid = m->threads[thread].tid,
    };
}

static int by_process(const void *a, const void *b)
{
    const struct shown_thread *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Of the threads of an interpreter that were seen with its lock, the one that was seen last has it, if it is still there. */
static bool find_holders(struct threads *t)
{
    struct intern interpreters = {.arena.limits = t->options.limits};
    VEC(struct shown_thread *) holders = {0};
    bool good = true;

    for (size_t i = 0; good && i < t->list.threads.count; i++) {
        struct shown_thread *e = &t->list.threads.data[i];
        const uint64_t key[] = {e->process, (uintptr_t)e->interpreter};
        bool added;
        if (e->newest->gil != EMIT_GIL_HELD || t->model->processes[e->process].free_threaded)
            continue;
        uint32_t at = intern_id(&interpreters, key, sizeof key, &added);
        good = at != INTERN_NONE && (!added || VEC_PUSH(&holders, e));
        if (good && e->ago_ns < holders.data[at]->ago_ns)
            holders.data[at] = e;
    }
    for (size_t i = 0; good && i < holders.count; i++)
        holders.data[i]->holds_gil = !holders.data[i]->slept_since;
    VEC_DEINIT(&holders);
    intern_deinit(&interpreters);
    return good;
}

static bool add_process(struct threads *t, const struct ends *ends, uint32_t process, uint32_t capture, uint64_t **at, struct map *of_process)
{
    const struct emit_capture *c = &t->model->captures[capture];
    struct threads_process p = {.process = process, .end_ns = c->realtime_ns ? ends->of_host.data[ends->host_of[capture]].end_ns : 0};

    if (!VEC_PUSH(&t->list.processes, p) || !map_set(of_process, process, t->list.processes.count - 1))
        return false;
    *at = map_get(of_process, process);
    return true;
}

/* Adds the processes and threads that were there at the end, and notes how many other threads there were. */
static bool add_threads(struct threads *t, const struct ends *ends, struct map *of_process, struct map *ended)
{
    for (size_t i = 0; i < t->newest.count; i++) {
        const struct thread_newest *n = &t->newest.data[i];
        if (!n->seen)
            continue;
        uint64_t end_ns = ends->of_host.data[ends->host_of[n->capture]].end_ns;
        struct shown_thread e = entry_of(t, (uint32_t)i, end_ns);
        if (t->model->processes[e.process].ended) {
            if (!map_set(ended, e.process, 1))
                return false;
            continue;
        }
        uint64_t *at = map_get(of_process, e.process);
        if (!at && !add_process(t, ends, e.process, n->capture, &at, of_process))
            return false;
        bool gone = t->has_waits && !e.state && e.ago_ns > THREADS_GONE_NS;
        t->list.processes.data[*at].gone += gone;
        if (!gone && !VEC_PUSH(&t->list.threads, e))
            return false;
    }
    for (size_t i = 0; i < t->tasks.list.count; i++) {
        const struct task_newest *n = &t->tasks.list.data[i];
        uint32_t process = t->model->threads[n->thread].process;
        uint64_t *at = map_get(of_process, process);
        bool is_over = t->model->processes[process].ended;
        if (is_over && !map_set(ended, process, 1))
            return false;
        if (n->lasts && !at && !is_over && !add_process(t, ends, process, n->capture, &at, of_process))
            return false;
    }
    return true;
}

/* Numbers what is shown alike, in the order in which it first comes; with --merge thread nothing is. */
static bool find_alike(struct threads *t)
{
    bool each = t->options.merge == EMIT_MERGE_THREAD || t->options.threads;
    struct intern kinds = {.arena.limits = t->options.limits};
    bool good = true;

    for (size_t i = 0; good && i < t->list.threads.count; i++) {
        struct shown_thread *e = &t->list.threads.data[i];
        bool known;
        threads_waited_ns(e, &known);
        const uint64_t key[] = {e->process, e->newest->stack, e->waits, e->still, e->rank, known, e->ago_ns > THREADS_NOW_NS,
                                (uintptr_t)threads_state_of(e), (uintptr_t)e->system_call, (uintptr_t)e->interpreter,
                                e->holds_gil || e->task || each ? i + 1 : 0};
        e->alike = intern_id(&kinds, key, sizeof key, NULL);
        good = e->alike != INTERN_NONE;
    }
    intern_deinit(&kinds);
    return good;
}

static int by_alike(const void *a, const void *b)
{
    const struct shown_thread *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->alike < y->alike ? -1 : x->alike > y->alike;
}

static int by_pid(const void *a, const void *b)
{
    const struct threads_process *x = a, *y = b;

    return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : x->process < y->process ? -1 : x->process > y->process;
}

/* Sorts processes and threads, and finds where each process's threads begin. */
static bool order(struct threads *t)
{
    struct threads_list *l = &t->list;
    uint32_t at = 0;

    if (!find_holders(t))
        return false;
    for (size_t i = 0; i < l->threads.count; i++)
        l->threads.data[i].rank = rank_of(&l->threads.data[i]);
    for (size_t i = 0; i < l->processes.count; i++)
        l->processes.data[i].pid = t->model->processes[l->processes.data[i].process].pid;
    if (!sort_stable(l->threads.data, l->threads.count, sizeof *l->threads.data, by_process) ||
        !find_alike(t) || !sort_stable(l->threads.data, l->threads.count, sizeof *l->threads.data, by_alike) ||
        !sort_stable(l->processes.data, l->processes.count, sizeof *l->processes.data, by_pid))
        return false;
    for (size_t i = 0; i < l->processes.count; i++) {
        struct threads_process *p = &l->processes.data[i];
        p->first = at;
        while (at < l->threads.count && l->threads.data[at].process == p->process)
            at++;
        p->count = at - p->first;
    }
    return true;
}

/* Finds the newest state of each thread. One that has no sample becomes a thread without a stack. */
static bool take_states(struct threads *t)
{
    const struct emit_model *m = t->model;

    t->state_of = calloc(m->thread_count ? m->thread_count : 1, sizeof *t->state_of);
    if (!t->state_of || !VEC_EXTEND_COUNTED(t->options.limits, &t->newest, (size_t)m->thread_count))
        return false;
    for (uint32_t i = 0; i < m->thread_state_count; i++) {
        const struct emit_thread_state *s = &m->thread_states[i];
        struct thread_newest *n = &t->newest.data[s->thread];
        t->state_of[s->thread] = i + 1;
        if (!n->seen || n->stackless)
            *n = (struct thread_newest){.time_ns = s->time_ns, .since_ns = s->time_ns, .stack = EMIT_NO_STACK,
                                        .capture = s->capture, .seen = true, .stackless = true};
    }
    return true;
}

struct error *threads_list_make(struct threads *t)
{
    struct ends ends = {0};
    struct map of_process = {.limits = t->options.limits}, ended = {.limits = t->options.limits};

    bool good = limits_work(t->options.limits, 200 * (uint64_t)t->newest.count) && take_states(t) && ends_init(&ends, t) &&
                add_threads(t, &ends, &of_process, &ended) && order(t);
    t->list.ended = (uint32_t)ended.count;
    map_deinit(&ended);
    ends_deinit(&ends);
    map_deinit(&of_process);
    return good ? threads_list_tasks(t) : error_no_memory();
}
