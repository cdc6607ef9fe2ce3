/* SPDX-License-Identifier: Apache-2.0 */
/* Creates all parts of a recording session, in the order of their dependencies, and frees them. */
#ifndef CAPTURE_SESSION_SESSION_SETUP_H
#define CAPTURE_SESSION_SESSION_SETUP_H

#include "capture/session/session_parts.h"

/*
 * Does everything up to the first tick: loads the sampler, opens files, forks the command, reads /proc. Call
 * session_tear_down() afterwards, after an error, too.
 */
struct error *session_set_up(struct session *s);
/* Closes and frees everything in `s`, however much of it was set up. */
void session_tear_down(struct session *s);

#endif
