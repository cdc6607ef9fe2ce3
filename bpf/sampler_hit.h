/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: places in the kernel that tell of what happens there, such as a system call that begins.
 *
 * The kernel runs a program at each hit of its tracepoint, by whichever thread, and says neither which tracepoint that is nor
 * how often to do something. So there is a copy of the program for each event, and it counts by itself: a hit of a process
 * that is followed counts 1, or as much as a field of the tracepoint says. Each CPU counts apart; when the count of an event
 * has filled a period, or several, the stacks are taken by the same walkers as at a tick, and the sample stands for the
 * whole periods. What is left over counts for the next one.
 *
 * A process that has very many hits has stacks of only some of them, chosen at random, which stand for more: so it cannot
 * fill the ring, nor have others wait for the sampler.
 *
 * The kernel runs no such program while another program of a perf event or a tracepoint runs on that CPU, so hits that the
 * sampler itself causes are not met. Those that a program of another kind causes find the scratch in use (nested).
 */
#ifndef BPF_SAMPLER_HIT_H
#define BPF_SAMPLER_HIT_H

#include "bpf/sampler_take.h"

#include "bpf/sampler_room.h"

volatile __u32 hits_enabled = 0;
/* A process that user space does not follow yet, but will in a moment if it runs Python; 0: none. */
volatile __u32 hits_expected = 0;
/* What a hit of each event counts. */
const volatile struct wire_hit_weight hit_weights[WIRE_EVENT_MAX] = {0};
/* Whether threads may lose their CPU in the middle of a program of a system call's tracepoint (Linux 7.1 or so). */
const volatile __u32 hits_preemptible = 0;
/* CPUs that are not sampled, if any. */
const volatile __u32 hits_some_cpus = 0;
volatile __u8 hit_cpu_left_out[WIRE_HIT_CPUS] = {0};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, WIRE_EVENT_MAX);
    __type(key, __u32);
    __type(value, struct wire_hits);
} hits SEC(".maps");

/*
 * Stands for a call of the kernel's bpf_preempt_disable() or _enable(), which user space puts in its place
 * (capture/sampler/preempt_calls.h). Kernels before 6.11 have neither; and libbpf 1.1 looks for what the kernel lacks in its
 * modules, which takes CAP_SYS_ADMIN.
 */
#define HIT_CALL(number) asm volatile("r0 = %0" : : "i"(number) : "r0", "r1", "r2", "r3", "r4", "r5", "memory")

/*
 * Begins a program that a tracepoint of a system call may run: up to hit_leave() its thread stays on its CPU. Where it did
 * not, others would find this CPU's scratch in use, and lose their samples, until it runs again.
 */
static __always_inline void hit_enter(void)
{
    if (hits_preemptible)
        HIT_CALL(WIRE_CALL_PREEMPT_DISABLE);
}

static __always_inline void hit_leave(void)
{
    if (hits_preemptible)
        HIT_CALL(WIRE_CALL_PREEMPT_ENABLE);
}

/* What a hit counts: 1, or what a field of the tracepoint's record says. A negative number counts nothing. */
static __always_inline __u64 hit_weight(void *ctx, const volatile struct wire_hit_weight *weight)
{
    __u64 size = weight->size, value = 0;

    if (!size)
        return 1;
    if (size > sizeof value || bpf_probe_read_kernel(&value, size, ctx + weight->offset))
        return 0;
    __u32 unused = 64 - 8 * size; /* little endian */
    if (weight->is_signed && (__s64)(value << unused) < 0)
        return 0;
    if (value <= WIRE_HIT_MOST)
        return value;
    count_loss(LOSS_hit_weight);
    return WIRE_HIT_MOST;
}

/* Adds to the count of an event on this CPU. Returns the whole periods that are full, as a count; 0: none is. */
static __always_inline __u64 hit_count(__u32 event, __u64 weight)
{
    __u32 key = event; /* a copy: of what a helper was shown, the compiler does not know the value any more */
    struct wire_hits *h = bpf_map_lookup_elem(&hits, &key);
    __u64 period = sample_periods[event & (WIRE_EVENT_MAX - 1)];

    if (!h)
        return 0;
    h->count += weight;
    h->left += weight;
    if (!period || h->left < period)
        return 0;
    __u64 whole = period == 1 ? h->left : h->left / period * period;
    h->left -= whole;
    return whole;
}

/* How often the stacks of a process are thinned by half, which has had so many in this second. */
static __always_inline __u32 hit_halvings(const struct wire_process *process)
{
    __u32 halvings = process ? process->hit_stacks >> WIRE_HIT_SECOND_SHIFT : 0;

    return halvings < WIRE_HIT_HALVINGS_MAX ? halvings : WIRE_HIT_HALVINGS_MAX;
}

/* Takes the stacks of this thread, for a sample that stands for `value`; says what came of it. `process` may be NULL. */
static __always_inline enum wire_event_stat hit_take(void *ctx, __u32 event, struct wire_process *process, __u64 value,
                                                     __u64 now_ns)
{
    if (process)
        begin_second(process, now_ns >> 30);
    __u32 halvings = hit_halvings(process);
    if (bpf_get_prandom_u32() & ((1u << halvings) - 1))
        return WIRE_EVENT_THINNED;
    enum ring_room room = process ? room_for(process) : RING_ROOM;
    if (room != RING_ROOM) {
        /* So it is soon thinned. The ring still has room for a clock: that it is full is not said, as all events would slow down. */
        __sync_fetch_and_add(&process->hit_stacks, WIRE_HIT_REFUSAL);
        return WIRE_EVENT_REFUSED;
    }
    struct scratch *s = scratch_enter();
    if (!s)
        return WIRE_EVENT_NESTED;
    task_read(&s->facts);
    sample_begin(&s->sample, process, &s->facts, event, now_ns);
    s->sample.period = value << halvings;
    __u64 sent = take_stacks(s, ctx, 0, process);
    if (process) {
        __sync_fetch_and_add(&process->hit_stacks, 1);
        room_taken(process, sent);
    }
    scratch_leave(s);
    return sent ? WIRE_EVENT_SAMPLED : WIRE_EVENT_RING_FULL;
}

/* A hit of a process that is followed; says what came of it. */
static __always_inline enum wire_event_stat hit_of(void *ctx, __u32 event, struct wire_process *process)
{
    struct scratch *s = scratch_get();

    if (!s || *(volatile __u32 *)&s->busy)
        return WIRE_EVENT_NESTED;
    __u64 now_ns = bpf_ktime_get_ns();
    __u64 value = hit_count(event, hit_weight(ctx, &hit_weights[event & (WIRE_EVENT_MAX - 1)]));
    enum wire_event_stat result = value ? hit_take(ctx, event, process, value, now_ns) : WIRE_EVENT_THINNED;
    if (sample_timed && result != WIRE_EVENT_THINNED)
        count_time(WIRE_STAT_CPU_NS, bpf_ktime_get_ns() - now_ns);
    else if (sample_timed)
        count_look_time(now_ns);
    return result;
}

/* Whether the process that is expected was first met so recently that it may yet be followed. */
static __noinline int hit_is_fresh(__u32 tgid)
{
    struct scratch *s = scratch_enter();

    if (!s)
        return 0;
    task_read(&s->facts);
    int fresh = is_fresh(&s->facts, tgid, bpf_ktime_get_ns());
    scratch_leave(s);
    return fresh;
}

/* A hit of an event; says what came of it. */
static __always_inline enum wire_event_stat hit_met(void *ctx, __u32 event)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;

    if (!tgid)
        return WIRE_EVENT_IDLE;
    int expected = tgid == hits_expected;
    if (!sample_unconfigured && !expected && !may_be_followed(tgid))
        return WIRE_EVENT_OTHERS;
    struct wire_process *process = bpf_map_lookup_elem(&processes, &tgid);
    if (process || sample_unconfigured || (expected && hit_is_fresh(tgid)))
        return hit_of(ctx, event, process);
    return WIRE_EVENT_OTHERS;
}

static __always_inline void hit_run(void *ctx, __u32 event)
{
    if (hits_some_cpus && hit_cpu_left_out[bpf_get_smp_processor_id() & (WIRE_HIT_CPUS - 1)])
        return;
    __u32 key = event;
    struct wire_event_stats *counts = bpf_map_lookup_elem(&event_stats, &key);
    if (!counts)
        return;
    counts->count[WIRE_EVENT_TICKS]++;
    counts->count[hit_met(ctx, event) & (WIRE_EVENT_STAT_COUNT - 1)]++;
}

/* The program of the event with that index; user space loads those that it needs. */
#define HIT(number)                \
    SEC("tp") int hit##number(void *ctx) \
    {                              \
        if (!hits_enabled)         \
            return 0;              \
        hit_enter();               \
        hit_run(ctx, number);      \
        hit_leave();               \
        return 0;                  \
    }
HIT(0)
HIT(1)
HIT(2)
HIT(3)
HIT(4)
HIT(5)
HIT(6)
HIT(7)
_Static_assert(WIRE_EVENT_MAX == 8, "a program for each event");

#endif
