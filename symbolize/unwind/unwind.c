/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds one frame at a time: find the rules of the address, let libunwind apply
 * them to the registers, read the registers back.
 *
 * libunwind keeps a cursor's state across steps, guesses where rules are missing,
 * and caches by address, so that an address as return address and the same address
 * interrupted by a signal (which may lie in two functions) share an entry. None of
 * that is used. A step here is a cursor of its own, initialized with all registers
 * at the address whose rules apply: the instruction itself, or, for a return
 * address, the last byte of the call.
 *
 * libunwind does not see the process's addresses of code either. Each module has a
 * place of its own (slot) in an address space made up here, and what libunwind
 * computed for an address of a module holds for every process that maps it. Its
 * rules (an opaque block per row of the CFI table) are kept by module address,
 * equal ones once; the CFI they come from is checked and copied first
 * (unwind_rules.c) and stays in place, because expressions are read when applied.
 */
#include "symbolize/unwind/unwind.h"

#include <libunwind-x86_64.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"
#include "symbolize/unwind/unwind_module.h"
#include "symbolize/unwind/unwind_rules.h"

/* Exported for debuggers that bring their own tables; no header declares it. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
                                       int need_unwind_info, void *arg);

enum {
    BP = UNW_X86_64_RBP,
    SP = UNW_X86_64_RSP,
    IP = UNW_X86_64_RIP,
    ENTRY_LEN = 64,           /* bytes behind e_entry that count as the start of the program */
    SLOT_SHIFT = 40,          /* address bits of a module */
    SLOT_MAX = 1 << 20,
    CACHE_BYTES_MAX = 1 << 27,
    RED_ZONE_BYTES = 128,     /* below the stack pointer; leaf functions may use them (System V ABI for x86-64) */
};
/* Above every user address, so that neither can be mistaken for memory of the process. */
#define CODE_BASE ((uint64_t)1 << 62)
#define CFI_BASE ((uint64_t)1 << 61)
#define RETURN_ADDRESS_KEY ((uint64_t)1 << 63)

/* What is kept of an address: a row of rules, or why there is none. */
enum step_kind {
    STEP_ROW,            /* number: of the row */
    STEP_SIGNAL_ROW,     /* the same, of a signal frame */
    STEP_SIGRETURN,      /* the trampoline behind a signal handler, without CFI */
    STEP_END,            /* the program's start, without CFI */
    STEP_LOSS,           /* number: the loss reason */
};
struct step {
    enum step_kind kind;
    uint32_t number;
};

struct placement {
    uint64_t bias;
    bool known, good;
};

struct unwinder {
    unw_addr_space_t space;
    const struct unwind_mapping *mappings;
    uint32_t mapping_count;
    uint64_t generation;
    VEC(struct placement) placements; /* by mapping */
    VEC(struct unwind_module *) slots;
    struct buf cfi;    /* what CFI_BASE shows: zeros (a search table of one row), then the copies */
    struct map fdes;   /* code address of the function -> offset in `cfi`, or NO_RULES */
    struct map steps;  /* code address | RETURN_ADDRESS_KEY -> struct step, packed */
    struct intern rows;

    /* Of the run at hand. */
    uint64_t registers[UNWIND_REGISTERS];
    uint32_t valid; /* bit per register */
    uint32_t lost;  /* those not valid because the snapshot does not hold where they were saved */
    const uint8_t *stack;
    uint64_t stack_address, stack_len;
    uint32_t mapping; /* of the current address; hint for the next */
    uint64_t code;    /* address that libunwind sees */
    uint64_t fde;     /* offset in `cfi` */
    uint64_t found_row; /* of the search for the row, or UINT64_MAX */
    bool memory_fault, register_fault;
};
#define NO_RULES UINT64_MAX

static bool mapping_holds(const struct unwind_mapping *m, uint64_t address)
{
    return address >= m->address && address - m->address < m->length;
}

/* The last mapping that starts at or before `address`, or UINT32_MAX. */
static uint32_t mapping_before(const struct unwinder *u, uint64_t address)
{
    uint32_t low = 0, high = u->mapping_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (address < u->mappings[middle].address)
            high = middle;
        else
            low = middle + 1;
    }
    return low - 1;
}

static uint32_t find_mapping(const struct unwinder *u, uint64_t address)
{
    if (u->mapping < u->mapping_count && mapping_holds(&u->mappings[u->mapping], address))
        return u->mapping;
    uint32_t i = mapping_before(u, address);
    return i != UINT32_MAX && mapping_holds(&u->mappings[i], address) ? i : UINT32_MAX;
}

static bool placement_of(struct unwinder *u, uint32_t mapping, uint64_t *bias)
{
    struct placement *p = &u->placements.data[mapping];

    if (!p->known) {
        const struct unwind_mapping *m = &u->mappings[mapping];
        p->known = true;
        p->good = m->module && unwind_module_bias(m->module, m, &p->bias);
    }
    *bias = p->bias;
    return p->good;
}

/* Read-only memory of the files around an address: of the mapping it lies in, or of a neighbour's other segments. */
static bool read_module_memory(struct unwinder *u, uint64_t address, void *out, uint64_t len_bytes)
{
    uint32_t before = mapping_before(u, address);
    uint64_t bias;

    for (uint32_t i = before == UINT32_MAX ? 0 : before; i < u->mapping_count && i <= before + 1; i++)
        if (placement_of(u, i, &bias) && unwind_module_read(u->mappings[i].module, address - bias, out, len_bytes))
            return true;
    return false;
}

static bool read_stack(const struct unwinder *u, uint64_t address, void *out, uint64_t len_bytes)
{
    if (address < u->stack_address || u->stack_len < len_bytes ||
        address - u->stack_address > u->stack_len - len_bytes)
        return false;
    memcpy(out, u->stack + (address - u->stack_address), len_bytes);
    return true;
}

static bool read_cfi(const struct unwinder *u, uint64_t address, uint64_t *out)
{
    uint64_t at = address - CFI_BASE;

    if (address < CFI_BASE || at >= u->cfi.len_bytes)
        return false;
    uint64_t have = u->cfi.len_bytes - at;
    *out = 0;
    memcpy(out, u->cfi.data + at, have < sizeof *out ? have : sizeof *out);
    return true;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *arg)
{
    struct unwinder *u = arg;

    (void)space;
    if (!write && (read_stack(u, address, value, sizeof *value) || read_cfi(u, address, value) ||
                   read_module_memory(u, address, value, sizeof *value)))
        return 0;
    u->memory_fault = true;
    return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
    struct unwinder *u = arg;

    (void)space;
    if (write || reg < 0 || reg >= UNWIND_REGISTERS)
        return -UNW_EBADREG;
    if (!(u->valid & (1u << reg))) {
        if (u->lost & (1u << reg))
            u->memory_fault = true;
        else
            u->register_fault = true;
        return -UNW_EBADREG;
    }
    *value = reg == IP ? u->code : u->registers[reg];
    return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
    (void)space, (void)reg, (void)value, (void)write, (void)arg;
    return -UNW_EBADREG;
}

/* The FDE was found and copied before libunwind asks; it parses it by way of a search table with that one row. */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info, void *arg)
{
    struct unwinder *u = arg;
    unw_dyn_info_t table = {
        .start_ip = ip, .end_ip = ip + 1, .format = UNW_INFO_FORMAT_IP_OFFSET,
        .u.rti = {.segbase = CFI_BASE + u->fde, .table_data = CFI_BASE, .table_len = 1},
    };

    /* Anything but UNW_ENOINFO, after which libunwind would guess. */
    if (ip != u->code || UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need_unwind_info, arg) < 0)
        return -UNW_EBADFRAME;
    return 0;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
    (void)space, (void)info, (void)arg;
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *address, void *arg)
{
    (void)space, (void)address, (void)arg;
    return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
    (void)space, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t ip, char *name, size_t len_bytes, unw_word_t *offset,
                         void *arg)
{
    (void)space, (void)ip, (void)name, (void)len_bytes, (void)offset, (void)arg;
    return -UNW_ENOINFO;
}

/* Forgets everything that slots, copies and rows number. */
static void forget(struct unwinder *u)
{
    static const uint8_t table_row[8]; /* function at +0, FDE at +0: find_proc_info() gives the bases */

    u->slots.count = 0;
    buf_clear(&u->cfi);
    buf_put(&u->cfi, table_row, sizeof table_row);
    map_clear(&u->fdes);
    map_clear(&u->steps);
    intern_clear(&u->rows);
}

struct error *unwinder_create(struct unwinder **out)
{
    unw_accessors_t accessors = {
        .find_proc_info = find_proc_info, .put_unwind_info = put_unwind_info,
        .get_dyn_info_list_addr = get_dyn_info_list_addr, .access_mem = access_mem, .access_reg = access_reg,
        .access_fpreg = access_fpreg, .resume = resume, .get_proc_name = get_proc_name,
    };
    struct unwinder *u = calloc(1, sizeof *u);

    if (!u || !(u->space = unw_create_addr_space(&accessors, 0))) {
        free(u);
        return error_no_memory();
    }
    unw_set_caching_policy(u->space, UNW_CACHE_NONE);
    forget(u);
    if (u->cfi.bad) {
        unwinder_destroy(u);
        return error_no_memory();
    }
    *out = u;
    return NULL;
}

void unwinder_destroy(struct unwinder *u)
{
    if (!u)
        return;
    unw_destroy_addr_space(u->space);
    VEC_DEINIT(&u->placements);
    VEC_DEINIT(&u->slots);
    buf_deinit(&u->cfi);
    map_deinit(&u->fdes);
    map_deinit(&u->steps);
    intern_deinit(&u->rows);
    free(u);
}

void unwinder_set_mappings(struct unwinder *u, const struct unwind_mapping *mappings, uint32_t count, uint64_t generation)
{
    bool same = u->mappings && u->generation == generation && u->mapping_count == count;

    u->mappings = mappings;
    if (same)
        return;
    u->generation = generation;
    u->mapping = UINT32_MAX;
    u->mapping_count = 0; /* without memory every address is outside */
    if (!VEC_RESERVE(&u->placements, count))
        return;
    if (count)
        memset(u->placements.data, 0, count * sizeof *u->placements.data);
    u->mapping_count = count;
}

/*
 * The module's place. A slot number found in a module counts only if this unwinder's table agrees, so modules may be
 * closed, and used by several unwinders.
 */
static bool slot_of(struct unwinder *u, struct unwind_module *m)
{
    if (m->slot < u->slots.count && u->slots.data[m->slot] == m)
        return true;
    if (u->slots.count >= SLOT_MAX)
        forget(u);
    m->slot = (uint32_t)u->slots.count;
    return VEC_PUSH(&u->slots, m);
}

static uint64_t pack(struct step s)
{
    return (uint64_t)s.kind << 32 | s.number;
}

static struct step loss(uint32_t reason)
{
    return (struct step){STEP_LOSS, reason};
}

static int take_row(void *arg, void *state, size_t state_len, unw_word_t start, unw_word_t end)
{
    struct unwinder *u = arg;

    if (u->code < start || u->code >= end)
        return 0;
    u->found_row = intern_id(&u->rows, state, (uint32_t)state_len, NULL);
    return -UNW_ESTOPUNWIND; /* no need of the rows behind */
}

/* mov $15, %rax; syscall: where a signal handler returns to. */
static bool holds_sigreturn(const struct unwind_module *m, uint64_t vaddr)
{
    static const uint8_t code[9] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    uint8_t here[sizeof code];

    return unwind_module_read(m, vaddr, here, sizeof here) && !memcmp(here, code, sizeof code);
}

/* At its start, or at the system call. */
static bool is_sigreturn(const struct unwind_module *m, uint64_t vaddr)
{
    return holds_sigreturn(m, vaddr) || holds_sigreturn(m, vaddr - 7);
}

/* Inside the system call: the address is the one behind the trampoline, where its information has ended. */
static bool in_sigreturn(const struct unwind_module *m, uint64_t vaddr)
{
    return holds_sigreturn(m, vaddr - 9);
}

/* The rules at an address of a module, from its CFI. */
static struct step make_step(struct unwinder *u, struct unwind_module *m, uint64_t vaddr, bool return_address)
{
    struct cfi_fde fde;
    unw_cursor_t cursor;
    bool have_fde = unwind_module_fde(m, vaddr, &fde);
    uint64_t entry = m->elf.header.e_entry;

    /* The byte before the trampoline may well have rules, of another function. */
    if (!(have_fde && fde.signal_frame) && is_sigreturn(m, vaddr + return_address))
        return (struct step){.kind = STEP_SIGRETURN};
    if (!have_fde && !return_address && in_sigreturn(m, vaddr))
        return (struct step){.kind = STEP_SIGRETURN};
    if (!have_fde)
        return entry && vaddr >= entry && vaddr - entry < ENTRY_LEN ? (struct step){.kind = STEP_END}
                                                                        : loss(LOSS_no_unwind_info);
    uint64_t base = u->code - vaddr;
    uint64_t *known = map_get(&u->fdes, base + fde.start);
    if (!known) {
        uint64_t offset = NO_RULES;
        size_t before = u->cfi.len_bytes;
        if (!unwind_rules_append(&fde, base, &u->cfi, &offset)) {
            offset = NO_RULES;
            if (!u->cfi.bad)
                u->cfi.len_bytes = before;
        }
        map_set(&u->fdes, base + fde.start, offset);
        u->fde = offset;
    } else {
        u->fde = *known;
    }
    if (u->fde == NO_RULES)
        return loss(LOSS_register_unsupported);
    u->found_row = UINT64_MAX;
    if (unw_init_remote(&cursor, u->space, u) < 0)
        return loss(LOSS_native_fault);
    unw_reg_states_iterate(&cursor, take_row, u);
    if (u->found_row >= INTERN_NONE)
        return loss(LOSS_no_unwind_info);
    return (struct step){fde.signal_frame ? STEP_SIGNAL_ROW : STEP_ROW, (uint32_t)u->found_row};
}

/* What to do at the address `at` (for a return address: one before it). */
static struct step step_at(struct unwinder *u, uint64_t at, bool return_address)
{
    uint64_t bias;

    if (u->mapping == UINT32_MAX)
        return loss(LOSS_no_mapping);
    struct unwind_module *m = u->mappings[u->mapping].module;
    if (!m || !m->image.data)
        return loss(LOSS_no_module);
    if (!placement_of(u, u->mapping, &bias))
        return loss(LOSS_no_unwind_info);
    uint64_t vaddr = at - bias;
    if (vaddr >> SLOT_SHIFT || !slot_of(u, m))
        return loss(LOSS_no_unwind_info);
    u->code = CODE_BASE | (uint64_t)m->slot << SLOT_SHIFT | vaddr;
    uint64_t key = u->code | (return_address ? RETURN_ADDRESS_KEY : 0);
    uint64_t *known = map_get(&u->steps, key);
    if (known)
        return (struct step){(enum step_kind)(*known >> 32), (uint32_t)*known};
    if (u->cfi.bad || u->cfi.len_bytes + u->rows.arena.total_bytes > CACHE_BYTES_MAX) {
        forget(u);
        if (!slot_of(u, m))
            return loss(LOSS_no_unwind_info);
        u->code = CODE_BASE | (uint64_t)m->slot << SLOT_SHIFT | vaddr;
        key = u->code | (return_address ? RETURN_ADDRESS_KEY : 0);
    }
    struct step s = make_step(u, m, vaddr, return_address);
    map_set(&u->steps, key, pack(s));
    return s;
}

/*
 * The registers of the interrupted code, off the frame that the kernel puts on the stack for a signal (struct
 * rt_sigframe: return address, already popped, then struct ucontext; Linux arch/x86/include/uapi/asm/sigcontext.h).
 */
static uint32_t apply_sigreturn(struct unwinder *u)
{
    enum { GREGS = 40 };
    static const uint8_t order[UNWIND_REGISTERS] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, SP, IP};
    uint64_t gregs[UNWIND_REGISTERS];

    if (!(u->valid & (1u << SP)) || !read_stack(u, u->registers[SP] + GREGS, gregs, sizeof gregs))
        return LOSS_native_fault;
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
        u->registers[order[i]] = gregs[i];
    u->valid = (1u << UNWIND_REGISTERS) - 1;
    u->lost = 0;
    return 0;
}

/*
 * In an epilogue the rules still name the place that a register was popped from, now below the stack pointer and
 * perhaps below the snapshot. The register itself has the value by then.
 */
static bool popped(const struct unwinder *u, unw_cursor_t *cursor, int reg, uint64_t *value)
{
    unw_save_loc_t place;

    if (!(u->valid & (1u << reg)) || unw_get_save_loc(cursor, reg, &place) < 0 || place.type != UNW_SLT_MEMORY ||
        place.u.addr >= u->registers[SP])
        return false;
    *value = u->registers[reg];
    return true;
}

/*
 * A realigned frame's RBP is saved where RBP points, and GCC 12 does not take that back behind "pop %rbp": RBP then
 * points out of the frame; it is the caller's already, and so is what was popped before it.
 */
static bool rbp_is_back(const struct unwinder *u, unw_cursor_t *cursor, uint64_t cfa)
{
    unw_save_loc_t place;

    return (u->valid & (1u << BP)) && unw_get_save_loc(cursor, BP, &place) >= 0 && place.type == UNW_SLT_MEMORY &&
           place.u.addr == u->registers[BP] && (place.u.addr + RED_ZONE_BYTES < u->registers[SP] || place.u.addr >= cfa);
}

/*
 * 0: the registers are the caller's. LOSS_complete: there is no caller; the stack pointer is right all the same.
 * `exact`: the frame was interrupted, perhaps in its epilogue.
 */
static uint32_t apply_row(struct unwinder *u, uint32_t row, bool exact)
{
    uint64_t caller[UNWIND_REGISTERS];
    unw_cursor_t cursor;
    uint32_t valid = 0;

    u->memory_fault = u->register_fault = false;
    int ret = unw_init_remote(&cursor, u->space, u);
    if (ret >= 0)
        ret = unw_apply_reg_state(&cursor, (void *)intern_get(&u->rows, row)->data);
    if (ret < 0)
        return u->memory_fault ? LOSS_native_fault : u->register_fault ? LOSS_register_unsupported : LOSS_native_loop;
    uint32_t lost = 0;
    for (int i = 0; i < UNWIND_REGISTERS; i++) {
        u->memory_fault = false;
        if (unw_get_reg(&cursor, i, &caller[i]) >= 0 || popped(u, &cursor, i, &caller[i]))
            valid |= 1u << i;
        else if (u->memory_fault)
            lost |= 1u << i;
    }
    if (exact && (valid & (1u << SP)) && rbp_is_back(u, &cursor, caller[SP])) {
        static const uint8_t popped_by_now[] = {3, BP, 12, 13, 14, 15};
        for (size_t i = 0; i < sizeof popped_by_now; i++) {
            caller[popped_by_now[i]] = u->registers[popped_by_now[i]];
            valid |= 1u << popped_by_now[i];
            lost &= ~(1u << popped_by_now[i]);
        }
    }
    memcpy(u->registers, caller, sizeof caller);
    u->valid = valid;
    u->lost = lost;
    return ret == 0 ? LOSS_complete : 0;
}

/* Steps to the caller. 0: done; LOSS_complete: the last frame, whose CFA is the stack pointer now. */
static uint32_t step(struct unwinder *u, uint64_t at, struct unwind_frame *frame, bool *signal_frame)
{
    struct step s = step_at(u, at, frame->return_address);
    uint32_t reason;

    *signal_frame = s.kind == STEP_SIGRETURN || s.kind == STEP_SIGNAL_ROW;
    switch (s.kind) {
    case STEP_LOSS:
        return s.number;
    case STEP_END:
        return LOSS_complete;
    case STEP_SIGRETURN:
        reason = apply_sigreturn(u);
        break;
    default:
        reason = apply_row(u, s.number, !frame->return_address && s.kind == STEP_ROW);
    }
    if (reason && reason != LOSS_complete)
        return reason;
    uint64_t cfa = u->registers[SP];
    /* A handler may run on a stack of its own, above or below; any other caller's frame lies above. */
    if (!(u->valid & (1u << SP)) || (cfa <= frame->sp && !*signal_frame))
        return LOSS_native_loop;
    frame->cfa = cfa;
    if (!(u->valid & (1u << IP)) || !u->registers[IP])
        return LOSS_complete;
    return reason;
}

uint32_t unwinder_run(struct unwinder *u, const uint64_t registers[17], const uint8_t *stack, uint64_t stack_address,
                      uint64_t stack_len, struct unwind_frame *frames, uint32_t max, uint32_t *end)
{
    bool return_address = false;
    uint32_t count = 0;

    memcpy(u->registers, registers, sizeof u->registers);
    u->valid = (1u << UNWIND_REGISTERS) - 1;
    u->lost = 0;
    u->stack = stack;
    u->stack_address = stack_address;
    u->stack_len = stack_len;
    *end = LOSS_native_too_deep;
    while (count < max) {
        struct unwind_frame *frame = &frames[count++];
        uint64_t ip = u->registers[IP], at = ip - return_address;
        bool signal_frame;
        u->mapping = find_mapping(u, at);
        *frame = (struct unwind_frame){
            .ip = ip, .sp = u->registers[SP], .cfa = UINT64_MAX, .mapping = u->mapping,
            .return_address = return_address,
        };
        uint32_t reason = step(u, at, frame, &signal_frame);
        /* No call stands before a signal trampoline; the kernel made its start the return address. */
        frame->return_address = return_address && !signal_frame;
        if (reason) {
            *end = reason;
            return count;
        }
        return_address = !signal_frame;
    }
    return count;
}
