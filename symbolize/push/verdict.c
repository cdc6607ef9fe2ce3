/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/verdict.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "formats/base/clock.h"
#include "formats/base/printable.h"

/* ---- what the store says ---- */

static bool put_member(const json_t *object, const char *name, struct buf *out)
{
    const char *text = json_string_value(json_object_get(object, name));

    if (!text || !*text)
        return false;
    buf_put_str(out, text);
    return true;
}

static void put_title(const char *page, struct buf *out)
{
    const char *title = strcasestr(page, "<title>");

    if (title)
        buf_put(out, title + 7, strcspn(title + 7, "<"));
}

void verdict_message(const char *body, size_t len_bytes, struct buf *out)
{
    json_t *json = json_loadb(body, len_bytes, 0, NULL);

    if (json_is_object(json)) {
        if (!put_member(json, "message", out))
            put_member(json, "error", out);
    } else if (*body == '<') {
        put_title(body, out);
    } else {
        size_t len = strnlen(body, len_bytes);
        while (len && strchr(" \t\r\n", body[len - 1]))
            len--;
        buf_put(out, body, len);
    }
    json_decref(json);
}

uint64_t verdict_retry_after_ns(const char *text, int64_t now_s)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"};
    uint64_t max_s = VERDICT_RETRY_MAX_NS / NS_PER_S;

    if (*text && !text[strspn(text, "0123456789")]) {
        unsigned long long wait_s = strtoull(text, NULL, 10);
        return (wait_s < max_s ? wait_s : max_s) * NS_PER_S;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        if (!end || *end)
            continue;
        int64_t at_s = timegm(&tm);
        if (at_s <= now_s)
            return 0;
        return (at_s - now_s < (int64_t)max_s ? (uint64_t)(at_s - now_s) : max_s) * NS_PER_S;
    }
    return 0;
}

/* ---- texts ---- */

static const char *find_last(const char *text, const char *words)
{
    const char *last = NULL;

    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        last = at;
    return last;
}

/* The message without labels, which stand in it as '{...}', and what else is in quotes: these are strangers' texts. */
static void put_unquoted(const char *message, struct buf *out)
{
    const char *first = strstr(message, "'{"), *last = first ? find_last(first, "}'") : NULL;

    if (last) {
        buf_put(out, message, (size_t)(first - message));
        message = last + 2;
    }
    buf_put(out, message, strcspn(message, "'"));
}

static const struct store_text *find_text(const struct store_kind *kind, const char *unquoted)
{
    for (const struct store_text *t = kind->texts; t->text; t++) {
        if (strstr(unquoted, t->text))
            return t;
    }
    return NULL;
}

/* Times of one form, of which "2026-11-22 08:00:00" counts; they compare as texts. */
#define STAMP_BYTES 19

static const char *stamp_behind(const char *text, const char *words)
{
    const char *at = strstr(text, words);

    return at && strnlen(at + strlen(words), STAMP_BYTES) == STAMP_BYTES ? at + strlen(words) : NULL;
}

/* "(profile timestamp: T, the ingestion window starts at T and ends at T)": either limit may be missing. */
static const char *window_reason(const char *unquoted, int64_t now_s, uint64_t profile_ns)
{
    const char *at = stamp_behind(unquoted, "profile timestamp: ");
    const char *begin = stamp_behind(unquoted, "window starts at "), *end = stamp_behind(unquoted, " ends at ");

    if (at && begin && memcmp(at, begin, STAMP_BYTES) <= 0)
        return "too_old";
    if (at && end && memcmp(at, end, STAMP_BYTES) >= 0)
        return "too_new";
    return profile_ns / NS_PER_S <= (uint64_t)now_s ? "too_old" : "too_new";
}

/* ---- what a status says ---- */

/* What does not depend on the kind of store. Others of 4xx and of 5xx: rows 0 and 1. */
static const struct {
    int status;
    enum store_verdict verdict;
    const char *reason;
} statuses[] = {
    {0, STORE_DENIED, "unexpected"},
    {0, STORE_FAULT, "server_error"},
    {400, STORE_REFUSED, "bad_request"},
    {401, STORE_DENIED, "unauthenticated"},
    {403, STORE_DENIED, "forbidden"},
    {404, STORE_DENIED, "not_found"},
    {405, STORE_DENIED, "not_found"},
    {407, STORE_DENIED, "proxy"},
    /* A proxy or the store gave a request up that it may have passed on. */
    {408, STORE_UNANSWERED, "timeout"},
    {499, STORE_UNANSWERED, "timeout"},
    {413, STORE_REFUSED, "too_large"},
    {415, STORE_DENIED, "not_found"},
    {422, STORE_REFUSED, "bad_request"},
    {425, STORE_LATER, "unavailable"},
    {429, STORE_LATER, "rate"},
    {501, STORE_DENIED, "not_found"},
    {502, STORE_UNANSWERED, "bad_gateway"},
    {503, STORE_LATER, "unavailable"},
    {504, STORE_UNANSWERED, "timeout"},
    {507, STORE_LATER, "store_full"},
};

static void judge_status(int status, struct store_answer *out)
{
    size_t found = status >= 500 ? 1 : 0;

    for (size_t i = 2; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i].status == status)
            found = i;
    }
    out->verdict = statuses[found].verdict;
    out->reason = statuses[found].reason;
    if (status >= 300 && status < 400)
        out->reason = "redirect";
}

static bool has_type(const struct http_reply *reply, const char *type)
{
    size_t len = strcspn(reply->content_type, "; ");

    return len == strlen(type) && strncasecmp(reply->content_type, type, len) == 0;
}

/* A page of something else, or of a proxy, may well come with 200. */
static bool is_accepted(const struct store_kind *kind, const struct http_reply *reply)
{
    return reply->status == 200 && has_type(reply, kind->content_type);
}

/* Stores refuse a profile in JSON. Another text is a proxy's, which may say so of all that comes (plain HTTP to a port of TLS). */
static bool is_of_proxy(const struct http_reply *reply)
{
    return (reply->status == 400 || reply->status == 422) && !has_type(reply, "application/json");
}

void verdict_judge(const struct store_kind *kind, const struct http_reply *reply, const char *message, int64_t now_s,
                   uint64_t profile_ns, struct store_answer *out)
{
    struct buf unquoted = {0};
    const struct store_text *text = NULL;

    *out = (struct store_answer){.status = reply->status, .reason = reply->reason};
    if (reply->outcome != HTTP_ANSWERED) {
        out->verdict = reply->outcome == HTTP_NOT_SENT ? STORE_LATER : STORE_UNANSWERED;
        return;
    }
    if (is_accepted(kind, reply)) {
        out->verdict = STORE_ACCEPTED;
        out->reason = "accepted";
        return;
    }
    judge_status(reply->status, out);
    if (reply->status < 300)
        out->reason = "not_a_store";
    put_unquoted(message, &unquoted);
    if (is_of_proxy(reply))
        out->verdict = STORE_FAULT;
    else if (reply->status == 400 || reply->status == 422 || reply->status == 500)
        text = find_text(kind, buf_cstr(&unquoted));
    if (text) {
        out->verdict = text->verdict;
        out->reason = text->reason;
        if (strcmp(text->reason, STORE_REASON_OUTSIDE_WINDOW) == 0)
            out->reason = window_reason(buf_cstr(&unquoted), now_s, profile_ns);
    }
    if (out->verdict != STORE_REFUSED && out->verdict != STORE_DENIED)
        out->retry_after_ns = verdict_retry_after_ns(reply->retry_after, now_s);
    buf_deinit(&unquoted);
}

/* ---- for people ---- */

/* Cuts between characters. */
static void copy_text(struct buf *from, char *out, size_t size_bytes)
{
    const char *text = buf_cstr(from);
    size_t len = strlen(text);

    if (len >= size_bytes) {
        len = size_bytes - 1;
        while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(out, text, len);
    out[len] = 0;
}

void verdict_explain(const struct store_kind *kind, const struct http_reply *reply, const char *message, struct store_answer *out)
{
    struct buf text = {0};

    if (reply->outcome != HTTP_ANSWERED) {
        printable_put(&text, reply->error);
    } else if (strcmp(out->reason, "redirect") == 0) {
        buf_printf(&text, "redirected, which is not followed: give --%s the URL that it means: ", kind->name);
        printable_put(&text, *reply->location ? reply->location : "(no Location)");
    } else if (strcmp(out->reason, "not_a_store") == 0) {
        buf_printf(&text, "this is no %s: the answer should be %s, not ", kind->title, kind->content_type);
        printable_put(&text, *reply->content_type ? reply->content_type : "without a type");
    } else if (strcmp(out->reason, "not_found") == 0) {
        buf_printf(&text, "nothing takes %s there: does --%s name the address of a %s? ", kind->path, kind->name, kind->title);
        printable_put(&text, message);
    } else {
        printable_put(&text, message);
    }
    copy_text(&text, out->text, sizeof out->text);
    buf_deinit(&text);
}
