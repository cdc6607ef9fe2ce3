/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are gone, and new ones with the same code: renamed, or moved to another file. What match.h says of guesses. */
#ifndef FORMATS_COMPARE_MATCH_MOVED_H
#define FORMATS_COMPARE_MATCH_MOVED_H

#include <stddef.h>

#include "formats/compare/match_codes.h"
#include "formats/compare/subject.h"

/* Joins subjects of one side: the old one becomes both, the new one neither. `of_function` (struct match) follows. */
struct error *match_moved(const struct match_codes *codes, struct subject *subjects, size_t count, uint32_t **of_function);

#endif
