/* SPDX-License-Identifier: Apache-2.0 */
/* A table of capabilities and of what is lost without each. */
#include "capture/host/privileges.h"

#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/host/messages.h"
#include "formats/base/buf.h"

/*
 * The capabilities, and what is lost without each. CAP_BPF and CAP_PERFMON are not listed: nothing works without them.
 */
static const struct privilege {
    const char *name, *lost;
    size_t held; /* offset of a bool in struct host */
} privileges[] = {
    {"CAP_SYS_PTRACE",
     "processes of other users lack long names, names of threads and of generated code, and binaries that are deleted or in "
     "containers; before Linux 6.15 these processes are not found at all",
     offsetof(struct host, cap_sys_ptrace)},
    {"CAP_CHECKPOINT_RESTORE",
     "binaries that were deleted or replaced while they run cannot be read: no Python, no native stacks, no build ID from them",
     offsetof(struct host, cap_checkpoint_restore)},
    {"CAP_DAC_READ_SEARCH",
     "binaries that only other users may read, and deleted ones of other users, cannot be read: no Python, no native stacks, "
     "no build ID from them",
     offsetof(struct host, cap_dac_read_search)},
    {"CAP_SYSLOG", "kernel functions have addresses but no names", offsetof(struct host, cap_syslog)},
    {"CAP_SYS_NICE",
     "when many programs compete for the CPUs, pycap has to wait, too: it begins late, and samples may be lost (ring_full)",
     offsetof(struct host, cap_sys_nice)},
};
#define PRIVILEGES (sizeof privileges / sizeof *privileges)

/* Whether kernel addresses are shown to everybody, by the rule of the kernel's kallsyms_show_value(). */
static bool kernel_names_for_everybody(const struct host *h)
{
    return h->kptr_restrict == 0 && h->perf_event_paranoid != -2 && h->perf_event_paranoid <= 1;
}

static bool is_missing(const struct host *h, const struct privilege *p)
{
    if (*(const bool *)((const char *)h + p->held))
        return false;
    return p->held != offsetof(struct host, cap_syslog) || !kernel_names_for_everybody(h);
}

/* How sudo is told of this program: it looks in the system's folders alone, so elsewhere, as in a venv, by its path. */
static const char *name_for_sudo(char path[PATH_MAX])
{
    static const char *const folders[] = {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"};
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    const char *name;

    if (len <= 0 || path[0] != '/')
        return "pycap";
    path[len] = 0;
    name = strrchr(path, '/') + 1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (!strncmp(path, folders[i], (size_t)(name - path)) && !folders[i][name - path])
            return name;
    return path;
}

struct error *privileges_check(const struct host *h)
{
    char path[PATH_MAX];

    if (h->cap_bpf && h->cap_perfmon)
        return NULL;
    return error_lines(
        ERROR_PERMISSION,
        "%s missing: %s. Run as root (sudo %s ...), or give pycap the capabilities.\n"
        "  as a program: setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore,cap_dac_read_search,"
        "cap_syslog,cap_sys_nice+ep PYCAP\n"
        "  as a service: AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_CHECKPOINT_RESTORE CAP_DAC_READ_SEARCH "
        "CAP_SYSLOG CAP_SYS_NICE\n"
        "  without privilege: 'pycap record COMMAND', and -p PID of your own processes, record their Python frames",
        h->cap_bpf ? "CAP_PERFMON is" : h->cap_perfmon ? "CAP_BPF is" : "CAP_BPF and CAP_PERFMON are",
        h->cap_bpf       ? "it is needed to sample other programs"
        : h->cap_perfmon ? "it is needed to load the sampler"
                         : "CAP_BPF is needed to load the sampler and CAP_PERFMON to attach it",
        name_for_sudo(path));
}

void privileges_print_missing(const struct host *h, const char *prefix, FILE *out)
{
    for (size_t i = 0; i < PRIVILEGES; i++) {
        if (is_missing(h, &privileges[i]))
            messages_write(out, "%swithout %s: %s\n", prefix, privileges[i].name, privileges[i].lost);
    }
    if (h->kptr_restrict > 1)
        messages_write(out, "%swith kernel.kptr_restrict=%d: kernel functions have addresses but no names\n", prefix,
                h->kptr_restrict);
    if (*h->hidepid)
        messages_write(out, "%swith /proc mounted with hidepid=%s: processes of other users are not found; CAP_SYS_PTRACE shows them\n", prefix,
                h->hidepid);
}

char *privileges_missing(const struct host *h)
{
    struct buf names = {0};

    for (size_t i = 0; i < PRIVILEGES; i++) {
        if (is_missing(h, &privileges[i])) {
            buf_put_str(&names, names.len_bytes ? " " : "");
            buf_put_str(&names, privileges[i].name);
        }
    }
    char *text = names.len_bytes && !names.bad ? strdup(buf_cstr(&names)) : NULL;
    buf_deinit(&names);
    return text;
}

void privileges_missing_to_read(const struct host *h, char out[PRIVILEGES_TEXT_MAX])
{
    char module[RESTRAINTS_TEXT_MAX];

    if (h->cap_sys_ptrace && h->cap_checkpoint_restore && h->cap_dac_read_search) {
        restraints_module(module);
        snprintf(out, PRIVILEGES_TEXT_MAX, *module ? "; %.200s may forbid it (the kernel's log has the denial)" : "%s", module);
        return;
    }
    snprintf(out, PRIVILEGES_TEXT_MAX, " without%s%s%s", h->cap_sys_ptrace ? "" : " CAP_SYS_PTRACE",
             h->cap_checkpoint_restore ? "" : " CAP_CHECKPOINT_RESTORE", h->cap_dac_read_search ? "" : " CAP_DAC_READ_SEARCH");
}

/* ---- dropping ---- */

#define BIT(cap) (UINT64_C(1) << (cap))

static struct __user_cap_header_struct header(void)
{
    return (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
}

static bool permitted(uint64_t *set)
{
    struct __user_cap_header_struct h = header();
    struct __user_cap_data_struct data[2] = {0};

    if (syscall(SYS_capget, &h, data))
        return false;
    *set = data[0].permitted | (uint64_t)data[1].permitted << 32;
    return true;
}

/* Sets the capabilities of this thread only. */
static bool set_capabilities(uint64_t effective, uint64_t all)
{
    struct __user_cap_header_struct h = header();
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)effective, .permitted = (uint32_t)all},
        {.effective = (uint32_t)(effective >> 32), .permitted = (uint32_t)(all >> 32)},
    };

    return !syscall(SYS_capset, &h, data);
}

/*
 * The user that root becomes is one that nobody else is, since processes of one user may signal and trace each other.
 * No distribution, container or user namespace is given numbers from here up to 2^31 (systemd's list of ranges, "Users,
 * Groups, UIDs and GIDs on systemd systems"), and each pycap of a host has one of its own.
 */
#define OWN_USER_FIRST 1879048192u

bool privileges_leave_root(void)
{
    uid_t user = OWN_USER_FIRST + (uid_t)getpid();
    uint64_t have;

    if (geteuid() && getuid())
        return true;
    /* The library's functions would change all threads, and abort if one of them may not. */
    if (!permitted(&have) || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
        return false;
    syscall(SYS_setgroups, 0, NULL); /* a user namespace may forbid it, and has no groups that mean anything then */
    bool left = !syscall(SYS_setresgid, user, user, user) && !syscall(SYS_setresuid, user, user, user);
    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    return set_capabilities(have, have) && left;
}

/*
 * Before 6.0 the kernel refuses every bpf() call without CAP_BPF if kernel.unprivileged_bpf_disabled is set, even on
 * maps that are open already. The only way to know is to try.
 */
static bool map_can_be_used(int fd)
{
    union bpf_attr attr = {.map_fd = (uint32_t)fd};
    uint64_t key = 0, next = 0;

    attr.key = (uint64_t)(uintptr_t)&key;
    attr.next_key = (uint64_t)(uintptr_t)&next;
    return !syscall(SYS_bpf, BPF_MAP_GET_NEXT_KEY, &attr, sizeof attr) || errno != EPERM;
}

/* Those that reading other processes takes. If only the stronger capability is there, that instead. */
static uint64_t to_read(uint64_t have)
{
    uint64_t keep = BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_DAC_READ_SEARCH);

    if (!(have & BIT(CAP_CHECKPOINT_RESTORE)))
        keep |= BIT(CAP_SYS_ADMIN);
    if (!(have & BIT(CAP_DAC_READ_SEARCH)))
        keep |= BIT(CAP_DAC_OVERRIDE);
    return keep & have;
}

struct error *privileges_drop(const struct privileges_need *need, bool *left_root)
{
    uint64_t have;

    *left_root = privileges_leave_root();
    if (!permitted(&have))
        return error_os(errno, "the capabilities cannot be read");
    uint64_t keep = to_read(have);
    if (need->command)
        keep |= BIT(CAP_KILL);
    keep &= have;
    uint64_t bpf = have & BIT(CAP_BPF) ? BIT(CAP_BPF) : have & BIT(CAP_SYS_ADMIN);
    if (!set_capabilities(keep, keep | bpf))
        return error_os(errno, "the capabilities cannot be dropped");
    if (need->bpf_map_fd >= 0 && !map_can_be_used(need->bpf_map_fd))
        keep |= bpf;
    if (!set_capabilities(keep, keep))
        return error_os(errno, "the capabilities cannot be dropped");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return error_os(errno, "no_new_privs cannot be set");
    return NULL;
}

struct error *privileges_drop_but_files(void)
{
    uint64_t have;

    if (!permitted(&have))
        return error_os(errno, "the capabilities cannot be read");
    uint64_t keep = have & (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN) | BIT(CAP_FOWNER));
    return set_capabilities(keep, keep) ? NULL : error_os(errno, "the capabilities cannot be dropped");
}

bool privileges_may_give(gid_t group)
{
    uint64_t have;

    if (group == getegid() || (permitted(&have) && have & BIT(CAP_CHOWN)))
        return true;
    gid_t *groups = calloc(NGROUPS_MAX, sizeof *groups);
    int count = groups ? getgroups(NGROUPS_MAX, groups) : 0;
    bool found = false;
    for (int i = 0; i < count && !found; i++)
        found = groups[i] == group;
    free(groups);
    return found;
}

static void drop_to_read(uint64_t instead_of_ptrace)
{
    uint64_t have, keep;

    privileges_leave_root();
    keep = permitted(&have) ? to_read(have) : 0;
    if (!(keep & BIT(CAP_SYS_PTRACE)))
        keep |= have & instead_of_ptrace;
    set_capabilities(keep, keep);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void privileges_drop_to_read(void)
{
    drop_to_read(0);
}

void privileges_drop_for_errands(void)
{
    drop_to_read(BIT(CAP_PERFMON));
}

void privileges_drop_to_make_maps(void)
{
    uint64_t have;

    privileges_leave_root();
    uint64_t bpf = permitted(&have) ? have & BIT(CAP_BPF) ? BIT(CAP_BPF) : have & BIT(CAP_SYS_ADMIN) : 0;
    set_capabilities(bpf, bpf);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void privileges_drop_all(void)
{
    set_capabilities(0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
