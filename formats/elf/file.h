/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 64-bit little-endian ELF file: its headers, segments, sections and bytes. The only reader of ELF files; code that
 * needs more of libelf uses the handle.
 *
 * A file is read with pread and never mapped, since it may shrink meanwhile; an image in memory is read in place. Nothing
 * in either is trusted: what is missing or makes no sense is not found. pycap, which has privileges, reads files by this
 * alone, so work and memory are bounded by the size of the file.
 */
#ifndef FORMATS_ELF_FILE_H
#define FORMATS_ELF_FILE_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/bytes.h"
#include "formats/base/err.h"
#include "formats/elf/segment.h"

enum {
    ELF_SEGMENTS_MAX = 64,           /* PT_LOAD headers; further ones are ignored */
    ELF_PROGRAM_HEADERS_MAX = 4096,  /* a file with more is not taken for an ELF file */
    ELF_SECTIONS_MAX = 65536,        /* a file with more counts as one without section headers */
    ELF_SECTION_NAMES_MAX = 1 << 20, /* bytes; with more of them, sections have no names */
};

struct elf_file {
    const char *path;             /* for messages; borrowed */
    Elf *handle;                  /* NULL: not such an ELF file, and the headers below are empty */
    int fd;                       /* borrowed; -1: an image in memory */
    const uint8_t *image;         /* borrowed; NULL: a file */
    uint64_t len_bytes;           /* of the file when it was opened, ELF or not */
    GElf_Ehdr header;
    size_t program_header_count;
    struct elf_segments segments;
    GElf_Phdr tls, dynamic, eh_frame_hdr; /* p_filesz and p_memsz 0: the file has none */
    bool is_executable;           /* a program, not a library */
    size_t section_names;         /* index of the section; 0: sections have no names */
    bool has_sections;
};

/*
 * Opens the file behind `fd`. Both `fd` and `path` must stay until *out is closed. A file that is not such an ELF file is
 * not an error: out->handle is NULL then. The caller closes *out, also after an error.
 */
struct error *elf_file_open(int fd, const char *path, struct elf_file *out);
/*
 * The same for an image in memory, which must stay until *out is closed. It is not written to, unless its sections are
 * decompressed.
 */
struct error *elf_file_open_memory(const void *image, uint64_t len_bytes, const char *path, struct elf_file *out);
void elf_file_close(struct elf_file *f);

/* Reads all of the bytes, or returns false; by offset in the file, or by virtual address. */
bool elf_file_read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes);
bool elf_file_read_vaddr(const struct elf_file *f, uint64_t vaddr, void *out, size_t len_bytes);
/* How many bytes of the file lie from `vaddr` to the end of its segment; *offset is where they begin. 0: none. */
uint64_t elf_file_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t *offset);
/* The bytes in one piece, which live until `f` is closed. NULL: the file does not have them all. */
const uint8_t *elf_file_take(const struct elf_file *f, uint64_t offset, uint64_t len_bytes);

struct elf_section {
    Elf_Scn *scn;
    GElf_Shdr header;
    const char *name; /* or NULL. Lives until the file is closed. */
};
/* Walks all sections but the empty first one; start with {0}. False at the end. */
bool elf_file_next_section(const struct elf_file *f, struct elf_section *s);
/* The first section of that name that has bytes in the file. */
bool elf_file_find_section(const struct elf_file *f, const char *name, struct elf_section *out);
/* Its bytes as they are in the file, which live until it is closed; bad: it has none. */
struct bytes elf_section_bytes(const struct elf_section *s);

#endif
