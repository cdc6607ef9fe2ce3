/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table unwinder, built for the host, against libunwind over the same stopped
 * process: frame by frame, address, stack pointer and CFA. A child is stopped at a known
 * place or stepped instruction by instruction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/native_unwind.h"
#include "formats/elf/identity.h"
#include "formats/elf/unwind_table.h"
#include "symbolize/unwind.h"
#include "tests/unit/stopped.h"

enum { FRAMES_MAX = 1024, MAPPINGS_MAX = 1024 };

/* ---- a process as both unwinders see it ---- */

struct module {
    char *path;
    struct unwind_module *by_libunwind;
    struct unwind_table *table;
    struct elf_identity identity;
};

struct subject {
    pid_t pid;
    struct unwind_mapping mappings[MAPPINGS_MAX];
    struct native_mapping native[MAPPINGS_MAX];
    struct module *modules[MAPPINGS_MAX]; /* by mapping; NULL: no file */
    struct module owned[MAPPINGS_MAX];
    uint32_t count, owned_count;
    uint64_t registers[17];
    uint8_t *stack, *vdso;
    uint64_t stack_address, stack_len;
    struct unwinder *libunwind;
    struct native_unwind native_unwind;
    uint64_t generation;
    uint64_t fail_from, fail_to; /* reading here fails */
    uint64_t reads;
};

static int read_for_unwind(void *ctx, void *out, uint32_t len_bytes, uint64_t address)
{
    struct subject *s = ctx;

    s->reads++;
    if (address < s->fail_to && address + len_bytes > s->fail_from)
        return -1;
    return read_memory(s->pid, address, out, len_bytes) ? 0 : -1;
}

static __u32 find_mapping(void *ctx, __u64 address, struct native_mapping *mapping, const struct unwind_table **table)
{
    struct subject *s = ctx;

    for (uint32_t i = 0; i < s->count; i++) {
        if (address < s->native[i].start || address >= s->native[i].end)
            continue;
        *mapping = s->native[i];
        *table = s->modules[i] ? s->modules[i]->table : NULL;
        return 0;
    }
    return LOSS_no_mapping;
}

static struct module *open_module(struct subject *s, const char *path, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < s->owned_count; i++)
        if (!strcmp(s->owned[i].path, path))
            return &s->owned[i];
    struct module *m = &s->owned[s->owned_count];
    if (path[0] == '/') {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        must(unwind_module_open(path, NULL, &m->by_libunwind));
        must(unwind_table_build(fd, path, &m->table));
        must(elf_identity_read(fd, path, &m->identity));
        close(fd);
    } else if (!strcmp(path, "[vdso]")) {
        s->vdso = malloc(end - start);
        assert_true(read_memory(s->pid, start, s->vdso, end - start));
        must(unwind_module_open_memory(s->vdso, end - start, &m->by_libunwind));
        must(unwind_table_build_memory(s->vdso, end - start, path, &m->table));
        must(elf_identity_read_memory(s->vdso, end - start, path, &m->identity));
    } else {
        return NULL;
    }
    m->path = strdup(path);
    s->owned_count++;
    return m;
}

static void add_mapping(struct subject *s, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
    uint32_t i = s->count++;
    struct module *m = open_module(s, path, start, end);
    struct native_mapping *n = &s->native[i];

    assert_true(s->count < MAPPINGS_MAX);
    s->modules[i] = m;
    s->mappings[i] = (struct unwind_mapping){start, end - start, offset, m ? m->by_libunwind : NULL, i};
    *n = (struct native_mapping){.start = start, .end = end, .flags = m ? 0 : NATIVE_NO_TABLE};
    if (!m)
        return;
    for (size_t k = 0; k < m->identity.segments.count; k++) {
        const struct elf_segment *seg = &m->identity.segments.data[k];
        if ((seg->flags & PF_X) && offset >= (seg->offset & ~4095ull) && offset < seg->offset + seg->file_size)
            n->base = start - offset + seg->offset - seg->vaddr + m->table->base_vaddr;
    }
    n->row_count = m->table->row_count;
    n->index_first = m->table->index_first;
    n->index_count = m->table->index_count;
    n->wide_count = m->table->wide_count;
}

/* The executable mappings; returns the end of the mapping that `sp` is in. */
static uint64_t read_maps(struct subject *s, uint64_t sp, bool add)
{
    char name[64], line[4096];
    uint64_t stack_end = 0;

    snprintf(name, sizeof name, "/proc/%d/maps", s->pid);
    FILE *maps = fopen(name, "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        uint64_t start, end, offset;
        char protection[5], path[4096] = "";
        assert_true(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
                           protection, &offset, path) >= 4);
        if (sp >= start && sp < end)
            stack_end = end;
        if (add && protection[2] == 'x' && strcmp(path, "[vsyscall]") != 0)
            add_mapping(s, start, end, offset, path);
    }
    fclose(maps);
    return stack_end;
}

static void take_snapshot(struct subject *s, pid_t tid)
{
    read_registers(tid, s->registers);
    uint64_t sp = s->registers[7] - WIRE_RED_ZONE; /* as pycap's copies begin */
    bool first = !s->count;
    if (!first && sp >= s->stack_address && sp < s->stack_address + s->stack_len) {
        s->stack_len = s->stack_address + s->stack_len - sp;
    } else {
        uint64_t end = read_maps(s, sp, first);
        assert_true(end > sp);
        s->stack_len = end - sp;
    }
    if (first)
        s->generation++;
    free(s->stack);
    s->stack_address = sp;
    s->stack = malloc(s->stack_len);
    assert_true(read_memory(s->pid, sp, s->stack, s->stack_len));
}

static void subject_deinit(struct subject *s)
{
    for (uint32_t i = 0; i < s->owned_count; i++) {
        unwind_module_close(s->owned[i].by_libunwind);
        unwind_table_destroy(s->owned[i].table);
        elf_identity_deinit(&s->owned[i].identity);
        free(s->owned[i].path);
    }
    free(s->stack);
    free(s->vdso);
    unwinder_destroy(s->libunwind);
    free(s);
}

static struct subject *subject_create(pid_t pid)
{
    struct subject *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->pid = pid;
    must(unwinder_create(&s->libunwind));
    return s;
}

/* ---- both, and what differs ---- */

static void run_native(struct subject *s, struct native_frame *frames)
{
    struct native_unwind *u = &s->native_unwind;

    for (int i = 0; i < 17; i++)
        u->registers[i] = s->registers[i];
    u->memory = (struct walk_memory){read_for_unwind, s};
    u->host = (struct native_host){find_mapping, s, NULL};
    native_begin(u);
    while (!native_step(u, frames))
        ;
}

static void print_frames(const struct subject *s, const struct native_frame *ours, const struct unwind_frame *theirs,
                         uint32_t their_count, uint32_t their_end)
{
    const struct native_unwind *u = &s->native_unwind;

    for (uint32_t i = 0; i < u->count || i < their_count; i++)
        print_message("%2u: %12llx%s sp %12llx | libunwind %12" PRIx64 "%s sp %12" PRIx64 " cfa %12" PRIx64 " %s\n", i,
                      i < u->count ? ours[i].ip & NATIVE_ADDRESS : 0, i < u->count && ours[i].ip & NATIVE_EXACT ? "!" : " ",
                      i < u->count ? ours[i].sp : 0, i < their_count ? theirs[i].ip : 0,
                      i < their_count && !theirs[i].return_address ? "!" : " ", i < their_count ? theirs[i].sp : 0,
                      i < their_count ? theirs[i].cfa : 0,
                      i < their_count && theirs[i].mapping != UINT32_MAX && s->modules[theirs[i].mapping]
                          ? s->modules[theirs[i].mapping]->path : "");
    print_message("end %u other %u | %u\n", u->end, u->other, their_end);
}

struct tally {
    uint32_t stacks, frames, complete, unsupported;
    uint32_t differing;
    uint32_t wide, by_rbx; /* frames over wide rows, and of those with RBX as base */
};

/* How many frames needed more than a plain row. */
static void count_wide(struct subject *s, const struct native_frame *frames, struct tally *tally)
{
    for (uint32_t i = 0; i < s->native_unwind.count; i++) {
        struct native_mapping mapping;
        const struct unwind_table *t;
        uint64_t at = (frames[i].ip & NATIVE_ADDRESS) - !(frames[i].ip & NATIVE_EXACT);
        if (find_mapping(s, at, &mapping, &t) || !t)
            continue;
        struct unwind_row row = unwind_table_lookup(t, at - mapping.base + t->base_vaddr);
        if (UNWIND_TYPE(row.type) != UNWIND_WIDE)
            continue;
        tally->wide++;
        tally->by_rbx += t->wide[row.cfa8].cfa.base == NATIVE_RBX;
    }
}

static void compare(struct subject *s, struct tally *tally)
{
    static struct native_frame ours[NATIVE_MAX];
    static struct unwind_frame theirs[FRAMES_MAX];
    struct native_unwind *u = &s->native_unwind;
    uint32_t end;

    unwinder_set_mappings(s->libunwind, s->mappings, s->count, s->generation);
    uint32_t count = unwinder_run(s->libunwind, s->registers, s->stack, s->stack_address, s->stack_len, theirs,
                                  FRAMES_MAX, &end);
    run_native(s, ours);
    /* Where we cannot go on and say so, what there is must be right. */
    bool unsupported = u->end == LOSS_register_unsupported && end != u->end;
    bool same = unsupported ? u->count <= count : u->count == count && u->end == end;
    for (uint32_t i = 0; same && i < u->count; i++) {
        same = (ours[i].ip & NATIVE_ADDRESS) == theirs[i].ip && !(ours[i].ip & NATIVE_EXACT) == theirs[i].return_address &&
               ours[i].sp == theirs[i].sp;
        if (i + 1 < u->count)
            same = same && ours[i + 1].sp == theirs[i].cfa;
    }
    if (same && !unsupported && u->last_cfa != UINT64_MAX)
        same = u->last_cfa == theirs[count - 1].cfa;
    count_wide(s, ours, tally);
    tally->stacks++;
    tally->frames += u->count;
    tally->complete += u->end == LOSS_complete;
    tally->unsupported += unsupported;
    tally->differing += !same;
    if (!same && tally->differing < 4)
        print_frames(s, ours, theirs, count, end);
}

static void print_tally(const char *name, const struct tally *t)
{
    print_message("%s: %u stacks, %u frames, %u differ from libunwind's, %u complete, %u end at an unsupported row; %u frames over "
                  "wide rows, %u of them by RBX\n", name, t->stacks, t->frames, t->differing, t->complete, t->unsupported,
                  t->wide, t->by_rbx);
}

/* ---- places to be stopped at ---- */

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

/* Code that a program made: calls what rdi says. */
PLACE static void place_made(const uint8_t *code, size_t len_bytes)
{
    uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memcpy(p, code, len_bytes);
    ((void (*)(void (*)(void)))(uintptr_t)p)(place_leaf);
    sink++;
}
/* As CPython 3.12's trampolines, as later ones, and with something else on the stack. */
PLACE static void place_trampoline_312(void)
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
    place_made(code, sizeof code);
}
PLACE static void place_trampoline_313(void)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    place_made(code, sizeof code);
}
PLACE static void place_frame_pointer(void)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3};
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
static void test_places(void **state)
{
    static void (*const places[])(void) = {place_recursion_50, place_recursion_900, place_alloca_1000, place_alloca_30000,
                                           place_aligned_100, place_red_zone_100, place_signal, place_qsort,
                                           place_thread};
    struct tally tally = {0};

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        pid_t pid, tid = start(places[i], &pid);
        struct subject *s = subject_create(pid);
        take_snapshot(s, tid);
        compare(s, &tally);
        subject_deinit(s);
        stop_running(NULL);
    }
    print_tally("places", &tally);
    assert_int_equal(tally.complete, tally.stacks);
    assert_int_equal(tally.differing, 0);
    assert_int_equal(tally.unsupported, 0);
}

/* Instruction by instruction: prologues, epilogues, PLT, the resolver, signal delivery and return. */
static void step_through(const char *name, void (*place)(void), int steps)
{
    struct tally tally = {0};
    int status;
    pid_t pid, tid = start(place, &pid);
    struct subject *s = subject_create(pid);

    for (int i = 0; i < steps; i++) {
        take_snapshot(s, tid);
        compare(s, &tally);
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, tid, NULL, 0), 0);
        if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            break;
    }
    subject_deinit(s);
    stop_running(NULL);
    print_tally(name, &tally);
    assert_int_equal(tally.differing, 0);
    assert_int_equal(tally.unsupported, 0);
    assert_int_equal(tally.complete, tally.stacks);
}

static void test_steps(void **state)
{
    (void)state;
    step_through("steps through qsort", place_qsort, 3000);
    step_through("steps out of a signal handler", place_signal, 300);
    step_through("steps through the resolver and the vdso", place_resolver, 8000);
}

static void test_made_code(void **state)
{
    static void (*const places[])(void) = {place_trampoline_312, place_trampoline_313, place_frame_pointer};
    static struct native_frame frames[NATIVE_MAX];

    (void)state;
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
        subject_deinit(s);
        stop_running(NULL);
    }
}

/* ---- trouble ---- */

static void test_faults(void **state)
{
    static struct native_frame whole[NATIVE_MAX], frames[NATIVE_MAX];
    pid_t pid, tid = start(place_recursion_50, &pid);
    struct subject *s = subject_create(pid);

    (void)state;
    take_snapshot(s, tid);
    run_native(s, whole);
    uint32_t count = s->native_unwind.count;
    assert_int_equal(s->native_unwind.end, LOSS_complete);
    s->reads = 0;
    run_native(s, whole);
    print_message("%u frames with %" PRIu64 " reads\n", count, s->reads);
    assert_true(s->reads <= 4);
    for (uint64_t at = s->stack_address; at < s->stack_address + 3000; at += 8) {
        s->fail_from = at;
        s->fail_to = UINT64_MAX;
        run_native(s, frames);
        if (s->native_unwind.end != LOSS_complete)
            assert_int_equal(s->native_unwind.end, LOSS_native_fault);
        assert_true(s->native_unwind.count <= count);
        assert_memory_equal(frames, whole, s->native_unwind.count * sizeof *frames);
        assert_true(s->native_unwind.end == LOSS_complete || s->native_unwind.last_cfa == UINT64_MAX);
    }
    s->fail_from = s->fail_to = 0;
    s->registers[16] = 0x1234;
    run_native(s, frames);
    assert_int_equal(s->native_unwind.end, LOSS_no_mapping);
    assert_int_equal(s->native_unwind.count, 1);
    subject_deinit(s);
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
        const struct native_mapping *m = &n->s->native[(n->seed >> 33) % n->s->count];
        uint64_t value = n->seed >> 60 < 8 ? m->start + (n->seed >> 7) % (m->end - m->start)
                         : n->seed >> 60 < 14 ? address + (n->seed >> 20) % 4096 : n->seed;
        memcpy(p + i, &value, len_bytes - i < 8 ? len_bytes - i : 8);
    }
    return 0;
}

static void test_noise(void **state)
{
    static struct native_frame frames[NATIVE_MAX];
    pid_t pid, tid = start(place_qsort, &pid);
    struct subject *s = subject_create(pid);
    struct noise noise = {s, 1};
    struct native_unwind *u = &s->native_unwind;
    uint32_t ends[LOSS_LIMIT] = {0};

    (void)state;
    take_snapshot(s, tid);
    for (int round = 0; round < 50000; round++) {
        for (int i = 0; i < 17; i++)
            read_noise(&noise, &u->registers[i], 8, s->stack_address + 8);
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
    subject_deinit(s);
    stop_running(NULL);
}

/* ---- whole programs ---- */

static bool spawn(char *const argv[], pid_t *pid)
{
    int ready[2], status;
    char byte;

    if (access(argv[0], X_OK) || pipe(ready))
        return false;
    *pid = running = fork();
    if (!*pid) {
        dup2(ready[1], 1);
        close(ready[0]);
        close(ready[1]);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ready[1]);
    bool ok = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!ok)
        waitpid(*pid, &status, 0);
    return ok;
}

static void check_python(const char *python)
{
    static char program[] =
        "import json, os, re, sys, functools, zlib, hashlib, decimal, signal\n"
        "def f(n):\n"
        "    if n: return functools.reduce(lambda a, b: f(n - 1), [1, 2])\n"
        "    data = dict((str(i), [i] * 3) for i in range(50))\n"
        "    hashlib.sha256(zlib.compress(json.dumps(data).encode())).hexdigest(), decimal.Decimal(2).sqrt()\n"
        "    return sorted(json.loads(json.dumps(data)), key=lambda s: (hash(s), re.sub('1', 'x', s)))\n"
        "f(1)\n"
        "signal.signal(signal.SIGALRM, lambda *a: f(1))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)\n"
        "os.write(1, b'x')\n"
        "while True: f(3)\n";
    char *argv[] = {(char *)python, "-c", program, NULL};
    struct tally tally = {0};
    pid_t pid = 0;
    int status;

    if (!spawn(argv, &pid)) {
        print_message("%s is not there or does not start\n", python);
        skip();
    }
    struct subject *s = subject_create(pid);
    assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_EXITKILL), 0);
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
    subject_deinit(s);
    stop_running(NULL);
    print_tally(python, &tally);
    assert_int_equal(tally.differing, 0);
    assert_int_equal(tally.unsupported, 0);
    assert_int_equal(tally.complete, tally.stacks);
}

static void test_system_python(void **state)
{
    (void)state;
    check_python("/usr/bin/python3");
}

static void check_pyenv(const char *version)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/.pyenv/versions/%s", getenv("HOME") ? getenv("HOME") : "", version);
    check_python(path);
}

static void test_python_38(void **state)
{
    (void)state;
    check_pyenv("3.8.18/bin/python3.8");
}
static void test_python_311(void **state)
{
    (void)state;
    check_pyenv("3.11.7/bin/python3.11");
}
static void test_python_313(void **state)
{
    (void)state;
    check_pyenv("3.13.0/bin/python3.13");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_places, stop_running),
        cmocka_unit_test_teardown(test_steps, stop_running),
        cmocka_unit_test_teardown(test_made_code, stop_running),
        cmocka_unit_test_teardown(test_faults, stop_running),
        cmocka_unit_test_teardown(test_noise, stop_running),
        cmocka_unit_test_teardown(test_system_python, stop_running),
        cmocka_unit_test_teardown(test_python_38, stop_running),
        cmocka_unit_test_teardown(test_python_311, stop_running),
        cmocka_unit_test_teardown(test_python_313, stop_running),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
