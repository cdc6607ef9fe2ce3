/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of a comparison's report: a file each, and a line each in reports.c. */
#ifndef FORMATS_COMPARE_REPORT_WRITERS_H
#define FORMATS_COMPARE_REPORT_WRITERS_H

#include "formats/compare/report.h"

extern const struct report_format report_text, report_markdown, report_json, report_github, report_junit, report_folded;

#endif
