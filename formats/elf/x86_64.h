/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The numbers of x86-64, for everything that reads its processes, files or traces: the sampler in the kernel
 * (bpf/arch_x86_64.h), the walkers on the host, the readers of ELF files. Constants only, so that BPF and C can include
 * it, on hosts of any machine.
 */
#ifndef FORMATS_ELF_X86_64_H
#define FORMATS_ELF_X86_64_H

/* The numbers that DWARF gives the registers (System V ABI for x86-64, figure 3.36). Traces keep them in this order. */
enum x86_64_register {
    X86_64_RAX = 0,
    X86_64_RDX = 1,
    X86_64_RCX = 2,
    X86_64_RBX = 3,
    X86_64_RSI = 4,
    X86_64_RDI = 5,
    X86_64_RBP = 6,
    X86_64_RSP = 7,
    X86_64_R8 = 8,
    X86_64_R9 = 9,
    X86_64_R10 = 10,
    X86_64_R11 = 11,
    X86_64_R12 = 12,
    X86_64_R13 = 13,
    X86_64_R14 = 14,
    X86_64_R15 = 15,
    X86_64_RIP = 16, /* the column of the return address */
    X86_64_REGISTERS = 17,
};
#define X86_64_GENERAL_REGISTERS 16 /* RAX to R15 */

#define X86_64_PAGE_BYTES 4096
#define X86_64_WORD_BYTES 8
/* Bytes below the stack pointer that a leaf function may use. */
#define X86_64_RED_ZONE_BYTES 128
/* Where the call instruction pushes it: bytes from the CFA. */
#define X86_64_RETURN_ADDRESS (-8)
/* An entry of a PLT has 16 bytes and begins at a multiple of that. */
#define X86_64_PLT_ENTRY_BYTES 16

/*
 * The code that a signal handler returns to: mov $15, %rax; syscall. In C libraries without call frame information for it,
 * it is recognised by these bytes. The system call is the second instruction.
 */
#define X86_64_SIGRETURN_BYTES 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05
#define X86_64_SIGRETURN_LEN 9
#define X86_64_SIGRETURN_SYSCALL 7
/*
 * Where the kernel saved the registers for a signal handler: uc_mcontext.gregs of struct ucontext, in bytes from the
 * stack pointer after the handler's return (arch/x86/include/uapi/asm/sigcontext.h).
 */
#define X86_64_SIGNAL_REGISTERS 40

#endif
