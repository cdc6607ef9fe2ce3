/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the Firefox Profiler's file: what was recorded, on which machine, and how the Profiler is to show it. */
#ifndef FORMATS_EMIT_FIREFOX_META_H
#define FORMATS_EMIT_FIREFOX_META_H

#include <stdio.h>

#include "formats/emit/firefox/stacks.h"
#include "formats/emit/firefox/tracks.h"

/* The event whose tracks bear the names of threads alone: CPU time, or else the first. */
uint32_t firefox_first_event(const struct emit_model *model);
/* Writes the value of "meta", after the last sample. A failed write is found by whoever closes the file. */
struct error *firefox_meta_write(const struct firefox_stacks *stacks, const struct firefox_tracks *tracks,
                                 const struct emit_options *options, FILE *out);

#endif
