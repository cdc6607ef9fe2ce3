/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flight recorder keeps: the newest part of a trace, in memory, as the blocks in which the writer would have put it
 * into a file.
 *
 * Blocks belong to parts, each of which can be read without the others. Whole parts are dropped, the oldest first. A file
 * is written from the oldest part on, a block at a time, while further blocks are added; no part is dropped of which the
 * file still lacks a block.
 */
#ifndef CAPTURE_SESSION_FLIGHT_STORE_H
#define CAPTURE_SESSION_FLIGHT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flight_store;

/* NULL: out of memory. */
struct flight_store *flight_store_create(void);
void flight_store_destroy(struct flight_store *f);

/* Begins the first or next part, with what follows `time_ns`. False: out of memory. */
bool flight_store_begin(struct flight_store *f, uint64_t time_ns);
/* Adds a block to the newest part; copies it. False: out of memory. */
bool flight_store_add(struct flight_store *f, const void *data, size_t len_bytes);
/* Says what the newest part holds: samples, and how many are missing in it. */
void flight_store_count(struct flight_store *f, uint64_t samples, uint64_t lost);

/* Drops parts without which the newest ones still reach back to `since_ns`. */
void flight_store_drop_before(struct flight_store *f, uint64_t since_ns);
/* Drops the oldest parts until no more than `most_bytes` are left, or the newest part, which always stays. */
void flight_store_drop_above(struct flight_store *f, uint64_t most_bytes);

/* When the oldest part that is kept, and the newest one, began; 0: there is none. */
uint64_t flight_store_since_ns(const struct flight_store *f);
uint64_t flight_store_part_ns(const struct flight_store *f);
/* Bytes of all blocks; of those of the newest part. */
uint64_t flight_store_bytes(const struct flight_store *f);
uint64_t flight_store_part_bytes(const struct flight_store *f);

/* Begins to write a file: flight_store_next() returns all blocks from the oldest on, also those that are added meanwhile. */
void flight_store_write(struct flight_store *f);
/* The next block of the file; false: it has all that there are so far. `*data` lives until the store changes. */
bool flight_store_next(struct flight_store *f, const void **data, size_t *len_bytes);
/* The file has all that it is to have; `samples` and `lost` get the sums of its parts. */
void flight_store_written(struct flight_store *f, uint64_t *samples, uint64_t *lost);

#endif
