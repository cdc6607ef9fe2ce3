/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to one URL over HTTP/1.1, several at a time, through libcurl, over connections that are kept between them.
 *
 * TLS is 1.2 or later, and certificates are always checked. Redirections are not followed: they would take secrets and
 * profiles to where nobody said. A request whose connection breaks is not repeated in here, since it may have been obeyed.
 */
#ifndef SYMBOLIZE_PUSH_HTTP_H
#define SYMBOLIZE_PUSH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

enum {
    HTTP_SLOTS = 16,          /* requests at a time */
    HTTP_FDS_MAX = 3,
    HTTP_CONNECT_MS = 10000,  /* to look the host up, to connect and for TLS */
    HTTP_REQUEST_MS = 60000,  /* for a whole request with its answer */
    HTTP_ANSWER_MAX = 64 << 10, /* bytes of an answer's body that are read, and of its headers */
    HTTP_HEADER_MAX = 512,    /* bytes of one of the headers of struct http_reply */
};

/* Borrowed until http_create() returns. */
struct http_options {
    const char *url;
    const char *ca_file;              /* trusted instead of the system's authorities; NULL: those */
    const char *cert_file, *key_file; /* PEM; NULL: no client certificate, the key is in cert_file. The key has no password */
    const char *proxy;                /* NULL: as the environment says */
    bool no_proxy;                    /* the environment neither */
};

enum http_outcome {
    HTTP_ANSWERED,
    HTTP_NOT_SENT,   /* no byte of the body left this process */
    HTTP_UNANSWERED, /* some may have */
};

struct http_reply {
    enum http_outcome outcome;
    const char *reason; /* not answered: "dns", "connect", "tls", "proxy", "timeout", "broken", "stopped" */
    const char *error;  /* not answered: what libcurl says */
    int status;
    /* Of an answer, until the next request of the slot; "" where there is none. */
    const char *content_type, *retry_after, *location;
    const char *body; /* with a NUL behind it; cut at HTTP_ANSWER_MAX */
    size_t body_len_bytes;
};

struct http;
/* ERROR_UNSUPPORTED: there is no libcurl, or it lacks TLS. */
struct error *http_create(const struct http_options *options, struct http **out);
void http_destroy(struct http *h);
/*
 * Headers of all requests from now on, "Name: value"; NULLs are left out. They are copied, and overwritten when replaced.
 * At most HTTP_HEADERS_MAX.
 */
#define HTTP_HEADERS_MAX 4
struct error *http_set_headers(struct http *h, const char *const *headers, size_t count);
/* Other limits of time than the above. */
void http_set_patience(struct http *h, uint32_t connect_ms, uint32_t request_ms);

/* The body of the slot's next request, to be filled while there is none under way. The memory of a large one is given back. */
struct buf *http_body(struct http *h, uint32_t slot);
/* Begins with a request of the body by POST, which may take so long at most, if that is less than else. The slot has none under way. */
struct error *http_begin(struct http *h, uint32_t slot, uint32_t most_ms);
/*
 * Goes on with all requests until one has ended (*came: it was that of *slot, and *out says how), one of `fds` can be
 * read or is closed, or it is `until_ns` of CLOCK_MONOTONIC. Only running out of memory is an error.
 */
struct error *http_next(struct http *h, const int *fds, size_t fd_count, uint64_t until_ns, uint32_t *slot, struct http_reply *out,
                        bool *came);
/* Ends all requests that are under way, and all that come: http_next() tells them. Safe in a signal's handler. */
void http_stop(struct http *h);
/* Bytes of bodies that were sent so far. */
uint64_t http_sent_bytes(const struct http *h);

#endif
