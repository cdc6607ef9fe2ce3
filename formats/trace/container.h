/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which container a process ran in, as the path of its cgroup tells: engines name the cgroups of their containers after
 * them. The table in container.c has a row for each spelling.
 */
#ifndef FORMATS_TRACE_CONTAINER_H
#define FORMATS_TRACE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_SHORT 12 /* characters, as `docker ps` and `podman ps` show them */
#define CONTAINER_NAME_MAX 64 /* with the NUL */

/*
 * Writes the container's ID, or its name where the engine has no IDs (lxc, systemd-nspawn), to `out`. An ID is cut to
 * CONTAINER_ID_SHORT characters, a longer name to what fits. Of containers in containers the innermost one counts.
 * Returns false, with `out` "", if the path is not that of a container. `cgroup` is a path in the unified hierarchy.
 */
bool container_of_cgroup(const char *cgroup, char out[CONTAINER_NAME_MAX]);
/* The same for an ID or name as it stands in a path. */
void container_shorten(const char *text, size_t len, char out[CONTAINER_NAME_MAX]);
/*
 * Goes through the containers of a path, from the innermost one outwards. *at is the end of the path at first. Returns the whole ID
 * or name, as it stands in the path, and sets *len; NULL when there are no more.
 */
const char *container_outwards(const char *cgroup, const char **at, size_t *len);
/*
 * Whether an ID or name, as it stands in a path, is what a user has given; whether it begins so. What a user gives may have the name
 * of the engine before it, as Kubernetes has it: containerd://ID.
 */
bool container_is(const char *text, size_t len, const char *given);
bool container_begins(const char *text, size_t len, const char *given);
/* What is behind the name of an engine ("containerd://"), and its length. */
void container_skip_engine(const char **text, size_t *len);
/* Whether a component of such a path is a container's; if so, *text and *len become its ID or name. */
bool container_in_component(const char **text, size_t *len);
/* systemd writes '-' and other characters in names of units as \xHH. Returns the character, and how many bytes it takes there. */
char container_unescape(const char *text, size_t len, size_t *taken);

#endif
