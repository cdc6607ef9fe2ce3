/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store answers: whatever it is, it gets a verdict with a name, and a short text that a terminal may print. Only 200
 * accepts. And a URL: one that is taken has a host whose characters nobody reads in another way.
 *
 * Input: a byte for the kind of store, two for the status, three headers and the body, with a line's end between them.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"
#include "symbolize/push/store_url.h"
#include "symbolize/push/verdict.h"

#define NOW_S INT64_C(1795334400)

/* Takes a line as a string of its own, nothing behind it, so that reading on is seen. */
static char *take(const uint8_t **at, const uint8_t *end, int until)
{
    const uint8_t *stop = until < 0 ? NULL : memchr(*at, until, (size_t)(end - *at));
    size_t len = (size_t)((stop ? stop : end) - *at);
    char *text = malloc(len + 1);

    if (!text)
        abort();
    memcpy(text, *at, len);
    text[len] = 0;
    *at = stop ? stop + 1 : end;
    return text;
}

static void check_text(const char *text, size_t size_bytes)
{
    size_t len = strnlen(text, size_bytes);

    if (len == size_bytes)
        abort();
    for (size_t i = 0; i < len;) {
        uint32_t c;
        size_t step = utf8_decode((const uint8_t *)text + i, len - i, &c);
        if (!step || utf8_is_control(c) || c == '\n')
            abort();
        i += step;
    }
}

static void check(const struct http_reply *reply, const struct store_answer *a)
{
    if (a->verdict > STORE_DENIED || !a->reason || !*a->reason || a->reason[strspn(a->reason, "abcdefghijklmnopqrstuvwxyz_")])
        abort();
    if ((a->verdict == STORE_ACCEPTED && a->status != 200) || a->retry_after_ns > VERDICT_RETRY_MAX_NS || a->status != reply->status)
        abort();
    check_text(a->text, sizeof a->text);
}

static void check_url(const char *text)
{
    struct store_url url;
    struct error *err = store_url_read("--parca", text, &url);

    if (!err && (!*url.host || strpbrk(url.host, "@/\\?# \n\r\t[]")))
        abort();
    error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    const uint8_t *at = data + 3, *end = data + len_bytes;
    struct store_answer answer;
    struct buf message = {0};

    if (len_bytes < 3)
        return 0;
    const struct store_kind *kind = data[0] & 1 ? &store_parca : &store_pyroscope;
    char *type = take(&at, end, '\n'), *retry = take(&at, end, '\n'), *location = take(&at, end, '\n');
    size_t body_len = (size_t)(end - at);
    char *body = take(&at, end, -1);
    struct http_reply reply = {.status = 200 + (data[1] << 8 | data[2]) % 400, .content_type = type, .retry_after = retry,
                               .location = location, .body = body, .body_len_bytes = body_len};

    verdict_message(body, body_len, &message);
    verdict_judge(kind, &reply, buf_cstr(&message), NOW_S, (uint64_t)NOW_S * 1000000000, &answer);
    verdict_explain(kind, &reply, buf_cstr(&message), &answer);
    check(&reply, &answer);
    check_url(location);
    buf_deinit(&message);
    free(type);
    free(retry);
    free(location);
    free(body);
    return 0;
}
