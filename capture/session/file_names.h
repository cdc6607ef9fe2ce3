/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files, made of a pattern, and recognized by it.
 *
 * A pattern may hold %h (host name), %t (UTC, 20260131T235959.123Z), %p (pid of pycap) and
 * %% (a percent sign). The time has the same length and its digits the same places in all
 * names, so that names sort by time in every locale.
 */
#ifndef CAPTURE_SESSION_FILE_NAMES_H
#define CAPTURE_SESSION_FILE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

#define FILES_TIME_BYTES (sizeof "20260131T235959.123Z")

/*
 * Checks a pattern: ERROR_USAGE for an unknown %, and for one that rotates and cannot make new names (no %t) or goes
 * to standard output.
 */
struct error *files_check(const char *pattern, bool rotates);
/* The time as it stands in names. */
void files_time(uint64_t realtime_ns, char out[FILES_TIME_BYTES]);
/* The name that a pattern gives, malloc'd; NULL: out of memory. */
char *files_name(const char *pattern, const char *hostname, uint64_t realtime_ns);
/* Whether a pattern gives this name, neither with a folder; and the time in it, as files_time() writes it. */
bool files_match(const char *pattern, const char *hostname, const char *name, char time[FILES_TIME_BYTES]);

#endif
