/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/compare/report/page.h"

#include <stdlib.h>

#include "formats/compare/report/writers.h"
#include "formats/emit/json.h"

enum { OLD, NEW };

/* The time that runs without samples (baselines) spent in a node. */
struct node_sum {
    double value[2], samples[2]; /* by side */
};

struct page_writer {
    const struct report *report;
    const struct run_set *set;
    size_t capture_count;
    FILE *out;
    bool *wanted;       /* by node of the set */
    uint32_t *number;   /* by node: its number here */
    uint32_t *function; /* by function of the set: its number here; RUN_SET_NONE: none yet */
    struct node_sum *sums; /* by node */
    uint64_t taken_bytes;
};

/* The runs of a side; *factors are theirs. */
static const uint32_t *runs_of(const struct comparison *c, int side, size_t *count, const double **factors)
{
    *count = side == NEW ? c->new_runs.count : c->old_runs.count;
    *factors = c->factors.count ? c->factors.data + (side == NEW ? c->old_runs.count : 0) : NULL;
    return side == NEW ? c->new_runs.data : c->old_runs.data;
}

static void *take(struct page_writer *w, size_t count, size_t size)
{
    uint64_t len_bytes = (uint64_t)(count + 1) * size;

    if (!limits_take(w->set->limits, len_bytes))
        return NULL;
    w->taken_bytes += len_bytes;
    return calloc(count + 1, size);
}

/* Adds what a run without samples has, which is of a baseline. */
static void add_run(struct page_writer *w, uint32_t number, double factor, int side)
{
    const struct comparison *c = w->report->comparison;
    const struct run_event *e = run_event_find(w->set, &w->set->runs.data[number], run_set_text_get(w->set, c->event));

    for (size_t i = 0; e && factor > 0 && i < e->nodes.count; i++) {
        const struct run_cell *cell = &e->nodes.data[i];
        if (!(cell->self > 0))
            continue;
        w->wanted[cell->id] = true;
        w->sums[cell->id].value[side] += cell->self / factor;
        w->sums[cell->id].samples[side] += e->weight > 0 ? cell->self / e->weight : 0;
    }
}

static void add_runs(struct page_writer *w)
{
    for (int side = OLD; side <= NEW; side++) {
        const double *factors;
        size_t count;
        const uint32_t *runs = runs_of(w->report->comparison, side, &count, &factors);
        for (size_t i = 0; i < count; i++) {
            if (runs[i] >= w->capture_count)
                add_run(w, runs[i], factors ? factors[i] : 1, side);
        }
    }
}

static void want_rows(struct page_writer *w)
{
    const struct comparison *c = w->report->comparison;

    for (size_t i = 0; i < c->rows.count; i++) {
        if (c->rows.data[i].node != RUN_SET_NONE)
            w->wanted[c->rows.data[i].node] = true;
    }
    w->wanted[RUN_SET_ROOT] = true;
    for (size_t i = w->set->nodes.count; i-- > 1;)
        w->wanted[w->set->nodes.data[i].parent] |= w->wanted[i];
}

/* ---- writing ---- */

static struct error *write_captures(struct page_writer *w)
{
    for (size_t capture = 0; capture < w->capture_count; capture++) {
        json_t *row = json_null();
        bool ok = true;
        for (int side = OLD; side <= NEW; side++) {
            const double *factors;
            size_t count;
            const uint32_t *runs = runs_of(w->report->comparison, side, &count, &factors);
            for (size_t i = 0; ok && i < count; i++) {
                if (runs[i] != capture || !json_is_null(row))
                    continue;
                row = json_array();
                ok = row && !json_array_append_new(row, json_string(side == NEW ? "new" : "old")) &&
                     !json_array_append_new(row, json_real(factors ? factors[i] : 1));
            }
        }
        struct buf text = {0};
        struct error *err = json_put(ok ? row : NULL, &text);
        if (!err)
            fprintf(w->out, "%s%s", capture ? "," : "", buf_cstr(&text));
        buf_deinit(&text);
        TRY(err);
    }
    return NULL;
}

/* Also numbers the functions. */
static struct error *write_functions(struct page_writer *w)
{
    uint32_t count = 0;

    for (size_t i = 0; i < w->set->functions.count; i++)
        w->function[i] = RUN_SET_NONE;
    for (size_t node = 1; node < w->set->nodes.count; node++) {
        uint32_t function = w->set->nodes.data[node].function;
        if (!w->wanted[node] || w->function[function] != RUN_SET_NONE)
            continue;
        const struct run_function *f = &w->set->functions.data[function];
        json_t *names = json_object();
        bool ok = names && json_set_name(names, "name", run_set_text_get(w->set, f->name)) &&
                  json_set_name(names, "file", run_set_text_get(w->set, f->file)) &&
                  json_set(names, "line", json_integer(f->first_line)) &&
                  json_set(names, "unqualified", json_boolean(f->unqualified));
        fputs(count ? "," : "", w->out);
        TRY(json_write(names, ok, false, w->out));
        w->function[function] = count++;
    }
    return NULL;
}

static void write_nodes(struct page_writer *w)
{
    uint32_t count = 0;

    for (size_t i = 0; i < w->set->nodes.count; i++) {
        const struct run_node *node = &w->set->nodes.data[i];
        if (!w->wanted[i])
            continue;
        w->number[i] = count++;
        if (i == RUN_SET_ROOT)
            fputs("0,-1", w->out);
        else
            fprintf(w->out, ",%u,%u", w->number[node->parent], w->function[node->function]);
    }
}

static void write_rows(struct page_writer *w)
{
    const struct comparison *c = w->report->comparison;

    for (size_t i = 0; i < c->rows.count; i++) {
        uint32_t node = c->rows.data[i].node;
        fprintf(w->out, "%s%ld", i ? "," : "", node == RUN_SET_NONE ? -1L : (long)w->number[node]);
    }
}

static void write_sums(struct page_writer *w)
{
    bool first = true;

    for (size_t i = 0; i < w->set->nodes.count; i++) {
        const struct node_sum *s = &w->sums[i];
        if (!(s->value[OLD] > 0) && !(s->value[NEW] > 0))
            continue;
        fprintf(w->out, "%s%u,%.9g,%.6g,%.9g,%.6g", first ? "" : ",", w->number[i], s->value[NEW], s->samples[NEW], s->value[OLD],
                s->samples[OLD]);
        first = false;
    }
}

static struct error *write_all(struct page_writer *w)
{
    add_runs(w);
    want_rows(w);
    fputs("\"comparison\":", w->out);
    TRY(report_json.write(w->report, w->out));
    fputs(",\"compared\":{\"captures\":[", w->out);
    TRY(write_captures(w));
    fputs("],\"functions\":[", w->out);
    TRY(write_functions(w));
    fputs("],\"nodes\":[", w->out);
    write_nodes(w);
    fputs("],\"rows\":[", w->out);
    write_rows(w);
    fputs("],\"sums\":[", w->out);
    write_sums(w);
    fputs("]}", w->out);
    return NULL;
}

struct error *report_page(const struct report *r, size_t capture_count, FILE *out)
{
    const struct run_set *set = r->comparison->set;
    struct page_writer w = {.report = r, .set = set, .capture_count = capture_count, .out = out};

    w.wanted = take(&w, set->nodes.count, sizeof *w.wanted);
    w.number = take(&w, set->nodes.count, sizeof *w.number);
    w.function = take(&w, set->functions.count, sizeof *w.function);
    w.sums = take(&w, set->nodes.count, sizeof *w.sums);
    bool ok = w.wanted && w.number && w.function && w.sums;
    struct error *err = ok ? write_all(&w) : error_no_memory();
    free(w.wanted);
    free(w.number);
    free(w.function);
    free(w.sums);
    limits_give(set->limits, w.taken_bytes);
    return err;
}
