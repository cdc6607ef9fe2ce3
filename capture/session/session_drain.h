/* SPDX-License-Identifier: Apache-2.0 */
/* Reads messages of the sampler and events of the side-band, sorts them by time, and passes them on to be recorded. */
#ifndef CAPTURE_SESSION_SESSION_DRAIN_H
#define CAPTURE_SESSION_SESSION_DRAIN_H

#include "capture/session/session_parts.h"

/*
 * Records the samples and applies the side-band events up to `until_ns` (CLOCK_MONOTONIC). Later ones stay queued. When
 * the session has its end_ns, waits that are open then are recorded up to it.
 */
struct error *session_drain(struct session *s, uint64_t until_ns);
/* With BPF, before ticks are enabled: applies the side-band events up to `until_ns`, of what began while we got ready. */
struct error *session_catch_up(struct session *s, uint64_t until_ns);
/* A file ends: records what there is up to then of the waits that last. Call when all has been recorded up to `time_ns`. */
struct error *session_cut_waits(struct session *s, uint64_t time_ns);
/* A waits_fn: what a wait has become is a sample like others. `session` is a struct session. */
struct error *session_queue_wait(void *session, const struct wire_sample *sample, uint32_t len_bytes);
/* A growth_fn: memory that stays is a sample like others. `session` is a struct session. */
struct error *session_growth(void *session, const struct wire_sample *sample, uint32_t len_bytes);
/* A waits_blame_fn, up to now, or up to the end of the capture once it has ended. `session` is a struct session. */
uint64_t session_blame(void *session, const struct wire_sample *sample);

#endif
