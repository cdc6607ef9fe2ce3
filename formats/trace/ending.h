/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether a trace is complete, without reading it all. */
#ifndef FORMATS_TRACE_ENDING_H
#define FORMATS_TRACE_ENDING_H

#include <stdbool.h>

#include "formats/base/err.h"

/*
 * Has the trace an END record in its last block? Goes from block header to block header, and unpacks the last block
 * alone. False, too, for a trace that is damaged where this looks, or that is no trace. `fd` is of a regular file; its
 * position stays. `path` is for messages. Errors: the file cannot be read, or memory ran out.
 */
struct error *trace_has_end(int fd, const char *path, bool *out);

#endif
