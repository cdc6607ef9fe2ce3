/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds samples up for tables: events, and for each event a table of functions or lines, or one for each process or thread.
 * A writer writes them: the emitter `top` has two, of text and of JSON, and other emitters bring their own.
 */
#ifndef FORMATS_EMIT_TOP_H
#define FORMATS_EMIT_TOP_H

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/counts.h"
#include "formats/emit/emit.h"
#include "formats/emit/stack_tree.h"
#include "formats/emit/top_errors.h"
#include "formats/emit/top_programs.h"
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

struct top_event {
    uint32_t event;
    struct count all;
    struct top_states states;
    struct top_programs programs;
    uint32_t table_count; /* those that are not shown, too */
};

struct top_view {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct intern texts;
    uint32_t *ids; /* by frame: its text, see names_spell() */
    struct top_errors errors;
    void *own;     /* the writer's */
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

/*
 * The functions of an emitter over such tables. `own` stays the caller's. Samples of all processes make one table, unless
 * options.merge or options.threads keep them apart.
 */
struct error *top_create(const struct emit_model *model, const struct emit_options *options, FILE *out,
                         const struct top_writer *writer, void *own, void **state);
const struct top_view *top_view_of(const void *state);
void *top_own(const void *state); /* of NULL: NULL */
struct error *top_sample(void *state, const struct emit_sample *sample);
struct error *top_end(void *state);
/*
 * The same in steps, for emitters that write more between the tables. top_name() names functions or lines, and says how many
 * rows and tables are shown; it may be called again. top_write_event() writes the tables of an event.
 */
struct error *top_name(void *state, enum emit_by by, uint32_t top_count);
struct error *top_write_event(void *state, const struct top_writer *writer, uint32_t event, bool first);
uint32_t top_event_count(const void *state); /* the model's numbers up to there may */
bool top_has_event(const void *state, uint32_t event); /* have samples */
void top_destroy(void *state);
/* For writers: the stacks of a table as a tree of weights. The caller deinits it, also if this returns false: out of memory. */
bool top_stacks(const struct top_view *v, const struct top_table *table, struct stack_tree *out);

#endif
