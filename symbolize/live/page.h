/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live view as lines of text for a screen of a given size: head, table, keys. Knows no terminal. Whatever names hold, the
 * text is printable UTF-8; it may be wider than the screen, whose right edge cuts it.
 */
#ifndef SYMBOLIZE_LIVE_PAGE_H
#define SYMBOLIZE_LIVE_PAGE_H

#include "formats/base/buf.h"
#include "formats/base/vec.h"
#include "symbolize/live/rows.h"
#include "symbolize/live/tally.h"
#include "symbolize/live/view.h"

enum live_look { LIVE_PLAIN, LIVE_BOLD, LIVE_REVERSE };

struct live_line {
    struct buf text;
    enum live_look look;
};

struct live_page {
    VEC(struct live_line) lines; /* as many as the screen has, some of them empty */
    uint64_t serial;             /* of the interval that it shows */
    size_t used;                 /* of them with text */
    size_t table_rows;           /* how many rows of the table fit */
    struct live_pick pick;       /* the row under the cursor */
    struct live_rows rows;
};

void live_page_deinit(struct live_page *p);
/* Makes the page, and moves the view's cursor to where there are rows. Takes the tally's lock. False: out of memory. */
bool live_page_make(struct live_page *p, struct live_tally *t, struct live_view *v, size_t screen_rows, size_t screen_columns);

#endif
