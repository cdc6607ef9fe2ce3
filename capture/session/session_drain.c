/* SPDX-License-Identifier: Apache-2.0 */
/* Messages are told apart once, when they arrive: the queue keeps their kind. */
#include "capture/session/session_drain.h"

#include <string.h>

#include "capture/process/gil_learn.h"
#include "capture/trace/trace_accounts.h"
#include "capture/trace/trace_memory.h"
#include "capture/trace/trace_sources.h"

/* A wait that lasts is written in pieces of this length: in the trace soon after its time, and few all the same. */
#define PIECE_NS WIRE_WAIT_LONG_NS
/* A reader shows each second by itself: with it goes the piece of a wait that has lasted for so long in it. */
#define PIECE_SHOWN_NS (PIECE_NS / 4)
/* A flush that is due so soon follows this drain. */
#define FLUSH_SOON_NS (20 * NS_PER_MS)
/* So do the waits of asyncio tasks, each of which is a sample: of many tasks seldom. */
#define TASK_SHOWN_NS NS_PER_MS

/* QUEUED_NEWS: a side-band event that matters, as far as was known when it arrived; QUEUED_SIDEBAND: another one. */
enum queued { QUEUED_SAMPLE, QUEUED_CODE, QUEUED_SIDEBAND, QUEUED_NEWS, QUEUED_THREAD, QUEUED_UNMAP };

static struct error *queue_sample(struct session *s, const struct wire_sample *sample, uint32_t len)
{
    return queue_add(s->queue, sample->time_ns, QUEUED_SAMPLE, sample, len);
}

uint64_t session_blame(void *session, const struct wire_sample *sample)
{
    struct session *s = session;

    return sampler_blame(s->sampler, sample->tid, sample->time_ns, s->end_ns ? s->end_ns : now_ns());
}

static struct error *on_ended(void *session, const struct wire_thread *thread)
{
    struct session *s = session;

    waits_forget(s->waits, thread->tid);
    return queue_add(s->queue, thread->switched_ns, QUEUED_THREAD, thread, sizeof *thread);
}

static struct error *on_message(void *ctx, const void *message, uint32_t len)
{
    struct session *s = ctx;
    const struct wire_sample *sample = message;
    const struct wire_code *code = message;
    const struct wire_wait *wait = message;
    const struct wire_thread *thread = message;
    const struct wire_unmap *unmap = message;

    s->drained_bytes += len;
    if (s->census && len >= sizeof *sample && sample->type == WIRE_SAMPLE)
        census_saw(s->census, sample);
    if (len >= sizeof *sample && sample->type == WIRE_SAMPLE)
        return sample->flags & WIRE_WAITS ? waits_begin(s->waits, sample, len) : queue_sample(s, sample, len);
    if (len >= sizeof *wait && wait->type == WIRE_WAIT)
        return waits_end(s->waits, wait);
    if (len >= sizeof *thread && thread->type == WIRE_THREAD)
        return on_ended(s, thread);
    if (len >= sizeof *unmap && unmap->type == WIRE_UNMAP)
        return queue_add(s->queue, unmap->time_ns, QUEUED_UNMAP, unmap, sizeof *unmap);
    if (len >= sizeof *code && code->type == WIRE_CODE)
        return queue_add(s->queue, code->time_ns, QUEUED_CODE, message, len);
    return error_create(ERROR_FORMAT, "the sampler sent a message of an unknown kind");
}

static struct error *on_sideband(void *ctx, const struct sideband_event *event)
{
    struct session *s = ctx;
    /* The text is the last member: what is behind its end need not be copied. */
    uint32_t len = (uint32_t)(offsetof(struct sideband_event, text) + strlen(event->text) + 1);

    bool matters = processes_matters(s->processes, event);

    s->news_waiting += matters;
    s->others_drained |= !matters;
    return queue_add(s->queue, event->time_ns, matters ? QUEUED_NEWS : QUEUED_SIDEBAND, event, len);
}

static struct error *learn_gil(struct session *s, const struct wire_sample *sample)
{
    struct process *p = sample->futex ? processes_find(s->processes, sample->tgid) : NULL;

    return p && gil_learn(p, sample) ? processes_configure(s->processes, p) : NULL;
}

static struct error *put_sample(struct session *s, const struct wire_sample *sample, uint32_t len)
{
    TRY(trace_builder_sample(s->builder, sample, len));
    return learn_gil(s, sample);
}

struct error *session_growth(void *session, const struct wire_sample *sample, uint32_t len_bytes)
{
    struct session *s = session;

    return trace_builder_sample(s->builder, sample, len_bytes);
}

static struct error *on_sample(struct session *s, const struct wire_sample *sample, uint32_t len)
{
    return s->growth && sample->event == s->growth_event ? growth_add(s->growth, sample, len) : put_sample(s, sample, len);
}

/* What a process was given is to be written before it becomes another one, or is forgotten. */
static struct error *settle_growth(struct session *s, const struct sideband_event *event)
{
    bool ends = event->kind == SIDEBAND_EXEC || (event->kind == SIDEBAND_EXIT && event->tid == event->tgid);

    return s->growth && ends ? growth_settle_process(s->growth, event->tgid) : NULL;
}

static struct error *apply(struct session *s, const void *data, uint32_t len)
{
    struct sideband_event event;

    memcpy(&event, data, len);
    TRY(settle_growth(s, &event));
    if (processes_matters(s->processes, &event))
        s->news_ns = event.time_ns;
    return processes_apply(s->processes, &event);
}

static struct error *on_queued(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len)
{
    struct session *s = ctx;

    if (trace_writer_epoch_due(s->writer, time_ns))
        TRY(trace_builder_begin_epoch(s->builder, time_ns));
    if (kind == QUEUED_SIDEBAND || kind == QUEUED_NEWS) {
        s->news_waiting -= kind == QUEUED_NEWS;
        return apply(s, data, len);
    }
    /* What the side-band has reported goes to the sampler before time is spent on samples. */
    if (processes_need_publishing(s->processes))
        TRY(processes_publish(s->processes, now_ns()));
    if (kind == QUEUED_SAMPLE)
        return on_sample(s, data, len);
    if (kind == QUEUED_UNMAP)
        return growth_unmap(s->growth, data);
    if (kind == QUEUED_THREAD)
        return trace_builder_thread_ended(s->builder, data);
    s->news_ns = time_ns;
    return trace_builder_code(s->builder, data, len);
}

/* What a wait has become. The backend without BPF reads code objects from the process: at once, while they are there. */
struct error *session_queue_wait(void *session, const struct wire_sample *sample, uint32_t len_bytes)
{
    struct session *s = session;

    return s->proc ? on_queued(s, QUEUED_SAMPLE, sample->time_ns, sample, len_bytes) : queue_sample(s, sample, len_bytes);
}

/* Of a wait the part that is known already is written; more of it follows while it lasts. */
static struct error *begin_seen_wait(struct session *s, const struct wire_sample *sample, uint32_t len)
{
    TRY(waits_begin(s->waits, sample, len));
    return waits_piece(s->waits, sample->tid, sample->time_ns + sample->period);
}

static struct error *on_proc_message(void *ctx, const void *message, uint32_t len)
{
    struct session *s = ctx;
    const struct wire_sample *sample = message;
    const struct wire_wait *wait = message;
    const struct wire_thread *thread = message;

    switch (sample->type) {
    case WIRE_SAMPLE:
        if (s->census)
            census_saw(s->census, sample);
        return sample->flags & WIRE_WAITS ? begin_seen_wait(s, sample, len)
                                          : on_queued(s, QUEUED_SAMPLE, sample->time_ns, sample, len);
    case WIRE_WAIT:
        TRY(waits_piece(s->waits, wait->tid, wait->in_ns));
        waits_forget(s->waits, wait->tid);
        return NULL;
    default:
        return on_queued(s, QUEUED_THREAD, thread->switched_ns, thread, len);
    }
}

/* Whether what is written now is soon seen by a reader. */
static bool is_shown_soon(const struct session *s)
{
    return session_has_reader(s) && now_ns() + FLUSH_SOON_NS >= s->flushed_ns + FLUSH_NS;
}

static uint64_t piece_ns(const struct session *s)
{
    return s->end_ns ? 0 : is_shown_soon(s) ? PIECE_SHOWN_NS : PIECE_NS;
}

/* What they have waited up to `until_ns` is still recorded in this drain. */
static struct error *look_at_tasks(struct session *s, uint64_t until_ns)
{
    if (!s->tasks || s->end_ns)
        return NULL;
    TRY(task_looks_run(s->tasks, now_ns()));
    if (!is_shown_soon(s) || now_ns() < s->tasks_shown_ns + task_looks_counts(s->tasks).waiting * TASK_SHOWN_NS)
        return NULL;
    s->tasks_shown_ns = now_ns();
    return task_looks_cut(s->tasks, until_ns);
}

/* One look at all threads. Waits that go on are written in parts, as those that the sampler reports are. */
static struct error *look(struct session *s)
{
    TRY(proc_sampler_round(s->proc, on_proc_message, s));
    trace_builder_serve_sources(s->builder);
    TRY(look_at_tasks(s, now_ns()));
    return waits_pieces(s->waits, proc_sampler_looked_ns(s->proc), piece_ns(s));
}

/*
 * Records what is due in the order of time. As long as the kernel's names are being read, which takes a moment at the start,
 * all of it waits: the names come with the first sample, and meanwhile tables are laid in, and modules identified.
 */
static struct error *record_queued(struct session *s, uint64_t until_ns)
{
    if (!s->end_ns && kallsyms_is_being_read(s->kallsyms))
        return NULL;
    TRY(queue_run(s->queue, until_ns, on_queued, s));
    if (!s->growth)
        return NULL;
    return s->end_ns ? growth_settle_process(s->growth, UINT32_MAX) : growth_settle(s->growth, until_ns);
}

struct error *session_drain(struct session *s, uint64_t until_ns)
{
    TRY(processes_take_modules(s->processes));
    if (s->proc)
        return look(s);
    TRY(sideband_drain(s->sideband, on_sideband, s));
    s->drained_bytes = 0;
    TRY(sampler_drain(s->sampler, on_message, s));
    if (s->drained_bytes > s->drained_most_bytes)
        s->drained_most_bytes = s->drained_bytes;
    TRY(sampler_ended_threads(s->sampler, on_ended, s));
    if (s->sleepers && !s->end_ns)
        TRY(sleepers_run(s->sleepers, now_ns()));
    TRY(look_at_tasks(s, until_ns));
    TRY(waits_pieces(s->waits, s->end_ns ? s->end_ns : until_ns, piece_ns(s)));
    TRY(record_queued(s, until_ns));
    TRY(trace_builder_read_memory(s->builder, now_ns()));
    trace_builder_serve_sources(s->builder);
    if (s->tables)
        TRY(tables_poll(s->tables, now_ns()));
    return processes_publish(s->processes, now_ns());
}

struct error *session_catch_up(struct session *s, uint64_t until_ns)
{
    TRY(processes_take_modules(s->processes));
    TRY(sideband_drain(s->sideband, on_sideband, s));
    TRY(queue_run(s->queue, until_ns, on_queued, s));
    return processes_publish(s->processes, now_ns());
}

struct error *session_cut_waits(struct session *s, uint64_t time_ns)
{
    TRY(waits_cut(s->waits, time_ns, PIECE_NS));
    if (s->tasks)
        TRY(task_looks_cut(s->tasks, time_ns));
    TRY(queue_run(s->queue, time_ns, on_queued, s));
    return s->growth ? growth_settle_process(s->growth, UINT32_MAX) : NULL;
}
