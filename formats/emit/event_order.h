/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which an output shows events: weights of different units do not compare, and time is what most ask for. */
#ifndef FORMATS_EMIT_EVENT_ORDER_H
#define FORMATS_EMIT_EVENT_ORDER_H

#include "formats/emit/emit.h"

/* For qsort(): events of time first, then in the model's order. `a` and `b` are their numbers. */
static inline int event_order(const struct emit_model *model, uint32_t a, uint32_t b)
{
    if (event_is_time(model->events[a].kind) != event_is_time(model->events[b].kind))
        return event_is_time(model->events[a].kind) ? -1 : 1;
    return (a > b) - (a < b);
}

#endif
