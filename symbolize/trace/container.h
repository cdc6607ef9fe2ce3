/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which container a process ran in, as the path of its cgroup tells: engines name the cgroups of their containers after
 * them. The table in container.c has a row for each spelling.
 */
#ifndef SYMBOLIZE_TRACE_CONTAINER_H
#define SYMBOLIZE_TRACE_CONTAINER_H

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
/* The whole ID or name, as it stands in the path, and its length; NULL if the path is not that of a container. */
const char *container_in_cgroup(const char *cgroup, unsigned *len);
/* Whether a component of such a path is a container's; if so, *text and *len become its ID or name. */
bool container_in_component(const char **text, size_t *len);
/* systemd writes '-' and other characters in names of units as \xHH. Returns the character, and how many bytes it takes there. */
char container_unescape(const char *text, size_t len, size_t *taken);

#endif
