/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorded address space: the ranges of memory that a walk read, and what it was
 * configured with. Written by record_space, played back by test_walk.
 *
 * File: "PYSPACE2", the lengths of the two structs (u32 each), the structs as they were when it was recorded (both
 * only ever grow at their ends), the two registers, then ranges {u64 address, u64 length, bytes} by address. Little
 * endian, as the machine that runs the tests.
 */
#ifndef TESTS_TOOLS_SPACE_H
#define TESTS_TOOLS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"
#include "formats/base/vec.h"

struct space_range {
    uint64_t address, len;
    uint8_t *data;
};

struct space {
    struct py_layout layout;
    struct wire_process process;
    uint64_t thread_pointer, stack_pointer;
    VEC(struct space_range) ranges; /* by address, neither touching nor overlapping */
};

static inline void space_deinit(struct space *s)
{
    for (size_t i = 0; i < s->ranges.count; i++)
        free(s->ranges.data[i].data);
    VEC_DEINIT(&s->ranges);
}

/* Adds bytes; ranges that touch or overlap become one. */
static inline bool space_add(struct space *s, uint64_t address, const void *data, uint64_t len)
{
    struct space_range joined = {.address = address, .len = len};
    size_t first = 0, behind;

    while (first < s->ranges.count && s->ranges.data[first].address + s->ranges.data[first].len < address)
        first++;
    for (behind = first; behind < s->ranges.count && s->ranges.data[behind].address <= address + len; behind++) {
        struct space_range *r = &s->ranges.data[behind];
        uint64_t end = joined.address + joined.len;
        if (r->address + r->len > end)
            end = r->address + r->len;
        if (r->address < joined.address)
            joined.address = r->address;
        joined.len = end - joined.address;
    }
    joined.data = malloc(joined.len);
    if (!joined.data || !VEC_RESERVE(&s->ranges, s->ranges.count + 1))
        return false;
    for (size_t i = first; i < behind; i++) {
        struct space_range *r = &s->ranges.data[i];
        memcpy(joined.data + (r->address - joined.address), r->data, r->len);
        free(r->data);
    }
    memcpy(joined.data + (address - joined.address), data, len);
    memmove(s->ranges.data + first + 1, s->ranges.data + behind, (s->ranges.count - behind) * sizeof joined);
    s->ranges.count = s->ranges.count - (behind - first) + 1;
    s->ranges.data[first] = joined;
    return true;
}

static inline bool space_read(const struct space *s, uint64_t address, void *out, uint64_t len)
{
    size_t first = 0, behind = s->ranges.count; /* the ranges that may begin last at or before the address */

    while (behind - first > 1) {
        size_t middle = first + (behind - first) / 2;
        if (s->ranges.data[middle].address <= address)
            first = middle;
        else
            behind = middle;
    }
    if (first == behind)
        return false;
    const struct space_range *r = &s->ranges.data[first];
    if (address < r->address || len > r->len || address - r->address > r->len - len)
        return false;
    memcpy(out, r->data + (address - r->address), len);
    return true;
}

static inline bool space_write(const struct space *s, FILE *f)
{
    const uint32_t lengths[2] = {sizeof s->layout, sizeof s->process};
    bool ok = fwrite("PYSPACE2", 8, 1, f) == 1 && fwrite(lengths, sizeof lengths, 1, f) == 1 && fwrite(&s->layout, sizeof s->layout, 1, f) == 1 &&
              fwrite(&s->process, sizeof s->process, 1, f) == 1 && fwrite(&s->thread_pointer, 8, 1, f) == 1 &&
              fwrite(&s->stack_pointer, 8, 1, f) == 1;

    for (size_t i = 0; ok && i < s->ranges.count; i++) {
        const struct space_range *r = &s->ranges.data[i];
        ok = fwrite(&r->address, 8, 1, f) == 1 && fwrite(&r->len, 8, 1, f) == 1 && fwrite(r->data, r->len, 1, f) == 1;
    }
    return ok;
}

static inline bool space_load(struct space *s, FILE *f)
{
    char magic[8];
    uint32_t lengths[2];
    uint64_t head[2];

    if (fread(magic, 8, 1, f) != 1 || memcmp(magic, "PYSPACE2", 8) || fread(lengths, sizeof lengths, 1, f) != 1 ||
        lengths[0] > sizeof s->layout || lengths[1] > sizeof s->process || fread(&s->layout, lengths[0], 1, f) != 1 ||
        fread(&s->process, lengths[1], 1, f) != 1 || fread(&s->thread_pointer, 8, 1, f) != 1 ||
        fread(&s->stack_pointer, 8, 1, f) != 1)
        return false;
    while (fread(head, sizeof head, 1, f) == 1) {
        struct space_range r = {.address = head[0], .len = head[1]};
        if (r.len > 1 << 20)
            return false;
        r.data = malloc(r.len);
        if (!r.data || fread(r.data, r.len, 1, f) != 1 || !VEC_PUSH(&s->ranges, r)) {
            free(r.data);
            return false;
        }
    }
    return true;
}

#endif
