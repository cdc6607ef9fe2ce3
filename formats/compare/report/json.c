/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as JSON, for scripts and stores: every row with its figures unrounded, the runs, what they were recorded on,
 * problems and rules. pysym(1) documents the members; they stay. Numbers of rows (`because`, `row`) count from 0 in `rows`,
 * whose first is the total. Rows are written one by one, since there may be very many.
 */
#include "formats/emit/json.h"

#include <math.h>

#include "formats/compare/report/words.h"
#include "formats/compare/report/writers.h"

static const char *const kinds[COMPARE_KINDS] = {
    [COMPARE_TOTAL] = "total",
    [COMPARE_NODE] = "node",
    [COMPARE_NODE_SELF] = "node_self",
    [COMPARE_FUNCTION_SELF] = "function_self",
    [COMPARE_FUNCTION_TOTAL] = "function_total",
    [COMPARE_LINE] = "line",
    [COMPARE_MODULE] = "module",
};
/* Of a row that is more or less, whatever the event; words_answer() has the words for people. */
static const char *const answers[] = {
    [COMPARE_CANNOT_TELL] = "cannot_tell", [COMPARE_SLOWER] = "slower",         [COMPARE_FASTER] = "faster",
    [COMPARE_GAVE_WAY] = "gave_way",       [COMPARE_OF_CALLERS] = "of_callers", [COMPARE_OF_CALLEES] = "of_callees",
};
static const char *const matches[] = {
    [COMPARE_SAME] = "same", [COMPARE_MOVED] = "moved",       [COMPARE_RENAMED] = "renamed",
    [COMPARE_NEW] = "new",   [COMPARE_VANISHED] = "vanished",
};
static const char *const codes[] = {
    [COMPARE_CODE_UNKNOWN] = "unknown", [COMPARE_CODE_EQUAL] = "equal", [COMPARE_CODE_CHANGED] = "changed",
};
static const char *const problems[] = {
    [COMPARE_UNLIKE] = "unlike", [COMPARE_SMALL] = "small", [COMPARE_LOSSY] = "lossy",
    [COMPARE_FEW] = "few",       [COMPARE_NO_WORK] = "no_work",
};

static json_t *real_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static bool set_real(json_t *object, const char *key, double v)
{
    return json_set(object, key, real_or_null(v));
}

static bool set_text(json_t *object, const char *key, const struct report *r, uint32_t text)
{
    return json_set_name(object, key, run_set_text_get(r->comparison->set, text));
}

/* "key": what words_put_* says, in which names are plain already. */
static bool set_words(json_t *object, const char *key, struct buf *words)
{
    bool ok = !words->bad && json_set(object, key, json_string(buf_cstr(words)));

    buf_deinit(words);
    return ok;
}

/* ---- runs ---- */

static bool set_notes(json_t *object, const struct report *r, const struct run *run)
{
    json_t *notes = json_object();
    bool ok = notes;

    for (size_t i = 0; ok && i < run->notes.count; i++)
        ok = set_text(notes, run_set_text_get(r->comparison->set, run->notes.data[i].key), r, run->notes.data[i].value);
    return json_set(object, "notes", notes) && ok;
}

static json_t *run_object(const struct report *r, uint32_t number, double factor, const char *side)
{
    const struct comparison *c = r->comparison;
    const struct run *run = &c->set->runs.data[number];
    const struct run_event *e = run_event_find(c->set, run, run_set_text_get(c->set, c->event));
    json_t *object = json_object();

    bool ok = object && json_set(object, "side", json_string(side)) && set_text(object, "name", r, run->name) &&
              json_set(object, "start_realtime_ns", json_number(run->start_realtime_ns)) &&
              json_set(object, "duration_ns", json_number(run->duration_ns)) &&
              json_set(object, "command_wall_ns", json_number(run->command_wall_ns)) &&
              json_set(object, "samples", json_number(e ? e->samples : 0)) && set_real(object, "total", e ? e->total : 0) &&
              json_set(object, "ticks", json_number(e ? e->ticks : 0)) && json_set(object, "lost", json_number(e ? e->lost : 0)) &&
              set_real(object, "work", run->work) && set_real(object, "factor", factor) && set_text(object, "programs", r, run->programs) &&
              set_text(object, "pythons", r, run->pythons) && set_text(object, "backend", r, run->backend) &&
              set_text(object, "machine", r, run->machine) && set_text(object, "cpu_model", r, run->cpu_model) &&
              json_set(object, "cpu_count", json_integer(run->cpu_count)) && set_text(object, "kernel", r, run->kernel_release) &&
              set_text(object, "filters", r, run->filters) && set_notes(object, r, run);
    if (ok)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *run_list(const struct report *r)
{
    const struct comparison *c = r->comparison;
    json_t *list = json_array();
    bool ok = list;

    for (size_t i = 0; ok && i < c->old_runs.count + c->new_runs.count; i++) {
        bool is_old = i < c->old_runs.count;
        uint32_t run = is_old ? c->old_runs.data[i] : c->new_runs.data[i - c->old_runs.count];
        ok = !json_array_append_new(list, run_object(r, run, i < c->factors.count ? c->factors.data[i] : 1, is_old ? "old" : "new"));
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* ---- problems and rules ---- */

static json_t *problem_list(const struct report *r)
{
    const struct comparison *c = r->comparison;
    json_t *list = json_array();
    bool ok = list;

    for (size_t i = 0; ok && i < c->problems.count; i++) {
        json_t *object = json_object();
        ok = object && json_set(object, "kind", json_string(problems[c->problems.data[i].kind])) &&
             set_text(object, "text", r, c->problems.data[i].text);
        ok = !json_array_append_new(list, object) && ok;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *row_number(uint32_t row)
{
    return row == COMPARE_NO_ROW ? json_null() : json_integer(row);
}

static json_t *rule_list(const struct report *r)
{
    json_t *list = json_array();
    bool ok = list;

    for (size_t i = 0; ok && i < r->result_count; i++) {
        const struct gate_result *g = &r->results[i];
        json_t *object = json_object();
        ok = object && json_set_name(object, "rule", g->rule) && json_set_name(object, "origin", g->origin) &&
             json_set(object, "answer", json_string(words_gate_answer(g->answer))) && json_set(object, "row", row_number(g->row)) &&
             set_real(object, "limit", g->limit) && set_real(object, "change", g->change) && set_real(object, "low", g->low) &&
             set_real(object, "high", g->high) && set_real(object, "runs_needed", g->runs_needed) &&
             json_set_name(object, "reason", g->reason);
        ok = !json_array_append_new(list, object) && ok;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* ---- rows ---- */

static bool set_function(json_t *object, const char *name_key, const char *file_key, const struct report *r, uint32_t function)
{
    const struct run_set *set = r->comparison->set;

    if (function == RUN_SET_NONE)
        return true;
    return set_text(object, name_key, r, set->functions.data[function].name) &&
           set_text(object, file_key, r, set->functions.data[function].file);
}

/* The functions from the outermost to the node's. */
static bool set_path(json_t *object, const struct report *r, uint32_t node)
{
    const struct run_set *set = r->comparison->set;
    json_t *path = json_array();
    bool ok = path;

    for (; ok && node != RUN_SET_NONE && node != RUN_SET_ROOT; node = set->nodes.data[node].parent) {
        struct buf name = {0};
        words_put_function(r, set->nodes.data[node].function, &name);
        ok = limits_work(set->limits, 100 + 4 * name.len_bytes) && !name.bad && !json_array_insert_new(path, 0, json_string(buf_cstr(&name)));
        buf_deinit(&name);
    }
    return json_set(object, "path", path) && ok;
}

static bool set_place(json_t *object, const struct report *r, const struct compare_row *row)
{
    const struct run_set *set = r->comparison->set;
    struct buf place = {0}, words = {0};
    bool ok = true;

    words_put_place(r, row, &place);
    words_put_row(r, row, &words);
    ok = set_words(object, "place", &place);
    ok = set_words(object, "words", &words) && ok && set_function(object, "function", "file", r, row->function) &&
         set_function(object, "old_function", "old_file", r, row->old_function);
    if (ok && row->function != RUN_SET_NONE)
        ok = json_set(object, "function_line", json_integer(set->functions.data[row->function].first_line));
    if (ok && row->kind == COMPARE_LINE && row->line != RUN_SET_NONE)
        ok = json_set(object, "line", json_integer(set->lines.data[row->line].line));
    if (ok && row->kind == COMPARE_MODULE)
        ok = set_text(object, "module", r, row->module);
    if (ok && (row->kind == COMPARE_NODE || row->kind == COMPARE_NODE_SELF))
        ok = set_path(object, r, row->node);
    return ok;
}

static bool set_figures(json_t *object, const struct compare_row *row)
{
    bool ok = set_real(object, "old_value", row->old_value) && set_real(object, "new_value", row->new_value) &&
              set_real(object, "old_share", row->old_share) && set_real(object, "new_share", row->new_share) &&
              set_real(object, "old_samples", row->old_samples) && set_real(object, "new_samples", row->new_samples) &&
              json_set(object, "tested", json_boolean(row->tested));

    if (!ok || !row->tested)
        return ok;
    return set_real(object, "change", row->change) && set_real(object, "low", row->low) && set_real(object, "high", row->high) &&
           set_real(object, "p", row->p) && set_real(object, "q", row->q) && set_real(object, "df", row->df) &&
           set_real(object, "error", row->error) && set_real(object, "runs_needed", row->runs_needed);
}

static struct error *write_row(const struct report *r, const struct compare_row *row, bool first, FILE *out)
{
    json_t *object = json_object();
    bool ok = object && json_set(object, "kind", json_string(kinds[row->kind])) &&
              json_set(object, "answer", json_string(answers[row->answer])) &&
              json_set(object, "match", json_string(matches[row->match])) && json_set(object, "code", json_string(codes[row->code])) &&
              json_set(object, "because", row_number(row->because)) && set_place(object, r, row) && set_figures(object, row);

    fputs(first ? "\n" : ",\n", out);
    return json_write(object, ok, false, out);
}

static struct error *json_report(const struct report *r, FILE *out)
{
    const struct comparison *c = r->comparison;
    json_t *object = json_object();
    struct buf verdict = {0}, method = {0};

    words_put_verdict(r, &verdict);
    words_put_method(r, &method);
    bool ok = object && json_set(object, "format", json_string("diff")) && json_set(object, "version", json_integer(1)) &&
              json_set_name(object, "exporter", r->exporter) && set_text(object, "event", r, c->event) &&
              set_text(object, "unit", r, c->unit) && json_set(object, "is_time", json_boolean(event_is_time(c->kind))) &&
              json_set(object, "is_waiting", json_boolean(event_is_waiting(c->kind))) &&
              json_set(object, "is_task", json_boolean(c->kind == EVENT_TASK_WAIT)) &&
              json_set(object, "is_cpu", json_boolean(event_is_running(c->kind))) && json_set(object, "by_work", json_boolean(c->by_work)) &&
              json_set(object, "conclusive", json_boolean(c->conclusive)) &&
              json_set(object, "tested_rows", json_number(c->tested_rows)) && set_words(object, "verdict", &verdict) &&
              set_words(object, "method", &method) && json_set(object, "runs", run_list(r)) &&
              json_set(object, "problems", problem_list(r)) && json_set(object, "rules", rule_list(r));
    TRY(json_write(object, ok, true, out));
    fputs(",\"rows\":[", out);
    for (size_t i = 0; i < c->rows.count; i++)
        TRY(write_row(r, &c->rows.data[i], !i, out));
    fputs("\n]}\n", out);
    return NULL;
}

const struct report_format report_json = {.name = "json",
                                          .description = "every row with its figures, for scripts and stores",
                                          .extension = ".json",
                                          .syntax = JOB_TEXT_JSON,
                                          .write = json_report};
