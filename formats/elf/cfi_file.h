/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an ELF file (x86-64) keeps its call frame information, and where its code is.
 *
 * The file is read, not mapped, for it may shrink meanwhile; nothing in it is trusted.
 */
#ifndef FORMATS_ELF_CFI_FILE_H
#define FORMATS_ELF_CFI_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/cfi.h"

#define CFI_FILE_CODE_MAX 64

struct cfi_file {
    const char *path; /* for messages */
    uint64_t len_bytes;
    int fd;               /* unless it is in memory */
    const uint8_t *image; /* the caller's, not to be written to; NULL: a file */
    bool by_table;        /* .eh_frame was found by its header only, and `table` says where each FDE is */
    uint64_t entry;       /* e_entry */
    uint64_t base_vaddr;  /* the lowest PT_LOAD vaddr, rounded down to a page */
    struct {
        uint64_t start, end; /* virtual addresses that the file holds code for */
        uint64_t offset;     /* in the file, bytes */
    } code[CFI_FILE_CODE_MAX];
    uint32_t code_count;
    /* Of the code, what was read last. */
    uint64_t window_offset, window_len; /* bytes */
    uint8_t window[16384];
    struct cfi_section eh_frame, debug_frame; /* no data: there is none */
    struct cfi_table table;
};

/* `path`, `len_bytes`, and `fd` or `image` have been set. What is found lives as long as `elf`. */
struct error *cfi_file_read(Elf *elf, struct cfi_file *f);
/* The code segment that `vaddr` is in. */
bool cfi_file_code(const struct cfi_file *f, uint64_t vaddr, uint64_t *end);
/* Is there nothing but padding between functions: zeros, breakpoints and instructions that do nothing? */
bool cfi_file_is_padding(struct cfi_file *f, uint64_t vaddr, uint64_t len_bytes);

#endif
