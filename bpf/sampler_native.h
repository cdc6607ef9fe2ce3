/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native part of a sample: frames, found by the tables that user space has written
 * into maps, and a copy of the user stack, if the unwinder could not go on or if user
 * space asks for it.
 */
#ifndef BPF_SAMPLER_NATIVE_H
#define BPF_SAMPLER_NATIVE_H

#include "bpf/sampler_stack.h"

#define MAPPING_SEARCH_STEPS 20 /* halvings: enough for a million mappings of a process */
#define MAPPING_COUNT_UNREAD 0xffffffffu
#define NS_PER_SECOND 1000000000
#define NATIVE_ROUNDS 16 /* of loops in loops: the verifier goes through each round of a loop, but once through a function */
#define ROWS_PART 64    /* entries */

/* Finds the mapping that holds `address`, NULL: there is none. */
static __always_inline struct wire_mapping *mapping_find(struct scratch *s, __u64 address)
{
    if (s->mapping_count == MAPPING_COUNT_UNREAD) {
        __u32 head = s->mapping_start;
        struct wire_mapping *list = bpf_map_lookup_elem(&mappings, &head);
        s->mapping_count = list && list->key == s->mapping_key ? list->count : 0;
        s->mapping_start = head + 1;
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
            return 0;
        if (m->end <= address)
            s->mapping_low = middle + 1;
        else
            s->mapping_high = middle;
    }
    if (s->mapping_low >= s->mapping_count)
        return 0;
    __u32 at = s->mapping_start + s->mapping_low;
    struct wire_mapping *m = bpf_map_lookup_elem(&mappings, &at);
    return m && address >= m->start && address < m->end ? m : 0;
}

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
    struct wire_mapping *m = mapping_find(s, address);
    if (!m)
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

/* Frees a part of this CPU's cache of rows: loops are short, since the verifier goes through each round of them. */
__attribute__((noinline)) int rows_forget_part(__u32 part)
{
    struct scratch *s = scratch_get();

    for (__u64 i = 0; s && i < ROWS_PART; i++) {
        __u64 at = part * ROWS_PART + i;
        WALK_BOUND(at, NATIVE_ROWS - 1);
        s->rows[at].key = 0;
    }
    return 0;
}

/* Empties the cache of rows if a table was taken out since it was filled. */
static __always_inline void rows_check(struct scratch *s)
{
    __u32 generation = rows_generation;

    if (s->rows_generation == generation)
        return;
    s->rows_generation = generation;
    WALK_ROLL
    for (__u32 i = 0; i < NATIVE_ROWS / ROWS_PART; i++)
        rows_forget_part(i);
}

/* Reads a word for the unwinder, into its `word`: a function of its own, since it is needed in many places. 0: it could be read. */
__attribute__((noinline)) int native_word(__u64 address)
{
    struct scratch *s = scratch_get();

    return !s || native_read_word(&s->native, address);
}

/* The frames whose rows are in the cache, a few at most. Returns enum native_fast. */
__attribute__((noinline)) int native_frames_fast(void)
{
    struct scratch *s = scratch_get();

    return s ? native_step_fast(&s->native, native_entries(s), s->rows) : NATIVE_FAST_STOPS;
}

/* One frame. 1: the unwinding has ended. */
__attribute__((noinline)) int native_frame_slow(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 1;
    int ended = native_step(&s->native, native_entries(s));
    native_keep_row(&s->native, s->rows);
    return ended;
}

/* Some frames, at least NATIVE_ROUNDS. 1: the unwinding has ended. */
__attribute__((noinline)) int native_rounds(void)
{
    WALK_ROLL
    for (int i = 0; i < NATIVE_ROUNDS; i++) {
        int fast = native_frames_fast();
        if (fast == NATIVE_FAST_ENDED)
            return 1;
        if (fast == NATIVE_FAST_STOPS && native_frame_slow())
            return 1;
    }
    return 0;
}

/* More frames, at least NATIVE_ROUNDS * NATIVE_ROUNDS. 1: the unwinding has ended. */
__attribute__((noinline)) int native_more_rounds(void)
{
    WALK_ROLL
    for (int i = 0; i < NATIVE_ROUNDS; i++) {
        if (native_rounds())
            return 1;
    }
    return 0;
}

/* Unwinds from the sample's registers, to s->native_at in the message. `key`: of the list of mappings; 0: without the cache of rows. */
static __always_inline void unwind_with(struct scratch *s, __u32 key)
{
    for (int i = 0; i < WIRE_REGISTERS; i++)
        s->native.registers[i] = s->sample.registers[i];
    native_begin(&s->native);
    native_use_rows(&s->native, key, s->sample.time_ns);
    WALK_ROLL
    for (int i = 0; i < WIRE_NATIVE_MAX / (NATIVE_ROUNDS * NATIVE_ROUNDS) + 1; i++) {
        if (native_more_rounds())
            break;
    }
}

/* ---- both ways of unwinding compared, for tests ---- */

#define MIXED_AT_ONCE 64

/* Mixes some of the frames into a number that stands for all. */
__attribute__((noinline)) int frames_mix(__u32 first)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    const struct native_frame *frames = native_entries(s);
    __u64 mixed = s->unwound.frames;
    for (__u64 i = 0; i < MIXED_AT_ONCE; i++) {
        __u64 n = first + i;
        if (n >= s->native.count)
            break;
        WALK_BOUND(n, NATIVE_MAX - 1);
        mixed = (mixed ^ frames[n].ip) * 0x9e3779b97f4a7c15ull;
        mixed = (mixed ^ mixed >> 32 ^ frames[n].sp) * 0xc2b2ae3d27d4eb4full;
        mixed ^= mixed >> 29;
    }
    s->unwound.frames = mixed;
    return 0;
}

/* Notes what came of an unwinding, in s->unwound. */
static __always_inline void unwound_note(struct scratch *s)
{
    s->unwound.frames = 0;
    WALK_ROLL
    for (__u32 i = 0; i < NATIVE_MAX / MIXED_AT_ONCE; i++)
        frames_mix(i * MIXED_AT_ONCE);
    s->unwound.last_cfa = s->native.last_cfa;
    s->unwound.count = s->native.count;
    s->unwound.end = s->native.end;
    s->unwound.other = s->native.other;
    s->unwound.guesses = s->native.guesses;
}

__attribute__((noinline)) int unwind_without_rows(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    s->tables_changes = tables_changes;
    unwind_with(s, 0);
    unwound_note(s);
    return 0;
}

/* Counts whether the unwinding just done came to the same as the one without cached rows. */
__attribute__((noinline)) int unwinds_compare(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    struct unwound without = s->unwound;
    unwound_note(s);
    /* Whichever tables change meanwhile, each of the two is right. */
    if (s->tables_changes != tables_changes || s->tables_changes & 1)
        return 0;
    count_stat(WIRE_STAT_UNWOUND_TWICE);
    if (without.frames != s->unwound.frames || without.last_cfa != s->unwound.last_cfa ||
        without.count != s->unwound.count || without.end != s->unwound.end || without.other != s->unwound.other ||
        without.guesses != s->unwound.guesses) {
        count_stat(WIRE_STAT_UNWOUND_OTHERWISE);
        unwound_otherwise[0] = without.end | (__u64)without.count << 32;
        unwound_otherwise[1] = s->unwound.end | (__u64)s->unwound.count << 32;
    }
    add_stat(WIRE_STAT_UNWOUND_FRAMES, s->native.count);
    add_stat(WIRE_STAT_UNWOUND_CACHED, s->native.cached);
    return 0;
}

/*
 * Whether the list of mappings or a table was given back since the sample began: something else may lie there by now. User
 * space waits before it uses a place again, but a virtual machine's CPU can stand still for longer.
 */
static __always_inline int outlived_tables(struct scratch *s)
{
    if (s->rows_generation != rows_generation)
        return 1;
    if (s->mapping_count == MAPPING_COUNT_UNREAD)
        return 0;
    __u32 head = s->mapping_start - 1;
    const volatile struct wire_mapping *list = bpf_map_lookup_elem(&mappings, &head);
    return !list || list->key != s->mapping_key;
}

/* Takes the native frames, to s->native_at in the message, by the list of mappings that native_frames() has set. */
__attribute__((noinline)) int unwind_native(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    rows_check(s);
    if (sample_check_unwind && s->mapping_key)
        unwind_without_rows();
    unwind_with(s, s->mapping_key);
    if (outlived_tables(s)) {
        s->native.count = 0;
        s->native.end = LOSS_no_mapping; /* user space unwinds it */
        s->native.last_cfa = WIRE_CFA_NONE;
    } else if (sample_check_unwind && s->mapping_key) {
        unwinds_compare();
    }
    s->sample.native_end = s->native.end;
    s->sample.native_last_cfa = s->native.last_cfa;
    live_stack_note(s);
    return 0;
}

/* Copies one page of the user stack, or leaves a hole where it cannot be read. 1: there is no more. */
__attribute__((noinline)) int snapshot_step(void)
{
    struct scratch *s = scratch_get();

    if (!sample_native_stack_bytes || !s || !s->snapshot_left)
        return 1;
    __u64 to = s->snapshot_at, len = ARCH_PAGE_BYTES - (s->snapshot_address & (ARCH_PAGE_BYTES - 1));
    if (len > s->snapshot_left)
        len = s->snapshot_left;
    MESSAGE_BOUND(to, MESSAGE_STACK_AT + WIRE_STACK_MAX);
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

    if (!sample_native_stack_bytes || !s)
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
    MESSAGE_BOUND(to, MESSAGE_STACK_AT);
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
    WALK_ROLL
    for (int i = 0; i < WIRE_STACK_MAX / ARCH_PAGE_BYTES + 1; i++) {
        if (snapshot_step())
            break;
    }
    if (s->sample.stack_size && sample_every_stack)
        count_part_loss(s, LOSS_stack_fault);
    return 0;
}

#endif
