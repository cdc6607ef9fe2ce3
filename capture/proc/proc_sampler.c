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

#include "capture/host/target_memory.h"
#include "capture/proc/followed.h"
#include "capture/proc/thread_reader.h"
#include "capture/proc/python_reader.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_descent.h"
#include "formats/base/clock.h"

/* CPU time after a thread's last sample, up to this much, counts as no loss: the thread ended before the next round. */
#define GRACE_NS (20 * NS_PER_MS)
#define LIBC_WAIT_NS (100 * NS_PER_MS)
/* The shortest scheduler slice. With it, waking up preempts the running thread at once (Linux 6.12 and later). */
#define SLICE_NS 100000

struct proc_sampler {
    struct processes *processes;
    struct followed_set *followed;
    uint64_t period_ns;
    uint64_t lost_period_ns; /* the period at the start, in which losses are counted */
    uint64_t random;
    struct thread_reader reader;
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
    s->random = now_ns() | 1;
    thread_reader_init(&s->reader);
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
    thread_reader_deinit(&s->reader);
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

/* ---- rounds ---- */

static struct error *sample_thread(struct proc_sampler *s, struct followed *f, const struct process *p,
                                   struct followed_task *t, enum thread_outcome *outcome)
{
    struct wire_sample *out = &s->reader.out.sample;
    uint64_t run_ns, start_ns = now_ns();

    s->reader.python.read_errno = 0;
    TRY(thread_reader_stack(&s->reader, f, p, t, &run_ns, outcome));
    if (*outcome != THREAD_READ)
        return NULL;
    if (s->reader.python.read_errno == EPERM) {
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
    return s->fn(s->ctx, &s->reader.out, (uint32_t)(sizeof *out + out->python_count * sizeof *s->reader.out.entries));
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
    s->reader.python.pid = (pid_t)f->tgid;
    s->reader.python.walk.config.layout = p->python->python.layout;
    s->reader.python.walk.config.process = wire;
    for (size_t i = 0; i < f->tasks.count && !f->forbidden; i++) {
        struct followed_task *t = &f->tasks.data[i];
        enum thread_outcome outcome;
        if (!followed_schedstat(f, t, &now) || now.run_ns <= t->run_ns)
            continue;
        TRY(sample_thread(s, f, p, t, &outcome));
        /* The image has gone, and `p` with it: the new one's turn is next. */
        if (outcome == THREAD_CHANGED)
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

    if (!s->reader.round)
        shorten_slice();
    s->reader.round++;
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
    struct proc_sampler_counts counts = s->counts;

    counts.still += s->reader.still;
    return counts;
}
