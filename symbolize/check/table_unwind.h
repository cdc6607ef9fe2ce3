/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds a snapshot as the kernel does: the unwinder of bpf/native_unwind.h, built for
 * this host, over tables made from the binaries at hand. What differs from the stack that
 * was recorded was not known to the kernel, or is a fault in it.
 */
#ifndef SYMBOLIZE_CHECK_TABLE_UNWIND_H
#define SYMBOLIZE_CHECK_TABLE_UNWIND_H

#include "formats/base/err.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/check/witness.h"

struct table_unwinder;
/* `modules` is borrowed. */
struct error *table_unwinder_create(struct modcache *modules, struct table_unwinder **out);
void table_unwinder_destroy(struct table_unwinder *t);
/* `shot` has the registers of the machine that bpf/arch.h says. */
struct error *table_unwinder_run(struct table_unwinder *t, const struct epoch *e, const struct trace_snapshot *shot,
                                 const struct unwind_mapping *mappings, uint32_t count, struct witness_stack *out);

#endif
