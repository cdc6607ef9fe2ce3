/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Notes whose a process is when it begins a program, before that costs user space anything: its effective user, and the
 * namespaces that tell which ids belong together (capture/host/owner.h). Later samples show if its user is another one.
 */
#ifndef BPF_SAMPLER_OWNER_H
#define BPF_SAMPLER_OWNER_H

#include "bpf/sampler_state.h"

/* The kernel allows no more namespaces within each other. */
#define OWNER_LEVELS 33
#define OWNER_NO_LOGIN 0xffffffffu

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384); /* user space sets it */
    __type(key, __u32);
    __type(value, struct wire_owner);
} owners SEC(".maps");

/* The namespace of this kind next below the host's that `ns` is or lies in; NULL: it is the host's. */
#define OWNER_OUTERMOST(kind)                                                              \
    static __noinline struct kind *outermost_##kind(struct kind *ns)                       \
    {                                                                                      \
        if (!BPF_CORE_READ(ns, level))                                                     \
            return 0;                                                                      \
        for (int i = 0; i < OWNER_LEVELS && BPF_CORE_READ(ns, level) > 1; i++)             \
            ns = BPF_CORE_READ(ns, parent);                                                \
        return ns;                                                                         \
    }
OWNER_OUTERMOST(user_namespace)
OWNER_OUTERMOST(pid_namespace)

/* The program has begun: the kernel has set the credentials that it gave it. */
SEC("raw_tracepoint/sched_process_exec")
int began(struct bpf_raw_tracepoint_args *ctx)
{
    struct task_struct *task = (void *)ctx->args[0];
    __u32 tgid = BPF_CORE_READ(task, tgid);
    struct wire_owner owner = {.time_ns = bpf_ktime_get_ns(), .uid = BPF_CORE_READ(task, cred, euid.val)};
    struct user_namespace *user = outermost_user_namespace(BPF_CORE_READ(task, cred, user_ns));
    struct pid_namespace *pids = outermost_pid_namespace(BPF_CORE_READ(task, nsproxy, pid_ns_for_children));

    if (user) {
        owner.user_ns = BPF_CORE_READ(user, ns.inum);
        owner.user_ns_owner = BPF_CORE_READ(user, owner.val);
    }
    if (bpf_core_field_exists(task->loginuid)) {
        owner.login = BPF_CORE_READ(task, loginuid.val);
        owner.login = owner.login == OWNER_NO_LOGIN ? 0 : owner.login;
    }
    if (pids && !BPF_CORE_READ(pids, user_ns, level))
        owner.container = BPF_CORE_READ(pids, ns.inum);
    /* A tick may interrupt this in the middle of the map, and meets other maps only. */
    bpf_map_update_elem(&owners, &tgid, &owner, BPF_ANY);
    return 0;
}

#endif
