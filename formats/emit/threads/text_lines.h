/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of threads and that of tasks share. */
#ifndef FORMATS_EMIT_THREADS_TEXT_LINES_H
#define FORMATS_EMIT_THREADS_TEXT_LINES_H

#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/emit/threads/threads_data.h"

/* These append to `out`. A duration: "12 ms", "3.4 s", "5 min 20 s"; or the shortest and the longest of several: "1.0 s to 3.4 s". */
void threads_put_duration(uint64_t ns, struct buf *out);
void threads_put_between(uint64_t least_ns, uint64_t most_ns, struct buf *out);
/* Writes one frame as a line, cut to the terminal; frame == frame_count means "no frame". `count`: how many equal ones it stands for. */
void threads_put_frame(const struct threads *t, uint32_t frame, uint32_t count, unsigned indent, struct buf *out);

#endif
