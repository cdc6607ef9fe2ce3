/* SPDX-License-Identifier: Apache-2.0 */
/* What the names of rotated traces tell: their time, and which recorder writes them. */
#ifndef SYMBOLIZE_PUSH_TRACE_NAME_H
#define SYMBOLIZE_PUSH_TRACE_NAME_H

#include <stdint.h>

/*
 * The time that `pycap record -o` writes for %t (20260131T235959.123Z) in the last part of a path, in nanoseconds since
 * 1970; 0: there is none. `series`: a hash of the path without that time, which files that one recorder writes in turn have
 * in common; without a time: of the whole path.
 */
uint64_t trace_name_time(const char *path, uint64_t *series);

#endif
