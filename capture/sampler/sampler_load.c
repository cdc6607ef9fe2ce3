/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes the maps, sets what the BPF programs take as constant, and loads them. */
#include "capture/sampler/sampler_state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sampler.skel.h"
#include "capture/host/host.h"
#include "capture/sampler/load_error.h"
#include "capture/sampler/preempt_calls.h"
#include "capture/sampler/preempt_count.h"
#include "capture/sampler/switch_tracepoint.h"

/* Call sites of waits that are remembered at once. */
#define WAIT_SITES 65536
/* Files with unwind tables, at once. */
#define MODULES 16384
/* Call sites and threads that memory growth is counted by. */
#define GROWTH_SITES 16384
#define GROWTH_THREADS 16384
#define GROW 1 /* BPF_F_NO_PREALLOC: the table takes memory for an entry when it is made */

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    (void)level;
    if (getenv("PYCAP_LIBBPF_DEBUG") || getenv("PYCAP_VERIFIER_STATS"))
        return vfprintf(stderr, fmt, ap);
    return 0;
}

/* The arrays for unwinding by tables. */
static int size_tables(struct sampler *s)
{
    bool tables = s->options.native == WIRE_NATIVE_TABLES;

    s->modules.count = tables ? MODULES : 1;
    s->mappings.count = tables ? s->options.sizes.mappings : 1;
    int e = bpf_map__set_max_entries(s->skel->maps.table_chunks, tables ? table_maker_max(s->options.table_maker) : 1);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.modules, s->modules.count);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.mappings, s->mappings.count);
    return e;
}

static struct error *map_arrays(struct sampler *s)
{
    if (s->options.native != WIRE_NATIVE_TABLES)
        return NULL;
    TRY(table_chunks_init(&s->tables, bpf_map__fd(s->skel->maps.table_chunks), s->options.table_maker));
    TRY(shared_array_reserve(&s->modules, bpf_map__fd(s->skel->maps.modules), sizeof(struct wire_module)));
    TRY(shared_array_reserve(&s->mappings, bpf_map__fd(s->skel->maps.mappings), sizeof(struct wire_mapping)));
    return shared_array_map(&s->modules, 0, s->modules.len_bytes);
}

/* Sizes a table that may grow. */
static int size_map(const struct sampler *s, struct bpf_map *map, uint32_t count)
{
    int e = bpf_map__set_max_entries(map, count);

    return e || !s->options.sizes.grow ? e : bpf_map__set_map_flags(map, GROW);
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
    s->skel->bss->sample_periods[event] = s->options.events.list[event].period;
    const struct map_sizes *sizes = &s->options.sizes;
    if (size_map(s, s->skel->maps.waits, sizes->threads) || size_map(s, s->skel->maps.gils, sizes->processes) ||
        bpf_map__set_max_entries(s->skel->maps.sleep_notes, sizes->threads) ||
        bpf_map__set_max_entries(s->skel->maps.wait_sites, WAIT_SITES))
        return error_os(errno, "the tables for waits cannot be made");
    return NULL;
}

/* The program for run queues and its map. */
static struct error *set_up_queue(struct sampler *s)
{
    bpf_program__set_autoload(s->skel->progs.queueing, s->options.queued);
    if (s->options.queued && bpf_map__set_max_entries(s->skel->maps.queue_notes, s->options.sizes.recent))
        return error_os(errno, "the table of threads that wait for a CPU cannot be made");
    return NULL;
}

struct bpf_program *sampler_hit_program(const struct sampler *s, uint32_t event)
{
    char name[16];

    snprintf(name, sizeof name, "hit%u", event);
    return bpf_object__find_program_by_name(s->skel->obj, name);
}

/* Leaves out the CPUs that are not sampled. */
static void choose_cpus(struct sampler *s)
{
    uint8_t left_out[WIRE_HIT_CPUS];

    memset(left_out, 1, sizeof left_out);
    for (uint32_t i = 0; i < s->options.cpu_count; i++)
        left_out[(uint32_t)s->options.cpus[i] % WIRE_HIT_CPUS] = 0;
    for (int cpu = 0; cpu < s->possible_cpus; cpu++)
        s->skel->rodata->hits_some_cpus |= left_out[(uint32_t)cpu % WIRE_HIT_CPUS];
    memcpy((void *)s->skel->bss->hit_cpu_left_out, left_out, sizeof left_out);
}

/* A program for each tracepoint, and none where there is none. */
static struct error *set_up_hits(struct sampler *s)
{
    const struct event_list *events = &s->options.events;
    bool preemptible = false, any = event_list_first(events, EVENT_GROWTH) != EVENT_NONE;

    for (uint32_t i = 0; i < WIRE_EVENT_MAX; i++) {
        bool is_hit = i < events->count && events->list[i].source->kind == EVENT_TRACEPOINT;
        bpf_program__set_autoload(sampler_hit_program(s, i), is_hit);
        any |= is_hit;
        if (!is_hit)
            continue;
        const struct tracepoint *t = &events->list[i].source->tracepoint;
        s->skel->rodata->hit_weights[i] =
            (struct wire_hit_weight){.offset = t->weight_offset, .size = t->weight_size, .is_signed = t->weight_signed};
        s->skel->bss->sample_periods[i] = event_period(&events->list[i]);
    }
    if (any)
        TRY(preempt_calls_put(s->skel->obj, &preemptible));
    s->skel->rodata->hits_preemptible = preemptible;
    choose_cpus(s);
    return NULL;
}

/* The same for memory growth. */
static struct error *set_up_growth(struct sampler *s)
{
    uint32_t event = event_list_first(&s->options.events, EVENT_GROWTH);

    bpf_program__set_autoload(s->skel->progs.grew, event != EVENT_NONE);
    bpf_program__set_autoload(s->skel->progs.grows, event != EVENT_NONE);
    bpf_program__set_autoload(s->skel->progs.maps, event != EVENT_NONE);
    if (event == EVENT_NONE)
        return NULL;
    s->skel->rodata->growth_event = event;
    s->skel->bss->sample_periods[event] = s->options.events.list[event].period;
    if (size_map(s, s->skel->maps.growths, s->options.sizes.processes) ||
        bpf_map__set_max_entries(s->skel->maps.growth_sites, GROWTH_SITES) ||
        bpf_map__set_max_entries(s->skel->maps.growth_threads, GROWTH_THREADS) ||
        bpf_map__set_max_entries(s->skel->maps.growths_before, GROWTH_THREADS))
        return error_os(errno, "the tables for memory growth cannot be made");
    return NULL;
}

/* The highest number of a CPU that is sampled, and one. */
static uint32_t sampled_end(const struct sampler_options *o)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < o->cpu_count; i++)
        end = (uint32_t)o->cpus[i] >= end ? (uint32_t)o->cpus[i] + 1 : end;
    return end;
}

static int size_rings(struct sampler *s)
{
    const struct sampler_options *o = &s->options;
    const char *ring_cpus = getenv("PYCAP_RING_CPUS");

    s->ring_sizes = ring_sizes_of(&o->events, o->cpu_count, sampled_end(o), o->every_stack ? o->stack_bytes : 0, o->ring_bytes,
                                  ring_cpus && !strcmp(ring_cpus, "1") ? 1 : 0);
    s->skel->rodata->ring_count = s->ring_sizes.count;
    s->skel->rodata->ring_shift = s->ring_sizes.shift;
    s->skel->rodata->sample_wake_bytes = s->ring_sizes.bytes / 4;
    s->skel->rodata->code_most_bytes = s->ring_sizes.bytes / 2;
    s->skel->rodata->sample_whole_bytes = s->ring_sizes.bytes / 2;
    s->skel->rodata->wait_ring_bytes = s->ring_sizes.bytes;
    int e = bpf_map__set_max_entries(s->skel->maps.ring, s->ring_sizes.bytes);
    if (!e && s->ring_sizes.count > 1)
        return bpf_map__set_max_entries(s->skel->maps.rings, s->ring_sizes.count);
    return e ? e : bpf_map__set_autocreate(s->skel->maps.rings, false);
}

/* One for each CPU that may run the sampler; where no stacks are copied, without the room for that, which is at the end. */
static int size_scratches(struct sampler *s)
{
    const struct sampler_options *o = &s->options;
    struct bpf_map *scratches = s->skel->maps.scratches;
    uint32_t possible = (uint32_t)s->possible_cpus;
    int e = bpf_map__set_max_entries(scratches, o->cpu_end && o->cpu_end < possible ? o->cpu_end : possible);

    if (!e && !o->stack_bytes)
        e = bpf_map__set_value_size(scratches, bpf_map__value_size(scratches) - WIRE_STACK_ROOM);
    return e;
}

/* What remembers threads and processes that were met lately. */
static int size_recent(struct sampler *s)
{
    struct bpf_map *maps[] = {s->skel->maps.threads, s->skel->maps.unknown, s->skel->maps.owners};
    int e = 0;

    for (size_t i = 0; !e && i < sizeof maps / sizeof *maps; i++)
        e = bpf_map__set_max_entries(maps[i], s->options.sizes.recent);
    return e;
}

struct error *sampler_load(struct sampler *s)
{
    libbpf_set_print(quiet);
    host_lift_memlock();
    s->possible_cpus = libbpf_num_possible_cpus();
    if (s->possible_cpus < 1)
        return error_create(ERROR_UNSUPPORTED, "the number of CPUs cannot be read");
    s->per_cpu = calloc((size_t)s->possible_cpus * WIRE_LOSS_COUNT, sizeof *s->per_cpu);
    s->skel = sampler_bpf__open();
    if (!s->per_cpu || !s->skel)
        return error_no_memory();
    const struct sampler_options *o = &s->options;
    s->skel->rodata->sample_native_stack_bytes = s->options.stack_bytes;
    s->skel->rodata->sample_every_stack = s->options.every_stack;
    s->skel->rodata->sample_native = s->options.native;
    s->skel->rodata->sample_unconfigured = s->options.unconfigured;
    s->skel->rodata->sample_timed = s->options.timed;
    s->skel->rodata->sample_check_unwind = s->options.check_unwind;
    s->skel->rodata->sample_kernel = s->options.kernel;
    s->skel->rodata->sample_python = s->options.python;
    s->skel->rodata->sample_event_count = s->options.events.count;
    TRY(set_up_waits(s));
    TRY(set_up_queue(s));
    TRY(set_up_hits(s));
    TRY(set_up_growth(s));
    bool ticks = false;
    for (uint32_t i = 0; i < o->events.count; i++)
        ticks |= event_has_counter(o->events.list[i].source);
    bpf_program__set_autoload(s->skel->progs.sample, ticks);
    int e = size_rings(s);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.event_numbers, s->options.events.count * s->options.cpu_count);
    if (!e)
        e = size_scratches(s);
    if (!e)
        e = size_map(s, s->skel->maps.processes, o->sizes.processes);
    if (!e)
        e = size_recent(s);
    if (!e)
        e = bpf_map__set_max_entries(s->skel->maps.code_spent, o->sizes.senders);
    if (!e)
        e = size_tables(s);
    /* The verifier reports instructions and time for each program in libbpf's messages (BPF_LOG_STATS, since 5.2). */
    if (getenv("PYCAP_VERIFIER_STATS")) {
        struct bpf_program *program;
        bpf_object__for_each_program(program, s->skel->obj)
            bpf_program__set_log_level(program, 4);
    }
    if (!e) {
        TRY(load_check_memory(s->skel->obj));
        e = sampler_bpf__load(s->skel);
    }
    if (e)
        return load_error(s->skel->obj, -e);
    s->processes = (struct process_map){bpf_map__fd(s->skel->maps.processes), s->skel->bss->followed};
    return map_arrays(s);
}
