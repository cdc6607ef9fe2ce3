/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: the CIEs and FDEs of .eh_frame and .debug_frame (LSB Core
 * 5.0, chapter 10.6; DWARF 5, section 6.4). Reading only: what the programs in them
 * mean is for whoever unwinds. Every length and pointer is checked.
 */
#ifndef FORMATS_ELF_CFI_H
#define FORMATS_ELF_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/bytes.h"

struct cfi_section {
    const uint8_t *data;
    uint64_t len_bytes;
    uint64_t vaddr;     /* of data[0] */
    uint64_t hdr_vaddr; /* of .eh_frame_hdr, the base of data-relative pointers; 0: there is none */
    bool debug_frame;   /* .debug_frame: other CIE ids and pointers, plain addresses */
};

/* An FDE with what it needs of its CIE. Borrowed from the section. */
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

/* Reads the FDE at `offset`. False where there is none, or one that breaks the format. */
bool cfi_read(const struct cfi_section *s, uint64_t offset, struct cfi_fde *out);
/*
 * Walks all FDEs: start with *offset 0. Entries that cannot be understood are passed over; false at the end, or
 * where a length leads out of the section.
 */
bool cfi_next(const struct cfi_section *s, uint64_t *offset, struct cfi_fde *out);

/* CIEs read before, for who reads many FDEs of one section. {0} is empty. */
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
bool cfi_read_cached(const struct cfi_section *s, uint64_t offset, struct cfi_cies *cies, struct cfi_fde *out);
/* As cfi_next(), and says what it passed over: *unreadable (may be NULL) counts FDEs that break the format, and a length that leads out. */
bool cfi_next_cached(const struct cfi_section *s, uint64_t *offset, struct cfi_cies *cies, struct cfi_fde *out,
                     uint64_t *unreadable);

/*
 * A pointer of the encoding `encoding` (DW_EH_PE_indirect left aside); `vaddr` is that of b->start, `data_base` what
 * data-relative ones count from. Encodings that count from something else make `b` bad.
 */
uint64_t cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, uint64_t data_base);

/* The sorted table of .eh_frame_hdr. */
struct cfi_table {
    const uint8_t *rows; /* pairs of int32: start of the function, address of its FDE, both relative to hdr_vaddr */
    uint64_t count;
    uint64_t hdr_vaddr;
    uint64_t eh_frame_vaddr;
};
/* False when it is damaged, or of an encoding other than the one that linkers write. */
bool cfi_table_read(const uint8_t *hdr, uint64_t len_bytes, uint64_t hdr_vaddr, struct cfi_table *out);
/* Row `i`: where the function starts, and where its FDE is; virtual addresses. */
void cfi_table_row(const struct cfi_table *t, uint64_t i, uint64_t *start, uint64_t *fde_vaddr);
/* How many functions start at or before `vaddr`; the last of these is the one that may hold it. */
uint64_t cfi_table_search(const struct cfi_table *t, uint64_t vaddr);
/* The virtual address of the FDE that would hold `vaddr`; false when the table starts behind it. */
bool cfi_table_find(const struct cfi_table *t, uint64_t vaddr, uint64_t *fde_vaddr);

#endif
