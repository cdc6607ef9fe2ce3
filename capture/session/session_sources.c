/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading the sampler and reading /proc take a tenth of a second each on a large host, and need nothing of each other:
 * a thread does the first, this one the second.
 */
#include "capture/session/session_sources.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "capture/host/errand.h"
#include "capture/host/host_check.h"
#include "capture/host/memory_limit.h"
#include "capture/host/messages.h"
#include "capture/host/privileges.h"

/* Pages of the side-band's buffer on each CPU, and at most of all of them; many CPUs do not start more programs each. */
#define SIDEBAND_PAGES 128
#define SIDEBAND_PAGES_LEAST 16
#define SIDEBAND_PAGES_ALL 16384
/* Files that are open besides those of each CPU. */
#define FILES_BESIDES 1024
/* Without BPF each sample costs several system calls. */
#define PROC_HZ_MAX 10000
/* Unwind tables may take so much, but this part of the memory that there is, and that much in any case. */
#define TABLES_MOST (UINT64_C(256) << 20)
#define TABLES_PART 8
#define TABLES_LEAST (UINT64_C(16) << 20)
/* The rate and number of CPUs that the quotas of what samples bring are meant for. */
#define QUOTAS_HZ 99
#define QUOTAS_CPUS 2

bool session_takes_tables(const struct session_options *o)
{
    return o->unwind == UNWIND_TABLES || o->unwind == UNWIND_BOTH;
}

/* ---- BPF ---- */

/*
 * What unwind tables may take. Libraries of 30 MB of call frame information, as for machine learning, and some beside
 * them have room; a small host gives a part of what it has.
 */
static uint64_t table_bytes(const struct session_options *o)
{
    uint64_t bytes = memory_available() / TABLES_PART;

    if (o->table_bytes)
        return o->table_bytes;
    if (o->max_memory && bytes > o->max_memory / 2)
        bytes = o->max_memory / 2;
    return bytes > TABLES_MOST ? TABLES_MOST : bytes < TABLES_LEAST ? TABLES_LEAST : bytes;
}

struct error *session_begin_helpers(struct session *s)
{
    const struct session_options *o = s->o;

    if (o->backend == BACKEND_PROC) /* which looks at threads itself, and at those only that were asked for */
        return NULL;
    TRY(errand_begin(o->no_sandbox ? NULL : privileges_drop_for_errands, !o->no_sandbox));
    return session_takes_tables(o)
               ? table_maker_create((uint32_t)(table_bytes(o) / WIRE_CHUNK_BYTES), !o->no_sandbox, &s->table_maker)
               : NULL;
}

void session_go_as_started(const struct session *s)
{
    if (!s->o->has_nice)
        setpriority(PRIO_PROCESS, 0, s->context.nice);
    if (s->o->realtime)
        sched_setscheduler(0, s->context.policy, &s->context.priority);
}

/* Why the backend without BPF cannot do what is asked; NULL: it can. */
static struct error *check_proc(const struct session_options *o)
{
    bool by_looks = true;

    if (!o->command && !o->pid_count)
        return error_create(ERROR_USAGE, "without BPF only a command or named processes can be recorded: -- COMMAND or -p PID");
    for (uint32_t i = 0; i < o->events.count; i++) {
        const struct event *event = &o->events.list[i];
        by_looks &= event->source->kind == EVENT_WAIT || event->source->kind == EVENT_TASK || (event->source == event_source("cpu-clock") && event->frequency_hz);
    }
    if (!by_looks)
        return error_create(ERROR_USAGE, "-e and -c need BPF, except cpu-clock at a rate (-F), off-cpu and task-wait");
    if (o->include_non_python || o->cpus || o->filter || o->wakers)
        return error_create(ERROR_USAGE, "-a, -C, --comm, --cgroup and --waker need BPF");
    if (when_list_has(o->when, WHEN_RUNQ) || when_list_has(o->when, WHEN_GIL))
        return error_create(ERROR_USAGE, "--when runq and --when gil need BPF");
    if (session_looks_hz(o) > PROC_HZ_MAX)
        return error_create(ERROR_USAGE, "without BPF the rate is at most %u Hz", PROC_HZ_MAX);
    return NULL;
}

static struct map_sizes sizes_of(const struct session *s)
{
    const struct map_sizes_host host = {s->host.process_count, s->host.thread_count, s->cpu_count};
    struct map_sizes sizes = map_sizes_of(map_sizes_can_grow(s->host.kernel_major, s->host.kernel_minor), &host);
    const char *limit = getenv("PYCAP_PROCESS_LIMIT"); /* for tests */

    if (limit && strtoul(limit, NULL, 10) > 0 && strtoul(limit, NULL, 10) < sizes.processes)
        sizes.processes = (uint32_t)strtoul(limit, NULL, 10);
    return sizes;
}

static uint32_t sideband_pages(uint32_t cpu_count)
{
    uint32_t pages = SIDEBAND_PAGES;

    while (pages > SIDEBAND_PAGES_LEAST && pages * cpu_count > SIDEBAND_PAGES_ALL)
        pages /= 2;
    return pages;
}

static struct error *begin_bpf(struct session *s)
{
    const struct session_options *o = s->o;
    bool tables = session_takes_tables(o), snapshots = session_takes_snapshots(o);
    struct sampler_options sampler = {
        .events = o->events,
        .cpus = s->cpus,
        .cpu_count = s->cpu_count,
        .cpu_end = host_cpu_end(&s->host),
        .sizes = sizes_of(s),
        .stack_bytes = tables || snapshots ? o->stack_bytes : 0,
        .every_stack = snapshots,
        .native = tables                                  ? WIRE_NATIVE_TABLES
                  : o->unwind == UNWIND_FRAME_POINTERS ? WIRE_NATIVE_FRAME_POINTERS
                                                       : WIRE_NATIVE_NONE,
        .unconfigured = o->include_non_python && !o->pid_count && !o->command && !o->filter,
        .table_maker = s->table_maker,
        .kernel = o->kernel,
        .python = true,
        .ring_bytes = o->ring_bytes,
        .wakers = o->wakers,
        .queued = when_list_has(o->when, WHEN_RUNQ),
        .timed = o->max_cpu > 0 || o->status,
        .check_unwind = o->check_unwind,
    };

    TRY(host_check(&s->host));
    host_lift_memlock(); /* for the side-band, too */
    /* Two of the side-band on each CPU, and one of each event. */
    host_want_files((uint64_t)s->host.cpu_count * 2 + (uint64_t)s->cpu_count * o->events.count + FILES_BESIDES);
    TRY(sampler_start(&sampler, &s->sampler_start));
    return sideband_open(s->host.cpus, s->host.cpu_count, sideband_pages(s->host.cpu_count), &s->sideband);
}

/* BPF cannot be had, for the reason `err`. If the proc backend will do, warns and returns NULL. */
static struct error *do_without_bpf(struct session *s, struct error *err)
{
    const struct session_options *o = s->o;

    if (o->backend == BACKEND_BPF || err->code == ERROR_USAGE || err->code == ERROR_NO_MEMORY)
        return err;
    struct error *why_not = check_proc(o);
    if (why_not) {
        error_destroy(why_not);
        return err;
    }
    sideband_close(s->sideband);
    s->sideband = NULL;
    errand_end();
    table_maker_destroy(s->table_maker);
    s->table_maker = NULL;
    session_go_as_started(s);
    const char *why = error_text(err);
    messages_line(o->messages, "only Python frames are recorded (--backend proc)%s: %.*s",
                  event_list_wait(&o->events) == EVENT_NONE ? "" : ", and waits by reading all threads at a rate",
                  (int)strcspn(why, "\n"), why);
    error_destroy(err);
    return NULL;
}

struct error *session_begin_sources(struct session *s)
{
    if (s->o->backend == BACKEND_PROC)
        return check_proc(s->o);
    struct error *err = begin_bpf(s);
    if (!err)
        return NULL;
    sampler_start_destroy(s->sampler_start);
    s->sampler_start = NULL;
    return do_without_bpf(s, err);
}

/* ---- processes ---- */

/* How many times as often as by default samples are taken. */
static uint64_t rate_factor(const struct event_list *events)
{
    uint64_t factor = 1;

    for (uint32_t i = 0; i < events->count; i++) {
        uint64_t times = event_hz(&events->list[i]) / QUOTAS_HZ;
        if (times > factor)
            factor = times;
    }
    return factor;
}

/* More samples meet more code and stacks, so what a process may have of them grows with their number. */
static void scale_quotas(struct session *s)
{
    static const enum quota of_samples[] = {QUOTA_name_bytes, QUOTA_line_bytes, QUOTA_stack_bytes};
    uint64_t pool = s->cpu_count > QUOTAS_CPUS ? s->cpu_count / QUOTAS_CPUS : 1;

    for (size_t i = 0; i < sizeof of_samples / sizeof *of_samples; i++)
        quotas_scale(s->processes->quotas, of_samples[i], rate_factor(&s->events), pool);
    /* All of them share the array that the sampler looks mappings up in. */
    uint64_t mappings = sizes_of(s).mappings, places = quotas_pool(s->processes->quotas, QUOTA_places);
    if (mappings > places)
        quotas_scale(s->processes->quotas, QUOTA_places, 1, mappings / places);
}

static struct error *create_processes(struct session *s)
{
    const struct session_options *o = s->o;
    const struct processes_options processes = {
        .whole_host = !o->pid_count && !o->command,
        .follow = o->follow,
        .include_non_python = o->include_non_python,
        .recorded = true,
        .filter = o->filter,
    };

    TRY(processes_create(&processes, s->modules, &s->processes));
    scale_quotas(s);
    return NULL;
}

/* The processes that were asked for; none: all. */
static const uint32_t *asked_for(struct session *s, uint32_t *count)
{
    *count = s->o->command ? 1 : s->o->pid_count;
    s->command_tgid = (uint32_t)s->command.pid;
    return s->o->command ? &s->command_tgid : s->o->pids;
}

struct error *session_find_processes(struct session *s)
{
    uint32_t count;
    const uint32_t *pids = asked_for(s, &count);

    TRY(create_processes(s));
    if (!s->sampler_start)
        return NULL;
    /* The side-band first: what starts while /proc is being read is reported by one or the other. */
    TRY(sideband_enable(s->sideband));
    s->processes->held_tgid = s->o->command ? (uint32_t)s->command.pid : 0;
    return processes_scan(s->processes, pids, count);
}

/* ---- one or the other ---- */

/* Without BPF: all events have the rate at which the threads are looked at. */
static struct error *set_up_proc(struct session *s)
{
    uint32_t count;
    const uint32_t *pids = asked_for(s, &count);
    struct proc_sampler_options options = {.frequency_hz = session_looks_hz(s->o), .children = s->o->follow,
                                           .clock_event = EVENT_NONE, .wait_event = EVENT_NONE};

    for (uint32_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.list[i];
        bool waits = event->source->kind == EVENT_WAIT;
        if (event->source->kind == EVENT_TASK)
            continue;
        *(waits ? &options.wait_event : &options.clock_event) = i;
        *event = (struct event){.source = waits ? event->source : proc_sampler_event(), .frequency_hz = options.frequency_hz};
    }
    TRY(proc_sampler_create(s->processes, &options, &s->proc));
    return proc_sampler_follow(s->proc, pids, count);
}

/* The sampler that the thread has opened, or a table of processes as the proc backend needs it. */
static struct error *end_bpf(struct session *s)
{
    struct error *err = sampler_started(s->sampler_start, &s->sampler);

    s->sampler_start = NULL;
    if (!err) {
        s->missing = privileges_missing(&s->host);
        if (!s->o->quiet)
            privileges_print_missing(&s->host, "pycap: ", s->o->messages);
        return NULL;
    }
    TRY(do_without_bpf(s, err));
    processes_destroy(s->processes);
    s->processes = NULL;
    return create_processes(s);
}

struct error *session_end_sources(struct session *s)
{
    if (s->sampler_start)
        TRY(end_bpf(s));
    return s->sampler ? NULL : set_up_proc(s);
}
