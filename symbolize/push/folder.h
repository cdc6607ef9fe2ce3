/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which traces there are to send: the files and folders of the command line, looked at again and again. A folder's traces are
 * its regular files that begin as traces do, whatever their names; folders in it are not searched. Links in it are not
 * followed. Nothing more than the right to read is needed.
 *
 * A trace is sent when it is complete: when it has an END record, or when its recorder died: when there is a newer one of the
 * same recorder, by the time in its name, or when it has not grown for FOLDER_QUIET_NS. Only a process of its own may look for
 * an END record (converter.h), so this says when it is worth looking.
 */
#ifndef SYMBOLIZE_PUSH_FOLDER_H
#define SYMBOLIZE_PUSH_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/clock.h"
#include "formats/base/err.h"
#include "formats/base/options.h"
#include "symbolize/push/state.h"

#define FOLDER_QUIET_NS (120 * NS_PER_S)
enum { FOLDER_TRACES_MAX = STATE_TRACES_MAX / 2 }; /* more are not looked at; a state remembers so many at least */

/* One that folder_next() returned lives until the look after it was done, put back, or has no end. */
struct folder_trace {
    char *path;
    struct state_trace_id id;
    uint64_t len_bytes;
    uint64_t time_ns; /* CLOCK_REALTIME: in the name, else when it was last written */
    uint64_t counted_bytes; /* the caller's; 0 again when another trace has its path */
};

struct folder_events {
    void *own;
    /* It was there, and is not any more; it was not done. */
    void (*gone)(void *own, const struct folder_trace *trace);
    /* A trace, folder or file of the command line cannot be read. Told once, until something changes. `err` is the callee's. */
    void (*unreadable)(void *own, struct error *err);
};

enum folder_answer {
    FOLDER_NOTHING,
    FOLDER_COMPLETE, /* send it */
    FOLDER_LOOK,     /* send it if it has an END record; else call folder_has_no_end() */
};

struct folder;
/* The arguments are borrowed. `follow`: looks for END records only in what has not grown for a while. */
struct error *folder_create(const struct option_texts *inputs, const struct folder_events *events, bool follow, struct folder **out);
/* Accepts NULL. */
void folder_destroy(struct folder *f);
/* Looks what is there now, if the last time is a second ago, or longer ago where looking takes long. Only memory can run out. */
struct error *folder_look(struct folder *f);
/* The next look is not put off. */
void folder_look_at_once(struct folder *f);
/* The oldest trace that may be complete, of those that were not returned since the last look. The caller works on it from now on. */
enum folder_answer folder_next(struct folder *f, struct folder_trace **out);
void folder_has_no_end(struct folder_trace *trace);
/* It could not be sent now: it is returned again after the next look. */
void folder_put_back(struct folder_trace *trace);
/*
 * It could not be read, which may have been no fault of its own: it is returned again after a pause, of 10 s first, that
 * doubles each time. False: that was so five times; nothing was done.
 */
bool folder_put_off(struct folder_trace *trace);
/* Nothing more is to be done for the trace, unless it grows. */
void folder_done(struct folder_trace *trace);
/* Opens it for reading, and sets its length. ERROR_NOT_FOUND: it is gone, or another file is there by now. */
struct error *folder_open(struct folder_trace *trace, int *fd);
/* Counts traces that are not done. `oldest_ns`: CLOCK_REALTIME of the last write to the oldest of those that are complete; 0: none. */
uint64_t folder_waiting(const struct folder *f, uint64_t *oldest_ns);

#endif
