/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much an archive takes of the files of each user, so that nobody makes it fill the disk or run for hours: sparse
 * and shared files cost their owner nothing. Larger than all that one program has of native code.
 */
#ifndef CAPTURE_ARCHIVE_ALLOWANCE_H
#define CAPTURE_ARCHIVE_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/vec.h"

#define ALLOWANCE_OWNER_BYTES (UINT64_C(8) << 30) /* of the files of one user other than root */
#define ALLOWANCE_ALL_BYTES (UINT64_C(32) << 30)  /* of root's; and of those of all others together */

struct allowance_use {
    uid_t owner;
    uint64_t bytes;
};
struct allowance {
    uint64_t owner_bytes_max, all_bytes_max;
    uint64_t root_bytes, others_bytes;
    VEC(struct allowance_use) owners;
};

/* The limit for one owner in bytes, 0: the usual one. */
void allowance_init(struct allowance *a, uint64_t owner_bytes_max);
void allowance_deinit(struct allowance *a);
/* Takes so many bytes of a file of `owner`. False: that would be too much, and nothing is taken. */
bool allowance_take(struct allowance *a, uid_t owner, uint64_t len_bytes);

#endif
