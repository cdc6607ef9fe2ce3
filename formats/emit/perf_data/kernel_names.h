/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's symbols as far as a trace has them, as a text like /proc/kallsyms, for hotspot:
 *
 *     ffffffff81000000 T do_syscall_64
 *
 * A symbol reaches to the next one. That is right for the addresses of one kernel, since a symbol that was not met has no
 * address that was. Addresses that are nameless, contradict what is there (the kernel was another one after a reboot), or
 * cannot be the kernel's, get an entry of their own in a range that no kernel uses; the call chain then has that made-up
 * address, not the recorded one.
 */
#ifndef FORMATS_EMIT_PERF_DATA_KERNEL_NAMES_H
#define FORMATS_EMIT_PERF_DATA_KERNEL_NAMES_H

#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"

/* All addresses are in this range: what a record of the kernel's mapping says. */
#define KERNEL_NAMES_START UINT64_C(0xffff800000000000)
#define KERNEL_NAMES_END UINT64_C(0xfffffffffffff000)
enum { KERNEL_NAMES_ID_BYTES = 20 };
/* The path of the mapping in records and in the cache. */
#define KERNEL_NAMES_PATH "[kernel.kallsyms]"

struct kernel_names;

/* `model` is borrowed until kernel_names_destroy(). Memory is taken from `limits`, which may be NULL. */
struct error *kernel_names_create(const struct emit_model *model, struct limits *limits, struct kernel_names **out);
void kernel_names_destroy(struct kernel_names *names); /* accepts NULL */
/* The address of a kernel frame of the model, for the call chain. Code of kernel modules has kernel frames, too. */
struct error *kernel_names_address(struct kernel_names *names, uint32_t frame, uint64_t *address);
/* Has kernel_names_address() been called? */
bool kernel_names_are_used(const struct kernel_names *names);
/* Makes the text, after the last address was given out. */
struct error *kernel_names_finish(struct kernel_names *names);
/*
 * A build ID for the finished text, its hash. The kernel's own build ID must not be used with it: a part of the symbols under
 * the true ID would give other recordings of that kernel wrong names.
 */
const uint8_t *kernel_names_build_id(const struct kernel_names *names);
/* Writes the finished text. The caller checks and closes `out`. */
struct error *kernel_names_write(const struct kernel_names *names, FILE *out);
/* Writes the same symbols as an ELF file with that build ID, likewise. */
struct error *kernel_names_write_elf(const struct kernel_names *names, FILE *out);

#endif
