/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a file into memory. The mapping is private and writable, because libelf modifies the image when it unpacks a
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
/* The same from an open file, which stays the caller's; `path` is used in messages. `fd` 0: opens the path. */
struct error *image_map_open(int fd, const char *path, struct image *out);
/* Copies bytes from memory, for the same reason. */
struct error *image_copy(const void *data, uint64_t len_bytes, struct image *out);
void image_unmap(struct image *image);

#endif
