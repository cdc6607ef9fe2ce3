/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file as a whole in memory. Whoever may cut a mapped file would end pysym (SIGBUS), so it is mapped only where that is
 * root alone, as with what distributions install; every other file is read, and its holes take no memory. Either way it
 * is a copy of our own and writable, because libelf modifies it when it unpacks a compressed section.
 */
#ifndef SYMBOLIZE_BINARY_IMAGE_H
#define SYMBOLIZE_BINARY_IMAGE_H

#include <stdint.h>

#include "formats/base/err.h"

/* Larger files are refused: a file may claim any size. */
#define IMAGE_BYTES_MAX (UINT64_C(8) << 30)

struct image {
    const uint8_t *data; /* NULL when empty */
    uint64_t len_bytes;
};

/* Regular files only. A file that shrinks meanwhile ends with zeros. */
struct error *image_read(const char *path, struct image *out);
/* The same from an open file, which stays the caller's; `path` is used in messages. `fd` 0: opens the path. */
struct error *image_read_open(int fd, const char *path, struct image *out);
/* Copies bytes from memory, for the same reason. */
struct error *image_copy(const void *data, uint64_t len_bytes, struct image *out);
void image_deinit(struct image *image);

#endif
