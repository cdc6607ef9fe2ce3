/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects: from raw memory to facts (pycap), from facts to text (pysym).
 */
#ifndef FORMATS_CPYTHON_CODE_H
#define FORMATS_CPYTHON_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/cpython/layout.h"

/*
 * Reads `len_bytes` of the target's memory at `address`; false when any of it cannot be read.
 * The same shape serves BPF-copied memory, process_vm_readv and recorded address spaces.
 */
typedef bool (*py_read_fn)(void *ctx, uint64_t address, void *out, uint64_t len_bytes);

/* A string, or a table of bytes. `data` is borrowed. */
struct py_string {
    uint32_t form; /* 0: could not be read; 1, 2, 4: bytes a character (Latin-1, UCS-2, UCS-4); 8: bytes of unknown encoding */
    uint64_t len;  /* characters it has in the target; bytes of a table, whose form is 1 */
    const uint8_t *data;
    uint64_t len_bytes; /* of data; fewer than `len` is long where it was cut */
};

/* What is kept of a code object; the same as a CODE record of a trace says. */
struct py_code {
    uint32_t python_version; /* PY_VERSION_HEX: says how the line table is encoded */
    bool debug_build, free_threaded;
    int64_t first_line;      /* co_firstlineno */
    uint32_t co_flags;
    uint32_t code_len_bytes; /* of the bytecode; 0 when unknown */
    struct py_string name, qualname, filename, line_table;
};

struct py_code_limits {
    uint32_t string_max_bytes;     /* longer names are cut (and counted by the caller) */
    uint32_t line_table_max_bytes;
};

/*
 * Reads a code object through `read`. Everything variable lies in `storage`
 * (cleared first). What cannot be read is left as form 0; false only when the header itself cannot be read.
 * A string or table longer than the limit is cut, its full length kept.
 */
bool py_code_read(const struct py_layout *layout, py_read_fn read, void *ctx, uint64_t address,
                  const struct py_code_limits *limits, struct buf *storage, struct py_code *out);
/* Every part that code objects of its version have is there in full length. */
bool py_code_complete(const struct py_code *code);

/*
 * The str at `address` (a bytes object in 2.7) in UTF-8, appended to `out`; cut at so many bytes of its own. False when
 * it cannot be read or is none.
 */
bool py_string_read(const struct py_layout *layout, py_read_fn read, void *ctx, uint64_t address, uint32_t max_bytes,
                    struct buf *storage, struct buf *out);

/* A name in UTF-8 (lone surrogates as U+FFFD), appended to `out`; "…" appended where it was cut; "?" when unread. */
void py_string_text(const struct py_string *s, struct buf *out);

struct py_position {
    bool has_line, has_columns;
    int32_t line, end_line;      /* 1-based */
    int32_t column, end_column;  /* 0-based UTF-8 byte offsets, as CPython has them */
};
/*
 * The source position of the instruction at byte `offset`, by the encoding of code->python_version. Before the
 * first instruction (negative offset), with no line for the instruction, or where the table is missing, cut before
 * it, or of a version that is not known: the nearest line before it in the table, else co_firstlineno; then `exact`
 * is false.
 */
struct py_position py_code_position(const struct py_code *code, int64_t offset, bool *exact);

#endif
