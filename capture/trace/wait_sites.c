/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/trace/wait_sites.h"

#include "capture/trace/sample_labels.h"

static struct site_note *find_site(struct trace_builder *b, uint64_t site)
{
    const uint64_t *known = map_get(&b->site_of, site);

    return known ? &b->sites.data[*known] : NULL;
}

/* A number below `limit`, which is at least 1 (splitmix64). It is not meant to be the same in each capture, nor to be secret. */
static uint64_t below(struct trace_builder *b, uint64_t limit)
{
    uint64_t z = b->chance += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % limit;
}

/* One of the last stacks, by how long they waited. */
static const struct site_stack *choose(struct trace_builder *b, const struct site_note *site)
{
    const struct site_stack *last = site->last.data;
    uint64_t sum = 0;
    size_t i = 0;

    for (size_t k = 0; k < site->last.count; k++)
        sum += last[k].waited_ns;
    for (uint64_t at = below(b, sum ? sum : 1); i < site->last.count - 1 && at >= last[i].waited_ns; i++)
        at -= last[i].waited_ns;
    return &last[i];
}

static void write_owed(struct trace_builder *b, const struct site_note *site, const struct site_stack *stack, uint32_t kind,
                       uint64_t owed_ns, uint64_t time_ns)
{
    const struct wire_sample like = {.wait_kind = kind, .system_call = site->system_call, .thread_handle = 1,
                                     .interpreter_id = site->interpreter_id};
    struct builder_event *event = &b->events[event_list_wait(&b->o.events)];
    struct trace_sample sample = {.time_ns = time_ns, .thread = site->thread, .tuple = stack->tuple,
                                  .flags = stack->flags | TRACE_SAMPLE_VALUE | TRACE_SAMPLE_CONTINUES | TRACE_SAMPLE_OWED |
                                           TRACE_SAMPLE_LABELS,
                                  .value = owed_ns, .label_set = sample_labels(b, NULL, &like, NULL, stack->waker)};

    trace_writer_sample(b->o.writer, event->trace_id, &sample);
    if (trace_writer_full(b->o.writer) || trace_writer_epoch_full(b->o.writer))
        return; /* the time is among what was not written */
    event->value += owed_ns;
    b->counts.samples++;
    b->file_samples++;
}

/* The note of a site, made where there is none; NULL: out of memory. */
static struct site_note *note_site(struct trace_builder *b, const struct wire_sample *m, uint32_t thread)
{
    struct site_note *site = find_site(b, m->wait_site);
    const struct site_note first = {.thread = thread, .kind = m->wait_kind, .system_call = m->system_call,
                                    .interpreter_id = m->interpreter_id};

    if (site)
        return site;
    if (!VEC_PUSH(&b->sites, first) || !map_set(&b->site_of, m->wait_site, b->sites.count - 1))
        return NULL;
    return &b->sites.data[b->sites.count - 1];
}

static bool add_stack(struct site_note *site, struct site_stack stack)
{
    if (site->last.count < SITE_STACKS)
        return VEC_PUSH(&site->last, stack) && ++site->count;
    site->last.data[site->count++ % SITE_STACKS] = stack;
    return true;
}

void wait_sites_clear(struct trace_builder *b)
{
    for (size_t i = 0; i < b->sites.count; i++)
        VEC_DEINIT(&b->sites.data[i].last);
    b->sites.count = 0;
    map_clear(&b->site_of);
}

bool wait_sites_pay(struct trace_builder *b, const struct wire_sample *m, const struct trace_sample *sample)
{
    bool queue = m->wait_kind == WIRE_WAIT_RUN_QUEUE;
    struct site_note *site = queue ? find_site(b, m->wait_site) : NULL; /* it was noted with the wait before */

    if (!queue) {
        site = note_site(b, m, sample->thread);
        if (!site)
            return false;
        if (!add_stack(site, (struct site_stack){sample->tuple, sample->flags, sample_waker(b, m), m->waited_ns}))
            return false;
    }
    if (!site || !m->owed_ns)
        return true;
    write_owed(b, site, choose(b, site), m->wait_kind, m->owed_ns, m->time_ns);
    return true;
}

void trace_builder_owed(struct trace_builder *b, uint64_t site, const struct wire_wait_site *owed, uint64_t time_ns)
{
    const struct site_note *known = find_site(b, site);

    if (!known || trace_writer_full(b->o.writer))
        return;
    if (owed->owed_ns)
        write_owed(b, known, choose(b, known), known->kind, owed->owed_ns, time_ns);
    if (owed->owed_queue_ns)
        write_owed(b, known, choose(b, known), WIRE_WAIT_RUN_QUEUE, owed->owed_queue_ns, time_ns);
}
