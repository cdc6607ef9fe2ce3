/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pysym -f live`: a trace as it arrives, on a terminal. One thread reads the trace; this one draws and takes keys, so
 * that the view answers also while binaries are read for their names.
 */
#ifndef SYMBOLIZE_LIVE_LIVE_H
#define SYMBOLIZE_LIVE_LIVE_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "symbolize/live/live_consumer.h"
#include "symbolize/live/screen.h"

/* Reads the trace to its end, or until feed->stop. Runs in a thread of its own. */
typedef struct error *live_read(void *own, struct live_feed *feed);

/*
 * Reads, and shows what it reads on `screen` once there is something, until the user or a signal ends it. `view` is what is shown
 * first. The screen is taken when the first record is there, and given back before this returns. *abandoned: the thread that reads
 * is still at it, in something that cannot be interrupted, and uses what `own` points to: nothing is left but to end the process.
 */
struct error *live_run(struct live_screen *screen, struct live_view *view, live_read *read, void *own, bool *abandoned);

#endif
