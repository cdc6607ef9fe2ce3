/* SPDX-License-Identifier: Apache-2.0 */
/* A name that turns out not to be known is taken out of the list; a mark in the table of names keeps it out. */
#include "symbolize/stack/source_stamps.h"

#define NOT_KNOWN UINT64_MAX
/* Of an entry, in memory. */
#define STAMP_COST (sizeof(struct emit_source_stamp) + sizeof(uint32_t))

void source_stamps_init(struct source_stamps *s, struct model *model)
{
    *s = (struct source_stamps){.model = model, .places.limits = model->limits};
}

void source_stamps_deinit(struct source_stamps *s)
{
    limits_give(s->model->limits, s->list.count * STAMP_COST);
    VEC_DEINIT(&s->list);
    VEC_DEINIT(&s->texts);
    map_deinit(&s->places);
}

static void show(struct source_stamps *s)
{
    s->model->view.source_stamps = s->list.data;
    s->model->view.source_stamp_count = (uint32_t)s->list.count;
}

/* Whether code that the process loaded may be older than the file. */
static bool modified_since_start(const struct source_stamps *s, const struct epoch *e, const struct trace_source *source)
{
    uint64_t start_ns = e->processes.data[source->process].def.start_boottime_ns;

    return s->boot_realtime_ns && start_ns && source->modified_ns > 0 &&
           (uint64_t)source->modified_ns > s->boot_realtime_ns + start_ns;
}

static bool add(struct source_stamps *s, uint32_t text, const struct trace_source *source)
{
    const struct emit_source_stamp stamp = {.file = model_text_get(s->model, text),
                                            .size_bytes = source->size_bytes,
                                            .modified_ns = source->modified_ns};

    return limits_take(s->model->limits, STAMP_COST) && map_set(&s->places, text, s->list.count) &&
           VEC_PUSH(&s->list, stamp) && VEC_PUSH(&s->texts, text);
}

/* The last one takes its place. */
static bool forget(struct source_stamps *s, uint32_t text, size_t at)
{
    size_t last = s->list.count - 1;

    s->list.data[at] = s->list.data[last];
    s->texts.data[at] = s->texts.data[last];
    s->list.count = s->texts.count = last;
    limits_give(s->model->limits, STAMP_COST);
    return (at == last || map_set(&s->places, s->texts.data[at], at)) && map_set(&s->places, text, NOT_KNOWN);
}

/* Puts together what was known of a name and what a record says. */
static bool join(struct source_stamps *s, const struct epoch *e, const struct trace_source *source, uint32_t text)
{
    bool is_file = source->state == TRACE_SOURCE_FILE;
    const uint64_t *place = map_get(&s->places, text);

    if (!place)
        return is_file && !modified_since_start(s, e, source) ? add(s, text, source) : map_set(&s->places, text, NOT_KNOWN);
    if (*place == NOT_KNOWN)
        return true;
    struct emit_source_stamp *stamp = &s->list.data[*place];
    if (stamp->several)
        return true;
    if (!is_file)
        return forget(s, text, *place);
    if (stamp->size_bytes == source->size_bytes && stamp->modified_ns == source->modified_ns)
        return !modified_since_start(s, e, source) || forget(s, text, *place);
    *stamp = (struct emit_source_stamp){.file = stamp->file, .several = true};
    return true;
}

bool source_stamps_record(struct source_stamps *s, const struct epoch *e, const struct trace_record *rec)
{
    if (rec->type == TRACE_clock)
        s->boot_realtime_ns = rec->clock.boottime_ns ? rec->clock.realtime_ns - rec->clock.boottime_ns : 0;
    if (rec->type != TRACE_source)
        return true;
    uint32_t text = model_text(s->model, epoch_text(e, rec->source.file), e->strings.data[rec->source.file].len_bytes);
    if (text == MODEL_NONE || (text && !join(s, e, &rec->source, text)))
        return false;
    show(s);
    return true;
}
