/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF 4 for a code image: which file and line each address stands for.
 *
 * A compile unit is a source file. Its functions lie where they were met, between those of other files, so a unit has a
 * list of ranges; each function has a sequence of its own in the unit's line program. Readers that have no use for
 * functions (libdw in hotspot) go from .debug_aranges to the unit to its line program, others (binutils, which perf runs
 * as addr2line and objdump) from the unit's ranges.
 */
#ifndef FORMATS_EMIT_PERF_DATA_CODE_DWARF_H
#define FORMATS_EMIT_PERF_DATA_CODE_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/limits.h"

/* Addresses from this one on, up to the next one's or the end of the symbol, are of a line. */
struct code_line {
    uint32_t address;
    uint32_t file; /* CODE_NO_FILE: none, and no line either */
    uint32_t line; /* 0: none; at most INT32_MAX: one that is greater makes libdw give up all lines of the file */
};
#define CODE_NO_FILE UINT32_MAX

/* A run of addresses that belongs to a function. Symbols do not overlap, and their addresses ascend. */
struct code_symbol {
    const char *name;
    uint32_t start, end;
    uint32_t file;  /* that it is written in; CODE_NO_FILE: it has no lines */
    uint32_t line;  /* where the function begins; 0 unknown */
    bool is_python; /* else C or the like */
    size_t line_first, line_count; /* its lines, by ascending address */
};

struct code_map {
    const struct code_symbol *symbols;
    size_t symbol_count;
    const struct code_line *lines;
    const char *const *files; /* paths by number; valid for a terminal */
    uint32_t file_count;
};

/* Sections without the ".debug_" of their names. */
struct code_dwarf {
    struct buf abbrev, info, line, aranges, ranges, str;
    struct limits *limits; /* borrowed */
    uint64_t taken_bytes;  /* from the limits */
};

/*
 * Encodes the map into `out`, which is {.limits = ...} before; the caller deinits it, also after an error. The sections'
 * memory counts in the limits.
 */
struct error *code_dwarf_encode(const struct code_map *map, struct code_dwarf *out);
void code_dwarf_deinit(struct code_dwarf *dwarf);

#endif
