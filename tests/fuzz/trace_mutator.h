/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes traces record by record, for fuzzers. Checksums keep arbitrary changes out of a reader, and a record that
 * breaks a rule costs the rest of its epoch. So a trace is taken apart into blocks and records; one field of a record,
 * found by the table of records, or a record as a whole is changed; and all is put together again with checksums that
 * are right. Most changes keep the rules: a reference still names an id that is defined, a list has as many rows as it
 * says. Blocks are written without compression.
 */
#ifndef TESTS_FUZZ_TRACE_MUTATOR_H
#define TESTS_FUZZ_TRACE_MUTATOR_H

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "formats/base/buf.h"
#include "formats/base/bytes.h"
#include "formats/base/vec.h"
#include "formats/trace/block.h"
#include "formats/trace/trace.h"

struct mutator_record {
    uint64_t type;
    struct buf payload;
};
struct mutator_block {
    struct trace_block_header header;
    VEC(struct mutator_record) records;
};
struct mutator {
    VEC(struct mutator_block) blocks;
    uint64_t seed;
};

/* ---- chance: xorshift, the same for the same seed ---- */

static uint64_t mutator_random(struct mutator *m)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return m->seed;
}

/* 0 to n - 1; 0 for 0. */
static size_t mutator_below(struct mutator *m, size_t n)
{
    return n ? mutator_random(m) % n : 0;
}

/* ---- taking apart and putting together ---- */

static void mutator_record_add(struct mutator_block *block, size_t at, uint64_t type, const void *data, size_t len_bytes)
{
    struct mutator_record added = {.type = type};

    buf_put(&added.payload, data, len_bytes);
    if (added.payload.bad || !VEC_RESERVE(&block->records, block->records.count + 1))
        abort();
    memmove(block->records.data + at + 1, block->records.data + at, (block->records.count - at) * sizeof added);
    block->records.data[at] = added;
    block->records.count++;
}

static void mutator_record_drop(struct mutator_block *block, size_t at)
{
    buf_deinit(&block->records.data[at].payload);
    memmove(block->records.data + at, block->records.data + at + 1,
            (block->records.count - at - 1) * sizeof *block->records.data);
    block->records.count--;
}

static void mutator_take_records(struct mutator_block *block, const uint8_t *raw, size_t len_bytes)
{
    struct bytes b = bytes_of(raw, len_bytes);

    while (bytes_left(&b)) {
        uint64_t type = bytes_uleb(&b), len = bytes_uleb(&b);
        const uint8_t *payload = bytes_take(&b, len);
        if (!payload)
            break;
        mutator_record_add(block, block->records.count, type, payload, len);
    }
}

/* Stops at what is no block. */
static void mutator_open(struct mutator *m, const uint8_t *data, size_t len_bytes, unsigned seed)
{
    struct bytes b = bytes_of(data, len_bytes);

    *m = (struct mutator){.seed = seed * 0x9e3779b97f4a7c15u + 1};
    bytes_take(&b, TRACE_FILE_HEADER_BYTES);
    for (const uint8_t *head; (head = bytes_take(&b, TRACE_BLOCK_HEADER_BYTES));) {
        struct mutator_block block = {.header = trace_block_header_unpack(head)};
        const uint8_t *stored = bytes_take(&b, block.header.stored_len_bytes);
        if (!stored || block.header.raw_len_bytes > TRACE_BLOCK_LIMIT_BYTES)
            break;
        if (block.header.codec == TRACE_CODEC_ZSTD) {
            uint8_t *raw = malloc(block.header.raw_len_bytes + 1);
            size_t n = ZSTD_decompress(raw, block.header.raw_len_bytes, stored, block.header.stored_len_bytes);
            if (!ZSTD_isError(n))
                mutator_take_records(&block, raw, n);
            free(raw);
        } else {
            mutator_take_records(&block, stored, block.header.stored_len_bytes);
        }
        if (!VEC_PUSH(&m->blocks, block))
            abort();
    }
}

static void mutator_close(struct mutator *m)
{
    for (size_t i = 0; i < m->blocks.count; i++) {
        while (m->blocks.data[i].records.count)
            mutator_record_drop(&m->blocks.data[i], m->blocks.data[i].records.count - 1);
        VEC_DEINIT(&m->blocks.data[i].records);
    }
    VEC_DEINIT(&m->blocks);
}

/* Writes the trace to `out`; returns its length, or 0 if it is longer than `max_bytes`. */
static size_t mutator_write(struct mutator *m, uint8_t *out, size_t max_bytes)
{
    const struct trace_file_header header = {TRACE_VERSION, TRACE_LEAST_READER, TRACE_FILE_HEADER_BYTES, 0};
    size_t at = TRACE_FILE_HEADER_BYTES;
    struct buf raw = {0};

    if (max_bytes < at)
        return 0;
    trace_file_header_pack(&header, out);
    for (size_t i = 0; at && i < m->blocks.count; i++) {
        struct mutator_block *block = &m->blocks.data[i];
        buf_clear(&raw);
        for (size_t k = 0; k < block->records.count; k++) {
            struct mutator_record *r = &block->records.data[k];
            buf_put_uleb(&raw, r->type);
            buf_put_uleb(&raw, r->payload.len_bytes);
            buf_put(&raw, r->payload.data, r->payload.len_bytes);
        }
        if (raw.bad || raw.len_bytes + TRACE_BLOCK_HEADER_BYTES > max_bytes - at) {
            at = 0;
            break;
        }
        block->header.codec = TRACE_CODEC_RAW;
        block->header.stored_len_bytes = block->header.raw_len_bytes = (uint32_t)raw.len_bytes;
        if (raw.len_bytes)
            memcpy(out + at + TRACE_BLOCK_HEADER_BYTES, raw.data, raw.len_bytes);
        trace_block_header_pack(&block->header, out + at);
        at += TRACE_BLOCK_HEADER_BYTES + raw.len_bytes;
    }
    buf_deinit(&raw);
    return at;
}

/* ---- the fields of a record ---- */

/* A number of a payload, or the bytes of a field with the length before them. */
struct mutator_part {
    size_t at, len_bytes;
    const struct trace_field *field;
    bool is_bytes, is_count; /* a field's bytes; the number of rows of a list */
    uint64_t value;          /* of a number */
};
struct mutator_parts {
    struct mutator_part list[512];
    size_t count;
};

static void mutator_part_add(struct mutator_parts *parts, struct bytes *b, const struct trace_field *field, size_t from,
                             uint64_t value, bool is_bytes, bool is_count)
{
    if (!b->bad && parts->count < sizeof parts->list / sizeof *parts->list)
        parts->list[parts->count++] =
            (struct mutator_part){from, bytes_offset(b) - from, field, is_bytes, is_count, value};
}

static void mutator_list_add(struct mutator_parts *parts, struct bytes *b, const struct trace_field *field)
{
    size_t from = bytes_offset(b);
    uint64_t rows = bytes_uleb(b);

    mutator_part_add(parts, b, field, from, rows, false, true);
    for (uint64_t i = 0; i < rows * (uint64_t)field->argument && bytes_left(b); i++) {
        from = bytes_offset(b);
        uint64_t value = bytes_uleb(b);
        mutator_part_add(parts, b, field, from, value, false, false);
    }
}

static void mutator_parts_of(const struct mutator_record *r, struct mutator_parts *parts)
{
    const struct trace_record_type *type = trace_record_type((uint32_t)r->type);
    struct bytes b = bytes_of(r->payload.data, r->payload.len_bytes);

    parts->count = 0;
    for (uint32_t i = 0; type && i < type->field_count && bytes_left(&b); i++) {
        const struct trace_field *f = &type->fields[i];
        size_t from = bytes_offset(&b);
        if (f->type == TRACE_F_DEF || f->type == TRACE_F_DEFS)
            continue;
        if (f->type == TRACE_F_LIST) {
            mutator_list_add(parts, &b, f);
            continue;
        }
        uint64_t value = bytes_uleb(&b);
        if (f->type != TRACE_F_BYTES) {
            mutator_part_add(parts, &b, f, from, value, false, false);
            continue;
        }
        size_t text = bytes_offset(&b);
        if (!bytes_take(&b, value) && value)
            break;
        if (type->number == TRACE_samples) { /* its bytes are numbers, too */
            struct bytes inner = bytes_of(r->payload.data, r->payload.len_bytes);
            bytes_take(&inner, text);
            while (bytes_left(&inner)) {
                size_t at = bytes_offset(&inner);
                uint64_t number = bytes_uleb(&inner);
                mutator_part_add(parts, &inner, f, at, number, false, false);
            }
        } else {
            mutator_part_add(parts, &b, f, from, value, true, false);
        }
    }
}

/* How many ids of a kind are defined before a record of a block, in its epoch. */
static uint64_t mutator_defined(const struct mutator *m, size_t block, size_t before, int kind)
{
    uint64_t defined = 0;

    for (size_t i = 0; i <= block; i++) {
        const struct mutator_block *b = &m->blocks.data[i];
        if (b->header.flags & TRACE_BLOCK_STARTS_EPOCH)
            defined = 0;
        for (size_t k = 0; k < (i < block ? b->records.count : before); k++) {
            const struct trace_record_type *type = trace_record_type((uint32_t)b->records.data[k].type);
            struct bytes payload = bytes_of(b->records.data[k].payload.data, b->records.data[k].payload.len_bytes);
            for (uint32_t f = 0; type && f < type->field_count; f++) {
                if (type->fields[f].argument != kind)
                    continue;
                if (type->fields[f].type == TRACE_F_DEF)
                    defined++;
                if (type->fields[f].type == TRACE_F_DEFS) { /* STACK: the parent, then the rows that are counted */
                    bytes_uleb(&payload);
                    defined += bytes_uleb(&payload);
                }
            }
        }
    }
    return defined;
}

/* ---- changes ---- */

static void mutator_replace(struct mutator_record *r, size_t at, size_t len_bytes, const struct buf *with)
{
    struct buf changed = {0};

    buf_put(&changed, r->payload.data, at);
    buf_put(&changed, with->data, with->len_bytes);
    buf_put(&changed, r->payload.data + at + len_bytes, r->payload.len_bytes - at - len_bytes);
    buf_deinit(&r->payload);
    r->payload = changed;
}

static uint64_t mutator_number(struct mutator *m, uint64_t value)
{
    static const uint64_t edges[] = {
        0, 1, 2, 127, 128, 255, 256, 4095, 4096, 65535, 1 << 20, (1 << 20) + 1, INT32_MAX, 1u << 31, UINT32_MAX,
        1ull << 32, (1ull << 47) - 1, 1ull << 63, UINT64_MAX,
    };

    switch (mutator_below(m, 6)) {
    case 0:
        return edges[mutator_below(m, sizeof edges / sizeof *edges)];
    case 1:
        return value + 1;
    case 2:
        return value - 1;
    case 3:
        return value ^ 1ull << mutator_below(m, 64);
    case 4:
        return value * 2;
    default:
        return mutator_random(m) >> mutator_below(m, 64);
    }
}

/* What a reader of the output, a terminal or a parser of names might obey. */
static void mutator_text(struct mutator *m, struct buf *out)
{
    static const char *const texts[] = {
        "\x1b]0;P\a\x1b[31mX", "\"},{\"x\":\"", "</script><!--", "a;b;c 99999\n=cmd", "\xff\xfe\xc0\x80\xed\xa0\x80",
        "../../../../etc/passwd", "/proc/self/pagemap", "/dev/tty", "%s%n%x", "\xe2\x80\xae\xe2\x80\x8b\xc2\x9b", "\r\n",
        "_ZN3abc3defE", "_ZNSt6vectorIiSaIiEE9push_backERKi", "_RNvC6_123foo3bar", "x->y (z)", " 1", "", "py::a:b.py",
        "[vdso]", "/tmp/perf-1.map", "/x (deleted)", "_PyEval_EvalFrameDefault", "1000 10 f\n1004 20 g\n",
    };
    const char *text = texts[mutator_below(m, sizeof texts / sizeof *texts)];
    size_t times = mutator_below(m, 4) ? 1 : 1 + mutator_below(m, 300);

    while (times--)
        buf_put_str(out, text);
}

static void mutator_change_part(struct mutator *m, size_t block, size_t at)
{
    struct mutator_record *r = &m->blocks.data[block].records.data[at];
    struct mutator_parts parts;
    struct buf with = {0}, text = {0};

    mutator_parts_of(r, &parts);
    if (!parts.count)
        return;
    const struct mutator_part *p = &parts.list[mutator_below(m, parts.count)];
    const struct trace_field *f = p->field;
    bool is_id = f->type == TRACE_F_REF || f->type == TRACE_F_STR || f->type == TRACE_F_ID;
    if (p->is_bytes) {
        mutator_text(m, &text);
        buf_put_uleb(&with, text.len_bytes);
        buf_put(&with, text.data, text.len_bytes);
    } else if (is_id && mutator_below(m, 8)) {
        buf_put_uleb(&with, mutator_below(m, mutator_defined(m, block, at, f->argument) + 1));
    } else if (r->type == TRACE_stack && f->type == TRACE_F_LIST && !p->is_count && mutator_below(m, 8)) {
        buf_put_uleb(&with, 1 + mutator_below(m, mutator_defined(m, block, at, TRACE_KIND_frame)));
    } else if (p->is_count && mutator_below(m, 8)) {
        /* Some rows more, of the numbers that are there. */
        uint64_t more = 1 + mutator_below(m, mutator_below(m, 8) ? 4 : 3000), width = (uint64_t)f->argument;
        size_t first = p->at + p->len_bytes;
        buf_put_uleb(&with, p->value + more);
        for (uint64_t i = 0; i < more * width; i++)
            buf_put_uleb(&with, p->value ? parts.list[(size_t)(p - parts.list) + 1].value : i);
        mutator_replace(r, p->at, first - p->at, &with);
        buf_deinit(&with);
        return;
    } else {
        buf_put_uleb(&with, mutator_number(m, p->value));
    }
    mutator_replace(r, p->at, p->len_bytes, &with);
    buf_deinit(&with);
    buf_deinit(&text);
}

/* Adds, drops, repeats or moves records, or breaks one. */
static void mutator_change_records(struct mutator *m, size_t block, size_t at)
{
    struct mutator_block *b = &m->blocks.data[block];
    struct mutator_block *other = &m->blocks.data[mutator_below(m, m->blocks.count)];
    struct mutator_record *r = &b->records.data[at], copy;
    size_t to = mutator_below(m, b->records.count), from = mutator_below(m, other->records.count);

    switch (mutator_below(m, 8)) {
    case 0:
        if (r->payload.len_bytes)
            r->payload.data[mutator_below(m, r->payload.len_bytes)] = (uint8_t)mutator_random(m);
        break;
    case 1:
        r->payload.len_bytes = mutator_below(m, r->payload.len_bytes + 1);
        break;
    case 2:
        buf_put_u64(&r->payload, mutator_random(m));
        break;
    case 3:
        for (size_t i = mutator_below(m, 4) ? 1 : 50; i; i--)
            mutator_record_add(b, at, b->records.data[at].type, b->records.data[at].payload.data,
                               b->records.data[at].payload.len_bytes);
        break;
    case 4:
        mutator_record_drop(b, at);
        break;
    case 5:
        copy = *r;
        *r = b->records.data[to];
        b->records.data[to] = copy;
        break;
    case 6:
        if (other != b && other->records.count)
            mutator_record_add(b, to, other->records.data[from].type, other->records.data[from].payload.data,
                               other->records.data[from].payload.len_bytes);
        break;
    default:
        r->type = mutator_below(m, 34);
    }
}

static void mutator_change_block(struct mutator *m, size_t block)
{
    struct trace_block_header *h = &m->blocks.data[block].header;

    switch (mutator_below(m, 4)) {
    case 0:
        h->flags = (uint8_t)mutator_below(m, 5);
        break;
    case 1:
        h->sequence = (uint32_t)mutator_number(m, h->sequence);
        break;
    case 2:
        h->epoch = mutator_number(m, h->epoch);
        break;
    default:
        h->sample_count = (uint32_t)mutator_number(m, h->sample_count);
    }
}

static void mutator_change(struct mutator *m)
{
    static const uint8_t times[] = {1, 1, 1, 2, 3, 5, 10};

    for (int left = times[mutator_below(m, sizeof times)]; left && m->blocks.count; left--) {
        size_t block = mutator_below(m, m->blocks.count), records = m->blocks.data[block].records.count;
        size_t at = mutator_below(m, records), what = mutator_below(m, 32);
        if (!what)
            mutator_change_block(m, block);
        else if (records && what < 8)
            mutator_change_records(m, block, at);
        else if (records)
            mutator_change_part(m, block, at);
    }
}

/* Puts up to 20 records of another trace, one after the other, into this one. */
static void mutator_cross(struct mutator *m, const struct mutator *with)
{
    if (!m->blocks.count || !with->blocks.count)
        return;
    struct mutator_block *to = &m->blocks.data[mutator_below(m, m->blocks.count)];
    const struct mutator_block *from = &with->blocks.data[mutator_below(m, with->blocks.count)];
    size_t at = mutator_below(m, to->records.count + 1), first = mutator_below(m, from->records.count);
    for (size_t i = first; i < from->records.count && i < first + 1 + mutator_below(m, 20); i++, at++)
        mutator_record_add(to, at, from->records.data[i].type, from->records.data[i].payload.data,
                           from->records.data[i].payload.len_bytes);
}

#endif
