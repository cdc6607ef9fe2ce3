/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be known of a file before the first sample is looked at. Filters: how long it lasts, when samples with a
 * certain stack were taken, and what its processes are called, which later samples tell; archives: which binaries it names.
 * A pass of its own, without filters, finds it out.
 */
#ifndef SYMBOLIZE_PASS_SCOUT_H
#define SYMBOLIZE_PASS_SCOUT_H

#include "formats/base/vec.h"
#include "symbolize/binary/named_ids.h"
#include "symbolize/pass/consumer.h"
#include "symbolize/pass/sample_filter.h"

/* By number of the file; {0} before the first pass. The owner frees it with VEC_DEINIT, and named_ids_deinit(). */
struct scout {
    VEC(struct file_scouted) files;
    struct named_ids named; /* the binaries that the files name */
    bool knows_named;       /* all of them */
};

/* The state of each is a struct scout, which stays the caller's. They fill durations, times of the samples that come, and names. */
extern const struct consumer scout_durations;
extern const struct consumer scout_matches;
extern const struct consumer scout_binaries;
/* Names of processes are found out by the pass itself (process_names.h); this makes it look. */
extern const struct consumer scout_names;

/*
 * Is it worth reading the traces for the names of binaries, so that no others are unpacked? Not for archives that are smaller than
 * the traces are, and for none that can be read only once. `archives` ends with NULL.
 */
bool scout_of_binaries_pays(const char *const *archives, const struct input *inputs, size_t input_count);

#endif
