/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind for the machine that a trace is from, whatever machine this is: its remote part, which has a library and
 * names of its own for each machine. A step of the unwinder (unwind.c) is: find the row of rules in force at an address,
 * or apply a row found before.
 */
#ifndef SYMBOLIZE_UNWIND_REMOTE_H
#define SYMBOLIZE_UNWIND_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/elf/machine.h"

/* What libunwind sees of the process. `ctx` is handed back. */
struct remote_process {
    void *ctx;
    bool (*read_memory)(void *ctx, uint64_t address, uint64_t *value);
    /* By DWARF number; that of the program counter is the address of code whose rules are wanted. */
    bool (*read_register)(void *ctx, uint32_t number, uint64_t *value);
    /*
     * A search table of one row at `*table`, readable as memory, whose row counts from `*base`, where the FDE of `pc`
     * is. False: there is none.
     */
    bool (*find_fde)(void *ctx, uint64_t pc, uint64_t *base, uint64_t *table);
    /* A row that holds at [start, end). True: it is the one that was looked for. */
    bool (*take_row)(void *ctx, const void *row, size_t len_bytes, uint64_t start, uint64_t end);
};

/* libunwind's state within a step. */
struct remote_cursor {
    _Alignas(16) uint8_t bytes[8192];
};

struct remote {
    const char *machine; /* the name of a struct machine */
    /* An address space; one that is made for a process must be used for no other at the same time. NULL: out of memory. */
    void *(*create)(void);
    void (*destroy)(void *space);
    /* Calls take_row() with the rows around the program counter. False: libunwind cannot begin. */
    bool (*find_row)(void *space, const struct remote_process *process);
    /* The caller's registers by a row: more than 0; 0: the row says that there is no caller; less: failed. */
    int (*apply_row)(void *space, const struct remote_process *process, const void *row, struct remote_cursor *cursor);
    /* After that: one of these registers, and where in memory it was saved. False: it has no value, or was not. */
    bool (*caller_register)(struct remote_cursor *cursor, uint32_t number, uint64_t *value);
    bool (*saved_at)(struct remote_cursor *cursor, uint32_t number, uint64_t *address);
};

/* NULL: this program has no libunwind for it. */
const struct remote *remote_of(const struct machine *machine);

#endif
