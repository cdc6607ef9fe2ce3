/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from 64-bit keys to 64-bit values (open addressing, linear
 * probing, backward-shift deletion). {0} is an empty table.
 */
#ifndef FORMATS_BASE_MAP_H
#define FORMATS_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/limits.h"

struct map_slot {
    uint64_t key, value;
    bool used;
};

struct map {
    struct map_slot *slots;
    uint64_t slot_count, count;
    struct limits *limits; /* borrowed; NULL: none. Stays when the memory is freed */
};

void map_deinit(struct map *m);
void map_clear(struct map *m);
/* A pointer to the value of `key`, or NULL; valid until the next change. */
uint64_t *map_get(const struct map *m, uint64_t key);
/* Adds `key` or replaces its value; false: out of memory. */
bool map_set(struct map *m, uint64_t key, uint64_t value);
/* Does nothing when the key is not there. */
void map_remove(struct map *m, uint64_t key);

#endif
