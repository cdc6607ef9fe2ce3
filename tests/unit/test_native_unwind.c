/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table unwinder, built for the host, against libunwind over the same stopped
 * process: frame by frame, address, stack pointer and CFA. A child is stopped at a known
 * place or stepped instruction by instruction.
 */
#include "tests/unit/test.h"

#include <sys/mman.h>
#include <time.h>

#include "tests/unit/both_unwinders.h"
#include "tests/unit/live_python.h"
#include "tests/unit/places.h"

STARTS_THREADS;

/* As libffi's ffi_call: the stack pointer is above where RBP was saved, and RBP is not yet read from there. */
void place_above_slot(void);
__asm__(".text\n"
        ".type place_above_slot, @function\n"
        "place_above_slot:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "lea 8(%rbp), %rsp\n"
        "int3\n"
        "mov (%rbp), %rbp\n"
        ".cfi_restore %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size place_above_slot, . - place_above_slot\n");

PLACE static int place_red_zone(int len)
{
    volatile char *p = alloca((size_t)len);

    p[0] = 1;
    place_above_slot();
    return p[0];
}

/* What follows the stop goes through the dynamic loader's resolver (CFA by RBX), the vdso and a vfork. */
PLACE static void place_resolver(void)
{
    struct timespec t;

    place_aligned(100);
    clock_gettime(CLOCK_MONOTONIC, &t);
    sink += ffsll(sink) + (int)lrand48() + (int)getppid() + (int)getpgrp();
}

/* Code that a program made, at the beginning of a mapping: calls what rcx or rdi says. */
PLACE static void place_made(const uint8_t *code, size_t len_bytes)
{
    uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    munmap(p, 4096);
    p += 4096;
    memcpy(p, code, len_bytes);
    ((void (*)(void (*)(void), int, int, void (*)(void)))(uintptr_t)p)(place_leaf, 0, 0, place_leaf);
    sink++;
}
/*
 * As CPython 3.12's trampolines, as later ones, both with another register, less than they have, and with something else on
 * the stack.
 */
PLACE static void place_trampoline_312(void)
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3};
    place_made(code, sizeof code);
}
PLACE static void place_trampoline_313(void)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
    place_made(code, sizeof code);
}
PLACE static void place_near_312(void)
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
    place_made(code, sizeof code);
}
PLACE static void place_near_313(void)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    place_made(code, sizeof code);
}
PLACE static void place_short(void)
{
    static const uint8_t code[] = {0x55, 0xff, 0xd1, 0x5d, 0xc3};
    place_made(code, sizeof code);
}
PLACE static void place_frame_pointer(void)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd1, 0xc9, 0xc3};
    place_made(code, sizeof code);
}

static void place_recursion_900(void)
{
    place_recursion(900);
}
static void place_red_zone_100(void)
{
    place_red_zone(100);
}
static void place_alloca_30000(void)
{
    place_alloca(30000);
}
TEST_WITH(places, NULL, stop_running)
{
    static void (*const places[])(void) = {place_recursion_50, place_recursion_900, place_alloca_1000, place_alloca_30000,
                                           place_aligned_100, place_red_zone_100, place_signal, place_qsort,
                                           place_thread};
    struct tally tally = {0};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        pid_t pid, tid = start(places[i], &pid);
        struct subject *s = subject_create(pid);
        take_snapshot(s, tid);
        compare(s, &tally);
        subject_destroy(s);
        stop_running(NULL);
    }
    print_tally("places", &tally);
    assert_true(tally.cached > tally.frames / 2);
    assert_int_equal(tally.complete, tally.stacks);
    assert_int_equal(tally.differing, 0);
    assert_int_equal(tally.unsupported, 0);
}

/* Instruction by instruction: prologues, epilogues, PLT, the resolver, signal delivery and return. */
static void step_through(const char *name, void (*place)(void), int steps)
{
    struct tally tally = {0};
    pid_t pid, tid = start(place, &pid);
    struct subject *s = subject_create(pid);

    for (int i = 0; i < steps; i++) {
        take_snapshot(s, tid);
        compare(s, &tally);
        if (!step_once(tid))
            break;
    }
    subject_destroy(s);
    stop_running(NULL);
    print_tally(name, &tally);
    assert_int_equal(tally.differing, 0);
    assert_int_equal(tally.unsupported, 0);
    assert_int_equal(tally.complete, tally.stacks);
}

TEST_WITH(steps, NULL, stop_running)
{
    step_through("steps through qsort", place_qsort, 3000);
    step_through("steps out of a signal handler", place_signal, 300);
    step_through("steps through the resolver and the vdso", place_resolver, 8000);
}

TEST_WITH(made_code, NULL, stop_running)
{
    static void (*const places[])(void) = {place_trampoline_312, place_trampoline_313, place_near_312, place_near_313, place_short,
                                           place_frame_pointer};
    static struct native_frame frames[NATIVE_MAX];

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        pid_t pid, tid = start(places[i], &pid);
        struct subject *s = subject_create(pid);
        take_snapshot(s, tid);
        run_native(s, frames);
        assert_int_equal(s->native_unwind.end, LOSS_complete);
        assert_true(s->native_unwind.count > 4);
        assert_int_equal(s->native_unwind.guesses, 1);
        assert_true(frames[1].ip & NATIVE_GUESSED ? true : frames[2].ip & NATIVE_GUESSED);
        for (uint32_t k = 1; k < s->native_unwind.count; k++)
            assert_true(frames[k].sp > frames[k - 1].sp);
        /* A return address that is none: the frame that it would make is not there. */
        uint32_t guessed = 0;
        while (!(frames[guessed].ip & NATIVE_GUESSED))
            guessed++;
        /* The first two are trampolines of -X perf, and nothing else is. */
        for (uint32_t k = 0; k < s->native_unwind.count; k++)
            assert_int_equal(frames[k].ip & NATIVE_TRAMPOLINE ? 1 : 0, i < 2 && k + 1 == guessed);
        assert_int_equal(ptrace(PTRACE_POKEDATA, tid, frames[guessed].sp - 8, frames[guessed].sp), 0);
        take_snapshot(s, tid);
        run_native(s, frames);
        assert_int_equal(s->native_unwind.end, LOSS_no_mapping);
        assert_int_equal(s->native_unwind.count, guessed);
        assert_int_equal(s->native_unwind.guesses, 0);
        subject_destroy(s);
        stop_running(NULL);
    }
}

/* ---- trouble ---- */

TEST_WITH(faults, NULL, stop_running)
{
    static struct native_frame whole[NATIVE_MAX], frames[NATIVE_MAX];
    pid_t pid, tid = start(place_recursion_50, &pid);
    struct subject *s = subject_create(pid);

    take_snapshot(s, tid);
    run_native(s, whole);
    uint32_t count = s->native_unwind.count;
    assert_int_equal(s->native_unwind.end, LOSS_complete);
    s->reads = 0;
    run_native(s, whole);
    print_message("%u frames with %" PRIu64 " reads\n", count, s->reads);
    assert_true(s->reads <= 4);
    for (uint64_t at = s->snapshot.stack_address; at < s->snapshot.stack_address + 3000; at += 8) {
        s->fail_from = at;
        s->fail_to = UINT64_MAX;
        run_native(s, frames);
        if (s->native_unwind.end != LOSS_complete)
            assert_int_equal(s->native_unwind.end, LOSS_native_fault);
        assert_true(s->native_unwind.count <= count);
        assert_memory_equal(frames, whole, s->native_unwind.count * sizeof *frames);
        assert_true(s->native_unwind.end == LOSS_complete || s->native_unwind.last_cfa == WIRE_CFA_NONE);
    }
    s->fail_from = s->fail_to = 0;
    s->snapshot.registers[16] = 0x1234;
    run_native(s, frames);
    assert_int_equal(s->native_unwind.end, LOSS_no_mapping);
    assert_int_equal(s->native_unwind.count, 1);
    subject_destroy(s);
    stop_running(NULL);
}

/* Whatever the registers and the stack hold: it ends, with a reason. */
struct noise {
    struct subject *s;
    uint64_t seed;
};

static int read_noise(void *ctx, void *out, uint32_t len_bytes, uint64_t address)
{
    struct noise *n = ctx;
    uint8_t *p = out;

    if (address % 97 == 0)
        return -1;
    for (uint32_t i = 0; i < len_bytes; i += 8) {
        n->seed = n->seed * 6364136223846793005u + 1442695040888963407u;
        const struct native_mapping *m = &n->s->native[(n->seed >> 33) % n->s->snapshot.count];
        uint64_t value = n->seed >> 60 < 8 ? m->start + (n->seed >> 7) % (m->end - m->start)
                         : n->seed >> 60 < 14 ? address + (n->seed >> 20) % 4096 : n->seed;
        memcpy(p + i, &value, len_bytes - i < 8 ? len_bytes - i : 8);
    }
    return 0;
}

TEST_WITH(noise, NULL, stop_running)
{
    static struct native_frame frames[NATIVE_MAX];
    pid_t pid, tid = start(place_qsort, &pid);
    struct subject *s = subject_create(pid);
    struct noise noise = {s, 1};
    struct native_unwind *u = &s->native_unwind;
    uint32_t ends[LOSS_LIMIT] = {0};

    take_snapshot(s, tid);
    for (int round = 0; round < 50000; round++) {
        for (int i = 0; i < 17; i++)
            read_noise(&noise, &u->registers[i], 8, s->snapshot.stack_address + 8);
        u->memory = (struct walk_memory){read_noise, &noise};
        u->host = (struct native_host){find_mapping, s, NULL};
        native_begin(u);
        uint32_t steps = 1;
        while (!native_step(u, frames))
            assert_true(++steps <= NATIVE_MAX + 1);
        assert_true(u->end && u->end < LOSS_LIMIT && u->count <= NATIVE_MAX);
        ends[u->end]++;
    }
    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        if (ends[i])
            print_message("end %u: %u\n", i, ends[i]);
    subject_destroy(s);
    stop_running(NULL);
}

/* ---- whole programs ---- */

/*
 * The handler sets the next alarm itself: with a timer that goes on, handlers would pile up on the stack where the machine
 * is so slow, or the program stopped so often, that one takes longer than a period.
 */
static void check_python(const char *python)
{
    static const char program[] =
        "import json, os, re, sys, functools, zlib, hashlib, decimal, signal\n"
        "def f(n):\n"
        "    if n: return functools.reduce(lambda a, b: f(n - 1), [1, 2])\n"
        "    data = dict((str(i), [i] * 3) for i in range(50))\n"
        "    hashlib.sha256(zlib.compress(json.dumps(data).encode())).hexdigest(), decimal.Decimal(2).sqrt()\n"
        "    return sorted(json.loads(json.dumps(data)), key=lambda s: (hash(s), re.sub('1', 'x', s)))\n"
        "f(1)\n"
        "def handle(*a): f(1), signal.setitimer(signal.ITIMER_REAL, 0.002)\n"
        "signal.signal(signal.SIGALRM, handle)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.002)\n"
        "os.write(1, b'x')\n"
        "while True: f(3)\n";
    struct tally tally = {0};
    int status;
    pid_t pid = start_python(python, program);
    struct subject *s = subject_create(pid);

    for (uint32_t i = 0; i < 300; i++) {
        usleep(500);
        assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
        int deliver = 0;
        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        assert_true(WIFSTOPPED(status));
        if (!(status >> 16))
            deliver = WSTOPSIG(status);
        take_snapshot(s, pid);
        compare(s, &tally);
        /* Then through the signal's delivery and the handler, step by step. */
        for (int k = 0; k < 30 && (deliver || i % 10 == 0); k++) {
            assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, deliver), 0);
            deliver = 0;
            assert_int_equal(waitpid(pid, &status, __WALL), pid);
            assert_true(WIFSTOPPED(status));
            if (!(status >> 16) && WSTOPSIG(status) != SIGTRAP)
                deliver = WSTOPSIG(status);
            take_snapshot(s, pid);
            compare(s, &tally);
        }
        assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, deliver), 0);
    }
    subject_destroy(s);
    stop_running(NULL);
    print_tally(python, &tally);
    assert_int_equal(tally.differing, 0);
    assert_int_equal(tally.unsupported, 0);
    assert_int_equal(tally.complete, tally.stacks);
}

TEST_WITH(system_python, NULL, stop_running)
{
    check_python("/usr/bin/python3");
}

TEST_WITH(python_38, NULL, stop_running)
{
    check_python(pyenv_path("3.8.18/bin/python3.8"));
}
TEST_WITH(python_311, NULL, stop_running)
{
    check_python(pyenv_path("3.11.7/bin/python3.11"));
}
TEST_WITH(python_313, NULL, stop_running)
{
    check_python(pyenv_path("3.13.0/bin/python3.13"));
}
