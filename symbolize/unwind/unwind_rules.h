/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes call frame information fit for libunwind, which trusts it: it indexes arrays with register numbers from it,
 * asserts that a CFA was defined, follows expressions wherever they jump, and reads the personality routine's pointer
 * out of the process's data only to drop it.
 */
#ifndef SYMBOLIZE_UNWIND_UNWIND_RULES_H
#define SYMBOLIZE_UNWIND_UNWIND_RULES_H

#include "formats/base/buf.h"
#include "formats/elf/cfi.h"
#include "formats/elf/machine.h"

/*
 * Appends a CIE and an FDE in plain .eh_frame form, with absolute addresses moved by `bias`, and gives the offset of
 * the FDE in `out`. False when the programs hold something that cannot be given to libunwind, or memory ran out.
 */
bool unwind_rules_append(const struct machine *machine, const struct cfi_fde *fde, uint64_t bias, struct buf *out,
                         uint64_t *fde_offset);

#endif
