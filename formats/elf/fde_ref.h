/* SPDX-License-Identifier: Apache-2.0 */
/* References to FDEs, which are collected in the order of their sections and used in the order of the code. */
#ifndef FORMATS_ELF_FDE_REF_H
#define FORMATS_ELF_FDE_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fde_ref {
    uint32_t pc;     /* of the function, relative to the file's lowest address of code */
    uint32_t offset; /* bytes, in its section; FDE_DEBUG marks those of .debug_frame */
};
#define FDE_DEBUG (1u << 31)

/* Sorts by pc; FDEs of one pc keep their order. False: out of memory, and the order is as it was. */
bool fde_refs_sort(struct fde_ref *refs, size_t count);

#endif
