/* SPDX-License-Identifier: Apache-2.0 */
/* What the live view is asked to show, and what keys change of it. Knows nothing of a terminal. */
#ifndef SYMBOLIZE_LIVE_VIEW_H
#define SYMBOLIZE_LIVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum live_table { LIVE_FUNCTIONS, LIVE_THREADS, LIVE_PROCESSES };
/* Rows are sorted by the interval, or by all time. */
enum live_sort { LIVE_SORT_SELF, LIVE_SORT_TOTAL, LIVE_SORT_ALL_SELF, LIVE_SORT_ALL_TOTAL, LIVE_SORTS };

/* Keys that are no characters. */
enum live_key {
    LIVE_KEY_NONE = 0x200000, LIVE_KEY_UP, LIVE_KEY_DOWN, LIVE_KEY_PAGE_UP, LIVE_KEY_PAGE_DOWN, LIVE_KEY_HOME, LIVE_KEY_END,
    LIVE_KEY_ENTER, LIVE_KEY_BACK, LIVE_KEY_ESCAPE,
};

enum { LIVE_SEARCH_BYTES = 64 };

struct live_view {
    enum live_table table;
    enum live_sort sort;
    int measure;            /* LIVE_RAN or LIVE_WAITED */
    bool by_line, python_only, frozen, help, quit;
    uint32_t pid, tid;      /* of which samples are shown; 0: of all */
    uint64_t interval_ns;
    char search[LIVE_SEARCH_BYTES]; /* rows whose name has this; "": all */
    bool searching;         /* it is being typed */
    size_t cursor, top;     /* a row, and the first one on the screen */
};

/* The row under the cursor, for LIVE_KEY_ENTER: of a table of threads or processes. */
struct live_pick {
    uint32_t pid, tid; /* both 0: none; tid 0: a process */
};

/* Changes the view. `key` is a Unicode character or an enum live_key. `page_rows`: of the table on the screen. */
void live_view_key(struct live_view *v, uint32_t key, const struct live_pick *pick, size_t page_rows);
/* Moves the cursor and what is on the screen to where there are rows. In the table of functions the cursor is the first row shown. */
void live_view_fit(struct live_view *v, size_t row_count, size_t page_rows);

#endif
