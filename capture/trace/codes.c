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

struct error *codes_keep(struct codes *c, const struct trace_code *record, uint32_t *index)
{
    struct trace_fault fault;
    bool added;

    buf_clear(&c->payload);
    if (!trace_encode(&c->payload, trace_record_type(TRACE_code), record, &no_ids, &fault))
        return error_create(ERROR_LIMIT, "a code object cannot be recorded: %s", fault.text);
    if (c->payload.bad)
        return error_no_memory();
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
static bool live_fingerprint(struct codes *c, pid_t pid, uint64_t address, const struct py_layout *layout,
                             uint64_t code_type, uint32_t *fingerprint)
{
    struct walk_code seen = {0};

    c->walk->config.layout = *layout;
    c->walk->config.process.code_type = code_type;
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

static struct error *finish(struct codes *c, const struct py_code *code, uint32_t *index)
{
    if (!py_code_complete(code)) {
        if (code->name.len > limits.string_max_bytes || code->qualname.len > limits.string_max_bytes ||
            code->filename.len > limits.string_max_bytes || code->line_table.len > limits.line_table_max_bytes)
            c->counts.cut++;
        else
            c->counts.incomplete++;
    }
    struct trace_code record = record_of(code);
    return codes_keep(c, &record, index);
}

struct error *codes_add_message(struct codes *c, const struct wire_code *message, uint32_t len_bytes,
                                const struct py_layout *layout, uint64_t code_type, uint32_t *index)
{
    struct source copied = {.message = message, .message_len = len_bytes};
    struct py_code code;
    uint32_t now;

    *index = CODES_NONE;
    if (!py_code_read(layout, read_source, &copied, message->address, &limits, &c->storage, &code))
        return NULL;
    if (!py_code_complete(&code)) {
        struct source both = {.message = message, .message_len = len_bytes, .pid = (pid_t)message->tgid};
        bool ok = py_code_read(layout, read_source, &both, message->address, &limits, &c->storage, &code);
        /*
         * What was read from the live process is used only if the object still has the same fingerprint after reading.
         */
        if (ok && live_fingerprint(c, (pid_t)message->tgid, message->address, layout, code_type, &now) &&
            now == message->fingerprint)
            c->counts.completed++;
        else if (!py_code_read(layout, read_source, &copied, message->address, &limits, &c->storage, &code))
            return NULL;
    }
    return finish(c, &code, index);
}

struct error *codes_add_live(struct codes *c, pid_t pid, uint64_t address, uint32_t fingerprint,
                             const struct py_layout *layout, uint64_t code_type, uint32_t *index)
{
    struct source live = {.pid = pid};
    struct py_code code;
    uint32_t before, after;

    *index = CODES_NONE;
    if (!live_fingerprint(c, pid, address, layout, code_type, &before) || (fingerprint && before != fingerprint) ||
        !py_code_read(layout, read_source, &live, address, &limits, &c->storage, &code) ||
        !live_fingerprint(c, pid, address, layout, code_type, &after) || after != before)
        return NULL;
    c->counts.completed++;
    return finish(c, &code, index);
}
