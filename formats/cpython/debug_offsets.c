/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes offsets from the interpreter's own table, by debug_offsets.def.
 *
 * The table lacks some fields that we need (_co_firsttraceable, the pthread key). Those keep
 * the row's offsets, which are right only while their structure is the one that the row
 * describes. So where a structure has such fields, the table must agree with the row in all
 * others, or the interpreter is refused.
 */
#include "formats/cpython/debug_offsets.h"

#include <stddef.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/cpython/version.h"

/* The structure that a field lies in; the table has the sizes of all but the last. */
enum owner { RUNTIME, INTERP, TSTATE, FRAME, CODE, OBJECT };
#define OBJECT_MAX_BYTES 128
#define INTERP_GROWTH_MAX 16 /* bytes that releases of one minor version have added to the interpreter state so far: 3.13 */

struct field {
    uint16_t layout_offset, table_offset;
    uint8_t len_bytes, owner;
};

struct table {
    uint8_t major, minor;
    uint16_t len_bytes;
    uint16_t sizes[OBJECT];
    const struct field *fields;
    uint32_t field_count;
};

#define AT(field, len, table, owner) {offsetof(struct py_layout, field), table, len, owner},
#define SIZES(...) {__VA_ARGS__}
#define DEBUG_TABLE(ma, mi, len, sizes, ...) static const struct field fields_##ma##_##mi[] = {__VA_ARGS__};
#include "formats/cpython/debug_offsets.def"
#undef DEBUG_TABLE

static const struct table tables[] = {
#define DEBUG_TABLE(ma, mi, len, sizes, ...) \
    {ma, mi, len, sizes, fields_##ma##_##mi, sizeof fields_##ma##_##mi / sizeof(struct field)},
#include "formats/cpython/debug_offsets.def"
#undef DEBUG_TABLE
};

/* NULL: this minor version has no table. */
static const struct table *table_of(uint32_t version_hex)
{
    uint8_t major = version_hex >> 24, minor = version_hex >> 16;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (tables[i].major == major && tables[i].minor == minor)
            return &tables[i];
    }
    return NULL;
}

static uint16_t *field_of(struct py_layout *layout, const struct field *f)
{
    return (uint16_t *)((char *)layout + f->layout_offset);
}

static uint64_t number_at(const void *offsets, uint32_t at)
{
    struct bytes b = bytes_of((const uint8_t *)offsets + at, 8);

    return bytes_u64(&b);
}

struct error *py_debug_offsets_flavour(uint32_t version_hex, const void *offsets, uint32_t len_bytes,
                                       bool *free_threaded)
{
    char text[32];

    *free_threaded = false;
    /* Cookie, version and flavour have the same place in every version of the table. */
    if (offsets && len_bytes >= 24 && memcmp(offsets, "xdebugpy", 8) == 0) {
        uint64_t flag = number_at(offsets, 16), version = number_at(offsets, 8);
        if (version != version_hex || flag > 1)
            return error_create(ERROR_VERSION, "CPython %s: its debug offsets are of version 0x%llx, flavour %llu",
                                py_version_text(version_hex, text), (unsigned long long)version,
                                (unsigned long long)flag);
        *free_threaded = flag;
    } else if (table_of(version_hex)) {
        return error_create(ERROR_VERSION, "CPython %s: _PyRuntime does not begin with the debug offsets",
                            py_version_text(version_hex, text));
    }
    return NULL;
}

/*
 * Whether the interpreter state is the row's up to its last members, of which patch releases added some. What the table
 * does not have is where the row says only then.
 */
static bool grew_at_its_end(uint64_t len_bytes, const struct py_layout *row, const struct py_layout *table)
{
    uint64_t difference = len_bytes > row->interp_len_bytes ? len_bytes - row->interp_len_bytes : row->interp_len_bytes - len_bytes;

    return difference <= INTERP_GROWTH_MAX && table->interp_next == row->interp_next && table->interp_id == row->interp_id &&
           table->interp_threads_head == row->interp_threads_head && table->interp_modules == row->interp_modules &&
           table->interp_gil == row->interp_gil && table->runtime_interpreters_head == row->runtime_interpreters_head;
}

struct error *py_debug_offsets_apply(const void *offsets, uint32_t len_bytes, struct py_layout *layout)
{
    const struct table *t = table_of(layout->version);
    const struct py_layout row = *layout;
    char text[32];

    if (!t)
        return NULL;
    py_version_text(layout->version, text);
    if (len_bytes < t->len_bytes)
        return error_create(ERROR_VERSION, "CPython %s: its debug offsets end at byte %u of %u", text,
                            (unsigned)len_bytes, (unsigned)t->len_bytes);
    for (uint32_t i = 0; i < t->field_count; i++) {
        const struct field *f = &t->fields[i];
        uint64_t size = f->owner == OBJECT ? OBJECT_MAX_BYTES : number_at(offsets, t->sizes[f->owner]);
        uint64_t value = number_at(offsets, f->table_offset);
        uint16_t *field = field_of(layout, f);
        if (value >= PY_NONE || value + f->len_bytes > size || value % f->len_bytes)
            return error_create(ERROR_VERSION, "CPython %s: debug offset %llu at byte %u makes no sense", text,
                                (unsigned long long)value, (unsigned)f->table_offset);
        if ((f->owner == CODE || f->owner == OBJECT) && value != *field)
            return error_create(ERROR_VERSION,
                                "CPython %s: debug offset at byte %u is %llu, not %u as in every %u.%u known", text,
                                (unsigned)f->table_offset, (unsigned long long)value, (unsigned)*field,
                                (unsigned)t->major, (unsigned)t->minor);
        *field = (uint16_t)value;
    }
    if (!layout->frame_tlbc_index != !layout->code_tlbc)
        return error_create(ERROR_VERSION, "CPython %s: its debug offsets have no index of the thread's bytecode", text);
    if (layout->runtime_interpreters_head != row.runtime_interpreters_head)
        layout->runtime_tss_key = PY_NONE;
    if (layout->tstate_interp != row.tstate_interp || layout->tstate_frame != row.tstate_frame ||
        layout->interp_modules != row.interp_modules)
        layout->tstate_state = layout->interp_requester = 0;
    if (!grew_at_its_end(number_at(offsets, t->sizes[INTERP]), &row, layout))
        layout->interp_code_counter = 0;
    return NULL;
}
