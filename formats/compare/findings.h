/* SPDX-License-Identifier: Apache-2.0 */
/* From tested rows to findings: causes (peel.h), what tells them (stories.h), and how many of them may be by chance. */
#ifndef FORMATS_COMPARE_FINDINGS_H
#define FORMATS_COMPARE_FINDINGS_H

#include "formats/compare/row.h"

/*
 * Answers the rows: which are the findings, and what explains the others. One correction for false discoveries is made over
 * all rows; as one change is seen in many rows, it is then made again with each finding as one discovery, until those that
 * are told are those that stay.
 */
struct error *findings_answer(struct test_rows *r, double alpha);

#endif
