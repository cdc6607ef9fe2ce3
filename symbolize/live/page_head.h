/* SPDX-License-Identifier: Apache-2.0 */
/* The lines above the live view's table. Hold live_tally_lock() meanwhile. */
#ifndef SYMBOLIZE_LIVE_PAGE_HEAD_H
#define SYMBOLIZE_LIVE_PAGE_HEAD_H

#include "formats/base/buf.h"
#include "symbolize/live/tally.h"
#include "symbolize/live/view.h"

/* The first is the most important one where there is little room. */
enum live_head_line { LIVE_HEAD_RATES, LIVE_HEAD_CHOICE, LIVE_HEAD_WAITS, LIVE_HEAD_RECORDED, LIVE_HEAD_LINES };

struct live_head {
    const struct live_tally *tally;
    const struct live_view *view;
    size_t columns; /* of the screen */
};

/* Appends a line to `out`. False: there is nothing to say in it. */
bool live_head_put(const struct live_head *h, enum live_head_line line, struct buf *out);

#endif
