/* SPDX-License-Identifier: Apache-2.0 */
/* Polls /proc every few milliseconds, and reads only what may have changed. */
#include "capture/proc/followed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "formats/base/clock.h"

/* The shortest time between two polls for new tasks. */
#define LOOK_NS (2 * NS_PER_MS)
/* How often all of /proc is read, to find what looking up single pids has missed. */
#define SWEEP_NS NS_PER_S
/* A dynamically linked interpreter is mapped a moment after the exec. Others may be loaded at any later time. */
#define WAIT_FIRST_NS (5 * NS_PER_MS)
#define WAIT_MOST_NS NS_PER_S
/* When there are more new pids than this, they are not looked up one by one. */
#define NUMBERS_MAX 4096
/* File descriptors to leave for other uses. */
#define FDS_SPARE 128

struct error *followed_create(struct processes *processes, bool children, uint64_t grace_ns, struct followed_set **out)
{
    struct followed_set *s = calloc(1, sizeof *s);
    struct rlimit files;

    if (!s)
        return error_no_memory();
    s->processes = processes;
    s->children = children;
    s->grace_ns = grace_ns;
    if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur > FDS_SPARE)
        s->fd_limit = files.rlim_cur > 65536 ? 65536 : (uint32_t)files.rlim_cur - FDS_SPARE;
    *out = s;
    return NULL;
}

static struct error *tell_gone(const struct followed_set *s, const struct followed *f, struct followed_task *t)
{
    return s->gone ? s->gone(s->gone_ctx, f, t) : NULL;
}

static void close_task(struct followed_set *s, struct followed_task *t)
{
    if (t->fd < 0)
        return;
    close(t->fd);
    s->fd_count--;
}

static void destroy(struct followed_set *s, struct followed *f)
{
    for (size_t i = 0; i < f->tasks.count; i++)
        close_task(s, &f->tasks.data[i]);
    VEC_DEINIT(&f->tasks);
    VEC_DEINIT(&f->states);
    if (f->dir_fd >= 0)
        close(f->dir_fd);
    free(f);
}

void followed_destroy(struct followed_set *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->list.count; i++)
        destroy(s, s->list.data[i]);
    VEC_DEINIT(&s->list);
    free(s);
}

/* ---- small files ---- */

bool followed_stat(const struct followed *f, uint32_t tid, struct procfs_stat *out)
{
    char path[48], text[1024];

    snprintf(path, sizeof path, "task/%u/stat", tid);
    return procfs_read_at(f->dir_fd, path, text, sizeof text) && procfs_parse_stat(text, out);
}

bool followed_schedstat(const struct followed *f, const struct followed_task *t, struct task_schedstat *out)
{
    char path[48], text[128], *rest;

    if (t->fd >= 0) {
        if (!procfs_read_fd(t->fd, text, sizeof text))
            return false;
    } else {
        snprintf(path, sizeof path, "task/%u/schedstat", t->tid);
        if (!procfs_read_at(f->dir_fd, path, text, sizeof text))
            return false;
    }
    out->run_ns = strtoull(text, &rest, 10);
    out->queued_ns = strtoull(rest, &rest, 10);
    out->arrivals = strtoull(rest, NULL, 10);
    return true;
}

bool followed_system_call(const struct followed *f, uint32_t tid, char *text, size_t cap)
{
    char path[48];

    snprintf(path, sizeof path, "task/%u/syscall", tid);
    return procfs_read_at(f->dir_fd, path, text, cap);
}

/* ---- threads ---- */

/* The tid in the process's own pid namespace: the last number of the line "NSpid:". */
static uint32_t own_tid(const struct followed *f, uint32_t tid)
{
    char path[48], text[4096];

    snprintf(path, sizeof path, "task/%u/status", tid);
    if (!procfs_read_at(f->dir_fd, path, text, sizeof text))
        return tid;
    uint32_t own = procfs_last_number(text, "NSpid:");
    return own ? own : tid;
}

static struct error *add_task(struct followed_set *s, struct followed *f, uint32_t tid, bool in_namespace, bool born)
{
    struct followed_task t = {.tid = tid, .ns_tid = in_namespace ? own_tid(f, tid) : tid, .fd = -1, .listed = true};
    struct task_schedstat now;
    char path[48];

    if (s->fd_count < s->fd_limit) {
        snprintf(path, sizeof path, "task/%u/schedstat", tid);
        t.fd = openat(f->dir_fd, path, O_RDONLY | O_CLOEXEC);
        s->fd_count += t.fd >= 0;
    }
    if (!born && followed_schedstat(f, &t, &now))
        t.run_ns = now.run_ns;
    f->grace_ns += s->grace_ns;
    if (!VEC_PUSH(&f->tasks, t)) {
        close_task(s, &t);
        return error_no_memory();
    }
    return NULL;
}

static struct error *list_tasks(struct followed_set *s, struct followed *f, bool born)
{
    const struct process *p = processes_find(s->processes, f->tgid);
    bool in_namespace = p && p->ns_tgid && p->ns_tgid != f->tgid;
    struct procfs_pids tids;

    struct error *err = procfs_threads((pid_t)f->tgid, &tids);
    if (err) {
        if (err->code == ERROR_NO_MEMORY)
            return err;
        error_destroy(err); /* the process has ended, or pycap has no file descriptor left */
        return NULL;
    }
    for (size_t i = 0; i < f->tasks.count; i++)
        f->tasks.data[i].listed = false;
    /* Both /proc and `tasks` are in order of creation, so known tasks come first and in the same order. */
    size_t at = 0, known = f->tasks.count;
    for (size_t i = 0; !err && i < tids.list.count; i++) {
        uint32_t tid = (uint32_t)tids.list.data[i];
        size_t k = at;
        while (k < known && f->tasks.data[k].tid != tid)
            k++;
        if (k < known) {
            f->tasks.data[k].listed = true;
            at = k + 1;
        } else {
            err = add_task(s, f, tid, in_namespace, born);
        }
    }
    VEC_DEINIT(&tids.list);
    size_t kept = 0;
    for (size_t i = 0; i < f->tasks.count; i++) {
        if (f->tasks.data[i].listed) {
            f->tasks.data[kept++] = f->tasks.data[i];
            continue;
        }
        if (!err)
            err = tell_gone(s, f, &f->tasks.data[i]);
        close_task(s, &f->tasks.data[i]);
    }
    f->tasks.count = kept;
    return err;
}

/* ---- processes ---- */

static struct followed *find(const struct followed_set *s, uint32_t tgid)
{
    for (size_t i = 0; i < s->list.count; i++) {
        if (s->list.data[i]->tgid == tgid && !s->list.data[i]->ended)
            return s->list.data[i];
    }
    return NULL;
}

static uint64_t unseen_of(const struct followed *f)
{
    uint64_t known = f->base_ns + f->sampled_ns + (f->sampled_ns ? f->grace_ns : 0);

    return f->python && !f->forbidden && f->clock_ns > known ? f->clock_ns - known : 0;
}

uint64_t followed_unseen_ns(const struct followed_set *s)
{
    uint64_t sum = s->unseen_ns;

    for (size_t i = 0; i < s->list.count; i++)
        sum += unseen_of(s->list.data[i]);
    return sum;
}

void followed_forbid(struct followed_set *s, struct followed *f)
{
    s->forbidden += !f->forbidden;
    f->forbidden = true;
}

/*
 * It executes another program. CPU time since its last samples is of the one before, and no stack of the new one may stand for
 * it: it is unseen.
 */
static void begin_image(struct followed_set *s, struct followed *f, uint64_t image)
{
    struct task_schedstat now;

    s->unseen_ns += unseen_of(f);
    f->base_ns = f->clock_ns > f->sampled_ns ? f->clock_ns - f->sampled_ns : 0;
    for (size_t i = 0; i < f->tasks.count; i++) {
        if (followed_schedstat(f, &f->tasks.data[i], &now))
            f->tasks.data[i].run_ns = now.run_ns;
    }
    f->image = image;
    f->exec_generation++;
    f->wait_ns = 0;
    f->forbidden = false; /* after exec it may be readable: sudo, for one, drops its privileges */
}

struct error *followed_reread(struct followed_set *s, struct followed *f, uint64_t time_ns)
{
    struct wire_process wire = {0};
    struct process *p;
    struct procfs_stat stat;

    if (followed_stat(f, f->tgid, &stat) && stat.image && stat.image != f->image)
        begin_image(s, f, stat.image);
    f->states.count = 0;
    f->states_round = 0;
    f->wait_ns = !f->wait_ns ? WAIT_FIRST_NS : 2 * f->wait_ns > WAIT_MOST_NS ? WAIT_MOST_NS : 2 * f->wait_ns;
    f->look_ns = time_ns + f->wait_ns;
    TRY(processes_read(s->processes, f->tgid, true, time_ns, &p));
    f->python = p && process_python(p, &wire);
    if (!p || p->forbidden) {
        int fd = openat(f->dir_fd, "maps", O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            close(fd);
        else if (errno == EACCES || errno == EPERM)
            followed_forbid(s, f);
    }
    return NULL;
}

struct error *followed_add(struct followed_set *s, uint32_t tgid, bool born, uint64_t time_ns)
{
    struct followed *f = calloc(1, sizeof *f);
    struct procfs_stat stat;
    struct timespec cpu;
    char path[32];

    if (!f)
        return error_no_memory();
    snprintf(path, sizeof path, "/proc/%u", tgid);
    f->tgid = tgid;
    f->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir_fd < 0 || !followed_stat(f, tgid, &stat) || clock_getcpuclockid((pid_t)tgid, &f->clock)) {
        destroy(s, f);
        return NULL;
    }
    f->start_boottime_ns = stat.start_ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    f->image = stat.image;
    if (!clock_gettime(f->clock, &cpu))
        f->clock_ns = timespec_ns(cpu);
    f->base_ns = born ? 0 : f->clock_ns;
    struct error *err = VEC_PUSH(&s->list, f) ? NULL : error_no_memory();
    if (err) {
        destroy(s, f);
        return err;
    }
    TRY(followed_reread(s, f, time_ns));
    return list_tasks(s, f, born);
}

/* Looks up a new pid, and follows it if it is a process and a child of a followed one. */
static struct error *consider(struct followed_set *s, uint32_t pid, uint64_t time_ns)
{
    char path[48], text[4096];
    struct procfs_stat stat;

    if (!procfs_stat((pid_t)pid, 0, &stat) || !find(s, stat.parent_tgid) || find(s, pid))
        return NULL;
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    if (!procfs_read_at(AT_FDCWD, path, text, sizeof text))
        return NULL;
    if (procfs_last_number(text, "Tgid:") != pid)
        return NULL; /* a thread */
    return followed_add(s, pid, true, time_ns);
}

static struct error *find_children(struct followed_set *s, uint32_t from, uint32_t to, uint64_t time_ns)
{
    if (to >= from && to - from <= NUMBERS_MAX) {
        for (uint32_t pid = from + 1; pid <= to; pid++)
            TRY(consider(s, pid, time_ns));
        return NULL;
    }
    struct procfs_pids all;
    TRY(procfs_pids(&all));
    struct error *err = NULL;
    for (size_t i = 0; !err && i < all.list.count; i++)
        err = consider(s, (uint32_t)all.list.data[i], time_ns);
    VEC_DEINIT(&all.list);
    return err;
}

/* Returns the last pid given out in pycap's pid namespace; 0 when unknown. */
static uint32_t last_tid(void)
{
    char text[128];

    if (!procfs_read_at(AT_FDCWD, "/proc/loadavg", text, sizeof text))
        return 0;
    const char *space = strrchr(text, ' ');
    return space ? (uint32_t)strtoul(space, NULL, 10) : 0;
}

static struct error *drop_ended(struct followed_set *s, uint64_t time_ns)
{
    for (size_t i = 0; i < s->list.count;) {
        struct followed *f = s->list.data[i];
        if (!f->ended) {
            i++;
            continue;
        }
        for (size_t k = 0; k < f->tasks.count; k++)
            TRY(tell_gone(s, f, &f->tasks.data[k]));
        struct sideband_event gone = {.kind = SIDEBAND_EXIT, .time_ns = time_ns, .tgid = f->tgid, .tid = f->tgid};
        TRY(processes_apply(s->processes, &gone));
        s->unseen_ns += unseen_of(f);
        destroy(s, f);
        s->list.data[i] = s->list.data[--s->list.count];
    }
    return NULL;
}

struct error *followed_look(struct followed_set *s, uint64_t time_ns)
{
    struct procfs_stat stat;

    if (time_ns - s->looked_ns < LOOK_NS)
        return NULL;
    s->looked_ns = time_ns;
    bool sweep = time_ns - s->swept_ns >= SWEEP_NS;
    uint32_t last = last_tid();
    if (last == s->last_tid && last == s->earlier_tid && !sweep)
        return drop_ended(s, time_ns);
    /* A pid is given out a moment before the task appears in /proc, so look up those of the previous poll again. */
    uint32_t from = s->earlier_tid;
    s->earlier_tid = s->last_tid;
    s->last_tid = last;
    for (size_t i = 0; i < s->list.count; i++) {
        struct followed *f = s->list.data[i];
        TRY(list_tasks(s, f, true));
        /* Zombies: ended, and not yet reaped by their parent. */
        if (sweep && f->tasks.count <= 1 && followed_stat(f, f->tgid, &stat) && (stat.state == 'Z' || stat.state == 'X'))
            f->ended = true;
    }
    if (sweep)
        s->swept_ns = time_ns;
    if (s->children)
        TRY(find_children(s, sweep || !last ? UINT32_MAX : from, last, time_ns));
    return drop_ended(s, time_ns);
}
