/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/wall_consumer.h"

#include <stdlib.h>

#include "symbolize/trace/wall.h"

struct wall_state {
    const struct option_texts *chosen;
    bool has_samples; /* the epoch */
};

struct error *wall_consumer_create(const struct option_texts *chosen, struct wall_state **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_no_memory();
    (*out)->chosen = chosen;
    return NULL;
}

static struct error *look(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    struct wall_state *w = state;

    (void)file;
    w->has_samples |= rec->type == TRACE_samples;
    return NULL;
}

/* An event may be defined as late as before its first sample. */
static struct error *end_epoch(void *state, const struct consumer_file *file)
{
    struct wall_state *w = state;
    bool has_samples = w->has_samples;

    w->has_samples = false;
    return has_samples ? wall_check(file->epoch, w->chosen, input_title(file->input->path)) : NULL;
}

const struct consumer wall_consumer = {.wants = CONSUMER_SAMPLES, .record = look, .end_epoch = end_epoch, .destroy = free};
