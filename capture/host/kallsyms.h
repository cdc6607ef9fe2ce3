/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel addresses, from /proc/kallsyms of the running kernel, including modules
 * and BPF programs. The file is read at the first lookup, and again for an address that is
 * in no known symbol: a module or BPF program may have been loaded since.
 */
#ifndef CAPTURE_HOST_KALLSYMS_H
#define CAPTURE_HOST_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

struct kallsyms;
struct error *kallsyms_create(struct kallsyms **out);
/*
 * Reads the table now, which takes a tenth of a second; otherwise the first lookup does. A table that cannot be read is
 * no error: lookups find nothing then.
 */
struct error *kallsyms_load(struct kallsyms *k, uint64_t time_ns);
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
