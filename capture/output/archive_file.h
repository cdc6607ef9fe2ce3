/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that an archive of binaries is written to. What packs the archive knows only an archive_sink, behind which
 * lies this file or the process that has it open.
 */
#ifndef CAPTURE_OUTPUT_ARCHIVE_FILE_H
#define CAPTURE_OUTPUT_ARCHIVE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/base/output.h"

/* Where the bytes of an archive go, in their order. */
struct archive_sink {
    struct error *(*write)(void *ctx, const void *data, size_t len_bytes);
    struct error *(*finish)(void *ctx); /* the archive is whole; it gets its final name */
    void *ctx;
};

/* {0} may be passed to archive_file_deinit(), too. */
struct archive_file {
    struct output output;
};

/*
 * Opens `path` ("-": standard output), which is borrowed. The file has rights as a trace (file_rights.h); `group` NULL: only
 * its owner may read it. It appears under its name in archive_file_finish().
 */
struct error *archive_file_open(const char *path, const gid_t *group, struct archive_file *f);
struct error *archive_file_write(struct archive_file *f, const void *data, size_t len_bytes);
struct error *archive_file_finish(struct archive_file *f);
/* Removes the temporary file of an unfinished archive. */
void archive_file_deinit(struct archive_file *f);
/* The sink that writes to this file. Borrows it. */
struct archive_sink archive_file_sink(struct archive_file *f);

#endif
