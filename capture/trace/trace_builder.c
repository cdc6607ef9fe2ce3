/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the records that begin and end an epoch and a file, and those for what becomes of processes. */
#include "capture/trace/trace_builder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/trace/codes_limit.h"
#include "capture/trace/stacks.h"
#include "capture/trace/trace_accounts.h"
#include "capture/trace/wait_sites.h"
#include "capture/trace/trace_define.h"
#include "capture/trace/trace_losses.h"
#include "capture/trace/trace_memory.h"
#include "capture/trace/trace_sources.h"
#include "capture/trace/trace_titles.h"
#include "formats/base/clock.h"

struct error *trace_builder_create(const struct trace_builder_options *options, struct trace_builder **out)
{
    struct trace_builder *b = calloc(1, sizeof *b);

    if (!b)
        return error_no_memory();
    b->o = *options;
    for (uint32_t i = 0; i < options->events.count; i++)
        b->events[i].period = event_period(&options->events.list[i]);
    trace_memory_init(&b->memory, &options->events);
    *out = b;
    return NULL;
}

void trace_builder_destroy(struct trace_builder *b)
{
    if (!b)
        return;
    map_deinit(&b->kernel_frames);
    map_deinit(&b->account_of);
    map_deinit(&b->sampled);
    map_deinit(&b->kernel_roles);
    wait_sites_clear(b);
    map_deinit(&b->site_of);
    VEC_DEINIT(&b->sites);
    VEC_DEINIT(&b->accounts);
    trace_builder_forget_formers(b);
    python_names_deinit(&b->names);
    trace_notes_deinit(&b->notes);
    trace_memory_deinit(&b->memory);
    VEC_DEINIT(&b->refusals);
    buf_deinit(&b->source_name);
    free(b);
}

uint64_t trace_builder_unwanted(const struct trace_builder *b, uint32_t event, uint32_t cpu)
{
    return cpu < CPUS_MAX ? b->events[event].unwanted[cpu] : 0;
}

uint64_t trace_builder_unwanted_value(const struct trace_builder *b, uint32_t event, uint32_t cpu)
{
    return cpu < CPUS_MAX ? b->events[event].unwanted_value[cpu] : 0;
}

uint64_t trace_builder_handled(const struct trace_builder *b, uint32_t event, uint32_t cpu)
{
    return cpu < CPUS_MAX ? b->events[event].handled[cpu] : 0;
}

uint64_t trace_builder_codes_bytes(const struct trace_builder *b)
{
    return trace_notes_codes_bytes(&b->notes);
}

void trace_builder_forget_codes(struct trace_builder *b)
{
    trace_notes_forget_codes(&b->notes);
}

struct error *trace_builder_limit_codes(struct trace_builder *b, uint64_t most)
{
    return codes_limit(b->o.codes, &b->notes, most);
}

enum module_use trace_builder_module_use(const struct trace_builder *b, const struct module *m)
{
    const struct module_note *n = m->index < b->notes.modules.count ? &b->notes.modules.data[m->index] : NULL;

    return !n || !n->record.epoch ? MODULE_UNUSED : n->framed ? MODULE_FRAMED : MODULE_NAMED;
}

struct trace_builder_counts trace_builder_counts(const struct trace_builder *b)
{
    return b->counts;
}

uint64_t trace_builder_file_samples(const struct trace_builder *b)
{
    return b->file_samples;
}

uint64_t trace_builder_event_samples(const struct trace_builder *b, uint32_t event)
{
    return b->events[event].samples;
}

uint64_t trace_builder_event_value(const struct trace_builder *b, uint32_t event)
{
    return b->events[event].value;
}

void trace_builder_clock(struct trace_builder *b)
{
    struct trace_clock c = {
        .monotonic_ns = clock_ns(CLOCK_MONOTONIC),
        .realtime_ns = clock_ns(CLOCK_REALTIME),
        .boottime_ns = clock_ns(CLOCK_BOOTTIME),
    };

    trace_writer_put(b->o.writer, TRACE_clock, &c);
}

void trace_builder_drop_samples(struct trace_builder *b, bool drop)
{
    b->drops_samples = drop;
}

void trace_builder_hold_perf_maps(struct trace_builder *b)
{
    for (size_t i = 0; i < b->notes.processes.count; i++) {
        struct process_note *n = b->notes.processes.data[i];
        if (n)
            perf_map_file_hold(&n->perf_map, n->process);
    }
}

void trace_builder_meta(struct trace_builder *b, const char *key, const char *value)
{
    struct trace_writer *w = b->o.writer;
    struct trace_meta record = {.key = trace_writer_cstr(w, key), .value = trace_writer_cstr(w, value)};

    trace_writer_put(w, TRACE_meta, &record);
}

/* Writes the records that begin an epoch. */
static void begin_epoch(struct trace_builder *b)
{
    struct trace_writer *w = b->o.writer;
    const struct host *h = b->o.host;

    b->begun = true;
    b->epoch++;
    b->blame_id = 0;
    map_clear(&b->kernel_frames);
    wait_sites_clear(b);
    trace_builder_forget_formers(b);
    trace_builder_clock(b);
    struct trace_host host = {
        .hostname = trace_writer_cstr(w, h->hostname),
        .kernel_release = trace_writer_cstr(w, h->release),
        .kernel_version = trace_writer_cstr(w, h->version),
        .machine = trace_writer_cstr(w, h->machine),
        .boot_id = {h->boot_id, h->has_boot_id ? sizeof h->boot_id : 0},
        .kernel_build_id = {h->kernel_build_id, h->kernel_build_id_len},
        .cpu_count = h->cpu_count,
        .page_size = (uint32_t)sysconf(_SC_PAGESIZE),
        .tool = trace_writer_cstr(w, "pycap " TOOL_VERSION),
        .cpu_model = trace_writer_cstr(w, h->cpu_model),
        .memory_bytes = h->memory_bytes,
    };
    trace_writer_put(w, TRACE_host, &host);
    for (uint32_t i = 0; i < b->o.settings->list.count; i++)
        trace_builder_meta(b, b->o.settings->list.data[i].key, b->o.settings->list.data[i].value);
    for (uint32_t i = 0; i < b->o.events.count; i++)
        trace_define_event(b, i);
}

static struct error *next_epoch(struct trace_builder *b, uint64_t time_ns)
{
    TRY(trace_sources_end_epoch(b));
    trace_titles_read(b, now_ns(), true);
    trace_builder_exits(b); /* later they cannot be told: each has its number in this epoch alone */
    trace_builder_clock(b);
    trace_writer_new_epoch(b->o.writer, time_ns);
    begin_epoch(b);
    return NULL;
}

/*
 * Writes a perf map, in a new epoch where this one may have no room for it: there may be very many, and a pipe's reader may have
 * stopped meanwhile.
 */
static struct error *put_perf_map(struct trace_builder *b, struct process_note *n, uint64_t time_ns)
{
    struct trace_writer *w = b->o.writer;
    bool cut, full = trace_writer_full(w);

    if ((trace_writer_epoch_full(w) || trace_writer_epoch_room(w) < PERF_MAP_MAX_BYTES) && trace_writer_epoch_fits(w))
        TRY(next_epoch(b, time_ns));
    TRY(perf_map_file_write(&n->perf_map, n->process, b->o.processes, w, b->epoch, time_ns, &cut));
    b->losses[LOSS_perf_map_cut] += cut || trace_writer_full(w) != full;
    return NULL;
}

struct error *trace_builder_perf_maps(struct trace_builder *b, uint64_t time_ns)
{
    uint64_t epoch = b->epoch;

    for (size_t i = 0; i < b->notes.processes.count; i++) {
        struct process_note *n = b->notes.processes.data[i];
        if (n && n->perf_map.epoch == epoch)
            TRY(put_perf_map(b, n, time_ns));
    }
    return NULL;
}

struct error *trace_builder_begin_epoch(struct trace_builder *b, uint64_t time_ns)
{
    if (!b->begun) {
        begin_epoch(b);
        return NULL;
    }
    TRY(trace_builder_perf_maps(b, time_ns));
    return next_epoch(b, time_ns);
}

static void on_remapped(void *ctx, struct process *p)
{
    struct trace_builder *b = ctx;
    struct process_note *n = trace_notes_find(&b->notes, p);

    if (n)
        known_stacks_clear(&n->native_stacks); /* the same addresses may belong to other functions now */
}

static void on_mapped(void *ctx, struct process *p, struct code_mapping *m)
{
    struct trace_builder *b = ctx;
    struct process_note *n = trace_notes_find(&b->notes, p);

    if (!n)
        return;
    known_stacks_clear(&n->native_stacks); /* they have no module there yet */
    if (n->mapped_epoch == b->epoch)
        trace_define_mapping(b, n, m);
}

/* The process must have its record in this epoch. */
static void put_exit(struct trace_builder *b, const struct process_note *n, uint64_t time_ns)
{
    struct trace_process_exit record = {.process = n->record.id, .time_ns = time_ns};

    trace_writer_put(b->o.writer, TRACE_process_exit, &record);
}

static void on_ended(void *ctx, struct process *p, uint64_t time_ns)
{
    struct trace_builder *b = ctx;
    struct process_note *n = trace_notes_find(&b->notes, p);

    if (n && n->record.epoch == b->epoch) {
        put_exit(b, n, time_ns);
        /* An error here (out of memory) costs only names of generated code; it will be reported elsewhere. */
        if (n->perf_map.epoch == b->epoch)
            error_destroy(put_perf_map(b, n, time_ns));
    }
    if (p->ended_ns) /* else it goes on with another program */
        map_remove(&b->sampled, p->tgid);
    trace_refusals_end(b, p, time_ns);
    trace_builder_keep_former(b, p, time_ns);
    trace_notes_forget(&b->notes, p);
}

static void on_renamed(void *ctx, struct process *p, struct thread *t, uint64_t time_ns)
{
    struct trace_builder *b = ctx;
    struct process_note *n = trace_notes_find(&b->notes, p);

    if (!n || n->record.epoch != b->epoch)
        return;
    if (!t || t->tid == p->tgid)
        trace_titles_renamed(b, n, time_ns);
    if (t && t->index < n->threads.count && n->threads.data[t->index].epoch == b->epoch) {
        struct trace_thread_name record = {
            .thread = n->threads.data[t->index].id, .time_ns = time_ns, .name = trace_writer_cstr(b->o.writer, t->name)};
        trace_writer_put(b->o.writer, TRACE_thread_name, &record);
    }
}

static void on_threads_forgotten(void *ctx, struct process *p)
{
    struct trace_builder *b = ctx;
    struct process_note *n = trace_notes_find(&b->notes, p);

    if (n)
        VEC_DEINIT(&n->threads);
}

struct processes_events trace_builder_process_events(struct trace_builder *b)
{
    return (struct processes_events){
        .remapped = on_remapped,
        .mapped = on_mapped,
        .ended = on_ended,
        .renamed = on_renamed,
        .threads_forgotten = on_threads_forgotten,
        .ctx = b};
}

struct error *trace_builder_code(struct trace_builder *b, const struct wire_code *message, uint32_t len_bytes)
{
    struct wire_sample identity = {
        .tgid = message->tgid,
        .start_boottime_ns = message->start_boottime_ns,
        .exec_generation = message->exec_generation,
        .time_ns = message->time_ns,
    };
    struct process *p;

    TRY(processes_of_sample(b->o.processes, &identity, &p));
    if (!p)
        return NULL;
    b->time_ns = message->time_ns;
    b->of_rival = message->flags & WIRE_RIVAL;
    struct process_note *n = trace_notes_process(&b->notes, p);
    return n ? stacks_learn_code(b, n, message, len_bytes) : error_no_memory();
}

void trace_builder_period(struct trace_builder *b, uint32_t event, uint64_t time_ns, uint64_t period, const char *why)
{
    struct trace_period record = {.event = b->events[event].trace_id, .time_ns = time_ns, .period = period,
                                  .reason = trace_writer_cstr(b->o.writer, why)};

    trace_writer_put(b->o.writer, TRACE_period, &record);
    b->events[event].period = period;
}

/* What a file has once, the next one gets, too: what processes have of memory, and symbols of generated code. */
static void write_again(struct trace_builder *b)
{
    b->memory.file++;
    for (size_t i = 0; i < b->notes.processes.count; i++) {
        if (b->notes.processes.data[i])
            b->notes.processes.data[i]->perf_map.written_size = 0;
    }
}

struct error *trace_builder_next_file(struct trace_builder *b, struct trace_writer *writer, uint64_t time_ns)
{
    b->o.writer = writer;
    b->begun = false;
    b->file_samples = 0;
    write_again(b);
    return trace_builder_begin_epoch(b, time_ns);
}

struct error *trace_builder_next_part(struct trace_builder *b, uint64_t time_ns)
{
    write_again(b);
    return next_epoch(b, time_ns);
}

void trace_builder_exits(struct trace_builder *b)
{
    for (size_t i = 0; i < b->notes.processes.count; i++) {
        const struct process_note *n = b->notes.processes.data[i];
        if (n && n->process->ended_ns && n->record.epoch == b->epoch)
            put_exit(b, n, n->process->ended_ns);
    }
}

void trace_builder_end(struct trace_builder *b, uint64_t time_ns, uint32_t reason, uint64_t lost)
{
    trace_titles_read(b, now_ns(), true);
    trace_builder_clock(b);
    trace_builder_exits(b);
    struct trace_end record = {
        .time_ns = time_ns,
        .reason = reason,
        .sample_count = b->file_samples,
        .lost_count = lost,
    };
    trace_writer_put(b->o.writer, TRACE_end, &record);
}
