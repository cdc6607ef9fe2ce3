/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what sampling needs. The first check that fails is reported, so the order is that of importance to the user.
 */
#include "capture/host/host_check.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/arch.h"
#include "capture/host/kernel_hang.h"
#include "capture/host/perf_allowed.h"
#include "capture/host/privileges.h"

static bool older_than(const struct host *h, uint32_t major, uint32_t minor, uint32_t patch)
{
    if (h->kernel_major != major)
        return h->kernel_major < major;
    if (h->kernel_minor != minor)
        return h->kernel_minor < minor;
    return h->kernel_patch < patch;
}

static struct error *check(const struct host *h)
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
                            "(/sys/kernel/security/lockdown; 'integrity' would do)");
    if (!h->has_btf)
        return error_create(ERROR_UNSUPPORTED,
                            "/sys/kernel/btf/vmlinux, the kernel's type information (BTF), is missing, empty or unreadable; the sampler "
                            "needs it to adapt to the kernel. Distributions' kernels since 5.10 have it (CONFIG_DEBUG_INFO_BTF), and /sys "
                            "must be mounted");
    if (h->own_pid_namespace)
        return error_create(ERROR_UNSUPPORTED,
                            "pycap runs in a pid namespace of its own (a container?) and cannot see the host's pids: run "
                            "pycap on the host, or the container with the host's pid namespace (--pid=host)");
    return perf_allowed_check(h);
}

struct error *host_check_say_rest(struct error *err)
{
    if (strchr(error_text(err), '\n'))
        return err;
    struct error *more = error_lines(err->code, "%s\n  without BPF: 'pycap record COMMAND', and -p PID, record Python frames "
                                     "(--backend proc)", error_text(err));
    error_destroy(err);
    return more;
}

struct error *host_check(const struct host *h)
{
    struct error *err = check(h);

    return err ? host_check_say_rest(err) : NULL;
}
