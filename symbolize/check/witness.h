/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unwinders that check the kernel's (unwind_check.h) have in common. Each turns a
 * snapshot into addresses, independently of the others.
 */
#ifndef SYMBOLIZE_CHECK_WITNESS_H
#define SYMBOLIZE_CHECK_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "formats/trace/trace.h"
#include "symbolize/unwind/unwind_module.h"

enum { WITNESS_FRAMES_MAX = 8192 };

struct witness_frame {
    uint64_t address;
    bool return_address;
};

/* Innermost frame first. */
struct witness_stack {
    struct witness_frame frames[WITNESS_FRAMES_MAX];
    uint32_t count;
    uint32_t end;        /* LOSS_complete, or the loss reason that ended it; 0: `trouble` says why */
    const char *trouble; /* a library's message, valid until the next unwinding */
};

static inline const struct unwind_mapping *witness_mapping(const struct unwind_mapping *mappings, uint32_t count,
                                                           uint64_t address)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (address < mappings[middle].address)
            high = middle;
        else
            low = middle + 1;
    }
    return low && address - mappings[low - 1].address < mappings[low - 1].length ? &mappings[low - 1] : NULL;
}

/* Reads from the snapshot of the stack, or from read-only memory of a module. */
static inline bool witness_read(const struct trace_snapshot *shot, const struct unwind_mapping *mappings, uint32_t count,
                                uint64_t address, void *out, uint64_t len_bytes)
{
    const struct unwind_mapping *m;
    uint64_t at = address - shot->stack_address, bias;

    if (at < shot->stack.len_bytes && shot->stack.len_bytes - at >= len_bytes) {
        memcpy(out, shot->stack.data + at, len_bytes);
        return true;
    }
    m = witness_mapping(mappings, count, address);
    return m && m->module && address - m->address + len_bytes <= m->length && unwind_module_bias(m->module, m, &bias) &&
           unwind_module_read(m->module, address - bias, out, len_bytes);
}

#endif
