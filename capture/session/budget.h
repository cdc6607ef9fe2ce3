/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a capture may cost, and the rate that follows from it. Asked once a second: when
 * samples were lost because the buffer was full, when more CPU was used than allowed,
 * when more memory is held than allowed, or when the file grows towards its limit, the
 * rate steps down; when there was room for a while it steps up again, to the rate asked
 * for at most. (A smaller file is not a matter of a while: that step stays.) Each sample
 * carries its own period, so weights stay right.
 */
#ifndef CAPTURE_SESSION_BUDGET_H
#define CAPTURE_SESSION_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget_options {
    uint64_t rate;       /* asked for, in any unit: what follows is a part of it */
    double max_cpu;      /* share of one CPU, pycap and its sampler together; 0: no limit */
    uint64_t max_bytes;  /* of all files that are kept; 0: no limit */
    uint64_t max_memory; /* bytes; 0: no limit */
};

/* Totals since the capture began. */
struct budget_use {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t cpu_ns;  /* of pycap and of its sampler */
    uint64_t lost;    /* samples that the buffer had no room for */
    uint64_t bytes;
    uint64_t memory; /* bytes held now, what can be forgotten left out */
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
    uint64_t steps; /* downwards, ever */
    uint32_t byte_steps;
    uint64_t calm_since_ns;
    struct budget_use last;
};

void budget_init(struct budget *b, const struct budget_options *options, const struct budget_use *now);
/* Changes b->rate where it must be, and says why. */
enum budget_reason budget_step(struct budget *b, const struct budget_use *now);
const char *budget_reason_text(enum budget_reason reason);

#endif
