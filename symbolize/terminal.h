/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal can show that standard output goes to, if it goes to one. */
#ifndef SYMBOLIZE_TERMINAL_H
#define SYMBOLIZE_TERMINAL_H

#include "formats/emit/emit.h"

/*
 * All 0 for a file or a pipe. No colours if NO_COLOR is set (https://no-color.org) or TERM is "dumb" or empty; blocks if
 * the locale's characters are UTF-8. A terminal that does not know its width has 80 columns.
 */
struct emit_terminal terminal_of_output(void);

#endif
