/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a capture goes into: one, or one after the other, each complete in
 * itself. Names are made of a pattern; of those that were written, by this run and by
 * the ones before it, the newest can be kept and the others removed.
 */
#ifndef CAPTURE_SESSION_FILES_H
#define CAPTURE_SESSION_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/session/file_names.h"
#include "capture/session/files_kept.h"
#include "formats/base/err.h"

/* Whether two paths lead to the same file that is there; "-" names no file. */
bool files_are_one(const char *a, const char *b);

/* {.fd = -1} is one without a file. Options are borrowed. */
void files_init(struct files *f, const struct files_options *options);
void files_deinit(struct files *f);
/*
 * Opens the (next) file, mode 0600, given to the user who called sudo. A single one may exist and is written over; of
 * several each gets a name that is not taken: by as many milliseconds later as that takes.
 */
struct error *files_open(struct files *f);
/* Closes it and removes what is not to be kept. */
struct error *files_close(struct files *f);

#endif
