/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "formats/compare/report/writers.h"

const struct report_format *const report_formats[] = {&report_text,   &report_markdown, &report_json, &report_github,
                                                      &report_junit, &report_folded,   NULL};

const struct report_format *report_format_find(const char *name)
{
    for (const struct report_format *const *f = report_formats; *f; f++) {
        if (!strcmp((*f)->name, name))
            return *f;
    }
    return NULL;
}
