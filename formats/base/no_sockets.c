/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of system calls mean something else in the other ABIs of a machine (32 bits; x32, whose numbers have bit 30), so
 * that none of theirs is let through.
 */
#include "formats/base/no_sockets.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ABI AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ABI AUDIT_ARCH_AARCH64
#endif

#ifdef ABI
#define OTHER_ABI_BIT (1u << 30)
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
/* Goes to the next instruction, which refuses, or over it. */
#define REFUSE_IF(comparison, number) BPF_JUMP(BPF_JMP | (comparison) | BPF_K, (number), 0, 1), REFUSE
#define REFUSE_UNLESS(comparison, number) BPF_JUMP(BPF_JMP | (comparison) | BPF_K, (number), 1, 0), REFUSE

bool no_sockets_enter(void)
{
    static struct sock_filter filter[] = {
        LOAD(arch),
        REFUSE_UNLESS(BPF_JEQ, ABI),
        LOAD(nr),
        REFUSE_IF(BPF_JGE, OTHER_ABI_BIT),
        REFUSE_IF(BPF_JEQ, SYS_socket),
        REFUSE_IF(BPF_JEQ, SYS_socketpair),
        REFUSE_IF(BPF_JEQ, SYS_io_uring_setup),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#else
bool no_sockets_enter(void)
{
    return false;
}
#endif
