/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ceiling for an output's size: a short trace may describe samples whose stacks fill a disk when they are written out.
 */
#ifndef SYMBOLIZE_OUTPUT_LIMIT_H
#define SYMBOLIZE_OUTPUT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"

struct output_limit {
    FILE *file; /* write to this one */
    /* private */
    FILE *to;
    uint64_t left_bytes, max_bytes;
    bool reached;
};

/* Lets `max_bytes` bytes through to `to`, which stays the caller's: whole lines only where it cuts. */
struct error *output_limit_open(FILE *to, uint64_t max_bytes, struct output_limit *out);
/* Flushes and closes. Returns `err`, or why the last bytes could not be written; the ceiling comes before both. */
struct error *output_limit_close(struct output_limit *l, struct error *err);

#endif
