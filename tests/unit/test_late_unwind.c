/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinds this program's own stack from a copy: whole, with pages that could not be read, cut, and of nothing at all. */
#include "tests/unit/test.h"

#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "capture/process/process_table.h"
#include "capture/trace/late_unwind.h"
#include "formats/base/clock.h"

STARTS_THREADS;

enum {
    WORDS_MAX = 1 << 20,
    MODULES_MAX = 64,
    WIDE_BYTES = 10 * ARCH_PAGE_BYTES, /* of a function's variables */
    COPY_BYTES = 24 * ARCH_PAGE_BYTES,
};

/* A thread's registers, and its stack above them. */
struct taken {
    struct wire_sample sample;
    uint64_t wide_start; /* address of variables that nothing has to be read from */
    uint64_t return_at;  /* of the return address of the function that has them */
    uint8_t stack[COPY_BYTES];
};

struct fixture {
    struct modules *modules;
    struct processes *processes;
    struct process *process;
    struct tables_memory memory;
    struct tables *tables;
    struct late_unwind *unwind;
    struct taken taken;
};

static uint64_t stack_start; /* where the kernel put the arguments */

__attribute__((constructor)) static void note_stack_start(int argc, char **argv)
{
    (void)argc;
    stack_start = (uint64_t)(uintptr_t)argv;
}

/* In DWARF's order. */
static void take_registers(struct wire_sample *m, const greg_t *r)
{
    const uint64_t values[WIRE_REGISTERS] = {
        (uint64_t)r[REG_RAX], (uint64_t)r[REG_RDX], (uint64_t)r[REG_RCX], (uint64_t)r[REG_RBX], (uint64_t)r[REG_RSI],
        (uint64_t)r[REG_RDI], (uint64_t)r[REG_RBP], (uint64_t)r[REG_RSP], (uint64_t)r[REG_R8],  (uint64_t)r[REG_R9],
        (uint64_t)r[REG_R10], (uint64_t)r[REG_R11], (uint64_t)r[REG_R12], (uint64_t)r[REG_R13], (uint64_t)r[REG_R14],
        (uint64_t)r[REG_R15], (uint64_t)r[REG_RIP]};

    memcpy(m->registers, values, sizeof values);
}

/* AddressSanitizer keeps zones of a stack from being read, and knows memcpy(). */
__attribute__((noinline, no_sanitize_address)) static void copy_words(uint8_t *to, uint64_t from, uint64_t len_bytes)
{
    for (uint64_t i = 0; i < len_bytes; i += sizeof(uint64_t))
        *(volatile uint64_t *)(to + i) = *(const volatile uint64_t *)(uintptr_t)(from + i);
}

/* Has large variables, as Python's function that looks for the main script. */
__attribute__((noinline)) static void take(struct taken *t)
{
    volatile char wide[WIDE_BYTES];
    ucontext_t context;

    wide[0] = wide[WIDE_BYTES - 1] = 1;
    assert_int_equal(getcontext(&context), 0);
    take_registers(&t->sample, context.uc_mcontext.gregs);
    uint64_t sp = t->sample.registers[ARCH_SP];
    t->sample.tgid = (uint32_t)getpid();
    t->sample.stack_size = stack_start - sp;
    assert_in_range(t->sample.stack_size, WIDE_BYTES, sizeof t->stack);
    t->sample.stack_len_bytes = (uint32_t)t->sample.stack_size;
    t->wide_start = (uint64_t)(uintptr_t)wide;
    t->return_at = (uint64_t)(uintptr_t)__builtin_frame_address(0) + sizeof(uint64_t);
    copy_words(t->stack, sp, t->sample.stack_len_bytes);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct processes_options options = {0};

    assert_non_null(f);
    OK(modules_create(&f->modules));
    OK(processes_create(&options, f->modules, &f->processes));
    OK(processes_read(f->processes, (uint32_t)getpid(), true, 0, &f->process));
    assert_non_null(f->process);
    modules_settle(f->modules, now_ns() + 60 * NS_PER_S); /* on a busy machine the worker is not waited for */
    OK(processes_take_modules(f->processes));
    f->memory = (struct tables_memory){
        .words = {.words = calloc(WORDS_MAX, sizeof *f->memory.words.words), .count = WORDS_MAX, .max = WORDS_MAX},
        .modules = calloc(MODULES_MAX, sizeof *f->memory.modules),
        .module_count = MODULES_MAX,
    };
    assert_true(f->memory.words.words && f->memory.modules);
    OK(tables_create(&f->memory, f->modules, &f->tables));
    OK(late_unwind_create(f->tables, &f->unwind));
    take(&f->taken);
    /* A table that is not made yet is waited for a little; on a busy machine for longer. */
    struct late_unwind_result out;
    const uint64_t until_ns = now_ns() + 60 * NS_PER_S;
    do
        OK(late_unwind_run(f->unwind, f->process, &f->taken.sample, f->taken.stack, &out));
    while (out.end == LOSS_table_missing && now_ns() < until_ns);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    late_unwind_destroy(f->unwind);
    tables_destroy(f->tables);
    processes_destroy(f->processes);
    modules_destroy(f->modules);
    free(f->memory.words.words);
    free(f->memory.modules);
    free(f);
    return 0;
}

static struct late_unwind_result run(struct fixture *f)
{
    struct late_unwind_result out;

    OK(late_unwind_run(f->unwind, f->process, &f->taken.sample, f->taken.stack, &out));
    return out;
}

/* As if a page of the copy could not have been read. */
static void make_hole(struct taken *t, uint64_t address)
{
    uint64_t sp = t->sample.registers[ARCH_SP], page = address / ARCH_PAGE_BYTES - sp / ARCH_PAGE_BYTES;
    uint64_t from = page ? page * ARCH_PAGE_BYTES - sp % ARCH_PAGE_BYTES : 0;
    uint64_t to = (page + 1) * ARCH_PAGE_BYTES - sp % ARCH_PAGE_BYTES;

    /* The last page was copied up to the stack's start. */
    to = to < t->sample.stack_len_bytes ? to : t->sample.stack_len_bytes;
    assert_true(from < to);
    t->sample.stack_holes |= 1u << page;
    memset(t->stack + from, 0, to - from);
}

/* Pages of variables that nobody has touched yet, up to that of the stack pointer, are not needed. */
TEST_WITH(holes, set_up, tear_down)
{
    struct fixture *f = *state;
    struct native_frame whole[WIRE_NATIVE_MAX];
    struct late_unwind_result out = run(f);

    assert_true(out.count > 3);
    assert_int_equal(out.end, LOSS_complete);
    uint32_t count = out.count;
    memcpy(whole, out.frames, count * sizeof *whole);
    for (uint64_t at = f->taken.sample.registers[ARCH_SP]; at < f->taken.wide_start + WIDE_BYTES - ARCH_PAGE_BYTES;
         at += ARCH_PAGE_BYTES)
        make_hole(&f->taken, at);
    assert_true(f->taken.sample.stack_holes > 1);
    out = run(f);
    assert_int_equal(out.end, LOSS_complete);
    assert_int_equal(out.count, count);
    assert_memory_equal(out.frames, whole, count * sizeof *whole);
}

/* A page with a return address is needed: the zeros that stand in its place are not taken for the end of the stack. */
TEST_WITH(hole_that_matters, set_up, tear_down)
{
    struct fixture *f = *state;

    make_hole(&f->taken, f->taken.return_at);
    struct late_unwind_result out = run(f);
    assert_int_equal(out.end, LOSS_stack_fault);
    assert_int_equal(out.count, 1);
}

/* The stack goes on behind the copy. */
TEST_WITH(cut, set_up, tear_down)
{
    struct fixture *f = *state;

    f->taken.sample.stack_len_bytes = WIDE_BYTES / 2;
    struct late_unwind_result out = run(f);
    assert_int_equal(out.end, LOSS_stack_cut);
    assert_int_equal(out.count, 1);
}

/* No page could be read: the function that ran is known all the same, and it is told what failed. */
TEST_WITH(nothing_copied, set_up, tear_down)
{
    struct fixture *f = *state;

    f->taken.sample.stack_len_bytes = 0;
    f->taken.sample.stack_holes = UINT32_MAX;
    struct late_unwind_result out = run(f);
    assert_int_equal(out.end, LOSS_stack_fault);
    assert_int_equal(out.count, 1);
}

/* The sampler took the library of the second frame for one that was there before: the first two are kept. */
TEST_WITH(library_replaced, set_up, tear_down)
{
    struct fixture *f = *state;
    struct native_frame whole[WIRE_NATIVE_MAX];
    struct late_unwind_result out = run(f), sampled = {.frames = whole, .count = out.count, .end = LOSS_complete};
    struct wire_sample *m = &f->taken.sample;

    memcpy(whole, out.frames, out.count * sizeof *whole);
    m->time_ns = 1000;
    process_listed(f->process, 10);
    struct code_mapping *second = code_mappings_find(&f->process->mappings, whole[1].ip & NATIVE_ADDRESS);
    assert_non_null(second);
    f->process->replaced_ns = second->replaced_ns = 500;
    /* The first frame is in the same file. */
    uint32_t kept = code_mappings_find(&f->process->mappings, whole[0].ip & NATIVE_ADDRESS) == second ? 1 : 2;
    /* It brings no stack. What it has of frames that are true is not thrown away. */
    m->stack_len_bytes = 0;
    out = sampled;
    OK(late_unwind_complete(f->unwind, f->process, m, f->taken.stack, &out));
    assert_int_equal(out.count, kept);
    assert_int_equal(out.end, LOSS_no_mapping);
    assert_ptr_equal(out.frames, whole);
    assert_int_equal(out.last_cfa, whole[kept].sp);
    /* A wait that began before the library was put there has a stack of that time. */
    m->taken_ns = 400;
    out = sampled;
    OK(late_unwind_complete(f->unwind, f->process, m, f->taken.stack, &out));
    assert_int_equal(out.count, sampled.count);
    m->taken_ns = 0;
    /* With its stack it is unwound as if nothing had been. */
    m->stack_len_bytes = (uint32_t)m->stack_size;
    out = sampled;
    OK(late_unwind_complete(f->unwind, f->process, m, f->taken.stack, &out));
    assert_int_equal(out.end, LOSS_complete);
    assert_int_equal(out.count, sampled.count);
    assert_memory_equal(out.frames, whole, out.count * sizeof *whole);
    /* Without one that the sampler wanted to bring, there is the frame that ran. */
    m->stack_len_bytes = 0;
    m->stack_holes = UINT32_MAX;
    process_listed(f->process, 600);
    out = (struct late_unwind_result){.frames = whole, .count = 2, .end = LOSS_table_missing};
    OK(late_unwind_complete(f->unwind, f->process, m, f->taken.stack, &out));
    assert_int_equal(out.end, LOSS_stack_fault);
    m->flags |= WIRE_CUT; /* it was left out */
    out = (struct late_unwind_result){.frames = whole, .count = 2, .end = LOSS_table_missing};
    OK(late_unwind_complete(f->unwind, f->process, m, f->taken.stack, &out));
    assert_int_equal(out.end, LOSS_table_missing);
    assert_int_equal(out.count, 2);
}
