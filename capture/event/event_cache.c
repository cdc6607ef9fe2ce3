/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of caches have a type of their own (PERF_TYPE_HW_CACHE), whose config is put together of a cache, an operation
 * and a result. Their names are perf's (tools/perf/util/evsel.c): CACHE[-OPERATION][-RESULT], or without a result
 * CACHE-OPERATIONs; without an operation it is loads.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "capture/event/event_table.h"

enum { WORDS = 5 };

struct part {
    uint32_t value;
    const char *words[WORDS]; /* the first one is that of perf list */
    uint32_t operations;      /* of a cache: which ones it has, as bits */
    const char *unit;         /* of an operation or a result */
};

#define LOADS (1u << PERF_COUNT_HW_CACHE_OP_READ)
#define STORES (1u << PERF_COUNT_HW_CACHE_OP_WRITE)
#define PREFETCHES (1u << PERF_COUNT_HW_CACHE_OP_PREFETCH)
static const struct part caches[] = {
    {PERF_COUNT_HW_CACHE_L1D, {"L1-dcache", "L1-d", "L1d", "L1-data"}, LOADS | STORES | PREFETCHES, NULL},
    {PERF_COUNT_HW_CACHE_L1I, {"L1-icache", "L1-i", "L1i", "L1-instruction"}, LOADS | PREFETCHES, NULL},
    {PERF_COUNT_HW_CACHE_LL, {"LLC", "L2"}, LOADS | STORES | PREFETCHES, NULL},
    {PERF_COUNT_HW_CACHE_DTLB, {"dTLB", "d-tlb", "Data-TLB"}, LOADS | STORES | PREFETCHES, NULL},
    {PERF_COUNT_HW_CACHE_ITLB, {"iTLB", "i-tlb", "Instruction-TLB"}, LOADS, NULL},
    {PERF_COUNT_HW_CACHE_BPU, {"branch", "branches", "bpu", "btb", "bpc"}, LOADS, NULL},
    {PERF_COUNT_HW_CACHE_NODE, {"node"}, LOADS | STORES | PREFETCHES, NULL},
    {0},
};
static const struct part operations[] = {
    {PERF_COUNT_HW_CACHE_OP_READ, {"load", "loads", "read"}, 0, "loads"},
    {PERF_COUNT_HW_CACHE_OP_WRITE, {"store", "stores", "write"}, 0, "stores"},
    {PERF_COUNT_HW_CACHE_OP_PREFETCH, {"prefetch", "prefetches", "speculative-read", "speculative-load"}, 0, "prefetches"},
    {0},
};
static const struct part results[] = {
    {PERF_COUNT_HW_CACHE_RESULT_ACCESS, {"refs", "reference", "ops", "access"}, 0, NULL},
    {PERF_COUNT_HW_CACHE_RESULT_MISS, {"misses", "miss"}, 0, "misses"},
    {0},
};

/* Finds the longest word of the parts with which the text begins, before its end or a hyphen, and moves behind it. */
static const struct part *take_part(const struct part *parts, const char **text, size_t *len)
{
    const struct part *found = NULL;
    size_t longest = 0;

    for (; parts->words[0]; parts++) {
        for (int i = 0; i < WORDS && parts->words[i]; i++) {
            size_t word = strlen(parts->words[i]);
            if (word > longest && word <= *len && !strncasecmp(*text, parts->words[i], word) &&
                (word == *len || (*text)[word] == '-')) {
                longest = word;
                found = parts;
            }
        }
    }
    if (found && longest < *len)
        longest++; /* the hyphen; one at the end is an error of its own */
    *text += longest;
    *len -= longest;
    return found;
}

bool event_cache_find(const char *name, size_t len, struct event_source *out)
{
    const char *at = name;
    size_t left = len;
    const struct part *cache = take_part(caches, &at, &left), *operation = NULL, *result = NULL;

    if (!cache || !len || name[len - 1] == '-')
        return false;
    for (int i = 0; i < 2 && left; i++) {
        const struct part *part = operation ? NULL : take_part(operations, &at, &left);
        if (part)
            operation = part;
        else if (result || !(result = take_part(results, &at, &left)))
            return false;
    }
    operation = operation ? operation : &operations[0];
    result = result ? result : &results[0];
    if (left || !(cache->operations & 1u << operation->value))
        return false;
    *out = (struct event_source){
        .unit = result->unit ? result->unit : operation->unit,
        .kind = EVENT_HARDWARE,
        .type = PERF_TYPE_HW_CACHE,
        .config = cache->value | operation->value << 8 | result->value << 16,
    };
    return true;
}

bool event_cache_name(size_t index, char out[40])
{
    for (const struct part *cache = caches; cache->words[0]; cache++) {
        for (const struct part *operation = operations; operation->words[0]; operation++) {
            if (!(cache->operations & 1u << operation->value))
                continue;
            if (index < 2) {
                snprintf(out, 40, "%s-%s%s", cache->words[0], index ? operation->words[0] : operation->unit,
                         index ? "-misses" : "");
                return true;
            }
            index -= 2;
        }
    }
    return false;
}

bool event_raw_find(const char *name, size_t len, struct event_source *out)
{
    uint64_t config = 0;

    if (len < 2 || len > 17 || *name != 'r')
        return false;
    for (size_t i = 1; i < len; i++) {
        char c = (char)(name[i] | 0x20); /* a lower-case letter, or the digit that it was */
        if (!((name[i] >= '0' && name[i] <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        config = config << 4 | (uint64_t)(c >= 'a' ? c - 'a' + 10 : name[i] - '0');
    }
    *out = (struct event_source){.unit = "events", .kind = EVENT_HARDWARE, .type = PERF_TYPE_RAW, .config = config};
    return true;
}
