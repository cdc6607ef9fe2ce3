/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's bytes. The mapping is private and writable, because libelf writes into what it is given when it unpacks a
 * compressed section.
 */
#ifndef SYMBOLIZE_BINARY_IMAGE_H
#define SYMBOLIZE_BINARY_IMAGE_H

#include <stdint.h>

#include "formats/base/err.h"

struct image {
    const uint8_t *data; /* NULL when empty */
    uint64_t len_bytes;
};

/* Regular files only. */
struct error *image_map(const char *path, struct image *out);
/* The same of an open file, which the caller keeps; `path` is for messages. `fd` 0: by the path. */
struct error *image_map_open(int fd, const char *path, struct image *out);
/* Of bytes in memory, for the same reason. */
struct error *image_copy(const void *data, uint64_t len_bytes, struct image *out);
void image_unmap(struct image *image);

#endif
