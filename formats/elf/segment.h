/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loadable segments: converts between offsets in a file, virtual addresses and addresses of a process. Pure arithmetic,
 * on unchecked numbers from ELF files and traces.
 *
 * A virtual address is as in the file; the load bias is what the loader adds to it.
 */
#ifndef FORMATS_ELF_SEGMENT_H
#define FORMATS_ELF_SEGMENT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A PT_LOAD header; also a row of MODULE.segments in a trace. */
struct elf_segment {
    uint64_t vaddr, offset;       /* bytes */
    uint64_t file_size, mem_size; /* bytes */
    uint64_t flags;               /* PF_X 1, PF_W 2, PF_R 4 */
};

static_assert(sizeof(struct elf_segment) == 5 * sizeof(uint64_t), "five numbers, as in a trace");

/* In the order of the file. A VEC (formats/base/vec.h). */
struct elf_segments {
    struct elf_segment *data;
    size_t count, cap;
};
/* A trace's rows of five numbers, in place. Read only. */
static inline struct elf_segments elf_segments_of(const uint64_t *rows, size_t count)
{
    return (struct elf_segments){.data = (struct elf_segment *)rows, .count = count};
}

/* The first segment with bytes of the file at `vaddr`, or NULL. */
const struct elf_segment *elf_segment_at(const struct elf_segments *segments, uint64_t vaddr);
/* How many bytes of the file lie from `vaddr` to the end of its segment; *offset is where they begin. 0: none. */
uint64_t elf_vaddr_to_offset(const struct elf_segments *segments, uint64_t vaddr, uint64_t *offset);
/* The virtual address of a byte of the file; an executable segment goes before others. False: it is not loaded. */
bool elf_offset_to_vaddr(const struct elf_segments *segments, uint64_t offset, uint64_t *vaddr);

/*
 * The load bias, from a mapping of the file: `length` bytes from `file_offset` (a multiple of the page size) at
 * `address`. False when no segment has bytes there.
 *
 * Loaders map whole pages, so a mapping may show bytes of two segments that share a page of the file, and their virtual
 * addresses need not differ by as much as their offsets. The segment that the mapping was made for is, in this order:
 *  1. an executable one before others, since the mappings that are recorded are executable;
 *  2. one whose first page the mapping begins with: a loader begins there, never with a segment's last page;
 *  3. one that has as many pages: the shorter of two that begin in one page cannot fill the mapping of the longer;
 *  4. the first in the file.
 */
bool elf_load_bias(const struct elf_segments *segments, uint64_t address, uint64_t file_offset, uint64_t length,
                   uint64_t page_bytes, uint64_t *bias);

/* The lowest virtual address that is loaded, rounded down to a page; 0 without segments. Unwind tables count from it. */
uint64_t elf_base_vaddr(const struct elf_segments *segments, uint64_t page_bytes);

#endif
