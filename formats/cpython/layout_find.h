/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the layout of an interpreter (layout.h) from its version: the row of versions.def, and from 3.13 on the numbers
 * that the interpreter itself publishes.
 */
#ifndef FORMATS_CPYTHON_LAYOUT_FIND_H
#define FORMATS_CPYTHON_LAYOUT_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/cpython/layout.h"

/*
 * `version_hex` is PY_VERSION_HEX. `debug_offsets` are the first `debug_offsets_len` bytes of _PyRuntime, from memory or
 * from the file; NULL will do up to 3.12. ERROR_VERSION, with the version in its text, when versions.def does not have
 * the version, when it was never released, or when the debug offsets do not fit it.
 */
struct error *py_layout_find(uint32_t version_hex, bool debug_build, const void *debug_offsets,
                             uint32_t debug_offsets_len, struct py_layout *out);

/* Clears what the frame walk does not look at: which version of those with the same fields it is, and how that was built. */
void py_layout_of_walk(struct py_layout *layout);
/* Stores the layout of row `index` of versions.def, as py_layout_of_walk() leaves it; false: there are no more. */
bool py_layout_row(uint32_t index, struct py_layout *out);

#endif
