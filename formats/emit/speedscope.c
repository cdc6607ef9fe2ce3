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
#include "formats/emit/json.h"
#include "formats/emit/names.h"
#include "formats/emit/speedscope_stacks.h"
#include "formats/emit/spool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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

struct speedscope {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct spool spool;
    VEC(struct profile) profiles;
    struct map profile_of; /* thread << 32 | event -> index */
    uint64_t recent_key;
    uint32_t recent;
    struct speedscope_stacks stacks;
};

static struct error *speedscope_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                      void **state)
{
    struct speedscope *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    *s = (struct speedscope){.model = model, .options = *options, .out = out, .profile_of.limits = options->limits};
    speedscope_stacks_init(&s->stacks, model, &s->options);
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
    if (!speedscope_stacks_use(&s->stacks, sample->stack))
        return error_no_memory();
    if (p->has_last)
        TRY(spool_add(&s->spool, &p->samples, p->last.stack, p->last.weight));
    p->last = (struct spool_run){.stack = sample->stack, .weight = sample->value};
    p->has_last = true;
    return NULL;
}

/* ---- writing ---- */

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
        uint32_t shown = run ? speedscope_stacks_find(&s->stacks, run->stack) : 0;
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
                speedscope_stacks_put(&s->stacks, current, &text);
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
    struct error *err = name.bad ? error_no_memory() : json_put_text(buf_cstr(&name), out);
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
    struct error *err = json_put_text(name.len_bytes ? buf_cstr(&name) : "profile", &text);
    buf_put_str(&text, ",\"exporter\":");
    buf_clear(&name);
    name_plain(s->options.exporter ? s->options.exporter : "pysym", &name);
    if (!err)
        err = json_put_text(buf_cstr(&name), &text);
    if (!err && (name.bad || text.bad))
        err = error_no_memory();
    if (!err)
        fprintf(s->out, "{\"$schema\":\"" SCHEMA "\",\"name\":%s,\"activeProfileIndex\":%zu,\n\"shared\":{\"frames\":[",
                buf_cstr(&text), heaviest(s));
    for (uint32_t i = 0; !err && i < s->stacks.frames.count; i++) {
        const struct intern_entry *frame = intern_get(&s->stacks.frames, i);
        fprintf(s->out, "%s\n%.*s", i ? "," : "", (int)frame->len_bytes, (const char *)frame->data);
    }
    buf_deinit(&name);
    buf_deinit(&text);
    return err;
}

static struct error *speedscope_end(void *state)
{
    struct speedscope *s = state;

    TRY(speedscope_stacks_number(&s->stacks));
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
    map_deinit(&s->profile_of);
    speedscope_stacks_deinit(&s->stacks);
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
