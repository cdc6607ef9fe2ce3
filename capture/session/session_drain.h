/* SPDX-License-Identifier: Apache-2.0 */
/* Reads messages of the sampler and events of the side-band, sorts them by time, and passes them on to be recorded. */
#ifndef CAPTURE_SESSION_SESSION_DRAIN_H
#define CAPTURE_SESSION_SESSION_DRAIN_H

#include "capture/session/session_parts.h"

/* Records the samples and applies the side-band events up to `until_ns` (CLOCK_MONOTONIC). Later ones stay queued. */
struct error *session_drain(struct session *s, uint64_t until_ns);

#endif
