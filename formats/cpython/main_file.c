/* SPDX-License-Identifier: Apache-2.0 */
/* The way there: the interpreter's sys.modules, the module's dict, its `__file__`, which is to be a str. */
#include "formats/cpython/main_file.h"

#include <string.h>

#include "formats/cpython/objects.h"

/* Finds a module in sys.modules; 0: it is not there. */
static uint64_t find_module(const struct py_names *n, uint64_t interpreter, const char *name, struct py_objects *r)
{
    uint64_t modules;

    *r = (struct py_objects){
        .layout = n->layout, .str_type = n->str_type, .int_type = n->int_type, .read = n->read, .ctx = n->ctx};
    if (!py_objects_begin(r) || !interpreter || !py_object_u64(r, interpreter + n->layout->interp_modules, &modules))
        return 0;
    return py_dict_item(r, modules, name, 0, NULL);
}

/* Appends a str of the main module, such as its __file__, of fewer than PY_MAIN_FILE_MAX_BYTES; false: there is none. */
static bool put_of_main(const struct py_names *n, uint64_t interpreter, const char *attribute, struct buf *out)
{
    size_t before = out->len_bytes;
    struct py_objects r;
    uint64_t dict, type, module = find_module(n, interpreter, "__main__", &r);

    /* Behind its header a module object has its dict. */
    if (!module || !py_object_u64(&r, module + r.header, &dict))
        return false;
    uint64_t text = py_dict_item(&r, dict, attribute, 0, NULL);
    if (!text || !py_object_u64(&r, text + n->layout->code_type, &type) || type != n->str_type)
        return false;
    return py_string_read(n->layout, n->read, n->ctx, text, PY_MAIN_FILE_MAX_BYTES, n->storage, out) &&
           out->len_bytes > before && out->len_bytes - before < PY_MAIN_FILE_MAX_BYTES;
}

bool py_main_file(const struct py_names *n, uint64_t interpreter, struct buf *out)
{
    return put_of_main(n, interpreter, "__file__", out);
}

bool py_main_is_of_parent(const struct py_names *n, uint64_t interpreter)
{
    struct buf name = {0};
    /* sys.modules has "__mp_main__" wherever multiprocessing was imported: there it is another name of the main module. */
    bool is_so = put_of_main(n, interpreter, "__name__", &name) && !strcmp(buf_cstr(&name), "__mp_main__");

    buf_deinit(&name);
    return is_so;
}
