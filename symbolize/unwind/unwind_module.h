/* SPDX-License-Identifier: Apache-2.0 */
/* A file as the unwinder needs it: its call frame information by address, and its bytes as memory. Opened once per module. */
#ifndef SYMBOLIZE_UNWIND_UNWIND_MODULE_H
#define SYMBOLIZE_UNWIND_UNWIND_MODULE_H

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/elf/cfi.h"
#include "formats/elf/file.h"
#include "formats/elf/machine.h"
#include "symbolize/binary/image.h"

/* An own table, for sections that come without one. */
struct unwind_index_row {
    uint64_t start, end, offset;
};
struct unwind_index {
    VEC(struct unwind_index_row) rows; /* sorted by start */
    bool built;
};

struct unwind_module {
    struct image image, debug_image;
    const struct machine *machine; /* NULL: not known, and then nothing of it can be unwound */
    struct elf_file elf, debug_elf;
    struct cfi_table table; /* of .eh_frame; count 0: it has none */
    struct cfi_section eh_frame, debug_frame; /* no data: there is none */
    struct unwind_index eh_frame_index, debug_frame_index;
    uint32_t slot; /* of the unwinder that uses it; see unwind.c */
};

/* `path` is the binary; `debug` (may be NULL) may hold .debug_frame. NULL path: *out has no information at all. */
struct error *unwind_module_open(const char *path, const char *debug, struct unwind_module **out);
/* The same from what was found for a module. */
struct binary_files;
struct error *unwind_module_open_files(const struct binary_files *files, struct unwind_module **out);
/* The vdso's image; copied. */
struct error *unwind_module_open_memory(const void *image, uint64_t len_bytes, struct unwind_module **out);
void unwind_module_close(struct unwind_module *m);

/* Executable mappings of one process at one time, sorted by address, not overlapping. */
struct unwind_mapping {
    uint64_t address, length, file_offset;
    struct unwind_module *module; /* NULL: none known */
    uint32_t module_id;           /* the caller's, handed back in frames */
};

/* The FDE that holds a virtual address: of .eh_frame, else of .debug_frame. */
bool unwind_module_fde(struct unwind_module *m, uint64_t vaddr, struct cfi_fde *out);
/* What lies `file_offset` into the file was mapped at `address`: how far addresses are from virtual addresses. */
bool unwind_module_bias(const struct unwind_module *m, const struct unwind_mapping *mapping, uint64_t *bias);
/* Up to `len_bytes` bytes of read-only memory, zeros behind the end of the segment; false when `vaddr` is in none. */
bool unwind_module_read(const struct unwind_module *m, uint64_t vaddr, void *out, uint64_t len_bytes);

#endif
