/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as annotations of GitHub Actions: lines that a workflow prints, and that GitHub shows at the lines of the
 * files of a pull request. It shows at most ten of a kind of a step. A broken rule is an error, what is surely slower a
 * warning, what is surely faster a notice; nothing else makes one.
 */
#include "formats/compare/report/words.h"
#include "formats/compare/report/writers.h"
#include "formats/emit/names.h"
#include "formats/emit/text_write.h"

enum { ROWS_MOST = 10 };

/* Of a property, ':' and ',' are escaped, too: they end it. */
static void put_escaped(const struct buf *text, bool property, struct buf *out)
{
    for (size_t i = 0; i < text->len_bytes; i++) {
        uint8_t b = text->data[i];
        if (b == '%' || b == '\r' || b == '\n' || (property && (b == ':' || b == ',')))
            buf_printf(out, "%%%02X", b);
        else
            buf_put_u8(out, b);
    }
    out->bad |= text->bad;
}

static void put_property(const char *name, struct buf *value, bool first, struct buf *out)
{
    buf_printf(out, "%s%s=", first ? " " : ",", name);
    put_escaped(value, true, out);
    buf_deinit(value);
}

/* "::warning file=app.py,line=12,title=slower::" and the message. `row` may be NULL: it has no place. */
static void put_annotation(const struct report *r, const char *command, const char *title, const struct compare_row *row,
                           struct buf *message, struct buf *out)
{
    const char *file;
    uint32_t line;
    struct buf text = {0};
    bool first = true;

    buf_printf(out, "::%s", command);
    if (row && words_file(r, row, &file, &line)) {
        name_plain(file, &text);
        put_property("file", &text, first, out);
        first = false;
        if (line)
            buf_printf(out, ",line=%u", line);
    }
    text = (struct buf){0};
    buf_put_str(&text, title);
    put_property("title", &text, first, out);
    buf_put_str(out, "::");
    put_escaped(message, false, out);
    buf_put_str(out, "\n");
    buf_deinit(message);
}

static void put_results(const struct report *r, struct buf *out)
{
    for (size_t i = 0; i < r->result_count; i++) {
        const struct gate_result *result = &r->results[i];
        struct buf message = {0};
        if (result->answer == GATE_KEPT)
            continue;
        bool broken = result->answer == GATE_BROKEN;
        words_put_rule(result, &message);
        buf_put_str(&message, ": ");
        words_put_result(r, result, &message);
        put_annotation(r, broken ? "error" : "notice", broken ? "rule broken" : "rule undecided",
                       result->row == COMPARE_NO_ROW ? NULL : &r->comparison->rows.data[result->row], &message, out);
    }
}

static struct error *github_report(const struct report *r, FILE *out)
{
    const struct comparison *c = r->comparison;
    struct buf text = {0};
    uint32_t count = 0;

    put_results(r, &text);
    for (uint32_t i = 1; i < c->rows.count && count < ROWS_MOST; i++) {
        const struct compare_row *row = &c->rows.data[i];
        struct buf message = {0};
        if (!compare_row_is_finding(row))
            continue;
        words_put_row(r, row, &message);
        put_annotation(r, row->answer == COMPARE_SLOWER ? "warning" : "notice", words_answer(r, row), row, &message, &text);
        count++;
    }
    return text_write(&text, out);
}

const struct report_format report_github = {.name = "github",
                                            .description = "annotations of GitHub Actions, at the lines of the files",
                                            .syntax = JOB_TEXT_COMMANDS,
                                            .write = github_report};
