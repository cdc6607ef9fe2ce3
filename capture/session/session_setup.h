/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a recording session is made of, opened in the order in which one needs the other, and closed again. */
#ifndef CAPTURE_SESSION_SESSION_SETUP_H
#define CAPTURE_SESSION_SESSION_SETUP_H

#include "capture/session/session_parts.h"

/* All but the first tick: loads, opens, forks the command, reads /proc. After an error session_tear_down() is to be called. */
struct error *session_set_up(struct session *s);
/* Closes and frees what `s` holds, whatever of it is there. */
void session_tear_down(struct session *s);
/* Gives pycap the nice value back that it was started with, unless another was asked for. */
void session_go_as_started(const struct session *s);

#endif
