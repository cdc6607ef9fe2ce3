/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracks of the Firefox Profiler's file, its "threads": the samples of a thread for one event. A thread that was
 * sampled for several events has several tracks.
 *
 * Samples are kept in a temporary file (spool.h), as they come: by thread, event and capture. At the end these series are
 * sorted, so that those of a track are neighbours.
 */
#ifndef FORMATS_EMIT_FIREFOX_TRACKS_H
#define FORMATS_EMIT_FIREFOX_TRACKS_H

#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/firefox/times.h"
#include "formats/emit/spool.h"

/* Two runs of the spool for each sample: its value and stack; its time and whether it was on a CPU or waited. */
struct firefox_series {
    uint32_t thread, event, capture;
    struct spool_list samples;
    uint64_t weight;
};

struct firefox_track {
    uint32_t thread, event;
    size_t first, count; /* its series */
    uint64_t weight;
};

struct firefox_tracks {
    const struct emit_model *model; /* borrowed, like what follows */
    struct limits *limits;
    struct spool *spool;
    struct firefox_times *times;
    VEC(struct firefox_series) series;
    struct intern keys;             /* thread, event, capture -> index of the series */
    uint32_t recent;                /* index of the series that was last found */
    VEC(struct firefox_track) list; /* in the order of the file: see firefox_tracks_sort() */
};

void firefox_tracks_deinit(struct firefox_tracks *t);
struct error *firefox_tracks_add(struct firefox_tracks *t, const struct emit_sample *sample);
/*
 * Makes the list, once, after the last sample: processes and their threads, the heaviest first, but a main thread before
 * the others of its process; of a thread events of time first.
 */
struct error *firefox_tracks_sort(struct firefox_tracks *t);

/* A row of the table of samples. */
struct firefox_row {
    bool has_stack; /* else: nothing is known from here on */
    uint32_t stack; /* of the model */
    uint64_t time_ns, weight;
    uint64_t cpu_ns; /* CPU time since the row before */
};

/*
 * Reads the rows of a track, in order of time. A sample of time is the end of a span as long as its value; its row has the
 * time at which the span begins, as the Profiler draws a row until the next one. Where nothing follows at once, two rows
 * without weight end it: the same stack, for the CPU time until there, and none. A span is cut where it would overlap the
 * one before; the rows that follow have the rest of its CPU time, as far as the thread did not wait.
 */
struct firefox_rows {
    struct firefox_tracks *tracks; /* borrowed */
    const struct firefox_track *track;
    size_t next_series; /* of the track */
    struct spool_reader reader;
    bool reading, ended;
    uint64_t capture_start_ns;
    struct firefox_row last; /* of the last sample */
    bool has_last, last_on_cpu;
    uint64_t last_end_ns;
    uint64_t cpu_ns; /* of samples so far that no row has yet */
    struct firefox_row queue[3];
    int queue_next, queue_count;
};

/* {.tracks, .track} begins. *row is valid until the next call; NULL: there are no more. */
struct error *firefox_rows_next(struct firefox_rows *r, const struct firefox_row **row);
void firefox_rows_deinit(struct firefox_rows *r);

#endif
