/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds pysym and becomes it, without privilege: what it reads comes from other people's processes, so it has to be a
 * process that can do no more than any user can.
 */
#ifndef CAPTURE_VIEW_VIEW_PROGRAM_H
#define CAPTURE_VIEW_VIEW_PROGRAM_H

#include <sys/types.h>

#include "formats/base/err.h"

/*
 * Finds pysym: in the folder of pycap's own executable, else on PATH. It must be of the same version. Its path is
 * malloc'd. Errors: ERROR_NOT_FOUND, ERROR_VERSION, or what starting it gave.
 */
struct error *view_program_find(char **path);

/*
 * For a child of `parent`: gives up all privilege and becomes `path`. It is asked to end (SIGTERM) when its parent is gone.
 * The user is the one who called sudo; else, for root, one that no other process is; else it stays. Descriptors above
 * standard error are closed, and of the environment only what concerns the terminal, the language and where binaries are
 * found is kept. `arguments` stand behind the program's name, with NULL at their end. If that fails, says why on standard
 * error, and exits with 126.
 */
_Noreturn void view_program_become(const char *path, const char *const *arguments, pid_t parent);

#endif
