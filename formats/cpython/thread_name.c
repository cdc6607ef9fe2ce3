/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threading keeps its threads in a dict by their handles. The way there: the interpreter's sys.modules, the module's
 * dict, its `_active`, the Thread's attributes, its `_name`. Everything is looked up by name or by value, and the type of
 * each object is checked, so where the layout is not the expected one nothing is found.
 */
#include "formats/cpython/thread_name.h"

#include <string.h>

#include "formats/cpython/objects.h"

static bool set_up(const struct py_names *n, struct py_objects *r)
{
    *r = (struct py_objects){
        .layout = n->layout, .str_type = n->str_type, .int_type = n->int_type, .read = n->read, .ctx = n->ctx};
    return py_objects_begin(r);
}

bool py_thread_name(const struct py_names *n, uint64_t interpreter, uint64_t handle, struct buf *out)
{
    const struct py_layout *l = n->layout;
    struct py_name_hints none = {0}, *hints = n->hints ? n->hints : &none;
    struct py_objects r;
    uint64_t modules, module, dict, type;

    if (!set_up(n, &r) || !interpreter)
        return false;
    if (!py_object_u64(&r, interpreter + l->interp_modules, &modules))
        return false;
    module = py_dict_item(&r, modules, "threading", 0, &hints->module);
    /* Behind its header a module object has its dict. */
    if (!module || !py_object_u64(&r, module + r.header, &dict))
        return false;
    uint64_t thread = py_dict_item(&r, py_dict_item(&r, dict, "_active", 0, &hints->active), NULL, handle, &hints->thread);
    uint64_t name = thread ? py_attribute(&r, thread, r.version->thread_name, &hints->attribute) : 0;
    if (!name || !py_object_u64(&r, name + l->code_type, &type) || type != n->str_type)
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
    struct py_objects r;
    uint64_t number;
    uint32_t state;

    if (!set_up(n, &r) || l->str_state == PY_NONE || len_bytes < l->str_ascii_data)
        return false;
    if (py_int_of(&r, object, len_bytes, &number)) {
        buf_printf(out, "Task-%llu", (unsigned long long)number);
        return !out->bad;
    }
    if (py_u64_of(object + l->code_type) != n->str_type)
        return false;
    memcpy(&state, object + l->str_state, sizeof state);
    uint32_t data = state >> l->str_ascii_shift & 1 ? l->str_ascii_data : l->str_compact_data;
    return len_bytes >= data &&
           py_string_read(l, read_copy, &copy, COPY_ADDRESS, len_bytes - data, n->storage, out);
}
