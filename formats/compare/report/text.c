/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison for the terminal: the total, what surely changed and why, what is new or gone, rules, and where nothing can be
 * told how many runs would tell.
 */
#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/compare/report/words.h"
#include "formats/compare/report/writers.h"
#include "formats/emit/names.h"
#include "formats/emit/text_write.h"

enum { NAME_COLUMNS = 60, PROBLEMS_MOST = 4 };

static uint32_t most_rows(const struct report *r)
{
    return r->top_count ? r->top_count : UINT32_MAX;
}

/* The rows that changed with a finding, indented below it. */
static void put_followers(const struct report *r, uint32_t finding, struct buf *out)
{
    const struct comparison *c = r->comparison;
    uint32_t left = most_rows(r);

    for (uint32_t i = 0; i < c->rows.count && left; i++) {
        const struct compare_row *row = &c->rows.data[i];
        if (row->because != finding || compare_row_is_finding(row) || row->answer == COMPARE_CANNOT_TELL)
            continue;
        buf_printf(out, "      %s: ", words_answer(r, row));
        words_put_place(r, row, out);
        buf_put_str(out, "\n");
        left--;
    }
}

static void put_findings(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    uint32_t count = 0;

    for (uint32_t i = 1; i < c->rows.count; i++) {
        if (!compare_row_is_finding(&c->rows.data[i]))
            continue;
        if (count++ == most_rows(r)) {
            buf_put_str(out, "  and more: --top 0 shows all\n");
            break;
        }
        buf_put_str(out, "  ");
        words_put_row(r, &c->rows.data[i], out);
        buf_put_str(out, "\n");
        put_followers(r, i, out);
    }
    if (!count && c->conclusive)
        buf_put_str(out, "  No function, call or line has surely changed.\n");
}

/* "   62.9    66.2   score (app.py:12), under small": where nothing was concluded, or can be. */
static void put_shares(const struct report *r, const struct compare_row *row, struct buf *out)
{
    struct buf place = {0};

    buf_printf(out, "  %6.2f %%  %6.2f %%  ", 100 * row->old_share, 100 * row->new_share);
    words_put_place(r, row, &place);
    columns_cut(out, place.data, place.len_bytes, r->terminal.columns > 40 ? r->terminal.columns - 24 : 2 * NAME_COLUMNS);
    out->bad |= place.bad;
    buf_deinit(&place);
    buf_put_str(out, "\n");
}

/* The functions that took most time, and about which nothing can be told. */
static void put_untold(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    uint32_t count = 0, most = c->conclusive && most_rows(r) > 5 ? 5 : most_rows(r);

    for (uint32_t i = 1; i < c->rows.count && count < most; i++) {
        const struct compare_row *row = &c->rows.data[i];
        if (row->kind != COMPARE_FUNCTION_SELF || row->answer != COMPARE_CANNOT_TELL)
            continue;
        if (!count++)
            buf_printf(out, "\n%s\n", c->conclusive ? "Cannot tell, of those that took most time (old and new share, interval of the change):"
                                                    : "Own time, old and new share of all (nothing follows from it):");
        if (!row->tested || !c->conclusive) {
            put_shares(r, row, out);
            continue;
        }
        buf_put_str(out, "  ");
        words_put_figures(r, row, out);
        buf_put_str(out, "\n");
    }
}

static void put_rules(const struct report *r, struct buf *out)
{
    for (size_t i = 0; i < r->result_count; i++) {
        const struct gate_result *result = &r->results[i];
        buf_printf(out, "%s  %-9s  ", i ? "" : "\nRules:\n", words_gate_answer(result->answer));
        words_put_rule(result, out);
        buf_put_str(out, " (");
        name_plain(result->origin, out);
        buf_put_str(out, "): ");
        words_put_result(r, result, out);
        buf_put_str(out, "\n");
    }
}

static void put_problems(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    struct number n;

    for (size_t i = 0; i < c->problems.count; i++) {
        buf_put_str(out, "  note: ");
        if (i == PROBLEMS_MOST && c->problems.count > PROBLEMS_MOST + 1) {
            buf_put_str(out, counted(c->problems.count - i, "more note", "more notes", &n));
            buf_put_str(out, ": -f json has all\n");
            break;
        }
        words_put_problem(r, &c->problems.data[i], out);
        buf_put_str(out, "\n");
    }
}

static struct error *text_report(const struct report *r, FILE *out)
{
    const struct comparison *c = r->comparison;
    struct buf text = {0};

    words_put_head(r, &text);
    buf_put_str(&text, "\n");
    put_problems(r, &text);
    buf_put_str(&text, "\n");
    words_put_row(r, &c->rows.data[0], &text);
    buf_put_str(&text, "\n");
    put_findings(r, &text);
    put_untold(r, &text);
    put_rules(r, &text);
    buf_put_str(&text, "\n");
    words_put_method(r, &text);
    buf_put_str(&text, "\n");
    return text_write(&text, out);
}

const struct report_format report_text = {.name = "text", .description = "what is slower or faster, in words (default)", .write = text_report};
