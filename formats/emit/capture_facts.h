/* SPDX-License-Identifier: Apache-2.0 */
/* What several outputs work out of the facts of captures (emit.h). */
#ifndef FORMATS_EMIT_CAPTURE_FACTS_H
#define FORMATS_EMIT_CAPTURE_FACTS_H

#include "formats/emit/emit.h"

/*
 * A time of the capture's monotonic clock as nanoseconds since 1970. It means something only where the capture knows its
 * clocks (realtime_ns). Differences may wrap, and come back.
 */
static inline uint64_t capture_realtime_ns(const struct emit_capture *capture, uint64_t monotonic_ns)
{
    return capture->realtime_ns - capture->monotonic_ns + monotonic_ns;
}

/* How the first capture that has the event sampled it; {0}: none says it. */
static inline struct emit_rate first_rate_of(const struct emit_model *model, uint32_t event)
{
    for (uint32_t c = 0; c < model->capture_count; c++) {
        for (uint32_t i = 0; i < model->captures[c].rate_count; i++) {
            if (model->captures[c].rates[i].event == event)
                return model->captures[c].rates[i];
        }
    }
    return (struct emit_rate){0};
}

#endif
