/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pycap record`: sets everything up, drains on a timer, writes, ends in good order.
 */
#ifndef CAPTURE_SESSION_SESSION_H
#define CAPTURE_SESSION_SESSION_H

#include "capture/session/session_options.h"
#include "formats/base/err.h"

/* Records. `*exit_code` is the command's when there was one and all went well. */
struct error *session_run(const struct session_options *options, int *exit_code);

#endif
