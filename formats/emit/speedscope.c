/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own format: JSON with one table of frames and a list of profiles, in which every sample is a list of frame
 * numbers, outermost first, and has a weight.
 *
 * The format needs all frames before the samples and all samples of a thread in one piece. So samples, which come in
 * order of time, are kept by thread in a temporary file (spool.h) and written at the end; memory holds frames, stacks and
 * threads only. Neighbouring samples with the same stack become one with the sum of their weights: those of one stack
 * number when they come, those whose stacks only look alike when they are written.
 *
 * speedscope shows one profile at a time and cannot add them up. So the file begins with all threads in one, for each
 * event; then come the threads, the heaviest first, and what is left of them as one more. A profile that shows again
 * what others hold has a member "overview": true, which speedscope ignores and whoever adds profiles up leaves out.
 */
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/json.h"
#include "formats/emit/names.h"
#include "formats/emit/shown.h"
#include "formats/emit/speedscope_labels.h"
#include "formats/emit/speedscope_plan.h"
#include "formats/emit/speedscope_stacks.h"
#include "formats/emit/speedscope_sum.h"
#include "formats/emit/spool.h"
#include "formats/emit/text_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { SAMPLE_WORK = 400 }; /* to be put in order and written to the temporary file and back, see limits.h */

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct spool own_spool, *spool; /* `spool`: its own, or the one that it shares */
    VEC(struct speedscope_series) series;
    struct map series_of; /* thread << 32 | event -> index */
    uint64_t recent_key;
    uint32_t recent;
    struct speedscope_stacks stacks;
    struct speedscope_plan plan;
    struct speedscope_sum sum;
    struct speedscope_labels labels;
};

static struct error *speedscope_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                      void **state)
{
    struct speedscope *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    *s = (struct speedscope){.model = model, .options = *options, .out = out, .series_of.limits = options->limits};
    speedscope_stacks_init(&s->stacks, model, &s->options);
    s->labels = (struct speedscope_labels){.model = model,
                                           .limits = options->limits,
                                           .counts.limits = options->limits,
                                           .names.arena.limits = options->limits};
    spool_init(&s->own_spool);
    s->spool = options->spool ? options->spool : &s->own_spool;
    *state = s;
    return NULL;
}

/* NULL when memory ran out. */
static struct speedscope_series *series_for(struct speedscope *s, uint32_t thread, uint32_t event)
{
    uint64_t key = (uint64_t)thread << 32 | event;

    if (s->series.count && key == s->recent_key)
        return &s->series.data[s->recent];
    uint64_t *known = map_get(&s->series_of, key);
    if (!known) {
        if (!limits_take(s->options.limits, 2 * sizeof(struct speedscope_series)) ||
            !VEC_PUSH(&s->series, ((struct speedscope_series){.thread = thread, .event = event})) ||
            !map_set(&s->series_of, key, s->series.count - 1))
            return NULL;
        known = map_get(&s->series_of, key);
    }
    s->recent_key = key;
    s->recent = (uint32_t)*known;
    return &s->series.data[s->recent];
}

static struct error *speedscope_sample(void *state, const struct emit_sample *sample)
{
    struct speedscope *s = state;

    if (!limits_work(s->options.limits, SAMPLE_WORK))
        return error_no_memory();
    if (s->options.labels && !speedscope_labels_add(&s->labels, sample))
        return error_no_memory();
    struct speedscope_series *p = series_for(s, sample->thread, sample->event);

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
        TRY(spool_add(s->spool, &p->samples, p->last.stack, p->last.weight));
    p->last = (struct spool_run){.stack = sample->stack, .weight = sample->value};
    p->has_last = true;
    return NULL;
}

/* ---- writing ---- */

enum column { COLUMN_SAMPLES, COLUMN_WEIGHTS };

/* Appends one item of a column to the text, which goes out in pieces. */
static struct error *write_item(struct speedscope *s, enum column column, uint32_t shown, uint64_t weight, bool first,
                                struct buf *text)
{
    if (!first)
        buf_put_u8(text, ',');
    if (column == COLUMN_SAMPLES)
        speedscope_stacks_put(&s->stacks, shown, text);
    else
        buf_put_decimal(text, weight, 0, ' ');
    if (text->bad)
        return error_no_memory();
    text_write_piece(text, s->out);
    return ferror(s->out) ? error_os(errno, "cannot write the profile") : NULL;
}

/* Writes the rest of a column. */
static struct error *end_column(struct speedscope *s, struct buf *text, struct error *err)
{
    if (!err)
        return text_write(text, s->out);
    buf_deinit(text);
    return err;
}

/* Reads a series run by run: those of the temporary file, then the last. *run NULL: the end. */
static struct error *next_run(struct spool_reader *reader, const struct speedscope_series *series, bool *ended,
                              const struct spool_run **run)
{
    *run = NULL;
    if (*ended)
        return NULL;
    TRY(spool_next(reader, run));
    if (!*run) {
        *ended = true;
        *run = series->has_last ? &series->last : NULL;
    }
    return NULL;
}

/* A column of one thread, in order of time. */
static struct error *write_series(struct speedscope *s, const struct speedscope_series *series, enum column column)
{
    struct spool_reader reader = {.spool = s->spool, .list = &series->samples};
    struct buf text = {0};
    const struct spool_run *run;
    uint32_t current = 0;
    uint64_t weight = 0;
    bool ended = false, first = true;
    struct error *err;

    do {
        if ((err = next_run(&reader, series, &ended, &run)))
            break;
        uint32_t shown = run ? speedscope_stacks_find(&s->stacks, run->stack) : 0;
        if (current && shown == current) {
            weight += run->weight;
            continue;
        }
        if (current) {
            err = write_item(s, column, current, weight, first, &text);
            first = false;
        }
        current = shown;
        weight = run ? run->weight : 0;
    } while (!err && run);
    spool_reader_deinit(&reader);
    return end_column(s, &text, err);
}

static struct error *sum_up(struct speedscope *s, const struct speedscope_series *series)
{
    struct spool_reader reader = {.spool = s->spool, .list = &series->samples};
    const struct spool_run *run;
    bool ended = false;
    struct error *err;

    while (!(err = next_run(&reader, series, &ended, &run)) && run) {
        if (!limits_work(s->options.limits, 20) ||
            !speedscope_sum_add(&s->sum, speedscope_stacks_find(&s->stacks, run->stack), run->weight)) {
            err = error_no_memory();
            break;
        }
    }
    spool_reader_deinit(&reader);
    return err;
}

static struct error *write_sum(struct speedscope *s, enum column column)
{
    struct buf text = {0};
    struct error *err = NULL;

    for (size_t i = 0; i < s->sum.order.count && !err; i++) {
        const struct speedscope_node *node = &s->sum.nodes.data[s->sum.order.data[i]];
        err = write_item(s, column, node->stack, node->self, i == 0, &text);
    }
    return end_column(s, &text, err);
}

static struct error *write_column(struct speedscope *s, const struct speedscope_profile *p, enum column column)
{
    return p->kind != SPEEDSCOPE_LABEL && p->count == 1 ? write_series(s, &s->series.data[p->first], column) : write_sum(s, column);
}

static struct error *write_profile_head(struct speedscope *s, const struct speedscope_profile *p)
{
    const struct emit_event *event = &s->model->events[p->event];
    struct buf name = {0}, text = {0};

    speedscope_plan_name(&s->plan, p, &name);
    struct error *err = name.bad ? error_no_memory() : json_put_text(buf_cstr(&name), &text);
    if (!err)
        fprintf(s->out, "{\"type\":\"sampled\",\"name\":%s,%s\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64,
                buf_cstr(&text), speedscope_plan_is_overview(&s->plan, p) ? "\"overview\":true," : "",
                event_is_time(event->kind) ? "nanoseconds" : event_is_bytes(event->kind) ? "bytes" : "none", p->weight);
    buf_deinit(&name);
    buf_deinit(&text);
    return err;
}

static struct error *write_profile(struct speedscope *s, const struct speedscope_profile *p)
{
    speedscope_sum_clear(&s->sum);
    if (p->kind == SPEEDSCOPE_LABEL)
        TRY(speedscope_labels_sum(&s->labels, &s->labels.values.data[p->first], &s->sum));
    for (size_t i = 0; p->count > 1 && i < p->count; i++)
        TRY(sum_up(s, &s->series.data[p->first + i]));
    TRY(speedscope_sum_sort(&s->sum));
    TRY(write_profile_head(s, p));
    fputs(",\n\"samples\":[", s->out);
    TRY(write_column(s, p, COLUMN_SAMPLES));
    fputs("],\n\"weights\":[", s->out);
    TRY(write_column(s, p, COLUMN_WEIGHTS));
    fputs("]}", s->out);
    return NULL;
}

/* The file's name; with filters also what they left of its first event. */
static void put_file_name(const struct speedscope *s, struct buf *out)
{
    const struct emit_model *m = s->model;

    name_plain(s->options.name ? s->options.name : "", out);
    if (!out->len_bytes) /* a file without a name and without profiles makes speedscope throw */
        buf_put_str(out, "profile");
    if (s->plan.merge == EMIT_MERGE_THREAD || !s->plan.profiles.count || !m->totals || !*m->filters)
        return;
    buf_put_str(out, ": ");
    shown_put(m, s->plan.profiles.data[0].event, out);
    buf_put_str(out, " (");
    name_plain(m->filters, out);
    buf_put_u8(out, ')');
}

static struct error *write_head(struct speedscope *s)
{
    struct buf name = {0}, text = {0};

    put_file_name(s, &name);
    struct error *err = json_put_text(buf_cstr(&name), &text);
    buf_put_str(&text, ",\"exporter\":");
    buf_clear(&name);
    name_plain(s->options.exporter ? s->options.exporter : "pysym", &name);
    if (!err)
        err = json_put_text(buf_cstr(&name), &text);
    if (!err && (name.bad || text.bad))
        err = error_no_memory();
    if (!err)
        fprintf(s->out, "{\"$schema\":\"" SCHEMA "\",\"name\":%s,\"activeProfileIndex\":%zu,\n\"shared\":{\"frames\":[",
                buf_cstr(&text), s->plan.active);
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
    enum emit_merge merge = s->options.merge;

    if (merge == EMIT_MERGE_DEFAULT && s->options.threads)
        merge = EMIT_MERGE_THREAD;
    TRY(speedscope_stacks_number(&s->stacks));
    TRY(speedscope_sum_init(&s->sum, &s->stacks));
    TRY(speedscope_plan_init(&s->plan, s->model, merge, s->series.data, s->series.count));
    if (s->options.labels) {
        TRY(speedscope_labels_end(&s->labels));
        TRY(speedscope_plan_add_labels(&s->plan, &s->labels));
    }
    TRY(write_head(s));
    fputs("\n]},\n\"profiles\":[", s->out);
    for (size_t i = 0; i < s->plan.profiles.count; i++) {
        fputs(i ? ",\n" : "\n", s->out);
        TRY(write_profile(s, &s->plan.profiles.data[i]));
    }
    if (!s->plan.profiles.count) /* speedscope cannot show a file without profiles */
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
    for (size_t i = 0; i < s->series.count; i++)
        spool_list_deinit(&s->series.data[i].samples);
    limits_give(s->options.limits, s->series.count * 2 * sizeof(struct speedscope_series));
    VEC_DEINIT(&s->series);
    map_deinit(&s->series_of);
    speedscope_sum_deinit(&s->sum);
    speedscope_plan_deinit(&s->plan);
    speedscope_labels_deinit(&s->labels);
    speedscope_stacks_deinit(&s->stacks);
    spool_deinit(&s->own_spool);
    free(s);
}

const struct emitter emitter_speedscope = {
    .name = "speedscope",
    .description = "for speedscope.app: all threads in one, then each thread",
    .extension = ".speedscope.json",
    .syntax = JOB_TEXT_JSON,
    .time_order = true,
    .begin = speedscope_begin,
    .sample = speedscope_sample,
    .end = speedscope_end,
    .destroy = speedscope_destroy,
};
