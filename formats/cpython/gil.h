/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads sleep that wait for an interpreter's lock, the GIL. They sleep in futex(), on a word of the lock's
 * condition variables and mutexes, in 2.7 on that of a semaphore: so the word's address tells such a wait from others.
 */
#ifndef FORMATS_CPYTHON_GIL_H
#define FORMATS_CPYTHON_GIL_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/cpython/layout.h"

struct py_gil {
    uint32_t kind; /* enum py_gil_kind (layout.h); the others are 0 with PY_GIL_NONE */
    /* RANGE: virtual address where the range begins. POINTER: of the pointer. INTERPRETER: offset in the state. */
    uint64_t address;
    uint16_t skip; /* bytes from what is pointed to up to the range; 0 with PY_GIL_RANGE */
    uint16_t len;  /* of the range, in bytes */
};

/* Variables up to 3.6, which are local. */
struct py_gil_variables {
    uint64_t lock_vaddr; /* 2.7: interpreter_lock; 0: not known, or another version */
    /* 3.3 to 3.6: gil_cond and so on; st_shndx SHN_UNDEF: the file is stripped, or another version */
    Elf64_Sym cond, mutex, switch_cond, switch_mutex;
};

/* The four variables of 3.3 to 3.6 lie in so many bytes together: each may be aligned to 64. */
#define PY_GIL_STATICS_MAX_BYTES 256

/*
 * `runtime_vaddr` is where _PyRuntime lies. PY_GIL_NONE where the place cannot be told from the file; then, up to 3.6, stacks
 * may show it: PY_GIL_LEARN if `may_learn`.
 */
struct py_gil py_gil_find(const struct py_layout *layout, uint64_t runtime_vaddr, const struct py_gil_variables *variables,
                          bool may_learn);

#endif
