/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the live view's tables: chosen, added up and sorted as the view asks. Hold live_tally_lock() meanwhile. */
#ifndef SYMBOLIZE_LIVE_ROWS_H
#define SYMBOLIZE_LIVE_ROWS_H

#include "formats/base/vec.h"
#include "symbolize/live/tally.h"
#include "symbolize/live/view.h"

struct live_row {
    uint32_t number;     /* of a place or a thread; of a process that of one of its threads */
    struct live_weight now, all;
    struct live_deeds deeds; /* of a thread or a process, in the interval */
};

struct live_rows {
    VEC(struct live_row) list;
    uint64_t whole_now;  /* what shares are of: all that the chosen threads did in the interval, of the view's measure */
    VEC(struct live_row) by_place; /* scratch */
};

void live_rows_deinit(struct live_rows *r);
/* Fills in the list for the table that the view shows. False: out of memory. */
bool live_rows_make(struct live_rows *r, const struct live_tally *t, const struct live_view *v);

#endif
