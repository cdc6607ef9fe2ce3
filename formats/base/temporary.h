/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files without a name, in TMPDIR or /tmp: the kernel removes them when the process ends, however it ends. Where TMPDIR
 * is not set and /tmp is missing or read-only, memory holds them.
 */
#ifndef FORMATS_BASE_TEMPORARY_H
#define FORMATS_BASE_TEMPORARY_H

#include <stdint.h>

#include "formats/base/err.h"

/* The folder that they are created in: $TMPDIR or "/tmp". Borrowed from the environment. */
const char *temporary_folder(void);
/* Creates one and opens it for reading and writing, as a descriptor above 2. After an error *fd is -1 and errno is set. */
struct error *temporary_open(int *fd);

#endif
