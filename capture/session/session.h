/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pycap record`: sets up a session, records until it is to end, writes the summary.
 */
#ifndef CAPTURE_SESSION_SESSION_H
#define CAPTURE_SESSION_SESSION_H

#include "capture/session/session_options.h"
#include "formats/base/err.h"

/*
 * Records. `*exit_code` becomes the command's exit code if there was a command and no error; else 1 if processes, names or
 * cgroups were asked for and no sample fell on them; else 0.
 */
struct error *session_run(const struct session_options *options, int *exit_code);

#endif
