/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the BPF skeleton, attaches it to the events on each CPU, and reads its maps. */
#include "capture/sampler/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/sampler.skel.h"
#include "capture/host/host.h"
#include "capture/binary/tables.h"
#include "capture/sampler/load_error.h"
#include "capture/sampler/perf_events.h"
#include "capture/sampler/preempt_count.h"
#include "capture/sampler/process_map.h"
#include "capture/sampler/ring_size.h"
#include "capture/sampler/shared_array.h"
#include "capture/sampler/switch_tracepoint.h"
#include "formats/base/clock.h"

/* Threads whose waits are recorded, and call sites that are remembered, at once. */
#define WAIT_THREADS 16384
#define WAIT_SITES 65536
#define GILS 4096 /* locks of interpreters */
static_assert(WAIT_THREADS - 1 <= WIRE_GIL_WAITERS_MAX, "all but one may wait for a lock");

struct sampler {
    struct sampler_options options;
    struct sampler_bpf *skel;
    struct ring_buffer *ring;
    int wake_fd;            /* becomes readable when the ring fills up */
    struct perf_events *events;
    struct bpf_link **links; /* by event, then CPU */
    int possible_cpus;
    uint32_t layout_count;
    struct py_layout layouts[64];
    uint64_t *per_cpu;      /* buffer for all loss counters, of all possible CPUs */
    uint32_t ring_bytes;
    struct shared_array rows, index, wide, modules, mappings;
    struct process_map processes;
    /* during a drain */
    sampler_fn fn;
    void *ctx;
    struct error *err;
    uint64_t drained_bytes;
};

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    (void)level;
    if (getenv("PYCAP_LIBBPF_DEBUG") || getenv("PYCAP_VERIFIER_STATS"))
        return vfprintf(stderr, fmt, ap);
    return 0;
}

/* Divides the memory for unwinding among the arrays. Real files need one index entry for every four rows. */
static int size_tables(struct sampler *s)
{
    uint64_t bytes = s->options.table_bytes ? s->options.table_bytes : 64u << 20;

    if (s->options.native != WIRE_NATIVE_TABLES) {
        s->rows.count = s->index.count = s->wide.count = s->modules.count = s->mappings.count = 1;
    } else {
        s->rows.count = (uint32_t)(bytes * 3 / 4 / sizeof(struct unwind_row));
        s->index.count = (uint32_t)(bytes / 4 / sizeof(uint64_t));
        s->wide.count = 65536;
        s->modules.count = 16384;
        s->mappings.count = 262144; /* as many as QUOTA_places allows for all (capture/host/quotas.def) */
    }
    int e = bpf_map__set_max_entries(s->skel->maps.unwind_rows, s->rows.count);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.unwind_index, s->index.count);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.unwind_wide_rows, s->wide.count);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.modules, s->modules.count);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.mappings, s->mappings.count);
    return e;
}

struct error *sampler_map_pages(void *ctx, const void *start, size_t len_bytes)
{
    struct sampler *s = ctx;
    struct shared_array *all[] = {&s->rows, &s->index, &s->wide, &s->modules, &s->mappings};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint8_t *data = all[i]->data;
        if ((const uint8_t *)start >= data && (const uint8_t *)start + len_bytes <= data + all[i]->len_bytes)
            return shared_array_map(all[i], (size_t)((const uint8_t *)start - data), len_bytes);
    }
    return error_create(ERROR_LIMIT, "memory outside the sampler's arrays was requested");
}

static struct error *map_arrays(struct sampler *s)
{
    if (s->options.native != WIRE_NATIVE_TABLES)
        return NULL;
    TRY(shared_array_reserve(&s->rows, bpf_map__fd(s->skel->maps.unwind_rows), sizeof(struct unwind_row)));
    TRY(shared_array_reserve(&s->index, bpf_map__fd(s->skel->maps.unwind_index), sizeof(uint64_t)));
    TRY(shared_array_reserve(&s->wide, bpf_map__fd(s->skel->maps.unwind_wide_rows), sizeof(struct unwind_wide)));
    TRY(shared_array_reserve(&s->modules, bpf_map__fd(s->skel->maps.modules), sizeof(struct wire_module)));
    TRY(shared_array_reserve(&s->mappings, bpf_map__fd(s->skel->maps.mappings), sizeof(struct wire_mapping)));
    return shared_array_map(&s->modules, 0, s->modules.len_bytes);
}

void sampler_tables(struct sampler *s, struct tables_memory *memory)
{
    *memory = (struct tables_memory){
        .rows = (void *)s->rows.data,
        .index = (void *)s->index.data,
        .wide = (void *)s->wide.data,
        .modules = (void *)s->modules.data,
        .map_pages = sampler_map_pages,
        .ctx = s,
        .row_count = s->rows.count,
        .index_count = s->index.count,
        .wide_count = s->wide.count,
        .module_count = s->modules.count,
    };
}

struct wire_mapping *sampler_mappings(const struct sampler *s, uint32_t *count)
{
    *count = s->mappings.count;
    return (void *)s->mappings.data;
}

/* The program and the maps that waits need, only where waits are recorded. */
static struct error *set_up_waits(struct sampler *s)
{
    uint32_t event = event_list_wait(&s->options.events);
    bool has_state;

    bpf_program__set_autoload(s->skel->progs.switched, event != EVENT_NONE);
    bpf_program__set_autoload(s->skel->progs.executed, event != EVENT_NONE);
    bpf_program__set_autoload(s->skel->progs.waking, event != EVENT_NONE && s->options.wakers);
    bpf_program__set_autoload(s->skel->progs.sleeping, event != EVENT_NONE);
    if (event == EVENT_NONE)
        return NULL;
    TRY(switch_tracepoint_check(&has_state));
    if (s->options.wakers)
        TRY(preempt_count_find(&s->skel->rodata->preempt_count_from_queue));
    s->skel->rodata->wait_event = event;
    s->skel->rodata->wait_recorded = 1;
    s->skel->rodata->wait_has_state = has_state;
    s->skel->rodata->wait_ring_bytes = s->ring_bytes;
    s->skel->bss->sample_periods[event] = s->options.events.list[event].period;
    if (bpf_map__set_max_entries(s->skel->maps.waits, WAIT_THREADS) ||
        bpf_map__set_max_entries(s->skel->maps.sleep_notes, WAIT_THREADS) ||
        bpf_map__set_max_entries(s->skel->maps.wait_sites, WAIT_SITES) || bpf_map__set_max_entries(s->skel->maps.gils, GILS))
        return error_os(errno, "the tables for waits cannot be made");
    return NULL;
}

static struct error *load(struct sampler *s)
{
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

    libbpf_set_print(quiet);
    /* Before 5.11 the kernel charges maps to RLIMIT_MEMLOCK. Newer kernels ignore it. */
    setrlimit(RLIMIT_MEMLOCK, &unlimited);
    s->possible_cpus = libbpf_num_possible_cpus();
    if (s->possible_cpus < 1)
        return error_create(ERROR_UNSUPPORTED, "the number of CPUs cannot be read");
    s->per_cpu = calloc((size_t)s->possible_cpus * WIRE_LOSS_COUNT, sizeof *s->per_cpu);
    s->skel = sampler_bpf__open();
    if (!s->per_cpu || !s->skel)
        return error_no_memory();
    const struct sampler_options *o = &s->options;
    s->ring_bytes = o->ring_bytes ? o->ring_bytes
                                  : ring_size_bytes(&o->events, o->cpu_count, o->every_stack ? o->stack_bytes : 0);
    s->skel->rodata->sample_native_stack_bytes = s->options.stack_bytes;
    s->skel->rodata->sample_wake_bytes = s->ring_bytes / 4;
    s->skel->rodata->code_most_bytes = s->ring_bytes / 2;
    s->skel->rodata->sample_whole_bytes = s->ring_bytes / 2;
    s->skel->rodata->sample_every_stack = s->options.every_stack;
    s->skel->rodata->sample_native = s->options.native;
    s->skel->rodata->sample_unconfigured = s->options.unconfigured;
    s->skel->rodata->sample_timed = s->options.timed;
    s->skel->rodata->sample_kernel = s->options.kernel;
    s->skel->rodata->sample_python = s->options.python;
    s->skel->rodata->sample_event_count = s->options.events.count;
    TRY(set_up_waits(s));
    int e = bpf_map__set_max_entries(s->skel->maps.ring, s->ring_bytes);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.event_numbers, s->options.events.count * s->options.cpu_count);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.scratches, (uint32_t)s->possible_cpus);
    if (!e)
        e = size_tables(s);
    /* The verifier reports instructions and time for each program in libbpf's messages (BPF_LOG_STATS, since 5.2). */
    if (getenv("PYCAP_VERIFIER_STATS")) {
        struct bpf_program *program;
        bpf_object__for_each_program(program, s->skel->obj)
            bpf_program__set_log_level(program, 4);
    }
    if (!e)
        e = sampler_bpf__load(s->skel);
    if (e)
        return load_error(s->skel->obj, -e);
    s->processes = (struct process_map){bpf_map__fd(s->skel->maps.processes), s->skel->bss->followed};
    return map_arrays(s);
}

static int on_message(void *ctx, void *data, size_t len)
{
    struct sampler *s = ctx;

    s->err = s->fn(s->ctx, data, (uint32_t)len);
    s->drained_bytes += len + BPF_RINGBUF_HDR_SZ;
    return s->err || s->drained_bytes >= s->ring_bytes ? -ECANCELED : 0;
}

/* Makes the sampler run at each tick of an event on one CPU. With several events, tells it which event that is. */
static struct error *attach(struct sampler *s, uint32_t event, uint32_t i)
{
    struct bpf_link **link = &s->links[event * s->options.cpu_count + i];
    int fd = perf_events_fd(s->events, event, i);

    if (s->options.events.count > 1) {
        uint64_t id;
        TRY(perf_events_id(s->events, event, i, &id));
        if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.event_numbers), &id, &event, BPF_ANY))
            return error_os(errno, "the sampler cannot be told which event it runs for");
    }
    *link = bpf_program__attach_perf_event(s->skel->progs.sample, fd);
    if (!*link)
        return error_os(errno, "the sampler cannot be attached on CPU %d", s->options.cpus[i]);
    perf_events_disown(s->events, event, i); /* the link closes it */
    return NULL;
}

static struct error *open_ring(struct sampler *s)
{
    /* Edge-triggered: reports only wake-ups, not that the ring holds something. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};

    s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), on_message, s, NULL);
    s->wake_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!s->ring || s->wake_fd < 0 || epoll_ctl(s->wake_fd, EPOLL_CTL_ADD, bpf_map__fd(s->skel->maps.ring), &event))
        return error_os(errno, "the ring buffer cannot be mapped");
    return NULL;
}

static struct error *attached(const struct bpf_link *link, const char *what)
{
    return link ? NULL : error_os(errno, "%s cannot be followed", what);
}

static struct error *open_events(struct sampler *s)
{
    const struct sampler_options *o = &s->options;

    s->links = calloc((size_t)o->events.count * o->cpu_count, sizeof *s->links);
    if (!s->links)
        return error_no_memory();
    TRY(perf_events_open(&o->events, o->cpus, o->cpu_count, &s->events));
    for (uint32_t event = 0; event < o->events.count; event++) {
        for (uint32_t i = 0; i < o->cpu_count && event != event_list_wait(&o->events); i++)
            TRY(attach(s, event, i));
    }
    if (event_list_wait(&o->events) != EVENT_NONE) {
        TRY(attached(s->skel->links.switched = bpf_program__attach(s->skel->progs.switched), "switches between threads"));
        TRY(attached(s->skel->links.executed = bpf_program__attach(s->skel->progs.executed), "programs that threads execute"));
        if (o->wakers)
            TRY(attached(s->skel->links.waking = bpf_program__attach(s->skel->progs.waking), "wake-ups"));
        TRY(attached(s->skel->links.sleeping = bpf_program__attach_iter(s->skel->progs.sleeping, NULL), "threads that sleep"));
    }
    TRY(perf_events_disable(s->events)); /* attaching enables them */
    return attached(s->skel->links.forked = bpf_program__attach(s->skel->progs.forked), "forks");
}

struct error *sampler_open(const struct sampler_options *options, struct sampler **out)
{
    struct sampler *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    *s = (struct sampler){.options = *options, .wake_fd = -1};
    struct error *err = load(s);
    if (!err)
        err = open_ring(s);
    if (!err)
        err = open_events(s);
    if (err) {
        sampler_close(s);
        return err;
    }
    *out = s;
    return NULL;
}

void sampler_close(struct sampler *s)
{
    if (!s)
        return;
    perf_events_close(s->events);
    for (uint32_t i = 0; s->links && i < s->options.events.count * s->options.cpu_count; i++)
        bpf_link__destroy(s->links[i]);
    shared_array_deinit(&s->rows);
    shared_array_deinit(&s->index);
    shared_array_deinit(&s->wide);
    shared_array_deinit(&s->modules);
    shared_array_deinit(&s->mappings);
    ring_buffer__free(s->ring);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    sampler_bpf__destroy(s->skel);
    free(s->links);
    free(s->per_cpu);
    free(s);
}

struct error *sampler_enable(struct sampler *s)
{
    s->skel->bss->wait_enabled = 1;
    return perf_events_enable(s->events);
}

struct error *sampler_disable(struct sampler *s)
{
    bpf_link__destroy(s->skel->links.switched);
    bpf_link__destroy(s->skel->links.waking);
    s->skel->links.switched = s->skel->links.waking = NULL;
    return perf_events_disable(s->events);
}

struct error *sampler_layout(struct sampler *s, const struct py_layout *layout, uint32_t *index)
{
    for (uint32_t i = 0; i < s->layout_count; i++) {
        if (!memcmp(&s->layouts[i], layout, sizeof *layout)) {
            *index = i;
            return NULL;
        }
    }
    if (s->layout_count == sizeof s->layouts / sizeof *s->layouts)
        return error_create(ERROR_LIMIT, "more than %u kinds of CPython interpreters run on this host", s->layout_count);
    uint32_t i = s->layout_count;
    if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.layouts), &i, layout, BPF_ANY))
        return error_os(errno, "a layout of CPython objects cannot be stored in the sampler");
    s->layouts[i] = *layout;
    s->layout_count++;
    *index = i;
    return NULL;
}

struct error *sampler_set_process(struct sampler *s, uint32_t tgid, const struct wire_process *process)
{
    return process_map_set(&s->processes, tgid, process);
}

bool sampler_get_process(struct sampler *s, uint32_t tgid, struct wire_process *process)
{
    return process_map_get(&s->processes, tgid, process);
}

void sampler_remove_process(struct sampler *s, uint32_t tgid)
{
    struct wire_process process;

    if (sampler_get_process(s, tgid, &process) && process.gils)
        wait_maps_forget_gils(bpf_map__fd(s->skel->maps.gils), tgid);
    process_map_remove(&s->processes, tgid);
}

void sampler_prune(struct sampler *s, bool (*wanted)(void *ctx, uint32_t tgid), void *ctx)
{
    process_map_prune(&s->processes, wanted, ctx);
}

uint64_t sampler_late_ticks(struct sampler *s, uint32_t tgid, uint64_t since_ns)
{
    int map = bpf_map__fd(s->skel->maps.unknown);
    struct wire_unknown known;

    if (bpf_map_lookup_elem(map, &tgid, &known) || known.first_ns < since_ns)
        return 0;
    bpf_map_delete_elem(map, &tgid);
    return known.ticks;
}

uint64_t sampler_most_ticks(const struct sampler *s, uint64_t time_ns)
{
    const struct event_list *events = perf_events_list(s->events);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < events->count; i++) {
        if (events->list[i].source->kind == EVENT_WAIT)
            continue;
        if (events->list[i].source->kind != EVENT_CLOCK)
            return UINT64_MAX;
        sum += (time_ns / event_period(&events->list[i]) + 1) * s->options.cpu_count;
    }
    return sum;
}

struct error *sampler_drain(struct sampler *s, sampler_fn fn, void *ctx)
{
    s->fn = fn;
    s->ctx = ctx;
    s->err = NULL;
    s->drained_bytes = 0;
    struct epoll_event event;
    (void)epoll_wait(s->wake_fd, &event, 1, 0); /* resets the wake-up */
    int n = ring_buffer__consume(s->ring);
    if (s->err)
        return s->err;
    return n < 0 && n != -ECANCELED ? error_os(-n, "the ring buffer cannot be read") : NULL;
}

uint32_t sampler_ring_bytes(const struct sampler *s)
{
    return s->ring_bytes;
}

int sampler_wake_fd(const struct sampler *s)
{
    return s->wake_fd;
}

static uint64_t sum_of(struct sampler *s, int map, uint32_t key)
{
    uint64_t sum = 0;

    if (bpf_map_lookup_elem(map, &key, s->per_cpu))
        return 0;
    for (int i = 0; i < s->possible_cpus; i++)
        sum += s->per_cpu[i];
    return sum;
}

/* Reads all values with one batch call, which works for a per-CPU array since 5.13. */
static bool sum_all(struct sampler *s, int map, uint64_t *sums, uint32_t want)
{
    uint32_t keys[want], batch, count = want;

    if (bpf_map_lookup_batch(map, NULL, &batch, keys, s->per_cpu, &count, NULL) || count != want)
        return false;
    for (uint32_t i = 0; i < want; i++) {
        sums[keys[i]] = 0;
        for (int k = 0; k < s->possible_cpus; k++)
            sums[keys[i]] += s->per_cpu[i * (uint32_t)s->possible_cpus + (uint32_t)k];
    }
    return true;
}

void sampler_losses(struct sampler *s, uint64_t losses[WIRE_LOSS_COUNT])
{
    if (sum_all(s, bpf_map__fd(s->skel->maps.losses), losses, WIRE_LOSS_COUNT))
        return;
    for (uint32_t i = 0; i < WIRE_LOSS_COUNT; i++)
        losses[i] = sum_of(s, bpf_map__fd(s->skel->maps.losses), i);
}

void sampler_event_losses(struct sampler *s, uint32_t event, uint64_t losses[LOSS_LIMIT])
{
    uint64_t stats[WIRE_EVENT_STAT_COUNT];

    sampler_event_stats(s, event, stats);
    losses[LOSS_nested] += stats[WIRE_EVENT_NESTED];
    losses[LOSS_ring_full] += stats[WIRE_EVENT_RING_FULL];
}

/* Reads the counters of an event, by CPU; valid until the next call. */
static const struct wire_event_stats *by_cpu(struct sampler *s, uint32_t event)
{
    static_assert(sizeof(struct wire_event_stats) <= WIRE_LOSS_COUNT * sizeof(uint64_t), "there is room in per_cpu");

    if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.event_stats), &event, s->per_cpu))
        memset(s->per_cpu, 0, (size_t)s->possible_cpus * sizeof(struct wire_event_stats));
    return (const struct wire_event_stats *)s->per_cpu;
}

void sampler_event_stats(struct sampler *s, uint32_t event, uint64_t stats[WIRE_EVENT_STAT_COUNT])
{
    const struct wire_event_stats *cpus = by_cpu(s, event);

    memset(stats, 0, WIRE_EVENT_STAT_COUNT * sizeof *stats);
    for (int cpu = 0; cpu < s->possible_cpus; cpu++) {
        for (uint32_t i = 0; i < WIRE_EVENT_STAT_COUNT; i++)
            stats[i] += cpus[cpu].count[i];
    }
}

struct error *sampler_ticks(struct sampler *s, uint32_t event, struct sampler_ticks *ticks)
{
    uint32_t count = s->options.cpu_count;

    /* Read the ticks that were due first: a tick that comes meanwhile is then seen but not due, and never looks skipped. */
    for (uint32_t i = 0; i < count; i++) {
        ticks[i] = (struct sampler_ticks){.cpu = s->options.cpus[i]};
        TRY(perf_events_read(s->events, event, i, &ticks[i].event));
    }
    const struct wire_event_stats *cpus = by_cpu(s, event);
    for (uint32_t i = 0; i < count; i++) {
        if (ticks[i].cpu >= s->possible_cpus)
            continue;
        const uint64_t *seen = cpus[ticks[i].cpu].count;
        ticks[i].seen = seen[WIRE_EVENT_TICKS];
        ticks[i].seen_idle = seen[WIRE_EVENT_IDLE];
        ticks[i].seen_others = seen[WIRE_EVENT_OTHERS];
        ticks[i].thinned = seen[WIRE_EVENT_THINNED];
    }
    return NULL;
}

void sampler_run_time(struct sampler *s, uint64_t *run_ns, uint64_t *run_count)
{
    struct bpf_prog_info info = {0};
    uint32_t len = sizeof info;

    *run_ns = *run_count = 0;
    if (!bpf_obj_get_info_by_fd(bpf_program__fd(s->skel->progs.sample), &info, &len)) {
        *run_ns = info.run_time_ns;
        *run_count = info.run_cnt;
    }
}

void sampler_cpu_time(struct sampler *s, uint64_t *cpu_ns, uint64_t *look_ns)
{
    int map = bpf_map__fd(s->skel->maps.stats);

    *look_ns = s->options.timed ? sum_of(s, map, WIRE_STAT_LOOK_NS) : 0;
    *cpu_ns = s->options.timed ? sum_of(s, map, WIRE_STAT_CPU_NS) + *look_ns : 0;
}

struct error *sampler_threads(struct sampler *s, wait_thread_fn fn, void *ctx)
{
    return wait_maps_threads(bpf_map__fd(s->skel->maps.waits), fn, ctx);
}

struct error *sampler_ended_threads(struct sampler *s, wait_thread_fn fn, void *ctx)
{
    return wait_maps_take_ended(bpf_map__fd(s->skel->maps.waits), &s->skel->bss->wait_left, s->skel->bss->followed, fn, ctx);
}

struct error *sampler_owed(struct sampler *s, wait_site_fn fn, void *ctx)
{
    return wait_maps_owed(bpf_map__fd(s->skel->maps.waits), bpf_map__fd(s->skel->maps.wait_sites), fn, ctx);
}

uint64_t sampler_blame(struct sampler *s, uint32_t tid, uint64_t out_ns, uint64_t time_ns)
{
    return wait_maps_blame(bpf_map__fd(s->skel->maps.waits), bpf_map__fd(s->skel->maps.gils), tid, out_ns, time_ns);
}

bool sampler_get_thread(const struct sampler *s, uint32_t tid, struct wire_thread *thread)
{
    return !bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.waits), &tid, thread);
}

struct error *sampler_sleepers(struct sampler *s, uint64_t noted_ns, uint64_t stackless_ns, wait_message_fn fn, void *ctx)
{
    if (!s->skel->links.sleeping)
        return NULL;
    s->skel->bss->sleep_noted_ns = noted_ns;
    s->skel->bss->sleep_stackless_ns = stackless_ns;
    return wait_maps_pass(bpf_link__fd(s->skel->links.sleeping), fn, ctx);
}

void sampler_forget_codes(struct sampler *s)
{
    s->skel->bss->code_generation++;
}

struct error *sampler_change_event(struct sampler *s, uint32_t event, const struct event *to)
{
    /* Older samples are in the ring by now. At most one sample per CPU carries the new period but came by the old one. */
    if (to->source->kind == EVENT_CLOCK || to->source->kind == EVENT_WAIT)
        s->skel->bss->sample_periods[event] = event_period(to);
    return perf_events_change(s->events, event, to);
}

int sampler_map_fd(const struct sampler *s)
{
    return bpf_map__fd(s->skel->maps.processes);
}
