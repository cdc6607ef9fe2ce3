/* SPDX-License-Identifier: Apache-2.0 */
/* pycap follows a thread to its CPU and reads its stack there; the thread's schedstat proves that it did not run. */
#include "capture/proc/proc_sampler.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/host/target_memory.h"
#include "capture/proc/followed.h"
#include "capture/proc/python_reader.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_descent.h"
#include "formats/base/clock.h"

/* How often to follow a thread that moves from CPU to CPU. */
#define CHASES 4
/* How many readings must agree when the thread may have run meanwhile, and how often to try. */
#define READINGS 3
#define READING_TRIES 2
/* CPU time after a thread's last sample, up to this much, counts as no loss: the thread ended before the next round. */
#define GRACE_NS (20 * NS_PER_MS)
#define LIBC_WAIT_NS (100 * NS_PER_MS)
#define STATES_MAX 65536
/* The shortest scheduler slice. With it, waking up preempts the running thread at once (Linux 6.12 and later). */
#define SLICE_NS 100000

struct message {
    struct wire_sample sample;
    struct wire_python entries[WIRE_PYTHON_MAX];
};

struct proc_sampler {
    struct processes *processes;
    struct followed_set *followed;
    uint64_t period_ns;
    uint64_t lost_period_ns; /* the period at the start, in which losses are counted */
    uint64_t round;
    cpu_set_t allowed; /* CPUs that pycap may run on */
    int cpu;           /* the CPU that pycap is bound to; -1: none yet */
    uint64_t random;
    struct python_reader reader;
    struct message out, reading;
    uint64_t losses[LOSS_LIMIT];
    struct proc_sampler_counts counts;
    sampler_fn fn;
    void *ctx;
};

struct error *proc_sampler_create(struct processes *processes, uint64_t frequency_hz, bool children,
                                  struct proc_sampler **out)
{
    struct proc_sampler *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    s->processes = processes;
    s->period_ns = s->lost_period_ns = NS_PER_S / frequency_hz;
    s->cpu = -1;
    s->random = now_ns() | 1;
    python_reader_init(&s->reader);
    if (sched_getaffinity(0, sizeof s->allowed, &s->allowed))
        CPU_ZERO(&s->allowed);
    uint64_t grace_ns = 2 * s->period_ns > GRACE_NS ? 2 * s->period_ns : GRACE_NS;
    struct error *err = followed_create(processes, children, grace_ns, &s->followed);
    if (err) {
        free(s);
        return err;
    }
    *out = s;
    return NULL;
}

void proc_sampler_destroy(struct proc_sampler *s)
{
    if (!s)
        return;
    if (s->cpu >= 0)
        sched_setaffinity(0, sizeof s->allowed, &s->allowed);
    followed_destroy(s->followed);
    free(s);
}

struct error *proc_sampler_follow(struct proc_sampler *s, const uint32_t *pids, uint32_t count)
{
    struct procfs_pids below = {0};
    struct error *err = NULL;

    for (uint32_t i = 0; i < count; i++)
        TRY(followed_add(s->followed, pids[i], false, now_ns()));
    if (s->followed->children)
        TRY(procfs_descendants(pids, count, &below));
    for (size_t i = 0; !err && i < below.list.count; i++)
        err = followed_add(s->followed, (uint32_t)below.list.data[i], false, now_ns());
    VEC_DEINIT(&below.list);
    return err;
}

struct error *proc_sampler_check(const struct processes *processes, uint32_t tgid)
{
    struct process *p = processes_find((struct processes *)processes, tgid);
    struct wire_process wire = {0};
    uint64_t word;
    char text[16] = "";

    if (p && p->forbidden)
        p = NULL;
    if (kill((pid_t)tgid, 0) && errno == ESRCH)
        return error_create(ERROR_NOT_FOUND, "there is no process %u", tgid);
    if (p && !process_python(p, &wire))
        return NULL; /* which is another trouble */
    if (p && target_read((pid_t)tgid, wire.runtime, &word, sizeof word))
        return NULL;
    if (p && errno != EPERM && errno != EACCES)
        return error_os(errno, "the memory of process %u cannot be read", tgid);
    char *scope;
    struct error *err = procfs_read("/proc/sys/kernel/yama/ptrace_scope", &scope, NULL);
    error_destroy(err);
    if (!err) {
        strncpy(text, scope, sizeof text - 1);
        text[strcspn(text, "\n")] = 0;
        free(scope);
    }
    if (p && text[0] && strcmp(text, "0"))
        return error_create(ERROR_PERMISSION,
                            "the memory of process %u may not be read: kernel.yama.ptrace_scope is %s, which allows a "
                            "process %s. Start the program with 'pycap record -- COMMAND', or use root, or set it to 0",
                            tgid, text, !strcmp(text, "1") ? "only to read those it started" : "none without CAP_SYS_PTRACE");
    return error_create(ERROR_PERMISSION,
                        "the memory of process %u may not be read: it belongs to another user or has more privileges. Be "
                        "its user, or root; in a container, add the capability SYS_PTRACE",
                        tgid);
}

/* ---- thread states ---- */

/* The thread that a thread state belongs to, as its process counts; 0: cannot be told. */
static uint32_t tid_of_state(struct proc_sampler *s, const struct process *p, uint64_t state)
{
    struct py_walk *w = &s->reader.walk;
    uint64_t id = 0;

    if (w->config.layout.tstate_native_thread_id != PY_NONE)
        return walk_read_u64(w, state + w->config.layout.tstate_native_thread_id, &id) ? 0 : (uint32_t)id;
    /* Older ones have pthread_self(), which is the address of the thread's descriptor. */
    if (!p->glibc || walk_read_u64(w, state + w->config.layout.tstate_thread_id, &id) || !id ||
        walk_read_u64(w, id + ARCH_GLIBC_TID, &id))
        return 0;
    return (uint32_t)id;
}

/*
 * Reads the lists of interpreters and thread states. The process may change them meanwhile: each is checked when used.
 */
static struct error *read_states(struct proc_sampler *s, struct followed *f, const struct process *p)
{
    struct py_walk *w = &s->reader.walk;

    f->states.count = 0;
    f->states_round = s->round;
    w->config.thread_pointer = UINT64_MAX; /* nobody's: the walk goes to the end */
    if (walk_list_begin(w, STATES_MAX))
        return NULL;
    for (bool end = false; !end;) {
        struct followed_state state = {.address = w->search.tstate};
        end = walk_list_step(w);
        if (state.address)
            state.ns_tid = tid_of_state(s, p, state.address);
        if (state.ns_tid && !VEC_PUSH(&f->states, state))
            return error_no_memory();
    }
    return NULL;
}

/* ---- one stack ---- */

/*
 * The thread's frames. A thread may have several states (interpreters in one thread): it runs in the one that has
 * frames. None at all: it runs no Python, python_end 0.
 */
static struct error *walk_thread(struct proc_sampler *s, struct followed *f, const struct process *p,
                                 const struct followed_task *t, struct message *m)
{
    for (;;) {
        m->sample.python_count = 0;
        m->sample.python_end = 0;
        m->sample.thread_handle = 0;
        for (size_t i = 0; i < f->states.count && !m->sample.python_count; i++) {
            const struct followed_state *state = &f->states.data[i];
            if (state->ns_tid != t->ns_tid || tid_of_state(s, p, state->address) != t->ns_tid)
                continue;
            python_reader_walk(&s->reader, state->address, &m->sample, m->entries);
        }
        /* It may have got a new state since the lists were read. */
        if (m->sample.python_count || f->states_round == s->round)
            break;
        TRY(read_states(s, f, p));
    }
    if (!m->sample.python_count && s->reader.walk.config.layout.tstate_native_thread_id == PY_NONE && !p->glibc)
        m->sample.python_end = LOSS_no_thread_state;
    return NULL;
}

/* Whether we are bound to a CPU; somebody else may have moved us. */
static bool is_at(struct proc_sampler *s, uint32_t cpu)
{
    if (s->cpu >= 0 && sched_getcpu() != s->cpu)
        s->cpu = -1;
    return s->cpu >= 0 && (uint32_t)s->cpu == cpu;
}

/* Goes to a CPU; false when we may not. */
static bool go_to(struct proc_sampler *s, uint32_t cpu)
{
    cpu_set_t one;

    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &s->allowed))
        return false;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return false;
    s->cpu = (int)cpu;
    return true;
}

static bool same_entry(const struct wire_python *a, const struct wire_python *b, bool innermost)
{
    return a->address == b->address && a->fingerprint == b->fingerprint && (innermost || a->offset == b->offset);
}

/* How many of the outermost entries two stacks have in common; both reached the root. */
static uint32_t common_entries(const struct message *a, const struct message *b)
{
    uint32_t most = a->sample.python_count < b->sample.python_count ? a->sample.python_count : b->sample.python_count, n = 0;

    while (n < most && same_entry(&a->entries[a->sample.python_count - 1 - n], &b->entries[b->sample.python_count - 1 - n], false))
        n++;
    return n;
}

static bool same_stack(const struct message *a, const struct message *b)
{
    if (a->sample.python_count != b->sample.python_count || a->sample.python_end != b->sample.python_end)
        return false;
    for (uint32_t i = 0; i < a->sample.python_count; i++) {
        if (!same_entry(&a->entries[i], &b->entries[i], i == 0))
            return false;
    }
    return true;
}

/* Reads a stack that may change: what is in s->out is what all readings agree on. */
static struct error *read_running(struct proc_sampler *s, struct followed *f, const struct process *p,
                                  const struct followed_task *t)
{
    struct message *m = &s->out, *other = &s->reading;

    for (int attempt = 0; attempt < READING_TRIES; attempt++) {
        TRY(walk_thread(s, f, p, t, m));
        bool same = true, rooted = m->sample.python_end == LOSS_complete;
        uint32_t common = m->sample.python_count;
        for (int i = 1; i < READINGS; i++) {
            TRY(walk_thread(s, f, p, t, other));
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

enum outcome { SAMPLED, WAITING, GONE, CHANGED };

/* Reads the thread's stack into s->out, exact when the thread can be kept from running. */
static struct error *read_stack(struct proc_sampler *s, struct followed *f, const struct process *p,
                                const struct followed_task *t, uint64_t *run_ns, enum outcome *outcome)
{
    struct task_schedstat before, after;
    struct procfs_stat stat;

    for (int i = 0;; i++) {
        *outcome = GONE;
        if (!followed_schedstat(f, t, &before) || !followed_stat(f, t->tid, &stat))
            return NULL;
        *run_ns = before.run_ns;
        *outcome = stat.image != f->image ? CHANGED : stat.state != 'R' ? WAITING : SAMPLED;
        if (*outcome != SAMPLED)
            return NULL;
        s->out.sample.cpu = stat.cpu;
        s->out.sample.time_ns = now_ns();
        if (i == CHASES)
            break;
        if (!is_at(s, stat.cpu)) {
            if (!go_to(s, stat.cpu))
                break;
            continue;
        }
        /* It stands on our CPU, so it does not run. Did it stay so? */
        TRY(walk_thread(s, f, p, t, &s->out));
        if (!followed_schedstat(f, t, &after)) {
            *outcome = GONE;
            return NULL;
        }
        if (after.arrivals == before.arrivals && after.arrivals && is_at(s, stat.cpu)) {
            s->counts.still++;
            return NULL;
        }
    }
    TRY(read_running(s, f, p, t));
    if (!followed_schedstat(f, t, &after))
        *outcome = GONE;
    return NULL;
}

/* ---- rounds ---- */

static struct error *sample_thread(struct proc_sampler *s, struct followed *f, const struct process *p,
                                   struct followed_task *t, enum outcome *outcome)
{
    struct wire_sample *out = &s->out.sample;
    uint64_t run_ns, start_ns = now_ns();

    s->reader.read_errno = 0;
    TRY(read_stack(s, f, p, t, &run_ns, outcome));
    if (*outcome != SAMPLED)
        return NULL;
    if (s->reader.read_errno == EPERM) {
        followed_forbid(s->followed, f);
        return NULL;
    }
    out->type = WIRE_SAMPLE;
    out->tgid = f->tgid;
    out->tid = t->tid;
    out->start_boottime_ns = f->start_boottime_ns;
    out->exec_generation = f->exec_generation;
    out->period = run_ns - t->run_ns;
    out->native_last_cfa = WIRE_CFA_NONE;
    if (out->python_end > LOSS_complete)
        s->losses[out->python_end]++;
    f->sampled_ns += out->period;
    t->run_ns = run_ns;
    s->counts.samples++;
    s->counts.read_ns += now_ns() - start_ns;
    return s->fn(s->ctx, &s->out, (uint32_t)(sizeof *out + out->python_count * sizeof *s->out.entries));
}

/* Its CPU time is none of a Python program's: samples need not stand for it. */
static void write_off(struct followed *f)
{
    struct task_schedstat now;

    f->base_ns = f->clock_ns > f->sampled_ns ? f->clock_ns - f->sampled_ns : 0;
    for (size_t i = 0; i < f->tasks.count; i++) {
        if (followed_schedstat(f, &f->tasks.data[i], &now))
            f->tasks.data[i].run_ns = now.run_ns;
    }
}

/*
 * Whether it has all that reading its stacks takes. Just after the exec the C library is not there yet, which tells
 * older interpreters' threads apart; if it is another one, that is not waited for.
 */
static bool is_ready(const struct followed *f, const struct process *p, struct wire_process *wire)
{
    return !f->forbidden && p && process_python(p, wire) &&
           (p->glibc || p->python->python.layout.tstate_native_thread_id != PY_NONE || f->wait_ns > LIBC_WAIT_NS);
}

static struct error *sample_process(struct proc_sampler *s, struct followed *f, uint64_t time_ns)
{
    struct process *p = processes_find(s->processes, f->tgid);
    struct wire_process wire = {0};
    struct task_schedstat now;
    struct procfs_stat stat;
    struct timespec cpu;

    if (clock_gettime(f->clock, &cpu)) {
        f->ended = true;
        return NULL;
    }
    uint64_t clock_ns = timespec_ns(cpu);
    if (clock_ns == f->clock_ns)
        return NULL; /* none of its threads has run */
    f->clock_ns = clock_ns;
    if (!is_ready(f, p, &wire)) {
        bool changed = followed_stat(f, f->tgid, &stat) && stat.image != f->image;
        if (changed || (time_ns >= f->look_ns && !f->forbidden))
            TRY(followed_reread(s->followed, f, time_ns));
        p = processes_find(s->processes, f->tgid);
        if (!is_ready(f, p, &wire)) {
            write_off(f);
            return NULL;
        }
    }
    s->reader.pid = (pid_t)f->tgid;
    s->reader.walk.config.layout = p->python->python.layout;
    s->reader.walk.config.process = wire;
    for (size_t i = 0; i < f->tasks.count && !f->forbidden; i++) {
        struct followed_task *t = &f->tasks.data[i];
        enum outcome outcome;
        if (!followed_schedstat(f, t, &now) || now.run_ns <= t->run_ns)
            continue;
        TRY(sample_thread(s, f, p, t, &outcome));
        /* The image has gone, and `p` with it: the new one's turn is next. */
        if (outcome == CHANGED)
            return followed_reread(s->followed, f, time_ns);
    }
    return NULL;
}

struct sched_attributes { /* sched_setattr(2); the C library has no name for it yet */
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

static void shorten_slice(void)
{
    struct sched_attributes a = {.size = sizeof a};

    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) || a.policy != SCHED_OTHER)
        return;
    a.size = sizeof a;
    a.runtime_ns = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &a, 0); /* where it is not known, waking up takes a little longer */
}

struct error *proc_sampler_round(struct proc_sampler *s, sampler_fn fn, void *ctx)
{
    uint64_t time_ns = now_ns();

    if (!s->round)
        shorten_slice();
    s->round++;
    s->fn = fn;
    s->ctx = ctx;
    TRY(followed_look(s->followed, time_ns));
    for (size_t i = 0; i < s->followed->list.count; i++)
        TRY(sample_process(s, s->followed->list.data[i], time_ns));
    return NULL;
}

void proc_sampler_set_rate(struct proc_sampler *s, uint64_t frequency_hz)
{
    s->period_ns = NS_PER_S / frequency_hz;
}

uint64_t proc_sampler_wait_ns(struct proc_sampler *s)
{
    /* xorshift64: numbers without a pattern, no more is asked of them */
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->period_ns * 4 / 5 + s->random % (s->period_ns * 2 / 5 + 1);
}

const struct event_source *proc_sampler_event(void)
{
    return event_source("task-clock");
}

void proc_sampler_losses(const struct proc_sampler *s, uint64_t losses[LOSS_LIMIT])
{
    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        losses[i] += s->losses[i];
    losses[LOSS_process_forbidden] += s->followed->forbidden;
    losses[LOSS_time_unseen] += followed_unseen_ns(s->followed) / s->lost_period_ns;
}

struct proc_sampler_counts proc_sampler_counts(const struct proc_sampler *s)
{
    return s->counts;
}
