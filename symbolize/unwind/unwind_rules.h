/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks call frame information before libunwind gets it, because libunwind trusts it: it indexes arrays with register
 * numbers from it, asserts that a CFA was defined, follows every jump in an expression, and reads the pointer of the
 * personality routine from the process's data without need.
 */
#ifndef SYMBOLIZE_UNWIND_UNWIND_RULES_H
#define SYMBOLIZE_UNWIND_UNWIND_RULES_H

#include "formats/base/buf.h"
#include "formats/elf/cfi.h"
#include "formats/elf/machine.h"

/*
 * Appends a CIE and an FDE in plain .eh_frame form, with absolute addresses moved by `bias`, and sets *fde_offset to
 * the offset of the FDE in `out`. False when libunwind cannot be given the programs safely, or memory ran out.
 */
bool unwind_rules_append(const struct machine *machine, const struct cfi_fde *fde, uint64_t bias, struct buf *out,
                         uint64_t *fde_offset);

#endif
