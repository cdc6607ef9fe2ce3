/* SPDX-License-Identifier: Apache-2.0 */
/* What a page says of the recordings: hosts, settings, rates and losses. */
#ifndef FORMATS_EMIT_HTML_CAPTURES_H
#define FORMATS_EMIT_HTML_CAPTURES_H

#include "formats/emit/emit.h"
#include "formats/emit/html/rows.h"

/* Writes a row for each capture. */
struct error *html_captures_put(struct html_rows *rows, const struct emit_model *model);

#endif
