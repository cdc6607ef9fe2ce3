/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that Python gives: of a thread (threading.Thread.name), of an asyncio task.
 */
#ifndef FORMATS_CPYTHON_THREAD_NAME_H
#define FORMATS_CPYTHON_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/cpython/code.h"
#include "formats/cpython/layout.h"

/* Longer names are cut there. */
#define PY_THREAD_NAME_MAX_BYTES 1024

/* Where in their dicts the keys on the way to a name were found: they rarely move. {0}: not known. Each is checked. */
struct py_name_hints {
    uint32_t module, active, attribute; /* entry + 1 */
};

struct py_names {
    const struct py_layout *layout;
    uint64_t str_type, int_type; /* addresses in the target; struct py_image has them. 0: nothing is found */
    py_read_fn read;
    void *ctx;
    struct buf *storage; /* scratch */
    struct py_name_hints *hints; /* of the process, in and out; NULL: none are kept */
};

/*
 * The name of the thread whose pthread handle is `handle`, by what the module threading of an interpreter has in
 * memory: appended to `out` in UTF-8. False when threading does not know the thread, or anything on the way there does
 * not look as it should: the target runs meanwhile. A name that changes just then may come out as neither of the two;
 * who reads a running process reads twice.
 */
bool py_thread_name(const struct py_names *n, uint64_t interpreter, uint64_t handle, struct buf *out);

/* The text of a task's name, given the beginning of the object (struct wire_sample). False when it is none. */
bool py_task_name(const struct py_names *n, const uint8_t *object, uint32_t len_bytes, struct buf *out);

#endif
