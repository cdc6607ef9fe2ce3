/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/trace/blame.h"

void blame_define(struct trace_builder *b, const struct process *p)
{
    if (b->blame_id || event_list_wait(&b->o.events) == EVENT_NONE || !p->python ||
        p->python->python.gil.kind == PY_GIL_NONE || p->python->python.layout.free_threaded)
        return;
    struct trace_event event = {
        .name = trace_writer_cstr(b->o.writer, "gil-blame"),
        .unit = trace_writer_cstr(b->o.writer, "ns"),
        .period = 1,
        .kind = TRACE_EVENT_BLAME,
    };

    trace_writer_put(b->o.writer, TRACE_event, &event);
    b->blame_id = event.id;
}

void blame_put(struct trace_builder *b, const struct trace_sample *like, uint64_t blame_ns)
{
    struct trace_sample sample = *like;

    if (!blame_ns || !b->blame_id)
        return;
    sample.flags |= TRACE_SAMPLE_VALUE | TRACE_SAMPLE_GIL_KNOWN | TRACE_SAMPLE_GIL;
    sample.value = blame_ns;
    trace_writer_sample(b->o.writer, b->blame_id, &sample);
    if (trace_writer_full(b->o.writer) || trace_writer_epoch_full(b->o.writer))
        return;
    b->counts.samples++;
    b->file_samples++;
}

void blame_write(struct trace_builder *b, const struct wire_sample *m, const struct trace_sample *sample)
{
    if (m->wait_kind)
        blame_put(b, sample, m->blame_ns);
    else if (m->gil_waiters && m->event == event_list_first(&b->o.events, EVENT_CLOCK))
        blame_put(b, sample, m->gil_waiters * m->period);
}
