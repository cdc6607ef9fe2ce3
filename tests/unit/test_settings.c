/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says of how it was recorded. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/process/filter.h"
#include "capture/session/settings.h"

static const char *value(const struct settings *s, const char *key)
{
    for (uint32_t i = 0; i < s->list.count; i++) {
        if (!strcmp(s->list.data[i].key, key))
            return s->list.data[i].value;
    }
    return NULL;
}

TEST(usual)
{
    struct session_options o = {.frequency_hz = 99, .kernel = true, .follow = true};
    struct settings s;

    OK(settings_of_options(&o, false, &s));
    assert_int_equal(s.list.count, 5);
    assert_string_equal(value(&s, "backend"), "bpf");
    assert_string_equal(value(&s, "scope"), "all");
    assert_string_equal(value(&s, "frequency"), "99");
    assert_string_equal(value(&s, "unwind"), "tables");
    assert_string_equal(value(&s, "kernel"), "yes");
    settings_deinit(&s);
}

/* What leaves something out is named. */
TEST(limits)
{
    struct filter filter = {0};
    int cpus[] = {0, 3};
    uint32_t pid = 1;
    struct settings s;

    assert_null(filter_add_comms(&filter, "python3,celery"));
    assert_null(filter_add_comms(&filter, "uwsgi"));
    struct session_options o = {
        .frequency_hz = 999, .pids = &pid, .pid_count = 1, .filter = &filter, .cpus = cpus, .cpu_count = 2,
        .unwind = UNWIND_BOTH, .stack_bytes = 4096, .max_cpu = 0.025, .max_bytes = 1 << 20, .max_memory = 64 << 20,
    };
    OK(settings_of_options(&o, false, &s));
    assert_string_equal(value(&s, "scope"), "pids");
    assert_string_equal(value(&s, "children"), "no");
    assert_string_equal(value(&s, "comm"), "python3,celery,uwsgi");
    assert_null(value(&s, "cgroup"));
    assert_string_equal(value(&s, "cpus"), "0,3");
    assert_string_equal(value(&s, "unwind"), "both");
    assert_string_equal(value(&s, "stack-size"), "4096");
    assert_string_equal(value(&s, "kernel"), "no");
    assert_string_equal(value(&s, "max-cpu"), "2.5%");
    assert_string_equal(value(&s, "max-size"), "1048576");
    assert_string_equal(value(&s, "max-memory"), "67108864");
    settings_deinit(&s);
    OK(settings_of_options(&o, true, &s));
    assert_string_equal(value(&s, "backend"), "proc");
    assert_string_equal(value(&s, "unwind"), "none");
    assert_null(value(&s, "stack-size"));
    settings_deinit(&s);
    filter_deinit(&filter);
}

/* Neither a long value nor the number of settings makes one fall out. */
TEST(long_and_many)
{
    struct settings s = {0};
    char text[4000], key[20][8];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    OK(settings_add(&s, "long", text));
    memset(text, 'y', sizeof text - 1); /* a copy was kept */
    assert_int_equal(strlen(value(&s, "long")), sizeof text - 1);
    assert_int_equal(value(&s, "long")[sizeof text - 2], 'x');
    for (int i = 0; i < 20; i++) {
        snprintf(key[i], sizeof key[i], "key%d", i);
        OK(settings_add(&s, key[i], key[i]));
    }
    assert_int_equal(s.list.count, 21);
    for (int i = 0; i < 20; i++)
        assert_string_equal(value(&s, key[i]), key[i]);
    settings_deinit(&s);
}
