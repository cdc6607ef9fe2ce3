/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace.
 *
 * Records are encoded here and handed to writer_blocks.c, which collects them into
 * blocks and writes the blocks.
 *
 * Equal things are written once per epoch. Records are interned by their encoded bytes.
 * Stacks form a trie whose nodes are found by (parent, frame) in a hash table: for a
 * stack that was seen before these lookups are all the work, and the part that a new
 * stack shares with known ones is not written again.
 *
 * The writer checks ids and limits by the rules that the reader enforces. A caller that
 * breaks a rule gets an error; the file stays readable.
 */
#include "formats/trace/writer_blocks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/trace/block.h"

enum {
    RECORD_HEAD_LIMIT = 15,  /* type and length */
    SAMPLE_LIMIT = 48,       /* one sample, encoded */
    BATCH_HEAD_LIMIT = 48,   /* SAMPLES without its data */
    EPOCH_HEAD_LIMIT = 4096, /* of the records that a recorder begins an epoch with */
    STACKS_LIMIT = (1 << 18) - (1 << 13), /* of an epoch; its index takes 12 MiB, and twice that with one more sample */
    INTERNED_LIMIT_BYTES = 24 << 20,
    DEFAULT_BLOCK_BYTES = 1 << 20,
    DEFAULT_EPOCH_BYTES = 64 << 20,
    EPOCH_WORTH = 8,         /* an epoch has paid for its definitions when its samples take so many times their bytes */
    GRAIN_LIMIT_NS = 4096,
    GRAINS_A_PERIOD = 2048,
};
static const uint64_t default_epoch_min_ns = 60 * NS_PER_S, default_epoch_max_ns = 600 * NS_PER_S;

/* ---- records ---- */

/* Encodes type and payload into `scratch`. Returns the offset of the payload, or 0 after an error. */
static size_t encode(struct trace_writer *w, const struct trace_record_type *type, const void *record)
{
    struct trace_fault fault;

    buf_clear(&w->scratch);
    buf_put_uleb(&w->scratch, type->number);
    size_t payload_at = w->scratch.len_bytes;
    if (!trace_encode(&w->scratch, type, record, &w->ids, &fault)) {
        writer_fail_rule(w, &fault);
        return 0;
    }
    if (w->scratch.bad) {
        writer_fail(w, error_no_memory());
        return 0;
    }
    return payload_at;
}

static bool append_defining(struct trace_writer *w, const struct trace_record_type *type, size_t payload_at,
                            void *record)
{
    struct trace_fault fault;

    if (!writer_make_room(w, w->scratch.len_bytes + RECORD_HEAD_LIMIT))
        return false;
    if (!trace_define(&w->ids, type, record, &fault)) {
        writer_fail_rule(w, &fault);
        return false;
    }
    writer_append(w, type->number, w->scratch.data + payload_at, w->scratch.len_bytes - payload_at);
    return true;
}

static void put(struct trace_writer *w, const struct trace_record_type *type, void *record)
{
    size_t payload_at = encode(w, type, record);

    if (payload_at && append_defining(w, type, payload_at, record) && type->number == TRACE_samples) {
        w->block_samples += ((struct trace_samples *)record)->count;
        w->sample_count += ((struct trace_samples *)record)->count;
    }
}

/* When what the record says happened, or 0. */
static uint64_t time_of(const struct trace_record_type *type, const void *record)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        if (f->type == TRACE_F_U64 && (!strcmp(f->name, "time_ns") || !strcmp(f->name, "until_ns")))
            return *(const uint64_t *)((const char *)record + f->struct_offset);
    }
    return 0;
}

static void note_past(struct trace_writer *w, uint64_t time_ns)
{
    if (time_ns > w->past_ns)
        w->past_ns = time_ns;
}

void trace_writer_put(struct trace_writer *w, enum trace_type number, void *record)
{
    const struct trace_record_type *type = trace_record_type(number);

    if (writer_is_shut(w))
        return;
    if (!type || number == TRACE_epoch) {
        writer_fail(w, error_path(ERROR_USAGE, w->path, "records of type %d are not for callers to write", number));
        return;
    }
    put(w, type, record);
    note_past(w, time_of(type, record));
}

uint32_t trace_writer_intern(struct trace_writer *w, enum trace_type number, void *record)
{
    const struct trace_record_type *type = trace_record_type(number);
    bool added = false;

    if (writer_is_shut(w))
        return 0;
    if (!type || !type->field_count || type->fields[0].type != TRACE_F_DEF) {
        writer_fail(w, error_path(ERROR_USAGE, w->path, "records of type %d define no id", number));
        return 0;
    }
    size_t payload_at = encode(w, type, record);
    if (!payload_at)
        return 0;
    if (w->scratch.len_bytes > UINT32_MAX) {
        writer_fail(w, error_no_memory());
        return 0;
    }
    /* A record that does not fit must not be interned: it would count as written. */
    if (writer_may_refuse(w, w->scratch.len_bytes + RECORD_HEAD_LIMIT) &&
        intern_find(&w->interned, w->scratch.data, (uint32_t)w->scratch.len_bytes) == INTERN_NONE &&
        !writer_make_room(w, w->scratch.len_bytes + RECORD_HEAD_LIMIT))
        return 0;
    uint32_t index = intern_id(&w->interned, w->scratch.data, (uint32_t)w->scratch.len_bytes, &added);
    uint32_t *id = (uint32_t *)((char *)record + type->fields[0].struct_offset);
    if (index == INTERN_NONE) {
        writer_fail(w, error_no_memory());
        return 0;
    }
    if (!added)
        return *id = w->interned_ids.data[index];
    if (!append_defining(w, type, payload_at, record))
        return 0;
    if (!VEC_PUSH(&w->interned_ids, *id)) {
        writer_fail(w, error_no_memory());
        return 0;
    }
    return *id;
}

uint32_t trace_writer_string(struct trace_writer *w, const void *data, uint64_t len_bytes)
{
    struct trace_string record = {.data = {data, len_bytes}};

    return len_bytes ? trace_writer_intern(w, TRACE_string, &record) : 0;
}

uint32_t trace_writer_cstr(struct trace_writer *w, const char *s)
{
    return s ? trace_writer_string(w, s, strlen(s)) : 0;
}

/* ---- stacks ---- */

static uint64_t stack_key(uint32_t parent, uint32_t frame)
{
    return (uint64_t)parent << 32 | frame;
}

/* Extends `parent` by frames that are new below it: writes one record and assigns an id for each frame. */
static uint32_t add_stacks(struct trace_writer *w, uint32_t parent, const uint32_t *frames, uint32_t count)
{
    if (!VEC_RESERVE(&w->frames, count)) {
        writer_fail(w, error_no_memory());
        return 0;
    }
    for (uint32_t i = 0; i < count; i++)
        w->frames.data[i] = frames[i];
    struct trace_stack record = {.parent = parent, .frames = {w->frames.data, count}};
    put(w, trace_record_type(TRACE_stack), &record);
    if (writer_is_shut(w))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = record.first_id + i;
        if (!map_set(&w->stacks, stack_key(parent, frames[i]), id)) {
            writer_fail(w, error_no_memory());
            return 0;
        }
        parent = id;
    }
    return parent;
}

uint32_t trace_writer_stack(struct trace_writer *w, const uint32_t *frames, uint32_t count)
{
    uint32_t stack = 0, known = 0;

    if (writer_is_shut(w))
        return 0;
    for (; known < count; known++) {
        const uint64_t *id = map_get(&w->stacks, stack_key(stack, frames[known]));
        if (!id)
            break;
        stack = (uint32_t)*id;
    }
    return known == count ? stack : add_stacks(w, stack, frames + known, count - known);
}

/* ---- samples ---- */

static struct sample_batch *batch_of(struct trace_writer *w, uint32_t event)
{
    if (!VEC_RESERVE(&w->batches, event)) {
        writer_fail(w, error_no_memory());
        return NULL;
    }
    while (w->batches.count < event)
        w->batches.data[w->batches.count++] = (struct sample_batch){0};
    return &w->batches.data[event - 1];
}

void trace_writer_clock(struct trace_writer *w, uint32_t event, uint64_t period_ns)
{
    uint64_t grain_ns = GRAIN_LIMIT_NS;

    if (writer_is_shut(w))
        return;
    if (!event || event > w->ids.count[TRACE_KIND_event]) {
        writer_fail(w, error_path(ERROR_USAGE, w->path, "event %u is not defined", event));
        return;
    }
    while (grain_ns > period_ns / GRAINS_A_PERIOD)
        grain_ns /= 2;
    struct sample_batch *b = batch_of(w, event);
    if (b)
        b->grain_ns = grain_ns;
}

/* The time as it is written: see trace_writer_clock(). */
static uint64_t written_time(struct trace_writer *w, uint32_t event, const struct sample_batch *b, uint64_t time_ns)
{
    uint64_t rounded_ns = b->grain_ns ? time_ns & -b->grain_ns : time_ns;

    if (event != w->last_event)
        note_past(w, w->newest_sample_ns);
    w->last_event = event;
    if (time_ns > w->newest_sample_ns)
        w->newest_sample_ns = time_ns;
    return rounded_ns < w->past_ns ? time_ns : rounded_ns;
}

void trace_writer_sample(struct trace_writer *w, uint32_t event, const struct trace_sample *sample)
{
    struct trace_sample written = *sample;
    struct trace_fault fault;

    if (writer_is_shut(w))
        return;
    if (!event || event > w->ids.count[TRACE_KIND_event]) {
        writer_fail(w, error_path(ERROR_USAGE, w->path, "not written: sample: event %u is not defined", event));
        return;
    }
    if (!trace_sample_check(sample, &w->ids, &fault)) {
        writer_fail_rule(w, &fault);
        return;
    }
    if (!writer_make_room(w, SAMPLE_LIMIT + BATCH_HEAD_LIMIT))
        return;
    struct sample_batch *b = batch_of(w, event);
    if (!b)
        return;
    written.time_ns = written_time(w, event, b, sample->time_ns);
    if (!b->count) {
        b->first_time_ns = b->last_time_ns = written.time_ns;
        w->batches_bytes += BATCH_HEAD_LIMIT;
    }
    size_t before = b->data.len_bytes;
    trace_sample_encode(&b->data, &written, b->last_time_ns);
    w->batches_bytes += b->data.len_bytes - before;
    b->last_time_ns = written.time_ns;
    b->count++;
    w->sample_count++;
}

void trace_writer_flush(struct trace_writer *w)
{
    writer_flush(w, 0);
}

/* ---- epochs ---- */

static void begin_epoch(struct trace_writer *w, uint64_t time_ns)
{
    struct trace_epoch record = {.number = w->epoch, .time_ns = time_ns};

    w->ids = (struct trace_ids){0};
    intern_deinit(&w->interned); /* frees the memory too: the next epoch may need less */
    VEC_DEINIT(&w->interned_ids);
    map_deinit(&w->stacks);
    w->epoch_time_ns = time_ns;
    w->epoch_raw_bytes = w->epoch_sample_bytes = 0;
    w->epoch_full = w->closing = false;
    w->sequence = 0;
    for (size_t i = 0; i < w->batches.count; i++)
        w->batches.data[i].grain_ns = 0;
    w->past_ns = time_ns;
    put(w, trace_record_type(TRACE_epoch), &record);
}

bool trace_writer_epoch_fits(const struct trace_writer *w)
{
    if (w->held)
        return false;
    return !w->options.max_bytes || w->written_bytes + writer_pending_bytes(w) + EPOCH_HEAD_LIMIT <= w->options.max_bytes;
}

/*
 * Whether the tables by which equal things are found take much memory: for a stack that shares no frame with others they
 * take twenty times what it takes in the file. A table doubles when it is half full.
 */
static bool index_is_large(const struct trace_writer *w)
{
    return w->stacks.count >= STACKS_LIMIT || intern_bytes(&w->interned) >= INTERNED_LIMIT_BYTES;
}

bool trace_writer_epoch_due(const struct trace_writer *w, uint64_t time_ns)
{
    uint64_t age_ns = time_ns > w->epoch_time_ns ? time_ns - w->epoch_time_ns : 0;
    uint64_t samples = w->epoch_sample_bytes + w->batches_bytes;

    if (!trace_writer_epoch_fits(w))
        return false;
    return w->epoch_full || !trace_writer_epoch_room(w) || index_is_large(w) || age_ns >= w->options.epoch_max_ns ||
           (age_ns >= w->options.epoch_min_ns && samples >= EPOCH_WORTH * (trace_writer_epoch_bytes(w) - samples));
}

uint64_t trace_writer_epoch_bytes(const struct trace_writer *w)
{
    return w->epoch_raw_bytes + writer_pending_bytes(w);
}

uint64_t trace_writer_epoch_room(const struct trace_writer *w)
{
    uint64_t used = w->epoch_raw_bytes + writer_pending_bytes(w);

    return used < w->options.epoch_max_bytes ? w->options.epoch_max_bytes - used : 0;
}

void trace_writer_new_epoch(struct trace_writer *w, uint64_t time_ns)
{
    writer_flush(w, TRACE_BLOCK_ENDS_EPOCH);
    if (w->failed)
        return;
    w->epoch++;
    begin_epoch(w, time_ns);
}

uint64_t trace_writer_epoch(const struct trace_writer *w)
{
    return w->epoch;
}

/* Appends a record that defines nothing. */
static bool append_record(const struct trace_writer *w, enum trace_type type, const void *record, struct buf *out)
{
    struct trace_fault fault;
    struct buf fields = {0};

    bool good = trace_encode(&fields, trace_record_type(type), record, &w->ids, &fault) && !fields.bad;
    buf_put_uleb(out, type);
    buf_put_uleb(out, fields.len_bytes);
    buf_put(out, fields.data, fields.len_bytes);
    buf_deinit(&fields);
    return good && !out->bad;
}

bool trace_writer_last_block(const struct trace_writer *w, const struct trace_loss *loss, const struct trace_end *end, struct buf *out)
{
    struct trace_block_header h = {.codec = TRACE_CODEC_RAW, .flags = TRACE_BLOCK_ENDS_EPOCH, .sequence = w->sequence,
                                   .epoch = w->epoch};
    const struct trace_epoch epoch = {.number = w->epoch, .time_ns = w->epoch_time_ns};
    struct buf records = {0};

    if (!w->sequence)
        h.flags |= TRACE_BLOCK_STARTS_EPOCH;
    bool good = (w->sequence || append_record(w, TRACE_epoch, &epoch, &records)) &&
                (!loss || append_record(w, TRACE_loss, loss, &records)) && append_record(w, TRACE_end, end, &records);
    uint8_t *block = good ? buf_reserve(out, TRACE_BLOCK_HEADER_BYTES + records.len_bytes) : NULL;
    if (block) {
        memcpy(block + TRACE_BLOCK_HEADER_BYTES, records.data, records.len_bytes);
        h.raw_len_bytes = h.stored_len_bytes = (uint32_t)records.len_bytes;
        trace_block_header_pack(&h, block);
        out->len_bytes += TRACE_BLOCK_HEADER_BYTES + records.len_bytes;
    }
    buf_deinit(&records);
    return block != NULL;
}

/* ---- life ---- */

struct error *trace_writer_create(int fd, const char *path, const struct trace_writer_options *options,
                                  uint64_t time_ns, struct trace_writer **out)
{
    const struct trace_file_header header = {
        .version = TRACE_VERSION,
        .least_reader = TRACE_LEAST_READER,
        .header_len_bytes = TRACE_FILE_HEADER_BYTES,
    };
    uint8_t packed[TRACE_FILE_HEADER_BYTES];
    struct trace_writer *w = calloc(1, sizeof *w);

    *out = NULL;
    if (!w)
        return error_no_memory();
    w->fd = fd;
    w->path = strdup(path);
    w->zstd = ZSTD_createCCtx();
    if (options)
        w->options = *options;
    struct trace_writer_options *o = &w->options;
    if (!o->epoch_max_bytes)
        o->epoch_max_bytes = DEFAULT_EPOCH_BYTES;
    if (o->epoch_max_bytes > TRACE_EPOCH_LIMIT_BYTES / 2)
        o->epoch_max_bytes = TRACE_EPOCH_LIMIT_BYTES / 2;
    if (!o->epoch_min_ns)
        o->epoch_min_ns = default_epoch_min_ns;
    if (!o->epoch_max_ns)
        o->epoch_max_ns = default_epoch_max_ns;
    if (!o->block_max_bytes)
        o->block_max_bytes = DEFAULT_BLOCK_BYTES;
    if (o->block_max_bytes > TRACE_BLOCK_LIMIT_BYTES)
        o->block_max_bytes = TRACE_BLOCK_LIMIT_BYTES;
    if (!o->zstd_level)
        o->zstd_level = 1;
    if (!w->path || !w->zstd) {
        trace_writer_destroy(w);
        return error_no_memory();
    }
    trace_file_header_pack(&header, packed);
    writer_write(w, packed, sizeof packed);
    begin_epoch(w, time_ns);
    struct error *err = trace_writer_error(w);
    if (err) {
        trace_writer_destroy(w);
        return err;
    }
    *out = w;
    return NULL;
}

void trace_writer_destroy(struct trace_writer *w)
{
    if (!w)
        return;
    error_destroy(w->error);
    for (size_t i = 0; i < w->batches.count; i++)
        buf_deinit(&w->batches.data[i].data);
    VEC_DEINIT(&w->batches);
    VEC_DEINIT(&w->frames);
    VEC_DEINIT(&w->interned_ids);
    intern_deinit(&w->interned);
    map_deinit(&w->stacks);
    buf_deinit(&w->scratch);
    buf_deinit(&w->samples);
    buf_deinit(&w->block);
    buf_deinit(&w->stored);
    ZSTD_freeCCtx(w->zstd);
    free(w->path);
    free(w);
}

bool trace_writer_full(const struct trace_writer *w)
{
    return w->full;
}

void trace_writer_closing(struct trace_writer *w)
{
    w->full = w->epoch_full = false;
    w->options.max_bytes = 0;
    w->closing = true;
}

void trace_writer_hold(struct trace_writer *w, bool hold)
{
    w->epoch_full |= w->held && !hold;
    w->held = hold;
}

bool trace_writer_epoch_full(const struct trace_writer *w)
{
    return w->epoch_full || w->held;
}

uint64_t trace_writer_written_count(const struct trace_writer *w)
{
    return w->written_count;
}

uint64_t trace_writer_bytes(const struct trace_writer *w)
{
    return w->written_bytes;
}

uint64_t trace_writer_stored_bytes(struct trace_writer *w, const void *data, size_t len_bytes)
{
    size_t most = ZSTD_compressBound(len_bytes);

    buf_clear(&w->stored);
    uint8_t *out = buf_reserve(&w->stored, most);
    size_t n = out ? ZSTD_compressCCtx(w->zstd, out, most, data, len_bytes, w->options.zstd_level) : len_bytes;
    return ZSTD_isError(n) || n > len_bytes ? len_bytes : n;
}

uint64_t trace_writer_sample_count(const struct trace_writer *w)
{
    return w->sample_count;
}

bool trace_writer_failed(const struct trace_writer *w)
{
    return w->failed;
}

struct error *trace_writer_error(struct trace_writer *w)
{
    struct error *err = w->error;

    w->error = NULL;
    return err;
}

static int sync_file(const struct trace_writer *w)
{
    return w->options.sync ? w->options.sync(w->options.write_ctx, w->fd) : fsync(w->fd);
}

struct error *trace_writer_finish(struct trace_writer *w)
{
    bool known = w->failed && !w->error;

    writer_flush(w, TRACE_BLOCK_ENDS_EPOCH);
    w->finished = true;
    /* Pipes and some file systems cannot be synced; that is not an error. */
    if (!w->failed && sync_file(w) && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        writer_fail(w, error_file(errno, w->path, "cannot sync"));
    if (known)
        return error_path(ERROR_IO, w->path, "incomplete: writing it failed before");
    return trace_writer_error(w);
}
