/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of offsets with which _PyRuntime begins since 3.13 (struct _Py_DebugOffsets): the interpreter's own
 * description of its structures. `offsets` are the first `len_bytes` bytes of _PyRuntime, from memory or from the file;
 * they may be NULL, and are not trusted.
 */
#ifndef FORMATS_CPYTHON_DEBUG_OFFSETS_H
#define FORMATS_CPYTHON_DEBUG_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/cpython/layout.h"

/*
 * Sets *free_threaded; false without a table. ERROR_VERSION when the table is another version's, or when it is missing
 * and this version must have one (debug_offsets.def lists it).
 */
struct error *py_debug_offsets_flavour(uint32_t version_hex, const void *offsets, uint32_t len_bytes,
                                       bool *free_threaded);

/*
 * Overwrites fields of `layout`, a row of versions.def with its version set, with the interpreter's numbers. Does
 * nothing for a version without such a table. ERROR_VERSION when the numbers cannot be right.
 */
struct error *py_debug_offsets_apply(const void *offsets, uint32_t len_bytes, struct py_layout *layout);

#endif
