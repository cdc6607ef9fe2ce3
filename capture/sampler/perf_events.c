/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, enables, disables and reads the perf events of a capture. */
#include "capture/sampler/perf_events.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct perf_events {
    struct event_list events;
    const int *cpus;
    uint32_t cpu_count;
    struct counter {
        int fd;             /* -1: not open, as the event has no counter, or none on this CPU */
        uint64_t due, from; /* ticks due before the last change of the period, and the count at that time */
        uint64_t last[3];   /* what was read last: the count, and the times that it was enabled and running */
    } counters[];           /* by event, then CPU */
};

static struct counter *counter_of(const struct perf_events *e, uint32_t event, uint32_t i)
{
    return (struct counter *)&e->counters[(size_t)event * e->cpu_count + i];
}

static int open_event(const struct perf_event_attr *attr, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Whether the event opens with another sampling rate; 0: without any. */
static bool opens_at(struct perf_event_attr attr, int cpu, uint64_t frequency_hz)
{
    attr.freq = frequency_hz != 0;
    attr.sample_freq = frequency_hz;
    int fd = open_event(&attr, cpu);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Why the kernel takes the event, but not its arguments. */
static struct error *refused_arguments(const struct event *event, const struct perf_event_attr *attr, int cpu)
{
    const char *name = event->source->name;
    char rate[64];

    if (event->frequency_hz > 1 && opens_at(*attr, cpu, 1))
        return error_create(ERROR_USAGE,
                            "the kernel does not sample at %" PRIu64 " Hz; the limit is in "
                            "/proc/sys/kernel/perf_event_max_sample_rate",
                            event->frequency_hz);
    if (opens_at(*attr, cpu, 0))
        return error_create(ERROR_UNSUPPORTED, "the event '%s' can be counted on this host, but not sampled; perf stat shows its "
                            "counts", name);
    return error_create(ERROR_USAGE, "the kernel refuses the event '%s' with a sample %s", name, event_rate_text(event, rate));
}

static struct error *refused(const struct event *event, const struct perf_event_attr *attr, int cpu, int error)
{
    const char *name = event->source->name;

    if (error == EOPNOTSUPP && event->source->precise)
        return error_create(ERROR_UNSUPPORTED, "this host's counters are not as precise as '%s' wants: leave out a p", name);
    if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
        if (event->source->kind == EVENT_HARDWARE)
            return error_create(ERROR_UNSUPPORTED, "this host has no hardware counter for '%s'; -e cpu-clock works everywhere",
                                name);
        return error_create(ERROR_UNSUPPORTED, "this kernel does not have the event '%s'", name);
    }
    if (error == EINVAL)
        return refused_arguments(event, attr, cpu);
    if (error == EMFILE)
        return error_create(ERROR_LIMIT,
                            "too many files for '%s': each event takes one on every CPU; raise ulimit -n, or name fewer "
                            "events or CPUs (-C)",
                            name);
    if (error == EBUSY)
        return error_os(error, "the counter for '%s' on CPU %d is taken by somebody else", name, cpu);
    return error_os(error, "the kernel cannot open the event '%s' on CPU %d", name, cpu);
}

static struct error *open_counter(const struct event *event, int cpu, int *fd)
{
    const uint32_t modifiers = event->source->modifiers;
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = event->source->type,
        .config = event->source->config,
        .config1 = event->source->config1,
        .config2 = event->source->config2,
        .exclude_user = (modifiers & EVENT_NO_USER) != 0,
        .exclude_kernel = (modifiers & EVENT_NO_KERNEL) != 0,
        .exclude_hv = (modifiers & EVENT_NO_HYPERVISOR) != 0,
        .exclude_guest = (modifiers & EVENT_NO_GUEST) != 0,
        .exclude_host = (modifiers & EVENT_NO_HOST) != 0,
        .exclude_idle = (modifiers & EVENT_NO_IDLE) != 0,
        .pinned = (modifiers & EVENT_PINNED) != 0,
        .precise_ip = event->source->precise & 3,
        /* Precise events have to bring their call chain for a program that asks for stacks (since Linux 5.9). */
        .sample_type = event->source->precise ? PERF_SAMPLE_CALLCHAIN : 0,
        .freq = event->frequency_hz != 0,
        .disabled = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };

    if (event->frequency_hz)
        attr.sample_freq = event->frequency_hz;
    else
        attr.sample_period = event->period;
    *fd = open_event(&attr, cpu);
    return *fd < 0 ? refused(event, &attr, cpu, errno) : NULL;
}

struct error *perf_events_try(const struct event *event, int cpu)
{
    int fd;

    TRY(open_counter(event, cpu, &fd));
    close(fd);
    return NULL;
}

/* Opens the counters of one event; `counters` are by CPU. */
static struct error *open_counters(const struct event *event, const int *cpus, uint32_t cpu_count, struct counter *counters)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < cpu_count; i++) {
        if (!event_counts_on(event->source, cpus[i]))
            continue;
        TRY(open_counter(event, cpus[i], &counters[i].fd));
        open++;
    }
    if (!open && event_has_counter(event->source))
        return error_create(ERROR_USAGE, "the event '%s' is counted on the CPUs %s alone, and none of them is to be sampled",
                            event->source->name, event->source->cpus);
    return NULL;
}

struct error *perf_events_open(const struct event_list *events, const int *cpus, uint32_t cpu_count,
                               struct perf_events **out)
{
    uint32_t count = events->count * cpu_count;
    struct perf_events *e = calloc(1, sizeof *e + count * sizeof *e->counters);
    struct error *err = NULL;

    if (!e)
        return error_no_memory();
    e->events = *events;
    e->cpus = cpus;
    e->cpu_count = cpu_count;
    for (uint32_t k = 0; k < count; k++)
        e->counters[k].fd = -1;
    for (uint32_t i = 0; !err && i < events->count; i++)
        err = open_counters(&events->list[i], cpus, cpu_count, counter_of(e, i, 0));
    if (err) {
        perf_events_close(e);
        return err;
    }
    *out = e;
    return NULL;
}

void perf_events_close(struct perf_events *e)
{
    if (!e)
        return;
    for (uint32_t k = 0; k < e->events.count * e->cpu_count; k++) {
        if (e->counters[k].fd >= 0)
            close(e->counters[k].fd);
    }
    free(e);
}

int perf_events_fd(const struct perf_events *e, uint32_t event, uint32_t i)
{
    return counter_of(e, event, i)->fd;
}

struct error *perf_events_id(const struct perf_events *e, uint32_t event, uint32_t i, uint64_t *id)
{
    if (ioctl(perf_events_fd(e, event, i), PERF_EVENT_IOC_ID, id))
        return error_os(errno, "the kernel reports no id for the event on CPU %d", e->cpus[i]);
    return NULL;
}

static struct error *control(struct perf_events *e, unsigned long request)
{
    for (uint32_t k = 0; k < e->events.count * e->cpu_count; k++) {
        if (e->counters[k].fd >= 0 && ioctl(e->counters[k].fd, request, 0))
            return error_os(errno, "the event on CPU %d cannot be enabled or disabled", e->cpus[k % e->cpu_count]);
    }
    return NULL;
}

/* The kernel gives a pinned counter up where it finds no room for it; then there is nothing to read, not even zeros. */
static struct error *check_pinned(const struct perf_events *e, uint32_t event)
{
    uint64_t values[3];

    for (uint32_t i = 0; e->events.list[event].source->modifiers & EVENT_PINNED && i < e->cpu_count; i++) {
        const struct counter *c = counter_of(e, event, i);
        if (c->fd >= 0 && read(c->fd, values, sizeof values) == 0)
            return error_create(ERROR_UNSUPPORTED, "event %s: its counter cannot stay on CPU %d, since others have those of the "
                                "hardware; without the modifier D it takes turns with them", e->events.list[event].source->name,
                                e->cpus[i]);
    }
    return NULL;
}

struct error *perf_events_enable(struct perf_events *e)
{
    TRY(control(e, PERF_EVENT_IOC_ENABLE));
    for (uint32_t event = 0; event < e->events.count; event++)
        TRY(check_pinned(e, event));
    return NULL;
}

struct error *perf_events_disable(struct perf_events *e)
{
    return control(e, PERF_EVENT_IOC_DISABLE);
}

const struct event_list *perf_events_list(const struct perf_events *e)
{
    return &e->events;
}

struct error *perf_events_read(struct perf_events *e, uint32_t event, uint32_t i, struct perf_event_count *out)
{
    const struct event *of = &e->events.list[event];
    struct counter *c = counter_of(e, event, i);
    uint64_t values[3];

    *out = (struct perf_event_count){0};
    if (c->fd < 0)
        return NULL;
    ssize_t got = read(c->fd, values, sizeof values);
    if (got == sizeof values)
        memcpy(c->last, values, sizeof values);
    else if (got) /* 0: a pinned counter that lost its place, and counts no more */
        return error_os(errno, "the event on CPU %d cannot be read", e->cpus[i]);
    *out = (struct perf_event_count){.count = c->last[0], .enabled_ns = c->last[1], .running_ns = c->last[2]};
    if ((of->period || of->source->kind == EVENT_CLOCK) && event_ticks_all(of->source))
        out->due = c->due + (c->last[0] - c->from) / event_period(of);
    return NULL;
}

struct error *perf_events_change(struct perf_events *e, uint32_t event, const struct event *to)
{
    /* The kernel converts a clock's frequency to a period when it opens the event; later changes must give a period. */
    uint64_t value = to->frequency_hz && to->source->kind == EVENT_HARDWARE ? to->frequency_hz : event_period(to);

    for (uint32_t i = 0; i < e->cpu_count; i++) {
        struct counter *c = counter_of(e, event, i);
        struct perf_event_count now;
        if (c->fd < 0)
            continue;
        TRY(perf_events_read(e, event, i, &now));
        c->due = now.due;
        c->from = now.count;
        if (ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &value))
            return error_os(errno, "the rate on CPU %d cannot be changed", e->cpus[i]);
    }
    e->events.list[event] = *to;
    return NULL;
}
