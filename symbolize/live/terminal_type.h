/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the terminal's type, the variable TERM, is one that ncurses knows. Apart, because <term.h> takes common names. */
#ifndef SYMBOLIZE_LIVE_TERMINAL_TYPE_H
#define SYMBOLIZE_LIVE_TERMINAL_TYPE_H

#include "formats/base/err.h"

/* ERROR_USAGE where it is not known. newterm() would find that out as well, but loses some memory then. */
struct error *terminal_type_check(int terminal_fd);
/* That error. */
struct error *terminal_type_unknown(void);

#endif
