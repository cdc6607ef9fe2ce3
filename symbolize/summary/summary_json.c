/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists are written row by row, since a trace may have very many threads and processes. All texts of a summary are
 * printable, and so UTF-8; those of the model and of modules are made so here.
 */
#include "symbolize/summary/summary_json.h"

#include <jansson.h>

#include "formats/base/buf.h"
#include "formats/base/printable.h"
#include "formats/emit/json.h"
#include "symbolize/summary/figures.h"
#include "symbolize/summary/gil_figures.h"
#include "symbolize/summary/process_memory.h"
#include "symbolize/summary/processes.h"
#include "symbolize/summary/summary_data.h"
#include "symbolize/summary/thread_waits.h"
#include "symbolize/summary/threads.h"
#include "symbolize/summary/unnamed.h"

struct writer {
    struct summary *summary;
    const struct resolver *resolver;
    FILE *out;
    bool begun; /* the list has a row */
};

/* jansson's integers end at INT64_MAX, which only a made-up trace exceeds. */
static json_int_t number(uint64_t v)
{
    return v > INT64_MAX ? INT64_MAX : (json_int_t)v;
}

/* Writes an object without its last brace: lists follow as its last members. */
static struct error *put_open(struct writer *w, json_t *value)
{
    struct buf text = {0};
    struct error *err = json_put(value, &text);

    if (!err && text.bad)
        err = error_no_memory();
    if (!err)
        fwrite(text.data, 1, text.len_bytes - 1, w->out);
    buf_deinit(&text);
    return err;
}

static void begin_list(struct writer *w, const char *name)
{
    fprintf(w->out, ",\n\"%s\":[", name);
    w->begun = false;
}

static void end_list(struct writer *w)
{
    fputs("]", w->out);
}

static struct error *put_row(struct writer *w, json_t *value)
{
    fputs(w->begun ? ",\n" : "\n", w->out);
    w->begun = true;
    TRY(put_open(w, value));
    fputs("}", w->out);
    return NULL;
}

/* ---- the head ---- */

static json_t *share(struct share s)
{
    return json_pack("{s:I,s:I}", "part", number(s.part), "whole", number(s.whole));
}

static struct error *put_head(struct writer *w, const char *exporter, const struct process_list *processes)
{
    const struct summary *s = w->summary;
    uint64_t duration_ns = 0;
    struct figures f;
    struct buf filters = {0};

    figures_of(s, w->resolver, &f);
    for (size_t i = 0; i < s->files.count; i++)
        duration_ns += summary_duration_ns(&s->files.data[i]);
    printable_put(&filters, resolver_model(w->resolver)->filters);
    json_t *head = json_pack(
        "{s:s,s:i,s:s,s:s,s:I,s:s,s:I,s:I,s:I,s:b,s:o,s:o,s:{s:o,s:o,s:o,s:o},s:{s:o,s:o,s:o},s:o,s:o,s:o}", "format", "summary", "version", 1,
        "exporter", exporter, "name", s->files.count ? s->files.data[0].name : "", "duration_ns", number(duration_ns),
        "filters", buf_cstr(&filters), "samples", number(f.sample_count), "all_samples", number(f.recorded_count), "process_count",
        number(processes->sampled_count), "damaged",
        f.is_damaged, "lost_samples", share(f.lost_samples), "lost_time_ns", share(f.lost_ns), "whole_stacks", "python", share(f.python), "native",
        share(f.native), "kernel", share(f.kernel), "join", share(f.join), "named", "samples", share(f.named_samples),
        "native_frames", share(f.named_native), "python_frames", share(f.named_python), "no_python_samples", share(f.no_python),
        "interpreter_weight", share(f.interpreter), "gil_held_samples",
        share((struct share){s->gil_count, s->gil_known_count}));
    buf_deinit(&filters);
    return put_open(w, head);
}

/* Where threads waited for it. */
static struct error *put_gil(struct writer *w)
{
    const struct emit_model *m = resolver_model(w->resolver);
    struct gil_figures f;
    struct buf name = {0};

    gil_figures_of(w->summary, w->resolver, &f);
    if (!f.waited_ns && !f.blamed_ns)
        return NULL;
    json_t *culprit = json_null();
    if (f.culprit_ns) {
        const struct emit_thread *thread = &m->threads[f.culprit];
        printable_put(&name, thread->name);
        culprit = json_pack("{s:I,s:I,s:s,s:I}", "pid", number(m->processes[thread->process].pid), "tid", number(thread->tid),
                            "thread", buf_cstr(&name), "blamed_ns", number(f.culprit_ns));
    }
    buf_deinit(&name);
    fputs(",\n\"gil\":", w->out);
    TRY(put_open(w, json_pack("{s:I,s:b,s:I,s:I,s:o}", "waited_ns", number(f.waited_ns), "exact", (int)f.exact, "waiter_count",
                              number(f.waiters), "blamed_ns", number(f.blamed_ns), "most_blamed", culprit)));
    fputs("}", w->out);
    return NULL;
}

/* ---- the lists ---- */

static struct error *put_files(struct writer *w)
{
    const struct summary *s = w->summary;

    begin_list(w, "files");
    for (size_t i = 0; i < s->files.count; i++) {
        const struct summary_file *f = &s->files.data[i];
        uint64_t start_ns = f->has_clock ? f->clock_realtime_ns - f->clock_monotonic_ns + f->start_ns : 0;
        json_t *settings = json_object();
        for (size_t k = 0; k < f->meta.count; k++) {
            if (json_object_set_new(settings, f->meta.data[k].key, json_string(f->meta.data[k].value))) {
                json_decref(settings);
                return error_no_memory();
            }
        }
        TRY(put_row(w, json_pack("{s:s,s:I,s:I,s:I,s:s,s:s,s:s,s:I,s:s,s:b,s:I,s:o}", "name", f->name, "size_bytes",
                                 number(f->stats.file_bytes), "start_realtime_ns", number(start_ns), "duration_ns",
                                 number(summary_duration_ns(f)), "hostname", f->hostname ? f->hostname : "",
                                 "kernel_release", f->kernel ? f->kernel : "", "machine", f->machine ? f->machine : "",
                                 "cpu_count", number(f->cpu_count), "recorder", f->tool ? f->tool : "", "ended",
                                 (int)f->stats.ended, "damaged_bytes", number(f->stats.damaged_bytes), "settings", settings)));
    }
    end_list(w);
    return NULL;
}

static struct error *put_events(struct writer *w)
{
    const struct summary *s = w->summary;

    begin_list(w, "events");
    for (size_t i = 0; i < s->events.count; i++) {
        const struct event_row *row = &s->events.data[i];
        bool is_time = event_is_time(row->kind);
        uint64_t weight;
        if (__builtin_mul_overflow(row->value, row->bytes ? row->bytes : 1, &weight))
            weight = UINT64_MAX;
        TRY(put_row(w, json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "event", row->name, "unit", is_time ? "ns" : row->bytes ? "bytes" : "count",
                                 "frequency_hz", number(row->frequency_hz), "period", number(row->period), "samples", number(row->sample_count),
                                 is_time ? "weight_ns" : row->bytes ? "weight_bytes" : "weight_count", number(weight))));
    }
    end_list(w);
    return NULL;
}

static struct error *put_exact_time(struct writer *w, const char *state, uint64_t ns, uint64_t count)
{
    return put_row(w, json_pack("{s:s,s:I,s:I}", "state", state, "time_ns", number(ns), "count", number(count)));
}

/* Where the time of threads went, by the kernel's switches. Empty where waits were not recorded. */
static struct error *put_exact_times(struct writer *w)
{
    const struct summary *s = w->summary;

    begin_list(w, "exact_times");
    if (s->waits.count)
        TRY(put_exact_time(w, "on-CPU", s->on_cpu_ns, 0));
    for (size_t i = 0; i < s->waits.count; i++) {
        const char *name = trace_value_meaning(TRACE_ENUM_wait_kind, s->waits.data[i].kind);
        TRY(put_exact_time(w, name ? name : "", s->waits.data[i].ns, s->waits.data[i].count));
    }
    end_list(w);
    return NULL;
}

/* The same of each thread, and what its samples add up to. */
static struct error *put_thread_times(struct writer *w)
{
    const struct emit_model *m = resolver_model(w->resolver);
    struct map sampled;
    struct error *err = thread_waits_sum(w->summary, m, &sampled);

    begin_list(w, "thread_times");
    for (uint32_t i = 0; !err && i < m->exact_time_count; i++) {
        const struct emit_exact_time *row = &m->exact_times[i];
        const struct emit_thread *thread = &m->threads[row->thread];
        struct buf name = {0};
        printable_put(&name, thread->name);
        err = name.bad ? error_no_memory()
                       : put_row(w, json_pack("{s:I,s:I,s:s,s:s,s:I,s:I,s:I}", "pid", number(m->processes[thread->process].pid),
                                              "tid", number(thread->tid), "thread", buf_cstr(&name), "state",
                                              thread_waits_name(row->wait), "time_ns", number(row->ns), "count", number(row->count),
                                              "sampled_ns", number(thread_waits_sampled(&sampled, row))));
        buf_deinit(&name);
    }
    map_deinit(&sampled);
    end_list(w);
    return err;
}

static struct error *put_memory_row(struct writer *w, const struct memory_row *row, uint32_t i)
{
    const struct process_row *p = &w->summary->processes.data[row->process];
    const struct memory_change *c = &row->change;
    const bool has_event = i < row->event_count;
    struct memory_account a = {0};

    if (has_event)
        a = process_memory_account(w->summary, w->resolver, row, i);
    return put_row(w, json_pack("{s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:I,s:s}", "pid", number(p->pid), "process", p->name,
                                "time_ns", number(c->time_ns), "anonymous_bytes", number(row->last.anonymous_bytes),
                                "anonymous_growth_bytes", (json_int_t)c->anonymous, "swap_growth_bytes", (json_int_t)c->swapped,
                                "file_growth_bytes", (json_int_t)c->file, "shared_growth_bytes", (json_int_t)c->shared,
                                "mapping_growth_bytes", (json_int_t)c->data, "page_faults", number(c->faults), "event",
                                has_event ? a.event->name : "", "event_bytes", number(a.bytes), "finding",
                                has_event ? process_memory_finding(a.finding) : ""));
}

/* How memory of processes changed, for each event of memory: what its samples stand for. */
static struct error *put_memory(struct writer *w)
{
    const struct summary *s = w->summary;

    begin_list(w, "memory");
    for (size_t i = 0; i < s->memory.count; i++) {
        const struct memory_row *row = &s->memory.data[i];
        for (uint32_t k = 0; row->change.time_ns && (!k || k < row->event_count); k++)
            TRY(put_memory_row(w, row, k));
    }
    end_list(w);
    return NULL;
}

static struct error *put_losses(struct writer *w)
{
    const struct summary *s = w->summary;

    begin_list(w, "losses");
    for (size_t i = 0; i < s->losses.count; i++) {
        const struct loss_row *row = &s->losses.data[i];
        const char *meaning = trace_loss_meaning(row->reason);
        TRY(put_row(w, json_pack("{s:s,s:s,s:s,s:I,s:s}", "loss", row->name, "class", trace_loss_class_name(trace_loss_class(row->reason)),
                                 "event", row->event, "count", number(row->count), "meaning", meaning ? meaning : "")));
    }
    end_list(w);
    return NULL;
}

/* Native stacks that are not whole, by why, and where most of these end. */
static struct error *put_cut_stacks(struct writer *w)
{
    const struct resolver_stats *stats = resolver_stats(w->resolver);

    begin_list(w, "native_stacks_cut");
    for (uint32_t i = LOSS_complete + 1; i < LOSS_LIMIT; i++) {
        struct buf module = {0}, function = {0};
        uint64_t samples;
        if (!stats->native.count[i] || trace_loss_class(i) == LOSS_CLASS_expected)
            continue;
        const struct end_place *most = end_places_most(resolver_native_ends(w->resolver), i, &samples);
        printable_put(&module, most ? most->module : "");
        printable_put(&function, most ? most->function : "");
        struct error *err = module.bad || function.bad
                                ? error_no_memory()
                                : put_row(w, json_pack("{s:s,s:I,s:s,s:s,s:I}", "loss", trace_loss_name(i), "samples",
                                                       number(stats->native.count[i]), "module", buf_cstr(&module), "function",
                                                       buf_cstr(&function), "samples_there", number(samples)));
        buf_deinit(&module);
        buf_deinit(&function);
        TRY(err);
    }
    end_list(w);
    return NULL;
}

static struct error *put_processes(struct writer *w, const struct process_list *list)
{
    char version[64];

    begin_list(w, "processes");
    for (size_t i = 0; i < list->entries.count; i++) {
        const struct process_entry *e = &list->entries.data[i];
        processes_version(e, version, sizeof version);
        TRY(put_row(w, json_pack("{s:I,s:I,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I}", "pid", number(e->row->pid), "parent_pid",
                                 number(e->row->parent_pid), "process", e->name, "title", e->title, "comm", e->row->comm, "container",
                                 e->container, "python", version, "samples", number(e->sample_count), "running_ns",
                                 number(e->time_ns), "duration_ns", number(e->duration_ns), "thread_count",
                                 number(e->thread_count))));
    }
    end_list(w);
    return NULL;
}

static struct error *put_threads(struct writer *w, const struct process_list *processes)
{
    struct thread_list list;
    struct error *err = NULL;

    TRY(threads_list(w->summary, w->resolver, processes, &list));
    begin_list(w, "threads");
    for (size_t i = 0; !err && i < list.entries.count; i++) {
        const struct thread_entry *e = &list.entries.data[i];
        err = put_row(w, json_pack("{s:I,s:I,s:s,s:s,s:I,s:I,s:I}", "pid", number(e->pid), "tid", number(e->tid), "process",
                                   e->process->name, "thread", e->name, "samples", number(e->sample_count), "running_ns",
                                   number(e->time_ns), "duration_ns", number(e->duration_ns)));
    }
    end_list(w);
    threads_deinit(&list);
    return err;
}

static struct error *put_unnamed(struct writer *w)
{
    struct unnamed list;
    struct error *err = NULL;

    TRY(unnamed_list(w->resolver, &list));
    begin_list(w, "modules_without_names");
    for (uint32_t i = 0; !err && i < list.count; i++) {
        const struct modcache_entry *m = list.modules[i];
        struct buf path = {0};
        printable_put(&path, m->path);
        err = path.bad ? error_no_memory()
                       : put_row(w, json_pack("{s:s,s:s,s:I,s:I}", "module", buf_cstr(&path), "reason", unnamed_reason(unnamed_cause(m)),
                                              "samples", number(m->sample_count), "unnamed_samples", number(m->unresolved_count)));
        buf_deinit(&path);
    }
    end_list(w);
    unnamed_deinit(&list);
    return err;
}

static struct error *put_all(struct writer *w, const char *exporter, const struct process_list *processes)
{
    TRY(put_head(w, exporter, processes));
    TRY(put_gil(w));
    TRY(put_files(w));
    TRY(put_events(w));
    TRY(put_exact_times(w));
    TRY(put_thread_times(w));
    TRY(put_memory(w));
    TRY(put_losses(w));
    TRY(put_cut_stacks(w));
    TRY(put_processes(w, processes));
    TRY(put_threads(w, processes));
    TRY(put_unnamed(w));
    fputs("}\n", w->out);
    return NULL;
}

struct error *summary_json_print(struct summary *s, const struct resolver *r, const char *exporter, FILE *out)
{
    struct writer w = {.summary = s, .resolver = r, .out = out};
    struct process_list processes;

    TRY(processes_list(s, r, &processes));
    struct error *err = put_all(&w, exporter, &processes);
    processes_deinit(&processes);
    return err;
}
