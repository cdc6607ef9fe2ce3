/* SPDX-License-Identifier: Apache-2.0 */
/* Limits a process to a few places of the file system (Landlock, Linux 5.13 and later). */
#ifndef FORMATS_BASE_LANDLOCK_H
#define FORMATS_BASE_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From now on this thread and its children can open files only in these places. Each is a descriptor of a folder, below
 * which regular files can be created, read, written, renamed and removed, or of a file, pipe or device, which can be
 * written. What is open stays open. They cannot send signals out of this circle (Linux 6.12) or use TCP (6.7). Calling
 * it again narrows it further. Needs no_new_privs. False where the kernel has no Landlock or refuses it.
 */
bool landlock_enter(const int *places, size_t count);

#endif
