/* SPDX-License-Identifier: Apache-2.0 */
/* What a push says of itself: the last lines, and the figures for Prometheus. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "symbolize/push/account.h"
#include "symbolize/push/store_kind.h"
#include "tests/unit/folder_fixture.h"
#include "tests/unit/push_fixture.h"

static struct account *make(struct push_request *request)
{
    struct account *a;

    request->store = store_kinds[0];
    request->url = "http://localhost:4040";
    OK(account_create(request, &a));
    return a;
}

static void assert_printed(const struct account *a, const char *expected)
{
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    assert_non_null(out);
    account_print(a, out);
    fclose(out);
    assert_string_equal(text, expected);
}

static void fill(struct account *a)
{
    struct push_profile p = push_fixture_profile(0, 0, 0, 1000), newer = push_fixture_profile(0, 1, 0, 30), old = push_fixture_profile(1, 0, 0, 7);

    p.len_bytes = 3000000;
    account_answered(a, true);
    account_accepted(a, &newer, false);
    account_accepted(a, &p, true);
    account_accepted(a, &p, false);
    account_refused(a, &old, "too_old");
    account_refused(a, &old, "too_old");
    account_refused(a, &newer, "teapot");
    for (int i = 0; i < 1200; i++)
        account_retried(a, "timeout");
    account_retried(a, "rate");
    account_trace(a, ACCOUNT_TRACE_DONE, 100);
    account_trace(a, ACCOUNT_TRACE_DAMAGED, 50);
    account_trace(a, ACCOUNT_TRACE_GONE, 0);
    account_sent_before(a);
    account_lost(a, "ring_full", 5000, true);
    account_lost(a, "ring_full", 5, true);
    account_lost(a, "a\x1b[2J\"\n", 2, true);
    account_lost(a, "stack_cut", 40000, false);
    account_lost(a, "native_loop", 1, false);
    account_backlog(a, 2, 90 * NS_PER_S);
}

TEST(printed)
{
    struct push_request request = {0};
    struct account *a = make(&request);

    assert_printed(a, "pushed 0 profiles (0 samples, 0 B) of 0 traces to Pyroscope at http://localhost:4040\n");
    assert_true(account_is_whole(a) && account_is_empty(a));
    account_backlog(a, 1, 0);
    assert_false(account_is_empty(a));
    account_backlog(a, 0, 0);
    struct push_profile p = push_fixture_profile(0, 0, 0, 1);
    account_accepted(a, &p, false);
    account_trace(a, ACCOUNT_TRACE_DONE, 100);
    account_trace_grew(a, 20);
    account_retried(a, "rate");
    assert_printed(a, "pushed 1 profile (1 sample, 5 B) of 1 trace to Pyroscope at http://localhost:4040\n"
                      "tried again: 1 request (rate 1)\n");
    assert_true(account_is_whole(a));
    p.labels = &(struct profile_label){PROFILE_NAME_LABEL, PROFILE_LOST_NAME};
    p.label_count = 1;
    account_accepted(a, &p, false);
    assert_printed(a, "pushed 2 profiles (1 sample, 10 B) of 1 trace to Pyroscope at http://localhost:4040\n"
                      "tried again: 1 request (rate 1)\n");
    account_destroy(a);
    a = make(&request);
    fill(a);
    assert_false(account_is_whole(a) || account_is_empty(a));
    assert_printed(a, "pushed 3 profiles (2,030 samples, 5.7 MiB) of 2 traces to Pyroscope at http://localhost:4040\n"
                      "sent again: 1 profile (1,000 samples), which the store may have twice: an earlier answer was not seen, or their trace has grown\n"
                      "refused: 3 profiles (44 samples)\n"
                      "    too_old 2: the store takes nothing so old (Pyroscope: -validation.reject-older-than, 1h unless told)\n"
                      "    teapot 1\n"
                      "1 trace: damaged; what can be read was sent\n"
                      "1 trace: removed too early: let pycap --keep more files\n"
                      "1 trace: sent before, as the state file says\n"
                      "2 traces: not sent, or not to the end: give --state FILE, so that the next push can go on with them\n"
                      "tried again: 1,201 requests (timeout 1,200, rate 1)\n"
                      "lost by the recorder: 5,007 samples (ring_full 5,005, a\\x1b[2J\"\\x0a 2); in the store they are pycap_lost\n"
                      "samples that lack a part, such as outer frames: stack_cut 40,000, native_loop 1\n");
    account_destroy(a);
}

TEST(whole)
{
    static const enum account_trace bad[] = {ACCOUNT_TRACE_DAMAGED, ACCOUNT_TRACE_UNREADABLE, ACCOUNT_TRACE_GONE};
    struct push_request request = {0};
    struct account *a;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        a = make(&request);
        account_trace(a, bad[i], 0);
        assert_false(account_is_whole(a));
        account_destroy(a);
    }
    a = make(&request);
    account_lost(a, "ring_full", 1, true); /* the recorder's loss is not the push's */
    account_backlog(a, 1, 0);
    assert_false(account_is_whole(a));
    account_backlog(a, 0, 0);
    assert_true(account_is_whole(a));
    account_refused(a, &(struct push_profile){.samples = 1}, "too_old");
    assert_false(account_is_whole(a));
    account_destroy(a);
}

/* Checks the published file with the parser in Python: `expression` is true of the figures `f`. */
static void assert_published(const struct fixture *f, const char *expression)
{
    char command[2048];

    snprintf(command, sizeof command,
             "cd tests/integration && python3 -c 'import prometheus_text as p, sys; f = p.read(sys.argv[1]); %s or sys.exit(repr(f))' %s/status",
             expression, f->dir);
    if (system(command))
        fail_msg("not so: %s", expression);
}

TEST_WITH(status, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[128];
    struct push_request request = {.status = path};
    struct account *a = make(&request);

    snprintf(path, sizeof path, "%s/status", f->dir);
    account_publish(a);
    assert_published(f, "f[\"pysym_push_accepted_profiles_total\", None] == 0 and f[\"pysym_push_traces_total\", \"gone\"] == 0 and "
                        "f[\"pysym_push_store_up\", None] == 0 and f[\"pysym_push_backlog_traces\", None] == 0 and "
                        "not [k for k, v in f if k.endswith(\"_timestamp_seconds\")]");
    fill(a);
    account_publish(a);
    assert_published(f, "f[\"pysym_push_accepted_profiles_total\", None] == 3 and f[\"pysym_push_accepted_samples_total\", None] == 2030 and "
                        "f[\"pysym_push_accepted_bytes_total\", None] == 6000005 and f[\"pysym_push_repeated_samples_total\", None] == 1000");
    assert_published(f, "f.of(\"pysym_push_refused_profiles_total\") == {\"too_old\": 2, \"teapot\": 1} and "
                        "f.of(\"pysym_push_refused_samples_total\") == {\"too_old\": 14, \"teapot\": 30} and "
                        "f.of(\"pysym_push_retries_total\") == {\"timeout\": 1200, \"rate\": 1} and "
                        "sorted(f.of(\"pysym_push_recorder_lost_samples_total\").values()) == [2, 5005] and "
                        "f.of(\"pysym_push_recorder_incomplete_total\") == {\"stack_cut\": 40000, \"native_loop\": 1}");
    assert_published(f, "f.of(\"pysym_push_traces_total\") == {\"done\": 1, \"damaged\": 1, \"unreadable\": 0, \"gone\": 1} and "
                        "f[\"pysym_push_newest_sample_timestamp_seconds\", None] == 1790000010 + 15 + 14");
    assert_published(f, "f[\"pysym_push_store_up\", None] == 1 and __import__(\"time\").time() - 100 < "
                        "f[\"pysym_push_last_answer_timestamp_seconds\", None] <= __import__(\"time\").time() and "
                        "89 < f[\"pysym_push_last_answer_timestamp_seconds\", None] - "
                        "f[\"pysym_push_backlog_oldest_timestamp_seconds\", None] < 91");
    account_answered(a, false);
    account_backlog(a, 0, 0);
    account_publish(a);
    assert_published(f, "f[\"pysym_push_store_up\", None] == 0 and (\"pysym_push_last_answer_timestamp_seconds\", None) in f and "
                        "(\"pysym_push_backlog_oldest_timestamp_seconds\", None) not in f");
    account_destroy(a);
}

/* A trace may have as many names of losses as it likes. */
TEST(many_names)
{
    struct push_request request = {0};
    struct account *a = make(&request);
    char name[200];

    for (unsigned i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "%0*u", i % 2 ? 150 : 5, i);
        account_lost(a, name, 1, true);
    }
    char text[1 << 14] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    account_print(a, out);
    fclose(out);
    const char *line = strstr(text, "lost by the recorder: 10,000 samples (00000 1, 0000");
    assert_non_null(line);
    assert_non_null(strstr(line, ", other 4,"));
    assert_true(strlen(line) < 1000);
    account_destroy(a);
}

/* What cannot be written is told once, until it can be. */
TEST_WITH(status_cannot_be_written, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[128], text[1024] = "";
    struct push_request request = {.status = path};
    struct account *a = make(&request);

    snprintf(path, sizeof path, "%s/nowhere/status", f->dir);
    int kept = dup(STDERR_FILENO), out = open(f->dir, O_TMPFILE | O_RDWR, 0600);
    assert_true(kept >= 0);
    if (out < 0) {
        close(kept);
        account_destroy(a);
        skip(); /* a file system without O_TMPFILE */
    }
    dup2(out, STDERR_FILENO);
    account_publish(a);
    account_publish(a);
    bool made = fixture_run(f, "mkdir nowhere");
    account_publish(a);
    bool removed = fixture_run(f, "rm -r nowhere");
    account_publish(a);
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_true(made && removed);
    assert_true(pread(out, text, sizeof text - 1, 0) > 0);
    close(out);
    const char *again = strstr(text, "\npysym: ");
    assert_memory_equal(text, "pysym: ", 7);
    assert_non_null(again);
    assert_null(strstr(again + 1, "\npysym: "));
    account_destroy(a);
}
