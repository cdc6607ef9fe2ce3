/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/store_url.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

/* Takes the host; returns what is behind it, or NULL. */
static const char *read_host(const char *at, struct store_url *out)
{
    bool brackets = *at == '[';
    size_t len;

    at += brackets;
    len = strspn(at, brackets ? DIGITS "abcdefABCDEF:." : LETTERS DIGITS "-._");
    if (!len || len > STORE_HOST_MAX || (brackets && at[len] != ']'))
        return NULL;
    memcpy(out->host, at, len);
    out->host[len] = 0;
    out->is_loopback = is_loopback(out->host);
    return at + len + brackets;
}

/* Behind the host: a port, a path. */
static bool is_rest_good(const char *at)
{
    if (*at == ':') {
        size_t len = strspn(++at, DIGITS);
        unsigned long port = strtoul(at, NULL, 10);
        if (!len || len > 5 || !port || port > 65535)
            return false;
        at += len;
    }
    return !*at || (*at == '/' && !at[strspn(at, LETTERS DIGITS "/-._~%+:,")]);
}

struct error *store_url_read(const char *option, const char *url, struct store_url *out)
{
    *out = (struct store_url){.is_tls = strncasecmp(url, "https://", 8) == 0};
    if (!out->is_tls && strncasecmp(url, "http://", 7) != 0)
        return error_create(ERROR_USAGE, "%s wants a URL that begins with https:// or http://", option);
    if (strlen(url) > STORE_URL_MAX)
        return error_create(ERROR_USAGE, "%s has more than %d characters", option, STORE_URL_MAX);
    const char *at = url + (out->is_tls ? 8 : 7);
    if (memchr(at, '@', strcspn(at, "/?#")))
        return error_create(ERROR_USAGE, "%s has a user in its URL, which everybody sees in the list of processes", option);
    if (strpbrk(at, "?#"))
        return error_create(ERROR_USAGE, "%s wants a URL without '?' and '#'", option);
    at = read_host(at, out);
    if (!at || !is_rest_good(at))
        return error_create(ERROR_USAGE, "%s wants a URL such as https://HOST:PORT/PATH", option);
    return NULL;
}
