/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * x86-64 Linux as the sampler and the walkers need it: all that bpf/ knows of the machine stands here or in
 * formats/elf/x86_64.h, which readers of files share. Chosen by bpf/arch.h; to add a machine, write a header that
 * defines the same names.
 */
#ifndef BPF_ARCH_X86_64_H
#define BPF_ARCH_X86_64_H

#include "formats/elf/x86_64.h"

#define ARCH_NAME "x86_64" /* as uname() says it */
#define ARCH_PAGE_BYTES X86_64_PAGE_BYTES
#define ARCH_WORD_BYTES X86_64_WORD_BYTES

/* ---- registers, in DWARF's order ---- */

#define ARCH_REGISTERS X86_64_REGISTERS
/* Those that hold values; a power of two, so that a number can be bounded by a mask. */
#define ARCH_GENERAL_REGISTERS X86_64_GENERAL_REGISTERS
enum {
    ARCH_PC = X86_64_RIP,
    ARCH_SP = X86_64_RSP,
    ARCH_FP = X86_64_RBP,
    ARCH_BX = X86_64_RBX, /* saved by the callee; followed beside ARCH_FP (formats/elf/unwind_row.h) */
};

/* ---- stacks ---- */

#define ARCH_RED_ZONE_BYTES X86_64_RED_ZONE_BYTES
/* Offset of the return address from the CFA. */
#define ARCH_RETURN_ADDRESS X86_64_RETURN_ADDRESS
/* The caller's frame pointer and behind it the return address: what ARCH_FP points to. */
#define ARCH_FRAME_RECORD_BYTES (2 * ARCH_WORD_BYTES)

/* How far the CFA lies above the stack pointer in a PLT entry, which pushes a word before its byte `pushed_at`. */
#define ARCH_PLT_CFA(pc, pushed_at) \
    (ARCH_WORD_BYTES + (((pc) & (X86_64_PLT_ENTRY_BYTES - 1)) >= (pushed_at) ? ARCH_WORD_BYTES : 0))

/* The code that a signal handler returns to; see X86_64_SIGRETURN_BYTES. */
#define ARCH_SIGRETURN_LEN X86_64_SIGRETURN_LEN
#define ARCH_SIGRETURN_SYSCALL X86_64_SIGRETURN_SYSCALL
static inline int arch_is_sigreturn(const unsigned char *code)
{
    const unsigned char sigreturn[ARCH_SIGRETURN_LEN] = {X86_64_SIGRETURN_BYTES};
    unsigned char differ = 0;

    /* BPF has no memcmp(). */
    for (int i = 0; i < ARCH_SIGRETURN_LEN; i++)
        differ |= code[i] ^ sigreturn[i];
    return !differ;
}

/*
 * The 16 bytes around an address in a PLT. lld and mold write no call frame information for theirs. The words that the entry
 * has pushed onto the stack before byte `at` of it; -1: it is no entry that is known. A lazy entry is "jmp *slot; push
 * number; jmp first", others do not push: those of IBT begin with endbr64, mold's put the number into r11.
 */
#define ARCH_STUB_BYTES X86_64_PLT_ENTRY_BYTES
static inline int arch_stub_pushed(const unsigned char *code, unsigned at)
{
    if (code[0] == 0xff && code[1] == 0x25 && code[6] == 0x68 && code[11] == 0xe9)
        return at >= 11;
    if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa &&
        ((code[4] == 0xff && code[5] == 0x25) ||
         (code[4] == 0x41 && code[5] == 0xbb && code[10] == 0xff && code[11] == 0x25)))
        return 0;
    return -1;
}

/* The register with what a system call returned. */
#define ARCH_RESULT 0
/*
 * Whether these 8 bytes are what stands behind the system call in glibc's clone() and clone3(), 2.17 to 2.41:
 * "test %rax,%rax; jl error; je child; ret".
 */
static inline int arch_is_after_clone(unsigned long long code)
{
    return (code & 0xff00ff00ffffffffull) == 0xc30074007cc08548ull;
}

/*
 * What stands behind the call in trampolines that are made at run time without call frame information (CPython's
 * -X perf), by the bytes at the return address.
 */
enum arch_epilogue {
    ARCH_EPILOGUE_UNKNOWN,
    ARCH_EPILOGUE_POPS_FP, /* pop %rbp; ret: CPython 3.13 and later */
    ARCH_EPILOGUE_SKIPS,   /* add $8, %rsp; ret: CPython 3.12 */
};
#define ARCH_EPILOGUE_LEN 5
static inline enum arch_epilogue arch_epilogue_at(const unsigned char *code)
{
    if (code[0] == 0x5d && code[1] == 0xc3)
        return ARCH_EPILOGUE_POPS_FP;
    return code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4 && code[3] == 0x08 && code[4] == 0xc3 ? ARCH_EPILOGUE_SKIPS
                                                                                                         : ARCH_EPILOGUE_UNKNOWN;
}
/*
 * Whether these bytes, which end at the return address, are all that stands before it in such a trampoline. It has no other
 * instruction, so it does nothing but call its fourth argument with the others (Python/asm_trampoline.S).
 */
#define ARCH_TRAMPOLINE_LEN 6
static inline int arch_is_trampoline(const unsigned char *code, enum arch_epilogue epilogue)
{
    if (code[4] != 0xff || code[5] != 0xd1) /* call *%rcx */
        return 0;
    if (epilogue == ARCH_EPILOGUE_POPS_FP) /* push %rbp; mov %rsp, %rbp */
        return code[0] == 0x55 && code[1] == 0x48 && code[2] == 0x89 && code[3] == 0xe5;
    /* sub $8, %rsp */
    return epilogue == ARCH_EPILOGUE_SKIPS && code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xec && code[3] == 0x08;
}

/*
 * The registers that the kernel saved for a signal handler, as they lie from ARCH_SIGNAL_REGISTERS above the stack
 * pointer on: uc_mcontext.gregs of struct ucontext (arch/x86/include/uapi/asm/sigcontext.h).
 */
#define ARCH_SIGNAL_REGISTERS X86_64_SIGNAL_REGISTERS
static inline void arch_signal_registers(unsigned long long *out, const unsigned long long *saved)
{
    for (int i = 0; i < 8; i++)
        out[X86_64_R8 + i] = saved[i];
    out[X86_64_RDI] = saved[8];
    out[X86_64_RSI] = saved[9];
    out[X86_64_RBP] = saved[10];
    out[X86_64_RBX] = saved[11];
    out[X86_64_RDX] = saved[12];
    out[X86_64_RAX] = saved[13];
    out[X86_64_RCX] = saved[14];
    out[X86_64_RSP] = saved[15];
    out[X86_64_RIP] = saved[16];
}

/* ---- thread-local storage: variant II of the TLS ABI, where variables lie below the thread pointer ---- */

/* The thread's pthread handle, pthread_self(): its descriptor begins where the thread pointer points. */
#define ARCH_PTHREAD_SELF(thread_pointer) (thread_pointer)
/* Address of the pointer to the DTV, the array of the modules' TLS blocks, in the thread control block (tcbhead_t). */
#define ARCH_DTV(thread_pointer) ((thread_pointer) + 8)
/* A TLS descriptor's argument is the variable's offset from the thread pointer, or else an address. */
#define ARCH_TLSDESC_IS_OFFSET(argument) ((long long)(argument) < 0)

/* glibc's struct pthread (nptl/descr.h; 2.17 to 2.43). */
#define ARCH_GLIBC_TID 0x2d0        /* tid */
#define ARCH_GLIBC_KEY_VALUES 0x318 /* specific_1stblock[0].data: the value of pthread key 0 */

/* ---- system calls ---- */

/* The system calls by which locks and conditions wait: futex, futex_waitv, futex_wait. */
static __attribute__((always_inline)) inline int arch_is_futex(int system_call)
{
    return system_call == 202 || system_call == 449 || system_call == 455;
}

/* Those of them of which the first argument is the address that is waited on; futex_waitv has a list. */
static __attribute__((always_inline)) inline int arch_is_futex_address(int system_call)
{
    return system_call == 202 || system_call == 455;
}

/* Those that change what memory a process has, and flags of theirs (asm/unistd_64.h, asm-generic/mman-common.h). */
enum {
    ARCH_CALL_MMAP = 9,
    ARCH_CALL_MPROTECT = 10,
    ARCH_CALL_MUNMAP = 11,
    ARCH_CALL_BRK = 12,
    ARCH_CALL_MREMAP = 25,
    ARCH_PROT_WRITE = 2,
    ARCH_MAP_PRIVATE = 2,
    ARCH_MAP_TYPE = 15,
    ARCH_MAP_FIXED = 16,
    ARCH_MREMAP_DONTUNMAP = 4,
};

/* ---- the kernel's side; only for BPF ---- */
#ifdef __bpf__

/* A system call and its first arguments. */
struct arch_call {
    int system_call;
    unsigned long arguments[4];
};

/* The sampler's context begins with it (uapi/linux/bpf_perf_event.h, asm/ptrace.h). */
struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct thread_struct {
    unsigned long fsbase;
};
#pragma clang attribute pop
/* The user's thread pointer, as a member of struct task_struct. */
#define ARCH_TASK_THREAD_POINTER thread.fsbase

/* Where the user registers end on a kernel stack, for kernels without bpf_task_pt_regs(). Kernels without KASAN. */
#define ARCH_KERNEL_STACK_BYTES 16384

/* Whether these are registers of user mode. Of a program's context only whole words can be loaded: hence volatile. */
static __attribute__((always_inline)) inline int arch_is_user(const struct pt_regs *r)
{
    return (*(const volatile unsigned long *)&r->cs & 3) == 3;
}

/* The address of what it waits for, by the system call's registers; 0: the call waits for several, or is another one. */
static __attribute__((always_inline)) inline __u64 arch_futex_address(int system_call, const struct pt_regs *r)
{
    return arch_is_futex_address(system_call) ? r->di : 0;
}

/*
 * The number of the system call that the thread is in, by its registers in the kernel; -1: a fault or an interrupt
 * brought it there. The instruction SYSCALL leaves the program's address in RCX, and its flags in R11.
 */
static __attribute__((always_inline)) inline int arch_system_call(const struct pt_regs *r)
{
    return r->cx == r->ip && r->r11 == r->flags ? (int)r->orig_ax : -1;
}

/* The call that the thread is about to return from: until then its registers are those that it came with. */
static __attribute__((always_inline)) inline void arch_call_of(const struct pt_regs *r, struct arch_call *out)
{
    out->system_call = (int)r->orig_ax;
    out->arguments[0] = r->di;
    out->arguments[1] = r->si;
    out->arguments[2] = r->dx;
    out->arguments[3] = r->r10;
}

static __attribute__((always_inline)) inline void arch_registers(__u64 *out, const struct pt_regs *r)
{
    out[X86_64_RAX] = r->ax;
    out[X86_64_RDX] = r->dx;
    out[X86_64_RCX] = r->cx;
    out[X86_64_RBX] = r->bx;
    out[X86_64_RSI] = r->si;
    out[X86_64_RDI] = r->di;
    out[X86_64_RBP] = r->bp;
    out[X86_64_RSP] = r->sp;
    out[X86_64_R8] = r->r8;
    out[X86_64_R9] = r->r9;
    out[X86_64_R10] = r->r10;
    out[X86_64_R11] = r->r11;
    out[X86_64_R12] = r->r12;
    out[X86_64_R13] = r->r13;
    out[X86_64_R14] = r->r14;
    out[X86_64_R15] = r->r15;
    out[X86_64_RIP] = r->ip;
}

#endif

#endif
