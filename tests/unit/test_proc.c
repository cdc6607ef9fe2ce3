/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following processes through /proc, and reading their stacks without privilege: a child of
 * the test is read, found with its threads, and dropped at its end.
 */
#include "tests/unit/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/host/procfs_descent.h"
#include "capture/proc/followed.h"
#include "capture/proc/proc_sampler.h"
#include "formats/base/clock.h"

STARTS_THREADS;

TEST(last_number)
{
    static const char text[] = "Name:\tNSpid: 5\nTgid:\t17\nNStgid:\t17\t3\nNSpid:\t18\t9\t4\n";

    assert_int_equal(procfs_last_number(text, "Tgid:"), 17);
    assert_int_equal(procfs_last_number(text, "NStgid:"), 3);
    assert_int_equal(procfs_last_number(text, "NSpid:"), 4);
    assert_int_equal(procfs_last_number(text, "Uid:"), 0);
    assert_int_equal(procfs_last_number("", "Uid:"), 0);
}

TEST(stat)
{
    struct procfs_stat s;
    const char *line = "17 (a ) R (b) S 5 17 17 34816 17 4194304 101 4 3 2 7 8 11 2 20 0 1 0 1372751 3133440 380 "
                       "18446744073709551615 94505100820480 94505100840361 140729845706256 0 0 0 0 0 0 0 0 0 17 3 0 0\n";

    assert_true(procfs_parse_stat(line, &s));
    assert_string_equal(s.comm, "a ) R (b");
    assert_int_equal(s.state, 'S');
    assert_int_equal(s.parent_tgid, 5);
    assert_int_equal(s.minor_faults, 101);
    assert_int_equal(s.major_faults, 3);
    assert_int_equal(s.waited_ticks, 13);
    assert_int_equal(s.start_ticks, 1372751);
    assert_int_equal(s.cpu, 3);
    assert_int_equal(s.image, UINT64_C(94505100820480) ^ UINT64_C(140729845706256) << 16);
    assert_false(procfs_parse_stat("", &s));
    assert_false(procfs_parse_stat("17 (name)", &s));
    assert_false(procfs_parse_stat("17 (name) R", &s));
    /* Cut anywhere before the last field that is wanted, it is none. */
    char text[512];
    const char *cpu = strstr(line, " 17 3 0 0");
    for (size_t len = 0; len <= (size_t)(cpu - line); len++) {
        memcpy(text, line, len);
        text[len] = 0;
        assert_false(procfs_parse_stat(text, &s));
    }
}

/* Pids were reused: children have smaller ones than their parents. Some numbers cannot be. */
TEST(descent)
{
    struct procfs_parentage list[] = {{90, 100}, {100, 1}, {40, 90}, {3, 40}, {5, 1}, {91, 100}, {6, 5},
                                      {7, 8}, {8, 7}, {9, 9}, {3, 91}, {100, 40}};
    const uint32_t roots[] = {100, 91, 9, 12345};
    const pid_t expected[] = {90, 3, 40};
    struct procfs_pids found = {0};

    assert_null(procfs_descend(list, sizeof list / sizeof *list, roots, 4, &found));
    assert_int_equal(found.list.count, 3);
    assert_memory_equal(found.list.data, expected, sizeof expected);
    VEC_DEINIT(&found.list);
    found = (struct procfs_pids){0};
    assert_null(procfs_descend(NULL, 0, roots, 4, &found));
    assert_int_equal(found.list.count, 0);
    const uint32_t loop[] = {7};
    assert_null(procfs_descend(list, sizeof list / sizeof *list, loop, 1, &found));
    assert_int_equal(found.list.count, 1);
    VEC_DEINIT(&found.list);
}

struct child {
    pid_t pid;
    int go, ready;
};

static void *wait_forever(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

/* A child that, at each byte, does as it says: t another thread, f a child of its own, b burns CPU. */
static struct child start(void)
{
    int go[2], ready[2];
    struct child c = {0};

    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(ready), 0);
    c.pid = fork();
    if (!c.pid) {
        char order;
        close(go[1]);
        while (read(go[0], &order, 1) == 1) {
            pthread_t thread;
            pid_t pid = 0;
            if (order == 't')
                pthread_create(&thread, NULL, wait_forever, NULL);
            if (order == 'f') {
                pid = fork();
                if (!pid)
                    wait_forever(NULL);
            }
            for (clock_t end = clock() + CLOCKS_PER_SEC / 20; order == 'b' && clock() < end;) {
            }
            if (write(ready[1], &pid, sizeof pid) < 0)
                _exit(1);
        }
        _exit(0);
    }
    close(go[0]);
    close(ready[1]);
    c.go = go[1];
    c.ready = ready[0];
    return c;
}

static pid_t order(const struct child *c, char what)
{
    pid_t pid;

    assert_int_equal(write(c->go, &what, 1), 1);
    assert_int_equal(read(c->ready, &pid, sizeof pid), sizeof pid);
    return pid;
}

TEST(follow)
{
    struct processes_options options = {0};
    struct processes *processes;
    struct modules *modules;
    struct followed_set *set;
    uint64_t now = now_ns();
    struct child c = start();

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &processes));
    OK(followed_create(processes, true, &set));
    OK(followed_add(set, (uint32_t)c.pid, false, now));
    OK(followed_add(set, 1u << 22, false, now)); /* there is none: no error, and nothing is followed */
    assert_int_equal(set->list.count, 1);
    assert_non_null(processes_find(processes, (uint32_t)c.pid));
    assert_int_equal(set->list.data[0]->tasks.count, 1);
    assert_int_equal(set->list.data[0]->tasks.data[0].tid, c.pid);

    order(&c, 't');
    OK(followed_look(set, now += NS_PER_S / 50));
    assert_int_equal(set->list.data[0]->tasks.count, 2);

    pid_t grandchild = order(&c, 'f');
    OK(followed_look(set, now += NS_PER_S / 50));
    assert_int_equal(set->list.count, 2);
    assert_int_equal(set->list.data[1]->tgid, grandchild);
    assert_true(processes_find(processes, (uint32_t)grandchild)->selected);
    assert_int_equal(set->list.data[1]->base_ns, 0);

    struct followed *f = set->list.data[0];
    struct task_schedstat before, after;
    struct procfs_stat stat;
    assert_true(followed_schedstat(f, &f->tasks.data[0], &before));
    order(&c, 'b');
    assert_true(followed_schedstat(f, &f->tasks.data[0], &after));
    assert_true(after.run_ns > before.run_ns + NS_PER_S / 50);
    assert_true(followed_stat(f, f->tgid, &stat));
    assert_int_equal(stat.image, f->image);
    assert_int_equal(stat.parent_tgid, getpid());

    /* What a thread has used is unseen when it has ended; until then its next sample may stand for it. */
    assert_int_equal(followed_unseen_ns(set), 0); /* no Python */
    f->python = true;
    assert_true(followed_read_clock(f));
    for (size_t i = 0; i < f->tasks.count; i++) {
        assert_true(followed_schedstat(f, &f->tasks.data[i], &after));
        f->tasks.data[i].seen_ns = after.run_ns;
    }
    order(&c, 't');
    OK(followed_look(set, now += NS_PER_S / 50));
    assert_int_equal(followed_unseen_ns(set), 0);
    f->clock_ns += 7 * NS_PER_S; /* of threads that were never met */
    order(&c, 't');
    OK(followed_look(set, now += NS_PER_S / 50));
    uint64_t unseen = followed_unseen_ns(set);
    assert_in_range(unseen, 6 * NS_PER_S, 7 * NS_PER_S);
    followed_write_off(f);
    followed_finish(set);
    assert_in_range(followed_unseen_ns(set), unseen, unseen + NS_PER_S / 10);

    /* One that has ended is dropped, and its unsampled CPU time stays on the account. */
    f->ended = true;
    unseen = followed_unseen_ns(set);
    size_t others = set->list.count - 1;
    OK(followed_look(set, now += NS_PER_S / 50));
    assert_int_equal(set->list.count, others);
    assert_in_range(followed_unseen_ns(set), unseen, unseen + NS_PER_S / 10);
    assert_int_not_equal(processes_find(processes, (uint32_t)c.pid)->ended_ns, 0);

    followed_destroy(set);
    processes_destroy(processes);
    modules_destroy(modules);
    kill(grandchild, SIGKILL);
    close(c.go);
    close(c.ready);
    kill(c.pid, SIGKILL);
    waitpid(c.pid, NULL, 0);
}

static struct error *no_sample(void *ctx, const void *message, uint32_t len)
{
    (void)message, (void)len;
    ++*(int *)ctx;
    return NULL;
}

/* A process that is no Python costs nothing, is no loss, and its end is noticed. */
TEST(not_python)
{
    struct processes_options options = {0};
    struct processes *processes;
    struct modules *modules;
    struct proc_sampler *s;
    uint64_t losses[LOSS_LIMIT] = {0};
    struct child c = start();
    int samples = 0;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &processes));
    OK(proc_sampler_create(processes, &(struct proc_sampler_options){.frequency_hz = 1000, .children = true,
                                                                       .wait_event = EVENT_NONE}, &s));
    OK(proc_sampler_follow(s, &(uint32_t){(uint32_t)c.pid}, 1));
    assert_null(proc_sampler_check(processes, (uint32_t)c.pid));
    for (int i = 0; i < 3; i++) {
        order(&c, 'b');
        OK(proc_sampler_round(s, no_sample, &samples));
    }
    assert_int_equal(samples, 0);
    close(c.go);
    waitpid(c.pid, NULL, 0);
    OK(proc_sampler_round(s, no_sample, &samples));
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    OK(proc_sampler_round(s, no_sample, &samples));
    assert_int_not_equal(processes_find(processes, (uint32_t)c.pid)->ended_ns, 0);
    proc_sampler_losses(s, losses);
    for (int i = 0; i < LOSS_LIMIT; i++)
        assert_int_equal(losses[i], 0);
    struct error *err = proc_sampler_check(processes, 1u << 22);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
    for (int i = 0; i < 1000; i++) {
        uint64_t wait = proc_sampler_wait_ns(s);
        assert_in_range(wait, 800000, 1200000);
    }
    proc_sampler_destroy(s);
    processes_destroy(processes);
    modules_destroy(modules);
    close(c.ready);
}
