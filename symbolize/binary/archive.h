/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads archives of binaries, as `pycap archive` and `perf archive` make them, or any other tar file. Members are
 * identified by their contents. Names in the archive are not trusted and never become paths; links are not followed.
 */
#ifndef SYMBOLIZE_BINARY_ARCHIVE_H
#define SYMBOLIZE_BINARY_ARCHIVE_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/identity.h"
#include "symbolize/binary/named_ids.h"

/* An ELF file out of an archive. */
struct archive_member {
    char *name; /* "trace.tar.zst:usr/lib/libfoo.so/ID/elf", for messages and suffixes; no path */
    int fd;     /* its contents, in a file without a name */
    struct elf_identity identity;
};

struct archive_files;
/*
 * Reads the archive once, from start to end, and copies its ELF files to unlinked temporary files in TMPDIR (/tmp), so
 * that none remains however the program ends. Those that `named` does not want are skipped; NULL: all are wanted. A damaged archive
 * is an error; so is one that exceeds the limits.
 */
struct error *archive_files_open(const char *path, const struct named_ids *named, struct archive_files **out);
void archive_files_close(struct archive_files *a);
uint32_t archive_files_count(const struct archive_files *a);
const struct archive_member *archive_files_get(const struct archive_files *a, uint32_t index);

#endif
