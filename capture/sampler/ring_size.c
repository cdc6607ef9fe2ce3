/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring has room for 300 ms of samples of generous size. When it is drained less often than that, it wakes pycap as
 * it fills up. It is not larger because its pages count as resident twice. With waits it is: a program that switches all
 * the time may fill half of it, and keep pycap from a CPU for seconds (bpf/ring_share.h).
 */
#include "capture/sampler/ring_size.h"

#define RING_CPUS_SHIFT 3 /* as many CPUs share a ring; more where that would make more rings than RINGS_MAX */
#define RINGS_MAX 64
#define ALL_RINGS_MAX_BYTES (256u << 20)
#define RING_LEAST_BYTES 4096 /* a page */

static uint32_t bytes_wanted(const struct event_list *events, uint32_t cpu_count, uint32_t stack_bytes, uint32_t most)
{
    uint64_t sample_bytes = 2048 + stack_bytes / 8;
    uint32_t size = event_list_wait(events) == EVENT_NONE ? 2 << 20 : 4 << 20;
    uint64_t hz = 0;

    for (uint32_t i = 0; i < events->count; i++)
        hz += event_hz(&events->list[i]);
    uint64_t want = hz * cpu_count * sample_bytes * 3 / 10;

    while (size < want && size < most)
        size *= 2;
    return size;
}

struct ring_sizes ring_sizes_of(const struct event_list *events, uint32_t cpu_count, uint32_t cpu_end, uint32_t stack_bytes,
                                uint32_t all_bytes, uint32_t ring_cpus)
{
    struct ring_sizes sizes = {.shift = ring_cpus ? (uint32_t)__builtin_ctz(ring_cpus) : RING_CPUS_SHIFT};
    uint32_t most = all_bytes ? all_bytes : ALL_RINGS_MAX_BYTES;

    while (cpu_end && (cpu_end - 1) >> sizes.shift >= RINGS_MAX)
        sizes.shift++;
    sizes.count = cpu_end ? ((cpu_end - 1) >> sizes.shift) + 1 : 1;
    for (uint32_t power = 1; power < sizes.count && most > RING_LEAST_BYTES; power *= 2)
        most /= 2;
    uint32_t cpus = cpu_count < 1u << sizes.shift ? cpu_count : 1u << sizes.shift;
    sizes.bytes = all_bytes ? most : bytes_wanted(events, cpus, stack_bytes, most);
    return sizes;
}
