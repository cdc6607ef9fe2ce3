/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables for the sampler: built once per module by a worker, off the draining
 * path, laid into the arrays that the BPF side reads, and taken out again, coldest
 * first, when the memory that was allowed for them is used up.
 */
#ifndef CAPTURE_BINARY_TABLES_H
#define CAPTURE_BINARY_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf/unwind_row.h"
#include "bpf/arch.h"
#include "bpf/wire.h"
#include "capture/binary/code_mappings.h"
#include "capture/binary/modules.h"
#include "formats/base/err.h"
#include "formats/elf/unwind_table.h"

/* The arrays, mapped into this process; the sampler owns them. */
struct tables_memory {
    struct unwind_row *rows;
    uint64_t *index;
    struct unwind_wide *wide;
    struct wire_module *modules;
    uint32_t row_count, index_count, wide_count, module_count;
    /* Called before elements of the first three are touched for the first time; NULL: all are mapped already. */
    struct error *(*map_pages)(void *ctx, const void *start, size_t len_bytes);
    void *ctx;
};

struct tables;
struct error *tables_create(const struct tables_memory *memory, struct tables **out);
void tables_destroy(struct tables *t);
/*
 * A mapping as the sampler is to see it. With `at_once` its module's table is asked for, else a sample has to need it.
 * Asking again costs nothing, unless the table was taken out: then it is built again.
 */
struct error *tables_map(struct tables *t, pid_t pid, const struct code_mapping *m, uint64_t time_ns, bool at_once,
                         struct wire_mapping *out);
/*
 * The table behind a mapping, for the unwinder in user space; it is built on the spot where it is not there yet.
 * *reason is 0, or the loss reason why there is no table. The view borrows the arrays: valid until the next call.
 */
struct error *tables_view(struct tables *t, pid_t pid, const struct code_mapping *m, uint64_t time_ns,
                          struct unwind_table *view, uint64_t *base, uint32_t *reason);
/* Lays in what the worker has finished. Call at each draining. */
struct error *tables_poll(struct tables *t, uint64_t time_ns);
/* The file descriptor that becomes readable when there is something to poll for. */
int tables_fd(const struct tables *t);

#endif
