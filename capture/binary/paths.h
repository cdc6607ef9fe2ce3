/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of mapped files, each kept once: hosts map the same few libraries into every process, and a program may map one
 * file with a path of 4 KB thousands of times. A path is freed when its last holder releases it.
 */
#ifndef CAPTURE_BINARY_PATHS_H
#define CAPTURE_BINARY_PATHS_H

#include <stddef.h>
#include <stdint.h>

struct path_entry;

/* {0} is empty. */
struct paths {
    struct path_entry **buckets;
    size_t bucket_count, count;
    uint64_t bytes; /* of memory in use */
};
/* Frees the table. Every path must have been released. */
void paths_deinit(struct paths *p);
/* Returns the table's copy of a text, and holds it. Equal texts have the same copy. NULL: out of memory. */
const char *paths_hold(struct paths *p, const char *text);
/* Releases a path that paths_hold() returned. Accepts NULL. */
void paths_release(struct paths *p, const char *path);
/* Returns what paths_hold() would add to `bytes`; 0 when the text is there already. */
uint64_t paths_cost(const struct paths *p, const char *text);

#endif
