/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the sampling rate from what a capture may cost. It is called once a second. The
 * rate goes down when a part of the samples was lost because the buffer was full, by that
 * part; when pycap used more CPU or holds more memory than allowed, or when the file gets
 * near its limit. When nothing of this was the case for a while, the rate goes up again, at
 * most to the rate that the user asked for; but a step down for the sake of the file's size
 * is never undone. Each sample carries its own period, so weights stay right.
 */
#ifndef CAPTURE_SESSION_BUDGET_H
#define CAPTURE_SESSION_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget_options {
    uint64_t rate;       /* as the user asked for it, in any unit; struct budget's rate is in the same unit */
    double max_cpu;      /* share of one CPU, pycap and its sampler together; 0: no limit */
    uint64_t max_bytes;  /* of all files that are kept; 0: no limit */
    uint64_t max_memory; /* bytes; 0: no limit */
    uint64_t least;      /* the rate is not lowered beyond it; 0: 1 */
};

/* Totals since the capture began. */
struct budget_use {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t cpu_ns;  /* of pycap and of its sampler */
    uint64_t fixed_ns; /* of that: what takes the same at any rate */
    /*
     * Samples that the buffer had room for, and those that it had none for. Without waits: their call sites owe them, and
     * threads that switch as often as they can would cost everybody their samples.
     */
    uint64_t sampled, lost;
    uint64_t bytes;
    uint64_t memory; /* bytes held now, without caches that can be emptied */
};

enum budget_reason {
    BUDGET_UNCHANGED,
    BUDGET_LOST, /* the buffer was full */
    BUDGET_CPU,
    BUDGET_BYTES,
    BUDGET_MEMORY,
    BUDGET_ROOM, /* there is room again */
    BUDGET_END,  /* the file is full: the capture is to end */
};

struct budget {
    struct budget_options options;
    uint64_t rate; /* now */
    uint64_t steps; /* how often the rate was lowered */
    uint32_t byte_steps;
    double fixed; /* the largest share of a CPU that no rate changes, where that alone is more than max_cpu; else 0 */
    uint64_t calm_since_ns;
    struct budget_use last;
};

void budget_init(struct budget *b, const struct budget_options *options, const struct budget_use *now);
/* Changes b->rate if necessary, and returns why. `now` holds totals since the start. */
enum budget_reason budget_step(struct budget *b, const struct budget_use *now);
/* A short text for the user and the trace; a literal. */
const char *budget_reason_text(enum budget_reason reason);

#endif
