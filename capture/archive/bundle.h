/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects binaries in an archive (capture/archive/pack.h): each once, by build ID, with its separate debug file and
 * dwz supplement if the host has them. A file is packed only if its identity is the one requested; of several with one
 * build ID and other contents claims.h chooses. What cannot be found is reported by name, build ID and reason.
 *
 * Paths, build IDs and links are claims of a trace or of binaries, which may come from anywhere. So files are opened as
 * open_regular.h has it, contents are hashed only of a file that has the size that goes with the hash, and no message
 * tells a hash of what is found at a path.
 */
#ifndef CAPTURE_ARCHIVE_BUNDLE_H
#define CAPTURE_ARCHIVE_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "capture/output/archive_file.h"
#include "formats/base/err.h"

struct bundle_options {
    const char *output; /* its path, which tells how to compress; "-": standard output */
    bool strip_code;
    bool quiet;         /* report missing files only, no summary */
    uint64_t owner_bytes_max; /* of one user's files; 0: ALLOWANCE_OWNER_BYTES */
    FILE *messages;
};

/* The identity of a module, as in a MODULE record of the trace. */
struct bundle_key {
    uint32_t id_kind; /* enum elf_id_kind */
    const uint8_t *id;
    uint32_t id_len;
    uint64_t file_size; /* bytes; 0: not known. A content hash counts only with it */
};
/* Where a module may be found. */
struct bundle_place {
    const char *path;    /* in the file system of its process */
    pid_t pid;           /* the process that mapped it; 0: it has ended */
    uint64_t start, end; /* addresses of its mapping in that process; equal: not known */
    int fd;              /* the file, held open since it was mapped, or -1; it stays the caller's */
    uint64_t file_size;  /* bytes that the trace says it has; 0: not known */
    bool public_only;    /* not known to be the file that was mapped: only one that every user may read is taken */
};

struct bundle;
/* `sink` is copied: the archive's bytes go there. */
struct error *bundle_create(const struct bundle_options *options, const struct archive_sink *sink, struct bundle **out);
/*
 * Adds a module, unless it was added before. `places` are all of those where it may be, at least one: each may be a file
 * of its own. The path of the one that is taken names the module in the archive.
 */
struct error *bundle_add(struct bundle *b, const struct bundle_key *key, const struct bundle_place *places,
                         uint32_t place_count);
/* Adds the vdso, whose bytes are in the trace. Only perf needs it in the archive. */
struct error *bundle_add_vdso(struct bundle *b, const struct bundle_key *key, const void *image, uint64_t len_bytes);
/* Closes the archive and reports what is in it. Stores in `*missing` how many modules could not be found. */
struct error *bundle_finish(struct bundle *b, uint32_t *missing);
void bundle_destroy(struct bundle *b);

#endif
