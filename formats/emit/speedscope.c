/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own format: JSON with one table of frames and one profile per thread, in which every sample is a list
 * of frame numbers, outermost first, and has a weight.
 *
 * The format needs all frames before the samples and all samples of a thread in one piece. So samples, which come in
 * order of time, are kept by thread in a temporary file (spool.h) and written at the end; memory holds frames, stacks and
 * threads only. Neighbouring samples with the same stack become one with the sum of their weights: those of one stack
 * number when they come, those whose stacks only look alike when they are written.
 */
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"
#include "formats/emit/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_WORK = 400 }; /* to be put in order and written to the temporary file and back, see limits.h */

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/* The samples of one thread for one event. */
struct profile {
    uint32_t thread, event;
    struct spool_list samples;
    struct spool_run last; /* it may still grow */
    bool has_last;
    uint64_t weight;
};

/* Stacks as they are written: those that look alike have one number. Number 0 is the empty stack. */
struct shown_stack {
    uint32_t parent, frame, depth;
};

struct speedscope {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct spool spool;
    VEC(struct profile) profiles;
    struct map profile_of; /* thread << 32 | event -> index */
    uint64_t recent_key;
    uint32_t recent;
    VEC(bool) used;       /* by stack */
    struct intern frames; /* JSON objects, by number in the file */
    uint32_t *frame_of;   /* by the model's frame; INTERN_NONE: unused. One more entry, for samples without frames */
    VEC(struct shown_stack) shown;
    uint32_t *shown_of; /* by the model's stack; 0: unused */
    bool has_empty;     /* samples without frames were seen */
    uint32_t shown_empty;
    struct map shown_children;
};

static struct error *speedscope_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                      void **state)
{
    struct speedscope *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    *s = (struct speedscope){.model = model, .options = *options, .out = out, .profile_of.limits = options->limits,
                             .frames.arena.limits = options->limits, .shown_children.limits = options->limits};
    spool_init(&s->spool);
    *state = s;
    return NULL;
}

/* NULL when memory ran out. */
static struct profile *profile_for(struct speedscope *s, uint32_t thread, uint32_t event)
{
    uint64_t key = (uint64_t)thread << 32 | event;

    if (s->profiles.count && key == s->recent_key)
        return &s->profiles.data[s->recent];
    uint64_t *known = map_get(&s->profile_of, key);
    if (!known) {
        if (!limits_take(s->options.limits, 2 * sizeof(struct profile)) ||
            !VEC_PUSH(&s->profiles, ((struct profile){.thread = thread, .event = event})) ||
            !map_set(&s->profile_of, key, s->profiles.count - 1))
            return NULL;
        known = map_get(&s->profile_of, key);
    }
    s->recent_key = key;
    s->recent = (uint32_t)*known;
    return &s->profiles.data[s->recent];
}

static bool mark_used(struct speedscope *s, uint32_t stack)
{
    if (stack == EMIT_NO_STACK) {
        s->has_empty = true;
        return true;
    }
    if (stack >= s->used.count) {
        if (!VEC_RESERVE(&s->used, (size_t)stack + 1))
            return false;
        memset(s->used.data + s->used.count, 0, (stack + 1 - s->used.count) * sizeof *s->used.data);
        s->used.count = (size_t)stack + 1;
    }
    s->used.data[stack] = true;
    return true;
}

static struct error *speedscope_sample(void *state, const struct emit_sample *sample)
{
    struct speedscope *s = state;

    if (!limits_work(s->options.limits, SAMPLE_WORK))
        return error_no_memory();
    struct profile *p = profile_for(s, sample->thread, sample->event);

    if (!p)
        return error_no_memory();
    p->weight += sample->value;
    if (p->has_last && p->last.stack == sample->stack) {
        p->last.weight += sample->value;
        return NULL;
    }
    if (!mark_used(s, sample->stack))
        return error_no_memory();
    if (p->has_last)
        TRY(spool_add(&s->spool, &p->samples, p->last.stack, p->last.weight));
    p->last = (struct spool_run){.stack = sample->stack, .weight = sample->value};
    p->has_last = true;
    return NULL;
}

/* ---- frames and stacks as they are written ---- */

/* Appends JSON so that it may stand in a script of a web page, too: nothing in it ends the script or begins a comment. */
static void put_for_pages(const char *json, struct buf *out)
{
    for (const char *next; (next = strchr(json, '<')); json = next + 1) {
        buf_put(out, json, (size_t)(next - json));
        buf_put_str(out, next[1] == '/' ? "<\\" : next[1] == '!' ? "\\u003c" : "<");
    }
    buf_put_str(out, json);
}

static struct error *put_json(json_t *value, struct buf *out)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    json_decref(value);
    if (!text)
        return error_no_memory();
    put_for_pages(text, out);
    free(text);
    return NULL;
}

static struct error *put_json_text(const char *text, struct buf *out)
{
    return put_json(json_string(text), out);
}

static bool set_text(json_t *object, const char *key, const void *text, size_t len)
{
    return !json_object_set_new(object, key, json_stringn(text, len));
}

/* One frame as JSON; NULL is the frame of samples without frames. The name is clean already, the file is not. */
static struct error *put_frame(const struct speedscope *s, const struct emit_frame *f, const struct intern_entry *name,
                               struct buf *out)
{
    json_t *object = json_object();
    struct buf file = {0};
    uint32_t line = 0, column = 0;
    bool ok = object && set_text(object, "name", name->data, name->len_bytes);

    if (f) {
        name_plain(f->kind == EMIT_MARK ? "" : *f->file ? f->file : f->module, &file);
        name_position(f, &s->options, NAME_AS_ASKED, &line, &column);
    }
    if (ok && file.len_bytes)
        ok = set_text(object, "file", file.data, file.len_bytes);
    if (ok && line)
        ok = !json_object_set_new(object, "line", json_integer(line));
    if (ok && column)
        ok = !json_object_set_new(object, "col", json_integer(column));
    ok = ok && !file.bad;
    buf_deinit(&file);
    if (!ok) {
        json_decref(object);
        return error_no_memory();
    }
    return put_json(object, out);
}

static struct error *number_frame(struct speedscope *s, uint32_t frame, const struct intern *texts, const uint32_t *ids,
                                  struct buf *scratch)
{
    const struct emit_frame *f = frame < s->model->frame_count ? &s->model->frames[frame] : NULL;

    if (s->frame_of[frame] != INTERN_NONE)
        return NULL;
    buf_clear(scratch);
    TRY(put_frame(s, f, intern_get(texts, ids[frame]), scratch));
    if (!scratch->bad)
        s->frame_of[frame] = intern_id(&s->frames, scratch->data, (uint32_t)scratch->len_bytes, NULL);
    return s->frame_of[frame] == INTERN_NONE ? error_no_memory() : NULL;
}

/* 0 when memory ran out. */
static uint32_t shown_child(struct speedscope *s, uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | frame;
    uint64_t *known = map_get(&s->shown_children, key);
    struct shown_stack child = {.parent = parent, .frame = frame, .depth = s->shown.data[parent].depth + 1};

    if (known)
        return (uint32_t)*known;
    if (!map_set(&s->shown_children, key, s->shown.count) || !VEC_PUSH(&s->shown, child))
        return 0;
    return (uint32_t)s->shown.count - 1;
}

static struct error *number_stacks(struct speedscope *s, const struct intern *texts, const uint32_t *ids)
{
    const struct emit_model *m = s->model;
    VEC(uint32_t) todo = {0};
    struct buf scratch = {0};
    struct error *err = NULL;

    for (uint32_t i = 0; !err && i < s->used.count; i++) {
        uint32_t shown = 0;
        if (!s->used.data[i])
            continue;
        todo.count = 0;
        for (uint32_t stack = i; !err && stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
            if ((shown = s->shown_of[stack]))
                break;
            if (!VEC_PUSH(&todo, stack))
                err = error_no_memory();
        }
        while (!err && todo.count) {
            uint32_t stack = todo.data[--todo.count], frame = m->stacks[stack].frame;
            err = number_frame(s, frame, texts, ids, &scratch);
            if (!err && !(s->shown_of[stack] = shown = shown_child(s, shown, s->frame_of[frame])))
                err = error_no_memory();
        }
    }
    VEC_DEINIT(&todo);
    if (!err && s->has_empty) {
        err = number_frame(s, m->frame_count, texts, ids, &scratch);
        if (!err && !(s->shown_empty = shown_child(s, 0, s->frame_of[m->frame_count])))
            err = error_no_memory();
    }
    buf_deinit(&scratch);
    return err;
}

static struct error *number_all(struct speedscope *s)
{
    const struct emit_model *m = s->model;
    struct intern texts = {.arena.limits = s->options.limits};
    struct names names;
    uint32_t *ids = NULL;

    struct error *err = names_init(&names, m, &s->options);
    if (!err)
        err = names_spell(&names, NAME_AS_ASKED, &texts, &ids);
    s->frame_of = malloc(((size_t)m->frame_count + 1) * sizeof *s->frame_of);
    s->shown_of = calloc((size_t)m->stack_count + 1, sizeof *s->shown_of);
    if (!err && (!s->frame_of || !s->shown_of || !VEC_PUSH(&s->shown, ((struct shown_stack){0}))))
        err = error_no_memory();
    if (!err) {
        memset(s->frame_of, 0xff, ((size_t)m->frame_count + 1) * sizeof *s->frame_of);
        err = number_stacks(s, &texts, ids);
    }
    free(ids);
    names_deinit(&names);
    intern_deinit(&texts);
    return err;
}

/* ---- writing ---- */

static void put_indices(struct speedscope *s, uint32_t shown, struct buf *out)
{
    uint32_t depth = s->shown.data[shown].depth;
    size_t most = (size_t)depth * 11 + 2;
    uint8_t *from = buf_reserve(out, most), *p = from + most;

    if (!from)
        return;
    /* Written backwards, since a stack is walked from its innermost frame. */
    *--p = ']';
    for (; shown; shown = s->shown.data[shown].parent) {
        uint32_t v = s->shown.data[shown].frame;
        do
            *--p = (uint8_t)('0' + v % 10);
        while (v /= 10);
        if (s->shown.data[shown].parent)
            *--p = ',';
    }
    *--p = '[';
    memmove(from, p, (size_t)(from + most - p));
    out->len_bytes += (size_t)(from + most - p);
}

enum column { COLUMN_SAMPLES, COLUMN_WEIGHTS };

/* One of a profile's two arrays. */
static struct error *write_column(struct speedscope *s, const struct profile *p, enum column column)
{
    struct spool_reader reader = {.spool = &s->spool, .list = &p->samples};
    struct buf text = {0};
    struct error *err = NULL;
    uint32_t current = 0;
    uint64_t weight = 0;

    for (bool last = !p->has_last, first = true;;) {
        const struct spool_run *run = NULL;
        if (!last && !(err = spool_next(&reader, &run)) && !run) {
            run = &p->last;
            last = true;
        } else if (last) {
            run = NULL;
        }
        if (err)
            break;
        uint32_t shown = !run ? 0 : run->stack == EMIT_NO_STACK ? s->shown_empty : s->shown_of[run->stack];
        if (current && shown == current) {
            weight += run->weight;
            continue;
        }
        if (current) {
            buf_clear(&text);
            if (!first)
                buf_put_u8(&text, ',');
            first = false;
            if (column == COLUMN_SAMPLES)
                put_indices(s, current, &text);
            else
                buf_printf(&text, "%" PRIu64, weight);
            if (text.bad)
                err = error_no_memory();
            else if (fwrite(text.data, text.len_bytes, 1, s->out) != 1)
                err = error_os(errno, "cannot write the profile");
        }
        if (err || !run)
            break;
        current = shown;
        weight = run->weight;
    }
    spool_reader_deinit(&reader);
    buf_deinit(&text);
    return err;
}

static bool several_events(const struct speedscope *s)
{
    for (size_t i = 1; i < s->profiles.count; i++) {
        if (s->profiles.data[i].event != s->profiles.data[0].event)
            return true;
    }
    return false;
}

/* "comm-pid thread tid", and the event if the profile's unit does not show it. */
static struct error *put_profile_name(const struct speedscope *s, const struct profile *p, bool with_event,
                                      struct buf *out)
{
    const struct emit_thread *thread = &s->model->threads[p->thread];
    struct buf name = {0};

    name_process(&s->model->processes[thread->process], &name);
    if (*thread->name) {
        buf_put_u8(&name, ' ');
        name_plain(thread->name, &name);
    }
    buf_printf(&name, " %u", thread->tid);
    if (with_event) {
        buf_put_u8(&name, ' ');
        name_word(s->model->events[p->event].name, &name);
    }
    struct error *err = name.bad ? error_no_memory() : put_json_text(buf_cstr(&name), out);
    buf_deinit(&name);
    return err;
}

static struct error *write_profile(struct speedscope *s, const struct profile *p, bool several)
{
    const struct emit_event *event = &s->model->events[p->event];
    struct buf name = {0};

    struct error *err = put_profile_name(s, p, several || !event->is_time, &name);
    if (!err) {
        fprintf(s->out, "{\"type\":\"sampled\",\"name\":%s,\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64,
                buf_cstr(&name), event->is_time ? "nanoseconds" : event->is_bytes ? "bytes" : "none", p->weight);
        fputs(",\n\"samples\":[", s->out);
        err = write_column(s, p, COLUMN_SAMPLES);
    }
    if (!err) {
        fputs("],\n\"weights\":[", s->out);
        err = write_column(s, p, COLUMN_WEIGHTS);
    }
    if (!err)
        fputs("]}", s->out);
    buf_deinit(&name);
    return err;
}

/* By process, thread, event, in the model's order. */
static int compare_profiles(const void *a, const void *b, void *arg)
{
    const struct emit_model *m = arg;
    const struct profile *pa = a, *pb = b;
    uint32_t qa = m->threads[pa->thread].process, qb = m->threads[pb->thread].process;

    if (qa != qb)
        return qa < qb ? -1 : 1;
    if (pa->thread != pb->thread)
        return pa->thread < pb->thread ? -1 : 1;
    return (pa->event > pb->event) - (pa->event < pb->event);
}

/* The profile to show first. Weights of different units do not compare; those of time go before others. */
static size_t heaviest(const struct speedscope *s)
{
    size_t best = 0;

    for (size_t i = 1; i < s->profiles.count; i++) {
        const struct profile *p = &s->profiles.data[i], *q = &s->profiles.data[best];
        bool p_time = s->model->events[p->event].is_time, q_time = s->model->events[q->event].is_time;
        if (p_time != q_time ? p_time : p->weight > q->weight)
            best = i;
    }
    return best;
}

static struct error *write_head(struct speedscope *s)
{
    struct buf name = {0}, text = {0};

    /* A file without a name and without profiles makes speedscope throw. */
    name_plain(s->options.name ? s->options.name : "", &name);
    struct error *err = put_json_text(name.len_bytes ? buf_cstr(&name) : "profile", &text);
    buf_put_str(&text, ",\"exporter\":");
    buf_clear(&name);
    name_plain(s->options.exporter ? s->options.exporter : "pysym", &name);
    if (!err)
        err = put_json_text(buf_cstr(&name), &text);
    if (!err && (name.bad || text.bad))
        err = error_no_memory();
    if (!err)
        fprintf(s->out, "{\"$schema\":\"" SCHEMA "\",\"name\":%s,\"activeProfileIndex\":%zu,\n\"shared\":{\"frames\":[",
                buf_cstr(&text), heaviest(s));
    for (uint32_t i = 0; !err && i < s->frames.count; i++) {
        const struct intern_entry *frame = intern_get(&s->frames, i);
        fprintf(s->out, "%s\n%.*s", i ? "," : "", (int)frame->len_bytes, (const char *)frame->data);
    }
    buf_deinit(&name);
    buf_deinit(&text);
    return err;
}

static struct error *speedscope_end(void *state)
{
    struct speedscope *s = state;

    TRY(number_all(s));
    if (s->profiles.count)
        qsort_r(s->profiles.data, s->profiles.count, sizeof *s->profiles.data, compare_profiles, (void *)s->model);
    TRY(write_head(s));
    fputs("\n]},\n\"profiles\":[", s->out);
    bool several = several_events(s);
    for (size_t i = 0; i < s->profiles.count; i++) {
        fputs(i ? ",\n" : "\n", s->out);
        TRY(write_profile(s, &s->profiles.data[i], several));
    }
    if (!s->profiles.count) /* speedscope cannot show a file without profiles */
        fputs("\n{\"type\":\"sampled\",\"name\":\"no samples\",\"unit\":\"none\",\"startValue\":0,\"endValue\":0,"
              "\"samples\":[],\"weights\":[]}",
              s->out);
    fputs("\n]}\n", s->out);
    return ferror(s->out) ? error_os(errno, "cannot write the profile") : NULL;
}

static void speedscope_destroy(void *state)
{
    struct speedscope *s = state;

    if (!s)
        return;
    for (size_t i = 0; i < s->profiles.count; i++)
        spool_list_deinit(&s->profiles.data[i].samples);
    VEC_DEINIT(&s->profiles);
    VEC_DEINIT(&s->used);
    VEC_DEINIT(&s->shown);
    map_deinit(&s->profile_of);
    map_deinit(&s->shown_children);
    intern_deinit(&s->frames);
    free(s->frame_of);
    free(s->shown_of);
    spool_deinit(&s->spool);
    free(s);
}

const struct emitter emitter_speedscope = {
    .name = "speedscope",
    .description = "a file for speedscope.app, one profile per thread",
    .extension = ".speedscope.json",
    .time_order = true,
    .begin = speedscope_begin,
    .sample = speedscope_sample,
    .end = speedscope_end,
    .destroy = speedscope_destroy,
};
