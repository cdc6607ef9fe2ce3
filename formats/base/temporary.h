/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files without a name, in TMPDIR or /tmp: they are gone with the process, however it ends.
 */
#ifndef FORMATS_BASE_TEMPORARY_H
#define FORMATS_BASE_TEMPORARY_H

#include <stdint.h>

#include "formats/base/err.h"

/* Where they are made; a string of the environment. */
const char *temporary_folder(void);
/* Open to be read and written, never one of the standard streams. *fd is -1 after an error, and errno says why. */
struct error *temporary_open(int *fd);

#endif
