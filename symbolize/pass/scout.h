/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What filters have to know of a file before the first sample is chosen: how long it lasts, and when samples with a
 * certain stack were taken. A pass of its own, without filters, finds it out.
 */
#ifndef SYMBOLIZE_PASS_SCOUT_H
#define SYMBOLIZE_PASS_SCOUT_H

#include "formats/base/vec.h"
#include "symbolize/pass/consumer.h"
#include "symbolize/pass/sample_filter.h"

/* By number of the file; {0} before the first pass. The owner frees it with VEC_DEINIT. */
struct scout {
    VEC(struct file_scouted) files;
};

/* The state of each is a struct scout, which stays the caller's. They fill durations, and times of the samples that come. */
extern const struct consumer scout_durations;
extern const struct consumer scout_matches;

#endif
