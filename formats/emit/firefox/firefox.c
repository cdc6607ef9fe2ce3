/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file for the Firefox Profiler, in its "processed" format: JSON with tables of stacks that all threads share, and for
 * each thread a table of samples and one of markers. (docs-developer/ of github.com/firefox-devtools/profiler)
 *
 *  - A track is a thread and an event: the Profiler gives all samples of a track one unit, which is milliseconds for
 *    events of time, bytes, or a count. Tracks of further events have their name behind the thread's.
 *  - The height of a track is the CPU time that it used; the category of the innermost frame gives the colour.
 *  - The file says that its names are complete ("symbolicated"): otherwise the Profiler would send the names and build
 *    IDs of all binaries to Mozilla's server of symbols.
 *
 * Samples come in order of time but are written by track, column after column. So they are kept in a temporary file
 * (spool.h), as markers are; memory holds the tables of stacks, and a little for each thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "formats/emit/emit.h"
#include "formats/emit/firefox/markers.h"
#include "formats/emit/firefox/meta.h"
#include "formats/emit/firefox/stacks.h"
#include "formats/emit/firefox/tables.h"
#include "formats/emit/firefox/tracks.h"
#include "formats/emit/json.h"

enum { SAMPLE_WORK = 1200 }; /* to be written to the temporary file, and read back for each column; see limits.h */

struct firefox {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct spool own_spool, *spool; /* `spool`: its own, or the one that it shares */
    struct firefox_times times;
    struct firefox_stacks stacks;
    struct firefox_tracks tracks;
    struct firefox_markers markers;
    struct map process_of_pid; /* pid -> the first process that has it */
};

static struct error *firefox_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    struct firefox *f = calloc(1, sizeof *f);

    if (!f)
        return error_no_memory();
    *f = (struct firefox){.model = model, .options = *options, .out = out, .times.model = model};
    spool_init(&f->own_spool);
    f->spool = options->spool ? options->spool : &f->own_spool;
    firefox_stacks_init(&f->stacks, model, &f->options);
    f->tracks = (struct firefox_tracks){.model = model,
                                        .limits = options->limits,
                                        .spool = f->spool,
                                        .times = &f->times,
                                        .keys.arena.limits = options->limits};
    f->markers = (struct firefox_markers){.model = model, .limits = options->limits, .spool = f->spool, .times = &f->times};
    f->process_of_pid.limits = options->limits;
    *state = f;
    return NULL;
}

static struct error *firefox_sample(void *state, const struct emit_sample *sample)
{
    struct firefox *f = state;

    if (!limits_work(f->options.limits, SAMPLE_WORK) || !firefox_times_note(&f->times, sample) ||
        !firefox_stacks_use(&f->stacks, sample->stack))
        return error_no_memory();
    TRY(firefox_tracks_add(&f->tracks, sample));
    return firefox_markers_add(&f->markers, sample);
}

/* ---- samples ---- */

enum column { COLUMN_STACK, COLUMN_TIME, COLUMN_WEIGHT, COLUMN_CPU };

static void put_row(const struct firefox *f, const struct firefox_row *row, enum column column, bool is_time, struct buf *out)
{
    switch (column) {
    case COLUMN_STACK:
        if (row->has_stack)
            buf_printf(out, "%" PRIu32, firefox_stacks_find(&f->stacks, row->stack));
        else
            buf_put_str(out, "null");
        break;
    case COLUMN_TIME:
        firefox_put_ms(row->time_ns, out);
        break;
    case COLUMN_WEIGHT:
        if (is_time)
            firefox_put_ms(row->weight, out);
        else
            buf_printf(out, "%" PRIu64, row->weight);
        break;
    case COLUMN_CPU:
        buf_printf(out, "%" PRIu64, row->cpu_ns);
        break;
    }
}

static struct error *write_column(struct firefox *f, const struct firefox_track *track, const char *name, enum column column,
                                  uint64_t *row_count)
{
    struct firefox_rows rows = {.tracks = &f->tracks, .track = track};
    bool is_time = event_is_time(f->model->events[track->event].kind);
    const struct firefox_row *row;
    struct buf text = {0};
    struct error *err;

    *row_count = 0;
    fprintf(f->out, ",\n\"%s\":[", name);
    while (!(err = firefox_rows_next(&rows, &row)) && row) {
        buf_clear(&text);
        if ((*row_count)++)
            buf_put_u8(&text, ',');
        put_row(f, row, column, is_time, &text);
        if (text.bad) {
            err = error_no_memory();
            break;
        }
        fwrite(text.data, text.len_bytes, 1, f->out);
    }
    fputc(']', f->out);
    firefox_rows_deinit(&rows);
    buf_deinit(&text);
    return err;
}

static struct error *write_samples(struct firefox *f, const struct firefox_track *track)
{
    const struct emit_event *event = &f->model->events[track->event];
    uint64_t count;

    fprintf(f->out, "\"samples\":{\"weightType\":\"%s\"",
            event_is_time(event->kind) ? "tracing-ms" : event_is_bytes(event->kind) ? "bytes" : "samples");
    TRY(write_column(f, track, "stack", COLUMN_STACK, &count));
    TRY(write_column(f, track, "time", COLUMN_TIME, &count));
    TRY(write_column(f, track, "weight", COLUMN_WEIGHT, &count));
    if (event_is_time(event->kind))
        TRY(write_column(f, track, "threadCPUDelta", COLUMN_CPU, &count));
    fprintf(f->out, ",\"length\":%" PRIu64 "},\n", count);
    return ferror(f->out) ? error_os(errno, "cannot write the profile") : NULL;
}

/* ---- tracks ---- */

/* Tracks of a thread are neighbours. */
static bool is_first_of_thread(const struct firefox *f, const struct firefox_track *track)
{
    return track == f->tracks.list.data || track[-1].thread != track->thread;
}

static bool is_main(const struct firefox *f, const struct firefox_track *track)
{
    const struct emit_thread *thread = &f->model->threads[track->thread];

    return thread->tid == f->model->processes[thread->process].pid && is_first_of_thread(f, track);
}

/* "gunicorn" for a main thread, else "worker 26041"; with the event's name where it is not the first. */
static void put_track_name(const struct firefox *f, const struct firefox_track *track, struct buf *out)
{
    const struct emit_thread *thread = &f->model->threads[track->thread];
    const struct emit_process *process = &f->model->processes[thread->process];
    bool main = thread->tid == process->pid;

    if (main)
        name_process_plain(process, out);
    else
        name_plain(thread->name, out);
    if (!out->len_bytes)
        buf_put_str(out, "thread");
    if (!main)
        buf_printf(out, " %" PRIu32, thread->tid);
    if (track->event != firefox_first_event(f->model)) {
        buf_put_str(out, " \xc2\xb7 ");
        name_word(f->model->events[track->event].name, out);
    }
}

static void put_process_name(const struct emit_process *process, struct buf *out)
{
    name_process_plain(process, out);
    if (process->free_threaded)
        buf_put_str(out, " (free-threaded)");
    if (*process->container) {
        buf_put_str(out, ", container ");
        name_plain(process->container, out);
    }
}

/* The Profiler takes tracks of one pid for one process: of several hosts, or at different times, they are not. */
static struct error *put_pid(struct firefox *f, uint32_t process, struct buf *out)
{
    uint32_t pid = f->model->processes[process].pid;
    const uint64_t *first = map_get(&f->process_of_pid, pid);

    if (!first && !map_set(&f->process_of_pid, pid, process))
        return error_no_memory();
    buf_printf(out, "\"pid\":\"%" PRIu32, pid);
    if (first && *first != process)
        buf_printf(out, ".%" PRIu32, process);
    buf_put_str(out, "\"");
    return NULL;
}

static struct error *put_track_head(struct firefox *f, const struct firefox_track *track, struct buf *out)
{
    const struct emit_thread *thread = &f->model->threads[track->thread];
    struct buf name = {0};

    buf_put_str(out, "{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
                     "\"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true,\"name\":");
    put_track_name(f, track, &name);
    json_put_foreign(buf_cstr(&name), out);
    buf_clear(&name);
    put_process_name(&f->model->processes[thread->process], &name);
    buf_put_str(out, ",\"processName\":");
    json_put_foreign(buf_cstr(&name), out);
    buf_printf(out, ",\"isMainThread\":%s,\"tid\":%" PRIu32 ",", is_main(f, track) ? "true" : "false", thread->tid);
    struct error *err = put_pid(f, thread->process, out);
    if (!err && (out->bad || name.bad))
        err = error_no_memory();
    buf_deinit(&name);
    return err;
}

/* The markers of a thread are in its first track. */
static struct error *write_track(struct firefox *f, const struct firefox_track *track)
{
    uint32_t marked = is_first_of_thread(f, track) ? track->thread : FIREFOX_NONE;
    struct buf head = {0};
    struct error *err = put_track_head(f, track, &head);

    fprintf(f->out, "%s,\n", buf_cstr(&head));
    buf_deinit(&head);
    if (err)
        return err;
    TRY(write_samples(f, track));
    fputs("\"markers\":", f->out);
    TRY(firefox_markers_write(&f->markers, &f->stacks, marked, f->out));
    fputc('}', f->out);
    return NULL;
}

/* The Profiler cannot open a file without a thread. */
static struct error *write_no_track(struct firefox *f)
{
    fputs("{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
          "\"unregisterTime\":null,\"pausedRanges\":[],\"name\":\"no samples\",\"isMainThread\":true,\"tid\":0,\"pid\":\"0\",\n"
          "\"samples\":{\"weightType\":\"samples\",\"stack\":[],\"time\":[],\"weight\":[],\"length\":0},\n\"markers\":",
          f->out);
    TRY(firefox_markers_write(&f->markers, &f->stacks, FIREFOX_NONE, f->out));
    fputc('}', f->out);
    return NULL;
}

static struct error *firefox_finish(void *state)
{
    struct firefox *f = state;

    TRY(firefox_markers_end(&f->markers));
    TRY(firefox_stacks_number(&f->stacks));
    TRY(firefox_tracks_sort(&f->tracks));
    fputs("{\"meta\":", f->out);
    TRY(firefox_meta_write(&f->stacks, &f->tracks, &f->options, f->out));
    fputs(",\n\"libs\":", f->out);
    TRY(firefox_libraries_write(&f->stacks, f->out));
    fputs(",\n\"threads\":[\n", f->out);
    for (size_t i = 0; i < f->tracks.list.count; i++) {
        fputs(i ? ",\n" : "", f->out);
        TRY(write_track(f, &f->tracks.list.data[i]));
    }
    if (!f->tracks.list.count)
        TRY(write_no_track(f));
    fputs("],\n\"shared\":", f->out);
    TRY(firefox_tables_write(&f->stacks, f->out));
    fputs("}\n", f->out);
    return ferror(f->out) ? error_os(errno, "cannot write the profile") : NULL;
}

static void firefox_destroy(void *state)
{
    struct firefox *f = state;

    if (!f)
        return;
    firefox_markers_deinit(&f->markers);
    firefox_tracks_deinit(&f->tracks);
    firefox_stacks_deinit(&f->stacks);
    firefox_times_deinit(&f->times);
    map_deinit(&f->process_of_pid);
    spool_deinit(&f->own_spool);
    free(f);
}

const struct emitter emitter_firefox = {
    .name = "firefox",
    .description = "for profiler.firefox.com: threads over time, with waits, GIL and tasks as markers",
    .extension = ".firefox.json",
    .syntax = JOB_TEXT_JSON,
    .time_order = true,
    .begin = firefox_begin,
    .sample = firefox_sample,
    .end = firefox_finish,
    .destroy = firefox_destroy,
};
