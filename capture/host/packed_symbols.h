/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hundred thousand names by their addresses, of which a recording asks for a few hundred. They are kept as blocks of
 * some kilobytes, sorted by address and packed, a quarter of what the names alone would take; a search unpacks one block.
 *
 * The kernel lists most of its symbols in order of their addresses: those go into blocks as they come. The others, of
 * modules and BPF programs, are sorted at the end and make blocks of their own; a search looks into both.
 */
#ifndef CAPTURE_HOST_PACKED_SYMBOLS_H
#define CAPTURE_HOST_PACKED_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packed_symbols;
/* NULL: out of memory. */
struct packed_symbols *packed_symbols_create(void);
void packed_symbols_destroy(struct packed_symbols *n);
/*
 * Adds a name and its module (of `module_len` bytes; 0: the kernel itself), neither with a NUL. Of several names for one
 * address the first one counts. False: out of memory.
 */
bool packed_symbols_add(struct packed_symbols *n, uint64_t address, const char *name, size_t len, const char *module,
                      size_t module_len);
/* Call once, when all are added, and before the first search. False: out of memory. */
bool packed_symbols_end(struct packed_symbols *n);

struct packed_symbol {
    uint64_t address;
    const char *name, *module; /* valid until the next search */
};
/* Finds the name with the highest address up to `address`. False: there is none. */
bool packed_symbols_find(struct packed_symbols *n, uint64_t address, struct packed_symbol *out);

#endif
