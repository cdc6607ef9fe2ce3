/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of profiles without a network: what answers mean, which URLs and secrets are taken. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "symbolize/push/secrets.h"
#include "symbolize/push/store.h"
#include "symbolize/push/store_url.h"
#include "symbolize/push/verdict.h"

/* 2026-11-22 08:00:00 UTC */
#define NOW_S INT64_C(1795334400)

TEST(clock_of_this_test)
{
    struct tm tm = {.tm_year = 126, .tm_mon = 10, .tm_mday = 22, .tm_hour = 8};

    assert_int_equal(timegm(&tm), NOW_S);
}

/* ---- answers ---- */

static struct store_answer judge(const struct store_kind *kind, int status, const char *type, const char *body)
{
    struct http_reply reply = {.status = status, .content_type = type, .retry_after = "7", .location = "https://b.example/x",
                               .body = body, .body_len_bytes = strlen(body)};
    struct store_answer answer;
    struct buf message = {0};

    verdict_message(body, strlen(body), &message);
    verdict_judge(kind, &reply, buf_cstr(&message), NOW_S, (uint64_t)NOW_S * NS_PER_S, &answer);
    verdict_explain(kind, &reply, buf_cstr(&message), &answer);
    buf_deinit(&message);
    return answer;
}

static const struct {
    bool parca;
    int status;
    const char *body;
    enum store_verdict verdict;
    const char *reason;
} answers[] = {
    {false, 400, "{\"code\":\"invalid_argument\",\"message\":\"push series with index 0 and id  failed: invalid_argument: profile with labels "
                 "'{__name__=\\\"process_cpu\\\"}' is outside of ingestion window (profile timestamp: 2026-11-22 05:00:00 +0000 UTC, "
                 "the ingestion window starts at 2026-11-22 07:00:00.5 +0000 UTC and ends at 2026-11-22 08:10:00 +0000 UTC)\"}",
     STORE_REFUSED, "too_old"},
    {false, 400, "profile with labels '{}' is outside of ingestion window (profile timestamp: 2026-11-22 09:00:00 +0000 UTC, the ingestion "
                 "window starts at 2026-11-22 07:00:00 +0000 UTC and ends at 2026-11-22 08:10:00 +0000 UTC)",
     STORE_REFUSED, "too_new"},
    {false, 422, "profile with labels '{}' is outside of ingestion window (profile timestamp: 2026-11-22 09:00:00 +0000 UTC, the ingestion "
                 "window ends at 2026-11-22 08:10:00 +0000 UTC)",
     STORE_REFUSED, "too_new"},
    {false, 422, "is outside of ingestion window (no times)", STORE_REFUSED, "too_old"},
    {false, 400, "uncompressed profile payload size exceeds limit of 4.2 MB", STORE_REFUSED, "too_large"},
    {false, 400, "the profile with labels '{}' exceeds the size limit (max_profile_size_byte, actual: 9, limit: 8)", STORE_REFUSED, "too_large"},
    {false, 400, "the profile with labels '{}' exceeds the samples count limit (max_profile_stacktrace_samples, actual: 9, limit: 8)",
     STORE_REFUSED, "too_many_rows"},
    {false, 400, "profile series '{}' has 31 label names; limit 30", STORE_REFUSED, "bad_labels"},
    {false, 400, "invalid labels '{a=\"b\"}' with error: invalid label name 'x-y'", STORE_REFUSED, "bad_labels"},
    {false, 400, "profile with labels '{}' has duplicate label name: 'x'", STORE_REFUSED, "bad_labels"},
    {false, 400, "Maximum active series limit exceeded (5000/5000), reduce", STORE_REFUSED, "series_limit"},
    {false, 400, "gzip: invalid header", STORE_REFUSED, "bad_request"},
    /* What a label holds is not the store's word. */
    {false, 500, "profile with labels '{x=\"exceeds the size limit\"}' failed", STORE_FAULT, "server_error"},
    {false, 400, "profile with labels '{x=\"push rate limit\"}' has label value too long: 'push rate limit'", STORE_REFUSED, "bad_labels"},
    {false, 400, "profile with labels '{x=\"}' push rate limit\"}' has duplicate label name: 'x'", STORE_REFUSED, "bad_labels"},
    {false, 500, "push rate limit (4.0 MiB) exceeded while adding 1.5 MiB", STORE_LATER, "rate"},
    {false, 500, "{\"code\":\"unknown\",\"message\":\"profile with labels '{}' has duplicate label name: 'x'\"}", STORE_REFUSED, "bad_labels"},
    {false, 500, "{\"code\":\"internal\",\"message\":\"no space left on device\"}", STORE_FAULT, "server_error"},
    {false, 500, "{\"code\":\"unknown\",\"message\":\"rpc error: code = Unavailable desc = service is unavailable\"}", STORE_UNANSWERED, "unavailable"},
    {false, 401, "no org id", STORE_DENIED, "unauthenticated"},
    {false, 403, "", STORE_DENIED, "forbidden"},
    {false, 404, "404 page not found", STORE_DENIED, "not_found"},
    {false, 408, "", STORE_UNANSWERED, "timeout"},
    {false, 413, "<html><head><title>413 Request Entity Too Large</title>", STORE_REFUSED, "too_large"},
    {false, 418, "", STORE_DENIED, "unexpected"},
    {false, 429, "", STORE_LATER, "rate"},
    {false, 502, "", STORE_UNANSWERED, "bad_gateway"},
    {false, 503, "", STORE_LATER, "unavailable"},
    {false, 504, "", STORE_UNANSWERED, "timeout"},
    {false, 507, "", STORE_LATER, "store_full"},
    {false, 599, "", STORE_FAULT, "server_error"},
    {false, 301, "", STORE_DENIED, "redirect"},
    {false, 308, "", STORE_DENIED, "redirect"},
    {false, 204, "", STORE_DENIED, "not_a_store"},
    {true, 400, "{\"code\":3, \"message\":\"invalid label name: a-b\", \"details\":[]}", STORE_REFUSED, "bad_labels"},
    {true, 400, "{\"code\":3, \"message\":\"invalid profile: location id is not sequential\", \"details\":[]}", STORE_REFUSED, "bad_profile"},
    {true, 500, "{\"code\":2, \"message\":\"invalid profile type at row 0 (a.b-c:cpu): parse error\"}", STORE_REFUSED, "bad_labels"},
    {true, 500, "{\"code\":13, \"message\":\"ingest failed\"}", STORE_FAULT, "server_error"},
};

TEST(answers)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct store_answer a = judge(answers[i].parca ? &store_parca : &store_pyroscope, answers[i].status, "application/json", answers[i].body);
        if (a.verdict != answers[i].verdict || strcmp(a.reason, answers[i].reason) != 0)
            fail_msg("%d %s: verdict %d, %s", answers[i].status, answers[i].body, a.verdict, a.reason);
        assert_int_equal(a.status, answers[i].status);
        assert_int_equal(a.retry_after_ns, a.verdict != STORE_REFUSED && a.verdict != STORE_DENIED ? 7 * NS_PER_S : 0);
    }
}

TEST(accepted_is_what_the_store_says)
{
    assert_int_equal(judge(&store_pyroscope, 200, "application/proto", "").verdict, STORE_ACCEPTED);
    assert_int_equal(judge(&store_parca, 200, "application/json; charset=utf-8", "{}").verdict, STORE_ACCEPTED);
    assert_int_equal(judge(&store_parca, 200, "Application/JSON", "{}").verdict, STORE_ACCEPTED);
    assert_int_equal(judge(&store_parca, 200, "text/html", "<title>Sign in</title>").verdict, STORE_DENIED);
    assert_int_equal(judge(&store_parca, 200, "application/jsonx", "{}").verdict, STORE_DENIED);
    assert_int_equal(judge(&store_pyroscope, 200, "", "").verdict, STORE_DENIED);
}

TEST(refusals_of_proxies_are_not_the_store_s)
{
    static const char page[] = "<html><title>400 The plain HTTP request was sent to HTTPS port</title>";
    struct store_answer a = judge(&store_pyroscope, 400, "text/html", page);

    assert_int_equal(a.verdict, STORE_FAULT);
    assert_string_equal(a.reason, "bad_request");
    assert_string_equal(a.text, "400 The plain HTTP request was sent to HTTPS port");
    assert_int_equal(judge(&store_parca, 422, "", "invalid label name").verdict, STORE_FAULT);
    assert_int_equal(judge(&store_parca, 413, "text/html", "<title>413 Request Entity Too Large</title>").verdict, STORE_REFUSED);
}

TEST(texts)
{
    char lengthy[400];

    assert_string_equal(judge(&store_parca, 500, "", "{\"code\":2,\"message\":\"it \\u001b[2J broke\"}").text, "it \\x1b[2J broke");
    assert_string_equal(judge(&store_parca, 500, "", "{\"error\":\"x\"}").text, "x");
    assert_string_equal(judge(&store_parca, 500, "", "plain\r\n").text, "plain");
    assert_string_equal(judge(&store_parca, 500, "", "<html><TITLE>Bad Gateway</TITLE>").text, "Bad Gateway");
    assert_string_equal(judge(&store_parca, 500, "", "").text, "");
    assert_string_equal(judge(&store_parca, 307, "", "").text,
                        "redirected, which is not followed: give --parca the URL that it means: https://b.example/x");
    /* It is cut between characters. */
    for (size_t i = 0; i < sizeof lengthy - 1; i += 3)
        memcpy(lengthy + i, "\xe2\x82\xac", 3);
    lengthy[sizeof lengthy - 1] = 0;
    assert_int_equal(strlen(judge(&store_parca, 500, "", lengthy).text), 255);
    lengthy[0] = lengthy[1] = lengthy[2] = 'x';
    memmove(lengthy + 1, lengthy + 3, sizeof lengthy - 3);
    assert_int_equal(strlen(judge(&store_parca, 500, "", lengthy).text), 253);
}

TEST(no_answer)
{
    struct http_reply reply = {.outcome = HTTP_NOT_SENT, .reason = "connect", .error = "refused\n", .content_type = "", .body = ""};
    struct store_answer answer;

    verdict_judge(&store_parca, &reply, "", NOW_S, 0, &answer);
    verdict_explain(&store_parca, &reply, "", &answer);
    assert_int_equal(answer.verdict, STORE_LATER);
    assert_string_equal(answer.reason, "connect");
    assert_string_equal(answer.text, "refused\\x0a");
    reply.outcome = HTTP_UNANSWERED;
    verdict_judge(&store_parca, &reply, "", NOW_S, 0, &answer);
    assert_int_equal(answer.verdict, STORE_UNANSWERED);
    assert_int_equal(answer.status, 0);
}

TEST(retry_after)
{
    static const struct {
        const char *text;
        uint64_t wait_s;
    } rows[] = {
        {"0", 0},
        {"120", 120},
        {"99999999999999999999999", 3600},
        {"Sun, 22 Nov 2026 08:00:30 GMT", 30},
        {"Sunday, 22-Nov-26 08:01:00 GMT", 60},
        {"Sun Nov 22 08:00:05 2026", 5},
        {"Sun, 22 Nov 2026 07:59:00 GMT", 0},
        {"Mon, 22 Nov 2038 08:00:00 GMT", 3600},
        {"Sun, 22 Nov 2026 08:00:30 GMT and more", 0},
        {"-5", 0},
        {"1.5", 0},
        {"soon", 0},
        {"", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (verdict_retry_after_ns(rows[i].text, NOW_S) != rows[i].wait_s * NS_PER_S)
            fail_msg("'%s' is not %lu s", rows[i].text, (unsigned long)rows[i].wait_s);
    }
}

/* ---- URLs ---- */

TEST(urls_that_are_taken)
{
    static const struct {
        const char *url, *host;
        bool tls, loopback;
    } rows[] = {
        {"http://localhost:4040", "localhost", false, true},
        {"HTTPS://Store.example", "Store.example", true, false},
        {"https://store.example:443/a/b%20c/", "store.example", true, false},
        {"http://127.9.8.7/", "127.9.8.7", false, true},
        {"http://[::1]:4040/x", "::1", false, true},
        {"http://[2001:db8::1]", "2001:db8::1", false, false},
        {"http://127.evil.example", "127.evil.example", false, false},
        {"http://127.1", "127.1", false, false},
        {"http://localhost.evil.example", "localhost.evil.example", false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct store_url url;
        OK(store_url_read("--parca", rows[i].url, &url));
        assert_string_equal(url.host, rows[i].host);
        assert_int_equal(url.is_tls, rows[i].tls);
        assert_int_equal(url.is_loopback, rows[i].loopback);
    }
}

TEST(urls_that_are_refused)
{
    static const char *const urls[] = {
        "", "store:4040", "ftp://store", "file:///etc/passwd", "http://", "http:///x", "https://user:geheim@store", "http://geheim@store/",
        "http://store?x=1", "http://store#x", "http://store:", "http://store:0", "http://store:99999", "http://store:4040x", "http://a b",
        "http://store/\n", "http://127.0.0.1\\@evil", "http://[::1", "http://::1", "http://store/\xc3\xa4", "http://store:-1",
        "http://store:+1",
    };

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct store_url url;
        struct error *err = store_url_read("--parca", urls[i], &url);
        if (!err)
            fail_msg("%s was taken", urls[i]);
        assert_int_equal(err->code, ERROR_USAGE);
        assert_non_null(strstr(error_text(err), "--parca"));
        assert_null(strstr(error_text(err), "geheim"));
        error_destroy(err);
    }
}

/* ---- secrets ---- */

static char secret_path[64];

static void write_secret(const char *text, mode_t mode)
{
    FILE *f = fopen(secret_path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(secret_path, mode), 0);
}

static int make_file(void **state)
{
    (void)state;
    strcpy(secret_path, "/tmp/test_store.XXXXXX");
    int fd = mkstemp(secret_path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    unsetenv("PYSYM_TOKEN");
    unsetenv("PYSYM_PASSWORD");
    return unlink(secret_path);
}

TEST_WITH(token_of_a_file, make_file, remove_file)
{
    struct push_request request = {.token_file = secret_path};
    struct secrets *s;
    bool changed;

    write_secret("one\n", 0640);
    OK(secrets_open(&request, &s));
    assert_string_equal(secrets_header(s), "Authorization: Bearer one");
    OK(secrets_renew(s, &changed));
    assert_false(changed);
    write_secret("two\n", 0600);
    OK(secrets_renew(s, &changed));
    assert_true(changed);
    assert_string_equal(secrets_header(s), "Authorization: Bearer two");
    /* A file that has become bad changes nothing. */
    write_secret("\n", 0600);
    struct error *err = secrets_renew(s, &changed);
    assert_non_null(err);
    error_destroy(err);
    assert_false(changed);
    assert_string_equal(secrets_header(s), "Authorization: Bearer two");
    secrets_close(s);
}

TEST_WITH(environment_is_emptied, make_file, remove_file)
{
    struct push_request request = {0};
    struct secrets *s;

    setenv("PYSYM_TOKEN", "abc123", 1);
    const char *value = getenv("PYSYM_TOKEN");
    OK(secrets_open(&request, &s));
    assert_string_equal(secrets_header(s), "Authorization: Bearer abc123");
    assert_null(getenv("PYSYM_TOKEN"));
    assert_int_equal(*value, 0); /* what was there is overwritten */
    assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
    secrets_close(s);
    assert_int_equal(prctl(PR_GET_DUMPABLE), 1);

    setenv("PYSYM_PASSWORD", "open sesame", 1);
    request.user = "Aladdin";
    OK(secrets_open(&request, &s)); /* the example of RFC 7617 */
    assert_string_equal(secrets_header(s), "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_null(getenv("PYSYM_PASSWORD"));
    secrets_close(s);

    request.user = NULL;
    OK(secrets_open(&request, &s));
    assert_null(secrets_header(s));
    secrets_close(s);
}

TEST_WITH(secrets_are_hidden, make_file, remove_file)
{
    struct push_request request = {.user = "me"};
    char text[] = "bad password geheim, geheim! in bWU6Z2VoZWlt", other[] = "nothing";
    struct secrets *s;

    setenv("PYSYM_PASSWORD", "geheim", 1);
    OK(secrets_open(&request, &s));
    secrets_hide(s, text);
    assert_string_equal(text, "bad password ******, ******! in ************");
    secrets_hide(s, other);
    assert_string_equal(other, "nothing");
    secrets_close(s);
}

/* The request is refused with this in the text, and never with the secret. */
static void expect_refused(struct push_request request, const char *words)
{
    struct secrets *s;
    struct error *err = secrets_open(&request, &s);

    if (!err)
        fail_msg("not refused: %s", words);
    assert_int_equal(err->code, ERROR_USAGE);
    if (!strstr(error_text(err), words))
        fail_msg("'%s' lacks '%s'", error_text(err), words);
    assert_null(strstr(error_text(err), "geheim"));
    error_destroy(err);
}

TEST_WITH(secrets_that_are_refused, make_file, remove_file)
{
    struct push_request file = {.token_file = secret_path}, user = {.user = "me"};

    write_secret("geheim\n", 0644);
    expect_refused(file, "everybody may read this token; 'chmod o-rwx'");
    write_secret("geheim\n", 0602);
    expect_refused(file, "everybody may write this token");
    write_secret("", 0600);
    expect_refused(file, "holds no token");
    write_secret("geheim geheim\n", 0600);
    expect_refused(file, "cannot be part of one");
    write_secret("geheim\x01\n", 0600);
    expect_refused(file, "cannot be part of one");
    expect_refused((struct push_request){.token_file = "/dev/null"}, "regular file");
    expect_refused(user, "--user wants a password");
    expect_refused((struct push_request){.password_file = secret_path}, "no --user");
    expect_refused((struct push_request){.user = "a:b", .password_file = secret_path}, "without ':'");
    expect_refused((struct push_request){.user = "me", .token_file = secret_path}, "one of them");
    setenv("PYSYM_TOKEN", "geheim", 1);
    expect_refused(file, "two tokens");
    setenv("PYSYM_PASSWORD", "geheim", 1);
    expect_refused((struct push_request){.user = "me"}, "one of them");
    unsetenv("PYSYM_TOKEN");
    expect_refused((struct push_request){.user = "me", .password_file = secret_path}, "two passwords");
    setenv("PYSYM_TOKEN", "geheim\r\nX: y", 1);
    unsetenv("PYSYM_PASSWORD");
    struct secrets *s; /* what is behind a line's end is no header */
    struct push_request none = {0};
    OK(secrets_open(&none, &s));
    assert_string_equal(secrets_header(s), "Authorization: Bearer geheim");
    secrets_close(s);
}

TEST_WITH(environment_is_forgotten, make_file, remove_file)
{
    setenv("PYSYM_TOKEN", "geheim", 1);
    setenv("https_proxy", "http://me:geheim@proxy", 1);
    const char *token = getenv("PYSYM_TOKEN"), *proxy = getenv("https_proxy");
    secrets_forget_environment();
    assert_null(getenv("PYSYM_TOKEN"));
    assert_null(getenv("https_proxy"));
    assert_int_equal(*token, 0);
    assert_int_equal(*proxy, 0);
}
