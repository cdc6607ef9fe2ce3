/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/emit_consumer.h"

#include <stdlib.h>

#include "symbolize/pass/reorder.h"

struct emit_consumer {
    const struct emitter *emitter;
    void *state; /* the emitter's */
    bool time_order;
    struct reorder reorder;
};

static void destroy(void *state)
{
    struct emit_consumer *c = state;

    c->emitter->destroy(c->state);
    reorder_deinit(&c->reorder);
    free(c);
}

struct error *emit_consumer_create(const struct emitter *emitter, void *emitter_state, bool time_order,
                                   struct emit_consumer **state)
{
    struct emit_consumer *c = calloc(1, sizeof *c);

    if (!c) {
        emitter->destroy(emitter_state);
        return error_no_memory();
    }
    *c = (struct emit_consumer){.emitter = emitter, .state = emitter_state, .time_order = time_order,
                                .reorder = {.emitter = emitter, .state = emitter_state}};
    *state = c;
    return NULL;
}

static struct error *take_sample(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    struct emit_consumer *c = state;

    (void)file;
    return c->time_order ? reorder_sample(&c->reorder, sample->shown) : c->emitter->sample(c->state, sample->shown);
}

/* The next file may come from a host with another clock. */
static struct error *end_file(void *state, const struct consumer_file *file)
{
    struct emit_consumer *c = state;

    (void)file;
    return reorder_flush(&c->reorder);
}

static struct error *end(void *state)
{
    struct emit_consumer *c = state;

    return c->emitter->end(c->state);
}

uint64_t emit_consumer_late_count(const struct emit_consumer *c)
{
    return c->reorder.late_count;
}

const char *emit_consumer_remark(const struct emit_consumer *c)
{
    return c->emitter->remark ? c->emitter->remark(c->state) : NULL;
}

const struct consumer emit_consumer = {
    .wants = CONSUMER_STACKS, .sample = take_sample, .end_file = end_file, .end = end, .destroy = destroy};
