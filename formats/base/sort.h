/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stable sort: among equals what came first stays first. (qsort() promises nothing.)
 */
#ifndef FORMATS_BASE_SORT_H
#define FORMATS_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* `compare` is qsort()'s. False: out of memory, and nothing was changed. */
bool sort_stable(void *data, size_t count, size_t size_bytes, int (*compare)(const void *, const void *));

#endif
