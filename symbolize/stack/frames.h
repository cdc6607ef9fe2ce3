/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns frames of an epoch into frames of the model.
 *
 * Python and kernel frames become one frame each. A native address becomes its function
 * and what was inlined there; it is looked up once for all processes and epochs.
 */
#ifndef SYMBOLIZE_STACK_FRAMES_H
#define SYMBOLIZE_STACK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "symbolize/binary/demangle.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/frame_cache.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/modcache.h"
#include "symbolize/stack/model.h"

#define FRAMES_NO_MODULE UINT32_MAX

/* A native address as it is shown: its function and what was inlined there. */
struct expansion {
    uint32_t first, count;                     /* in frames.expanded; outermost first */
    uint32_t module;                           /* in the module cache; FRAMES_NO_MODULE for an absolute address */
    bool unresolved;
    struct merge_native merge;                 /* what the merge goes by */
};

/* A function of an expansion. */
struct expanded {
    uint32_t frame; /* of the model */
    enum demangle_layer layer;
};

/* By id of the epoch; all MODEL_NONE until they are looked up. */
struct frame_state {
    uint32_t number;      /* frame of the model, or expansion for a native frame */
    uint32_t interpreter; /* Python: the path of its interpreter, a text of the model */
};
struct module_state {
    uint32_t index;   /* in the module cache */
    uint32_t path;    /* a text of the model */
    uint32_t mapping; /* of the model */
};

struct frames {
    struct model *model;
    struct modcache *modules;
    bool names_modules; /* frames of built-in modules have the module's name; set before the first frame */
    bool names_codes;   /* frames have their code objects; likewise */
    struct intern native_keys; /* key n has expansion n */
    VEC(struct expansion) expansions;
    VEC(struct expanded) expanded;
    struct frame_cache cache; /* of Python frames, over all epochs */
    struct buf text;
    VEC(struct emit_segment) segments; /* scratch */
    VEC(struct frame_state) states; /* of the epoch */
    VEC(struct module_state) module_states;
    VEC(uint32_t) code_states; /* by id of the epoch: codes of the model; MODEL_NONE until they are looked up */
};

/* `model` and `modules` are borrowed. */
void frames_init(struct frames *f, struct model *model, struct modcache *modules);
void frames_deinit(struct frames *f);
/* Call when the epoch ends: forgets its ids. */
void frames_clear(struct frames *f);
/*
 * Sets *out to the number of a frame in the model, or, for a native frame, of its expansion. `interpreter` is the text
 * that Python frames get as their module.
 */
struct error *frames_number(struct frames *f, const struct epoch *e, uint32_t id, uint32_t interpreter, uint32_t *out);
/*
 * The expansion of an address: an offset in the file of a module of the epoch, or, with module 0, an absolute address.
 * `flags` are those of NATIVE_FRAME.
 */
struct error *frames_native(struct frames *f, const struct epoch *e, uint32_t module, uint64_t offset, uint32_t flags,
                            uint32_t *out);
/* The frame for a mark such as "[torn]". */
struct error *frames_mark(struct frames *f, const char *mark, uint32_t *out);
/* The model's text for a string of the epoch. */
struct error *frames_string(struct frames *f, const struct epoch *e, uint32_t string, uint32_t *out);

#endif
