/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lines of a source text are. */
#ifndef FORMATS_EMIT_SOURCE_LINES_H
#define FORMATS_EMIT_SOURCE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/vec.h"

struct source_lines {
    const char *text; /* borrowed */
    VEC(uint32_t) starts; /* of each line; and the length of the text, with the "\n" that a last line may lack, at the end */
};

/* `text` is shorter than 4 GiB. False: out of memory. The caller deinits *l in either case. */
bool source_lines_init(struct source_lines *l, const char *text, size_t len_bytes);
void source_lines_deinit(struct source_lines *l);
static inline uint32_t source_lines_count(const struct source_lines *l)
{
    return l->starts.count ? (uint32_t)l->starts.count - 1 : 0;
}
/* Line `number`, counted from 1, without its "\n". NULL: the text has no such line. */
const char *source_lines_get(const struct source_lines *l, uint32_t number, size_t *len_bytes);

#endif
