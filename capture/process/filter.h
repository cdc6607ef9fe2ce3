/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters --comm, --cgroup and --container: only processes with one of the names, in one of the cgroups, in one of the containers
 * are sampled. What a process is named, process_names.h says. The sampler is not configured for the others, so their ticks cost it one failed table lookup.
 */
#ifndef CAPTURE_PROCESS_FILTER_H
#define CAPTURE_PROCESS_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

struct filter {
    VEC(char *) comms;      /* names and titles, as they were given */
    VEC(char *) cgroups;    /* paths in the chosen hierarchy, without a slash at the end: "" is its root */
    VEC(char *) containers; /* whole IDs or names, as cgroup paths hold them */
    char *mount;            /* where that hierarchy is mounted; NULL while `cgroups` is empty */
};
void filter_deinit(struct filter *f);
bool filter_is_empty(const struct filter *f);
/* Adds the names of a list "NAME,NAME": the process must have one of them, as its name or its title. An empty name is a usage error. */
struct error *filter_add_comms(struct filter *f, const char *list);
/*
 * Adds the cgroups of a list "PATH,PATH": the process must be in one of them or below. A path either begins with the
 * mount point of the chosen hierarchy, or is a path in it as /proc/PID/cgroup shows it. The chosen one is the unified one, and where
 * none is mounted that of systemd (name=systemd) or of memory (cgroup v1). One below the mount point of another hierarchy is a
 * usage error. It need not exist.
 */
struct error *filter_add_cgroups(struct filter *f, const char *list);
/* The same, with the text of a mountinfo file, from which the mount point is taken. For tests. */
struct error *filter_add_cgroups_by(struct filter *f, const char *list, const char *mountinfo);
/*
 * Adds the containers of a list "ID,ID", each an ID or how it begins (containers_choose()): the process must be in one of them, or in a
 * container inside it. The container has to run.
 */
struct error *filter_add_containers(struct filter *f, const char *list);

/* Whether it asks for a process's cgroups, which may change. */
bool filter_is_by_cgroup(const struct filter *f);
/* Writes a line about the chosen hierarchy, unless it is the unified one. */
void filter_print_hierarchy(FILE *out);

/* Whether the cgroup with this index in `cgroups` exists. */
bool filter_has_cgroup(const struct filter *f, size_t index);
/* Whether a process in this cgroup passes. `cgroup` may be NULL when it is unknown. */
bool filter_has_path(const struct filter *f, const char *cgroup);
/* Whether a running process passes the filters of cgroups and of containers; reads its cgroups from /proc where there are such. */
bool filter_passes_cgroup(const struct filter *f, uint32_t tgid);

#endif
