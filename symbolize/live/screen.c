/* SPDX-License-Identifier: Apache-2.0 */
#define NCURSES_WIDECHAR 1
#include "symbolize/live/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "formats/base/utf8.h"
#include "symbolize/live/terminal_type.h"
#include "symbolize/live/view.h"

enum { LINE_MAX_CHARACTERS = 1024, CTRL_C = 3 };

struct live_screen {
    FILE *out, *in;
    uint64_t serial; /* of the interval that was drawn last */
    SCREEN *curses;
    bool has_signals;
};

/* ---- signals ---- */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT}, crashing[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { ENDING = sizeof ending / sizeof *ending, CRASHING = sizeof crashing / sizeof *crashing };

/* For handlers, which take no argument. */
static struct {
    volatile sig_atomic_t asked_to_end, taken;
    struct sigaction before_ending[ENDING], before_crashing[CRASHING];
    int fd;
    struct termios modes; /* before */
    char restore[256];    /* what gives the screen back, as the terminal wants it */
    size_t restore_bytes;
} global = {.fd = -1};

static void note_end(int signal_number)
{
    (void)signal_number;
    global.asked_to_end = 1;
}

/* Calls only what a handler may. Then the signal does what it did before. */
static void restore_and_crash(int signal_number)
{
    if (global.taken && write(global.fd, global.restore, global.restore_bytes) >= 0)
        tcsetattr(global.fd, TCSANOW, &global.modes);
    global.taken = 0;
    for (size_t i = 0; i < CRASHING; i++)
        sigaction(crashing[i], &global.before_crashing[i], NULL);
    raise(signal_number);
}

static void add_text(const char *text)
{
    /* Delays, such as $<5>, mean nothing to terminals of today. */
    for (; text && text != (const char *)-1 && *text && global.restore_bytes < sizeof global.restore; text++) {
        const char *end = *text == '$' && text[1] == '<' ? strchr(text, '>') : NULL;
        if (end)
            text = end;
        else
            global.restore[global.restore_bytes++] = *text;
    }
}

/* Call before curses is begun, which else would take SIGINT and SIGTERM itself. */
static void take_signals(int fd)
{
    struct sigaction end = {.sa_handler = note_end}, crash = {.sa_handler = restore_and_crash};

    global.fd = fd;
    global.asked_to_end = 0;
    global.restore_bytes = 0;
    tcgetattr(fd, &global.modes);
    for (size_t i = 0; i < ENDING; i++)
        sigaction(ending[i], &end, &global.before_ending[i]);
    for (size_t i = 0; i < CRASHING; i++)
        sigaction(crashing[i], &crash, &global.before_crashing[i]);
}

static void release_signals(void)
{
    for (size_t i = 0; i < ENDING; i++)
        sigaction(ending[i], &global.before_ending[i], NULL);
    for (size_t i = 0; i < CRASHING; i++)
        sigaction(crashing[i], &global.before_crashing[i], NULL);
}

/* ---- the terminal ---- */

/* exit() from anywhere gives the screen back, too. */
static void restore_at_exit(void)
{
    if (global.taken)
        endwin();
    global.taken = 0;
}

static struct error *begin_curses(struct live_screen *s)
{
    static bool registered;

    s->curses = newterm(NULL, s->out, s->in);
    if (!s->curses)
        return terminal_type_unknown();
    set_term(s->curses);
    global.taken = 1;
    if (!registered && !atexit(restore_at_exit))
        registered = true;
    add_text(tigetstr("sgr0"));
    add_text(tigetstr("cnorm"));
    add_text(tigetstr("rmkx"));
    add_text(tigetstr("rmcup"));
    set_escdelay(50);
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    return NULL;
}

static struct error *open_terminal(struct live_screen *s)
{
    static const char path[] = "/dev/tty";

    if (!isatty(STDOUT_FILENO))
        return error_create(ERROR_USAGE, "live is a view for a terminal, and standard output is not one: -f top or -o profile.html write files");
    s->in = fopen(path, "re");
    s->out = s->in ? fopen(path, "we") : NULL;
    if (!s->out)
        return error_create(ERROR_USAGE, "live takes keys from the terminal, and there is none: %s: %s", path, strerror(errno));
    return terminal_type_check(fileno(s->out));
}

struct error *live_screen_open(struct live_screen **out)
{
    struct live_screen *s = calloc(1, sizeof *s);
    struct error *err = s ? open_terminal(s) : error_no_memory();

    if (err) {
        live_screen_close(s);
        return err;
    }
    /* Which characters the terminal shows, and how wide they are. Hosts often lack the locale that a user brings along. */
    if (!setlocale(LC_CTYPE, ""))
        setlocale(LC_CTYPE, "C.UTF-8");
    *out = s;
    return NULL;
}

void live_screen_take_signals(struct live_screen *s)
{
    take_signals(fileno(s->out));
    s->has_signals = true;
}

bool live_screen_is_ended(const struct live_screen *s)
{
    return s->has_signals && global.asked_to_end;
}

struct error *live_screen_take(struct live_screen *s)
{
    return begin_curses(s);
}

void live_screen_give_back(struct live_screen *s)
{
    if (s->curses) {
        endwin();
        global.taken = 0;
        delscreen(s->curses);
        s->curses = NULL;
    }
    if (s->has_signals)
        release_signals();
    s->has_signals = false;
}

void live_screen_close(struct live_screen *s)
{
    if (!s)
        return;
    live_screen_give_back(s);
    if (s->in)
        fclose(s->in);
    if (s->out)
        fclose(s->out);
    free(s);
}

void live_screen_size(const struct live_screen *s, size_t *rows, size_t *columns)
{
    int y, x;

    (void)s;
    getmaxyx(stdscr, y, x);
    *rows = y > 0 ? (size_t)y : 0;
    *columns = x > 0 ? (size_t)x : 0;
}

/* ---- drawing ---- */

/*
 * The characters of a line that fit into the columns. What the terminal cannot show, or would not as a character of its own,
 * becomes '?'.
 */
static size_t characters(const struct buf *text, size_t columns, wchar_t *out)
{
    size_t count = 0, used = 0;
    char probe[16];

    for (size_t i = 0; i < text->len_bytes && count < LINE_MAX_CHARACTERS;) {
        uint32_t code = 0;
        size_t len = utf8_decode(text->data + i, text->len_bytes - i, &code);
        mbstate_t state = {0};
        i += len ? len : 1;
        if (!len || utf8_is_control(code) || wcwidth((wchar_t)code) < 0 || wcrtomb(probe, (wchar_t)code, &state) == (size_t)-1)
            code = '?';
        used += (size_t)wcwidth((wchar_t)code);
        if (used > columns)
            break;
        out[count++] = (wchar_t)code;
    }
    return count;
}

void live_screen_draw(struct live_screen *s, const struct live_page *page)
{
    static const attr_t looks[] = {[LIVE_PLAIN] = A_NORMAL, [LIVE_BOLD] = A_BOLD, [LIVE_REVERSE] = A_REVERSE};
    wchar_t text[LINE_MAX_CHARACTERS];
    size_t rows, columns;

    live_screen_size(s, &rows, &columns);
    /* What other programs of the pipeline wrote over the screen is gone with the next interval. */
    if (page->serial != s->serial)
        redrawwin(stdscr);
    s->serial = page->serial;
    erase();
    for (size_t i = 0; i < page->used && i < rows; i++) {
        const struct live_line *line = &page->lines.data[i];
        size_t count = characters(&line->text, columns, text);
        attrset((int)looks[line->look]);
        mvaddnwstr((int)i, 0, text, (int)count);
    }
    attrset(A_NORMAL);
    refresh();
}

/* ---- keys ---- */

static uint32_t special(wint_t code)
{
    switch (code) {
    case KEY_UP: return LIVE_KEY_UP;
    case KEY_DOWN: return LIVE_KEY_DOWN;
    case KEY_PPAGE: return LIVE_KEY_PAGE_UP;
    case KEY_NPAGE: return LIVE_KEY_PAGE_DOWN;
    case KEY_HOME: return LIVE_KEY_HOME;
    case KEY_END: return LIVE_KEY_END;
    case KEY_ENTER: return LIVE_KEY_ENTER;
    case KEY_BACKSPACE: return LIVE_KEY_BACK;
    default: return LIVE_KEY_NONE;
    }
}

/* A key that was pressed already; LIVE_KEY_NONE: there is none. *resized: it is the news of another size. */
static uint32_t next_key(bool *resized)
{
    wint_t code;

    int kind = get_wch(&code);
    *resized = kind == KEY_CODE_YES && code == KEY_RESIZE;
    if (kind == ERR)
        return LIVE_KEY_NONE;
    return kind == KEY_CODE_YES ? special(code) : (uint32_t)code;
}

uint32_t live_screen_key(struct live_screen *s, int timeout_ms)
{
    struct pollfd terminal = {.fd = fileno(s->in), .events = POLLIN};
    bool resized;

    if (global.asked_to_end)
        return CTRL_C;
    uint32_t key = next_key(&resized);
    if (key != LIVE_KEY_NONE || resized)
        return key;
    poll(&terminal, 1, timeout_ms);
    if (global.asked_to_end || terminal.revents & (POLLHUP | POLLERR | POLLNVAL))
        return CTRL_C;
    return next_key(&resized);
}
