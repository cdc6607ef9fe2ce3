/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one file that have the same name, as methods do before CPython 3.11: which of the old are which of the new. */
#ifndef FORMATS_COMPARE_MATCH_REPEATED_H
#define FORMATS_COMPARE_MATCH_REPEATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct repeated {
    uint32_t first_line;
    uint64_t fingerprint; /* 0: not known */
    uint32_t partner;     /* result: index on the other side; REPEATED_NONE */
};
#define REPEATED_NONE UINT32_MAX

/*
 * Both lists are in order of first_line, each line once. First those on the same line that may be the same code, then those
 * whose code no other has; then what lies between two of these, in order, where it is as many on both sides. False: out of
 * memory.
 */
bool match_repeated(struct repeated *old, size_t old_count, struct repeated *new, size_t new_count);

#endif
