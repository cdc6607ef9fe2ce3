/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/http.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "symbolize/push/curl_library.h"

enum {
    WAIT_MS = 1000,
    KEPT_BYTES = 1 << 20, /* of a body's memory, from one request to the next */
    /* A server may close what was idle for 5 seconds at the moment in which it is used again, which breaks a request. */
    IDLE_S = 4,
};

/* A request, and what is known of its answer. */
struct slot {
    CURL *easy;
    struct curl_slist *headers;
    struct buf body;
    size_t body_at;
    bool busy, body_began, headers_done;
    size_t headers_len_bytes, answer_len_bytes;
    char content_type[HTTP_HEADER_MAX], retry_after[HTTP_HEADER_MAX], location[HTTP_HEADER_MAX];
    char answer[HTTP_ANSWER_MAX + 1];
    char error[CURL_ERROR_SIZE];
};

struct http {
    struct curl_library curl;
    CURLM *multi;
    char *headers[HTTP_HEADERS_MAX];
    int stop_fd; /* readable from http_stop() on */
    uint64_t sent_bytes;
    uint32_t connect_ms, request_ms;
    struct slot slots[HTTP_SLOTS];
};

/* ---- what libcurl calls ---- */

static size_t read_body(char *to, size_t size, size_t count, void *own)
{
    struct slot *s = own;
    size_t room = size * count, left = s->body.len_bytes - s->body_at, len = left < room ? left : room;

    s->body_began = true;
    if (len)
        memcpy(to, s->body.data + s->body_at, len);
    s->body_at += len;
    return len;
}

/*
 * libcurl asks for this to send the body once more, where a kept connection broke without an answer. But what it sent may
 * have arrived.
 */
static int refuse_to_rewind(void *own, curl_off_t offset, int origin)
{
    struct slot *s = own;

    return !s->body_began && offset == 0 && origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void keep_header(const char *line, size_t len_bytes, const char *name, char *out)
{
    size_t name_len = strlen(name);

    if (len_bytes <= name_len || line[name_len] != ':' || strncasecmp(line, name, name_len) != 0)
        return;
    const char *at = line + name_len + 1, *end = line + len_bytes;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && strchr(" \t\r\n", end[-1]))
        end--;
    size_t len = (size_t)(end - at) < HTTP_HEADER_MAX ? (size_t)(end - at) : HTTP_HEADER_MAX - 1;
    memcpy(out, at, len);
    out[len] = 0;
}

static void clear_headers(struct slot *s)
{
    s->headers_done = false;
    *s->content_type = *s->retry_after = *s->location = 0;
}

static size_t take_header(char *line, size_t size, size_t count, void *own)
{
    struct slot *s = own;
    size_t len = size * count;

    s->headers_len_bytes += len;
    if (s->headers_len_bytes > HTTP_ANSWER_MAX)
        return 0;
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
        clear_headers(s); /* an answer 100 may have come before */
    s->headers_done = len && (*line == '\r' || *line == '\n');
    keep_header(line, len, "Content-Type", s->content_type);
    keep_header(line, len, "Retry-After", s->retry_after);
    keep_header(line, len, "Location", s->location);
    return len;
}

/* Taking less than there is ends the transfer. */
static size_t take_answer(char *data, size_t size, size_t count, void *own)
{
    struct slot *s = own;
    size_t room = HTTP_ANSWER_MAX - s->answer_len_bytes, len = size * count < room ? size * count : room;

    memcpy(s->answer + s->answer_len_bytes, data, len);
    s->answer_len_bytes += len;
    return len;
}

/* ---- to set up ---- */

/* Each option is set, or libcurl cannot be used: none is only good to have. */
static bool set_transport(const struct curl_library *curl, CURL *e, const struct http_options *o)
{
    __typeof__(curl_easy_setopt) *set = curl->easy_setopt;
    bool bad = false;

    bad |= set(e, CURLOPT_URL, o->url);
    bad |= set(e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    bad |= set(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= set(e, CURLOPT_FOLLOWLOCATION, 0L);
    bad |= set(e, CURLOPT_NOSIGNAL, 1L);
    bad |= set(e, CURLOPT_USERAGENT, "pysym " TOOL_VERSION);
    if (o->proxy)
        bad |= set(e, CURLOPT_PROXY, o->proxy);
    if (o->no_proxy)
        bad |= set(e, CURLOPT_NOPROXY, "*");
    /* Of the library 7.65; an older one keeps connections for longer. */
    set(e, CURLOPT_MAXAGE_CONN, (long)IDLE_S);
    return !bad;
}

static bool set_tls(const struct curl_library *curl, CURL *e, const struct http_options *o)
{
    __typeof__(curl_easy_setopt) *set = curl->easy_setopt;
    bool bad = false;

    bad |= set(e, CURLOPT_SSL_VERIFYPEER, 1L);
    bad |= set(e, CURLOPT_SSL_VERIFYHOST, 2L);
    bad |= set(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (o->ca_file) {
        bad |= set(e, CURLOPT_CAINFO, o->ca_file);
        bad |= set(e, CURLOPT_CAPATH, NULL);
    }
    if (o->cert_file) {
        bad |= set(e, CURLOPT_SSLCERT, o->cert_file);
        bad |= set(e, CURLOPT_SSLKEY, o->key_file ? o->key_file : o->cert_file);
    }
    return !bad;
}

static bool set_callbacks(const struct curl_library *curl, struct slot *s)
{
    __typeof__(curl_easy_setopt) *set = curl->easy_setopt;
    CURL *e = s->easy;
    bool bad = false;

    bad |= set(e, CURLOPT_POST, 1L);
    bad |= set(e, CURLOPT_PRIVATE, s);
    bad |= set(e, CURLOPT_READFUNCTION, read_body);
    bad |= set(e, CURLOPT_READDATA, s);
    bad |= set(e, CURLOPT_SEEKFUNCTION, refuse_to_rewind);
    bad |= set(e, CURLOPT_SEEKDATA, s);
    bad |= set(e, CURLOPT_HEADERFUNCTION, take_header);
    bad |= set(e, CURLOPT_HEADERDATA, s);
    bad |= set(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= set(e, CURLOPT_WRITEFUNCTION, take_answer);
    bad |= set(e, CURLOPT_WRITEDATA, s);
    bad |= set(e, CURLOPT_ERRORBUFFER, s->error);
    return !bad;
}

static struct error *set_up(struct http *h, const struct http_options *options)
{
    bool good = true;

    TRY(curl_library_load(&h->curl));
    h->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->stop_fd < 0)
        return error_os(errno, "cannot make an eventfd");
    h->multi = h->curl.multi_init();
    if (!h->multi)
        return error_no_memory();
    for (struct slot *s = h->slots; s < h->slots + HTTP_SLOTS; s++) {
        s->easy = h->curl.easy_init();
        if (!s->easy)
            return error_no_memory();
        good &= set_transport(&h->curl, s->easy, options) && set_tls(&h->curl, s->easy, options) && set_callbacks(&h->curl, s);
    }
    return good ? NULL : error_create(ERROR_UNSUPPORTED, "libcurl cannot be used: it lacks TLS, or something else that is needed");
}

struct error *http_create(const struct http_options *options, struct http **out)
{
    struct http *h = calloc(1, sizeof *h);

    if (!h)
        return error_no_memory();
    h->stop_fd = -1;
    http_set_patience(h, HTTP_CONNECT_MS, HTTP_REQUEST_MS);
    struct error *err = set_up(h, options);
    if (err) {
        http_destroy(h);
        return err;
    }
    *out = h;
    return NULL;
}

/* Of a request. libcurl reads them while it is under way. */
static void drop_request_headers(struct http *h, struct slot *s)
{
    for (struct curl_slist *l = s->headers; l; l = l->next)
        explicit_bzero(l->data, strlen(l->data));
    if (s->headers)
        h->curl.slist_free_all(s->headers);
    s->headers = NULL;
}

static void drop_headers(struct http *h)
{
    for (size_t i = 0; i < HTTP_HEADERS_MAX; i++) {
        if (h->headers[i])
            explicit_bzero(h->headers[i], strlen(h->headers[i]));
        free(h->headers[i]);
        h->headers[i] = NULL;
    }
}

void http_destroy(struct http *h)
{
    if (!h)
        return;
    for (struct slot *s = h->slots; s < h->slots + HTTP_SLOTS; s++) {
        if (s->busy)
            h->curl.multi_remove_handle(h->multi, s->easy);
        if (s->easy)
            h->curl.easy_cleanup(s->easy);
        drop_request_headers(h, s);
        buf_deinit(&s->body);
    }
    if (h->multi)
        h->curl.multi_cleanup(h->multi);
    drop_headers(h);
    if (h->stop_fd >= 0)
        close(h->stop_fd);
    free(h);
}

struct error *http_set_headers(struct http *h, const char *const *headers, size_t count)
{
    drop_headers(h);
    for (size_t i = 0; i < count; i++) {
        if (headers[i] && !(h->headers[i] = strdup(headers[i])))
            return error_no_memory();
    }
    return NULL;
}

void http_set_patience(struct http *h, uint32_t connect_ms, uint32_t request_ms)
{
    h->connect_ms = connect_ms;
    h->request_ms = request_ms;
}

/* ---- to begin ---- */

struct buf *http_body(struct http *h, uint32_t slot)
{
    struct buf *body = &h->slots[slot].body;

    if (body->cap_bytes > KEPT_BYTES)
        buf_deinit(body);
    buf_clear(body);
    return body;
}

static bool add_header(struct http *h, struct slot *s, const char *header)
{
    struct curl_slist *headers = h->curl.slist_append(s->headers, header);

    if (headers)
        s->headers = headers;
    return headers;
}

static bool make_headers(struct http *h, struct slot *s)
{
    /* Without asking first whether the body is welcome. */
    bool whole = add_header(h, s, "Expect:");

    for (size_t i = 0; i < HTTP_HEADERS_MAX; i++)
        whole &= !h->headers[i] || add_header(h, s, h->headers[i]);
    return whole;
}

struct error *http_begin(struct http *h, uint32_t slot, uint32_t most_ms)
{
    struct slot *s = &h->slots[slot];

    drop_request_headers(h, s);
    if (s->body.bad || !make_headers(h, s))
        return error_no_memory();
    s->body_at = s->headers_len_bytes = s->answer_len_bytes = 0;
    s->body_began = false;
    *s->error = 0;
    clear_headers(s);
    h->curl.easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
    h->curl.easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)h->connect_ms);
    h->curl.easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, (long)(most_ms < h->request_ms ? most_ms : h->request_ms));
    h->curl.easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->body.len_bytes);
    s->busy = h->curl.multi_add_handle(h->multi, s->easy) == CURLM_OK;
    return s->busy ? NULL : error_no_memory();
}

/* ---- to end ---- */

/* A name for what went wrong, that counts are kept by. */
static const char *reason_of(struct http *h, struct slot *s, CURLcode code)
{
    long connect_status = 0;

    h->curl.easy_getinfo(s->easy, CURLINFO_HTTP_CONNECTCODE, &connect_status);
    switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
        return "stopped";
    case CURLE_COULDNT_RESOLVE_HOST:
        return "dns";
    case CURLE_COULDNT_RESOLVE_PROXY:
        return "proxy";
    case CURLE_COULDNT_CONNECT:
        return "connect";
    case CURLE_OPERATION_TIMEDOUT:
        return "timeout";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_USE_SSL_FAILED:
        return "tls";
    default:
        return connect_status >= 300 && !s->body_began ? "proxy" : "broken";
    }
}

static void note_reply(struct http *h, struct slot *s, CURLcode code, struct http_reply *out)
{
    long status = 0;
    curl_off_t sent = 0;

    h->curl.easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    h->curl.easy_getinfo(s->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    h->sent_bytes += sent > 0 ? (uint64_t)sent : 0;
    s->answer[s->answer_len_bytes] = 0;
    *out = (struct http_reply){.content_type = s->content_type, .retry_after = s->retry_after, .location = s->location,
                               .body = s->answer, .body_len_bytes = s->answer_len_bytes};
    /* All stores decide before they begin to answer: what follows a status is not needed whole. */
    if (s->headers_done && status >= 200) {
        out->status = (int)status;
        return;
    }
    out->outcome = s->body_began ? HTTP_UNANSWERED : HTTP_NOT_SENT;
    out->reason = reason_of(h, s, code);
    out->error = *s->error ? s->error : h->curl.easy_strerror(code);
}

static void end_request(struct http *h, struct slot *s, CURLcode code, uint32_t *slot, struct http_reply *out)
{
    note_reply(h, s, code, out);
    h->curl.multi_remove_handle(h->multi, s->easy);
    s->busy = false;
    *slot = (uint32_t)(s - h->slots);
}

/* Ends one that is under way, wherever it is. */
static bool end_any(struct http *h, uint32_t *slot, struct http_reply *out)
{
    for (struct slot *s = h->slots; s < h->slots + HTTP_SLOTS; s++) {
        if (s->busy) {
            end_request(h, s, CURLE_ABORTED_BY_CALLBACK, slot, out);
            return true;
        }
    }
    return false;
}

static bool end_done(struct http *h, uint32_t *slot, struct http_reply *out)
{
    const CURLMsg *message;
    struct slot *s;
    int left;

    while ((message = h->curl.multi_info_read(h->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        h->curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&s);
        end_request(h, s, code, slot, out);
        return true;
    }
    return false;
}

/* ---- to wait ---- */

/* libcurl's own wait does not say that a descriptor was closed at its other side. */
static bool can_be_read(const int *fds, size_t fd_count)
{
    struct pollfd p[HTTP_FDS_MAX];

    for (size_t i = 0; i < fd_count; i++)
        p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    return fd_count && poll(p, fd_count, 0) > 0;
}

static void wait_for_any(struct http *h, const int *fds, size_t fd_count, uint64_t wait_ns)
{
    struct curl_waitfd extra[1 + HTTP_FDS_MAX] = {{.fd = h->stop_fd, .events = CURL_WAIT_POLLIN}};
    uint64_t wait_ms = wait_ns / NS_PER_MS + 1;

    for (size_t i = 0; i < fd_count; i++)
        extra[1 + i] = (struct curl_waitfd){.fd = fds[i], .events = CURL_WAIT_POLLIN};
    h->curl.multi_wait(h->multi, extra, (unsigned)(1 + fd_count), wait_ms < WAIT_MS ? (int)wait_ms : WAIT_MS, NULL);
}

struct error *http_next(struct http *h, const int *fds, size_t fd_count, uint64_t until_ns, uint32_t *slot, struct http_reply *out,
                        bool *came)
{
    int running;

    for (;;) {
        bool ready = can_be_read(fds, fd_count), stopped = can_be_read(&h->stop_fd, 1);
        if (h->curl.multi_perform(h->multi, &running) != CURLM_OK)
            return error_no_memory();
        *came = end_done(h, slot, out) || (stopped && end_any(h, slot, out));
        uint64_t now = now_ns();
        if (*came || ready || now >= until_ns)
            return NULL;
        wait_for_any(h, fds, fd_count, until_ns - now);
    }
}

void http_stop(struct http *h)
{
    int before = errno;

    eventfd_write(h->stop_fd, 1);
    errno = before;
}

uint64_t http_sent_bytes(const struct http *h)
{
    return h->sent_bytes;
}
