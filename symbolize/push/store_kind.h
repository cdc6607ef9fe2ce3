/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of stores of profiles, and what their answers can mean. One file per kind exports a `const struct store_kind`;
 * the table in store_kind.c lists them.
 */
#ifndef SYMBOLIZE_PUSH_STORE_KIND_H
#define SYMBOLIZE_PUSH_STORE_KIND_H

#include <stdint.h>

#include "formats/base/buf.h"
#include "symbolize/push/profile.h"

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
    const char *reason;      /* a name that counts are kept by: "too_old", "too_large", "rate", "timeout", "tls" ...; static */
    int status;              /* of HTTP; 0: none came */
    uint64_t retry_after_ns; /* asked for by the store; 0: not */
    char text[256];          /* for a message: what the store said, printable, cut; never a secret */
};

#endif
