/* SPDX-License-Identifier: Apache-2.0 */
/* pycap follows a thread to its CPU and reads its stack there; the thread's schedstat proves that it did not run. */
#include "capture/proc/thread_reader.h"

#include <sched.h>
#include <string.h>

#include "formats/base/clock.h"

/* How often to follow a thread that moves from CPU to CPU. */
#define CHASES 4
/* How many readings must agree when the thread may have run meanwhile, and how often to try. */
#define READINGS 3
#define READING_TRIES 2
#define STATES_MAX 65536

void thread_reader_init(struct thread_reader *r)
{
    python_reader_init(&r->python);
    r->cpu = -1;
    if (sched_getaffinity(0, sizeof r->allowed, &r->allowed))
        CPU_ZERO(&r->allowed);
}

void thread_reader_deinit(struct thread_reader *r)
{
    if (r->cpu >= 0)
        sched_setaffinity(0, sizeof r->allowed, &r->allowed);
}

/* ---- thread states ---- */

/* The thread that a thread state belongs to, as its process counts; 0: cannot be told. */
static uint32_t tid_of_state(struct thread_reader *r, const struct process *p, uint64_t state)
{
    struct py_walk *w = &r->python.walk;
    uint64_t id = 0;

    if (w->config.layout.tstate_native_thread_id != PY_NONE)
        return walk_read_u64(w, state + w->config.layout.tstate_native_thread_id, &id) ? 0 : (uint32_t)id;
    /* Older ones have pthread_self(), which is the address of the thread's descriptor. */
    if (!p->glibc || walk_read_u64(w, state + w->config.layout.tstate_thread_id, &id) || !id ||
        walk_read_u64(w, id + ARCH_GLIBC_TID, &id))
        return 0;
    return (uint32_t)id;
}

/* Whether a state may run in another thread than the one that it names: see walk_runs_here(). */
static bool may_run_elsewhere(const struct py_walk *w)
{
    return walk_has_records(w) || (w->config.process.tls_kind == PY_TLS_NONE && w->config.layout.runtime_tstate_current != PY_NONE);
}

/*
 * Reads the lists of interpreters and thread states. The process may change them meanwhile: each is checked when used.
 */
static struct error *read_states(struct thread_reader *r, struct followed *f, const struct process *p)
{
    struct py_walk *w = &r->python.walk;
    uint64_t interpreter = 0;

    f->subinterpreters = false;
    f->states.count = 0;
    f->states_round = r->round;
    w->config.thread_pointer = UINT64_MAX; /* nobody's: the walk goes to the end */
    w->search.subinterpreters = 0;
    if (walk_list_begin(w, STATES_MAX))
        return NULL;
    f->newest_interpreter = w->search.interpreter;
    f->several_interpreters = false;
    for (bool end = false; !end;) {
        struct followed_state state = {.address = w->search.tstate};
        end = walk_list_step(w);
        f->several_interpreters |= w->search.interpreter && w->search.interpreter != f->newest_interpreter;
        if (state.address && w->tstate.address == state.address) { /* the step has read it */
            state.ns_tid = tid_of_state(r, p, state.address);
            state.handle = w->tstate.handle;
            f->subinterpreters |= interpreter && w->tstate.interpreter != interpreter && may_run_elsewhere(w);
            interpreter = w->tstate.interpreter;
        }
        if (state.ns_tid && !VEC_PUSH(&f->states, state))
            return error_no_memory();
    }
    return NULL;
}

/*
 * Whether a thread whose state is in the lists may have another one by now, in which it runs: that of another interpreter. The
 * first one then has the frames that led there, and looks sound.
 */
static bool may_have_moved(struct thread_reader *r, const struct followed *f)
{
    struct py_walk *w = &r->python.walk;

    return f->states_round != r->round &&
           (f->several_interpreters || (!walk_list_head(w) && w->search.interpreter != f->newest_interpreter));
}

/* ---- one stack ---- */

/*
 * A stack pointer that the thread's is not below: stacks of other threads end where their descriptors lie, whose addresses are the
 * handles. 0: not known.
 */
static uint64_t least_stack_pointer(const struct followed *f, const struct followed_task *t, uint64_t handle)
{
    struct procfs_stat stat;
    uint64_t least = handle - WALK_NATIVE_STACK_BYTES;

    if (t->tid == f->tgid)
        return followed_stat(f, t->tid, &stat) && stat.stack_start ? stat.stack_start - WALK_NATIVE_STACK_BYTES : 0;
    for (size_t i = 0; i < f->states.count; i++) {
        uint64_t other = f->states.data[i].handle;
        if (other < handle && other > least)
            least = other;
    }
    return least;
}

/* Walks the frames of a thread of a process with several interpreters, of which each state may run in any thread. */
static void walk_found(struct thread_reader *r, const struct followed *f, const struct followed_task *t, struct thread_message *m)
{
    struct py_walk *w = &r->python.walk;
    uint64_t handle = 0;

    for (size_t i = 0; i < f->states.count && !handle; i++) {
        if (f->states.data[i].ns_tid == t->ns_tid)
            handle = f->states.data[i].handle;
    }
    if (!handle)
        return;
    w->config.thread_pointer = handle;
    w->config.stack_pointer = least_stack_pointer(f, t, handle);
    w->config.one_thread = f->tasks.count == 1;
    python_reader_find(&r->python);
    w->config.stack_pointer = 0;
    if (w->result.tstate)
        python_reader_walk(&r->python, w->result.tstate, &m->sample, m->entries);
    else if (w->result.ambiguous)
        m->sample.python_end = LOSS_interpreter_unsure;
}

/* In the interpreter that the reader is set up for. */
static struct error *walk(struct thread_reader *r, struct followed *f, const struct process *p, const struct followed_task *t,
                          struct thread_message *m)
{
    if (may_have_moved(r, f))
        TRY(read_states(r, f, p));
    for (;;) {
        m->sample.python_count = 0;
        m->sample.python_end = 0;
        m->sample.thread_handle = 0;
        if (f->subinterpreters)
            walk_found(r, f, t, m);
        for (size_t i = 0; i < f->states.count && !f->subinterpreters && !m->sample.python_count; i++) {
            const struct followed_state *state = &f->states.data[i];
            if (state->ns_tid != t->ns_tid || tid_of_state(r, p, state->address) != t->ns_tid)
                continue;
            python_reader_walk(&r->python, state->address, &m->sample, m->entries);
        }
        /* It may have got a new state since the lists were read. */
        if (m->sample.python_count || m->sample.python_end || f->states_round == r->round)
            break;
        TRY(read_states(r, f, p));
    }
    if (!m->sample.python_count && r->python.walk.config.layout.tstate_native_thread_id == PY_NONE && !p->glibc)
        m->sample.python_end = LOSS_no_thread_state;
    return NULL;
}

struct error *thread_reader_walk(struct thread_reader *r, struct followed *f, const struct process *p,
                                 const struct followed_task *t, struct thread_message *m)
{
    struct walk_config *config = &r->python.walk.config, first;
    struct wire_process rival = {0};

    m->of_rival = false;
    TRY(walk(r, f, p, t, m));
    if (m->sample.python_count || !process_rival(p, &rival))
        return NULL;
    first = *config;
    config->layout = p->rival->python.layout;
    config->process = rival;
    f->states_round = 0; /* the states are of one interpreter */
    struct error *err = walk(r, f, p, t, m);
    f->states_round = 0;
    *config = first;
    m->of_rival = m->sample.python_count;
    return err;
}

/* Whether we are bound to a CPU; somebody else may have moved us. */
static bool is_at(struct thread_reader *r, uint32_t cpu)
{
    if (r->cpu >= 0 && sched_getcpu() != r->cpu)
        r->cpu = -1;
    return r->cpu >= 0 && (uint32_t)r->cpu == cpu;
}

/* Goes to a CPU; false when we may not. */
static bool go_to(struct thread_reader *r, uint32_t cpu)
{
    cpu_set_t one;

    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &r->allowed))
        return false;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return false;
    r->cpu = (int)cpu;
    return true;
}

static bool same_entry(const struct wire_python *a, const struct wire_python *b, bool innermost)
{
    return a->address == b->address && a->fingerprint == b->fingerprint && (innermost || a->offset == b->offset);
}

/* How many of the outermost entries two stacks have in common; both reached the root. */
static uint32_t common_entries(const struct thread_message *a, const struct thread_message *b)
{
    uint32_t most = a->sample.python_count < b->sample.python_count ? a->sample.python_count : b->sample.python_count, n = 0;

    while (n < most && same_entry(&a->entries[a->sample.python_count - 1 - n], &b->entries[b->sample.python_count - 1 - n], false))
        n++;
    return n;
}

static bool same_stack(const struct thread_message *a, const struct thread_message *b)
{
    if (a->sample.python_count != b->sample.python_count || a->sample.python_end != b->sample.python_end)
        return false;
    for (uint32_t i = 0; i < a->sample.python_count; i++) {
        if (!same_entry(&a->entries[i], &b->entries[i], i == 0))
            return false;
    }
    return true;
}

/* Reads a stack that may change: what is in r->out is what all readings agree on. */
static struct error *read_running(struct thread_reader *r, struct followed *f, const struct process *p,
                                  const struct followed_task *t)
{
    struct thread_message *m = &r->out, *other = &r->reading;

    for (int attempt = 0; attempt < READING_TRIES; attempt++) {
        TRY(thread_reader_walk(r, f, p, t, m));
        bool same = true, rooted = m->sample.python_end == LOSS_complete;
        uint32_t common = m->sample.python_count;
        for (int i = 1; i < READINGS; i++) {
            TRY(thread_reader_walk(r, f, p, t, other));
            same &= same_stack(m, other);
            if (!rooted || other->sample.python_end != LOSS_complete) {
                rooted = false;
                continue;
            }
            uint32_t n = common_entries(m, other);
            common = n < common ? n : common;
        }
        if (same && (rooted || !m->sample.python_count || m->sample.python_end == LOSS_python_too_deep))
            return NULL;
        if (attempt + 1 < READING_TRIES)
            continue;
        if (!rooted)
            common = 0;
        memmove(m->entries, m->entries + (m->sample.python_count - common), common * sizeof *m->entries);
        m->sample.python_count = common;
        m->sample.python_end = LOSS_python_changed;
    }
    return NULL;
}

struct error *thread_reader_stack(struct thread_reader *r, struct followed *f, const struct process *p,
                                  const struct followed_task *t, uint64_t *run_ns, enum thread_outcome *outcome)
{
    struct task_schedstat before, after;
    struct procfs_stat stat;

    for (int i = 0;; i++) {
        *outcome = THREAD_GONE;
        if (!followed_schedstat(f, t, &before) || !followed_stat(f, t->tid, &stat))
            return NULL;
        *run_ns = before.run_ns;
        *outcome = !stat.image ? THREAD_GONE : stat.image != f->image ? THREAD_CHANGED : stat.state != 'R' ? THREAD_ASLEEP : THREAD_READ;
        if (*outcome != THREAD_READ)
            return NULL;
        r->out.sample.cpu = stat.cpu;
        r->out.sample.time_ns = now_ns();
        if (i == CHASES)
            break;
        if (!is_at(r, stat.cpu)) {
            if (!go_to(r, stat.cpu))
                break;
            continue;
        }
        /* It stands on our CPU, so it does not run. Did it stay so? */
        TRY(thread_reader_walk(r, f, p, t, &r->out));
        if (!followed_schedstat(f, t, &after)) {
            *outcome = THREAD_GONE;
            return NULL;
        }
        if (after.arrivals == before.arrivals && after.arrivals && is_at(r, stat.cpu)) {
            r->still++;
            return NULL;
        }
    }
    TRY(read_running(r, f, p, t));
    if (!followed_schedstat(f, t, &after))
        *outcome = THREAD_GONE;
    return NULL;
}
