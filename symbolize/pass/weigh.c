/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/weigh.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/emit/weights.h"

struct weigh {
    struct weights weights;
    struct weigh_result *weighed; /* borrowed; may be NULL */
    struct intern events;    /* names of those that have samples */
    struct intern keys; /* events not of time, by name and unit: class - 1 has the number of its key */
};

struct error *weigh_create(struct weigh_result *weighed, struct weigh **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_no_memory();
    (*out)->weighed = weighed;
    return NULL;
}

bool weigh_differs(const struct weigh *w)
{
    return w->weights.differ;
}

static void destroy(void *state)
{
    struct weigh *w = state;

    weights_deinit(&w->weights);
    intern_deinit(&w->events);
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
    if (event_is_time(epoch_event_kind(e, event)))
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

    const char *name = epoch_text(file->epoch, file->epoch->events.data[sample->event].def.name);
    if (w->weighed && intern_id(&w->events, name, (uint32_t)strlen(name), NULL) == INTERN_NONE)
        return error_no_memory();
    TRY(find_class(w, file->epoch, sample->event, &class));
    enum event_value kind = epoch_event_kind(file->epoch, sample->event);
    if (class == WEIGHTS_OF_TIME && kind != EVENT_CPU_TIME)
        return weights_add_always(&w->weights, class) ? NULL : error_no_memory();
    return weights_add(&w->weights, class, sample->raw->value) ? NULL : error_no_memory();
}

static struct error *end(void *state)
{
    struct weigh *w = state;

    for (uint32_t class = 0; w->weighed && class < w->weights.classes.count; class++) {
        /* A key begins with the event's name. */
        const char *name = class == WEIGHTS_OF_TIME ? "" : (const char *)intern_get(&w->keys, class - 1)->data;
        if (weights_differ(&w->weights, class) && intern_id(&w->weighed->differ, name, (uint32_t)strlen(name), NULL) == INTERN_NONE)
            return error_no_memory();
    }
    if (w->weighed)
        w->weighed->several_events = w->events.count > 1;
    return NULL;
}

static bool has_enough(const void *state)
{
    const struct weigh *w = state;

    return !w->weighed && weigh_differs(w);
}

const struct consumer weigh_consumer = {
    .wants = CONSUMER_SAMPLES, .sample = take_sample, .end = end, .destroy = destroy, .has_enough = has_enough};
