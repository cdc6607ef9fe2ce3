/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an ELF file keeps its call frame information, and where its code is.
 *
 * The file is read, not mapped, for it may shrink meanwhile; nothing in it is trusted.
 */
#ifndef FORMATS_ELF_CFI_FILE_H
#define FORMATS_ELF_CFI_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/cfi.h"
#include "formats/elf/file.h"
#include "formats/elf/machine.h"

/*
 * The table of .eh_frame_hdr, by way of PT_GNU_EH_FRAME; false where the file has none that can be read. What is found
 * here and below lives as long as `f` is open.
 */
bool cfi_find_table(const struct elf_file *f, struct cfi_table *out);
/*
 * The section .eh_frame, or .debug_frame, which may be compressed. No data: there is none. A file's sections are
 * decompressed, those of an image only with `unpack`, since libelf writes to the image then. An error when it has more
 * bytes than we read, or memory runs out.
 */
struct error *cfi_find_section(const struct elf_file *f, bool debug_frame, bool unpack, struct cfi_section *out);

struct cfi_file {
    const struct elf_file *elf;
    const struct machine *machine;
    bool by_table;        /* .eh_frame was found by its header only, and `table` says where each FDE is */
    uint64_t base_vaddr;  /* elf_base_vaddr() */
    /* Of the code, what was read last. */
    uint64_t window_offset, window_len; /* bytes */
    uint8_t window[16384];
    struct cfi_section eh_frame, debug_frame; /* no data: there is none */
    struct cfi_table table;
};

/* An open executable or shared library, which has to outlive `out`. */
struct error *cfi_file_read(const struct elf_file *elf, struct cfi_file *out);
/* The code segment that `vaddr` is in. */
bool cfi_file_code(const struct cfi_file *f, uint64_t vaddr, uint64_t *end);
/* Is there nothing but padding between functions: zeros, breakpoints and instructions that do nothing? */
bool cfi_file_is_padding(struct cfi_file *f, uint64_t vaddr, uint64_t len_bytes);

#endif
