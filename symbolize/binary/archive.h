/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives of binaries, as `pycap archive` and `perf archive` make them, or any other tar file. What a member is, its
 * own contents say: names in the archive are never believed, never become paths here, and links are not followed.
 */
#ifndef SYMBOLIZE_BINARY_ARCHIVE_H
#define SYMBOLIZE_BINARY_ARCHIVE_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/identity.h"

/* An ELF file out of an archive. */
struct archive_member {
    char *name; /* "trace.tar.zst:usr/lib/libfoo.so/ID/elf", for messages and suffixes; no path */
    int fd;     /* its contents, in a file without a name */
    struct elf_identity identity;
};

struct archive_files;
/*
 * Reads the archive once, from front to end, and keeps its ELF files in nameless files in TMPDIR (/tmp), so that
 * nothing is left behind however the program ends. Damage, and members or totals beyond any use, are errors.
 */
struct error *archive_files_open(const char *path, struct archive_files **out);
void archive_files_close(struct archive_files *a);
uint32_t archive_files_count(const struct archive_files *a);
const struct archive_member *archive_files_get(const struct archive_files *a, uint32_t index);

#endif
