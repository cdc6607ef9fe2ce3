/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler counts from the start of the capture on; the trace has what was added since the record before. */
#include "capture/trace/trace_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "capture/trace/trace_define.h"
#include "capture/trace/wait_sites.h"
#include "formats/base/proportion.h"

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
        uint64_t busy = record.seen - record.idle;
        if (record.idle > record.seen || record.unsampled > busy)
            continue;
        b->events[event].busy += busy;
        b->events[event].own += busy - record.unsampled;
    }
}

uint64_t trace_builder_own_ticks(const struct trace_builder *b, uint32_t event, uint64_t count)
{
    return proportion_up(count, b->events[event].own, b->events[event].busy);
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

/* Whether the thread is of the process's program, and not of one that it ran before. */
static bool is_of(const struct process *p, const struct wire_thread *t)
{
    if (!p->bound)
        return t->exec_generation >= p->expected_generation;
    return p->start_boottime_ns == t->start_boottime_ns && p->exec_generation == t->exec_generation;
}

/* The process of a thread, if it is recorded and runs that program; else NULL. */
static struct process *process_of(struct trace_builder *b, const struct wire_thread *t)
{
    struct process *p = processes_find(b->o.processes, t->tgid);

    return p && processes_wants(b->o.processes, p) && is_of(p, t) ? p : NULL;
}

/* ---- processes that are replaced ---- */

/*
 * A thread that executes a program may be off its CPU for long between the side-band's event, with which the process is
 * replaced, and the end of the call, when the sampler sends its sums. So may threads that the call ends.
 */
void trace_builder_keep_former(struct trace_builder *b, const struct process *p, uint64_t ended_ns)
{
    const struct process_note *n = trace_notes_find(&b->notes, p);

    if (event_list_wait(&b->o.events) == EVENT_NONE || !processes_wants(b->o.processes, p))
        return;
    struct former_process *f = &b->formers[b->next_former++ % FORMERS_MAX];
    f->tgid = p->tgid;
    f->parent_tgid = p->parent_tgid;
    f->id = n && n->record.epoch == b->epoch ? n->record.id : 0;
    f->start_boottime_ns = p->bound ? p->start_boottime_ns : 0;
    f->exec_generation = p->bound ? p->exec_generation : p->expected_generation;
    f->ended_ns = ended_ns;
    memcpy(f->comm, p->comm, sizeof f->comm);
    free(f->program);
    f->program_kind = p->program_kind;
    f->program = p->program ? strdup(p->program) : NULL;
    f->python_version = p->python ? p->python->python.version_hex : 0;
    f->threads.count = 0;
    for (size_t i = 0; f->id && i < p->threads.count && i < n->threads.count; i++) {
        const struct former_thread t = {p->threads.data[i].tid, n->threads.data[i].id};
        if (n->threads.data[i].epoch == b->epoch && !VEC_PUSH(&f->threads, t))
            b->no_memory = true;
    }
}

void trace_builder_forget_formers(struct trace_builder *b)
{
    for (uint32_t i = 0; i < FORMERS_MAX; i++) {
        VEC_DEINIT(&b->formers[i].threads);
        free(b->formers[i].program);
        b->formers[i] = (struct former_process){0};
    }
    b->next_former = 0;
}

/* The former process that the thread is of, the newest if there are several; NULL: none is known. */
static struct former_process *former_of(struct trace_builder *b, const struct wire_thread *t)
{
    for (uint32_t i = 1; i <= FORMERS_MAX; i++) {
        struct former_process *f = &b->formers[(b->next_former - i) % FORMERS_MAX];
        if (f->tgid == t->tgid && (!f->start_boottime_ns || f->start_boottime_ns == t->start_boottime_ns) &&
            (!f->exec_generation || f->exec_generation == t->exec_generation))
            return f;
    }
    return NULL;
}

/* Its record, where nothing was written of it before it was replaced. */
static void define_former(struct trace_builder *b, struct former_process *f, const struct wire_thread *t)
{
    struct trace_process record = {.tgid = f->tgid, .start_boottime_ns = t->start_boottime_ns, .exec_generation = t->exec_generation,
                                   .parent_tgid = f->parent_tgid, .comm = trace_writer_cstr(b->o.writer, f->comm),
                                   .program_kind = f->program_kind, .program = trace_writer_cstr(b->o.writer, f->program),
                                   .python_version = f->python_version};

    trace_writer_put(b->o.writer, TRACE_process, &record);
    struct trace_process_exit end = {.process = record.id, .time_ns = f->ended_ns};
    trace_writer_put(b->o.writer, TRACE_process_exit, &end);
    f->id = record.id;
}

/* Stores the id of a thread of a former process in this epoch. It gets a record where it has none. */
static struct error *find_former_thread(struct trace_builder *b, struct former_process *f, const struct wire_thread *t, uint32_t *id)
{
    for (size_t i = 0; i < f->threads.count; i++) {
        if (f->threads.data[i].tid == t->tid) {
            *id = f->threads.data[i].id;
            return NULL;
        }
    }
    if (!f->id)
        define_former(b, f, t);
    struct trace_thread record = {.process = f->id, .tid = t->tid};
    trace_writer_put(b->o.writer, TRACE_thread, &record);
    *id = record.id;
    const struct former_thread thread = {t->tid, record.id};
    return VEC_PUSH(&f->threads, thread) ? NULL : error_no_memory();
}

/* ---- what is written of a thread ---- */

/* What it is that has no sample yet is known from its thread, too. */
static void bind(struct process *p, const struct wire_thread *t)
{
    if (p->bound || !t->start_boottime_ns || t->exec_generation != p->expected_generation)
        return;
    p->bound = true;
    p->start_boottime_ns = t->start_boottime_ns;
    p->exec_generation = t->exec_generation;
}

/* Stores the thread's id in this epoch; 0: there is no room for it. */
static struct error *find_thread(struct trace_builder *b, struct process *p, const struct wire_thread *t, uint32_t *id)
{
    const struct wire_sample nameless = {.tgid = t->tgid, .tid = t->tid, .time_ns = t->switched_ns};
    struct process_note *n = trace_notes_process(&b->notes, p);
    struct thread *thread = process_thread(p, t->tid);

    if (!n || !thread)
        return error_no_memory();
    bind(p, t);
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

/*
 * Writes the times of a thread of `p`, or of `f`, up to its last switch, or up to `until_ns`; or only counts them, if they are
 * `left_out`.
 */
static struct error *put_times(struct trace_builder *b, struct process *p, struct former_process *f, const struct wire_thread *t,
                               uint64_t until_ns, bool left_out)
{
    uint64_t open_ns = until_ns > t->switched_ns ? until_ns - t->switched_ns : 0, rows[3 * WIRE_WAIT_KINDS];
    struct thread_account *a = account_of(b, t);
    struct trace_thread_time record = {0};

    if (!a)
        return error_no_memory();
    if (!left_out)
        TRY(p ? find_thread(b, p, t, &record.thread) : find_former_thread(b, f, t, &record.thread));
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
    struct former_process *f = p ? NULL : former_of(b, t);

    /* What a thread of a former process does since its last switch, it does as the first thread of the next one. */
    return p || f ? put_times(b, p, f, t, p ? until_ns : 0, false) : NULL;
}

/* Whether the times of a thread that has ended are to be left out: of one process there may be only so many. */
static bool are_refused(struct trace_builder *b, const struct process *p, const struct wire_thread *t)
{
    return trace_writer_epoch_full(b->o.writer) ||
           (p && !quota_take(b->o.processes->quotas, p->slot, QUOTA_thread_times, 1, t->switched_ns));
}

struct error *trace_builder_thread_ended(struct trace_builder *b, const struct wire_thread *t)
{
    const struct process *now = processes_find(b->o.processes, t->tgid);
    struct process *p = process_of(b, t);
    struct former_process *f = p ? NULL : former_of(b, t);
    bool is_late = !p && !f && now && now->selected && !is_of(now, t);

    b->losses[LOSS_thread_late] += is_late;
    if (p || f || is_late)
        TRY(put_times(b, p, f, t, 0, is_late || are_refused(b, now, t)));
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
