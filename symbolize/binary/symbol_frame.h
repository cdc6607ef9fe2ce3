/* SPDX-License-Identifier: Apache-2.0 */
/* A function at an address, as symbol tables and DWARF name it. */
#ifndef SYMBOLIZE_BINARY_SYMBOL_FRAME_H
#define SYMBOLIZE_BINARY_SYMBOL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/binary/demangle.h"

struct symbol_frame {
    const char *function; /* demangled; "" when unknown. Owned by `struct symbols`, lives as long */
    const char *file;     /* "" when unknown */
    uint32_t line, column;
    uint64_t offset;      /* bytes from the start of the function */
    bool inlined;         /* into the next one */
    enum demangle_layer layer;
};

#endif
