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
    uint32_t module, active, main, attribute, native; /* the entry, counted from 1; 0: unknown */
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
 *
 * A handle is reused as soon as its thread has ended. From 3.8 on a Thread knows the kernel's number of its thread: where
 * it is not `tid`, which is as the process counts, the name is another thread's, and nothing is found. Sets *proven when
 * it is; else (`tid` is 0, or the Thread does not know) the name is right if the thread is still there after the call.
 *
 * Neither is it found when it is the main thread's: other threads than the process's first are none, whatever their
 * interpreter calls the one that it was begun in.
 */
bool py_thread_name(const struct py_names *n, uint64_t interpreter, uint64_t handle, uint32_t tid, struct buf *out, bool *proven);

/*
 * The same for the process's first thread: threading.main_thread().name in the main interpreter, `interpreter`. No table
 * is asked for its handle: gevent puts another key there. False, too, where threading takes the thread that has forked
 * for the main thread: its name is of a thread that is not in this process.
 */
bool py_main_thread_name(const struct py_names *n, uint64_t interpreter, struct buf *out);

/* Appends a task's name, from the first bytes of the name object (struct wire_sample). False: the object is not a name. */
bool py_task_name(const struct py_names *n, const uint8_t *object, uint32_t len_bytes, struct buf *out);

#endif
