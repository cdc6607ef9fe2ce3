/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a count, without overflow. */
#ifndef FORMATS_BASE_PROPORTION_H
#define FORMATS_BASE_PROPORTION_H

#include <stdint.h>

/* As much of `count` as `part` is of `whole`, rounded up; all of it where `part` is not less than `whole`. */
static inline uint64_t proportion_up(uint64_t count, uint64_t part, uint64_t whole)
{
    return part < whole ? (uint64_t)(((unsigned __int128)count * part + whole - 1) / whole) : count;
}

#endif
