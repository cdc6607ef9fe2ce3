/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the programs of call frame information (DWARF 5, section 6.4.2) and gives, for
 * each range of code, the rules of the registers that an unwinder follows: where the
 * CFA is, and where the frame keeps the return address, the frame pointer (RBP) and
 * the base (RBX). Which these are, struct machine says.
 *
 * Expressions are not run but understood: those that add up to "a register plus a
 * number", with at most one load, become rules as plain ones are; others are marked.
 */
#ifndef FORMATS_ELF_UNWIND_PROGRAM_H
#define FORMATS_ELF_UNWIND_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf/unwind_row.h"
#include "formats/elf/cfi.h"
#include "formats/elf/machine.h"

/* Kinds beside those of enum unwind_rule_kind. */
enum {
    RULE_PLT = 0xfe,   /* the CFA in a PLT; offset is the threshold */
    RULE_OTHER = 0xff, /* an expression that is not understood, or an offset that does not fit */
};

struct unwind_rules {
    struct unwind_wide wide;
    struct unwind_rule rsp; /* SAME: the caller's RSP is the CFA, as nothing else was said */
};

/* Called with rising `pc`: the rules from there on. False ends the run (out of memory). */
typedef bool (*unwind_rules_fn)(void *ctx, uint64_t pc, const struct unwind_rules *rules);

enum unwind_program_result {
    UNWIND_PROGRAM_OK,
    UNWIND_PROGRAM_BROKEN,  /* from *broken_pc on nothing is known */
    UNWIND_PROGRAM_STOPPED, /* by the callback */
};

/* What the CIE's program leaves behind. False when it breaks the format or is for another machine. */
bool unwind_program_initial(const struct machine *machine, const struct cfi_section *s, const struct cfi_fde *fde,
                            struct unwind_rules *out);
enum unwind_program_result unwind_program_run(const struct machine *machine, const struct cfi_section *s,
                                              const struct cfi_fde *fde, const struct unwind_rules *initial,
                                              unwind_rules_fn row, void *ctx, uint64_t *broken_pc);

#endif
