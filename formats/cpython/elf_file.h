/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 64-bit little-endian ELF file, read a few bytes at a time with pread and never mapped: it may
 * shrink while we read it. libelf gives the headers and the names of sections and symbols; contents
 * are found through the program headers, each read checked against them. Nothing in the file is
 * trusted: what is not there or makes no sense is not found.
 */
#ifndef FORMATS_CPYTHON_ELF_FILE_H
#define FORMATS_CPYTHON_ELF_FILE_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_SEGMENTS_MAX 64

struct elf_segment {
    uint64_t vaddr, offset, file_bytes;
};

struct elf_file {
    int fd; /* the caller's */
    Elf *elf;
    GElf_Ehdr ehdr;
    bool executable; /* a program and no library */
    struct elf_segment segments[ELF_SEGMENTS_MAX];
    uint32_t segment_count;
    GElf_Phdr tls, dynamic; /* p_memsz 0: none */
    /* Of the dynamic section, as vaddr; 0: none */
    uint64_t hash, gnu_hash, symbols, strings, strings_bytes, relocs, relocs_bytes;
    GElf_Shdr symtab, runtime, asyncio; /* .symtab, .PyRuntime and .AsyncioDebug; sh_size 0: none */
};

/* False when it is no such file, an executable or a shared library. To be deinited in either case. */
bool elf_file_init(struct elf_file *f, int fd);
void elf_file_deinit(struct elf_file *f);

/* All of it, or false. */
bool elf_file_read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes);
bool elf_file_read_vaddr(const struct elf_file *f, uint64_t vaddr, void *out, size_t len_bytes);
/* How many bytes of the file stand behind `vaddr`, and where. */
uint64_t elf_file_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t *offset);
/* A symbol that the file defines for others, through the hash table of its dynamic symbols. */
bool elf_file_find_exported(const struct elf_file *f, const char *name, Elf64_Sym *sym);

#endif
