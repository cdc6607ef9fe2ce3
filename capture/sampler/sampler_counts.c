/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the BPF programs have counted. */
#include "capture/sampler/sampler_state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "bpf/sampler.skel.h"

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
    losses[LOSS_hit_quota] += stats[WIRE_EVENT_REFUSED];
}

/* Reads the counters of an event, by CPU; valid until the next call. */
static const struct wire_event_stats *by_cpu(struct sampler *s, uint32_t event)
{
    static_assert(sizeof(struct wire_event_stats) <= WIRE_LOSS_COUNT * sizeof(uint64_t), "there is room in per_cpu");

    if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.event_stats), &event, s->per_cpu))
        memset(s->per_cpu, 0, (size_t)s->possible_cpus * sizeof(struct wire_event_stats));
    return (const struct wire_event_stats *)s->per_cpu;
}

/* Reads what hits of a tracepoint counted, by CPU; valid until the next call. NULL: the event is no tracepoint. */
static const struct wire_hits *hits_by_cpu(struct sampler *s, uint32_t event)
{
    static_assert(sizeof(struct wire_hits) <= WIRE_LOSS_COUNT * sizeof(uint64_t), "there is room in per_cpu");

    if (s->options.events.list[event].source->kind != EVENT_TRACEPOINT ||
        bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.hits), &event, s->per_cpu))
        return NULL;
    return (const struct wire_hits *)s->per_cpu;
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
        ticks[i].sampled = seen[WIRE_EVENT_SAMPLED];
        ticks[i].nested = seen[WIRE_EVENT_NESTED];
        ticks[i].ring_full = seen[WIRE_EVENT_RING_FULL];
        ticks[i].refused = seen[WIRE_EVENT_REFUSED];
        ticks[i].unsettled = seen[WIRE_EVENT_TICKS];
        for (uint32_t k = WIRE_EVENT_TICKS + 1; k < WIRE_EVENT_STAT_COUNT; k++)
            ticks[i].unsettled -= seen[k];
    }
    const struct wire_hits *hits = hits_by_cpu(s, event);
    for (uint32_t i = 0; i < count && hits; i++) {
        if (ticks[i].cpu < s->possible_cpus)
            ticks[i].event.count = hits[ticks[i].cpu].count;
    }
    return NULL;
}

uint64_t sampler_hits_skipped(const struct sampler *s, uint32_t event)
{
    struct bpf_prog_info info = {0};
    uint32_t len = sizeof info;

    if (!s->hit_links[event] || bpf_obj_get_info_by_fd(bpf_program__fd(sampler_hit_program(s, event)), &info, &len))
        return 0;
    return info.recursion_misses - s->hits_skipped[event];
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

void sampler_grown_bytes(struct sampler *s, uint64_t *grown, uint64_t *sent)
{
    int map = bpf_map__fd(s->skel->maps.stats);

    *sent = sum_of(s, map, WIRE_STAT_GROWN_SENT); /* first: it is never more */
    *grown = sum_of(s, map, WIRE_STAT_GROWN_BYTES);
}

struct sampler_unwinds sampler_unwinds(struct sampler *s)
{
    int map = bpf_map__fd(s->skel->maps.stats);
    uint64_t without = s->skel->bss->unwound_otherwise[0], with = s->skel->bss->unwound_otherwise[1];

    return (struct sampler_unwinds){
        .twice = sum_of(s, map, WIRE_STAT_UNWOUND_TWICE),
        .otherwise = sum_of(s, map, WIRE_STAT_UNWOUND_OTHERWISE),
        .frames = sum_of(s, map, WIRE_STAT_UNWOUND_FRAMES),
        .cached = sum_of(s, map, WIRE_STAT_UNWOUND_CACHED),
        .taken_out = s->skel->bss->rows_generation,
        .without = {(uint32_t)without, without >> 32},
        .with = {(uint32_t)with, with >> 32},
    };
}

void sampler_cpu_time(struct sampler *s, uint64_t *cpu_ns, uint64_t *look_ns)
{
    int map = bpf_map__fd(s->skel->maps.stats);

    *look_ns = s->options.timed ? sum_of(s, map, WIRE_STAT_LOOK_NS) : 0;
    *cpu_ns = s->options.timed ? sum_of(s, map, WIRE_STAT_CPU_NS) + *look_ns : 0;
}
