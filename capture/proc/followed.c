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
/* How often processes are asked, at most, for the CPU time of their children that have ended. */
#define WAITED_NS (100 * NS_PER_MS)
/* A dynamically linked interpreter is mapped a moment after the exec. Others may be loaded at any later time. */
#define WAIT_FIRST_NS (5 * NS_PER_MS)
#define WAIT_MOST_NS NS_PER_S
/* When there are more new pids than this, they are not looked up one by one. */
#define NUMBERS_MAX 4096
/* The unit of times in stat files. */
#define TICK_NS (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK))
/* File descriptors to leave for other uses. */
#define FDS_SPARE 128

struct error *followed_create(struct processes *processes, bool children, struct followed_set **out)
{
    struct followed_set *s = calloc(1, sizeof *s);
    struct rlimit files;

    if (!s)
        return error_no_memory();
    s->processes = processes;
    s->children = children;
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

/* ---- CPU time ---- */

bool followed_read_clock(struct followed *f)
{
    struct timespec cpu;

    if (clock_gettime(f->clock, &cpu))
        return false;
    f->clock_ns = timespec_ns(cpu);
    return true;
}

/* What samples should stand for, and do not yet. */
static uint64_t owed_ns(const struct followed *f)
{
    uint64_t known = f->base_ns + f->sampled_ns;

    return f->clock_ns > known ? f->clock_ns - known : 0;
}

/* Of that, what threads have used that are there: their next samples stand for it. */
static uint64_t pending_ns(const struct followed *f)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < f->tasks.count; i++) {
        const struct followed_task *t = &f->tasks.data[i];
        sum += t->seen_ns > t->run_ns ? t->seen_ns - t->run_ns : 0;
    }
    return sum;
}

/*
 * What is owed, and not by threads that are there, is of threads that have ended. The process's clock was read before its
 * threads were, so this is never too much.
 */
static void settle(struct followed *f, uint64_t pending)
{
    uint64_t owed = owed_ns(f);

    if (f->python && !f->forbidden && owed > pending && owed - pending > f->unseen_ns)
        f->unseen_ns = owed - pending;
}

void followed_write_off(struct followed *f)
{
    struct task_schedstat now;

    for (size_t i = 0; i < f->tasks.count; i++) {
        if (followed_schedstat(f, &f->tasks.data[i], &now))
            f->tasks.data[i].run_ns = f->tasks.data[i].seen_ns = now.run_ns;
    }
    followed_read_clock(f); /* after the threads: what they use in between is not to look unseen */
    uint64_t known = f->sampled_ns + f->unseen_ns;
    f->base_ns = f->clock_ns > known ? f->clock_ns - known : 0;
}

/*
 * A stat file has the process's name, and the CPU time of children that were waited for, user and system time each cut to whole
 * ticks.
 */
static void read_waited(const struct followed_set *s, struct followed *f)
{
    char text[1024];
    struct procfs_stat stat;

    if (!procfs_read_at(f->dir_fd, "stat", text, sizeof text) || !procfs_parse_stat(text, &stat))
        return;
    f->parent_tgid = stat.parent_tgid;
    memcpy(f->comm, stat.comm, sizeof f->comm);
    if (s->children)
        f->waited_ns = stat.waited_ticks * TICK_NS;
}

/* A process may give itself another name at any time: what stat said is told, as an event of the side-band does it. */
static struct error *tell_name(struct followed_set *s, const struct followed *f, uint64_t time_ns)
{
    const struct process *p = processes_find(s->processes, f->tgid);
    struct sideband_event named = {.kind = SIDEBAND_COMM, .time_ns = time_ns, .tgid = f->tgid, .tid = f->tgid};

    if (!p || !*f->comm || !strcmp(p->comm, f->comm))
        return NULL;
    memcpy(named.text, f->comm, sizeof f->comm);
    return processes_apply(s->processes, &named);
}

/* So far nothing needs to be known of its children. */
static void write_off_waited(struct followed *f)
{
    uint64_t all = f->waited_ns + 2 * TICK_NS, known = f->children_ns + f->waited_unseen_ns;

    f->waited_base_ns = all > known ? all - known : 0;
}

/* What was waited for, and is not known from the clocks of children that were followed. */
static void settle_waited(struct followed *f)
{
    uint64_t known = f->waited_base_ns + f->children_ns;

    if (!f->python || f->forbidden)
        write_off_waited(f);
    else if (f->waited_ns > known && f->waited_ns - known > f->waited_unseen_ns)
        f->waited_unseen_ns = f->waited_ns - known;
}

uint64_t followed_unseen_ns(const struct followed_set *s)
{
    uint64_t sum = s->unseen_ns;

    for (size_t i = 0; i < s->list.count; i++)
        sum += s->list.data[i]->unseen_ns;
    return sum;
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
    if (followed_schedstat(f, &t, &now)) {
        t.seen_ns = now.run_ns;
        t.run_ns = born ? 0 : now.run_ns;
    }
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
    settle(f, pending_ns(f));
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

void followed_forbid(struct followed_set *s, struct followed *f)
{
    s->forbidden += !f->forbidden;
    f->forbidden = true;
}

/*
 * It executes another program. CPU time since its last samples is of the one before, and no stack of the new one may stand for
 * it: it is unseen.
 */
static void begin_image(struct followed *f, uint64_t image)
{
    followed_read_clock(f);
    settle(f, 0);
    followed_write_off(f);
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
        begin_image(f, stat.image);
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
    f->start_boottime_ns = stat.start_ticks * TICK_NS;
    f->image = stat.image;
    followed_read_clock(f);
    f->base_ns = born ? 0 : f->clock_ns;
    f->parent_tgid = stat.parent_tgid;
    struct error *err = VEC_PUSH(&s->list, f) ? NULL : error_no_memory();
    if (err) {
        destroy(s, f);
        return err;
    }
    TRY(followed_reread(s, f, time_ns));
    TRY(list_tasks(s, f, born));
    if (!born) {
        followed_write_off(f);
        read_waited(s, f);
        write_off_waited(f);
    }
    return NULL;
}

/* Looks up a new pid, and follows it if it is a process and a child of a followed one. */
static struct error *consider(struct followed_set *s, uint32_t pid, uint64_t time_ns)
{
    char path[48], text[4096];
    struct procfs_stat stat;

    if ((pid_t)pid == getpid() || !procfs_stat((pid_t)pid, 0, &stat) || !find(s, stat.parent_tgid) || find(s, pid))
        return NULL; /* this process may be the child of one that records itself */
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

/* ---- children that have ended ---- */

/* Of two with one tgid, which was used again, the one that lives. */
static struct followed *find_any(const struct followed_set *s, uint32_t tgid)
{
    struct followed *f = find(s, tgid);

    for (size_t i = 0; !f && i < s->list.count; i++)
        f = s->list.data[i]->tgid == tgid ? s->list.data[i] : NULL;
    return f;
}

/* Tells the parents of processes that have ended what those had used. Rather too much than too little is known then. */
static void tell_parents(struct followed_set *s)
{
    for (size_t i = 0; i < s->list.count; i++) {
        struct followed *f = s->list.data[i];
        if (!f->ended || f->told)
            continue;
        f->told = true;
        uint64_t used = f->clock_ns + (f->waited_ns > f->children_ns ? f->waited_ns : f->children_ns);
        struct followed *p = find_any(s, f->parent_tgid);
        for (size_t n = 0; p && n < s->list.count; n++) {
            p->children_ns += used;
            p = p->told ? find_any(s, p->parent_tgid) : NULL;
        }
    }
}

/*
 * What was waited for is read before the round looks for processes that have ended, and compared after the next one has told
 * their parents: it has none that still counts as running.
 */
static struct error *look_at_waited(struct followed_set *s, uint64_t time_ns)
{
    if (time_ns - s->waited_ns < WAITED_NS)
        return NULL;
    s->waited_ns = time_ns;
    for (size_t i = 0; i < s->list.count; i++) {
        if (s->children)
            settle_waited(s->list.data[i]);
        read_waited(s, s->list.data[i]);
        TRY(tell_name(s, s->list.data[i], time_ns));
    }
    return NULL;
}

uint64_t followed_waited_unseen_ns(const struct followed_set *s)
{
    uint64_t sum = s->waited_unseen_ns;

    for (size_t i = 0; i < s->list.count; i++)
        sum += s->list.data[i]->waited_unseen_ns;
    return sum;
}

void followed_finish(struct followed_set *s)
{
    for (size_t i = 0; i < s->list.count; i++) {
        read_waited(s, s->list.data[i]);
        error_destroy(tell_name(s, s->list.data[i], now_ns())); /* out of memory: so it keeps the name before */
    }
    for (size_t i = 0; i < s->list.count; i++) {
        struct followed *f = s->list.data[i];
        f->ended |= !followed_read_clock(f);
        settle(f, 0);
    }
    tell_parents(s);
    for (size_t i = 0; i < s->list.count; i++)
        settle_waited(s->list.data[i]);
}

/* ---- looks ---- */

static struct error *drop_ended(struct followed_set *s, uint64_t time_ns)
{
    for (size_t i = 0; i < s->list.count; i++) {
        if (!s->list.data[i]->ended)
            continue;
        followed_read_clock(s->list.data[i]); /* as long as it is a zombie */
        read_waited(s, s->list.data[i]);
    }
    tell_parents(s);
    for (size_t i = 0; i < s->list.count;) {
        struct followed *f = s->list.data[i];
        if (!f->ended) {
            i++;
            continue;
        }
        for (size_t k = 0; k < f->tasks.count; k++)
            TRY(tell_gone(s, f, &f->tasks.data[k]));
        TRY(tell_name(s, f, time_ns));
        struct sideband_event gone = {.kind = SIDEBAND_EXIT, .time_ns = time_ns, .tgid = f->tgid, .tid = f->tgid};
        TRY(processes_apply(s->processes, &gone));
        settle(f, 0);
        settle_waited(f);
        s->unseen_ns += f->unseen_ns;
        s->waited_unseen_ns += f->waited_unseen_ns;
        destroy(s, f);
        s->list.data[i] = s->list.data[--s->list.count];
    }
    return NULL;
}

/* Those that have ended, and are not yet reaped by their parents. They are dropped at the next look. */
static void end_zombies(struct followed_set *s)
{
    struct procfs_stat stat;

    for (size_t i = 0; i < s->list.count; i++) {
        struct followed *f = s->list.data[i];
        if (f->tasks.count > 1 || !followed_stat(f, f->tgid, &stat) || (stat.state != 'Z' && stat.state != 'X'))
            continue;
        f->ended = true;
        if (s->children)
            read_waited(s, f);
    }
}

void followed_hurry(struct followed_set *s)
{
    s->looked_ns = s->waited_ns = 0;
}

struct error *followed_look(struct followed_set *s, uint64_t time_ns)
{
    if (time_ns - s->looked_ns < LOOK_NS)
        return NULL;
    bool hurry = !s->looked_ns, sweep = time_ns - s->swept_ns >= SWEEP_NS;
    uint32_t last = last_tid();
    s->looked_ns = time_ns;
    if (last == s->last_tid && last == s->earlier_tid && !sweep && !hurry) {
        TRY(drop_ended(s, time_ns));
        return look_at_waited(s, time_ns);
    }
    /* A pid is given out a moment before the task appears in /proc, so look up those of the previous poll again. */
    uint32_t from = s->earlier_tid;
    s->earlier_tid = s->last_tid;
    s->last_tid = last;
    for (size_t i = 0; i < s->list.count; i++)
        TRY(list_tasks(s, s->list.data[i], true));
    if (sweep)
        s->swept_ns = time_ns;
    if (s->children)
        TRY(find_children(s, sweep || !last ? UINT32_MAX : from, last, time_ns));
    TRY(drop_ended(s, time_ns));
    TRY(look_at_waited(s, time_ns));
    if (sweep)
        end_zombies(s);
    return NULL;
}
