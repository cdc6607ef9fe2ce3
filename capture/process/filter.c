/* SPDX-License-Identifier: Apache-2.0 */
/* A process passes when it matches one entry of each list that is not empty. */
#include "capture/process/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "capture/process/containers.h"

void filter_deinit(struct filter *f)
{
    for (size_t i = 0; i < f->comms.count; i++)
        free(f->comms.data[i]);
    for (size_t i = 0; i < f->cgroups.count; i++)
        free(f->cgroups.data[i]);
    for (size_t i = 0; i < f->containers.count; i++)
        free(f->containers.data[i]);
    VEC_DEINIT(&f->comms);
    VEC_DEINIT(&f->cgroups);
    VEC_DEINIT(&f->containers);
    free(f->mount);
}

bool filter_is_by_cgroup(const struct filter *f)
{
    return f->cgroups.count || f->containers.count;
}

bool filter_is_empty(const struct filter *f)
{
    return !f->comms.count && !filter_is_by_cgroup(f);
}

struct error *filter_add_comms(struct filter *f, const char *list)
{
    for (const char *p = list;; p++) {
        size_t len = strcspn(p, ",");
        if (!len)
            return error_create(ERROR_USAGE, "'%s' is not a list of command names (like gunicorn,app.py)", list);
        char *comm = strndup(p, len);
        if (!comm || !VEC_PUSH(&f->comms, comm)) {
            free(comm);
            return error_no_memory();
        }
        p += len;
        if (!*p)
            return NULL;
    }
}

/*
 * Returns where a hierarchy of this kind, with this option, is mounted ("36 25 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
 * malloc'd: the first, or with `below` the first that is this path or lies above it. NULL: nowhere.
 */
static char *hierarchy(const char *mountinfo, const char *kind, const char *option, const char *below)
{
    for (const char *line = mountinfo; *line;) {
        size_t len = strcspn(line, "\n");
        char *copy = strndup(line, len), *found = NULL;
        char *found_kind = copy ? strstr(copy, kind) : NULL;
        if (found_kind && strstr(found_kind, option) && sscanf(copy, "%*s %*s %*s %*s %ms", &found) == 1) {
            size_t found_len = strlen(found);
            if (!below || (!strncmp(below, found, found_len) && strchr("/,", below[found_len]))) { /* or the end */
                free(copy);
                return found;
            }
        }
        free(found);
        free(copy);
        line += len + (line[len] == '\n');
    }
    return NULL;
}

/*
 * The hierarchy by which processes are told apart, and which procfs_cgroup_in() is of: the unified one, or where none is mounted the one
 * in which systemd and container engines name theirs, or that of memory. Malloc'd; NULL: there is none.
 */
static char *chosen_hierarchy(const char *mountinfo)
{
    char *found = hierarchy(mountinfo, " - cgroup2 ", "", NULL);

    if (!found)
        found = hierarchy(mountinfo, " - cgroup ", "name=systemd", NULL);
    return found ? found : hierarchy(mountinfo, " - cgroup ", "memory", NULL);
}

void filter_print_hierarchy(FILE *out)
{
    char *mountinfo;
    struct error *err = procfs_read("/proc/self/mountinfo", &mountinfo, NULL);

    if (err) {
        error_destroy(err);
        return;
    }
    char *unified = hierarchy(mountinfo, " - cgroup2 ", "", NULL), *other = unified ? NULL : chosen_hierarchy(mountinfo);
    if (other)
        fprintf(out, "cgroups         version 1 only: --cgroup goes by %s\n", other);
    else if (!unified)
        fprintf(out, "cgroups         none is mounted: --cgroup cannot be used, all else can\n");
    free(unified);
    free(other);
    free(mountinfo);
}

/* Adds the first path of a list, which has this length. */
static struct error *add_cgroup(struct filter *f, const char *path, size_t len, const char *mountinfo)
{
    size_t mount_len = strlen(f->mount);

    if (*path != '/')
        return error_create(ERROR_USAGE, "'%s' is not a list of cgroup paths (like %s/system.slice/app.service)", path,
                            f->mount);
    if (len >= mount_len && !strncmp(path, f->mount, mount_len) && (len == mount_len || path[mount_len] == '/')) {
        path += mount_len;
        len -= mount_len;
    } else {
        char *older = hierarchy(mountinfo, " - cgroup ", "", path);
        if (older) {
            free(older);
            return error_create(ERROR_USAGE, "'%.*s' is not in the hierarchy by which processes are chosen, which is mounted at %s", (int)len,
                                path, f->mount);
        }
    }
    while (len && path[len - 1] == '/')
        len--;
    char *copy = strndup(path, len);
    if (!copy || !VEC_PUSH(&f->cgroups, copy)) {
        free(copy);
        return error_no_memory();
    }
    return NULL;
}

struct error *filter_add_cgroups_by(struct filter *f, const char *list, const char *mountinfo)
{
    free(f->mount);
    f->mount = chosen_hierarchy(mountinfo);
    if (!f->mount)
        return error_create(ERROR_UNSUPPORTED, "--cgroup cannot be used: no cgroups are mounted on this host, neither cgroup2 nor a hierarchy of "
                                               "version 1 (name=systemd, memory); -p and --comm choose processes without");
    for (const char *p = list;; p++) {
        size_t len = strcspn(p, ",");
        TRY(add_cgroup(f, p, len, mountinfo));
        p += len;
        if (!*p)
            return NULL;
    }
}

struct error *filter_add_cgroups(struct filter *f, const char *list)
{
    char *mountinfo;

    TRY(procfs_read("/proc/self/mountinfo", &mountinfo, NULL));
    struct error *err = filter_add_cgroups_by(f, list, mountinfo);
    free(mountinfo);
    return err;
}

/* Adds the container that the beginning of a list means, up to its first comma. */
static struct error *add_container(struct filter *f, const struct containers *all, const char *list, size_t len)
{
    char *given = strndup(list, len), *copy;
    const char *id;

    if (!given)
        return error_no_memory();
    struct error *err = containers_choose(all, given, &id);
    free(given);
    if (err)
        return err;
    copy = strdup(id);
    if (!copy || !VEC_PUSH(&f->containers, copy)) {
        free(copy);
        return error_no_memory();
    }
    return NULL;
}

struct error *filter_add_containers(struct filter *f, const char *list)
{
    struct containers all = {0};
    struct error *err = containers_read(&all);

    for (const char *p = list; !err; p++) {
        size_t len = strcspn(p, ",");
        err = add_container(f, &all, p, len);
        p += len;
        if (!*p)
            break;
    }
    containers_deinit(&all);
    return err;
}

bool filter_has_cgroup(const struct filter *f, size_t index)
{
    char *path;

    if (asprintf(&path, "%s%s", f->mount, f->cgroups.data[index]) < 0)
        return true; /* not known, and there is worse */
    bool there = !access(path, F_OK);
    free(path);
    return there;
}

bool filter_has_path(const struct filter *f, const char *cgroup)
{
    if (!f->cgroups.count)
        return true;
    for (size_t i = 0; cgroup && i < f->cgroups.count; i++) {
        size_t len = strlen(f->cgroups.data[i]);
        if (!strncmp(f->cgroups.data[i], cgroup, len) && (!cgroup[len] || cgroup[len] == '/'))
            return true;
    }
    return false;
}

static bool is_in_container(const struct filter *f, const char *cgroups)
{
    for (size_t i = 0; i < f->containers.count; i++) {
        if (containers_holds(f->containers.data[i], cgroups))
            return true;
    }
    return false;
}

static bool is_in_cgroup(const struct filter *f, const char *cgroups)
{
    char *unified = procfs_cgroup_in(cgroups, true), *named = procfs_cgroup_in(cgroups, false);
    bool passes = filter_has_path(f, unified) || filter_has_path(f, named);

    free(unified);
    free(named);
    return passes;
}

bool filter_passes_cgroup(const struct filter *f, uint32_t tgid)
{
    if (!filter_is_by_cgroup(f))
        return true;
    char *cgroups = procfs_cgroups((pid_t)tgid);
    bool passes = cgroups && (!f->containers.count || is_in_container(f, cgroups)) && (!f->cgroups.count || is_in_cgroup(f, cgroups));

    free(cgroups);
    return passes;
}
