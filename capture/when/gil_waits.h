/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long threads have waited for the locks of their interpreters, all together, by the accounts that the sampler keeps of
 * each lock. What was waited since the last look for a lock whose process has ended is missing.
 */
#ifndef CAPTURE_WHEN_GIL_WAITS_H
#define CAPTURE_WHEN_GIL_WAITS_H

#include "bpf/wire.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

struct gil_waits {
    VEC(struct gil_wait {
        struct wire_gil_key key;
        struct wire_gil gil;
        uint64_t time_ns; /* when it was read */
    }) last, now; /* accounts at the last look, sorted by key; those of a look that goes on */
    bool looked;
    uint64_t total_ns; /* since the first look */
};

void gil_waits_deinit(struct gil_waits *g);
/* A look: an account at a time, a wait_gil_fn whose context is the struct gil_waits; then its end, which adds to g->total_ns. */
struct error *gil_waits_add(void *g, const struct wire_gil_key *key, const struct wire_gil *gil, uint64_t time_ns);
void gil_waits_end_look(struct gil_waits *g);

#endif
