/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables: the call frame information of an ELF file as sorted rows of 8 bytes
 * (unwind_row.h), for an unwinder in the kernel, which cannot parse DWARF.
 *
 * Code without information has a row too, UNWIND_NONE, so that an unwinder does not use
 * the row before. (Padding between two functions, which never runs, belongs to the row
 * before.) A program's entry point without information is UNWIND_END.
 *
 * The file is read through a window (window.h), not mapped, since it may shrink meanwhile; nothing in it is trusted,
 * and memory and time are bounded by a multiple of its size.
 */
#ifndef FORMATS_ELF_UNWIND_TABLE_H
#define FORMATS_ELF_UNWIND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/read.h"
#include "formats/elf/unwind_row.h"

/* Where the information was found. .debug_frame also adds code that the others do not cover. */
enum unwind_source {
    UNWIND_SOURCE_NONE = 0,    /* nowhere: the table has no rows */
    UNWIND_SOURCE_EH_FRAME,    /* the section .eh_frame */
    UNWIND_SOURCE_HDR,         /* PT_GNU_EH_FRAME, without section headers */
    UNWIND_SOURCE_DEBUG_FRAME, /* only the section .debug_frame, compressed or not */
};

struct unwind_stats {
    uint32_t source;     /* enum unwind_source */
    uint64_t cfi_bytes;  /* of the sections */
    uint64_t fde_count;  /* FDEs that became rows */
    uint64_t fde_debug, fde_covered; /* of these from .debug_frame; unused ones there, as .eh_frame covers their code */
    uint64_t fde_unreadable, fde_outside, fde_repeated; /* unused: broken; not in an executable segment; same start as another */
    uint64_t fde_overlapping; /* cut off where the next one starts */
    uint64_t rows[UNWIND_TYPE_COUNT]; /* by type */
    uint64_t other[UNWIND_OTHER_COUNT]; /* UNWIND_OTHER by reason */
    uint64_t rbp_lost, rbx_lost; /* rows that find the caller's frame but not its RBP, RBX */
    uint64_t build_ns;
};

struct unwind_table {
    uint64_t base_vaddr; /* of pc 0: the lowest PT_LOAD vaddr, rounded down to a page */
    struct unwind_row *rows; /* sorted by pc; the last is UNWIND_NONE */
    struct unwind_wide *wide; /* cfa8 of an UNWIND_WIDE row is an index into it */
    uint64_t *index; /* of page (pc >> UNWIND_PAGE_SHIFT) - index_first; code outside it has no information */
    uint32_t row_count, wide_count, index_first, index_count;
    struct unwind_stats stats;
};

/* What building a table may cost; NULL or {0}: as much as the file asks for. */
struct unwind_limits {
    uint32_t rows_max;           /* also the functions; 0: no limit */
    bool *over_rows_max;         /* becomes true when that is why there is no table; NULL: nobody asks */
    const struct elf_stop *stop; /* borrowed; NULL: never */
};

/*
 * Builds the table of an open executable or shared library; without call frame information it has no rows. `path` is for
 * messages. The caller destroys *out; it is NULL after an error: ERROR_LIMIT beyond `limits`, ERROR_IO when the file
 * changed meanwhile or it was time to stop. Takes some megabytes, 16 bytes for each function and 8 for each row. May block
 * for ever (formats/elf/read.h).
 */
struct error *unwind_table_build(int fd, const char *path, const struct unwind_limits *limits, struct unwind_table **out);
/* The same for an image in memory (the vdso), which may be freed afterwards. */
struct error *unwind_table_build_memory(const void *image, uint64_t len_bytes, const char *path,
                                        struct unwind_table **out);
void unwind_table_destroy(struct unwind_table *t);

/* The row in force at `vaddr`; of type UNWIND_NONE when there is no information. */
struct unwind_row unwind_table_lookup(const struct unwind_table *t, uint64_t vaddr);

#endif
