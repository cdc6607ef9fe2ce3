/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from an interpreter's machine code, where symbols are missing: stripped builds, and versions up to 3.10. */
#ifndef FORMATS_CPYTHON_MACHINE_CODE_H
#define FORMATS_CPYTHON_MACHINE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf/file.h"

/* Code, as virtual addresses of the file: [start, end). */
struct py_range {
    uint64_t start, end;
};

/* PY_VERSION_HEX, from the string that Py_GetVersion() formats; 0: not found. */
uint32_t py_machine_version(const struct elf_file *f, const Elf64_Sym *get_version);
/*
 * The address of the variable that a small function loads first: as its result, or with `argument` as the first argument
 * of a call; of 8 bytes with `wide`, else 4. 0: not found.
 */
uint64_t py_machine_variable(const struct elf_file *f, const Elf64_Sym *function, bool argument, bool wide);
/*
 * The part of a function that the compiler split off and put elsewhere (GCC's .cold). False: not found.
 */
bool py_machine_cold_part(const struct elf_file *f, struct py_range function, struct py_range *out);

#endif
