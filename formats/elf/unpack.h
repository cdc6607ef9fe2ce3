/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed sections of an ELF file: those with SHF_COMPRESSED (gABI, zlib or zstd) and the older ".zdebug_*" of GNU
 * tools ("ZLIB", the length in big endian, the data).
 */
#ifndef FORMATS_ELF_UNPACK_H
#define FORMATS_ELF_UNPACK_H

#include <stdint.h>

#include "formats/base/bytes.h"
#include "formats/elf/file.h"

struct elf_packed {
    uint32_t type;      /* ELFCOMPRESS_*; 0: its header cannot be read */
    uint64_t len_bytes; /* what it claims to have when it is unpacked */
    struct bytes data;  /* behind the header */
};
/* The section as it is in the file, until that is closed. */
struct elf_packed elf_packed_read(const struct elf_file *f, const struct elf_section *s);
/* Its unpacked bytes, which live until `f` is closed; bad when that fails. */
struct bytes elf_unpack(const struct elf_file *f, const struct elf_packed *p);

#endif
