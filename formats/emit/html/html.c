/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page: one file with the profile and what shows it, which a browser opens without any network.
 *
 * It carries samples, not sums, so that whoever reads it can choose threads and times. The data is compressed as it
 * comes and stands in elements that are no scripts:
 *
 *     head      JSON: events, processes, threads, captures, sums (head.c); of `pysym diff` the comparison, too
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
#include <time.h>

#include "formats/base/clock.h"
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
    struct spool spool;    /* of the samples, unless it shares one */
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
    spool_init(&h->spool);
    html_samples_init(&h->samples, options->limits, options->spool ? options->spool : &h->spool);
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
    h->time = time;
    return html_samples_add(&h->samples, row);
}

/* ---- writing ---- */

/* The name of the profile; of a part, whose samples it holds, and from when on. */
static void put_title(const struct html *h, struct buf *out)
{
    const struct emit_part *part = h->options.part;

    name_plain(h->options.name ? h->options.name : "", out);
    if (part && (part->thread != EMIT_PART_ALL || part->process != EMIT_PART_ALL)) {
        bool is_thread = part->thread != EMIT_PART_ALL;
        buf_put_str(out, ": ");
        name_owner(h->model, is_thread ? EMIT_MERGE_THREAD : EMIT_MERGE_PROCESS, is_thread ? part->thread : part->process, out);
    }
    if (part && part->window_end_ns) {
        time_t seconds = (time_t)(part->window_begin_ns / NS_PER_S);
        char text[32];
        struct tm tm;
        if (gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm))
            buf_printf(out, ", from %s.%03u UTC", text, (unsigned)(part->window_begin_ns % NS_PER_S / NS_PER_MS));
    }
}

/* As text of an element. */
static void write_escaped(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", out);
        else
            fputc(*text, out);
    }
}

/* Writes the page up to one of its places, and returns what follows that. */
static const char *write_until(const char *page, const char *place, FILE *out)
{
    const char *at = strstr(page, place);

    fwrite(page, (size_t)(at - page), 1, out);
    return at + strlen(place);
}

static struct error *write_page(struct html *h, const char *title)
{
    struct html_head head = {.model = h->model, .options = &h->options, .title = title, .processes = &h->processes,
                             .threads = &h->threads, .label_sets = &h->label_sets, .frames = &h->stacks.frames,
                             .periods = h->periods.data, .period_count = (uint32_t)h->periods.count,
                             .sample_count = h->samples.count};
    const char *rest = write_until(html_page, HTML_PLACE_TITLE, h->out);

    write_escaped(title, h->out);
    rest = write_until(rest, HTML_PLACE_DATA, h->out);
    TRY(html_head_write(&head, h->out));
    TRY(html_stacks_write(&h->stacks, h->out));
    TRY(html_samples_write(&h->samples, h->out));
    fputs(rest, h->out);
    return NULL;
}

static struct error *html_end(void *state)
{
    struct html *h = state;
    struct buf title = {0};

    put_title(h, &title);
    struct error *err = title.bad ? error_no_memory() : write_page(h, buf_cstr(&title));
    buf_deinit(&title);
    return err;
}

static void html_destroy(void *state)
{
    struct html *h = state;

    if (!h)
        return;
    html_stacks_deinit(&h->stacks);
    html_samples_deinit(&h->samples);
    spool_deinit(&h->spool);
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
    .embeds_source = true,
    .tells_filters = true,
    .shows_labels = true,
    .binary = true,
    .begin = html_begin,
    .sample = html_sample,
    .end = html_end,
    .destroy = html_destroy,
};
