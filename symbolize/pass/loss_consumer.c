/* SPDX-License-Identifier: Apache-2.0 */
/* Records of losses, in words. See loss_consumer.h. */
#include "symbolize/pass/loss_consumer.h"

#include "symbolize/pass/parts.h"

static struct error *take_record(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    const struct trace_loss *loss = &rec->loss;

    if (rec->type != TRACE_loss || !loss->count || loss->reason == LOSS_complete)
        return NULL;
    const char *name = trace_loss_name(loss->reason), *meaning = trace_loss_meaning(loss->reason);
    const struct emit_loss lost = {.name = name ? name : epoch_text(file->epoch, loss->name),
                                   .meaning = meaning ? meaning : "",
                                   .event = epoch_text(file->epoch, file->epoch->events.data[loss->event].def.name),
                                   .count = loss->count,
                                   .is_sample = loss_class_is_sample(trace_loss_class(loss->reason))};
    return parts_lose(state, file->number, loss->time_ns, &lost);
}

static void destroy(void *state)
{
    (void)state;
}

const struct consumer loss_consumer = {.wants = CONSUMER_STACKS, .record = take_record, .destroy = destroy};
