/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a pprof profile: strings, functions, mappings and locations. Each entry is added once, however often it
 * is used, and ids count 1, 2, 3 in the order of first use (strings from 0, which is ""). Some readers refuse gaps.
 *
 * The fields and what they mean: profile.proto of github.com/google/pprof.
 *
 * Functions that return a number return PPROF_NONE when memory ran out, or a limit was reached.
 */
#ifndef FORMATS_EMIT_PPROF_TABLES_H
#define FORMATS_EMIT_PPROF_TABLES_H

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/gzip.h"

#define PPROF_NONE UINT32_MAX

/*
 * A loadable segment of a binary, or what else code belongs to. What is known of its functions says whether pprof and
 * the stores of profiles will look for names themselves: they do only for a mapping that has none at all.
 */
struct pprof_mapping {
    uint32_t file, build_id; /* strings */
    uint64_t start, limit, offset; /* of whole pages: virtual addresses of the file, and `start`'s offset in it */
    bool has_functions, has_files, has_lines, has_inlined;
};

struct pprof_function {
    uint32_t name, file; /* strings */
    uint32_t start_line; /* 0: unknown */
};

struct pprof_line {
    uint32_t function;
    uint32_t line, column; /* 0: unknown */
};

struct pprof_tables {
    const struct emit_model *model; /* borrowed, like the limits */
    struct limits *limits;
    struct intern strings, functions, locations; /* the entries but their ids, encoded */
    VEC(struct pprof_mapping) mappings;          /* by id - 1 */
    uint64_t len_bytes;                          /* of all, as they are written, or a little less */
    struct map binaries; /* index in the model << 32 | segment -> id */
    struct map names;    /* string, of those that are no binary of the model -> id */
    struct buf scratch, line;
};

struct error *pprof_tables_init(struct pprof_tables *t, const struct emit_model *model, struct limits *limits);
void pprof_tables_deinit(struct pprof_tables *t);

/* `text` must be valid UTF-8. */
uint32_t pprof_string(struct pprof_tables *t, const struct buf *text);
/* The text as name_plain() makes it (formats/emit/names.h). */
uint32_t pprof_plain_string(struct pprof_tables *t, const char *text);
/* Appends a name as stores take those of events and labels: of letters, digits and '_'. */
void pprof_put_word(const char *name, struct buf *out);
uint32_t pprof_function(struct pprof_tables *t, const struct pprof_function *function);
/* A mapping without addresses, such as "[python]". */
uint32_t pprof_named_mapping(struct pprof_tables *t, const char *name);
/*
 * The mapping of code at an offset in a binary of the model, and the virtual address there, as the file's program headers
 * have it: processes map a binary to different places, and profiles of several processes shall have one mapping.
 */
uint32_t pprof_binary(struct pprof_tables *t, uint32_t mapping, uint64_t offset, uint64_t *address);
/* The binary's mapping for its code, without an address in it. */
uint32_t pprof_program(struct pprof_tables *t, uint32_t mapping);
/* A location with its functions, the innermost inlined one first. Without lines its functions are not known. */
uint32_t pprof_location(struct pprof_tables *t, uint32_t mapping, uint64_t address, const struct pprof_line *lines,
                        size_t line_count);

/* Writes mappings, locations, functions and, at last, strings: no entry can be added after that. */
struct error *pprof_tables_write(struct pprof_tables *t, struct gzip *out);

#endif
