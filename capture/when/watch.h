/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches over the conditions of --when while a recorder stands by: looks at the facts that they are about as often as they
 * ask for, but so that looking takes little time, and says when one holds.
 */
#ifndef CAPTURE_WHEN_WATCH_H
#define CAPTURE_WHEN_WATCH_H

#include "capture/process/processes.h"
#include "capture/sampler/sampler.h"
#include "capture/when/condition.h"

struct when_watch_options {
    const struct when_list *conditions; /* all borrowed; there is one at least */
    struct processes *processes;        /* whose threads count */
    struct sampler *sampler;            /* NULL: there is none, and no condition needs it */
};

struct when_watch;
/* An error says what this host lacks. */
struct error *when_watch_create(const struct when_watch_options *options, struct when_watch **out);
/* Accepts NULL. */
void when_watch_destroy(struct when_watch *w);
/* When it is to look next, CLOCK_MONOTONIC; UINT64_MAX for NULL. */
uint64_t when_watch_due_ns(const struct when_watch *w);
/*
 * Looks, if that is due. `*why` becomes NULL, or where an event begins the reason in words ("cpu 2.71 > 2.5 for 2s"), valid
 * until the next call. NULL watches over nothing. A look that fails, after one did not, is tried again later.
 */
struct error *when_watch_look(struct when_watch *w, uint64_t time_ns, const char **why);

#endif
