/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines with their time. While samples come only stacks are counted; at the end the lines of the files or functions
 * that were asked for are weighed, event by event, and written as text or as JSON.
 */
#include "formats/emit/annotate/annotate.h"

#include <errno.h>
#include <stdlib.h>

static struct error *annotate_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    struct annotate_view *v = calloc(1, sizeof *v);

    if (!v)
        return error_no_memory();
    v->model = model;
    v->options = *options;
    v->out = out;
    v->counts.limits = v->texts.arena.limits = options->limits;
    *state = v;
    return NULL;
}

static struct error *annotate_sample(void *state, const struct emit_sample *s)
{
    struct annotate_view *v = state;

    return counts_add(&v->counts, v->model, s, 0) ? NULL : error_no_memory();
}

static int compare_down(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

/* The hottest first: by the time in their own lines, then by all. */
static int compare_sections(const void *a, const void *b, void *arg)
{
    const struct annotate_section *sections = arg;
    uint32_t na = *(const uint32_t *)a, nb = *(const uint32_t *)b;
    const struct annotate_weights *wa = &sections[na].weights, *wb = &sections[nb].weights;
    int order = compare_down(annotate_own(wa), annotate_own(wb));

    if (!order)
        order = compare_down(wa->total, wb->total);
    return order ? order : (na > nb) - (na < nb);
}

/* Those that have something of the event; without a name, in their own lines. */
static uint32_t choose_sections(const struct annotate_view *v, uint32_t *order)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < v->sections.count; i++) {
        const struct annotate_weights *w = &v->sections.data[i].weights;
        if (v->options.annotate ? w->total : annotate_own(w))
            order[count++] = i;
    }
    qsort_r(order, count, sizeof *order, compare_sections, v->sections.data);
    return count;
}

static struct error *write_event(struct annotate_view *v, const struct annotate_writer *writer, uint32_t event, bool first)
{
    struct annotate_event e = {.event = event};
    uint32_t *order = malloc((v->sections.count + 1) * sizeof *order);

    struct error *err = order ? annotate_count(v, event, &e.all) : error_no_memory();
    if (!err && !limits_work(v->options.limits, 100 * (uint64_t)v->sections.count))
        err = error_no_memory();
    if (!err) {
        e.section_count = choose_sections(v, order);
        e.order = order;
        err = writer->begin_event(v, &e, first);
    }
    for (uint32_t i = 0; !err && i < annotate_shown(v, e.section_count); i++)
        err = writer->section(v, &e, &v->sections.data[order[i]], i == 0);
    if (!err)
        err = writer->end_event(v, &e);
    free(order);
    return err;
}

struct error *annotate_source(const struct annotate_view *v, const struct annotate_section *section, const struct emit_source **out)
{
    *out = NULL;
    return v->options.sources ? v->options.sources->find(v->options.sources, v->model, section->file, out) : NULL;
}

static struct error *annotate_end(void *state)
{
    struct annotate_view *v = state;
    const struct annotate_writer *writer = v->options.json ? &annotate_json_writer : &annotate_text_writer;
    bool empty = true;

    TRY(names_init(&v->names, v->model, &v->options));
    if (counts_events(&v->counts))
        TRY(annotate_select(v));
    TRY(writer->begin(v));
    for (uint32_t event = 0; event < v->counts.events.count; event++) {
        if (!v->counts.events.data[event].count)
            continue;
        TRY(write_event(v, writer, event, empty));
        empty = false;
    }
    TRY(writer->end(v, empty));
    return ferror(v->out) ? error_os(errno, "cannot write the lines") : NULL;
}

static void annotate_destroy(void *state)
{
    struct annotate_view *v = state;

    if (!v)
        return;
    counts_deinit(&v->counts);
    names_deinit(&v->names);
    intern_deinit(&v->texts);
    VEC_DEINIT(&v->sections);
    VEC_DEINIT(&v->lines);
    limits_give(v->options.limits, v->taken_bytes);
    free(v->line_of_frame);
    free(v);
}

const struct emitter emitter_annotate = {
    .name = "annotate",
    .description = "source lines with their time, hot parts of files; or pysym annotate FILE|FUNCTION",
    .extension = ".annotate",
    .joins_thin = true,
    .tells_filters = true,
    .writes_json = true,
    .shows_source = true,
    .begin = annotate_begin,
    .sample = annotate_sample,
    .end = annotate_end,
    .destroy = annotate_destroy,
};
