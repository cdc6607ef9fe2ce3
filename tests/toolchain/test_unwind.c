/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder against live processes. A child is stopped at a known place, its
 * registers and stack are copied, and the result is compared with what the place says
 * (which functions called which, how often) and, frame by frame, with libdwfl's.
 */
#include "tests/unit/test.h"

#include <elfutils/libdwfl.h>
#include <time.h>

#include "formats/trace/trace.h"
#include "tests/toolchain/built_program.h"
#include "tests/unit/live_python.h"
#include "tests/unit/places.h"
#include "tests/unit/snapshot.h"

STARTS_THREADS;

enum { FRAMES_MAX = 512 };

/* ---- the same by libdwfl ---- */

struct expected_frame {
    uint64_t ip;
    bool exact;
};
struct expected {
    struct expected_frame frames[FRAMES_MAX];
    uint32_t count;
};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
    struct expected *e = arg;
    Dwarf_Addr pc;
    bool exact;

    if (!dwfl_frame_pc(frame, &pc, &exact) || e->count == FRAMES_MAX)
        return DWARF_CB_ABORT;
    e->frames[e->count++] = (struct expected_frame){pc, exact};
    return DWARF_CB_OK;
}

/* Of a thread that is already stopped and traced by us. */
static void unwind_by_dwfl(pid_t pid, pid_t tid, struct expected *out)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
    };

    out->count = 0;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    assert_non_null(dwfl);
    assert_int_equal(dwfl_linux_proc_report(dwfl, pid), 0);
    assert_int_equal(dwfl_report_end(dwfl, NULL, NULL), 0);
    assert_int_equal(dwfl_linux_proc_attach(dwfl, pid, true), 0);
    dwfl_getthread_frames(dwfl, tid, take_frame, out);
    dwfl_end(dwfl);
}

static void print_frames(const struct snapshot *s, const struct unwind_frame *frames, uint32_t count,
                         const struct expected *expected)
{
    for (uint32_t i = 0; i < count || (expected && i < expected->count); i++)
        print_message("%2u: %12" PRIx64 "%s cfa %12" PRIx64 " | dwfl %12" PRIx64 "%s  %s\n", i,
                      i < count ? frames[i].ip : 0, i < count && !frames[i].return_address ? "!" : " ",
                      i < count ? frames[i].cfa : 0, expected && i < expected->count ? expected->frames[i].ip : 0,
                      expected && i < expected->count && expected->frames[i].exact ? "!" : " ",
                      i < count ? snapshot_path(s, frames[i].mapping) : "");
}

/* Frames must join on to each other, and be the ones libdwfl finds. */
static uint32_t compare(struct unwinder *u, const struct snapshot *s, pid_t tid, struct unwind_frame *frames, uint32_t *end)
{
    struct expected expected;
    bool same = true;

    unwinder_set_mappings(u, s->mappings, s->count, (uint64_t)s->pid);
    uint32_t count = unwinder_run(u, s->registers, s->stack, s->stack_address, s->stack_len, frames, FRAMES_MAX, end);
    unwind_by_dwfl(s->pid, tid, &expected);
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 < count)
            same = same && frames[i].cfa == frames[i + 1].sp;
        if (i < expected.count)
            same = same && frames[i].ip == expected.frames[i].ip && frames[i].return_address == !expected.frames[i].exact;
    }
    /* libdwfl takes the loader's lazy binding (_dl_runtime_resolve, whose CFA is by RBX) for the end of the stack. */
    bool in_loader = expected.count && expected.count < count &&
                     strstr(snapshot_path(s, frames[expected.count - 1].mapping), "/ld-linux");
    same = same && (count == expected.count || (in_loader && *end == LOSS_complete));
    if (!same) {
        print_frames(s, frames, count, &expected);
        print_message("end: %u\n", *end);
    }
    assert_true(same);
    /* Once more, now out of the cache. */
    struct unwind_frame again[FRAMES_MAX];
    uint32_t again_end;
    assert_int_equal(unwinder_run(u, s->registers, s->stack, s->stack_address, s->stack_len, again, FRAMES_MAX,
                                  &again_end), count);
    for (uint32_t i = 0; i < count; i++)
        assert_true(frames[i].ip == again[i].ip && frames[i].sp == again[i].sp && frames[i].cfa == again[i].cfa &&
                    frames[i].return_address == again[i].return_address);
    assert_int_equal(*end, again_end);
    return count;
}

/* ---- places to be stopped at ---- */

/* The call is the last instruction: the return address lies in the next function. */
PLACE static __attribute__((noreturn)) void place_no_return_inner(void)
{
    place_leaf();
    for (;;)
        sink++;
}
PLACE static __attribute__((noreturn)) void place_no_return(void)
{
    place_no_return_inner();
}

static char other_stack[1 << 16] __attribute__((aligned(16)));

PLACE static void place_signal_stack(void)
{
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    sigaltstack(&stack, NULL);
    sigaction(SIGILL, &action, NULL);
    place_interrupted();
    sink++;
}

struct run {
    pid_t tid;
    struct snapshot snapshot;
    struct unwinder *unwinder;
    struct unwind_frame frames[FRAMES_MAX];
    uint32_t count, end;
};

static void run_at(struct run *r, void (*place)(void))
{
    *r = (struct run){0};
    OK(unwinder_create(machine_by_name("x86_64"), &r->unwinder));
    r->tid = start(place, &r->snapshot.pid);
    snapshot_take(&r->snapshot, r->tid);
    r->count = compare(r->unwinder, &r->snapshot, r->tid, r->frames, &r->end);
}

static void run_deinit(struct run *r)
{
    stop_running(NULL);
    unwinder_destroy(r->unwinder);
    snapshot_deinit(&r->snapshot);
}

/* The function that holds an address, by the test's own symbols: the child is a copy of this process. */
static const char *function_at(uint64_t ip)
{
    static const struct {
        void *start;
        const char *name;
    } places[] = {
        {place_leaf, "leaf"}, {place_recursion, "recursion"}, {place_alloca, "alloca"}, {place_aligned, "aligned"},
        {place_no_return_inner, "no_return_inner"}, {place_no_return, "no_return"}, {on_signal, "on_signal"},
        {place_interrupted, "interrupted"}, {place_signal, "signal"}, {place_signal_stack, "signal_stack"},
        {compare_stopping, "compare"}, {place_qsort, "qsort"}, {thread_main, "thread_main"},
    };
    const char *found = "";
    uint64_t best = 0;

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        uint64_t at = (uint64_t)(uintptr_t)places[i].start;
        if (ip >= at && at > best && ip - at < 4096) {
            best = at;
            found = places[i].name;
        }
    }
    return found;
}

static void assert_chain(const struct run *r, const char *const *names)
{
    for (uint32_t i = 0; names[i]; i++) {
        assert_true(i < r->count);
        if (*names[i])
            assert_string_equal(function_at(r->frames[i].ip - r->frames[i].return_address), names[i]);
    }
}
#define CHAIN(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST_WITH(recursion, NULL, stop_running)
{
    struct run r;

    run_at(&r, place_recursion_50);
    assert_int_equal(r.end, LOSS_complete);
    assert_false(r.frames[0].return_address);
    assert_chain(&r, CHAIN("leaf"));
    for (uint32_t i = 1; i <= 50; i++) {
        assert_string_equal(function_at(r.frames[i].ip - 1), "recursion");
        assert_true(r.frames[i].return_address);
        assert_true(r.frames[i].cfa > r.frames[i].sp);
    }
    assert_string_not_equal(function_at(r.frames[51].ip - 1), "recursion");
    run_deinit(&r);
}

TEST_WITH(moving_stack_pointer, NULL, stop_running)
{
    struct run r;

    run_at(&r, place_alloca_1000);
    assert_int_equal(r.end, LOSS_complete);
    assert_chain(&r, CHAIN("leaf", "alloca"));
    assert_true(r.frames[1].cfa - r.frames[1].sp >= 1000);
    run_deinit(&r);
    run_at(&r, place_aligned_100);
    assert_int_equal(r.end, LOSS_complete);
    assert_chain(&r, CHAIN("leaf", "aligned"));
    run_deinit(&r);
}

TEST_WITH(call_at_the_end, NULL, stop_running)
{
    struct run r;

    run_at(&r, place_no_return);
    assert_int_equal(r.end, LOSS_complete);
    assert_chain(&r, CHAIN("leaf", "no_return_inner", "no_return"));
    run_deinit(&r);
}

TEST_WITH(signal, NULL, stop_running)
{
    struct run r;

    run_at(&r, place_signal);
    assert_int_equal(r.end, LOSS_complete);
    assert_chain(&r, CHAIN("leaf", "on_signal", "", "interrupted", "signal"));
    assert_false(r.frames[2].return_address);
    assert_false(r.frames[3].return_address);
    assert_int_equal(r.frames[3].ip, (uint64_t)(uintptr_t)place_interrupted);
    run_deinit(&r);
}

/* The handler's stack lies elsewhere, and the snapshot ends with it. */
TEST_WITH(signal_stack, NULL, stop_running)
{
    struct run r = {0};

    OK(unwinder_create(machine_by_name("x86_64"), &r.unwinder));
    r.tid = start(place_signal_stack, &r.snapshot.pid);
    snapshot_take(&r.snapshot, r.tid);
    unwinder_set_mappings(r.unwinder, r.snapshot.mappings, r.snapshot.count, 1);
    r.count = unwinder_run(r.unwinder, r.snapshot.registers, r.snapshot.stack, r.snapshot.stack_address,
                           r.snapshot.stack_len, r.frames, FRAMES_MAX, &r.end);
    assert_chain(&r, CHAIN("leaf", "on_signal", "", "interrupted"));
    assert_int_equal(r.count, 4);
    assert_int_equal(r.end, LOSS_native_fault);
    assert_int_equal(r.frames[3].cfa, UINT64_MAX);
    run_deinit(&r);
}

TEST_WITH(libc, NULL, stop_running)
{
    struct run r;
    uint32_t at = 2;

    run_at(&r, place_qsort);
    assert_int_equal(r.end, LOSS_complete);
    assert_chain(&r, CHAIN("leaf", "compare"));
    while (at < r.count && strcmp(function_at(r.frames[at].ip - 1), "qsort")) /* libc's, and a sanitizer's */
        at++;
    assert_true(at > 2 && at < r.count);
    run_deinit(&r);
}

TEST_WITH(thread, NULL, stop_running)
{
    struct run r;

    run_at(&r, place_thread);
    assert_int_not_equal(r.tid, r.snapshot.pid);
    assert_int_equal(r.end, LOSS_complete);
    assert_chain(&r, CHAIN("leaf", "recursion", "recursion", "recursion", "thread_main"));
    run_deinit(&r);
}

/* Instruction by instruction through a call into libc and back: prologues, epilogues, PLT, string functions. */
TEST_WITH(single_steps, NULL, stop_running)
{
    struct run r;

    run_at(&r, place_qsort);
    for (int i = 0; i < 400; i++) {
        assert_true(step_once(r.tid));
        snapshot_take(&r.snapshot, r.tid);
        r.count = compare(r.unwinder, &r.snapshot, r.tid, r.frames, &r.end);
        assert_int_equal(r.end, LOSS_complete);
    }
    run_deinit(&r);
}

/* ---- reasons to stop ---- */

TEST_WITH(losses, NULL, stop_running)
{
    struct run r;
    struct unwind_frame frames[FRAMES_MAX];
    uint32_t end;

    run_at(&r, place_recursion_50);
    struct snapshot *s = &r.snapshot;

    /* The snapshot is cut: everything up to the cut is as before. */
    for (uint64_t len = 0; len < 2000; len += 200) {
        uint32_t count = unwinder_run(r.unwinder, s->registers, s->stack, s->stack_address, len, frames, FRAMES_MAX, &end);
        assert_int_equal(end, LOSS_native_fault);
        assert_true(count >= 1 && count < r.count);
        assert_int_equal(frames[count - 1].cfa, UINT64_MAX);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(frames[i].ip, r.frames[i].ip);
    }
    assert_int_equal(unwinder_run(r.unwinder, s->registers, s->stack, s->stack_address, s->stack_len, frames, 10, &end), 10);
    assert_int_equal(end, LOSS_native_too_deep);

    uint64_t registers[17];
    memcpy(registers, s->registers, sizeof registers);
    registers[16] = 0x1234;
    assert_int_equal(unwinder_run(r.unwinder, registers, s->stack, s->stack_address, s->stack_len, frames, FRAMES_MAX, &end), 1);
    assert_int_equal(end, LOSS_no_mapping);
    assert_int_equal(frames[0].mapping, UINT32_MAX);

    struct unwind_mapping unknown[MAPPINGS_MAX];
    memcpy(unknown, s->mappings, sizeof unknown);
    for (uint32_t i = 0; i < s->count; i++)
        unknown[i].module = NULL;
    unwinder_set_mappings(r.unwinder, unknown, s->count, 99);
    assert_int_equal(unwinder_run(r.unwinder, s->registers, s->stack, s->stack_address, s->stack_len, frames, FRAMES_MAX, &end), 1);
    assert_int_equal(end, LOSS_no_module);
    struct unwind_module *empty;
    OK(unwind_module_open(NULL, NULL, &empty));
    for (uint32_t i = 0; i < s->count; i++)
        unknown[i].module = empty;
    unwinder_set_mappings(r.unwinder, unknown, s->count, 100);
    assert_int_equal(unwinder_run(r.unwinder, s->registers, s->stack, s->stack_address, s->stack_len, frames, FRAMES_MAX, &end), 1);
    assert_int_equal(end, LOSS_no_module);
    unwind_module_close(empty);
    run_deinit(&r);
}

/* Whatever lies in the snapshot: no crash, no endless loop, frames that grow. */
TEST_WITH(hostile_stacks, NULL, stop_running)
{
    struct run r;
    struct unwind_frame frames[FRAMES_MAX];
    uint32_t end;
    uint64_t seed = 1;

    run_at(&r, place_qsort);
    struct snapshot *s = &r.snapshot;
    uint64_t words = s->stack_len / 8;
    for (int round = 0; round < 20000; round++) {
        uint64_t registers[17];
        memcpy(registers, s->registers, sizeof registers);
        for (int i = 0; i < 8; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint64_t pick = seed >> 33, value = s->stack_address + (seed >> 20) % s->stack_len;
            if (seed & 1) {
                const struct unwind_mapping *m = &s->mappings[pick % s->count];
                value = m->address + (seed >> 7) % m->length;
            }
            if (i < 2)
                registers[pick % 17] = value;
            else
                memcpy(s->stack + (pick % (words < 256 ? words : 256)) * 8, &value, 8);
        }
        uint32_t count = unwinder_run(r.unwinder, registers, s->stack, s->stack_address, s->stack_len, frames,
                                      FRAMES_MAX, &end);
        assert_true(count >= 1 && count <= FRAMES_MAX && end && end < LOSS_LIMIT);
    }
    run_deinit(&r);
}

/* ---- files of other kinds ---- */

/* Deep enough for saved registers; many functions, so that the compiler finds the section worth compressing. */
static const char program_source[] =
    "int sink;\n"
    "#define F(n, m) __attribute__((noinline)) int f##n(int a, int b) \\\n"
    "    { volatile int x[n + 1]; x[n] = a * b; int r = f##m(a + sink, x[n]); return r + a * b + x[0]; }\n"
    "__attribute__((noinline)) int f0(int a, int b) { __asm__ volatile(\"int3\"); return a + b + sink; }\n"
    "F(1, 0) F(2, 1) F(3, 2) F(4, 3) F(5, 4) F(6, 5) F(7, 6) F(8, 7) F(9, 8) F(10, 9) F(11, 10) F(12, 11)\n"
    "F(13, 12) F(14, 13) F(15, 14) F(16, 15) F(17, 16) F(18, 17) F(19, 18) F(20, 19) F(21, 20) F(22, 21)\n"
    "int main(int c, char **v) { (void)v; return f22(c, 2); }\n";

static void run_program(struct run *r, const struct fixture *f, const char *flags)
{
    *r = (struct run){0};
    fixture_write(f, "program.c", program_source, sizeof program_source - 1);
    assert_true(fixture_run(f, "cc -O2 -fomit-frame-pointer %s -o program program.c", flags));
    r->tid = start_built(f, "program", NULL, &r->snapshot.pid);
    OK(unwinder_create(machine_by_name("x86_64"), &r->unwinder));
    snapshot_take(&r->snapshot, r->tid);
}

TEST_WITH(tables, fixture_init, stop_and_deinit)
{
    static const char *const flags[] = {
        "",
        "-Wl,--no-eh-frame-hdr",
        "-static",
        "-g -fno-asynchronous-unwind-tables -fno-unwind-tables",
        "-g -fno-asynchronous-unwind-tables -fno-unwind-tables -gz",
        "-g -gdwarf-4 -no-pie -fno-asynchronous-unwind-tables -fno-unwind-tables",
    };

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        struct run r;
        run_program(&r, *state, flags[i]);
        r.count = compare(r.unwinder, &r.snapshot, r.tid, r.frames, &r.end);
        assert_int_equal(r.end, LOSS_complete);
        assert_true(r.count >= 25);
        run_deinit(&r);
    }
}

/* No information at all: the stack ends at the first address without, not with a guess. */
TEST_WITH(no_information, fixture_init, stop_and_deinit)
{
    struct run r;

    run_program(&r, *state, "-fno-asynchronous-unwind-tables -fno-unwind-tables");
    unwinder_set_mappings(r.unwinder, r.snapshot.mappings, r.snapshot.count, 1);
    r.count = unwinder_run(r.unwinder, r.snapshot.registers, r.snapshot.stack, r.snapshot.stack_address,
                           r.snapshot.stack_len, r.frames, FRAMES_MAX, &r.end);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.end, LOSS_no_unwind_info);
    run_deinit(&r);
}

/* Whatever the file says: no crash, no endless loop. */
TEST_WITH(hostile_files, fixture_init, stop_and_deinit)
{
    static const char *const flags[] = {
        "", "-Wl,--no-eh-frame-hdr", "-g -fno-asynchronous-unwind-tables -fno-unwind-tables",
    };
    static uint8_t good[1 << 18], bad[1 << 18];
    struct fixture *f = *state;
    const char *rounds_text = getenv("DAMAGE_ROUNDS");
    int rounds = rounds_text ? atoi(rounds_text) : 2000;
    uint64_t seed = 5;

    for (size_t kind = 0; kind < sizeof flags / sizeof flags[0]; kind++) {
        struct run r;
        char path[512];
        run_program(&r, f, flags[kind]);
        snprintf(path, sizeof path, "%s/program", f->dir);
        FILE *in = fopen(path, "re");
        assert_non_null(in);
        size_t len = fread(good, 1, sizeof good, in);
        fclose(in);
        assert_true(len > 0 && len < sizeof good);
        uint64_t section_len = 1;
        uint64_t from = fixture_section(f, "program", kind == 2 ? ".debug_frame" : ".eh_frame", &section_len);
        for (int round = 0; round < rounds; round++) {
            struct snapshot *s = &r.snapshot;
            struct unwind_mapping mappings[MAPPINGS_MAX];
            struct unwind_module *module;
            memcpy(bad, good, len);
            for (int i = 0; i < 6; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                uint64_t pick = seed >> 33;
                uint64_t where = i < 5 ? from + pick % section_len : pick % len;
                bad[where] = (uint8_t)(seed >> 24);
            }
            OK(unwind_module_open_memory(bad, round % 16 ? len : seed % len, &module));
            memcpy(mappings, s->mappings, sizeof mappings);
            for (uint32_t i = 0; i < s->count; i++)
                if (!strcmp(snapshot_path(s, i), path))
                    mappings[i].module = module;
            unwinder_set_mappings(r.unwinder, mappings, s->count, (uint64_t)round + 2);
            r.count = unwinder_run(r.unwinder, s->registers, s->stack, s->stack_address, s->stack_len, r.frames,
                                   FRAMES_MAX, &r.end);
            assert_true(r.count >= 1 && r.end && r.end < LOSS_LIMIT);
            unwind_module_close(module);
        }
        run_deinit(&r);
    }
}

/* ---- whole programs ---- */

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check_python(const char *python)
{
    static const char program[] =
        "import json, os, re, sys, functools\n"
        "def f(n):\n"
        "    if n: return functools.reduce(lambda a, b: f(n - 1), [1, 2])\n"
        "    data = {str(i): [i] * 3 for i in range(50)}\n"
        "    return sorted(json.loads(json.dumps(data)), key=lambda s: (hash(s), re.sub('1', 'x', s)))\n"
        "os.write(1, b'x')\n"
        "while True: f(3)\n";
    struct run r = {0};
    int status;
    uint32_t complete = 0, frame_count = 0, shots = 60;

    r.tid = r.snapshot.pid = start_python(python, program);
    OK(unwinder_create(machine_by_name("x86_64"), &r.unwinder));
    for (uint32_t i = 0; i < shots; i++) {
        usleep(3000);
        assert_int_equal(ptrace(PTRACE_INTERRUPT, r.tid, NULL, NULL), 0);
        assert_int_equal(waitpid(r.tid, &status, __WALL), r.tid);
        snapshot_take(&r.snapshot, r.tid);
        r.count = compare(r.unwinder, &r.snapshot, r.tid, r.frames, &r.end);
        complete += r.end == LOSS_complete;
        frame_count += r.count;
        if (i + 1 < shots)
            assert_int_equal(ptrace(PTRACE_CONT, r.tid, NULL, 0), 0);
    }
    enum { ROUNDS = 2000 };
    double begin = seconds_now();
    for (int i = 0; i < ROUNDS; i++)
        unwinder_run(r.unwinder, r.snapshot.registers, r.snapshot.stack, r.snapshot.stack_address, r.snapshot.stack_len,
                     r.frames, FRAMES_MAX, &r.end);
    print_message("%s: %u of %u stacks complete, %.0f frames each, %.2f us per frame\n", python, complete, shots,
                  (double)frame_count / shots, (seconds_now() - begin) * 1e6 / ROUNDS / r.count);
    assert_int_equal(complete, shots);
    run_deinit(&r);
}

TEST_WITH(system_python, NULL, stop_running)
{
    check_python("/usr/bin/python3");
}

TEST_WITH(pyenv_python, NULL, stop_running)
{
    check_python(pyenv_path("3.11.7/bin/python3.11"));
}
