/* SPDX-License-Identifier: Apache-2.0 */
/* Limits a process to a few places of the file system (Landlock, Linux 5.13 and later). */
#ifndef FORMATS_BASE_LANDLOCK_H
#define FORMATS_BASE_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

/* What may be done in a place, as bits. A place that is no folder can only be read and written. */
enum landlock_access {
    LANDLOCK_READ = 1,   /* files read, folders listed */
    LANDLOCK_WRITE = 2,  /* files that are there written */
    LANDLOCK_RENAME = 4, /* regular files created, renamed and removed */
    LANDLOCK_MAKE = 8,   /* folders made and removed, symbolic links made */
};
struct landlock_place {
    int fd; /* of a folder, which stands for all below it, or of a file, pipe or device; O_PATH will do */
    unsigned access;
};

/*
 * From now on this thread and its children can open files only in these places. What is open stays open. They cannot send
 * signals out of this circle (Linux 6.12) or use TCP (6.7). Calling it again narrows it further. Needs no_new_privs.
 * False where the kernel has no Landlock or refuses it. A place that lies in no file system, such as a pipe, is passed
 * over: Landlock does not concern it.
 */
bool landlock_enter(const struct landlock_place *places, size_t count);
/* The same, but TCP may be used. */
bool landlock_enter_with_network(const struct landlock_place *places, size_t count);

#endif
