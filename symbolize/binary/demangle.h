/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions as their authors wrote them: C++ and Rust through libiberty, Cython, mypyc and PyO3 by their own
 * rules. A symbol may be anybody's: the work is linear in its length, and what libiberty makes of it is limited.
 */
#ifndef SYMBOLIZE_BINARY_DEMANGLE_H
#define SYMBOLIZE_BINARY_DEMANGLE_H

#include <stdbool.h>

#include "formats/base/buf.h"

/*
 * A call from Python may pass through several functions that have one name when it is demangled, from the outermost: what
 * converts the arguments, the function as Python sees it, and the function as C calls it.
 */
enum demangle_layer { DEMANGLE_NO_LAYER, DEMANGLE_WRAPPER, DEMANGLE_PYTHON_FUNCTION, DEMANGLE_C_FUNCTION };

/*
 * Puts the name into `out`, which is cleared first, without the NUL; *layer is set. False: the symbol is shown as it is.
 * If memory runs out, `out` is bad.
 */
bool demangle(const char *symbol, struct buf *out, enum demangle_layer *layer);

#endif
