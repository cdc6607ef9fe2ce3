/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/http.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "symbolize/push/curl_library.h"

enum {
    WAIT_MS = 1000,
    /* A server may close what was idle for 5 seconds at the moment in which it is used again, which breaks a request. */
    IDLE_S = 4,
};

struct http {
    struct curl_library curl;
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    int stop_fd; /* readable from http_stop() on */
    uint64_t sent_bytes;
    /* Of the request. */
    const uint8_t *body;
    size_t body_len_bytes, body_at;
    bool body_began;
    /* Of its answer. */
    bool headers_done;
    size_t headers_len_bytes, answer_len_bytes;
    char content_type[HTTP_HEADER_MAX], retry_after[HTTP_HEADER_MAX], location[HTTP_HEADER_MAX];
    char answer[HTTP_ANSWER_MAX + 1];
    char error[CURL_ERROR_SIZE];
};

/* ---- what libcurl calls ---- */

static size_t read_body(char *to, size_t size, size_t count, void *own)
{
    struct http *h = own;
    size_t room = size * count, left = h->body_len_bytes - h->body_at, len = left < room ? left : room;

    h->body_began = true;
    memcpy(to, h->body + h->body_at, len);
    h->body_at += len;
    return len;
}

/*
 * libcurl asks for this to send the body once more, where a kept connection broke without an answer. But what it sent may
 * have arrived.
 */
static int refuse_to_rewind(void *own, curl_off_t offset, int origin)
{
    struct http *h = own;

    return !h->body_began && offset == 0 && origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
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

static void clear_headers(struct http *h)
{
    h->headers_done = false;
    *h->content_type = *h->retry_after = *h->location = 0;
}

static size_t take_header(char *line, size_t size, size_t count, void *own)
{
    struct http *h = own;
    size_t len = size * count;

    h->headers_len_bytes += len;
    if (h->headers_len_bytes > HTTP_ANSWER_MAX)
        return 0;
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
        clear_headers(h); /* an answer 100 may have come before */
    h->headers_done = len && (*line == '\r' || *line == '\n');
    keep_header(line, len, "Content-Type", h->content_type);
    keep_header(line, len, "Retry-After", h->retry_after);
    keep_header(line, len, "Location", h->location);
    return len;
}

/* Taking less than there is ends the transfer. */
static size_t take_answer(char *data, size_t size, size_t count, void *own)
{
    struct http *h = own;
    size_t room = HTTP_ANSWER_MAX - h->answer_len_bytes, len = size * count < room ? size * count : room;

    memcpy(h->answer + h->answer_len_bytes, data, len);
    h->answer_len_bytes += len;
    return len;
}

/* ---- to set up ---- */

/* Each option is set, or libcurl cannot be used: none is only good to have. */
static bool set_transport(struct http *h, const struct http_options *o)
{
    __typeof__(curl_easy_setopt) *set = h->curl.easy_setopt;
    CURL *e = h->easy;
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

static bool set_tls(struct http *h, const struct http_options *o)
{
    __typeof__(curl_easy_setopt) *set = h->curl.easy_setopt;
    CURL *e = h->easy;
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
        bad |= set(e, CURLOPT_KEYPASSWD, ""); /* else a terminal may be asked */
    }
    return !bad;
}

static bool set_callbacks(struct http *h)
{
    __typeof__(curl_easy_setopt) *set = h->curl.easy_setopt;
    CURL *e = h->easy;
    bool bad = false;

    bad |= set(e, CURLOPT_POST, 1L);
    bad |= set(e, CURLOPT_READFUNCTION, read_body);
    bad |= set(e, CURLOPT_READDATA, h);
    bad |= set(e, CURLOPT_SEEKFUNCTION, refuse_to_rewind);
    bad |= set(e, CURLOPT_SEEKDATA, h);
    bad |= set(e, CURLOPT_HEADERFUNCTION, take_header);
    bad |= set(e, CURLOPT_HEADERDATA, h);
    bad |= set(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= set(e, CURLOPT_WRITEFUNCTION, take_answer);
    bad |= set(e, CURLOPT_WRITEDATA, h);
    bad |= set(e, CURLOPT_ERRORBUFFER, h->error);
    return !bad;
}

static struct error *set_up(struct http *h, const struct http_options *options)
{
    TRY(curl_library_load(&h->curl));
    h->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->stop_fd < 0)
        return error_os(errno, "cannot make an eventfd");
    h->easy = h->curl.easy_init();
    h->multi = h->curl.multi_init();
    if (!h->easy || !h->multi)
        return error_no_memory();
    http_set_patience(h, HTTP_CONNECT_MS, HTTP_REQUEST_MS);
    if (!set_transport(h, options) || !set_tls(h, options) || !set_callbacks(h))
        return error_create(ERROR_UNSUPPORTED, "libcurl cannot be used: it lacks TLS, or something else that is needed");
    return NULL;
}

struct error *http_create(const struct http_options *options, struct http **out)
{
    struct http *h = calloc(1, sizeof *h);

    if (!h)
        return error_no_memory();
    h->stop_fd = -1;
    struct error *err = set_up(h, options);
    if (err) {
        http_destroy(h);
        return err;
    }
    *out = h;
    return NULL;
}

static void drop_headers(struct http *h)
{
    for (struct curl_slist *l = h->headers; l; l = l->next)
        explicit_bzero(l->data, strlen(l->data));
    if (h->headers)
        h->curl.slist_free_all(h->headers);
    h->headers = NULL;
}

void http_destroy(struct http *h)
{
    if (!h)
        return;
    if (h->easy)
        h->curl.easy_cleanup(h->easy);
    if (h->multi)
        h->curl.multi_cleanup(h->multi);
    drop_headers(h);
    if (h->stop_fd >= 0)
        close(h->stop_fd);
    free(h);
}

static bool add_header(struct http *h, const char *header)
{
    struct curl_slist *headers = h->curl.slist_append(h->headers, header);

    if (headers)
        h->headers = headers;
    return headers;
}

struct error *http_set_headers(struct http *h, const char *const *headers, size_t count)
{
    bool whole = true;

    h->curl.easy_setopt(h->easy, CURLOPT_HTTPHEADER, NULL);
    drop_headers(h);
    /* Without asking first whether the body is welcome. */
    whole &= add_header(h, "Expect:");
    for (size_t i = 0; i < count; i++)
        whole &= !headers[i] || add_header(h, headers[i]);
    if (!whole)
        return error_no_memory();
    h->curl.easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
    return NULL;
}

void http_set_patience(struct http *h, uint32_t connect_ms, uint32_t request_ms)
{
    h->curl.easy_setopt(h->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    h->curl.easy_setopt(h->easy, CURLOPT_TIMEOUT_MS, (long)request_ms);
}

/* ---- a request ---- */

static bool is_stopped(const struct http *h)
{
    struct pollfd p = {.fd = h->stop_fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* Runs the request to its end. */
static CURLcode perform(struct http *h)
{
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    const CURLMsg *message;
    int running = 1, left;

    if (h->curl.multi_add_handle(h->multi, h->easy) != CURLM_OK)
        return CURLE_OUT_OF_MEMORY;
    while (!is_stopped(h)) {
        struct curl_waitfd stop = {.fd = h->stop_fd, .events = CURL_WAIT_POLLIN};
        if (h->curl.multi_perform(h->multi, &running) != CURLM_OK || !running)
            break;
        h->curl.multi_wait(h->multi, &stop, 1, WAIT_MS, NULL);
    }
    while ((message = h->curl.multi_info_read(h->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE)
            code = message->data.result;
    }
    h->curl.multi_remove_handle(h->multi, h->easy);
    return code;
}

/* A name for what went wrong, that counts are kept by. */
static const char *reason_of(struct http *h, CURLcode code)
{
    long connect_status = 0;

    h->curl.easy_getinfo(h->easy, CURLINFO_HTTP_CONNECTCODE, &connect_status);
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
        return connect_status >= 300 && !h->body_began ? "proxy" : "broken";
    }
}

static void note_reply(struct http *h, CURLcode code, struct http_reply *out)
{
    long status = 0;
    curl_off_t sent = 0;

    h->curl.easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
    h->curl.easy_getinfo(h->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    h->sent_bytes += sent > 0 ? (uint64_t)sent : 0;
    h->answer[h->answer_len_bytes] = 0;
    *out = (struct http_reply){.content_type = h->content_type, .retry_after = h->retry_after, .location = h->location,
                               .body = h->answer, .body_len_bytes = h->answer_len_bytes};
    /* All stores decide before they begin to answer: what follows a status is not needed whole. */
    if (h->headers_done && status >= 200) {
        out->status = (int)status;
        return;
    }
    out->outcome = h->body_began ? HTTP_UNANSWERED : HTTP_NOT_SENT;
    out->reason = reason_of(h, code);
    out->error = *h->error ? h->error : h->curl.easy_strerror(code);
}

struct error *http_post(struct http *h, const void *body, size_t len_bytes, struct http_reply *out)
{
    h->body = body;
    h->body_len_bytes = len_bytes;
    h->body_at = h->headers_len_bytes = h->answer_len_bytes = 0;
    h->body_began = false;
    *h->error = 0;
    clear_headers(h);
    h->curl.easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len_bytes);
    CURLcode code = perform(h);
    if (code == CURLE_OUT_OF_MEMORY)
        return error_no_memory();
    note_reply(h, code, out);
    return NULL;
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
