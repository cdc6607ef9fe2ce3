/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables: the call frame information of an ELF file as sorted rows of 8
 * bytes, for an unwinder that can neither parse DWARF nor wait (formats/elf/unwind_row.h).
 *
 * What is not in the file is a row too: code without information is UNWIND_NONE, so
 * that no unwinder guesses from the row before. (Padding between two functions, where
 * nothing runs, belongs to the row before.)
 * Where a program starts (e_entry) without information, the row is UNWIND_END.
 *
 * The file is read, not mapped, for it may shrink meanwhile; nothing in it is trusted,
 * and memory and time are bounded by a multiple of its size.
 */
#ifndef FORMATS_ELF_UNWIND_TABLE_H
#define FORMATS_ELF_UNWIND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf/unwind_row.h"
#include "formats/base/err.h"

/* Where the information was found. .debug_frame adds what the others say nothing of. */
enum unwind_source {
    UNWIND_SOURCE_NONE = 0,    /* there is none: no rows */
    UNWIND_SOURCE_EH_FRAME,    /* the section .eh_frame */
    UNWIND_SOURCE_HDR,         /* PT_GNU_EH_FRAME, without section headers */
    UNWIND_SOURCE_DEBUG_FRAME, /* nothing but the section .debug_frame, compressed or not */
};

struct unwind_stats {
    uint32_t source;     /* enum unwind_source */
    uint64_t cfi_bytes;  /* of the sections */
    uint64_t fde_count;  /* FDEs that became rows */
    uint64_t fde_debug, fde_covered; /* of these in .debug_frame; left there, as .eh_frame has that code */
    uint64_t fde_unreadable, fde_outside, fde_repeated; /* broken; not in an executable segment; same start as another */
    uint64_t fde_overlapping; /* cut where the next one starts */
    uint64_t rows[UNWIND_TYPE_COUNT]; /* by type */
    uint64_t other[UNWIND_OTHER_COUNT]; /* UNWIND_OTHER by reason */
    uint64_t rbp_lost, rbx_lost; /* rows whose caller's RBP, RBX cannot be computed, though its frame can */
    uint64_t build_ns;
};

struct unwind_table {
    uint64_t base_vaddr; /* of pc 0: the lowest PT_LOAD vaddr, rounded down to a page */
    struct unwind_row *rows; /* sorted by pc; the last is UNWIND_NONE */
    struct unwind_wide *wide; /* what cfa8 of UNWIND_WIDE counts */
    uint64_t *index; /* for (pc >> UNWIND_PAGE_SHIFT) - index_first; what is outside has no information */
    uint32_t row_count, wide_count, index_first, index_count;
    struct unwind_stats stats;
};

/*
 * Of an open ELF file, executable or shared library; a file without call frame information gives a table without
 * rows. `path` is for messages. The caller destroys *out; it is NULL after an error.
 */
struct error *unwind_table_build(int fd, const char *path, struct unwind_table **out);
/* Of an image in memory (the vdso), which need not stay. */
struct error *unwind_table_build_memory(const void *image, uint64_t len_bytes, const char *path,
                                        struct unwind_table **out);
void unwind_table_destroy(struct unwind_table *t);

/* The row in force at `vaddr`; type UNWIND_NONE where there is none. */
struct unwind_row unwind_table_lookup(const struct unwind_table *t, uint64_t vaddr);

#endif
