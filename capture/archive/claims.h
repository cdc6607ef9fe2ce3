/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses one of the files that claim to be the same module. A build ID is what a file says of itself: anybody can copy
 * a library, change its symbols and let a program run in the copy. In the archive the copy would stand for the library,
 * also in the stacks of others, since pysym looks a binary up by its build ID.
 *
 * So a file is taken if all that claim the build ID have the same contents. If not, the one that root vouches for is
 * taken: root owns it and nobody else may write to it. If there is none, or two that differ, none is taken.
 */
#ifndef CAPTURE_ARCHIVE_CLAIMS_H
#define CAPTURE_ARCHIVE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "capture/archive/allowance.h"

/* The first of the files that root vouches for, or of the others. */
struct claim {
    int fd;           /* owned; -1: there is none */
    uint32_t place;   /* the caller's number of it */
    struct stat st;
    bool contested;   /* another one has other contents */
    uint32_t rival;   /* which one */
};
struct claims {
    struct claim vouched, other;
    struct allowance *compared; /* borrowed: how much may be read to compare. What cannot be compared counts as different */
    uint64_t size_bytes;        /* that the first claim was said to have; 0: not known */
    bool sizes_differ;          /* another was said to have another size */
    uint32_t size_place, size_rival;
};

void claims_init(struct claims *c, struct allowance *compared);
void claims_deinit(struct claims *c);
/* Whether a file is one of those held open. */
bool claims_have(const struct claims *c, int fd);
/* Takes over `fd`, found at place number `place`. */
void claims_add(struct claims *c, int fd, uint32_t place);
/* Notes the size of a file that may be gone, 0: not known. One of another size has other contents. */
void claims_expect(struct claims *c, uint64_t size_bytes, uint32_t place);
/*
 * The claim to take, or NULL: there are none, or it cannot be told which is right. Of two that differ, stores the places
 * in `*one` and `*another`, and sets `*contested`; a claim may be returned nevertheless.
 */
const struct claim *claims_choose(const struct claims *c, bool *contested, uint32_t *one, uint32_t *another);

/*
 * Whether a file may say what is in a binary of `owner` that root vouches for or not: it is root's or the owner's, and
 * nobody else may write to it.
 */
bool claims_may_describe(const struct claim *binary, int fd);

#endif
