/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, inlined functions, files and lines from DWARF, by address. */
#ifndef SYMBOLIZE_BINARY_DWARF_H
#define SYMBOLIZE_BINARY_DWARF_H

#include <elfutils/libdw.h>

#include "symbolize/binary/ranges.h"
#include "symbolize/binary/symbol_frame.h"

struct dwarf;
/*
 * Over an opened Dwarf, which stays the caller's and must outlive it. `code` tells real functions from those that the
 * linker dropped and left at address 0; borrowed. NULL when memory ran out.
 */
struct dwarf *dwarf_create(Dwarf *dw, const struct ranges *code);
void dwarf_destroy(struct dwarf *d);
/* Whether any unit says that it has code; a file may carry DWARF of no function at all. */
bool dwarf_has_functions(const struct dwarf *d);
/*
 * As symbols_lookup(), but `function` is NULL when unknown, is mangled where the language mangles, and 0 is returned
 * where DWARF knows nothing. Strings live as long as the Dwarf, or as `d`.
 * `*unqualified`: the last frame's language mangles, but DWARF has the name only, without class and arguments; the
 * symbol is better.
 */
uint32_t dwarf_lookup(struct dwarf *d, uint64_t vaddr, struct symbol_frame *frames, uint32_t max, bool *unqualified);

#endif
