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

#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"
#include "symbolize/unwind/remote.h"
#include "symbolize/unwind/unwind_module.h"
#include "symbolize/unwind/unwind_rules.h"

enum {
    ENTRY_LEN = 64,           /* bytes after e_entry that count as the start of the program */
    SLOT_SHIFT = 40,          /* address bits of a module */
    SLOT_MAX = 1 << 20,
    CACHE_BYTES_MAX = 1 << 27,
};
/* Above every user address, so that they cannot be mistaken for memory of the process. */
#define CODE_BASE ((uint64_t)1 << 62)
#define CFI_BASE ((uint64_t)1 << 61)
#define RETURN_ADDRESS_KEY ((uint64_t)1 << 63)

/* What is cached for an address: a row of rules, or why there is none. */
enum step_kind {
    STEP_ROW,            /* number: of the row */
    STEP_SIGNAL_ROW,     /* the same, in a signal frame */
    STEP_SIGRETURN,      /* the trampoline that a signal handler returns to, without CFI */
    STEP_END,            /* the program's start, without CFI; the start of a stack that is part of another */
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
    const struct machine *machine;
    const struct remote *remote; /* libunwind for that machine */
    void *space;
    const struct unwind_mapping *mappings;
    uint32_t mapping_count;
    uint64_t generation;
    VEC(struct placement) placements; /* by mapping */
    VEC(struct unwind_module *) slots;
    struct buf cfi;    /* what CFI_BASE shows: zeros (a search table of one row), then the copies */
    struct map fdes;   /* code address of the function -> offset in `cfi`, or NO_RULES */
    struct map steps;  /* code address | RETURN_ADDRESS_KEY -> struct step, packed */
    struct intern rows;

    /* State of the current run. */
    uint64_t registers[MACHINE_REGISTERS_MAX];
    uint64_t valid; /* bit per register */
    uint64_t lost;  /* registers that are not valid because the snapshot does not contain their saved values */
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
        p->good = m->module && m->module->machine == u->machine && unwind_module_bias(m->module, m, &p->bias);
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

static bool read_memory(void *ctx, uint64_t address, uint64_t *value)
{
    struct unwinder *u = ctx;

    if (read_stack(u, address, value, sizeof *value) || read_cfi(u, address, value) ||
        read_module_memory(u, address, value, sizeof *value))
        return true;
    u->memory_fault = true;
    return false;
}

static bool is_valid(const struct unwinder *u, uint32_t number)
{
    return u->valid >> number & 1;
}

static bool read_register(void *ctx, uint32_t number, uint64_t *value)
{
    struct unwinder *u = ctx;

    if (number >= u->machine->register_count)
        return false;
    if (!is_valid(u, number)) {
        if (u->lost >> number & 1)
            u->memory_fault = true;
        else
            u->register_fault = true;
        return false;
    }
    *value = number == u->machine->pc ? u->code : u->registers[number];
    return true;
}

/* The FDE was found and copied before libunwind asks; it parses it by way of a search table with that one row. */
static bool find_fde(void *ctx, uint64_t pc, uint64_t *base, uint64_t *table)
{
    const struct unwinder *u = ctx;

    *base = CFI_BASE + u->fde;
    *table = CFI_BASE;
    return pc == u->code;
}

static bool take_row(void *ctx, const void *row, size_t len_bytes, uint64_t start, uint64_t end)
{
    struct unwinder *u = ctx;

    if (u->code < start || u->code >= end)
        return false;
    u->found_row = intern_id(&u->rows, row, (uint32_t)len_bytes, NULL);
    return true;
}

static struct remote_process process_of(struct unwinder *u)
{
    return (struct remote_process){
        .ctx = u, .read_memory = read_memory, .read_register = read_register, .find_fde = find_fde, .take_row = take_row,
    };
}

/* Forgets all slots, copies and rows. */
static void forget(struct unwinder *u)
{
    static const uint8_t table_row[8]; /* function at +0, FDE at +0: find_fde() gives the bases */

    u->slots.count = 0;
    buf_clear(&u->cfi);
    buf_put(&u->cfi, table_row, sizeof table_row);
    map_clear(&u->fdes);
    map_clear(&u->steps);
    intern_clear(&u->rows);
}

struct error *unwinder_create(const struct machine *machine, struct unwinder **out)
{
    const struct remote *remote = remote_of(machine);

    if (!remote)
        return error_create(ERROR_UNSUPPORTED, "stacks of this machine cannot be unwound");
    struct unwinder *u = calloc(1, sizeof *u);
    if (!u || !(u->space = remote->create())) {
        free(u);
        return error_no_memory();
    }
    u->machine = machine;
    u->remote = remote;
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
    u->remote->destroy(u->space);
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
    u->mapping_count = 0; /* out of memory: every address counts as unmapped */
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

/* Where a signal handler returns to, known by its bytes. */
static bool holds_sigreturn(const struct machine *machine, const struct unwind_module *m, uint64_t vaddr)
{
    uint8_t here[64];

    return machine->sigreturn_len <= sizeof here && unwind_module_read(m, vaddr, here, machine->sigreturn_len) &&
           !memcmp(here, machine->sigreturn, machine->sigreturn_len);
}

/* True at its start and at its system call. */
static bool is_sigreturn(const struct machine *machine, const struct unwind_module *m, uint64_t vaddr)
{
    return holds_sigreturn(machine, m, vaddr) || holds_sigreturn(machine, m, vaddr - machine->sigreturn_syscall);
}

/* During the system call the address is just past the trampoline, where its CFI has ended. */
static bool in_sigreturn(const struct machine *machine, const struct unwind_module *m, uint64_t vaddr)
{
    return holds_sigreturn(machine, m, vaddr - machine->sigreturn_len);
}

/* The rules at an address of a module, from its CFI. */
static struct step make_step(struct unwinder *u, struct unwind_module *m, uint64_t vaddr, bool return_address)
{
    const struct remote_process process = process_of(u);
    struct cfi_fde fde;
    bool have_fde = unwind_module_fde(m, vaddr, &fde);
    uint64_t entry = m->elf.header.e_entry;

    if (stack_start_holds(m->stack_start, vaddr))
        return (struct step){.kind = STEP_END};
    /* The byte before the trampoline may have rules, but of another function. */
    if (!(have_fde && fde.signal_frame) && is_sigreturn(u->machine, m, vaddr + return_address))
        return (struct step){.kind = STEP_SIGRETURN};
    if (!have_fde && !return_address && in_sigreturn(u->machine, m, vaddr))
        return (struct step){.kind = STEP_SIGRETURN};
    if (!have_fde)
        return entry && vaddr >= entry && vaddr - entry < ENTRY_LEN ? (struct step){.kind = STEP_END}
                                                                        : loss(LOSS_no_unwind_info);
    uint64_t base = u->code - vaddr;
    uint64_t *known = map_get(&u->fdes, base + fde.start);
    if (!known) {
        uint64_t offset = NO_RULES;
        size_t before = u->cfi.len_bytes;
        if (!unwind_rules_append(u->machine, &fde, base, &u->cfi, &offset)) {
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
    if (!u->remote->find_row(u->space, &process))
        return loss(LOSS_native_fault);
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

static uint64_t all_registers(const struct machine *machine)
{
    return ((uint64_t)1 << machine->register_count) - 1;
}

/* The registers of the interrupted code, off the frame that the kernel puts on the stack for a signal. */
static uint32_t apply_sigreturn(struct unwinder *u)
{
    const struct machine *machine = u->machine;
    uint64_t saved[MACHINE_REGISTERS_MAX];

    if (!is_valid(u, machine->sp) || !read_stack(u, u->registers[machine->sp] + machine->signal_registers_at, saved,
                                                 machine->register_count * sizeof *saved))
        return LOSS_native_fault;
    for (uint32_t i = 0; i < machine->register_count; i++)
        u->registers[machine->signal_registers[i]] = saved[i];
    u->valid = all_registers(machine);
    u->lost = 0;
    return 0;
}

/*
 * In an epilogue the rules still name the place that a register was popped from, now below the stack pointer and
 * perhaps below the snapshot. The register itself has the value by then.
 */
static bool popped(const struct unwinder *u, struct remote_cursor *cursor, uint32_t number, uint64_t *value)
{
    uint64_t address;

    if (!is_valid(u, number) || !u->remote->saved_at(cursor, number, &address) ||
        address >= u->registers[u->machine->sp])
        return false;
    *value = u->registers[number];
    return true;
}

/*
 * A realigned frame's RBP is saved where RBP points, and GCC 12 does not take that back behind "pop %rbp": RBP then
 * points out of the frame; it is the caller's already, and so is what was popped before it.
 */
static bool fp_is_back(const struct unwinder *u, struct remote_cursor *cursor, uint64_t cfa)
{
    uint32_t fp = u->machine->fp;
    uint64_t address;

    return is_valid(u, fp) && u->remote->saved_at(cursor, fp, &address) && address == u->registers[fp] &&
           (address + u->machine->red_zone_bytes < u->registers[u->machine->sp] || address >= cfa);
}

/*
 * 0: the registers are the caller's. LOSS_complete: there is no caller; the stack pointer is right all the same.
 * `exact`: the frame was interrupted, perhaps in its epilogue.
 */
static uint32_t apply_row(struct unwinder *u, uint32_t row, bool exact)
{
    const struct machine *machine = u->machine;
    const struct remote_process process = process_of(u);
    uint64_t caller[MACHINE_REGISTERS_MAX], valid = 0, lost = 0;
    struct remote_cursor cursor;

    u->memory_fault = u->register_fault = false;
    int ret = u->remote->apply_row(u->space, &process, intern_get(&u->rows, row)->data, &cursor);
    if (ret < 0)
        return u->memory_fault ? LOSS_native_fault : u->register_fault ? LOSS_register_unsupported : LOSS_native_loop;
    for (uint32_t i = 0; i < machine->register_count; i++) {
        u->memory_fault = false;
        if (u->remote->caller_register(&cursor, i, &caller[i]) || popped(u, &cursor, i, &caller[i]))
            valid |= (uint64_t)1 << i;
        else if (u->memory_fault)
            lost |= (uint64_t)1 << i;
    }
    if (exact && (valid >> machine->sp & 1) && fp_is_back(u, &cursor, caller[machine->sp])) {
        for (uint32_t i = 0; i < machine->callee_saved_count; i++) {
            uint8_t number = machine->callee_saved[i];
            caller[number] = u->registers[number];
            valid |= (uint64_t)1 << number;
            lost &= ~((uint64_t)1 << number);
        }
    }
    memcpy(u->registers, caller, machine->register_count * sizeof *caller);
    u->valid = valid;
    u->lost = lost;
    return ret == 0 ? LOSS_complete : 0;
}

/* Steps to the caller. 0: done; LOSS_complete: the last frame, whose CFA is the stack pointer now. */
static uint32_t step(struct unwinder *u, uint64_t at, struct unwind_frame *frame, bool *signal_frame)
{
    struct step s = step_at(u, at, frame->return_address);
    uint32_t reason, sp = u->machine->sp, pc = u->machine->pc;

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
    uint64_t cfa = u->registers[sp];
    /* The stack of a signal handler may be above or below; the frame of any other caller is above. */
    if (!is_valid(u, sp) || (cfa <= frame->sp && !*signal_frame))
        return LOSS_native_loop;
    frame->cfa = cfa;
    if (!is_valid(u, pc) || !u->registers[pc])
        return LOSS_complete;
    return reason;
}

uint32_t unwinder_run(struct unwinder *u, const uint64_t *registers, const uint8_t *stack, uint64_t stack_address,
                      uint64_t stack_len, struct unwind_frame *frames, uint32_t max, uint32_t *end)
{
    bool return_address = false;
    uint32_t count = 0;

    memcpy(u->registers, registers, u->machine->register_count * sizeof *registers);
    u->valid = all_registers(u->machine);
    u->lost = 0;
    u->stack = stack;
    u->stack_address = stack_address;
    u->stack_len = stack_len;
    *end = LOSS_native_too_deep;
    while (count < max) {
        struct unwind_frame *frame = &frames[count++];
        uint64_t ip = u->registers[u->machine->pc], at = ip - return_address;
        bool signal_frame;
        u->mapping = find_mapping(u, at);
        *frame = (struct unwind_frame){
            .ip = ip, .sp = u->registers[u->machine->sp], .cfa = UINT64_MAX, .mapping = u->mapping,
            .return_address = return_address,
        };
        uint32_t reason = step(u, at, frame, &signal_frame);
        /* No call precedes a signal trampoline: the kernel made its start the return address. */
        frame->return_address = return_address && !signal_frame;
        if (reason) {
            *end = reason;
            return count;
        }
        return_address = !signal_frame;
    }
    return count;
}
