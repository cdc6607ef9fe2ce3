/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a notebook's cells (nbformat 4: a JSON file), by the hash that the kernel names their code after
 * (formats/base/code_file.h): of a cell whose text has changed since, nothing is found.
 *
 * The kernel numbers the lines of a cell from the first one that is not empty on. What a cell magic on its first line runs,
 * such as %%capture, is a text of its own.
 */
#ifndef SYMBOLIZE_SOURCE_NOTEBOOK_H
#define SYMBOLIZE_SOURCE_NOTEBOOK_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

/* Larger ones are refused, and those that would take much memory when they are read. */
#define NOTEBOOK_MAX_BYTES (UINT64_C(64) << 20)
#define NOTEBOOK_MAX_VALUES 4000000

struct notebook_cell {
    uint32_t hash, number; /* the code cells of a notebook are numbered from 1 on, as they stand in it */
    char *text;            /* UTF-8 without a 0 byte; owned */
    size_t len_bytes;
    const char *notebook;  /* the path as given; borrowed */
};

struct notebooks {
    VEC(struct notebook_cell) cells;
};

/* Whether a place of --source is to be read as a notebook, by its name. */
bool notebook_is(const char *path);
/* Adds the cells of the file at `path`, which must outlive `n`. */
struct error *notebooks_add(struct notebooks *n, const char *path);
/* The same, of a file's contents, which are changed where they are no JSON, but what Python's json writes. */
struct error *notebooks_parse(struct notebooks *n, const char *path, struct buf *json);
/* NULL: no cell has that hash. Of several equal ones the first. */
const struct notebook_cell *notebooks_find(const struct notebooks *n, uint32_t hash);
void notebooks_deinit(struct notebooks *n);

#endif
