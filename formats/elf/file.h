/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 64-bit little-endian ELF file: its headers, segments, sections and bytes. The only reader of ELF files; what needs
 * more of libelf gets the handle from here.
 *
 * A file is read with pread and never mapped, for it may shrink while we read it; an image in memory is read in place.
 * Nothing in either is trusted: what is not there or makes no sense is not found. pycap is privileged and has only
 * this, so work and memory are bounded by the size of the file.
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
    ELF_PROGRAM_HEADERS_MAX = 4096,  /* a file with more is none that we read */
    ELF_SECTIONS_MAX = 65536,        /* a file with more counts as one without section headers */
    ELF_SECTION_NAMES_MAX = 1 << 20, /* bytes; where there are more, sections have no names */
};

struct elf_file {
    const char *path;             /* for messages; the caller's */
    Elf *handle;                  /* NULL: it is no such file, and all below is empty */
    int fd;                       /* the caller's; -1: in memory */
    const uint8_t *image;         /* the caller's; NULL: a file */
    uint64_t len_bytes;           /* when it was opened; also of what is no ELF file */
    GElf_Ehdr header;
    size_t program_header_count;
    struct elf_segments segments;
    GElf_Phdr tls, dynamic, eh_frame_hdr; /* p_filesz and p_memsz 0: there is none */
    bool is_executable;           /* a program and no library */
    size_t section_names;         /* number of the section; 0: sections have no names */
    bool has_sections;
};

/*
 * Opens what `fd`, which the caller keeps, holds; `path`, for messages, has to stay too. What is no such ELF file is no error:
 * out->handle is NULL then. The caller closes `out`, also after an error.
 */
struct error *elf_file_open(int fd, const char *path, struct elf_file *out);
/*
 * The same of an image in memory, which has to stay until `out` is closed. It is not written to, unless its sections
 * are decompressed.
 */
struct error *elf_file_open_memory(const void *image, uint64_t len_bytes, const char *path, struct elf_file *out);
void elf_file_close(struct elf_file *f);

/* All of the bytes, or false. */
bool elf_file_read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes);
bool elf_file_read_vaddr(const struct elf_file *f, uint64_t vaddr, void *out, size_t len_bytes);
/* How many bytes of the file lie at `vaddr` and behind it, up to the end of the segment, and where; 0: none. */
uint64_t elf_file_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t *offset);
/* All of the bytes in one piece, copied or in place; they live until `f` is closed. NULL: the file does not hold them. */
const uint8_t *elf_file_take(const struct elf_file *f, uint64_t offset, uint64_t len_bytes);

struct elf_section {
    Elf_Scn *scn;
    GElf_Shdr header;
    const char *name; /* NULL: it has none. Lives until the file is closed. */
};
/* Walks all sections but the empty first one; start with {0}. False at the end. */
bool elf_file_next_section(const struct elf_file *f, struct elf_section *s);
/* The first section of that name that has bytes in the file. */
bool elf_file_find_section(const struct elf_file *f, const char *name, struct elf_section *out);
/* Its bytes as they are in the file, bad where there are none. They live until the file is closed. */
struct bytes elf_section_bytes(const struct elf_section *s);

#endif
