/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects of an epoch, as formats/cpython/code.h reads names and lines out of them. */
#ifndef SYMBOLIZE_TRACE_EPOCH_CODE_H
#define SYMBOLIZE_TRACE_EPOCH_CODE_H

#include "formats/cpython/code.h"
#include "symbolize/trace/epoch.h"

/* Borrows what the epoch has of it. Code 0 is one of which nothing could be read. */
struct py_code epoch_code(const struct epoch *e, uint32_t code);
/* The qualified name, where there is one. */
static inline const struct py_string *epoch_code_name(const struct py_code *code)
{
    return code->qualname.form ? &code->qualname : &code->name;
}
/* Where an instruction is in the source; `at` as in epoch_frame. It has no line if that is not known, and columns only with a line. */
struct py_position epoch_position(const struct py_code *code, int64_t at);

#endif
