/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as Markdown, for a comment on a pull request: the verdict first, a table of at most ten rows, the rest
 * folded away; short enough for GitHub, whose comments end at 65,536 characters. Names stand in code, so that none of them
 * is markup, a mention of a person or a link to an issue.
 */
#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/compare/report/words.h"
#include "formats/compare/report/writers.h"
#include "formats/emit/text_write.h"

enum {
    ROWS_MOST = 10,
    DETAILS_MOST = 100,
    NAME_COLUMNS = 400,
    CHARACTERS_MOST = 65000,
};

/*
 * Text in code. A fence of as many back quotes as no run of them in the text has cannot be ended by it; a table's column is
 * ended even in code by '|', unless that is escaped, which only tables undo.
 */
static void put_code(const struct buf *text, bool in_table, struct buf *out)
{
    struct buf cut = {0};
    size_t run = 0, longest = 0;

    columns_cut(&cut, text->data, text->len_bytes, NAME_COLUMNS);
    for (size_t i = 0; i < cut.len_bytes; i++) {
        run = cut.data[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        buf_put_u8(out, '`');
    buf_put_str(out, longest ? " " : "");
    for (size_t i = 0; i < cut.len_bytes; i++) {
        if (in_table && cut.data[i] == '|')
            buf_put_u8(out, '\\');
        buf_put_u8(out, cut.data[i]);
    }
    buf_put_str(out, longest ? " " : "");
    for (size_t i = 0; i <= longest; i++)
        buf_put_u8(out, '`');
    out->bad |= cut.bad || text->bad;
    buf_deinit(&cut);
}

static void put_row(const struct report *r, const struct compare_row *row, struct buf *out)
{
    struct buf place = {0};

    buf_printf(out, "| %s | ", words_answer(r, row));
    words_put_place(r, row, &place);
    put_code(&place, true, out);
    buf_deinit(&place);
    buf_put_str(out, " | ");
    words_put_shares(r, row, out);
    buf_put_str(out, " | ");
    if (row->tested && r->comparison->conclusive)
        words_put_estimate(row, out);
    buf_put_str(out, " | ");
    if (row->code == COMPARE_CODE_CHANGED)
        buf_put_str(out, "its code changed");
    buf_put_str(out, " |\n");
}

static void put_table(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->rows.count && count <= ROWS_MOST; i++) {
        const struct compare_row *row = &c->rows.data[i];
        if (i && !compare_row_is_finding(row))
            continue;
        if (count++ == ROWS_MOST)
            break;
        buf_put_str(out, i ? "" : "\n| | what | share | change (90 % interval) | |\n|---|---|---|---|---|\n");
        put_row(r, row, out);
    }
}

static void put_rules(const struct report *r, struct buf *out)
{
    for (size_t i = 0; i < r->result_count; i++) {
        const struct gate_result *result = &r->results[i];
        struct buf rule = {0}, judged = {0};
        buf_printf(out, "%s| %s | ", i ? "" : "\n| | rule | judged |\n|---|---|---|\n", words_gate_answer(result->answer));
        words_put_rule(result, &rule);
        put_code(&rule, true, out);
        buf_put_str(out, " | ");
        words_put_result(r, result, &judged);
        put_code(&judged, true, out);
        buf_put_str(out, " |\n");
        buf_deinit(&rule);
        buf_deinit(&judged);
    }
}

/* As a list, cut before it makes the whole too long. */
static void put_details(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    uint32_t count = 0;
    struct number n;

    buf_put_str(out, "\n<details><summary>All that was compared</summary>\n\n");
    for (size_t i = 0; i < c->problems.count; i++) {
        struct buf text = {0};
        words_put_problem(r, &c->problems.data[i], &text);
        buf_put_str(out, "- ");
        put_code(&text, false, out);
        buf_put_str(out, "\n");
        buf_deinit(&text);
    }
    for (bool fits = true; count < c->rows.count && count < DETAILS_MOST && fits; count += fits) {
        struct buf text = {0}, line = {0};
        words_put_row(r, &c->rows.data[count], &text);
        put_code(&text, false, &line);
        fits = out->len_bytes + line.len_bytes < CHARACTERS_MOST - 1000;
        if (fits)
            buf_printf(out, "- %s\n", buf_cstr(&line));
        buf_deinit(&text);
        buf_deinit(&line);
    }
    if (count < c->rows.count)
        buf_printf(out, "- and %s: `-f json` has all\n", counted(c->rows.count - count, "row more", "rows more", &n));
    buf_put_str(out, "\n</details>\n");
}

static struct error *markdown_report(const struct report *r, FILE *out)
{
    struct buf text = {0}, head = {0};

    buf_put_str(&text, "**");
    words_put_verdict(r, &text);
    buf_put_str(&text, "**\n\n");
    words_put_head(r, &head);
    put_code(&head, false, &text);
    buf_put_str(&text, "\n");
    put_table(r, &text);
    put_rules(r, &text);
    put_details(r, &text);
    buf_put_str(&text, "\n");
    words_put_method(r, &text);
    buf_put_str(&text, "\n");
    buf_deinit(&head);
    return text_write(&text, out);
}

const struct report_format report_markdown = {.name = "markdown",
                                              .description = "the same for a comment on a pull request",
                                              .extension = ".md",
                                              .write = markdown_report};
