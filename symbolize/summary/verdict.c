/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/verdict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "formats/base/size_text.h"
#include "formats/emit/shown.h"
#include "symbolize/summary/figures.h"
#include "symbolize/summary/gil_figures.h"
#include "symbolize/summary/processes.h"
#include "symbolize/summary/summary_data.h"
#include "symbolize/summary/unnamed.h"

enum { FILES_SHOWN = 4, NAMES_SHOWN = 3, LOSSES_SHOWN = 3, MODULES_SHOWN = 5, PLACES_SHOWN = 3, PATH_SHOWN = 48 };

struct verdict {
    struct summary *summary;
    const struct resolver *resolver;
    struct figures figures;
    struct process_list processes;
    struct unnamed unnamed;
    struct buf line; /* of the answer that is being written */
    FILE *out;
};

/* Prints what v->line has as the answer to `question`, or as another line of the last answer if that is "". */
static void put_line(struct verdict *v, const char *question)
{
    fprintf(v->out, "%-12s %s\n", question, buf_cstr(&v->line));
    buf_clear(&v->line);
}

/* ---- the files ---- */

static void put_file(struct verdict *v, const struct summary_file *f)
{
    time_t start = (time_t)((f->clock_realtime_ns - f->clock_monotonic_ns + f->start_ns) / NS_PER_S);
    char text[32];
    struct tm tm;

    fprintf(v->out, "%s: %.1f s", f->name, (double)(f->last_ns - f->start_ns) / 1e9);
    if (f->has_clock && gmtime_r(&start, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
        fprintf(v->out, " from %s", text);
    if (f->hostname && *f->hostname)
        fprintf(v->out, " on %s", f->hostname);
    if (f->stats.damage_count)
        fputs(", damaged: parts of it are lost", v->out);
    else if (!f->stats.ended)
        fputs(", not ended by its recorder: the end is missing", v->out);
    fputc('\n', v->out);
}

static void put_files(struct verdict *v)
{
    size_t count = v->summary->files.count;
    struct number n;

    for (size_t i = 0; i < count && i < FILES_SHOWN; i++)
        put_file(v, &v->summary->files.data[i]);
    if (count > FILES_SHOWN)
        fprintf(v->out, "and %s\n", counted(count - FILES_SHOWN, "more file", "more files", &n));
}

/* ---- what was asked for, and what was seen ---- */

static void put_scope(struct buf *line, const struct summary_file *f)
{
    const char *scope = summary_setting(f, "scope"), *comm = summary_setting(f, "comm");
    const char *cgroup = summary_setting(f, "cgroup"), *container = summary_setting(f, "container");
    const char *children = summary_setting(f, "children");

    if (!strcmp(scope, "command"))
        buf_put_str(line, "a command");
    else if (!strcmp(scope, "pids"))
        buf_put_str(line, "the processes named with -p");
    else
        buf_put_str(line, "every Python process of the host");
    if (strcmp(scope, "all"))
        buf_printf(line, " %s %s children", children && !strcmp(children, "no") ? "without" : "and",
                   strcmp(scope, "command") ? "their" : "its");
    if (comm)
        buf_printf(line, " that is called %s", comm);
    if (cgroup)
        buf_printf(line, " in the cgroup %s", cgroup);
    if (container)
        buf_printf(line, " in the container %s", container);
}

static void put_asked(struct verdict *v)
{
    const struct summary *s = v->summary;
    const struct summary_file *f = s->files.count ? &s->files.data[0] : NULL;
    const char *unwind = f ? summary_setting(f, "unwind") : NULL, *kernel = f ? summary_setting(f, "kernel") : NULL;
    struct number n;

    if (!f || !summary_setting(f, "scope"))
        return;
    put_scope(&v->line, f);
    for (size_t i = 0; i < s->events.count; i++) {
        const struct event_row *row = &s->events.data[i];
        buf_printf(&v->line, "%s %s", i ? "," : ":", row->name);
        if (row->frequency_hz)
            buf_printf(&v->line, event_is_waiting(row->kind) ? " by reading threads at %s Hz" : " at %s Hz",
                       grouped(row->frequency_hz, &n));
    }
    buf_printf(&v->line, "; Python%s%s frames", unwind && !strcmp(unwind, "none") ? "" : ", native",
               kernel && !strcmp(kernel, "no") ? "" : ", kernel");
    put_line(v, "Asked for");
}

/* "4 processes: gunicorn, celery and others". */
static void put_who(struct verdict *v)
{
    const char *names[NAMES_SHOWN + 1];
    size_t count = 0;
    struct number n;

    for (size_t i = 0; i < v->processes.entries.count; i++) {
        const struct process_entry *e = &v->processes.entries.data[i];
        size_t known = 0;
        if (!e->sample_count)
            continue;
        while (known < count && strcmp(names[known], e->name))
            known++;
        if (known == count && count <= NAMES_SHOWN)
            names[count++] = e->name;
    }
    buf_put_str(&v->line, counted(v->processes.sampled_count, "process", "processes", &n));
    for (size_t i = 0; i < count && i < NAMES_SHOWN; i++)
        buf_printf(&v->line, "%s%s", i ? ", " : ": ", names[i]);
    if (count > NAMES_SHOWN)
        buf_put_str(&v->line, " and others");
}

static void put_value(struct buf *line, const struct event_row *row)
{
    struct size_text size;
    struct number n;

    if (event_is_time(row->kind))
        buf_printf(line, "%.3f s of %s", (double)row->value / 1e9,
                   row->kind == EVENT_BLAME       ? "waiting for what others held"
                   : row->kind == EVENT_TASK_WAIT ? "tasks' waiting"
                   : row->kind == EVENT_OFF_CPU   ? "waiting"
                   : row->kind == EVENT_CPU_TIME  ? "CPU time"
                                                  : row->name);
    else if (row->bytes)
        buf_printf(line, "%s of %s", size_text(row->value * row->bytes, &size), row->name);
    else
        buf_printf(line, "%s %s", grouped(row->value, &n), row->name);
}

static void put_seen(struct verdict *v)
{
    const struct summary *s = v->summary;
    const struct figures *f = &v->figures;
    struct number n;

    buf_put_str(&v->line, f->sample_count ? counted(f->sample_count, "sample", "samples", &n) : "no sample");
    if (f->sample_count < f->recorded_count)
        buf_printf(&v->line, " of %s recorded", grouped(f->recorded_count, &n));
    for (size_t i = 0; i < s->events.count; i++) {
        buf_put_str(&v->line, ", ");
        put_value(&v->line, &s->events.data[i]);
    }
    buf_put_str(&v->line, f->sample_count ? ", of " : "");
    if (f->sample_count)
        put_who(v);
    put_line(v, "Seen");
}

/* Losses are those of all processes, whatever the filters show. */
static const char *lost_where(const struct figures *f)
{
    return f->sample_count < f->recorded_count ? " in the whole recording" : "";
}

static int compare_waits(const void *a, const void *b)
{
    const struct wait_row *x = a, *y = b;

    return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Where the time of all threads went, by the kernel's switches: what samples estimate, and for the whole recording. */
static void put_exact_times(struct verdict *v)
{
    struct summary *s = v->summary;

    if (!s->waits.count)
        return;
    qsort(s->waits.data, s->waits.count, sizeof *s->waits.data, compare_waits);
    buf_printf(&v->line, "%.3f s on a CPU", (double)s->on_cpu_ns / 1e9);
    for (size_t i = 0; i < s->waits.count; i++) {
        const char *name = trace_value_meaning(TRACE_ENUM_wait_kind, s->waits.data[i].kind);
        buf_printf(&v->line, ", %.3f s %s", (double)s->waits.data[i].ns / 1e9, name ? name : "of a newer kind");
    }
    buf_put_str(&v->line, lost_where(&v->figures));
    put_line(v, "Exactly");
}

/* "held in 73.2 % of samples; waited for 12.345 s by 4 threads, most because of worker-1 (26039): 78.9 %" */
static void put_gil(struct verdict *v)
{
    const struct summary *s = v->summary;
    struct gil_figures f = {0};
    struct number n;

    if (s->gil_known_count)
        buf_printf(&v->line, "held in %s of samples", share_text(s->gil_count, s->gil_known_count, &n));
    if (v->resolver)
        gil_figures_of(s, v->resolver, &f);
    if (f.waited_ns)
        buf_printf(&v->line, "%swaited for %.3f s by %s", v->line.len_bytes ? "; " : "", (double)f.waited_ns / 1e9,
                   counted(f.waiters, "thread", "threads", &n));
    if (f.waited_ns && f.culprit_ns) {
        const struct emit_thread *thread = &resolver_model(v->resolver)->threads[f.culprit];
        buf_put_str(&v->line, ", most because of ");
        printable_put(&v->line, thread->name);
        buf_printf(&v->line, " (%u): %s", thread->tid, share_text(f.culprit_ns, f.blamed_ns, &n));
    }
    if (v->line.len_bytes)
        put_line(v, "GIL");
}

/* What holds for all that was seen. */
static void put_context(struct verdict *v)
{
    const struct figures *f = &v->figures;
    const char *filters = v->resolver ? resolver_model(v->resolver)->filters : NULL;

    put_exact_times(v);
    if (filters && *filters) {
        printable_put(&v->line, filters);
        put_line(v, "Filters");
    }
    put_gil(v);
    if (f->interpreter.part) {
        shown_put_interpreter(resolver_model(v->resolver), f->main_event, &v->line);
        put_line(v, "Interpreter");
    }
}

/* ---- what is missing ---- */

static int compare_counts(const void *a, const void *b)
{
    const struct loss_row *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* What a loss means, without the words that the line has already. */
static const char *loss_text(const struct loss_row *row)
{
    static const char lost[] = "sample lost: ";
    const char *meaning = trace_loss_meaning(row->reason);

    if (!meaning)
        return row->name;
    return strncmp(meaning, lost, sizeof lost - 1) ? meaning : meaning + sizeof lost - 1;
}

/* Losses of these classes, given as bits, in plain words, a line each. */
static struct error *put_losses(struct verdict *v, unsigned classes, const char *question)
{
    const struct summary *s = v->summary;
    struct loss_row *rows = malloc((s->losses.count + 1) * sizeof *rows);
    size_t count = 0;
    struct number n;

    if (!rows)
        return error_no_memory();
    for (size_t i = 0; i < s->losses.count; i++) {
        const struct loss_row *row = &s->losses.data[i];
        if (classes >> trace_loss_class(row->reason) & 1 && !loss_is_minor(row->reason, row->count, v->figures.recorded_count))
            rows[count++] = *row;
    }
    qsort(rows, count, sizeof *rows, compare_counts);
    for (size_t i = 0; i < count && i < LOSSES_SHOWN; i++) {
        bool names_event = summary_has_several_events(s) && *rows[i].event;
        uint64_t recorded = figures_loss_of_recorded(s, &rows[i]);
        if (recorded < rows[i].count)
            buf_printf(&v->line, "about %s of ", grouped(recorded, &n));
        buf_printf(&v->line, "%s%s%s%s: %s", grouped(rows[i].count, &n), recorded < rows[i].count ? " on all CPUs" : "",
                   names_event ? " of " : "", names_event ? rows[i].event : "", loss_text(&rows[i]));
        put_line(v, i ? "" : question);
    }
    free(rows);
    return NULL;
}

/* Time that nobody looked at is no sample that was lost, but nor was nothing lost. */
static void put_children(struct verdict *v, bool lost)
{
    if (v->figures.children_ns)
        buf_printf(&v->line, "%s %.3f s of CPU time of child processes was not seen", lost ? ", and" : ", but",
                   (double)v->figures.children_ns / 1e9);
}

static struct error *put_lost(struct verdict *v)
{
    const unsigned samples = 1u << LOSS_CLASS_sample | 1u << LOSS_CLASS_tick;
    const unsigned facts = 1u << LOSS_CLASS_part | 1u << LOSS_CLASS_unknown | 1u << LOSS_CLASS_kernel | 1u << LOSS_CLASS_expected;
    const struct share lost = v->figures.lost_samples, lost_ns = v->figures.lost_ns;
    struct number n, of, share;

    if (lost_ns.part)
        buf_printf(&v->line, "%.3f s of %.3f s of CPU time (%s)%s", (double)lost_ns.part / 1e9, (double)lost_ns.whole / 1e9,
                   share_text(lost_ns.part, lost_ns.whole, &share), lost_where(&v->figures));
    else if (lost.part)
        buf_printf(&v->line, "%s of %s (%s)%s", grouped(lost.part, &n), counted(lost.whole, "sample", "samples", &of),
                   share_text(lost.part, lost.whole, &share), lost_where(&v->figures));
    else if (!v->figures.is_damaged)
        buf_printf(&v->line, "nothing%s", lost_where(&v->figures));
    if (v->figures.is_damaged)
        buf_printf(&v->line, "%swhat the part of a file held that is damaged or missing", lost.part ? ", and " : "");
    put_children(v, lost.part || v->figures.is_damaged);
    put_line(v, "Lost");
    TRY(put_losses(v, samples, ""));
    return put_losses(v, facts, "Missing");
}

/* `places`: where they ended; NULL: not known. */
static void put_ends(struct verdict *v, const char *one, const char *many, const struct resolver_ends *ends,
                     const struct end_places *places)
{
    struct number n;

    for (uint32_t i = LOSS_complete + 1; i < LOSS_LIMIT; i++) {
        enum loss_class class = trace_loss_class(i);
        if (!ends->count[i] || class == LOSS_CLASS_expected || class == LOSS_CLASS_no_python)
            continue;
        buf_printf(&v->line, "%s cut: %s", counted(ends->count[i], one, many, &n), trace_loss_meaning(i));
        if (places)
            end_places_put(places, i, ends->count[i], &v->line);
        put_line(v, "");
    }
}

/* "Python 100 %, native 62.4 %"; nothing where there is neither. */
static void put_shares(struct verdict *v, struct share python, struct share native, const char *unit)
{
    struct number n;

    if (python.whole)
        buf_printf(&v->line, "Python %s%s", share_text(python.part, python.whole, &n), unit);
    if (native.whole)
        buf_printf(&v->line, "%snative %s%s", python.whole ? ", " : "", share_text(native.part, native.whole, &n), unit);
}

static void put_stacks(struct verdict *v)
{
    const struct resolver_stats *stats = resolver_stats(v->resolver);
    const struct figures *f = &v->figures;
    struct number n;

    put_shares(v, f->python, f->native, " whole");
    if (f->join.whole && f->join.part < f->join.whole)
        buf_printf(&v->line, ", joined with each other %s", share_text(f->join.part, f->join.whole, &n));
    if (!v->line.len_bytes)
        return;
    put_line(v, "Stacks");
    put_ends(v, "Python stack", "Python stacks", &stats->python, NULL);
    put_ends(v, "native stack", "native stacks", &stats->native, resolver_native_ends(v->resolver));
}

/* The whole path has no room in a line where it is long: its end tells more than its beginning. */
static void put_path(struct buf *line, const char *path)
{
    const char *name = unnamed_base_name(path);

    printable_put(line, strlen(path) <= PATH_SHOWN ? path : name);
}

/* Files with one build ID are one binary: its samples are those of all of them. */
static void put_binary(struct buf *line, const struct modcache_entry *m)
{
    struct number n;

    put_path(line, m->path);
    for (uint32_t i = 1; i < m->place_count && i < PLACES_SHOWN; i++) {
        buf_put_str(line, i + 1 < m->place_count ? ", " : " and ");
        put_path(line, m->places[i]);
    }
    if (m->place_count > PLACES_SHOWN)
        buf_printf(line, " and %s", counted(m->place_count - PLACES_SHOWN, "more file", "more files", &n));
    if (m->place_count > 1)
        buf_put_str(line, ", one binary");
}

static void put_unnamed_module(struct verdict *v, const struct modcache_entry *m)
{
    struct number n;

    if (m->kind == TRACE_MODULE_ANONYMOUS)
        buf_put_str(&v->line, "[jit]");
    else
        put_binary(&v->line, m);
    buf_printf(&v->line, ": %s, in %s", unnamed_reason(unnamed_cause(m)), counted(m->unresolved_count, "sample", "samples", &n));
    put_line(v, "");
}

static void put_names(struct verdict *v)
{
    const struct figures *f = &v->figures;
    struct number n;

    put_shares(v, f->named_python, f->named_native, "");
    if (!v->line.len_bytes)
        return;
    buf_put_str(&v->line, " of the frames in the stacks of all samples have a name");
    if (f->named_samples.part < f->named_samples.whole)
        buf_printf(&v->line, "; %s of samples have a native frame without one",
                   share_text(f->named_samples.whole - f->named_samples.part, f->named_samples.whole, &n));
    put_line(v, "Names");
    for (uint32_t i = 0; i < v->unnamed.count && i < MODULES_SHOWN; i++)
        put_unnamed_module(v, v->unnamed.modules[i]);
    if (v->unnamed.count > MODULES_SHOWN) {
        buf_printf(&v->line, "and %s (-v)", counted(v->unnamed.count - MODULES_SHOWN, "more file", "more files", &n));
        put_line(v, "");
    }
}

/* ---- what to do ---- */

static bool has_container(const struct verdict *v)
{
    for (size_t i = 0; i < v->processes.entries.count; i++) {
        if (*v->processes.entries.data[i].container)
            return true;
    }
    return false;
}

/* Whether the recordings have an archive, which was not given. */
static bool has_archive(const struct verdict *v)
{
    for (size_t i = 0; i < v->summary->files.count; i++) {
        if (!summary_setting(&v->summary->files.data[i], "archive"))
            return false;
    }
    return v->summary->files.count && !modcache_has_archive(resolver_modules(v->resolver));
}

/* Begins an answer to "To do", of which there may be several. */
static void put_advice_line(struct verdict *v, bool *begun)
{
    put_line(v, *begun ? "" : "To do");
    *begun = true;
}

/* Whether frames without a name are in so many of the samples that advice is worth its line. */
static bool matters(const struct verdict *v, uint64_t samples)
{
    return samples && samples * 100 >= v->figures.sample_count;
}

/* Names the packages with the symbols of files that a distribution strips. Others, such as wheels', have none. */
static void put_packages(struct verdict *v, bool *begun)
{
    struct buf packages = {0};
    uint64_t samples = 0;

    for (uint32_t i = 0; i < v->unnamed.count; i++) {
        const struct modcache_entry *m = v->unnamed.modules[i];
        char text[32];
        if (unnamed_cause(m) != UNNAMED_STRIPPED || !unnamed_is_packaged(m))
            continue;
        const char *package = unnamed_package(m, text, sizeof text);
        samples += m->unresolved_count;
        if (package && !strstr(buf_cstr(&packages), package))
            buf_printf(&packages, "%s, ", package);
    }
    if (matters(v, samples)) {
        buf_printf(&v->line, "install debug symbols (Debian, Ubuntu: %sPACKAGE-dbgsym), or run pysym with --debuginfod",
                   buf_cstr(&packages));
        put_advice_line(v, begun);
    }
    buf_deinit(&packages);
}

static void put_advice(struct verdict *v)
{
    const bool contained = has_container(v);
    uint64_t gone_samples = 0, elsewhere_samples = 0, made_samples = 0;
    uint32_t gone = 0, elsewhere = 0;
    bool begun = false;
    struct number n;

    for (uint32_t i = 0; i < v->unnamed.count; i++) {
        const struct modcache_entry *m = v->unnamed.modules[i];
        enum unnamed_cause cause = unnamed_cause(m);
        if (cause == UNNAMED_VANISHED || (cause == UNNAMED_NOT_FOUND && contained))
            gone++, gone_samples += m->unresolved_count;
        else if (cause == UNNAMED_NOT_FOUND || cause == UNNAMED_OTHER_FILE)
            elsewhere++, elsewhere_samples += m->unresolved_count;
        else if (cause == UNNAMED_MADE)
            made_samples += m->unresolved_count;
    }
    put_packages(v, &begun);
    if (has_archive(v)) {
        if (matters(v, gone_samples + elsewhere_samples)) {
            buf_printf(&v->line, "%s missing here: run pysym with the --archive FILE that was recorded with it",
                       counted(gone + elsewhere, "file is", "files are", &n));
            put_advice_line(v, &begun);
        }
        gone_samples = elsewhere_samples = 0;
    }
    if (matters(v, gone_samples)) {
        buf_printf(&v->line, "%s in a container or a temporary folder: record with --archive FILE to keep the names",
                   counted(gone, "file was", "files were", &n));
        put_advice_line(v, &begun);
    }
    if (matters(v, elsewhere_samples)) {
        buf_printf(&v->line, "%s missing here: run \"pycap archive\" on the recorded host, then pysym with --archive",
                   counted(elsewhere, "file is", "files are", &n));
        put_advice_line(v, &begun);
    }
    if (matters(v, made_samples)) {
        buf_put_str(&v->line, "code made at run time has names only if the program writes /tmp/perf-PID.map");
        put_advice_line(v, &begun);
    }
}

/* ---- all of it ---- */

/* How far to trust what follows, in one line. */
static struct error *put_quality(struct verdict *v)
{
    const struct figures *f = &v->figures;
    struct number n;

    const struct share lost = f->lost_ns.part ? f->lost_ns : f->lost_samples;
    if (lost.part)
        buf_printf(&v->line, "%s of %s lost%s", share_text(lost.part, lost.whole, &n), f->lost_ns.part ? "the CPU time" : "samples",
                   lost_where(f));
    else if (f->is_damaged)
        buf_put_str(&v->line, "a file is damaged or has no end");
    else
        buf_printf(&v->line, "no sample lost%s", lost_where(f));
    put_children(v, f->lost_samples.part || f->is_damaged);
    if (f->python.whole || f->native.whole) {
        buf_put_str(&v->line, "; whole stacks: ");
        put_shares(v, f->python, f->native, "");
    }
    if (f->named_python.whole || f->named_native.whole) {
        buf_put_str(&v->line, "; frames shown with a name: ");
        put_shares(v, f->named_python, f->named_native, "");
    }
    put_line(v, "Quality");
    return f->recorded_count ? NULL : put_losses(v, 1u << LOSS_CLASS_sample | 1u << LOSS_CLASS_tick, "");
}

static struct error *print(struct verdict *v, bool brief)
{
    put_files(v);
    if (brief) {
        TRY(put_quality(v));
    } else {
        put_asked(v);
        put_seen(v);
        put_context(v);
        TRY(put_lost(v));
    }
    if (!brief && v->resolver) {
        put_stacks(v);
        put_names(v);
        put_advice(v);
    }
    fputc('\n', v->out);
    return v->line.bad ? error_no_memory() : NULL;
}

struct error *verdict_print(struct summary *s, const struct resolver *r, bool brief, FILE *out)
{
    struct verdict v = {.summary = s, .resolver = r, .out = out};

    figures_of(s, r, &v.figures);
    struct error *err = processes_list(s, r, &v.processes);
    if (!err && r)
        err = unnamed_list(r, &v.unnamed);
    if (!err)
        err = print(&v, brief);
    processes_deinit(&v.processes);
    unnamed_deinit(&v.unnamed);
    buf_deinit(&v.line);
    return err;
}
