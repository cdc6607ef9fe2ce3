/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer of a store means for the profile that was sent: pure functions of what came. */
#ifndef SYMBOLIZE_PUSH_VERDICT_H
#define SYMBOLIZE_PUSH_VERDICT_H

#include <stdint.h>

#include "symbolize/push/http.h"
#include "symbolize/push/store_kind.h"

/* A store that names a later time is asked again after this one. */
#define VERDICT_RETRY_MAX_NS (UINT64_C(3600) * 1000000000)

/*
 * Appends what the body of an answer says: the member "message" or "error" of JSON, the title of a page, else the text itself;
 * not yet printable.
 */
void verdict_message(const char *body, size_t len_bytes, struct buf *out);
/*
 * Fills the answer, but not its text. `message`: from verdict_message(), without secrets. `now_s`: CLOCK_REALTIME, since
 * 1970; `profile_ns`: the end of the profile's window.
 */
void verdict_judge(const struct store_kind *kind, const struct http_reply *reply, const char *message, int64_t now_s,
                   uint64_t profile_ns, struct store_answer *out);
/* Writes the text: what happened, and what to do where it is not the profile's fault. */
void verdict_explain(const struct store_kind *kind, const struct http_reply *reply, const char *message, struct store_answer *out);
/* Of the header Retry-After (RFC 9110, 10.2.3): seconds or a date; 0 if it is neither, or is past. */
uint64_t verdict_retry_after_ns(const char *text, int64_t now_s);

#endif
