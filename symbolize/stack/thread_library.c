/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the outside a stack has clone3 and start_thread of the C library, what C++'s std::thread or a closure of libffi puts in
 * between, then the function that the thread was made for.
 */
#include "symbolize/stack/thread_library.h"

#include <string.h>

#include "formats/base/path.h"
#include "symbolize/stack/interpreter_names.h"

#define WHEEL_HASH_LEN 8 /* of what auditwheel adds to names: libgomp-24e2ab19.so */

/* Whether threads of others begin in that library. */
static bool is_between(const char *path)
{
    static const char *const names[] = {"libstdc++.so", "libstdc++-", "libc++.so", "libgcc_s", "libffi", "_ctypes."};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strncmp(path_base(path), names[i], strlen(names[i])))
            return true;
    }
    return path_owner(path) == MERGE_OWNER_C_LIBRARY;
}

static void put_library(const char *path, struct buf *out)
{
    const char *name = path_base(path);
    size_t len = *name ? 1 + strcspn(name + 1, ".") : 0;

    if (len > WHEEL_HASH_LEN + 1 && name[len - WHEEL_HASH_LEN - 1] == '-' &&
        strspn(name + len - WHEEL_HASH_LEN, "0123456789abcdef") >= WHEEL_HASH_LEN)
        len -= WHEEL_HASH_LEN + 1;
    while (len > 1 && name[len - 1] == '_') /* libscipy_openblas64_ */
        len--;
    buf_put(out, name, len);
}

enum thread_origin thread_origin_of(const struct epoch *e, uint32_t process, const uint32_t *frames, uint32_t count, struct buf *out)
{
    const struct epoch_process *p = &e->processes.data[process];

    for (uint32_t i = 0; i < count; i++) {
        const struct epoch_frame *frame = &e->frames.data[frames[i]];
        if (frame->type != TRACE_native_frame || !frame->ref)
            return THREAD_ORIGIN_UNKNOWN;
        const struct trace_module *module = &e->modules.data[frame->ref].def;
        const char *path = epoch_text(e, module->path);
        if (module->kind != TRACE_MODULE_ELF || frame->ref == p->interpreter || module->eval_ranges.count || !*path_base(path) ||
            !strcmp(path, epoch_text(e, p->def.exe)) || path_owner(path) == MERGE_OWNER_INTERPRETER)
            return THREAD_ORIGIN_PROGRAM;
        if (is_between(path))
            continue;
        put_library(path, out);
        return THREAD_ORIGIN_LIBRARY;
    }
    return THREAD_ORIGIN_UNKNOWN;
}
