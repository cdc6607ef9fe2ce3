/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How to step from a frame to its caller, per range of code of a module: the rows
 * that formats/elf/unwind_table.c makes of call frame information and that the
 * unwinder reads in the kernel. A row holds from its `pc` up to the next row's.
 *
 * What an unwinder keeps:
 * - RIP and RSP. The caller's RSP is the CFA.
 * - RBP, and whether it is known. Rows say where each frame saved it.
 * - RBX, and whether it is known. glibc's _dl_runtime_resolve calls C with RBX as the
 *   base of its CFA, so every frame between must say where RBX went; four bits do.
 * - All other registers, but only in a frame that was interrupted (the innermost, and one
 *   that a signal frame leads to). They are the base of a CFA only between the
 *   realignment of a stack and the saving of the old one (DRAP: r10, else r13), in leaf
 *   functions in assembly, and in vfork, whose return address is in rdi: places that call
 *   nothing. In any other frame such a row ends the unwinding with a reason.
 *
 * Look a row up by the address itself in a frame that was interrupted, and by the
 * address less one where it is a return address.
 */
#ifndef FORMATS_ELF_UNWIND_ROW_H
#define FORMATS_ELF_UNWIND_ROW_H

/* A BPF program must have declared __u8 and the like before it includes this. */
#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

enum unwind_type {
    UNWIND_NONE = 0,   /* no information: stop */
    UNWIND_END = 1,    /* the return address is undefined: the thread's first frame */
    UNWIND_RSP = 2,    /* CFA = RSP + 8 * cfa8 */
    UNWIND_RBP = 3,    /* CFA = RBP + 8 * cfa8 */
    UNWIND_PLT = 4,    /* CFA = RSP + 8, and 8 more where (RIP & 15) >= cfa8 */
    UNWIND_SIGNAL = 5, /* RSP points to the ucontext of an rt_sigframe, which holds all registers */
    UNWIND_WIDE = 6,   /* struct unwind_wide number cfa8 of the module */
    UNWIND_OTHER = 7,  /* there is information, but it cannot be expressed; cfa8 is enum unwind_other */
    UNWIND_TYPE_COUNT = 8,
};

/* With RSP, RBP and PLT the return address is at CFA - 8. */
struct unwind_row {
    __u32 pc;   /* vaddr, relative to the module's lowest PT_LOAD vaddr, rounded down to a page */
    __u16 cfa8;
    __u8 type;  /* enum unwind_type, and RBX in the upper half */
    __s8 rbp8;  /* 0: the caller's RBP is the same; else it was saved at CFA + 8 * rbp8 */
};
#define UNWIND_UNIT 8 /* bytes that cfa8, rbp8 and rbx count */
#define UNWIND_TYPE(type) ((type) & 15)
/* 0: the caller's RBX is the same; 1 to 14: it was saved at CFA - 8 - 8 * rbx; 15: it is lost. */
#define UNWIND_RBX(type) ((type) >> 4)
#define UNWIND_RBX_LOST 15

/* Why a row is UNWIND_OTHER. */
enum unwind_other {
    UNWIND_OTHER_CFA = 1,     /* an expression for the CFA */
    UNWIND_OTHER_RETURN = 2,  /* … for the return address */
    UNWIND_OTHER_STACK = 3,   /* the caller's RSP is not the CFA */
    UNWIND_OTHER_SIGNAL = 4,  /* a signal frame that is not the kernel's rt_sigframe */
    UNWIND_OTHER_PROGRAM = 5, /* a program that breaks the format, or is for other registers */
    UNWIND_OTHER_FULL = 6,    /* more than 65,536 wide rows */
    UNWIND_OTHER_COUNT = 7,
};

enum unwind_rule_kind {
    UNWIND_SAME = 0,      /* the caller's value is the frame's own */
    UNWIND_UNDEFINED = 1, /* lost */
    UNWIND_VALUE = 2,     /* base + offset */
    UNWIND_MEMORY = 3,    /* the 8 bytes at base + offset, plus add */
};
#define UNWIND_BASE_CFA 17 /* not a register but the CFA */

struct unwind_rule {
    __u8 kind;   /* enum unwind_rule_kind */
    __u8 base;   /* register in DWARF order (rax rdx rcx rbx rsi rdi rbp rsp r8..r15), or UNWIND_BASE_CFA */
    __s16 add;   /* UNWIND_MEMORY only */
    __s32 offset;
};

/* All four are computed from the frame's registers, before any of them is changed. */
struct unwind_wide {
    struct unwind_rule cfa; /* VALUE or MEMORY of a register */
    struct unwind_rule ra, rbp, rbx;
};

/*
 * The index: which rows to search for an address, per page of 256 bytes of code (pc >> 8). The lower half is the row in
 * force at the page's start, the upper half the first row behind the page. The wanted row is the last of
 * rows[low .. high) with row.pc <= pc; these are at most 257 rows, so nine halvings find it.
 */
#define UNWIND_PAGE_SHIFT 8
#define UNWIND_PAGE_LOW(index) ((__u32)(index))
#define UNWIND_PAGE_HIGH(index) ((__u32)((index) >> 32))
#define UNWIND_SEARCH_STEPS 9

#ifndef __bpf__
static_assert(sizeof(struct unwind_row) == 8, "one word");
static_assert(sizeof(struct unwind_rule) == 8, "one word");
static_assert(sizeof(struct unwind_wide) == 32, "no holes");
#endif

#endif
