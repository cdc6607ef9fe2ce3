/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of mixed stacks, by hand-written cases. Each names its frames, outermost first:
 * native frames by letters (capital: call machinery by name; a digit before them begins another
 * module, 0 memory without a file, where a capital is a trampoline by name, and others are by their code), Python frames by runs ("ab c": two runs), joins by the native frame's name or "?".
 */
#include "tests/unit/test.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "symbolize/stack/builtin_modules.h"
#include "symbolize/stack/interpreter_names.h"
#include "symbolize/stack/merge.h"

enum { MOST = 64 };

struct scene {
    const char *native, *python, *joins, *kernel;
    uint32_t python_end, native_end; /* 0: complete where there is such a stack */
    bool show_interpreter, hide_interpreter; /* neither: the view that hides calls only */
    bool is_part;
    uint32_t reason; /* of joins that are "?" */
    const char *eval, *clears, *greenlet; /* native frames that are such */
    const char *own, *library, *builtin; /* of the interpreter's own binary, the C library, built-in modules */
    const char *made; /* in memory without a file, and no trampolines */
    const char *api; /* without a name, or with one of the C API */
    const char *serves, *passes; /* called without the caller's doing; generated code that only passes a call on */
    /* What came of it. */
    uint32_t joined, unjoined, join_end, no_frame;
    bool in_interpreter;
};

static bool names(const char *list, char frame)
{
    return list && strchr(list, frame);
}

static void lay_out(struct scene *s, char *text)
{
    struct merge_native native[MOST] = {0};
    bool run_start[MOST] = {0};
    struct merge_run runs[MOST] = {0};
    char native_names[MOST], python_names[MOST];
    struct merge_input in = {.native = native,
                             .run_start = run_start,
                             .runs = runs,
                             .interpreter = s->show_interpreter   ? MERGE_SHOW_ALL
                                            : s->hide_interpreter ? MERGE_HIDE_INTERPRETER
                                                                  : MERGE_HIDE_CALLS,
                             .is_part = s->is_part,
                             .kernel_count = s->kernel ? (uint32_t)strlen(s->kernel) : 0};
    struct merge_output out = {0};
    uint32_t module = 1;

    for (const char *p = s->native ? s->native : ""; *p; p++) {
        if (isdigit((unsigned char)*p)) {
            module = *p == '0' ? MERGE_NO_MODULE : (uint32_t)(*p - '0');
            continue;
        }
        native_names[in.native_count] = *p;
        bool known = isupper((unsigned char)*p), machinery = known && module != MERGE_NO_MODULE;
        native[in.native_count++] = (struct merge_native){.module = module,
                                                          .function_count = 1,
                                                          .outer_machinery = machinery,
                                                          .inner_machinery = machinery,
                                                          .trampoline = known && !machinery,
                                                          .forwards = module == MERGE_NO_MODULE && !names(s->made, *p),
                                                          .eval_loop = names(s->eval, *p),
                                                          .clears_frame = names(s->clears, *p),
                                                          .owner = names(s->own, *p)       ? MERGE_OWNER_INTERPRETER
                                                                   : names(s->library, *p) ? MERGE_OWNER_C_LIBRARY
                                                                                           : MERGE_OWNER_OTHER,
                                                          .kept = names(s->builtin, *p),
                                                          .foreign = !names(s->api, *p),
                                                          .serves_caller = names(s->serves, *p),
                                                          .helpers = names(s->passes, *p),
                                                          .switches_stacks = names(s->greenlet, *p)};
    }
    bool start = true;
    for (const char *p = s->python ? s->python : ""; *p; p++) {
        if (*p == ' ') {
            start = true;
            continue;
        }
        python_names[in.python_count] = *p;
        run_start[in.python_count++] = start;
        start = false;
    }
    for (const char *p = s->joins ? s->joins : ""; *p; p++) {
        struct merge_run *run = &runs[in.run_count++];
        run->reason = s->reason ? s->reason : LOSS_join_no_record;
        for (uint32_t i = 0; i < in.native_count; i++) {
            if (native_names[i] == *p)
                *run = (struct merge_run){.native = i + 1};
        }
    }
    in.python_end = s->python_end ? s->python_end : in.python_count ? LOSS_complete : 0;
    in.native_end = s->native_end ? s->native_end : in.native_count ? LOSS_complete : 0;
    assert_true(merge_layout(&in, &out));
    for (size_t i = 0; i < out.slots.count; i++) {
        struct merge_slot slot = out.slots.data[i];
        switch (slot.kind) {
        case MERGE_KERNEL:
            *text++ = s->kernel[slot.index];
            break;
        case MERGE_NATIVE:
            *text++ = native_names[slot.index];
            break;
        case MERGE_PYTHON:
            *text++ = python_names[slot.index];
            break;
        case MERGE_TORN:
            *text++ = '!';
            break;
        case MERGE_TRUNCATED:
            *text++ = '/';
            break;
        case MERGE_NO_PYTHON:
            *text++ = '-';
            break;
        }
    }
    *text = 0;
    s->joined = out.joined_count;
    s->unjoined = out.unjoined_count;
    s->join_end = out.join_end;
    s->no_frame = out.no_frame;
    s->in_interpreter = out.in_interpreter;
    merge_output_deinit(&out);
}

#define EXPECT(golden, ...)                                                                                            \
    do {                                                                                                               \
        struct scene scene_ = {__VA_ARGS__};                                                                           \
        char text_[4 * MOST];                                                                                          \
        lay_out(&scene_, text_);                                                                                       \
        assert_string_equal(text_, golden);                                                                            \
    } while (0)

/* The joined frames `e` and `f` are the eval loop. */

TEST(one_run)
{
    EXPECT("mabc", .native = "me", .python = "abc", .joins = "e");
    /* C called by the Python leaf, and the kernel below. */
    EXPECT("mabcrsK", .native = "mers", .python = "abc", .joins = "e", .kernel = "K");
    EXPECT("mabcrsKL", .native = "mers", .python = "abc", .joins = "e", .kernel = "KL");
}

TEST(callback_between_two_runs)
{
    struct scene s = {.native = "melf", .python = "ab k", .joins = "ef"};
    char text[MOST];

    lay_out(&s, text);
    assert_string_equal(text, "mablk");
    assert_int_equal(s.joined, 2);
    assert_int_equal(s.unjoined, 0);
    assert_int_equal(s.join_end, LOSS_complete);
    /* Functions of C that do work stay between any number of runs. */
    EXPECT("malbmcnd", .native = "melfmgnh", .python = "a b c d", .joins = "efgh");
}

TEST(machinery_is_hidden_where_it_adjoins)
{
    /* V calls the eval loop, W is called by it. */
    EXPECT("mablk", .native = "mVeWlVf", .python = "ab k", .joins = "ef");
    /* A chain of it. */
    EXPECT("mak", .native = "mVWeXYZf", .python = "a k", .joins = "ef");
    EXPECT("mablk", .native = "mABeCDlEFf", .python = "ab k", .joins = "ef");
    /* At the leaf. */
    EXPECT("ma", .native = "meV", .python = "a", .joins = "e");
}

TEST(machinery_stays_elsewhere)
{
    /* Between two functions of C it passes no call of Python on. */
    EXPECT("maxVy", .native = "mexVy", .python = "a", .joins = "e");
    /* Another module has a function of the same name. */
    EXPECT("maVx", .native = "1me2V1x", .python = "a", .joins = "e");
    EXPECT("Vax", .native = "2V1ex", .python = "a", .joins = "e");
    /* No run, no machinery. */
    EXPECT("mVex", .native = "mVex");
}

/* -X perf: t and u are code in memory without a file. */
TEST(trampolines)
{
    EXPECT("mablk", .native = "1mV0t1eWlV0u1f", .python = "ab k", .joins = "ef");
    EXPECT("mVteabWlVufk", .native = "1mV0t1eWlV0u1f", .python = "ab k", .joins = "ef", .show_interpreter = true);
    /* What made code calls that is no eval loop, what the eval loop calls, and two in a row: shown. */
    EXPECT("matlbux", .native = "1me0t1lf0u1x", .python = "a b", .joins = "ef");
    EXPECT("mta", .native = "1m0tu1e", .python = "a", .joins = "e");
    EXPECT("mtVx", .native = "1m0t1Vx");
    EXPECT("amteV", .native = "1m0t1eV", .python = "a", .joins = "?");
    /* The eval loop itself is made code. */
    EXPECT("mta", .native = "1m0te", .python = "a", .joins = "e");
}

/* Code that a JIT made is work, between Python functions as well: t has called the eval loop e, or f. */
TEST(made_code)
{
    EXPECT("matk", .native = "1me0t1f", .python = "a k", .joins = "ef", .eval = "ef", .made = "t");
    EXPECT("matk", .native = "1me0t1Vf", .python = "a k", .joins = "ef", .eval = "ef", .made = "t");
    EXPECT("matk", .native = "1meV0t1f", .python = "a k", .joins = "ef", .eval = "ef", .made = "t");
    EXPECT("atk", .native = "1me0t1f", .python = "a k", .joins = "ef", .eval = "ef", .made = "t", .own = "mef", .hide_interpreter = true);
    EXPECT("mtb", .native = "1m0t1b", .eval = "b", .made = "t", .python_end = LOSS_complete);
    /* Beside a trampoline, with -X perf. */
    EXPECT("matk", .native = "1meV0t1V0u1f", .python = "a k", .joins = "ef", .eval = "ef", .made = "t");
}

/* The eval loop at the beginning or end of a call: what is shown of it is the same with a trampoline as without. */
TEST(trampolines_without_run)
{
    EXPECT("mab", .native = "1meVb", .python = "a", .joins = "e", .eval = "eb");
    EXPECT("mab", .native = "1meV0T1b", .python = "a", .joins = "e", .eval = "eb");
    EXPECT("mab", .native = "1meV0t1b", .python = "a", .joins = "e", .eval = "eb");
    EXPECT("malWb", .native = "1melWb", .python = "a", .joins = "e", .eval = "eb");
    EXPECT("malWb", .native = "1melWV0T1b", .python = "a", .joins = "e", .eval = "eb");
    EXPECT("malWb", .native = "1melWV0t1b", .python = "a", .joins = "e", .eval = "eb");
    /* No function of the interpreter that does work. */
    EXPECT("malWvb", .native = "1melWv0T1b", .python = "a", .joins = "e", .eval = "eb");
    /* It has called nothing yet, or has returned. What is nameless may be anything then. */
    EXPECT("malWK", .native = "1melWV0T", .python = "a", .joins = "e", .eval = "e", .kernel = "K");
    EXPECT("mat", .native = "1meV0t", .python = "a", .joins = "e", .eval = "e");
    /* An object of the frame that is gone runs Python. */
    EXPECT("mabcdk", .native = "1meV0T1bcdV0U1f", .python = "a k", .joins = "ef", .eval = "ebf");
    /* The first frame of all, and runs whose place is not known. */
    EXPECT("mb", .native = "1m0T1b", .eval = "b", .python_end = LOSS_complete);
    EXPECT("ambe", .native = "1mV0T1b0t1e", .python = "a", .joins = "?", .eval = "be");
    /* They are all there is. */
    EXPECT("!mVTb", .native = "1mV0T1b", .eval = "b", .python_end = LOSS_python_torn);
    EXPECT("mVTb", .native = "1mV0T1b", .eval = "b", .python_end = LOSS_no_thread_state);
    EXPECT("melWVTb", .native = "1melWV0T1b", .eval = "eb");
    EXPECT("mealWVTb", .native = "1melWV0T1b", .python = "a", .joins = "e", .eval = "eb", .show_interpreter = true);
}

#define EXPECT_BARE(causes, ...)                                                                                       \
    do {                                                                                                               \
        struct scene scene_ = {__VA_ARGS__};                                                                           \
        char text_[4 * MOST];                                                                                          \
        lay_out(&scene_, text_);                                                                                       \
        assert_int_equal(scene_.no_frame, causes);                                                                         \
    } while (0)

/* Activations without a run, by cause. `e` and `f` are joined, `b` and `d` are not. */
TEST(bare)
{
    enum { EDGE = 1 << MERGE_NO_FRAME_EDGE, CLEARING = 1 << MERGE_NO_FRAME_CLEARING, GREENLET = 1 << MERGE_NO_FRAME_GREENLET,
           OTHER = 1 << MERGE_NO_FRAME_OTHER };

    EXPECT_BARE(0, .native = "melfr", .python = "a k", .joins = "ef", .eval = "ef");
    EXPECT_BARE(EDGE, .native = "melb", .python = "a", .joins = "e", .eval = "eb");
    EXPECT_BARE(EDGE, .native = "melbccccccccc", .python = "a", .joins = "e", .eval = "eb", .clears = "c");
    EXPECT_BARE(EDGE, .native = "mb", .eval = "b", .python_end = LOSS_complete);
    /* The same whether the interpreter is shown or not, and with two runs of one frame. */
    EXPECT_BARE(EDGE, .native = "melb", .python = "a b", .joins = "ee", .eval = "eb", .show_interpreter = true);
    EXPECT_BARE(CLEARING, .native = "mebclf", .python = "a k", .joins = "ef", .eval = "ebf", .clears = "c");
    EXPECT_BARE(CLEARING, .native = "meblf", .python = "a k", .joins = "ef", .eval = "ebf", .clears = "b");
    EXPECT_BARE(CLEARING | EDGE, .native = "mebcld", .python = "a", .joins = "e", .eval = "ebd", .clears = "c");
    EXPECT_BARE(OTHER, .native = "meblcf", .python = "a k", .joins = "ef", .eval = "ebf", .clears = "c");
    EXPECT_BARE(OTHER, .native = "mbef", .python = "a k", .joins = "ef", .eval = "ebf");
    EXPECT_BARE(GREENLET | EDGE, .native = "mbgged", .python = "a", .joins = "e", .eval = "ebd", .greenlet = "g");
    /* A greenlet that has not begun, or that was switched to from here, is no beginning. */
    EXPECT_BARE(EDGE, .native = "mebg", .python = "a", .joins = "e", .eval = "eb", .greenlet = "g");
    EXPECT_BARE(OTHER, .native = "mbefg", .python = "a k", .joins = "ef", .eval = "ebf", .greenlet = "g");
    /* Others say what is missing there. */
    EXPECT_BARE(0, .native = "mbef", .python = "a k", .joins = "ef", .eval = "ebf", .python_end = LOSS_python_too_deep);
    EXPECT_BARE(0, .native = "mbef", .python = "c a k", .joins = "?ef", .eval = "ebf");
    EXPECT_BARE(0, .native = "mb", .eval = "b", .python_end = LOSS_no_thread_state);
}

/* The compiler inlines call machinery into functions that work, and the other way round. */
TEST(inlined_machinery)
{
    const struct merge_native native[] = {
        {.function_count = 3, .inner_machinery = 2},                       /* gen_send_ex2, with shims inlined */
        {.function_count = 2},                                             /* joined */
        {.function_count = 3, .outer_machinery = 1},                       /* a shim, with work inlined */
        {.function_count = 2, .outer_machinery = 2, .inner_machinery = 2}, /* nothing but shims */
        {.function_count = 4},                                             /* joined */
        {.function_count = 3, .outer_machinery = 1, .inner_machinery = 1}, /* work between shims, at the leaf */
    };
    const bool run_start[] = {true, true};
    const struct merge_run runs[] = {{.native = 2}, {.native = 5}};
    struct merge_input in = {.native = native,
                             .native_count = 6,
                             .run_start = run_start,
                             .python_count = 2,
                             .runs = runs,
                             .run_count = 2,
                             .python_end = LOSS_complete,
                             .native_end = LOSS_complete,
                             .interpreter = MERGE_HIDE_CALLS};
    const struct merge_slot expected[] = {
        {MERGE_NATIVE, 0, 1}, {MERGE_PYTHON, 0, 0}, {MERGE_NATIVE, 2, 6}, {MERGE_PYTHON, 1, 0}, {MERGE_NATIVE, 5, 6},
    };
    struct merge_output out = {0};

    assert_true(merge_layout(&in, &out));
    assert_int_equal(out.slots.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(out.slots.data[i].kind, expected[i].kind);
        assert_int_equal(out.slots.data[i].index, expected[i].index);
        assert_int_equal(out.slots.data[i].functions, expected[i].functions);
    }
    in.interpreter = MERGE_SHOW_ALL;
    assert_true(merge_layout(&in, &out));
    assert_int_equal(out.slots.count, 8);
    assert_int_equal(out.slots.data[0].functions, 7);
    merge_output_deinit(&out);
}

TEST(show_interpreter)
{
    EXPECT("mVeabWlVfk", .native = "mVeWlVf", .python = "ab k", .joins = "ef", .show_interpreter = true);
    EXPECT("eaK", .native = "e", .python = "a", .joins = "e", .kernel = "K", .show_interpreter = true);
}

TEST(unknown_runs_stand_above)
{
    struct scene s = {.native = "melf", .python = "ab k", .joins = "??", .reason = LOSS_join_outside};
    char text[MOST];

    lay_out(&s, text);
    assert_string_equal(text, "abkmelf");
    assert_int_equal(s.unjoined, 2);
    assert_int_equal(s.join_end, LOSS_join_outside);
    /* Known ones keep their place; the unknown go to the outer end of the gap they lie in. */
    EXPECT("ambxcy", .native = "mexfy", .python = "a b c", .joins = "?ef");
    EXPECT("mabxcy", .native = "mexfy", .python = "a b c", .joins = "e?f");
    EXPECT("maxbcy", .native = "mexfy", .python = "a b c", .joins = "ef?");
    EXPECT("mabcdx", .native = "mex", .python = "a b c d", .joins = "e???");
    EXPECT("abcmdx", .native = "mex", .python = "a b c d", .joins = "???e");
}

TEST(impossible_join_is_not_believed)
{
    struct scene s = {.native = "melf", .python = "a b", .joins = "fe"};
    char text[MOST];

    lay_out(&s, text);
    assert_string_equal(text, "abmelf");
    assert_int_equal(s.join_end, LOSS_join_mismatch);
    /* More or fewer runs than the Python stack has. */
    EXPECT("abmelf", .native = "melf", .python = "a b", .joins = "e");
    EXPECT("abmelf", .native = "melf", .python = "a b", .joins = "eff");
    EXPECT("abmelf", .native = "melf", .python = "a b");
    /* Two records in one frame, as when the unwinder skipped one, do keep their order. */
    EXPECT("mabl", .native = "mel", .python = "a b", .joins = "ee");
}

TEST(index_outside)
{
    const struct merge_native native[2] = {{.function_count = 1}, {.function_count = 1}};
    const bool run_start[1] = {true};
    const struct merge_run run = {.native = 3};
    struct merge_input in = {.native = native,
                             .native_count = 2,
                             .run_start = run_start,
                             .python_count = 1,
                             .runs = &run,
                             .run_count = 1,
                             .python_end = LOSS_complete,
                             .native_end = LOSS_complete,
                             .interpreter = MERGE_HIDE_CALLS};
    struct merge_output out = {0};

    assert_true(merge_layout(&in, &out));
    assert_int_equal(out.slots.count, 3);
    assert_int_equal(out.slots.data[0].kind, MERGE_PYTHON);
    assert_int_equal(out.join_end, LOSS_join_mismatch);
    merge_output_deinit(&out);
}

TEST(parts_missing)
{
    struct scene python_only = {.python = "ab c", .joins = "??", .kernel = "K"};
    struct scene failed = {.python = "ab", .joins = "?", .native_end = LOSS_no_user_registers};
    char text[MOST];

    lay_out(&python_only, text);
    assert_string_equal(text, "abcK");
    assert_int_equal(python_only.join_end, 0); /* nothing was asked for, so nothing is missing */
    lay_out(&failed, text);
    assert_string_equal(text, "ab");
    assert_int_equal(failed.join_end, LOSS_join_no_native);
    EXPECT("", .native = NULL);
    EXPECT("KL", .kernel = "KL");
    EXPECT("mxK", .native = "mx", .kernel = "K");
}

TEST(marks_of_python)
{
    EXPECT("!ab", .python = "ab", .python_end = LOSS_python_torn);
    EXPECT("/ab", .python = "ab", .python_end = LOSS_python_too_deep);
    /* The mark stands where frames are missing: before the outermost run, inside what is known to call it. */
    EXPECT("m!abx", .native = "mex", .python = "ab", .joins = "e", .python_end = LOSS_python_fault);
    EXPECT("mex!abl", .native = "mexfl", .python = "ab", .joins = "f", .python_end = LOSS_python_torn);
    EXPECT("!abmex", .native = "mex", .python = "ab", .joins = "?", .python_end = LOSS_python_torn);
    /* Read while it changed: the inner frames are missing, and the mark stands there. */
    EXPECT("ab!", .python = "ab", .python_end = LOSS_python_changed);
    EXPECT("!", .python_end = LOSS_python_changed);
    /* Nothing was read at all. */
    EXPECT("!mex", .native = "mex", .python_end = LOSS_python_torn);
    EXPECT("!", .python_end = LOSS_thread_state_fault);
    /* A thread without Python is whole as it is. */
    EXPECT("mx", .native = "mx", .python_end = LOSS_no_thread_state);
}

TEST(marks_of_native)
{
    EXPECT("/xy", .native = "xy", .native_end = LOSS_no_unwind_info);
    EXPECT("/xy", .native = "xy", .native_end = LOSS_no_unwind_info, .python_end = LOSS_no_thread_state);
    /* With Python from its root on the way is known. */
    EXPECT("ax", .native = "ex", .python = "a", .joins = "e", .native_end = LOSS_native_too_deep);
    EXPECT("abx", .native = "ex", .python = "a b", .joins = "?e", .native_end = LOSS_native_too_deep);
    /* One mark is enough at one place; two places have two. */
    EXPECT("!ax", .native = "x", .python = "a", .joins = "?", .native_end = LOSS_native_fault,
           .python_end = LOSS_python_torn);
    EXPECT("/w!ax", .native = "wex", .python = "a", .joins = "e", .native_end = LOSS_native_fault,
           .python_end = LOSS_python_torn);
}

TEST(cut_run_at_the_outer_end)
{
    /* The outermost run lost its outermost frame, and with it the flag that begins a run. */
    const struct merge_native native[4] = {
        {.function_count = 1}, {.function_count = 1}, {.function_count = 1}, {.function_count = 1}};
    const bool run_start[3] = {false, false, true};
    const struct merge_run runs[2] = {{.native = 2}, {.native = 4}};
    struct merge_input in = {.native = native,
                             .native_count = 4,
                             .run_start = run_start,
                             .python_count = 3,
                             .runs = runs,
                             .run_count = 2,
                             .python_end = LOSS_python_too_deep,
                             .native_end = LOSS_complete,
                             .interpreter = MERGE_HIDE_CALLS};
    const enum merge_kind kinds[] = {MERGE_NATIVE, MERGE_TRUNCATED, MERGE_PYTHON,
                                     MERGE_PYTHON, MERGE_NATIVE,    MERGE_PYTHON};
    struct merge_output out = {0};

    assert_true(merge_layout(&in, &out));
    assert_int_equal(out.slots.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(out.slots.data[i].kind, kinds[i]);
    assert_int_equal(out.join_end, LOSS_complete);
    merge_output_deinit(&out);
}

/* 1,000 activations, each with a C function in between: what a recursive sort does. */
TEST(deep)
{
    enum { RUNS = 1000, NATIVE = 2 * RUNS, PYTHON = 3 * RUNS };
    struct merge_native *native = calloc(NATIVE, sizeof *native);
    bool *run_start = calloc(PYTHON, sizeof *run_start);
    struct merge_run *runs = calloc(RUNS, sizeof *runs);
    struct merge_input in = {.native = native,
                             .native_count = NATIVE,
                             .run_start = run_start,
                             .python_count = PYTHON,
                             .runs = runs,
                             .run_count = RUNS,
                             .python_end = LOSS_complete,
                             .native_end = LOSS_complete,
                             .interpreter = MERGE_HIDE_CALLS};
    struct merge_output out = {0};

    for (uint32_t i = 0; i < NATIVE; i++)
        native[i].function_count = 1;
    for (uint32_t i = 0; i < RUNS; i++) {
        runs[i].native = 2 * i + 2;
        run_start[3 * i] = true;
    }
    assert_true(merge_layout(&in, &out));
    assert_int_equal(out.slots.count, RUNS * 4);
    for (uint32_t i = 0; i < out.slots.count; i++) {
        assert_int_equal(out.slots.data[i].kind, i % 4 ? MERGE_PYTHON : MERGE_NATIVE);
        assert_int_equal(out.slots.data[i].index, i % 4 ? i / 4 * 3 + i % 4 - 1 : i / 4 * 2);
    }
    /* The same output serves the next stack. */
    in.python_count = in.run_count = 0;
    in.python_end = 0;
    assert_true(merge_layout(&in, &out));
    assert_int_equal(out.slots.count, NATIVE);
    merge_output_deinit(&out);
    free(native);
    free(run_start);
    free(runs);
}

TEST(names_of_machinery)
{
    static const char *const yes[] = {"_TAIL_CALL_CALL_BUILTIN_FAST", "_TAIL_CALL_RESUME.llvm.1", "_PyEval_Vector",
                                      "_PyFunction_Vectorcall",
                                      "_PyObject_Vectorcall",
                                      "PyObject_Vectorcall",
                                      "PyEval_EvalCode",
                                      "run_mod",
                                      "run_eval_code_obj",
                                      "method_vectorcall",
                                      "_PyObject_MakeTpCall",
                                      "cfunction_vectorcall_FASTCALL",
                                      "_PyEval_Vector.constprop.0",
                                      "_PyEval_EvalFrame.part.0.cold",
                                      "vectorcall_method",
                                      "PyCFunction_Call"};
    static const char *const no[] = {"_TAIL_CALL", "x_TAIL_CALL_CALL", "",
                                     "list_sort_impl",
                                     "functools_reduce",
                                     "_PyEval_EvalFrameDefault",
                                     "type_call",
                                     "slot_tp_call",
                                     "map_next",
                                     "main",
                                     "_PyEval_Vecto",
                                     "_PyEval_Vectors",
                                     ".cold",
                                     "builtin_exec",
                                     "a_name_that_is_longer_than_any_in_the_list_of_call_machinery_functions"};

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(name_is_call_machinery(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(name_is_call_machinery(no[i]));

    static const char *const clears[] = {"_PyEvalFrameClearAndPop", "_PyEval_FrameClearAndPop",
                                         "_PyFrame_ClearExceptCode", "_PyFrame_ClearLocals",
                                         "clear_gen_frame", "clear_thread_frame.isra.0"};
    for (size_t i = 0; i < sizeof clears / sizeof *clears; i++)
        assert_true(name_clears_frame(clears[i]));
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_false(name_clears_frame(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(name_clears_frame(no[i]));
}

/* ---- the default view: capitals are call machinery, which is nothing special there ---- */

#define HIDDEN(golden, ...) EXPECT(golden, .hide_interpreter = true, __VA_ARGS__)

/* Rule 8. m, i and j are functions of the interpreter's own binary, x and y of another one. */
TEST(interpreter_is_hidden)
{
    HIDDEN("ab", .native = "1miejj", .python = "ab", .joins = "e", .own = "miej");
    HIDDEN("abkx", .native = "1meif2x", .python = "ab k", .joins = "ef", .own = "meif");
    /* What it calls stays in place: another binary between two runs, and the kernel inside. */
    HIDDEN("axbyK", .native = "1mei2x1jf2y", .python = "a b", .joins = "ef", .own = "meijf", .kernel = "K");
    HIDDEN("aK", .native = "1mei", .python = "a", .joins = "e", .own = "mei", .kernel = "K");
    /* Activations without a run, runs without an activation, and no Python at all. */
    HIDDEN("axy", .native = "1me2x1bi2y", .python = "a", .joins = "e", .eval = "eb", .own = "mebi");
    HIDDEN("abxy", .native = "1me2x1f2y", .python = "a b", .joins = "??", .own = "mef");
    HIDDEN("x", .native = "1mi2x", .own = "mi");
    /* A trace that does not say where the eval loop is: the name of the binary is enough. */
    HIDDEN("!ax", .native = "1mei2x", .python = "a", .joins = "?", .own = "mei", .python_end = LOSS_python_torn);
    /* Code made at run time is not the interpreter's for certain; a trampoline is. */
    HIDDEN("ajx", .native = "1me0j2x", .python = "a", .joins = "e", .own = "me");
    HIDDEN("abx", .native = "1me0t1f2x", .python = "a b", .joins = "ef", .own = "mef");
    HIDDEN("ax", .native = "1me0T1b2x", .python = "a", .joins = "e", .eval = "eb", .own = "meb");
    /* In the other views nothing of it changes. */
    EXPECT("mlax", .native = "1mle2x", .python = "a", .joins = "e", .own = "mle");
    EXPECT("mleax", .native = "1mle2x", .python = "a", .joins = "e", .own = "mle", .show_interpreter = true);
}

TEST(builtin_modules_stay)
{
    /* g of the gc, s of time: where they are, whatever is between. */
    HIDDEN("ags", .native = "1meigjs", .python = "a", .joins = "e", .own = "meigjs", .builtin = "gs");
    HIDDEN("agbs", .native = "1megjfs", .python = "a b", .joins = "ef", .own = "megjfs", .builtin = "gs");
    HIDDEN("g", .native = "1mig", .own = "mig", .builtin = "g");
    /* Of another binary nothing is hidden that is not of CPython's headers. */
    HIDDEN("axy", .native = "1me2xy", .python = "a", .joins = "e", .own = "me", .builtin = "x");

    const struct merge_native native[] = {
        {.module = 1, .function_count = 1, .owner = MERGE_OWNER_INTERPRETER},
        {.module = 1, .function_count = 4, .owner = MERGE_OWNER_INTERPRETER, .kept = 5}, /* sre, a header's, sre, a header's */
        {.module = 2, .function_count = 3, .helpers = 6}, /* an extension's function with Py_DECREF inlined */
    };
    const bool run_start[] = {true};
    const struct merge_run runs[] = {{.native = 1}};
    const struct merge_input in = {.native = native, .native_count = 3, .run_start = run_start, .python_count = 1,
                                   .runs = runs, .run_count = 1, .python_end = LOSS_complete, .native_end = LOSS_complete};
    struct merge_output out = {0};
    assert_true(merge_layout(&in, &out));
    assert_int_equal(out.slots.count, 3);
    assert_int_equal(out.slots.data[0].kind, MERGE_PYTHON);
    assert_int_equal(out.slots.data[1].functions, 5);
    assert_int_equal(out.slots.data[2].functions, 1);
    assert_false(out.in_interpreter);
    merge_output_deinit(&out);
}

/* What the compiler calls for a function is a part of it. */
TEST(calls_of_the_compiler)
{
    HIDDEN("a", .native = "1me2t", .python = "a", .joins = "e", .own = "me", .library = "t", .serves = "t");
    HIDDEN("a", .native = "1me2tu", .python = "a", .joins = "e", .own = "me", .library = "tu", .serves = "tu");
    HIDDEN("axt", .native = "1me3x2t", .python = "a", .joins = "e", .own = "me", .library = "t", .serves = "t");
    /* Loading an extension module goes by the C library, and is work. */
    HIDDEN("adt", .native = "1me2d3t", .python = "a", .joins = "e", .own = "me", .library = "dt", .serves = "t");
    /* In an extension module, what only passes a call on: to its own function, to Python, to the linker. */
    HIDDEN("axy", .native = "1me3xpy", .python = "a", .joins = "e", .own = "me", .passes = "p");
    HIDDEN("axb", .native = "1me3xp1jf", .python = "a b", .joins = "ef", .own = "mejf", .passes = "p");
    HIDDEN("axt", .native = "1me3xp2t", .python = "a", .joins = "e", .own = "me", .passes = "p", .serves = "t");
    EXPECT("axpy", .native = "1e3xpy", .python = "a", .joins = "e", .own = "e", .passes = "p");
}

/* Rule 9: no binary is the interpreter's own; p and q are the program's. */
TEST(interpreter_in_a_program)
{
    HIDDEN("pqax", .native = "1pqex", .python = "a", .joins = "e");
    HIDDEN("pabx", .native = "1peiif1x", .python = "a b", .joins = "ef");
    HIDDEN("pabcx", .native = "1peifjgx", .python = "a b c", .joins = "efg");
    /* What the innermost called is the interpreter's where no name says otherwise, also behind another binary's frames. */
    HIDDEN("pqa", .native = "1pqeij", .python = "a", .joins = "e", .api = "qij", .in_interpreter = true);
    HIDDEN("paxyz", .native = "1peix2yz", .python = "a", .joins = "e", .api = "iyz", .in_interpreter = false);
    HIDDEN("pay", .native = "1pe2y1i", .python = "a", .joins = "e", .api = "i", .in_interpreter = true);
    /* Another binary's frames between them stay, and so do functions of built-in modules. */
    HIDDEN("paysbx", .native = "1pei2y1sfx", .python = "a b", .joins = "ef", .builtin = "s");
    /* An activation without a run is none of the program's, but it ends what is known to be the interpreter's. */
    HIDDEN("pax", .native = "1peibx", .python = "a", .joins = "e", .eval = "eb");
    /* Runs that are not joined: the addresses of the loop say as much. */
    HIDDEN("abpx", .native = "1peifx", .python = "a b", .joins = "??", .eval = "ef");
    HIDDEN("pq", .native = "1pq");
    /* A shared libpython below the program goes; the program's frames between stay. */
    HIDDEN("pqaqbx", .native = "1pq2ie1q2if1x", .python = "a b", .joins = "ef", .own = "ief");
}

/* Rule 10. s and t are of the C library. */
TEST(start_is_hidden)
{
    /* A shared interpreter whose program is a stub, a static one, a thread. */
    HIDDEN("ax", .native = "1s2tt1m3ie4x", .python = "a", .joins = "e", .own = "smie", .library = "t");
    HIDDEN("ax", .native = "1s2tt1me4x", .python = "a", .joins = "e", .own = "sme", .library = "t");
    HIDDEN("ax", .native = "2tt1ie4x", .python = "a", .joins = "e", .own = "ie", .library = "t");
    /* What the interpreter calls of it stays, also at its end, when there is no Python frame any more. */
    HIDDEN("as", .native = "2t1ie2s", .python = "a", .joins = "e", .own = "ie", .library = "ts");
    HIDDEN("asb", .native = "1ie2s1jf", .python = "a b", .joins = "ef", .own = "iejf", .library = "s");
    HIDDEN("s", .native = "1m2tt1i2s", .own = "mi", .library = "ts");
    /* A thread of another library, and one of the C library that runs no Python. */
    HIDDEN("txay", .native = "2t3x1ie3y", .python = "a", .joins = "e", .own = "ie", .library = "t");
    HIDDEN("tx", .native = "2t3x", .library = "t");
    HIDDEN("t", .native = "2t", .library = "t");
    /* An embedding program's own start. */
    HIDDEN("ptpax", .native = "1p2t1p3ie4x", .python = "a", .joins = "e", .own = "ie", .library = "t");
    /* A stack that was cut begins anywhere: qsort may have called back. Unless Python has its root inside of it. */
    HIDDEN("/t!ax", .native = "2t1ie4x", .python = "a", .joins = "e", .own = "ie", .library = "t",
           .native_end = LOSS_native_too_deep, .python_end = LOSS_python_torn);
    HIDDEN("atb", .native = "2t1if", .python = "a b", .joins = "?f", .own = "if", .library = "t",
           .native_end = LOSS_native_too_deep);
    HIDDEN("ax", .native = "2t1ie4x", .python = "a", .joins = "e", .own = "ie", .library = "t",
           .native_end = LOSS_no_unwind_info);
    HIDDEN("atbx", .native = "1e2t1f4x", .python = "a b", .joins = "ef", .own = "ef", .library = "t",
           .native_end = LOSS_no_unwind_info);
}

/* Rule 12. */
TEST(nothing_remains)
{
    HIDDEN("-", .native = "1mi", .own = "mi");
    HIDDEN("-", .native = "1m2t1mi", .own = "mi", .library = "t", .python_end = LOSS_complete);
    HIDDEN("K", .native = "1mi", .own = "mi", .kernel = "K");
    HIDDEN("-", .is_part = true);
    HIDDEN("a", .python = "a", .is_part = true);
    HIDDEN("", .native = NULL);
    EXPECT("", .is_part = true);
    /* What is missing has its own mark. */
    HIDDEN("!", .native = "1mi", .own = "mi", .python_end = LOSS_python_torn);
    HIDDEN("/", .native = "1mi", .own = "mi", .native_end = LOSS_no_unwind_info);
}

static bool is_in_interpreter(struct scene scene)
{
    char text[4 * MOST];

    lay_out(&scene, text);
    return scene.in_interpreter;
}

TEST(time_of_the_interpreter)
{
    assert_true(is_in_interpreter((struct scene){
        .native = "1mei", .python = "a", .joins = "e", .own = "mei", .hide_interpreter = true}));
    assert_true(is_in_interpreter((struct scene){
        .native = "1pe", .python = "a", .joins = "e", .hide_interpreter = true}));
    /* It reached a thread-local variable. */
    assert_true(is_in_interpreter((struct scene){
        .native = "1mei2t", .python = "a", .joins = "e", .own = "mei", .serves = "t", .hide_interpreter = true}));
    assert_true(is_in_interpreter((struct scene){
        .native = "1me0T", .python = "a", .joins = "e", .own = "me", .hide_interpreter = true}));
    /* An extension module passed a call on. */
    assert_false(is_in_interpreter((struct scene){
        .native = "1me2xp", .python = "a", .joins = "e", .own = "me", .passes = "p", .hide_interpreter = true}));
    /* The kernel worked, a library, a built-in module; native stacks were not asked for; the interpreter is shown. */
    assert_false(is_in_interpreter((struct scene){
        .native = "1mei", .python = "a", .joins = "e", .own = "mei", .kernel = "K", .hide_interpreter = true}));
    assert_false(is_in_interpreter((struct scene){
        .native = "1mei2x", .python = "a", .joins = "e", .own = "mei", .hide_interpreter = true}));
    assert_false(is_in_interpreter((struct scene){
        .native = "1meg", .python = "a", .joins = "e", .own = "meg", .builtin = "g", .hide_interpreter = true}));
    assert_false(is_in_interpreter((struct scene){.python = "a", .hide_interpreter = true}));
    /* No Python function ran: the stack is [no Python frames], or torn. */
    assert_false(is_in_interpreter((struct scene){.native = "1mi", .own = "mi", .hide_interpreter = true}));
    assert_false(is_in_interpreter((struct scene){
        .native = "1mei", .own = "mei", .python_end = LOSS_python_torn, .hide_interpreter = true}));
    assert_false(is_in_interpreter((struct scene){.native = "1mei", .python = "a", .joins = "e", .own = "mei"}));
}

TEST(owners)
{
    static const struct {
        const char *path;
        enum merge_owner owner;
    } cases[] = {
        {"/usr/bin/python3.11", MERGE_OWNER_INTERPRETER},
        {"/usr/bin/python3.11-dbg", MERGE_OWNER_INTERPRETER},
        {"/opt/bin/python", MERGE_OWNER_INTERPRETER},
        {"python2.7", MERGE_OWNER_INTERPRETER},
        {"/usr/lib/x86_64-linux-gnu/libpython3.12.so.1.0", MERGE_OWNER_INTERPRETER},
        {"/tmp/_MEIabc/libpython3.11.so.1.0", MERGE_OWNER_INTERPRETER},
        {"/usr/lib/libpython3.so", MERGE_OWNER_INTERPRETER},
        {"/usr/lib/libpython2.7.so.1.0", MERGE_OWNER_INTERPRETER},
        {"/lib/x86_64-linux-gnu/libc.so.6", MERGE_OWNER_C_LIBRARY},
        {"/lib/x86_64-linux-gnu/libc-2.31.so", MERGE_OWNER_C_LIBRARY},
        {"/lib64/ld-linux-x86-64.so.2", MERGE_OWNER_C_LIBRARY},
        {"/lib/ld-musl-x86_64.so.1", MERGE_OWNER_C_LIBRARY},
        {"/lib/x86_64-linux-gnu/libpthread.so.0", MERGE_OWNER_C_LIBRARY},
        {"", MERGE_OWNER_OTHER},
        {"/usr/bin/python3.11/", MERGE_OWNER_OTHER},
        {"/python3/app", MERGE_OWNER_OTHER},
        {"/usr/bin/pythonista", MERGE_OWNER_OTHER},
        {"/usr/bin/python_server", MERGE_OWNER_OTHER},
        {"/x/python3.so", MERGE_OWNER_OTHER},
        {"/x/libpython_bindings.so", MERGE_OWNER_OTHER},
        {"/x/libcrypto.so.3", MERGE_OWNER_OTHER},
        {"/x/ld", MERGE_OWNER_OTHER},
        {"/usr/bin/gdb", MERGE_OWNER_OTHER},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (path_owner(cases[i].path) != cases[i].owner)
            fail_msg("%s", cases[i].path);
    }
    assert_true(name_is_of_header("Py_DECREF") && name_is_of_header("_Py_IsImmortal"));
    assert_false(name_is_of_header("PyArray_DESCR"));
    assert_true(name_serves_caller("__tls_get_addr_slow") && !name_serves_caller("memcpy"));
    assert_true(path_is_linker("/lib64/ld-linux-x86-64.so.2") && path_is_linker("ld-2.31.so"));
    assert_false(path_is_linker("/lib/ld-musl-x86_64.so.1") || path_is_linker("/lib/libc.so.6") ||
                 path_is_linker("/ld-linux/libx.so"));
}

TEST(names_of_helpers)
{
    static const char *const yes[] = {"__Pyx_PyObject_Call", "__Pyx_PyObject_CallOneArg", "__Pyx__PyObject_CallOneArg",
                                      "__Pyx_PyObject_FastCallDict.constprop.0", "__Pyx_CyFunction_Vectorcall_FASTCALL",
                                      "__Pyx_PyVectorcall_FastCallDict_kw", "__Pyx_Coroutine_SendEx",
                                      "__Pyx_Generator_Next"};
    static const char *const no[] = {"", "__Pyx_", "__Pyx_PyObject_Append", "__Pyx_GetItemInt_Fast", "PyObject_Call",
                                     "__Pyx_ParseKeywords", "__Pyx_Coroutine_Close", "x__Pyx_PyObject_Call"};

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(name_is_call_helper(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(name_is_call_helper(no[i]));
}

/* In a program that has an interpreter in it: what is certainly none of CPython's stays in view. */
TEST(functions_of_a_program)
{
    assert_true(function_is_of_program("execute_command", "gdb/top.c"));
    assert_true(function_is_of_program("Py_app", "/build/app/src/Pythonic/main.c"));
    assert_true(function_is_of_program("app::Editor::run()", "") && function_is_of_program("std::sort<int*>", ""));
    assert_false(function_is_of_program("list_sort", "../Objects/listobject.c"));
    assert_false(function_is_of_program("sre_match", "/b/cpython/Modules/_sre/sre.c"));
    assert_false(function_is_of_program("Py_DECREF", "./Include/object.h"));
    /* Nothing tells the static functions of the two apart. */
    assert_false(function_is_of_program("slot_tp_call", "") || function_is_of_program("call.part.0", ""));
    assert_false(function_is_of_program("", "") || function_is_of_program("", "app.c"));
}

TEST(names_of_builtin_modules)
{
    static const char *const yes[][2] = {
        {"time_sleep", ""}, {"sre_ucs1_match", "/b/Modules/sre_lib.h"}, {"sre_ucs1_match.cold", ""},
        {"gc_collect_main", ""}, {"visit_decref", "Python/gc.c"}, {"deduce_unreachable", "./Modules/gcmodule.c"},
        {"any_name", "Modules/zlibmodule.c"}, {"sock_recv", ""}, {"take_gil", "Python/ceval_gil.c"},
        {"lock_PyThread_acquire_lock", "Modules/_threadmodule.c"}, {"r_object", "Python/marshal.c"},
        {"PyGC_Collect", "Modules/gcmodule.c"}, {"PyMarshal_ReadObjectFromString", "Python/marshal.c"},
    };
    static const char *const no[][2] = {
        {"", ""}, {"", "Modules/zlibmodule.c"}, {"list_sort", "Objects/listobject.c"}, {"list_sort", ""},
        {"_PyEval_EvalFrameDefault", ""}, {"time_sleep", "Objects/listobject.c"}, {"Py_DECREF", "Include/object.h"},
        {"_sre_SRE_Pattern_match", "Modules/clinic/_sre.c.h"}, {"PyObject_GC_Del", "Modules/gcmodule.c"},
        {"_PyObject_GC_New", ""}, {"gc_alloc", "Python/gc.c"}, {"thread_run", "Modules/_threadmodule.c"},
        /* What a stripped interpreter exports. */
        {"PyGC_Collect", ""}, {"_PyGC_CollectNoFail", ""}, {"PyMarshal_ReadObjectFromString", ""}, {"PyMutex_Lock", ""},
        {"tim", ""}, {"x", "timemodule"}, {"x", "timemodule.c.h"},
    };

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (!builtin_module_of(yes[i][0], yes[i][1]))
            fail_msg("%s of %s", yes[i][0], yes[i][1]);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        if (builtin_module_of(no[i][0], no[i][1]))
            fail_msg("%s of %s", no[i][0], no[i][1]);
    }
    assert_string_equal(builtin_module_of("visit_decref", "Python/gc.c"), "gc");
    assert_string_equal(builtin_module_of("r_object", ""), "marshal");
}

/* ---- the join by count ---- */

/* Native frames outermost first: E of the eval loop, g of greenlet, capitals call machinery; what each of `python` frames is joined to. */
static void check_count(const char *native_text, uint32_t python, uint32_t python_end, uint32_t native_end,
                        const char *expected)
{
    struct merge_native native[MOST] = {0};
    struct merge_run runs[MOST];
    char text[MOST * 4] = "";
    struct merge_input in = {.native = native, .python_count = python, .python_end = python_end, .native_end = native_end};

    for (const char *p = native_text; *p; p++) {
        native[in.native_count++] = (struct merge_native){
            .function_count = 1, .outer_machinery = isupper((unsigned char)*p) && *p != 'E', .eval_loop = *p == 'E',
            .switches_stacks = *p == 'g'};
    }
    merge_join_by_count(&in, runs);
    for (uint32_t i = 0; i < python; i++) {
        if (runs[i].native)
            sprintf(text + strlen(text), "%u ", runs[i].native - 1);
        else
            strcat(text, runs[i].reason == LOSS_join_mismatch ? "! " : runs[i].reason == LOSS_join_no_native ? "? " : "x ");
    }
    if (strcmp(text, expected))
        fail_msg("%s with %u: %s, not %s", native_text, python, text, expected);
}

TEST(count)
{
    const uint32_t whole = LOSS_complete, cut = LOSS_stack_cut, deep = LOSS_python_too_deep;

    check_count("smEcE", 2, whole, whole, "2 4 ");
    check_count("sEMEEcccccccc", 3, whole, whole, "1 3 4 ");
    check_count("s", 0, whole, whole, "");
    /* The newest activation has no Python frame: at its beginning, and when its result is checked. */
    check_count("smEcE", 1, whole, whole, "2 ");
    check_count("smEcErrrr", 1, whole, whole, "2 ");
    check_count("sE", 0, whole, whole, "");
    /* Too far from the stack's end for that; too many; too few; none. */
    check_count("smEcEfffff", 1, whole, whole, "! ");
    check_count("sEEE", 1, whole, whole, "! ");
    check_count("sEcE", 3, whole, whole, "! ! ! ");
    check_count("sss", 1, whole, whole, "! ");
    /* Cut native stacks: from the inner end, unless the newest activation may have no Python frame. */
    check_count("EcEfffff", 3, whole, cut, "? 0 2 ");
    check_count("EcEffff", 3, whole, cut, "? ? ? ");
    check_count("cEfffff", 1, whole, cut, "1 ");
    check_count("EMEMEM", 5, whole, cut, "? ? 0 2 4 ");
    check_count("cEMEMEM", 5, whole, cut, "? ? ? ? ? ");
    check_count("ccc", 2, whole, cut, "? ? ");
    check_count("", 2, whole, cut, "? ? ");
    /* A greenlet: its frames alone, however the rest ends; one that it only calls into is no beginning. */
    check_count("sEcEggmEcE", 2, whole, whole, "7 9 ");
    check_count("sEggmEcE", 1, whole, whole, "5 ");
    check_count("sEggmE", 2, whole, whole, "! ! ");
    check_count("ggmEcE", 2, whole, cut, "3 5 ");
    check_count("sEggEggmEcEfffff", 2, whole, whole, "8 10 ");
    check_count("sEcEg", 2, whole, whole, "1 3 ");
    check_count("sEggmEcEg", 2, whole, whole, "5 7 ");
    /* Cut Python stacks. */
    check_count("sEMEMEfffff", 2, deep, whole, "3 5 ");
    check_count("sEMEMEf", 2, deep, whole, "? ? ");
    check_count("EMEMEf", 2, deep, whole, "2 4 ");
    check_count("EMEMEfffff", 5, deep, cut, "? ? 0 2 4 ");
}
