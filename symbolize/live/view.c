/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/view.h"

#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/utf8.h"

/* The lengths that an interval can have. A recorder writes once a second. */
static const uint64_t intervals_ns[] = {NS_PER_S, 2 * NS_PER_S, 5 * NS_PER_S, 10 * NS_PER_S, 30 * NS_PER_S, 60 * NS_PER_S};
enum { INTERVALS = sizeof intervals_ns / sizeof *intervals_ns };
enum { BACKSPACE = 8, ESCAPE = 27, DELETE = 127, CTRL_C = 3 };

static void change_interval(struct live_view *v, int step)
{
    int at = 0;

    while (at < INTERVALS - 1 && intervals_ns[at] < v->interval_ns)
        at++;
    at += step;
    v->interval_ns = intervals_ns[at < 0 ? 0 : at >= INTERVALS ? INTERVALS - 1 : at];
}

/* Drops the last character. */
static void shorten(char *text)
{
    size_t len = strlen(text);

    while (len && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
        len--;
    text[len ? len - 1 : 0] = 0;
}

static void search_key(struct live_view *v, uint32_t key)
{
    size_t len = strlen(v->search);
    uint8_t bytes[4];

    if (key == LIVE_KEY_ENTER || key == '\n' || key == '\r') {
        v->searching = false;
    } else if (key == LIVE_KEY_ESCAPE || key == ESCAPE) {
        v->searching = false;
        *v->search = 0;
    } else if (key == LIVE_KEY_BACK || key == DELETE || key == BACKSPACE) {
        shorten(v->search);
    } else if (key < LIVE_KEY_NONE && !utf8_is_control(key)) {
        size_t count = utf8_write(key, bytes);
        if (len + count >= LIVE_SEARCH_BYTES)
            return;
        memcpy(v->search + len, bytes, count);
        v->search[len + count] = 0;
    }
    v->cursor = v->top = 0;
}

static void show_table(struct live_view *v, enum live_table table)
{
    v->table = table;
    v->cursor = v->top = 0;
}

/* Back to where one came from: from the search, from a thread or process to all, from their tables to functions. */
static void leave(struct live_view *v)
{
    if (*v->search)
        *v->search = 0;
    else if (v->table != LIVE_FUNCTIONS)
        v->table = LIVE_FUNCTIONS;
    else
        v->pid = v->tid = 0;
    v->cursor = v->top = 0;
}

static void pick_row(struct live_view *v, const struct live_pick *pick)
{
    if (v->table == LIVE_FUNCTIONS || (!pick->pid && !pick->tid))
        return;
    v->pid = pick->pid;
    v->tid = pick->tid;
    show_table(v, LIVE_FUNCTIONS);
}

/* Returns false if the key moves nothing. */
static bool move(struct live_view *v, uint32_t key, size_t page_rows)
{
    size_t page = page_rows > 1 ? page_rows - 1 : 1;

    if (key == LIVE_KEY_UP || key == 'k')
        v->cursor -= v->cursor ? 1 : 0;
    else if (key == LIVE_KEY_DOWN || key == 'j')
        v->cursor++;
    else if (key == LIVE_KEY_PAGE_UP)
        v->cursor -= v->cursor < page ? v->cursor : page;
    else if (key == LIVE_KEY_PAGE_DOWN)
        v->cursor += page;
    else if (key == LIVE_KEY_HOME)
        v->cursor = 0;
    else if (key == LIVE_KEY_END)
        v->cursor = SIZE_MAX / 2;
    else
        return false;
    return true;
}

static void letter(struct live_view *v, uint32_t key)
{
    switch (key) {
    case 'q': case 'Q': case CTRL_C: v->quit = true; break;
    case '?': case 'h': v->help = true; break;
    case '1': case '2': case '3': case '4': v->sort = (enum live_sort)(key - '1'); break;
    case 's': v->sort = (v->sort + 1) % LIVE_SORTS; break;
    case 'f': show_table(v, LIVE_FUNCTIONS); break;
    case 't': show_table(v, LIVE_THREADS); break;
    case 'p': show_table(v, LIVE_PROCESSES); break;
    case 'a': v->pid = v->tid = 0; break;
    case 'l': v->by_line = !v->by_line; break;
    case 'y': v->python_only = !v->python_only; break;
    case 'w': v->measure = !v->measure; break;
    case ' ': v->frozen = !v->frozen; break;
    case '/': v->searching = true; break;
    case '+': case '=': change_interval(v, 1); break;
    case '-': change_interval(v, -1); break;
    case ESCAPE: case DELETE: case BACKSPACE: leave(v); break;
    default: break;
    }
}

void live_view_key(struct live_view *v, uint32_t key, const struct live_pick *pick, size_t page_rows)
{
    if (v->help && key != 'q' && key != 'Q' && key != CTRL_C)
        v->help = false;
    else if (v->searching && key != CTRL_C)
        search_key(v, key);
    else if (move(v, key, page_rows))
        return;
    else if (key == LIVE_KEY_ENTER || key == '\n' || key == '\r')
        pick_row(v, pick);
    else if (key == LIVE_KEY_BACK || key == LIVE_KEY_ESCAPE)
        leave(v);
    else
        letter(v, key);
}

void live_view_fit(struct live_view *v, size_t row_count, size_t page_rows)
{
    if (v->table == LIVE_FUNCTIONS) { /* no row is chosen there: each key moves all of them */
        size_t most = row_count > page_rows ? row_count - page_rows : 0;
        v->cursor = v->top = v->cursor < most ? v->cursor : most;
        return;
    }
    if (v->cursor >= row_count)
        v->cursor = row_count ? row_count - 1 : 0;
    if (v->top > v->cursor)
        v->top = v->cursor;
    if (page_rows && v->cursor >= v->top + page_rows)
        v->top = v->cursor - page_rows + 1;
}
