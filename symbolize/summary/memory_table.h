/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of processes as a table of the summary, and below each process what its samples say of it. */
#ifndef SYMBOLIZE_SUMMARY_MEMORY_TABLE_H
#define SYMBOLIZE_SUMMARY_MEMORY_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary_data.h"

/* Prints `all` processes that were read, or those that grew most; nothing if there is none. `r` may be NULL. */
struct error *memory_table_print(const struct summary *s, const struct resolver *r, bool all, FILE *out);

#endif
