/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers whose processes pycap sees, told by the cgroups of all hierarchies (formats/trace/container.h), and which one of
 * them a user means.
 */
#ifndef CAPTURE_PROCESS_CONTAINERS_H
#define CAPTURE_PROCESS_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

struct containers {
    VEC(char *) ids; /* each once: its ID or name, as it stands in paths */
    bool apart;      /* pycap has a pid namespace of its own, and does not see the processes of others */
};
void containers_deinit(struct containers *c);
/* Adds those of all processes. */
struct error *containers_read(struct containers *c);
/* Adds those in the text of a /proc/PID/cgroup. */
struct error *containers_add(struct containers *c, const char *cgroups);
/*
 * Stores the one with this ID or name; else the only one whose ID or name begins so. ERROR_NOT_FOUND if there is none, ERROR_USAGE
 * if there are several; the message lists them.
 */
struct error *containers_choose(const struct containers *c, const char *given, const char **id);

/* Whether a process is in this container, or in one inside it, by the text of its /proc/PID/cgroup. */
bool containers_holds(const char *id, const char *cgroups);

#endif
