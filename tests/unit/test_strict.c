/* SPDX-License-Identifier: Apache-2.0 */
/* --strict: what its argument may be, and which recordings meet which thresholds. Stacks are tested in test_pysym.py. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/summary/strict.h"
#include "symbolize/summary/summary_data.h"

/* The thresholds in force, as "python:99.9 lost:1", or the error's text. */
static const char *parsed(const char *text)
{
    static const char *const names[] = {"python", "native", "kernel", "join", "names", "lost", "no_python", "part"};
    static char out[512];
    struct strict strict;
    int len = 0;

    struct error *err = strict_parse(text, &strict);
    out[0] = 0;
    if (err)
        snprintf(out, sizeof out, "%s", error_text(err));
    for (int i = 0; !err && i < STRICT_KEYS; i++) {
        if (strict.checked[i])
            len += snprintf(out + len, sizeof out - (size_t)len, "%s%s:%g", len ? " " : "", names[i], strict.percent[i]);
    }
    if (!err)
        assert_true(strict.is_on);
    error_destroy(err);
    return out;
}

TEST(argument)
{
    assert_string_equal(parsed(NULL), "python:99.9 lost:1");
    assert_string_equal(parsed(""), "python:99.9 lost:1");
    assert_string_equal(parsed("native:95"), "python:99.9 native:95 lost:1");
    assert_string_equal(parsed("python:off,names:50%,lost:0.5%"), "names:50 lost:0.5");
    assert_string_equal(parsed("lost:3,lost:2"), "python:99.9 lost:2");
    assert_string_equal(parsed("all"), "python:100 native:100 kernel:100 join:100 names:100 lost:0 no_python:0 part:0");
    assert_string_equal(parsed("all,names:off,no_python:100,kernel:off"), "python:100 native:100 join:100 lost:0 no_python:100 part:0");
}

TEST(argument_refused)
{
    static const char *const bad[] = {"python", "python:", "python:%", ":5", "pythons:5", "pytho:5", "python:101", "python:-1", "python:1e1",
                                      "python:nan", "python:0x10", "python:1.2.3", "python:5%%", "python:99,", ",python:99", "off",
                                      "python:11111111111111111111111111111", "python=5", "python:offf"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text = parsed(bad[i]);
        if (strncmp(text, "--strict wants CLASS:PERCENT or CLASS:off, such as python:99.9, not '", 69))
            fail_msg("%s: %s", bad[i], text);
    }
    assert_string_equal(parsed("lost:1,what:5"), "--strict wants CLASS:PERCENT or CLASS:off, such as python:99.9, not 'what:5'; "
                                                 "classes are: python native kernel join names lost no_python part");
}

/* What the check says of a file with so many samples and these losses, in one text; "" if all thresholds are met. */
static const char *checked(const char *thresholds, uint64_t samples, const struct loss_row *losses, size_t loss_count)
{
    static char out[1024];
    struct summary_file file = {.end.sample_count = samples, .stats.ended = true};
    struct summary s = {0};
    struct strict strict;
    FILE *stream;

    assert_true(VEC_PUSH(&s.files, file));
    for (size_t i = 0; i < loss_count; i++)
        assert_true(VEC_PUSH(&s.losses, losses[i]));
    assert_null(strict_parse(thresholds, &strict));
    out[0] = 0;
    stream = fmemopen(out, sizeof out, "w");
    assert_non_null(stream);
    bool good = strict_check(&strict, &s, NULL, stream);
    fclose(stream);
    assert_int_equal(good, !*out);
    VEC_DEINIT(&s.files);
    VEC_DEINIT(&s.losses);
    return out;
}

TEST(thresholds)
{
    const struct loss_row lost[] = {{.reason = LOSS_ring_full, .name = "ring_full", .count = 3},
                                    {.reason = LOSS_tick_skipped, .name = "tick_skipped", .count = 2000},
                                    {.reason = LOSS_code_fault, .name = "code_fault", .count = 7},
                                    {.reason = LOSS_not_yet_known, .name = "not_yet_known", .count = 900}};

    assert_string_equal(checked(NULL, 1000, NULL, 0), "");
    assert_string_equal(checked("all", 1000, NULL, 0), "");
    assert_string_equal(checked("all", 1000, &lost[3], 1), ""); /* happens to every program */
    /* 3 of 1,003 are below 1 %; 2,003 of 3,003 are not. */
    assert_string_equal(checked(NULL, 1000, lost, 1), "");
    assert_string_equal(checked(NULL, 1000, lost, 2),
                        "pysym: incomplete: lost: 2,003 of 3,003 samples were lost (66.70 %, allowed: 1 %): 3 ring_full, 2,000 tick_skipped\n");
    assert_string_equal(checked("lost:67", 1000, lost, 2), "");
    assert_string_equal(checked("lost:off", 1000, lost, 4), "");
    assert_string_equal(checked("lost:off,part:0.6", 1000, lost, 4),
                        "pysym: incomplete: part: 7 of 1,000 samples lack a fact, such as a name (0.70 %, allowed: 0.6 %): 7 code_fault\n");
    /* Rounded up to a whole sample: 3 of 203 are 1.48 %, and 3 samples are what 1 % of 203 comes to. */
    assert_string_equal(checked("lost:1", 200, lost, 1), "");
    assert_string_equal(checked("lost:0.9", 200, lost, 1),
                        "pysym: incomplete: lost: 3 of 203 samples were lost (1.48 %, allowed: 0.9 %): 3 ring_full\n");
    assert_string_equal(checked("lost:0", 1000000, lost, 1),
                        "pysym: incomplete: lost: 3 of 1,000,003 samples were lost (0.01 %, allowed: 0 %): 3 ring_full\n");
}
