/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places that rows of the live view are of: functions, or lines of functions. They are told apart by their names, so they
 * outlive the model that frames come from. There are at most so many; what is over that is the place LIVE_OTHERS.
 */
#ifndef SYMBOLIZE_LIVE_PLACES_H
#define SYMBOLIZE_LIVE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

enum { LIVE_PLACES_MAX = 32768, LIVE_OTHERS = 0, LIVE_NO_FRAMES = 1 };

/* Texts are printable, cut to a bounded length, and live as long as the places. */
struct live_place {
    const char *function;
    const char *file; /* Python: its file, shortened; native: its module; "": nothing to show */
    uint32_t line;    /* 0: unknown, or not of Python */
    enum emit_frame_kind kind;
};

struct live_places {
    bool by_line;
    struct intern texts, keys;
    VEC(struct live_place) list;  /* [LIVE_OTHERS] and [LIVE_NO_FRAMES] are there from the start */
    VEC(uint32_t) of_frame;       /* by frame of the model: its place, counted from 1; 0: not looked up */
    struct buf scratch;
};

/* {0} may be given to live_places_deinit(). False: out of memory. */
bool live_places_init(struct live_places *p, bool by_line);
void live_places_deinit(struct live_places *p);
/* Frames have other numbers from now on. */
void live_places_forget_frames(struct live_places *p);
/* The place of a frame; UINT32_MAX: out of memory. */
uint32_t live_places_of(struct live_places *p, const struct emit_model *model, uint32_t frame);

#endif
