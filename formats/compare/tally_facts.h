/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of a set says of the recording itself: of what, on what, by which settings, and how much of it was lost. */
#ifndef FORMATS_COMPARE_TALLY_FACTS_H
#define FORMATS_COMPARE_TALLY_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/vec.h"
#include "formats/compare/run_set.h"
#include "formats/emit/emit.h"

struct tally_facts {
    VEC(uint64_t) samples; /* of the capture, by process of the model */
};

void tally_facts_deinit(struct tally_facts *f);
/* Counts a sample of the capture that is read. False: out of memory or over the limits of the set, as below. */
bool tally_facts_sample(struct tally_facts *f, const struct emit_model *m, const struct run_set *set, const struct emit_sample *s);
/* Fills in all but the events, and begins anew for the next capture. */
bool tally_facts_run(struct tally_facts *f, const struct emit_model *m, struct run_set *set, uint32_t capture, struct run *out);
/* Was the event recorded, whether it has samples or not? */
bool tally_facts_has_event(const struct emit_model *m, uint32_t capture, uint32_t event);
/* Fills in what is known of an event beside its samples that are shown. */
bool tally_facts_event(const struct emit_model *m, struct run_set *set, uint32_t capture, uint32_t event, struct run_event *out);

#endif
