/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces are read by other processes than the one that sends: a trace that takes its reader over finds neither a network nor
 * a token. A first process is forked before there are secrets, sockets and threads; it forks another for each trace, which
 * confines itself, reads it, and writes profiles to a pipe.
 */
#ifndef SYMBOLIZE_PUSH_CONVERTER_H
#define SYMBOLIZE_PUSH_CONVERTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/profile.h"

struct profile_pipe; /* message.h: where the converting process writes messages */

/*
 * Runs in the process of one trace: confines it, reads the trace at `path` and writes its profiles to the pipe. The error is
 * told to the sender.
 */
typedef struct error *converter_run(void *own, const char *path, struct profile_pipe *pipe);

enum converter_event {
    CONVERTER_PROFILE,
    CONVERTER_LOST,   /* what the recorder lost, by name */
    CONVERTER_TEXT,   /* a line for standard error: damage, warnings */
    CONVERTER_END,    /* the trace is read to its end */
    CONVERTER_FAILED, /* it was not: `text` says why. Also when the process was killed, or told nonsense */
};

struct converter_message {
    enum converter_event event;
    struct push_profile profile; /* until the next message */
    const char *text;            /* likewise; printable. CONVERTER_LOST: the name */
    uint64_t count;
    bool damaged;                /* CONVERTER_END: parts were damaged or missing, and passed over */
};

struct converter;
/* Call before secrets are read and before there are threads. `own` is borrowed. */
struct error *converter_create(converter_run *run, void *own, struct converter **out);
/* Ends all of its processes. */
void converter_destroy(struct converter *c);
/* Begins with a trace: one at a time. */
struct error *converter_begin(struct converter *c, const char *path);
/* Waits for the next message. Profiles come in the order of their windows. While nobody asks, the pipe's reader waits. */
struct error *converter_next(struct converter *c, struct converter_message *out);
/* Ends the process of the current trace, wherever it is. */
void converter_end(struct converter *c);

#endif
