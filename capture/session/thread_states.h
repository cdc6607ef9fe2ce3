/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what each thread of the recorded processes does, at the end of a recording that shows where they all are. */
#ifndef CAPTURE_SESSION_THREAD_STATES_H
#define CAPTURE_SESSION_THREAD_STATES_H

#include "capture/session/session_parts.h"

/* Call while the sampler runs, when all that it has sent is known to the session. */
struct error *thread_states_put(struct session *s);

#endif
