/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/trace/epoch_code.h"

#include "formats/cpython/version.h"

static struct py_string string_of(uint32_t form, uint64_t len, struct trace_bytes data)
{
    return (struct py_string){form, len, data.data, data.len_bytes};
}

struct py_code epoch_code(const struct epoch *e, uint32_t code)
{
    const struct trace_code *r = &e->codes.data[code];

    return (struct py_code){
        .python_version = r->python_version,
        .debug_build = r->python_flags & TRACE_CODE_DEBUG,
        .free_threaded = r->python_flags & TRACE_CODE_FREE_THREADED,
        .first_line = r->first_line,
        .co_flags = r->co_flags,
        .code_len_bytes = r->code_len_bytes,
        .name = string_of(r->name_form, r->name_len, r->name),
        .qualname = string_of(r->qualname_form, r->qualname_len, r->qualname),
        .filename = string_of(r->filename_form, r->filename_len, r->filename),
        .line_table = string_of(r->line_table_form, r->line_table_len, r->line_table),
    };
}

/*
 * Whether the line of an instruction can be told. The table of a version that is not known cannot be read, and the last line of
 * one that was cut says nothing about what lies behind. Before 0.2 a frame whose instruction was not known had the offset -1, at
 * which from 3.11 on no instruction lies.
 */
static bool has_line(const struct py_code *code, int64_t at, bool exact)
{
    const struct py_behaviour *version = py_behaviour_of(code->python_version);

    if (!version || at == EPOCH_AT_UNKNOWN || (at == -1 && version->lines == PY_LINES_LOCATIONS))
        return false;
    return at < 0 || exact || (code->line_table.form && code->line_table.len_bytes >= code->line_table.len);
}

struct py_position epoch_position(const struct py_code *code, int64_t at)
{
    bool exact;
    struct py_position position = py_code_position(code, at, &exact);

    return has_line(code, at, exact) ? position : (struct py_position){0};
}
