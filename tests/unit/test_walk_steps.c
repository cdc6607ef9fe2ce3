/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python frame walk at every instruction of an interpreter, where no sample can fall better or worse: each walk has
 * to reach the root, and from one instruction to the next the stack gains or loses its newest frame, or stays. What
 * 3.11 and 3.12 show of an activation that they are making (bpf/python_retry.h) would be a stack that differs in more.
 */
#include "tests/unit/test.h"

#include <sys/uio.h>
#include <sys/user.h>

#include "bpf/python_retry.h"
#include "capture/binary/modules.h"
#include "capture/process/processes.h"
#include "formats/base/clock.h"
#include "tests/unit/live_python.h"

STARTS_THREADS;

#define STEPS 30000
#define SHOWN_MAX 64

/* Functions that C calls, of C that Python calls, at several depths; generators, and stacks that grow in between. */
static const char program[] = "def leaf(x): return -x\n"
                              "def key(x): return leaf(x)\n"
                              "def values(n):\n"
                              "    for i in range(n): yield leaf(i)\n"
                              "def by_sort(): return sorted((3, 1, 2), key=key)\n"
                              "def by_map(): return list(map(leaf, (1, 2)))\n"
                              "def by_generator(): return sum(values(2)) + sum(x for x in values(2))\n"
                              "def call(f): return f()\n"
                              "def call_call(f): return call(f)\n"
                              "def from_c(f): return list(map(call, (f,)))\n"
                              "print(flush=True)\n"
                              "while True:\n"
                              "    for f in by_sort, by_map, by_generator:\n"
                              "        f(), from_c(f), call(f), from_c(by_map), call_call(f)\n";

static int read_process(void *ctx, void *out, uint32_t len, uint64_t address)
{
    struct iovec to = {out, len}, from = {(void *)(uintptr_t)address, len};

    return process_vm_readv(*(pid_t *)ctx, &to, 1, &from, 1, 0) != (ssize_t)len;
}

static struct py_walk walk;
static struct wire_python entries[WIRE_PYTHON_MAX];

/* The frames of a stack, the newest first, by their code objects. */
struct shown {
    uint64_t codes[SHOWN_MAX];
    uint32_t count;
};

/* Takes the stack as the sampler would. Returns how the walk ended; 0: the thread's state was not found. */
static uint32_t take(pid_t pid, struct shown *out)
{
    struct user_regs_struct r;

    assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &r), 0);
    const uint64_t registers[ARCH_REGISTERS] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                                                r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
    walk.config.thread_pointer = r.fs_base;
    walk.config.stack_pointer = r.rsp;
    out->count = 0;
    if (!walk_find_tstate(&walk) || !walk.result.tstate)
        return 0;
    walk_all(&walk, registers, entries);
    for (uint32_t i = 0; i < walk.result.entry_count; i++) {
        if (entries[i].address & WIRE_RUN)
            continue;
        assert_true(out->count < SHOWN_MAX);
        out->codes[out->count++] = entries[i].address & WIRE_ADDRESS;
    }
    return walk.result.end;
}

/* Whether `b` is `a`, or `a` with one frame more or less. */
static bool is_next(const struct shown *a, const struct shown *b)
{
    const struct shown *longer = a->count > b->count ? a : b, *shorter = longer == a ? b : a;
    uint32_t more = longer->count - shorter->count;

    return more <= 1 && !memcmp(longer->codes + more, shorter->codes, shorter->count * sizeof *shorter->codes);
}

struct steps_tally {
    uint32_t stacks, torn, jumps, retries, deepest;
};

static void step_through(pid_t pid, struct steps_tally *tally)
{
    struct shown last = {0}, now = {0};

    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t end = take(pid, &now);
        /* With the GIL released, up to 3.11, nothing names the state but the lists of them. */
        if (end) {
            tally->stacks++;
            tally->torn += end != LOSS_complete;
            tally->jumps += end == LOSS_complete && last.count && !is_next(&last, &now);
            tally->retries += !!walk.result.restarts;
            tally->deepest = now.count > tally->deepest ? now.count : tally->deepest;
            last = now;
        }
        assert_true(step_once(pid));
    }
}

static void check_steps(const char *python)
{
    struct processes_options options = {0};
    struct processes *processes;
    struct modules *modules;
    struct steps_tally tally = {0};
    int status;

    pid_t pid = start_python(python, program);
    uint32_t number = (uint32_t)pid;
    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &processes));
    OK(processes_scan(processes, &number, 1));
    modules_settle(modules, now_ns() + 60 * NS_PER_S); /* on a busy machine the worker is not waited for */
    OK(processes_take_modules(processes));
    memset(&walk, 0, sizeof walk);
    struct process *p = processes_find(processes, number);
    assert_true(p && process_python(p, &walk.config.process));
    walk.config.layout = p->python->python.layout;
    walk.memory = (struct walk_memory){.read = read_process, .ctx = &pid};
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    step_through(pid, &tally);
    stop_running(NULL);
    processes_destroy(processes);
    modules_destroy(modules);
    print_message("%s: %u stacks, up to %u frames, %u begun again, %u torn, %u jumps\n", python, tally.stacks,
                  tally.deepest, tally.retries, tally.torn, tally.jumps);
    assert_true(tally.stacks > STEPS / 2 && tally.deepest > 4);
    assert_int_equal(tally.torn, 0);
    assert_int_equal(tally.jumps, 0);
}

TEST_WITH(system, NULL, stop_running)
{
    check_steps("/usr/bin/python3");
}

TEST_WITH(311, NULL, stop_running)
{
    check_steps(pyenv_path("3.11.7/bin/python3.11"));
}

TEST_WITH(312, NULL, stop_running)
{
    check_steps(pyenv_path("3.12.1/bin/python3.12"));
}
