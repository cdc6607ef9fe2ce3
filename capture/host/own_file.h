/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a file that a process wrote into its /tmp for tools like this one. pycap reads it with rights that the process
 * does not have, and what is in it goes into the trace, so it must be certain that the process's user could have read it
 * himself. That holds for a file that belongs to him: its owner may always make it readable. Therefore:
 *
 *   - The process has one user id: real, effective, saved and that for files are equal, and stay what they were. What a
 *     program that changed its user writes is not read, since it is not clear on whose behalf it acts.
 *   - The file is a regular one, belongs to that user, and has one link. A second link could make a private file of a
 *     privileged process out of somebody else's file.
 *   - No part of the path is a link, and the file is not a mount: a mount namespace that others arranged could show a
 *     privileged process any file under that name. (/tmp itself may be a mount, as it is in containers and on many
 *     hosts; all that this can change is which folder the name is looked up in, and only that folder's users can have
 *     made a file of that name there.)
 *
 * Root's files are read for processes of root only. The user ids are those of pycap's user namespace. Ids without a name
 * there all show as one, the overflow id, which is therefore nobody's.
 */
#ifndef CAPTURE_HOST_OWN_FILE_H
#define CAPTURE_HOST_OWN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define OWN_FILE_NO_USER UINT32_MAX

/* The one user id of a process, or OWN_FILE_NO_USER: it has several. False: it cannot be asked any more. */
bool own_file_user(pid_t pid, uint32_t *user);
/* Whether an open file is the user's by the rules above. A file that was unlinked since is still his. */
bool own_file_is_of(const struct stat *st, uint32_t user);
/*
 * Opens /tmp/NAME in the root of process `pid` (0: pycap's own) for reading, if it is the user's. -1: it is not, or does
 * not exist. The caller knows that a process with this root has, or had, this user. May block for ever (open_regular.h).
 */
int own_file_open(pid_t pid, const char *name, uint32_t user);

#endif
