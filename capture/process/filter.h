/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the processes in question are sampled: those of a command name, or in a cgroup. The sampler does not
 * know the others, and gives up a tick of theirs after one look into a table.
 */
#ifndef CAPTURE_PROCESS_FILTER_H
#define CAPTURE_PROCESS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

struct filter {
    VEC(char *) comms;   /* at most 15 bytes each, as the kernel keeps them */
    VEC(char *) cgroups; /* paths in the unified hierarchy, without a slash at the end: "" is its root */
};
void filter_deinit(struct filter *f);
bool filter_is_empty(const struct filter *f);
/* "NAME,NAME": of these one must be the process's. */
struct error *filter_add_comms(struct filter *f, const char *list);
/*
 * "PATH,PATH": of these one must be the process's cgroup or above it. A path under the place where the unified
 * hierarchy is mounted, or one within the hierarchy, as /proc/PID/cgroup has it.
 */
struct error *filter_add_cgroups(struct filter *f, const char *list);
/* The same with the text of a mountinfo file, which says where that is. */
struct error *filter_add_cgroups_by(struct filter *f, const char *list, const char *mountinfo);

/* `cgroup` may be NULL: not known. */
bool filter_matches(const struct filter *f, const char *comm, const char *cgroup);
/* The same for a process as it is now; an empty filter lets all pass without looking. */
bool filter_passes(const struct filter *f, uint32_t tgid, const char *comm);

#endif
