/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects: read from a target's memory (pycap), turned into names and source positions (pysym).
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
 * It may read with process_vm_readv, from a copy that BPF made, or from a recorded address space.
 */
typedef bool (*py_read_fn)(void *ctx, uint64_t address, void *out, uint64_t len_bytes);

/* A string, or a table of bytes (form 1). `data` is borrowed. */
struct py_string {
    uint32_t form; /* 0: unreadable; 1, 2, 4: bytes a character (Latin-1, UCS-2, UCS-4); 8: bytes of unknown encoding */
    uint64_t len;  /* characters (of a table: bytes) in the target */
    const uint8_t *data;
    uint64_t len_bytes; /* of data; less than `len` needs where it was cut */
};

/* What we keep of a code object: the fields of a trace's CODE record. */
struct py_code {
    uint32_t python_version; /* PY_VERSION_HEX; the encoding of the line table depends on it */
    bool debug_build, free_threaded;
    int64_t first_line;      /* co_firstlineno */
    uint32_t co_flags;
    uint32_t code_len_bytes; /* of the bytecode; 0 when unknown */
    struct py_string name, qualname, filename, line_table;
};

struct py_code_limits {
    uint32_t string_max_bytes;     /* longer names are cut; the caller counts them */
    uint32_t line_table_max_bytes;
};

/*
 * Reads a code object through `read`. Strings and tables are put into `storage`, which is cleared first; *out points
 * into it. One that is longer than its limit is cut and keeps its full length; one that cannot be read has form 0.
 * False only when the object's own fields cannot be read.
 */
bool py_code_read(const struct py_layout *layout, py_read_fn read, void *ctx, uint64_t address,
                  const struct py_code_limits *limits, struct buf *storage, struct py_code *out);
/* Are all strings and tables that its version has there, in full length? */
bool py_code_complete(const struct py_code *code);

/* Was it read, in full length? */
bool py_string_complete(const struct py_string *s);

/*
 * Appends the str at `address` (in 2.7 a bytes object) to `out` as UTF-8, at most `max_bytes` of its own bytes. False
 * when it cannot be read or is not a str.
 */
bool py_string_read(const struct py_layout *layout, py_read_fn read, void *ctx, uint64_t address, uint32_t max_bytes,
                    struct buf *storage, struct buf *out);

#define PY_STRING_UNREADABLE "?"
/* Appends a name to `out` as UTF-8, lone surrogates as U+FFFD, and "…" if it was cut; PY_STRING_UNREADABLE if it is that. */
void py_string_text(const struct py_string *s, struct buf *out);

struct py_position {
    bool has_line, has_columns;
    int32_t line, end_line;      /* 1-based */
    int32_t column, end_column;  /* 0-based UTF-8 byte offsets, as CPython has them */
};
/*
 * The source position of the instruction at byte `offset` of the bytecode. *exact is false when the table does not say:
 * the offset is negative (before the first instruction), the instruction has no line, or the table is missing, cut
 * before it or of an unknown version. Then the line is the nearest one before it in the table, else co_firstlineno.
 */
struct py_position py_code_position(const struct py_code *code, int64_t offset, bool *exact);
/* The greatest line that an instruction has, as far as the table says; co_firstlineno at least, 0 if that is no line. */
int32_t py_code_last_line(const struct py_code *code);

#endif
