/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CFI program is checked once, instruction by instruction, before libunwind runs
 * it: known operations only, registers that exist, a CFA defined wherever a row
 * begins, expressions of known operations without jumps. What passes is copied
 * behind headers written here, so that everything libunwind parses is well formed.
 */
#include "symbolize/unwind/unwind_rules.h"

#include <dwarf.h>
#include <string.h>

#include "formats/base/bytes.h"

enum {
    PROGRAM_MAX = 1 << 20, /* bytes; the evaluation loops of CPython need some thousand */
    REMEMBER_MAX = 64,
};

/* Operations that use only the stack of values. */
static bool has_no_operand(uint8_t op)
{
    switch (op) {
    case DW_OP_lit0 ... DW_OP_lit31:
    case DW_OP_deref:
    case DW_OP_dup:
    case DW_OP_drop:
    case DW_OP_over:
    case DW_OP_swap:
    case DW_OP_rot:
    case DW_OP_abs:
    case DW_OP_and:
    case DW_OP_minus:
    case DW_OP_mul:
    case DW_OP_neg:
    case DW_OP_not:
    case DW_OP_or:
    case DW_OP_plus:
    case DW_OP_shl:
    case DW_OP_shr:
    case DW_OP_shra:
    case DW_OP_xor:
    case DW_OP_eq:
    case DW_OP_ge:
    case DW_OP_gt:
    case DW_OP_le:
    case DW_OP_lt:
    case DW_OP_ne:
    case DW_OP_nop:
        return true;
    default: /* addresses would need moving, division can trap, jumps can loop */
        return false;
    }
}

/* Skips the operands of an operation with its own opcode; false for any other. */
static bool take_operand(struct bytes *e, uint8_t op)
{
    uint8_t size;

    switch (op) {
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_pick:
        bytes_skip(e, 1);
        return true;
    case DW_OP_deref_size:
        size = bytes_u8(e);
        return size == 1 || size == 2 || size == 4 || size == 8;
    case DW_OP_const2u:
    case DW_OP_const2s:
        bytes_skip(e, 2);
        return true;
    case DW_OP_const4u:
    case DW_OP_const4s:
        bytes_skip(e, 4);
        return true;
    case DW_OP_const8u:
    case DW_OP_const8s:
        bytes_skip(e, 8);
        return true;
    case DW_OP_constu:
    case DW_OP_plus_uconst:
        bytes_uleb(e);
        return true;
    case DW_OP_consts:
        bytes_sleb(e);
        return true;
    default:
        return false;
    }
}

/* `registers`: how many the machine has. */
static bool expression_is_plain(struct bytes e, uint32_t registers)
{
    while (bytes_left(&e)) {
        uint8_t op = bytes_u8(&e);
        if (op >= DW_OP_breg0 && op < DW_OP_breg0 + registers)
            bytes_sleb(&e);
        else if (!(op >= DW_OP_reg0 && op < DW_OP_reg0 + registers) && !has_no_operand(op) && !take_operand(&e, op))
            return false;
    }
    return !e.bad;
}

static bool take_expression(struct bytes *b, uint32_t registers)
{
    uint64_t len = bytes_uleb(b);
    const uint8_t *p = bytes_take(b, len);

    return p && expression_is_plain(bytes_of(p, len), registers);
}

static bool take_register(struct bytes *b, uint32_t registers)
{
    return bytes_uleb(b) < registers && !b->bad;
}

enum cfa { CFA_NONE, CFA_REGISTER, CFA_EXPRESSION };

/* State that one program leaves for the next. */
struct check {
    uint32_t registers; /* of the machine */
    enum cfa cfa, remembered[REMEMBER_MAX];
    unsigned depth;
};

/* Handles instructions that define the CFA; false for any other. */
static bool check_cfa_rule(struct check *c, struct bytes *b, uint8_t op)
{
    switch (op) {
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
        if (!take_register(b, c->registers))
            return false;
        if (op == DW_CFA_def_cfa)
            bytes_uleb(b);
        else
            bytes_sleb(b);
        c->cfa = CFA_REGISTER;
        return true;
    case DW_CFA_def_cfa_register:
        /* The offset of an expression would be its address. */
        return take_register(b, c->registers) && c->cfa == CFA_REGISTER;
    case DW_CFA_def_cfa_offset:
        bytes_uleb(b);
        return c->cfa == CFA_REGISTER;
    case DW_CFA_def_cfa_offset_sf:
        bytes_sleb(b);
        return c->cfa == CFA_REGISTER;
    case DW_CFA_def_cfa_expression:
        c->cfa = CFA_EXPRESSION;
        return take_expression(b, c->registers);
    default:
        return false;
    }
}

static bool check_instruction(struct check *c, struct bytes *b)
{
    uint8_t op = bytes_u8(b);

    switch (op) {
    case DW_CFA_advance_loc ... DW_CFA_advance_loc + 0x3f:
        return c->cfa != CFA_NONE;
    case DW_CFA_offset ... DW_CFA_offset + 0x3f:
        bytes_uleb(b);
        return (op & 0x3fu) < c->registers;
    case DW_CFA_restore ... DW_CFA_restore + 0x3f:
        return (op & 0x3fu) < c->registers;
    case DW_CFA_nop:
        return true;
    case DW_CFA_advance_loc1:
        bytes_skip(b, 1);
        return c->cfa != CFA_NONE;
    case DW_CFA_advance_loc2:
        bytes_skip(b, 2);
        return c->cfa != CFA_NONE;
    case DW_CFA_advance_loc4:
        bytes_skip(b, 4);
        return c->cfa != CFA_NONE;
    case DW_CFA_restore_extended:
    case DW_CFA_undefined:
    case DW_CFA_same_value:
        return take_register(b, c->registers);
    case DW_CFA_register:
        return take_register(b, c->registers) && take_register(b, c->registers);
    case DW_CFA_offset_extended:
    case DW_CFA_GNU_negative_offset_extended:
        if (!take_register(b, c->registers))
            return false;
        bytes_uleb(b);
        return true;
    case DW_CFA_offset_extended_sf:
        if (!take_register(b, c->registers))
            return false;
        bytes_sleb(b);
        return true;
    case DW_CFA_remember_state:
        if (c->depth == REMEMBER_MAX)
            return false;
        c->remembered[c->depth++] = c->cfa;
        return true;
    case DW_CFA_restore_state:
        if (!c->depth)
            return false;
        c->cfa = c->remembered[--c->depth];
        return true;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        return take_register(b, c->registers) && take_expression(b, c->registers);
    case DW_CFA_GNU_args_size:
        bytes_uleb(b);
        return true;
    default:
        return check_cfa_rule(c, b, op);
    }
}

static bool check_program(struct check *c, const uint8_t *program, uint64_t len_bytes)
{
    struct bytes b = bytes_of(program, len_bytes);

    while (bytes_left(&b))
        if (!check_instruction(c, &b) || b.bad)
            return false;
    return true;
}

static void put_sleb(struct buf *out, int64_t v)
{
    bool more = true;

    while (more) {
        uint8_t byte = v & 0x7f;
        v >>= 7;
        more = !((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40)));
        buf_put_u8(out, byte | (more ? 0x80 : 0));
    }
}

static void patch_length(struct buf *out, size_t at)
{
    uint32_t len = (uint32_t)(out->len_bytes - at - 4);

    if (!out->bad)
        memcpy(out->data + at, &len, sizeof len);
}

bool unwind_rules_append(const struct machine *machine, const struct cfi_fde *fde, uint64_t bias, struct buf *out,
                         uint64_t *fde_offset)
{
    static const uint8_t zeros[8];
    struct check check = {.registers = machine->register_count, .cfa = CFA_NONE};

    if (fde->return_column != machine->return_column || fde->cie_program_len > PROGRAM_MAX || fde->fde_program_len > PROGRAM_MAX)
        return false;
    if (!check_program(&check, fde->cie_program, fde->cie_program_len))
        return false;
    check.depth = 0; /* each program has a stack of its own */
    if (!check_program(&check, fde->fde_program, fde->fde_program_len) || check.cfa == CFA_NONE)
        return false;

    size_t cie_at = out->len_bytes;
    buf_put_u32(out, 0);
    buf_put_u32(out, 0);
    buf_put_u8(out, 1);
    buf_put_str(out, fde->signal_frame ? "zRS" : "zR");
    buf_put_u8(out, 0);
    buf_put_uleb(out, fde->code_align);
    put_sleb(out, fde->data_align);
    buf_put_u8(out, machine->return_column);
    buf_put_uleb(out, 1);
    buf_put_u8(out, 0x04); /* pointers: 8 bytes, absolute */
    buf_put(out, fde->cie_program, fde->cie_program_len);
    patch_length(out, cie_at);

    size_t fde_at = out->len_bytes;
    buf_put_u32(out, 0);
    buf_put_u32(out, (uint32_t)(out->len_bytes - cie_at));
    buf_put_u64(out, fde->start + bias);
    buf_put_u64(out, fde->end - fde->start);
    buf_put_uleb(out, 0);
    buf_put(out, fde->fde_program, fde->fde_program_len);
    patch_length(out, fde_at);
    buf_put(out, zeros, sizeof zeros); /* libunwind reads an "ABI marker" off a signal frame's program */
    *fde_offset = fde_at;
    return !out->bad;
}
