/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a capture has something to do next: how long samples and news may gather before
 * the ring is drained and both are worked off together.
 */
#include "capture/session/session_wait.h"

#include <errno.h>
#include <time.h>

#include "capture/session/flight.h"

/*
 * Between two drainings of the ring, which wakes us besides when it fills. Nothing is woken for a sample; at low rates
 * waking, with caches that have gone cold, is what costs most.
 */
#define DRAIN_NS (100 * NS_PER_MS)
#define DRAIN_SLOW_NS (250 * NS_PER_MS)
#define DRAIN_SLOW_HZ 300
/*
 * Where for CALM_NS no process or thread has come or gone, no library and no code object was new, once a second does at low
 * rates, when a block is written, and DRAIN_SLOW_NS at high ones. Otherwise not: what the sampler could not read of a code
 * object is read from the process, names of threads too, and both may be gone soon.
 */
#define DRAIN_CALM_NS NS_PER_S
#define CALM_NS (2 * NS_PER_S)
/* Where the recording ends as soon as each thread has a stack. */
#define DRAIN_AT_ONCE_NS (5 * NS_PER_MS)
/*
 * After news from the side-band (an exec, a library mapped) not sooner than this: busy hosts have thousands a second.
 * While a process that is sampled, or was asked for, loads its libraries, sooner: until its interpreter is known, it is
 * sampled without Python frames.
 */
#define NEWS_NS (8 * NS_PER_MS)
#define NEWS_LOADING_NS (2 * NS_PER_MS)
#define LOADING_NS (500 * NS_PER_MS)
/*
 * On a host where programs start and end all the time, the side-band wakes us for nothing. When it did, we do not listen to
 * it for NEWS_NS, and for twice as long each time that again it was for nothing, up to this. Of forks of processes that are
 * sampled, and of samples after an exec, the sampler tells us itself. After news it is NEWS_NS for a while: a child may be
 * about to execute another program. So it is where all processes of the host are recorded: each may become a Python.
 * Where so much comes that it might have no room meanwhile, it is NEWS_NS again.
 * A library that a process loads meanwhile is told late: samples in it are unwound from a copy of their stack then, or cut
 * where another library was before (process_trusted_frames()).
 */
#define DEAF_MAX_NS (250 * NS_PER_MS)
/* The same while a process that was asked for is no Python, or there are too many to look at each. */
#define DEAF_LOOKING_NS (24 * NS_PER_MS)

/* How often to ask whether the kernel's names have been read, for which samples wait. */
#define NAMES_NS (10 * NS_PER_MS)

/* How long news are gathered. A command that was just started is about to load its interpreter: that is not put off. */
uint64_t session_news_ns(const struct session *s, uint64_t time_ns)
{
    struct processes_counts c = processes_counts(s->processes);

    if (s->command.pid > 0 && !c.seen_python && time_ns < s->command.started_ns + LOADING_NS)
        return EVENT_DELAY_NS;
    return time_ns < c.loaded_ns + LOADING_NS ? NEWS_LOADING_NS : NEWS_NS;
}

/* How often samples come. How many a counter, or what is counted, brings is not known: that is RATE_UNKNOWN. */
enum rate { RATE_SLOW, RATE_FAST, RATE_UNKNOWN };

static enum rate rate_of(const struct session_options *o)
{
    enum rate rate = RATE_SLOW;

    for (uint32_t i = 0; i < o->events.count; i++) {
        const struct event *event = &o->events.list[i];
        if (event->source->kind == EVENT_TASK)
            continue; /* nothing comes by the ring */
        if (!event->frequency_hz && event->source->kind != EVENT_CLOCK)
            return RATE_UNKNOWN;
        if (event->frequency_hz > DRAIN_SLOW_HZ || (!event->frequency_hz && event->period < NS_PER_S / DRAIN_SLOW_HZ))
            rate = RATE_FAST;
    }
    return rate;
}

/* How long samples are gathered. */
static uint64_t period_ns(const struct session *s, uint64_t time_ns)
{
    if (s->proc)
        return proc_sampler_wait_ns(s->proc);
    enum rate rate = rate_of(s->o);
    if (s->census)
        return DRAIN_AT_ONCE_NS;
    bool calm = time_ns >= s->news_ns + CALM_NS;
    if (rate == RATE_SLOW)
        return calm ? DRAIN_CALM_NS : DRAIN_SLOW_NS;
    return rate == RATE_FAST && calm ? DRAIN_SLOW_NS : DRAIN_NS;
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
    due = least(due, when_watch_due_ns(s->when));
    if (s->proc) /* each drain is a sample, and they come often */
        return due;
    /* News that have not settled yet wait only a moment; samples, of which there always are some, do not hurry. */
    if (s->news_waiting)
        due = least(due, last_ns + session_news_ns(s, time_ns));
    if (kallsyms_is_being_read(s->kallsyms))
        due = least(due, last_ns + NAMES_NS);
    due = least(due, processes_rescan_due(s->processes));
    due = least(due, processes_publish_due(s->processes));
    if (s->sleepers)
        due = least(due, sleepers_due(s->sleepers));
    if (o->rotate_ns)
        due = least(due, s->file_start_ns + o->rotate_ns);
    due = least(due, flight_due_ns(s));
    if (terminal)
        due = least(due, s->status_ns + STATUS_NS);
    return least(due, s->flushed_ns + FLUSH_NS);
}

/* ---- sleeping ---- */

static bool matters(void *session, const struct sideband_event *event)
{
    struct session *s = session;

    return processes_matters(s->processes, event);
}

/* How long not to listen to the side-band, after it brought nothing. */
static uint64_t next_deaf_ns(const struct session *s, uint64_t time_ns)
{
    uint64_t most = session_news_ns(s, time_ns);

    if (most == NEWS_NS && !s->processes->options.whole_host && time_ns > s->news_ns + LOADING_NS)
        most = processes_are_known(s->processes) ? DEAF_MAX_NS : DEAF_LOOKING_NS;
    /* It was quiet for a while: so it may be again. */
    uint64_t next = !s->deaf_ns || time_ns > s->deaf_until_ns + s->deaf_ns ? NEWS_NS : 2 * s->deaf_ns;
    return least(next, most);
}

/*
 * After a drain that found only events of others, while we did not listen for as long as may be: the next of them would wake
 * us at once. They are looked at in the same time again.
 */
static void stay_deaf(struct session *s, uint64_t time_ns)
{
    if (s->others_drained && sideband_is_busy(s->sideband))
        s->deaf_ns = least(s->deaf_ns, session_news_ns(s, time_ns));
    else if (s->others_drained && s->deaf_ns && !s->news_waiting && s->deaf_ns == next_deaf_ns(s, time_ns))
        s->deaf_until_ns = time_ns + s->deaf_ns;
    s->others_drained = false;
}

/* Whether the side-band has something that is worth a drain. */
static bool has_news(struct session *s, uint64_t time_ns)
{
    enum sideband_news news = sideband_look(s->sideband, matters, s);

    if (news == SIDEBAND_NEWS)
        s->deaf_ns = 0;
    if (news == SIDEBAND_OTHERS) {
        s->deaf_ns = sideband_is_busy(s->sideband) ? session_news_ns(s, time_ns) : next_deaf_ns(s, time_ns);
        s->deaf_until_ns = time_ns + s->deaf_ns;
    }
    return news == SIDEBAND_NEWS;
}

/* The side-band of a CPU that is gone would wake us for ever. */
static void leave_out_hung(struct pollfd *fds, uint32_t fd_count)
{
    for (uint32_t i = SESSION_FDS; i < fd_count; i++) {
        if (fds[i].revents & ~POLLIN)
            fds[i].fd = -1;
    }
}

/* News are gathered for a moment. */
static void gather(const struct session *s, uint64_t last_ns, uint64_t *time_ns)
{
    uint64_t until = last_ns + session_news_ns(s, *time_ns);

    if (until < *time_ns + EVENT_DELAY_NS)
        until = *time_ns + EVENT_DELAY_NS;
    struct timespec rest = timespec_of_ns(until - *time_ns);
    nanosleep(&rest, NULL);
    *time_ns = now_ns();
}

struct error *session_wait(struct session *s, struct pollfd *fds, uint32_t fd_count, uint64_t last_ns, uint64_t due_ns,
                           uint64_t *time_ns)
{
    stay_deaf(s, *time_ns);
    for (;;) {
        bool listens = *time_ns >= s->deaf_until_ns;
        uint64_t until = listens ? due_ns : least(due_ns, s->deaf_until_ns);
        struct timespec wait = timespec_of_ns(until > *time_ns ? until - *time_ns : 0);
        int ready = ppoll(fds, listens ? fd_count : SESSION_FDS, &wait, NULL);

        if (ready < 0 && errno != EINTR)
            return error_os(errno, "waiting failed");
        *time_ns = now_ns();
        if (fds[SESSION_FD_SAMPLER].revents)
            s->deaf_ns = s->deaf_until_ns = 0;
        /* the end of the command is seen at once, and so is what a file turned out to be */
        if (*time_ns >= due_ns || ready < 0 || fds[SESSION_FD_COMMAND].revents || fds[SESSION_FD_SAMPLER].revents ||
            fds[SESSION_FD_MODULES].revents)
            return NULL;
        leave_out_hung(fds, fd_count);
        bool others = fds[SESSION_FD_SIGNAL].revents || fds[SESSION_FD_TABLES].revents || fds[SESSION_FD_INTERRUPT].revents;
        if (others || (ready && has_news(s, *time_ns))) {
            gather(s, last_ns, time_ns);
            return NULL;
        }
    }
}
