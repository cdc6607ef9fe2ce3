/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/types.h"

#include <string.h>

#include "formats/emit/capture_facts.h"
#include "formats/emit/event_order.h"
#include "formats/emit/pprof/fields.h"
#include "formats/emit/protobuf.h"

static const char counted[] = "count";

void pprof_types_deinit(struct pprof_types *t)
{
    VEC_DEINIT(&t->events);
    VEC_DEINIT(&t->types);
    VEC_DEINIT(&t->places);
}

static int compare_events(const void *a, const void *b, void *model)
{
    return event_order(model, *(const uint32_t *)a, *(const uint32_t *)b);
}

static struct error *choose_events(struct pprof_types *t, const struct pprof_samples *samples, const struct emit_options *options)
{
    const struct emit_model *m = samples->model;
    bool all = !samples->owners.count || (options->part && options->part->several_events);

    if (!VEC_EXTEND_ZERO(&t->places, m->event_count))
        return error_no_memory();
    for (uint32_t i = 0; i < samples->owners.count; i++)
        t->places.data[pprof_samples_owner(samples, i).event] = 1;
    for (uint32_t event = 0; event < m->event_count; event++) {
        if ((all || t->places.data[event]) && !VEC_PUSH(&t->events, event))
            return error_no_memory();
    }
    if (t->events.count)
        qsort_r(t->events.data, t->events.count, sizeof *t->events.data, compare_events, (void *)m);
    for (uint32_t i = 0; i < t->events.count; i++)
        t->places.data[t->events.data[i]] = i;
    return NULL;
}

/* The event's name as stores take it. */
static void put_event(const struct emit_event *event, struct buf *out)
{
    if (!strcmp(event->name, "cpu-clock") || !strcmp(event->name, "task-clock")) {
        buf_put_str(out, "cpu");
        return;
    }
    pprof_put_word(event->name, out);
    if (!*event->name)
        buf_put_str(out, "unknown");
}

static bool is_taken(const struct pprof_types *t, uint32_t name)
{
    for (size_t i = 0; i < t->types.count; i++) {
        if (t->types.data[i].samples == name || t->types.data[i].value == name)
            return true;
    }
    return false;
}

/* `number` 0: none. False: out of memory. */
static bool spell_type(const struct emit_event *event, size_t number, bool is_first, struct pprof_tables *tables,
                       struct pprof_type *type)
{
    struct buf name = {0};

    put_event(event, &name);
    if (number)
        buf_printf(&name, "_%zu", number);
    type->value = pprof_string(tables, &name);
    if (is_first)
        buf_clear(&name);
    buf_put_str(&name, is_first ? "samples" : "_samples");
    type->samples = pprof_string(tables, &name);
    buf_deinit(&name);
    return type->value != PPROF_NONE && type->samples != PPROF_NONE;
}

/* Names the values of an event. Two events may be spelled alike: then the later one gets a number. */
static struct error *name_type(struct pprof_types *t, const struct emit_event *event, struct pprof_tables *tables)
{
    const char *unit = event_is_time(event->kind) ? "nanoseconds" : event_is_bytes(event->kind) ? "bytes" : counted;
    struct pprof_type type = {.unit = pprof_plain_string(tables, unit)};
    size_t number = 0;

    do {
        if (!limits_work(tables->limits, 100 + t->types.count) ||
            !spell_type(event, number, !t->types.count, tables, &type))
            return error_no_memory();
        number = number ? number + 1 : t->types.count + 1;
    } while (type.value == type.samples || is_taken(t, type.value) || is_taken(t, type.samples));
    return type.unit != PPROF_NONE && VEC_PUSH(&t->types, type) ? NULL : error_no_memory();
}

struct error *pprof_types_init(struct pprof_types *t, const struct pprof_samples *samples, const struct emit_options *options,
                               struct pprof_tables *tables)
{
    static const struct emit_event none = {.name = "cpu-clock", .unit = "ns", .kind = EVENT_CPU_TIME};

    TRY(choose_events(t, samples, options));
    for (size_t i = 0; i < t->events.count; i++)
        TRY(name_type(t, &samples->model->events[t->events.data[i]], tables));
    return t->types.count ? NULL : name_type(t, &none, tables);
}

/* What one sample of an event stands for, as it was at the start of the first capture that has it; 0: unknown. */
static uint64_t period_of(const struct emit_model *m, uint32_t event)
{
    const struct emit_rate rate = first_rate_of(m, event);

    if (event_is_time(m->events[event].kind) && rate.frequency_hz)
        return 1000000000 / rate.frequency_hz;
    return rate.period < INT64_MAX ? rate.period : 0;
}

void pprof_put_value_type(struct buf *out, uint32_t field, uint32_t name, uint32_t unit)
{
    struct buf type = {0};

    protobuf_put_i64(&type, PPROF_VALUE_TYPE, name);
    protobuf_put_i64(&type, PPROF_VALUE_UNIT, unit);
    protobuf_put_message(out, field, &type);
    buf_deinit(&type);
}

struct error *pprof_types_write(const struct pprof_types *t, const struct emit_model *model, struct pprof_tables *tables,
                                struct gzip *out)
{
    const struct pprof_type *first = &t->types.data[0];
    struct buf fields = {0};
    uint32_t count = pprof_plain_string(tables, counted);

    for (size_t i = 0; i < t->types.count; i++) {
        pprof_put_value_type(&fields, PPROF_SAMPLE_TYPE, t->types.data[i].samples, count);
        pprof_put_value_type(&fields, PPROF_SAMPLE_TYPE, t->types.data[i].value, t->types.data[i].unit);
    }
    pprof_put_value_type(&fields, PPROF_PERIOD_TYPE, first->value, first->unit);
    protobuf_put_u64(&fields, PPROF_PERIOD, t->events.count ? period_of(model, t->events.data[0]) : 0);
    protobuf_put_i64(&fields, PPROF_DEFAULT_SAMPLE_TYPE, first->value);
    struct error *err = count == PPROF_NONE ? error_no_memory() : pprof_write(out, &fields);
    buf_deinit(&fields);
    return err;
}
