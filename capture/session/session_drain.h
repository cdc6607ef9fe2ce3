/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from the sampler and the side-band, put in order of time and handed on to where it is recorded. */
#ifndef CAPTURE_SESSION_SESSION_DRAIN_H
#define CAPTURE_SESSION_SESSION_DRAIN_H

#include "capture/session/session_parts.h"

/* Records what was sampled up to `until_ns` (CLOCK_MONOTONIC), and applies what the side-band reported until then. */
struct error *session_drain(struct session *s, uint64_t until_ns);

#endif
