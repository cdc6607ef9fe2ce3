/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as it goes from the process that reads traces to the one that sends: samples of one event, one series and one
 * window of real time, as pprof. Where a store would refuse it for its size it comes in several chunks.
 *
 * The process that reads traces is not trusted, since a trace may have taken it over: profile_read() checks every length.
 */
#ifndef SYMBOLIZE_PUSH_PROFILE_H
#define SYMBOLIZE_PUSH_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

enum {
    PROFILE_LABELS_MAX = 30,           /* Pyroscope takes no more of a series */
    PROFILE_LABEL_NAME_MAX = 128,      /* bytes, without the NUL */
    PROFILE_LABEL_VALUE_MAX = 1024,
    PROFILE_BYTES_MAX = 16 << 20,      /* packed */
};

#define PROFILE_NAME_LABEL "__name__" /* its value says what a store takes the profile for */
#define PROFILE_LOST_NAME "pycap_lost" /* that of a profile of losses, which has no samples of a program */

struct emit_event;

struct profile_label {
    const char *name;  /* letters, digits and '_', no digit first */
    const char *value; /* valid UTF-8, never empty */
};

struct push_profile {
    uint64_t window_begin_ns, window_end_ns; /* CLOCK_REALTIME, since 1970 */
    uint64_t last_ns;                        /* of the newest sample, likewise; in the window */
    uint32_t chunk;                          /* among those of the window and series of one file, from 0 */
    uint64_t samples, rows;                  /* rows: distinct stacks */
    const struct profile_label *labels;      /* sorted by name, each once; PROFILE_NAME_LABEL among them */
    uint32_t label_count;
    const void *data; /* pprof, gzipped */
    size_t len_bytes, raw_len_bytes; /* packed; unpacked */
};

/* Is it one of losses? */
bool profile_is_of_losses(const struct push_profile *profile);
/* Appends the value of PROFILE_NAME_LABEL for an event: process_cpu, off_cpu, page_faults ... */
void profile_put_name(const struct emit_event *event, struct buf *out);
/* Appends the profile to `out`, as profile_read() takes it; `out` becomes bad when memory runs out. */
void profile_put(const struct push_profile *profile, struct buf *out);
/*
 * Reads a profile from what profile_put() wrote. Labels are written to `labels`; its pointers and `data` point into `bytes`.
 * ERROR_FORMAT: not such a message, a length over the limits above, a label that breaks the rules, or bytes left over.
 */
struct error *profile_read(const void *bytes, size_t len_bytes, struct profile_label labels[PROFILE_LABELS_MAX],
                           struct push_profile *out);
/* Tells series apart: a hash of all labels (XXH3-128, in hexadecimal). */
#define PROFILE_SERIES_BYTES 33 /* with the NUL */
void profile_series(const struct push_profile *profile, char out[PROFILE_SERIES_BYTES]);

#endif
