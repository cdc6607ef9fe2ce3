/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples added up by stack, event and what the profile tells them apart by, while they come. Memory grows with distinct
 * rows, not with samples.
 */
#ifndef FORMATS_EMIT_PPROF_SAMPLES_H
#define FORMATS_EMIT_PPROF_SAMPLES_H

#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

#define PPROF_ANY UINT32_MAX

/* What samples of one stack are told apart by; PPROF_ANY where they are not. */
struct pprof_owner {
    uint32_t event;
    uint32_t thread;    /* or the process, with EMIT_MERGE_PROCESS */
    uint32_t label_set, gil, cpu;
};

struct pprof_row {
    uint32_t owner, stack;
    uint64_t samples, value; /* at most INT64_MAX: pprof has signed numbers */
};

/* When samples of a capture were taken, CLOCK_MONOTONIC. */
struct pprof_span {
    uint64_t first_ns, last_ns;
    bool seen;
};

struct pprof_samples {
    const struct emit_model *model; /* borrowed, like the limits */
    enum emit_merge merge;          /* not EMIT_MERGE_DEFAULT */
    bool labels, cpus;              /* tell samples apart by these */
    struct limits *limits;
    struct intern owners;           /* struct pprof_owner */
    VEC(struct pprof_row) rows;     /* in the order in which they first came */
    struct map row_of;              /* owner << 32 | stack -> row */
    VEC(struct pprof_span) spans;   /* by capture */
};

void pprof_samples_init(struct pprof_samples *s, const struct emit_model *model, const struct emit_options *options);
void pprof_samples_deinit(struct pprof_samples *s);
/* False when memory ran out. */
bool pprof_samples_add(struct pprof_samples *s, const struct emit_sample *sample);
static inline struct pprof_owner pprof_samples_owner(const struct pprof_samples *s, uint32_t owner)
{
    struct pprof_owner o;

    memcpy(&o, intern_get(&s->owners, owner)->data, sizeof o);
    return o;
}
/* Adds up numbers of samples and values. */
static inline uint64_t pprof_sum(uint64_t a, uint64_t b)
{
    b = b < INT64_MAX ? b : INT64_MAX;
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
