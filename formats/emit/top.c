/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hottest functions and the hottest lines as two tables, for a terminal. `self` counts the samples in which a
 * function (or line) is the innermost frame, `total` those in which it is anywhere on the stack, once per sample even if
 * it recurs. Both are computed at the end, per distinct stack. Shares and order are by weight, since samples may differ
 * in weight.
 */
#include "formats/base/size_text.h"
#include "formats/emit/counts.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct top {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct counts counts; /* by stack alone */
};

struct row {
    uint32_t name;
    struct count self, total;
    uint64_t last_stack; /* serial number of the stack that was counted last */
};

static struct error *top_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                               void **state)
{
    struct top *t = calloc(1, sizeof *t);

    if (!t)
        return error_no_memory();
    *t = (struct top){.model = model, .options = *options, .out = out, .counts.limits = options->limits};
    *state = t;
    return NULL;
}

static struct error *top_sample(void *state, const struct emit_sample *s)
{
    struct top *t = state;

    return counts_add(&t->counts, t->model, s, 0) ? NULL : error_no_memory();
}

static void add(struct count *to, const struct count *more)
{
    to->samples += more->samples;
    to->weight += more->weight;
}

/* `rows` has a row for each text, `ids` the text of each frame. */
static struct error *count_rows(const struct top *t, uint32_t event, const uint32_t *ids, struct row *rows)
{
    const struct emit_model *m = t->model;
    const struct map *counts = &t->counts.events.data[event];
    uint64_t serial = 0;

    for (uint64_t i = 0; i < counts->slot_count; i++) {
        const struct map_slot *slot = &counts->slots[i];
        uint32_t stack = (uint32_t)slot->key;
        if (!slot->used)
            continue;
        const struct count *count = counts_get(&t->counts, slot);
        serial++;
        if (!limits_work(t->options.limits, 10 + (stack == EMIT_NO_STACK ? 0 : 8 * (uint64_t)m->stacks[stack].depth)))
            return error_no_memory();
        if (stack == EMIT_NO_STACK) {
            add(&rows[ids[m->frame_count]].self, count);
            add(&rows[ids[m->frame_count]].total, count);
            continue;
        }
        add(&rows[ids[m->stacks[stack].frame]].self, count);
        for (; stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
            struct row *row = &rows[ids[m->stacks[stack].frame]];
            if (row->last_stack != serial)
                add(&row->total, count);
            row->last_stack = serial;
        }
    }
    return NULL;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
    const struct intern *texts = arg;
    const struct row *ra = a, *rb = b;

    if (ra->self.weight != rb->self.weight)
        return ra->self.weight < rb->self.weight ? 1 : -1;
    if (ra->total.weight != rb->total.weight)
        return ra->total.weight < rb->total.weight ? 1 : -1;
    if (ra->total.samples != rb->total.samples)
        return ra->total.samples < rb->total.samples ? 1 : -1;
    const struct intern_entry *na = intern_get(texts, ra->name), *nb = intern_get(texts, rb->name);
    int order = memcmp(na->data, nb->data, na->len_bytes < nb->len_bytes ? na->len_bytes : nb->len_bytes);
    return order ? order : (na->len_bytes > nb->len_bytes) - (na->len_bytes < nb->len_bytes);
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 0;
}

static struct error *write_table(const struct top *t, const struct names *names, uint32_t event,
                                 uint64_t all, enum name_detail detail)
{
    struct intern texts = {.arena.limits = t->options.limits};
    uint32_t *ids = NULL;
    struct row *rows = NULL;

    struct error *err = names_spell(names, detail, &texts, &ids);
    if (!err && !(rows = calloc(texts.count, sizeof *rows)))
        err = error_no_memory();
    if (!err)
        err = count_rows(t, event, ids, rows);
    if (!err) {
        for (uint32_t i = 0; i < texts.count; i++)
            rows[i].name = i;
        qsort_r(rows, texts.count, sizeof *rows, compare_rows, &texts);
        fprintf(t->out, "\n%7s %10s %7s %10s  %s\n", "self", "samples", "total", "samples",
                detail == NAME_FUNCTION ? "function" : "line");
        for (uint32_t i = 0; i < texts.count && rows[i].total.samples; i++) {
            const struct intern_entry *name = intern_get(&texts, rows[i].name);
            if (t->options.top_count && i == t->options.top_count)
                break;
            fprintf(t->out, "%6.2f%% %10" PRIu64 " %6.2f%% %10" PRIu64 "  %.*s\n", percent(rows[i].self.weight, all),
                    rows[i].self.samples, percent(rows[i].total.weight, all), rows[i].total.samples,
                    (int)name->len_bytes, (const char *)name->data);
        }
    }
    free(rows);
    free(ids);
    intern_deinit(&texts);
    return err;
}

static struct error *write_event(const struct top *t, const struct names *names, uint32_t event)
{
    const struct map *counts = &t->counts.events.data[event];
    const struct emit_event *def = &t->model->events[event];
    struct buf name = {0}, unit = {0};
    struct size_text size;
    struct count all = {0};

    for (uint64_t i = 0; i < counts->slot_count; i++) {
        if (counts->slots[i].used)
            add(&all, counts_get(&t->counts, &counts->slots[i]));
    }
    name_word(def->name, &name);
    fprintf(t->out, "%" PRIu64 " sample%s of %s, ", all.samples, all.samples == 1 ? "" : "s", buf_cstr(&name));
    name_word(*def->unit ? def->unit : def->name, &unit);
    if (def->is_bytes)
        fprintf(t->out, "%s; percentages of bytes\n", size_text(all.weight, &size));
    else if (def->is_time)
        fprintf(t->out, "%.3f s; percentages of time\n", (double)all.weight / 1e9);
    else
        fprintf(t->out, "%" PRIu64 " %s; percentages of %s\n", all.weight, buf_cstr(&unit), buf_cstr(&unit));
    buf_deinit(&name);
    buf_deinit(&unit);
    TRY(write_table(t, names, event, all.weight, NAME_FUNCTION));
    if (!t->options.merged_lines)
        TRY(write_table(t, names, event, all.weight, NAME_LINE));
    return NULL;
}

static struct error *top_end(void *state)
{
    struct top *t = state;
    struct names names;
    bool first = true;

    struct error *err = names_init(&names, t->model, &t->options);
    for (uint32_t event = 0; !err && event < t->counts.events.count; event++) {
        if (!t->counts.events.data[event].count)
            continue;
        if (!first)
            putc('\n', t->out);
        first = false;
        err = write_event(t, &names, event);
    }
    if (!err && first)
        fputs("0 samples\n", t->out);
    names_deinit(&names);
    if (!err && ferror(t->out))
        err = error_os(errno, "cannot write the tables");
    return err;
}

static void top_destroy(void *state)
{
    struct top *t = state;

    if (!t)
        return;
    counts_deinit(&t->counts);
    free(t);
}

const struct emitter emitter_top = {
    .name = "top",
    .description = "the hottest functions and lines, as tables for a terminal",
    .extension = ".txt",
    .begin = top_begin,
    .sample = top_sample,
    .end = top_end,
    .destroy = top_destroy,
};
