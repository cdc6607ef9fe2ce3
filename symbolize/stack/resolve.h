/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an epoch's numbers to what a reader of a profile sees: struct emit_model.
 *
 * The model lives as long as the resolver, over all epochs and files; in it frames are
 * interned by their contents, stacks by (parent, frame), processes and threads by
 * identity. Work is done once per distinct thing: an epoch's frame, tuple, thread is
 * resolved when a sample first needs it, and every further sample costs three lookups
 * in arrays. Only a snapshot is its sample's own: it is unwound with the mappings that
 * its process had at the sample's time, and from there on goes the way of all stacks.
 */
#ifndef SYMBOLIZE_STACK_RESOLVE_H
#define SYMBOLIZE_STACK_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/trace/input.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/stack/stack_map.h"

struct resolver_options {
    struct binaries_options binaries;
    bool show_interpreter;
    bool python_only; /* no kernel and no native frames; nothing is unwound or opened */
    struct stack_map_options stacks;
};

/* Samples by how a part of their stack ended: [0] nothing asked for, [LOSS_complete] whole, else by loss reason. */
struct resolver_ends {
    uint64_t count[LOSS_LIMIT + 1]; /* the last one: reasons that this version does not know */
};
struct resolver_stats {
    uint64_t sample_count, snapshot_count;
    uint64_t unresolved_count; /* samples with a native frame that is shown without a name */
    uint64_t no_frame_count;                 /* samples with an eval loop that runs no Python frame */
    uint64_t no_frame[MERGE_NO_FRAME_LIMIT]; /* of them, by cause; a sample may have several */
    struct resolver_ends python, native, join;
};

struct resolver;
struct error *resolver_create(const struct resolver_options *options, struct resolver **out);
void resolver_destroy(struct resolver *r);

/* The model as it stands; the pointers in it change while samples are resolved, the struct itself stays. */
const struct emit_model *resolver_model(const struct resolver *r);
/* Does it unwind snapshots? Else an epoch need not keep their contents. */
bool resolver_unwinds(const struct resolver *r);
/* Another file begins: what has no boot ID is a host of its own. `input` stays valid while it is read. */
struct error *resolver_begin_file(struct resolver *r, const struct input *input);
/* Before the epoch is forgotten: counts its samples by how their stacks ended, and drops what was cached for it. */
void resolver_end_epoch(struct resolver *r);
/* A record was loaded into the epoch: takes in what changes after a sample was resolved, such as names. */
struct error *resolver_record(struct resolver *r, const struct epoch *e, const struct trace_record *rec);
/* `event` is the epoch's id. *kept is false when the options leave the sample's stack out, and the sample with it. */
struct error *resolver_sample(struct resolver *r, struct epoch *e, uint32_t event, const struct trace_sample *sample,
                              struct emit_sample *out, bool *kept);
/* Complete for the epochs that have ended. */
const struct resolver_stats *resolver_stats(const struct resolver *r);
struct modcache *resolver_modules(const struct resolver *r);

#endif
