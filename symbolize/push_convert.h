/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a trace into the profiles of its series: what `pysym push` runs in the process of each trace. */
#ifndef SYMBOLIZE_PUSH_CONVERT_H
#define SYMBOLIZE_PUSH_CONVERT_H

#include "symbolize/push/converter.h"

/* A converter_run. `own`: the struct options of the command line. */
struct error *push_convert(void *own, const struct converter_trace *trace, const struct profile_pipe *pipe, bool *damaged);

#endif
