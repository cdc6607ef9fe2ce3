/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes file names from a pattern, and tells whether a name was made from it.
 *
 * A pattern may contain %h (host name), %t (UTC, 20260131T235959.123Z), %p (pid of pycap) and
 * %% (a percent sign). The time always has the same length and layout, so that names sort by
 * time in every locale.
 */
#ifndef CAPTURE_OUTPUT_FILE_NAMES_H
#define CAPTURE_OUTPUT_FILE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

#define FILES_TIME_BYTES (sizeof "20260131T235959.123Z")

/*
 * Checks a pattern. ERROR_USAGE for an unknown % sequence and, with `rotates`, for a pattern without %t and for
 * standard output ("-").
 */
struct error *files_check(const char *pattern, bool rotates);
/* Formats a time, in nanoseconds since 1970, as %t does. */
void files_time(uint64_t realtime_ns, char out[FILES_TIME_BYTES]);
/* Returns the name made from a pattern, malloc'd; NULL: out of memory. */
char *files_name(const char *pattern, const char *hostname, uint64_t realtime_ns);
/* Whether a name was made from a pattern (both without folder). Stores the time in it, in the form of files_time(). */
bool files_match(const char *pattern, const char *hostname, const char *name, char time[FILES_TIME_BYTES]);

#endif
