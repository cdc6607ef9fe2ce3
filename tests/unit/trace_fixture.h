/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the trace file share: traces in memory, records with generated
 * values, and a count of what a reader makes of some bytes.
 */
#ifndef TESTS_UNIT_TRACE_FIXTURE_H
#define TESTS_UNIT_TRACE_FIXTURE_H

#include "tests/unit/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/base/arena.h"
#include "formats/trace/block.h"
#include "formats/trace/codec.h"
#include "formats/trace/trace.h"

/* ---- files in memory ---- */

static inline int memory_file(void)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static inline struct buf contents(int fd)
{
    struct buf b = {0};
    off_t len = lseek(fd, 0, SEEK_END);

    assert_true(len >= 0);
    if (len) {
        uint8_t *p = buf_reserve(&b, (size_t)len);
        assert_int_equal(pread(fd, p, (size_t)len, 0), len);
        b.len_bytes = (size_t)len;
    }
    return b;
}

enum { EPOCHS_SEEN = 8 };
struct outcome {
    uint64_t records, samples, by_epoch[EPOCHS_SEEN];
    struct trace_reader_stats stats;
    struct trace_damage first;
};

static inline struct outcome drain(struct trace_reader *r)
{
    struct outcome o = {0};
    struct trace_record rec;
    bool more;
    uint32_t count;

    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        assert_true(++o.records < 1000000);
        if (rec.epoch_number < EPOCHS_SEEN)
            o.by_epoch[rec.epoch_number]++;
        if (rec.type == TRACE_samples) {
            struct trace_sample_iter it;
            struct trace_sample s;
            trace_samples_begin(&it, &rec.samples, 1);
            for (uint32_t i = 0; i < rec.samples.count; i++, o.samples++)
                assert_true(trace_samples_next(&it, &s));
            assert_false(trace_samples_next(&it, &s));
        }
    }
    o.stats = *trace_reader_stats(r);
    const struct trace_damage *damage = trace_reader_damage(r, &count);
    assert_int_equal(count, o.stats.damage_count < 64 ? o.stats.damage_count : 64);
    if (count)
        o.first = damage[0];
    /* The end stays the end. */
    OK(trace_reader_next(r, &rec, &more));
    assert_false(more);
    trace_reader_close(r);
    return o;
}

static inline struct outcome read_bytes(const void *data, size_t len_bytes)
{
    struct trace_reader *r;
    int fd = memory_file();

    assert_int_equal(write(fd, data, len_bytes), len_bytes);
    lseek(fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(fd, "t", &r));
    struct outcome o = drain(r);
    close(fd);
    return o;
}

static inline void assert_opening_fails(const void *data, size_t len_bytes, enum error_code code, const char *text)
{
    struct trace_reader *r;
    int fd = memory_file();

    assert_int_equal(write(fd, data, len_bytes), len_bytes);
    lseek(fd, 0, SEEK_SET);
    struct error *err = trace_reader_open_fd(fd, "t", &r);
    assert_non_null(err);
    assert_null(r);
    assert_int_equal(err->code, code);
    assert_string_equal(error_text(err), text);
    error_destroy(err);
    close(fd);
}

/* ---- records with generated values ---- */

struct generator {
    uint64_t state;
    struct arena arena;
    struct trace_ids ids; /* defined so far */
};

static inline uint64_t next_random(struct generator *g)
{
    g->state ^= g->state << 13;
    g->state ^= g->state >> 7;
    g->state ^= g->state << 17;
    /* Numbers of every length. */
    return g->state >> (g->state * 31 >> 58);
}

static inline struct trace_bytes random_samples(struct generator *g, uint64_t time_ns, uint32_t count)
{
    struct buf b = {0};

    for (uint32_t i = 0; i < count; i++) {
        struct trace_sample s = {
            .time_ns = time_ns + next_random(g),
            .thread = 1 + next_random(g) % g->ids.count[TRACE_KIND_thread],
            .tuple = next_random(g) % (g->ids.count[TRACE_KIND_tuple] + 1),
            .cpu = (uint32_t)next_random(g),
            .flags = next_random(g) & TRACE_SAMPLE_FLAGS & ~TRACE_SAMPLE_LABELS,
            .value = next_random(g),
            .label_set = next_random(g) % (g->ids.count[TRACE_KIND_label_set] + 1),
        };
        trace_sample_encode(&b, &s, time_ns);
        time_ns = s.time_ns;
    }
    struct trace_bytes bytes = {arena_dup(&g->arena, b.data, b.len_bytes), b.len_bytes};
    buf_deinit(&b);
    return bytes;
}

static inline void generate(struct generator *g, const struct trace_record_type *type, void *record)
{
    memset(record, 0, type->struct_size);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        void *at = (char *)record + f->struct_offset;
        uint32_t known = g->ids.count[f->argument % TRACE_KIND_COUNT];
        switch (f->type) {
        case TRACE_F_DEF:
        case TRACE_F_DEFS:
            break;
        case TRACE_F_REF:
        case TRACE_F_STR:
            *(uint32_t *)at = (uint32_t)(next_random(g) % (known + 1));
            break;
        case TRACE_F_ID:
            assert_true(known); /* records.def defines before it refers */
            *(uint32_t *)at = (uint32_t)(next_random(g) % known) + 1;
            break;
        case TRACE_F_U32:
            *(uint32_t *)at = (uint32_t)next_random(g);
            break;
        case TRACE_F_U64:
        case TRACE_F_S64:
            *(uint64_t *)at = next_random(g) << (next_random(g) & 1);
            break;
        case TRACE_F_BYTES: {
            struct trace_bytes *bytes = at;
            bytes->len_bytes = next_random(g) % 300;
            uint8_t *data = arena_alloc(&g->arena, bytes->len_bytes);
            for (uint64_t k = 0; k < bytes->len_bytes; k++)
                data[k] = (uint8_t)next_random(g);
            bytes->data = data;
            break;
        }
        case TRACE_F_LIST: {
            struct trace_list *list = at;
            uint32_t limit = type->number == TRACE_stack ? g->ids.count[TRACE_KIND_frame] :
                             type->number == TRACE_label_set ? g->ids.count[TRACE_KIND_string] : UINT32_MAX;
            list->count = next_random(g) % 20;
            uint64_t *values = arena_alloc(&g->arena, list->count * f->argument * sizeof *values);
            for (uint64_t k = 0; k < list->count * f->argument; k++)
                values[k] = 1 + next_random(g) % limit;
            list->values = values;
            break;
        }
        }
    }
    if (type->number == TRACE_samples) {
        struct trace_samples *s = record;
        s->count = next_random(g) % 30;
        s->data = random_samples(g, s->time_ns, s->count);
    }
}

static inline void *record_of(struct trace_record *rec)
{
    return &rec->epoch;
}

static inline void assert_same(const struct trace_record_type *type, const void *a, const void *b)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        const void *in_a = (const char *)a + f->struct_offset, *in_b = (const char *)b + f->struct_offset;
        switch (f->type) {
        case TRACE_F_DEF:
        case TRACE_F_DEFS:
        case TRACE_F_REF:
        case TRACE_F_STR:
        case TRACE_F_ID:
        case TRACE_F_U32:
            assert_int_equal(*(const uint32_t *)in_a, *(const uint32_t *)in_b);
            break;
        case TRACE_F_U64:
        case TRACE_F_S64:
            assert_int_equal(*(const uint64_t *)in_a, *(const uint64_t *)in_b);
            break;
        case TRACE_F_BYTES: {
            const struct trace_bytes *x = in_a, *y = in_b;
            assert_int_equal(x->len_bytes, y->len_bytes);
            assert_true(!x->len_bytes || !memcmp(x->data, y->data, x->len_bytes));
            break;
        }
        case TRACE_F_LIST: {
            const struct trace_list *x = in_a, *y = in_b;
            assert_int_equal(x->count, y->count);
            assert_true(!x->count || !memcmp(x->values, y->values, x->count * f->argument * sizeof *x->values));
            break;
        }
        }
    }
}

enum { ROUNDS = 4, TYPES = TRACE_TYPE_LIMIT };

/* Writes ROUNDS records of each type but EPOCH; `written` takes them in order. Gives how many. */
static inline uint32_t write_generated(struct trace_writer *w, struct generator *g, struct trace_record *written)
{
    uint32_t count = 0;

    g->ids = (struct trace_ids){0};
    for (uint32_t number = 1; number < TYPES; number++) {
        const struct trace_record_type *type = trace_record_type(number);
        struct trace_fault fault;
        if (!type || number == TRACE_epoch)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            struct trace_record *rec = &written[count++];
            rec->type = number;
            generate(g, type, record_of(rec));
            trace_writer_put(w, number, record_of(rec));
            OK(trace_writer_error(w));
            struct trace_record copy = *rec;
            assert_true(trace_define(&g->ids, type, record_of(&copy), &fault));
            assert_same(type, record_of(rec), record_of(&copy));
        }
    }
    return count;
}

/* ---- small traces ---- */

/* An event, a process, a thread and a tuple, so that there can be samples. */
static inline void define_basics(struct trace_writer *w)
{
    struct trace_event event = {
        .name = trace_writer_cstr(w, "cpu-clock"),
        .unit = trace_writer_cstr(w, "ns"),
        .period = 10,
    };
    struct trace_process process = {.tgid = 42, .comm = trace_writer_cstr(w, "python")};
    trace_writer_put(w, TRACE_event, &event);
    trace_writer_put(w, TRACE_process, &process);
    struct trace_thread thread = {.process = process.id, .tid = 43};
    trace_writer_put(w, TRACE_thread, &thread);
    struct trace_native_frame frame = {.offset = 0x1000};
    uint32_t frames[] = {trace_writer_intern(w, TRACE_native_frame, &frame)};
    struct trace_tuple tuple = {.native_stack = trace_writer_stack(w, frames, 1)};
    trace_writer_intern(w, TRACE_tuple, &tuple);
    OK(trace_writer_error(w));
}

enum { SMALL_EPOCHS = 3 };

/* Three epochs of several small blocks each. */
static inline struct buf small_trace(void)
{
    struct trace_writer_options options = {.block_max_bytes = 150};
    struct trace_writer *w;
    int fd = memory_file();

    OK(trace_writer_create(fd, "t", &options, 0, &w));
    for (int epoch = 0; epoch < SMALL_EPOCHS; epoch++) {
        if (epoch)
            trace_writer_new_epoch(w, (uint64_t)epoch);
        define_basics(w);
        for (uint64_t i = 0; i < 5; i++)
            trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = i, .thread = 1, .tuple = 1});
        trace_writer_cstr(w, "some string that makes the record somewhat longer than the others are");
        for (uint64_t i = 0; i < 5; i++)
            trace_writer_sample(w, 1, &(struct trace_sample){.time_ns = i, .thread = 1, .tuple = 1});
    }
    struct trace_end end = {.sample_count = trace_writer_sample_count(w)};
    trace_writer_put(w, TRACE_end, &end);
    OK(trace_writer_finish(w));
    assert_int_equal(trace_writer_bytes(w), lseek(fd, 0, SEEK_END));
    trace_writer_destroy(w);
    struct buf b = contents(fd);
    close(fd);
    return b;
}

enum { BLOCKS_MAX = 64 };
struct layout {
    size_t count;
    struct {
        size_t offset, end;
        uint64_t epoch, records; /* before this block's end */
    } blocks[BLOCKS_MAX];
};

static inline struct layout layout_of(const struct buf *b)
{
    struct layout l = {0};
    struct trace_reader *r;
    struct trace_record rec;
    bool more;

    for (size_t at = TRACE_FILE_HEADER_BYTES; at < b->len_bytes;) {
        struct trace_block_header h = trace_block_header_unpack(b->data + at);
        assert_true(l.count < BLOCKS_MAX);
        l.blocks[l.count].offset = at;
        l.blocks[l.count].epoch = h.epoch;
        at += TRACE_BLOCK_HEADER_BYTES + h.stored_len_bytes;
        l.blocks[l.count++].end = at;
    }
    int fd = memory_file();
    assert_int_equal(write(fd, b->data, b->len_bytes), b->len_bytes);
    lseek(fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        for (size_t i = 0; i < l.count; i++)
            l.blocks[i].records += l.blocks[i].end > rec.file_offset;
    }
    trace_reader_close(r);
    close(fd);
    return l;
}

#endif
