/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with the rules of four registers as its state; expressions are added up on a stack of operands. */
#include "formats/elf/unwind_program.h"

#include <dwarf.h>
#include <string.h>

#include "formats/base/bytes.h"

enum { REMEMBER_MAX = 32, OPERANDS_MAX = 4 };

struct program_run {
    const struct machine *machine;
    struct bytes b;
    const struct cfi_section *section;
    const struct cfi_fde *fde;
    const struct unwind_rules *initial; /* NULL: this is the initial program */
    struct unwind_rules rules, remembered[REMEMBER_MAX];
    struct unwind_rule ignored; /* the rules of all registers that unwinders do not follow are written here */
    unsigned depth;
    uint64_t pc;
    bool changed, broken; /* since the last call of the callback; the program breaks the format */
};

static struct unwind_rule *rule_of(struct program_run *r, struct unwind_rules *rules, uint64_t number)
{
    if (number == r->machine->base)
        return &rules->wide.rbx;
    if (number == r->machine->fp)
        return &rules->wide.rbp;
    if (number == r->machine->sp)
        return &rules->rsp;
    return number == r->machine->return_column ? &rules->wide.ra : &r->ignored;
}

static void set_rule(struct program_run *r, uint64_t number, struct unwind_rule rule)
{
    struct unwind_rule *at = rule_of(r, &r->rules, number);

    *at = rule;
    r->changed = r->changed || at != &r->ignored;
}

static struct unwind_rule make_rule(const struct program_run *r, uint8_t kind, uint64_t base, int64_t offset)
{
    if (offset != (int32_t)offset || (base >= r->machine->general_count && base != UNWIND_BASE_CFA))
        return (struct unwind_rule){.kind = RULE_OTHER};
    return (struct unwind_rule){.kind = kind, .base = (uint8_t)base, .offset = (int32_t)offset};
}

/* Scaled by the CIE's data alignment. An overflow gives INT64_MAX, which make_rule() refuses. */
static int64_t factor(const struct program_run *r, int64_t offset)
{
    int64_t result;

    return __builtin_mul_overflow(offset, r->fde->data_align, &result) ? INT64_MAX : result;
}

static struct unwind_rule make_factored(const struct program_run *r, uint8_t kind, int64_t factored)
{
    return make_rule(r, kind, UNWIND_BASE_CFA, factor(r, factored));
}

/* ---- expressions ---- */

/* A number, or a register (plus a load) and a number. */
struct operand {
    bool number;
    uint8_t kind, base;
    int64_t value; /* the number, or what is added to the register; with UNWIND_MEMORY, added after the load */
    int64_t address_offset;
};

static bool add_operands(struct operand *left, const struct operand *right, bool minus)
{
    if (right->number)
        return minus ? !__builtin_sub_overflow(left->value, right->value, &left->value)
                     : !__builtin_add_overflow(left->value, right->value, &left->value);
    if (!left->number || minus)
        return false;
    int64_t number = left->value;
    *left = *right;
    return !__builtin_add_overflow(left->value, number, &left->value);
}

/* The operand that an operation pushes; false: it pushes none, or is not understood. */
static bool read_operand(struct bytes *e, uint8_t op, struct operand *out)
{
    *out = (struct operand){.number = true};
    switch (op) {
    case DW_OP_breg0 ... DW_OP_breg31:
        *out = (struct operand){.kind = UNWIND_VALUE, .base = op - DW_OP_breg0, .value = bytes_sleb(e)};
        return true;
    case DW_OP_lit0 ... DW_OP_lit31:
        out->value = op - DW_OP_lit0;
        return true;
    case DW_OP_const1u:
        out->value = bytes_u8(e);
        return true;
    case DW_OP_const1s:
        out->value = (int8_t)bytes_u8(e);
        return true;
    case DW_OP_const2u:
        out->value = bytes_u16(e);
        return true;
    case DW_OP_const2s:
        out->value = (int16_t)bytes_u16(e);
        return true;
    case DW_OP_const4u:
        out->value = bytes_u32(e);
        return true;
    case DW_OP_const4s:
        out->value = (int32_t)bytes_u32(e);
        return true;
    case DW_OP_constu:
        out->value = (int64_t)bytes_uleb(e);
        return true;
    case DW_OP_consts:
        out->value = bytes_sleb(e);
        return true;
    default:
        return false;
    }
}

/* Runs one operation. False when it is not understood, or its result is not an operand of ours. */
static bool run_operation(struct bytes *e, struct operand *stack, unsigned *depth)
{
    uint8_t op = bytes_u8(e);
    struct operand *top = *depth ? &stack[*depth - 1] : NULL;
    struct operand next = {.number = true};

    switch (op) {
    case DW_OP_nop:
        return true;
    case DW_OP_deref:
        if (!top || top->number || top->kind != UNWIND_VALUE)
            return false;
        top->kind = UNWIND_MEMORY;
        top->address_offset = top->value;
        top->value = 0;
        return true;
    case DW_OP_plus_uconst:
        next.value = (int64_t)bytes_uleb(e);
        return top && next.value >= 0 && add_operands(top, &next, false);
    case DW_OP_plus:
    case DW_OP_minus:
        if (*depth < 2)
            return false;
        --*depth;
        return add_operands(top - 1, top, op == DW_OP_minus);
    default:
        if (*depth == OPERANDS_MAX || !read_operand(e, op, &next))
            return false;
        stack[(*depth)++] = next;
        return true;
    }
}

/* What linkers write for a PLT: rsp + 8 + ((rip & 15) >= threshold) * 8. */
static bool is_plt(struct bytes e, int32_t *threshold)
{
    static const uint8_t head[] = {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and},
                         tail[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};

    if (bytes_left(&e) != sizeof head + 1 + sizeof tail || memcmp(e.pos, head, sizeof head) ||
        memcmp(e.pos + sizeof head + 1, tail, sizeof tail))
        return false;
    *threshold = e.pos[sizeof head] - DW_OP_lit0;
    return *threshold >= 0 && *threshold <= 15;
}

/* The value of an expression, as a rule. `with_cfa`: the CFA is on its stack at the start. */
static struct unwind_rule take_expression(const struct program_run *r, struct bytes *b, bool with_cfa)
{
    struct operand stack[OPERANDS_MAX] = {{.kind = UNWIND_VALUE, .base = UNWIND_BASE_CFA}};
    unsigned depth = with_cfa;
    struct unwind_rule rule = {.kind = RULE_OTHER};
    uint64_t len = bytes_uleb(b);
    const uint8_t *at = bytes_take(b, len);

    if (!at)
        return rule;
    struct bytes e = bytes_of(at, len);
    if (!with_cfa && is_plt(e, &rule.offset)) {
        rule.kind = RULE_PLT;
        return rule;
    }
    while (bytes_left(&e))
        if (!run_operation(&e, stack, &depth) || e.bad)
            return rule;
    if (e.bad || !depth || stack[depth - 1].number)
        return rule;
    const struct operand *top = &stack[depth - 1];
    if (top->kind == UNWIND_VALUE)
        return make_rule(r, UNWIND_VALUE, top->base, top->value);
    if (top->value != (int16_t)top->value)
        return rule;
    rule = make_rule(r, UNWIND_MEMORY, top->base, top->address_offset);
    rule.add = (int16_t)(rule.kind == UNWIND_MEMORY ? top->value : 0);
    return rule;
}

/* The same for an expression that gives the address where the register was saved. */
static struct unwind_rule take_address(const struct program_run *r, struct bytes *b)
{
    struct unwind_rule rule = take_expression(r, b, true);

    rule.kind = rule.kind == UNWIND_VALUE ? UNWIND_MEMORY : RULE_OTHER;
    return rule;
}

/* ---- instructions ---- */

static void set_cfa(struct program_run *r, struct unwind_rule rule)
{
    r->rules.wide.cfa = rule;
    r->changed = true;
}

/* The offset of a CFA that is a register and an offset. */
static void set_cfa_offset(struct program_run *r, int64_t offset)
{
    const struct unwind_rule *cfa = &r->rules.wide.cfa;

    if (cfa->kind != UNWIND_VALUE)
        r->broken = true;
    else
        set_cfa(r, make_rule(r, UNWIND_VALUE, cfa->base, offset));
}

/* The register of such a CFA. */
static void set_cfa_register(struct program_run *r, uint64_t number)
{
    const struct unwind_rule *cfa = &r->rules.wide.cfa;

    if (cfa->kind != UNWIND_VALUE)
        r->broken = true;
    else
        set_cfa(r, make_rule(r, UNWIND_VALUE, number, cfa->offset));
}

static void remember_state(struct program_run *r)
{
    if (r->depth == REMEMBER_MAX)
        r->broken = true;
    else
        r->remembered[r->depth++] = r->rules;
}

static void restore_state(struct program_run *r)
{
    if (!r->depth) {
        r->broken = true;
        return;
    }
    r->rules = r->remembered[--r->depth];
    r->changed = true;
}

/* Gives a register the rule that the initial program left it. */
static void restore_rule(struct program_run *r, uint64_t number)
{
    if (!r->initial)
        r->broken = true;
    else
        set_rule(r, number, *rule_of(r, (struct unwind_rules *)r->initial, number));
}

static void set_location(struct program_run *r)
{
    const struct cfi_section *s = r->section;
    uint64_t vaddr = s->vaddr + (uint64_t)(r->b.start - s->data);
    uint64_t to = cfi_pointer(&r->b, r->fde->pointer_encoding, vaddr, s->hdr_vaddr);

    if (to < r->pc)
        r->broken = true;
    else
        r->pc = to;
}

/* The rule that an instruction gives a register, whose number was read. An unknown instruction breaks the program. */
static struct unwind_rule read_rule(struct program_run *r, uint8_t op)
{
    struct bytes *b = &r->b;

    switch (op) {
    case DW_CFA_offset_extended:
        return make_factored(r, UNWIND_MEMORY, (int64_t)bytes_uleb(b));
    case DW_CFA_offset_extended_sf:
        return make_factored(r, UNWIND_MEMORY, bytes_sleb(b));
    case DW_CFA_GNU_negative_offset_extended:
        return make_factored(r, UNWIND_MEMORY, -(int64_t)(bytes_uleb(b) & INT64_MAX));
    case DW_CFA_val_offset:
        return make_factored(r, UNWIND_VALUE, (int64_t)bytes_uleb(b));
    case DW_CFA_val_offset_sf:
        return make_factored(r, UNWIND_VALUE, bytes_sleb(b));
    case DW_CFA_undefined:
        return (struct unwind_rule){.kind = UNWIND_UNDEFINED};
    case DW_CFA_same_value:
        return (struct unwind_rule){.kind = UNWIND_SAME};
    case DW_CFA_register:
        return make_rule(r, UNWIND_VALUE, bytes_uleb(b), 0);
    case DW_CFA_expression:
        return take_address(r, b);
    case DW_CFA_val_expression:
        return take_expression(r, b, true);
    default:
        r->broken = true;
        return (struct unwind_rule){.kind = RULE_OTHER};
    }
}

/* Instructions whose opcode fills the byte. */
static void run_extended(struct program_run *r, uint8_t op)
{
    struct bytes *b = &r->b;
    uint64_t number;

    switch (op) {
    case DW_CFA_nop:
        break;
    case DW_CFA_def_cfa:
        number = bytes_uleb(b);
        set_cfa(r, make_rule(r, UNWIND_VALUE, number, (int64_t)bytes_uleb(b)));
        break;
    case DW_CFA_def_cfa_sf:
        number = bytes_uleb(b);
        set_cfa(r, make_rule(r, UNWIND_VALUE, number, factor(r, bytes_sleb(b))));
        break;
    case DW_CFA_def_cfa_register:
        set_cfa_register(r, bytes_uleb(b));
        break;
    case DW_CFA_def_cfa_offset:
        set_cfa_offset(r, (int64_t)bytes_uleb(b));
        break;
    case DW_CFA_def_cfa_offset_sf:
        set_cfa_offset(r, factor(r, bytes_sleb(b)));
        break;
    case DW_CFA_def_cfa_expression:
        set_cfa(r, take_expression(r, b, false));
        break;
    case DW_CFA_remember_state:
        remember_state(r);
        break;
    case DW_CFA_restore_state:
        restore_state(r);
        break;
    case DW_CFA_restore_extended:
        restore_rule(r, bytes_uleb(b));
        break;
    case DW_CFA_GNU_args_size:
        bytes_uleb(b);
        break;
    default:
        number = bytes_uleb(b);
        set_rule(r, number, read_rule(r, op));
        break;
    }
}

/* Runs one instruction. True when it moved on to a later pc. */
static bool run_instruction(struct program_run *r)
{
    uint8_t op = bytes_u8(&r->b);
    uint64_t low = op & 0x3f, delta = 0;

    switch (op & 0xc0) {
    case DW_CFA_advance_loc:
        delta = low;
        break;
    case DW_CFA_offset:
        set_rule(r, low, make_factored(r, UNWIND_MEMORY, (int64_t)bytes_uleb(&r->b)));
        return false;
    case DW_CFA_restore:
        restore_rule(r, low);
        return false;
    default:
        switch (op) {
        case DW_CFA_advance_loc1:
            delta = bytes_u8(&r->b);
            break;
        case DW_CFA_advance_loc2:
            delta = bytes_u16(&r->b);
            break;
        case DW_CFA_advance_loc4:
            delta = bytes_u32(&r->b);
            break;
        case DW_CFA_set_loc: {
            uint64_t before = r->pc;
            set_location(r);
            return r->pc != before;
        }
        default:
            run_extended(r, op);
            return false;
        }
    }
    uint64_t step;
    if (__builtin_mul_overflow(delta, r->fde->code_align, &step) || __builtin_add_overflow(r->pc, step, &r->pc))
        r->pc = UINT64_MAX;
    return step != 0;
}

bool unwind_program_initial(const struct machine *machine, const struct cfi_section *s, const struct cfi_fde *fde,
                            struct unwind_rules *out)
{
    struct program_run r = {.machine = machine, .section = s, .fde = fde, .pc = fde->start};

    r.rules.wide.cfa.kind = UNWIND_UNDEFINED;
    r.rules.wide.ra.kind = UNWIND_UNDEFINED;
    r.b = bytes_of(fde->cie_program, fde->cie_program_len);
    if (fde->return_column != machine->return_column)
        return false;
    while (bytes_left(&r.b)) {
        if (run_instruction(&r))
            r.broken = true; /* an initial program has no pc to advance */
        if (r.b.bad || r.broken)
            return false;
    }
    *out = r.rules;
    return true;
}

enum unwind_program_result unwind_program_run(const struct machine *machine, const struct cfi_section *s,
                                              const struct cfi_fde *fde, const struct unwind_rules *initial,
                                              unwind_rules_fn row, void *ctx, uint64_t *broken_pc)
{
    struct program_run r;
    uint64_t from = fde->start;

    /* Not `= {0}`: the stack of remembered rules is large and mostly unused. */
    r.b = bytes_of(fde->fde_program, fde->fde_program_len);
    r.machine = machine;
    r.section = s;
    r.fde = fde;
    r.initial = initial;
    r.rules = *initial;
    r.ignored = (struct unwind_rule){0};
    r.depth = 0;
    r.pc = fde->start;
    r.changed = true;
    r.broken = false;
    while (bytes_left(&r.b)) {
        bool moved = run_instruction(&r);
        if (r.b.bad || r.broken) {
            *broken_pc = from;
            return UNWIND_PROGRAM_BROKEN;
        }
        if (!moved)
            continue;
        /* An instruction that moves on changes no rules: these held up to here. */
        if (r.changed && !row(ctx, from, &r.rules))
            return UNWIND_PROGRAM_STOPPED;
        r.changed = false;
        from = r.pc;
        if (from >= fde->end)
            return UNWIND_PROGRAM_OK;
    }
    if (r.changed && !row(ctx, from, &r.rules))
        return UNWIND_PROGRAM_STOPPED;
    return UNWIND_PROGRAM_OK;
}
