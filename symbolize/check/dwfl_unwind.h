/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds a snapshot with libdwfl of elfutils, the second witness beside libunwind. It
 * parses and interprets call frame information with code of its own.
 *
 * libdwfl follows frame pointers where there is no call frame information (elfutils 0.173
 * and later, on x86-64). This file looks for the information first and stops where there is none.
 */
#ifndef SYMBOLIZE_CHECK_DWFL_UNWIND_H
#define SYMBOLIZE_CHECK_DWFL_UNWIND_H

#include "formats/base/err.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/check/witness.h"

/* The modules of one process at one time, reported to libdwfl. */
struct dwfl_space;
/* All arguments are borrowed, the mappings too. */
struct error *dwfl_space_create(struct modcache *modules, const struct epoch *e, const struct unwind_mapping *mappings,
                                uint32_t count, struct dwfl_space **out);
void dwfl_space_destroy(struct dwfl_space *s);
/* `shot` must have the registers of the machine. */
void dwfl_space_unwind(struct dwfl_space *s, const struct trace_snapshot *shot, struct witness_stack *out);

#endif
