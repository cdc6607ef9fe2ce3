/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's functions are told by their names; compilers append a suffix to the name of a copy that they made. */
#include "capture/trace/kernel_cut.h"

#include <string.h>

#include "capture/host/kallsyms.h"

/* How far inwards of __schedule the tracepoint and its program can be. */
#define SWITCH_FRAMES_MAX 8

enum kernel_role {
    ROLE_NONE,
    ROLE_SWITCH, /* switches threads */
    ROLE_TRACER, /* calls the programs of a tracepoint, or enters or leaves the kernel for a system call */
};

/* Beginnings of names, of Linux 5.10 to 7.2 on x86-64. */
static const char *const tracers[] = {
    "__traceiter_", "__bpf_trace_", "bpf_prog_", "bpf_trace_", "perf_call_bpf_", "perf_syscall_", "perf_trace_", "trace_call_bpf",
    "trace_sys_", "__trace_sys_", "trace_syscall_",
    "syscall_trace_", "syscall_enter_", "syscall_exit_", "__syscall_enter_", "__syscall_exit_",
    "do_syscall_64", "do_int80_", "do_fast_syscall_", "__do_fast_syscall_", "entry_SYSCALL_", "entry_SYSENTER_", "entry_INT80_",
};

static enum kernel_role role_of_name(const char *name)
{
    static const char schedule[] = "__schedule";
    const size_t len = sizeof schedule - 1;

    if (!strncmp(name, schedule, len) && (!name[len] || name[len] == '.'))
        return ROLE_SWITCH;
    for (size_t i = 0; i < sizeof tracers / sizeof *tracers; i++) {
        if (!strncmp(name, tracers[i], strlen(tracers[i])))
            return ROLE_TRACER;
    }
    return ROLE_NONE;
}

static struct error *role_of(struct trace_builder *b, uint64_t address, uint64_t time_ns, enum kernel_role *role)
{
    const uint64_t *known = map_get(&b->kernel_roles, address);
    struct kernel_symbol symbol;
    bool found;

    if (known) {
        *role = (enum kernel_role)(*known - 1);
        return NULL;
    }
    TRY(kallsyms_lookup(b->o.kallsyms, address, time_ns, &symbol, &found));
    *role = found ? role_of_name(symbol.name) : ROLE_NONE;
    return map_set(&b->kernel_roles, address, (uint64_t)*role + 1) ? NULL : error_no_memory();
}

struct error *kernel_cut_switch(struct trace_builder *b, const uint64_t *addresses, uint32_t address_count, uint64_t time_ns,
                                uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < address_count && i < SWITCH_FRAMES_MAX; i++) {
        enum kernel_role role;
        TRY(role_of(b, addresses[i], time_ns, &role));
        if (role == ROLE_SWITCH) {
            *count = i + 1;
            return NULL;
        }
    }
    return NULL;
}

struct error *kernel_cut_tracepoint(struct trace_builder *b, const uint64_t *addresses, uint32_t address_count, uint64_t time_ns,
                                    uint32_t *count)
{
    for (*count = 0; *count < address_count; ++*count) {
        enum kernel_role role;
        TRY(role_of(b, addresses[*count], time_ns, &role));
        if (role != ROLE_TRACER)
            break;
    }
    return NULL;
}
