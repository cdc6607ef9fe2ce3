/* SPDX-License-Identifier: Apache-2.0 */
/* Square roots, as errors are roots of variances. Without libm. */
#ifndef FORMATS_BASE_SQUARE_ROOT_H
#define FORMATS_BASE_SQUARE_ROOT_H

#include <stdint.h>

/* Rounded down; UINT64_MAX where it does not fit, 0 of what is negative or no number. */
static inline uint64_t square_root(double square)
{
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << 63; bit; bit >>= 1) {
        double next = (double)(root | bit);
        root |= next * next <= square ? bit : 0;
    }
    return root;
}

#endif
