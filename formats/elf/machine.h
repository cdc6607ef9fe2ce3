/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines as data: a struct for each machine whose files and stacks we can read, on whatever host. The sampler in the
 * kernel and the walkers have theirs in bpf/arch.h; numbers that both need are defined once, in formats/elf/<machine>.h.
 *
 * To add a machine:
 *  1. formats/elf/<machine>.h: its numbers; bpf/arch_<machine>.h: its registers and conventions, chosen by bpf/arch.h.
 *  2. formats/elf/machine_<machine>.c: a struct machine, and its line in machine.c. A frame that no row kind of
 *     formats/elf/unwind_row.h describes ends its stack with a reason; the unwinder in bpf/ must know every new kind.
 *  3. symbolize/unwind/remote_<machine>.c: libunwind for that machine, and its line in remote.c.
 *  4. The Makefile's ARCHES, and Architecture in docs/debian/control.
 *  5. Tests: recordings in testdata/, and the lines of tests/toolchain/test_machine.c.
 * Thread-local variables are expected below the thread pointer (variant II of the TLS ABI, formats/cpython/tls.c).
 */
#ifndef FORMATS_ELF_MACHINE_H
#define FORMATS_ELF_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How code reaches a thread-local variable (the models of the TLS ABI). */
enum machine_tls_model {
    MACHINE_TLS_UNKNOWN,
    MACHINE_TLS_OFFSET,     /* local exec: at thread pointer + offset */
    MACHINE_TLS_SLOT,       /* initial exec: at thread pointer + the word at slot */
    MACHINE_TLS_DESCRIPTOR, /* a TLS descriptor at slot */
    MACHINE_TLS_MODULE,     /* general and local dynamic: at offset from where the tls_index at slot points */
};
struct machine_tls {
    enum machine_tls_model model;
    int64_t offset; /* bytes */
    uint64_t slot;  /* virtual address */
};

/*
 * The functions recognise what stands at one place in code by the few instructions that compilers and linkers use for
 * the purpose; nothing is disassembled. The caller provides MACHINE_CODE_SLACK readable bytes behind the code. `vaddr` is
 * the virtual address of the place.
 */
enum { MACHINE_CODE_SLACK = 16, MACHINE_REGISTERS_MAX = 63 };

struct machine {
    const char *name;     /* as in uname() and a trace's HOST */
    const char *title;    /* as people write it */
    uint16_t elf_machine; /* e_machine */
    uint32_t page_bytes;  /* files are mapped in multiples of it */

    /* Registers have DWARF's numbers. */
    uint32_t register_count;        /* a trace has the values of registers 0 up to this */
    uint32_t general_count;         /* an unwind rule may use registers 0 up to this as its base */
    uint8_t pc, sp, fp;
    uint8_t base;                   /* beside fp, the register that unwind rows follow */
    uint8_t return_column;          /* the return address in call frame information */
    int32_t return_address;         /* where a call puts it: bytes from the CFA */
    uint32_t red_zone_bytes;        /* below sp; leaf functions may use them */
    const uint8_t *callee_saved;
    uint32_t callee_saved_count;
    uint32_t row_kinds;             /* bit per enum unwind_type (formats/elf/unwind_row.h) */

    /* The code that a signal handler returns to, known by its bytes if it has no call frame information. */
    const uint8_t *sigreturn;
    uint32_t sigreturn_len, sigreturn_syscall; /* bytes; offset of the system call in it */
    /* The registers that the kernel saved for the handler: offset from sp there, and their numbers in that order. */
    uint32_t signal_registers_at;
    const uint8_t *signal_registers;

    /* Types of relocations, and how they fill slots. Chosen: by what the function at the addend returns. */
    uint32_t relocation_jump_slot, relocation_data, relocation_chosen, relocation_tls_module, relocation_tls_offset;

    uint32_t code_step; /* instructions begin at multiples of it */
    /* The length of one piece of padding between functions; 0: it is code. */
    size_t (*padding_len)(const uint8_t *code, size_t len_bytes);
    /* The slot that a PLT stub jumps through. */
    bool (*stub_slot)(const uint8_t *code, size_t len_bytes, uint64_t vaddr, uint64_t *slot);
    uint32_t stub_bytes, stub_bytes_small; /* of a stub: usually, and in sections of small stubs */
    /* An instruction that puts a constant address into a register. */
    bool (*address_at)(const uint8_t *code, uint64_t vaddr, uint64_t *address);
    /* One that loads a variable at a constant address: the register of the first argument or of the result, 8 or 4 bytes. */
    bool (*load_at)(const uint8_t *code, uint64_t vaddr, bool argument, bool wide, uint64_t *address);
    /* A long jump, and its target. */
    bool (*jump_at)(const uint8_t *code, uint64_t vaddr, uint64_t *target);
    /* How a small function loads a thread-local variable. */
    struct machine_tls (*tls_at)(const uint8_t *code, size_t len_bytes, uint64_t vaddr);
};

/* By HOST's name, or an ELF file's e_machine; NULL: not supported. Static. */
const struct machine *machine_by_name(const char *name);
const struct machine *machine_by_elf(uint16_t elf_machine);

#endif
