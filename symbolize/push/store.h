/* SPDX-License-Identifier: Apache-2.0 */
/* Sends profiles to a store, one at a time, over HTTP. Requests go through libcurl (http.h), which is loaded only here. */
#ifndef SYMBOLIZE_PUSH_STORE_H
#define SYMBOLIZE_PUSH_STORE_H

#include <stdbool.h>
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
/* Sends one profile, and waits for the answer, a minute at most. Only running out of memory is an error. */
struct error *store_send(struct store *s, const struct push_profile *profile, struct store_answer *answer);
/*
 * Makes a store_send() that is under way end soon, with STORE_UNANSWERED or, when nothing was sent, STORE_LATER; each that
 * begins later ends at once. Safe in a signal's handler.
 */
void store_stop(struct store *s);
/* Other limits of time than those of http.h, for tests: to connect, and for a whole request. */
void store_set_patience(struct store *s, uint32_t connect_ms, uint32_t request_ms);
/* Bytes of bodies that were sent. */
uint64_t store_sent_bytes(const struct store *s);
void store_close(struct store *s);

#endif
