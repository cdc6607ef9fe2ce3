/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the call frame information of an ELF file, and its code.
 *
 * The file is read, not mapped, since it may shrink meanwhile; nothing in it is trusted.
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
 * The table of .eh_frame_hdr, by way of PT_GNU_EH_FRAME; false: none that can be read. It has no rows where a file (not
 * an image) has more than a million functions. What is found here and below lives as long as `f` is open.
 */
bool cfi_find_table(const struct elf_file *f, struct cfi_table *out);
/*
 * The section .eh_frame or, with `debug_frame`, .debug_frame, decompressed where it is compressed; without data when the
 * file has none. A section of a file is read through a window. ERROR_LIMIT when it is larger than we read.
 */
struct error *cfi_find_section(const struct elf_file *f, bool debug_frame, struct cfi_section *out);

struct cfi_file {
    const struct elf_file *elf;
    const struct machine *machine;
    bool by_table;        /* there are no section headers; `table` has the address of each FDE */
    uint64_t base_vaddr;  /* elf_base_vaddr() */
    uint64_t window_offset, window_len; /* of the code that was read last, bytes */
    uint8_t window[16384];
    struct cfi_section eh_frame, debug_frame; /* without data: the file has none */
    struct cfi_table table;
};

/*
 * Of an open executable or shared library, which must outlive *out. ERROR_FORMAT or ERROR_UNSUPPORTED for any other file,
 * ERROR_LIMIT for one that is too large.
 */
struct error *cfi_file_read(const struct elf_file *elf, struct cfi_file *out);
/* Whether bytes of the sections could not be read any more, so that what was found of them is not all. */
bool cfi_file_failed(const struct cfi_file *f);
/* Is there code at `vaddr`? *end is where its segment's code ends. */
bool cfi_file_code(const struct cfi_file *f, uint64_t vaddr, uint64_t *end);
/* Are these bytes only padding between functions: zeros, breakpoints, instructions that do nothing? */
bool cfi_file_is_padding(struct cfi_file *f, uint64_t vaddr, uint64_t len_bytes);

#endif
