/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler counts from the start of the capture on; the trace has what was added since the record before. */
#include "capture/trace/trace_accounts.h"

#include <string.h>

#include "capture/trace/trace_define.h"
#include "capture/trace/wait_sites.h"

void trace_builder_ticks(struct trace_builder *b, uint32_t event, uint64_t time_ns, const struct sampler_ticks *ticks,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct trace_ticks record = {
            .event = b->events[event].trace_id,
            .cpu = (uint32_t)ticks[i].cpu,
            .time_ns = time_ns,
            .count = ticks[i].event.count,
            .enabled_ns = ticks[i].event.enabled_ns,
            .running_ns = ticks[i].event.running_ns,
            .seen = ticks[i].seen,
            .idle = ticks[i].seen_idle,
            .unsampled = ticks[i].seen_others,
            .thinned = ticks[i].thinned,
        };
        trace_writer_put(b->o.writer, TRACE_ticks, &record);
    }
}

/* ---- the time of threads ---- */

/* Sums only grow, so smaller ones are those of another thread, or of another program. */
static bool is_other(const struct thread_account *a, const struct wire_thread *t)
{
    return a->exec_generation != t->exec_generation || a->start_boottime_ns != t->start_boottime_ns ||
           a->since_ns > t->since_ns || a->on_cpu_ns > t->on_cpu_ns;
}

/* What was written of a thread so far; nothing at first. NULL: out of memory. */
static struct thread_account *account_of(struct trace_builder *b, const struct wire_thread *t)
{
    const struct thread_account first = {.tid = t->tid, .start_boottime_ns = t->start_boottime_ns,
                                         .exec_generation = t->exec_generation, .since_ns = t->since_ns,
                                         .until_ns = t->since_ns};
    const uint64_t *known = map_get(&b->account_of, t->tid);

    if (!known) {
        if (!VEC_PUSH(&b->accounts, first) || !map_set(&b->account_of, t->tid, b->accounts.count - 1))
            return NULL;
        return &b->accounts.data[b->accounts.count - 1];
    }
    struct thread_account *a = &b->accounts.data[*known];
    if (is_other(a, t))
        *a = first;
    return a;
}

static void forget_account(struct trace_builder *b, uint32_t tid)
{
    const uint64_t *known = map_get(&b->account_of, tid);

    if (!known)
        return;
    uint64_t at = *known, last = b->accounts.count - 1;
    b->accounts.data[at] = b->accounts.data[last];
    *map_get(&b->account_of, b->accounts.data[at].tid) = at;
    b->accounts.count--;
    map_remove(&b->account_of, tid);
}

/* The process of a thread, if it is recorded and runs that program; else NULL. */
static struct process *process_of(struct trace_builder *b, const struct wire_thread *t)
{
    struct process *p = processes_find(b->o.processes, t->tgid);

    if (!p || !processes_wants(b->o.processes, p) ||
        (p->bound && (p->start_boottime_ns != t->start_boottime_ns || p->exec_generation != t->exec_generation)))
        return NULL;
    return p;
}

/* Stores the thread's id in this epoch; 0: there is no room for it. */
static struct error *find_thread(struct trace_builder *b, struct process *p, const struct wire_thread *t, uint32_t *id)
{
    const struct wire_sample nameless = {.tgid = t->tgid, .tid = t->tid, .time_ns = t->switched_ns};
    struct process_note *n = trace_notes_process(&b->notes, p);
    struct thread *thread = process_thread(p, t->tid);

    if (!n || !thread)
        return error_no_memory();
    trace_define_process(b, n);
    return trace_define_thread(b, n, thread, &nameless, id);
}

/*
 * The sums by now, with the wait that is open. One that was written while it was open may have been in the run queue by
 * then: what was too much is taken off the time there.
 */
static void sum_waits(const struct thread_account *a, const struct wire_thread *t, uint64_t open_ns,
                      struct wire_wait_sum sums[WIRE_WAIT_KINDS])
{
    struct wire_wait_sum *queue = &sums[WIRE_WAIT_RUN_QUEUE];
    uint64_t ahead_ns = 0;

    memcpy(sums, t->waits, sizeof t->waits);
    if (!t->runs)
        sums[t->kind & (WIRE_WAIT_KINDS - 1)].ns += open_ns;
    for (uint32_t kind = 1; kind < WIRE_WAIT_KINDS; kind++) {
        if (sums[kind].ns < a->waits[kind].ns && kind != WIRE_WAIT_RUN_QUEUE) {
            ahead_ns += a->waits[kind].ns - sums[kind].ns;
            sums[kind].ns = a->waits[kind].ns;
        }
    }
    queue->ns = queue->ns > a->waits[WIRE_WAIT_RUN_QUEUE].ns + ahead_ns ? queue->ns - ahead_ns : a->waits[WIRE_WAIT_RUN_QUEUE].ns;
}

/* Puts what the thread did since its account was written last into the account, as differences into `rows`. */
static uint32_t add_waits(struct thread_account *a, const struct wire_thread *t, uint64_t open_ns,
                          uint64_t rows[3 * WIRE_WAIT_KINDS])
{
    struct wire_wait_sum sums[WIRE_WAIT_KINDS];
    uint32_t count = 0;

    sum_waits(a, t, open_ns, sums);
    for (uint32_t kind = 1; kind < WIRE_WAIT_KINDS; kind++) {
        struct wire_wait_sum now = sums[kind];
        if (now.ns > a->waits[kind].ns || now.count > a->waits[kind].count) {
            uint64_t *row = &rows[3 * count++];
            row[0] = kind;
            row[1] = now.ns - a->waits[kind].ns;
            row[2] = now.count - a->waits[kind].count;
            a->waits[kind] = now;
        }
    }
    return count;
}

/* Writes the times of a thread up to its last switch, or up to `until_ns`; or only counts them, if they are `left_out`. */
static struct error *put_times(struct trace_builder *b, struct process *p, const struct wire_thread *t, uint64_t until_ns,
                               bool left_out)
{
    uint64_t open_ns = until_ns > t->switched_ns ? until_ns - t->switched_ns : 0, rows[3 * WIRE_WAIT_KINDS];
    struct thread_account *a = account_of(b, t);
    struct trace_thread_time record = {0};

    if (!a)
        return error_no_memory();
    if (!left_out)
        TRY(find_thread(b, p, t, &record.thread));
    if (!left_out && !record.thread)
        return NULL;
    record.since_ns = a->until_ns + (t->since_ns - a->since_ns);
    record.until_ns = t->switched_ns + open_ns;
    record.on_cpu_ns = t->on_cpu_ns + (t->runs ? open_ns : 0) - a->on_cpu_ns;
    record.waits = (struct trace_list){rows, add_waits(a, t, open_ns, rows)};
    if (record.until_ns <= record.since_ns)
        return NULL;
    a->since_ns = t->since_ns;
    a->until_ns = record.until_ns;
    a->on_cpu_ns += record.on_cpu_ns;
    for (uint64_t i = 0; i < record.waits.count; i++)
        b->waited_ns += rows[3 * i + 1];
    if (!left_out)
        trace_writer_put(b->o.writer, TRACE_thread_time, &record);
    return NULL;
}

struct error *trace_builder_thread(struct trace_builder *b, const struct wire_thread *t, uint64_t until_ns)
{
    struct process *p = process_of(b, t);

    return p ? put_times(b, p, t, until_ns, false) : NULL;
}

struct error *trace_builder_thread_ended(struct trace_builder *b, const struct wire_thread *t)
{
    struct process *p = process_of(b, t);

    if (p)
        TRY(put_times(b, p, t, 0, trace_writer_epoch_full(b->o.writer) || !quota_take(b->o.processes->quotas, p->slot, QUOTA_thread_times, 1, t->switched_ns)));
    for (uint32_t i = 0; i < WIRE_NEAR_SITES; i++)
        trace_builder_owed(b, t->near[i].key, &t->near[i].site, t->switched_ns);
    forget_account(b, t->tid);
    return NULL;
}

struct error *trace_builder_thread_state(struct trace_builder *b, struct process *p, uint32_t tid, uint64_t time_ns,
                                         enum trace_kernel_state state, uint64_t since_ns)
{
    const struct wire_thread thread = {.tgid = p->tgid, .tid = tid, .switched_ns = time_ns};
    struct trace_thread_state record = {.time_ns = time_ns, .state = state, .since_ns = since_ns};

    TRY(find_thread(b, p, &thread, &record.thread));
    if (record.thread)
        trace_writer_put(b->o.writer, TRACE_thread_state, &record);
    return NULL;
}

void trace_builder_count_unwritten(struct trace_builder *b)
{
    uint32_t event = event_list_wait(&b->o.events);

    if (event == EVENT_NONE)
        return;
    uint64_t written_ns = b->events[event].value, period = b->events[event].period;
    b->losses[LOSS_wait_unwritten] = b->waited_ns > written_ns ? (b->waited_ns - written_ns) / period : 0;
}
