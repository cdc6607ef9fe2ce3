/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the programs of call frame information (DWARF 5, section 6.4.2). For each range
 * of code they give the rules of the registers that an unwinder follows: the CFA, and
 * where the frame keeps the return address, the frame pointer (rbp) and the base (rbx);
 * struct machine has their numbers.
 *
 * Expressions are simplified: one that comes to "a register plus a number", with at
 * most one load, becomes an ordinary rule; any other is RULE_OTHER.
 */
#ifndef FORMATS_ELF_UNWIND_PROGRAM_H
#define FORMATS_ELF_UNWIND_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf/unwind_row.h"
#include "formats/elf/cfi.h"
#include "formats/elf/machine.h"

/* Kinds in addition to enum unwind_rule_kind. */
enum {
    RULE_PLT = 0xfe,   /* the CFA in a PLT; offset is the threshold */
    RULE_OTHER = 0xff, /* an expression that cannot be simplified, or an offset that does not fit */
};

struct unwind_rules {
    struct unwind_wide wide;
    struct unwind_rule rsp; /* UNWIND_SAME, the default: the caller's RSP is the CFA */
};

/* Called with ascending `pc`, a virtual address: the rules from there on. False ends the run (out of memory). */
typedef bool (*unwind_rules_fn)(void *ctx, uint64_t pc, const struct unwind_rules *rules);

enum unwind_program_result {
    UNWIND_PROGRAM_OK,
    UNWIND_PROGRAM_BROKEN,  /* from *broken_pc on nothing is known */
    UNWIND_PROGRAM_STOPPED, /* by the callback */
};

/* Runs the CIE's program. False when it breaks the format or is for another machine. */
bool unwind_program_initial(const struct machine *machine, const struct cfi_section *s, const struct cfi_fde *fde,
                            struct unwind_rules *out);
/* Runs the FDE's program from the CIE's rules, and calls `row` whenever the rules change. *broken_pc: see the result. */
enum unwind_program_result unwind_program_run(const struct machine *machine, const struct cfi_section *s,
                                              const struct cfi_fde *fde, const struct unwind_rules *initial,
                                              unwind_rules_fn row, void *ctx, uint64_t *broken_pc);

#endif
