/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers by which the sampler knows files with unwind tables: indexes into an array of its own, so there are only so many. A
 * file keeps its number until that is taken from it, when no process that is sampled maps it any more.
 */
#ifndef CAPTURE_BINARY_TABLE_NUMBERS_H
#define CAPTURE_BINARY_TABLE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/vec.h"

#define TABLE_NUMBER_NONE UINT32_MAX /* as WIRE_MODULE_NONE */

/* {0} with `max` set has none. */
struct table_numbers {
    VEC(uint32_t) of_file; /* by index of the file; TABLE_NUMBER_NONE: it has none */
    VEC(uint32_t) free;
    uint32_t count, max; /* of numbers that were ever given; that there are */
    uint64_t lacked;     /* how often there was none */
};
void table_numbers_deinit(struct table_numbers *n);
/* The number of a file, which gets one when it is first asked for; TABLE_NUMBER_NONE: there is none left. False: out of memory. */
bool table_numbers_find(struct table_numbers *n, uint32_t file, uint32_t *number, bool *added);
/* The file has no number any more; another one may get it. */
void table_numbers_release(struct table_numbers *n, uint32_t file);

#endif
