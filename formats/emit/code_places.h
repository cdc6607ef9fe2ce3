/* SPDX-License-Identifier: Apache-2.0 */
/* Where in binaries the code of native frames is, for outputs that say addresses. */
#ifndef FORMATS_EMIT_CODE_PLACES_H
#define FORMATS_EMIT_CODE_PLACES_H

#include "formats/emit/emit.h"

#define CODE_PLACE_NO_SEGMENT UINT32_MAX

/*
 * The index of the segment that holds an offset of the file; CODE_PLACE_NO_SEGMENT: none does. Executable segments come
 * first: others may lie on the same page of the file.
 */
static inline uint32_t code_place_segment(const struct emit_mapping *m, uint64_t offset)
{
    uint32_t found = CODE_PLACE_NO_SEGMENT;

    for (uint32_t i = 0; i < m->segment_count; i++) {
        const struct emit_segment *s = &m->segments[i];
        if (offset < s->file_offset || offset - s->file_offset >= s->file_size)
            continue;
        if (s->flags & 1)
            return i;
        found = found == CODE_PLACE_NO_SEGMENT ? i : found;
    }
    return found;
}

/* Are two frames of one instruction? So are an inlined function and those that it was inlined into. */
static inline bool code_place_is_same(const struct emit_frame *a, const struct emit_frame *b)
{
    return a->kind == b->kind && a->mapping == b->mapping && a->address == b->address;
}

#endif
