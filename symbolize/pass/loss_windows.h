/* SPDX-License-Identifier: Apache-2.0 */
/* What recorders lost, added up by window of time and capture until the window is complete. */
#ifndef SYMBOLIZE_PASS_LOSS_WINDOWS_H
#define SYMBOLIZE_PASS_LOSS_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

struct loss_window_row {
    uint64_t window; /* its number: begin / length */
    uint32_t capture;
    uint64_t last_ns; /* real time: when the last of these was noticed */
    struct emit_loss loss;
};

/* Initialize with {.limits = …, .texts.arena.limits = …}. */
struct loss_windows {
    struct limits *limits; /* borrowed */
    struct intern texts;
    VEC(struct loss_window_row) rows;
    VEC(struct emit_loss) taken;
};

/* The losses of one capture in one window. */
struct window_losses {
    uint64_t window, last_ns;
    uint32_t capture;
    const struct emit_loss *losses; /* in the order in which they were noticed first; until the next call */
    uint32_t count;
};

void loss_windows_deinit(struct loss_windows *w);
/* Adds losses; texts are copied. False when memory ran out. */
bool loss_windows_add(struct loss_windows *w, const struct loss_window_row *row);
/* Removes those of the earliest window before `window`, and of its first capture. Without any, *out has a count of 0. */
bool loss_windows_take(struct loss_windows *w, uint64_t window, struct window_losses *out);

#endif
