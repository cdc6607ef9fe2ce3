/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One encoder and one decoder for all records.
 *
 * records.def expands into a descriptor for each record: its fields with their wire
 * types and where they lie in the record's struct. Encoding and decoding walk that
 * descriptor. Only three rules name a record, because the table of fields cannot
 * express them: the frames of a STACK, the strings of a LABEL_SET and the packed data
 * of SAMPLES contain ids too.
 *
 * The decoder trusts no byte. A length is compared with what is left before anything
 * is allocated or skipped, an id with the number of ids that the epoch has defined.
 */
#include "formats/trace/codec.h"

#include <stdarg.h>
#include <stddef.h>

#include "formats/trace/block.h"

enum { SAMPLES_KEPT = 1 << 16 }; /* of one record: a writer flushes each second; of more, they are decoded twice */

/* ---- descriptors ---- */

#define ARGUMENT_DEF(kind) TRACE_KIND_##kind
#define ARGUMENT_DEFS(kind) TRACE_KIND_##kind
#define ARGUMENT_REF(kind) TRACE_KIND_##kind
#define ARGUMENT_ID(kind) TRACE_KIND_##kind
#define ARGUMENT_STR(none) TRACE_KIND_string
#define ARGUMENT_U32(none) 0
#define ARGUMENT_U64(none) 0
#define ARGUMENT_S64(none) 0
#define ARGUMENT_BYTES(number) number
#define ARGUMENT_LIST(width) width

/* One function for each record: F() does not know its record, but the type of `self` does. */
#define F(wire, field, arg, text) {#field, text, TRACE_F_##wire, ARGUMENT_##wire(arg), offsetof(self, field)},
#define RECORD(number, name, meaning, ...)                                                     \
    static const struct trace_record_type *type_##name(void)                                   \
    {                                                                                          \
        typedef struct trace_##name self;                                                      \
        static const struct trace_field fields[] = {__VA_ARGS__};                              \
        static const struct trace_record_type type = {                                         \
            number, #name, meaning, fields, sizeof fields / sizeof fields[0], sizeof(self)};   \
        return &type;                                                                          \
    }
#include "formats/trace/records.def"
#undef RECORD
#undef F

const struct trace_record_type *trace_record_type(uint32_t number)
{
    switch (number) {
#define F(...)
#define RECORD(number, name, meaning, ...) \
    case number:                           \
        return type_##name();
#include "formats/trace/records.def"
#undef RECORD
#undef F
    default:
        return NULL;
    }
}

static const char *const kind_names[TRACE_KIND_COUNT] = {
#define KIND(name) [TRACE_KIND_##name] = #name
    KIND(string), KIND(event), KIND(process), KIND(thread), KIND(module), KIND(code), KIND(frame),
    KIND(kernel_symbol), KIND(stack), KIND(snapshot), KIND(join), KIND(tuple), KIND(label_set),
#undef KIND
};

/* ---- rules ---- */

__attribute__((format(printf, 2, 3))) static bool refuse(struct trace_fault *fault, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fault->text, sizeof fault->text, fmt, ap);
    va_end(ap);
    return false;
}

static bool id_good(uint64_t id, uint32_t kind, bool may_be_none, const struct trace_ids *ids)
{
    return id ? id <= ids->count[kind] : may_be_none;
}

static bool check_id(uint64_t id, uint32_t kind, bool may_be_none, const char *where, const struct trace_ids *ids,
                     struct trace_fault *fault)
{
    if (id_good(id, kind, may_be_none, ids))
        return true;
    if (!id)
        return refuse(fault, "%s: no %s is named", where, kind_names[kind]);
    return refuse(fault, "%s: %s %llu is not defined", where, kind_names[kind], (unsigned long long)id);
}

/* The same for a field of a record; the name of the field is made only for a refusal. */
static bool check_field_id(uint64_t id, const struct trace_record_type *type, const struct trace_field *f,
                           const struct trace_ids *ids, struct trace_fault *fault)
{
    bool may_be_none = f->type != TRACE_F_ID;
    char where[64];

    if (id_good(id, f->argument, may_be_none, ids))
        return true;
    snprintf(where, sizeof where, "%s.%s", type->name, f->name);
    return check_id(id, f->argument, may_be_none, where, ids, fault);
}

static bool check_ids_of_list(const struct trace_list *list, uint32_t width, uint32_t kind, bool may_be_none,
                              const char *where, const struct trace_ids *ids, struct trace_fault *fault)
{
    for (uint64_t i = 0; i < list->count * width; i++)
        if (!check_id(list->values[i], kind, may_be_none, where, ids, fault))
            return false;
    return true;
}

static bool check_sample_ids(const struct trace_sample *s, const struct trace_ids *ids, struct trace_fault *fault)
{
    return check_id(s->thread, TRACE_KIND_thread, false, "sample", ids, fault) &&
           check_id(s->tuple, TRACE_KIND_tuple, true, "sample", ids, fault) &&
           check_id(s->label_set, TRACE_KIND_label_set, true, "sample", ids, fault);
}

bool trace_sample_check(const struct trace_sample *s, const struct trace_ids *ids, struct trace_fault *fault)
{
    if (s->flags & ~(uint32_t)TRACE_SAMPLE_FLAGS)
        return refuse(fault, "sample: unknown flags %#x", s->flags);
    return check_sample_ids(s, ids, fault);
}

static uint32_t take_u32(struct bytes *b)
{
    uint64_t v = bytes_uleb(b);

    if (v > UINT32_MAX)
        b->bad = true;
    return (uint32_t)v;
}

static void take_sample(struct bytes *b, uint64_t last_time_ns, uint64_t period, struct trace_sample *s)
{
    s->time_ns = last_time_ns + (uint64_t)bytes_zigzag(b);
    s->thread = take_u32(b);
    s->tuple = take_u32(b);
    s->cpu = take_u32(b);
    s->flags = take_u32(b);
    s->value = period;
    s->label_set = 0;
    for (uint32_t left = s->flags & TRACE_SAMPLE_PAYLOADS; left; left &= left - 1) {
        switch (left & -left) {
        case TRACE_SAMPLE_VALUE:
            s->value = bytes_uleb(b);
            break;
        case TRACE_SAMPLE_LABELS:
            s->label_set = take_u32(b);
            break;
        default:
            bytes_uleb(b); /* the payload of a flag of a later version */
        }
    }
}

/* Counts the samples with unknown flags, and keeps the samples if they are not too many. `scratch` may be NULL. */
static bool check_samples(const struct trace_samples *r, const struct trace_ids *ids, struct trace_scratch *scratch,
                          struct trace_fault *fault)
{
    struct bytes b = bytes_of(r->data.data, r->data.len_bytes);
    uint64_t time_ns = r->time_ns;
    bool keeps = scratch && r->count <= SAMPLES_KEPT && VEC_RESERVE(&scratch->samples, r->count);

    for (uint32_t i = 0; i < r->count; i++) {
        struct trace_sample s;
        take_sample(&b, time_ns, 0, &s);
        if (b.bad)
            return refuse(fault, "samples.data: sample %u of %u is cut off or malformed", i + 1, r->count);
        if (!check_sample_ids(&s, ids, fault))
            return false;
        if (keeps)
            scratch->samples.data[scratch->samples.count++] = s;
        if (scratch)
            scratch->newer_samples += (s.flags & ~(uint32_t)TRACE_SAMPLE_FLAGS) != 0;
        time_ns = s.time_ns;
    }
    if (bytes_left(&b))
        return refuse(fault, "samples.data: %zu bytes after the last sample", bytes_left(&b));
    return true;
}

/* Checks the ids that the table of fields does not describe. */
static bool check_inside(const struct trace_record_type *type, const void *record, const struct trace_ids *ids,
                         struct trace_scratch *scratch, struct trace_fault *fault)
{
    switch ((enum trace_type)type->number) {
    case TRACE_stack:
        return check_ids_of_list(&((const struct trace_stack *)record)->frames, 1, TRACE_KIND_frame, false,
                                 "stack.frames", ids, fault);
    case TRACE_label_set:
        return check_ids_of_list(&((const struct trace_label_set *)record)->pairs, 2, TRACE_KIND_string, true,
                                 "label_set.pairs", ids, fault);
    case TRACE_samples:
        return check_samples(record, ids, scratch, fault);
    default:
        return true;
    }
}

bool trace_define(struct trace_ids *ids, const struct trace_record_type *type, void *record, struct trace_fault *fault)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        uint64_t count = 1;
        if (f->type == TRACE_F_DEFS) {
            /* The meaning of a DEFS field is the name of the list that it numbers. */
            for (uint32_t k = 0; k < type->field_count; k++)
                if (!strcmp(type->fields[k].name, f->meaning))
                    count = ((struct trace_list *)((char *)record + type->fields[k].struct_offset))->count;
        } else if (f->type != TRACE_F_DEF) {
            continue;
        }
        uint32_t *defined = &ids->count[f->argument];
        if (count >= UINT32_MAX - *defined)
            return refuse(fault, "%s: too many ids in one epoch", type->name);
        *(uint32_t *)((char *)record + f->struct_offset) = *defined + 1;
        *defined += (uint32_t)count;
    }
    return true;
}

/* ---- encoding ---- */

bool trace_encode(struct buf *out, const struct trace_record_type *type, const void *record,
                  const struct trace_ids *ids, struct trace_fault *fault)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        const void *at = (const char *)record + f->struct_offset;
        switch (f->type) {
        case TRACE_F_DEF:
        case TRACE_F_DEFS:
            break;
        case TRACE_F_REF:
        case TRACE_F_STR:
        case TRACE_F_ID: {
            uint32_t id = *(const uint32_t *)at;
            if (!check_field_id(id, type, f, ids, fault))
                return false;
            buf_put_uleb(out, id);
            break;
        }
        case TRACE_F_U32:
            buf_put_uleb(out, *(const uint32_t *)at);
            break;
        case TRACE_F_U64:
            buf_put_uleb(out, *(const uint64_t *)at);
            break;
        case TRACE_F_S64:
            buf_put_zigzag(out, *(const int64_t *)at);
            break;
        case TRACE_F_BYTES: {
            const struct trace_bytes *bytes = at;
            if (bytes->len_bytes > TRACE_BLOCK_LIMIT_BYTES)
                return refuse(fault, "%s.%s: %llu bytes are more than a block may hold", type->name, f->name,
                              (unsigned long long)bytes->len_bytes);
            buf_put_uleb(out, bytes->len_bytes);
            buf_put(out, bytes->data, bytes->len_bytes);
            break;
        }
        case TRACE_F_LIST: {
            const struct trace_list *list = at;
            if (list->count > TRACE_LIST_LIMIT / (uint32_t)f->argument)
                return refuse(fault, "%s.%s: a list of %llu rows is too long", type->name, f->name,
                              (unsigned long long)list->count);
            buf_put_uleb(out, list->count);
            for (uint64_t k = 0; k < list->count * (uint32_t)f->argument; k++)
                buf_put_uleb(out, list->values[k]);
            break;
        }
        }
    }
    return check_inside(type, record, ids, NULL, fault);
}

void trace_sample_encode(struct buf *out, const struct trace_sample *s, uint64_t last_time_ns)
{
    uint32_t flags = s->flags | (s->label_set ? TRACE_SAMPLE_LABELS : 0);

    buf_put_zigzag(out, (int64_t)(s->time_ns - last_time_ns));
    buf_put_uleb(out, s->thread);
    buf_put_uleb(out, s->tuple);
    buf_put_uleb(out, s->cpu);
    buf_put_uleb(out, flags);
    /* In the order of their bits. */
    if (flags & TRACE_SAMPLE_VALUE)
        buf_put_uleb(out, s->value);
    if (flags & TRACE_SAMPLE_LABELS)
        buf_put_uleb(out, s->label_set);
}

/* ---- decoding ---- */

/* Appends the list's numbers to `scratch`. place_lists() sets the pointers later: `scratch` may move. */
static bool take_list(struct bytes *b, const struct trace_record_type *type, const struct trace_field *f,
                      struct trace_scratch *scratch, struct trace_list *list, struct trace_fault *fault)
{
    uint32_t width = (uint32_t)f->argument;
    uint64_t rows = bytes_uleb(b);

    if (b->bad)
        return true; /* the caller reports it */
    if (rows > bytes_left(b) / width || rows > TRACE_LIST_LIMIT / width)
        return refuse(fault, "%s.%s: a list of %llu rows is too long", type->name, f->name, (unsigned long long)rows);
    if (!VEC_RESERVE(&scratch->values, scratch->values.count + rows * width))
        return refuse(fault, "%s.%s: no memory for a list of %llu rows", type->name, f->name, (unsigned long long)rows);
    for (uint64_t i = 0; i < rows * width; i++)
        scratch->values.data[scratch->values.count++] = bytes_uleb(b);
    list->count = rows;
    return true;
}

static void place_lists(const struct trace_record_type *type, struct trace_scratch *scratch, void *record)
{
    size_t used = 0;

    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        if (f->type != TRACE_F_LIST)
            continue;
        struct trace_list *list = (struct trace_list *)((char *)record + f->struct_offset);
        if (list->count)
            list->values = scratch->values.data + used;
        used += list->count * (size_t)f->argument;
    }
}

/* Decodes one field of the payload to `at`. False if it breaks a rule. If it is cut off, `b` is bad. */
static bool take_field(struct bytes *b, const struct trace_record_type *type, const struct trace_field *f,
                       const struct trace_ids *ids, struct trace_scratch *scratch, void *at, struct trace_fault *fault)
{
    switch (f->type) {
    case TRACE_F_DEF:
    case TRACE_F_DEFS:
        break;
    case TRACE_F_REF:
    case TRACE_F_STR:
    case TRACE_F_ID: {
        uint64_t id = bytes_uleb(b);
        if (!b->bad && !check_field_id(id, type, f, ids, fault))
            return false;
        *(uint32_t *)at = (uint32_t)id;
        break;
    }
    case TRACE_F_U32: {
        uint64_t v = bytes_uleb(b);
        if (v > UINT32_MAX)
            return refuse(fault, "%s.%s: %llu does not fit in 32 bits", type->name, f->name, (unsigned long long)v);
        *(uint32_t *)at = (uint32_t)v;
        break;
    }
    case TRACE_F_U64:
        *(uint64_t *)at = bytes_uleb(b);
        break;
    case TRACE_F_S64:
        *(int64_t *)at = bytes_zigzag(b);
        break;
    case TRACE_F_BYTES: {
        struct trace_bytes *bytes = at;
        bytes->len_bytes = bytes_uleb(b);
        bytes->data = bytes_take(b, bytes->len_bytes);
        break;
    }
    case TRACE_F_LIST:
        return take_list(b, type, f, scratch, at, fault);
    }
    return true;
}

bool trace_decode(struct bytes payload, const struct trace_record_type *type, const struct trace_ids *ids,
                  struct trace_scratch *scratch, void *record, struct trace_fault *fault)
{
    struct bytes *b = &payload;

    memset(record, 0, type->struct_size);
    scratch->values.count = 0;
    scratch->samples.count = 0;
    scratch->newer_samples = 0;
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        void *at = (char *)record + f->struct_offset;
        if (f->type == TRACE_F_DEF || f->type == TRACE_F_DEFS)
            continue;
        if (!bytes_left(b)) {
            /* An older writer did not know this field: it stays zero. */
            if (f->type == TRACE_F_ID)
                return refuse(fault, "%s.%s is missing", type->name, f->name);
            continue;
        }
        if (!take_field(b, type, f, ids, scratch, at, fault))
            return false;
        if (b->bad)
            return refuse(fault, "%s.%s is cut off or malformed", type->name, f->name);
    }
    place_lists(type, scratch, record);
    return check_inside(type, record, ids, scratch, fault);
}

void trace_samples_begin(struct trace_sample_iter *it, const struct trace_samples *samples, uint64_t period)
{
    *it = (struct trace_sample_iter){
        .pos = samples->data.data,
        .end = samples->data.data ? samples->data.data + samples->data.len_bytes : NULL,
        .time_ns = samples->time_ns,
        .period = period,
        .left = samples->count,
    };
}

void trace_samples_begin_checked(struct trace_sample_iter *it, const struct trace_record *rec, uint64_t period)
{
    trace_samples_begin(it, &rec->samples, period);
    it->checked = rec->checked_samples;
}

bool trace_samples_next(struct trace_sample_iter *it, struct trace_sample *sample)
{
    struct bytes b = bytes_of(it->pos, (size_t)(it->end - it->pos));

    if (!it->left)
        return false;
    if (it->checked) {
        *sample = *it->checked++;
        if (!(sample->flags & TRACE_SAMPLE_VALUE))
            sample->value = it->period;
        it->left--;
        return true;
    }
    take_sample(&b, it->time_ns, it->period, sample);
    if (b.bad) {
        it->left = 0;
        return false;
    }
    it->pos = b.pos;
    it->time_ns = sample->time_ns;
    it->left--;
    return true;
}
