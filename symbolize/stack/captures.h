/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers the facts about each input for emitters (struct emit_capture) from its records. Most records repeat in every
 * epoch: a repeated fact counts once, losses are added up.
 */
#ifndef SYMBOLIZE_STACK_CAPTURES_H
#define SYMBOLIZE_STACK_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/trace/trace.h"
#include "symbolize/stack/model.h"
#include "symbolize/trace/epoch.h"

/* The lists of one capture. */
struct capture_lists {
    VEC(struct emit_setting) settings;
    VEC(struct emit_rate) rates;
    VEC(struct emit_loss) losses;
};

/* Initialize with {.model = …}. The model is borrowed; its view points to the captures. */
struct captures {
    struct model *model;
    VEC(struct emit_capture) list;
    VEC(struct capture_lists) lists;
    bool has_start, has_clock; /* of the newest */
};

void captures_deinit(struct captures *c);
/* Begins another capture; outputs call it `name`. False when memory ran out, as below. */
bool captures_begin(struct captures *c, const char *name);
/* Takes a record of the newest capture. It must have been loaded into the epoch. */
bool captures_record(struct captures *c, const struct epoch *e, const struct trace_record *rec);
/* Where the newest capture counts samples of an event of the model; CAPTURES_NO_RATE: it does not. */
#define CAPTURES_NO_RATE UINT32_MAX
uint32_t captures_find_rate(const struct captures *c, uint32_t event);
static inline void captures_saw_sample(struct captures *c, uint32_t rate)
{
    if (rate != CAPTURES_NO_RATE)
        c->lists.data[c->lists.count - 1].rates.data[rate].samples++;
}
/* Extends the duration of the newest capture to that time. */
static inline void captures_saw_time(struct captures *c, uint64_t time_ns)
{
    struct emit_capture *capture = &c->list.data[c->list.count - 1];

    if (time_ns > capture->start_ns && time_ns - capture->start_ns > capture->duration_ns)
        capture->duration_ns = time_ns - capture->start_ns;
}

#endif
