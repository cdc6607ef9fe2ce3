/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "symbolize/push/http.h"
#include "symbolize/push/secrets.h"
#include "symbolize/push/store_url.h"
#include "symbolize/push/verdict.h"

struct store {
    const struct store_kind *kind;
    struct secrets *secrets;
    struct http *http;
    char *type_header, *tenant_header;
    struct {
        uint64_t profile_ns; /* end of its window */
        uint64_t secret;     /* which of them it was begun with */
        uint32_t most_ms;
    } sent[STORE_SLOTS];
    uint64_t secret; /* which this is, counted from 0 */
    struct buf message; /* what an answer says */
};
static_assert((int)STORE_SLOTS == (int)HTTP_SLOTS, "a request for each");

/* ---- to open ---- */

/* libcurl would ask the terminal for a key's password. */
static struct error *check_key(int fd, const char *path)
{
    static const char sign[] = "ENCRYPTED"; /* in the head of such a PEM */
    char text[16 << 10];

    TRY(secrets_check_file(fd, path, "private key"));
    ssize_t len = read(fd, text, sizeof text);
    bool encrypted = len > 0 && memmem(text, (size_t)len, sign, sizeof sign - 1);
    explicit_bzero(text, sizeof text);
    if (len < 0)
        return error_file(errno, path, "cannot be read");
    return encrypted ? error_path(ERROR_USAGE, path, "a key with a password cannot be used") : NULL;
}

static struct error *check_file(const char *path, const char *option, bool key)
{
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    struct error *err = NULL;

    if (!path)
        return NULL;
    if (fd < 0)
        return error_file(errno, path, "%s cannot be read", option);
    if (key)
        err = check_key(fd, path);
    close(fd);
    return err;
}

static struct error *check_tls(const struct push_request *request)
{
    if (request->key_file && !request->cert_file)
        return error_create(ERROR_USAGE, "--key wants --cert, the certificate that it belongs to");
    TRY(check_file(request->ca_file, "--cacert", false));
    TRY(check_file(request->cert_file, "--cert", !request->key_file));
    return check_file(request->key_file, "--key", true);
}

static struct error *check_tenant(const char *tenant)
{
    if (!tenant)
        return NULL;
    if (!*tenant || strlen(tenant) > 150)
        return error_create(ERROR_USAGE, "--tenant wants 1 to 150 characters");
    for (const char *c = tenant; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return error_create(ERROR_USAGE, "--tenant wants letters, digits and signs of ASCII");
    }
    return NULL;
}

/* A secret goes over the network in TLS alone. */
static struct error *check_secrecy(const struct store *s, const struct push_request *request, const struct store_url *url)
{
    if (!secrets_header(s->secrets) || url->is_tls || (url->is_loopback && !request->proxy))
        return NULL;
    return error_create(ERROR_USAGE,
                        "a %s would go to %s unencrypted: use https://, or a forwarder with TLS on this host, at http://127.0.0.1",
                        request->user ? "password" : "token", url->host);
}

static struct error *set_headers(struct store *s)
{
    const char *const headers[] = {s->type_header, s->kind->protocol_header, s->tenant_header, secrets_header(s->secrets)};

    return http_set_headers(s->http, headers, sizeof headers / sizeof *headers);
}

static struct error *open_http(struct store *s, const struct push_request *request, bool loopback)
{
    size_t len = strlen(request->url);
    struct buf url = {0};

    while (len && request->url[len - 1] == '/')
        len--;
    buf_put(&url, request->url, len);
    buf_put_str(&url, s->kind->path);
    struct http_options options = {
        .url = buf_cstr(&url), .ca_file = request->ca_file, .cert_file = request->cert_file, .key_file = request->key_file,
        .proxy = request->proxy, .no_proxy = loopback && !request->proxy,
    };
    struct error *err = url.bad ? error_no_memory() : http_create(&options, &s->http);
    buf_deinit(&url);
    return err;
}

static struct error *set_up(struct store *s, const struct push_request *request)
{
    struct store_url url, proxy;
    char option[32];

    s->kind = request->store;
    snprintf(option, sizeof option, "--%s", s->kind->name);
    TRY(store_url_read(option, request->url, &url));
    if (request->proxy)
        TRY(store_url_read("--proxy", request->proxy, &proxy));
    TRY(check_tls(request));
    TRY(check_tenant(request->tenant));
    TRY(secrets_open(request, &s->secrets));
    TRY(check_secrecy(s, request, &url));
    if (asprintf(&s->type_header, "Content-Type: %s", s->kind->content_type) < 0)
        s->type_header = NULL;
    if (request->tenant && asprintf(&s->tenant_header, "X-Scope-OrgID: %s", request->tenant) < 0)
        s->tenant_header = NULL;
    if (!s->type_header || (request->tenant && !s->tenant_header))
        return error_no_memory();
    TRY(open_http(s, request, url.is_loopback));
    return set_headers(s);
}

struct error *store_open(const struct push_request *request, struct store **out)
{
    struct store *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    struct error *err = set_up(s, request);
    if (err) {
        store_close(s);
        return err;
    }
    *out = s;
    return NULL;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    http_destroy(s->http);
    secrets_close(s->secrets);
    free(s->type_header);
    free(s->tenant_header);
    buf_deinit(&s->message);
    free(s);
}

/* ---- to send ---- */

/*
 * Tokens are replaced in their file. Whether there is another one than that which the request was begun with; a file that
 * cannot be read has none.
 */
static bool has_new_secret(struct store *s, uint32_t slot)
{
    bool changed;
    struct error *err = secrets_renew(s->secrets, &changed);

    if (changed) {
        err = set_headers(s);
        s->secret += !err;
    }
    error_destroy(err);
    return s->sent[slot].secret != s->secret;
}

struct error *store_begin(struct store *s, const struct push_profile *profile, uint32_t slot, uint32_t most_ms)
{
    s->kind->put_body(profile, http_body(s->http, slot));
    s->sent[slot].profile_ns = profile->window_end_ns;
    s->sent[slot].secret = s->secret;
    s->sent[slot].most_ms = most_ms;
    return http_begin(s->http, slot, most_ms);
}

static struct error *judge(struct store *s, uint32_t slot, const struct http_reply *reply, struct store_answer *answer)
{
    buf_clear(&s->message);
    verdict_message(reply->body, reply->body_len_bytes, &s->message);
    buf_put_u8(&s->message, 0);
    if (s->message.bad)
        return error_no_memory();
    char *message = (char *)s->message.data;
    secrets_hide(s->secrets, message);
    verdict_judge(s->kind, reply, message, (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S), s->sent[slot].profile_ns, answer);
    verdict_explain(s->kind, reply, message, answer);
    secrets_hide(s->secrets, answer->text); /* headers may repeat them, too */
    return NULL;
}

struct error *store_next(struct store *s, const int *fds, size_t fd_count, uint64_t until_ns, uint32_t *slot,
                         struct store_answer *answer, bool *came)
{
    struct http_reply reply;

    for (;;) {
        TRY(http_next(s->http, fds, fd_count, until_ns, slot, &reply, came));
        if (!*came)
            return NULL;
        if (reply.status != 401 || !has_new_secret(s, *slot)) {
            http_body(s->http, *slot); /* the request is not needed any more */
            return judge(s, *slot, &reply, answer);
        }
        s->sent[*slot].secret = s->secret;
        TRY(http_begin(s->http, *slot, s->sent[*slot].most_ms));
    }
}

void store_stop(struct store *s)
{
    http_stop(s->http);
}

void store_set_patience(struct store *s, uint32_t connect_ms, uint32_t request_ms)
{
    http_set_patience(s->http, connect_ms, request_ms);
}

uint64_t store_sent_bytes(const struct store *s)
{
    return http_sent_bytes(s->http);
}
