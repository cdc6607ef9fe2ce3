/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array map that user space writes through mmap(). Its addresses are reserved at once, and its parts mapped when they
 * are used: to map all of it would make all of its pages resident.
 */
#ifndef CAPTURE_SAMPLER_SHARED_ARRAY_H
#define CAPTURE_SAMPLER_SHARED_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

/* {0} is not reserved. */
struct shared_array {
    uint8_t *data;
    size_t len_bytes;
    uint32_t count; /* elements; set by the caller before it reserves */
    int fd;         /* the map's; borrowed */
    bool *mapped;   /* by part */
};

/* Reserves addresses for `count` elements. Their size is a multiple of 8: then they lie side by side. */
struct error *shared_array_reserve(struct shared_array *a, int fd, size_t element_bytes);
/* Maps the parts in which these bytes lie. */
struct error *shared_array_map(struct shared_array *a, size_t start, size_t len_bytes);
void shared_array_deinit(struct shared_array *a);

#endif
