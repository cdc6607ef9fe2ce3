/* SPDX-License-Identifier: Apache-2.0 */
/* The counts that are taken throughout, and the account of ticks, losses and waits that stands at the end of a file, or of a part of it. */
#include "capture/session/session_accounts.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "capture/host/errand.h"
#include "capture/trace/trace_accounts.h"
#include "capture/trace/trace_losses.h"
#include "capture/trace/trace_sources.h"
#include "capture/trace/wait_sites.h"

/* /proc/stat counts in these (USER_HZ). */
#define IDLE_GRAIN_NS (10 * NS_PER_MS)

/* What samples do not stand for of the memory that processes were given. */
static void sum_growth(struct session *s)
{
    uint64_t grown, sent, *losses = s->event_losses[s->growth_event];

    losses[LOSS_growth_unsettled] += growth_unsettled_bytes(s->growth);
    s->losses[LOSS_growth_unsettled] += growth_unsettled_bytes(s->growth);
    if (!s->end_ns || s->flight)
        return; /* later samples may yet stand for it; or it is of all the time, and not of the file */
    sampler_grown_bytes(s->sampler, &grown, &sent);
    sent += s->losses[LOSS_growth_unsent];
    if (grown > sent) {
        losses[LOSS_growth_owed] += grown - sent;
        s->losses[LOSS_growth_owed] += grown - sent;
    }
}

/* While an account is written those that were read with its ticks, so that both are of the same moment. */
static void sum_event_losses(struct session *s, uint32_t event)
{
    const struct sampler_ticks *ticks = s->ticks + (size_t)event * s->cpu_count;
    uint64_t *losses = s->event_losses[event];

    if (!s->ticks_read) {
        sampler_event_losses(s->sampler, event, losses);
        return;
    }
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        losses[LOSS_nested] += ticks[i].nested;
        losses[LOSS_ring_full] += ticks[i].ring_full;
        losses[LOSS_hit_quota] += ticks[i].refused;
    }
}

void session_sum_losses(struct session *s)
{
    uint64_t bpf[WIRE_LOSS_COUNT] = {0};
    const uint64_t *own = trace_builder_loss_counts(s->builder);

    if (s->sampler)
        sampler_losses(s->sampler, bpf);
    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        s->losses[i] = bpf[i] + own[i];
    memset(s->event_losses, 0, sizeof s->event_losses);
    for (uint32_t i = 0; i < s->events.count; i++) {
        trace_builder_event_losses(s->builder, i, s->event_losses[i]);
        if (s->sampler)
            sum_event_losses(s, i);
        s->event_losses[i][LOSS_tick_skipped] += s->skipped[i];
        for (uint32_t k = 0; k < LOSS_LIMIT; k++)
            s->losses[k] += s->event_losses[i][k];
    }
    if (s->proc)
        proc_sampler_losses(s->proc, s->losses);
    if (s->sleepers)
        sleepers_losses(s->sleepers, s->losses);
    if (s->tasks)
        task_looks_losses(s->tasks, s->losses);
    s->losses[LOSS_code_incomplete] += codes_counts(s->codes).incomplete;
    s->losses[LOSS_string_cut] += codes_counts(s->codes).cut;
    if (s->sampler)
        s->losses[LOSS_process_forbidden] += processes_counts(s->processes).forbidden;
    s->losses[LOSS_process_held_up] += errand_late_processes();
    s->losses[LOSS_process_untracked] += processes_counts(s->processes).left_out;
    s->losses[LOSS_sideband_lost] += processes_counts(s->processes).lost;
    uint32_t wait_event = event_list_wait(&s->events);
    if (wait_event != EVENT_NONE) {
        s->event_losses[wait_event][LOSS_wait_memory] += waits_refused(s->waits);
        s->losses[LOSS_wait_memory] += waits_refused(s->waits);
    }
    if (s->growth)
        sum_growth(s);
    s->losses[LOSS_known_late] += processes_counts(s->processes).late_ticks;
    s->losses[LOSS_not_written] += s->unwritten;
}

/* Samples that are not in the file at all; the other losses leave a sample with less in it. */
uint64_t session_lost_samples(const struct session *s)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        sum += loss_class_is_sample(trace_loss_class(i)) ? s->losses[i] : 0;
    return sum;
}

void session_begin_counts(struct session *s, uint64_t time_ns)
{
    host_idle_ns(s->cpus, s->cpu_count, s->idle_ns);
    s->file_start_ns = time_ns;
}

/*
 * Ticks of a clock that should have come and did not, of one file. An idle CPU may sleep through its ticks, which loses
 * nothing: time that the kernel accounts as idle is left out on both sides.
 */
static uint64_t clock_skipped(const struct session *s, uint32_t event, const struct sampler_ticks *ticks)
{
    uint64_t period = event_period(&s->events.list[event]), skipped = 0;

    if (s->budget.steps) /* the period was not the same all the time */
        return 0;
    uint64_t idle_ns[s->cpu_count];
    host_idle_ns(s->cpus, s->cpu_count, idle_ns);
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        uint64_t idle = idle_ns[i] > s->idle_ns[i] ? idle_ns[i] - s->idle_ns[i] : 0;
        uint64_t busy = ticks[i].event.count > idle ? ticks[i].event.count - idle : 0;
        uint64_t seen = ticks[i].seen - ticks[i].seen_idle;
        /* Idle time is accounted in hundredths of a second, at either end of the capture. */
        uint64_t expected = busy > 4 * IDLE_GRAIN_NS ? (busy - 4 * IDLE_GRAIN_NS) / period : 0;
        if (expected > seen)
            skipped += expected - seen;
    }
    return skipped;
}

/*
 * Ticks that the event's own count makes and the sampler never saw, since the capture began: the kernel drops those that
 * come while another program of ours runs on that CPU. Exact where the period is ours.
 */
static uint64_t counted_skipped(const struct session *s, const struct sampler_ticks *ticks)
{
    uint64_t skipped = 0;

    for (uint32_t i = 0; i < s->cpu_count; i++) {
        if (ticks[i].event.due > ticks[i].seen)
            skipped += ticks[i].event.due - ticks[i].seen;
    }
    return skipped;
}

/* `ticks` are all of the capture, `in_file` those of this file. */
static void count_skipped(struct session *s, uint32_t event, const struct sampler_ticks *ticks,
                          const struct sampler_ticks *in_file)
{
    const struct event_source *source = s->events.list[event].source;

    if (source->kind == EVENT_TRACEPOINT)
        s->skipped[event] = sampler_hits_skipped(s->sampler, event);
    if (!event_has_counter(source) || !event_ticks_all(source))
        return; /* the kernel leaves out none, or those that are not wanted */
    if (source->kind == EVENT_CLOCK) {
        s->skipped[event] += clock_skipped(s, event, in_file);
    } else {
        uint64_t skipped = counted_skipped(s, ticks);
        if (skipped > s->skipped[event])
            s->skipped[event] = skipped;
    }
}

/* Reads the ticks of an event: of the capture into s->ticks, of the file that ends into `in_file`. */
static struct error *read_ticks(struct session *s, uint32_t event, struct sampler_ticks *in_file)
{
    struct sampler_ticks *ticks = s->ticks + (size_t)event * s->cpu_count;
    struct sampler_ticks *before = s->file_ticks + (size_t)event * s->cpu_count;
    bool are_hits = s->events.list[event].source->kind == EVENT_TRACEPOINT;

    TRY(sampler_ticks(s->sampler, event, ticks));
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        struct sampler_ticks *now = &ticks[i];
        const struct sampler_ticks *then = &before[i];
        uint64_t unwanted = are_hits ? trace_builder_unwanted_value(s->builder, event, (uint32_t)now->cpu) : 0;
        now->seen_others += trace_builder_unwanted(s->builder, event, (uint32_t)now->cpu);
        /* A value that stands for thinned hits may be more than they counted. */
        now->event.count -= unwanted < now->event.count ? unwanted : now->event.count;
        in_file[i] = (struct sampler_ticks){
            .cpu = now->cpu,
            .event = {.count = now->event.count - then->event.count,
                      .enabled_ns = now->event.enabled_ns - then->event.enabled_ns,
                      .running_ns = now->event.running_ns - then->event.running_ns,
                      .due = now->event.due - then->event.due},
            .seen = now->seen - then->seen,
            .seen_idle = now->seen_idle - then->seen_idle,
            .seen_others = now->seen_others - then->seen_others,
            .thinned = now->thinned - then->thinned,
        };
        before[i] = *now;
    }
    return NULL;
}

/*
 * Takes out of the ticks that were seen those that are not in the file, but in the next one: whose samples wait in the sampler's
 * buffer or in the queue, and those that the sampler is at work on while its counters are read. At the end of the recording there
 * are none of either. Waits and growth are samples only when they are over.
 */
static void settle_ticks(struct session *s, uint32_t event, struct sampler_ticks *in_file)
{
    const struct sampler_ticks *ticks = s->ticks + (size_t)event * s->cpu_count;
    uint64_t *before = s->settled + (size_t)event * s->cpu_count;

    if (!event_has_counter(s->events.list[event].source))
        return;
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        uint64_t waiting = ticks[i].sampled - trace_builder_handled(s->builder, event, (uint32_t)ticks[i].cpu);
        uint64_t settled = s->end_ns ? ticks[i].seen : ticks[i].seen - ticks[i].unsettled - waiting;
        in_file[i].seen = settled - before[i];
        before[i] = settled;
    }
}

/* Writes the account of each event, and takes note of the ticks that are missing in it. */
static struct error *put_ticks(struct session *s, uint64_t time_ns)
{
    struct sampler_ticks in_file[s->cpu_count];

    for (uint32_t event = 0; event < s->events.count; event++) {
        if (s->events.list[event].source->kind == EVENT_TASK)
            continue;
        TRY(read_ticks(s, event, in_file));
        count_skipped(s, event, s->ticks + (size_t)event * s->cpu_count, in_file);
        settle_ticks(s, event, in_file);
        trace_builder_ticks(s->builder, event, time_ns, in_file, s->cpu_count);
    }
    return NULL;
}

/* A file that ends, and how far the account of threads reaches in it. */
struct account {
    struct session *session;
    uint64_t time_ns;
};

/*
 * Up to the end of the recording; before it only up to the thread's last switch, as it runs on. So most waits are in one
 * account, and not split between two; but those that last are in each file.
 */
static struct error *put_thread(void *account, const struct wire_thread *thread)
{
    const struct account *a = account;
    struct session *s = a->session;
    const struct process *p = processes_find(s->processes, thread->tgid);
    bool lasts = !thread->runs && a->time_ns > thread->switched_ns && a->time_ns - thread->switched_ns >= WIRE_WAIT_LONG_NS;

    /* Once a process is not followed any more, switches of its threads are not seen. And a thread that has ended does nothing. */
    bool goes_on = p && p->configured && !thread->ended && (s->end_ns || lasts);
    return trace_builder_thread(s->builder, thread, goes_on ? a->time_ns : 0);
}

/* Up to the last look. */
static struct error *put_looked_at(void *session, const struct wire_thread *thread)
{
    struct session *s = session;

    return trace_builder_thread(s->builder, thread, 0);
}

static struct error *put_owed(void *session, uint64_t site, const struct wire_wait_site *owed)
{
    struct session *s = session;

    trace_builder_owed(s->builder, site, owed, s->end_ns);
    return NULL;
}

/*
 * Writes where the time of threads went, where waits are recorded; at the end also what is owed to the samples, unless that is of
 * longer than there is in the file.
 */
static struct error *put_waits(struct session *s, uint64_t time_ns)
{
    struct account account = {s, time_ns};

    if (event_list_wait(&s->events) == EVENT_NONE)
        return NULL;
    TRY(s->sampler ? sampler_threads(s->sampler, put_thread, &account) : proc_sampler_threads(s->proc, put_looked_at, s));
    if (!s->end_ns || s->flight)
        return NULL;
    if (s->sampler)
        TRY(sampler_owed(s->sampler, put_owed, s));
    trace_builder_count_unwritten(s->builder);
    return NULL;
}

static void put_number(struct session *s, const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    trace_builder_meta(s->builder, key, text);
}

/* What the command says of itself, whether it has ended or not. */
static void put_note(struct session *s)
{
    struct command_note *note = &s->note;
    char text[NOTE_BYTES_MAX];
    uint64_t more_bytes;

    if (!s->note_file)
        return;
    size_t len = note_file_read(s->note_file, text, sizeof text, &more_bytes);
    command_note_parse(text, len, more_bytes, note);
    for (uint32_t i = 0; i < note->fact_count; i++) {
        const struct note_fact *fact = &note->facts[i];
        char key[sizeof TRACE_META_NOTE_PREFIX + NOTE_KEY_MAX];
        snprintf(key, sizeof key, TRACE_META_NOTE_PREFIX "%s", fact->key);
        if (fact->adds_up && fact->has_value)
            put_number(s, key, fact->sum);
        else if (fact->has_value)
            trace_builder_meta(s->builder, key, fact->value);
    }
    if (note->cut_bytes)
        put_number(s, TRACE_META_NOTE_CUT, note->cut_bytes);
    if (note->refused_lines)
        put_number(s, TRACE_META_NOTE_REFUSED, note->refused_lines);
}

/* What came of the command, if there was one and it has ended. */
static void put_command(struct session *s)
{
    const struct command *c = &s->command;

    if (!c->exited)
        return;
    if (WIFSIGNALED(c->status))
        put_number(s, TRACE_META_SIGNAL, (uint64_t)WTERMSIG(c->status));
    else
        put_number(s, TRACE_META_EXIT_STATUS, (uint64_t)WEXITSTATUS(c->status));
    put_number(s, TRACE_META_WALL_NS, c->wall_ns);
    put_number(s, TRACE_META_CPU_NS, c->cpu_ns);
}

struct error *session_put_accounts(struct session *s, uint64_t time_ns, enum session_account account)
{
    struct error *err = trace_builder_perf_maps(s->builder, time_ns);

    if (!err)
        err = put_waits(s, time_ns);
    if (!err && account != SESSION_ACCOUNT_PART)
        err = trace_builder_end_sources(s->builder, account == SESSION_ACCOUNT_FILE);
    trace_writer_closing(s->writer);
    if (s->sampler)
        err = error_first(err, put_ticks(s, time_ns)); /* no account of ticks is better than a wrong one */
    trace_builder_refusals(s->builder, time_ns);
    s->ticks_read = s->sampler && !err;
    session_sum_losses(s);
    s->ticks_read = false;
    trace_builder_losses(s->builder, time_ns, s->losses, s->event_losses);
    if (account == SESSION_ACCOUNT_LAST) {
        put_command(s);
        put_note(s);
    }
    return err;
}

