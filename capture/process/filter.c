/* SPDX-License-Identifier: Apache-2.0 */
/* A process passes when it matches one entry of each list that is not empty. */
#include "capture/process/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs.h"

#define COMM_MAX 15

void filter_deinit(struct filter *f)
{
    for (size_t i = 0; i < f->comms.count; i++)
        free(f->comms.data[i]);
    for (size_t i = 0; i < f->cgroups.count; i++)
        free(f->cgroups.data[i]);
    VEC_DEINIT(&f->comms);
    VEC_DEINIT(&f->cgroups);
}

bool filter_is_empty(const struct filter *f)
{
    return !f->comms.count && !f->cgroups.count;
}

struct error *filter_add_comms(struct filter *f, const char *list)
{
    for (const char *p = list;; p++) {
        size_t len = strcspn(p, ",");
        if (!len)
            return error_create(ERROR_USAGE, "'%s' is not a list of command names (like python3,gunicorn)", list);
        char *comm = strndup(p, len < COMM_MAX ? len : COMM_MAX);
        if (!comm || !VEC_PUSH(&f->comms, comm)) {
            free(comm);
            return error_no_memory();
        }
        p += len;
        if (!*p)
            return NULL;
    }
}

/* Returns where cgroup2 is mounted ("36 25 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"), malloc'd; NULL: nowhere. */
static char *unified_mount(const char *mountinfo)
{
    for (const char *line = mountinfo; *line;) {
        size_t len = strcspn(line, "\n");
        char *copy = strndup(line, len), *found = NULL;
        char *kind = copy ? strstr(copy, " - cgroup2 ") : NULL;
        if (kind && sscanf(copy, "%*s %*s %*s %*s %ms", &found) == 1) {
            free(copy);
            return found;
        }
        free(copy);
        line += len + (line[len] == '\n');
    }
    return NULL;
}

struct error *filter_add_cgroups_by(struct filter *f, const char *list, const char *mountinfo)
{
    char *mount = unified_mount(mountinfo);
    struct error *err = NULL;

    if (!mount)
        return error_create(ERROR_UNSUPPORTED, "no unified hierarchy of cgroups (cgroup2) is mounted on this host");
    size_t mount_len = strlen(mount);
    for (const char *p = list; !err; p++) {
        size_t len = strcspn(p, ",");
        const char *next = p + len;
        if (*p != '/') {
            err = error_create(ERROR_USAGE, "'%s' is not a list of cgroup paths (like %s/system.slice/app.service)", list, mount);
            break;
        }
        if (len >= mount_len && !strncmp(p, mount, mount_len) && (len == mount_len || p[mount_len] == '/')) {
            p += mount_len;
            len -= mount_len;
        }
        while (len && p[len - 1] == '/')
            len--;
        char *path = strndup(p, len);
        if (!path || !VEC_PUSH(&f->cgroups, path)) {
            free(path);
            err = error_no_memory();
        }
        p = next;
        if (!*p)
            break;
    }
    free(mount);
    return err;
}

struct error *filter_add_cgroups(struct filter *f, const char *list)
{
    char *mountinfo;

    TRY(procfs_read("/proc/self/mountinfo", &mountinfo, NULL));
    struct error *err = filter_add_cgroups_by(f, list, mountinfo);
    free(mountinfo);
    return err;
}

bool filter_matches(const struct filter *f, const char *comm, const char *cgroup)
{
    bool passes = !f->comms.count;

    for (size_t i = 0; !passes && i < f->comms.count; i++)
        passes = !strcmp(f->comms.data[i], comm);
    if (!passes || !f->cgroups.count)
        return passes;
    for (size_t i = 0; cgroup && i < f->cgroups.count; i++) {
        size_t len = strlen(f->cgroups.data[i]);
        if (!strncmp(f->cgroups.data[i], cgroup, len) && (!cgroup[len] || cgroup[len] == '/'))
            return true;
    }
    return false;
}

bool filter_passes(const struct filter *f, uint32_t tgid, const char *comm)
{
    if (!f || filter_is_empty(f))
        return true;
    char *cgroup = f->cgroups.count ? procfs_cgroup((pid_t)tgid) : NULL;
    bool passes = filter_matches(f, comm, cgroup);
    free(cgroup);
    return passes;
}
