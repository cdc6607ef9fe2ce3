/* SPDX-License-Identifier: Apache-2.0 */
/* The reading of -e, -F and -c: which events, at which rates and periods, and what is refused. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "capture/event/event.h"
#include "capture/event/event_table.h"
#include "formats/base/clock.h"

/* Reads a list and completes it; gives what came of it as text: "cpu-clock 99 Hz; page-faults each 16 faults". */
static const char *read_events(const char *list, uint64_t frequency_hz, uint64_t period)
{
    static char text[1024];
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
        event_list_deinit(&events);
        return text;
    }
    for (uint32_t i = 0; i < events.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s", i ? "; " : "", events.list[i].source->name,
                 event_rate_text(&events.list[i], rate));
    event_list_deinit(&events);
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

TEST(defaults)
{
    assert_events(NULL, 0, 0, "cpu-clock 99 Hz");
    assert_events(NULL, 49, 0, "cpu-clock 49 Hz");
    assert_events("task-clock", 0, 0, "task-clock 99 Hz");
    assert_events("cycles", 999, 0, "cycles 999 Hz");
    assert_events("page-faults", 0, 0, "page-faults each 16 faults");
    assert_events("context-switches", 0, 0, "context-switches each 16 switches");
}

/* Waits have no rate, and a period that does not depend on other events. */
TEST(waits)
{
    assert_events("off-cpu", 0, 0, "off-cpu each 10000000 ns");
    assert_events("off-cpu/period=1/,cpu-clock", 49, 0, "off-cpu each 1 ns; cpu-clock 49 Hz");
    assert_events("off-cpu", 0, 2000, "off-cpu each 2000 ns");
    assert_events("off-cpu,page-faults", 0, 4, "off-cpu each 10000000 ns; page-faults each 4 faults");
    assert_refused("off-cpu", 49, 0, "off-cpu has no rate");
    assert_refused("off-cpu/freq=49/", 0, 0, "off-cpu has no rate");
    assert_refused("off-cpu/size=1/", 0, 0, "write period=N");
}

/* Looks at tasks have a period that is long enough to look at all of them. */
TEST(tasks)
{
    assert_events("task-wait", 0, 0, "task-wait each 100000000 ns");
    assert_events("task-wait/period=1000000/,cpu-clock", 49, 0, "task-wait each 1000000 ns; cpu-clock 49 Hz");
    assert_events("task-wait,page-faults", 0, 4, "task-wait each 100000000 ns; page-faults each 4 faults");
    assert_refused("task-wait/period=999999/", 0, 0, "1000000 at least");
    assert_refused("task-wait", 49, 0, "task-wait has no rate");
}

/* --wall beside -e, in any order. */
TEST(missing)
{
    struct event_list events = {0};

    assert_int_equal(event_list_wait(&events), EVENT_NONE);
    assert_null(event_list_add(&events, "page-faults,off-cpu/period=7/"));
    assert_null(event_list_add_missing(&events, "cpu-clock,off-cpu"));
    assert_int_equal(events.count, 3);
    assert_int_equal(event_list_wait(&events), 1);
    assert_int_equal(events.list[1].period, 7);
    assert_string_equal(events.list[2].source->name, "cpu-clock");
}

/* -F is for what has a rate, -c for what is counted; each event may say its own. */
TEST(several)
{
    assert_events("cpu-clock,page-faults", 49, 4, "cpu-clock 49 Hz; page-faults each 4 faults");
    assert_events("page-faults/period=1/,cpu-clock", 0, 0, "page-faults each 1 faults; cpu-clock 99 Hz");
    assert_events("page-faults/period=1/,cs", 0, 7, "page-faults each 1 faults; context-switches each 7 switches");
    assert_events("cpu-clock/freq=10/,cycles", 99, 0, "cpu-clock 10 Hz; cycles 99 Hz");
    assert_events("cpu-clock//", 0, 0, "cpu-clock 99 Hz");
}

/* Where nothing is counted, -c is for what there is, as perf has it. */
TEST(count_of_clocks)
{
    assert_events("cycles", 0, 1000000, "cycles each 1000000 cycles");
    assert_events("cpu-clock", 0, 10000000, "cpu-clock each 10000000 ns");
    assert_events("cpu-clock/period=20000/", 0, 0, "cpu-clock each 20000 ns");
    assert_refused("cpu-clock", 0, 9999, "10000 at least");
    assert_refused("task-clock/period=1/", 0, 0, "10000 at least");
    assert_refused("cycles", 99, 1000, "either -F or -c");
}

TEST(aliases)
{
    assert_events("faults,cs,migrations,cpu-cycles", 0, 0,
                  "page-faults each 16 faults; context-switches each 16 switches; cpu-migrations each 16 migrations; "
                  "cycles 99 Hz");
    assert_refused("faults,page-faults", 0, 0, "page-faults is named twice");
    assert_null(event_source("page-fault"));
    assert_ptr_equal(event_source("cs"), event_source("context-switches"));
}

TEST(refusals)
{
    assert_refused("bogus", 0, 0, "event 'bogus' is not known; known are cpu-clock, task-clock, page-faults");
    assert_refused("", 0, 0, "no name");
    assert_refused("cpu-clock,", 0, 0, "no name");
    assert_refused("/period=1/", 0, 0, "no name");
    assert_refused("page-faults/period=1", 0, 0, "second slash");
    assert_refused("page-faults/period=1/u/", 0, 0, "a comma or the end");
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
TEST(repeated)
{
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
TEST(slowed)
{
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
    assert_int_equal(event_slowed(&faults, 99, 100).period, 17);
    faults.period = 1;
    assert_int_equal(event_slowed(&faults, 49, 99).period, 2); /* half of an odd rate */
    assert_int_equal(event_slowed(&faults, 98, 99).period, 2);
    faults.period = EVENT_PERIOD_MAX;
    assert_int_equal(event_slowed(&faults, 1, 2).period, EVENT_PERIOD_MAX);
}

/* Waits keep a stack for each second, however little they may cost; more seldom only if that was asked. */
TEST(slowest)
{
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

/* The source of the one event of a list. */
static const struct event_source *one_source(struct event_list *events, const char *text)
{
    *events = (struct event_list){0};
    OK(event_list_add(events, text));
    assert_int_equal(events->count, 1);
    return events->list[0].source;
}

/* What perf 6.1 sets for the same words: perf record -vv -e EVENT prints it. */
static const struct {
    const char *text;
    uint32_t type;
    uint64_t config;
    uint32_t modifiers, precise;
    const char *name, *unit;
} as_perf[] = {
    {"cycles:u", 0, 0, EVENT_NO_KERNEL | EVENT_NO_HYPERVISOR | EVENT_NO_GUEST, 0, "cycles:u", "cycles"},
    {"cycles:k", 0, 0, EVENT_NO_USER | EVENT_NO_HYPERVISOR, 0, "cycles:k", "cycles"},
    {"cpu-clock:u", 1, 0, EVENT_NO_KERNEL | EVENT_NO_HYPERVISOR | EVENT_NO_GUEST, 0, "cpu-clock:u", "ns"},
    {"faults:uk", 1, 2, EVENT_NO_HYPERVISOR | EVENT_NO_GUEST, 0, "page-faults:uk", "faults"},
    {"r1A8:h", 4, 0x1a8, EVENT_NO_USER | EVENT_NO_KERNEL, 0, "r1A8:h", "events"},
    {"cycles:pp", 0, 0, 0, 2, "cycles:pp", "cycles"},
    {"cycles:uG", 0, 0, EVENT_NO_KERNEL | EVENT_NO_HYPERVISOR | EVENT_NO_HOST, 0, "cycles:uG", "cycles"},
    {"cycles:Gu", 0, 0, EVENT_NO_KERNEL | EVENT_NO_HYPERVISOR | EVENT_NO_HOST, 0, "cycles:Gu", "cycles"},
    {"cycles:I", 0, 0, EVENT_NO_IDLE, 0, "cycles:I", "cycles"},
    {"cycles/period=5/D", 0, 0, EVENT_PINNED, 0, "cycles:D", "cycles"},
    {"cycles/freq=5/:D", 0, 0, EVENT_PINNED, 0, "cycles:D", "cycles"},
    {"L1-dcache-load-misses", 3, 0x10000, 0, 0, "L1-dcache-load-misses", "misses"},
    {"LLC-loads", 3, 2, 0, 0, "LLC-loads", "loads"},
    {"branch-loads", 3, 5, 0, 0, "branch-loads", "loads"},
    {"iTLB-load-misses", 3, 0x10004, 0, 0, "iTLB-load-misses", "misses"},
    {"node-stores", 3, 0x106, 0, 0, "node-stores", "stores"},
    {"L1-icache-prefetches", 3, 0x201, 0, 0, "L1-icache-prefetches", "prefetches"},
    {"branches", 0, 4, 0, 0, "branches", "branches"},
    {"idle-cycles-backend", 0, 8, 0, 0, "stalled-cycles-backend", "cycles"},
    {"cgroup-switches", 1, 11, 0, 0, "cgroup-switches", "switches"},
    {"instructions/name=work/", 0, 1, 0, 0, "work", "instructions"},
    {"r1a8/unit=stalls,period=7/u", 4, 0x1a8, EVENT_NO_KERNEL | EVENT_NO_HYPERVISOR | EVENT_NO_GUEST, 0, "r1a8:u", "stalls"},
};

TEST(as_perf)
{
    struct event_list events;

    for (size_t i = 0; i < sizeof as_perf / sizeof *as_perf; i++) {
        const struct event_source *source = one_source(&events, as_perf[i].text);
        if (source->type != as_perf[i].type || source->config != as_perf[i].config ||
            source->modifiers != as_perf[i].modifiers || source->precise != as_perf[i].precise)
            fail_msg("%s: type %u, config %#llx, modifiers %u, precise %u", as_perf[i].text, source->type,
                     (unsigned long long)source->config, source->modifiers, source->precise);
        assert_string_equal(source->name, as_perf[i].name);
        assert_string_equal(source->unit, as_perf[i].unit);
        event_list_deinit(&events);
    }
}

/* All names that are listed mean an event, and no two the same one. */
TEST(cache_names)
{
    uint64_t seen[64];
    char name[40];
    size_t count = 0;

    for (; event_cache_name(count, name); count++) {
        struct event_source source;
        assert_true(event_cache_find(name, strlen(name), &source));
        for (size_t i = 0; i < count; i++)
            assert_int_not_equal(seen[i], source.config);
        seen[count] = source.config;
    }
    assert_int_equal(count, EVENT_CACHE_NAMES);
}

TEST(tracepoints)
{
    struct event_list events;

    const struct event_source *source = one_source(&events, "syscalls:sys_enter_write/period=4096,weight=count,unit=bytes/");
    assert_int_equal(source->kind, EVENT_TRACEPOINT);
    assert_string_equal(source->name, "syscalls:sys_enter_write");
    assert_string_equal(source->category, "syscalls");
    assert_string_equal(source->point, "sys_enter_write");
    assert_string_equal(source->weight, "count");
    assert_string_equal(source->unit, "bytes");
    assert_int_equal(events.list[0].period, 4096);
    event_list_deinit(&events);
    assert_events("sched:sched_switch", 0, 0, "sched:sched_switch each 1 hits");
    assert_events("sched:sched_switch,cpu-clock,page-faults", 49, 8,
                  "sched:sched_switch each 8 hits; cpu-clock 49 Hz; page-faults each 8 faults");
    assert_events("a:b/name=x/,a:b/weight=c,name=y/", 0, 0, "x each 1 hits; y each 1 hits");
    assert_refused("a:b,a:b/weight=c/", 0, 0, "a:b is named twice");
    assert_refused("sched:sched_switch", 99, 0, "sched:sched_switch is counted and has no rate");
    assert_refused("sched:sched_switch/freq=99/", 0, 0, "sched:sched_switch is counted and has no rate");
    assert_refused("sched:sched_switch:u", 0, 0, "a tracepoint has no modifiers");
    assert_refused("sched:sched_switch/period=1/u", 0, 0, "has no modifiers");
    assert_refused("sched:*", 0, 0, "without a pattern");
    assert_refused("sched:", 0, 0, "CATEGORY:NAME");
    assert_refused("sched:sched switch", 0, 0, "CATEGORY:NAME");
    assert_refused("../../etc:passwd/period=1/", 0, 0, "must be modifiers, a comma or the end");
    assert_refused("a:b/weight=/", 0, 0, "lacks a word");
    assert_refused("a:b/weight=c.d/", 0, 0, "lacks a word");
    assert_refused("a:b/unit=abcdefghijklmnopqrstuvwxyz/", 0, 0, "more than 24 letters");
    assert_refused("a:b/umask=1/", 0, 0, "write period=N, weight=FIELD, unit=WORD");
}

TEST(pmus)
{
    struct event_list events;

    const struct event_source *source = one_source(&events, "cpu/event=0x3c,period=7,umask=1,unit=stalls/u");
    assert_int_equal(source->kind, EVENT_HARDWARE);
    assert_string_equal(source->name, "cpu/event=0x3c,umask=1/u");
    assert_string_equal(source->device, "cpu");
    assert_string_equal(source->terms, "event=0x3c,umask=1");
    assert_string_equal(source->unit, "stalls");
    assert_int_equal(events.list[0].period, 7);
    event_list_deinit(&events);
    assert_events("cpu/mem-loads,ldlat=3/pp,cpu/event=1/,cycles", 49, 0,
                  "cpu/mem-loads,ldlat=3/pp 49 Hz; cpu/event=1/ 49 Hz; cycles 49 Hz");
    assert_refused("cpu//", 0, 0, "name an event of cpu between the slashes");
    assert_refused("cpu/period=5/", 0, 0, "name an event of cpu between the slashes");
    assert_refused("cpu/event=0x3c,/", 0, 0, "is no term");
    assert_refused("cpu/event=0x3c,weight=a b/", 0, 0, "is no term");
    assert_refused("cpu/event=0x3c", 0, 0, "second slash");
}

/* What perf can do and pycap does not, each with its reason. */
TEST(reasons)
{
    assert_refused("probe:malloc", 0, 0, "event 'probe:malloc' is refused: probes write into the code of processes");
    assert_refused("probe_libc:malloc", 0, 0, "probes write into the code");
    assert_refused("sdt_python:gc__start", 0, 0, "probes write into the code");
    assert_refused("usdt:python:gc__start", 0, 0, "probes write into the code");
    assert_refused("uprobes:x", 0, 0, "probes write into the code");
    assert_refused("uprobe/config=1/", 0, 0, "probes write into the code");
    assert_refused("uprobe:/usr/bin/python3:foo", 0, 0, "probes write into the code");
    assert_refused("kprobes:do_sys_open", 0, 0, "probes write into the code");
    assert_refused("intel_pt//", 0, 0, "event 'intel_pt//' is refused: such a PMU records all that a CPU does");
    assert_refused("arm_spe_0/event_filter=2/", 0, 0, "takes its samples into a buffer of its own");
    assert_refused("mem:0x1234:w", 0, 0, "takes a debug register");
    assert_refused("mem:0x1234/8:rw", 0, 0, "second slash");
    assert_refused("breakpoint/config=1/", 0, 0, "takes a debug register");
    assert_refused("ftrace:function", 0, 0, "runs no program");
    assert_refused("tracepoint/config=1/", 0, 0, "CATEGORY:NAME");
    assert_refused("{cycles,instructions}", 0, 0, "groups of events");
    assert_refused("cycle", 0, 0, "(is cycles meant?)");
    assert_refused("LLC-laods", 0, 0, "(is LLC-loads meant?)");
    assert_refused("cycles:x", 0, 0, "'x' is no modifier");
    assert_refused("cycles:pppp", 0, 0, "three times at most");
    assert_refused("cycles:", 0, 0, "no modifier behind the colon");
    assert_refused("off-cpu:u", 0, 0, "off-cpu has no modifiers");
    assert_refused("off-cpu/period=5/u", 0, 0, "off-cpu has no modifiers");
    assert_refused("iTLB-stores", 0, 0, "not known");
    assert_refused("LLC-", 0, 0, "not known");
    assert_refused("LLC-loads-stores", 0, 0, "not known");
    assert_refused("r12345678123456789", 0, 0, "not known");
    assert_refused("cycles/name=/", 0, 0, "lacks a word");
    assert_refused("cycles/unit=x/", 0, 0, "unknown term 'unit=x'");
    assert_refused("cycles/name=work/,instructions/name=work/", 0, 0, "work is named twice");
    assert_refused("r1a8/name=cpu-clock/", 0, 0, "event r1a8/name=cpu-clock/: name=cpu-clock is what another event is called");
    assert_refused("page-faults/name=off-cpu/", 0, 0, "is what another event is called");
    char text[400];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_refused(text, 0, 0, "240 letters at most");
}
