/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends profiles, several at a time, each until it has a sound answer: accepted, or refused for good.
 *
 * A store that does not answer, or asks to be left alone, is tried again with one profile, after a second first, a minute at
 * most. A profile for which it fails while it takes others is tried again some times; then it counts as refused. As long as
 * the store takes no others nothing counts as refused: it may be the store that is sick.
 */
#ifndef SYMBOLIZE_PUSH_SENDER_H
#define SYMBOLIZE_PUSH_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/account.h"
#include "symbolize/push/push_log.h"
#include "symbolize/push/state.h"
#include "symbolize/push/store.h"

/* A trace whose profiles are sent. */
struct sender_trace {
    struct state_trace_id id;
    uint32_t open_count; /* profiles that have no answer yet */
};

enum sender_end {
    SENDER_GOES_ON,
    SENDER_STOPPED, /* by a signal */
    SENDER_TIRED,   /* no sound answer for as long as --retry-for says */
    SENDER_DENIED,  /* the store takes nothing from us; without --follow this ends it */
};

/* All is borrowed. */
struct sender_options {
    const struct push_request *request;
    struct store *store;
    struct state *state;
    struct account *account;
    struct push_log *log;
    void *own;
    /* Called at least each second while the sender waits. */
    struct error *(*tick)(void *own);
    /* The last profile of the trace that had no answer has one now. */
    struct error *(*settled)(void *own, struct sender_trace *trace);
};

struct sender;
struct error *sender_create(const struct sender_options *options, struct sender **out);
/* Accepts NULL. */
void sender_destroy(struct sender *s);
/* Copies the profile, and waits until there is room for it, or sender_ended() is not SENDER_GOES_ON. */
struct error *sender_send(struct sender *s, struct sender_trace *trace, const struct push_profile *profile);
/* Sends, and takes answers, until then (CLOCK_MONOTONIC), or `fd` can be read, or it ends. `fd` -1: none. */
struct error *sender_wait(struct sender *s, int fd, uint64_t until_ns);
/* Returns when all profiles have their answers, or it ends. */
struct error *sender_finish(struct sender *s);
/* Waits for the answers of requests that are under way, and begins no others. */
struct error *sender_drain(struct sender *s);
enum sender_end sender_ended(const struct sender *s);

#endif
