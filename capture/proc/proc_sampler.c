/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the processes round after round; a thread that has not run since is not read again. */
#include "capture/proc/proc_sampler.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/host/restraints.h"
#include "capture/host/target_memory.h"
#include "capture/proc/followed.h"
#include "capture/proc/thread_reader.h"
#include "capture/proc/task_wait.h"
#include "capture/proc/python_reader.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_descent.h"
#include "formats/base/clock.h"

/* CPU time that was not seen is no loss up to this much, or two periods, of all processes together: what came after the last samples. */
#define GRACE_NS (20 * NS_PER_MS)
#define LIBC_WAIT_NS (100 * NS_PER_MS)
/* The shortest scheduler slice. With it, waking up preempts the running thread at once (Linux 6.12 and later). */
#define SLICE_NS 100000

struct proc_sampler {
    struct proc_sampler_options o;
    struct processes *processes;
    struct followed_set *followed;
    uint64_t period_ns;
    uint64_t lost_period_ns; /* the period at the start, in which losses are counted */
    uint64_t looked_ns; /* when it began */
    uint64_t random;
    struct thread_reader reader;
    uint64_t losses[LOSS_LIMIT];
    struct proc_sampler_counts counts;
    sampler_fn fn;
    void *ctx;
};

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

static struct error *belongs_to_another(uint32_t tgid)
{
    char module[RESTRAINTS_TEXT_MAX];

    restraints_module(module);
    return error_create(ERROR_PERMISSION,
                        "the memory of process %u may not be read: it belongs to another user or has more privileges%s%.200s%s. Be "
                        "its user, or root; in a container, add the capability SYS_PTRACE",
                        tgid, *module ? ", or " : "", module, *module ? " forbids it" : "");
}

struct error *proc_sampler_refused(uint32_t tgid)
{
    static const char *const rules[] = {
        [1] = "a process may read only those it started. Start the program with 'pycap record -- COMMAND', or use root, or set it to 0",
        [2] = "only who has CAP_SYS_PTRACE may read other processes. Use root, or set it to 1, for 'pycap record -- COMMAND', or to 0",
        [3] = "nobody may read other processes, root neither, until the host starts anew. Root can record with BPF",
    };
    int scope = restraints_ptrace_scope();

    if (scope < 1 || scope > 3)
        return belongs_to_another(tgid);
    return error_create(ERROR_PERMISSION, "the memory of process %u may not be read: kernel.yama.ptrace_scope is %d, so %s", tgid, scope,
                        rules[scope]);
}

struct error *proc_sampler_check(const struct processes *processes, uint32_t tgid)
{
    struct process *p = processes_find((struct processes *)processes, tgid);
    struct wire_process wire = {0};
    uint64_t word;

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
    return p ? proc_sampler_refused(tgid) : belongs_to_another(tgid);
}

/* ---- samples ---- */

static bool takes_waits(const struct proc_sampler *s)
{
    return s->o.wait_event != EVENT_NONE;
}

/* Sends the stack that is in s->reader.out as a sample of an event, for `period` of its unit. */
static struct error *put_sample(struct proc_sampler *s, const struct followed *f, const struct followed_task *t, uint32_t event,
                                uint64_t period)
{
    struct wire_sample *out = &s->reader.out.sample;

    out->type = WIRE_SAMPLE;
    out->tgid = f->tgid;
    out->tid = t->tid;
    out->event = event;
    out->start_boottime_ns = f->start_boottime_ns;
    out->exec_generation = f->exec_generation;
    out->period = period;
    out->native_last_cfa = WIRE_CFA_NONE;
    out->flags |= s->reader.out.of_rival ? WIRE_RIVAL : 0;
    return s->fn(s->ctx, &s->reader.out, (uint32_t)(sizeof *out + out->python_count * sizeof *s->reader.out.entries));
}

/* The thread's time in run queues since this was last sampled. It is where it is now, or it has come from there. */
static struct error *put_queue(struct proc_sampler *s, const struct followed *f, struct followed_task *t, uint32_t flags)
{
    uint64_t queued_ns = t->time.queue_owed_ns;

    if (!queued_ns)
        return NULL;
    t->time.queue_owed_ns = 0;
    s->reader.out.sample.flags = flags;
    s->reader.out.sample.wait_kind = WIRE_WAIT_RUN_QUEUE;
    return put_sample(s, f, t, s->o.wait_event, queued_ns);
}

/* A thread that runs, or wants to. */
static struct error *sample_running(struct proc_sampler *s, struct followed *f, struct followed_task *t, uint64_t run_ns)
{
    struct wire_sample *out = &s->reader.out.sample;

    out->flags = 0;
    out->wait_kind = WIRE_WAIT_NONE;
    out->system_call = WIRE_NO_SYSTEM_CALL;
    if (out->python_end > LOSS_complete)
        s->losses[out->python_end]++;
    f->sampled_ns += run_ns - t->run_ns;
    uint64_t period = run_ns - t->run_ns;
    t->run_ns = run_ns;
    s->counts.samples++;
    if (s->o.clock_event != EVENT_NONE)
        TRY(put_sample(s, f, t, s->o.clock_event, period));
    return takes_waits(s) ? put_queue(s, f, t, 0) : NULL;
}

static struct error *sample_thread(struct proc_sampler *s, struct followed *f, const struct process *p,
                                   struct followed_task *t, enum thread_outcome *outcome)
{
    uint64_t run_ns, start_ns = now_ns();

    s->reader.python.read_errno = 0;
    TRY(thread_reader_stack(&s->reader, f, p, t, &run_ns, outcome));
    if (*outcome != THREAD_READ)
        return NULL;
    if (s->reader.python.read_errno == EPERM) {
        followed_forbid(s->followed, f);
        return NULL;
    }
    s->counts.read_ns += now_ns() - start_ns;
    f->lacks_frames |= !s->reader.out.sample.python_count;
    return sample_running(s, f, t, run_ns);
}

/* ---- waits ---- */

/* What the thread waits for, and its stack into s->reader.out. False: it has run meanwhile, or is about to. */
static struct error *read_wait(struct proc_sampler *s, struct followed *f, const struct process *p, struct followed_task *t,
                               bool *asleep)
{
    struct wire_sample *out = &s->reader.out.sample;
    struct task_schedstat before, after;
    struct procfs_stat stat;
    char text[256];

    *asleep = false;
    if (!followed_schedstat(f, t, &before) || !followed_stat(f, t->tid, &stat))
        return NULL;
    task_time_look(&t->time, &before, now_ns());
    struct task_wait wait = task_wait_of(stat.state, followed_system_call(f, t->tid, text, sizeof text) ? text : NULL);
    if (!wait.kind)
        return NULL;
    TRY(thread_reader_walk(&s->reader, f, p, t, &s->reader.out));
    if (wait.kind == WIRE_WAIT_LOCK && task_wait_is_for_gil(&s->reader.python, wait.futex, out->interpreter))
        wait.kind = WIRE_WAIT_GIL;
    *asleep = followed_schedstat(f, t, &after) && !task_time_ran(&t->time, &after);
    out->wait_kind = wait.kind;
    out->system_call = wait.system_call;
    out->cpu = stat.cpu;
    return NULL;
}

/* A thread that was not known to wait: its sample has the sleep since the last one, and is the first part of what may last. */
static struct error *sample_wait(struct proc_sampler *s, struct followed *f, const struct process *p, struct followed_task *t)
{
    struct wire_sample *out = &s->reader.out.sample;
    uint64_t start_ns = now_ns();
    bool asleep;

    s->reader.python.read_errno = 0;
    TRY(read_wait(s, f, p, t, &asleep));
    if (s->reader.python.read_errno == EPERM)
        followed_forbid(s->followed, f);
    if (!asleep || f->forbidden)
        return NULL;
    s->counts.samples++;
    s->counts.still++;
    s->counts.read_ns += now_ns() - start_ns;
    if (out->python_end > LOSS_complete)
        s->losses[out->python_end]++;
    uint64_t asleep_ns = t->time.asleep_owed_ns;
    t->time.asleep_owed_ns = 0;
    t->time.wait_ns = out->time_ns = t->time.until_ns - asleep_ns;
    out->flags = WIRE_WAITS;
    TRY(put_sample(s, f, t, s->o.wait_event, asleep_ns));
    out->time_ns = t->time.until_ns;
    return put_queue(s, f, t, WIRE_CONTINUES);
}

/* The thread has run since it was last seen asleep, and that is how long its wait is known to have lasted. */
static struct error *end_wait(struct proc_sampler *s, const struct followed *f, struct followed_task *t)
{
    const struct wire_wait wait = {.type = WIRE_WAIT, .tgid = f->tgid, .tid = t->tid, .out_ns = t->time.wait_ns,
                                   .in_ns = t->time.until_ns};

    if (!t->time.wait_ns)
        return NULL;
    t->time.wait_ns = 0;
    return s->fn(s->ctx, &wait, sizeof wait);
}

/* What /proc can tell of a thread's time. */
static struct wire_thread account_of(const struct followed *f, const struct followed_task *t)
{
    struct wire_thread thread = {.type = WIRE_THREAD, .runs = 1, .tgid = f->tgid, .tid = t->tid,
                                 .start_boottime_ns = f->start_boottime_ns, .exec_generation = f->exec_generation,
                                 .since_ns = t->time.since_ns, .switched_ns = t->time.until_ns, .on_cpu_ns = t->time.run_ns};

    thread.waits[WIRE_WAIT_RUN_QUEUE] = (struct wire_wait_sum){t->time.queued_ns, t->time.arrivals};
    thread.waits[WIRE_WAIT_ASLEEP].ns = t->time.asleep_ns;
    return thread;
}

/* Closes the account of a thread that has ended, or executes another program. */
static struct error *end_account(void *sampler, const struct followed *f, struct followed_task *t)
{
    struct proc_sampler *s = sampler;

    if (!t->time.since_ns)
        return NULL;
    TRY(end_wait(s, f, t));
    struct wire_thread thread = account_of(f, t);
    t->time = (struct task_time){0};
    return s->fn(s->ctx, &thread, sizeof thread);
}

static struct error *end_accounts(struct proc_sampler *s, struct followed *f)
{
    for (size_t i = 0; i < f->tasks.count; i++)
        TRY(end_account(s, f, &f->tasks.data[i]));
    return NULL;
}

struct error *proc_sampler_threads(struct proc_sampler *s, struct error *(*fn)(void *ctx, const struct wire_thread *thread),
                                   void *ctx)
{
    for (size_t i = 0; i < s->followed->list.count; i++) {
        const struct followed *f = s->followed->list.data[i];
        for (size_t k = 0; k < f->tasks.count; k++) {
            struct wire_thread thread = account_of(f, &f->tasks.data[k]);
            if (thread.since_ns)
                TRY(fn(ctx, &thread));
        }
    }
    return NULL;
}

/* ---- rounds ---- */

/* Its CPU time is none of a Python program's: samples need not stand for it. */
static struct error *write_off(struct proc_sampler *s, struct followed *f)
{
    followed_write_off(f);
    return end_accounts(s, f);
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

/* Gets the reader ready for a process. False: it is no Python, or not yet. */
static struct error *begin_process(struct proc_sampler *s, struct followed *f, uint64_t time_ns, struct process **p)
{
    struct wire_process wire = {0};
    struct procfs_stat stat;

    if (f->lacks_frames && time_ns >= f->look_ns && !f->forbidden) {
        f->lacks_frames = false;
        TRY(followed_reread(s->followed, f, time_ns));
    }
    *p = processes_find(s->processes, f->tgid);
    if (!is_ready(f, *p, &wire)) {
        bool changed = followed_stat(f, f->tgid, &stat) && stat.image && stat.image != f->image;
        if (changed)
            TRY(end_accounts(s, f));
        if (changed || (time_ns >= f->look_ns && !f->forbidden))
            TRY(followed_reread(s->followed, f, time_ns));
        *p = processes_find(s->processes, f->tgid);
        if (!is_ready(f, *p, &wire)) {
            *p = NULL;
            return write_off(s, f);
        }
    }
    s->reader.python.pid = (pid_t)f->tgid;
    s->reader.python.walk.config.layout = (*p)->python->python.layout;
    s->reader.python.walk.config.process = wire;
    return NULL;
}

static struct error *look_at_thread(struct proc_sampler *s, struct followed *f, const struct process *p, struct followed_task *t,
                                    uint64_t time_ns, enum thread_outcome *outcome)
{
    struct task_schedstat now;

    *outcome = THREAD_GONE;
    if (!followed_schedstat(f, t, &now))
        return end_account(s, f, t);
    if (now.run_ns < t->run_ns) /* another thread has executed a program, and has got this one's number */
        t->run_ns = now.run_ns;
    t->seen_ns = now.run_ns;
    *outcome = THREAD_ASLEEP;
    if (t->time.wait_ns && !task_time_ran(&t->time, &now)) {
        task_time_sleeps(&t->time, time_ns);
        return NULL;
    }
    bool has_run = now.run_ns > t->run_ns;
    if (takes_waits(s)) {
        TRY(end_wait(s, f, t));
        task_time_look(&t->time, &now, now_ns());
    }
    if (has_run && (s->o.clock_event != EVENT_NONE || t->time.queue_owed_ns))
        TRY(sample_thread(s, f, p, t, outcome));
    return *outcome == THREAD_ASLEEP && takes_waits(s) && !f->forbidden ? sample_wait(s, f, p, t) : NULL;
}

static struct error *sample_process(struct proc_sampler *s, struct followed *f, uint64_t time_ns)
{
    uint64_t before_ns = f->clock_ns;
    struct process *p;

    if (!followed_read_clock(f)) {
        f->ended = true;
        return end_accounts(s, f);
    }
    bool still = f->clock_ns == before_ns; /* none of its threads has run */
    if (still && !takes_waits(s))
        return NULL;
    TRY(begin_process(s, f, time_ns, &p));
    for (size_t i = 0; i < f->tasks.count && p && !f->forbidden; i++) {
        struct followed_task *t = &f->tasks.data[i];
        enum thread_outcome outcome = THREAD_ASLEEP;
        if (still && t->time.wait_ns)
            task_time_sleeps(&t->time, time_ns);
        else
            TRY(look_at_thread(s, f, p, t, time_ns, &outcome));
        /* The image has gone, and `p` with it: the new one's turn is next. */
        if (outcome == THREAD_CHANGED) {
            TRY(end_accounts(s, f));
            return followed_reread(s->followed, f, time_ns);
        }
    }
    return f->forbidden ? end_accounts(s, f) : NULL;
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

    if (!s->reader.round)
        shorten_slice();
    s->reader.round++;
    s->looked_ns = time_ns;
    s->fn = fn;
    s->ctx = ctx;
    TRY(followed_look(s->followed, time_ns));
    for (size_t i = 0; i < s->followed->list.count; i++)
        TRY(sample_process(s, s->followed->list.data[i], time_ns));
    return NULL;
}

struct error *proc_sampler_create(struct processes *processes, const struct proc_sampler_options *options,
                                  struct proc_sampler **out)
{
    struct proc_sampler *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    s->o = *options;
    s->processes = processes;
    s->period_ns = s->lost_period_ns = NS_PER_S / options->frequency_hz;
    s->random = now_ns() | 1;
    thread_reader_init(&s->reader);
    struct error *err = followed_create(processes, options->children, &s->followed);
    if (err) {
        free(s);
        return err;
    }
    if (takes_waits(s)) {
        s->followed->gone = end_account;
        s->followed->gone_ctx = s;
    }
    *out = s;
    return NULL;
}

void proc_sampler_destroy(struct proc_sampler *s)
{
    if (!s)
        return;
    thread_reader_deinit(&s->reader);
    followed_destroy(s->followed);
    free(s);
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

void proc_sampler_hurry(struct proc_sampler *s)
{
    followed_hurry(s->followed);
}

void proc_sampler_finish(struct proc_sampler *s)
{
    followed_finish(s->followed);
}

void proc_sampler_losses(const struct proc_sampler *s, uint64_t losses[LOSS_LIMIT])
{
    uint64_t unseen_ns = followed_unseen_ns(s->followed), children_ns = followed_waited_unseen_ns(s->followed);
    uint64_t grace_ns = 2 * s->lost_period_ns > GRACE_NS ? 2 * s->lost_period_ns : GRACE_NS;

    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        losses[i] += s->losses[i];
    losses[LOSS_process_forbidden] += s->followed->forbidden;
    if (s->o.clock_event != EVENT_NONE && unseen_ns > grace_ns)
        losses[LOSS_time_unseen] += unseen_ns / s->lost_period_ns;
    if (s->o.clock_event != EVENT_NONE && children_ns > grace_ns)
        losses[LOSS_children_unseen] += children_ns / s->lost_period_ns;
}

uint64_t proc_sampler_looked_ns(const struct proc_sampler *s)
{
    return s->looked_ns;
}

struct proc_sampler_counts proc_sampler_counts(const struct proc_sampler *s)
{
    struct proc_sampler_counts counts = s->counts;

    counts.still += s->reader.still;
    return counts;
}
