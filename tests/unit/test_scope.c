/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, and read, of processes that are not to be sampled: strangers, and those that a filter leaves out. */
#include "tests/unit/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/process/process_names.h"
#include "capture/process/process_program.h"
#include "capture/process/processes.h"
#include "formats/base/clock.h"

STARTS_THREADS;

static void map_code(struct processes *p, uint32_t tgid)
{
    struct sideband_event e = {.kind = SIDEBAND_MMAP, .tgid = tgid, .tid = tgid, .address = 0x10000, .length = 0x10000,
                               .protection = PROT_READ | PROT_EXEC, .time_ns = 1, .text = "/a"};

    OK(processes_apply(p, &e));
}

static void fork_of(struct processes *p, uint32_t parent, uint32_t tgid)
{
    struct sideband_event e = {.kind = SIDEBAND_FORK, .tgid = tgid, .tid = tgid, .parent_tgid = parent, .time_ns = 1};

    OK(processes_apply(p, &e));
}

static uint32_t count_processes(struct processes *p)
{
    uint32_t cursor = 0, count = 0;

    while (processes_next(p, &cursor))
        count++;
    return count;
}

/* Only one process is asked for: nothing is kept about the others, whatever they do, before they are its children. */
TEST(strangers)
{
    struct processes_options options = {.follow = true};
    uint32_t own = (uint32_t)getpid();
    struct sideband_event e = {.kind = SIDEBAND_EXEC, .tgid = 5000001, .tid = 5000001, .time_ns = 2, .text = "stranger"};
    struct wire_sample sample = {.tgid = 1, .start_boottime_ns = 1};
    struct modules *modules;
    struct process *process;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_scan(p, &own, 1));
    assert_int_equal(count_processes(p), 1);
    size_t mapped = code_mappings_count(&processes_find(p, own)->mappings);
    assert_true(mapped > 0);
    fork_of(p, 1, 5000001);
    map_code(p, 5000001);
    OK(processes_apply(p, &e));
    map_code(p, 1); /* one that was there before, and could be read */
    OK(processes_of_sample(p, &sample, &process));
    assert_null(process);
    assert_int_equal(count_processes(p), 1);
    /* A child counts from the start, and so does its child; with the pid of a process that was one, another does not. */
    fork_of(p, own, 5000002);
    fork_of(p, 5000002, 5000003);
    assert_int_equal(count_processes(p), 3);
    assert_true(code_mappings_are_shared(&processes_find(p, 5000003)->mappings, &processes_find(p, own)->mappings));
    fork_of(p, 1, 5000002);
    assert_null(processes_find(p, 5000002));
    assert_int_equal(count_processes(p), 2);
    processes_destroy(p);
    modules_destroy(modules);
}

static bool matters(struct processes *p, enum sideband_kind kind, uint32_t tgid, uint32_t parent)
{
    struct sideband_event e = {.kind = kind, .tgid = tgid, .tid = tgid, .parent_tgid = parent, .time_ns = 1,
                               .protection = PROT_READ | PROT_EXEC, .text = "/a"};

    return processes_matters(p, &e);
}

/* Strangers wake nobody while one process is recorded; a process that is, and its children, do, and so do lost events. */
TEST(news_of_one)
{
    static const enum sideband_kind of_process[] = {SIDEBAND_MMAP, SIDEBAND_EXEC, SIDEBAND_EXIT};
    struct processes_options options = {.follow = true};
    struct sideband_event thread = {.kind = SIDEBAND_FORK, .tgid = (uint32_t)getpid(), .tid = 5000009,
                                    .parent_tgid = (uint32_t)getpid()};
    uint32_t own = (uint32_t)getpid(), stranger = 5000001, child = 5000002;
    struct modules *modules;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_scan(p, &own, 1));
    for (size_t i = 0; i < sizeof of_process / sizeof *of_process; i++) {
        assert_true(matters(p, of_process[i], own, 1));
        assert_false(matters(p, of_process[i], stranger, 1));
        assert_false(matters(p, of_process[i], child, own)); /* it is nobody's child yet */
    }
    assert_true(matters(p, SIDEBAND_FORK, child, own));
    assert_false(matters(p, SIDEBAND_FORK, stranger, 1));
    assert_false(processes_matters(p, &thread));
    assert_false(matters(p, SIDEBAND_COMM, own, 1));
    assert_true(matters(p, SIDEBAND_LOST, 0, 0));
    fork_of(p, own, child);
    for (size_t i = 0; i < sizeof of_process / sizeof *of_process; i++)
        assert_true(matters(p, of_process[i], child, own));
    assert_false(processes_are_known(p)); /* this program is no Python: it may become one */
    processes_destroy(p);
    modules_destroy(modules);
}

/* Of all processes of the host each may become a Python when it executes a program, or maps a library. */
TEST(news_of_all)
{
    struct processes_options options = {.whole_host = true};
    struct modules *modules;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    assert_false(processes_are_known(p));
    assert_true(matters(p, SIDEBAND_EXEC, 5000001, 1));
    assert_true(matters(p, SIDEBAND_MMAP, 5000001, 1));
    assert_false(matters(p, SIDEBAND_FORK, 5000001, 1));
    assert_false(matters(p, SIDEBAND_EXIT, 5000001, 1));
    assert_false(matters(p, SIDEBAND_COMM, 5000001, 1));
    processes_destroy(p);
    modules_destroy(modules);
}

/* A child runs what its parent does, until it calls exec. */
TEST(programs)
{
    struct processes_options options = {.follow = true};
    uint32_t own = (uint32_t)getpid();
    struct sideband_event exec = {.kind = SIDEBAND_EXEC, .tgid = 5000001, .tid = 5000001, .time_ns = 2, .text = "next"};
    struct modules *modules;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_scan(p, &own, 1));
    struct process *process = processes_find(p, own);
    process_find_program(process, false);
    assert_int_equal(process->program_kind, TRACE_PROGRAM_FILE);
    assert_string_equal(process->program, "test_scope");
    fork_of(p, own, 5000001);
    process = processes_find(p, 5000001);
    process_find_program(process, true);
    assert_int_equal(process->program_kind, TRACE_PROGRAM_FILE);
    assert_string_equal(process->program, "test_scope");
    OK(processes_apply(p, &exec));
    process = processes_find(p, 5000001);
    assert_int_equal(process->program_kind, TRACE_PROGRAM_UNRECORDED);
    process_find_program(process, true); /* there is no such process */
    assert_int_equal(process->program_kind, TRACE_PROGRAM_UNKNOWN);
    assert_null(process->program);
    processes_destroy(p);
    modules_destroy(modules);
}

/* The fork of a child is among the events that were lost: it is found in /proc, and nothing of the others there is kept. */
TEST(lost_child)
{
    struct processes_options options = {.follow = true};
    struct sideband_event e = {.kind = SIDEBAND_LOST, .lost = 1, .time_ns = 1};
    uint32_t own = (uint32_t)getpid();
    struct modules *modules;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_scan(p, &own, 1));
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        for (;;)
            pause();
    OK(processes_apply(p, &e));
    do
        OK(processes_rescan(p, now_ns()));
    while (p->rescan.running);
    assert_int_equal(count_processes(p), 2);
    assert_non_null(processes_find(p, (uint32_t)child));
    assert_true(processes_find(p, (uint32_t)child)->in_scope);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    processes_destroy(p);
    modules_destroy(modules);
}

static struct process *add(struct processes *p, uint32_t tgid, uint32_t parent, enum trace_program_kind kind, const char *program)
{
    struct process *process;

    OK(processes_begin(p, tgid, 1, &process));
    process->parent_tgid = parent;
    process->program_kind = kind;
    process->program = program ? strdup(program) : NULL;
    process->exe = strdup("/usr/bin/python3");
    strcpy(process->comm, "python3");
    return process;
}

/* Workers are called after the first of their parents that has a name of its own and runs Python. */
TEST(names)
{
    struct processes_options options = {.whole_host = true};
    char name[PROCESS_NAME_MAX];
    struct modules *modules;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    struct process *master = add(p, 5000001, 4999999, TRACE_PROGRAM_SCRIPT, "shopd");
    struct process *server = add(p, 5000002, 5000001, TRACE_PROGRAM_COMMAND, "multiprocessing.forkserver");
    struct process *worker = add(p, 5000003, 5000002, TRACE_PROGRAM_COMMAND, "multiprocessing.forkserver");
    struct process *alone = add(p, 5000004, 4999999, TRACE_PROGRAM_COMMAND, NULL);
    struct process *shell = add(p, 5000005, 1, TRACE_PROGRAM_FILE, "bash");
    assert_string_equal(processes_name(p, master, name), "shopd");
    assert_string_equal(processes_name(p, server, name), "shopd (forkserver)");
    assert_string_equal(processes_name(p, worker, name), "shopd (forkserver)");
    assert_ptr_equal(processes_master(p, worker), master);
    assert_string_equal(processes_name(p, alone, name), "-c");
    /* A shell is no program that anybody works for. */
    free(shell->exe);
    shell->exe = strdup("/bin/bash");
    alone->parent_tgid = shell->tgid;
    assert_string_equal(processes_name(p, alone, name), "-c");
    /* The pid of one that has gone is another's by now. */
    master->start_ticks = 9;
    server->start_ticks = 8;
    assert_string_equal(processes_name(p, worker, name), "multiprocessing.forkserver");
    master->start_ticks = 8;
    assert_true(processes_is_named(p, worker, "shopd"));
    assert_true(processes_is_named(p, worker, "shopd (forkserver)"));
    assert_true(processes_is_named(p, worker, "multiprocessing.forkserver"));
    assert_true(processes_is_named(p, worker, "python3"));
    assert_false(processes_is_named(p, worker, "shop"));
    assert_false(processes_is_named(p, master, "shopd (forkserver)"));
    strcpy(worker->comm, "shop: the worke");
    assert_true(processes_is_named(p, worker, "shop: the worker of all"));
    assert_string_equal(process_title(worker), "shop: the worke");
    assert_string_equal(process_title(master), "");
    /* They may be each other's. */
    master->program_kind = TRACE_PROGRAM_COMMAND;
    master->parent_tgid = worker->tgid;
    free(master->program);
    master->program = NULL;
    assert_null(processes_master(p, worker));
    processes_destroy(p);
    modules_destroy(modules);
}

/* A process that the filter leaves out has a name and no mappings; they are read when it has a name that passes. */
TEST(filtered)
{
    struct filter filter = {0};
    struct processes_options options = {.whole_host = true, .filter = &filter};
    uint32_t own = (uint32_t)getpid();
    struct sideband_event e = {.kind = SIDEBAND_COMM, .tgid = own, .tid = own, .time_ns = 2, .text = "wanted"};
    struct modules *modules;
    struct processes *p;

    OK(filter_add_comms(&filter, "wanted"));
    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_scan(p, &own, 1));
    assert_true(count_processes(p) > 1);
    struct process *process = processes_find(p, own);
    map_code(p, own);
    assert_int_equal(code_mappings_count(&process->mappings), 0);
    OK(processes_apply(p, &e));
    assert_true(code_mappings_count(&process->mappings) > 0);
    strcpy(e.text, "other");
    OK(processes_apply(p, &e));
    assert_int_equal(code_mappings_count(&process->mappings), 0);
    processes_destroy(p);
    modules_destroy(modules);
    filter_deinit(&filter);
}

/*
 * A process calls exec right after its fork, and that is lost: the table has the parent's mappings. The first samples do
 * not tell, for they may have been taken before the sampler heard of the fork.
 */
TEST(lost_exec)
{
    struct processes_options options = {.whole_host = true};
    struct wire_sample sample = {.tgid = (uint32_t)getpid(), .start_boottime_ns = 1, .exec_generation = 2,
                                 .flags = WIRE_STALE, .time_ns = 1};
    struct modules *modules;
    struct process *process;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    fork_of(p, 1, sample.tgid);
    uint64_t begun_ns = processes_find(p, sample.tgid)->begun_ns;
    for (int i = 0; i < 2; i++) {
        OK(processes_of_sample(p, &sample, &process));
        assert_int_equal(process->begun_ns, begun_ns);
        assert_int_equal(process->exec_generation, 2);
    }
    sample.time_ns = now_ns();
    OK(processes_of_sample(p, &sample, &process));
    assert_true(process->begun_ns > sample.time_ns);
    assert_true(code_mappings_count(&process->mappings) > 0);
    assert_int_equal(process->exec_generation, 2);
    assert_int_equal(count_processes(p), 1);
    begun_ns = process->begun_ns;
    OK(processes_of_sample(p, &sample, &process)); /* taken before that: it says nothing */
    assert_int_equal(process->begun_ns, begun_ns);
    processes_destroy(p);
    modules_destroy(modules);
}

/*
 * The first sample after an exec is taken before the kernel has counted it: it has the number of the program before, which
 * the process has from its parent. It belongs to the new program, as do those that follow, though the process has gone.
 */
TEST(sample_of_exec)
{
    struct processes_options options = {.whole_host = true};
    struct wire_sample sample = {.tgid = 5000001, .start_boottime_ns = 1, .exec_generation = 7, .time_ns = 1};
    struct sideband_event e = {.kind = SIDEBAND_EXEC, .tgid = 5000002, .tid = 5000002, .time_ns = 2, .text = "second"};
    struct modules *modules;
    struct process *process;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    fork_of(p, 1, 5000001);
    OK(processes_of_sample(p, &sample, &process));
    assert_true(process && process->bound);
    fork_of(p, 5000001, 5000002);
    OK(processes_apply(p, &e));
    sample.tgid = 5000002;
    sample.start_boottime_ns = 5;
    for (int i = 0; i < 4; i++) {
        sample.exec_generation = i < 2 ? 7 : 8;
        OK(processes_of_sample(p, &sample, &process));
        assert_non_null(process);
        assert_int_equal(process->exec_generation, 8);
        assert_int_equal(process->start_boottime_ns, 5);
    }
    /* An exec that no event reported: the process would be read again, if it was there. */
    sample.exec_generation = 9;
    OK(processes_of_sample(p, &sample, &process));
    assert_null(process);
    /* Two execs without a sample between them. */
    e.tgid = e.tid = 5000003;
    fork_of(p, 5000001, 5000003);
    OK(processes_apply(p, &e));
    OK(processes_apply(p, &e));
    sample.tgid = 5000003;
    sample.exec_generation = 8;
    OK(processes_of_sample(p, &sample, &process));
    assert_int_equal(process->exec_generation, 9);
    processes_destroy(p);
    modules_destroy(modules);
}

/*
 * The same of a program of which nothing is known that ran before it, as of the command that pycap starts. And a sample of that
 * command before its exec leaves the table as it is.
 */
TEST(sample_of_first_exec)
{
    struct processes_options options = {.whole_host = true};
    struct wire_sample sample = {.tgid = 5000001, .start_boottime_ns = 1, .exec_generation = 7, .time_ns = NS_PER_S + 1};
    struct sideband_event e = {.kind = SIDEBAND_EXEC, .tgid = 5000001, .tid = 5000001, .time_ns = NS_PER_S, .text = "program"};
    struct modules *modules;
    struct process *process, *first;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_apply(p, &e));
    OK(processes_of_sample(p, &sample, &first));
    sample.exec_generation = 8;
    sample.time_ns += NS_PER_S;
    OK(processes_of_sample(p, &sample, &process));
    assert_ptr_equal(process, first);
    assert_int_equal(process->exec_generation, 8);
    sample.exec_generation = 9; /* of an exec that no event reported: the process would be read again, if it was there */
    OK(processes_of_sample(p, &sample, &process));
    assert_null(process);

    sample.tgid = p->held_tgid = 5000002;
    fork_of(p, 1, sample.tgid);
    OK(processes_of_sample(p, &sample, &first));
    sample.exec_generation++;
    sample.flags = WIRE_STALE;
    sample.time_ns = now_ns();
    OK(processes_of_sample(p, &sample, &process));
    assert_ptr_equal(process, first);
    e.tgid = e.tid = sample.tgid;
    OK(processes_apply(p, &e));
    assert_int_equal(p->held_tgid, 0);
    processes_destroy(p);
    modules_destroy(modules);
}

static struct process *fork_in(struct processes *p, struct process *parent, uint32_t tgid)
{
    fork_of(p, parent->tgid, tgid);
    return processes_find(p, tgid);
}

/*
 * Whose a process is. One that root forked is nobody's before it shows whose it is; a sample that shows another user has it
 * asked for again, and where there is no answer any more it does not stay root's.
 */
TEST(owners)
{
    struct processes_options options = {.whole_host = true};
    const struct owner_facts root = {0}, user = {.uid = 1000};
    struct wire_sample sample = {.start_boottime_ns = 1, .exec_generation = 1, .time_ns = 1};
    struct modules *modules;
    struct process *process;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_begin(p, 5000001, 1, &process));
    assert_int_equal(process->owner, owner_unknown());
    process_select(process, true, true);
    processes_set_owner(p, process, &root);
    assert_int_equal(fork_in(p, process, 5000002)->owner, owner_unknown());
    processes_set_owner(p, process, &user);
    assert_int_equal(fork_in(p, process, 5000003)->owner, 1000);
    /* The same user as before says nothing new. */
    sample.tgid = 5000003;
    sample.user = 1000 + 1;
    OK(processes_of_sample(p, &sample, &process));
    assert_int_equal(process->owner, 1000);
    processes_set_owner(p, process, &root);
    sample.time_ns += NS_PER_S;
    sample.user = 0; /* not known */
    OK(processes_of_sample(p, &sample, &process));
    assert_true(owner_is_root(process->owner));
    sample.user = 1001 + 1; /* it is gone */
    OK(processes_of_sample(p, &sample, &process));
    assert_int_equal(process->owner, owner_unknown());
    /* One that is there is read: an exec, and a sample that shows that it was somebody else's. */
    struct sideband_event e = {.kind = SIDEBAND_EXEC, .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(), .time_ns = 2, .text = "x"};
    OK(processes_apply(p, &e));
    process = processes_find(p, e.tgid);
    assert_int_equal(process->owner_facts.uid, geteuid());
    assert_int_not_equal(process->owner, owner_unknown());
    processes_set_owner(p, process, &user);
    sample.tgid = e.tgid;
    sample.user = geteuid() + 1;
    OK(processes_of_sample(p, &sample, &process));
    assert_int_equal(process->owner_facts.uid, geteuid());
    /* However often threads with several users take turns, it is not asked for at each sample. */
    for (int i = 0; i < 10; i++) {
        processes_set_owner(p, process, &user);
        sample.user = 2000 + i;
        OK(processes_of_sample(p, &sample, &process));
        assert_int_equal(process->owner, 1000);
    }
    sample.time_ns += NS_PER_S;
    OK(processes_of_sample(p, &sample, &process));
    assert_int_equal(process->owner_facts.uid, geteuid());
    processes_destroy(p);
    modules_destroy(modules);
}

/* One of root's that is not sampled, and has become somebody else, is asked for when it maps code. */
TEST(root_no_more)
{
    struct processes_options options = {.whole_host = true};
    const struct owner_facts root = {0};
    struct modules *modules;
    struct process *process;
    struct processes *p;
    int ready[2];
    char word;

    if (geteuid())
        return;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        if (!setresuid(4242, 4242, 4242) && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &word, 1), 1);
    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_begin(p, (uint32_t)child, 1, &process));
    process_select(process, true, true);
    processes_set_owner(p, process, &root);
    map_code(p, (uint32_t)child);
    assert_int_equal(process->owner, 4242);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    processes_destroy(p);
    modules_destroy(modules);
}
