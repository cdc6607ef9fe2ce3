/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the traces in turn: opens each, has it read by a process of its own (converter.h), and sends what comes (sender.h).
 * Those that come next are read meanwhile (--jobs); what is sent, and its order, do not depend on that.
 * While it waits for either, it looks at the folders once a second, so that it knows what waits and what is gone.
 */
#include "symbolize/push/push.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/base/job_text.h"
#include "formats/base/shell_word.h"
#include "formats/base/vec.h"
#include "symbolize/push/account.h"
#include "symbolize/push/folder.h"
#include "symbolize/push/push_confine.h"
#include "symbolize/push/push_log.h"
#include "symbolize/push/sender.h"
#include "symbolize/push/service.h"
#include "symbolize/push/state.h"
#include "symbolize/push/stop.h"
#include "symbolize/push/store.h"

#define TICK_NS NS_PER_S
#define PUBLISH_NS (10 * NS_PER_S)

/* A trace on its way. */
struct sent {
    struct sender_trace sender; /* first: the sender gives it back */
    struct folder_trace *file;
    uint64_t len_bytes;         /* when it was opened */
    bool read, failed, damaged; /* to its end; or as far as it could be */
    bool ended;                 /* it has an END record, and nothing was written since it was opened: it will not grow */
    bool killed;                /* it failed, but may be read yet */
    uint64_t profile_count;
};

/* A trace whose turn comes. */
struct next_trace {
    struct folder_trace *file;
    enum folder_answer answer;
    struct converter *converter; /* reads it; NULL: it is not open yet */
    int fd;
};

struct push {
    const struct push_request *request;
    struct converters *converters;
    struct store *store;
    struct state *state;
    struct account *account;
    struct folder *folder;
    struct sender *sender;
    VEC(struct sent *) sent; /* traces on their way */
    VEC(struct next_trace) next; /* in the order in which they are sent; --jobs at most */
    struct push_log log;
    struct service service;
    uint64_t told_ns, published_ns; /* CLOCK_MONOTONIC; 0: not yet */
    bool unreadable; /* something could not be read */
    bool was_root;   /* or had other privileges, which are given up */
};

/* ---- what is told ---- */

static void note_gone(void *own, const struct folder_trace *trace)
{
    struct push *p = own;

    account_trace(p->account, ACCOUNT_TRACE_GONE, trace->len_bytes);
    push_log_say(&p->log, PUSH_LOG_TRACE, "%s was removed before it was sent: keep more files, or see why sending takes so long",
                 trace->path);
    struct error *err = state_set_complete(p->state, trace->id, trace->len_bytes, false);
    error_destroy(err); /* then it is remembered a while longer */
}

static void note_unreadable(void *own, struct error *err)
{
    struct push *p = own;

    p->unreadable = true;
    account_trace(p->account, ACCOUNT_TRACE_UNREADABLE, 0);
    push_log_say(&p->log, PUSH_LOG_TRACE, "%s%s", error_text(err),
                 p->was_root && err->code == ERROR_PERMISSION
                     ? " (pysym push gives root's rights up: run it as a user who may read that, such as one of the group of pycap record --group)"
                     : "");
    error_destroy(err);
}

/* Looks at the folders, and tells others how things stand: once a second, since counting what waits goes through all files. */
static struct error *tick(void *own)
{
    struct push *p = own;
    uint64_t oldest_ns, real_ns = clock_ns(CLOCK_REALTIME), now = now_ns();

    TRY(folder_look(p->folder));
    if (now - p->told_ns < TICK_NS && p->told_ns)
        return NULL;
    p->told_ns = now;
    uint64_t waiting = folder_waiting(p->folder, &oldest_ns);
    service_tick(&p->service, waiting);
    if (now - p->published_ns < PUBLISH_NS && p->published_ns)
        return NULL;
    p->published_ns = now;
    account_backlog(p->account, waiting, oldest_ns && oldest_ns < real_ns ? real_ns - oldest_ns : 0);
    account_publish(p->account);
    return NULL;
}

/* ---- one trace ---- */

static void forget(struct push *p, struct sent *t)
{
    size_t at = 0;

    while (p->sent.data[at] != t)
        at++;
    p->sent.data[at] = p->sent.data[--p->sent.count];
    free(t);
}

/* A trace that has grown since it was sent is the same trace, with more bytes. */
static void count_trace(struct push *p, const struct sent *t, enum account_trace how)
{
    uint64_t before = t->file->counted_bytes, more = t->len_bytes > before ? t->len_bytes - before : 0;

    if (before && how == ACCOUNT_TRACE_DONE)
        account_trace_grew(p->account, more);
    else
        account_trace(p->account, how, more);
    if (!t->failed)
        t->file->counted_bytes = t->len_bytes;
}

/* The trace was read, and all of its profiles have their answers. */
static void finish_trace(struct push *p, struct sent *t)
{
    enum account_trace how = !t->failed ? (t->damaged ? ACCOUNT_TRACE_DAMAGED : ACCOUNT_TRACE_DONE)
                                        : t->profile_count ? ACCOUNT_TRACE_DAMAGED : ACCOUNT_TRACE_UNREADABLE;
    struct error *err = NULL;

    if (t->killed && p->request->follow && folder_put_off(t->file)) {
        forget(p, t);
        return;
    }
    p->unreadable |= t->failed;
    count_trace(p, t, how);
    folder_done(t->file);
    if (!t->failed)
        err = state_set_complete(p->state, t->sender.id, t->len_bytes, !t->ended);
    if (err)
        push_log_say(&p->log, PUSH_LOG_STATE, "%s", error_text(err));
    error_destroy(err); /* another run reads the trace again, and sends nothing twice */
    forget(p, t);
}

static struct error *settled(void *own, struct sender_trace *trace)
{
    struct sent *t = (struct sent *)trace;

    if (t->read || t->failed)
        finish_trace(own, t);
    return NULL;
}

/* Errors begin with the path that they are about. */
static void say_of_trace(struct push *p, enum push_log_kind kind, const struct sent *t, const char *text)
{
    size_t len = strlen(t->file->path);

    if (!strncmp(text, t->file->path, len) && text[len] == ':')
        push_log_say(&p->log, kind, "%s", text);
    else
        push_log_say(&p->log, kind, "%s: %s", t->file->path, text);
}

/* Takes one message. `counted`: whether the last profile was new, as what was lost in its window is then. */
static struct error *take_message(struct push *p, struct sent *t, const struct converter_message *m, bool *counted)
{
    switch (m->event) {
    case CONVERTER_PROFILE:
        t->profile_count++;
        *counted = state_find(p->state, t->sender.id, &m->profile) != STATE_SETTLED;
        return sender_send(p->sender, &t->sender, &m->profile);
    case CONVERTER_LOST:
        if (*counted)
            account_lost(p->account, m->text, m->count, m->is_sample);
        return NULL;
    case CONVERTER_TEXT:
        say_of_trace(p, PUSH_LOG_TEXT, t, m->text);
        return NULL;
    case CONVERTER_END:
        t->read = true;
        t->damaged = m->damaged;
        t->ended = m->ended;
        return NULL;
    case CONVERTER_FAILED:
        t->failed = true;
        t->killed = m->killed;
        say_of_trace(p, PUSH_LOG_TRACE, t, m->text);
        return NULL;
    }
    return NULL;
}

static bool goes_on(const struct push *p)
{
    return sender_ended(p->sender) == SENDER_GOES_ON;
}

/* Sends what comes of the trace, until its last message or until something ends the sender. */
static struct error *send_messages(struct push *p, struct sent *t, struct converter *converter)
{
    struct converter_message message;
    bool came, counted = true;

    while (!t->read && !t->failed && goes_on(p)) {
        TRY(converter_next(converter, &message, &came));
        TRY(came ? take_message(p, t, &message, &counted)
                 : sender_wait(p->sender, converter_fd(converter), now_ns() + TICK_NS));
        TRY(tick(p)); /* many messages may come in a row */
    }
    return NULL;
}

static bool has_length(int fd, uint64_t len_bytes)
{
    struct stat st;

    return !fstat(fd, &st) && (uint64_t)st.st_size == len_bytes;
}

/* Sends a trace that is being read. */
static struct error *send_trace(struct push *p, const struct next_trace *n)
{
    struct sent *t = calloc(1, sizeof *t);

    if (!t || !VEC_PUSH(&p->sent, t)) {
        free(t);
        return error_no_memory();
    }
    *t = (struct sent){.sender = {.id = n->file->id}, .file = n->file, .len_bytes = n->file->len_bytes};
    TRY(send_messages(p, t, n->converter));
    /* Where a store is slow it may have grown meanwhile: what was sent has to stay known when it is read again. */
    t->ended &= has_length(n->fd, t->len_bytes);
    if ((t->read || t->failed) && !t->sender.open_count)
        finish_trace(p, t);
    return NULL;
}

/* Is there an END record? */
static struct error *look_for_end(struct push *p, struct converter *converter, const struct converter_trace *trace, bool *ended)
{
    struct converter_message m = {0};
    bool came = false;

    TRY(converter_begin(converter, trace, CONVERTER_LOOK));
    while (!came && goes_on(p)) {
        TRY(converter_next(converter, &m, &came));
        if (!came)
            TRY(sender_wait(p->sender, converter_fd(converter), now_ns() + TICK_NS));
    }
    *ended = came && m.event == CONVERTER_END && m.ended;
    return converter_end(converter);
}

/* Begins to read a trace, if it is complete: else n->converter stays NULL, and nothing more is to be done with it now. */
static struct error *begin_reading(struct push *p, struct next_trace *n)
{
    struct converter *converter = converters_idle(p->converters);
    bool ended = n->answer == FOLDER_COMPLETE;

    struct error *err = folder_open(n->file, &n->fd);
    if (err) {
        /* The next look says that it is gone, or why it cannot be read. */
        error_destroy(err);
        folder_put_back(n->file);
        return NULL;
    }
    const struct converter_trace trace = {n->file->path, n->fd};
    if (!ended)
        err = look_for_end(p, converter, &trace, &ended);
    if (!err && ended)
        err = converter_begin(converter, &trace, CONVERTER_READ);
    if (!err && ended) {
        n->converter = converter;
        return NULL;
    }
    folder_has_no_end(n->file);
    close(n->fd);
    return err;
}

/* Is the same trace being sent under another name, or will it be? It was copied, or renamed meanwhile. */
static bool is_on_its_way(const struct push *p, struct state_trace_id id)
{
    for (size_t i = 0; i < p->sent.count; i++) {
        if (p->sent.data[i]->sender.id.number == id.number)
            return true;
    }
    for (size_t i = 0; i < p->next.count; i++) {
        if (p->next.data[i].file->id.number == id.number)
            return true;
    }
    return false;
}

static void note_sent_before(struct push *p, struct folder_trace *file)
{
    account_sent_before(p->account);
    folder_done(file);
}

/* Begins to read what comes next, but for a trace that is on its way: what is known of it when its turn comes decides. */
static struct error *read_ahead(struct push *p)
{
    struct next_trace n = {0};

    while (goes_on(p) && p->next.count < p->request->jobs && (n.answer = folder_next(p->folder, &n.file)) != FOLDER_NOTHING) {
        bool may_be_sent = is_on_its_way(p, n.file->id);
        n.converter = NULL;
        if (!may_be_sent && state_is_complete(p->state, n.file->id, n.file->len_bytes)) {
            note_sent_before(p, n.file);
            continue;
        }
        if (!may_be_sent)
            TRY(begin_reading(p, &n));
        if ((may_be_sent || n.converter) && !VEC_PUSH(&p->next, n)) {
            if (n.converter)
                close(n.fd);
            return error_no_memory();
        }
        TRY(tick(p));
    }
    return NULL;
}

/* Sends the first of p->next. */
static struct error *send_next(struct push *p)
{
    struct next_trace n = p->next.data[0];

    memmove(p->next.data, p->next.data + 1, --p->next.count * sizeof n);
    if (!n.converter) { /* the state knows of its profiles only once they are answered */
        TRY(sender_finish(p->sender));
        if (state_is_complete(p->state, n.file->id, n.file->len_bytes)) {
            note_sent_before(p, n.file);
            return NULL;
        }
        TRY(begin_reading(p, &n));
    }
    if (!n.converter)
        return NULL;
    struct error *err = send_trace(p, &n);
    close(n.fd);
    return err;
}

/* Sends all traces that are complete now. */
static struct error *send_waiting(struct push *p)
{
    for (;;) {
        TRY(read_ahead(p));
        if (!goes_on(p) || !p->next.count)
            return NULL;
        TRY(send_next(p));
        TRY(tick(p));
    }
}

/* ---- the whole ---- */

/* A trace may have grown, and been completed, while it was sent and a slow store was waited for: one that did is read again. */
static struct error *send_grown(struct push *p)
{
    folder_look_at_once(p->folder);
    TRY(folder_look(p->folder));
    TRY(send_waiting(p));
    return sender_finish(p->sender);
}

static struct error *run_loop(struct push *p)
{
    TRY(folder_look(p->folder));
    TRY(send_waiting(p));
    while (p->request->follow && goes_on(p)) {
        TRY(sender_wait(p->sender, -1, now_ns() + TICK_NS));
        TRY(send_waiting(p));
    }
    TRY(sender_finish(p->sender));
    if (goes_on(p))
        TRY(send_grown(p));
    TRY(converters_end(p->converters));
    return sender_drain(p->sender);
}

/* What has to stay the same for the state to be of use: where profiles go, and how they are divided. */
static void put_destination(const struct push_request *r, struct buf *out)
{
    buf_printf(out, "store=%s url=", r->store->name);
    shell_word_put(r->url, out);
    if (r->tenant) {
        buf_put_str(out, " tenant=");
        shell_word_put(r->tenant, out);
    }
    buf_printf(out, " window_ns=%" PRIu64 " max_series=%" PRIu32, r->window_ns, r->max_series);
    for (size_t i = 0; i < r->labels.count; i++) {
        buf_put_str(out, " label=");
        shell_word_put(r->labels.data[i], out);
    }
}

static struct error *open_state(struct push *p)
{
    struct buf destination = {0};

    put_destination(p->request, &destination);
    struct error *err = destination.bad ? error_no_memory() : state_open(p->request->state, buf_cstr(&destination), &p->state);
    buf_deinit(&destination);
    return err;
}

/* Opens all that is needed. The processes that read traces are forked first, since they must know no secret. */
static struct error *begin(struct push *p, converter_run *convert, void *own)
{
    const struct folder_events events = {p, note_gone, note_unreadable};

    TRY(push_drop_privileges(&p->was_root));
    TRY(stop_begin());
    TRY(converters_create(p->request->jobs, convert, own, &p->converters));
    TRY(store_open(p->request, &p->store));
    stop_watch(p->store);
    TRY(open_state(p));
    TRY(account_create(p->request, &p->account));
    TRY(folder_create(&p->request->inputs, &events, p->request->follow, &p->folder));
    const struct sender_options options = {.request = p->request, .store = p->store, .state = p->state, .account = p->account,
                                           .log = &p->log, .own = p, .tick = tick, .settled = settled};
    TRY(sender_create(&options, &p->sender));
    service_begin(&p->service);
    TRY(push_confine(p->request));
    service_ready(&p->service);
    return NULL;
}

static void print_account(const struct account *account)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (out) {
        account_print(account, out);
        if (!fclose(out))
            job_text_print(stderr, "%s", text);
    }
    free(text);
}

/* Says why it ended early, and what is left. */
static void conclude(struct push *p, struct push_outcome *outcome)
{
    enum sender_end end = sender_ended(p->sender);
    uint64_t oldest_ns, real_ns = clock_ns(CLOCK_REALTIME), waiting;

    waiting = folder_waiting(p->folder, &oldest_ns);
    account_backlog(p->account, waiting, oldest_ns && oldest_ns < real_ns ? real_ns - oldest_ns : 0);
    account_publish(p->account);
    if (end == SENDER_TIRED)
        push_log_say(&p->log, PUSH_LOG_NOTICE, "%s gave no sound answer for %" PRIu64 " s (--retry-for): gave up", p->request->store->title,
                     p->request->retry_for_ns / NS_PER_S);
    if (waiting && !p->request->follow && end == SENDER_GOES_ON)
        push_log_say(&p->log, PUSH_LOG_NOTICE, "%" PRIu64 " trace%s still being written, or cut off less than two minutes ago",
                     waiting, waiting == 1 ? " is" : "s are");
    if (!p->request->follow && account_is_empty(p->account))
        push_log_say(&p->log, PUSH_LOG_NOTICE, "no trace was found; in a folder those in it are, not those in folders below it");
    print_account(p->account);
    bool stopped = end == SENDER_STOPPED && p->request->follow;
    outcome->incomplete = !stopped && (waiting || p->unreadable || end != SENDER_GOES_ON || !account_is_whole(p->account));
}

struct error *push_run(const struct push_request *request, converter_run *convert, void *own, struct push_outcome *outcome)
{
    struct push p = {.request = request, .log = {.verbose = request->verbose}, .service = {.fd = -1}};

    *outcome = (struct push_outcome){0};
    struct error *err = begin(&p, convert, own);
    if (!err)
        err = run_loop(&p);
    service_end(&p.service);
    if (!err)
        conclude(&p, outcome);
    stop_watch(NULL);
    for (size_t i = 0; i < p.sent.count; i++)
        free(p.sent.data[i]);
    VEC_DEINIT(&p.sent);
    for (size_t i = 0; i < p.next.count; i++) {
        if (p.next.data[i].converter)
            close(p.next.data[i].fd);
    }
    VEC_DEINIT(&p.next);
    sender_destroy(p.sender);
    folder_destroy(p.folder);
    account_destroy(p.account);
    state_close(p.state);
    store_close(p.store);
    converters_destroy(p.converters);
    return err;
}
