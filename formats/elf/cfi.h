/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: reads the CIEs and FDEs of .eh_frame and .debug_frame (LSB
 * Core 5.0, chapter 10.6; DWARF 5, section 6.4). The programs in them are run by
 * unwind_program.h. Every length and pointer is checked.
 */
#ifndef FORMATS_ELF_CFI_H
#define FORMATS_ELF_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/bytes.h"
#include "formats/elf/window.h"

enum { CFI_ENTRY_MAX = ELF_WINDOW_NEED_MAX - 16 /* bytes of an FDE or CIE; a longer one cannot be read */ };

struct cfi_section {
    const uint8_t *data;
    uint64_t len_bytes;
    uint64_t vaddr;     /* of data[0] */
    uint64_t hdr_vaddr; /* of .eh_frame_hdr, the base of data-relative pointers; 0: the file has none */
    bool debug_frame;   /* it is .debug_frame, which refers to CIEs in another way and has plain addresses */
    struct elf_window *window; /* through which `data` is read; NULL: all of it is in memory */
};

/*
 * An FDE with the fields that it needs of its CIE. Points into the section; where that is read through a window, the
 * programs are there until the next FDE is read.
 */
struct cfi_fde {
    uint64_t offset;     /* in the section, bytes */
    uint64_t start, end; /* virtual addresses; end is exclusive */
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_column;
    bool signal_frame;
    const uint8_t *cie_program, *fde_program;
    uint64_t cie_program_len, fde_program_len; /* bytes */
    uint64_t cie_offset;      /* in the section, bytes */
    uint8_t pointer_encoding; /* DW_EH_PE_*, for cfi_pointer() */
};

/* Reads the FDE at `offset`. False: no FDE begins there, or it breaks the format. */
bool cfi_read(const struct cfi_section *s, uint64_t offset, struct cfi_fde *out);
/*
 * The next FDE; start with *offset 0. Skips entries that break the format. False at the end, or where a length leads out
 * of the section.
 */
bool cfi_next(const struct cfi_section *s, uint64_t *offset, struct cfi_fde *out);

/* Where the terminator of `s`, an entry of length 0, ends; its length if there is none. Bytes from the start. */
uint64_t cfi_terminator(const struct cfi_section *s);

/* A cache of CIEs, for callers that read many FDEs of one section. {0} is empty. */
#define CFI_CIES 64
struct cfi_cie {
    bool known;
    uint64_t offset; /* in the section, bytes */
    uint64_t code_align, return_column;
    int64_t data_align;
    uint8_t pointer_encoding, version;
    bool sized, signal_frame;
    const uint8_t *program;
    uint64_t program_len; /* bytes */
};
struct cfi_cies {
    struct cfi_cie slots[CFI_CIES];
};
/* As cfi_read(), through the cache; NULL: without one. */
bool cfi_read_cached(const struct cfi_section *s, uint64_t offset, struct cfi_cies *cies, struct cfi_fde *out);
/* As cfi_next(), through the cache. *unreadable (may be NULL) counts what it skips, and a length that leads out. */
bool cfi_next_cached(const struct cfi_section *s, uint64_t *offset, struct cfi_cies *cies, struct cfi_fde *out,
                     uint64_t *unreadable);

/*
 * Reads a pointer of the encoding DW_EH_PE_*; DW_EH_PE_indirect is ignored. `vaddr` is the address of b->start,
 * `data_base` the base of data-relative pointers. Text- and function-relative ones make `b` bad: they have no base here.
 */
uint64_t cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, uint64_t data_base);

/* The sorted table of .eh_frame_hdr. */
struct cfi_table {
    const uint8_t *rows; /* pairs of int32: start of the function and address of its FDE, both relative to hdr_vaddr */
    uint64_t count;
    uint64_t hdr_vaddr;
    uint64_t eh_frame_vaddr;
};
/* Points into `hdr`. False when its header is damaged. No rows when the table is damaged or not encoded as linkers do. */
bool cfi_table_read(const uint8_t *hdr, uint64_t len_bytes, uint64_t hdr_vaddr, struct cfi_table *out);
/* Row `i` < count: the virtual addresses of the function and of its FDE. */
void cfi_table_row(const struct cfi_table *t, uint64_t i, uint64_t *start, uint64_t *fde_vaddr);
/* How many functions start at or before `vaddr`; only the last of them can contain it. */
uint64_t cfi_table_search(const struct cfi_table *t, uint64_t vaddr);
/* The virtual address of the only FDE that can contain `vaddr`; false: all begin behind it. */
bool cfi_table_find(const struct cfi_table *t, uint64_t vaddr, uint64_t *fde_vaddr);

#endif
