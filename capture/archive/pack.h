/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that binaries are packed into: a tar archive, compressed as its name asks for, in the layout of perf's
 * build-id cache. Unpacked into ~/.debug it serves perf:
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

#include "formats/base/err.h"

/* A larger file is not packed: pysym would not take it. */
#define PACK_MEMBER_MAX (UINT64_C(4) << 30)

struct pack;
/* `path` "-" is standard output. Nothing stands under that name before pack_finish(). */
struct error *pack_create(const char *path, struct pack **out);
/* A regular file, or without its code where `strip` says so (formats/elf/strip.h). `*ended_early`: it shrank meanwhile. */
struct error *pack_file(struct pack *p, const char *member, int fd, bool strip, bool *ended_early);
struct error *pack_bytes(struct pack *p, const char *member, const void *data, uint64_t len_bytes);
struct error *pack_link(struct pack *p, const char *member, const char *target);
struct error *pack_finish(struct pack *p);
uint64_t pack_size(const struct pack *p); /* bytes written to the file so far */
void pack_destroy(struct pack *p);        /* unfinished: nothing is left behind */

#endif
