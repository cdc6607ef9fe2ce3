/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds a snapshot as the kernel does: the unwinder of bpf/native_unwind.h, built for
 * this host, over tables made from the binaries at hand. If the result differs from the
 * recorded stack, the sampler did not have the table or mapping yet, or has a bug.
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
/* `shot` must have the registers of the machine in bpf/arch.h, for which this program was built. */
struct error *table_unwinder_run(struct table_unwinder *t, const struct epoch *e, const struct trace_snapshot *shot,
                                 const struct unwind_mapping *mappings, uint32_t count, struct witness_stack *out);

#endif
