/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of the live view, by ncurses: keys come from it, not from standard input, which may be the trace. What was on
 * the screen before is there again when the view ends, in whichever way: signals that end the program and crashes restore it,
 * too; nothing can after SIGKILL.
 */
#ifndef SYMBOLIZE_LIVE_SCREEN_H
#define SYMBOLIZE_LIVE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/live/page.h"

struct live_screen;

/*
 * Opens the terminal; nothing on it changes yet. Call before the process is confined. ERROR_USAGE where standard output is no
 * terminal, there is no terminal to take keys from, or its type is not known.
 */
struct error *live_screen_open(struct live_screen **out);
/* From now on signals that would end the program ask for the end. Call before the screen is taken. */
void live_screen_take_signals(struct live_screen *s);
/* Whether one did. */
bool live_screen_is_ended(const struct live_screen *s);
/* Takes the screen. Only one at a time. */
struct error *live_screen_take(struct live_screen *s);
/* Gives it back, and what signals do. Does nothing if neither was taken. */
void live_screen_give_back(struct live_screen *s);
/* Accepts NULL. */
void live_screen_close(struct live_screen *s);
/* The functions below are for a screen that was taken. */
void live_screen_size(const struct live_screen *s, size_t *rows, size_t *columns);
void live_screen_draw(struct live_screen *s, const struct live_page *page);
/*
 * Waits up to so long for a key: a Unicode character, or an enum live_key. LIVE_KEY_NONE: none came, or the size of the screen
 * changed. Once a signal asked for the end, or the terminal is gone: 3, which is Ctrl-C.
 */
uint32_t live_screen_key(struct live_screen *s, int timeout_ms);

#endif
