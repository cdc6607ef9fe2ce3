/* SPDX-License-Identifier: Apache-2.0 */
/* The reading of -e, -F and -c: which events, at which rates and periods, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "capture/event/event.h"
#include "formats/base/clock.h"

/* Reads a list and completes it; gives what came of it as text: "cpu-clock 99 Hz; page-faults each 16 faults". */
static const char *read_events(const char *list, uint64_t frequency_hz, uint64_t period)
{
    static char text[512];
    struct event_list events = {0};
    struct error *err = list ? event_list_add(&events, list) : NULL;
    char rate[64];

    if (!err)
        err = event_list_complete(&events, frequency_hz, period);
    text[0] = 0;
    if (err) {
        assert_int_equal(err->code, ERROR_USAGE);
        snprintf(text, sizeof text, "%s", error_text(err));
        error_destroy(err);
        return text;
    }
    for (uint32_t i = 0; i < events.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s", i ? "; " : "", events.list[i].source->name,
                 event_rate_text(&events.list[i], rate));
    return text;
}

static void assert_events(const char *list, uint64_t frequency_hz, uint64_t period, const char *want)
{
    assert_string_equal(read_events(list, frequency_hz, period), want);
}

static void assert_refused(const char *list, uint64_t frequency_hz, uint64_t period, const char *part)
{
    const char *text = read_events(list, frequency_hz, period);

    if (!strstr(text, part))
        fail_msg("'%s' does not say '%s'", text, part);
}

static void test_defaults(void **state)
{
    (void)state;
    assert_events(NULL, 0, 0, "cpu-clock 99 Hz");
    assert_events(NULL, 49, 0, "cpu-clock 49 Hz");
    assert_events("task-clock", 0, 0, "task-clock 99 Hz");
    assert_events("cycles", 999, 0, "cycles 999 Hz");
    assert_events("page-faults", 0, 0, "page-faults each 16 faults");
    assert_events("context-switches", 0, 0, "context-switches each 16 switches");
}

/* Waits have no rate, and a period that does not depend on other events. */
static void test_waits(void **state)
{
    (void)state;
    assert_events("off-cpu", 0, 0, "off-cpu each 10000000 ns");
    assert_events("off-cpu/period=1/,cpu-clock", 49, 0, "off-cpu each 1 ns; cpu-clock 49 Hz");
    assert_events("off-cpu", 0, 2000, "off-cpu each 2000 ns");
    assert_events("off-cpu,page-faults", 0, 4, "off-cpu each 10000000 ns; page-faults each 4 faults");
    assert_refused("off-cpu", 49, 0, "off-cpu has no rate");
    assert_refused("off-cpu/freq=49/", 0, 0, "off-cpu has no rate");
    assert_refused("off-cpu/size=1/", 0, 0, "write period=N");
}

/* --wall beside -e, in any order. */
static void test_missing(void **state)
{
    struct event_list events = {0};

    (void)state;
    assert_int_equal(event_list_wait(&events), EVENT_NONE);
    assert_null(event_list_add(&events, "page-faults,off-cpu/period=7/"));
    assert_null(event_list_add_missing(&events, "cpu-clock,off-cpu"));
    assert_int_equal(events.count, 3);
    assert_int_equal(event_list_wait(&events), 1);
    assert_int_equal(events.list[1].period, 7);
    assert_string_equal(events.list[2].source->name, "cpu-clock");
}

/* -F is for what has a rate, -c for what is counted; each event may say its own. */
static void test_several(void **state)
{
    (void)state;
    assert_events("cpu-clock,page-faults", 49, 4, "cpu-clock 49 Hz; page-faults each 4 faults");
    assert_events("page-faults/period=1/,cpu-clock", 0, 0, "page-faults each 1 faults; cpu-clock 99 Hz");
    assert_events("page-faults/period=1/,cs", 0, 7, "page-faults each 1 faults; context-switches each 7 switches");
    assert_events("cpu-clock/freq=10/,cycles", 99, 0, "cpu-clock 10 Hz; cycles 99 Hz");
    assert_events("cpu-clock//", 0, 0, "cpu-clock 99 Hz");
}

/* Where nothing is counted, -c is for what there is, as perf has it. */
static void test_count_of_clocks(void **state)
{
    (void)state;
    assert_events("cycles", 0, 1000000, "cycles each 1000000 cycles");
    assert_events("cpu-clock", 0, 10000000, "cpu-clock each 10000000 ns");
    assert_events("cpu-clock/period=20000/", 0, 0, "cpu-clock each 20000 ns");
    assert_refused("cpu-clock", 0, 9999, "10000 at least");
    assert_refused("task-clock/period=1/", 0, 0, "10000 at least");
    assert_refused("cycles", 99, 1000, "either -F or -c");
}

static void test_aliases(void **state)
{
    (void)state;
    assert_events("faults,cs,migrations,cpu-cycles", 0, 0,
                  "page-faults each 16 faults; context-switches each 16 switches; cpu-migrations each 16 migrations; "
                  "cycles 99 Hz");
    assert_refused("faults,page-faults", 0, 0, "page-faults is named twice");
    assert_null(event_source("page-fault"));
    assert_ptr_equal(event_source("cs"), event_source("context-switches"));
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("bogus", 0, 0, "event 'bogus' is not known; known are cpu-clock, task-clock, page-faults");
    assert_refused("", 0, 0, "no name");
    assert_refused("cpu-clock,", 0, 0, "no name");
    assert_refused("/period=1/", 0, 0, "no name");
    assert_refused("cycles:u", 0, 0, "modifiers");
    assert_refused("sched:sched_switch", 0, 0, "tracepoints");
    assert_refused("page-faults/period=1", 0, 0, "second slash");
    assert_refused("page-faults/period=1/x", 0, 0, "a comma or the end");
    assert_refused("page-faults/period=0/", 0, 0, "1 at least");
    assert_refused("page-faults/period=/", 0, 0, "1 at least");
    assert_refused("page-faults/period/", 0, 0, "1 at least");
    assert_refused("page-faults/period=-1/", 0, 0, "1 at least");
    assert_refused("page-faults/period=4611686018427387905/", 0, 0, "1 at least");
    assert_refused("page-faults/period=99999999999999999999999/", 0, 0, "1 at least");
    assert_refused("page-faults/period=1,period=2/", 0, 0, "either a period or a rate, and only once");
    assert_refused("cpu-clock/freq=1,period=20000/", 0, 0, "either a period or a rate");
    assert_refused("cpu-clock/freq=1000001/", 0, 0, "1 to 1000000");
    assert_refused("page-faults/freq=10/", 0, 0, "page-faults is counted and has no rate");
    assert_refused("page-faults", 99, 0, "page-faults is counted and has no rate");
    assert_refused("page-faults/size=1/", 0, 0, "unknown term 'size=1' of the event page-faults: write period=N");
    assert_refused("cpu-clock,task-clock,page-faults,minor-faults,major-faults,cs,migrations,alignment-faults,cycles", 0, 0,
                   "at most 8 events");
}

/* -e more than once adds up. */
static void test_repeated(void **state)
{
    (void)state;
    struct event_list events = {0};

    assert_null(event_list_add(&events, "cpu-clock"));
    assert_null(event_list_add(&events, "page-faults/period=2/"));
    assert_null(event_list_complete(&events, 0, 0));
    assert_int_equal(events.count, 2);
    assert_int_equal(events.list[1].period, 2);
    assert_int_equal(event_list_frequency(&events), 99);
    struct error *err = event_list_add(&events, "cpu-clock");
    assert_non_null(err);
    error_destroy(err);
}

/* What a sample stands for, and what becomes of it when the capture has to be slower. */
static void test_slowed(void **state)
{
    (void)state;
    struct event clock = {.source = event_source("cpu-clock"), .frequency_hz = 100};
    struct event faults = {.source = event_source("page-faults"), .period = 16};
    struct event cycles = {.source = event_source("cycles"), .frequency_hz = 100};

    assert_int_equal(event_period(&clock), 10000000);
    assert_int_equal(event_period(&faults), 16);
    assert_int_equal(event_period(&cycles), 1); /* the kernel finds it, each sample says it */
    assert_int_equal(event_slowed(&clock, 99, 99).frequency_hz, 100);
    assert_int_equal(event_slowed(&clock, 49, 99).frequency_hz, 49);
    assert_int_equal(event_slowed(&clock, 1, 1000).frequency_hz, 1);
    assert_int_equal(event_slowed(&faults, 99, 99).period, 16);
    assert_int_equal(event_slowed(&faults, 1, 2).period, 32);
    assert_int_equal(event_slowed(&faults, 2, 3).period, 24);
    faults.period = EVENT_PERIOD_MAX;
    assert_int_equal(event_slowed(&faults, 1, 2).period, EVENT_PERIOD_MAX);
}

/* Waits keep a stack for each second, however little they may cost; more seldom only if that was asked. */
static void test_slowest(void **state)
{
    (void)state;
    const struct event clock = {.source = event_source("cpu-clock"), .frequency_hz = 100},
                       faults = {.source = event_source("page-faults"), .period = 16};
    struct event waits = {.source = event_source("off-cpu"), .period = 10 * NS_PER_MS};

    assert_int_equal(event_slowed(&waits, 1, 3).period, 30 * NS_PER_MS);
    assert_int_equal(event_slowed(&waits, 1, 1000).period, NS_PER_S);
    assert_int_equal(event_list_least(&(struct event_list){.list = {waits}, .count = 1}, 10000), 100);
    assert_int_equal(event_list_least(&(struct event_list){.list = {waits, clock}, .count = 2}, 99), 1);
    assert_int_equal(event_list_least(&(struct event_list){.list = {waits, faults}, .count = 2}, 10000), 1);
    waits.period = 3 * NS_PER_S;
    assert_int_equal(event_slowed(&waits, 1, 2).period, 3 * NS_PER_S);
    assert_int_equal(event_list_least(&(struct event_list){.list = {waits}, .count = 1}, 10000), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),      cmocka_unit_test(test_several),
        cmocka_unit_test(test_waits),         cmocka_unit_test(test_missing),
        cmocka_unit_test(test_count_of_clocks), cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_slowed),        cmocka_unit_test(test_slowest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
