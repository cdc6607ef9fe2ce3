/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the program gave: a thread's (threading.Thread.name), an asyncio task's.
 */
#ifndef FORMATS_CPYTHON_THREAD_NAME_H
#define FORMATS_CPYTHON_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/cpython/code.h"
#include "formats/cpython/layout.h"

/* Longer names are cut. */
#define PY_THREAD_NAME_MAX_BYTES 1024

/* Where in their dicts the keys on the way to a name were found last: they rarely move. Each is checked before use. */
struct py_name_hints {
    uint32_t module, active, attribute; /* the entry, counted from 1; 0: unknown */
    uint32_t thread; /* of the thread before: the next one that is asked for lies near, where all are asked for in turn */
};

struct py_names {
    const struct py_layout *layout;
    uint64_t str_type, int_type; /* addresses in the target, from struct py_image; without them nothing is found */
    py_read_fn read;
    void *ctx;
    struct buf *storage; /* scratch */
    struct py_name_hints *hints; /* of the process, read and updated; NULL: keep none */
};

/*
 * Appends to `out`, as UTF-8, the name that the interpreter's module threading has for the thread with the pthread
 * handle `handle`. False when threading does not know the thread, or something on the way does not look as it should,
 * since the target runs meanwhile. While a name is being changed, a mixture of old and new may be read: read twice.
 */
bool py_thread_name(const struct py_names *n, uint64_t interpreter, uint64_t handle, struct buf *out);

/* Appends a task's name, from the first bytes of the name object (struct wire_sample). False: the object is not a name. */
bool py_task_name(const struct py_names *n, const uint8_t *object, uint32_t len_bytes, struct buf *out);

#endif
