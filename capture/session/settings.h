/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the options of a capture into META records of its trace, so that a reader knows how it was recorded. */
#ifndef CAPTURE_SESSION_SETTINGS_H
#define CAPTURE_SESSION_SETTINGS_H

#include "capture/session/session_options.h"
#include "capture/trace/settings_list.h"
#include "formats/base/err.h"

/* Fills `out` from the options alone. `by_proc`: the proc backend is in use. */
struct error *settings_of_options(const struct session_options *o, bool by_proc, struct settings *out);

#endif
