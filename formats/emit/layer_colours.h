/* SPDX-License-Identifier: Apache-2.0 */
/* The colours of Python, native and kernel functions on a terminal, the same in every output for people. */
#ifndef FORMATS_EMIT_LAYER_COLOURS_H
#define FORMATS_EMIT_LAYER_COLOURS_H

#include "formats/base/buf.h"
#include "formats/emit/emit.h"

/* What begins the colour of a kind of frame, and what ends it; "" where the output has no colours. Marks are faint. */
static inline const char *layer_colour(const struct emit_terminal *terminal, enum emit_frame_kind kind)
{
    static const char *const codes[] = {
        [EMIT_PYTHON] = "\033[36m", [EMIT_NATIVE] = "\033[33m", [EMIT_KERNEL] = "\033[35m", [EMIT_MARK] = "\033[2m"};

    return terminal->colours ? codes[kind] : "";
}

static inline const char *layer_colour_end(const struct emit_terminal *terminal)
{
    return terminal->colours ? "\033[0m" : "";
}

/* Appends the legend: "Python, native, kernel", each in its colour. */
static inline void layer_colours_put(const struct emit_terminal *terminal, struct buf *out)
{
    static const char *const names[] = {[EMIT_PYTHON] = "Python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel"};

    for (enum emit_frame_kind kind = EMIT_PYTHON; kind <= EMIT_KERNEL; kind++)
        buf_printf(out, "%s%s%s%s", kind == EMIT_PYTHON ? "" : ", ", layer_colour(terminal, kind), names[kind],
                   layer_colour_end(terminal));
}

#endif
