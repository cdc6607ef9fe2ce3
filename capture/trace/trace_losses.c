/* SPDX-License-Identifier: Apache-2.0 */
/* Losses are counted as totals; the trace has what each second added. */
#include "capture/trace/trace_losses.h"

#include <stdlib.h>
#include <string.h>

#include "capture/host/quotas.h"
#include "capture/trace/trace_define.h"
#include "capture/trace/trace_parts.h"

/* How many refusals are remembered for the summary. */
#define REFUSALS_MAX 256
/* Processes that are named for their refusals in one second; those of others are counted without a name. */
#define NAMED_MAX 16

const uint64_t *trace_builder_loss_counts(const struct trace_builder *b)
{
    return b->losses;
}

void trace_builder_event_losses(const struct trace_builder *b, uint32_t event, uint64_t losses[LOSS_LIMIT])
{
    losses[LOSS_process_gone] += b->events[event].process_gone;
    losses[LOSS_file_full] += b->events[event].file_full;
    losses[LOSS_epoch_full] += b->events[event].epoch_full;
    losses[LOSS_reader_slow] += b->events[event].reader_slow;
    losses[LOSS_growth_owed] += b->events[event].unread_bytes;
}

/* Whether a record that was just put was left out. */
static bool was_left_out(const struct trace_builder *b)
{
    return trace_writer_full(b->o.writer) || trace_writer_epoch_full(b->o.writer);
}

/* Writes the losses since `*written`. False when there is no room; the file's last records will have them then. */
static bool put_loss(struct trace_builder *b, uint64_t time_ns, uint32_t event, uint32_t reason, uint64_t count,
                     uint64_t *written)
{
    if (count <= *written)
        return true;
    struct trace_loss record = {
        .time_ns = time_ns,
        .reason = reason,
        .name = trace_writer_cstr(b->o.writer, trace_loss_name(reason)),
        .count = count - *written,
        .event = event,
    };
    trace_writer_put(b->o.writer, TRACE_loss, &record);
    if (was_left_out(b))
        return false;
    *written = count;
    return true;
}

void trace_builder_losses(struct trace_builder *b, uint64_t time_ns, const uint64_t losses[LOSS_LIMIT],
                          const uint64_t event_losses[WIRE_EVENT_MAX][LOSS_LIMIT])
{
    for (uint32_t i = 0; i < LOSS_LIMIT; i++) {
        uint64_t rest = losses[i];
        if (i == LOSS_complete)
            continue;
        for (uint32_t k = 0; k < b->o.events.count; k++) {
            rest -= event_losses[k][i];
            if (!put_loss(b, time_ns, b->events[k].trace_id, i, event_losses[k][i], &b->events[k].written[i]))
                return;
        }
        if (!put_loss(b, time_ns, 0, i, rest, &b->written[i]))
            return;
    }
}

static struct refusal *find_refusal(struct trace_builder *b, const struct process *p, uint32_t reason)
{
    for (size_t i = 0; i < b->refusals.count; i++) {
        struct refusal *r = &b->refusals.data[i];
        if (r->tgid == p->tgid && r->start_boottime_ns == p->start_boottime_ns &&
            r->exec_generation == p->exec_generation && r->reason == reason)
            return r;
    }
    return NULL;
}

/* Remembers a refusal for the summary. With very many the smallest give way, so that decoys hide nobody. */
static void remember(struct trace_builder *b, const struct process *p, uint32_t reason, uint64_t count)
{
    struct refusal *r = find_refusal(b, p, reason);

    if (r) {
        r->count += count;
        return;
    }
    struct refusal first = {.tgid = p->tgid, .start_boottime_ns = p->start_boottime_ns,
                            .exec_generation = p->exec_generation, .reason = reason, .count = count};
    memcpy(first.comm, p->comm, sizeof first.comm);
    if (b->refusals.count < REFUSALS_MAX) {
        if (!VEC_PUSH(&b->refusals, first))
            b->no_memory = true;
        return;
    }
    r = &b->refusals.data[0];
    for (size_t i = 1; i < b->refusals.count; i++)
        r = b->refusals.data[i].count < r->count ? &b->refusals.data[i] : r;
    if (r->count < count)
        *r = first;
}

void trace_builder_refused(const struct trace_builder *b, uint64_t counts[QUOTA_COUNT])
{
    memcpy(counts, b->refused, sizeof b->refused);
}

static int compare_refusals(const void *a, const void *b)
{
    const struct refusal *x = a, *y = b;

    return x->count != y->count ? (x->count > y->count ? -1 : 1) : x->tgid != y->tgid ? (x->tgid < y->tgid ? -1 : 1) : 0;
}

const struct refusal *trace_builder_most_refused(struct trace_builder *b, uint32_t *count)
{
    *count = (uint32_t)b->refusals.count;
    if (*count)
        qsort(b->refusals.data, *count, sizeof *b->refusals.data, compare_refusals);
    return b->refusals.data;
}

/* Without the process's note the loss is counted as nobody's in particular. */
static void put_refusals(struct trace_builder *b, const struct process *p, struct process_note *n,
                         const uint64_t counts[QUOTA_COUNT], uint64_t time_ns)
{
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        uint32_t reason = quota_loss((enum quota)i);
        if (!counts[i])
            continue;
        b->losses[reason] += counts[i];
        b->refused[i] += counts[i];
        remember(b, p, reason, counts[i]);
        if (!n)
            continue; /* trace_builder_losses() writes it */
        struct trace_loss record = {
            .time_ns = time_ns,
            .process = trace_name_process(b, n),
            .reason = reason,
            .name = trace_writer_cstr(b->o.writer, trace_loss_name(reason)),
            .count = counts[i],
        };
        trace_writer_put(b->o.writer, TRACE_loss, &record);
        if (!was_left_out(b))
            b->written[reason] += counts[i];
    }
}

void trace_refusals_end(struct trace_builder *b, struct process *p, uint64_t time_ns)
{
    uint64_t counts[QUOTA_COUNT];

    if (b->begun && quotas_refused(b->o.processes->quotas, p->slot, counts))
        put_refusals(b, p, trace_notes_find(&b->notes, p), counts, time_ns);
}

void trace_builder_refusals(struct trace_builder *b, uint64_t time_ns)
{
    struct quotas *quotas = b->o.processes->quotas;
    uint64_t counts[QUOTA_COUNT];
    uint32_t cursor = 0, named = 0;
    struct process *p;

    while (quotas_any_refused(quotas) && (p = processes_next(b->o.processes, &cursor))) {
        if (quotas_refused(quotas, p->slot, counts))
            put_refusals(b, p, named++ < NAMED_MAX ? trace_notes_process(&b->notes, p) : NULL, counts, time_ns);
    }
}
