/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A cache of unwind rows, and the short loop that unwinds by it.
 *
 * To find the row of an address takes a search over the process's mappings, another one over the module's rows, and their
 * cache misses. But return addresses repeat: a program calls from the same few places all the time. So what a row says is
 * kept by address, and a frame whose row is there needs three loads of the stack at most. Everything else is left to
 * native_step(), which finds the same: an address without an entry, other types of rows, words that are not in the buffer,
 * a register that is not known, slots below the stack pointer, an address that cannot be one.
 *
 * An entry holds for the address, and for the list of mappings that has the number `key`. Such a list is never changed, and
 * its number never used again: a process whose mappings change gets another list (capture/process/process_sampling.c), and
 * so another key. Of one list an address belongs to one place of one module for ever. What may change below it are the
 * tables of modules: who takes one out raises `rows_generation` behind that, and a CPU that sees another generation than
 * its cache's empties the cache before it looks into any table. So an entry of a table that was taken out is not met by a
 * sample that begins later, neither if it was there before nor if a sample that was under way put it there afterwards.
 *
 * An entry also has the time on it, in units of NATIVE_ROW_NS: one that is older is looked up again, which marks the table
 * as used (struct wire_module). That is only for those who look for tables to take out.
 */
#ifndef BPF_NATIVE_ROWS_H
#define BPF_NATIVE_ROWS_H

#include "bpf/native_unwind.h"

#define NATIVE_ROWS 2048 /* a power of two */
#define NATIVE_ROW_NS_SHIFT 32
#define NATIVE_ROW_ADDRESS_BITS 56 /* of an address of user space, at most */

struct native_row {
    __u64 at;   /* the address, or the one before a return address; the time above it */
    __u32 key;  /* of the list of mappings; 0: the entry is free */
    __u32 rule; /* what native_rule_of() makes of the row */
};

#define NATIVE_FRAMES_AT_ONCE 8 /* so many the verifier of 5.10 can follow */
enum native_fast { NATIVE_FAST_STOPS, NATIVE_FAST_GOES_ON, NATIVE_FAST_ENDED };

/* The unwinding that has just begun uses a cache, for the list of mappings `key`; 0: it does not. */
WALK_INLINE void native_use_rows(struct native_unwind *u, __u32 key, __u64 time_ns)
{
    u->row_key = key;
    u->row_tag = time_ns >> NATIVE_ROW_NS_SHIFT << NATIVE_ROW_ADDRESS_BITS;
}

/* The entry for an address. */
WALK_INLINE struct native_row *native_row_at(struct native_row *rows, __u64 at, __u32 key)
{
    __u64 slot = at ^ at >> 11 ^ key * 0x9e5u;

    WALK_BOUND(slot, NATIVE_ROWS - 1);
    return &rows[slot];
}

/* Keeps the row that the last native_step() went by. */
WALK_INLINE void native_keep_row(struct native_unwind *u, struct native_row *rows)
{
    if (!u->met_rule || !u->row_key || u->met_at >> NATIVE_ROW_ADDRESS_BITS)
        return;
    struct native_row *row = native_row_at(rows, u->met_at, u->row_key);
    row->at = u->met_at ^ u->row_tag;
    row->key = u->row_key;
    row->rule = u->met_rule;
}

/* What the loop keeps in registers. */
struct native_run {
    __u64 pc, sp, fp, bx;
    __u64 exact; /* NATIVE_EXACT, or 0 */
    __u32 fp_known, bx_known;
    __u64 start, room; /* of the buffer: words that begin at most `room` behind its start are in it */
};

/* Goes to the caller by the rule of a row. 0: done; else nothing has changed. */
WALK_INLINE int native_follow(struct native_run *n, const struct live_stack *k, __u32 rule)
{
    __u64 lowest = n->sp > n->start ? n->sp : n->start, base = n->sp, slot = rule >> 20 & 15, fp = n->fp, bx = n->bx;

    if ((rule >> 16 & 15) == UNWIND_RBP) {
        if (!n->fp_known)
            return 1;
        base = n->fp;
    }
    /* The last word below the CFA is the return address. Slots of registers are further down, as a rule. */
    __u64 last = base + UNWIND_UNIT * (__u64)(rule & 0xffff) + ARCH_RETURN_ADDRESS;
    if (last < lowest || last - n->start > n->room)
        return 1;
    __u64 pc = WALK_U64(k->bytes, last - n->start, LIVE_STACK_MASK);
    if ((pc - 1) >> NATIVE_ROW_ADDRESS_BITS)
        return 1;
    __s64 saved = (__s32)rule >> 24;
    if (saved) {
        __u64 from = last - ARCH_RETURN_ADDRESS + (__u64)(UNWIND_UNIT * saved);
        if (from < lowest || from - n->start > n->room)
            return 1;
        fp = WALK_U64(k->bytes, from - n->start, LIVE_STACK_MASK);
    }
    if (slot) {
        __u64 from = last - UNWIND_UNIT * slot;
        if (slot == UNWIND_RBX_LOST || from < lowest || from > last)
            return 1;
        bx = WALK_U64(k->bytes, from - n->start, LIVE_STACK_MASK);
    }
    n->pc = pc;
    n->sp = last - ARCH_RETURN_ADDRESS;
    n->fp = fp;
    n->bx = bx;
    n->fp_known |= saved != 0;
    n->bx_known |= slot != 0;
    n->exact = 0;
    return 0;
}

/*
 * The next frames, as native_step() would unwind them, as long as their rows are in the cache and the stack in the buffer.
 * NATIVE_FAST_STOPS: the next one is for native_step().
 */
WALK_INLINE enum native_fast native_step_fast(struct native_unwind *u, struct native_frame *frames, struct native_row *rows)
{
    const struct live_stack *k = NATIVE_STACK(u);
    __u64 *r = u->registers, tag = u->row_tag, count = u->count;
    struct native_run n = {r[ARCH_PC], r[ARCH_SP], r[ARCH_FP], r[ARCH_BX], u->exact ? NATIVE_EXACT : 0,
                           u->fp_known, u->bx_known, k->start, k->len_bytes - sizeof(__u64)};
    __u32 key = u->row_key;
    enum native_fast result = NATIVE_FAST_STOPS;

    if (!key || u->guessed || k->len_bytes < sizeof(__u64) || (n.pc - 1) >> NATIVE_ROW_ADDRESS_BITS)
        return result;
    for (int i = 0; i < NATIVE_FRAMES_AT_ONCE; i++) {
        __u64 at = n.pc - !n.exact, put = count;
        struct native_frame frame = {n.pc | n.exact, n.sp};
        const struct native_row *row = native_row_at(rows, at, key);
        if (row->at != (at ^ tag) || row->key != key || count >= NATIVE_MAX)
            break;
        if ((row->rule >> 16 & 15) == UNWIND_END)
            result = NATIVE_FAST_ENDED;
        else if (native_follow(&n, k, row->rule))
            break;
        WALK_BOUND(put, NATIVE_MAX - 1);
        frames[put] = frame;
        count++;
        if (result == NATIVE_FAST_ENDED)
            break;
        if (i == NATIVE_FRAMES_AT_ONCE - 1)
            result = NATIVE_FAST_GOES_ON;
    }
    if (count == u->count)
        return result;
    r[ARCH_PC] = n.pc;
    r[ARCH_SP] = n.sp;
    r[ARCH_FP] = n.fp;
    r[ARCH_BX] = n.bx;
    u->exact = n.exact != 0;
    u->fp_known = n.fp_known;
    u->bx_known = n.bx_known;
    u->cached += (__u32)count - u->count;
    u->count = (__u32)count;
    u->last_cfa = n.sp;
    if (result == NATIVE_FAST_ENDED) {
        u->last_cfa = WIRE_CFA_NONE;
        u->end = LOSS_complete;
    }
    return result;
}

#ifndef __bpf__
/* Unwinds to the end, from where native_begin() and native_use_rows() began. */
static inline void native_unwind_by_rows(struct native_unwind *u, struct native_frame *frames, struct native_row *rows)
{
    enum native_fast fast;

    while ((fast = native_step_fast(u, frames, rows)) != NATIVE_FAST_ENDED) {
        if (fast == NATIVE_FAST_GOES_ON)
            continue;
        int ended = native_step(u, frames);
        native_keep_row(u, rows);
        if (ended)
            break;
    }
}

static_assert(sizeof(struct native_row) == 16, "four to a cache line");
#endif

#endif
