/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The native unwind: from a thread's registers to a list of (address, stack pointer),
 * over the rows of formats/elf/unwind_row.h.
 *
 * Like the Python walk it is one piece of code for the BPF program and for the host;
 * what differs is how memory is read and where the rows of a module lie. All state lies
 * in struct native_unwind, in a map's value under BPF, so that each step is a function
 * that the verifier looks at once. One step is one frame. What depends on the machine is
 * in bpf/arch.h, and in the rows: these follow the stack pointer, the frame pointer (RBP)
 * and one more register (RBX, here ARCH_BX).
 *
 * A frame is the stack from its stack pointer up to its CFA. Its CFA is the stack pointer
 * of the next entry, so an entry holds the stack pointer only; the CFA of the last frame
 * is `last_cfa`. (Behind a signal frame the stack may go on anywhere.)
 *
 * The stack lies in a buffer (bpf/live_stack.h), which may hold its beginning already.
 * Above that it is read upwards in pieces of 1 KiB, since frames follow each other there;
 * larger pieces push more out of the caches than they save in reads. Slots below the
 * stack pointer, from which an epilogue has popped a register, are read in the red zone
 * only: further down the register has its value again.
 *
 * Rows that were found are kept in a cache, from which most frames are unwound in a short
 * loop: bpf/native_rows.h.
 *
 * Executable memory without tables is code that a program made. If a known epilogue
 * stands behind the call (the trampolines of CPython's -X perf), the step is what that
 * would do; else it goes by frame pointer, within bounds. Such entries are marked.
 *
 * The includer defines how rows are found, as macros:
 *   NATIVE_MAPPING(u, address)  sets u->mapping; 0, or the loss reason
 *   NATIVE_ROW(u, n), NATIVE_INDEX(u, n), NATIVE_WIDE(u, n)
 *                               pointers to row, index entry, wide row n of u->mapping, or NULL
 *   NATIVE_STACK(u)             the struct live_stack to read through
 *   NATIVE_READ(u, address)     native_read_word(), in a function of its own where that is worth a call
 * On the host they are defined here, for struct native_host.
 */
#ifndef BPF_NATIVE_UNWIND_H
#define BPF_NATIVE_UNWIND_H

#include "bpf/arch.h"
#include "bpf/live_stack.h"
#include "bpf/walk.h"
#include "formats/elf/unwind_row.h"

#define NATIVE_MAX WIRE_NATIVE_MAX
#define NATIVE_PIECE 1024             /* bytes of stack read at a time */
#define NATIVE_BELOW 64               /* bytes read below the slot wanted, for other slots of the frame */
#define NATIVE_FP_MAX (1ull << 20)    /* a larger frame found by frame pointer is not believed */
#define NATIVE_STACK_MAX (1ull << 30) /* further above the stack pointer words are read singly */

/* At most `limit`, in a form that the verifier sees. */
#ifdef __bpf__
#define NATIVE_LIMIT(len, limit)              \
    do {                                      \
        asm volatile("" : "+r"(len));         \
        if ((len) > (limit))                  \
            (len) = (limit);                  \
    } while (0)
#else
#define NATIVE_LIMIT(len, limit) ((len) = (len) > (limit) ? (limit) : (len))
#endif

/* An entry: the address, with these bits on top, and the frame's stack pointer. */
#define NATIVE_EXACT (1ull << 63)   /* not a return address: innermost, interrupted by a signal, or a signal's trampoline */
#define NATIVE_GUESSED (1ull << 62) /* found without tables */
#define NATIVE_TRAMPOLINE (1ull << 61) /* its code does nothing but call what it was given (arch_is_trampoline()) */
#define NATIVE_ADDRESS ((1ull << 61) - 1)
struct native_frame {
    __u64 ip, sp;
};

/* An address in the frame's code: that of the instruction, or of the last byte of the call that it returns to. */
WALK_INLINE __u64 native_frame_code(const struct native_frame *f)
{
    return (f->ip & NATIVE_ADDRESS) - !(f->ip & NATIVE_EXACT);
}

enum {
    NATIVE_NO_TABLE = 1,    /* executable memory that is not from a file */
    NATIVE_BY_POINTERS = 2, /* user space asked for frame pointers only, which are believed */
};

/* An executable mapping and where its module's rows are. */
struct native_mapping {
    __u64 start, end; /* addresses */
    __u64 base;       /* the address of pc 0 */
    __u32 flags;
    __u32 row_count, index_first, index_count, wide_count;
    __u32 row_start, index_start, wide_start; /* for the includer: where in its maps */
};

#ifndef __bpf__
#include "formats/elf/unwind_table.h"
struct native_host {
    /* Sets *mapping and *table; 0, or the loss reason. */
    __u32 (*find)(void *ctx, __u64 address, struct native_mapping *mapping, const struct unwind_table **table);
    void *ctx;
    const struct unwind_table *table; /* of the current mapping */
};
#define NATIVE_MAPPING(u, address) (u)->host.find((u)->host.ctx, (address), &(u)->mapping, &(u)->host.table)
#define NATIVE_ROW(u, n) ((n) < (u)->mapping.row_count ? &(u)->host.table->rows[n] : NULL)
#define NATIVE_INDEX(u, n) ((n) < (u)->mapping.index_count ? &(u)->host.table->index[n] : NULL)
#define NATIVE_WIDE(u, n) ((n) < (u)->mapping.wide_count ? &(u)->host.table->wide[n] : NULL)
#define NATIVE_STACK(u) (&(u)->stack)
#define NATIVE_READ(u, address) native_read_word(u, address)
#endif

struct native_unwind {
    __u64 registers[ARCH_REGISTERS]; /* DWARF order; of the frame to be looked at next */
    __u64 last_cfa;                  /* of the outermost entry; WIRE_CFA_NONE: not known */
    /* Of the next frame. */
    __u32 exact;   /* it was interrupted: all registers are known */
    __u32 fp_known, bx_known;
    __u32 guessed; /* it was found without tables */
    /* The result. */
    __u32 count;   /* entries made */
    __u32 end;     /* the loss reason that ended it; LOSS_complete; 0: it has not ended */
    __u32 other;   /* enum unwind_other, if such a row ended it */
    __u32 guesses; /* entries marked NATIVE_GUESSED */
    __u32 cached;  /* entries whose rows were in the cache */
    __u32 low, high; /* of the search; in memory, so that the verifier does not follow their values */
    struct native_mapping mapping;
    /* For the cache of rows: see bpf/native_rows.h. */
    __u64 row_tag;
    __u32 row_key;
    __u32 met_rule; /* the row that the last step went by, if it may be kept; 0: none */
    __u64 met_at;   /* … and where it holds */
    /* What was read last: a word, machine code, a signal frame's registers. */
    PY_U64 word;
    union {
        __u64 word;
        __u8 bytes[ARCH_STUB_BYTES];
        __u8 call[ARCH_TRAMPOLINE_LEN + ARCH_EPILOGUE_LEN]; /* around a return address */
    } code;
    __u64 saved[ARCH_REGISTERS];
#ifndef __bpf__
    struct live_stack stack;
    struct walk_memory memory;
    struct native_host host;
#endif
};

/*
 * Begins at u->registers, without a cache. The caller has set these and, on the host, u->memory and u->host. On the host
 * the stack's buffer is empty then; under BPF it holds what was read for the sample.
 */
WALK_INLINE void native_begin(struct native_unwind *u)
{
    u->exact = u->fp_known = u->bx_known = 1;
    u->guessed = u->guesses = u->cached = u->count = u->end = u->other = 0;
    u->row_key = u->met_rule = 0;
#ifndef __bpf__
    u->stack.len_bytes = 0;
#endif
    u->mapping.start = u->mapping.end = 0;
    u->last_cfa = WIRE_CFA_NONE;
}

/* What a row says, without where. */
WALK_INLINE __u32 native_rule_of(const struct unwind_row *row)
{
    return row->cfa8 | (__u32)row->type << 16 | (__u32)(__u8)row->rbp8 << 24;
}

WALK_INLINE int native_end(struct native_unwind *u, __u32 reason)
{
    u->end = reason;
    return 1;
}

/*
 * Whether user space can unwind further than this unwinder did: it knows the mappings as they were at the time of the
 * sample, and can wait for a table.
 */
WALK_INLINE int native_needs_help(__u32 end)
{
    return end == LOSS_table_missing || end == LOSS_no_mapping || end == LOSS_no_module;
}

/* Reads a word, mostly of the stack, into u->word. 0: it could be read. */
WALK_INLINE int native_read_word(struct native_unwind *u, __u64 address)
{
    struct live_stack *k = NATIVE_STACK(u);
    __u64 above = address - u->registers[ARCH_SP], start = address - (above < NATIVE_BELOW ? above : NATIVE_BELOW);

    if (!live_stack_u64(k, address, &u->word))
        return 0;
    if (above < NATIVE_STACK_MAX) {
        __u64 len = NATIVE_PIECE;
        if (WALK_READ(u, k->bytes, NATIVE_PIECE, start)) {
            /* The stack may end with the page. */
            len = ARCH_PAGE_BYTES - (start & (ARCH_PAGE_BYTES - 1));
            NATIVE_LIMIT(len, NATIVE_PIECE - 1);
            if (WALK_READ(u, k->bytes, len, start))
                len = 0;
        }
        k->start = start;
        k->len_bytes = len;
        if (!live_stack_u64(k, address, &u->word))
            return 0;
    }
    return WALK_READ(u, &u->word, sizeof u->word, address) != 0;
}

WALK_INLINE int native_read(struct native_unwind *u, __u64 address, __u64 *out)
{
    if (NATIVE_READ(u, address))
        return 1;
    *out = u->word;
    return 0;
}

/* Takes the registers that the kernel saved when it called a signal handler. 0: done. */
WALK_INLINE int native_signal(struct native_unwind *u)
{
    __u64 *r = u->registers;

    if (WALK_READ(u, u->saved, sizeof u->saved, r[ARCH_SP] + ARCH_SIGNAL_REGISTERS))
        return native_end(u, LOSS_native_fault);
    arch_signal_registers(r, u->saved);
    u->exact = u->fp_known = u->bx_known = 1;
    u->guessed = 0;
    u->last_cfa = r[ARCH_SP];
    return 0;
}

/* Goes to the caller, given its stack pointer and the return address. */
WALK_INLINE int native_return(struct native_unwind *u, __u64 cfa, __u64 address)
{
    /* Of a frame that was interrupted the return address may be in a register, and nothing of it on the stack. */
    if (cfa < u->registers[ARCH_SP] || (cfa == u->registers[ARCH_SP] && !u->exact))
        return native_end(u, LOSS_native_loop);
    u->registers[ARCH_SP] = cfa;
    u->registers[ARCH_PC] = address;
    u->last_cfa = cfa;
    u->exact = 0;
    /* Zero is the return address of thread starts without unwind information. User addresses have 56 bits at most. */
    if (!address)
        return native_end(u, LOSS_complete);
    if (address & ~NATIVE_ADDRESS)
        return native_end(u, LOSS_no_mapping);
    return 0;
}

/* Whether code is what a signal handler returns to, for C libraries that have no call frame information for it. */
WALK_INLINE int native_is_sigreturn(struct native_unwind *u, __u64 address)
{
    return !WALK_READ(u, &u->code, ARCH_SIGRETURN_LEN, address) && arch_is_sigreturn(u->code.bytes);
}

/*
 * libc's clone() and clone3() have no call frame information from their system call on, since it would be wrong in the child:
 * there the stack begins.
 */
WALK_INLINE int native_is_after_clone(struct native_unwind *u, __u64 address)
{
    return !WALK_READ(u, &u->code.word, sizeof u->code.word, address) && arch_is_after_clone(u->code.word);
}

WALK_INLINE int native_clone(struct native_unwind *u)
{
    __u64 sp = u->registers[ARCH_SP], address;

    if (!u->registers[ARCH_RESULT])
        return native_end(u, LOSS_complete);
    if (native_read(u, sp, &address))
        return native_end(u, LOSS_native_fault);
    return native_return(u, sp + ARCH_WORD_BYTES, address);
}

/* Code without call frame information that is known by its bytes: behind the system call of clone(), or in a PLT. */
WALK_INLINE int native_by_bytes(struct native_unwind *u)
{
    __u64 sp = u->registers[ARCH_SP], ip = u->registers[ARCH_PC], address;
    __u32 at = ip % ARCH_STUB_BYTES;
    int pushed = -1;

    if (native_is_after_clone(u, ip))
        return native_clone(u);
    if (!WALK_READ(u, &u->code, ARCH_STUB_BYTES, ip - at))
        pushed = arch_stub_pushed(u->code.bytes, at);
    if (pushed < 0)
        return native_end(u, LOSS_no_unwind_info);
    sp += ARCH_WORD_BYTES * (__u32)pushed;
    if (native_read(u, sp, &address))
        return native_end(u, LOSS_native_fault);
    return native_return(u, sp + ARCH_WORD_BYTES, address);
}

/* Reads the code around a return address; what stands before it may lie in no memory, and is zero then. 0: done. */
WALK_INLINE int native_read_call(struct native_unwind *u, __u64 address)
{
    __u8 *code = u->code.call;

    if (!WALK_READ(u, code, sizeof u->code.call, address - ARCH_TRAMPOLINE_LEN))
        return 0;
    code[ARCH_TRAMPOLINE_LEN - 1] = 0;
    return WALK_READ(u, code + ARCH_TRAMPOLINE_LEN, ARCH_EPILOGUE_LEN, address) != 0;
}

/* Steps over code that a program made. `frame` is its entry. */
WALK_INLINE int native_guess(struct native_unwind *u, struct native_frame *frame)
{
    __u64 *r = u->registers, sp = r[ARCH_SP], fp = r[ARCH_FP], address, saved;

    u->guessed = 1;
    if (!u->exact && !native_read_call(u, r[ARCH_PC])) {
        enum arch_epilogue epilogue = arch_epilogue_at(u->code.call + ARCH_TRAMPOLINE_LEN);
        if (arch_is_trampoline(u->code.call, epilogue))
            frame->ip |= NATIVE_TRAMPOLINE;
        if (epilogue != ARCH_EPILOGUE_UNKNOWN) {
            if (native_read(u, sp, &saved) || native_read(u, sp + ARCH_WORD_BYTES, &address))
                return native_end(u, LOSS_native_fault);
            if (epilogue == ARCH_EPILOGUE_POPS_FP) {
                r[ARCH_FP] = saved;
                u->fp_known = 1;
            }
            return native_return(u, sp + 2 * ARCH_WORD_BYTES, address);
        }
    }
    /* The frame pointer is 0 when a thread or a program starts. */
    if (u->mapping.flags & NATIVE_BY_POINTERS && u->fp_known && !fp && u->count > 1)
        return native_end(u, LOSS_complete);
    if (!u->fp_known || fp < sp || fp - sp > NATIVE_FP_MAX || fp % ARCH_WORD_BYTES)
        return native_end(u, u->mapping.flags & NATIVE_BY_POINTERS ? LOSS_no_frame_pointer : LOSS_no_unwind_info);
    if (native_read(u, fp, &saved) || native_read(u, fp + ARCH_WORD_BYTES, &address))
        return native_end(u, LOSS_native_fault);
    if (saved && (saved <= fp || saved - fp > NATIVE_FP_MAX))
        saved = u->fp_known = 0;
    r[ARCH_FP] = saved;
    u->bx_known = 0;
    return native_return(u, fp + ARCH_FRAME_RECORD_BYTES, address);
}

/* The value of a register, or the CFA. 0: it is known. */
WALK_INLINE int native_base(struct native_unwind *u, __u32 number, __u64 cfa, __u64 *out)
{
    __u64 at = number;

    if (number == UNWIND_BASE_CFA) {
        *out = cfa;
        return 0;
    }
    if (number >= ARCH_GENERAL_REGISTERS || (!u->exact && number != ARCH_SP && (number != ARCH_FP || !u->fp_known) &&
                                             (number != ARCH_BX || !u->bx_known)))
        return 1;
    WALK_BOUND(at, ARCH_GENERAL_REGISTERS - 1);
    *out = u->registers[at];
    return 0;
}

/* The value that a rule of a wide row gives. 0, or the loss reason. */
WALK_INLINE __u32 native_rule(struct native_unwind *u, const struct unwind_rule *rule, __u64 cfa, __u64 *out)
{
    __u64 base;

    if (native_base(u, rule->base, cfa, &base))
        return LOSS_register_unsupported;
    base += (__u64)(__s64)rule->offset;
    if (rule->kind == UNWIND_MEMORY) {
        if (native_read(u, base, &base))
            return LOSS_native_fault;
        base += (__u64)(__s64)rule->add;
    }
    *out = base;
    return 0;
}

/* The caller's value of the frame pointer or of ARCH_BX, by the rule for it. */
WALK_INLINE void native_saved(struct native_unwind *u, const struct unwind_rule *rule, __u64 cfa, __u64 *value,
                              __u32 *known)
{
    if (rule->kind != UNWIND_SAME)
        *known = rule->kind != UNWIND_UNDEFINED && !native_rule(u, rule, cfa, value);
}

/* A step by a wide row. */
WALK_INLINE int native_wide(struct native_unwind *u, __u32 number)
{
    const struct unwind_wide *wide = NATIVE_WIDE(u, number);
    __u64 cfa = 0, address = 0, fp = u->registers[ARCH_FP], bx = u->registers[ARCH_BX];
    __u32 reason, fp_known = u->fp_known, bx_known = u->bx_known;

    if (!wide)
        return native_end(u, LOSS_no_unwind_info);
    reason = native_rule(u, &wide->cfa, 0, &cfa);
    if (!reason)
        reason = native_rule(u, &wide->ra, cfa, &address);
    if (reason)
        return native_end(u, reason);
    if (cfa == u->registers[ARCH_SP] && wide->ra.kind == UNWIND_MEMORY)
        return native_end(u, LOSS_native_loop);
    /*
     * A realigned frame saves RBP where RBP points to, and GCC 12's rows go on saying so behind "pop %rbp". RBP then points
     * out of the frame: it is the caller's already, and so is what was popped before it.
     */
    if (!(u->exact && wide->rbp.kind == UNWIND_MEMORY && wide->rbp.base == ARCH_FP && !wide->rbp.offset &&
          (fp + ARCH_RED_ZONE_BYTES < u->registers[ARCH_SP] || fp >= cfa))) {
        native_saved(u, &wide->rbp, cfa, &fp, &fp_known);
        native_saved(u, &wide->rbx, cfa, &bx, &bx_known);
    }
    u->registers[ARCH_FP] = fp;
    u->registers[ARCH_BX] = bx;
    u->fp_known = fp_known;
    u->bx_known = bx_known;
    return native_return(u, cfa, address);
}

/* Finds the row that holds at `pc`: its number is u->low. 0: found. */
WALK_INLINE int native_search(struct native_unwind *u, __u32 pc)
{
    const struct unwind_row *row;
    const __u64 *index;
    __u32 page = (pc >> UNWIND_PAGE_SHIFT) - u->mapping.index_first;

    if (pc >> UNWIND_PAGE_SHIFT < u->mapping.index_first || page >= u->mapping.index_count)
        return 1;
    index = (const __u64 *)NATIVE_INDEX(u, page);
    if (!index)
        return 1;
    u->low = UNWIND_PAGE_LOW(*index);
    u->high = UNWIND_PAGE_HIGH(*index);
    for (int i = 0; i < UNWIND_SEARCH_STEPS; i++) {
        __u32 low = u->low, high = u->high;
        if (high - low <= 1 || high < low)
            break;
        __u32 middle = low + (high - low) / 2;
        row = NATIVE_ROW(u, middle);
        if (!row)
            return 1;
        if (row->pc <= pc)
            u->low = middle;
        else
            u->high = middle;
    }
    return 0;
}

/*
 * Reads the slot below the CFA where the frame saved a register. 0: done. If the slot lies below the stack pointer, the
 * register was popped already and has its value; but libffi's ffi_call moves the stack pointer above a slot before it reads
 * it, so what the red zone still holds goes first.
 */
WALK_INLINE int native_slot(struct native_unwind *u, __u64 address, __u64 *value, __u32 *known)
{
    __u64 sp = u->registers[ARCH_SP];

    if (address < sp) {
        if (sp - address <= ARCH_RED_ZONE_BYTES && !WALK_READ(u, &u->word, sizeof u->word, address)) {
            *value = u->word;
            *known = 1;
        }
        return 0;
    }
    *known = 1;
    return native_read(u, address, value);
}

/* A step by a row of type RSP, RBP or PLT. */
WALK_INLINE int native_plain(struct native_unwind *u, const struct unwind_row *row)
{
    __u64 *r = u->registers, cfa, address, fp = r[ARCH_FP], bx = r[ARCH_BX];
    __u32 type = UNWIND_TYPE(row->type), slot = UNWIND_RBX(row->type), fp_known = u->fp_known, bx_known = u->bx_known;

    if (type == UNWIND_RSP) {
        cfa = r[ARCH_SP] + UNWIND_UNIT * (__u64)row->cfa8;
    } else if (type == UNWIND_RBP) {
        if (!u->fp_known)
            return native_end(u, LOSS_register_unsupported);
        cfa = fp + UNWIND_UNIT * (__u64)row->cfa8;
    } else {
        cfa = r[ARCH_SP] + ARCH_PLT_CFA(r[ARCH_PC], row->cfa8);
    }
    /* Checked before anything is read from there. */
    if (cfa <= r[ARCH_SP])
        return native_end(u, LOSS_native_loop);
    if (slot == UNWIND_RBX_LOST)
        bx_known = 0;
    else if (slot && native_slot(u, cfa - UNWIND_UNIT * (1 + slot), &bx, &bx_known))
        bx_known = 0;
    if (row->rbp8 && native_slot(u, cfa + UNWIND_UNIT * (__s64)row->rbp8, &fp, &fp_known))
        fp_known = 0;
    if (native_read(u, cfa + ARCH_RETURN_ADDRESS, &address))
        return native_end(u, LOSS_native_fault);
    r[ARCH_FP] = fp;
    r[ARCH_BX] = bx;
    u->fp_known = fp_known;
    u->bx_known = bx_known;
    return native_return(u, cfa, address);
}

/*
 * One frame: adds its entry and finds its caller's registers. Returns 1 when the unwind has ended (u->end says how).
 * `frames` has room for NATIVE_MAX.
 */
WALK_INLINE int native_step(struct native_unwind *u, struct native_frame *frames)
{
    __u64 *r = u->registers, ip = r[ARCH_PC], at = ip - !u->exact, put = u->count;
    const struct unwind_row *row = 0;
    __u32 type = UNWIND_NONE;

    if (u->count >= NATIVE_MAX)
        return native_end(u, LOSS_native_too_deep);
    WALK_BOUND(put, NATIVE_MAX - 1);
    frames[put].ip = (ip & NATIVE_ADDRESS) | (u->exact ? NATIVE_EXACT : 0) | (u->guessed ? NATIVE_GUESSED : 0);
    frames[put].sp = r[ARCH_SP];
    u->count++;
    u->guesses += u->guessed;
    u->guessed = 0;
    u->met_rule = 0;
    u->last_cfa = WIRE_CFA_NONE;
    if (at < u->mapping.start || at >= u->mapping.end) {
        __u32 reason = NATIVE_MAPPING(u, at);
        if (reason) {
            u->mapping.start = u->mapping.end = 0;
            /* A guess that does not lead to code was wrong. */
            if (frames[put].ip & NATIVE_GUESSED) {
                u->count--;
                u->guesses--;
            }
            return native_end(u, reason);
        }
    }
    if (u->mapping.flags & NATIVE_NO_TABLE)
        return native_guess(u, &frames[put]);
    if (at - u->mapping.base <= 0xffffffffull && !native_search(u, (__u32)(at - u->mapping.base)))
        row = NATIVE_ROW(u, u->low);
    if (row && row->pc <= (__u32)(at - u->mapping.base))
        type = UNWIND_TYPE(row->type);
    if (type == UNWIND_RSP || type == UNWIND_RBP || type == UNWIND_END) {
        u->met_at = at;
        u->met_rule = native_rule_of(row);
    }
    if (type == UNWIND_RSP || type == UNWIND_RBP || type == UNWIND_PLT)
        return native_plain(u, row);
    if (type == UNWIND_END)
        return native_end(u, LOSS_complete);
    if (type == UNWIND_WIDE)
        return native_wide(u, row->cfa8);
    if (type == UNWIND_NONE &&
        (native_is_sigreturn(u, ip) || (u->exact && native_is_sigreturn(u, ip - ARCH_SIGRETURN_SYSCALL))))
        type = UNWIND_SIGNAL;
    if (type == UNWIND_SIGNAL) {
        frames[put].ip |= NATIVE_EXACT;
        return native_signal(u);
    }
    if (type == UNWIND_OTHER) {
        u->other = row->cfa8;
        return native_end(u, LOSS_register_unsupported);
    }
    return type == UNWIND_NONE && u->exact ? native_by_bytes(u) : native_end(u, LOSS_no_unwind_info);
}

#ifndef __bpf__
static_assert(sizeof(struct native_frame) == 16, "an entry");
static_assert(sizeof(struct native_mapping) == 56, "no holes");
#endif

#endif
