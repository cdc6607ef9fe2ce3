/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler has room for so many layouts of CPython's objects at once. Processes with equal ones share a slot. Each row of
 * versions.def has a slot of its own, which no other layout gets: a known version always has a place. Of the others, one that
 * no process has any more can be given to another layout. A layout comes from a file that anybody may have made up, so the one
 * that brings a new one takes it from its quota.
 */
#ifndef CAPTURE_PROCESS_LAYOUT_SLOTS_H
#define CAPTURE_PROCESS_LAYOUT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/host/quotas.h"
#include "formats/cpython/layout.h"

#define LAYOUT_SLOTS_MAX 64 /* as in bpf/sampler_state.h */
#define LAYOUT_NONE UINT32_MAX

struct layout_slot {
    struct py_layout layout;
    uint32_t holders;     /* processes */
    uint32_t payer;       /* slot of the one of them whose quota it counts for */
    uint64_t released_ns; /* when the last one left it */
    bool of_row;          /* it is kept for a row of versions.def, and nobody pays for it */
    bool given;           /* likewise, the sampler has it */
};

/* {0} is empty. */
struct layout_slots {
    struct layout_slot all[LAYOUT_SLOTS_MAX];
    bool begun;           /* the slots of rows are set */
    uint64_t released_ns; /* when the last holder of one left it, or who pays for it, of the newest; 0: none was left */
};

/*
 * `layout` is as py_layout_of_walk() leaves it. Returns the index of the layout, of which the process in `slot` becomes a holder. `*fresh`: the sampler does not have it there
 * yet. LAYOUT_NONE: there is no room, or the process's quota has none. The caller counts that.
 */
uint32_t layout_slots_take(struct layout_slots *l, struct quotas *quotas, uint32_t slot, const struct py_layout *layout,
                           uint64_t time_ns, bool *fresh);
/* Whether there may be room for one that had none at `since_ns`, or just before: one was left, or may be given away by now. */
bool layout_slots_may_have_room(const struct layout_slots *l, uint64_t since_ns);
/* Whether the process that holds `index` pays for it, and leaves it to others. */
bool layout_slots_wants_heir(const struct layout_slots *l, uint32_t index, uint32_t slot);
/* The process in `slot` does not hold `index` any more. `heir` is another holder that pays from now on, if one is wanted. */
void layout_slots_leave(struct layout_slots *l, struct quotas *quotas, uint32_t index, uint32_t slot, uint32_t heir,
                        uint64_t time_ns);

#endif
