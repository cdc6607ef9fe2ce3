/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes native stacks out of snapshots: unwinds registers and a copy of the stack with
 * the mappings that the process had at that time, and finds the frames that contain the
 * records of the Python runs.
 *
 * An unwinder caches what it learns about a process's mappings, so each process has one
 * of its own. When there are too many, the least recently used ones are destroyed.
 */
#ifndef SYMBOLIZE_STACK_SNAPSHOT_H
#define SYMBOLIZE_STACK_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/unwind/unwind.h"

struct snapshot_process {
    struct unwinder *unwinder; /* NULL until needed, and after it was destroyed */
    VEC(struct unwind_mapping) mappings;
    uint64_t version; /* of epoch_process.mappings that `mappings` shows */
    uint64_t used;    /* last use, by snapshots.clock */
};

/* Begins as {0}. */
struct snapshots {
    VEC(struct snapshot_process) processes; /* by the epoch's id */
    uint32_t unwinder_count;
    uint64_t clock, generation;
    VEC(struct unwind_frame) frames; /* of the last one unwound, innermost first */
};

struct snapshot_frame {
    uint32_t module; /* the epoch's id, 0 for an absolute address */
    uint64_t offset; /* in the module's file, or the address */
    bool return_address;
};

void snapshots_deinit(struct snapshots *s);
/* Call when the epoch ends: forgets its processes. */
void snapshots_clear(struct snapshots *s);
/* Unwinds into s->frames. *end: LOSS_complete, or why it ended early. */
struct error *snapshots_unwind(struct snapshots *s, struct modcache *modules, struct epoch *e, uint32_t snapshot,
                               uint64_t time_ns, uint32_t *end);
/* Frame `i` of s->frames. The last call of snapshots_unwind() must have been for this snapshot. */
struct snapshot_frame snapshots_frame(const struct snapshots *s, const struct epoch *e, uint32_t snapshot, uint32_t i);
/* Finds the frame, counted from the outermost, that contains the record of a run at that address of the stack. */
struct merge_run snapshots_join(const struct snapshots *s, uint64_t address, uint64_t reason);

#endif
