/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/compare/report/words.h"

#include <math.h>
#include <string.h>

#include "formats/base/numbers.h"
#include "formats/emit/names.h"

/* Changes beyond this, and numbers of runs, are only said to be beyond. */
enum { PERCENT_MOST = 1000, RUNS_MOST = 1000 };

#define MINUS "\xe2\x88\x92"
#define ARROW "\xe2\x86\x92"

static const char *text_of(const struct report *r, uint32_t text)
{
    return run_set_text_get(r->comparison->set, text);
}

static const struct run_function *function_of(const struct report *r, uint32_t function)
{
    return function == RUN_SET_NONE ? NULL : &r->comparison->set->functions.data[function];
}

static void put_name(const struct report *r, uint32_t text, struct buf *out)
{
    const char *name = text_of(r, text);

    if (*name)
        name_plain(name, out);
    else
        buf_put_str(out, "[no name]");
}

void words_put_function(const struct report *r, uint32_t function, struct buf *out)
{
    const struct run_function *f = function_of(r, function);

    if (f)
        put_name(r, f->name, out);
    else
        buf_put_str(out, "[no Python]");
}

static const char *short_file(const struct report *r, const char *path)
{
    return r->full_paths ? path : names_import_path(path);
}

/* ---- numbers ---- */

/* How many digits behind the point a percentage needs, where `step` percent is the least that matters. */
static int digits_for(double step)
{
    return step >= 5 ? 0 : step >= 0.5 ? 1 : 2;
}

static void put_signed(double percentage, int digits, struct buf *out)
{
    double least = 0.5 * pow(10, -digits);

    if (percentage > PERCENT_MOST)
        buf_printf(out, "over +%d", PERCENT_MOST);
    else if (percentage > -least && percentage < least)
        buf_printf(out, "%.*f", digits, 0.0);
    else
        buf_printf(out, "%s%.*f", percentage < 0 ? MINUS : "+", digits, fabs(percentage));
}

/* " %", what it is of, and the interval. */
static void put_change(double change, double low, double high, const char *of, const char *interval, struct buf *out)
{
    int digits = digits_for(50 * (high - low));

    if (!isfinite(low) || !isfinite(high)) {
        buf_put_str(out, "a change of unknown size");
        return;
    }
    put_signed(100 * change, digits, out);
    buf_printf(out, " %%%s (%s", of, interval);
    put_signed(100 * low, digits, out);
    buf_put_str(out, " to ");
    put_signed(100 * high, digits, out);
    buf_put_str(out, ")");
}

void words_put_interval(double change, double low, double high, struct buf *out)
{
    put_change(change, low, high, "", "", out);
}

static void put_share(double share, struct buf *out)
{
    buf_printf(out, "%.*f", share < 0.01 ? 2 : 1, 100 * share);
}

static void put_q(double q, struct buf *out)
{
    if (q < 0.001)
        buf_put_str(out, "q under 0.001");
    else
        buf_printf(out, "q %.*f", q < 0.01 ? 3 : 2, q);
}

/* ---- of what ---- */

/* What grows: "time", "waiting", "bytes". */
static void put_matter(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;

    if (event_is_waiting(c->kind))
        buf_put_str(out, "waiting");
    else if (event_is_time(c->kind))
        buf_put_str(out, "time");
    else
        put_name(r, c->unit, out);
}

static void put_programs(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    uint32_t first = 0;
    bool one = true;

    for (size_t i = 0; i < c->old_runs.count + c->new_runs.count; i++) {
        size_t run = i < c->old_runs.count ? c->old_runs.data[i] : c->new_runs.data[i - c->old_runs.count];
        uint32_t programs = c->set->runs.data[run].programs;
        one &= !i || programs == first;
        first = i ? first : programs;
    }
    if (one && *text_of(r, first)) {
        buf_put_str(out, " of ");
        name_plain(text_of(r, first), out);
    }
}

void words_put_head(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    struct number n;

    buf_printf(out, "%s old and ", grouped(c->old_runs.count, &n));
    buf_put_str(out, counted(c->new_runs.count, "new run", "new runs", &n));
    put_programs(r, out);
    buf_put_str(out, ": ");
    put_name(r, c->event, out);
    if (event_is_running(c->kind) || event_is_waiting(c->kind))
        buf_put_str(out, event_is_running(c->kind) ? ", CPU time" : c->kind == EVENT_TASK_WAIT ? ", time that tasks waited" : ", time off the CPU");
    buf_put_str(out, c->by_work ? ", per unit of work" : "");
}

/* How many findings there are of an answer. */
static uint64_t count_findings(const struct report *r, enum compare_answer answer)
{
    const struct comparison *c = r->comparison;
    uint64_t count = 0;

    for (size_t i = 0; i < c->rows.count; i++)
        count += c->rows.data[i].answer == answer && compare_row_is_finding(&c->rows.data[i]);
    return count;
}

void words_put_verdict(const struct report *r, struct buf *out)
{
    bool cpu = event_is_running(r->comparison->kind);
    uint64_t slower = count_findings(r, COMPARE_SLOWER), faster = count_findings(r, COMPARE_FASTER), of[3] = {0};
    struct number n;

    for (size_t i = 0; i < r->result_count; i++)
        of[r->results[i].answer]++;
    if (of[GATE_BROKEN])
        buf_printf(out, "%s; ", counted(of[GATE_BROKEN], "rule is broken", "rules are broken", &n));
    if (of[GATE_UNDECIDED])
        buf_printf(out, "%s undecided; ", counted(of[GATE_UNDECIDED], "rule is", "rules are", &n));
    if (!r->comparison->conclusive)
        buf_put_str(out, "nothing can be concluded from so few runs");
    else if (!slower && !faster)
        buf_put_str(out, "nothing is known to have changed");
    if (slower)
        buf_printf(out, "%s surely %s%s", counted(slower, "row is", "rows are", &n), cpu ? "slower" : "more", faster ? ", " : "");
    if (faster)
        buf_printf(out, "%s surely %s", counted(faster, "row is", "rows are", &n), cpu ? "faster" : "less");
}

const char *words_answer(const struct report *r, const struct compare_row *row)
{
    bool cpu = event_is_running(r->comparison->kind);

    switch (row->answer) {
    case COMPARE_SLOWER:
        return row->match == COMPARE_NEW ? "new" : cpu ? "slower" : "more";
    case COMPARE_FASTER:
        return row->match == COMPARE_VANISHED ? "vanished" : cpu ? "faster" : "less";
    case COMPARE_GAVE_WAY:
        return "gave way";
    case COMPARE_OF_CALLERS:
        return "by its callers";
    case COMPARE_OF_CALLEES:
        return "by what it calls";
    case COMPARE_CANNOT_TELL:
        break;
    }
    return "cannot tell";
}

/* The function or file that a row is of: "score", "line 12 of score", "module shop/cart.py", "the total". */
static void put_subject(const struct report *r, const struct compare_row *row, struct buf *out)
{
    if (row->kind == COMPARE_TOTAL) {
        buf_put_str(out, "the total");
        return;
    }
    if (row->kind == COMPARE_MODULE) {
        buf_put_str(out, "module ");
        name_plain(short_file(r, text_of(r, row->module)), out);
        return;
    }
    if (row->kind == COMPARE_LINE && row->line != RUN_SET_NONE)
        buf_printf(out, "line %u of ", r->comparison->set->lines.data[row->line].line);
    words_put_function(r, row->function, out);
    if (row->kind == COMPARE_NODE_SELF)
        buf_put_str(out, " itself");
    else if (row->kind == COMPARE_FUNCTION_TOTAL)
        buf_put_str(out, " with what it calls");
}

bool words_file(const struct report *r, const struct compare_row *row, const char **file, uint32_t *line)
{
    const struct run_function *f = function_of(r, row->function);

    if (!f || !*text_of(r, f->file))
        return false;
    *file = short_file(r, text_of(r, f->file));
    *line = row->kind == COMPARE_LINE && row->line != RUN_SET_NONE ? r->comparison->set->lines.data[row->line].line : f->first_line;
    return true;
}

/* The function whose time a node's share is of, which calls it, perhaps through others that do nothing else; NULL: all. */
static const struct run_function *caller_of(const struct report *r, const struct compare_row *row)
{
    const struct run_set *set = r->comparison->set;
    uint32_t within = row->kind == COMPARE_NODE ? row->within : RUN_SET_NONE;

    if (row->kind == COMPARE_NODE_SELF && row->node != RUN_SET_NONE && row->node != RUN_SET_ROOT)
        within = set->nodes.data[row->node].parent;
    return within == RUN_SET_NONE || within == RUN_SET_ROOT ? NULL : function_of(r, set->nodes.data[within].function);
}

void words_put_place(const struct report *r, const struct compare_row *row, struct buf *out)
{
    const struct run_function *caller = caller_of(r, row);
    const char *file;
    uint32_t line;

    put_subject(r, row, out);
    if (words_file(r, row, &file, &line)) {
        buf_put_str(out, " (");
        name_plain(file, out);
        if (line)
            buf_printf(out, ":%u", line);
        buf_put_str(out, ")");
    }
    if (caller) {
        buf_put_str(out, ", under ");
        put_name(r, caller->name, out);
    }
}

void words_put_path(const struct report *r, uint32_t node, struct buf *out)
{
    const struct run_set *set = r->comparison->set;
    VEC(uint32_t) path = {0};
    bool first = true;

    for (; node != RUN_SET_NONE && node != RUN_SET_ROOT; node = set->nodes.data[node].parent)
        out->bad |= !VEC_PUSH(&path, node);
    for (size_t i = path.count; i--; first = false) {
        buf_put_str(out, first ? "" : ";");
        words_put_function(r, set->nodes.data[path.data[i]].function, out);
    }
    VEC_DEINIT(&path);
}

/* ---- how much ---- */

void words_put_shares(const struct report *r, const struct compare_row *row, struct buf *out)
{
    static const char *const wholes[COMPARE_KINDS] = {
        [COMPARE_TOTAL] = "",          [COMPARE_NODE] = " of its caller",       [COMPARE_NODE_SELF] = " of what is below it",
        [COMPARE_LINE] = " of its function's own", [COMPARE_FUNCTION_SELF] = " of all", [COMPARE_FUNCTION_TOTAL] = " of all",
        [COMPARE_MODULE] = " of all",
    };

    (void)r;
    if (row->kind == COMPARE_TOTAL)
        return;
    if (row->match != COMPARE_NEW)
        put_share(row->old_share, out);
    if (row->match != COMPARE_NEW && row->match != COMPARE_VANISHED)
        buf_put_str(out, " " ARROW " ");
    if (row->match != COMPARE_VANISHED)
        put_share(row->new_share, out);
    buf_printf(out, " %%%s", wholes[row->kind]);
}

/* Of what is on one side alone, a change is its share of all, below 0 if it vanished. */
static bool is_share(const struct compare_row *row)
{
    return row->match == COMPARE_NEW || row->match == COMPARE_VANISHED;
}

/* "4.1 to 5.9" */
static void put_share_interval(double low, double high, struct buf *out)
{
    double a = fmin(fabs(low), 1), b = fmin(fabs(high), 1);

    put_share(low < 0 && high > 0 ? 0 : fmin(a, b), out);
    buf_put_str(out, " to ");
    put_share(fmax(a, b), out);
}

void words_put_estimate(const struct compare_row *row, struct buf *out)
{
    if (!is_share(row)) {
        words_put_interval(row->change, row->low, row->high, out);
        return;
    }
    put_share_interval(row->low, row->high, out);
    buf_put_str(out, " % of all");
}

static void put_change_of(const struct report *r, const struct compare_row *row, struct buf *out)
{
    if (is_share(row)) {
        buf_put_str(out, "90 % interval ");
        put_share_interval(row->low, row->high, out);
        return;
    }
    struct buf matter = {0};
    buf_put_u8(&matter, ' ');
    put_matter(r, &matter);
    put_change(row->change, row->low, row->high, buf_cstr(&matter), "90 % interval ", out);
    out->bad |= matter.bad;
    buf_deinit(&matter);
}

/* What is known of its code, behind the rest: "; its code changed", "; was rate, by a guess: its code is the same". */
static void put_cause(const struct report *r, const struct compare_row *row, struct buf *out)
{
    const struct run_function *old = function_of(r, row->old_function);

    if (row->match == COMPARE_RENAMED && old) {
        buf_put_str(out, "; was ");
        put_name(r, old->name, out);
        buf_put_str(out, ", by a guess: its code is the same");
    } else if (row->match == COMPARE_MOVED && old) {
        const char *before = short_file(r, text_of(r, old->file));
        const char *now = short_file(r, text_of(r, function_of(r, row->function)->file));
        if (strcmp(before, now)) {
            buf_put_str(out, "; was in ");
            name_plain(before, out);
        }
    }
    if (row->code == COMPARE_CODE_CHANGED)
        buf_put_str(out, "; its code changed");
}

/* How far runs of one side differ, of the total: its standard deviation, for people. */
static double spread_of(const struct comparison *c, const struct compare_row *row)
{
    double a = (double)c->old_runs.count, b = (double)c->new_runs.count;

    return a && b ? expm1(row->error / sqrt(1 / a + 1 / b)) : 0;
}

static void put_needed(double runs, struct buf *out)
{
    struct number n;

    if (runs <= RUNS_MOST)
        buf_printf(out, "%s runs a side", grouped((uint64_t)ceil(runs), &n));
    else
        buf_printf(out, "over %s runs a side", grouped(RUNS_MOST, &n));
}

static void put_untold(const struct report *r, const struct compare_row *row, struct buf *out)
{
    const struct comparison *c = r->comparison;

    if (row->kind == COMPARE_TOTAL && row->tested && c->conclusive)
        buf_printf(out, "; runs differ by %.*f %%", spread_of(c, row) < 0.05, 100 * spread_of(c, row));
    if (row->runs_needed > 0) {
        buf_put_str(out, "; it would take ");
        put_needed(row->runs_needed, out);
    }
}

void words_put_row(const struct report *r, const struct compare_row *row, struct buf *out)
{
    buf_printf(out, "%s: ", words_answer(r, row));
    words_put_figures(r, row, out);
}

void words_put_figures(const struct report *r, const struct compare_row *row, struct buf *out)
{
    words_put_place(r, row, out);
    if (row->kind != COMPARE_TOTAL) {
        buf_put_str(out, ": ");
        words_put_shares(r, row, out);
    }
    if (row->tested) {
        buf_put_str(out, row->kind == COMPARE_TOTAL ? ": " : ", ");
        put_change_of(r, row, out);
    }
    if (row->tested && r->comparison->conclusive && compare_row_is_finding(row) && row->kind != COMPARE_TOTAL) {
        buf_put_str(out, ", ");
        put_q(row->q, out);
    }
    if (row->answer == COMPARE_CANNOT_TELL)
        put_untold(r, row, out);
    if (row->because != COMPARE_NO_ROW) {
        buf_put_str(out, ", with ");
        put_subject(r, &r->comparison->rows.data[row->because], out);
    }
    put_cause(r, row, out);
}

/* ---- rules ---- */

const char *words_gate_answer(enum gate_answer answer)
{
    return answer == GATE_BROKEN ? "broken" : answer == GATE_KEPT ? "kept" : "undecided";
}

void words_put_result(const struct report *r, const struct gate_result *result, struct buf *out)
{
    if (result->row == COMPARE_NO_ROW) {
        name_plain(*result->reason ? result->reason : "nothing that it names was recorded", out);
        return;
    }
    const struct compare_row *row = &r->comparison->rows.data[result->row];
    words_put_place(r, row, out);
    buf_put_str(out, " ");
    if (is_share(row)) {
        put_share(fabs(result->change), out);
        buf_put_str(out, " % of all (");
        put_share_interval(result->low, result->high, out);
        buf_put_str(out, ")");
    } else {
        words_put_interval(result->change, result->low, result->high, out);
    }
    if (result->answer == GATE_UNDECIDED && result->runs_needed > 0) {
        buf_put_str(out, "; it would take ");
        put_needed(result->runs_needed, out);
    }
    if (*result->reason)
        buf_put_str(out, "; ");
    name_plain(result->reason, out);
}

void words_put_rule(const struct gate_result *result, struct buf *out)
{
    name_plain(result->rule, out);
}

void words_put_problem(const struct report *r, const struct compare_problem *problem, struct buf *out)
{
    name_plain(text_of(r, problem->text), out);
}

void words_put_method(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    struct number n;

    if (!c->conclusive) {
        buf_put_str(out, "Nothing can be concluded from these runs: they show how two recordings differ, not whether the program "
                         "changed. Record five runs or more of each side, in turns.");
        return;
    }
    buf_printf(out, "Judged by run, not by sample: %s, one correction over all of them. q: the share of false findings to "
                    "expect among those up to this one; intervals hold the true change in 90 %% of all cases.",
               counted(c->tested_rows, "row tested", "rows tested", &n));
}
