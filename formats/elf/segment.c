/* SPDX-License-Identifier: Apache-2.0 */
/* A scan of the few segments for each question. */
#include "formats/elf/segment.h"

#include <elf.h>

static uint64_t page_start(uint64_t at, uint64_t page_bytes)
{
    return at & ~(page_bytes - 1);
}

const struct elf_segment *elf_segment_at(const struct elf_segments *segments, uint64_t vaddr)
{
    for (size_t i = 0; i < segments->count; i++) {
        const struct elf_segment *s = &segments->data[i];
        if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_size)
            return s;
    }
    return NULL;
}

uint64_t elf_vaddr_to_offset(const struct elf_segments *segments, uint64_t vaddr, uint64_t *offset)
{
    const struct elf_segment *s = elf_segment_at(segments, vaddr);

    if (!s)
        return 0;
    *offset = s->offset + (vaddr - s->vaddr);
    return s->file_size - (vaddr - s->vaddr);
}

bool elf_offset_to_vaddr(const struct elf_segments *segments, uint64_t offset, uint64_t *vaddr)
{
    const struct elf_segment *best = NULL;

    for (size_t i = 0; i < segments->count; i++) {
        const struct elf_segment *s = &segments->data[i];
        if (offset >= s->offset && offset - s->offset < s->file_size &&
            (!best || (s->flags & PF_X) > (best->flags & PF_X)))
            best = s;
    }
    if (best)
        *vaddr = best->vaddr + (offset - best->offset);
    return best != NULL;
}

/* How well a segment fits a mapping, by the rules in segment.h; 0: it has no bytes there. */
static unsigned fit(const struct elf_segment *s, uint64_t file_offset, uint64_t length, uint64_t page_bytes)
{
    uint64_t first = page_start(s->offset, page_bytes), end = s->offset + s->file_size;

    if (file_offset < first || file_offset >= end)
        return 0;
    bool executable = s->flags & PF_X, begins = file_offset == first,
         fills = length <= page_start(end - 1, page_bytes) + page_bytes - first;
    return 1u + 4u * executable + 2u * begins + fills;
}

bool elf_load_bias(const struct elf_segments *segments, uint64_t address, uint64_t file_offset, uint64_t length,
                   uint64_t page_bytes, uint64_t *bias)
{
    unsigned best_fit = 0;

    for (size_t i = 0; i < segments->count; i++) {
        const struct elf_segment *s = &segments->data[i];
        unsigned how = fit(s, file_offset, length, page_bytes);
        if (how <= best_fit)
            continue;
        best_fit = how;
        *bias = address - file_offset + s->offset - s->vaddr;
    }
    return best_fit > 0;
}

uint64_t elf_base_vaddr(const struct elf_segments *segments, uint64_t page_bytes)
{
    uint64_t lowest = segments->count ? UINT64_MAX : 0;

    for (size_t i = 0; i < segments->count; i++)
        lowest = segments->data[i].vaddr < lowest ? segments->data[i].vaddr : lowest;
    return page_start(lowest, page_bytes);
}
