/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file of plain lines that the user wrote, such as a list of rules. What stands behind a # that begins a line or
 * follows a blank is a remark; blanks around a line do not count, and empty lines neither.
 */
#ifndef FORMATS_BASE_LINES_H
#define FORMATS_BASE_LINES_H

#include "formats/base/err.h"

/* Longer files are refused: nobody wrote them by hand. */
#define LINES_MAX_BYTES (1 << 20)

/* Is called with each line that is left; `origin` is "budget.txt:3". Both texts last only as long as the call. */
typedef struct error *(*line_taker)(void *ctx, const char *line, const char *origin);
/* Stops at the first error. ERROR_LIMIT: the file is too long; ERROR_FORMAT: it is no text. */
struct error *lines_read(const char *path, line_taker take, void *ctx);
/* The same for one line from elsewhere, which is changed: without the remark and the blanks around it. */
char *line_trim(char *line);

#endif
