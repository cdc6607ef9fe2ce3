/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CPython linked into a program that exports nothing, and is stripped: no symbol is left. _PyRuntime has a section of its
 * own since 3.11; what else is needed is told by constants, and by types that the program has as data.
 */
#ifndef FORMATS_CPYTHON_STRIPPED_H
#define FORMATS_CPYTHON_STRIPPED_H

#include <stdint.h>

#include "formats/elf/dynamic.h"
#include "formats/elf/file.h"

/*
 * PY_VERSION_HEX, by the text of the version ("3.11.2"), of which "cpython-311" has to be beside it, as in sys.implementation.
 * 0: they are not there, or there is more than one. Costs a read of all constants.
 */
uint32_t py_stripped_version(const struct elf_file *f);

/* A static type: one of a name, whose objects have these sizes (tp_name, tp_basicsize, tp_itemsize). */
struct py_stripped_type {
    const char *name;
    uint64_t basic_bytes, item_bytes;
    uint64_t vaddr; /* the result; 0: not found, or more than one */
};
/* `header_bytes`: of an object with a size (PyVarObject), as types are. Costs a read of all data and relocations. */
void py_stripped_types(const struct elf_file *f, const struct elf_dynamic *d, uint64_t header_bytes, struct py_stripped_type *types,
                       uint32_t count);

#endif
