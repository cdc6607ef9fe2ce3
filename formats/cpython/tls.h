/* SPDX-License-Identifier: Apache-2.0 */
/* Where a thread finds a thread-local variable of an ELF file, from the file's code and symbols. */
#ifndef FORMATS_CPYTHON_TLS_H
#define FORMATS_CPYTHON_TLS_H

#include <stdint.h>

#include "formats/cpython/layout.h"
#include "formats/elf/dynamic.h"

/* Where a thread finds the variable; enum py_tls_kind (layout.h) says how to read the fields. */
struct py_tls {
    uint32_t kind; /* enum py_tls_kind */
    int64_t offset;
    union {
        uint64_t module_id_vaddr; /* PY_TLS_MODULE: where the dynamic linker stores the module number; 0 unknown */
        uint64_t slot_vaddr;      /* PY_TLS_SLOT, PY_TLS_DESCRIPTOR */
    };
};

/*
 * `getters` are functions that return the variable, `variable` is its own symbol; st_shndx SHN_UNDEF marks a symbol
 * that the file does not have. tls->kind is PY_TLS_NONE when the place cannot be found.
 */
void py_tls_find(const struct elf_file *f, const struct elf_dynamic *d, const Elf64_Sym *getters, uint32_t getter_count,
                 const Elf64_Sym *variable, struct py_tls *tls);

#endif
