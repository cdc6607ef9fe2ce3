/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged traces: what is damaged costs no more than the rest of its epoch, and is
 * counted.
 *
 * Damage is made in two ways: by changing bytes of a file, which the checksums notice,
 * and by changing one record inside its block and sealing the block anew, which leaves
 * it to the decoder to notice. The second walks the table of records.
 */
#include "tests/unit/test.h"
#include "tests/unit/trace_fixture.h"

#include <stdlib.h>
#include <time.h>
#include <zstd.h>

/* ---- damage to bytes ---- */

TEST(truncated_anywhere)
{
    struct buf b = small_trace();
    struct layout l = layout_of(&b);

    assert_true(l.count >= 3 * SMALL_EPOCHS);
    assert_opening_fails(b.data, 0, ERROR_TRUNCATED, "t: is empty");
    for (size_t len = 1; len < TRACE_FILE_HEADER_BYTES; len++)
        assert_opening_fails(b.data, len, ERROR_TRUNCATED, "t: ends inside the file header");
    for (size_t len = TRACE_FILE_HEADER_BYTES; len <= b.len_bytes; len++) {
        size_t whole = TRACE_FILE_HEADER_BYTES;
        uint64_t records = 0;
        for (size_t i = 0; i < l.count && l.blocks[i].end <= len; i++) {
            whole = l.blocks[i].end;
            records = l.blocks[i].records;
        }
        struct outcome o = read_bytes(b.data, len);
        assert_int_equal(o.records, records);
        assert_int_equal(o.stats.damage_count, whole != len);
        assert_int_equal(o.stats.epochs_damaged, whole != len);
        assert_int_equal(o.stats.damaged_bytes, len - whole);
        assert_int_equal(o.stats.ended, len == b.len_bytes);
        if (whole != len) {
            assert_int_equal(o.first.file_offset, whole);
            assert_string_equal(o.first.reason, "the file ends inside a block");
        }
    }
    buf_deinit(&b);
}

TEST(any_bit_flipped)
{
    struct buf b = small_trace();
    struct layout l = layout_of(&b);
    struct outcome whole = read_bytes(b.data, b.len_bytes);

    assert_int_equal(whole.stats.damage_count, 0);
    assert_int_equal(whole.stats.epoch_count, SMALL_EPOCHS);
    for (size_t at = 0; at < b.len_bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            b.data[at] ^= (uint8_t)(1 << bit);
            if (at < TRACE_MAGIC_BYTES) {
                assert_opening_fails(b.data, b.len_bytes, ERROR_FORMAT, "t: is not a pycap trace");
            } else {
                uint64_t hit = UINT64_MAX;
                for (size_t i = 0; i < l.count; i++)
                    if (at >= l.blocks[i].offset && at < l.blocks[i].end)
                        hit = l.blocks[i].epoch;
                struct outcome o = read_bytes(b.data, b.len_bytes);
                assert_int_equal(o.stats.damage_count, 1);
                assert_int_equal(o.stats.epochs_damaged, hit != UINT64_MAX);
                for (uint64_t epoch = 0; epoch < SMALL_EPOCHS; epoch++) {
                    if (epoch == hit)
                        assert_true(o.by_epoch[epoch] < whole.by_epoch[epoch]);
                    else
                        assert_int_equal(o.by_epoch[epoch], whole.by_epoch[epoch]);
                }
                assert_in_range(at, o.first.file_offset, o.first.file_offset + o.first.len_bytes - 1);
            }
            b.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    buf_deinit(&b);
}

/* Blocks that are whole and yet not there where they belong. */
TEST(missing_blocks)
{
    struct buf b = small_trace();
    struct layout l = layout_of(&b);
    struct outcome whole = read_bytes(b.data, b.len_bytes);
    uint64_t lost = 0;

    for (size_t i = 0; i < l.count; i++) {
        struct buf cut = {0};
        buf_put(&cut, b.data, l.blocks[i].offset);
        buf_put(&cut, b.data + l.blocks[i].end, b.len_bytes - l.blocks[i].end);
        struct outcome o = read_bytes(cut.data, cut.len_bytes);
        if (i + 1 < l.count) {
            assert_int_equal(o.stats.damage_count, 1);
            assert_int_equal(o.stats.epochs_damaged, 1);
        }
        for (uint64_t epoch = 0; epoch < SMALL_EPOCHS; epoch++)
            assert_int_equal(o.by_epoch[epoch] < whole.by_epoch[epoch], epoch == l.blocks[i].epoch);
        lost += o.stats.skipped_sample_count;
        buf_deinit(&cut);
    }
    assert_true(lost > 0);

    /* A whole epoch is gone without a trace but in the numbers. */
    size_t first = 0, last = 0;
    while (l.blocks[first].epoch != 1)
        first++;
    for (last = first; l.blocks[last].epoch == 1;)
        last++;
    struct buf cut = {0};
    buf_put(&cut, b.data, l.blocks[first].offset);
    buf_put(&cut, b.data + l.blocks[last].offset, b.len_bytes - l.blocks[last].offset);
    struct outcome o = read_bytes(cut.data, cut.len_bytes);
    assert_int_equal(o.stats.epochs_damaged, 1);
    assert_int_equal(o.stats.damaged_bytes, 0);
    assert_string_equal(o.first.reason, "epochs between 0 and 2 are missing");
    buf_deinit(&cut);
    buf_deinit(&b);
}

/* Text, zeros and other files between blocks; traces one after the other. */
TEST(garbage_and_appended_traces)
{
    struct buf b = small_trace();
    struct layout l = layout_of(&b);
    struct outcome whole = read_bytes(b.data, b.len_bytes);

    for (size_t i = 0; i <= l.count; i++) {
        size_t at = i < l.count ? l.blocks[i].offset : b.len_bytes;
        struct buf mixed = {0};
        buf_put(&mixed, b.data, at);
        buf_put_str(&mixed, "\x89\x89PYBLK\r\x89PYBLK\r\nhello, no block at all; but a few bytes that look like one");
        buf_put(&mixed, b.data + at, b.len_bytes - at);
        struct outcome o = read_bytes(mixed.data, mixed.len_bytes);
        assert_int_equal(o.stats.damage_count, 1);
        assert_true(o.records >= whole.records * 2 / 3 - 1);
        buf_deinit(&mixed);
    }
    struct buf twice = {0};
    buf_put(&twice, b.data, b.len_bytes);
    buf_put(&twice, b.data, b.len_bytes);
    struct outcome o = read_bytes(twice.data, twice.len_bytes);
    assert_int_equal(o.stats.damage_count, 0);
    assert_int_equal(o.records, 2 * whole.records);
    /* The first was killed. */
    twice.len_bytes = b.len_bytes - 5;
    buf_put(&twice, b.data, b.len_bytes);
    o = read_bytes(twice.data, twice.len_bytes);
    assert_int_equal(o.stats.damage_count, 1);
    assert_int_equal(o.by_epoch[0], 2 * whole.by_epoch[0]);
    assert_int_equal(o.by_epoch[1], 2 * whole.by_epoch[1]);
    assert_true(o.by_epoch[2] >= whole.by_epoch[2]);
    buf_deinit(&twice);
    buf_deinit(&b);
}

/* ---- damage inside sealed blocks ---- */

struct edit {
    uint32_t type, nth;     /* the record to change: the nth of its type, from 0 */
    uint32_t new_type;
    struct buf payload;     /* what it becomes */
    void (*header)(struct trace_block_header *h, struct buf *raw); /* or: change the block that holds it */
};

/* The trace `in` again, changed, its blocks stored raw and sealed anew. */
static struct buf rewrite(const struct buf *in, const struct edit *edit)
{
    struct buf out = {0};
    uint32_t seen = 0;

    buf_put(&out, in->data, TRACE_FILE_HEADER_BYTES);
    for (size_t at = TRACE_FILE_HEADER_BYTES; at < in->len_bytes;) {
        struct trace_block_header h = trace_block_header_unpack(in->data + at);
        const uint8_t *stored = in->data + at + TRACE_BLOCK_HEADER_BYTES;
        struct buf raw = {0}, changed = {0};
        bool here = false;
        uint8_t *p = buf_reserve(&raw, h.raw_len_bytes);
        if (h.codec == TRACE_CODEC_ZSTD)
            assert_int_equal(ZSTD_decompress(p, h.raw_len_bytes, stored, h.stored_len_bytes), h.raw_len_bytes);
        else
            memcpy(p, stored, h.raw_len_bytes);
        struct bytes b = bytes_of(p, h.raw_len_bytes);
        while (bytes_left(&b)) {
            uint64_t type = bytes_uleb(&b), len = bytes_uleb(&b);
            const uint8_t *payload = bytes_take(&b, len);
            assert_false(b.bad);
            bool hit = type == edit->type && seen++ == edit->nth;
            if (hit && !edit->header) {
                type = edit->new_type;
                payload = edit->payload.data;
                len = edit->payload.len_bytes;
            }
            here |= hit;
            buf_put_uleb(&changed, type);
            buf_put_uleb(&changed, len);
            buf_put(&changed, payload, len);
        }
        at += TRACE_BLOCK_HEADER_BYTES + h.stored_len_bytes;
        h.codec = TRACE_CODEC_RAW;
        h.raw_len_bytes = h.stored_len_bytes = (uint32_t)changed.len_bytes;
        if (here && edit->header)
            edit->header(&h, &changed);
        uint8_t *sealed = buf_reserve(&out, TRACE_BLOCK_HEADER_BYTES + changed.len_bytes);
        if (changed.len_bytes)
            memcpy(sealed + TRACE_BLOCK_HEADER_BYTES, changed.data, changed.len_bytes);
        trace_block_header_pack(&h, sealed);
        out.len_bytes += TRACE_BLOCK_HEADER_BYTES + changed.len_bytes;
        buf_deinit(&raw);
        buf_deinit(&changed);
    }
    return out;
}

/* An epoch with every type of record, then one with little in it. */
static struct buf full_trace(struct generator *g, struct trace_record *written, uint32_t *count)
{
    struct trace_writer *w;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", NULL, 0, &w));
    *count = write_generated(w, g, written);
    trace_writer_new_epoch(w, 1);
    define_basics(w);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
    struct buf b = contents(fd);
    close(fd);
    return b;
}

static const struct trace_ids all_ids_known = {
    .count = {[0 ... TRACE_KIND_COUNT - 1] = UINT32_MAX},
};

struct full {
    struct generator g;
    struct trace_record written[TYPES * ROUNDS];
    uint32_t count;
    struct buf trace;
    struct outcome whole;
};

static struct full *full_create(void)
{
    struct full *f = calloc(1, sizeof *f);

    f->g.state = 4711;
    f->trace = full_trace(&f->g, f->written, &f->count);
    f->whole = read_bytes(f->trace.data, f->trace.len_bytes);
    assert_int_equal(f->whole.stats.damage_count, 0);
    return f;
}

static void full_destroy(struct full *f)
{
    arena_deinit(&f->g.arena);
    buf_deinit(&f->trace);
    free(f);
}

/* The last record of a type with a payload of the caller's; takes the buffer. */
static struct outcome read_with_payload(const struct full *f, uint32_t type, struct buf payload)
{
    struct edit edit = {.type = type, .nth = ROUNDS - 1, .new_type = type, .payload = payload};

    assert_false(payload.bad);
    struct buf changed = rewrite(&f->trace, &edit);
    struct outcome o = read_bytes(changed.data, changed.len_bytes);
    buf_deinit(&changed);
    buf_deinit(&edit.payload);
    /* Whatever happened, the next epoch is read. */
    assert_int_equal(o.by_epoch[1], f->whole.by_epoch[1]);
    return o;
}

static void assert_refused(const struct full *f, struct outcome o, const char *type, const char *field,
                           const char *text)
{
    char where[80];

    assert_int_equal(o.stats.damage_count, 1);
    assert_int_equal(o.stats.epochs_damaged, 1);
    assert_true(o.by_epoch[0] < f->whole.by_epoch[0]);
    snprintf(where, sizeof where, "%s.%s", type, field);
    if (strncmp(o.first.reason, where, strlen(where)) || !strstr(o.first.reason, text))
        fail_msg("%s: expected '%s', got '%s'", where, text, o.first.reason);
}

/* The generated record of a type that was written last. */
static struct trace_record last_of(const struct full *f, uint32_t type)
{
    for (uint32_t i = f->count; i-- > 0;)
        if (f->written[i].type == type)
            return f->written[i];
    fail();
    return (struct trace_record){0};
}

/* The payload of a record up to field `fields`. */
static struct buf payload_of(const struct trace_record_type *type, const void *record, uint32_t fields)
{
    struct trace_record_type cut = *type;
    struct trace_fault fault;
    struct buf b = {0};

    /* A number that no record has: only the table's rules apply, so that what a case breaks is its own choice. */
    cut.number = 0;
    cut.field_count = fields;
    assert_true(trace_encode(&b, &cut, record, &all_ids_known, &fault));
    return b;
}

TEST(dangling_ids)
{
    struct full *f = full_create();
    unsigned tried = 0;

    for (uint32_t number = 1; number < TYPES; number++) {
        const struct trace_record_type *type = trace_record_type(number);
        for (uint32_t i = 0; type && number != TRACE_epoch && i < type->field_count; i++) {
            const struct trace_field *field = &type->fields[i];
            if (field->type != TRACE_F_REF && field->type != TRACE_F_STR && field->type != TRACE_F_ID)
                continue;
            struct trace_record rec = last_of(f, number);
            uint32_t *id = (uint32_t *)((char *)record_of(&rec) + field->struct_offset);
            /* One more than there are when the record is met; a reader that counted wrong would take it. */
            uint32_t known = f->g.ids.count[field->argument];
            for (uint32_t k = 0; k < type->field_count; k++)
                if (type->fields[k].type == TRACE_F_DEF && type->fields[k].argument == field->argument)
                    known--;
            if (number == TRACE_stack)
                known = rec.stack.first_id - 1;
            *id = known + 1;
            assert_refused(f, read_with_payload(f, number, payload_of(type, record_of(&rec), type->field_count)),
                           type->name, field->name, "is not defined");
            *id = UINT32_MAX;
            assert_refused(f, read_with_payload(f, number, payload_of(type, record_of(&rec), type->field_count)),
                           type->name, field->name, "is not defined");
            if (field->type == TRACE_F_ID) {
                *id = 0;
                struct trace_record_type lenient = *type;
                struct trace_field *fields = calloc(type->field_count, sizeof *fields);
                memcpy(fields, type->fields, type->field_count * sizeof *fields);
                fields[i].type = TRACE_F_REF;
                lenient.fields = fields;
                struct buf b = payload_of(&lenient, record_of(&rec), type->field_count);
                assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "is named");
                free(fields);
            }
            tried++;
        }
    }
    assert_true(tried > 40);

    /* Ids that stand inside lists. */
    struct trace_record rec = {.stack.frames = {(uint64_t[]){1, f->g.ids.count[TRACE_KIND_frame] + 1}, 2}};
    assert_refused(f, read_with_payload(f, TRACE_stack, payload_of(trace_record_type(TRACE_stack), record_of(&rec), 3)),
                   "stack", "frames", "is not defined");
    rec = (struct trace_record){.stack.frames = {(uint64_t[]){0}, 1}};
    assert_refused(f, read_with_payload(f, TRACE_stack, payload_of(trace_record_type(TRACE_stack), record_of(&rec), 3)),
                   "stack", "frames", "no frame is named");
    rec = (struct trace_record){.label_set.pairs = {(uint64_t[]){1, UINT64_MAX}, 1}};
    struct buf b = payload_of(trace_record_type(TRACE_label_set), record_of(&rec), 2);
    assert_refused(f, read_with_payload(f, TRACE_label_set, b), "label_set", "pairs", "is not defined");
    full_destroy(f);
}

TEST(malformed_fields)
{
    struct full *f = full_create();

    for (uint32_t number = 1; number < TYPES; number++) {
        const struct trace_record_type *type = trace_record_type(number);
        for (uint32_t i = 0; type && number != TRACE_epoch && i < type->field_count; i++) {
            const struct trace_field *field = &type->fields[i];
            struct trace_record rec = last_of(f, number);
            if (field->type == TRACE_F_DEF || field->type == TRACE_F_DEFS)
                continue;

            struct buf b = payload_of(type, record_of(&rec), i);
            buf_put_u8(&b, 0x80);
            assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "malformed");

            b = payload_of(type, record_of(&rec), i);
            for (int k = 0; k < 20; k++)
                buf_put_u8(&b, 0xff);
            assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "malformed");

            b = payload_of(type, record_of(&rec), i);
            if (field->type == TRACE_F_U32) {
                buf_put_uleb(&b, UINT64_C(1) << 32);
                assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "does not fit");
            } else if (field->type == TRACE_F_BYTES) {
                buf_put_uleb(&b, UINT64_MAX);
                assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "cut off");
                b = payload_of(type, record_of(&rec), i);
                buf_put_uleb(&b, 2);
                buf_put_u8(&b, 0);
                assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "cut off");
            } else if (field->type == TRACE_F_LIST) {
                buf_put_uleb(&b, UINT64_MAX);
                assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "too long");
                b = payload_of(type, record_of(&rec), i);
                buf_put_uleb(&b, 2);
                for (int k = 0; k < 2 * field->argument - 1; k++)
                    buf_put_u8(&b, 1);
                assert_refused(f, read_with_payload(f, number, b), type->name, field->name, "too long");
            } else {
                buf_deinit(&b);
            }
        }
    }
    /* More numbers than a list may have, all of them there. */
    struct buf b = payload_of(trace_record_type(TRACE_join), &(struct trace_join){0}, 2);
    buf_put_uleb(&b, TRACE_LIST_LIMIT / 2 + 1);
    memset(buf_reserve(&b, TRACE_LIST_LIMIT + 2), 1, TRACE_LIST_LIMIT + 2);
    b.len_bytes += TRACE_LIST_LIMIT + 2;
    assert_refused(f, read_with_payload(f, TRACE_join, b), "join", "runs", "too long");
    full_destroy(f);
}

/* A record from an older writer lacks fields, one from a newer writer has more. */
TEST(records_of_other_ages)
{
    struct full *f = full_create();

    for (uint32_t number = 1; number < TYPES; number++) {
        const struct trace_record_type *type = trace_record_type(number);
        if (!type || number == TRACE_epoch)
            continue;
        struct trace_record rec = last_of(f, number);
        struct buf b = payload_of(type, record_of(&rec), type->field_count);
        buf_put_str(&b, "\xff\xff\xff fields from a later version");
        struct outcome o = read_with_payload(f, number, b);
        assert_int_equal(o.stats.damage_count, 0);
        assert_int_equal(o.records, f->whole.records);
        for (uint32_t i = 0; i < type->field_count; i++) {
            bool id_after = false, is_first = true;
            for (uint32_t k = i; k < type->field_count; k++)
                id_after |= type->fields[k].type == TRACE_F_ID;
            for (uint32_t k = 0; k < i; k++)
                is_first &= type->fields[k].type == TRACE_F_DEF || type->fields[k].type == TRACE_F_DEFS;
            /* Without its list a stack defines other ids than later records use; samples cannot lack their data. */
            if (is_first || number == TRACE_stack || number == TRACE_samples)
                continue;
            o = read_with_payload(f, number, payload_of(type, record_of(&rec), i));
            assert_int_equal(o.stats.damage_count, id_after);
        }
    }
    /* Types that are not known are skipped and counted. */
    struct edit edit = {.type = TRACE_meta, .nth = 1, .new_type = 70000};
    buf_put_str(&edit.payload, "\xff\xff\xff");
    struct buf changed = rewrite(&f->trace, &edit);
    struct outcome o = read_bytes(changed.data, changed.len_bytes);
    assert_int_equal(o.stats.damage_count, 0);
    assert_int_equal(o.stats.unknown_record_count, 1);
    assert_int_equal(o.records, f->whole.records - 1);
    buf_deinit(&changed);
    buf_deinit(&edit.payload);
    full_destroy(f);
}

TEST(bad_samples)
{
    static const struct {
        struct trace_sample sample;
        const char *text;
    } cases[] = {
        {{.thread = 0}, "sample: no thread is named"},
        {{.thread = 4000}, "sample: thread 4000 is not defined"},
        {{.thread = 1, .tuple = 4000}, "sample: tuple 4000 is not defined"},
        {{.thread = 1, .label_set = 4000}, "sample: label_set 4000 is not defined"},
    };
    struct full *f = full_create();
    const struct trace_record_type *type = trace_record_type(TRACE_samples);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf data = {0};
        trace_sample_encode(&data, &(struct trace_sample){.thread = 1}, 0);
        trace_sample_encode(&data, &cases[i].sample, 0);
        struct trace_samples record = {.event = 1, .count = 2, .data = {data.data, data.len_bytes}};
        struct outcome o = read_with_payload(f, TRACE_samples, payload_of(type, &record, type->field_count));
        assert_int_equal(o.stats.damage_count, 1);
        assert_string_equal(o.first.reason, cases[i].text);
        buf_deinit(&data);
    }
    /* The count and the data disagree, either way; a varint has no end; the data is cut anywhere. */
    struct buf data = {0};
    struct trace_sample long_one = {.time_ns = 1 << 20, .thread = 1, .flags = 1, .value = 300, .label_set = 1};
    trace_sample_encode(&data, &long_one, 0);
    for (size_t len = 0; len <= data.len_bytes; len++) {
        for (uint32_t count = 0; count < 3; count++) {
            struct trace_samples record = {.event = 1, .count = count, .data = {data.data, len}};
            bool good = (count == 0 && len == 0) || (count == 1 && len == data.len_bytes);
            struct outcome o = read_with_payload(f, TRACE_samples, payload_of(type, &record, type->field_count));
            assert_int_equal(o.stats.damage_count, !good);
        }
    }
    struct trace_samples record = {.event = 1, .count = UINT32_MAX, .data = {(const uint8_t *)"\x80\x80", 2}};
    struct outcome o = read_with_payload(f, TRACE_samples, payload_of(type, &record, type->field_count));
    assert_string_equal(o.first.reason, "samples.data: sample 1 of 4294967295 is cut off or malformed");
    buf_deinit(&data);
    full_destroy(f);
}

/* ---- flags of later versions ---- */

/* A sample of thread 1 with any flags, and what stands behind them. */
static void put_sample(struct buf *out, uint64_t flags, const uint64_t *payloads, uint32_t payload_count)
{
    buf_put_zigzag(out, 5);
    buf_put_uleb(out, 1); /* thread */
    buf_put_uleb(out, 0); /* tuple */
    buf_put_uleb(out, 3); /* cpu */
    buf_put_uleb(out, flags);
    for (uint32_t i = 0; i < payload_count; i++)
        buf_put_uleb(out, payloads[i]);
}

static struct outcome read_samples(const struct full *f, const struct buf *data, uint32_t count)
{
    const struct trace_record_type *type = trace_record_type(TRACE_samples);
    struct trace_samples record = {.event = 1, .time_ns = 100, .count = count, .data = {data->data, data->len_bytes}};

    return read_with_payload(f, TRACE_samples, payload_of(type, &record, type->field_count));
}

static const struct newer_flags {
    uint64_t flags, payloads[12];
    uint32_t payload_count;
    uint64_t value; /* 7: the period */
    uint32_t label_set;
} newer_flags[] = {
    /* without a payload */
    {.flags = 1 << 16, .value = 7},
    {.flags = UINT64_C(1) << 31, .value = 7},
    {.flags = 0xffff00fc, .value = 7}, /* all that there are */
    /* with one, of any length */
    {.flags = 1 << 8, .payloads = {0}, .payload_count = 1, .value = 7},
    {.flags = 1 << 15, .payloads = {UINT64_MAX}, .payload_count = 1, .value = 7},
    {.flags = 0xff00, .payloads = {1, 2, 300, 70000, 1, 2, 3, UINT64_MAX}, .payload_count = 8, .value = 7},
    /* beside those that are known */
    {.flags = 1 << 9 | 3, .payloads = {250, 1, 99}, .payload_count = 3, .value = 250, .label_set = 1},
    {.flags = 1 << 10 | 1 << 7 | 2, .payloads = {1, 99}, .payload_count = 2, .value = 7, .label_set = 1},
    {.flags = 0xffffffff, .payloads = {5, 1, 1, 2, 3, 4, 5, 6, 7, 8}, .payload_count = 10, .value = 5, .label_set = 1},
};

/* Flags that are not known are skipped with what comes with them: the samples behind are read as they are. */
TEST(newer_sample_flags)
{
    struct full *f = full_create();

    for (size_t i = 0; i < sizeof newer_flags / sizeof newer_flags[0]; i++) {
        const struct newer_flags *n = &newer_flags[i];
        struct buf data = {0};
        put_sample(&data, n->flags, n->payloads, n->payload_count);
        put_sample(&data, TRACE_SAMPLE_KERNEL | TRACE_SAMPLE_VALUE, &(uint64_t){4711}, 1);
        struct outcome o = read_samples(f, &data, 2);
        assert_int_equal(o.stats.damage_count, 0);
        assert_int_equal(o.records, f->whole.records);
        assert_int_equal(o.stats.newer_sample_count, 1);

        struct trace_samples record = {.time_ns = 100, .count = 2, .data = {data.data, data.len_bytes}};
        struct trace_sample_iter it;
        struct trace_sample s;
        trace_samples_begin(&it, &record, 7);
        assert_true(trace_samples_next(&it, &s));
        assert_int_equal(s.time_ns, 105);
        assert_int_equal(s.flags, n->flags);
        assert_int_equal(s.value, n->value);
        assert_int_equal(s.label_set, n->label_set);
        assert_true(trace_samples_next(&it, &s));
        assert_int_equal(s.time_ns, 110);
        assert_int_equal(s.flags, TRACE_SAMPLE_KERNEL | TRACE_SAMPLE_VALUE);
        assert_int_equal(s.value, 4711);
        assert_false(trace_samples_next(&it, &s));
        buf_deinit(&data);
    }
    full_destroy(f);
}

/* Where a payload is missing, or has no end, the record is damaged: nothing tells where the next sample begins. */
TEST(newer_sample_flags_damaged)
{
    static const uint64_t payloads[] = {300, 1, 70000};
    struct full *f = full_create();
    struct buf data = {0};

    put_sample(&data, 1 << 12 | 3, payloads, 3);
    for (size_t len = 0; len < data.len_bytes; len++) {
        struct buf cut = {.data = data.data, .len_bytes = len};
        struct outcome o = read_samples(f, &cut, 1);
        assert_int_equal(o.stats.damage_count, 1);
        assert_string_equal(o.first.reason, "samples.data: sample 1 of 1 is cut off or malformed");
    }
    assert_int_equal(read_samples(f, &data, 1).stats.damage_count, 0);
    /* A payload of more than 64 bits; flags of more than 32. */
    buf_clear(&data);
    put_sample(&data, 1 << 8, NULL, 0);
    buf_put(&data, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
    assert_string_equal(read_samples(f, &data, 1).first.reason, "samples.data: sample 1 of 1 is cut off or malformed");
    buf_clear(&data);
    put_sample(&data, UINT64_C(1) << 32, NULL, 0);
    assert_string_equal(read_samples(f, &data, 1).first.reason, "samples.data: sample 1 of 1 is cut off or malformed");
    /* A payload where no flag announces one is the next sample's, and that makes no sense. */
    buf_clear(&data);
    put_sample(&data, 1 << 5, payloads, 1);
    assert_string_equal(read_samples(f, &data, 1).first.reason, "samples.data: 2 bytes after the last sample");
    buf_deinit(&data);
    full_destroy(f);
}

static void reserved_flag(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->flags |= 4;
}
static void reserved_1(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->reserved_1 = 1;
}
static void reserved_2(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->reserved_2 = 1;
}
static void unknown_codec(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->codec = 2;
}
static void not_zstd(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->codec = TRACE_CODEC_ZSTD;
}
static void raw_too_long(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->codec = TRACE_CODEC_ZSTD;
    h->raw_len_bytes = UINT32_MAX;
}
static void lengths_differ(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->raw_len_bytes++;
}
/* A frame that unpacks to less than the header says. */
static void zstd_short(struct trace_block_header *h, struct buf *raw)
{
    struct buf packed = {0};
    size_t bound = ZSTD_compressBound(raw->len_bytes);
    packed.len_bytes = ZSTD_compress(buf_reserve(&packed, bound), bound, raw->data, raw->len_bytes - 1, 1);
    buf_deinit(raw);
    *raw = packed;
    h->codec = TRACE_CODEC_ZSTD;
    h->stored_len_bytes = (uint32_t)packed.len_bytes;
}
static void wrong_epoch(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->epoch = 77;
}
static void wrong_sequence(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->sequence += 1;
}
static void record_cut(struct trace_block_header *h, struct buf *raw)
{
    h->raw_len_bytes = h->stored_len_bytes = (uint32_t)(raw->len_bytes -= 1);
}
static void no_epoch_record(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->flags |= TRACE_BLOCK_STARTS_EPOCH;
    h->epoch = 0;
}
static void header_epoch_differs(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->epoch = 1000000000;
}
static void not_at_start(struct trace_block_header *h, struct buf *raw)
{
    (void)raw;
    h->flags = 0;
}

TEST(bad_blocks)
{
    static const struct {
        void (*header)(struct trace_block_header *, struct buf *);
        uint32_t type;
        const char *text;
    } cases[] = {
        {reserved_flag, TRACE_thread, "a block has reserved bits set"},
        {reserved_1, TRACE_thread, "a block has reserved bits set"},
        {reserved_2, TRACE_thread, "a block has reserved bits set"},
        {unknown_codec, TRACE_thread, "a block is packed in an unknown way"},
        {not_zstd, TRACE_thread, "a block cannot be decompressed"},
        {raw_too_long, TRACE_thread, "a block is longer than blocks may be"},
        {lengths_differ, TRACE_thread, "a block's lengths contradict each other"},
        {zstd_short, TRACE_thread, "a block cannot be decompressed"},
        {wrong_epoch, TRACE_samples, "block 1 of epoch 0 is missing"},
        {wrong_sequence, TRACE_samples, "block 1 of epoch 0 is missing"},
        {record_cut, TRACE_thread, "a record is cut off by the end of its block"},
        {no_epoch_record, TRACE_samples, "the last blocks of epoch 0 are missing"},
        {header_epoch_differs, TRACE_epoch, "an epoch's record and its block disagree about its number"},
        {not_at_start, TRACE_epoch, "a block of epoch 0 stands outside of it"},
    };
    struct buf b = small_trace();
    struct outcome whole = read_bytes(b.data, b.len_bytes);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct edit edit = {.type = cases[i].type, .header = cases[i].header};
        struct buf changed = rewrite(&b, &edit);
        struct outcome o = read_bytes(changed.data, changed.len_bytes);
        assert_true(o.stats.damage_count > 0);
        assert_string_equal(o.first.reason, cases[i].text);
        assert_int_equal(o.by_epoch[1], whole.by_epoch[1]);
        assert_int_equal(o.by_epoch[2], whole.by_epoch[2]);
        assert_true(o.stats.epochs_damaged >= 1 && o.stats.epochs_damaged <= 100);
        buf_deinit(&changed);
    }
    /* An EPOCH record amid an epoch. */
    struct edit edit = {.type = TRACE_process, .new_type = TRACE_epoch};
    buf_put_str(&edit.payload, "\x01\x01");
    struct buf changed = rewrite(&b, &edit);
    struct outcome o = read_bytes(changed.data, changed.len_bytes);
    assert_string_equal(o.first.reason, "an epoch begins inside another");
    buf_deinit(&changed);
    buf_deinit(&edit.payload);
    buf_deinit(&b);
}

/* A file that is nothing but headers of long blocks is searched in time proportional to its length. */
TEST(hostile_search)
{
    enum { COPIES = 200000 };
    struct buf b = {0};
    uint8_t header[TRACE_BLOCK_HEADER_BYTES] = {0};
    struct trace_block_header h = {.flags = TRACE_BLOCK_STARTS_EPOCH, .epoch = 5};

    trace_file_header_pack(&(struct trace_file_header){1, 1, TRACE_FILE_HEADER_BYTES, 0}, buf_reserve(&b, 64));
    b.len_bytes = TRACE_FILE_HEADER_BYTES;
    trace_block_header_pack(&h, header);
    memcpy(header + 32, &(uint32_t){3000000}, 4); /* stored length */
    for (int i = 0; i < COPIES; i++)
        buf_put(&b, header, sizeof header);
    clock_t before = clock();
    struct outcome o = read_bytes(b.data, b.len_bytes);
    assert_true(clock() - before < 5 * CLOCKS_PER_SEC);
    assert_int_equal(o.records, 0);
    assert_int_equal(o.stats.damage_count, 1);
    assert_int_equal(o.stats.damaged_bytes, (uint64_t)COPIES * sizeof header);
    buf_deinit(&b);
}
