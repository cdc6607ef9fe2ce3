/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves the samples of an epoch to what a reader of a profile sees: struct emit_model.
 *
 * The model lives as long as the resolver, over all epochs and files; in it frames are
 * interned by their contents, stacks by (parent, frame), processes and threads by
 * identity. Work is done once per distinct thing: an epoch's frame, tuple, thread is
 * resolved when a sample first needs it, and every further sample costs three lookups
 * in arrays. Only a snapshot belongs to a single sample: it is unwound with the mappings
 * that its process had at the sample's time, and is then treated like all other stacks.
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
#include "symbolize/stack/end_places.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/stack/stack_map.h"

struct resolver_options {
    struct binaries_options binaries;
    enum merge_interpreter interpreter;
    bool wall;        /* times on the CPU and off it are one event (symbolize/trace/wall.h) */
    bool python_only; /* no kernel and no native frames; nothing is unwound or opened */
    bool fingerprints; /* Python frames have their code objects (emit_frame.code), so frames of edited code differ */
    struct limits *limits; /* borrowed; NULL: none */
    struct stack_map_options stacks; /* what it points to is borrowed */
    const char *filters; /* for emit_model.filters; borrowed; NULL: "" */
};

/*
 * Stacks by how a part of them ended: [0] not recorded, [LOSS_complete] complete, else by loss reason. Each sample has one, but for
 * those that repeat another's: the recorder counts in the same way.
 */
struct resolver_ends {
    uint64_t count[LOSS_LIMIT + 1]; /* the last one: reasons that this version does not know */
};
struct resolver_stats {
    uint64_t sample_count, snapshot_count;
    uint64_t unresolved_count; /* samples with a native frame that is shown without a name */
    /* Frames that are shown, added up over samples; of them those without a name. */
    uint64_t native_frame_count, native_unnamed_count, python_frame_count, python_unnamed_count;
    uint64_t no_frame_count;                 /* samples with an eval loop that runs no Python frame */
    uint64_t no_frame[MERGE_NO_FRAME_LIMIT]; /* of them, by cause; a sample may have several */
    struct resolver_ends python, native, join;
};

struct resolver;
struct error *resolver_create(const struct resolver_options *options, struct resolver **out);
void resolver_destroy(struct resolver *r);

/* The model built so far. The struct stays where it is; the pointers in it change while samples are resolved. */
const struct emit_model *resolver_model(const struct resolver *r);
/* True if it unwinds snapshots. If not, the epoch need not keep their contents. */
bool resolver_unwinds(const struct resolver *r);
/* Call when another file begins: without a boot ID it counts as another host. `input` is borrowed while it is read. */
struct error *resolver_begin_file(struct resolver *r, const struct input *input);
/* Call while the epoch still exists: counts its samples by how their stacks ended, and drops its caches. */
void resolver_end_epoch(struct resolver *r);
/* Call after a record was loaded into the epoch: updates what was resolved before, such as names. */
struct error *resolver_record(struct resolver *r, const struct epoch *e, const struct trace_record *rec);
/* Resolves a sample. `event` is the epoch's id. *kept is false when the options exclude the sample by its stack. */
struct error *resolver_sample(struct resolver *r, struct epoch *e, uint32_t event, const struct trace_sample *sample,
                              struct emit_sample *out, bool *kept);
/* Counts a sample that a filter left out: in the totals of the model, which are of all samples. */
struct error *resolver_leave_out(struct resolver *r, const struct epoch *e, uint32_t event, const struct trace_sample *sample);
/*
 * Adds up where the time of a thread went, unless options exclude samples by their stacks. For threads that no filter
 * excludes samples of: emit_model.exact_times.
 */
struct error *resolver_thread_time(struct resolver *r, const struct epoch *e, const struct trace_thread_time *time);
/* Adds what a thread did at the end, likewise: emit_model.thread_states. */
struct error *resolver_thread_state(struct resolver *r, const struct epoch *e, const struct trace_thread_state *state);
/* How stacks are shown, and which were dropped. */
const struct stack_map *resolver_stack_map(const struct resolver *r);
/* Complete for the epochs that have ended. */
const struct resolver_stats *resolver_stats(const struct resolver *r);
/* Where native stacks ended that are not whole; likewise. */
const struct end_places *resolver_native_ends(const struct resolver *r);
struct modcache *resolver_modules(const struct resolver *r);

#endif
