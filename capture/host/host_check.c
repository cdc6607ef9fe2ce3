/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what sampling needs. The first check that fails is reported, so the order is that of importance to the user.
 */
#include "capture/host/host_check.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/arch.h"
#include "capture/host/kernel_hang.h"
#include "capture/host/privileges.h"

static bool older_than(const struct host *h, uint32_t major, uint32_t minor, uint32_t patch)
{
    if (h->kernel_major != major)
        return h->kernel_major < major;
    if (h->kernel_minor != minor)
        return h->kernel_minor < minor;
    return h->kernel_patch < patch;
}

struct error *host_check(const struct host *h)
{
    if (strcmp(h->machine, ARCH_NAME))
        return error_create(ERROR_UNSUPPORTED, "this pycap samples on %s; this is a %s", ARCH_NAME, h->machine);
    if (older_than(h, 5, 10, 0))
        return error_create(ERROR_UNSUPPORTED, "Linux %s is too old: sampling needs 5.10 or later", h->release);
    if (!getenv("PYCAP_IGNORE_KERNEL_BUG"))
        TRY(kernel_hang_check(h->release, h->version, h->version_signature));
    TRY(privileges_check(h));
    if (!strcmp(h->lockdown, "confidentiality"))
        return error_create(ERROR_UNSUPPORTED,
                            "this kernel is locked down to 'confidentiality', which forbids BPF programs to read memory "
                            "(see /sys/kernel/security/lockdown)");
    if (!h->has_btf)
        return error_create(ERROR_UNSUPPORTED,
                            "this kernel has no type information (/sys/kernel/btf/vmlinux is missing, empty or unreadable; "
                            "CONFIG_DEBUG_INFO_BTF), "
                            "which the sampler needs to adapt to the kernel");
    if (h->own_pid_namespace)
        return error_create(ERROR_UNSUPPORTED,
                            "pycap runs in a pid namespace of its own (a container?) and cannot see the host's pids: run "
                            "pycap on the host, or the container with the host's pid namespace (--pid=host)");
    return NULL;
}
