/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning: equal byte strings get equal small numbers.
 *
 * Ids count up from 0 in the order of first sight, so they can index an array
 * beside the table. The bytes are copied. {0} is an empty table, {.arena.limits = …} one that counts its memory.
 */
#ifndef FORMATS_BASE_INTERN_H
#define FORMATS_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/arena.h"

#define INTERN_NONE UINT32_MAX

struct intern_entry {
    const uint8_t *data;
    uint32_t len_bytes;
    uint32_t hash;
};

struct intern {
    struct arena arena;
    struct intern_entry *entries; /* by id */
    uint32_t count, cap;
    uint32_t *slots; /* an id, counted from 1; 0: empty */
    uint32_t slot_count;
};

void intern_deinit(struct intern *t);
/* Forgets all entries and ids. */
void intern_clear(struct intern *t);
/* The id of these bytes, which are added if they are new; *added (may be NULL) says so. INTERN_NONE: out of memory. */
uint32_t intern_id(struct intern *t, const void *data, uint32_t len_bytes, bool *added);
/* INTERN_NONE: these bytes have not been added. */
uint32_t intern_find(const struct intern *t, const void *data, uint32_t len_bytes);
/* Memory in use, in bytes. */
static inline size_t intern_bytes(const struct intern *t)
{
    return t->arena.total_bytes + t->cap * sizeof *t->entries + t->slot_count * sizeof *t->slots;
}
/* The bytes of an id. The entry stays valid until an id is added, its `data` until the table is cleared. */
static inline const struct intern_entry *intern_get(const struct intern *t, uint32_t id)
{
    return &t->entries[id];
}

#endif
