/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches the BPF programs to the events on each CPU, configures them for processes, and drains the rings. */
#include "capture/sampler/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bpf/sampler.skel.h"
#include "capture/binary/tables.h"
#include "capture/sampler/sampler_state.h"
#include "capture/sampler/tracepoint_attach.h"
#include "formats/base/clock.h"

struct error *sampler_map_pages(void *ctx, const void *start, size_t len_bytes)
{
    struct sampler *s = ctx;
    const uint8_t *from = start, *data = s->mappings.data;

    if (from < data || from + len_bytes > data + s->mappings.len_bytes)
        return error_create(ERROR_LIMIT, "memory outside the array of mappings was requested");
    return shared_array_map(&s->mappings, (size_t)(from - data), len_bytes);
}

void sampler_tables(struct sampler *s, struct tables_memory *memory)
{
    *memory = (struct tables_memory){
        .words = {.words = s->tables.words,
                  .count = s->tables.count * WIRE_CHUNK_WORDS,
                  .max = s->tables.max * WIRE_CHUNK_WORDS,
                  .grow = table_chunks_grow,
                  .map = table_chunks_map,
                  .ctx = &s->tables},
        .modules = (void *)s->modules.data,
        .module_count = s->modules.count,
        .generation = (uint32_t *)&s->skel->bss->rows_generation,
        .changes = (uint32_t *)&s->skel->bss->tables_changes,
    };
}

struct wire_mapping *sampler_mappings(const struct sampler *s, uint32_t *count)
{
    *count = s->mappings.count;
    return (void *)s->mappings.data;
}

/* Makes the sampler run at each tick of an event on one CPU. With several events, tells it which event that is. */
static struct error *attach(struct sampler *s, uint32_t event, uint32_t i)
{
    int fd = perf_events_fd(s->events, event, i);

    if (s->options.events.count > 1) {
        uint64_t id;
        TRY(perf_events_id(s->events, event, i, &id));
        if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.event_numbers), &id, &event, BPF_ANY))
            return error_os(errno, "the sampler cannot be told which event it runs for");
    }
    /* libbpf would enable the event, too: ticks would come before it is known of anybody what to sample. */
    if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(s->skel->progs.sample)))
        return error_os(errno, "the sampler cannot be attached on CPU %d", s->options.cpus[i]);
    return NULL;
}

static struct error *open_rings(struct sampler *s)
{
    return rings_open(&s->rings, bpf_map__fd(s->skel->maps.ring), s->ring_sizes.count > 1 ? bpf_map__fd(s->skel->maps.rings) : -1,
                      s->ring_sizes.count, s->ring_sizes.bytes);
}

static struct error *attached(const struct bpf_link *link, const char *what)
{
    return link ? NULL : error_os(errno, "%s cannot be followed", what);
}

/* Has the programs run at the hits of the events that are tracepoints. */
static struct error *attach_hits(struct sampler *s)
{
    for (uint32_t i = 0; i < s->options.events.count; i++) {
        const struct event_source *source = s->options.events.list[i].source;
        if (source->kind == EVENT_TRACEPOINT)
            TRY(tracepoint_attach(sampler_hit_program(s, i), source->tracepoint.id, source->name, s->options.cpus[0],
                                  &s->hit_links[i]));
    }
    return NULL;
}

static struct error *open_events(struct sampler *s)
{
    const struct sampler_options *o = &s->options;

    TRY(perf_events_open(&o->events, o->cpus, o->cpu_count, &s->events));
    for (uint32_t event = 0; event < o->events.count; event++) {
        for (uint32_t i = 0; i < o->cpu_count; i++) {
            if (perf_events_fd(s->events, event, i) >= 0)
                TRY(attach(s, event, i));
        }
    }
    if (event_list_wait(&o->events) != EVENT_NONE) {
        TRY(attached(s->skel->links.switched = bpf_program__attach(s->skel->progs.switched), "switches between threads"));
        TRY(attached(s->skel->links.executed = bpf_program__attach(s->skel->progs.executed), "programs that threads execute"));
        if (o->wakers)
            TRY(attached(s->skel->links.waking = bpf_program__attach(s->skel->progs.waking), "wake-ups"));
        TRY(attached(s->skel->links.sleeping = bpf_program__attach_iter(s->skel->progs.sleeping, NULL), "threads that sleep"));
    }
    if (o->queued)
        TRY(attached(s->skel->links.queueing = bpf_program__attach_iter(s->skel->progs.queueing, NULL), "threads that wait for a CPU"));
    TRY(attach_hits(s));
    if (event_list_first(&o->events, EVENT_GROWTH) != EVENT_NONE)
        TRY(sampler_growth_attach(s));
    TRY(attached(s->skel->links.began = bpf_program__attach(s->skel->progs.began), "programs that begin"));
    return attached(s->skel->links.forked = bpf_program__attach(s->skel->progs.forked), "forks");
}

struct error *sampler_open(const struct sampler_options *options, struct sampler **out)
{
    struct sampler *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    s->options = *options;
    struct error *err = sampler_load(s);
    if (!err)
        err = open_rings(s);
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
    sampler_growth_detach(s);
    perf_events_close(s->events);
    for (uint32_t i = 0; i < WIRE_EVENT_MAX; i++)
        bpf_link__destroy(s->hit_links[i]);
    table_chunks_deinit(&s->tables);
    shared_array_deinit(&s->modules);
    shared_array_deinit(&s->mappings);
    rings_close(&s->rings);
    sampler_bpf__destroy(s->skel);
    free(s->per_cpu);
    free(s);
}

struct error *sampler_enable(struct sampler *s)
{
    for (uint32_t i = 0; i < s->options.events.count; i++)
        s->hits_skipped[i] = sampler_hits_skipped(s, i);
    s->skel->bss->wait_enabled = s->skel->bss->hits_enabled = 1;
    s->skel->bss->growth_enabled = event_list_first(&s->options.events, EVENT_GROWTH) != EVENT_NONE;
    return perf_events_enable(s->events);
}

struct error *sampler_disable(struct sampler *s)
{
    sampler_growth_detach(s);
    bpf_link__destroy(s->skel->links.switched);
    bpf_link__destroy(s->skel->links.waking);
    s->skel->links.switched = s->skel->links.waking = NULL;
    s->skel->bss->hits_enabled = 0;
    s->ended = true;
    return perf_events_disable(s->events);
}

struct error *sampler_set_layout(struct sampler *s, uint32_t index, const struct py_layout *layout)
{
    if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.layouts), &index, layout, BPF_ANY))
        return error_os(errno, "a layout of CPython objects cannot be stored in the sampler");
    return NULL;
}

struct error *sampler_set_process(struct sampler *s, uint32_t tgid, const struct wire_process *process, bool *full)
{
    return process_map_set(&s->processes, tgid, process, full);
}

bool sampler_get_process(struct sampler *s, uint32_t tgid, struct wire_process *process)
{
    return process_map_get(&s->processes, tgid, process);
}

bool sampler_set_rival(struct sampler *s, uint32_t tgid, const struct wire_process *rival)
{
    return !bpf_map_update_elem(bpf_map__fd(s->skel->maps.rivals), &tgid, rival, BPF_ANY);
}

bool sampler_get_rival(const struct sampler *s, uint32_t tgid, struct wire_process *rival)
{
    return !bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.rivals), &tgid, rival);
}

bool sampler_get_owner(const struct sampler *s, uint32_t tgid, struct wire_owner *owner)
{
    return !bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.owners), &tgid, owner);
}

void sampler_expect(struct sampler *s, uint32_t tgid)
{
    s->skel->bss->hits_expected = tgid;
}

void sampler_remove_process(struct sampler *s, uint32_t tgid)
{
    struct wire_process process;

    if (sampler_get_process(s, tgid, &process) && process.gils)
        wait_maps_forget_gils(bpf_map__fd(s->skel->maps.gils), tgid);
    bpf_map_delete_elem(bpf_map__fd(s->skel->maps.rivals), &tgid);
    process_map_remove(&s->processes, tgid);
    sampler_growth_forget(s, tgid);
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
        if (events->list[i].source->kind == EVENT_TRACEPOINT)
            return UINT64_MAX;
        if (!event_has_counter(events->list[i].source))
            continue;
        if (events->list[i].source->kind != EVENT_CLOCK)
            return UINT64_MAX;
        sum += (time_ns / event_period(&events->list[i]) + 1) * s->options.cpu_count;
    }
    return sum;
}

struct error *sampler_drain(struct sampler *s, sampler_fn fn, void *ctx)
{
    return rings_drain(&s->rings, s->ended, fn, ctx);
}

uint32_t sampler_ring_bytes(const struct sampler *s)
{
    return s->rings.count * s->rings.bytes;
}

int sampler_wake_fd(const struct sampler *s)
{
    return s->rings.wake_fd;
}

struct error *sampler_threads(struct sampler *s, wait_thread_fn fn, void *ctx)
{
    return wait_maps_threads(bpf_map__fd(s->skel->maps.waits), fn, ctx);
}

struct error *sampler_ended_threads(struct sampler *s, wait_thread_fn fn, void *ctx)
{
    return wait_maps_take_ended(bpf_map__fd(s->skel->maps.waits), &s->skel->bss->wait_left, s->skel->bss->followed, s->rings.ordered_ns, fn,
                                ctx);
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

struct error *sampler_queued_ns(struct sampler *s, uint64_t *queued_ns)
{
    uint64_t began_ns = clock_ns(CLOCK_BOOTTIME);

    TRY(wait_maps_pass(bpf_link__fd(s->skel->links.queueing), NULL, NULL));
    s->skel->bss->queue_since_ns = began_ns;
    *queued_ns = s->skel->bss->queue_waited_ns;
    return NULL;
}

struct error *sampler_gils(struct sampler *s, wait_gil_fn fn, void *ctx)
{
    return wait_maps_gils(bpf_map__fd(s->skel->maps.gils), fn, ctx);
}

void sampler_forget_codes(struct sampler *s)
{
    s->skel->bss->code_generation++;
}

struct error *sampler_change_event(struct sampler *s, uint32_t event, const struct event *to)
{
    /* Older samples are in the ring by now. At most one sample per CPU carries the new period but came by the old one. */
    if (event_period_is_ours(to->source))
        s->skel->bss->sample_periods[event] = event_period(to);
    return perf_events_change(s->events, event, to);
}

int sampler_map_fd(const struct sampler *s)
{
    return bpf_map__fd(s->skel->maps.processes);
}
