/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays out the order of a mixed stack: kernel, native and Python frames as one chain of
 * calls. This is the only place that does so, for stacks unwound by tables and for snapshots.
 *
 * A Python run is the Python frames that one activation of the interpreter's eval loop has
 * executed. That activation is one native frame. The join names it for each run, so the run
 * is shown exactly there:
 *
 *     native    main   [eval 1]     list_sort   [eval 2]          (outermost first)
 *     Python            outer  mid               key
 *     shown     main    outer  mid  list_sort    key     , then the kernel's frames
 *
 * The rules, in full (tests/unit/test_merge.c shows each):
 *
 * 1. The order is never guessed. Python runs keep their order, native frames keep theirs, kernel
 *    frames come innermost. Only the join says how runs and native frames interleave.
 * 2. A native frame that a run is joined to is machinery: the run is shown instead of it. So are
 *    functions of the interpreter that do nothing but pass a call on (name_is_call_machinery()),
 *    where they adjoin such a frame directly or through other such functions, inlined or not. They
 *    belong to the interpreter if they lie in the same module as that frame; file names do not
 *    matter. This rule hides no C function that does work of its own. With MERGE_SHOW_ALL nothing is
 *    hidden, and a run stands just inside its eval frame. A trampoline of -X perf, known by its code or
 *    its name, that has called the eval loop (one for each code object, whose name a run shows
 *    already) is hidden, and machinery adjoins through it where the loop is joined. So is
 *    a trampoline that is known by its name, wherever it is, and if the loop has no run, what called
 *    the trampoline; so the rest looks as without -X perf. Only samples without Python keep them.
 *    Other code in memory without a file stays, whatever it has called.
 * 3. A run without a native frame (the join says why) stands above the native frames that it may
 *    have called: at the outer end of the gap between its neighbours that are joined, and so above
 *    the whole native stack when no run is. Rules 1 to 7 leave native eval frames without a run
 *    visible; they are counted by cause (enum merge_no_frame).
 * 4. A join that is impossible (another number of runs than the Python stack has, an index outside the
 *    native stack, or an inner run joined further out than an outer one) is not used at all:
 *    every run counts as not joined, with the reason LOSS_join_mismatch.
 * 5. Without native frames: Python, then the kernel's.
 * 6. A Python stack that did not reach its root has a mark at its outer end: [truncated] when the
 *    limit of depth cut it, else [torn]. A thread that has no Python frames and for which no
 *    thread state was found gets no mark: most such threads never run Python.
 * 7. A native stack that did not reach the thread's start has the mark [truncated] at the very
 *    outside, unless the Python stack reached its root (then the way from the root is known, and
 *    what is missing is start-up code or call machinery) or has a mark there already.
 *
 * With MERGE_HIDE_INTERPRETER, which is the default view, these come after rule 2, so that the time of the interpreter
 * goes to the Python function that ran; it does not matter whether the interpreter has symbols:
 *
 * 8. Frames of a binary that is the interpreter's own (MERGE_OWNER_INTERPRETER) are hidden wherever they are, except
 *    functions of built-in modules, where names tell (merge_native.kept). What they called stays: extension modules,
 *    libraries and the kernel. Also hidden are, in an extension module, functions of CPython's headers that were inlined
 *    and those that only pass a call on (merge_native.helpers), and the frames of the dynamic linker that a hidden
 *    function of the interpreter called directly: it reached a thread-local variable or bound a symbol.
 * 9. Where the eval loop lies in a program that has other things to do as well (an editor, a server), only its
 *    activations are hidden, and the frames of that binary between two of them, unless debug information or their
 *    names tell that they are the program's own (function_is_of_program()) or a built-in module's. What called the
 *    outermost may be the program's own work. So may what the innermost called where it has a name (merge_native.foreign);
 *    what has none, or one of the C API, is hidden.
 * 10. The C library's frames at the thread's start are hidden if nothing but frames of the interpreter's own binary
 *    stands outside of them, and such a frame just inside: they lead to Python and nowhere else. The root must be
 *    known, by the native stack or by a Python stack that is whole and whose outermost run is joined.
 * 11. Code made at run time stays where rule 2 leaves it: it may be a JIT's of an extension module as well as the
 *    interpreter's.
 * 12. A stack of which nothing remains has the mark [no Python frames]; so has one without Python frames of which the
 *    others were not asked for. Without any frame there is no mark.
 */
#ifndef SYMBOLIZE_STACK_MERGE_H
#define SYMBOLIZE_STACK_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/vec.h"
#include "formats/trace/trace.h"

#define MERGE_NO_MODULE UINT32_MAX

/* What is shown of the interpreter. */
enum merge_interpreter {
    MERGE_HIDE_INTERPRETER, /* nothing but functions of built-in modules */
    MERGE_HIDE_CALLS,       /* all but the eval loop and what only passes a call on */
    MERGE_SHOW_ALL,
};

/* Whose a binary is, as far as the trace says, or its name tells. */
enum merge_owner {
    MERGE_OWNER_OTHER,
    MERGE_OWNER_INTERPRETER, /* there is nothing but Python in it, whatever it is called */
    MERGE_OWNER_C_LIBRARY,   /* libc, libpthread or the dynamic linker: where threads start */
};

enum { MERGE_FUNCTIONS_MAX = 64 }; /* of one native frame */

/* A native frame is a function and what the compiler inlined into it there. */
struct merge_native {
    uint32_t module; /* a number that identifies the module; MERGE_NO_MODULE: memory without a file */
    uint32_t function_count;
    uint32_t outer_machinery, inner_machinery; /* functions at either end that are call machinery by name */
    uint64_t kept;        /* bit n: function n, from the outermost, is work of a built-in module such as time or gc, or of
                             the program that the interpreter is a part of: it stays in view */
    uint64_t foreign;     /* bit n: function n has a name, and one that is none of the C API's */
    enum merge_owner owner;
    bool eval_loop;       /* its address lies in the interpreter's eval loop */
    bool switches_stacks; /* a function of greenlet, which runs Python on stacks of its own */
    bool trampoline;      /* its name says that it is a trampoline of -X perf */
    bool forwards;        /* the same, or its code says so */
    bool clears_frame;    /* its name says that it clears a Python frame at the end of a call */
    bool serves_caller;   /* called without the caller's doing: to reach thread-local variables, to bind a symbol */
    uint64_t helpers;     /* bit n: function n is one of CPython's headers, which the compiler inlined here, or only passes
                             on a call of generated code */
};

struct merge_run {
    uint32_t native; /* index + 1, from the outermost native frame; 0 for none */
    uint32_t reason; /* why there is none (a loss reason) */
};

/* All lists outermost first. */
struct merge_input {
    uint32_t kernel_count;
    const struct merge_native *native;
    uint32_t native_count;
    const bool *run_start; /* by Python frame: the outermost frame of its run */
    uint32_t python_count;
    const struct merge_run *runs;
    uint32_t run_count;
    uint32_t python_end, native_end; /* as in TUPLE; native_end of a snapshot from its unwinding */
    enum merge_interpreter interpreter;
    bool is_part; /* the stack has native or kernel frames that were not asked for and are not listed */
};

enum merge_kind { MERGE_KERNEL, MERGE_NATIVE, MERGE_PYTHON, MERGE_TORN, MERGE_TRUNCATED, MERGE_NO_PYTHON };
struct merge_slot {
    enum merge_kind kind;
    uint32_t index;     /* into the list of that kind */
    uint64_t functions; /* MERGE_NATIVE: bit n: function n, from the outermost, is shown */
};

/*
 * Why an activation of the eval loop has no run, where the Python stack is whole and all its runs are joined (elsewhere
 * a loss says why).
 */
enum merge_no_frame {
    MERGE_NO_FRAME_EDGE,     /* the innermost: its frame is not in the chain yet, does not count yet, or has left it */
    MERGE_NO_FRAME_CLEARING, /* 3.12 on: its frame has left the chain; an object that it held runs Python (__del__) */
    MERGE_NO_FRAME_GREENLET, /* another greenlet's, or the thread's own, outside of where the running one begins */
    MERGE_NO_FRAME_OTHER,    /* further out than another, and nothing says why */
    MERGE_NO_FRAME_LIMIT,
};

/* Begins as {0}. Can be reused for any number of stacks. */
struct merge_output {
    VEC(struct merge_slot) slots;          /* outermost first */
    uint32_t joined_count, unjoined_count; /* runs */
    uint32_t no_frame; /* bits 1 << enum merge_no_frame */
    bool in_interpreter; /* MERGE_HIDE_INTERPRETER: the innermost frame is the interpreter's, and hidden by these rules:
                            its time is that of the function shown. Names make no difference but for built-in modules, whose
                            functions are not hidden. */
    uint32_t join_end; /* 0 nothing to join, LOSS_complete, else why the outermost unjoined run has no native frame */
    /* Scratch. */
    VEC(uint32_t) starts; /* first Python frame of each run, and the end */
    VEC(struct merge_run) joins;
    VEC(struct merge_slot) native; /* by native frame: what is shown of it */
    VEC(bool) loops;               /* by native frame: an activation of the eval loop */
};

void merge_output_deinit(struct merge_output *out);
/* False when memory ran out. */
bool merge_layout(const struct merge_input *in, struct merge_output *out);

/*
 * The join of interpreters whose activations leave no record (up to 3.9): every Python frame is a run, and the k-th of
 * them, from the outermost, ran in the k-th native frame of the eval loop. Fills `runs`, one for each of
 * in->python_count; in->runs is not used. If the numbers differ, runs are joined only if the cause is known:
 * - One native frame too many, and the innermost of them lies within a few frames of the stack's end: that activation
 *   is at its very beginning or end, where its Python frame is not in the chain. The others are joined, it is not.
 * - One of the stacks is cut at its outer end. Both are then counted from the inner end; but not where the innermost
 *   native frame of the eval loop may be such an activation, unless there is nothing but call machinery outside of it,
 *   so that the order comes out the same.
 * Everything else is LOSS_join_mismatch. The chain of a greenlet's Python frames begins where greenlet starts it: what
 * lies outside of the innermost frame of greenlet that has an eval loop inside of it is ignored.
 */
void merge_join_by_count(const struct merge_input *in, struct merge_run *runs);

#endif
