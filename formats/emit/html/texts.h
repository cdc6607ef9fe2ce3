/* SPDX-License-Identifier: Apache-2.0 */
/* The long texts of a page: the summary of the recording, a comparison, and the source of its functions. */
#ifndef FORMATS_EMIT_HTML_TEXTS_H
#define FORMATS_EMIT_HTML_TEXTS_H

#include "formats/emit/emit.h"
#include "formats/emit/html/numbers.h"
#include "formats/emit/html/rows.h"

/* Writes the members "summary" and "verdict", which are empty where the options have none. */
struct error *html_texts_put_summary(struct html_rows *rows, const struct emit_options *options);
/* Writes the members of a comparison, if the options have one. */
struct error *html_texts_put_comparison(struct html_rows *rows, const struct emit_options *options);
/* Writes a row for each Python file of these frames that is found, if the page is to hold them. */
struct error *html_texts_put_sources(struct html_rows *rows, const struct emit_model *model, const struct emit_options *options,
                                     const struct html_numbers *frames);

#endif
