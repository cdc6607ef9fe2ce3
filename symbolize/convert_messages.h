/* SPDX-License-Identifier: Apache-2.0 */
/* What conversions say to people beside their output. */
#ifndef SYMBOLIZE_CONVERT_MESSAGES_H
#define SYMBOLIZE_CONVERT_MESSAGES_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/compare/baseline.h"
#include "symbolize/options.h"
#include "symbolize/stack/resolve.h"

/* What the filters left, if it is to be shown, event by event of those asked for; and which patterns did nothing. */
void convert_tell_filters(const struct options *o, const struct resolver *r, bool shown, FILE *trouble);
/* What to do with the baseline, if it is a file, and what it lacks. */
void convert_tell_baseline(const struct options *o, const struct run_set *set, const struct baseline_written *what, FILE *trouble);

#endif
