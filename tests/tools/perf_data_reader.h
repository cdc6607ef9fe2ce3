/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a perf.data file as the documentation of perf describes it, for tests of what pysym writes. It knows nothing of
 * the writer's code, and finds fault with what no writer should do: parts that overlap or leave the file, records of a
 * wrong length, times that decrease, names without an end.
 */
#ifndef TESTS_TOOLS_PERF_DATA_READER_H
#define TESTS_TOOLS_PERF_DATA_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A file in memory. Records are read by perf_data_next(). */
struct perf_data_reader {
    const uint8_t *data;
    size_t len_bytes, at, end;
    uint64_t last_ns;
    uint32_t event_count;
};

struct perf_data_record {
    uint32_t type;
    uint16_t misc;
    const uint8_t *body; /* behind the type and the length */
    size_t body_len;
};

static inline uint64_t perf_data_u64(const uint8_t *at)
{
    uint64_t v = 0;

    for (int i = 7; i >= 0; i--)
        v = v << 8 | at[i];
    return v;
}
static inline uint32_t perf_data_u32(const uint8_t *at)
{
    return (uint32_t)(perf_data_u64(at) & UINT32_MAX); /* callers know of 8 bytes */
}

static inline bool perf_data_inside_(const struct perf_data_reader *r, uint64_t offset, uint64_t len_bytes)
{
    return offset <= r->len_bytes && len_bytes <= r->len_bytes - offset;
}

/* The place of a feature; false: it is not there. perf_data_open() has checked it. */
static inline bool perf_data_feature(const struct perf_data_reader *r, unsigned number, const uint8_t **data, size_t *len_bytes)
{
    size_t before = 0;

    if (!(r->data[72 + number / 8] >> number % 8 & 1))
        return false;
    for (unsigned i = 0; i < number; i++)
        before += r->data[72 + i / 8] >> i % 8 & 1;
    *data = r->data + perf_data_u64(r->data + r->end + 16 * before);
    *len_bytes = perf_data_u64(r->data + r->end + 16 * before + 8);
    return true;
}

/* False: it is no whole perf.data file. */
static inline bool perf_data_open(struct perf_data_reader *r, const uint8_t *data, size_t len_bytes)
{
    enum { HEADER = 104, ATTRIBUTE = 144 };

    *r = (struct perf_data_reader){.data = data, .len_bytes = len_bytes};
    if (len_bytes < HEADER || memcmp(data, "PERFILE2", 8) != 0 || perf_data_u64(data + 8) != HEADER ||
        perf_data_u64(data + 16) != ATTRIBUTE)
        return false;
    uint64_t attributes = perf_data_u64(data + 24), attributes_len = perf_data_u64(data + 32);
    r->at = perf_data_u64(data + 40);
    if (!perf_data_inside_(r, attributes, attributes_len) || !perf_data_inside_(r, r->at, perf_data_u64(data + 48)) ||
        attributes_len % ATTRIBUTE || !attributes_len)
        return false;
    r->end = r->at + perf_data_u64(data + 48);
    r->event_count = (uint32_t)(attributes_len / ATTRIBUTE);
    for (uint32_t i = 0; i < r->event_count; i++) {
        const uint8_t *attribute = data + attributes + i * ATTRIBUTE;
        uint64_t ids = perf_data_u64(attribute + 128);
        if (perf_data_u64(attribute + 136) != 8 || !perf_data_inside_(r, ids, 8) || perf_data_u64(data + ids) != i + 1)
            return false;
    }
    size_t section = r->end, next = 0;
    for (unsigned i = 0; i < 256; i++) {
        if (!(data[72 + i / 8] >> i % 8 & 1))
            continue;
        if (!perf_data_inside_(r, section, 16) ||
            !perf_data_inside_(r, perf_data_u64(data + section), perf_data_u64(data + section + 8)) ||
            perf_data_u64(data + section) < next)
            return false;
        next = perf_data_u64(data + section) + perf_data_u64(data + section + 8);
        section += 16;
    }
    return true;
}

/* True: *out is a record. False: there is none left, or, with *broken, the next one is not as it should be. */
static inline bool perf_data_next(struct perf_data_reader *r, struct perf_data_record *out, bool *broken)
{
    enum { MMAP = 1, COMM = 3, SAMPLE = 9, MMAP2 = 10, CGROUP = 19, ROUND = 68, STAMP = 32 };
    static const uint8_t names[] = {[MMAP] = 32, [COMM] = 8, [MMAP2] = 64, [CGROUP] = 8};

    *broken = false;
    if (r->at == r->end)
        return false;
    *broken = true;
    if (r->end - r->at < 8)
        return false;
    const uint8_t *record = r->data + r->at;
    size_t len_bytes = record[6] | (size_t)record[7] << 8;
    *out = (struct perf_data_record){.type = perf_data_u32(record), .misc = (uint16_t)(record[4] | record[5] << 8),
                                     .body = record + 8, .body_len = len_bytes - 8};
    if (len_bytes < 8 || len_bytes % 8 || len_bytes > r->end - r->at)
        return false;
    r->at += len_bytes;
    *broken = false;
    if (out->type == ROUND)
        return true;
    *broken = true;
    bool sample = out->type == SAMPLE;
    if (out->body_len < (sample ? 64u : STAMP))
        return false;
    const uint8_t *stamp = out->body + (sample ? 16 : out->body_len - STAMP);
    uint64_t time = perf_data_u64(stamp + 8), id = perf_data_u64(sample ? out->body : stamp + 24);
    if (!time || time < r->last_ns || !id || id > r->event_count)
        return false;
    r->last_ns = time;
    if (sample && perf_data_u64(out->body + 48) != (out->body_len - 64) / 8)
        return false;
    if (out->type < sizeof names && names[out->type]) {
        size_t name = names[out->type];
        if (out->body_len < name + STAMP + 8 || !memchr(out->body + name, 0, out->body_len - STAMP - name))
            return false;
    }
    *broken = false;
    return true;
}

#endif
