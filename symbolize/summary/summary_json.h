/* SPDX-License-Identifier: Apache-2.0 */
/* The summary as JSON, for scripts: the figures of the text. pysym(1) documents the members; they stay. */
#ifndef SYMBOLIZE_SUMMARY_SUMMARY_JSON_H
#define SYMBOLIZE_SUMMARY_SUMMARY_JSON_H

#include <stdio.h>

#include "formats/base/err.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"

/* `exporter`: what wrote it, "pysym " and its version. */
struct error *summary_json_print(struct summary *s, const struct resolver *r, const char *exporter, FILE *out);

#endif
