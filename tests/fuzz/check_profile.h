/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this a pprof profile that readers take? Ids of the tables count 1, 2, 3, samples have as many values as there are
 * types, all strings are UTF-8 on one line. Traps if not.
 */
#ifndef TESTS_FUZZ_CHECK_PROFILE_H
#define TESTS_FUZZ_CHECK_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#include "formats/base/buf.h"
#include "formats/base/utf8.h"

static inline void profile_require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* A part of the profile that is left to read. */
struct profile_part {
    const uint8_t *at, *end;
};

static inline uint64_t profile_varint(struct profile_part *p)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        profile_require(p->at < p->end && shift < 64);
        value |= (uint64_t)(*p->at & 0x7f) << shift;
        if (*p->at++ < 0x80)
            return value;
    }
}

/* Reads a field; *value is that of a varint, or the length of *inside. False: the message is at its end. */
static inline bool profile_field(struct profile_part *p, uint64_t *number, uint64_t *value, struct profile_part *inside)
{
    if (p->at == p->end)
        return false;
    uint64_t key = profile_varint(p);
    *number = key >> 3;
    *value = profile_varint(p);
    *inside = (struct profile_part){0};
    profile_require((key & 7) == 0 || ((key & 7) == 2 && *value <= (uint64_t)(p->end - p->at)));
    if (key & 7) {
        *inside = (struct profile_part){p->at, p->at + *value};
        p->at = inside->end;
    }
    return true;
}

static inline void profile_check_string(struct profile_part s)
{
    for (size_t n; s.at < s.end; s.at += n) {
        uint32_t code;
        n = utf8_decode(s.at, (size_t)(s.end - s.at), &code);
        profile_require(n && !utf8_is_control(code));
    }
}

static inline void profile_check_sample(struct profile_part sample, uint64_t type_count)
{
    struct profile_part inside;
    uint64_t number, value, values = 0;

    while (profile_field(&sample, &number, &value, &inside)) {
        for (; number == 2 && inside.at < inside.end; values++)
            profile_require((int64_t)profile_varint(&inside) >= 0);
    }
    profile_require(values == type_count);
}

static inline void profile_check_message(struct profile_part p)
{
    enum { TYPE = 1, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING, TABLES };
    uint64_t counts[TABLES] = {0}, number, value, id;
    struct profile_part inside;

    while (profile_field(&p, &number, &value, &inside)) {
        if (number < TABLES)
            counts[number]++;
        if (number == SAMPLE)
            profile_check_sample(inside, counts[TYPE]);
        if (number == STRING)
            profile_check_string(inside);
        if (number >= MAPPING && number <= FUNCTION) {
            struct profile_part of_id;
            profile_require(profile_field(&inside, &id, &value, &of_id) && id == 1 && value == counts[number]);
        }
    }
    profile_require(counts[TYPE] && counts[STRING]);
}

/* `zipped` is the whole file. */
static inline void profile_check(const struct buf *zipped)
{
    z_stream z = {.next_in = zipped->data, .avail_in = (uInt)zipped->len_bytes};
    struct buf raw = {0};
    int result;

    profile_require(inflateInit2(&z, 15 + 16) == Z_OK);
    do {
        z.next_out = buf_reserve(&raw, 1 << 16);
        z.avail_out = 1 << 16;
        result = inflate(&z, Z_NO_FLUSH);
        raw.len_bytes += (1 << 16) - z.avail_out;
    } while (result == Z_OK);
    profile_require(result == Z_STREAM_END && !z.avail_in && !raw.bad);
    inflateEnd(&z);
    profile_check_message((struct profile_part){raw.data, raw.data + raw.len_bytes});
    buf_deinit(&raw);
}

#endif
