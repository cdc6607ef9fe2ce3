/* SPDX-License-Identifier: Apache-2.0 */
/* PMUs of a made-up sysfs: what their files make of terms, and what is refused. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/event/event.h"
#include "capture/event/pmu.h"
#include "capture/sampler/perf_events.h"

/* As on an Intel CPU, but for `odd` and `wide`. */
static const struct {
    const char *path, *text;
} files[] = {
    {"cpu/type", "4\n"},
    {"cpu/format/event", "config:0-7\n"},
    {"cpu/format/umask", "config:8-15\n"},
    {"cpu/format/edge", "config:18\n"},
    {"cpu/format/cmask", "config:24-31\n"},
    {"cpu/format/ldlat", "config1:0-15\n"},
    {"cpu/format/split", "config2:0-3,32-35\n"},
    {"cpu/format/wide", "config3:0-63\n"},
    {"cpu/format/all", "config1:0-63\n"},
    {"cpu/format/odd", "attr:5\n"},
    {"cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"},
    {"cpu/events/cpu-cycles", "event=0x3c\n"},
    {"cpu/events/slow", "event=0xcd,ldlat=?\n"},
    {"cpu/events/slow.unit", "things\n"},
    {"power/type", "22\n"},
    {"power/cpumask", "0\n"},
    {"power/format/event", "config:0-7\n"},
    {"power/events/energy-pkg", "event=0x02\n"},
    {"cpu_atom/type", "10\n"},
    {"cpu_atom/cpus", "1,4-5,12-15\n"},
    {"cpu_atom/format/event", "config:0-7\n"},
    {"broken/type", "many\n"},
};

static char top[64];

static int make_devices(void **state)
{
    char path[256];
    (void)state;

    strcpy(top, "/tmp/pycap-unit-pmu-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", top, files[i].path);
        for (char *slash = strchr(path + strlen(top) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
            *slash = 0;
            mkdir(path, 0700);
            *slash = '/';
        }
        FILE *f = fopen(path, "w");
        if (!f || fputs(files[i].text, f) < 0 || fclose(f))
            return -1;
    }
    return 0;
}

static int remove_devices(void **state)
{
    char path[256];
    (void)state;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", top, files[i].path);
        unlink(path);
    }
    for (size_t i = sizeof files / sizeof *files; i--;) {
        snprintf(path, sizeof path, "%s/%s", top, files[i].path);
        for (char *slash; (slash = strrchr(path, '/')) && slash > path + strlen(top);) {
            *slash = 0;
            rmdir(path);
        }
    }
    return rmdir(top);
}

TESTS_WITH(make_devices, remove_devices);

static void assert_event(const char *terms, uint64_t config, uint64_t config1, uint64_t config2)
{
    struct pmu_event event;

    OK(pmu_find(top, "cpu", terms, &event));
    assert_int_equal(event.type, 4);
    assert_int_equal(event.config[0], config);
    assert_int_equal(event.config[1], config1);
    assert_int_equal(event.config[2], config2);
}

static void assert_refused(const char *device, const char *terms, const char *part)
{
    struct pmu_event event;
    struct error *err = pmu_find(top, device, terms, &event);

    assert_non_null(err);
    if (!strstr(error_text(err), part))
        fail_msg("'%s' does not say '%s'", error_text(err), part);
    error_destroy(err);
}

TEST(terms)
{
    assert_event("event=0x3c,umask=1", 0x13c, 0, 0);
    assert_event("umask=255,event=60", 0xff3c, 0, 0);
    assert_event("event=0x3c,edge", 0x4003c, 0, 0);
    assert_event("event=0x3c,cmask=0x10,edge=0", 0x1000003c, 0, 0);
    assert_event("split=0xa5", 0, 0, UINT64_C(0xa00000005));
    assert_event("all=0xffffffffffffffff", 0, UINT64_MAX, 0);
    assert_event("config=0x1234,config1=5,config2=0xffffffffffffffff", 0x1234, 5, UINT64_MAX);
    assert_event("r1A8", 0x1a8, 0, 0);
    assert_event("event=1,event=2", 2, 0, 0); /* the last one holds */
}

TEST(events)
{
    assert_event("cpu-cycles", 0x3c, 0, 0);
    assert_event("mem-loads", 0x1cd, 3, 0);
    assert_event("mem-loads,ldlat=30", 0x1cd, 30, 0);
    assert_event("ldlat=30,mem-loads", 0x1cd, 30, 0);
    assert_event("slow,ldlat=7", 0xcd, 7, 0);
    assert_refused("cpu", "slow", "the event slow wants the term ldlat=NUMBER");
    assert_refused("cpu", "slow,ldlat=?", "the event slow wants the term ldlat=NUMBER");
}

TEST(refusals)
{
    assert_refused("cpu", "event=0x100", "event=0x100: it has 8 bits");
    assert_refused("cpu", "edge=2", "it has 1 bits");
    assert_refused("cpu", "event=abc", "that is no number");
    assert_refused("cpu", "event=-1", "that is no number");
    assert_refused("cpu", "event=0x", "that is no number");
    assert_refused("cpu", "event=99999999999999999999", "that is no number");
    assert_refused("cpu", "config=x", "that is no number");
    assert_refused("cpu", "wide=1", "perf_event_attr.config3");
    assert_refused("cpu", "odd=1", "not understood: 'attr:5'");
    assert_refused("cpu", "bogus=1", "'bogus' is neither a term nor an event of the PMU cpu; terms: all, cmask, edge, event,");
    assert_refused("cpu", "bogus", "events: cpu-cycles, mem-loads, slow");
    assert_refused("cpu", "../type=1", "neither a term nor an event");
    assert_refused("power", "energy-pkg", "takes no samples");
    assert_refused("broken", "event=1", "no PMU 'broken'");
    assert_refused("cpu_core", "event=1", "as in many virtual machines; it has broken, cpu, cpu_atom, power");
    assert_refused("nothing", "event=1", "this host has no PMU 'nothing'; it has broken, cpu, cpu_atom, power");
}

/* Files that no kernel writes. */
TEST(formats)
{
    static const char *const bad[] = {"", "config", "config:", "config:64", "config:5-", "config:5-4", "config:5,", "config:5,-",
                                      "config:-5", "config4:1", "config:5x", "config:999999999999999999999"};
    struct pmu_event event = {0};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error *err = pmu_put_bits(bad[i], 0, &event);
        if (!err)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(err->code, ERROR_FORMAT);
        error_destroy(err);
    }
    OK(pmu_put_bits("config:0-63,0-63", UINT64_MAX, &event)); /* more bits than a value has */
}

/* From the words of -e to what is opened. */
TEST(resolved)
{
    struct event_list events = {0};
    const struct event_places places = {.devices = top, .tracefs = -1};

    OK(event_list_add(&events, "cpu/mem-loads,period=1000/pp,cycles,cpu/event=0xcd,umask=2,ldlat=9/"));
    OK(event_list_complete(&events, 0, 0));
    OK(event_list_resolve(&events, &places));
    assert_int_equal(events.list[0].source->type, 4);
    assert_int_equal(events.list[0].source->config, 0x1cd);
    assert_int_equal(events.list[0].source->config1, 3);
    assert_int_equal(events.list[0].source->precise, 2);
    assert_int_equal(events.list[0].period, 1000);
    assert_int_equal(events.list[2].source->config, 0x2cd);
    assert_int_equal(events.list[2].source->config1, 9);
    assert_int_equal(events.list[2].frequency_hz, 99);
    event_list_deinit(&events);
    OK(event_list_add(&events, "power/energy-pkg/"));
    struct error *err = event_list_resolve(&events, &places);
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), "event power/energy-pkg/: the PMU power counts for a whole package"));
    error_destroy(err);
    event_list_deinit(&events);
}

/* CPUs of two kinds have a PMU each. */
TEST(some_cpus)
{
    static const int with[] = {1, 4, 5, 12, 13, 15}, without[] = {-1, 0, 2, 3, 6, 11, 16, 45};
    const struct event_places places = {.devices = top, .tracefs = -1};
    struct event_list events = {0};
    struct perf_events *opened;

    OK(event_list_add(&events, "cpu_atom/event=1/,cpu/event=1/,off-cpu"));
    OK(event_list_complete(&events, 0, 0));
    OK(event_list_resolve(&events, &places));
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        assert_true(event_counts_on(events.list[0].source, with[i]));
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        assert_false(event_counts_on(events.list[0].source, without[i]));
        assert_true(event_counts_on(events.list[1].source, without[i]));
        assert_false(event_counts_on(events.list[2].source, without[i]));
    }
    struct error *err = perf_events_open(&events, &without[1], 2, &opened); /* nothing is asked of the kernel */
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), "'cpu_atom/event=1/' is counted on the CPUs 1,4-5,12-15 alone"));
    error_destroy(err);
    event_list_deinit(&events);
}
