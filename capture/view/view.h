/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a recording while it is made: `pycap top` and `pycap dump`. Three processes:
 *
 *   the first one   reads nobody. It starts the two others, has the terminal put right if the view could not do that
 *                   itself, and ends when both have ended
 *   the recorder    `pycap record`, whose file is a pipe. In a process group of its own, so that the terminal's signals
 *                   reach the first process and the view only: while the view is stopped (Ctrl-Z) the recorder goes on
 *   the view        pysym without any privilege, which reads the pipe
 *
 * When the view ends, the recorder is ended; when the recorder ends, the view reads the end of its input.
 */
#ifndef CAPTURE_VIEW_VIEW_H
#define CAPTURE_VIEW_VIEW_H

#include "capture/session/session_options.h"
#include "formats/base/err.h"

struct view_options {
    const struct session_options *session; /* its output and messages are not looked at */
    const char *const *arguments;          /* of pysym, behind its name; NULL at the end */
    bool screen; /* the view has the whole screen: what pycap says comes behind it, and the command has no terminal */
};

/*
 * Records and shows until both have ended. `*exit_code`: that of the view if it is not 0; else that of the recording, which is
 * 0 when the view ended it. Messages go to standard error. Call it before there are threads.
 */
struct error *view_run(const struct view_options *options, int *exit_code);

#endif
