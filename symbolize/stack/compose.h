/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composes the stack that is shown for a tuple of the trace: lists its kernel, native and Python frames, unwinds the
 * snapshot if there is one, lets merge.c lay out the order, and builds the stack in the model.
 */
#ifndef SYMBOLIZE_STACK_COMPOSE_H
#define SYMBOLIZE_STACK_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"
#include "formats/base/vec.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/composed_cache.h"
#include "symbolize/stack/frames.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/stack/model.h"
#include "symbolize/stack/snapshot.h"

struct compose_options {
    enum merge_interpreter interpreter;
    bool python_only; /* no kernel and no native frames; nothing is unwound or opened */
};

/* The first five members are set by the owner, who keeps what they point to; the rest begins as zero. */
struct composer {
    struct compose_options options;
    struct limits *limits; /* NULL: none */
    struct model *model;
    struct modcache *modules;
    struct frames *frames;

    struct composed_cache cache; /* over all epochs */

    /* Of the epoch. */
    VEC(uint32_t) touched; /* module cache index << 1 | unresolved */
    uint32_t last_touched; /* where the module of the frame before is, perhaps */
    struct snapshots snapshots;

    /* Scratch for the current tuple, lists outermost first. */
    VEC(uint32_t) kernel, python, native; /* emit frames, emit frames, expansions */
    VEC(uint32_t) ids;
    VEC(struct merge_native) merge_native;
    VEC(bool) run_start;
    VEC(struct merge_run) runs;
    struct merge_output merged;
    struct buf key;
};

void composer_deinit(struct composer *c);
/* Call when the epoch ends: forgets its ids. */
void composer_clear(struct composer *c);
/*
 * `interpreter` is the text that Python frames get as their module. A snapshot is unwound with the mappings that its
 * process had at `time_ns` (CLOCK_MONOTONIC), and is released.
 */
struct error *compose(struct composer *c, struct epoch *e, uint32_t tuple, uint32_t interpreter, uint64_t time_ns,
                      struct composed *out);

#endif
