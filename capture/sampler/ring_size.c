/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring has room for 300 ms of samples of generous size. When it is drained less often than that, it wakes pycap as
 * it fills up. It is not larger because its pages count as resident twice. With waits it is: a program that switches all
 * the time may fill half of it, and keep pycap from a CPU for seconds (bpf/ring_share.h).
 */
#include "capture/sampler/ring_size.h"

uint32_t ring_size_bytes(const struct event_list *events, uint32_t cpu_count, uint32_t stack_bytes)
{
    uint64_t sample_bytes = 2048 + stack_bytes / 8;
    uint32_t size = event_list_wait(events) == EVENT_NONE ? 2 << 20 : 4 << 20;
    uint64_t hz = 0;

    for (uint32_t i = 0; i < events->count; i++)
        hz += event_hz(&events->list[i]);
    uint64_t want = hz * cpu_count * sample_bytes * 3 / 10;

    while (size < want && size < 256u << 20)
        size *= 2;
    return size;
}
