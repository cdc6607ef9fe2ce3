/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the files belong to that pycap writes, and who may read them: their owner and, if asked for (--group), a group. */
#ifndef CAPTURE_OUTPUT_FILE_RIGHTS_H
#define CAPTURE_OUTPUT_FILE_RIGHTS_H

#include <sys/types.h>

#include "formats/base/err.h"

/*
 * Finds a group by its name in /etc/group, or takes its number. No name service is asked, since that may take a network and
 * loads libraries. ERROR_USAGE: there is no such group; ERROR_PERMISSION: this process cannot give files to it.
 */
struct error *file_rights_find_group(const char *text, gid_t *out);
/*
 * Makes a new file private, mode 0600, and gives it to the user who called sudo. `group` (NULL: none) gets the file, too,
 * and may read it: mode 0640. `path` is for messages. A pipe or a device stays as it is.
 */
struct error *file_rights_set(int fd, const char *path, const gid_t *group);

#endif
