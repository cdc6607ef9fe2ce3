/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What readers of files and of traces need to know of a machine, as data: a row for each machine whose files and stacks
 * are understood, on whatever host that is done. What the sampler in the kernel and the walkers need of it is in
 * bpf/arch.h; the numbers that both need are defined once, in formats/elf/<machine>.h.
 *
 * To add a machine:
 *  1. formats/elf/<machine>.h: its numbers; bpf/arch_<machine>.h: its registers and conventions, chosen by bpf/arch.h.
 *  2. formats/elf/machine_<machine>.c: a struct machine, and its line in machine.c. What the row kinds of
 *     formats/elf/unwind_row.h cannot say of its frames ends a stack by name; more kinds are for the unwinder in bpf/ too.
 *  3. symbolize/unwind/remote_<machine>.c: libunwind for that machine, and its line in remote.c.
 *  4. The Makefile's ARCHES.
 *  5. Tests: recordings in testdata/, and the lines of tests/unit/test_machine.c.
 * Thread-local variables are expected below the thread pointer (variant II of the TLS ABI, formats/cpython/tls.c).
 */
#ifndef FORMATS_ELF_MACHINE_H
#define FORMATS_ELF_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How code gets at a thread-local variable (the models of the TLS ABI). */
enum machine_tls_model {
    MACHINE_TLS_UNKNOWN,
    MACHINE_TLS_OFFSET,     /* local exec: at thread pointer + offset */
    MACHINE_TLS_SLOT,       /* initial exec: at thread pointer + the word at slot */
    MACHINE_TLS_DESCRIPTOR, /* a TLS descriptor at slot */
    MACHINE_TLS_MODULE,     /* general and local dynamic: offset more than the tls_index at slot says */
};
struct machine_tls {
    enum machine_tls_model model;
    int64_t offset; /* bytes */
    uint64_t slot;  /* virtual address */
};

/*
 * The functions look at one place in code and say what stands there, by the few instructions that compilers and linkers
 * make for the purpose; nothing is disassembled. MACHINE_CODE_SLACK readable bytes lie behind what they are given.
 * `vaddr` is the virtual address of the place.
 */
enum { MACHINE_CODE_SLACK = 16, MACHINE_REGISTERS_MAX = 63 };

struct machine {
    const char *name;     /* as uname() says it, and HOST in a trace */
    const char *title;    /* as people write it */
    uint16_t elf_machine; /* e_machine */
    uint32_t page_bytes;  /* what files are mapped by */

    /* Registers have their numbers of DWARF. */
    uint32_t register_count;        /* 0 up to this: those whose values a trace has */
    uint32_t general_count;         /* 0 up to this: those that an unwind rule may begin with */
    uint8_t pc, sp, fp;
    uint8_t base;                   /* beside fp, the register that unwind rows follow */
    uint8_t return_column;          /* what call frame information calls the return address */
    int32_t return_address;         /* where a call leaves it: offset from the CFA */
    uint32_t red_zone_bytes;        /* below sp, that leaf functions may use */
    const uint8_t *callee_saved;
    uint32_t callee_saved_count;
    uint32_t row_kinds;             /* bit per enum unwind_type (formats/elf/unwind_row.h) */

    /* What a signal handler returns to, where it has no call frame information; the system call is not its start. */
    const uint8_t *sigreturn;
    uint32_t sigreturn_len, sigreturn_syscall; /* bytes */
    /* The registers that the kernel saved for it: offset from sp, and the number of each as they lie there. */
    uint32_t signal_registers_at;
    const uint8_t *signal_registers;

    /* Types of relocations, and how they fill slots. */
    uint32_t relocation_jump_slot, relocation_data, relocation_tls_module, relocation_tls_offset;

    uint32_t code_step; /* instructions begin at multiples of it */
    /* How long something is that fills the space between functions; 0: it is code. */
    size_t (*padding_len)(const uint8_t *code, size_t len_bytes);
    /* The slot that a stub of the PLT jumps through. */
    bool (*stub_slot)(const uint8_t *code, size_t len_bytes, uint64_t vaddr, uint64_t *slot);
    uint32_t stub_bytes, stub_bytes_small; /* of a stub: usual, and where a section says that they are small */
    /* A constant address that is put into a register. */
    bool (*address_at)(const uint8_t *code, uint64_t vaddr, uint64_t *address);
    /* A variable at a constant address, of 4 or 8 bytes, loaded into the first argument of a call or the result. */
    bool (*load_at)(const uint8_t *code, uint64_t vaddr, bool argument, bool wide, uint64_t *address);
    /* A jump over a distance, and where it leads. */
    bool (*jump_at)(const uint8_t *code, uint64_t vaddr, uint64_t *target);
    /* How a function that does little else than load a thread-local variable does so. */
    struct machine_tls (*tls_at)(const uint8_t *code, size_t len_bytes, uint64_t vaddr);
};

/* By HOST's name or an ELF file's e_machine; NULL: it is not known here. */
const struct machine *machine_by_name(const char *name);
const struct machine *machine_by_elf(uint16_t elf_machine);

#endif
