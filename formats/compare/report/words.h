/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wording of a comparison, in one place for all reports: plain text on one line, with names as name_plain() makes them.
 * A change always stands with its interval.
 */
#ifndef FORMATS_COMPARE_REPORT_WORDS_H
#define FORMATS_COMPARE_REPORT_WORDS_H

#include "formats/base/buf.h"
#include "formats/compare/report.h"

/* "10 old and 10 new runs of gunicorn: CPU time per unit of work". */
void words_put_head(const struct report *r, struct buf *out);
/* The answer in a line: "2 rows are surely slower, 1 faster; 1 rule is broken"; never that nothing has changed. */
void words_put_verdict(const struct report *r, struct buf *out);
/* In a word or two: "slower", "less", "cannot tell", "gave way". */
const char *words_answer(const struct report *r, const struct compare_row *row);
/* The file of a row's function as it is shown, and the line where it begins, or of a line itself (0: not known); false: it has none. */
bool words_file(const struct report *r, const struct compare_row *row, const char **file, uint32_t *line);
/* The same with the file and the callers: "score (app.py:12), under small". */
void words_put_place(const struct report *r, const struct compare_row *row, struct buf *out);
/* "62.9 → 66.2 % of its parent". */
void words_put_shares(const struct report *r, const struct compare_row *row, struct buf *out);
/* "+10 % (+4 to +17)"; of what is new or gone "4.1 to 5.9 % of all". */
void words_put_estimate(const struct compare_row *row, struct buf *out);
/* The whole: "slower: score (app.py:12), under small: 62.9 → 66.2 % of its parent, +10 % time (…), q 0.003; its code changed". */
void words_put_row(const struct report *r, const struct compare_row *row, struct buf *out);
/* The same without the answer. */
void words_put_figures(const struct report *r, const struct compare_row *row, struct buf *out);
/* "+3.1 % (+2.4 to +3.9)"; fractions. */
void words_put_interval(double change, double low, double high, struct buf *out);
/* The rule as it was given. */
void words_put_rule(const struct gate_result *result, struct buf *out);
/* Of a rule: "+3.1 % (+2.4 to +3.9), over 2 %", with the place that was judged. */
void words_put_result(const struct report *r, const struct gate_result *result, struct buf *out);
/* "broken", "kept", "undecided". */
const char *words_gate_answer(enum gate_answer answer);
/* The text of a problem, with what it means for the answers. */
void words_put_problem(const struct report *r, const struct compare_problem *problem, struct buf *out);
/* How it was judged, a sentence. */
void words_put_method(const struct report *r, struct buf *out);

/* The name of a function. */
void words_put_function(const struct report *r, uint32_t function, struct buf *out);
/* The callers of a node, outermost first, with ';' between them, and the node itself last. */
void words_put_path(const struct report *r, uint32_t node, struct buf *out);

#endif
