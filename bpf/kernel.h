/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The few kernel structures that the BPF programs look at. They are declared here so that
 * building needs no kernel with BTF. Offsets are relocated against the running kernel's BTF
 * at load (CO-RE), so only names and types must be right (kernels 5.10 to 7.x). What
 * depends on the machine is in bpf/arch.h.
 */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define EEXIST 17
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_USER_STACK = 1 << 8 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };
enum { BPF_F_MMAPABLE = 1 << 10 };
enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
    BPF_MAP_TYPE_RINGBUF = 27,
};
/* Those that bpf_core_enum_value_exists() is asked about. */
enum bpf_func_id {
    BPF_FUNC_get_current_task_btf = 158,
    BPF_FUNC_task_pt_regs = 175,
};

#include "bpf/arch.h"

struct bpf_perf_event_data {
    struct pt_regs regs;
    __u64 sample_period, addr;
};
struct bpf_raw_tracepoint_args {
    __u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct mm_struct {
    unsigned long start_stack;
    unsigned long data_vm; /* pages of private mappings that can be written to */
    unsigned long brk;
};
/* Empty where the kernel does not count how long threads wait for a CPU. */
struct sched_info {
    unsigned long long run_delay;
    unsigned long long last_arrival;
    unsigned long long last_queued;
};
/* A CPU's queue of threads that want to run, and the group's part of it that a thread belongs to. */
struct rq {
    __u64 clock, clock_task;
};
struct cfs_rq {
    struct rq *rq;
};
struct sched_entity {
    struct cfs_rq *cfs_rq;
    __u64 exec_start;
};
/* Namespaces, and what a thread may do in them. */
struct ns_common {
    unsigned int inum;
};
typedef struct {
    unsigned int val;
} kuid_t;
struct user_namespace {
    struct user_namespace *parent;
    int level; /* 0: the host's */
    kuid_t owner;
    struct ns_common ns;
};
struct pid_namespace {
    unsigned int level; /* 0: the host's */
    struct pid_namespace *parent;
    struct user_namespace *user_ns;
    struct ns_common ns;
};
struct nsproxy {
    struct pid_namespace *pid_ns_for_children;
};
struct cred {
    kuid_t euid;
    struct user_namespace *user_ns;
};
/* What the threads of a process share. */
struct signal_struct {
    int nr_threads;
};
struct task_struct {
    void *stack;
    unsigned int __state;
    unsigned int flags;
    int pid, tgid;
    unsigned int on_cpu; /* since 7.2 one byte, which is read in its own size as this has no sign */
    int exit_state;
    unsigned long nvcsw, nivcsw; /* switches away from it: of its own accord, and others */
    struct task_struct *group_leader;
    __u64 start_boottime;
    __u64 self_exec_id;
    struct mm_struct *mm;
    struct signal_struct *signal;
    const struct cred *cred;
    struct nsproxy *nsproxy;
    kuid_t loginuid; /* not where the kernel has no audit */
    unsigned in_execve : 1; /* from the opening of the new program's file on */
    struct sched_entity se;
    struct sched_info sched_info;
    struct thread_struct thread;
};
struct task_struct___before_5_14 {
    volatile long state;
};
/* What an iterator over threads is given. */
struct seq_file {
    unsigned long size, count; /* of its output: room, and bytes in it */
};
struct bpf_iter_meta {
    struct seq_file *seq;
};
struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task; /* NULL: the end */
};
struct perf_event {
    __u64 id;
};
/* What a CPU has at hand, among it how deep it is in interrupts (x86, 6.2 to 6.14). */
struct pcpu_hot {
    int preempt_count;
};
/* What the context of a perf_event program is to the kernel. */
struct bpf_perf_event_data_kern {
    struct perf_event *event;
};
#pragma clang attribute pop

#define PF_KTHREAD 0x00200000
/* Bits of a thread's state (include/linux/sched.h); the same from 5.10 on. */
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_DEAD 0x80
#define TASK_WAKING 0x200
#endif
