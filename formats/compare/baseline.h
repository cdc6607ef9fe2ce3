/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baseline files: runs as tables of counts, kept to judge later ones by (docs/baseline-format.md). A file has no samples, so
 * it stays small, and no name of the host.
 *
 * Files are merged by reading several into one set. The same runs in the same order give the same bytes.
 */
#ifndef FORMATS_COMPARE_BASELINE_H
#define FORMATS_COMPARE_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/compare/run_set.h"

enum {
    BASELINE_MAX_BYTES = 1 << 20,       /* of what is written */
    BASELINE_READ_MAX_BYTES = 1 << 24,  /* of what is read; others may write more */
    BASELINE_MAGIC_BYTES = 8,
};

/* What became of the runs, for the message. */
struct baseline_written {
    uint64_t len_bytes;
    /*
     * So that the file fits, nodes, lines and then functions are left out that have fewer samples in each run; 0: all is
     * there. What is left keeps its values: the time of what was left out is still in the totals of its callers.
     */
    double least_samples;
    uint64_t left_out; /* nodes, lines and functions */
};

/* Does a file begin as a baseline does? */
bool baseline_has_magic(const uint8_t *data, size_t len_bytes);
/* Appends all runs of the set. ERROR_LIMIT: they do not fit into `max_bytes`, whatever is left out. */
struct error *baseline_encode(const struct run_set *set, uint64_t max_bytes, struct buf *out, struct baseline_written *what);
/* The same to a file, in BASELINE_MAX_BYTES. The caller checks and closes `out`. */
struct error *baseline_write(const struct run_set *set, FILE *out, struct baseline_written *what);
/* Adds the runs of a baseline. Errors are about `path`, which may be any name. Limits are those of the set. */
struct error *baseline_decode(const char *path, const void *data, size_t len_bytes, struct run_set *into);
struct error *baseline_read(const char *path, struct run_set *into);

#endif
