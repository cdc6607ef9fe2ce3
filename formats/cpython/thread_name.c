/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threading keeps its threads in a dict by their handles. The way there: the interpreter's sys.modules, the module's
 * dict, its `_active`, the Thread's attributes, its `_name`. Everything is looked up by name or by value, and the type of
 * each object is checked, so where the layout is not the expected one nothing is found.
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
#include "formats/cpython/thread_name.h"

#include <string.h>

#include "formats/cpython/version.h"

/* More modules, attributes or threads than these are garbage. */
#define ENTRIES_MAX (1u << 20)
#define CHUNK_BYTES 6144 /* a multiple of both sizes of entries */

struct reader {
    const struct py_names *n;
    const struct py_behaviour *version;
    uint32_t header; /* bytes of an object's header */
};

/* An open dict: its entries, and where the values are. */
struct dict {
    uint64_t entries, values; /* values 0: they are in the entries */
    uint32_t count, stride;
    bool hashed;
};

static bool read_bytes(const struct reader *r, uint64_t address, void *out, uint64_t len)
{
    return address && r->n->read(r->n->ctx, address, out, len);
}

static bool read_u64(const struct reader *r, uint64_t address, uint64_t *out)
{
    return read_bytes(r, address, out, sizeof *out);
}

static uint64_t u64_of(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static bool set_up(const struct py_names *n, struct reader *r)
{
    *r = (struct reader){.n = n,
                         .version = py_behaviour_of(n->layout->version),
                         .header = (uint32_t)n->layout->code_type + 8};
    return r->version && n->str_type && n->int_type;
}

static bool open_keys(const struct reader *r, uint64_t keys, uint64_t values, struct dict *out)
{
    uint8_t head[40];
    uint64_t slots, index_bytes, head_bytes = r->version->dicts == PY_DICTS_INDEXED ? 40 : 32;

    if (!read_bytes(r, keys, head, head_bytes))
        return false;
    *out = (struct dict){.values = values, .stride = 24, .hashed = true};
    if (r->version->dicts == PY_DICTS_LOG2) {
        if (head[8] > 30 || head[9] > 33 || head[10] > 2)
            return false;
        slots = UINT64_C(1) << head[8];
        index_bytes = UINT64_C(1) << head[9];
        out->count = (uint32_t)u64_of(head + 24);
        out->hashed = head[10] == 0;
        out->stride = out->hashed ? 24 : 16;
    } else {
        slots = u64_of(head + 8);
        index_bytes = slots * (slots <= 0xff ? 1 : slots <= 0xffff ? 2 : 4);
        out->count = r->version->dicts == PY_DICTS_INDEXED ? (uint32_t)u64_of(head + 32) : (uint32_t)slots;
        if (r->version->dicts == PY_DICTS_SLOTS)
            index_bytes = 0;
    }
    out->entries = keys + head_bytes + index_bytes;
    return out->count <= slots && slots <= ENTRIES_MAX;
}

static bool open_dict(const struct reader *r, uint64_t address, struct dict *out)
{
    uint8_t fields[32];

    if (!read_bytes(r, address + r->header, fields, sizeof fields))
        return false;
    if (r->version->dicts == PY_DICTS_TABLE) {
        uint64_t mask = u64_of(fields + 16);
        *out = (struct dict){.entries = u64_of(fields + 24), .count = (uint32_t)mask + 1, .stride = 24, .hashed = true};
        return mask < ENTRIES_MAX;
    }
    uint32_t at = r->version->dicts == PY_DICTS_SLOTS ? 8 : 16;
    uint64_t values = u64_of(fields + at + 8);
    if (values && r->version->instances == PY_INSTANCES_INLINE)
        values += 8; /* capacity, size and whether they are valid */
    return open_keys(r, u64_of(fields + at), values, out);
}

/* Whether the object is the str `name`. */
static bool is_str(const struct reader *r, uint64_t object, const char *name)
{
    const struct py_layout *l = r->n->layout;
    uint8_t bytes[160];
    size_t len = strlen(name), data = l->str_state == PY_NONE ? l->bytes_data : l->str_ascii_data;

    if (data + len > sizeof bytes || !read_bytes(r, object, bytes, data + len) ||
        u64_of(bytes + l->code_type) != r->n->str_type || memcmp(bytes + data, name, len) != 0)
        return false;
    if (l->str_state == PY_NONE)
        return u64_of(bytes + l->bytes_size) == len;
    uint32_t state;
    memcpy(&state, bytes + l->str_state, sizeof state);
    return u64_of(bytes + l->str_length) == len && state >> l->str_compact_shift & 1 && state >> l->str_ascii_shift & 1;
}

/* The value of an int object of at most 64 bits; false for others. */
static bool int_of(const struct reader *r, const uint8_t *object, uint32_t len_bytes, uint64_t *out)
{
    const struct py_layout *l = r->n->layout;

    if (len_bytes < r->header + 8 + 12 || u64_of(object + l->code_type) != r->n->int_type)
        return false;
    uint64_t size = u64_of(object + r->header);
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

static bool is_int(const struct reader *r, uint64_t address, uint64_t wanted)
{
    uint8_t bytes[64];
    uint32_t len = r->header + 20;
    uint64_t number;

    return len <= sizeof bytes && read_bytes(r, address, bytes, len) && int_of(r, bytes, len, &number) &&
           number == wanted;
}

/* Is this the entry's key: the str `name` or, without one, the int `number`? (The hash of a handle is its value.) */
static bool has_key(const struct reader *r, const struct dict *d, const uint8_t *entry, const char *name, uint64_t number)
{
    uint64_t key = u64_of(entry + (d->hashed ? 8 : 0));

    return key && (name ? is_str(r, key, name) : u64_of(entry) == number && is_int(r, key, number));
}

static uint64_t value_at(const struct reader *r, const struct dict *d, const uint8_t *entry, uint32_t index)
{
    uint64_t value = u64_of(entry + (d->hashed ? 16 : 8));

    return d->values && !read_u64(r, d->values + 8 * (uint64_t)index, &value) ? 0 : value;
}

/*
 * The address of a key's value, or 0: the key is the str `name` or, without one, the int `number`. `hint` may be NULL; it is
 * where the last search ended, and this one begins.
 */
static uint64_t look_up(const struct reader *r, const struct dict *d, const char *name, uint64_t number, uint32_t *hint)
{
    uint8_t chunk[CHUNK_BYTES];
    bool hinted = hint && *hint && *hint <= d->count;
    uint32_t at_once = CHUNK_BYTES / d->stride, start = hinted ? *hint - 1 : 0, count;

    if (!name && !d->hashed)
        return 0;
    if (hinted && read_bytes(r, d->entries + (uint64_t)start * d->stride, chunk, d->stride) &&
        has_key(r, d, chunk, name, number))
        return value_at(r, d, chunk, start);
    for (uint32_t done = 0; done < d->count; done += count) {
        uint32_t first = (uint32_t)(((uint64_t)start + done) % d->count);
        count = d->count - first < at_once ? d->count - first : at_once;
        if (!read_bytes(r, d->entries + (uint64_t)first * d->stride, chunk, (uint64_t)count * d->stride))
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
static uint64_t item(const struct reader *r, uint64_t address, const char *name, uint64_t number, uint32_t *hint)
{
    struct dict d;

    return address && open_dict(r, address, &d) ? look_up(r, &d, name, number, hint) : 0;
}

enum { FLAG_INLINE_VALUES = 4, FLAG_MANAGED_DICT = 16 }; /* of tp_flags */

/* The address of an instance's attribute, or 0. */
static uint64_t attribute(const struct reader *r, uint64_t object, const char *name, uint32_t *hint)
{
    uint64_t type, dict, values = 0, keys;
    uint8_t fields[280 - 16]; /* of the type, from tp_basicsize to tp_dictoffset */
    struct dict d;

    if (!read_u64(r, object + r->n->layout->code_type, &type) || !read_bytes(r, type + r->header + 16, fields, sizeof fields))
        return 0;
    uint64_t size = u64_of(fields), flags = u64_of(fields + 152 - 16), offset = u64_of(fields + 272 - 16);
    if (r->version->instances == PY_INSTANCES_DICT) {
        if (!offset || offset > 1 << 16 || offset % 8 || !read_u64(r, object + offset, &dict))
            return 0;
        return item(r, dict, name, 0, hint);
    }
    uint64_t in_front = r->n->layout->free_threaded ? 8 : 24; /* the GC keeps nothing in front of objects there */
    if (!(flags & FLAG_MANAGED_DICT) || !read_u64(r, object - in_front, &dict))
        return 0;
    if (r->version->instances == PY_INSTANCES_VALUES) {
        if (!read_u64(r, object - 32, &values))
            return 0;
    } else if (r->version->instances == PY_INSTANCES_TAGGED) {
        if (dict & 1)
            values = dict + 1;
    } else if (!dict && flags & FLAG_INLINE_VALUES && size <= 1 << 16) {
        uint8_t head[4];
        if (!read_bytes(r, object + size, head, sizeof head) || head[3] != 1)
            return 0;
        values = object + size + 8;
    }
    if (!values)
        return item(r, dict, name, 0, hint);
    uint64_t at = type + r->version->cached_keys + (r->header - 16);
    return read_u64(r, at, &keys) && open_keys(r, keys, values, &d) ? look_up(r, &d, name, 0, hint) : 0;
}

bool py_thread_name(const struct py_names *n, uint64_t interpreter, uint64_t handle, struct buf *out)
{
    const struct py_layout *l = n->layout;
    struct py_name_hints none = {0}, *hints = n->hints ? n->hints : &none;
    struct reader r;
    uint64_t modules, module, dict, type;

    if (!set_up(n, &r) || !interpreter)
        return false;
    if (!read_u64(&r, interpreter + l->interp_modules, &modules))
        return false;
    module = item(&r, modules, "threading", 0, &hints->module);
    /* Behind its header a module object has its dict. */
    if (!module || !read_u64(&r, module + r.header, &dict))
        return false;
    uint64_t thread = item(&r, item(&r, dict, "_active", 0, &hints->active), NULL, handle, &hints->thread);
    uint64_t name = thread ? attribute(&r, thread, r.version->thread_name, &hints->attribute) : 0;
    if (!name || !read_u64(&r, name + l->code_type, &type) || type != n->str_type)
        return false;
    return py_string_read(l, n->read, n->ctx, name, PY_THREAD_NAME_MAX_BYTES, n->storage, out);
}

/* ---- tasks ---- */

struct copy {
    const uint8_t *bytes;
    uint32_t len_bytes;
};
#define COPY_ADDRESS 4096

static bool read_copy(void *ctx, uint64_t address, void *out, uint64_t len)
{
    const struct copy *c = ctx;
    uint64_t at = address - COPY_ADDRESS;

    if (address < COPY_ADDRESS || at > c->len_bytes || len > c->len_bytes - at)
        return false;
    memcpy(out, c->bytes + at, len);
    return true;
}

bool py_task_name(const struct py_names *n, const uint8_t *object, uint32_t len_bytes, struct buf *out)
{
    const struct py_layout *l = n->layout;
    struct copy copy = {object, len_bytes};
    struct reader r;
    uint64_t number;
    uint32_t state;

    if (!set_up(n, &r) || l->str_state == PY_NONE || len_bytes < l->str_ascii_data)
        return false;
    if (int_of(&r, object, len_bytes, &number)) {
        buf_printf(out, "Task-%llu", (unsigned long long)number);
        return !out->bad;
    }
    if (u64_of(object + l->code_type) != n->str_type)
        return false;
    memcpy(&state, object + l->str_state, sizeof state);
    uint32_t data = state >> l->str_ascii_shift & 1 ? l->str_ascii_data : l->str_compact_data;
    return len_bytes >= data &&
           py_string_read(l, read_copy, &copy, COPY_ADDRESS, len_bytes - data, n->storage, out);
}
