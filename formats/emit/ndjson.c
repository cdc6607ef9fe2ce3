/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables as lines of JSON, for jq, DuckDB and programs of one's own: a row for each sample, and a row for each
 * distinct stack, which samples name by number:
 *
 *     {"type":"stack","stack":1,"frames":[{"layer":"python","function":"main","file":"/srv/app.py","line":12, ...}]}
 *     {"type":"sample","time_ns":10000001000,"time":"2026-11-22T09:29:09.123456Z", ... ,"value":10000000,"stack":1}
 *
 * Into OUT.ndjson go the samples, and the stacks into OUT.stacks.ndjson beside it. Where no file can be beside the
 * output, both go there, a stack before the first sample that has it. Rows are written as they come; what is kept is
 * which stacks have been written, and the text of each frame and set of labels.
 *
 * The shape suits readers that guess types from the first rows, as DuckDB does:
 *
 *  - A row has all members, and a member has one type: an unknown text is "", an unknown number 0. Only the time of day
 *    is null in a trace that does not know it.
 *  - Addresses are text, since they reach beyond 2^53, where JavaScript and jq 1.6 round numbers. So do times after 104
 *    days, but those are for computing with.
 *  - Frames are listed outermost first, as in folded stacks: joined by ";" they are one, and what begins alike is the
 *    same branch of the tree of calls. The function that ran is the last.
 *  - A sample without frames has a stack of one mark, so that joining the tables loses nothing.
 */
#include "formats/base/arena.h"
#include "formats/base/clock.h"
#include "formats/base/hex.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/capture_facts.h"
#include "formats/emit/emit.h"
#include "formats/emit/json.h"
#include "formats/emit/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXTENSION ".ndjson"

struct text {
    const char *data;
    size_t len_bytes;
};

/* Texts of frames, or of sets of labels. One of many parts of an output has few of all that the model has. */
struct texts {
    VEC(struct text) list;
    struct map number_of; /* id in the model -> index in the list */
};

enum { OWNERS = 64, OWNER_NAMES = 7, OWNER_BYTES = 500, TIME_BYTES = 64 };

/* The text of what a thread's rows say of it and its process, kept as long as it stands on the same names. */
struct owner {
    uint32_t thread;
    uint32_t len_bytes;
    const char *names[OWNER_NAMES];
    char text[OWNER_BYTES];
};

struct ndjson {
    const struct emit_model *model;
    struct limits *limits;
    FILE *samples, *stacks;   /* the same for one stream */
    struct buf stacks_remark; /* a C string; empty for one stream */
    struct map numbers;       /* stack, or EMIT_NO_STACK -> its number in the output, from 1 on */
    struct arena arena;
    struct texts frames, label_sets;
    struct buf row, scratch;
    struct owner *owners[OWNERS]; /* by number of the thread, modulo; NULL: not made yet */
    bool has_time;
    time_t time_s;          /* since 1970; `time` is its text */
    char time[TIME_BYTES];
};

/* ---- members ---- */

/* `key` is the member's name and what stands around it: ",\"line\":". */
static void put_number(struct buf *out, const char *key, uint64_t value)
{
    buf_put_str(out, key);
    buf_put_decimal(out, value, 0, ' ');
}

static void put_text(struct buf *out, const char *key, const char *value)
{
    buf_put_str(out, key);
    json_put_foreign(value, out);
}

static void put_bool(struct buf *out, const char *key, bool value)
{
    buf_put_str(out, key);
    buf_put_str(out, value ? "true" : "false");
}

static void texts_deinit(struct texts *t)
{
    VEC_DEINIT(&t->list);
    map_deinit(&t->number_of);
}

/* NULL: it was not made yet. Valid until another text is made. */
static const struct text *find_text(const struct texts *t, uint32_t id)
{
    const uint64_t *number = map_get(&t->number_of, id);

    return number ? &t->list.data[*number] : NULL;
}

/* Keeps what is in `scratch` as a text, valid likewise. NULL: out of memory. */
static const struct text *keep_text(struct ndjson *n, struct texts *t, uint32_t id)
{
    struct text text = {.data = n->scratch.bad ? NULL : arena_dup(&n->arena, n->scratch.data, n->scratch.len_bytes),
                        .len_bytes = n->scratch.len_bytes};

    buf_clear(&n->scratch);
    if (!text.data || !VEC_PUSH(&t->list, text) || !map_set(&t->number_of, id, t->list.count - 1))
        return NULL;
    return &t->list.data[t->list.count - 1];
}

/* ---- stacks ---- */

static void put_frame(const struct emit_model *m, const struct emit_frame *f, struct buf *out)
{
    static const char *const layers[] = {
        [EMIT_PYTHON] = "python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel", [EMIT_MARK] = "mark"};
    const struct emit_mapping *mapping = f->mapping < m->mapping_count ? &m->mappings[f->mapping] : NULL;

    put_text(out, "{\"layer\":", layers[f->kind]);
    put_text(out, ",\"function\":", f->function);
    put_text(out, ",\"file\":", f->file);
    put_number(out, ",\"line\":", f->line);
    put_number(out, ",\"column\":", f->column);
    put_number(out, ",\"function_line\":", f->function_line);
    put_text(out, ",\"module\":", f->module);
    put_text(out, ",\"builtin\":", f->builtin ? f->builtin : "");
    if (f->kind == EMIT_NATIVE || f->kind == EMIT_KERNEL)
        buf_printf(out, ",\"address\":\"0x%" PRIx64 "\"", f->address);
    else
        buf_put_str(out, ",\"address\":\"\"");
    put_bool(out, ",\"inlined\":", f->inlined);
    struct hex build_id = hex_of(mapping ? mapping->build_id : NULL, mapping ? mapping->build_id_len : 0);
    put_text(out, ",\"build_id\":", build_id.text);
    buf_put_u8(out, '}');
}

/* The text of a frame; NULL: out of memory. */
static const struct text *frame_text(struct ndjson *n, uint32_t frame)
{
    const struct text *known = find_text(&n->frames, frame);

    if (known)
        return known;
    put_frame(n->model, &n->model->frames[frame], &n->scratch);
    return keep_text(n, &n->frames, frame);
}

/* Appends the frames of a stack, outermost first; false: out of memory. */
static bool put_frames(struct ndjson *n, uint32_t stack, struct buf *out)
{
    const struct emit_model *m = n->model;
    size_t from = out->len_bytes, len_bytes = 0;

    /* From the innermost frame on outwards, which is from the end of the text on forwards. */
    for (uint32_t s = stack; s != EMIT_NO_STACK; s = m->stacks[s].parent) {
        const struct text *t = frame_text(n, m->stacks[s].frame);
        if (!t)
            return false;
        len_bytes += t->len_bytes + (m->stacks[s].parent != EMIT_NO_STACK);
    }
    if (!buf_reserve(out, len_bytes))
        return false;
    out->len_bytes = from + len_bytes;
    uint8_t *to = out->data + out->len_bytes;
    for (uint32_t s = stack; s != EMIT_NO_STACK; s = m->stacks[s].parent) {
        const struct text *t = find_text(&n->frames, m->stacks[s].frame);
        to -= t->len_bytes;
        memcpy(to, t->data, t->len_bytes);
        if (m->stacks[s].parent != EMIT_NO_STACK)
            *--to = ',';
    }
    return true;
}

static struct error *write_row(struct ndjson *n, FILE *out)
{
    buf_put_str(&n->row, "}\n");
    if (n->row.bad)
        return error_no_memory();
    fwrite(n->row.data, n->row.len_bytes, 1, out);
    return ferror(out) ? error_os(errno, "cannot write the rows") : NULL;
}

static struct error *write_stack(struct ndjson *n, uint32_t stack, uint32_t number)
{
    static const struct emit_frame no_frames = {
        .kind = EMIT_MARK, .function = NAME_NO_FRAMES, .file = "", .module = "", .mapping = EMIT_NO_MAPPING};

    buf_clear(&n->row);
    put_number(&n->row, "{\"type\":\"stack\",\"stack\":", number);
    buf_put_str(&n->row, ",\"frames\":[");
    if (stack == EMIT_NO_STACK)
        put_frame(n->model, &no_frames, &n->row);
    else if (!put_frames(n, stack, &n->row))
        return error_no_memory();
    buf_put_u8(&n->row, ']');
    return write_row(n, n->stacks);
}

/* Finds the number of a stack; a new one is written. */
static struct error *number_stack(struct ndjson *n, uint32_t stack, uint32_t *number)
{
    const uint64_t *known = map_get(&n->numbers, stack);

    *number = (uint32_t)(known ? *known : n->numbers.count + 1);
    if (known)
        return NULL;
    return map_set(&n->numbers, stack, *number) ? write_stack(n, stack, *number) : error_no_memory();
}

/* ---- samples ---- */

/* The text of a second, without its fraction; "" for a year that no calendar has. */
static void make_time(struct ndjson *n, time_t seconds)
{
    struct tm tm;

    n->time_s = seconds;
    n->has_time = true;
    *n->time = 0;
    if (gmtime_r(&seconds, &tm))
        snprintf(n->time, sizeof n->time, "\"%04d-%02d-%02dT%02d:%02d:%02d.", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* The time of day in UTC, or null. */
static void put_time(struct ndjson *n, const struct emit_capture *capture, uint64_t time_ns, struct buf *out)
{
    uint64_t real_ns = capture_realtime_ns(capture, time_ns);
    time_t seconds = (time_t)(real_ns / NS_PER_S);

    if (!n->has_time || n->time_s != seconds)
        make_time(n, seconds);
    buf_put_str(out, ",\"time\":");
    if (!capture->realtime_ns || !*n->time) {
        buf_put_str(out, "null");
        return;
    }
    buf_put_str(out, n->time);
    buf_put_decimal(out, real_ns % NS_PER_S / NS_PER_US, 6, '0');
    buf_put_str(out, "Z\"");
}

/* A key that a set has twice would make two members of one name: only the first counts. */
static bool is_again(const struct emit_label_set *set, uint32_t label)
{
    for (uint32_t i = 0; i < label; i++) {
        if (!strcmp(set->labels[i].key, set->labels[label].key))
            return true;
    }
    return false;
}

/* The text of a set of labels, an object; NULL: out of memory. */
static const struct text *labels_text(struct ndjson *n, uint32_t number)
{
    const struct text *known = find_text(&n->label_sets, number);
    const struct emit_label_set *set = &n->model->label_sets[number];

    if (known)
        return known;
    if (!limits_work(n->limits, 10 * (uint64_t)set->count * set->count))
        return NULL;
    buf_put_u8(&n->scratch, '{');
    for (uint32_t i = 0; i < set->count; i++) {
        if (is_again(set, i))
            continue;
        put_text(&n->scratch, i ? "," : "", set->labels[i].key);
        put_text(&n->scratch, ":", set->labels[i].value);
    }
    buf_put_u8(&n->scratch, '}');
    return keep_text(n, &n->label_sets, number);
}

/* Makes the text of an owner, and keeps it in `known` unless it is too long. */
static void make_owner(struct ndjson *n, const struct owner *o, const struct emit_process *process, uint32_t tid,
                       struct owner **known, struct buf *out)
{
    size_t from = out->len_bytes;

    put_text(out, ",\"capture\":", o->names[0]);
    put_text(out, ",\"host\":", o->names[1]);
    put_text(out, ",\"container\":", o->names[2]);
    put_number(out, ",\"pid\":", process->pid);
    put_text(out, ",\"process\":", o->names[3]);
    put_text(out, ",\"title\":", o->names[6]);
    put_text(out, ",\"comm\":", o->names[4]);
    put_number(out, ",\"tid\":", tid);
    put_text(out, ",\"thread\":", o->names[5]);
    if (!*known && limits_take(n->limits, sizeof **known) && !(*known = malloc(sizeof **known)))
        limits_give(n->limits, sizeof **known);
    if (!*known) {
        out->bad = true;
        return;
    }
    **known = *o;
    if (out->bad || out->len_bytes - from > OWNER_BYTES) {
        (*known)->len_bytes = 0;
        return;
    }
    (*known)->len_bytes = (uint32_t)(out->len_bytes - from);
    memcpy((*known)->text, out->data + from, (*known)->len_bytes);
}

/* Names change while a program runs: then the model has others. */
static void put_owner(struct ndjson *n, const struct emit_sample *s, struct buf *out)
{
    const struct emit_model *m = n->model;
    const struct emit_thread *thread = &m->threads[s->thread];
    const struct emit_process *process = &m->processes[thread->process];
    const struct emit_capture *capture = &m->captures[s->capture];
    const struct owner now = {.thread = s->thread,
                              .names = {capture->name, capture->hostname, process->container, process->name,
                                        process->comm, thread->name, process->title ? process->title : ""}};
    struct owner **known = &n->owners[s->thread % OWNERS];

    if (*known && (*known)->len_bytes && (*known)->thread == now.thread &&
        !memcmp((*known)->names, now.names, sizeof now.names))
        buf_put(out, (*known)->text, (*known)->len_bytes);
    else
        make_owner(n, &now, process, thread->tid, known, out);
}

static struct error *ndjson_sample(void *state, const struct emit_sample *s)
{
    static const char *const gils[] = {
        [EMIT_GIL_UNKNOWN] = "unknown", [EMIT_GIL_HELD] = "held", [EMIT_GIL_NOT_HELD] = "not held"};
    struct ndjson *n = state;
    const struct emit_model *m = n->model;
    const struct emit_event *event = &m->events[s->event];
    uint32_t stack = 0;

    TRY(number_stack(n, s->stack, &stack));
    const struct text *labels = labels_text(n, s->label_set);
    if (!labels)
        return error_no_memory();
    struct buf *row = &n->row;
    buf_clear(row);
    put_number(row, "{\"type\":\"sample\",\"time_ns\":", s->time_ns);
    put_time(n, &m->captures[s->capture], s->time_ns, row);
    put_owner(n, s, row);
    put_number(row, ",\"cpu\":", s->cpu);
    put_text(row, ",\"event\":", event->name);
    put_number(row, ",\"value\":", s->value);
    put_text(row, ",\"unit\":", event->unit);
    put_number(row, ",\"faults\":", s->faults);
    put_text(row, ",\"gil\":", gils[s->gil]);
    put_bool(row, ",\"in_interpreter\":", s->in_interpreter);
    buf_put_str(row, ",\"labels\":");
    buf_put(row, labels->data, labels->len_bytes);
    put_number(row, ",\"stack\":", stack);
    return write_row(n, n->samples);
}

/* ---- the emitter ---- */

/* "t.stacks.ndjson" for "t.ndjson". */
static void put_stacks_name(const char *name, struct buf *out)
{
    size_t len = strlen(name), end = strlen(EXTENSION);

    buf_put(out, name, len > end && !strcmp(name + len - end, EXTENSION) ? len - end : len);
    buf_put_str(out, ".stacks" EXTENSION);
}

static struct error *create_stacks(struct ndjson *n, struct emit_files *files)
{
    put_stacks_name(files->name, &n->scratch);
    buf_printf(&n->stacks_remark, "the stacks are in %s, beside it", buf_cstr(&n->scratch));
    buf_put_u8(&n->stacks_remark, 0);
    if (n->scratch.bad || n->stacks_remark.bad)
        return error_no_memory();
    TRY(files->create(files, buf_cstr(&n->scratch), &n->stacks));
    buf_clear(&n->scratch);
    return NULL;
}

static struct error *ndjson_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                  void **state)
{
    struct ndjson *n = calloc(1, sizeof *n);

    if (!n)
        return error_no_memory();
    *n = (struct ndjson){
        .model = model, .limits = options->limits, .samples = out, .stacks = out, .arena.limits = options->limits};
    n->numbers.limits = n->frames.number_of.limits = n->label_sets.number_of.limits = options->limits;
    *state = n;
    return options->files ? create_stacks(n, options->files) : NULL;
}

static struct error *ndjson_end(void *state)
{
    (void)state;
    return NULL;
}

static const char *ndjson_remark(const void *state)
{
    const struct ndjson *n = state;

    return n->samples == n->stacks ? NULL : (const char *)n->stacks_remark.data;
}

static void ndjson_destroy(void *state)
{
    struct ndjson *n = state;

    if (!n)
        return;
    for (size_t i = 0; i < OWNERS; i++) {
        limits_give(n->limits, n->owners[i] ? sizeof *n->owners[i] : 0);
        free(n->owners[i]);
    }
    map_deinit(&n->numbers);
    texts_deinit(&n->frames);
    texts_deinit(&n->label_sets);
    arena_deinit(&n->arena);
    buf_deinit(&n->row);
    buf_deinit(&n->scratch);
    buf_deinit(&n->stacks_remark);
    free(n);
}

const struct emitter emitter_ndjson = {
    .name = "ndjson",
    .description = "tables of samples and of stacks as lines of JSON, for jq and DuckDB",
    .extension = EXTENSION,
    .syntax = JOB_TEXT_JSON,
    .time_order = true,
    .writes_each_sample = true,
    .uses_files = true,
    .begin = ndjson_begin,
    .sample = ndjson_sample,
    .end = ndjson_end,
    .remark = ndjson_remark,
    .destroy = ndjson_destroy,
};
