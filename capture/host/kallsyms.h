/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel addresses, from /proc/kallsyms of the running kernel: modules and BPF
 * programs included. Read when the first kernel address is met, and again when one lies
 * behind everything known (a module or a BPF program that was loaded later).
 */
#ifndef CAPTURE_HOST_KALLSYMS_H
#define CAPTURE_HOST_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

struct kallsyms;
struct error *kallsyms_create(struct kallsyms **out);
/* Reads the table, which takes a tenth of a second: else the first lookup does. A table that cannot be read is no error: nothing is found in it then. */
struct error *kallsyms_load(struct kallsyms *k, uint64_t time_ns);
void kallsyms_destroy(struct kallsyms *k);

struct kernel_symbol {
    uint64_t address;   /* of its start */
    const char *name;   /* owned by kallsyms, valid until the next lookup */
    const char *module; /* "" for the kernel itself */
};
/*
 * `*found` is false, and `*out` untouched, when the address has no name (or addresses are hidden: kptr_restrict, no
 * CAP_SYSLOG). `time_ns` paces rereading.
 */
struct error *kallsyms_lookup(struct kallsyms *k, uint64_t address, uint64_t time_ns, struct kernel_symbol *out, bool *found);

/* Parses kallsyms text; for tests. */
struct error *kallsyms_parse(struct kallsyms *k, const char *text, size_t len_bytes);

#endif
