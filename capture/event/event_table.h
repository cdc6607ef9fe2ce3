/* SPDX-License-Identifier: Apache-2.0 */
/* Events that have a name of their own: a table of rows, and perf's names for the counters of caches. */
#ifndef CAPTURE_EVENT_EVENT_TABLE_H
#define CAPTURE_EVENT_EVENT_TABLE_H

#include <stddef.h>

#include "capture/event/event.h"

/* The row with this index, from 0; NULL behind the last one. */
const struct event_source *event_table_row(size_t index);
/* The row whose name or alias is the `len` bytes of `name`, or NULL. */
const struct event_source *event_table_find(const char *name, size_t len);

/*
 * Whether the `len` bytes of `name` are perf's name of an event of a cache, like "L1-dcache-load-misses" or "LLC-loads":
 * then `out` gets its type, config, unit and kind, but no name.
 */
bool event_cache_find(const char *name, size_t len, struct event_source *out);
/* Writes the name of cache event `index`, from 0, to `out`; false behind the last one. Each event has one of these names. */
#define EVENT_CACHE_NAMES 32
bool event_cache_name(size_t index, char out[40]);

/* Whether the name is that of an event given by its number, like "r1a8": then `out` is filled, but for its name. */
bool event_raw_find(const char *name, size_t len, struct event_source *out);

#endif
