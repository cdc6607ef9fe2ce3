/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64: System V ABI, its TLS supplement ("ELF Handling For Thread-Local Storage", chapter 4), Intel's manual for
 * instructions, and Linux arch/x86/include/uapi/asm/sigcontext.h for the frame of a signal.
 */
#include <elf.h>
#include <string.h>

#include "formats/elf/machine.h"
#include "formats/elf/unwind_row.h"
#include "formats/elf/x86_64.h"

/* A displacement or immediate of four bytes, sign-extended. */
static uint64_t number_at(const uint8_t *p)
{
    int32_t v;

    memcpy(&v, p, sizeof v);
    return (uint64_t)(int64_t)v;
}

/* The length of a NOP with its prefixes (Intel's manual, volume 2: 0F 1F with an unused address); 0: not a NOP. */
static size_t nop_len(const uint8_t *p, size_t left)
{
    size_t n = 0;

    while (n < left && (p[n] == 0x66 || p[n] == 0x2e))
        n++;
    if (n < left && p[n] == 0x90)
        return n + 1;
    if (left - n < 3 || p[n] != 0x0f || p[n + 1] != 0x1f)
        return 0;
    uint8_t mode = p[n + 2] >> 6, base = p[n + 2] & 7;
    n += 3 + (mode != 3 && base == 4) + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
    return n <= left ? n : 0;
}

/* Zeros, breakpoints, instructions that do nothing. */
static size_t padding_len(const uint8_t *p, size_t left)
{
    return !p[0] || p[0] == 0xcc ? 1 : nop_len(p, left);
}

/* A stub holds one `jmp *slot(%rip)`, perhaps behind an endbr64 and with a bnd prefix. */
static bool stub_slot(const uint8_t *code, size_t len_bytes, uint64_t vaddr, uint64_t *slot)
{
    for (size_t i = 0; i + 6 <= len_bytes; i++) {
        if (code[i] != 0xff || code[i + 1] != 0x25)
            continue;
        *slot = vaddr + i + 6 + number_at(code + i + 2);
        return true;
    }
    return false;
}

static bool address_at(const uint8_t *p, uint64_t vaddr, uint64_t *address)
{
    if ((p[0] & 0xfb) == 0x48 && p[1] == 0x8d && (p[2] & 0xc7) == 0x05) /* lea reg, [rip + disp32] */
        *address = vaddr + 7 + number_at(p + 3);
    else if ((p[0] & 0xf8) == 0xb8) /* mov reg, imm32: in a program at a fixed address */
        *address = (uint32_t)number_at(p + 1);
    else
        return false;
    return true;
}

static bool load_at(const uint8_t *p, uint64_t vaddr, bool argument, bool wide, uint64_t *address)
{
    uint8_t reg = argument ? 7 : 0; /* rdi, rax, as instructions number them */

    if (wide && *p++ != 0x48)
        return false;
    vaddr += wide;
    if (p[0] != 0x8b)
        return false;
    if (p[1] == (0x05 | reg << 3)) /* mov reg, [rip + disp32] */
        *address = vaddr + 6 + number_at(p + 2);
    else if (p[1] == (0x04 | reg << 3) && p[2] == 0x25) /* mov reg, [abs32] */
        *address = number_at(p + 3);
    else
        return false;
    return true;
}

static bool jump_at(const uint8_t *p, uint64_t vaddr, uint64_t *target)
{
    if (p[0] == 0x0f && (p[1] & 0xf0) == 0x80) /* jcc rel32 */
        *target = vaddr + 6 + number_at(p + 2);
    else if (p[0] == 0xe9) /* jmp rel32 */
        *target = vaddr + 5 + number_at(p + 1);
    else
        return false;
    return true;
}

/* The instruction behind `mov reg, fs:0`, which adds the variable's offset to the thread pointer. */
static bool tls_of_pointer(const uint8_t *q, uint64_t vaddr, struct machine_tls *out)
{
    if ((q[0] & 0xf8) != 0x48)
        return false;
    if ((q[1] == 0x8d || q[1] == 0x8b) && (q[2] & 0xc0) == 0x80 && (q[2] & 7) != 4) /* lea or mov reg, [reg + imm32] */
        *out = (struct machine_tls){.model = MACHINE_TLS_OFFSET, .offset = (int64_t)number_at(q + 3)};
    else if (q[1] == 0x03 && (q[2] & 0xc7) == 0x05) /* add reg, [rip + disp32] */
        *out = (struct machine_tls){.model = MACHINE_TLS_SLOT, .slot = vaddr + 7 + number_at(q + 3)};
    else
        return false;
    return true;
}

/* The offset in the module's block; local dynamic code has it behind the call: mov reg, [reg + disp32 or disp8]. */
static bool offset_in_block(const uint8_t *q, const uint8_t *end, int64_t *offset)
{
    for (; q < end; q++) {
        if (q[0] != 0x48 || q[1] != 0x8b || ((q[2] & 0xc7) != 0x80 && (q[2] & 0xc7) != 0x40))
            continue;
        *offset = (q[2] & 0xc7) == 0x80 ? (int64_t)number_at(q + 3) : (int8_t)q[3];
        return true;
    }
    return false;
}

static struct machine_tls tls_at(const uint8_t *code, size_t len_bytes, uint64_t vaddr)
{
    struct machine_tls found = {0};

    for (size_t i = 0; i < len_bytes; i++) {
        const uint8_t *p = code + i;
        uint64_t at = vaddr + i;
        /* mov reg, fs:imm32; behind fs:0 (the thread pointer) follows an addition. */
        if (p[0] == 0x64 && (p[1] & 0xfb) == 0x48 && p[2] == 0x8b && (p[3] & 0xc7) == 0x04 && p[4] == 0x25) {
            if (number_at(p + 5))
                return (struct machine_tls){.model = MACHINE_TLS_OFFSET, .offset = (int64_t)number_at(p + 5)};
            if (tls_of_pointer(p + 9, at + 9, &found))
                return found;
        }
        /* In a relaxed descriptor sequence a two-byte nop replaces the call. */
        bool then_loads = p[7] == 0x64 || (p[7] == 0x66 && p[8] == 0x90 && p[9] == 0x64);
        /* mov reg, imm32; mov reg, fs:[reg] */
        if (p[0] == 0x48 && p[1] == 0xc7 && (p[2] & 0xf8) == 0xc0 && then_loads)
            return (struct machine_tls){.model = MACHINE_TLS_OFFSET, .offset = (int64_t)number_at(p + 3)};
        uint64_t slot = at + 7 + number_at(p + 3);
        /* mov reg, [rip + disp32]; mov reg, fs:[reg] */
        if ((p[0] & 0xfb) == 0x48 && p[1] == 0x8b && (p[2] & 0xc7) == 0x05 && then_loads)
            return (struct machine_tls){.model = MACHINE_TLS_SLOT, .slot = slot};
        /* lea rax, [rip + disp32]; call [rax] */
        if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x05 && p[7] == 0xff && p[8] == 0x10)
            return (struct machine_tls){.model = MACHINE_TLS_DESCRIPTOR, .slot = slot};
        /* lea rdi, [rip + disp32]; call __tls_get_addr; general dynamic code has a prefix before it */
        if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x3d) {
            bool general = i && p[-1] == 0x66;
            found = (struct machine_tls){.model = MACHINE_TLS_MODULE, .slot = slot};
            return general || offset_in_block(p + 7, code + len_bytes, &found.offset) ? found : (struct machine_tls){0};
        }
    }
    return found;
}

static const uint8_t callee_saved[] = {X86_64_RBX, X86_64_RBP, X86_64_R12, X86_64_R13, X86_64_R14, X86_64_R15};
static const uint8_t sigreturn[] = {X86_64_SIGRETURN_BYTES};
/* uc_mcontext.gregs */
static const uint8_t signal_registers[X86_64_REGISTERS] = {
    X86_64_R8,  X86_64_R9,  X86_64_R10, X86_64_R11, X86_64_R12, X86_64_R13, X86_64_R14, X86_64_R15, X86_64_RDI,
    X86_64_RSI, X86_64_RBP, X86_64_RBX, X86_64_RDX, X86_64_RAX, X86_64_RCX, X86_64_RSP, X86_64_RIP,
};

const struct machine machine_x86_64 = {
    .name = "x86_64",
    .title = "x86-64",
    .elf_machine = EM_X86_64,
    .page_bytes = X86_64_PAGE_BYTES,
    .register_count = X86_64_REGISTERS,
    .general_count = X86_64_GENERAL_REGISTERS,
    .pc = X86_64_RIP,
    .sp = X86_64_RSP,
    .fp = X86_64_RBP,
    .base = X86_64_RBX,
    .return_column = X86_64_RIP,
    .return_address = X86_64_RETURN_ADDRESS,
    .red_zone_bytes = X86_64_RED_ZONE_BYTES,
    .callee_saved = callee_saved,
    .callee_saved_count = sizeof callee_saved,
    .row_kinds = (1u << UNWIND_TYPE_COUNT) - 1,
    .sigreturn = sigreturn,
    .sigreturn_len = X86_64_SIGRETURN_LEN,
    .sigreturn_syscall = X86_64_SIGRETURN_SYSCALL,
    .signal_registers_at = X86_64_SIGNAL_REGISTERS,
    .signal_registers = signal_registers,
    .relocation_jump_slot = R_X86_64_JUMP_SLOT,
    .relocation_data = R_X86_64_GLOB_DAT,
    .relocation_chosen = R_X86_64_IRELATIVE,
    .relocation_tls_module = R_X86_64_DTPMOD64,
    .relocation_tls_offset = R_X86_64_DTPOFF64,
    .code_step = 1,
    .padding_len = padding_len,
    .stub_slot = stub_slot,
    .stub_bytes = X86_64_PLT_ENTRY_BYTES,
    .stub_bytes_small = 8,
    .address_at = address_at,
    .load_at = load_at,
    .jump_at = jump_at,
    .tls_at = tls_at,
};
