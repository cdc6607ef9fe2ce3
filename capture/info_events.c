/* SPDX-License-Identifier: Apache-2.0 */
/* The events of this host. Whether one can be sampled is tried; what a PMU's event or a tracepoint does is not. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/event_table.h"
#include "capture/event/pmu.h"
#include "capture/event/tracefs.h"
#include "capture/event/tracepoint.h"
#include "capture/info.h"
#include "capture/sampler/perf_events.h"
#include "formats/base/buf.h"
#include "formats/base/numbers.h"

/* NULL: the kernel has tracepoints of system calls, which memory-growth needs beside what sampling needs. */
static struct error *system_calls_try(void)
{
    struct tracepoint tracepoint;
    int tracefs;

    TRY(tracefs_open(&tracefs));
    struct error *err = tracepoint_find(tracefs, "syscalls", "sys_exit_mmap", NULL, &tracepoint);
    close(tracefs);
    return err;
}

/*
 * Whether an event can be sampled on a CPU. Those without a counter are not tried, but for what they need beside what
 * sampling needs. Nor can be said without the right to open them which ones there are: the kernel's own are.
 */
static bool opens(const struct event_source *source, int cpu)
{
    const struct event event = {.source = source, .period = 1000000000};
    struct error *why = event_has_counter(source)       ? perf_events_try(&event, cpu)
                        : source->kind == EVENT_GROWTH ? system_calls_try()
                                                       : NULL;
    bool opened = !why || (why->code == ERROR_PERMISSION && source->kind != EVENT_HARDWARE && source->kind != EVENT_GROWTH);

    error_destroy(why);
    return opened;
}

/* Events of caches are made up, as the list of events does it. */
static bool cache_event(size_t index, char name[40], struct event_source *out)
{
    if (!event_cache_name(index, name) || !event_cache_find(name, strlen(name), out))
        return false;
    out->name = name;
    return true;
}

/* Whether an event of a PMU, "msr/tsc/", can be sampled on a CPU. */
static bool pmu_event_opens(const char *text, int cpu)
{
    struct event_list events = {0};
    struct error *err = event_list_add(&events, text);

    if (!err)
        err = event_list_complete(&events, 0, 0);
    if (!err)
        err = event_list_resolve(&events, NULL);
    if (!err && events.list[0].source->cpus)
        cpu = atoi(events.list[0].source->cpus);
    if (!err)
        err = perf_events_try(&events.list[0], cpu);
    bool opened = !err;
    error_destroy(err);
    event_list_deinit(&events);
    return opened;
}

/* Calls `fn` for each of some names with commas between them. */
static void each_name(const struct buf *names, void (*fn)(const char *name, size_t len, void *ctx), void *ctx)
{
    const char *text = (const char *)names->data, *end = text + names->len_bytes;

    for (const char *comma; text && text < end; text = comma + 2) {
        comma = memchr(text, ',', (size_t)(end - text));
        comma = comma ? comma : end;
        fn(text, (size_t)(comma - text), ctx);
    }
}

/* ---- what kinds there are ---- */

static void put_name(struct buf *out, const char *name)
{
    buf_printf(out, "%s%s", out->len_bytes ? ", " : "", name);
}

static void print_table(int cpu, FILE *out)
{
    struct buf software = {0}, hardware = {0}, lacking = {0};
    unsigned caches = 0;
    char name[40];
    struct event_source cache;

    for (size_t i = 0; event_table_row(i); i++) {
        const struct event_source *row = event_table_row(i);
        bool is_hardware = row->kind == EVENT_HARDWARE, there = opens(row, cpu);
        put_name(is_hardware ? there ? &hardware : &lacking : &software, row->name);
        if (!is_hardware && !there)
            buf_put_str(&software, row->kind == EVENT_GROWTH ? " (not without tracepoints)" : " (not on this host)");
    }
    for (size_t i = 0; cache_event(i, name, &cache); i++)
        caches += opens(&cache, cpu);
    fprintf(out, "events          %s\n", buf_cstr(&software));
    if (hardware.len_bytes)
        fprintf(out, "counters        %s, and %u of caches\n", buf_cstr(&hardware), caches);
    if (!hardware.len_bytes)
        fprintf(out, "counters        none of the CPU's, as in many virtual machines: no cycles, no instructions\n");
    else if (lacking.len_bytes)
        fprintf(out, "                not on this host: %s\n", buf_cstr(&lacking));
    buf_deinit(&software);
    buf_deinit(&hardware);
    buf_deinit(&lacking);
}

struct pmus {
    const char *device;
    int cpu;
    unsigned events, sampled; /* of the device */
    struct buf text;
};

static void count_pmu_event(const char *event, size_t len, void *ctx)
{
    struct pmus *p = ctx;
    char name[600];

    snprintf(name, sizeof name, "%s/%.*s/", p->device, (int)len, event);
    p->events++;
    p->sampled += pmu_event_opens(name, p->cpu);
}

static void put_pmu(const char *device, size_t len, void *ctx)
{
    struct pmus *p = ctx;
    struct buf events = {0};
    char name[256];
    struct number n;

    snprintf(name, sizeof name, "%.*s", (int)len, device);
    p->device = name;
    p->events = p->sampled = 0;
    pmu_list_events(PMU_DEVICES, name, &events);
    each_name(&events, count_pmu_event, p);
    if (p->events) {
        put_name(&p->text, name);
        buf_printf(&p->text, " (%s%s)", counted(p->events, "event", "events", &n),
                   p->sampled ? "" : ", that can be counted but not sampled");
    }
    p->device = NULL;
    buf_deinit(&events);
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static struct error *read_tracepoints(char **names)
{
    int fd;

    TRY(tracefs_open(&fd));
    struct error *err = tracepoint_list(fd, names);
    close(fd);
    return err;
}

void info_print_events(const struct host *h, FILE *out)
{
    struct pmus pmus = {.cpu = h->cpu_count ? h->cpus[0] : -1};
    struct buf devices = {0};
    char *names = NULL;
    struct number n;

    if (!h->cpu_count)
        return;
    print_table(h->cpus[0], out);
    pmu_list_devices(PMU_DEVICES, &devices);
    each_name(&devices, put_pmu, &pmus);
    fprintf(out, "PMUs            %s\n", pmus.text.len_bytes ? buf_cstr(&pmus.text) : "none with events of their own");
    struct error *err = read_tracepoints(&names);
    if (err)
        fprintf(out, "tracepoints     no: %s\n", error_text(err));
    else
        fprintf(out, "tracepoints     %s; pycap info --events lists them\n", grouped(count_lines(names), &n));
    error_destroy(err);
    free(names);
    buf_deinit(&devices);
    buf_deinit(&pmus.text);
}

/* ---- by name ---- */

struct lister {
    const char *pattern, *device;
    int cpu;
    FILE *out;
    unsigned listed;
};

static void list_name(struct lister *l, const char *name)
{
    bool fits = !l->pattern || (strpbrk(l->pattern, "*?[") ? !fnmatch(l->pattern, name, 0) : strstr(name, l->pattern) != NULL);

    if (!fits)
        return;
    fprintf(l->out, "%s\n", name);
    l->listed++;
}

static void list_pmu_event(const char *event, size_t len, void *ctx)
{
    struct lister *l = ctx;
    char name[600];

    snprintf(name, sizeof name, "%s/%.*s/", l->device, (int)len, event);
    if (pmu_event_opens(name, l->cpu))
        list_name(l, name);
}

static void list_pmu(const char *device, size_t len, void *ctx)
{
    struct lister *l = ctx;
    struct buf events = {0};
    char name[256];

    snprintf(name, sizeof name, "%.*s", (int)len, device);
    l->device = name;
    pmu_list_events(PMU_DEVICES, name, &events);
    each_name(&events, list_pmu_event, l);
    l->device = NULL;
    buf_deinit(&events);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted: the kernel's own order is that of its start. */
static struct error *list_tracepoints(struct lister *l)
{
    char *names, *rest = NULL;
    size_t count = 0;

    TRY(read_tracepoints(&names));
    char **sorted = calloc(count_lines(names) + 1, sizeof *sorted);
    if (!sorted) {
        free(names);
        return error_no_memory();
    }
    for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest))
        sorted[count++] = name;
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count; i++)
        list_name(l, sorted[i]);
    free(sorted);
    free(names);
    return NULL;
}

struct error *info_list_events(const char *pattern, FILE *out)
{
    struct buf devices = {0};
    struct event_source cache;
    struct host host;
    char name[40];

    TRY(host_read(&host));
    struct lister l = {.pattern = pattern, .cpu = host.cpu_count ? host.cpus[0] : 0, .out = out};
    for (size_t i = 0; event_table_row(i); i++) {
        if (opens(event_table_row(i), l.cpu))
            list_name(&l, event_table_row(i)->name);
    }
    for (size_t i = 0; cache_event(i, name, &cache); i++) {
        if (opens(&cache, l.cpu))
            list_name(&l, name);
    }
    pmu_list_devices(PMU_DEVICES, &devices);
    each_name(&devices, list_pmu, &l);
    buf_deinit(&devices);
    host_deinit(&host);
    struct error *err = list_tracepoints(&l);
    if (!err && !l.listed)
        return error_create(ERROR_NOT_FOUND, "no event of this host fits '%s'", pattern);
    if (err && l.listed && pattern && !strchr(pattern, ':')) { /* no tracepoint was asked for */
        error_destroy(err);
        return NULL;
    }
    return err;
}
