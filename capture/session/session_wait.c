/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a capture has something to do next: how long samples and news may gather before
 * the ring is drained and both are worked off together.
 */
#include "capture/session/session_wait.h"

/*
 * Between two drainings of the ring, which wakes us besides when it fills. Nothing is woken for a sample; at low rates
 * waking, with caches that have gone cold, is what costs most.
 */
#define DRAIN_NS (100 * NS_PER_MS)
#define DRAIN_SLOW_NS (250 * NS_PER_MS)
#define DRAIN_SLOW_HZ 300
/*
 * At low rates, where for CALM_NS no process or thread has come or gone, no library and no code object was new, once a
 * second does, when a block is written. Otherwise not: what the sampler could not read of a code object is read from
 * the process, names of threads too, and both may be gone soon.
 */
#define DRAIN_CALM_NS NS_PER_S
#define CALM_NS (2 * NS_PER_S)
/*
 * After news from the side-band (an exec, a library mapped) not sooner than this: busy hosts have thousands a second.
 * While a process that is sampled, or was asked for, loads its libraries, sooner: until its interpreter is known, it is
 * sampled without Python frames.
 */
#define NEWS_NS (8 * NS_PER_MS)
#define NEWS_LOADING_NS (2 * NS_PER_MS)
#define LOADING_NS (500 * NS_PER_MS)

/* How long news are gathered. A command that was just started is about to load its interpreter: that is not put off. */
uint64_t session_news_ns(const struct session *s, uint64_t time_ns)
{
    struct processes_counts c = processes_counts(s->processes);

    if (s->command.pid > 0 && !c.seen_python && time_ns < s->command.started_ns + LOADING_NS)
        return EVENT_DELAY_NS;
    return time_ns < c.loaded_ns + LOADING_NS ? NEWS_LOADING_NS : NEWS_NS;
}

/* Can an event bring more samples than DRAIN_SLOW_HZ? How many a counter or what is counted brings is not known. */
static bool is_fast(const struct session_options *o)
{
    for (uint32_t i = 0; i < o->events.count; i++) {
        const struct event *event = &o->events.list[i];
        if (event->source->kind == EVENT_TASK)
            continue; /* nothing comes by the ring */
        if (event->frequency_hz > DRAIN_SLOW_HZ)
            return true;
        if (!event->frequency_hz && (event->source->kind != EVENT_CLOCK || event->period < NS_PER_S / DRAIN_SLOW_HZ))
            return true;
    }
    return false;
}

/* How long samples are gathered. */
static uint64_t period_ns(const struct session *s, uint64_t time_ns)
{
    if (s->proc)
        return proc_sampler_wait_ns(s->proc);
    if (is_fast(s->o))
        return DRAIN_NS;
    return time_ns < s->news_ns + CALM_NS ? DRAIN_SLOW_NS : DRAIN_CALM_NS;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t session_due_ns(const struct session *s, uint64_t last_ns, uint64_t time_ns, bool terminal)
{
    const struct session_options *o = s->o;
    uint64_t due = last_ns + period_ns(s, time_ns);

    if (o->duration_ns)
        due = least(due, s->start_ns + o->duration_ns);
    if (s->tasks)
        due = least(due, task_looks_due(s->tasks));
    if (s->proc) /* each drain is a sample, and they come often */
        return due;
    /* News that have not settled yet wait only a moment; samples, of which there always are some, do not hurry. */
    if (s->news_waiting)
        due = least(due, last_ns + session_news_ns(s, time_ns));
    due = least(due, processes_rescan_due(s->processes));
    due = least(due, processes_publish_due(s->processes));
    if (s->sleepers)
        due = least(due, sleepers_due(s->sleepers));
    if (o->rotate_ns)
        due = least(due, s->file_start_ns + o->rotate_ns);
    if (terminal)
        due = least(due, s->status_ns + STATUS_NS);
    return least(due, s->flushed_ns + FLUSH_NS);
}
