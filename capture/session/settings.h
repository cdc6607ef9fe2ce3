/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture was asked for, as the META records of its trace have it: keys are those of the options. */
#ifndef CAPTURE_SESSION_SETTINGS_H
#define CAPTURE_SESSION_SETTINGS_H

#include "capture/session/session_options.h"
#include "capture/trace/settings_list.h"
#include "formats/base/err.h"

/* Fills `out` with what follows from the options alone. `by_proc`: without BPF. */
struct error *settings_of_options(const struct session_options *o, bool by_proc, struct settings *out);

#endif
