/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables for the sampler. Worker threads build the table of each file once.
 * The main thread copies it into memory that BPF reads, equal ones once. When there can be no more
 * of that, tables that were not used for long make room; one process's tables do not push out those
 * of others.
 */
#ifndef CAPTURE_BINARY_TABLES_H
#define CAPTURE_BINARY_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/arch.h"
#include "bpf/wire.h"
#include "capture/binary/code_mappings.h"
#include "capture/binary/modules.h"
#include "capture/binary/table_space.h"
#include "capture/binary/table_wants.h"
#include "formats/base/err.h"
#include "formats/elf/unwind_table.h"

struct tables;
/* `modules` is borrowed. */
struct error *tables_create(const struct tables_memory *memory, struct modules *modules, struct tables **out);
void tables_destroy(struct tables *t);
/*
 * Fills `out` with the mapping in the form that the sampler reads. With `at_once` the worker begins to build the
 * module's table; otherwise that waits until a sample needs it. Calling again is cheap; a table that was removed is
 * built again.
 */
struct error *tables_map(struct tables *t, const struct module_asker *asker, const struct code_mapping *m,
                         uint64_t time_ns, bool at_once, struct wire_mapping *out);
/*
 * The table of a mapping's module, for the unwinder in user space. If it does not exist yet, it is waited for, a quarter
 * of a second at most and a fifth of the time in all. `*base` is the address of the module's pc 0. `*reason` is 0, or the
 * loss reason why there is no table. The view borrows the arrays and is valid until the next call.
 */
struct error *tables_view(struct tables *t, const struct module_asker *asker, const struct code_mapping *m,
                          uint64_t time_ns, struct unwind_table *view, uint64_t *base, uint32_t *reason);
/* How often a file got no number, as each had been given to another one: the sampler finds no table for it. */
uint64_t tables_lacked(const struct tables *t);
/*
 * Takes their numbers from files that are not used, so that others can have them: is_used() says whether a mapping that the
 * sampler may look at has that number. Stores how many that were.
 */
struct error *tables_reclaim(struct tables *t, bool (*is_used)(void *ctx, uint32_t number), void *ctx, uint64_t time_ns,
                             uint32_t *count);
/* Copies the tables that the worker has finished into the arrays. Call each time the ring is drained. */
struct error *tables_poll(struct tables *t, uint64_t time_ns);
/* What there was no room for. */
const struct table_wants *tables_wants(const struct tables *t);
/* Where tables lie. The most words there may be become fewer when the kernel has no more memory for them. */
const struct table_words *tables_words(const struct tables *t);
/* A file descriptor that becomes readable when the worker has finished a table; call tables_poll() then. */
int tables_fd(const struct tables *t);

#endif
