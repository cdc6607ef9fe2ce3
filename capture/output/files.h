/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a capture is written to: one file, or several in turn, each complete in
 * itself. Names are made from a pattern (file_names.h). With --keep only the newest files
 * are kept and older ones are removed, including those of earlier runs (files_kept.h).
 */
#ifndef CAPTURE_OUTPUT_FILES_H
#define CAPTURE_OUTPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/output/file_names.h"
#include "capture/output/files_kept.h"
#include "formats/base/err.h"

/* Whether two paths name the same existing file. "-" names no file. */
bool files_are_one(const char *a, const char *b);

/* {.fd = -1} may be passed to files_deinit(), too. `options` is copied; the strings in it are borrowed. */
void files_init(struct files *f, const struct files_options *options);
void files_deinit(struct files *f);
/*
 * Opens the first or next file, with rights as file_rights.h says. Without rotation an existing
 * file is overwritten if it is ours (formats/base/output_place.h). With rotation the name must be new: its time is moved
 * on by milliseconds until no file has that name.
 */
struct error *files_open(struct files *f);
/* Closes the open file, and removes files that --keep does not keep. */
struct error *files_close(struct files *f);

#endif
