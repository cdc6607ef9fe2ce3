/* SPDX-License-Identifier: Apache-2.0 */
/* What filters left of an event, for the head of an output: "6.90 s of 7.31 s shown". */
#ifndef FORMATS_EMIT_SHOWN_H
#define FORMATS_EMIT_SHOWN_H

#include "formats/base/buf.h"
#include "formats/emit/emit.h"

/*
 * Appends that text for an event of the model: in seconds, bytes, or whatever else the event counts. Appends nothing if
 * there are no filters. The totals are complete after the last sample.
 */
void shown_put(const struct emit_model *model, uint32_t event, struct buf *out);

#endif
