/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file as the unwinder needs it: its call frame information by address, and its bytes as memory. Opened once per
 * module.
 */
#ifndef SYMBOLIZE_UNWIND_UNWIND_MODULE_H
#define SYMBOLIZE_UNWIND_UNWIND_MODULE_H

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/elf/cfi.h"
#include "formats/elf/file.h"
#include "formats/elf/machine.h"
#include "formats/elf/stack_start.h"
#include "symbolize/binary/image.h"

/* A search table made here, for sections that have none. */
struct unwind_index_row {
    uint64_t start, end, offset;
};
struct unwind_index {
    VEC(struct unwind_index_row) rows; /* sorted by start */
    bool built;
};

struct unwind_module {
    struct image image, debug_image;
    const struct machine *machine; /* NULL: not supported; then nothing in it can be unwound */
    struct elf_file elf, debug_elf;
    struct cfi_table table; /* of .eh_frame; count 0: there is no table */
    struct cfi_section eh_frame, debug_frame; /* without data if there is no such section */
    struct unwind_index eh_frame_index, debug_frame_index;
    struct stack_start stack_start;
    uint32_t slot; /* set by the unwinder that uses the module; see unwind.c */
};

/* Opens the binary `path`; `debug` (may be NULL) may have .debug_frame. With a NULL path *out has no information. */
struct error *unwind_module_open(const char *path, const char *debug, struct unwind_module **out);
/* The same from the files that were found for a module. */
struct binary_files;
struct error *unwind_module_open_files(const struct binary_files *files, struct unwind_module **out);
/* The same from an ELF image in memory (the vdso), which is copied. */
struct error *unwind_module_open_memory(const void *image, uint64_t len_bytes, struct unwind_module **out);
void unwind_module_close(struct unwind_module *m);

/* Executable mappings of one process at one time, sorted by address, not overlapping. */
struct unwind_mapping {
    uint64_t address, length, file_offset;
    struct unwind_module *module; /* NULL: unknown */
    uint32_t module_id;           /* the caller's, handed back in frames */
};

/* Finds the FDE of a virtual address, in .eh_frame or else in .debug_frame. False: there is none. */
bool unwind_module_fde(struct unwind_module *m, uint64_t vaddr, struct cfi_fde *out);
/*
 * The bias of a mapping: address in memory minus virtual address in the file. False when no segment holds its offset.
 */
bool unwind_module_bias(const struct unwind_module *m, const struct unwind_mapping *mapping, uint64_t *bias);
/*
 * Reads `len_bytes` bytes of read-only memory, with zeros after the segment's end; false when no segment holds `vaddr`.
 */
bool unwind_module_read(const struct unwind_module *m, uint64_t vaddr, void *out, uint64_t len_bytes);

#endif
