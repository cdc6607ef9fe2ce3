/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the live view shows: how much time functions, lines and threads took in the last interval, and since the start.
 *
 * Samples are added up by stack while they come, and by place when an interval ends: work is done once for each distinct
 * stack. Intervals are of the recorder's clock, so a connection that stutters changes no share. A recorder that streams says
 * at short distances until when it has written all: there intervals end. In other traces they end with a block, in which
 * samples of one event stand behind all of another.
 *
 * Memory is bounded, whatever the trace says: places, threads and pairs of them have limits of their own, and what is over
 * them is added to LIVE_OTHERS.
 *
 * One thread adds samples, another one shows what there is. Only live_tally_lock() lets it look: it waits for the end of an
 * interval, not for samples.
 */
#ifndef SYMBOLIZE_LIVE_TALLY_H
#define SYMBOLIZE_LIVE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/trace/trace.h"
#include "symbolize/live/cells.h"
#include "symbolize/live/places.h"
#include "symbolize/live/threads.h"

enum { LIVE_BY_FUNCTION, LIVE_BY_LINE, LIVE_BYS };
/* What is measured: time on CPUs, or the trace's first other event where it has none; and time off them. */
enum { LIVE_RAN, LIVE_WAITED };
enum { LIVE_EVENT_BYTES = 128 };

/* The head of the view. */
struct live_figures {
    uint64_t serial;       /* number of the interval, from 1; 0: none has ended */
    uint64_t length_ns;    /* of the interval */
    uint64_t recorded_ns;  /* since the start */
    uint64_t lost_now, lost; /* samples, in the interval and since the start */
    uint64_t lost_by[LOSS_LIMIT];
    uint64_t damages;      /* parts of the stream that could not be read */
    struct live_deeds all; /* of all threads */
    bool has_waits;        /* some sample was of a wait */
    char event[LIVE_EVENT_BYTES]; /* what is measured as LIVE_RAN; printable; "" before its first sample */
    struct emit_event of;  /* what kind of amounts those are; its name and unit are NULL */
    char recorded[400];    /* what is recorded, and where, for people; printable */
    bool ended;            /* nothing more comes */
    char ending[400];      /* why; printable */
};

/* Is it time on CPUs that is measured? */
static inline bool live_figures_are_cpu(const struct live_figures *f)
{
    return f->of.kind == EVENT_CPU_TIME;
}

struct live_tally;
struct error *live_tally_create(uint64_t interval_ns, struct live_tally **out);
void live_tally_destroy(struct live_tally *t);

/* The side that adds. */

/*
 * The samples to come are of this model, which is borrowed until the next call; NULL: none will come. Counts what came of the
 * model before.
 */
struct error *live_tally_model(struct live_tally *t, const struct emit_model *model);
struct error *live_tally_sample(struct live_tally *t, const struct emit_sample *sample);
/* Something was recorded at `ns`. */
void live_tally_time(struct live_tally *t, uint64_t ns);
/* A block of the trace has come whole: ends the interval if it is over, unless the recorder says itself when that is. */
struct error *live_tally_block(struct live_tally *t);
/* All up to `ns` has come. */
struct error *live_tally_clock(struct live_tally *t, uint64_t ns);
/* The recording ended at `ns`; what comes still is of before. */
void live_tally_last(struct live_tally *t, uint64_t ns);
void live_tally_loss(struct live_tally *t, uint32_t reason, uint64_t count);
void live_tally_damages(struct live_tally *t, uint64_t count);
void live_tally_recorded(struct live_tally *t, const char *text);
/* Ends the last interval; one that is much shorter than the others is only added to the sums. `why` is for people. */
struct error *live_tally_end(struct live_tally *t, const char *why);

/* The side that shows. */

/* What the functions below return is valid until live_tally_unlock(). */
void live_tally_lock(struct live_tally *t);
void live_tally_unlock(struct live_tally *t);
const struct live_figures *live_tally_figures(const struct live_tally *t);
const struct live_places *live_tally_places(const struct live_tally *t, int by);
const struct live_cells *live_tally_cells(const struct live_tally *t, int by);
const struct live_threads *live_tally_threads(const struct live_tally *t);
void live_tally_set_interval(struct live_tally *t, uint64_t ns);
/* While it is frozen no interval ends: nothing that is shown changes. Then what came meanwhile is shown, also at the end. */
void live_tally_freeze(struct live_tally *t, bool frozen);

#endif
