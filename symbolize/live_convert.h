/* SPDX-License-Identifier: Apache-2.0 */
/* `pysym -f live`: opens the terminal, confines pysym, and runs the conversion in a thread beside the view (symbolize/live/). */
#ifndef SYMBOLIZE_LIVE_CONVERT_H
#define SYMBOLIZE_LIVE_CONVERT_H

#include "symbolize/convert.h"
#include "symbolize/options.h"

/* Returns when the user has ended the view. */
struct error *live_convert(struct options *o, struct convert_outcome *outcome);

#endif
