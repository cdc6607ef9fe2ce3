/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The native unwinder: from a thread's user registers to the return addresses on its
 * stack, by tables (bpf/unwind_row.h), without frame pointers.
 *
 * One piece of code for the BPF program and for the host, like the Python walk; what
 * differs is how memory is read and how the tables are reached. One step is one
 * frame. RBP and RBX are followed lazily: a row says where a frame saved them, and the
 * memory is read only when a frame further out needs the value.
 *
 * On the way it finds the frame that each run of Python frames belongs to: a run
 * carries the address of a record that its activation of the eval loop keeps on its
 * stack frame, and a frame is the interval [RSP, CFA).
 *
 * Code made at run time has no table. If its memory belongs to no file it is stepped
 * by frame pointer, within the stack's bounds; CPython's perf trampolines, which keep
 * none, are known by their instructions. Everything else that is not known ends the
 * unwinding with a reason: nothing is guessed.
 */
#ifndef BPF_TABLE_UNWIND_H
#define BPF_TABLE_UNWIND_H

#include "bpf/python_walk.h"
#include "bpf/unwind_row.h"
#include "bpf/wire.h"

#define NATIVE_WINDOW_MASK 8191
#define NATIVE_RBP 6
#define NATIVE_RBX 3
#define NATIVE_RSP 7
#define NATIVE_RIP 16

#ifdef __bpf__
#define NATIVE_TABLE(map, index)                        \
    ({                                                  \
        PY_U32 index_ = (index);                        \
        (void *)bpf_map_lookup_elem(&map, &index_);     \
    })
#define NATIVE_MAPPING(n, index) ((struct wire_mapping *)NATIVE_TABLE(mappings, index))
#define NATIVE_MODULE(n, index) ((struct wire_module *)NATIVE_TABLE(modules, index))
#define NATIVE_ROW(n, index) ((struct unwind_row *)NATIVE_TABLE(unwind_rows, index))
#define NATIVE_PAGE(n, index) ((PY_U64 *)NATIVE_TABLE(unwind_index, index))
#define NATIVE_WIDE(n, index) ((struct unwind_wide *)NATIVE_TABLE(unwind_wide_rows, index))
#else
/* The arrays that are maps under BPF. */
struct native_tables {
    struct wire_mapping *mappings;
    struct wire_module *modules;
    struct unwind_row *rows;
    uint64_t *index;
    struct unwind_wide *wide;
    uint32_t mapping_count, module_count, row_count, index_count, wide_count;
};
#define NATIVE_MAPPING(n, i) ((i) < (n)->tables.mapping_count ? &(n)->tables.mappings[i] : NULL)
#define NATIVE_MODULE(n, i) ((i) < (n)->tables.module_count ? &(n)->tables.modules[i] : NULL)
#define NATIVE_ROW(n, i) ((i) < (n)->tables.row_count ? &(n)->tables.rows[i] : NULL)
#define NATIVE_PAGE(n, i) ((i) < (n)->tables.index_count ? &(n)->tables.index[i] : NULL)
#define NATIVE_WIDE(n, i) ((i) < (n)->tables.wide_count ? &(n)->tables.wide[i] : NULL)
#endif

/* A register of the caller: known, saved somewhere, or lost. */
enum native_register { NATIVE_KNOWN, NATIVE_SAVED, NATIVE_LOST };
struct native_value {
    PY_U64 value; /* NATIVE_SAVED: the address it was saved at */
    PY_U32 kind;
    PY_U32 reserved;
};

struct native_unwind {
    PY_U64 ip, sp;
    struct native_value bp, bx;
    PY_U64 registers[WIRE_REGISTERS]; /* of a frame that was interrupted */
    PY_U32 interrupted;               /* ip is exact, and `registers` hold */
    PY_U32 count;                     /* frames found */
    PY_U32 end;                       /* loss reason that ended it; LOSS_complete */
    PY_U32 missing;                   /* number of the module whose table is missing, or WIRE_NO_MODULE */
    PY_U64 stack_limit;               /* no frame lies above; 0 unknown */
    PY_U32 mapping_start, mapping_count;
    /* the mapping of the last frame, and its module's table */
    PY_U64 map_start, map_end, map_base;
    PY_U32 map_module, map_flags;
    struct wire_module module;
    /* what a search works on: in memory, so that the verifier does not follow every path of it */
    PY_U32 low, high;
    PY_U64 window_start, window_len;
    PY_U64 cfa, ra;
    PY_U64 small[18];
    PY_U64 now_s;
    PY_U8 window[NATIVE_WINDOW_MASK + 1 + 8];
#ifndef __bpf__
    struct walk_memory memory;
    struct native_tables tables;
#endif
};

/* Eight bytes of the stack, through a window that is read ahead. */
WALK_INLINE int native_read(struct native_unwind *n, PY_U64 address, PY_U64 *out)
{
    PY_U64 at = address - n->window_start, len;

    if (address < n->window_start || at + 8 > n->window_len) {
        n->window_start = address;
        n->window_len = 0;
        at = 0;
        len = 2 * WALK_PAGE - (address & (WALK_PAGE - 1));
        WALK_BOUND(len, 16383);
        if (len > 2 * WALK_PAGE || WALK_READ(n, n->window, len, address)) {
            /* The next page is not there: to the end of this one. */
            len = WALK_PAGE - (address & (WALK_PAGE - 1));
            WALK_BOUND(len, NATIVE_WINDOW_MASK);
            if (len < 8 || WALK_READ(n, n->window, len, address))
                return 1;
        }
        n->window_len = len;
    }
    *out = WALK_U64(n->window, at, NATIVE_WINDOW_MASK);
    return 0;
}

WALK_INLINE int native_value(struct native_unwind *n, struct native_value *v, PY_U64 *out)
{
    if (v->kind == NATIVE_LOST)
        return 1;
    if (v->kind == NATIVE_SAVED) {
        if (WALK_READ(n, &n->small[0], 8, v->value))
            return 1;
        v->value = n->small[0];
        v->kind = NATIVE_KNOWN;
    }
    *out = v->value;
    return 0;
}

/* The registers in DWARF order; `stack_size` is the distance to the stack's start, 0 unknown. */
WALK_INLINE void native_begin(struct native_unwind *n, const PY_U64 *registers, PY_U64 stack_size)
{
    for (int i = 0; i < WIRE_REGISTERS; i++)
        n->registers[i] = registers[i];
    n->ip = registers[NATIVE_RIP];
    n->sp = registers[NATIVE_RSP];
    n->bp.value = registers[NATIVE_RBP];
    n->bx.value = registers[NATIVE_RBX];
    n->bp.kind = n->bx.kind = NATIVE_KNOWN;
    n->interrupted = 1;
    n->count = 0;
    n->end = 0;
    n->missing = WIRE_NO_MODULE;
    n->stack_limit = stack_size ? n->sp + stack_size : 0;
    n->map_start = n->map_end = 0;
    n->window_start = n->window_len = 0;
}

/* The mapping that holds `ip`, by halving: n->low is the first one that ends behind it. */
WALK_INLINE int native_search_mapping(struct native_unwind *n, PY_U64 ip)
{
    n->low = 0;
    n->high = n->mapping_count;
    for (int i = 0; i < 20; i++) {
        PY_U32 low = n->low, high = n->high;
        if (low >= high)
            break;
        PY_U32 mid = low + (high - low) / 2;
        struct wire_mapping *m = NATIVE_MAPPING(n, n->mapping_start + mid);
        if (!m)
            return 1;
        if (m->end <= ip)
            n->low = mid + 1;
        else
            n->high = mid;
    }
    if (n->low >= n->mapping_count)
        return 1;
    struct wire_mapping *m = NATIVE_MAPPING(n, n->mapping_start + n->low);
    if (!m || ip < m->start || ip >= m->end)
        return 1;
    n->map_start = m->start;
    n->map_end = m->end;
    n->map_base = m->base;
    n->map_module = m->module;
    n->map_flags = m->flags;
    n->module.row_count = 0;
    if (m->module != WIRE_NO_MODULE) {
        struct wire_module *module = NATIVE_MODULE(n, m->module);
        if (module) {
            n->module = *module;
            module->used_s = (PY_U32)n->now_s;
        }
    }
    return 0;
}

/* The row in force at `pc`: n->low is behind it. Type UNWIND_NONE where there is none. */
WALK_INLINE int native_search_row(struct native_unwind *n, PY_U32 pc, struct unwind_row *out)
{
    PY_U32 page = (pc >> UNWIND_PAGE_SHIFT) - n->module.index_first;

    out->type = UNWIND_NONE;
    if (page >= n->module.index_count)
        return 0;
    PY_U64 *bounds = NATIVE_PAGE(n, n->module.index_start + page);
    if (!bounds)
        return 1;
    n->low = UNWIND_PAGE_LOW(*bounds);
    n->high = UNWIND_PAGE_HIGH(*bounds);
    PY_U32 first = n->low;
    for (int i = 0; i < UNWIND_SEARCH_STEPS; i++) {
        PY_U32 low = n->low, high = n->high;
        if (low >= high)
            break;
        PY_U32 mid = low + (high - low) / 2;
        struct unwind_row *r = NATIVE_ROW(n, n->module.row_start + mid);
        if (!r)
            return 1;
        if (r->pc <= pc)
            n->low = mid + 1;
        else
            n->high = mid;
    }
    if (n->low <= first || n->low > n->module.row_count)
        return 0;
    struct unwind_row *r = NATIVE_ROW(n, n->module.row_start + n->low - 1);
    if (!r)
        return 1;
    *out = *r;
    return 0;
}

/* A base register of a wide row. */
WALK_INLINE int native_base(struct native_unwind *n, PY_U32 reg, PY_U64 *out)
{
    PY_U64 at = reg;

    if (reg == NATIVE_RSP) {
        *out = n->sp;
        return 0;
    }
    if (reg == NATIVE_RBP)
        return native_value(n, &n->bp, out);
    if (reg == NATIVE_RBX)
        return native_value(n, &n->bx, out);
    if (reg == UNWIND_BASE_CFA) {
        *out = n->cfa;
        return 0;
    }
    WALK_BOUND(at, 15);
    if (!n->interrupted || reg > 15)
        return 1;
    *out = n->registers[at];
    return 0;
}

/* A rule for the CFA or the return address. Gives a loss reason, or 0. */
WALK_INLINE PY_U32 native_rule(struct native_unwind *n, const struct unwind_rule *rule, PY_U64 *out)
{
    PY_U64 base;

    if (rule->kind != UNWIND_VALUE && rule->kind != UNWIND_MEMORY)
        return LOSS_register_unsupported;
    if (native_base(n, rule->base, &base))
        return LOSS_register_unsupported;
    base += (PY_S64)rule->offset;
    if (rule->kind == UNWIND_MEMORY) {
        if (WALK_READ(n, &n->small[0], 8, base))
            return LOSS_native_fault;
        base = n->small[0] + (PY_S64)rule->add;
    }
    *out = base;
    return 0;
}

/* A rule for RBP or RBX of the caller. */
WALK_INLINE void native_save(struct native_unwind *n, const struct unwind_rule *rule, struct native_value *v)
{
    PY_U64 base;

    if (rule->kind == UNWIND_SAME)
        return;
    if ((rule->kind != UNWIND_VALUE && rule->kind != UNWIND_MEMORY) || native_base(n, rule->base, &base) ||
        (rule->kind == UNWIND_MEMORY && rule->add)) {
        v->kind = NATIVE_LOST;
        return;
    }
    v->value = base + (PY_S64)rule->offset;
    v->kind = rule->kind == UNWIND_MEMORY ? NATIVE_SAVED : NATIVE_KNOWN;
}

/* From the handler of a signal to what it interrupted: the kernel left all registers on the stack. */
WALK_INLINE int native_signal(struct native_unwind *n)
{
    /* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip (struct sigcontext) */
    if (WALK_READ(n, &n->small[0], 17 * 8, n->sp + UNWIND_SIGNAL_R8)) {
        n->end = LOSS_native_fault;
        return 1;
    }
    for (int i = 0; i < 8; i++)
        n->registers[8 + i] = n->small[i];
    n->registers[5] = n->small[8];
    n->registers[4] = n->small[9];
    n->registers[NATIVE_RBP] = n->small[10];
    n->registers[NATIVE_RBX] = n->small[11];
    n->registers[1] = n->small[12];
    n->registers[0] = n->small[13];
    n->registers[2] = n->small[14];
    n->registers[NATIVE_RSP] = n->small[15];
    n->registers[NATIVE_RIP] = n->small[16];
    n->bp.value = n->registers[NATIVE_RBP];
    n->bx.value = n->registers[NATIVE_RBX];
    n->bp.kind = n->bx.kind = NATIVE_KNOWN;
    n->interrupted = 1;
    /* A handler may run on a stack of its own: the frame below it may lie anywhere. */
    n->cfa = n->registers[NATIVE_RSP];
    n->ra = n->registers[NATIVE_RIP];
    n->stack_limit = 0;
    return 0;
}

/* Code made at run time: a perf trampoline of CPython, or a frame pointer. */
WALK_INLINE int native_anonymous(struct native_unwind *n)
{
    PY_U64 bp;

    n->end = LOSS_no_unwind_info;
    /* add $8,%rsp; ret: behind the call of CPython's trampoline (Objects or Python/asm_trampoline.S, 3.12 on) */
    if (!n->interrupted && !WALK_READ(n, &n->small[0], 8, n->ip) && (n->small[0] & 0xffffffffffull) == 0xc308c48348ull) {
        n->cfa = n->sp + 16;
    } else {
        if (native_value(n, &n->bp, &bp) || bp < n->sp || bp & 7 || bp - n->sp > WALK_NATIVE_STACK_BYTES ||
            (n->stack_limit && bp >= n->stack_limit))
            return 1;
        n->cfa = bp + 16;
        n->bp.value = bp;
        n->bp.kind = NATIVE_SAVED;
    }
    if (native_read(n, n->cfa - 8, &n->ra)) {
        n->end = LOSS_native_fault;
        return 1;
    }
    n->bx.kind = NATIVE_LOST;
    n->end = 0;
    return 0;
}

/*
 * One frame: notes it in `frames` (room for WIRE_NATIVE_MAX) and goes to its caller. 1 when the unwinding has ended
 * (n->end says how). The frame is [sp, cfa): n->sp before, n->cfa after the call.
 */
WALK_INLINE int native_step(struct native_unwind *n, PY_U64 *frames)
{
    struct unwind_row row = {0};
    PY_U64 ip = n->ip, put = n->count, value;
    PY_U32 type, rbx, reason;

    n->cfa = ~0ull;
    if (n->count >= WIRE_NATIVE_MAX) {
        n->end = LOSS_native_too_deep;
        return 1;
    }
    WALK_BOUND(put, WIRE_NATIVE_MAX - 1);
    frames[put] = n->interrupted ? ip : ip | WIRE_RETURN;
    n->count++;
    if (!n->interrupted)
        ip--;
    if ((ip < n->map_start || ip >= n->map_end) && native_search_mapping(n, ip)) {
        n->end = LOSS_no_mapping;
        return 1;
    }
    if (n->map_flags & WIRE_MAPPING_ANONYMOUS) {
        if (native_anonymous(n))
            return 1;
        n->interrupted = 0;
        goto stepped;
    }
    if (!n->module.row_count) {
        n->missing = n->map_module;
        n->end = n->map_module == WIRE_NO_MODULE ? LOSS_no_module : LOSS_table_missing;
        return 1;
    }
    if (native_search_row(n, (PY_U32)(ip - n->map_base), &row)) {
        n->end = LOSS_table_missing;
        return 1;
    }
    type = UNWIND_TYPE(row.type);
    rbx = UNWIND_RBX(row.type);
    if (type == UNWIND_RSP) {
        n->cfa = n->sp + 8ull * row.cfa8;
    } else if (type == UNWIND_RBP) {
        if (native_value(n, &n->bp, &value)) {
            n->end = LOSS_register_unsupported;
            return 1;
        }
        n->cfa = value + 8ull * row.cfa8;
    } else if (type == UNWIND_END) {
        n->end = LOSS_complete;
        return 1;
    } else if (type == UNWIND_PLT) {
        n->cfa = n->sp + 8 + ((n->ip & 15) >= row.cfa8 ? 8 : 0);
    } else if (type == UNWIND_SIGNAL) {
        if (native_signal(n))
            return 1;
        n->ip = n->ra;
        n->sp = n->cfa;
        return 0;
    } else if (type == UNWIND_WIDE) {
        struct unwind_wide *wide = NATIVE_WIDE(n, n->module.wide_start + row.cfa8);
        if (!wide) {
            n->end = LOSS_table_missing;
            return 1;
        }
        reason = native_rule(n, &wide->cfa, &n->cfa);
        if (!reason)
            reason = native_rule(n, &wide->ra, &n->ra);
        if (reason) {
            n->end = reason;
            return 1;
        }
        struct native_value bp = n->bp, bx = n->bx;
        native_save(n, &wide->rbp, &bp);
        native_save(n, &wide->rbx, &bx);
        n->bp = bp;
        n->bx = bx;
        n->interrupted = 0;
        goto stepped;
    } else {
        n->end = type == UNWIND_NONE ? LOSS_no_unwind_info : LOSS_register_unsupported;
        return 1;
    }
    if (native_read(n, n->cfa - 8, &n->ra)) {
        n->end = LOSS_native_fault;
        return 1;
    }
    if (row.rbp8) {
        n->bp.value = n->cfa + (PY_S64)row.rbp8 * 8;
        n->bp.kind = NATIVE_SAVED;
    }
    if (rbx == UNWIND_RBX_LOST) {
        n->bx.kind = NATIVE_LOST;
    } else if (rbx) {
        n->bx.value = n->cfa - 8 - 8ull * rbx;
        n->bx.kind = NATIVE_SAVED;
    }
    n->interrupted = 0;
stepped:
    if (n->cfa <= n->sp || (n->stack_limit && n->cfa > n->stack_limit)) {
        n->end = LOSS_native_loop;
        return 1;
    }
    if (!n->ra) {
        n->end = LOSS_complete; /* nothing called it */
        return 1;
    }
    n->ip = n->ra;
    n->sp = n->cfa;
    return 0;
}

#endif
