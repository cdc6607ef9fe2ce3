/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native stacks out of snapshots: unwinds registers and a copy of the stack with the
 * mappings that the process had at that time, and finds the frames that the records of
 * the Python runs lie in.
 *
 * An unwinder caches what it learns about a process's mappings, so each process has one
 * of its own; the least recently used ones make room when there are many processes.
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
    struct unwinder *unwinder; /* NULL until needed, or again after it made room */
    VEC(struct unwind_mapping) mappings;
    uint64_t version; /* of epoch_process.mappings that `mappings` shows */
    uint64_t used;    /* when, by the count of snapshots */
};

/* {0} to begin with. */
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
/* The epoch ended: forgets its processes. */
void snapshots_clear(struct snapshots *s);
/* Unwinds into s->frames. *end: LOSS_complete, or why it ended early. */
struct error *snapshots_unwind(struct snapshots *s, struct modcache *modules, struct epoch *e, uint32_t snapshot,
                               uint64_t time_ns, uint32_t *end);
/* Frame `i` of s->frames, which is still that of this snapshot. */
struct snapshot_frame snapshots_frame(const struct snapshots *s, const struct epoch *e, uint32_t snapshot, uint32_t i);
/* The run whose record lies at that address on the stack: in which frame, counted from the outermost. */
struct merge_run snapshots_join(const struct snapshots *s, uint64_t address, uint64_t reason);

#endif
