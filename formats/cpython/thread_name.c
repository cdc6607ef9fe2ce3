/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threading keeps its threads in a dict by their handles. The way there: the interpreter's sys.modules, the module's
 * dict, its `_active`, the Thread's attributes, its `_name`. The main thread has a variable of its own, `_main_thread`;
 * up to 3.3 what is called at the end, `_shutdown`, is a method of it. Everything is looked up by name or by value, and
 * the type of each object is checked, so where the layout is not the expected one nothing is found.
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

/* The dict of the interpreter's module threading; 0: it was not imported. */
static uint64_t threading_of(const struct py_objects *r, uint64_t interpreter, struct py_name_hints *hints)
{
    uint64_t modules, module, dict;

    if (!interpreter || !py_object_u64(r, interpreter + r->layout->interp_modules, &modules))
        return 0;
    module = py_dict_item(r, modules, "threading", 0, &hints->module);
    /* Behind its header a module object has its dict. */
    return module && py_object_u64(r, module + r->header, &dict) ? dict : 0;
}

/* Whether the object is an instance of that very class of threading's. */
static bool is_main_thread(const struct py_objects *r, uint64_t object)
{
    static const char name[] = "_MainThread";
    char found[sizeof name];
    uint64_t type, at;

    /* tp_name comes behind the header of a type, which has a size. */
    return py_object_u64(r, object + r->layout->code_type, &type) && py_object_u64(r, type + r->header + 8, &at) &&
           py_object_bytes(r, at, found, sizeof found) && !memcmp(found, name, sizeof name);
}

/* Appends the name of a threading.Thread. */
static bool put_name(const struct py_names *n, const struct py_objects *r, uint64_t thread, struct py_name_hints *hints,
                     struct buf *out)
{
    uint64_t name = py_attribute(r, thread, r->version->thread_name, &hints->attribute), type;

    if (!name || !py_object_u64(r, name + n->layout->code_type, &type) || type != n->str_type)
        return false;
    return py_string_read(n->layout, n->read, n->ctx, name, PY_THREAD_NAME_MAX_BYTES, n->storage, out);
}

/* The kernel's number of a thread, as its Thread knows it; false: it does not. */
static bool native_id(const struct py_objects *r, uint64_t thread, struct py_name_hints *hints, uint64_t *out)
{
    uint64_t number = py_attribute(r, thread, "_native_id", &hints->native);
    uint8_t bytes[64];
    uint32_t len = r->header + 20;

    return len <= sizeof bytes && py_object_bytes(r, number, bytes, len) && py_int_of(r, bytes, len, out);
}

bool py_thread_name(const struct py_names *n, uint64_t interpreter, uint64_t handle, uint32_t tid, struct buf *out, bool *proven)
{
    struct py_name_hints none = {0}, *hints = n->hints ? n->hints : &none;
    struct py_objects r;
    uint64_t id;

    *proven = false;
    if (!set_up(n, &r))
        return false;
    uint64_t dict = threading_of(&r, interpreter, hints);
    uint64_t thread = py_dict_item(&r, py_dict_item(&r, dict, "_active", 0, &hints->active), NULL, handle, &hints->thread);
    if (!thread || is_main_thread(&r, thread))
        return false;
    if (tid && native_id(&r, thread, hints, &id)) {
        if (id != tid)
            return false;
        *proven = true;
    }
    return put_name(n, &r, thread, hints, out);
}

bool py_main_thread_name(const struct py_names *n, uint64_t interpreter, struct buf *out)
{
    struct py_name_hints none = {0}, *hints = n->hints ? n->hints : &none;
    struct py_objects r;

    if (!set_up(n, &r))
        return false;
    uint64_t dict = threading_of(&r, interpreter, hints), thread = py_dict_item(&r, dict, "_main_thread", 0, &hints->main);
    if (!thread) {
        uint64_t method = py_dict_item(&r, dict, "_shutdown", 0, &hints->main);
        /* Behind its header a method has its function, and the object that it is a method of. */
        if (!method || !py_object_u64(&r, method + r.header + 8, &thread))
            return false;
    }
    return is_main_thread(&r, thread) && put_name(n, &r, thread, hints, out);
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
