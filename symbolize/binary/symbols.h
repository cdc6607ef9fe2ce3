/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for native addresses: function, inlined functions, file and line, from DWARF through
 * libdw where there is any, else from the symbol tables (.symtab, minidebuginfo, .dynsym).
 */
#ifndef SYMBOLIZE_BINARY_SYMBOLS_H
#define SYMBOLIZE_BINARY_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/binary/binaries.h"
#include "symbolize/binary/symbol_frame.h"

struct symbols; /* one opened module */

/* Opens the files of a module and borrows nothing from `files`. A module without files gets an empty struct. */
struct error *symbols_open(const struct binary_files *files, struct symbols **out);
/* The same from an ELF image in memory (the vdso), which is copied. */
struct error *symbols_open_memory(const void *image, uint64_t len_bytes, struct symbols **out);
void symbols_close(struct symbols *s);

/*
 * Fills in the frames at a virtual address of the file, innermost first; the last one is the function that was not
 * inlined. For a return address pass address - 1. Returns the count: at least one (function "" if nothing is known), at
 * most `max`.
 */
uint32_t symbols_lookup(struct symbols *s, uint64_t vaddr, struct symbol_frame *frames, uint32_t max);
/* The best source of names that a module has, worst first. */
enum symbols_quality {
    SYMBOLS_NONE,
    SYMBOLS_EXPORTED, /* .dynsym: what other binaries may call */
    SYMBOLS_MINI,     /* .gnu_debugdata: functions, packed in the binary ("minidebuginfo") */
    SYMBOLS_TABLE,    /* .symtab */
    SYMBOLS_DWARF,    /* with files, lines and what was inlined */
};
enum symbols_quality symbols_quality(const struct symbols *s);
/* In words, for the summary. */
const char *symbols_quality_text(enum symbols_quality quality);
/* Converts a file offset to a virtual address by the program headers; false when no segment contains it. */
bool symbols_vaddr(const struct symbols *s, uint64_t file_offset, uint64_t *vaddr);

#endif
