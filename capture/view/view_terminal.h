/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal as it was before a program took its whole screen, for when that program did not put it back itself. */
#ifndef CAPTURE_VIEW_VIEW_TERMINAL_H
#define CAPTURE_VIEW_VIEW_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

#include "formats/base/err.h"

struct view_terminal {
    bool saved;
    struct termios settings;
};

/* Remembers the settings of the terminal that is standard output. ERROR_USAGE: standard output is none. */
struct error *view_terminal_save(struct view_terminal *t);
/* Sets what was remembered. With `screen` also leaves the second screen, and shows the cursor. Nothing if none was. */
void view_terminal_restore(const struct view_terminal *t, bool screen);

#endif
