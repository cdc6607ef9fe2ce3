/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the summary as text, for people: each file, processes and threads, completeness, losses, each module. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/hex.h"
#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "formats/base/size_text.h"
#include "formats/base/sort.h"
#include "formats/elf/identity.h"
#include "formats/elf/machine.h"
#include "symbolize/summary/memory_table.h"
#include "symbolize/summary/processes.h"
#include "symbolize/summary/summary.h"
#include "symbolize/summary/summary_data.h"
#include "symbolize/summary/thread_waits.h"
#include "symbolize/summary/threads.h"
#include "symbolize/summary/verdict.h"

static const char *end_reason(uint32_t reason)
{
    const char *text = trace_value_meaning(TRACE_ENUM_end_reason, reason);

    return text ? text : "ended for a reason unknown to this version";
}

static void print_time(const struct summary_file *f, FILE *out)
{
    struct tm tm;
    char text[32];
    /* The clocks' difference dates the start; both are unsigned, so it may wrap and come back. */
    time_t start = (time_t)((f->clock_realtime_ns - f->clock_monotonic_ns + f->start_ns) / NS_PER_S);

    if (f->has_clock && gmtime_r(&start, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
        fprintf(out, "  %-14s%s\n", "recorded", text);
}

static void print_host(const struct summary_file *f, FILE *out)
{
    struct number n;

    if (!f->hostname)
        return;
    fprintf(out, "  %-14s%s, Linux %s %s, %s\n", "host", f->hostname, f->kernel, f->machine,
            counted(f->cpu_count, "CPU", "CPUs", &n));
    if (f->cpu_model[0])
        fprintf(out, "  %-14s%s\n", "CPU", f->cpu_model);
    if (f->memory_bytes)
        fprintf(out, "  %-14s%s bytes\n", "memory", grouped(f->memory_bytes, &n));
    fprintf(out, "  %-14s%s\n", "recorder", f->tool);
}

static const char *const command_keys[] = {TRACE_META_EXIT_STATUS, TRACE_META_SIGNAL, TRACE_META_WALL_NS,
                                           TRACE_META_CPU_NS,      TRACE_META_NOTE_CUT, TRACE_META_NOTE_REFUSED};

/* Whether it is a fact that the command gave itself. */
static bool is_noted(const char *key)
{
    return !strncmp(key, TRACE_META_NOTE_PREFIX, strlen(TRACE_META_NOTE_PREFIX));
}

static bool is_of_command(const char *key)
{
    for (size_t i = 0; i < sizeof command_keys / sizeof *command_keys; i++) {
        if (!strcmp(key, command_keys[i]))
            return true;
    }
    return is_noted(key);
}

static void print_command(const struct summary_file *f, FILE *out)
{
    const char *status = summary_setting(f, TRACE_META_EXIT_STATUS), *number = summary_setting(f, TRACE_META_SIGNAL);
    const char *wall = summary_setting(f, TRACE_META_WALL_NS), *cpu = summary_setting(f, TRACE_META_CPU_NS);

    if (!status && !number)
        return;
    fprintf(out, "  %-14s%s %s", "command", status ? "exit status" : "ended by signal", status ? status : number);
    if (wall)
        fprintf(out, ", %.3f s", (double)strtoull(wall, NULL, 10) / 1e9);
    if (cpu)
        fprintf(out, ", %.3f s of CPU", (double)strtoull(cpu, NULL, 10) / 1e9);
    fputc('\n', out);
}

/* What the command wrote into PYCAP_NOTE, and what of it could not be used. */
static void print_note(const struct summary_file *f, FILE *out)
{
    const char *cut = summary_setting(f, TRACE_META_NOTE_CUT), *refused = summary_setting(f, TRACE_META_NOTE_REFUSED);
    const char *title = "note";

    for (size_t i = 0; i < f->meta.count; i++) {
        const struct pair *meta = &f->meta.data[i];
        if (is_noted(meta->key)) {
            fprintf(out, "  %-14s%s=%s\n", title, meta->key + strlen(TRACE_META_NOTE_PREFIX), meta->value);
            title = "";
        }
    }
    if (cut) {
        fprintf(out, "  %-14s%s bytes too many, which were not read: units of work are not known\n", title, cut);
        title = "";
    }
    if (refused)
        fprintf(out, "  %-14sof its lines %s could not be used\n", title, refused);
}

static void print_file(const struct summary_file *f, FILE *out)
{
    struct number n;

    fprintf(out, "%s\n", f->name);
    print_time(f, out);
    print_host(f, out);
    for (size_t i = 0; i < f->meta.count; i++) {
        if (!is_of_command(f->meta.data[i].key))
            fprintf(out, "  %-13s %s\n", f->meta.data[i].key, f->meta.data[i].value);
    }
    print_command(f, out);
    print_note(f, out);
    fprintf(out, "  %-14s%.3f s, %s\n", "duration", (double)(f->last_ns - f->start_ns) / 1e9,
            f->has_end ? end_reason(f->end.reason) : "NOT ended in good order: the recorder died or the file was cut");
    fprintf(out, "  %-14s%s bytes", "size", grouped(f->stats.file_bytes, &n));
    if (f->sample_count)
        fprintf(out, ", %.1f for each sample", (double)f->stats.file_bytes / (double)f->sample_count);
    fprintf(out, ", %s", counted(f->stats.epoch_count, "epoch", "epochs", &n));
    fprintf(out, ", format %u\n", f->stats.version);
    if (f->stats.unknown_record_count)
        fprintf(out, "  %-14s%s of a newer format\n", "not read",
                counted(f->stats.unknown_record_count, "record", "records", &n));
    if (f->stats.newer_sample_count)
        fprintf(out, "  %-14sflags of %s of a newer format\n", "not read",
                counted(f->stats.newer_sample_count, "sample", "samples", &n));
    if (f->stats.damage_count) {
        fprintf(out, "  %-14s%s", "damaged", counted(f->stats.damaged_bytes, "byte", "bytes", &n));
        fprintf(out, " skipped in %s", counted(f->stats.damage_count, "place", "places", &n));
        if (f->stats.skipped_sample_count)
            fprintf(out, ", %s lost",
                    counted(f->stats.skipped_sample_count, "sample", "samples", &n));
        fprintf(out, "\n");
        for (size_t i = 0; i < f->damages.count; i++)
            fprintf(out, "  %-14soffset %" PRIu64 ": %s\n", "", f->damages.data[i].file_offset,
                    f->damages.data[i].reason);
    }
    fprintf(out, "\n");
}

static void print_changes(const struct event_row *row, FILE *out)
{
    struct number n;

    fprintf(out, "  %-14s%12s ", "", "");
    fprintf(out, "the rate changed %s", counted(row->change_count, "time", "times", &n));
    for (size_t i = 0; i < row->reasons.count; i++)
        fprintf(out, "%s%s", i ? "; " : " (", row->reasons.data[i]);
    if (row->frequency_hz && event_is_time(row->kind) && row->last_period)
        fprintf(out, "%s: %s Hz at the end\n", row->reasons.count ? ")" : "",
                grouped((NS_PER_S + row->last_period / 2) / row->last_period, &n));
    else
        fprintf(out, "%s: %s %s each at the end\n", row->reasons.count ? ")" : "", grouped(row->last_period, &n),
                row->unit);
}

enum { EVENT_COLUMNS_MAX = 40 }; /* a longer name moves its own row alone */

static void print_events(const struct summary *s, FILE *out)
{
    struct size_text size;
    struct number n;
    int width = 14;

    for (size_t i = 0; i < s->events.count; i++) {
        size_t len = strlen(s->events.data[i].name) + 1;
        width = len > (size_t)width && len <= EVENT_COLUMNS_MAX ? (int)len : width;
    }
    fprintf(out, "Events\n");
    for (size_t i = 0; i < s->events.count; i++) {
        const struct event_row *row = &s->events.data[i];
        fprintf(out, "  %-*s%12s samples", width, row->name, grouped(row->sample_count, &n));
        if (row->kind == EVENT_TASK_WAIT)
            fprintf(out, " by looking each %.3f s", (double)row->period / 1e9);
        else if (row->frequency_hz)
            fprintf(out, event_is_waiting(row->kind) ? " by reading threads at %s Hz" : " at %s Hz", grouped(row->frequency_hz, &n));
        else if (row->period && !row->values_differ && !(event_is_counted(row->kind) && row->period == 1))
            fprintf(out, " of %s %s each", grouped(row->period, &n), row->unit);
        if (row->values_differ)
            fprintf(out, ", of different weights");
        if (event_is_time(row->kind))
            fprintf(out, ", %.3f s in all\n", (double)row->value / 1e9);
        else if (row->bytes == 1)
            fprintf(out, ", %s in all\n", size_text(row->value, &size));
        else if (row->bytes)
            fprintf(out, ", %s %s in all: %s\n", grouped(row->value, &n), row->unit,
                    size_text(row->value * row->bytes, &size));
        else
            fprintf(out, ", %s %s in all\n", grouped(row->value, &n), row->unit);
        if (row->change_count)
            print_changes(row, out);
    }
    if (!s->events.count)
        fprintf(out, "  no samples\n");
    fprintf(out, "\n");
}

static int compare_labels(const void *a, const void *b)
{
    const struct label_row *x = a, *y = b;
    int keys = strcmp(x->key, y->key);

    if (keys)
        return keys;
    if (x->sample_count != y->sample_count)
        return x->sample_count > y->sample_count ? -1 : 1;
    return strcmp(x->value, y->value);
}

/* Prints the GIL and the labels, if the trace has them: for each key the values with the most samples. */
static struct error *print_labels(const struct summary *s, FILE *out)
{
    enum { VALUES_SHOWN = 8 };
    struct label_row *rows = malloc((s->labels.count + 1) * sizeof *rows);
    struct number n, of;

    if (!rows)
        return error_no_memory();
    if (s->labels.count)
        memcpy(rows, s->labels.data, s->labels.count * sizeof *rows);
    qsort(rows, s->labels.count, sizeof *rows, compare_labels);
    if (s->gil_known_count || s->labels.count)
        fprintf(out, "Threads\n");
    if (s->gil_known_count)
        fprintf(out, "  %-14s%12s samples of %s, %.2f %%\n", "held the GIL", grouped(s->gil_count, &n),
                grouped(s->gil_known_count, &of), percent(s->gil_count, s->gil_known_count));
    for (size_t i = 0, shown = 0; i < s->labels.count; i++) {
        shown = i && rows[i].key == rows[i - 1].key ? shown + 1 : 0;
        if (shown < VALUES_SHOWN)
            fprintf(out, "  %-14s%12s samples of %s\n", rows[i].key, grouped(rows[i].sample_count, &n), rows[i].value);
        else if (i + 1 == s->labels.count || rows[i + 1].key != rows[i].key)
            fprintf(out, "  %-14s%12s and %s more\n", rows[i].key, "", grouped(shown + 1 - VALUES_SHOWN, &n));
    }
    if (s->gil_known_count || s->labels.count)
        fprintf(out, "\n");
    free(rows);
    return NULL;
}

/* `places`: where they ended; NULL: not known. */
static struct error *print_ends(const char *title, const struct resolver_ends *ends, const struct end_places *places, FILE *out)
{
    uint64_t total = ends_total(ends);
    struct buf line = {0};
    struct number n;

    if (!total)
        return NULL;
    fprintf(out, "  %-46s%7.2f %%%12s\n", title, percent(ends->count[LOSS_complete], total),
            grouped(ends->count[LOSS_complete], &n));
    for (uint32_t i = LOSS_complete + 1; i <= LOSS_LIMIT; i++) {
        const char *name = i < LOSS_LIMIT ? trace_loss_name(i) : "for a reason unknown to this version";
        if (!ends->count[i])
            continue;
        buf_printf(&line, "    %-44s%7.2f %%%12s", name ? name : "?", percent(ends->count[i], total),
                   grouped(ends->count[i], &n));
        if (places)
            end_places_put(places, i, ends->count[i], &line);
        buf_put_str(&line, "\n");
    }
    struct error *err = line.bad ? error_no_memory() : NULL;
    if (!err)
        fputs(buf_cstr(&line), out);
    buf_deinit(&line);
    return err;
}

/* Activations of the eval loop that no Python frame stands for. */
static void print_no_frame(const struct resolver_stats *stats, FILE *out)
{
    static const char *const causes[] = {[MERGE_NO_FRAME_EDGE] = "entering or leaving a call",
                                         [MERGE_NO_FRAME_CLEARING] = "leaving a call, a finalizer runs Python",
                                         [MERGE_NO_FRAME_GREENLET] = "outside of the running greenlet",
                                         [MERGE_NO_FRAME_OTHER] = "other"};
    struct number n;

    if (!ends_total(&stats->join))
        return;
    fprintf(out, "  %-46s%7.2f %%%12s\n", "eval loops without a Python frame",
            percent(stats->no_frame_count, stats->sample_count), grouped(stats->no_frame_count, &n));
    for (uint32_t i = 0; i < MERGE_NO_FRAME_LIMIT; i++) {
        if (stats->no_frame[i])
            fprintf(out, "    %-44s%7.2f %%%12s\n", causes[i], percent(stats->no_frame[i], stats->sample_count),
                    grouped(stats->no_frame[i], &n));
    }
}

/* For these losses no stack was taken. They are listed under losses, not among the ends of stacks. */
static void forget_untaken(struct resolver_ends *ends)
{
    for (uint32_t i = 0; i < LOSS_LIMIT; i++) {
        enum loss_class class = trace_loss_class(i);
        if (class == LOSS_CLASS_expected || class == LOSS_CLASS_outdated)
            ends->count[i] = 0;
    }
}

static struct error *print_completeness(const struct summary *s, const struct resolver *r, FILE *out)
{
    const struct resolver_stats *stats = resolver_stats(r);
    struct resolver_ends python = stats->python, native = stats->native;
    struct number n;

    if (!stats->sample_count)
        return NULL;
    fprintf(out, "Completeness, as shares of samples\n");
    forget_untaken(&python);
    forget_untaken(&native);
    TRY(print_ends("Python stacks that reached their root", &python, NULL, out));
    TRY(print_ends("native stacks that reached the thread's start", &native, resolver_native_ends(r), out));
    TRY(print_ends("joins of Python runs with native frames", &stats->join, NULL, out));
    print_no_frame(stats, out);
    if (stats->snapshot_count)
        fprintf(out, "  %-46s%9s%12s\n", "unwound from snapshots", "", grouped(stats->snapshot_count, &n));
    fprintf(out, "  %-46s%7.2f %%%12s\n", "samples with a name for every native frame",
            percent(stats->sample_count - stats->unresolved_count, stats->sample_count),
            grouped(stats->sample_count - stats->unresolved_count, &n));
    if (s->late_count)
        fprintf(out, "  %-46s%9s%12s\n", "samples out of order, moved", "", grouped(s->late_count, &n));
    fprintf(out, "\n");
    return NULL;
}

static int compare_losses(const void *a, const void *b)
{
    const struct loss_row *x = a, *y = b;

    if (x->reason != y->reason)
        return x->reason < y->reason ? -1 : 1;
    return strcmp(x->event, y->event);
}

static struct error *print_losses(const struct summary *s, FILE *out)
{
    struct loss_row *rows = malloc((s->losses.count + 1) * sizeof *rows);
    struct number n;

    if (!rows)
        return error_no_memory();
    if (s->losses.count)
        memcpy(rows, s->losses.data, s->losses.count * sizeof *rows);
    qsort(rows, s->losses.count, sizeof *rows, compare_losses);
    fprintf(out, "Losses\n");
    for (size_t i = 0; i < s->losses.count; i++) {
        const char *meaning = trace_loss_meaning(rows[i].reason);
        fprintf(out, "  %-22s%12s  ", rows[i].name, grouped(rows[i].count, &n));
        if (summary_has_several_events(s) && *rows[i].event)
            fprintf(out, "%s: ", rows[i].event);
        fprintf(out, "%s\n", meaning ? meaning : "");
    }
    if (!s->losses.count)
        fprintf(out, "  none\n");
    fprintf(out, "\n");
    free(rows);
    return NULL;
}

static int compare_process_losses(const void *a, const void *b)
{
    const struct process_loss_row *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->reason != y->reason ? (x->reason < y->reason ? -1 : 1) : strcmp(x->process, y->process);
}

/* The losses that belong to a process: what the recorder's limits left out of it. */
static struct error *print_process_losses(const struct summary *s, FILE *out)
{
    enum { SHOWN = 16 };
    size_t count = s->process_losses.count;
    struct process_loss_row *rows = malloc((count + 1) * sizeof *rows);
    struct number n;

    if (!rows)
        return error_no_memory();
    if (count)
        memcpy(rows, s->process_losses.data, count * sizeof *rows);
    qsort(rows, count, sizeof *rows, compare_process_losses);
    if (count)
        fprintf(out, "Processes that met a limit\n  %8s  %-16s%12s  %s\n", "pid", "name", "losses", "kind");
    for (size_t i = 0; i < count && i < SHOWN; i++)
        fprintf(out, "  %8u  %-16s%12s  %s\n", rows[i].pid, rows[i].process, grouped(rows[i].count, &n), rows[i].name);
    if (count > SHOWN)
        fprintf(out, "  and %s more\n", grouped(count - SHOWN, &n));
    if (count)
        fprintf(out, "\n");
    free(rows);
    return NULL;
}

static int compare_modules(const void *a, const void *b)
{
    const struct modcache_entry *x = *(const struct modcache_entry *const *)a;
    const struct modcache_entry *y = *(const struct modcache_entry *const *)b;

    if (x->sample_count != y->sample_count)
        return x->sample_count > y->sample_count ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Paths and names come from traces, files and archives: print them with printable_put() only. */
static void put_detail(struct buf *line, const char *before, const char *text)
{
    buf_put_str(line, before);
    printable_put(line, text);
}

static void describe_module(const struct modcache_entry *m, struct buf *line)
{
    struct number n;

    buf_printf(line, "  %12s", grouped(m->sample_count, &n));
    buf_printf(line, "%12s", grouped(m->unresolved_count, &n));
    put_detail(line, "  ", m->path);
    if (m->kind == TRACE_MODULE_ANONYMOUS) {
        buf_put_str(line, "\n      code made at run time; ");
        if (m->perf_map_names)
            buf_printf(line, "%s names from the process's own table", grouped(m->perf_map_names, &n));
        else
            buf_put_str(line, "the trace has no table of its symbols");
        if (m->perf_map_bad)
            buf_printf(line, "; %s of its lines cannot be read", grouped(m->perf_map_bad, &n));
        return;
    }
    if (m->build_id_len) {
        buf_printf(line, "\n      %s %s", elf_id_kind_text(m->id_kind), hex_of(m->build_id, m->build_id_len).text);
    } else {
        buf_put_str(line, "\n      no build ID");
    }
    put_detail(line, "; ", m->symbols ? symbols_quality_text(symbols_quality(m->symbols)) : "not opened");
    if (m->files.source)
        put_detail(line, "; ", m->files.source);
    if (m->files.debug_source)
        put_detail(line, m->files.source ? "; debug file: " : "; only its debug file: ", m->files.debug_source);
    if (m->files.supplement_source)
        put_detail(line, "; supplement: ", m->files.supplement_source);
    if (m->files.problem)
        put_detail(line, "; ", m->files.problem);
    if (m->trouble)
        put_detail(line, "; ", m->trouble);
}

static struct error *print_module(const struct modcache_entry *m, FILE *out)
{
    struct buf line = {0};

    describe_module(m, &line);
    struct error *err = line.bad ? error_no_memory() : NULL;
    if (!err)
        fprintf(out, "%s\n", buf_cstr(&line));
    buf_deinit(&line);
    return err;
}

static struct error *print_modules(const struct resolver *r, FILE *out)
{
    struct modcache *modules = resolver_modules(r);
    uint32_t count = modcache_count(modules), shown = 0;
    const struct modcache_entry **rows = malloc((count + 1) * sizeof *rows);
    struct error *err = NULL;

    if (!rows)
        return error_no_memory();
    for (uint32_t i = 0; i < count; i++) {
        rows[shown] = modcache_get(modules, i);
        shown += rows[shown]->sample_count != 0 || rows[shown]->trouble != NULL;
    }
    if (!sort_stable(rows, shown, sizeof *rows, compare_modules))
        err = error_no_memory();
    if (shown && !err)
        fprintf(out, "Modules\n  %12s%12s  %s\n", "samples", "unresolved", "path");
    for (uint32_t i = 0; i < shown && !err; i++)
        err = print_module(rows[i], out);
    free(rows);
    return err;
}

static struct error *print_details(struct summary *s, const struct resolver *r, FILE *out)
{
    for (size_t i = 0; i < s->files.count; i++)
        print_file(&s->files.data[i], out);
    print_events(s, out);
    TRY(processes_print(s, r, true, out));
    TRY(memory_table_print(s, r, true, out));
    TRY(threads_print(s, r, true, out));
    TRY(thread_waits_print(s, r, true, out));
    TRY(print_labels(s, out));
    TRY(print_completeness(s, r, out));
    TRY(print_losses(s, out));
    TRY(print_process_losses(s, out));
    return print_modules(r, out);
}

struct error *summary_print(struct summary *s, const struct resolver *r, bool verbose, FILE *out)
{
    TRY(verdict_print(s, r, false, out));
    if (verbose)
        return print_details(s, r, out);
    TRY(processes_print(s, r, false, out));
    TRY(memory_table_print(s, r, false, out));
    TRY(threads_print(s, r, false, out));
    TRY(thread_waits_print(s, r, false, out));
    fputs("Every figure, all losses and all modules: -v\n", out);
    return NULL;
}

bool summary_is_damaged(const struct summary *s)
{
    for (size_t i = 0; i < s->files.count; i++) {
        if (s->files.data[i].stats.damage_count)
            return true;
    }
    return false;
}

void summary_print_trouble(const struct summary *s, FILE *out)
{
    struct number n;

    for (size_t i = 0; i < s->files.count; i++) {
        const struct summary_file *f = &s->files.data[i];
        if (f->has_snapshots && f->machine && !machine_by_name(f->machine))
            fprintf(out, "pysym: %s: was recorded on a %s, which this pysym cannot unwind: native stacks in snapshots "
                    "are left out\n", f->path, f->machine);
        if (f->stats.damage_count) {
            fprintf(out, "pysym: %s: %s bytes damaged and skipped", f->path, grouped(f->stats.damaged_bytes, &n));
            if (f->damages.count)
                fprintf(out, "; first at offset %" PRIu64 ": %s", f->damages.data[0].file_offset,
                        f->damages.data[0].reason);
            fputc('\n', out);
        } else if (!f->stats.ended) {
            fprintf(out, "pysym: %s: does not end in good order: the recorder died or the file was cut\n", f->path);
        }
    }
}
