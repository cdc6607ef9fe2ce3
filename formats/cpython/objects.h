/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads objects of the interpreter's own types out of another process's memory: dicts, attributes of instances, ints,
 * sets, lists. The target runs meanwhile, and may be hostile: the type of what is named is checked, sizes are bounded, and
 * what does not look as it should is not found.
 */
#ifndef FORMATS_CPYTHON_OBJECTS_H
#define FORMATS_CPYTHON_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "formats/cpython/code.h"
#include "formats/cpython/layout.h"
#include "formats/cpython/version.h"

struct py_objects {
    const struct py_layout *layout; /* set by the caller, as are the next ones */
    uint64_t str_type, int_type;    /* addresses in the target, from struct py_image */
    py_read_fn read;
    void *ctx;
    const struct py_behaviour *version; /* set by py_objects_begin() */
    uint32_t header;                    /* bytes of an object's header */
};
/* False where nothing can be found: the version or the types are not known. */
bool py_objects_begin(struct py_objects *r);

static inline uint64_t py_u64_of(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* False also for address 0. */
bool py_object_bytes(const struct py_objects *r, uint64_t address, void *out, uint64_t len);
bool py_object_u64(const struct py_objects *r, uint64_t address, uint64_t *out);

/* The value of an int object of at most 64 bits, from its first bytes; false for others. */
bool py_int_of(const struct py_objects *r, const uint8_t *object, uint32_t len_bytes, uint64_t *out);

/* An open dict: its entries, and where the values are. */
struct py_dict {
    uint64_t entries, values; /* values 0: they are in the entries */
    uint32_t count, stride;
    bool hashed;
};
bool py_dict_open(const struct py_objects *r, uint64_t address, struct py_dict *out);
/*
 * The address of a key's value in the dict at `address`, or 0: the key is the str `name` or, without one, the int
 * `number`. `address` may be 0. `hint` may be NULL; it is where the last search ended, and this one begins.
 */
uint64_t py_dict_item(const struct py_objects *r, uint64_t address, const char *name, uint64_t number, uint32_t *hint);
/* The key and the value of the `index`-th entry, below `count`. False: there is none, or it cannot be read. */
bool py_dict_entry(const struct py_objects *r, const struct py_dict *d, uint32_t index, uint64_t *key, uint64_t *value);
/* The address of an instance's attribute, or 0. */
uint64_t py_attribute(const struct py_objects *r, uint64_t object, const char *name, uint32_t *hint);

#endif
