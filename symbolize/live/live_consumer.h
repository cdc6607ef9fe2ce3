/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer that feeds the live view (tally.h) from a pass. */
#ifndef SYMBOLIZE_LIVE_LIVE_CONSUMER_H
#define SYMBOLIZE_LIVE_LIVE_CONSUMER_H

#include <stdatomic.h>

#include "symbolize/live/tally.h"
#include "symbolize/pass/consumer.h"

/* Where a pass puts what it reads, and what it is told. Both sides use it. */
struct live_feed {
    struct live_tally *tally;
    atomic_bool begun; /* a record was read */
    atomic_bool stop;  /* nothing more is wanted */
    int wake_fd;       /* readable once `stop` is set, so that a pass that waits for its input sees it */
};

struct live_consumer;
extern const struct consumer live_consumer;

/* Both are borrowed. */
struct error *live_consumer_create(struct live_feed *feed, const struct emit_model *model, struct live_consumer **out);
/* Samples are of another model from now on. The one before is still there. */
struct error *live_consumer_renew(struct live_consumer *c, const struct emit_model *model);

#endif
