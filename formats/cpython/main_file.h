/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a program's main module, as the interpreter has it: what runs is told by it where the command line is gone. */
#ifndef FORMATS_CPYTHON_MAIN_FILE_H
#define FORMATS_CPYTHON_MAIN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/cpython/thread_name.h"

/* A longer path is not found. */
#define PY_MAIN_FILE_MAX_BYTES 4096

/*
 * Appends `__main__.__file__` to `out`, as UTF-8. The program may have set it to anything. False: it has none, as with -c, or
 * something on the way does not look as it should, since the target runs meanwhile.
 */
bool py_main_file(const struct py_names *n, uint64_t interpreter, struct buf *out);
/*
 * Whether the interpreter is a worker that multiprocessing began as a program of its own: the main module is the one that its
 * parent has, which it has imported as `__mp_main__`.
 */
bool py_main_is_of_parent(const struct py_names *n, uint64_t interpreter);

#endif
