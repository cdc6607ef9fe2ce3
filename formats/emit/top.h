/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the emitter `top` hands to its two writers, of text and of JSON: events, and for each event a table of functions
 * or lines, or one for each process or thread.
 */
#ifndef FORMATS_EMIT_TOP_H
#define FORMATS_EMIT_TOP_H

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/counts.h"
#include "formats/emit/emit.h"
#include "formats/emit/top_errors.h"
#include "formats/emit/top_states.h"

/* A function or a line. */
struct top_row {
    uint32_t name;            /* in top_view.texts */
    uint32_t frame;           /* one of the model's that have this name; TOP_NO_FRAME: of samples without frames */
    uint32_t depth;           /* where it was met first, 1 for the outermost frame */
    struct count self, total; /* samples in which it is innermost, and in which it is anywhere */
};
#define TOP_NO_FRAME UINT32_MAX

/* Samples of one stack, of one process or thread. */
struct top_entry {
    uint32_t owner, stack;
    struct count count;
};

struct top_table {
    uint32_t owner; /* a process or thread, as options.merge keeps them apart */
    struct count all;
    const struct top_entry *entries;
    size_t entry_count;
    struct top_row *rows; /* in the order in which they are shown */
    uint32_t row_count;   /* also those that are not shown, but for those below options.min_share */
};

/* The processes of one name. */
struct top_program {
    uint32_t name;  /* in top_event.names */
    uint32_t count; /* of processes */
    uint32_t pid;   /* of the first */
    uint64_t weight;
};

struct top_event {
    uint32_t event;
    struct count all;
    struct intern names;
    struct top_states states;
    VEC(struct top_program) programs; /* the heaviest first */
    uint32_t process_count;
    uint32_t table_count; /* those that are not shown, too */
};

struct top_view {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct intern texts;
    struct top_errors errors;
};

/* How many of `count` rows or tables are shown. */
static inline uint32_t top_shown(const struct top_view *v, uint32_t count)
{
    return v->options.top_count && v->options.top_count < count ? v->options.top_count : count;
}

/* Are times of the event estimates, of which it is known how far they may be off? */
static inline bool top_has_errors(const struct top_view *v, uint32_t event)
{
    return v->errors.any && v->errors.event == event;
}

/* Called in this order; those of events and tables once for each. A failed write is found by whoever closes the file. */
struct top_writer {
    struct error *(*begin)(const struct top_view *v);
    struct error *(*begin_event)(const struct top_view *v, const struct top_event *e, bool first);
    struct error *(*table)(const struct top_view *v, const struct top_event *e, const struct top_table *t, bool first);
    struct error *(*end_event)(const struct top_view *v, const struct top_event *e);
    struct error *(*end)(const struct top_view *v, bool empty);
};
extern const struct top_writer top_text_writer, top_json_writer;

#endif
