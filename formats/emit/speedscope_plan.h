/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which profiles speedscope's file has, in which order, and what they are called.
 *
 * Samples are collected by thread and event. Each profile of the file is a range of these series, once they are sorted.
 */
#ifndef FORMATS_EMIT_SPEEDSCOPE_PLAN_H
#define FORMATS_EMIT_SPEEDSCOPE_PLAN_H

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/spool.h"

struct speedscope_labels;

/* The samples of one thread for one event. */
struct speedscope_series {
    uint32_t thread, event;
    struct spool_list samples;
    struct spool_run last; /* it may still grow */
    bool has_last;
    uint64_t weight;
};

enum speedscope_kind {
    SPEEDSCOPE_ALL, /* of an event */
    SPEEDSCOPE_PROCESS,
    SPEEDSCOPE_THREAD,
    SPEEDSCOPE_OTHERS, /* threads that are too small for profiles of their own */
    SPEEDSCOPE_LABEL,
};

struct speedscope_profile {
    enum speedscope_kind kind;
    uint32_t event;
    size_t first, count; /* its series; of SPEEDSCOPE_LABEL `first` is the index of the value */
    uint64_t weight;
};

struct speedscope_plan {
    const struct emit_model *model; /* borrowed */
    enum emit_merge merge;
    struct speedscope_series *series; /* borrowed */
    const struct speedscope_labels *labels; /* borrowed; NULL: none are shown */
    bool several_events;
    VEC(struct speedscope_profile) profiles;
    size_t active; /* the profile that is shown first */
};

/*
 * Sorts `series`, which must outlive the plan, and chooses the profiles. The caller deinits the plan, also after an error.
 *
 * merge   default   for each event all threads, if there are several; then threads, the heaviest first, and those that
 *                   are small or many as one
 *         all       for each event one
 *         process   for each event one for each process, the heaviest first
 *         thread    one for each thread and event, in the order in which they were seen; the heaviest is active
 *
 * Events of time come before others, whose weights do not compare with them.
 */
struct error *speedscope_plan_init(struct speedscope_plan *p, const struct emit_model *model, enum emit_merge merge,
                                   struct speedscope_series *series, size_t count);
void speedscope_plan_deinit(struct speedscope_plan *p);
/* Adds a profile for each value of the labels, behind the others. */
struct error *speedscope_plan_add_labels(struct speedscope_plan *p, const struct speedscope_labels *labels);
/* Does the profile show again what others of the file hold? */
bool speedscope_plan_is_overview(const struct speedscope_plan *p, const struct speedscope_profile *profile);
/* Appends the name of a profile, clean. */
void speedscope_plan_name(const struct speedscope_plan *p, const struct speedscope_profile *profile, struct buf *out);

#endif
