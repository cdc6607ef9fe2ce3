/* SPDX-License-Identifier: Apache-2.0 */
/* Each has its file in /proc. Nothing is tried here. */
#include "capture/host/restraints.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "capture/host/procfs_task.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

/* Domains of SELinux's policies that may do all that their user may. */
static const char *const unconfined[] = {"unconfined_t", "kernel_t", "spc_t", "unconfined_service_t"};

/* ---- /proc ---- */

/* The value of an option "NAME=VALUE" in a list with commas; NULL: it is not there. */
static const char *option_value(const char *options, const char *name)
{
    for (const char *at = options; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, name, strlen(name)))
            return at + strlen(name);
    }
    return NULL;
}

/* A mount over another one hides it: the last that is mounted there counts. */
bool restraints_hidepid_in(const char *mountinfo, char hidepid[RESTRAINTS_HIDEPID_MAX], unsigned *group)
{
    bool has_group = false;

    *hidepid = 0;
    for (const char *line = mountinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char text[4096], place[256], *options;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        char *kind = strstr(text, " - proc ");
        if (!kind || sscanf(text, "%*s %*s %*s %*s %255s", place) != 1 || strcmp(place, "/proc") || !(options = strrchr(kind, ' ')))
            continue;
        const char *hides = option_value(options + 1, "hidepid="), *sees = option_value(options + 1, "gid=");
        snprintf(hidepid, RESTRAINTS_HIDEPID_MAX, "%.*s", hides ? (int)strcspn(hides, ",") : 0, hides ? hides : "");
        if (!strcmp(hidepid, "0") || !strcmp(hidepid, "off"))
            *hidepid = 0;
        /* Nobody sees by a group what may not be traced. */
        has_group = sees && strcmp(hidepid, "4") && strcmp(hidepid, "ptraceable");
        if (has_group)
            *group = (unsigned)strtoul(sees, NULL, 10);
    }
    return has_group;
}

static bool in_group(gid_t group)
{
    VEC(gid_t) groups = {0};
    int count = getgroups(0, NULL);
    bool in = getegid() == group;

    while (count > 0 && groups.count < (size_t)count && VEC_PUSH(&groups, 0))
        ;
    if (count > 0 && groups.count == (size_t)count)
        count = getgroups(count, groups.data);
    for (int i = 0; i < count && (size_t)i < groups.count; i++)
        in |= groups.data[i] == group;
    VEC_DEINIT(&groups);
    return in;
}

void restraints_hidepid(char hidepid[RESTRAINTS_HIDEPID_MAX])
{
    unsigned group;
    char *mountinfo;
    struct error *err = procfs_read("/proc/self/mountinfo", &mountinfo, NULL);

    *hidepid = 0;
    if (err) {
        error_destroy(err);
        return;
    }
    if (restraints_hidepid_in(mountinfo, hidepid, &group) && in_group(group))
        *hidepid = 0;
    free(mountinfo);
}

/* ---- security modules ---- */

/* "docker-default (enforce)" is AppArmor's, "system_u:system_r:container_t:s0:c1,c2" SELinux's. */
void restraints_module_of(const char *label, char out[RESTRAINTS_TEXT_MAX])
{
    int len = (int)strcspn(label, "\n");
    const char *mode = memmem(label, (size_t)len, " (", 2), *role = strchr(label, ':'), *type = role ? strchr(role + 1, ':') : NULL;

    *out = 0;
    if (mode) {
        if (strncmp(mode, " (complain)", strlen(" (complain)")) && strncmp(mode, " (unconfined)", strlen(" (unconfined)")))
            snprintf(out, RESTRAINTS_TEXT_MAX, "the AppArmor profile '%.*s'", (int)(mode - label), label);
        return;
    }
    if (!type)
        return;
    size_t type_len = strcspn(++type, ":\n");
    for (size_t i = 0; i < sizeof unconfined / sizeof *unconfined; i++) {
        if (strlen(unconfined[i]) == type_len && !memcmp(unconfined[i], type, type_len))
            return;
    }
    snprintf(out, RESTRAINTS_TEXT_MAX, "the SELinux domain '%.*s'", (int)type_len, type);
}

void restraints_module(char out[RESTRAINTS_TEXT_MAX])
{
    char label[RESTRAINTS_TEXT_MAX], mode[4];

    *out = 0;
    if (procfs_read_at(AT_FDCWD, "/proc/self/attr/current", label, sizeof label))
        restraints_module_of(label, out);
    if (strstr(out, "SELinux") && procfs_read_at(AT_FDCWD, "/sys/fs/selinux/enforce", mode, sizeof mode) && *mode == '0')
        *out = 0;
}

bool restraints_seccomp(void)
{
    char text[4096];

    if (!procfs_read_at(AT_FDCWD, "/proc/self/status", text, sizeof text))
        return false;
    const char *line = strstr(text, "\nSeccomp:");
    return line && strtoul(line + strlen("\nSeccomp:"), NULL, 10) != 0;
}

void restraints_suspects(char out[RESTRAINTS_TEXT_MAX])
{
    char module[RESTRAINTS_TEXT_MAX];

    restraints_module(module);
    if (restraints_seccomp())
        snprintf(out, RESTRAINTS_TEXT_MAX, "a seccomp filter, as containers have,%s%.150s forbids it", *module ? " or " : "", module);
    else if (*module)
        snprintf(out, RESTRAINTS_TEXT_MAX, "%.150s forbids it (the kernel's log has the denial)", module);
    else
        snprintf(out, RESTRAINTS_TEXT_MAX, "a security module of the kernel may forbid it (the kernel's log, dmesg, may say which)");
}

int restraints_ptrace_scope(void)
{
    char text[16];

    return procfs_read_at(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof text) ? atoi(text) : 0;
}
