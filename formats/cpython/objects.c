/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the objects lie in memory.
 *
 * Dicts, in the order in which CPython had them (Objects/dictobject.c, Include/internal/pycore_dict.h):
 * - PY_DICTS_TABLE, 2.7: the dict points to a table of {hash, key, value} with mask + 1 slots, some of them empty.
 * - PY_DICTS_SLOTS, 3.3: the table is an object with a header of its own, and may be shared by the instances of a
 *   class: then the dict has an array of values of its own, by slot.
 * - PY_DICTS_INDEXED, 3.6: behind the table's header comes an index by hash, then the entries in order.
 * - PY_DICTS_LOG2, 3.11: sizes are logarithms; entries of tables with str keys alone have no hash.
 * Attributes of instances:
 * - PY_INSTANCES_DICT: a dict, at tp_dictoffset.
 * - PY_INSTANCES_VALUES, 3.11: in front of the object (and of the GC's two words) stand a dict, if one was made, and
 *   in front of that the values, whose keys the type has.
 * - PY_INSTANCES_TAGGED, 3.12: one word for either; an odd one is one less than the address of the values.
 * - PY_INSTANCES_INLINE, 3.13: a dict in front, if one was made; values behind the object as long as they are valid.
 * Ints:
 * - PY_INTS_LONG, 2.7: a C long; larger ones have another type.
 * - PY_INTS_SIZED, 3.3: the count of digits of 30 bits that follow; it has the int's sign.
 * - PY_INTS_TAGGED, 3.12: likewise, but shifted by three bits, which hold the sign and flags.
 */
#include "formats/cpython/objects.h"

#include <string.h>

/* More modules, attributes or threads than these are garbage. */
#define ENTRIES_MAX (1u << 20)
#define CHUNK_BYTES 6144 /* a multiple of both sizes of entries */

bool py_object_bytes(const struct py_objects *r, uint64_t address, void *out, uint64_t len)
{
    return address && r->read(r->ctx, address, out, len);
}

bool py_object_u64(const struct py_objects *r, uint64_t address, uint64_t *out)
{
    return py_object_bytes(r, address, out, sizeof *out);
}

bool py_objects_begin(struct py_objects *r)
{
    r->version = py_behaviour_of(r->layout->version);
    r->header = (uint32_t)r->layout->code_type + 8;
    return r->version && r->str_type && r->int_type;
}

static bool open_keys(const struct py_objects *r, uint64_t keys, uint64_t values, struct py_dict *out)
{
    uint8_t head[40];
    uint64_t slots, index_bytes, head_bytes = r->version->dicts == PY_DICTS_INDEXED ? 40 : 32;

    if (!py_object_bytes(r, keys, head, head_bytes))
        return false;
    *out = (struct py_dict){.values = values, .stride = 24, .hashed = true};
    if (r->version->dicts == PY_DICTS_LOG2) {
        if (head[8] > 30 || head[9] > 33 || head[10] > 2)
            return false;
        slots = UINT64_C(1) << head[8];
        index_bytes = UINT64_C(1) << head[9];
        out->count = (uint32_t)py_u64_of(head + 24);
        out->hashed = head[10] == 0;
        out->stride = out->hashed ? 24 : 16;
    } else {
        slots = py_u64_of(head + 8);
        index_bytes = slots * (slots <= 0xff ? 1 : slots <= 0xffff ? 2 : 4);
        out->count = r->version->dicts == PY_DICTS_INDEXED ? (uint32_t)py_u64_of(head + 32) : (uint32_t)slots;
        if (r->version->dicts == PY_DICTS_SLOTS)
            index_bytes = 0;
    }
    out->entries = keys + head_bytes + index_bytes;
    return out->count <= slots && slots <= ENTRIES_MAX;
}

bool py_dict_open(const struct py_objects *r, uint64_t address, struct py_dict *out)
{
    uint8_t fields[32];

    if (!py_object_bytes(r, address + r->header, fields, sizeof fields))
        return false;
    if (r->version->dicts == PY_DICTS_TABLE) {
        uint64_t mask = py_u64_of(fields + 16);
        *out = (struct py_dict){.entries = py_u64_of(fields + 24), .count = (uint32_t)mask + 1, .stride = 24, .hashed = true};
        return mask < ENTRIES_MAX;
    }
    uint32_t at = r->version->dicts == PY_DICTS_SLOTS ? 8 : 16;
    uint64_t values = py_u64_of(fields + at + 8);
    if (values && r->version->instances == PY_INSTANCES_INLINE)
        values += 8; /* capacity, size and whether they are valid */
    return open_keys(r, py_u64_of(fields + at), values, out);
}

/* Whether the object is the str `name`. */
static bool is_str(const struct py_objects *r, uint64_t object, const char *name)
{
    const struct py_layout *l = r->layout;
    uint8_t bytes[160];
    size_t len = strlen(name), data = l->str_state == PY_NONE ? l->bytes_data : l->str_ascii_data;

    if (data + len > sizeof bytes || !py_object_bytes(r, object, bytes, data + len) ||
        py_u64_of(bytes + l->code_type) != r->str_type || memcmp(bytes + data, name, len) != 0)
        return false;
    if (l->str_state == PY_NONE)
        return py_u64_of(bytes + l->bytes_size) == len;
    uint32_t state;
    memcpy(&state, bytes + l->str_state, sizeof state);
    return py_u64_of(bytes + l->str_length) == len && state >> l->str_compact_shift & 1 && state >> l->str_ascii_shift & 1;
}

/* The value of an int object of at most 64 bits; false for others. */
bool py_int_of(const struct py_objects *r, const uint8_t *object, uint32_t len_bytes, uint64_t *out)
{
    const struct py_layout *l = r->layout;

    if (len_bytes < r->header + 8 + 12 || py_u64_of(object + l->code_type) != r->int_type)
        return false;
    uint64_t size = py_u64_of(object + r->header);
    *out = size;
    if (r->version->ints == PY_INTS_LONG)
        return true;
    if (r->version->ints == PY_INTS_TAGGED) {
        if (size & 2) /* negative */
            return false;
        size >>= 3;
    }
    *out = 0;
    if (size > 3)
        return false;
    for (uint64_t i = size; i--;) {
        uint32_t digit;
        memcpy(&digit, object + r->header + 8 + 4 * i, sizeof digit);
        if (digit >> 30 || *out >> 34)
            return false;
        *out = *out << 30 | digit;
    }
    return true;
}

static bool is_int(const struct py_objects *r, uint64_t address, uint64_t wanted)
{
    uint8_t bytes[64];
    uint32_t len = r->header + 20;
    uint64_t number;

    return len <= sizeof bytes && py_object_bytes(r, address, bytes, len) && py_int_of(r, bytes, len, &number) &&
           number == wanted;
}

/* Is this the entry's key: the str `name` or, without one, the int `number`? (The hash of a handle is its value.) */
static bool has_key(const struct py_objects *r, const struct py_dict *d, const uint8_t *entry, const char *name, uint64_t number)
{
    uint64_t key = py_u64_of(entry + (d->hashed ? 8 : 0));

    return key && (name ? is_str(r, key, name) : py_u64_of(entry) == number && is_int(r, key, number));
}

static uint64_t value_at(const struct py_objects *r, const struct py_dict *d, const uint8_t *entry, uint32_t index)
{
    uint64_t value = py_u64_of(entry + (d->hashed ? 16 : 8));

    return d->values && !py_object_u64(r, d->values + 8 * (uint64_t)index, &value) ? 0 : value;
}

/*
 * The address of a key's value, or 0: the key is the str `name` or, without one, the int `number`. `hint` may be NULL; it is
 * where the last search ended, and this one begins.
 */
static uint64_t look_up(const struct py_objects *r, const struct py_dict *d, const char *name, uint64_t number, uint32_t *hint)
{
    uint8_t chunk[CHUNK_BYTES];
    bool hinted = hint && *hint && *hint <= d->count;
    uint32_t at_once = CHUNK_BYTES / d->stride, start = hinted ? *hint - 1 : 0, count;

    if (!name && !d->hashed)
        return 0;
    if (hinted && py_object_bytes(r, d->entries + (uint64_t)start * d->stride, chunk, d->stride) &&
        has_key(r, d, chunk, name, number))
        return value_at(r, d, chunk, start);
    for (uint32_t done = 0; done < d->count; done += count) {
        uint32_t first = (uint32_t)(((uint64_t)start + done) % d->count);
        count = d->count - first < at_once ? d->count - first : at_once;
        if (!py_object_bytes(r, d->entries + (uint64_t)first * d->stride, chunk, (uint64_t)count * d->stride))
            return 0;
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *entry = chunk + i * d->stride;
            if (!has_key(r, d, entry, name, number))
                continue;
            if (hint)
                *hint = first + i + 1;
            return value_at(r, d, entry, first + i);
        }
    }
    return 0;
}

/* The same in the dict at `address`, which may be 0. */
uint64_t py_dict_item(const struct py_objects *r, uint64_t address, const char *name, uint64_t number, uint32_t *hint)
{
    struct py_dict d;

    return address && py_dict_open(r, address, &d) ? look_up(r, &d, name, number, hint) : 0;
}

bool py_dict_entry(const struct py_objects *r, const struct py_dict *d, uint32_t index, uint64_t *key, uint64_t *value)
{
    uint8_t entry[24];

    if (!py_object_bytes(r, d->entries + (uint64_t)index * d->stride, entry, d->stride))
        return false;
    *key = py_u64_of(entry + (d->hashed ? 8 : 0));
    *value = value_at(r, d, entry, index);
    return *key && *value;
}

enum { FLAG_INLINE_VALUES = 4, FLAG_MANAGED_DICT = 16 }; /* of tp_flags */

/* The address of an instance's attribute, or 0. */
uint64_t py_attribute(const struct py_objects *r, uint64_t object, const char *name, uint32_t *hint)
{
    uint64_t type, dict, values = 0, keys;
    uint8_t fields[280 - 16]; /* of the type, from tp_basicsize to tp_dictoffset */
    struct py_dict d;

    if (!py_object_u64(r, object + r->layout->code_type, &type) || !py_object_bytes(r, type + r->header + 16, fields, sizeof fields))
        return 0;
    uint64_t size = py_u64_of(fields), flags = py_u64_of(fields + 152 - 16), offset = py_u64_of(fields + 272 - 16);
    /* From 3.11 on that is so for classes whose base says itself where its dict is. */
    if (r->version->instances == PY_INSTANCES_DICT || !(flags & FLAG_MANAGED_DICT)) {
        if (!offset || offset > 1 << 16 || offset % 8 || !py_object_u64(r, object + offset, &dict))
            return 0;
        return py_dict_item(r, dict, name, 0, hint);
    }
    uint64_t in_front = r->layout->free_threaded ? 8 : 24; /* the GC keeps nothing in front of objects there */
    if (!py_object_u64(r, object - in_front, &dict))
        return 0;
    if (r->version->instances == PY_INSTANCES_VALUES) {
        if (!py_object_u64(r, object - 32, &values))
            return 0;
    } else if (r->version->instances == PY_INSTANCES_TAGGED) {
        if (dict & 1)
            values = dict + 1;
    } else if (!dict && flags & FLAG_INLINE_VALUES && size <= 1 << 16) {
        uint8_t head[4];
        if (!py_object_bytes(r, object + size, head, sizeof head) || head[3] != 1)
            return 0;
        values = object + size + 8;
    }
    if (!values)
        return py_dict_item(r, dict, name, 0, hint);
    uint64_t at = type + r->version->cached_keys + (r->header - 16);
    return py_object_u64(r, at, &keys) && open_keys(r, keys, values, &d) ? look_up(r, &d, name, 0, hint) : 0;
}
