/* SPDX-License-Identifier: Apache-2.0 */
/* A tracepoint's arguments are those of the type btf_trace_NAME, a pointer to a function whose first one is internal. */
#include "capture/sampler/switch_tracepoint.h"

#include <bpf/btf.h>
#include <errno.h>

/* bool preempt, struct task_struct *prev, struct task_struct *next; since 5.19 unsigned int prev_state. */
enum { ARGUMENTS = 4, ARGUMENTS_WITH_STATE = 5 };

static bool has_known_arguments(const struct btf *btf, bool *has_state)
{
    int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
    const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

    t = t ? btf__type_by_id(btf, t->type) : NULL;
    t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
    if (!t || !btf_is_func_proto(t) || btf_vlen(t) < ARGUMENTS)
        return false;
    const struct btf_param *p = btf_params(t);
    *has_state = btf_vlen(t) >= ARGUMENTS_WITH_STATE;
    return btf_is_ptr(btf__type_by_id(btf, p[2].type)) && btf_is_ptr(btf__type_by_id(btf, p[3].type)) &&
           (!*has_state || btf_is_int(btf__type_by_id(btf, p[4].type)));
}

struct error *switch_tracepoint_check(bool *has_state)
{
    struct btf *btf = btf__load_vmlinux_btf();

    *has_state = false;
    if (!btf)
        return error_os(errno, "the kernel's types (BTF) cannot be read");
    bool known = has_known_arguments(btf, has_state);
    btf__free(btf);
    return known ? NULL : error_create(ERROR_UNSUPPORTED, "this kernel reports switches between threads in a way that is not "
                                                          "known: off-cpu cannot be recorded");
}
