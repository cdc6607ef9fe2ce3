/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frames of a model a pattern matches: by function, source file or binary. Each distinct text is searched once.
 *
 * The binary of a Python frame is the interpreter, which says nothing about the frame, so "module:" and patterns without
 * a part look at binaries of native and kernel frames only.
 */
#ifndef SYMBOLIZE_STACK_FRAME_MATCH_H
#define SYMBOLIZE_STACK_FRAME_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/pattern.h"
#include "formats/base/vec.h"
#include "symbolize/stack/model.h"

/* Initialize with {.pattern = …}, which is borrowed. For one model only. */
struct frame_match {
    const struct pattern *pattern;
    VEC(uint8_t) texts, frames; /* by number: 0 not looked at yet, else 1 + whether it matches */
    bool found;                 /* some frame matched */
};
/* A VEC: those of a list of patterns. */
struct frame_matches {
    struct frame_match *data;
    size_t count, cap;
};

/* Whether a pattern for lines finds this one; 0, "unknown", is said of Python alone: of native code it is known of little. */
bool frame_match_line(const struct pattern *p, enum emit_frame_kind kind, uint32_t line);
struct error *frame_matches_init(struct frame_matches *list, const struct patterns *patterns);
void frame_matches_deinit(struct frame_matches *list);
struct error *frame_match_find(struct frame_match *f, struct model *m, uint32_t frame, bool *matches);
/* Sets *matches if any of the list does. */
struct error *frame_matches_find(struct frame_matches *list, struct model *m, uint32_t frame, bool *matches);

#endif
