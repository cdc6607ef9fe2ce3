/* SPDX-License-Identifier: Apache-2.0 */
/* How much room unwind tables would have taken at once, and which had none. Equal ones count once. */
#ifndef CAPTURE_BINARY_TABLE_WANTS_H
#define CAPTURE_BINARY_TABLE_WANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/map.h"

#define TABLES_LEFT_OUT 3

/* The largest that had no room, largest first. */
struct table_left_out {
    char *name; /* of the file; NULL: there are no more */
    uint64_t words;
    bool more; /* at least */
};

/* {0} has none. */
struct table_wants {
    struct map lacking;      /* how many tables lack room, by hash */
    uint64_t lacking_words;  /* of these, now */
    uint64_t most, most_had; /* words that were wanted at once, and of these those that had room */
    struct table_left_out left_out[TABLES_LEFT_OUT];
};

void table_wants_deinit(struct table_wants *w);
/* A table of so many words, or `more`, lacks room, while others have `had` words. */
void table_wants_lack(struct table_wants *w, uint64_t hash, uint64_t words, uint64_t had, const char *path, bool more);
/* It does not any more: it has room, or nobody wants it. */
void table_wants_forget(struct table_wants *w, uint64_t hash, uint64_t words);

#endif
