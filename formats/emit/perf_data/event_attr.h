/* SPDX-License-Identifier: Apache-2.0 */
/* Events as perf describes them: struct perf_event_attr, of which readers take the event's name and what samples hold. */
#ifndef FORMATS_EMIT_PERF_DATA_EVENT_ATTR_H
#define FORMATS_EMIT_PERF_DATA_EVENT_ATTR_H

#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/emit/emit.h"

enum { EVENT_ATTR_BYTES = 128 }; /* PERF_ATTR_SIZE_VER7: with the fields up to Linux 5.13 */

/* How many events the file has: at least one, which readers ask for, though a trace may have none. */
uint32_t event_attr_count(const struct emit_model *model);
/* Append the attribute and the name of such an event. */
void event_attr_put(const struct emit_model *model, uint32_t event, struct buf *out);
void event_attr_put_name(const struct emit_model *model, uint32_t event, struct buf *out);

#endif
