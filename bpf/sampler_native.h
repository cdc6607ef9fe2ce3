/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native part of a sample: frames, found by the tables that user space has written
 * into maps, and a copy of the user stack, if the unwinder could not go on or if user
 * space asks for it.
 */
#ifndef BPF_SAMPLER_NATIVE_H
#define BPF_SAMPLER_NATIVE_H

#include "bpf/sampler_state.h"

#define MAPPING_SEARCH_STEPS 20 /* halvings: enough for a million mappings of a process */
#define NS_PER_SECOND 1000000000

/* Finds the mapping that holds `address` and its module's table, into u->mapping. 0, or the loss reason. */
static __always_inline __u32 native_find(struct native_unwind *u, __u64 address)
{
    struct scratch *s = scratch_get();

    if (!s)
        return LOSS_no_mapping;
    if (sample_native == WIRE_NATIVE_FRAME_POINTERS) {
        u->mapping.start = 0;
        u->mapping.end = ~0ull;
        u->mapping.flags = NATIVE_NO_TABLE | NATIVE_BY_POINTERS;
        return 0;
    }
    s->mapping_low = 0;
    s->mapping_high = s->mapping_count;
    for (int i = 0; i < MAPPING_SEARCH_STEPS; i++) {
        __u32 low = s->mapping_low, high = s->mapping_high;
        if (low >= high)
            break;
        __u32 middle = low + (high - low) / 2, at = s->mapping_start + middle;
        struct wire_mapping *m = bpf_map_lookup_elem(&mappings, &at);
        if (!m)
            return LOSS_no_mapping;
        if (m->end <= address)
            s->mapping_low = middle + 1;
        else
            s->mapping_high = middle;
    }
    if (s->mapping_low >= s->mapping_count)
        return LOSS_no_mapping;
    __u32 at = s->mapping_start + s->mapping_low;
    struct wire_mapping *m = bpf_map_lookup_elem(&mappings, &at);
    if (!m || address < m->start || address >= m->end)
        return LOSS_no_mapping;
    u->mapping.start = m->start;
    u->mapping.end = m->end;
    u->mapping.base = m->base;
    u->mapping.flags = m->flags & WIRE_MAPPING_ANONYMOUS ? NATIVE_NO_TABLE : 0;
    u->mapping.row_count = 0;
    if (u->mapping.flags)
        return 0;
    __u32 number = m->module;
    if (number == WIRE_MODULE_NONE)
        return LOSS_no_module;
    struct wire_module *module = bpf_map_lookup_elem(&modules, &number);
    if (!module || !module->row_count)
        return module && module->row_start == WIRE_TABLE_NONE ? LOSS_no_unwind_info : LOSS_table_missing;
    module->used_s = s->sample.time_ns / NS_PER_SECOND;
    u->mapping.row_start = module->row_start;
    u->mapping.row_count = module->row_count;
    u->mapping.index_start = module->index_start;
    u->mapping.index_first = module->index_first;
    u->mapping.index_count = module->index_count;
    u->mapping.wide_start = module->wide_start;
    u->mapping.wide_count = module->wide_count;
    return 0;
}

/* Two native frames. 1: the unwinding has ended. */
__attribute__((noinline)) int native_steps(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 1;
    struct native_frame *frames = message_at(s, s->native_at);
    return native_step(&s->native, frames) || native_step(&s->native, frames);
}

/* Takes the native frames, to s->native_at in the message. */
__attribute__((noinline)) int unwind_native(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    for (int i = 0; i < WIRE_REGISTERS; i++)
        s->native.registers[i] = s->sample.registers[i];
    native_begin(&s->native);
    for (int i = 0; i < WIRE_NATIVE_MAX / 2 + 1; i++) {
        if (native_steps())
            break;
    }
    s->sample.native_end = s->native.end;
    s->sample.native_last_cfa = s->native.last_cfa;
    return 0;
}

/* Copies one page of the user stack, or leaves a hole where it cannot be read. 1: there is no more. */
__attribute__((noinline)) int snapshot_step(void)
{
    struct scratch *s = scratch_get();

    if (!s || !s->snapshot_left)
        return 1;
    __u64 to = s->snapshot_at, len = ARCH_PAGE_BYTES - (s->snapshot_address & (ARCH_PAGE_BYTES - 1));
    if (len > s->snapshot_left)
        len = s->snapshot_left;
    WALK_BOUND(to, SAMPLE_BUFFER_MASK);
    WALK_BOUND(len, 2 * ARCH_PAGE_BYTES - 1);
    if (len > ARCH_PAGE_BYTES)
        return 1;
    int failed = bpf_probe_read_user(s->message + to, len, (void *)s->snapshot_address) != 0; /* then they are zeros */
    if (failed)
        s->sample.stack_holes |= 1u << (s->snapshot_pages & 31);
    s->snapshot_pages++;
    s->snapshot_at += len;
    s->snapshot_address += len;
    s->snapshot_left -= len;
    if (!failed)
        s->sample.stack_len_bytes = s->snapshot_at - s->snapshot_start;
    return 0;
}

/*
 * Appends the live part of the user stack to the message, at `at`, with the red zone if that can be read: OpenSSL's SHA-512
 * for AVX2 keeps its CFA in it.
 *
 * Not all of a stack can be read: a function with large variables that has just been called has touched few of their
 * pages, sometimes not even the one that the stack pointer is in, and the kernel has not made them yet.
 */
__attribute__((noinline)) int append_stack(__u32 at)
{
    struct scratch *s = scratch_get();
    __u64 to = at, len, sp;

    if (!s)
        return 0;
    sp = s->sample.registers[ARCH_SP];
    len = s->sample.stack_size;
    if (!bpf_probe_read_user(&s->snapshot_address, 8, (void *)(sp - ARCH_RED_ZONE_BYTES))) {
        s->sample.flags |= WIRE_STACK_BELOW;
        sp -= ARCH_RED_ZONE_BYTES;
        len += len ? ARCH_RED_ZONE_BYTES : 0;
    }
    if (!len || len > sample_native_stack_bytes) {
        /* Where the copy is only there to unwind, it is lost if the unwinder misses it. */
        if (len && sample_every_stack)
            count_part_loss(s, LOSS_stack_cut);
        len = sample_native_stack_bytes;
    }
    if (len > WIRE_STACK_MAX)
        len = WIRE_STACK_MAX;
    WALK_BOUND(to, SAMPLE_BUFFER_MASK);
    WALK_BOUND(len, WIRE_STACK_MAX * 2 - 1);
    if (!len || len > WIRE_STACK_MAX)
        return 0;
    if (s->cut && to + len > CUT_BYTES) {
        s->sample.flags |= WIRE_CUT;
        return 0;
    }
    if (!bpf_probe_read_user(s->message + to, len, (void *)sp)) {
        s->sample.stack_len_bytes = len;
        return 0;
    }
    s->snapshot_start = s->snapshot_at = to;
    s->snapshot_address = sp;
    s->snapshot_left = len;
    s->snapshot_pages = 0;
    for (int i = 0; i < WIRE_STACK_MAX / ARCH_PAGE_BYTES + 1; i++) {
        if (snapshot_step())
            break;
    }
    if (s->sample.stack_size && sample_every_stack)
        count_part_loss(s, LOSS_stack_fault);
    return 0;
}

#endif
