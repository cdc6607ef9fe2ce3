/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 64-bit little-endian ELF file: its headers, segments, sections and bytes. The only reader of ELF files; code that
 * needs libelf for an image in memory asks for its handle.
 *
 * A file is read with pread and never mapped, since it may shrink meanwhile; an image in memory is read in place. Nothing
 * in either is trusted: what is missing or makes no sense is not found. pycap, which has privileges, reads files by this
 * alone. libelf has no part in that: it allocates what headers ask for, and would read them again after they were
 * checked. The headers are copied when the file is opened, so they stay the same whatever its owner does.
 */
#ifndef FORMATS_ELF_FILE_H
#define FORMATS_ELF_FILE_H

#include <elf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/bytes.h"
#include "formats/base/err.h"
#include "formats/elf/read.h"
#include "formats/elf/segment.h"
#include "formats/elf/window.h"

enum {
    ELF_SEGMENTS_MAX = 64,           /* PT_LOAD headers; further ones are ignored */
    ELF_PROGRAM_HEADERS_MAX = 4096,  /* a file with more is not taken for an ELF file */
    ELF_SECTIONS_MAX = 65536,        /* a file with more counts as one without section headers */
    ELF_SECTION_NAMES_MAX = 1 << 20, /* bytes; with more of them, sections have no names */
    ELF_TAKE_MAX = 32 << 20,         /* bytes of one file that elf_file_take() reads in all */
};

struct elf_file {
    const char *path;             /* for messages; borrowed */
    bool is_elf;                  /* false: not such an ELF file, and the headers below are empty */
    int fd;                       /* borrowed; -1: an image in memory */
    const uint8_t *image;         /* borrowed; NULL: a file */
    uint64_t len_bytes;           /* of the file when it was opened, ELF or not */
    const struct elf_stop *stop;  /* borrowed; NULL: never. Reads fail from then on. Of a file */
    Elf64_Ehdr header;
    const Elf64_Phdr *program_headers;
    size_t program_header_count;
    struct elf_segments segments;
    Elf64_Phdr tls, dynamic, eh_frame_hdr; /* p_filesz and p_memsz 0: the file has none */
    bool is_executable;           /* a program, not a library */
    const Elf64_Shdr *sections;   /* by index; NULL: the file has no section headers */
    size_t section_count;         /* with the empty one at 0 */
    size_t section_names;         /* index of the section; 0: sections have no names */
    struct elf_store *store;      /* what was read or copied of the file */
};

/*
 * Opens the file behind `fd`. `fd`, `path` and `stop` must stay until *out is closed; `stop` may be NULL. A file that is
 * not such an ELF file is not an error: out->is_elf is false then. The caller closes *out, also after an error. May block
 * for ever, as may all that reads the file: see read.h.
 */
struct error *elf_file_open(int fd, const char *path, const struct elf_stop *stop, struct elf_file *out);
/* The same for an image in memory, which must stay until *out is closed. It is not written to. */
struct error *elf_file_open_memory(const void *image, uint64_t len_bytes, const char *path, struct elf_file *out);
void elf_file_close(struct elf_file *f);
/* libelf's handle of an image in memory, which lives until it is closed; NULL for a file, and when libelf refuses. */
Elf *elf_file_handle(const struct elf_file *f);

/* Reads all of the bytes, or returns false; by offset in the file, or by virtual address. */
bool elf_file_read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes);
bool elf_file_read_vaddr(const struct elf_file *f, uint64_t vaddr, void *out, size_t len_bytes);
/* How many bytes of the file lie from `vaddr` to the end of its segment; *offset is where they begin. 0: none. */
uint64_t elf_file_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t *offset);
/*
 * The bytes in one piece, which live until `f` is closed. NULL: the file does not have them all, or more than
 * ELF_TAKE_MAX bytes have been taken of it. (An image has no such limit.)
 */
const uint8_t *elf_file_take(const struct elf_file *f, uint64_t offset, uint64_t len_bytes);
/* Memory that is freed when `f` is closed; of a file, it counts as taken. NULL: out of memory, or too much of it. */
void *elf_file_alloc(const struct elf_file *f, uint64_t len_bytes);
/* A window onto bytes of a file, which lives until `f` is closed. NULL: the file does not have them, or no memory. */
struct elf_window *elf_file_window(const struct elf_file *f, uint64_t offset, uint64_t len_bytes);

struct elf_section {
    size_t index;
    Elf64_Shdr header;
    const char *name; /* or NULL. Lives until the file is closed. */
};
/* Walks all sections but the empty first one; start with {0}. False at the end. */
bool elf_file_next_section(const struct elf_file *f, struct elf_section *s);
/* The first section of that name that has bytes in the file. */
bool elf_file_find_section(const struct elf_file *f, const char *name, struct elf_section *out);
/* Its bytes as they are in the file, which live until it is closed; bad: it has none, or see elf_file_take(). */
struct bytes elf_section_bytes(const struct elf_file *f, const struct elf_section *s);
/*
 * The string at `at` of the string table in section number `table`, which lives until `f` is closed. NULL: there is
 * none, or the table does not end with a NUL, as it must. A string may be as long as the table, so a caller that reads
 * many needs a bound.
 */
const char *elf_file_string(const struct elf_file *f, size_t table, uint64_t at);

#endif
