/* SPDX-License-Identifier: GPL-2.0-only */
/* Where in a program a thread calls the kernel, as one number: by its newest Python frames, or by its native stack. */
#ifndef BPF_SAMPLER_SITE_H
#define BPF_SAMPLER_SITE_H

#include "bpf/sampler_state.h"

/* How many of the newest Python frames make a call site, and as much of memory as is read of them at once. */
#define WAIT_FRAMES 4
#define WAIT_FRAMES_BEFORE 384
#define WAIT_FRAMES_MASK 511

/* Python frames that are being read. Nothing interrupts the program that also reads them. */
struct wait_frames {
    __u8 bytes[WAIT_FRAMES_MASK + 8];
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct wait_frames);
} wait_frames SEC(".maps");

#define WAIT_MIX 0x9e3779b97f4a7c15ull

/*
 * Where to begin to read for a frame. From 3.11 on callers' frames lie before it, mostly, and a read of all of them takes
 * hardly longer than one of 8 bytes; but only the frame's own page is sure to be there.
 */
static __always_inline __u64 frames_from(const struct py_layout *l, __u64 frame)
{
    __u64 page = frame & ~(ARCH_PAGE_BYTES - 1ull), before = frame - WAIT_FRAMES_BEFORE;

    if (l->frame_kind == PY_FRAMES_OBJECT)
        return frame;
    return before > page ? before : page;
}

/*
 * The newest Python frames: where each is, mixed. 0: not known. The thread's state may be out of date. Several frames, as
 * callers that wait through the same few functions (Queue.get, a read through a buffer) wait for different times. An
 * interpreter's lock may be waited for at any instruction: then the newest code object alone is the site.
 */
static __always_inline __u64 python_site(const struct wire_process *process, __u64 tstate, int newest_code)
{
    __u32 index = process->layout, zero = 0;
    struct py_layout *l = tstate ? bpf_map_lookup_elem(&layouts, &index) : 0;
    struct wait_frames *f = bpf_map_lookup_elem(&wait_frames, &zero);
    __u64 frame = 0, site = 0, start = 0, end = 0;

    if (!l || !f ||
        bpf_probe_read_user(&frame, sizeof frame, (void *)(tstate + l->tstate_frame)))
        return 0;
    if (l->tstate_root_cframe != PY_NONE && l->frame_kind != PY_FRAMES_OBJECT &&
        bpf_probe_read_user(&frame, sizeof frame, (void *)(frame + l->cframe_current_frame)))
        return 0;
    for (int i = 0; i < WAIT_FRAMES && frame; i++) {
        if (frame < start || frame + l->frame_len_bytes > end) {
            start = frames_from(l, frame);
            end = frame + ((l->frame_len_bytes + 7) & ~7);
            __u64 len_bytes = end - start;
            WALK_BOUND(len_bytes, WAIT_FRAMES_MASK); /* all versions have less */
            if (bpf_probe_read_user(f->bytes, len_bytes, (void *)start))
                break;
        }
        __u64 at = frame - start;
        site = (site ^ WALK_U64(f->bytes, at + l->frame_code, WAIT_FRAMES_MASK)) * WAIT_MIX;
        if (newest_code)
            break;
        site = (site ^ WALK_U64(f->bytes, at + l->frame_instr, WAIT_FRAMES_MASK)) * WAIT_MIX;
        frame = WALK_U64(f->bytes, at + l->frame_previous, WAIT_FRAMES_MASK);
    }
    return site;
}

/* By the stack and the instruction where the thread entered the kernel. */
static __always_inline __u64 native_site(const struct pt_regs *regs)
{
    return (regs->sp * WAIT_MIX ^ regs->ip) * WAIT_MIX;
}

#endif
