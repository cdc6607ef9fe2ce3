/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page: one file with the profile and what shows it, which a browser opens without any network.
 *
 * It carries samples, not sums, so that whoever reads it can choose threads and times. The data is compressed as it
 * comes and stands in elements that are no scripts:
 *
 *     head      JSON: events, processes, threads, captures, sums (head.c)
 *     strings   JSON: a list of texts; the first is ""
 *     frames    columns of numbers, one after another, each with a number for each frame (stacks.c)
 *     stacks    the same: the distance to the parent, 0 for none; the frame
 *     sample-*  a column of numbers each (samples.h)
 *
 * Numbers are varints, up to 2^53, where JavaScript's integers end: what is larger, which only a made-up trace has, becomes
 * that. Names have passed name_plain(): none changes how the text around it looks.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/emit/emit.h"
#include "formats/emit/html/assets.h"
#include "formats/emit/html/head.h"
#include "formats/emit/html/samples.h"
#include "formats/emit/html/stacks.h"
#include "formats/emit/names.h"

enum { SAMPLE_WORK = 400 }; /* to be compressed, see limits.h */
#define NUMBER_MAX (UINT64_C(1) << 53)

struct html {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct html_stacks stacks;
    struct html_samples samples;
    struct html_numbers processes, threads, label_sets;
    VEC(uint64_t) periods; /* by event: the value of its first sample; HTML_NO_PERIOD: it has none */
    int64_t time;          /* of the sample before, in units since the start of its capture */
};

static struct error *html_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    struct html *h = calloc(1, sizeof *h);
    uint32_t number;

    if (!h)
        return error_no_memory();
    h->model = model;
    h->options = *options;
    h->out = out;
    html_stacks_init(&h->stacks, model, &h->options);
    html_samples_init(&h->samples, options->limits);
    h->processes.number_of.limits = h->threads.number_of.limits = h->label_sets.number_of.limits = options->limits;
    *state = h;
    return html_numbers_find(&h->label_sets, 0, &number) ? NULL : error_no_memory(); /* the empty one is number 0 */
}

static uint64_t limit_number(uint64_t number)
{
    return number < NUMBER_MAX ? number : NUMBER_MAX;
}

/* What the column of values says of a sample. False: out of memory. */
static bool find_value(struct html *h, const struct emit_sample *s, uint64_t *number)
{
    while (s->event >= h->periods.count) {
        if (!limits_take(h->options.limits, sizeof *h->periods.data) || !VEC_PUSH(&h->periods, HTML_NO_PERIOD))
            return false;
    }
    uint64_t *period = &h->periods.data[s->event], value = limit_number(s->value);
    if (*period == HTML_NO_PERIOD)
        *period = value;
    *number = value == *period ? 0 : limit_number(value + 1);
    return true;
}

/* As --time takes it: what was before the start of the capture was at its start. */
static int64_t time_of(const struct html *h, const struct emit_sample *s)
{
    uint64_t start_ns = h->model->captures[s->capture].start_ns;

    return (int64_t)limit_number((s->time_ns > start_ns ? s->time_ns - start_ns : 0) / HTML_TIME_UNIT_NS);
}

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static struct error *html_sample(void *state, const struct emit_sample *s)
{
    struct html *h = state;
    uint64_t row[HTML_SAMPLE_COLUMNS] = {0};
    uint32_t thread, labels, stack;

    if (!limits_work(h->options.limits, SAMPLE_WORK) || !html_numbers_find(&h->threads, s->thread, &thread) ||
        !html_numbers_find(&h->label_sets, s->label_set, &labels) || !find_value(h, s, &row[HTML_SAMPLE_VALUE]))
        return error_no_memory();
    if (s->stack != EMIT_NO_STACK) {
        TRY(html_stacks_find(&h->stacks, s->stack, &stack));
        row[HTML_SAMPLE_STACK] = (uint64_t)stack + 1;
    }
    int64_t time = time_of(h, s);
    row[HTML_SAMPLE_THREAD] = thread;
    row[HTML_SAMPLE_EVENT] = s->event;
    row[HTML_SAMPLE_TIME] = zigzag(time - h->time);
    row[HTML_SAMPLE_LABELS] = labels;
    row[HTML_SAMPLE_FLAGS] = (uint64_t)s->gil | (s->continues ? HTML_SAMPLE_CONTINUES : 0) | (s->owed ? HTML_SAMPLE_OWED : 0) |
                             (s->in_interpreter ? HTML_SAMPLE_IN_INTERPRETER : 0);
    row[HTML_SAMPLE_CAPTURE] = s->capture;
    row[HTML_SAMPLE_CPU] = s->cpu;
    h->time = time;
    return html_samples_add(&h->samples, row);
}

/* ---- writing ---- */

/* As text of an element. */
static struct error *write_title(const struct html *h)
{
    struct buf title = {0};

    name_plain(h->options.name ? h->options.name : "", &title);
    for (const char *c = buf_cstr(&title); *c; c++) {
        if (*c == '<' || *c == '&')
            fputs(*c == '<' ? "&lt;" : "&amp;", h->out);
        else
            fputc(*c, h->out);
    }
    bool ok = !title.bad;
    buf_deinit(&title);
    return ok ? NULL : error_no_memory();
}

/* Writes the page up to one of its places, and returns what follows that. */
static const char *write_until(const char *page, const char *place, FILE *out)
{
    const char *at = strstr(page, place);

    fwrite(page, (size_t)(at - page), 1, out);
    return at + strlen(place);
}

static struct error *write_data(struct html *h)
{
    struct html_head head = {.model = h->model, .options = &h->options, .processes = &h->processes,
                             .threads = &h->threads, .label_sets = &h->label_sets, .periods = h->periods.data,
                             .period_count = (uint32_t)h->periods.count, .sample_count = h->samples.count};
    TRY(html_head_write(&head, h->out));
    TRY(html_stacks_write(&h->stacks, h->out));
    return html_samples_write(&h->samples, h->out);
}

static struct error *html_end(void *state)
{
    struct html *h = state;
    const char *rest = write_until(html_page, HTML_PLACE_TITLE, h->out);

    TRY(write_title(h));
    rest = write_until(rest, HTML_PLACE_DATA, h->out);
    TRY(write_data(h));
    fputs(rest, h->out);
    return NULL;
}

static void html_destroy(void *state)
{
    struct html *h = state;

    if (!h)
        return;
    html_stacks_deinit(&h->stacks);
    html_samples_deinit(&h->samples);
    html_numbers_deinit(&h->processes);
    html_numbers_deinit(&h->threads);
    html_numbers_deinit(&h->label_sets);
    limits_give(h->options.limits, h->periods.count * sizeof *h->periods.data);
    VEC_DEINIT(&h->periods);
    free(h);
}

const struct emitter emitter_html = {
    .name = "html",
    .description = "a page for any browser, with flame graph, tables and times; it needs no network",
    .extension = ".html",
    .tells_filters = true,
    .shows_labels = true,
    .binary = true,
    .begin = html_begin,
    .sample = html_sample,
    .end = html_end,
    .destroy = html_destroy,
};
