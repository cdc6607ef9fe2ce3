/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as JUnit's XML, for the pages of Jenkins and GitLab: a test case for each rule, failed where it is surely
 * broken, skipped where it is undecided (failed if the budget says that undecided fails). Without rules there is one case:
 * that the runs could be compared. The text of the report stands beside them.
 */
#include "formats/compare/report/words.h"
#include "formats/compare/report/writers.h"
#include "formats/emit/text_write.h"
#include "formats/emit/xml.h"

static void put_escaped(const struct buf *text, struct buf *out)
{
    xml_put(text->data, text->len_bytes, out);
    out->bad |= text->bad;
}

static bool fails(const struct report *r, const struct gate_result *result)
{
    return result->answer == GATE_BROKEN || (result->answer == GATE_UNDECIDED && r->undecided_fails);
}

static void put_case(const struct report *r, const struct gate_result *result, struct buf *out)
{
    struct buf text = {0};

    buf_put_str(out, "    <testcase classname=\"pysym diff\" name=\"");
    words_put_rule(result, &text);
    put_escaped(&text, out);
    buf_clear(&text);
    words_put_result(r, result, &text);
    if (result->answer == GATE_KEPT) {
        buf_put_str(out, "\">\n      <system-out>");
        put_escaped(&text, out);
        buf_put_str(out, "</system-out>\n    </testcase>\n");
    } else {
        const char *element = fails(r, result) ? "failure" : "skipped";
        buf_printf(out, "\">\n      <%s message=\"%s: ", element, words_gate_answer(result->answer));
        put_escaped(&text, out);
        buf_put_str(out, "\"/>\n    </testcase>\n");
    }
    buf_deinit(&text);
}

static void put_findings(const struct report *r, struct buf *out)
{
    const struct comparison *c = r->comparison;
    struct buf text = {0};

    words_put_head(r, &text);
    buf_put_str(&text, "\n");
    for (size_t i = 0; i < c->rows.count; i++) {
        if (i && !compare_row_is_finding(&c->rows.data[i]))
            continue;
        words_put_row(r, &c->rows.data[i], &text);
        buf_put_str(&text, "\n");
    }
    words_put_method(r, &text);
    buf_put_str(out, "    <system-out>");
    put_escaped(&text, out);
    buf_put_str(out, "</system-out>\n");
    buf_deinit(&text);
}

static struct error *junit_report(const struct report *r, FILE *out)
{
    size_t failures = 0, skipped = 0;
    struct buf text = {0};

    for (size_t i = 0; i < r->result_count; i++) {
        failures += fails(r, &r->results[i]);
        skipped += r->results[i].answer == GATE_UNDECIDED && !r->undecided_fails;
    }
    buf_printf(&text,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
               "  <testsuite name=\"pysym diff\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
               r->result_count ? r->result_count : 1, failures, skipped);
    for (size_t i = 0; i < r->result_count; i++)
        put_case(r, &r->results[i], &text);
    if (!r->result_count)
        buf_put_str(&text, "    <testcase classname=\"pysym diff\" name=\"the runs can be compared\"/>\n");
    put_findings(r, &text);
    buf_put_str(&text, "  </testsuite>\n</testsuites>\n");
    return text_write(&text, out);
}

const struct report_format report_junit = {.name = "junit",
                                           .description = "a test case for each rule, for Jenkins and GitLab",
                                           .extension = ".xml",
                                           .syntax = JOB_TEXT_XML,
                                           .write = junit_report};
