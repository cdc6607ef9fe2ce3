/* SPDX-License-Identifier: Apache-2.0 */
/* What a summary says of the GIL: how long threads waited for it, and who made them wait. Format gil has the whole. */
#ifndef SYMBOLIZE_SUMMARY_GIL_FIGURES_H
#define SYMBOLIZE_SUMMARY_GIL_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"

struct gil_figures {
    bool exact;          /* the waits are those of the kernel's switches, else of samples */
    uint64_t waited_ns;  /* by all threads that are shown */
    uint32_t waiters;
    uint64_t blamed_ns;  /* of waiting: what samples of blame charge to threads that held the GIL meanwhile */
    uint32_t culprit;    /* the thread with the most of that, in the model; SUMMARY_NO_ROW: none */
    uint64_t culprit_ns;
};

void gil_figures_of(const struct summary *s, const struct resolver *r, struct gil_figures *out);
/* Do threads wait for the GIL so long that a reader should be told? */
bool gil_figures_matter(const struct summary *s, const struct resolver *r);

#endif
