/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a push has done so far: for the last lines of `pysym push`, and for --status as Prometheus text. Everything that was
 * in a trace is in one of these counts.
 */
#ifndef SYMBOLIZE_PUSH_ACCOUNT_H
#define SYMBOLIZE_PUSH_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "symbolize/push/account_figures.h"
#include "symbolize/push/profile.h"
#include "symbolize/push/request.h"

struct account;
/* `request` is borrowed. */
struct error *account_create(const struct push_request *request, struct account **out);
void account_destroy(struct account *a);

/*
 * An answer came, or a request failed: `sound` if the store is there and takes profiles, though it may refuse some. Beside one of
 * the three below.
 */
void account_answered(struct account *a, bool sound);
/* `repeated`: the store may have had it, or a part of it, before. */
void account_accepted(struct account *a, const struct push_profile *profile, bool repeated);
/* Refused for good, by name; profiles that are known from an earlier run count as nothing. */
void account_refused(struct account *a, const struct push_profile *profile, const char *reason);
/* An attempt that has to be repeated, by name. */
void account_retried(struct account *a, const char *reason);
void account_trace(struct account *a, enum account_trace how, uint64_t len_bytes);
/* A trace that was counted as done was read again, with so much more. */
void account_trace_grew(struct account *a, uint64_t len_bytes);
/* A trace has nothing new since a push before this one sent it. */
void account_sent_before(struct account *a);
/* No trace was seen at all. */
bool account_is_empty(const struct account *a);
/*
 * What a trace says that the recorder lost, by name, of one window: samples (`is_sample`), or parts of samples that are there.
 * Of many names the later ones count as "other".
 */
void account_lost(struct account *a, const char *name, uint64_t count, bool is_sample);
/* Traces that wait to be sent, and the time since the oldest of them was complete. */
void account_backlog(struct account *a, uint64_t traces, uint64_t oldest_age_ns);

/*
 * Rewrites the --status file atomically, if there is one. A failure is told on standard error, once until it has worked again.
 */
void account_publish(struct account *a);
/* Prints what was done, a few lines. */
void account_print(const struct account *a, FILE *out);
/* Was everything accepted, and nothing left? */
bool account_is_whole(const struct account *a);

#endif
