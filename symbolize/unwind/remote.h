/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind for the machine that a trace was recorded on, whatever machine pysym runs on: libunwind's remote part has a
 * library, with names of its own, for each machine. A step of the unwinder (unwind.c) finds the row of rules for an
 * address, or applies a row that was found before.
 */
#ifndef SYMBOLIZE_UNWIND_REMOTE_H
#define SYMBOLIZE_UNWIND_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/elf/machine.h"

/* What libunwind sees of the process. `ctx` is passed to each function. */
struct remote_process {
    void *ctx;
    bool (*read_memory)(void *ctx, uint64_t address, uint64_t *value);
    /* By DWARF number. The program counter is the code address whose rules are looked up. */
    bool (*read_register)(void *ctx, uint32_t number, uint64_t *value);
    /*
     * Sets *table to the address of a search table with one row, for the FDE of `pc`; read_memory() can read it. Its
     * offsets count from *base. False: `pc` has no FDE.
     */
    bool (*find_fde)(void *ctx, uint64_t pc, uint64_t *base, uint64_t *table);
    /* Takes the row of rules for [start, end). True: it is the wanted row, stop. */
    bool (*take_row)(void *ctx, const void *row, size_t len_bytes, uint64_t start, uint64_t end);
};

/* libunwind's state within a step. */
struct remote_cursor {
    _Alignas(16) uint8_t bytes[8192];
};

struct remote {
    const char *machine; /* the name of a struct machine */
    /* Creates an address space. Use it for one process at a time. NULL: out of memory. */
    void *(*create)(void);
    void (*destroy)(void *space);
    /* Calls take_row() with the rows around the program counter. False: libunwind cannot begin. */
    bool (*find_row)(void *space, const struct remote_process *process);
    /* Computes the caller's registers by a row. > 0: done; 0: the row says that there is no caller; < 0: failed. */
    int (*apply_row)(void *space, const struct remote_process *process, const void *row, struct remote_cursor *cursor);
    /*
     * After apply_row(): a register of the caller, and the address where it was saved. False: it has no value; not
     * saved.
     */
    bool (*caller_register)(struct remote_cursor *cursor, uint32_t number, uint64_t *value);
    bool (*saved_at)(struct remote_cursor *cursor, uint32_t number, uint64_t *address);
};

/* NULL: this program is not linked with libunwind for that machine. */
const struct remote *remote_of(const struct machine *machine);

#endif
