/* SPDX-License-Identifier: Apache-2.0 */
/* Parts end as files of --rotate do, but in memory; a file is a header, parts, and a block with the END record. */
#include "capture/session/flight.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/messages.h"
#include "capture/output/interrupt.h"
#include "capture/session/flight_store.h"
#include "capture/session/session_accounts.h"
#include "capture/session/session_drain.h"
#include "capture/trace/trace_memory.h"
#include "formats/base/numbers.h"
#include "formats/base/size_text.h"

/* What is kept has about so many parts, so that it reaches back a quarter longer than asked for, or more. */
#define PARTS 4
#define PART_MAX_NS (60 * NS_PER_S)
#define PART_MIN_NS (250 * NS_PER_MS)
/* What is kept without --max-memory. */
#define KEPT_MAX_BYTES (UINT64_C(64) << 20)
/* An event is over, and a moment ago, when it is reported: what was before it is kept for longer by this. */
#define LATE_NS NS_PER_S
/* Written in one go. The sampler's buffer must not fill meanwhile. */
#define STRETCH_BYTES (4u << 20)
/* A file of one event after the other ends all the same: after so many times --after. */
#define AFTER_TIMES_MAX 10

struct flight {
    struct flight_store *store;
    struct buf header;    /* of a file */
    uint64_t part_ns;     /* the length of a part */
    uint64_t part_samples, part_lost; /* counts of the recording when the part began */
    bool writes, behind;  /* a file is written; and more of what is kept can be written at once */
    uint64_t since_ns, event_ns, until_ns; /* of that file: its beginning, its first event, and when it is to end */
    uint64_t bytes, all_bytes; /* of that file, of all */
    char why[128];
    struct flight_counts counts;
};

/* An event is no time to find out that the files have no place. */
static struct error *check_folder(const char *pattern)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(pattern, '/');
    size_t len = slash ? (size_t)(slash - pattern) + 1 : 0;

    if (len >= sizeof folder || memchr(pattern, '%', len))
        return NULL;
    memcpy(folder, pattern, len);
    return access(folder, W_OK | X_OK) ? error_file(errno, folder, "files of events cannot be written there") : NULL;
}

struct error *flight_create(struct session *s)
{
    const struct session_options *o = s->o;
    uint64_t part_ns = o->before_ns / PARTS;

    if (!o->on_demand)
        return NULL;
    struct flight *f = s->flight = calloc(1, sizeof *f);
    if (!f)
        return error_no_memory();
    TRY(check_folder(o->output));
    f->part_ns = part_ns > PART_MAX_NS ? PART_MAX_NS : part_ns < PART_MIN_NS ? PART_MIN_NS : part_ns;
    f->store = flight_store_create();
    return f->store ? NULL : error_no_memory();
}

void flight_destroy(struct session *s)
{
    if (!s->flight)
        return;
    flight_store_destroy(s->flight->store);
    buf_deinit(&s->flight->header);
    free(s->flight);
    s->flight = NULL;
}

/* ---- what is kept ---- */

/* The first that the writer writes is the file's header, before there is any part. */
ssize_t flight_write(void *session, int fd, const void *data, size_t len_bytes)
{
    struct session *s = session;
    struct flight *f = s->flight;

    (void)fd;
    if (!f->header.len_bytes)
        buf_put(&f->header, data, len_bytes);
    else if (!flight_store_add(f->store, data, len_bytes))
        f->header.bad = true;
    if (!f->header.bad)
        return (ssize_t)len_bytes;
    errno = ENOMEM;
    return -1;
}

static struct error *begin_part(struct session *s, uint64_t time_ns)
{
    struct flight *f = s->flight;

    f->part_samples = trace_builder_file_samples(s->builder);
    f->part_lost = session_lost_samples(s);
    session_begin_counts(s, time_ns);
    return flight_store_begin(f->store, time_ns) ? NULL : error_no_memory();
}

struct error *flight_begin(struct session *s, uint64_t time_ns)
{
    return s->flight ? begin_part(s, time_ns) : NULL;
}

/* Puts into the part what was recorded until `time_ns`, and its counts. */
static struct error *end_part(struct session *s, uint64_t time_ns, enum session_account account)
{
    struct flight *f = s->flight;

    if (!s->end_ns) {
        TRY(session_cut_waits(s, time_ns));
        TRY(trace_builder_read_all_memory(s->builder, now_ns()));
    }
    TRY(session_put_accounts(s, time_ns, account));
    trace_builder_exits(s->builder);
    trace_builder_clock(s->builder);
    trace_writer_flush(s->writer);
    flight_store_count(f->store, trace_builder_file_samples(s->builder) - f->part_samples,
                       session_lost_samples(s) - f->part_lost);
    return NULL;
}

/* The part before must have its counts. */
static struct error *next_part(struct session *s, uint64_t time_ns)
{
    TRY(trace_builder_next_part(s->builder, time_ns)); /* what ends the epoch goes into the part before */
    return begin_part(s, time_ns);
}

static void forget(struct session *s, uint64_t time_ns)
{
    uint64_t before_ns = s->o->before_ns + LATE_NS;

    flight_store_drop_before(s->flight->store, time_ns > before_ns ? time_ns - before_ns : 0);
    flight_store_drop_above(s->flight->store, s->o->max_memory ? s->o->max_memory : KEPT_MAX_BYTES);
}

bool flight_forget(struct session *s, uint64_t bytes)
{
    uint64_t held = s->flight ? flight_store_bytes(s->flight->store) : 0;

    if (!held)
        return false;
    flight_store_drop_above(s->flight->store, held > bytes ? held - bytes : 0);
    return flight_store_bytes(s->flight->store) < held;
}

/* ---- files ---- */

static void tell(const struct session *s, struct buf *text)
{
    if (!s->o->quiet && isatty(fileno(s->o->messages)))
        messages_clear_line(s->o->messages);
    if (!s->o->quiet)
        messages_line(s->o->messages, "%s", buf_cstr(text));
    buf_deinit(text);
}

/* The file cannot be written. What is kept stays, for the next event; without the writer there is none. */
static struct error *give_up(struct session *s, struct error *err, bool open)
{
    struct flight *f = s->flight;
    struct buf text = {0};
    uint64_t samples, lost;
    struct number n;

    flight_store_written(f->store, &samples, &lost);
    f->writes = false;
    f->counts.failed++;
    if (open)
        error_destroy(outputs_close(s->outputs));
    if (outputs_lost(s->outputs) || interrupt_told())
        return err;
    buf_printf(&text, "event (%s): %s; ", f->why, error_text(err));
    if (open)
        buf_printf(&text, "the file ends early, with %s, and the next event has another one",
                   counted(f->counts.last_samples, "sample", "samples", &n));
    else
        buf_put_str(&text, "it has no file, and the next event is tried again");
    tell(s, &text);
    error_destroy(err);
    return NULL;
}

static struct error *put(struct session *s, const void *data, size_t len_bytes)
{
    if (outputs_write(s->outputs, data, len_bytes) < 0)
        return error_file(errno, outputs_path(s->outputs), "cannot write");
    s->flight->bytes += len_bytes;
    s->flight->all_bytes += len_bytes;
    return NULL;
}

/* Writes what the file still lacks: all of it, or as much as may be written in one go. */
static struct error *put_kept(struct session *s, bool all)
{
    uint64_t begun = s->flight->bytes;
    const void *data;
    size_t len_bytes;

    while ((all || s->flight->bytes < begun + STRETCH_BYTES) && flight_store_next(s->flight->store, &data, &len_bytes)) {
        TRY(put(s, data, len_bytes));
        s->flight->counts.samples += trace_writer_block_samples(data);
        s->flight->counts.last_samples += trace_writer_block_samples(data);
    }
    s->flight->behind = s->flight->bytes >= begun + STRETCH_BYTES;
    return NULL;
}

static struct error *open_file(struct session *s)
{
    struct flight *f = s->flight;

    f->bytes = f->counts.last_samples = 0;
    f->writes = true;
    f->since_ns = flight_store_since_ns(f->store);
    flight_store_write(f->store);
    struct error *err = outputs_open(s->outputs);
    if (err)
        return give_up(s, err, false);
    s->file_count++;
    err = put(s, f->header.data, f->header.len_bytes);
    return err ? give_up(s, err, true) : NULL;
}

static struct error *put_end(struct session *s, uint64_t time_ns, enum trace_end_reason reason)
{
    struct trace_end end = {.time_ns = time_ns, .reason = reason};
    struct buf block = {0};

    TRY(put_kept(s, true));
    flight_store_written(s->flight->store, &end.sample_count, &end.lost_count);
    s->flight->counts.lost += end.lost_count;
    s->flight->counts.duration_ns += time_ns - s->flight->since_ns;
    struct error *err = trace_writer_last_block(s->writer, NULL, &end, &block) ? put(s, block.data, block.len_bytes) : error_no_memory();
    buf_deinit(&block);
    if (!err && outputs_sync(s->outputs) && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        err = error_file(errno, outputs_path(s->outputs), "cannot sync");
    return err;
}

/* Ends the file; the part has its counts. */
static struct error *close_file(struct session *s, uint64_t time_ns, enum trace_end_reason reason)
{
    struct flight *f = s->flight;
    struct size_text size;
    struct buf text = {0};

    struct error *err = put_end(s, time_ns, reason);
    bool open = err;
    if (!err)
        err = outputs_close(s->outputs);
    if (err)
        return give_up(s, err, open);
    f->writes = false;
    f->counts.files++;
    buf_printf(&text, "event (%s): %s has %.1f s before it and %.1f s after it (%s)", f->why, outputs_path(s->outputs),
               (double)(f->event_ns - f->since_ns) / NS_PER_S, (double)(time_ns - f->event_ns) / NS_PER_S,
               size_text(f->bytes, &size));
    tell(s, &text);
    return NULL;
}

/* ---- events ---- */

struct error *flight_event(struct session *s, uint64_t time_ns, const char *why, bool by_signal)
{
    struct flight *f = s->flight;

    if (!f)
        return NULL;
    f->counts.signals += by_signal;
    f->counts.conditions += !by_signal;
    trace_builder_meta(s->builder, "event", why);
    if (f->writes) {
        uint64_t most_ns = f->event_ns + AFTER_TIMES_MAX * s->o->after_ns;
        f->counts.joined++;
        f->until_ns = time_ns + s->o->after_ns < most_ns ? time_ns + s->o->after_ns : most_ns;
        return NULL;
    }
    snprintf(f->why, sizeof f->why, "%s", why);
    f->event_ns = time_ns;
    f->until_ns = time_ns + s->o->after_ns;
    forget(s, time_ns);
    return open_file(s);
}

static bool part_is_over(const struct session *s, uint64_t time_ns)
{
    const struct flight *f = s->flight;
    uint64_t begun_ns = flight_store_part_ns(f->store), most = s->o->max_memory ? s->o->max_memory : KEPT_MAX_BYTES;

    return time_ns >= begun_ns + f->part_ns ||
           (time_ns >= begun_ns + PART_MIN_NS && flight_store_part_bytes(f->store) > most / (2 * PARTS));
}

struct error *flight_tend(struct session *s, uint64_t time_ns)
{
    struct flight *f = s->flight;
    const char *why = NULL;

    if (!f)
        return NULL;
    TRY(when_watch_look(s->when, time_ns, &why));
    if (why)
        TRY(flight_event(s, time_ns, why, false));
    if (f->writes) {
        struct error *err = put_kept(s, false);
        TRY(err ? give_up(s, err, true) : NULL);
    }
    uint64_t end_ns = s->proc ? now_ns() : time_ns - EVENT_DELAY_NS; /* without BPF samples are written when they are taken */
    bool over = f->writes && !f->behind && end_ns >= f->until_ns;
    if (over || part_is_over(s, time_ns)) {
        TRY(end_part(s, end_ns, over ? SESSION_ACCOUNT_FILE : SESSION_ACCOUNT_PART));
        if (over)
            TRY(close_file(s, end_ns, TRACE_END_EVENT));
        TRY(next_part(s, end_ns));
    }
    forget(s, time_ns);
    return NULL;
}

uint64_t flight_due_ns(const struct session *s)
{
    const struct flight *f = s->flight;
    uint64_t due = UINT64_MAX;

    if (!f || (f->writes && f->behind))
        return f ? 0 : due;
    due = flight_store_part_ns(f->store) + f->part_ns;
    return f->writes && f->until_ns + EVENT_DELAY_NS < due ? f->until_ns + EVENT_DELAY_NS : due;
}

/*
 * A command that fails is what a flight recorder is for. How a process ended that somebody else started nobody says; whoever
 * waits for an incident wants to know of its end. NULL: the end of the recording is no event.
 */
static const char *event_of_end(const struct session *s, enum trace_end_reason reason)
{
    if (reason == TRACE_END_COMMAND && s->command.exited && s->command.status)
        return "the command failed";
    return reason == TRACE_END_PROCESSES ? "the process has ended" : NULL;
}

struct error *flight_end(struct session *s, uint64_t time_ns, enum trace_end_reason reason)
{
    struct flight *f = s->flight;
    const char *why = event_of_end(s, reason);
    struct error *err = NULL;

    if (!f->writes && why)
        err = flight_event(s, time_ns, why, false);
    struct error *ended = f->writes ? end_part(s, time_ns, SESSION_ACCOUNT_LAST) : NULL;
    if (ended)
        reason = TRACE_END_ERROR;
    if (f->writes)
        err = error_first(err, close_file(s, time_ns, reason));
    session_sum_losses(s);
    trace_writer_destroy(s->writer);
    s->writer = NULL;
    return error_first(err, ended);
}

/* ---- counts ---- */

bool flight_writes(const struct session *s)
{
    return s->flight && s->flight->writes;
}

struct flight_counts flight_counts(const struct session *s)
{
    return s->flight->counts;
}

uint64_t flight_file_bytes(const struct session *s)
{
    return s->flight->all_bytes;
}

uint64_t flight_kept_bytes(const struct session *s)
{
    return flight_store_bytes(s->flight->store);
}

uint64_t flight_kept_since_ns(const struct session *s)
{
    return flight_store_since_ns(s->flight->store);
}
