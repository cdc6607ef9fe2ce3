/* SPDX-License-Identifier: Apache-2.0 */
/* Sends profiles to a store over HTTP, several at a time. Requests go through libcurl (http.h), which is loaded only here. */
#ifndef SYMBOLIZE_PUSH_STORE_H
#define SYMBOLIZE_PUSH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/profile.h"
#include "symbolize/push/request.h"
#include "symbolize/push/store_kind.h"

struct store;
/*
 * Reads the token or password, and loads libcurl. ERROR_USAGE: a bad URL, one with a user in it, a secret that would go over
 * the network without TLS, or a file of secrets that others may read (secrets.h); ERROR_UNSUPPORTED: no libcurl.
 */
struct error *store_open(const struct push_request *request, struct store **out);
/* Profiles that may be under way at a time: a store may take half a second to answer for each. */
#define STORE_SLOTS 16
/*
 * Begins to send a profile, which is not needed any more when this returns. `slot`, below STORE_SLOTS, has none under way.
 * An answer is waited for for so long, a minute at most. Only running out of memory is an error.
 */
struct error *store_begin(struct store *s, const struct push_profile *profile, uint32_t slot, uint32_t most_ms);
/*
 * Goes on with all that are under way until one is answered (*came: it was that of *slot; at the latest a minute after it
 * began), one of `fds`, up to 3, can be read or was closed at its other side, or it is `until_ns` of CLOCK_MONOTONIC.
 */
struct error *store_next(struct store *s, const int *fds, size_t fd_count, uint64_t until_ns, uint32_t *slot,
                         struct store_answer *answer, bool *came);
/*
 * Makes all that are under way end at once, with STORE_UNANSWERED or, when nothing was sent, STORE_LATER, and what begins
 * later, too; store_next() tells them. Safe in a signal's handler.
 */
void store_stop(struct store *s);
/* Other limits of time than those of http.h, for tests: to connect, and for a whole request. */
void store_set_patience(struct store *s, uint32_t connect_ms, uint32_t request_ms);
/* Bytes of bodies that were sent. */
uint64_t store_sent_bytes(const struct store *s);
void store_close(struct store *s);

#endif
