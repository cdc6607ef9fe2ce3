/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names from symbol tables. Several tables may describe one binary: .symtab of the binary or of its debug
 * file, .dynsym, minidebuginfo. Names are as in the file.
 */
#ifndef SYMBOLIZE_BINARY_SYMBOL_TABLE_H
#define SYMBOLIZE_BINARY_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/arena.h"
#include "formats/base/vec.h"
#include "formats/elf/file.h"
#include "symbolize/binary/ranges.h"

struct table_symbol {
    uint64_t start, end; /* equal: the file gives no size */
    const char *name;    /* borrowed from the file, or in the table's arena */
    uint8_t type, bind;  /* STT_, STB_ */
};

/* {0} is empty. Add all, finish once, then find. The files must outlive it. */
struct symbol_table {
    struct ranges code; /* where instructions are, and therefore functions */
    VEC(struct table_symbol) symbols;
    struct ranges sized, unsized;
    struct arena names;
    uint64_t stub_names_left; /* bytes */
};

/* Adds the executable sections of a file, or, without sections, its executable segments. Call first, with one file. */
bool symbol_table_add_code(struct symbol_table *t, const struct elf_file *f);
/* Adds the functions of the file's SHT_SYMTAB or SHT_DYNSYM. False when memory ran out. */
bool symbol_table_add(struct symbol_table *t, const struct elf_file *f, uint32_t section_type);
/*
 * Adds "name@plt" for each stub of the procedure linkage table; `f` is the binary itself. Call it when all symbols are
 * there: they name the stubs for functions that are chosen when the program starts, such as libc's calls of memcpy().
 */
bool symbol_table_add_plt(struct symbol_table *t, const struct elf_file *f);
bool symbol_table_finish(struct symbol_table *t);
const struct table_symbol *symbol_table_find(const struct symbol_table *t, uint64_t vaddr);
void symbol_table_deinit(struct symbol_table *t);

#endif
