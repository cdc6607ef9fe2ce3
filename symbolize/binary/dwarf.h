/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up functions, inlined functions, files and lines in DWARF, by address. */
#ifndef SYMBOLIZE_BINARY_DWARF_H
#define SYMBOLIZE_BINARY_DWARF_H

#include <elfutils/libdw.h>

#include "symbolize/binary/ranges.h"
#include "symbolize/binary/symbol_frame.h"

struct dwarf;
/*
 * Creates a lookup over an open Dwarf, which stays the caller's and must outlive it. `code` (borrowed) holds the ranges
 * of instructions: functions outside of them were dropped by the linker. NULL when memory ran out.
 */
struct dwarf *dwarf_create(Dwarf *dw, const struct ranges *code);
void dwarf_destroy(struct dwarf *d);
/* True if any unit covers code; a file may have DWARF without any function. */
bool dwarf_has_functions(const struct dwarf *d);
/*
 * Like symbols_lookup(), but `function` is NULL when unknown and mangled if the language mangles names. Returns 0 if
 * DWARF does not cover the address. Strings live as long as the Dwarf and `d`.
 * `*unqualified`: the language of the last frame mangles names, but DWARF has the plain name, without class and
 * arguments; a symbol table has a better one.
 */
uint32_t dwarf_lookup(struct dwarf *d, uint64_t vaddr, struct symbol_frame *frames, uint32_t max, bool *unqualified);

#endif
