/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/live.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/printable.h"

enum { REDRAW_MS = 250, BEGIN_MS = 20, LEAVE_MS = 500 };

/* What the thread that reads works on. Outlives live_run() only if it was abandoned. */
struct live {
    struct live_feed feed;
    live_read *read;
    void *own;
    pthread_t thread;
    struct error *err;
    atomic_bool done;
};

static void *read_all(void *arg)
{
    struct live *l = arg;
    struct buf why = {0};

    l->err = l->read(l->own, &l->feed);
    if (l->err) {
        printable_put(&why, l->err->message);
        error_destroy(live_tally_end(l->feed.tally, buf_cstr(&why)));
        buf_deinit(&why);
    }
    atomic_store(&l->done, true);
    return NULL;
}

/* Signals are the other thread's, but for those of a crash: one that its own thread blocks ends the process without its handler. */
static struct error *start(struct live *l)
{
    static const int own[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t others, before;

    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&others, own[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    int failed = pthread_create(&l->thread, NULL, read_all, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? error_create(ERROR_IO, "cannot start a thread") : NULL;
}

/* Waits until there is something to show. False: there is nothing, or the view is to end. */
static bool wait_for_begin(const struct live *l, const struct live_screen *screen)
{
    const struct timespec pause = timespec_of_ns(BEGIN_MS * NS_PER_MS);

    while (!atomic_load(&l->feed.begun) && !atomic_load(&l->done) && !live_screen_is_ended(screen))
        nanosleep(&pause, NULL);
    return atomic_load(&l->feed.begun) && !live_screen_is_ended(screen);
}

static void apply(const struct live *l, const struct live_view *v)
{
    live_tally_lock(l->feed.tally);
    live_tally_set_interval(l->feed.tally, v->interval_ns);
    live_tally_freeze(l->feed.tally, v->frozen);
    live_tally_unlock(l->feed.tally);
}

/* Takes all keys that were pressed. Each of them means the page that the ones before it made. */
static bool take_keys(const struct live *l, struct live_screen *screen, struct live_view *view, struct live_page *page)
{
    size_t rows, columns;

    live_screen_size(screen, &rows, &columns);
    for (uint32_t key = live_screen_key(screen, REDRAW_MS); key != LIVE_KEY_NONE && !view->quit; key = live_screen_key(screen, 0)) {
        live_view_key(view, key, &page->pick, page->table_rows);
        apply(l, view);
        if (!live_page_make(page, l->feed.tally, view, rows, columns))
            return false;
    }
    return true;
}

/* Draws four times a second, and when keys were pressed. */
static struct error *show(const struct live *l, struct live_screen *screen, struct live_view *view)
{
    struct live_page page = {0};
    bool ok = true;

    while (ok && !view->quit) {
        size_t rows, columns;
        live_screen_size(screen, &rows, &columns);
        ok = live_page_make(&page, l->feed.tally, view, rows, columns);
        if (ok)
            live_screen_draw(screen, &page);
        ok = ok && take_keys(l, screen, view, &page);
    }
    live_page_deinit(&page);
    return ok ? NULL : error_no_memory();
}

/* False: the thread that reads does not end. */
static bool stop(struct live *l)
{
    const uint64_t one = 1;
    struct timespec until;

    atomic_store(&l->feed.stop, true);
    if (write(l->feed.wake_fd, &one, sizeof one) < 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &until);
    until = timespec_of_ns(timespec_ns(until) + LEAVE_MS * NS_PER_MS);
    return !pthread_timedjoin_np(l->thread, NULL, &until);
}

static struct error *show_begun(struct live *l, struct live_screen *screen, struct live_view *view)
{
    struct error *err = NULL;

    live_screen_take_signals(screen);
    if (wait_for_begin(l, screen)) {
        err = live_screen_take(screen);
        if (!err)
            err = show(l, screen, view);
    }
    live_screen_give_back(screen);
    return err;
}

static void destroy(struct live *l)
{
    if (l->feed.wake_fd >= 0)
        close(l->feed.wake_fd);
    live_tally_destroy(l->feed.tally);
    error_destroy(l->err);
    free(l);
}

struct error *live_run(struct live_screen *screen, struct live_view *view, live_read *read, void *own, bool *abandoned)
{
    struct live *l = calloc(1, sizeof *l);

    *abandoned = false;
    if (!l)
        return error_no_memory();
    *l = (struct live){.read = read, .own = own, .feed.wake_fd = eventfd(0, EFD_CLOEXEC)};
    struct error *err = l->feed.wake_fd < 0 ? error_create(ERROR_IO, "cannot make an eventfd: errno %d", errno)
                                            : live_tally_create(view->interval_ns, &l->feed.tally);
    if (!err)
        err = start(l);
    if (err) {
        destroy(l);
        return err;
    }
    err = show_begun(l, screen, view);
    *abandoned = !stop(l);
    if (*abandoned)
        return err;
    if (!err) {
        err = l->err;
        l->err = NULL;
    }
    destroy(l);
    return err;
}
