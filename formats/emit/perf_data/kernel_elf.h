/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's symbols as an ELF file, like a vmlinux without code. perf looks for it in the build-id cache before it looks
 * for anything else. A text like /proc/kallsyms in the cache is not enough: perf 7.2 takes the running kernel's in its
 * place, whatever the build ID (tools/perf/util/symbol.c, dso__find_kallsyms()).
 */
#ifndef FORMATS_EMIT_PERF_DATA_KERNEL_ELF_H
#define FORMATS_EMIT_PERF_DATA_KERNEL_ELF_H

#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/sha1.h"

struct kernel_elf {
    struct buf symbols, strings; /* by kernel_elf_symbol() */
};

void kernel_elf_deinit(struct kernel_elf *elf);
void kernel_elf_symbol(struct kernel_elf *elf, const void *name, size_t len_bytes, uint64_t start, uint64_t end);
/* All symbols are from `start` to `end`, what perf shall take for the kernel's code. */
struct error *kernel_elf_write(const struct kernel_elf *elf, uint64_t start, uint64_t end,
                               const uint8_t build_id[static SHA1_BYTES], FILE *out);

#endif
