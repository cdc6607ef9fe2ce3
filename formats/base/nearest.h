/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody probably meant by a mistyped word: of some names the one that begins with it, or differs from it by at
 * most two letters.
 */
#ifndef FORMATS_BASE_NEAREST_H
#define FORMATS_BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word; /* not terminated; it has to outlive the search */
    size_t len;
    const char *name; /* the nearest so far, one of those passed to nearest_consider(); NULL: none is near */
    size_t letters;   /* by which it differs */
};

/* Begins a search for what the `len` bytes of `word` may mean. */
struct nearest nearest_to(const char *word, size_t len);

/* Keeps `name` if it is nearer than those before. Words and names of more than 24 bytes are near to none. */
void nearest_consider(struct nearest *n, const char *name);

#endif
