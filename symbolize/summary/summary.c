/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/summary.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/printable.h"
#include "formats/trace/container.h"
#include "symbolize/summary/process_memory.h"
#include "symbolize/summary/summary_data.h"
#include "symbolize/trace/input.h"
#include "symbolize/trace/process_names.h"

enum { DAMAGES_KEPT = 16, REASONS_KEPT = 8 };

struct error *summary_create(struct limits *limits, struct summary **out)
{
    struct summary *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    s->limits = s->label_keys.arena.limits = s->texts.arena.limits = s->event_keys.arena.limits = limits;
    s->process_keys.arena.limits = s->process_loss_keys.arena.limits = s->loss_keys.arena.limits = limits;
    s->boot_keys.arena.limits = s->waited.limits = s->memory_of.limits = limits;
    *out = s;
    return NULL;
}

void summary_destroy(struct summary *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->files.count; i++) {
        VEC_DEINIT(&s->files.data[i].meta);
        VEC_DEINIT(&s->files.data[i].damages);
    }
    VEC_DEINIT(&s->files);
    for (size_t i = 0; i < s->events.count; i++)
        VEC_DEINIT(&s->events.data[i].reasons);
    VEC_DEINIT(&s->events);
    VEC_DEINIT(&s->processes);
    VEC_DEINIT(&s->losses);
    VEC_DEINIT(&s->ticks);
    VEC_DEINIT(&s->process_losses);
    VEC_DEINIT(&s->event_of);
    VEC_DEINIT(&s->threads);
    VEC_DEINIT(&s->thread_tallies);
    VEC_DEINIT(&s->label_samples);
    VEC_DEINIT(&s->gil_labels);
    VEC_DEINIT(&s->labels);
    VEC_DEINIT(&s->waits);
    VEC_DEINIT(&s->memory);
    map_deinit(&s->memory_of);
    VEC_DEINIT(&s->memory_of_process);
    map_deinit(&s->waited);
    intern_deinit(&s->label_keys);
    intern_deinit(&s->texts);
    intern_deinit(&s->event_keys);
    intern_deinit(&s->process_keys);
    intern_deinit(&s->boot_keys);
    intern_deinit(&s->loss_keys);
    intern_deinit(&s->process_loss_keys);
    free(s);
}

/* ---- gathering ---- */

static struct summary_file *current(struct summary *s)
{
    return &s->files.data[s->files.count - 1];
}

/* Keeps a printable copy of a text, which lives as long as the summary. */
static const char *keep(struct summary *s, const char *text)
{
    return limits_work(s->limits, 60 + strlen(text)) ? printable_keep(&s->texts, text) : NULL;
}

/* Keeps what a process of the epoch is called. */
static const char *keep_name(struct summary *s, const struct epoch *e, uint32_t process, bool with_title)
{
    struct buf name = {0};

    if (with_title)
        process_name_put_with_title(e, process, &name);
    else
        process_name_put(e, process, &name);
    const char *kept = name.bad ? NULL : keep(s, buf_cstr(&name));
    buf_deinit(&name);
    return kept;
}

struct error *summary_begin_file(struct summary *s, const char *path)
{
    struct summary_file file = {.path = keep(s, path), .name = keep(s, input_title(path))};

    return file.path && file.name && VEC_PUSH(&s->files, file) ? NULL : error_no_memory();
}

static void saw_time(struct summary_file *f, uint64_t time_ns)
{
    if (time_ns > f->last_ns)
        f->last_ns = time_ns;
}

static bool load_host(struct summary *s, const struct epoch *e, const struct trace_host *host)
{
    struct summary_file *f = current(s);

    f->hostname = keep(s, epoch_text(e, host->hostname));
    f->kernel = keep(s, epoch_text(e, host->kernel_release));
    f->machine = keep(s, epoch_text(e, host->machine));
    f->tool = keep(s, epoch_text(e, host->tool));
    f->cpu_model = keep(s, epoch_text(e, host->cpu_model));
    f->cpu_count = host->cpu_count;
    f->memory_bytes = host->memory_bytes;
    return f->hostname && f->kernel && f->machine && f->tool && f->cpu_model;
}

static bool load_meta(struct summary *s, const struct epoch *e, const struct trace_meta *meta)
{
    struct pair pair = {keep(s, epoch_text(e, meta->key)), keep(s, epoch_text(e, meta->value))};
    struct summary_file *f = current(s);

    if (!pair.key || !pair.value)
        return false;
    if (!limits_work(s->limits, f->meta.count))
        return false;
    for (size_t i = 0; i < f->meta.count; i++) {
        if (f->meta.data[i].key == pair.key) {
            f->meta.data[i].value = pair.value;
            return true;
        }
    }
    return VEC_PUSH(&f->meta, pair);
}

/* The row of a process of the epoch, or SUMMARY_NO_ROW: out of memory. */
static uint32_t find_process(struct summary *s, const struct epoch *e, uint32_t process)
{
    const uint32_t file = (uint32_t)s->files.count - 1;
    const struct epoch_process *p = &e->processes.data[process];
    const struct process_identity identity = epoch_process_identity(e, process, (uint32_t)s->files.count);
    struct process_identity boot = {.file = identity.file};
    bool added;

    memcpy(boot.boot_id, identity.boot_id, sizeof boot.boot_id);
    uint32_t row = intern_id(&s->process_keys, &identity, sizeof identity, &added);
    const struct process_row new_row = {.pid = p->def.tgid,
                                        .boot = intern_id(&s->boot_keys, &boot, sizeof boot, NULL),
                                        .start_boottime_ns = p->def.start_boottime_ns,
                                        .comm = "", .name = "", .title = "", .name_and_title = "", .container = "",
                                        .thread = SUMMARY_NO_ROW,
                                        .first_file = file};
    if (row == INTERN_NONE || new_row.boot == INTERN_NONE || (added && !VEC_PUSH(&s->processes, new_row)))
        return SUMMARY_NO_ROW;
    return row;
}

static bool load_process_loss(struct summary *s, const struct epoch *e, const struct trace_loss *loss, const char *name)
{
    const struct epoch_process *p = &e->processes.data[loss->process];
    struct process_loss_row row = {.pid = p->def.tgid, .reason = loss->reason, .name = name,
                                   .process = keep_name(s, e, loss->process, true)};
    const uint64_t key[] = {find_process(s, e, loss->process), row.reason};
    bool added;

    if (!row.process || key[0] == SUMMARY_NO_ROW)
        return false;
    uint32_t at = intern_id(&s->process_loss_keys, key, sizeof key, &added);
    if (at == INTERN_NONE || (added && !VEC_PUSH(&s->process_losses, row)))
        return false;
    s->process_losses.data[at].count += loss->count;
    s->process_losses.data[at].process = row.process;
    return true;
}

static bool load_loss(struct summary *s, const struct epoch *e, const struct trace_loss *loss)
{
    const char *name = trace_loss_name(loss->reason);
    bool added;

    if (!loss->count || loss->reason == LOSS_complete)
        return true;
    name = keep(s, name ? name : epoch_text(e, loss->name));
    const char *event = keep(s, epoch_text(e, e->events.data[loss->event].def.name));
    const uint64_t key[] = {loss->reason, (uintptr_t)event};
    uint32_t row = intern_id(&s->loss_keys, key, sizeof key, &added);
    if (!name || !event || row == INTERN_NONE)
        return false;
    if (added && !VEC_PUSH(&s->losses, ((struct loss_row){.reason = loss->reason, .name = name, .event = event})))
        return false;
    s->losses.data[row].count += loss->count;
    return !loss->process || load_process_loss(s, e, loss, name);
}

static bool load_ticks(struct summary *s, const struct epoch *e, const struct trace_ticks *ticks)
{
    const char *event = keep(s, epoch_text(e, e->events.data[ticks->event].def.name));
    uint64_t busy = ticks->seen - ticks->idle;
    size_t row = 0;

    if (!event || !limits_work(s->limits, s->ticks.count))
        return false;
    if (ticks->idle > ticks->seen || ticks->unsampled > busy)
        return true; /* no recorder writes that */
    while (row < s->ticks.count && s->ticks.data[row].event != event)
        row++;
    if (row == s->ticks.count && !VEC_PUSH(&s->ticks, (struct tick_row){.event = event}))
        return false;
    s->ticks.data[row].busy += busy;
    s->ticks.data[row].own += busy - ticks->unsampled;
    return true;
}

/* Finds or creates the row of an event of the epoch; NULL: out of memory. */
static struct event_row *add_event(struct summary *s, const struct epoch *e, uint32_t event)
{
    const struct trace_event *def = &e->events.data[event].def;
    struct event_row row = {.name = keep(s, epoch_text(e, def->name)),
                            .unit = keep(s, epoch_text(e, def->unit)),
                            .frequency_hz = def->frequency_hz,
                            .period = def->period,
                            .bytes = epoch_event_bytes(e, event),
                            .kind = epoch_event_kind(e, event),
                            .memory = process_memory_event(epoch_text(e, def->name), epoch_text(e, def->unit))};
    /* Each rate has a row of its own, so that the printed rate holds for all samples of the row. */
    const uint64_t key[] = {(uintptr_t)row.name, (uintptr_t)row.unit, row.frequency_hz, row.period,
                            row.bytes, def->kind};
    bool added;

    if (!row.name || !row.unit)
        return NULL;
    uint32_t number = intern_id(&s->event_keys, key, sizeof key, &added);
    if (number == INTERN_NONE || (added && !VEC_PUSH(&s->events, row)))
        return NULL;
    if (!VEC_EXTEND_NONE(&s->event_of, (size_t)event + 1))
        return NULL;
    s->event_of.data[event] = number;
    return &s->events.data[number];
}

/* The row of an event; NULL: out of memory. */
static inline struct event_row *find_event(struct summary *s, const struct epoch *e, uint32_t event)
{
    if (event < s->event_of.count && s->event_of.data[event] != SUMMARY_NO_ROW)
        return &s->events.data[s->event_of.data[event]];
    return add_event(s, e, event);
}

static bool load_period(struct summary *s, const struct epoch *e, const struct trace_period *period)
{
    if (!period->event)
        return true;
    struct event_row *row = find_event(s, e, period->event);
    const char *reason = keep(s, epoch_text(e, period->reason));

    if (!row || !reason)
        return false;
    row->change_count++;
    row->last_period = period->period;
    if (!*reason)
        return true;
    for (size_t i = 0; i < row->reasons.count; i++) {
        if (row->reasons.data[i] == reason)
            return true;
    }
    return row->reasons.count == REASONS_KEPT || VEC_PUSH(&row->reasons, reason);
}

/* Kinds that this version does not know are one row, and so the rows are few. */
static struct wait_row *find_wait(struct summary *s, uint64_t kind)
{
    uint32_t known = kind <= UINT32_MAX && trace_value_meaning(TRACE_ENUM_wait_kind, (uint32_t)kind) ? (uint32_t)kind : 0;

    for (size_t i = 0; i < s->waits.count; i++) {
        if (s->waits.data[i].kind == known)
            return &s->waits.data[i];
    }
    return VEC_PUSH(&s->waits, (struct wait_row){.kind = known}) ? &s->waits.data[s->waits.count - 1] : NULL;
}

static bool load_thread_time(struct summary *s, const struct trace_thread_time *t)
{
    s->on_cpu_ns += t->on_cpu_ns;
    for (uint64_t i = 0; i < t->waits.count; i++) {
        const uint64_t *row = &t->waits.values[3 * i];
        struct wait_row *wait = find_wait(s, row[0]);
        if (!wait)
            return false;
        wait->ns += row[1];
        wait->count += row[2];
    }
    return true;
}

static bool load_memory(struct summary *s, const struct epoch *e, const struct trace_process_memory *reading)
{
    uint32_t row = find_process(s, e, reading->process);

    return row != SUMMARY_NO_ROW && process_memory_reading(s, row, reading);
}

static bool listen(struct summary *s, const struct epoch *e, const struct trace_record *rec)
{
    struct summary_file *f = current(s);

    switch (rec->type) {
    case TRACE_epoch:
        if (!f->has_start)
            f->start_ns = f->last_ns = rec->epoch.time_ns;
        f->has_start = true;
        saw_time(f, rec->epoch.time_ns);
        return true;
    case TRACE_clock:
        if (!f->has_clock) {
            f->clock_monotonic_ns = rec->clock.monotonic_ns;
            f->clock_realtime_ns = rec->clock.realtime_ns;
        }
        f->has_clock = true;
        return true;
    case TRACE_host:
        return load_host(s, e, &rec->host);
    case TRACE_snapshot:
        f->has_snapshots = true;
        return true;
    case TRACE_process_memory:
        return load_memory(s, e, &rec->process_memory);
    case TRACE_meta:
        return load_meta(s, e, &rec->meta);
    case TRACE_thread_time:
        return load_thread_time(s, &rec->thread_time);
    case TRACE_loss:
        return load_loss(s, e, &rec->loss);
    case TRACE_ticks:
        return load_ticks(s, e, &rec->ticks);
    case TRACE_period:
        return load_period(s, e, &rec->period);
    case TRACE_end:
        f->has_end = true;
        f->end = rec->end;
        saw_time(f, rec->end.time_ns);
        return true;
    default:
        return true;
    }
}

struct error *summary_record(struct summary *s, const struct epoch *e, const struct trace_record *rec)
{
    return listen(s, e, rec) ? NULL : error_no_memory();
}

/* The tally of a thread of the epoch; NULL: out of memory. */
static inline struct thread_tally *find_tally(struct summary *s, uint32_t thread)
{
    while (s->thread_tallies.count <= thread) {
        if (!VEC_PUSH(&s->thread_tallies, ((struct thread_tally){.shown = SUMMARY_NO_ROW})))
            return NULL;
    }
    return &s->thread_tallies.data[thread];
}

static bool find_gil_label(const struct epoch *e, uint32_t set)
{
    const struct trace_list *pairs = &e->label_sets.data[set].pairs;
    const char *gil = trace_value_meaning(TRACE_ENUM_wait_kind, TRACE_WAIT_GIL);

    for (uint64_t i = 0; i < pairs->count; i++) {
        if (!strcmp(epoch_text(e, (uint32_t)pairs->values[2 * i]), trace_label_key(TRACE_LABEL_wait)) &&
            !strcmp(epoch_text(e, (uint32_t)pairs->values[2 * i + 1]), gil))
            return true;
    }
    return false;
}

/* Counts the labels of a sample, and whether its thread waits for the GIL. False: out of memory. */
static bool count_labels(struct summary *s, const struct epoch *e, const struct trace_sample *sample, struct thread_tally *thread)
{
    uint32_t set = sample->label_set;

    if (!VEC_EXTEND_ZERO(&s->label_samples, (size_t)set + 1) || !VEC_EXTEND_ZERO(&s->gil_labels, (size_t)set + 1))
        return false;
    s->label_samples.data[set]++;
    enum gil_label *label = &s->gil_labels.data[set];
    if (*label == GIL_LABEL_UNKNOWN)
        *label = find_gil_label(e, set) ? GIL_LABEL_YES : GIL_LABEL_NO;
    thread->gil_wait_ns += *label == GIL_LABEL_YES ? sample->value : 0;
    return true;
}

static bool add_waited(struct summary *s, const struct emit_sample *shown)
{
    uint64_t key = (uint64_t)shown->thread << 32 | shown->label_set;
    const uint64_t *known = map_get(&s->waited, key);

    return map_set(&s->waited, key, (known ? *known : 0) + shown->value);
}

struct error *summary_sample(struct summary *s, const struct epoch *e, uint32_t event,
                             const struct trace_sample *sample, const struct emit_sample *shown)
{
    struct event_row *row = find_event(s, e, event);
    struct thread_tally *thread = find_tally(s, sample->thread);

    if (!row || !thread)
        return error_no_memory();
    if (!row->sample_count++) {
        row->first_value = sample->value;
        if (shown && !s->time_event && row->kind == EVENT_CPU_TIME)
            s->time_event = row->name;
    }
    row->values_differ |= sample->value != row->first_value;
    row->value = sample->value > INT64_MAX - row->value ? INT64_MAX : row->value + sample->value;
    thread->sample_count++;
    thread->time_ns += row->name == s->time_event ? sample->value : 0;
    if (shown)
        thread->shown = shown->thread;
    thread->blame_ns += row->kind == EVENT_BLAME ? sample->value : 0;
    if (sample->label_set && !count_labels(s, e, sample, thread))
        return error_no_memory();
    if (sample->flags & TRACE_SAMPLE_GIL_KNOWN && !event_is_waiting(row->kind)) {
        s->gil_known_count++;
        s->gil_count += sample->flags & TRACE_SAMPLE_GIL ? 1 : 0;
    }
    if (shown && row->kind == EVENT_OFF_CPU && !add_waited(s, shown))
        return error_no_memory();
    saw_time(current(s), sample->time_ns);
    if (row->memory)
        process_memory_sample(s, e->threads.data[sample->thread].def.process, s->event_of.data[event], sample);
    return NULL;
}

/* `thread` is one of its threads in the model, or SUMMARY_NO_ROW. */
static bool load_process(struct summary *s, const struct epoch *e, uint32_t process, uint64_t samples, uint32_t thread)
{
    const struct epoch_process *p = &e->processes.data[process];
    char container[CONTAINER_NAME_MAX];
    uint32_t row = find_process(s, e, process);

    if (row == SUMMARY_NO_ROW)
        return false;
    struct process_row *to = &s->processes.data[row];
    container_of_cgroup(epoch_text(e, p->def.cgroup), container);
    to->comm = keep(s, epoch_text(e, p->comm));
    to->name = keep_name(s, e, process, false);
    to->name_and_title = keep_name(s, e, process, true);
    to->title = keep(s, process_name_title(e, process));
    to->container = keep(s, container);
    if (p->def.cmdline && !(to->cmdline = keep(s, epoch_text(e, p->def.cmdline))))
        return false;
    if (p->def.python_version) {
        to->version = p->def.python_version;
        to->flags = p->def.python_flags;
    }
    to->parent_pid = p->def.parent_tgid;
    to->sample_count += samples;
    to->thread = thread == SUMMARY_NO_ROW ? to->thread : thread;
    to->last_file = (uint32_t)s->files.count - 1;
    return to->comm && to->name && to->name_and_title && to->title && to->container;
}

static bool load_thread(struct summary *s, const struct thread_tally *t)
{
    if (t->shown == SUMMARY_NO_ROW)
        return true;
    if (!VEC_EXTEND_ZERO(&s->threads, (size_t)t->shown + 1))
        return false;
    s->threads.data[t->shown].sample_count += t->sample_count;
    s->threads.data[t->shown].time_ns += t->time_ns;
    s->threads.data[t->shown].gil_wait_ns += t->gil_wait_ns;
    s->threads.data[t->shown].blame_ns += t->blame_ns;
    return true;
}

static bool load_labels(struct summary *s, const struct epoch *e, uint32_t set, uint64_t samples)
{
    const struct trace_list *pairs = &e->label_sets.data[set].pairs;

    for (uint64_t i = 0; i < pairs->count; i++) {
        const char *key[2] = {keep(s, epoch_text(e, (uint32_t)pairs->values[2 * i])),
                              keep(s, epoch_text(e, (uint32_t)pairs->values[2 * i + 1]))};
        bool added;
        if (!key[0] || !key[1])
            return false;
        uint32_t row = intern_id(&s->label_keys, key, sizeof key, &added);
        if (row == INTERN_NONE ||
            (added && !VEC_PUSH(&s->labels, ((struct label_row){.key = key[0], .value = key[1]}))))
            return false;
        s->labels.data[row].sample_count += samples;
    }
    return true;
}

struct error *summary_end_epoch(struct summary *s, const struct epoch *e)
{
    if (!e->begun)
        return NULL;
    for (uint32_t i = 1; i < e->processes.count; i++) {
        if (!load_process(s, e, i, 0, SUMMARY_NO_ROW))
            return error_no_memory();
    }
    for (uint32_t i = 0; i < s->thread_tallies.count; i++) {
        const struct thread_tally *t = &s->thread_tallies.data[i];
        current(s)->sample_count += t->sample_count;
        if (t->sample_count && (!load_process(s, e, e->threads.data[i].def.process, t->sample_count, t->shown) ||
                                !load_thread(s, t)))
            return error_no_memory();
    }
    for (uint32_t i = 1; i < s->label_samples.count; i++) {
        if (s->label_samples.data[i] && !load_labels(s, e, i, s->label_samples.data[i]))
            return error_no_memory();
    }
    s->event_of.count = s->memory_of_process.count = s->thread_tallies.count = s->label_samples.count = s->gil_labels.count = 0;
    return NULL;
}

struct error *summary_end_file(struct summary *s, const struct trace_reader *reader)
{
    struct summary_file *f = current(s);
    uint32_t count;
    const struct trace_damage *damages = trace_reader_damage(reader, &count);

    f->stats = *trace_reader_stats(reader);
    for (uint32_t i = 0; i < count && i < DAMAGES_KEPT; i++) {
        if (!VEC_PUSH(&f->damages, damages[i]))
            return error_no_memory();
    }
    return NULL;
}

void summary_late(struct summary *s, uint64_t count)
{
    s->late_count += count;
}
