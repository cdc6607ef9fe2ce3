/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps code objects by contents: each as the encoded payload of its CODE record. Since
 * the trace's codec encodes it, no field of the record can be forgotten here.
 */
#include "capture/trace/codes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/python_walk.h"
#include "capture/host/target_memory.h"
#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/cpython/code.h"
#include "formats/trace/codec.h"

/* Enough for names of a thousand characters, and for line tables of functions of some 100,000 lines. */
static const struct py_code_limits limits = {.string_max_bytes = 16 << 10, .line_table_max_bytes = 1 << 20};
/* More is never kept, not even for a moment; much less is kept for long. */
#define BYTES_MAX (UINT64_C(48) << 20)
/* What a code object takes besides its strings, and what each attempt to read one is charged: it costs system calls. */
#define CODE_BYTES 64
#define ATTEMPT_BYTES 256

struct codes {
    struct intern payloads; /* of CODE records */
    VEC(struct code_place) places;
    struct codes_counts counts;
    struct buf storage, payload; /* scratch */
    uint64_t bytes; /* of payloads */
    struct py_walk *walk; /* for fingerprints of live objects */
};

struct error *codes_create(struct codes **out)
{
    struct codes *c = calloc(1, sizeof *c);

    if (c)
        c->walk = calloc(1, sizeof *c->walk);
    if (!c || !c->walk) {
        free(c);
        return error_no_memory();
    }
    *out = c;
    return NULL;
}

void codes_destroy(struct codes *c)
{
    if (!c)
        return;
    intern_deinit(&c->payloads);
    VEC_DEINIT(&c->places);
    buf_deinit(&c->storage);
    buf_deinit(&c->payload);
    free(c->walk);
    free(c);
}

struct code_place *codes_place(struct codes *c, uint32_t index)
{
    return &c->places.data[index];
}

struct codes_counts codes_counts(const struct codes *c)
{
    return c->counts;
}

/* A CODE record refers to no ids. So its payload is the same in every epoch, and equal payloads mean equal contents. */
static const struct trace_ids no_ids;

static struct error *encode(struct codes *c, const struct trace_code *record)
{
    struct trace_fault fault;

    buf_clear(&c->payload);
    if (!trace_encode(&c->payload, trace_record_type(TRACE_code), record, &no_ids, &fault))
        return error_create(ERROR_LIMIT, "a code object cannot be recorded: %s", fault.text);
    return c->payload.bad ? error_no_memory() : NULL;
}

/* Finds equal contents: CODES_NONE if there are none. Leaves the record's payload in c->payload. */
static struct error *find(struct codes *c, const struct trace_code *record, uint32_t *index)
{
    TRY(encode(c, record));
    *index = intern_find(&c->payloads, c->payload.data, (uint32_t)c->payload.len_bytes);
    return NULL;
}

struct error *codes_keep(struct codes *c, const struct trace_code *record, uint32_t *index)
{
    bool added;

    TRY(encode(c, record));
    uint32_t id = intern_id(&c->payloads, c->payload.data, (uint32_t)c->payload.len_bytes, &added);
    if (id == INTERN_NONE || (added && !VEC_PUSH(&c->places, ((struct code_place){0}))))
        return error_no_memory();
    c->bytes += added ? c->payload.len_bytes : 0;
    *index = id;
    return NULL;
}

uint64_t codes_bytes(const struct codes *c)
{
    return c->bytes;
}

void codes_clear(struct codes *c)
{
    intern_deinit(&c->payloads);
    VEC_DEINIT(&c->places);
    c->bytes = 0;
}

uint32_t codes_count(const struct codes *c)
{
    return c->payloads.count;
}

uint64_t codes_bytes_of(const struct codes *c, uint32_t index)
{
    return intern_get(&c->payloads, index)->len_bytes;
}

struct error *codes_retain(struct codes *c, const bool *wanted, uint32_t *moved)
{
    struct intern kept = {0};
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < c->payloads.count; i++) {
        const struct intern_entry *e = intern_get(&c->payloads, i);
        moved[i] = wanted[i] ? intern_id(&kept, e->data, e->len_bytes, NULL) : CODES_NONE;
        if (wanted[i] && moved[i] == INTERN_NONE) {
            intern_deinit(&kept);
            return error_no_memory();
        }
        bytes += wanted[i] ? e->len_bytes : 0;
    }
    for (uint32_t i = 0; i < c->payloads.count; i++) {
        if (wanted[i])
            c->places.data[moved[i]] = c->places.data[i]; /* never behind its old place */
    }
    intern_deinit(&c->payloads);
    c->payloads = kept;
    c->places.count = kept.count;
    c->bytes = bytes;
    return NULL;
}

void codes_record(const struct codes *c, uint32_t index, struct trace_code *out)
{
    const struct intern_entry *e = intern_get(&c->payloads, index);
    const struct trace_record_type *type = trace_record_type(TRACE_code);
    struct trace_scratch no_lists = {0};
    struct trace_fault fault;

    bool good = trace_decode(bytes_of(e->data, e->len_bytes), type, &no_ids, &no_lists, out, &fault);
    assert(good); /* it was encoded above, and has no lists, which would need scratch memory */
    (void)good;
}

/* Memory of a target: first the pieces that the sampler copied, then the live process (pid 0: not used). */
struct source {
    const struct wire_code *message;
    uint32_t message_len;
    pid_t pid;
    bool read_live;
};

static bool read_source(void *ctx, uint64_t address, void *out, uint64_t len)
{
    struct source *s = ctx;
    uint64_t at = sizeof *s->message;

    for (int i = 0; s->message && i < WIRE_CODE_PIECES; i++) {
        const struct wire_piece *p = &s->message->pieces[i];
        if (at + p->len_bytes > s->message_len)
            break;
        if (address >= p->address && len <= p->len_bytes && address - p->address <= p->len_bytes - len) {
            memcpy(out, (const uint8_t *)s->message + at + (address - p->address), len);
            return true;
        }
        at += p->len_bytes;
    }
    if (!s->pid || !target_read(s->pid, address, out, len))
        return false;
    s->read_live = true;
    return true;
}

static int walk_read_live(void *ctx, void *out, uint32_t len, uint64_t address)
{
    return !target_read_fn(ctx, address, out, len);
}

/* Computes the fingerprint of the object at `address` as the sampler does; false when it is no code object. */
static bool live_fingerprint(struct codes *c, const struct codes_owner *o, uint64_t address, uint32_t *fingerprint)
{
    struct walk_code seen = {0};
    pid_t pid = o->pid;

    c->walk->config.layout = *o->layout;
    c->walk->config.process.code_type = o->code_type;
    c->walk->memory = (struct walk_memory){.read = walk_read_live, .ctx = &pid};
    if (walk_read_code(c->walk, address, &seen))
        return false;
    *fingerprint = seen.fingerprint;
    return true;
}

static struct trace_bytes bytes_of_string(const struct py_string *s)
{
    return (struct trace_bytes){s->data, s->len_bytes};
}

static struct trace_code record_of(const struct py_code *code)
{
    return (struct trace_code){
        .python_version = code->python_version,
        .python_flags = (code->debug_build ? TRACE_CODE_DEBUG : 0) | (code->free_threaded ? TRACE_CODE_FREE_THREADED : 0),
        .first_line = code->first_line,
        .co_flags = code->co_flags,
        .code_len_bytes = code->code_len_bytes,
        .name_form = code->name.form,
        .name_len = code->name.len,
        .name = bytes_of_string(&code->name),
        .qualname_form = code->qualname.form,
        .qualname_len = code->qualname.len,
        .qualname = bytes_of_string(&code->qualname),
        .filename_form = code->filename.form,
        .filename_len = code->filename.len,
        .filename = bytes_of_string(&code->filename),
        .line_table_form = code->line_table.form,
        .line_table_len = code->line_table.len,
        .line_table = bytes_of_string(&code->line_table),
    };
}

/* ---- quotas ---- */

static bool take(const struct codes_owner *o, enum quota kind, uint64_t bytes)
{
    return quota_take(o->quotas, o->slot, kind, bytes, o->time_ns);
}

/* A code object without its line table, in bytes of memory. */
static uint64_t name_bytes(const struct py_code *code)
{
    return CODE_BYTES + code->name.len_bytes + code->qualname.len_bytes + code->filename.len_bytes;
}

/* What was read of a code object, and what the quotas have been asked already. */
struct reading {
    struct py_code code;
    bool charged;      /* for what was read */
    bool without_lines; /* the quota of line tables refused */
};

/*
 * Reads an object from the live process as far as its quotas allow: names, then the line table. The caller has taken
 * ATTEMPT_BYTES already, since an attempt that fails costs time, too.
 */
static bool read_charged(struct codes *c, const struct codes_owner *o, struct source *source, uint64_t address,
                         struct reading *out)
{
    const struct py_code_limits names = {.string_max_bytes = limits.string_max_bytes};
    struct py_code *code = &out->code;

    if (!py_code_read(o->layout, read_source, source, address, &names, &c->storage, code) ||
        (name_bytes(code) > ATTEMPT_BYTES && !take(o, QUOTA_name_bytes, name_bytes(code) - ATTEMPT_BYTES)))
        return false;
    uint64_t table = code->line_table.len;
    if (table > limits.line_table_max_bytes)
        table = limits.line_table_max_bytes;
    out->charged = true;
    out->without_lines = table && !take(o, QUOTA_line_bytes, table);
    return !table || out->without_lines ||
           py_code_read(o->layout, read_source, source, address, &limits, &c->storage, code);
}

static void note_incomplete(struct codes *c, const struct codes_owner *o, const struct py_code *code, uint32_t index)
{
    if (code->name.len > limits.string_max_bytes || code->qualname.len > limits.string_max_bytes ||
        code->filename.len > limits.string_max_bytes || code->line_table.len > limits.line_table_max_bytes) {
        c->counts.cut++;
        return;
    }
    c->counts.incomplete++;
    c->places.data[index].again_ns = o->time_ns + CODES_AGAIN_NS;
}

/* Keeps what was read, as far as the quotas allow. */
static struct error *finish(struct codes *c, const struct codes_owner *o, const struct reading *r, uint32_t *index)
{
    const struct py_code *code = &r->code;
    struct trace_code record = record_of(code);
    bool without_lines = r->without_lines;

    TRY(find(c, &record, index));
    if (*index != CODES_NONE)
        return NULL;
    if (c->bytes + c->payload.len_bytes > BYTES_MAX) {
        quota_refuse(o->quotas, o->slot, QUOTA_name_bytes, 1);
        return NULL;
    }
    if (!r->charged && code->line_table.len_bytes && !take(o, QUOTA_line_bytes, code->line_table.len_bytes)) {
        record.line_table = (struct trace_bytes){0};
        without_lines = true;
        TRY(find(c, &record, index));
        if (*index != CODES_NONE)
            return NULL;
    }
    if (!r->charged && !take(o, QUOTA_name_bytes, name_bytes(code)))
        return NULL;
    TRY(codes_keep(c, &record, index));
    if (!without_lines && !py_code_complete(code))
        note_incomplete(c, o, code, *index);
    return NULL;
}

struct error *codes_add_message(struct codes *c, const struct codes_owner *o, const struct wire_code *message,
                                uint32_t len_bytes, uint32_t *index)
{
    struct source copied = {.message = message, .message_len = len_bytes};
    struct reading r = {0};
    uint32_t now;

    *index = CODES_NONE;
    if (!py_code_read(o->layout, read_source, &copied, message->address, &limits, &c->storage, &r.code))
        return NULL;
    if (!py_code_complete(&r.code)) {
        struct source both = {.message = message, .message_len = len_bytes, .pid = o->pid};
        bool ok = take(o, QUOTA_name_bytes, ATTEMPT_BYTES) && read_charged(c, o, &both, message->address, &r);
        /*
         * What was read from the live process is used only if the object still has the same fingerprint after reading.
         */
        if (ok && live_fingerprint(c, o, message->address, &now) && now == message->fingerprint) {
            c->counts.completed++;
        } else {
            r.charged = r.without_lines = false;
            if (!py_code_read(o->layout, read_source, &copied, message->address, &limits, &c->storage, &r.code))
                return NULL;
        }
    }
    return finish(c, o, &r, index);
}

struct error *codes_add_live(struct codes *c, const struct codes_owner *o, uint64_t address, uint32_t fingerprint,
                             uint32_t *index)
{
    struct source live = {.pid = o->pid};
    struct reading r = {0};
    uint32_t before, after;

    *index = CODES_NONE;
    if (!take(o, QUOTA_name_bytes, ATTEMPT_BYTES) || !live_fingerprint(c, o, address, &before) ||
        (fingerprint && before != fingerprint) || !read_charged(c, o, &live, address, &r) ||
        !live_fingerprint(c, o, address, &after) || after != before)
        return NULL;
    c->counts.completed++;
    return finish(c, o, &r, index);
}
