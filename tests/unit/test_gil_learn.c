/* SPDX-License-Identifier: Apache-2.0 */
/* The GIL of an interpreter without symbols, learnt from stacks of threads that wait. */
#include "tests/unit/test.h"

#include <string.h>

#include "bpf/native_unwind.h"
#include "capture/process/gil_learn.h"

/* An interpreter and a C library, as they are mapped; and parts of the interpreter's file. */
#define PYTHON 0x500000
#define LIBC 0x900000
#define EVAL 0x1000
#define RESTORE 0x2000
#define TAKE_GIL 0x3000
#define METHOD 0x4000
#define VARIABLES 0x8000

static struct module python = {
    .python = {.is_python = true,
               .gil = {.kind = PY_GIL_LEARN},
               .restore_thread = {RESTORE, RESTORE + 0x100},
               .eval_range_count = 1,
               .eval_ranges = {{EVAL, EVAL + 0x100}}},
};
static struct elf_segment segments[] = {{0, 0, 0x6000, 0x6000, 5}, {VARIABLES, 0x6000, 0x100, 0x1000, 6}};

static struct code_pool pool;
static struct process process;

static int setup(void **state)
{
    struct code_mapping at[] = {{.address = PYTHON, .length = 0x6000, .path = "/python", .module = &python},
                                {.address = LIBC, .length = 0x6000, .path = "/libc"}};
    size_t index;

    (void)state;
    python.identity.segments = (struct elf_segments){segments, 2, 2};
    process = (struct process){
        .glibc = true, .python = &python, .python_bias = PYTHON, .start_boottime_ns = 1, .exec_generation = 2};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(code_mappings_add(&process.mappings, &pool, &at[i], &index), CODE_MAPPINGS_ADDED);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    code_mappings_deinit(&process.mappings);
    code_pool_deinit(&pool);
    return 0;
}

struct message {
    struct wire_sample sample;
    uint64_t kernel;
    struct native_frame frames[4];
};

/* A wait on `futex` with these frames, the innermost first: return addresses, but for the first. */
static struct message wait_at(uint64_t futex, uint64_t f0, uint64_t f1, uint64_t f2, uint64_t f3)
{
    return (struct message){
        .sample = {.start_boottime_ns = 1, .exec_generation = 2, .wait_kind = WIRE_WAIT_LOCK, .futex = futex, .kernel_count = 1,
                   .native_count = 4},
        .frames = {{f0 | NATIVE_EXACT, 0}, {f1, 0}, {f2, 0}, {f3, 0}},
    };
}

#define WORD (PYTHON + VARIABLES + 0x400)

/* Through a function of the interpreter, or by the eval loop itself; after a call, at the end of the code, too. */
TEST_WITH(stacks, setup, teardown)
{
    const struct message good[] = {
        wait_at(WORD, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE + 5),
        wait_at(WORD, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + EVAL + 0x100),
        wait_at(WORD, LIBC + 1, PYTHON + EVAL + 5, PYTHON + METHOD, PYTHON + METHOD),
        wait_at(WORD, LIBC + 1, PYTHON + RESTORE + 0x100, PYTHON + METHOD, PYTHON + METHOD),
    };
    const struct message bad[] = {
        wait_at(WORD, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + METHOD + 5),
        wait_at(WORD, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE),
        wait_at(WORD, LIBC + 1, PYTHON + METHOD + 1, PYTHON + METHOD + 5, PYTHON + EVAL + 5),
        wait_at(WORD, LIBC + 1, LIBC + 2, LIBC + 3, LIBC + 4),
        wait_at(WORD, PYTHON + EVAL + 4, PYTHON + EVAL + 5, PYTHON + EVAL + 6, PYTHON + EVAL + 7),
        /* Memory of no file; code; behind the variables. */
        wait_at(0x10000000, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE + 5),
        wait_at(PYTHON + EVAL, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE + 5),
        wait_at(PYTHON + VARIABLES + 0x1000, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE + 5),
        wait_at(0, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE + 5),
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (gil_learn(&process, &bad[i].sample) || process.gil_len)
            fail_msg("stack %zu is believed", i);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        process.gil_len = 0;
        if (!gil_learn(&process, &good[i].sample) || process.gil != WORD || process.gil_len != 4)
            fail_msg("stack %zu is not believed", i);
        assert_false(gil_learn(&process, &good[i].sample)); /* nothing new */
    }
}

/* The four variables lie side by side. */
TEST_WITH(range_grows, setup, teardown)
{
    static const struct {
        uint64_t futex, gil;
        uint16_t len;
    } steps[] = {{WORD, WORD, 4},
                 {WORD + 96, WORD, 100},
                 {WORD - 100, WORD - 100, 200},
                 {WORD + 8, WORD - 100, 200},
                 {WORD + 156, WORD - 100, 200}, /* too far away */
                 {WORD - 160, WORD - 100, 200},
                 {WORD + 152, WORD - 100, 256}};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        uint64_t gil = process.gil;
        uint16_t len = process.gil_len;
        struct message m = wait_at(steps[i].futex, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE + 5);
        bool news = gil_learn(&process, &m.sample);
        assert_int_equal(process.gil, steps[i].gil);
        assert_int_equal(process.gil_len, steps[i].len);
        assert_int_equal(news, process.gil != gil || process.gil_len != len);
    }
}

/* Only of the program that runs now, only where it has to be learnt, and only of waits for a lock. */
TEST_WITH(not_asked, setup, teardown)
{
    struct message m = wait_at(WORD, LIBC + 1, LIBC + 2, PYTHON + TAKE_GIL + 5, PYTHON + RESTORE + 5);

    m.sample.exec_generation = 3;
    assert_false(gil_learn(&process, &m.sample));
    m.sample.exec_generation = 2;
    m.sample.wait_kind = WIRE_WAIT_GIL;
    assert_false(gil_learn(&process, &m.sample));
    m.sample.wait_kind = WIRE_WAIT_LOCK;
    process.glibc = false; /* with musl threads sleep elsewhere */
    assert_false(gil_learn(&process, &m.sample));
    process.glibc = true;
    python.python.gil.kind = PY_GIL_RANGE;
    assert_false(gil_learn(&process, &m.sample));
    python.python.gil.kind = PY_GIL_LEARN;
    assert_true(gil_learn(&process, &m.sample));
}
