/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel addresses, from /proc/kallsyms of the running kernel, including modules
 * and BPF programs. The file is read once, beside what else is to do, and again for an address
 * that is in no known symbol: a module or BPF program may have been loaded since.
 */
#ifndef CAPTURE_HOST_KALLSYMS_H
#define CAPTURE_HOST_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

struct kallsyms;
/* Opens the file: the privileges of this moment decide whether it shows addresses. */
struct error *kallsyms_create(struct kallsyms **out);
/*
 * Has a thread read the table, which takes it a twentieth of a second or more. The first lookup waits for it; without this
 * it reads the table itself. `begin` runs first in the thread, to give up privileges. Programs of BPF that are loaded later
 * have no name in it.
 */
void kallsyms_begin(struct kallsyms *k, void (*begin)(void), uint64_t time_ns);
/* Whether the thread is still at it: then a lookup would wait. */
bool kallsyms_is_being_read(const struct kallsyms *k);
/* Waits for the thread, if there is one. */
void kallsyms_wait(struct kallsyms *k);
/*
 * Reads the table now. A table that cannot be read is no error: lookups find nothing then.
 */
struct error *kallsyms_load(struct kallsyms *k, uint64_t time_ns);
/* Waits for the thread, which is told to end. */
void kallsyms_destroy(struct kallsyms *k);

struct kernel_symbol {
    uint64_t address;   /* where the symbol starts */
    const char *name;   /* owned by kallsyms, valid until the next lookup */
    const char *module; /* "" for the kernel itself */
};
/*
 * Looks an address up. When it has no name, or addresses are hidden (kptr_restrict, no CAP_SYSLOG), `*found` is false
 * and `*out` unchanged. `time_ns` (CLOCK_MONOTONIC) limits how often the file is read again.
 */
struct error *kallsyms_lookup(struct kallsyms *k, uint64_t address, uint64_t time_ns, struct kernel_symbol *out, bool *found);

/* Parses kallsyms text; for tests. */
struct error *kallsyms_parse(struct kallsyms *k, const char *text, size_t len_bytes);

#endif
