/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores of profiles that are asked over HTTP: one file per kind exports a `const struct store_kind`, the table in store.c
 * lists them. Requests go through libcurl (http.h), which is loaded only here.
 */
#ifndef SYMBOLIZE_PUSH_STORE_H
#define SYMBOLIZE_PUSH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "symbolize/push/profile.h"
#include "symbolize/push/request.h"

enum store_verdict {
    STORE_ACCEPTED,
    STORE_REFUSED,    /* this profile, for good: the same bytes would be refused again */
    STORE_LATER,      /* the store said so (429, 503 ...), or was not reached: surely nothing was stored */
    STORE_UNANSWERED, /* the request was sent at least in part, but no answer seen: it may have been stored */
    STORE_FAULT,      /* an answer 5xx: the store's fault, or that of this profile; nothing says which */
    STORE_DENIED,     /* 401, 403, 404 and the like: all profiles will be, until somebody mends it */
};

/* What an answer 400, 422 or 500 means when its message has this text outside of quotes. */
struct store_text {
    const char *text; /* NULL ends a list */
    enum store_verdict verdict;
    const char *reason;
};
/* Of a text: "too_old" or "too_new", by the times that the store names in it. */
#define STORE_REASON_OUTSIDE_WINDOW "outside_window"

struct store_kind {
    const char *name;  /* of the option: "pyroscope" */
    const char *title; /* for messages: "Pyroscope" */
    const char *path;  /* of the request, behind the URL */
    const char *content_type;    /* of a request, and of the answer 200 */
    const char *protocol_header; /* a header of requests; NULL: none */
    /* What it takes of one profile by default; chunks keep below. */
    uint32_t max_rows;
    uint64_t max_raw_bytes;
    const struct store_text *texts;
    /* Appends the request's body. */
    void (*put_body)(const struct push_profile *profile, struct buf *out);
};
extern const struct store_kind store_pyroscope, store_parca;
extern const struct store_kind *const store_kinds[]; /* ends with NULL */

struct store_answer {
    enum store_verdict verdict;
    const char *reason;      /* a name that counts are kept by: "too_old", "too_large", "rate", "timeout", "refused_tls" ... */
    int status;              /* of HTTP; 0: none came */
    uint64_t retry_after_ns; /* asked for by the store; 0: not */
    char text[256];          /* for a message: what the store said, printable, cut; never a secret */
};

struct store;
/*
 * Reads the token or password, and loads libcurl. ERROR_USAGE: a bad URL, one with a user in it, or a file of secrets that
 * others may read; ERROR_UNSUPPORTED: no libcurl.
 */
struct error *store_open(const struct push_request *request, struct store **out);
/* Sends one profile, and waits for the answer, a minute at most. Only running out of memory is an error. */
struct error *store_send(struct store *s, const struct push_profile *profile, struct store_answer *answer);
/* Makes a store_send() that is under way end soon, with STORE_UNANSWERED. Safe in a signal's handler. */
void store_stop(struct store *s);
/* Bytes of bodies that were sent. */
uint64_t store_sent_bytes(const struct store *s);
void store_close(struct store *s);

#endif
