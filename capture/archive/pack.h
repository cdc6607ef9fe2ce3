/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the bytes of an archive: a tar archive in the layout of perf's build-id cache, compressed as its file name says.
 * Unpacked into ~/.debug it serves perf:
 *
 *   usr/lib/libfoo.so/ID/elf       the binary
 *   usr/lib/libfoo.so/ID/debug     its separate debug file
 *   .build-id/ab/cdef...           -> ../../usr/lib/libfoo.so/ID
 *   .build-id/12/3456....debug     a dwz supplement, as debuggers look for it
 *
 * Times and owners are left out, so equal contents give equal bytes.
 */
#ifndef CAPTURE_ARCHIVE_PACK_H
#define CAPTURE_ARCHIVE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/output/archive_file.h"
#include "formats/base/err.h"

/* A larger file is not packed, because pysym refuses it. */
#define PACK_MEMBER_MAX (UINT64_C(4) << 30)

struct pack;
/* `path` (borrowed) is for messages, and tells how to compress. `sink` is copied; the bytes go there. */
struct error *pack_create(const char *path, const struct archive_sink *sink, struct pack **out);
/*
 * Adds a regular file. `strip`: without its code and data (formats/elf/strip.h). Sets `*ended_early` when the file
 * shrank while it was read. `fd` stays open.
 */
struct error *pack_file(struct pack *p, const char *member, int fd, bool strip, bool *ended_early);
struct error *pack_bytes(struct pack *p, const char *member, const void *data, uint64_t len_bytes);
/* Adds a symbolic link. */
struct error *pack_link(struct pack *p, const char *member, const char *target);
/* Writes the end, and tells the sink that it was. */
struct error *pack_finish(struct pack *p);
uint64_t pack_size(const struct pack *p); /* bytes written so far */
void pack_destroy(struct pack *p);

#endif
