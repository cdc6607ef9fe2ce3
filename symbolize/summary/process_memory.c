/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/process_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Until 6.17 each CPU may hold back so many pages of the kernel's counts of resident memory. */
enum { HELD_BACK_PAGES = 64, EXACT_MAJOR = 6, EXACT_MINOR = 17 };

enum memory_event process_memory_event(const char *name, const char *unit)
{
    if (!strcmp(name, TRACE_MEMORY_GROWTH))
        return MEMORY_MAPPED;
    /* Those of user mode alone, or only those that wait for a disk, say nothing of growth. */
    bool all = !strcmp(name, "page-faults") || !strcmp(name, "minor-faults");
    return all && !strcmp(unit, TRACE_UNIT_FAULTS) ? MEMORY_FAULTS : MEMORY_NOTHING;
}

/* ---- gathering ---- */

/* The difference modulo 2^64: what a hostile trace says is wrong, and no error. */
static void add(int64_t *sum, uint64_t after, uint64_t before)
{
    *sum = (int64_t)((uint64_t)*sum + after - before);
}

static void go_on(struct memory_row *row, const struct trace_process_memory *r)
{
    struct memory_change *c = &row->change;

    add(&c->anonymous, r->anonymous_bytes, row->last.anonymous_bytes);
    add(&c->file, r->file_bytes, row->last.file_bytes);
    add(&c->shared, r->shared_bytes, row->last.shared_bytes);
    add(&c->swapped, r->swap_bytes, row->last.swap_bytes);
    add(&c->data, r->data_bytes, row->last.data_bytes);
    c->faults += r->minor_faults + r->major_faults - row->last.minor_faults - row->last.major_faults;
    c->time_ns += r->time_ns - row->last.time_ns;
    for (uint32_t i = 0; i < row->event_count; i++) {
        row->events[i].value += row->events[i].later;
        row->events[i].later = 0;
    }
    row->last = *r;
}

/* What lies between two recordings is not known: nothing of it is counted. */
static void begin(struct memory_row *row, uint32_t file, const struct trace_process_memory *r)
{
    for (uint32_t i = 0; i < row->event_count; i++)
        row->events[i].later = 0;
    row->begin_ns = r->time_ns;
    row->file = file;
    row->last = *r;
}

bool process_memory_reading(struct summary *s, uint32_t process, const struct trace_process_memory *reading)
{
    const uint32_t file = (uint32_t)s->files.count;
    const uint64_t *known = map_get(&s->memory_of, process);
    uint64_t at = known ? *known : s->memory.count;

    if (!known && (!VEC_PUSH(&s->memory, (struct memory_row){.process = process}) || !map_set(&s->memory_of, process, at)))
        return false;
    while (s->memory_of_process.count <= reading->process) {
        if (!VEC_PUSH(&s->memory_of_process, SUMMARY_NO_ROW))
            return false;
    }
    s->memory_of_process.data[reading->process] = (uint32_t)at;
    struct memory_row *row = &s->memory.data[at];
    if (!known || (row->file != file && row->last.time_ns != reading->time_ns))
        begin(row, file, reading);
    else if (reading->time_ns >= row->last.time_ns)
        go_on(row, reading);
    row->file = file;
    return true;
}

void process_memory_sample(struct summary *s, uint32_t process, uint32_t event, const struct trace_sample *sample)
{
    if (process >= s->memory_of_process.count || s->memory_of_process.data[process] == SUMMARY_NO_ROW)
        return;
    struct memory_row *row = &s->memory.data[s->memory_of_process.data[process]];
    uint32_t i = 0;

    while (i < row->event_count && row->events[i].event != event)
        i++;
    if (i == MEMORY_EVENTS || sample->time_ns < row->begin_ns)
        return;
    if (i == row->event_count)
        row->events[row->event_count++] = (struct memory_samples){.event = event};
    *(sample->time_ns <= row->last.time_ns ? &row->events[i].value : &row->events[i].later) += sample->value;
}

/* ---- what it means ---- */

static bool is_filtered(const struct resolver *r)
{
    const char *filters = r ? resolver_model(r)->filters : NULL;

    return filters && *filters;
}

/* Whether a process has a parent or a child in the recording. */
static bool has_relatives(const struct summary *s, const struct process_row *p)
{
    for (size_t i = 0; i < s->processes.count; i++) {
        const struct process_row *other = &s->processes.data[i];
        if (other->boot == p->boot && other != p && (other->parent_pid == p->pid || other->pid == p->parent_pid))
            return true;
    }
    return false;
}

/* What the samples that were lost of an event, of whichever process, would have stood for. */
static double lost_bytes(const struct summary *s, const struct event_row *event)
{
    double count = 0;

    for (size_t i = 0; i < s->losses.count; i++) {
        const struct loss_row *loss = &s->losses.data[i];
        if (loss_class_is_sample(trace_loss_class(loss->reason)) && (!*loss->event || !strcmp(loss->event, event->name)))
            count += (double)loss->count;
    }
    return count * (double)event->period * (event->bytes ? (double)event->bytes : 1);
}

static double kernel_slack(const struct summary_file *f, double page)
{
    unsigned major = 0, minor = 0;

    if (f->kernel && sscanf(f->kernel, "%u.%u", &major, &minor) == 2 &&
        (major > EXACT_MAJOR || (major == EXACT_MAJOR && minor >= EXACT_MINOR)))
        return 0;
    return HELD_BACK_PAGES * page * f->cpu_count;
}

/*
 * How far samples may be off without anything being wrong: each CPU has a period that is not over. Where processes take
 * turns in one it is a matter of chance which of them has the sample: that is twice the standard deviation.
 */
static double tolerance(const struct summary *s, const struct event_row *event, uint64_t value)
{
    const struct summary_file *f = &s->files.data[s->files.count - 1];
    double unit = event->bytes ? (double)event->bytes : 1;
    double period = (double)(event->change_count && event->last_period > event->period ? event->last_period : event->period);
    double noise = period > 1 ? 2 * sqrt(period * (double)value) : 0;

    return unit * (period * f->cpu_count + noise) + (event->memory == MEMORY_FAULTS ? kernel_slack(f, unit) : 0);
}

static enum memory_finding find(const struct summary *s, const struct memory_row *row, const struct memory_account *a,
                                uint64_t value)
{
    const double more = (double)a->bytes - (double)a->growth_bytes, off = tolerance(s, a->event, value);
    const struct memory_change *c = &row->change;

    if (fabs(more) <= off)
        return MEMORY_AGREES;
    if (more < 0 && lost_bytes(s, a->event) >= -more / 2)
        return MEMORY_LOST;
    if (a->event->memory == MEMORY_MAPPED)
        return more > 0 ? MEMORY_RETURNED : MEMORY_UNKNOWN;
    if (more > 0) {
        double files = (double)(c->file > 0 ? c->file : 0) + (double)(c->shared > 0 ? c->shared : 0);
        return more <= files + off ? MEMORY_FILES : has_relatives(s, &s->processes.data[row->process]) ? MEMORY_COPIED : MEMORY_RETURNED;
    }
    return (double)(c->faults - value) * (double)a->event->bytes >= -more / 2 && c->faults > value ? MEMORY_FILLED : MEMORY_HUGE;
}

struct memory_account process_memory_account(const struct summary *s, const struct resolver *r, const struct memory_row *row,
                                             uint32_t i)
{
    const struct memory_samples *samples = &row->events[i];
    const struct event_row *event = &s->events.data[samples->event];
    const bool mapped = event->memory == MEMORY_MAPPED;
    struct memory_account a = {.event = event, .growth_bytes = row->change.data};

    if (!mapped)
        a.growth_bytes = (int64_t)((uint64_t)row->change.anonymous + (uint64_t)row->change.swapped);
    if (__builtin_mul_overflow(samples->value, event->bytes ? event->bytes : 1, &a.bytes))
        a.bytes = UINT64_MAX;
    a.finding = is_filtered(r) ? MEMORY_UNKNOWN : find(s, row, &a, samples->value);
    return a;
}

const char *process_memory_finding(enum memory_finding finding)
{
    static const char *const words[] = {
        [MEMORY_AGREES] = "agrees",     [MEMORY_FILES] = "files",   [MEMORY_RETURNED] = "returned", [MEMORY_COPIED] = "copied",
        [MEMORY_FILLED] = "populated", [MEMORY_LOST] = "lost", [MEMORY_HUGE] = "huge", [MEMORY_UNKNOWN] = "unknown",
    };

    return words[finding];
}
