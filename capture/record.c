/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/archive.h"
#include "capture/budget.h"
#include "capture/bundle.h"
#include "capture/codes.h"
#include "capture/command.h"
#include "capture/files.h"
#include "capture/host.h"
#include "capture/kallsyms.h"
#include "capture/modules.h"
#include "capture/privileges.h"
#include "capture/proc_sampler.h"
#include "capture/processes.h"
#include "capture/queue.h"
#include "capture/recorder.h"
#include "capture/sandbox.h"
#include "capture/sampler.h"
#include "capture/sideband.h"
#include "capture/tables.h"
#include "capture/late_unwind.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
/* Between two drainings of the ring. Nothing is woken for a sample; at low rates waking is what costs most. */
#define DRAIN_NS (100 * MS)
#define DRAIN_SLOW_NS (250 * MS)
#define DRAIN_SLOW_HZ 300
/*
 * After news from the side-band (an exec, a library mapped) not sooner than this: busy hosts have thousands a second.
 * While a process that is sampled loads its libraries, sooner.
 */
#define NEWS_NS (8 * MS)
#define NEWS_LOADING_NS (2 * MS)
#define LOADING_NS (500 * MS)
/* An event stamped longer ago than this has reached its buffer, whichever CPU it is from. */
#define SETTLE_NS (1 * MS)
/* Blocks are written at least so often: what a kill -9 can cost. */
#define FLUSH_NS SECOND
/* Kept of code objects; a large host's programs have some 15 MiB. */
#define CODES_MAX_BYTES (UINT64_C(32) << 20)
#define SIDEBAND_PAGES 128
/* /proc/stat counts in these (USER_HZ). */
#define IDLE_GRAIN_NS (10 * MS)
/* Without BPF each sample costs several system calls. */
#define PROC_HZ_MAX 10000

enum queued { QUEUED_MESSAGE, QUEUED_SIDEBAND };
enum end_reason { END_SIGNAL = 0, END_DURATION, END_COMMAND, END_PROCESSES, END_ERROR, END_ROTATED, END_FULL };

const char *const record_unwind_names[] = {
    [UNWIND_TABLES] = "tables",
    [UNWIND_SNAPSHOT] = "snapshot",
    [UNWIND_BOTH] = "both",
    [UNWIND_FRAME_POINTERS] = "fp",
    [UNWIND_NO] = "none",
    NULL,
};

const char *const record_backend_names[] = {
    [BACKEND_AUTO] = "auto",
    [BACKEND_BPF] = "bpf",
    [BACKEND_PROC] = "proc",
    NULL,
};

/* One of two sources of samples: `sampler` with `sideband`, or `proc`. */
struct record {
    const struct record_options *o;
    struct host host;
    struct modules *modules;
    struct sampler *sampler;
    struct tables *tables;
    struct late_unwind *late_unwind;
    struct sideband *sideband;
    struct proc_sampler *proc;
    struct processes *processes;
    struct codes *codes;
    struct kallsyms *kallsyms;
    struct trace_writer *writer;
    struct recorder *recorder;
    struct queue *queue;
    struct bundle *bundle; /* NULL: no archive */
    struct command command;
    struct files files;
    struct budget budget;
    struct sampler_ticks *ticks, *file_ticks; /* now, and when the file was begun */
    uint64_t *idle_ns; /* of each CPU when the file was begun */
    uint64_t file_start_ns, file_lost, skipped, bytes_before; /* lost and bytes in the files before */
    uint32_t file_count;
    bool rotates, rotate_now;
    const int *cpus;
    uint32_t cpu_count;
    int signal_fd, command_fd;
    uint64_t start_ns, flushed_ns, status_ns;
    bool stop, stopping_command;
    enum end_reason reason;
    uint64_t losses[LOSS_LIMIT];
    char frequency_text[32], stack_text[32];
    char *missing; /* capabilities */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* ---- what comes in ---- */

static struct error *on_message(void *ctx, const void *message, uint32_t len)
{
    struct record *r = ctx;
    uint64_t time_ns;

    if (len >= sizeof(struct wire_sample) && ((const struct wire_sample *)message)->type == WIRE_SAMPLE)
        time_ns = ((const struct wire_sample *)message)->time_ns;
    else if (len >= sizeof(struct wire_code) && ((const struct wire_code *)message)->type == WIRE_CODE)
        time_ns = ((const struct wire_code *)message)->time_ns;
    else
        return error_create(ERROR_FORMAT, "the sampler sent a message of an unknown kind");
    return queue_add(r->queue, time_ns, QUEUED_MESSAGE, message, len);
}

static struct error *on_sideband(void *ctx, const struct sideband_event *event)
{
    struct record *r = ctx;
    /* The text is the last member: what is behind its end need not be copied. */
    uint32_t len = (uint32_t)(offsetof(struct sideband_event, text) + strlen(event->text) + 1);

    return queue_add(r->queue, event->time_ns, QUEUED_SIDEBAND, event, len);
}

static struct error *on_queued(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len)
{
    struct record *r = ctx;

    if (trace_writer_epoch_due(r->writer, time_ns))
        TRY(recorder_begin_epoch(r->recorder, time_ns));
    if (kind == QUEUED_SIDEBAND) {
        struct sideband_event event;
        memset(&event, 0, sizeof event);
        memcpy(&event, data, len);
        return processes_apply(r->processes, &event);
    }
    if (((const struct wire_sample *)data)->type == WIRE_SAMPLE)
        return recorder_sample(r->recorder, data, len);
    return recorder_code(r->recorder, data, len);
}

static struct error *on_proc_sample(void *ctx, const void *message, uint32_t len)
{
    /* At once, while the code objects are there. */
    return on_queued(ctx, QUEUED_MESSAGE, ((const struct wire_sample *)message)->time_ns, message, len);
}

static struct sampler_event_info source_event(const struct record *r)
{
    return r->proc ? proc_sampler_event(r->proc) : sampler_event(r->sampler);
}

static void sum_losses(struct record *r)
{
    uint64_t bpf[WIRE_LOSS_COUNT] = {0};
    const uint64_t *own = recorder_loss_counts(r->recorder);

    if (r->sampler)
        sampler_losses(r->sampler, bpf);
    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        r->losses[i] = bpf[i] + own[i];
    if (r->proc)
        proc_sampler_losses(r->proc, r->losses);
    r->losses[LOSS_code_incomplete] += codes_counts(r->codes).incomplete;
    r->losses[LOSS_string_cut] += codes_counts(r->codes).cut;
    r->losses[LOSS_sideband_lost] += processes_counts(r->processes).lost;
    r->losses[LOSS_known_late] += processes_counts(r->processes).late_ticks;
    r->losses[LOSS_tick_skipped] += r->skipped;
}

/* Samples that are not in the file at all; the other losses leave a sample with less in it. */
static uint64_t lost_samples(const struct record *r)
{
    return r->losses[LOSS_ring_full] + r->losses[LOSS_tick_skipped] + r->losses[LOSS_nested] +
           r->losses[LOSS_process_gone] + r->losses[LOSS_time_unseen] + r->losses[LOSS_known_late];
}

static struct error *drain(struct record *r, uint64_t until_ns)
{
    if (r->proc)
        return proc_sampler_round(r->proc, on_proc_sample, r);
    TRY(sideband_drain(r->sideband, on_sideband, r));
    TRY(sampler_drain(r->sampler, on_message, r));
    TRY(queue_run(r->queue, until_ns, on_queued, r));
    if (r->tables)
        TRY(tables_poll(r->tables, now_ns()));
    return processes_settle(r->processes, now_ns());
}

/* Programs may make code for ever: what is kept of it has a limit, and is met again where it is still in use. */
static struct error *limit_codes(struct record *r)
{
    if (!r->sampler || codes_bytes(r->codes) < CODES_MAX_BYTES)
        return NULL;
    TRY(drain(r, UINT64_MAX)); /* what refers to it */
    processes_forget_codes(r->processes);
    codes_clear(r->codes);
    sampler_forget_codes(r->sampler);
    return NULL;
}

static void flush(struct record *r, uint64_t time_ns)
{
    sum_losses(r);
    recorder_losses(r->recorder, time_ns, r->losses);
    trace_writer_flush(r->writer);
    r->flushed_ns = time_ns;
}

/* ---- what the user sees ---- */

static void format_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int unit = 0;

    while (v >= 1024 && unit < 4) {
        v /= 1024;
        unit++;
    }
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", v, units[unit]);
}

static uint64_t bytes_written(const struct record *r)
{
    return r->bytes_before + (r->writer ? trace_writer_bytes(r->writer) : 0);
}

static void status_line(struct record *r, uint64_t time_ns)
{
    char size[32];

    r->status_ns = time_ns;
    sum_losses(r);
    format_bytes(bytes_written(r), size);
    fprintf(r->o->messages, "\r\033[K%.0f s  %u Python processes  %" PRIu64 " samples  %" PRIu64 " lost  %s",
            (double)(time_ns - r->start_ns) / 1e9, processes_counts(r->processes).python,
            recorder_counts(r->recorder).samples, lost_samples(r), size);
    if (r->budget.frequency_hz < r->o->frequency_hz)
        fprintf(r->o->messages, "  at %" PRIu64 " Hz", r->budget.frequency_hz);
    fflush(r->o->messages);
}

/* Of those that were ended. */
static const char *last_file(const struct record *r)
{
    return r->files.written.count ? r->files.written.data[r->files.written.count - 1] : r->o->output;
}

static void proc_cost(const struct record *r, FILE *f)
{
    struct proc_sampler_counts c = proc_sampler_counts(r->proc);
    struct rusage usage;

    if (!c.samples)
        return;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(f, "Cost: %.1f us to read a sample (%.1f %% of them while the thread was kept from running), %.2f s of CPU in "
               "pycap, %ld KiB resident at most.\n",
            (double)c.read_ns / (double)c.samples / 1000, 100.0 * (double)c.still / (double)c.samples,
            (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
            usage.ru_maxrss);
}

static void summary(struct record *r, uint64_t end_ns)
{
    FILE *f = r->o->messages;
    struct recorder_counts c = recorder_counts(r->recorder);
    uint64_t bytes = bytes_written(r);
    double seconds = (double)(end_ns - r->start_ns) / 1e9;
    char size[32];

    format_bytes(bytes, size);
    fprintf(f, "Recorded %" PRIu64 " samples of %" PRIu64 " processes in %.1f s into %s (%s", c.samples, c.processes,
            seconds, last_file(r), size);
    if (c.samples)
        fprintf(f, ", %.0f bytes a sample", (double)bytes / (double)c.samples);
    fprintf(f, ").\n");
    uint64_t with_python = c.python_complete + c.python_cut;
    if (with_python)
        fprintf(f, "Python stacks that reached their root: %.2f %% of %" PRIu64 ".\n",
                100.0 * (double)c.python_complete / (double)with_python, with_python);
    for (uint32_t i = 0; i < LOSS_LIMIT; i++) {
        if (i != LOSS_complete && r->losses[i])
            fprintf(f, "  %-22s %10" PRIu64 "  %s\n", trace_loss_name(i), r->losses[i], trace_loss_meaning(i));
    }
    if (r->proc)
        proc_cost(r, f);
    uint64_t run_ns = 0, run_count = 0;
    if (r->sampler)
        sampler_run_time(r->sampler, &run_ns, &run_count);
    if (run_ns && run_count) {
        struct rusage usage;
        uint64_t stats[WIRE_STAT_COUNT];
        getrusage(RUSAGE_SELF, &usage);
        sampler_stats(r->sampler, stats);
        fprintf(f, "Cost: %.2f us of BPF a tick (%" PRIu64 " ticks, %" PRIu64 " of them samples), %.2f s of CPU in pycap, "
                   "%ld KiB resident at most.\n",
                (double)run_ns / (double)run_count / 1000, run_count, stats[WIRE_STAT_SAMPLES],
                (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
                usage.ru_maxrss);
    }
    if (r->file_count > 1)
        fprintf(f, "%u files, the last of them named here%s.\n", r->file_count, r->o->keep ? "; not all are kept" : "");
    if (r->budget.steps)
        fprintf(f, "The rate was lowered %" PRIu64 " times, and is %" PRIu64 " Hz at the end; weights take that into account.\n",
                r->budget.steps, r->budget.frequency_hz);
    if (r->reason == END_FULL)
        fprintf(f, "The capture ended at --max-size.\n");
    if (c.samples && strcmp(r->o->output, "-"))
        fprintf(f, "Next: pysym %s --format speedscope -o profile.speedscope.json\n", last_file(r));
    else if (!c.samples)
        fprintf(f, "No sample fell on a Python process: were they idle? 'pycap info' lists what can be recorded.\n");
}

/* ---- setting up ---- */

/* Those asked for must be there and be something that can be recorded. */
static struct error *check_pids(struct record *r)
{
    const struct record_options *o = r->o;
    uint32_t usable = 0;
    struct error *last = NULL;

    for (uint32_t i = 0; i < o->pid_count; i++) {
        struct process *p = processes_find(r->processes, o->pids[i]);
        char version[32];
        struct error *err = r->proc ? proc_sampler_check(r->processes, o->pids[i]) : NULL;
        if (!err && !p)
            err = error_create(ERROR_NOT_FOUND, "there is no process %u", o->pids[i]);
        else if (!err && (o->any || !p->passes))
            usable++; /* what the filter lets through may come yet */
        else if (!err && !p->python)
            err = error_create(ERROR_UNSUPPORTED,
                               "process %u (%s) is not a CPython: nothing it maps holds an interpreter (-a records such "
                               "processes too)",
                               o->pids[i], p->comm);
        else if (!err && p->python->python.refused)
            err = error_create(ERROR_UNSUPPORTED, "process %u (%s, %s): %s", o->pids[i], p->comm,
                               py_version_text(p->python->python.version_hex, version), p->python->python.refused);
        else if (!err)
            usable++;
        if (err) {
            if (o->pid_count > 1)
                fprintf(o->messages, "pycap: %s\n", error_text(err));
            error_destroy(last);
            last = err;
        }
    }
    if (usable) {
        error_destroy(last);
        return NULL;
    }
    return last;
}

/* ---- the files, one after the other ---- */

/* Opens the (next) file; what is counted per file begins here. */
static struct error *open_file(struct record *r, uint64_t time_ns)
{
    struct trace_writer_options writer = {0};

    TRY(files_open(&r->files));
    for (uint32_t i = 0; i < r->cpu_count; i++)
        r->idle_ns[i] = host_idle_ns(r->cpus[i]);
    r->file_start_ns = time_ns;
    r->file_count++;
    return trace_writer_create(r->files.fd, r->files.path, &writer, time_ns, &r->writer);
}

/*
 * Ticks that should have come and did not: known for clocks, whose period is fixed. An idle CPU may sleep through
 * its ticks, which loses nothing: time that the kernel accounts as idle is left out on both sides.
 */
static void count_skipped(struct record *r, const struct sampler_ticks *ticks)
{
    struct sampler_event_info event = source_event(r);

    if (!event.is_time || r->budget.steps) /* the period was not the same all the time */
        return;
    for (uint32_t i = 0; i < r->cpu_count; i++) {
        uint64_t idle = host_idle_ns(r->cpus[i]);
        idle = idle > r->idle_ns[i] ? idle - r->idle_ns[i] : 0;
        uint64_t busy = ticks[i].count > idle ? ticks[i].count - idle : 0;
        uint64_t seen = ticks[i].seen - ticks[i].seen_idle;
        /* Idle time is accounted in hundredths of a second, at either end of the capture. */
        uint64_t expected = busy > 4 * IDLE_GRAIN_NS ? (busy - 4 * IDLE_GRAIN_NS) / event.period : 0;
        if (expected > seen)
            r->skipped += expected - seen;
    }
}

/* Puts into the file what stands at its end, and closes it. Everything up to `time_ns` has been recorded. */
static struct error *end_file(struct record *r, uint64_t time_ns, enum end_reason reason)
{
    struct sampler_ticks ticks[r->cpu_count];
    uint32_t tick_count = r->sampler ? r->cpu_count : 0;

    if (r->sampler)
        TRY(sampler_ticks(r->sampler, r->ticks));
    for (uint32_t i = 0; i < tick_count; i++) {
        const struct sampler_ticks *now = &r->ticks[i], *then = &r->file_ticks[i];
        r->ticks[i].seen_others += recorder_unwanted(r->recorder, (uint32_t)now->cpu);
        ticks[i] = (struct sampler_ticks){
            .cpu = now->cpu,
            .count = now->count - then->count,
            .enabled_ns = now->enabled_ns - then->enabled_ns,
            .running_ns = now->running_ns - then->running_ns,
            .seen = now->seen - then->seen,
            .seen_idle = now->seen_idle - then->seen_idle,
            .seen_others = now->seen_others - then->seen_others,
        };
        r->file_ticks[i] = *now;
    }
    TRY(recorder_perf_maps(r->recorder, time_ns));
    if (r->sampler)
        count_skipped(r, ticks);
    sum_losses(r);
    recorder_losses(r->recorder, time_ns, r->losses);
    recorder_ticks(r->recorder, time_ns, ticks, tick_count);
    recorder_end(r->recorder, time_ns, reason, lost_samples(r) - r->file_lost);
    r->file_lost = lost_samples(r);
    struct error *err = trace_writer_finish(r->writer);
    r->bytes_before += trace_writer_bytes(r->writer);
    trace_writer_destroy(r->writer);
    r->writer = NULL;
    struct error *closed = files_close(&r->files);
    if (!err)
        return closed;
    error_destroy(closed);
    return err;
}

/* Goes on in another file: what was sampled before `time_ns` stands in the one before, what comes then in this one. */
static struct error *rotate(struct record *r, uint64_t time_ns)
{
    r->rotate_now = false;
    TRY(end_file(r, time_ns, END_ROTATED));
    TRY(open_file(r, time_ns));
    return recorder_next_file(r->recorder, r->writer, time_ns);
}

static bool rotation_due(const struct record *r, uint64_t time_ns)
{
    const struct record_options *o = r->o;

    return r->rotate_now || (o->rotate_ns && time_ns - r->file_start_ns >= o->rotate_ns) ||
           (o->rotate_bytes && trace_writer_bytes(r->writer) >= o->rotate_bytes);
}

/* ---- what the capture may cost ---- */

static struct budget_use budget_use(const struct record *r, uint64_t time_ns)
{
    struct timespec cpu;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct budget_use){
        .time_ns = time_ns,
        .cpu_ns = (uint64_t)cpu.tv_sec * SECOND + (uint64_t)cpu.tv_nsec +
                  (r->sampler ? sampler_cpu_ns(r->sampler) : 0),
        .lost = r->losses[LOSS_ring_full],
        .bytes = bytes_written(r),
    };
}

/* Once a second. */
static struct error *keep_budget(struct record *r, uint64_t time_ns)
{
    struct budget_use use = budget_use(r, time_ns);
    enum budget_reason reason = budget_step(&r->budget, &use);

    if (reason == BUDGET_UNCHANGED)
        return NULL;
    if (reason == BUDGET_END) {
        r->stop = true;
        r->reason = END_FULL;
        return NULL;
    }
    if (r->proc)
        proc_sampler_set_rate(r->proc, r->budget.frequency_hz);
    else
        TRY(sampler_set_rate(r->sampler, r->budget.frequency_hz));
    recorder_period(r->recorder, time_ns, source_event(r).period, budget_reason_text(reason));
    if (!r->o->quiet)
        fprintf(r->o->messages, "%spycap: %" PRIu64 " Hz from here on: %s\n", isatty(fileno(r->o->messages)) ? "\r\033[K" : "",
                r->budget.frequency_hz, budget_reason_text(reason));
    return NULL;
}

/* Why these options are not for the backend without BPF; NULL: they are. */
static struct error *check_proc(const struct record_options *o)
{
    if (!o->command && !o->pid_count)
        return error_create(ERROR_USAGE, "without BPF only a command or named processes can be recorded: -- COMMAND or -p PID");
    if (strcmp(o->event, "cpu-clock") || o->any || o->cpus || o->filter)
        return error_create(ERROR_USAGE, "-e, -a, -C, --comm and --cgroup need BPF");
    if (o->frequency_hz > PROC_HZ_MAX)
        return error_create(ERROR_USAGE, "without BPF the rate is at most %u Hz", PROC_HZ_MAX);
    return NULL;
}

/* Opens the sampler; or says on what grounds it is done without, and leaves it NULL. */
static struct error *open_bpf(struct record *r, const struct sampler_options *options)
{
    const struct record_options *o = r->o;

    if (o->backend == BACKEND_PROC)
        return check_proc(o);
    struct error *err = host_check(&r->host);
    if (!err)
        err = sampler_open(options, &r->sampler);
    if (!err)
        err = sideband_open(r->host.cpus, r->host.cpu_count, SIDEBAND_PAGES, &r->sideband);
    if (!err) {
        r->missing = privileges_missing(&r->host);
        if (!o->quiet)
            privileges_print_missing(&r->host, "pycap: ", o->messages);
    }
    if (!err || o->backend == BACKEND_BPF || err->code == ERROR_USAGE || err->code == ERROR_NO_MEMORY)
        return err;
    struct error *why_not = check_proc(o);
    if (why_not) {
        error_destroy(why_not);
        return err;
    }
    sampler_close(r->sampler);
    r->sampler = NULL;
    const char *why = error_text(err);
    fprintf(o->messages, "pycap: only Python frames are recorded (--backend proc): %.*s\n", (int)strcspn(why, "\n"), why);
    error_destroy(err);
    return NULL;
}

static struct error *follow(struct record *r)
{
    const struct record_options *o = r->o;

    if (o->command)
        return proc_sampler_follow(r->proc, (uint32_t)r->command.pid, false);
    for (uint32_t i = 0; i < o->pid_count; i++)
        TRY(proc_sampler_follow(r->proc, o->pids[i], false));
    return NULL;
}

static struct error *set_up(struct record *r)
{
    const struct record_options *o = r->o;
    bool tables = o->unwind == UNWIND_TABLES || o->unwind == UNWIND_BOTH;
    bool snapshots = o->unwind == UNWIND_SNAPSHOT || o->unwind == UNWIND_BOTH;
    sigset_t signals;

    r->rotates = o->rotate_ns || o->rotate_bytes || o->keep;
    TRY(files_check(o->output, r->rotates));
    TRY(host_read(&r->host));
    files_init(&r->files, &(struct files_options){o->output, r->host.hostname, r->rotates, o->keep});
    r->cpus = o->cpus ? o->cpus : r->host.cpus;
    r->cpu_count = o->cpus ? o->cpu_count : r->host.cpu_count;
    for (uint32_t i = 0; i < r->cpu_count; i++) {
        bool online = false;
        for (uint32_t k = 0; k < r->host.cpu_count; k++)
            online |= r->host.cpus[k] == r->cpus[i];
        if (!online)
            return error_create(ERROR_USAGE, "there is no CPU %d online", r->cpus[i]);
    }
    r->ticks = calloc(r->cpu_count, sizeof *r->ticks);
    r->file_ticks = calloc(r->cpu_count, sizeof *r->file_ticks);
    r->idle_ns = calloc(r->cpu_count, sizeof *r->idle_ns);
    if (!r->ticks || !r->file_ticks || !r->idle_ns)
        return error_no_memory();

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        return error_os(errno, "signals cannot be blocked");
    signal(SIGPIPE, SIG_IGN);
    r->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signal_fd < 0)
        return error_os(errno, "signals cannot be read");

    TRY(modules_create(&r->modules));
    if (o->archive) {
        const struct bundle_options bundle = {
            .output = o->archive, .strip_code = o->strip_code, .quiet = o->quiet, .messages = o->messages};
        TRY(bundle_create(&bundle, &r->bundle)); /* what cannot be written is better known now */
        modules_hold(r->modules);
    }
    struct sampler_options sampler = {
        .event = o->event,
        .frequency_hz = o->frequency_hz,
        .cpus = r->cpus,
        .cpu_count = r->cpu_count,
        .stack_bytes = tables || snapshots ? o->stack_bytes : 0,
        .every_stack = snapshots,
        .native = tables                                  ? WIRE_NATIVE_TABLES
                  : o->unwind == UNWIND_FRAME_POINTERS ? WIRE_NATIVE_FRAME_POINTERS
                                                       : WIRE_NATIVE_NONE,
        .all = o->any && !o->pid_count && !o->command && !o->filter,
        .table_bytes = o->table_bytes,
        .kernel = o->kernel,
        .python = true,
        .ring_bytes = o->ring_bytes,
        .timed = o->max_cpu > 0,
    };
    TRY(open_bpf(r, &sampler));
    bool by_proc = !r->sampler;
    tables = tables && !by_proc;
    snapshots = snapshots && !by_proc;
    if (tables) {
        struct tables_memory memory;
        sampler_tables(r->sampler, &memory);
        TRY(tables_create(&memory, &r->tables));
        TRY(late_unwind_create(r->tables, &r->late_unwind));
    }
    struct processes_options processes = {
        .tables = r->tables,
        .sampler = r->sampler,
        .all = !o->pid_count && !o->command,
        .follow = o->follow,
        .any = o->any,
        .filter = o->filter,
    };
    TRY(processes_create(&processes, r->modules, &r->processes));
    if (by_proc)
        TRY(proc_sampler_create(r->processes, o->frequency_hz, o->follow, &r->proc));
    TRY(codes_create(&r->codes));
    TRY(kallsyms_create(&r->kallsyms));
    TRY(queue_create(&r->queue));
    if (o->command)
        TRY(command_fork(o->command, &r->command));

    /* The side-band first: what starts while /proc is being read is told of by one or the other. */
    if (r->sideband)
        TRY(sideband_enable(r->sideband));
    uint32_t command_pid = (uint32_t)r->command.pid;
    if (by_proc)
        TRY(follow(r));
    else if (o->command)
        TRY(processes_scan(r->processes, &command_pid, 1));
    else
        TRY(processes_scan(r->processes, o->pids, o->pid_count));
    if (o->pid_count)
        TRY(check_pids(r));
    TRY(processes_settle(r->processes, now_ns()));

    r->start_ns = r->flushed_ns = r->status_ns = now_ns();
    TRY(open_file(r, r->start_ns));
    snprintf(r->frequency_text, sizeof r->frequency_text, "%" PRIu64, o->frequency_hz);
    snprintf(r->stack_text, sizeof r->stack_text, "%u", r->proc ? 0 : o->stack_bytes);
    struct recorder_options recorder = {
        .writer = r->writer,
        .host = &r->host,
        .modules = r->modules,
        .processes = r->processes,
        .codes = r->codes,
        .kallsyms = r->kallsyms,
        .late_unwind = r->late_unwind,
        .snapshots = snapshots,
        .any = o->any,
        .cmdline = o->cmdline,
        .event = source_event(r),
        .frequency_hz = o->frequency_hz,
        .meta = {
            {"backend", record_backend_names[r->proc ? BACKEND_PROC : BACKEND_BPF]},
            {"scope", o->command ? "command" : o->pid_count ? "pids" : "all"},
            {"frequency", r->frequency_text},
            {"unwind", record_unwind_names[r->proc ? UNWIND_NO : o->unwind]},
            {"stack-size", r->stack_text},
            {"kernel", o->kernel && !r->proc ? "yes" : "no"},
            {r->missing ? "without" : NULL, r->missing},
        },
    };
    TRY(recorder_create(&recorder, &r->recorder));
    struct processes_events events = recorder_process_events(r->recorder);
    processes_set_events(r->processes, &events);
    struct budget_use use = budget_use(r, r->start_ns);
    budget_init(&r->budget, &(struct budget_options){o->frequency_hz, o->max_cpu, o->max_bytes}, &use);
    return recorder_begin_epoch(r->recorder, r->start_ns);
}

/* Everything is loaded, attached and open: what is not needed from here on is given up. */
static struct error *confine(struct record *r)
{
    struct privileges_need need = {
        .bpf_map_fd = r->sampler ? sampler_map_fd(r->sampler) : -1,
        .new_files = r->rotates || r->bundle,
        .command = r->o->command != NULL,
    };

    if (r->o->no_sandbox)
        return NULL;
    TRY(privileges_drop(&need));
#ifdef __SANITIZE_ADDRESS__
    return NULL; /* the leak checker forks, and traces, at the end */
#else
    return sandbox_enter(r->command.pid);
#endif
}

static void tear_down(struct record *r)
{
    recorder_destroy(r->recorder);
    trace_writer_destroy(r->writer);
    bundle_destroy(r->bundle);
    queue_destroy(r->queue);
    kallsyms_destroy(r->kallsyms);
    codes_destroy(r->codes);
    proc_sampler_destroy(r->proc);
    processes_destroy(r->processes);
    late_unwind_destroy(r->late_unwind);
    tables_destroy(r->tables);
    sideband_close(r->sideband);
    sampler_close(r->sampler);
    modules_destroy(r->modules);
    command_deinit(&r->command);
    free(r->ticks);
    free(r->idle_ns);
    if (r->command_fd >= 0)
        close(r->command_fd);
    files_deinit(&r->files);
    free(r->file_ticks);
    if (r->signal_fd >= 0)
        close(r->signal_fd);
    free(r->missing);
    host_deinit(&r->host);
}

/* ---- the loop ---- */

static void end_with(struct record *r, enum end_reason reason)
{
    if (!r->stop) {
        r->stop = true;
        r->reason = reason;
    }
}

static void read_signals(struct record *r)
{
    struct signalfd_siginfo info;

    while (read(r->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        if (info.ssi_signo == SIGHUP && r->rotates) {
            r->rotate_now = true;
            continue;
        }
        /* Ctrl-C at the terminal went to the command too: its end is still recorded. A second one is for us. */
        if (info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL && r->command.pid > 0 && !r->command.exited &&
            !r->stopping_command) {
            r->stopping_command = true;
            continue;
        }
        end_with(r, END_SIGNAL);
    }
}

static bool any_pid_left(struct record *r)
{
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(r->processes, &cursor));) {
        if (p->in_scope && !p->ended_ns)
            return true;
    }
    return false;
}

/* How long news are gathered. */
static uint64_t news_ns(const struct record *r, uint64_t time_ns)
{
    return time_ns < processes_counts(r->processes).laid_ns + LOADING_NS ? NEWS_LOADING_NS : NEWS_NS;
}

static struct error *loop(struct record *r)
{
    const struct record_options *o = r->o;
    const int *sideband_fd;
    uint32_t sideband_count = r->sideband ? sideband_fds(r->sideband, &sideband_fd) : 0;
    struct pollfd fds[3 + sideband_count];
    uint64_t last = now_ns(), period = o->frequency_hz <= DRAIN_SLOW_HZ ? DRAIN_SLOW_NS : DRAIN_NS;
    bool terminal = !o->quiet && isatty(fileno(o->messages));

    fds[0] = (struct pollfd){.fd = r->signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = r->command_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = r->tables ? tables_fd(r->tables) : -1, .events = POLLIN};
    for (uint32_t i = 0; i < sideband_count; i++)
        fds[3 + i] = (struct pollfd){.fd = sideband_fd[i], .events = POLLIN};
    while (!r->stop) {
        uint64_t now = now_ns(), due = last + (r->proc ? proc_sampler_wait_ns(r->proc) : period);
        /* News that have not settled yet wait only a moment. */
        if (queue_count(r->queue) && due > last + news_ns(r, now))
            due = last + news_ns(r, now);
        if (o->duration_ns && due > r->start_ns + o->duration_ns)
            due = r->start_ns + o->duration_ns;
        struct timespec wait = {0};
        if (due > now)
            wait = (struct timespec){.tv_sec = (time_t)((due - now) / SECOND), .tv_nsec = (long)((due - now) % SECOND)};
        if (ppoll(fds, 3 + sideband_count, &wait, NULL) < 0 && errno != EINTR)
            return error_os(errno, "waiting failed");
        now = now_ns();
        if (now < due) {
            /* Woken by news: they settle, and those that come with them are gathered. */
            uint64_t until = last + news_ns(r, now);
            if (until < now + SETTLE_NS)
                until = now + SETTLE_NS;
            struct timespec rest = {.tv_nsec = (long)(until - now)};
            nanosleep(&rest, NULL);
            now = now_ns();
        }
        if (fds[0].revents)
            read_signals(r);
        if (r->command.pid > 0 && command_poll(&r->command))
            end_with(r, END_COMMAND);
        if (o->duration_ns && now >= r->start_ns + o->duration_ns)
            end_with(r, END_DURATION);
        last = now;
        TRY(drain(r, now - SETTLE_NS));
        if (now - r->flushed_ns >= FLUSH_NS) {
            TRY(processes_reap(r->processes, now));
            TRY(processes_rescan(r->processes, now));
            TRY(limit_codes(r));
            flush(r, now);
            TRY(keep_budget(r, now));
        }
        if (!r->stop && rotation_due(r, now))
            TRY(rotate(r, now - SETTLE_NS));
        if (trace_writer_failed(r->writer)) {
            end_with(r, END_ERROR);
            return NULL;
        }
        if (o->pid_count && !any_pid_left(r))
            end_with(r, END_PROCESSES);
        if (terminal && now - r->status_ns >= SECOND / 2)
            status_line(r, now);
    }
    if (terminal)
        fprintf(o->messages, "\r\033[K");
    return NULL;
}

static struct error *finish(struct record *r)
{
    uint64_t end_ns;

    if (r->sampler)
        TRY(sampler_disable(r->sampler));
    end_ns = now_ns();
    TRY(drain(r, UINT64_MAX));
    struct error *err = end_file(r, end_ns, r->reason);
    if (!r->o->quiet)
        summary(r, end_ns);
    if (!err && r->bundle)
        err = archive_modules(r->bundle, r->modules, r->o->unwind == UNWIND_SNAPSHOT || r->o->unwind == UNWIND_BOTH);
    return err;
}

struct error *record_run(const struct record_options *options, int *exit_code)
{
    struct record *r = calloc(1, sizeof *r);
    struct error *err;

    *exit_code = 0;
    if (!r)
        return error_no_memory();
    r->o = options;
    r->files.fd = r->signal_fd = r->command_fd = -1;
    r->command.go_fd = r->command.error_fd = -1;
    err = set_up(r);
    if (!err)
        err = confine(r);
    if (!err && r->sampler)
        err = sampler_enable(r->sampler);
    if (!err && options->command) {
        r->command_fd = (int)syscall(SYS_pidfd_open, r->command.pid, 0);
        err = command_go(&r->command, options->command[0]);
    }
    if (!err) {
        err = loop(r);
        struct error *end = err ? NULL : finish(r);
        if (!err)
            err = end;
    }
    if (r->command.pid > 0 && r->command.go_fd < 0 && !r->command.exited) {
        /* We end before the command does: it is told, and its end is waited for. */
        kill(r->command.pid, SIGTERM);
        while (!command_poll(&r->command))
            poll(&(struct pollfd){.fd = r->command_fd, .events = POLLIN}, 1, 1000);
    }
    if (!err && r->command.exited)
        *exit_code = command_exit_code(&r->command);
    tear_down(r);
    free(r);
    return err;
}
