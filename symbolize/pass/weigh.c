/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/weigh.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/emit/weights.h"

struct weigh {
    struct weights weights;
    struct intern keys; /* events not of time, by name and unit: class - 1 has the number of its key */
};

struct error *weigh_create(struct weigh **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : error_no_memory();
}

bool weigh_differs(const struct weigh *w)
{
    return w->weights.differ;
}

static void destroy(void *state)
{
    struct weigh *w = state;

    weights_deinit(&w->weights);
    intern_deinit(&w->keys);
    free(w);
}

/* The class of an event, the same across epochs and files; weights_class_of() does this for events of a model. */
static struct error *find_class(struct weigh *w, const struct epoch *e, uint32_t event, uint32_t *class)
{
    const struct trace_event *def = &e->events.data[event].def;
    const char *unit = epoch_text(e, def->unit), *name = epoch_text(e, def->name);
    struct buf key = {0};

    *class = WEIGHTS_OF_TIME;
    if (!strcmp(unit, "ns"))
        return NULL;
    buf_put(&key, name, strlen(name) + 1);
    buf_put_str(&key, unit);
    uint32_t number = key.bad ? INTERN_NONE : intern_id(&w->keys, key.data, (uint32_t)key.len_bytes, NULL);
    buf_deinit(&key);
    *class = number + 1;
    return number == INTERN_NONE ? error_no_memory() : NULL;
}

static struct error *take_sample(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    struct weigh *w = state;
    uint32_t class;

    TRY(find_class(w, file->epoch, sample->event, &class));
    return weights_add(&w->weights, class, sample->raw->value) ? NULL : error_no_memory();
}

static bool has_enough(const void *state)
{
    return weigh_differs(state);
}

const struct consumer weigh_consumer = {
    .wants = CONSUMER_SAMPLES, .sample = take_sample, .destroy = destroy, .has_enough = has_enough};
