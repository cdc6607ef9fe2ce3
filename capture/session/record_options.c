/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `pycap record`, a row each, and what their arguments mean. */
#include "capture/session/record_options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/host.h"
#include "formats/trace/container.h"

static_assert(offsetof(struct record_options, session) == 0, "a member has one offset in both");

#define MIB (UINT64_C(1) << 20)
#define BEFORE_NS (60 * NS_PER_S)
#define AFTER_NS (10 * NS_PER_S)

static const char default_output[] = "trace.bin";

/* Names on the command line and in the trace, by enum unwind_mode and by enum backend. */
static const char *const unwind_names[] = {
    [UNWIND_TABLES] = "tables",
    [UNWIND_SNAPSHOT] = "snapshot",
    [UNWIND_BOTH] = "both",
    [UNWIND_FRAME_POINTERS] = "fp",
    [UNWIND_NO] = "none",
    NULL,
};

static const char *const backend_names[] = {
    [BACKEND_AUTO] = "auto",
    [BACKEND_BPF] = "bpf",
    [BACKEND_PROC] = "proc",
    NULL,
};

/* ---- setters ---- */

static struct error *set_cpus(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row;
    free(o->cpus);
    o->cpus = NULL;
    TRY(host_parse_cpus(argument, &o->cpus, &o->session.cpu_count));
    o->session.cpus = o->cpus;
    return NULL;
}

static struct error *add_events(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row;
    return event_list_add(&o->session.events, argument);
}

static struct error *add_when(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row;
    o->session.when = &o->when;
    return when_list_add(&o->when, argument);
}

static struct error *set_max_cpu(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;
    char *rest;
    double percent = strtod(argument, &rest);

    if (rest == argument || (*rest && strcmp(rest, "%")) || !(percent > 0) || percent > 100)
        return option_refuse(row, argument);
    o->session.max_cpu = percent / 100;
    return NULL;
}

static struct error *set_nice(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;
    char *rest;
    long v = strtol(argument, &rest, 10);

    if (rest == argument || *rest || v < -20 || v > 19)
        return option_refuse(row, argument);
    o->session.nice = (int)v;
    o->session.has_nice = true;
    return NULL;
}

static struct error *set_ring_size(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    TRY(option_set_size_u32(row, argument, target));
    return o->session.ring_bytes & (o->session.ring_bytes - 1) ? option_refuse(row, argument) : NULL;
}

static struct error *add_comms(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row;
    o->session.filter = &o->filter;
    return filter_add_comms(&o->filter, argument);
}

static struct error *add_cgroups(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row;
    o->session.filter = &o->filter;
    return filter_add_cgroups(&o->filter, argument);
}

static struct error *add_containers(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row;
    o->session.filter = &o->filter;
    return filter_add_containers(&o->filter, argument);
}

static struct error *set_native(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row, (void)argument;
    if (o->session.unwind == UNWIND_NO)
        o->session.unwind = UNWIND_TABLES;
    return NULL;
}

static struct error *set_no_native(const struct option_row *row, const char *argument, void *target)
{
    struct record_options *o = target;

    (void)row, (void)argument;
    o->session.unwind = UNWIND_NO;
    return NULL;
}

/* Accepts -g, out of habit from perf: what it asks for is always done. */
static struct error *accept(const struct option_row *row, const char *argument, void *target)
{
    (void)row, (void)argument, (void)target;
    return NULL;
}

static struct error *refuse_idle(const struct option_row *row, const char *argument, void *target)
{
    (void)argument, (void)target;
    return error_create(ERROR_USAGE, "--%s is not an option: --wall records the threads that wait, too, from when each first "
                        "leaves its CPU", row->name);
}

static struct error *refuse_gil(const struct option_row *row, const char *argument, void *target)
{
    (void)argument, (void)target;
    return error_create(ERROR_USAGE, "--%s is an option of pysym: pycap records everything", row->name);
}

static struct error *refuse_format(const struct option_row *row, const char *argument, void *target)
{
    (void)target;
    return error_create(ERROR_USAGE, "--%s is an option of pysym, which reads what was recorded: pysym trace.bin -f %s",
                        row->name, argument);
}

/* ---- what the trace remembers; an option that restricts nothing is left out ---- */

static void remember_list(struct buf *out, char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s", i ? "," : "", list[i]);
}

static void remember_comms(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (o->filter)
        remember_list(out, o->filter->comms.data, o->filter->comms.count);
}

static void remember_cgroups(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (o->filter)
        remember_list(out, o->filter->cgroups.data, o->filter->cgroups.count);
}

static void remember_containers(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    for (size_t i = 0; o->filter && i < o->filter->containers.count; i++) {
        char name[CONTAINER_NAME_MAX];
        container_shorten(o->filter->containers.data[i], strlen(o->filter->containers.data[i]), name);
        buf_printf(out, "%s%s", i ? "," : "", name);
    }
}

static void remember_cpus(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    for (uint32_t i = 0; i < o->cpu_count && o->cpus; i++)
        buf_printf(out, "%s%d", i ? "," : "", o->cpus[i]);
}

static void remember_children(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (!o->follow)
        buf_put_str(out, "no");
}

static void remember_max_cpu(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (o->max_cpu > 0)
        buf_printf(out, "%g%%", 100 * o->max_cpu);
}

static void remember_stack(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (session_takes_snapshots(o))
        buf_printf(out, "%u", o->stack_bytes);
}

static void remember_kernel(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    buf_put_str(out, o->kernel ? "yes" : "no");
}

/* Not where it is, which may be nobody's business. */
static void remember_archive(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (o->archive)
        buf_put_str(out, "yes");
}

static void remember_wakers(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (o->wakers)
        buf_put_str(out, "yes");
}

static void remember_on_demand(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    if (o->on_demand)
        buf_printf(out, "%g s before an event, %g s after it", (double)o->before_ns / NS_PER_S, (double)o->after_ns / NS_PER_S);
}

static void remember_when(const struct option_row *row, const void *target, struct buf *out)
{
    const struct session_options *o = target;

    (void)row;
    for (uint32_t i = 0; o->when && i < o->when->count; i++)
        buf_printf(out, "%s%s", i ? "; " : "", o->when->texts[i]);
}

/* ---- the table ---- */

#define MEMBER(member) .offset = offsetof(struct record_options, member)
#define DURATION "a duration: seconds, or 10m, 6h, 1d"
#define FILE_SIZE "the size of a file: 4096 bytes at least, or 64M"
#define RATE "a rate: samples a second, 1 to 1000000"
static_assert(EVENT_FREQUENCY_MAX == 1000000, "RATE says it");

const struct option_row record_option_rows[] = {
    OPTION_HEADING("which processes (without one of these: every Python process of the host)"),
    {"pid", 'p', "PID,...", "these processes and their children, also those that run already", option_add_numbers, MEMBER(pids), 1, 1 << 22,
     "process ids, like 123,456"},
    {"no-inherit", 'i', NULL, "without the children of the processes named or of the command", option_set_false, MEMBER(session.follow),
     .setting = "children", .remember = remember_children},
    {"subprocesses", 's', NULL, "with the children, too (the default)", option_set_true, MEMBER(session.follow)},
    {"comm", 0, "NAME,...", "only processes with these names or titles, as pycap info shows them", add_comms,
     .setting = "comm", .remember = remember_comms},
    {"cgroup", 0, "PATH,...", "only processes in these cgroups or below, like /system.slice/app.service", add_cgroups, .setting = "cgroup",
     .remember = remember_cgroups},
    {"container", 0, "ID", "only processes in this container, by its ID or how that begins; or in several: ID,ID", add_containers,
     .setting = "container", .remember = remember_containers},
    {"all", 'a', NULL, "also processes that are not Python: their native and kernel frames", option_set_true,
     MEMBER(session.include_non_python)},
    {"cpu", 'C', "LIST", "only these CPUs, like 0-3,8", set_cpus, .setting = "cpus", .remember = remember_cpus},
    OPTION_HEADING("how long, how often, what"),
    {"duration", 'd', "TIME", "end after that time (30, 10m); else at Ctrl-C, or when what is sampled has ended",
     option_set_duration, MEMBER(session.duration_ns), .wants = DURATION},
    {"rate", 'F', "HZ", "samples a second on each CPU (99); for clocks and hardware counters", option_set_u64,
     MEMBER(session.frequency_hz), 1, EVENT_FREQUENCY_MAX, RATE,
     .setting = "frequency", .remember = option_remember_u64},
    {"frequency", 'r', "HZ", NULL, option_set_u64, MEMBER(session.frequency_hz), 1,
     EVENT_FREQUENCY_MAX, RATE},
    {"event", 'e', "EVENT,...",
     "cpu-clock (default), off-cpu, task-wait (asyncio), page-faults, memory-growth;\n"
     "others by perf's names, like cycles:u, syscalls:sys_enter_openat, see pycap(1); pycap info --events\n"
     "lists those of this host. May be repeated; NAME/period=N/ and NAME/freq=HZ/ are -c and -F for that event alone",
     add_events},
    {"count", 'c', "N", "a sample every N counts (16), for events that are counted, like page-faults", option_set_u64,
     MEMBER(period), 1, EVENT_PERIOD_MAX, "a number of counts, 1 at least"},
    {"wall", 0, NULL, "-e cpu-clock,off-cpu: where threads run, and where they wait", option_set_true, MEMBER(wall)},
    {"waker", 0, NULL, "with off-cpu: also which thread ended a wait", option_set_true, MEMBER(session.wakers),
     .setting = "waker", .remember = remember_wakers},
    OPTION_HEADING("files"),
    {"output", 'o', "FILE", "the file to write (trace.bin), which pysym reads; - for standard output", option_set_text, MEMBER(session.output)},
    {"archive", 0, "FILE", "also pack the binaries into FILE, so that pysym can name native functions\n"
     "on another machine, or after a container has ended",
     option_set_text, MEMBER(session.archive), .setting = "archive", .remember = remember_archive},
    {"strip-code", 0, NULL, "with --archive: leave out code and data", option_set_true, MEMBER(session.strip_code), .with = "archive"},
    {"cmdline", 0, NULL, "record command lines, too", option_set_true, MEMBER(session.cmdline)},
    {"group", 0, "GROUP", "let this group (its name or number) read what is written: mode 0640, not 0600", option_set_text,
     MEMBER(session.group)},
    {"status", 0, "FILE", "keep figures of the recording in FILE, for Prometheus: samples, losses, cost; every 10 s",
     option_set_text, MEMBER(session.status)},
    {"rotate", 0, "TIME",
     "begin a new file this often (90, 10m, 6h, 1d), and at SIGHUP; -o needs %t, like t-%h-%t.bin", option_set_duration,
     MEMBER(session.rotate_ns), .wants = DURATION},
    {"rotate-size", 0, "N", "begin a new file when one has this size (64M)", option_set_size,
     MEMBER(session.rotate_bytes), 4096, UINT64_MAX, FILE_SIZE},
    {"keep", 0, "N", "with --rotate, --rotate-size, --on-demand: keep only the newest N files", option_set_u32, MEMBER(session.keep), 1,
     1000000, "a number of files, 1 to 1000000", .with = "rotate rotate-size on-demand"},
    {"max-size", 0, "N", "sample more slowly as the file nears that size, and end there", option_set_size,
     MEMBER(session.max_bytes), 4096, UINT64_MAX, FILE_SIZE, .without = "rotate rotate-size keep", .setting = "max-size",
     .remember = option_remember_u64},
    OPTION_HEADING("standing by"),
    {"on-demand", 0, NULL, "record into memory, and write a file at SIGUSR1: of what was before, and what comes after;\n"
     "-o needs %t (trace-%t.bin)",
     option_set_true, MEMBER(session.on_demand), .without = "rotate rotate-size max-size", .setting = "on-demand",
     .remember = remember_on_demand},
    {"before", 0, "TIME", "with --on-demand: keep so much in memory (60), as far as --max-memory allows", option_set_duration,
     MEMBER(session.before_ns), .wants = DURATION, .with = "on-demand"},
    {"after", 0, "TIME", "with --on-demand: go on for so long (10) after the event", option_set_duration,
     MEMBER(session.after_ns), .wants = DURATION, .with = "on-demand"},
    {"when", 0, "CONDITION",
     "with --on-demand: also write a file when more threads than that run (cpu>80%, cpu>2.5,for=5s),\n"
     "wait for a CPU (runq>4) or, with --wall, for the GIL (gil>50%); may be repeated", add_when,
     .with = "on-demand", .setting = "when", .remember = remember_when},
    OPTION_HEADING("what recording may cost"),
    {"max-cpu", 0, "PERCENT", "sample more slowly when recording takes more of one CPU", set_max_cpu,
     .wants = "a share of a CPU: percent, more than 0 and at most 100", .setting = "max-cpu", .remember = remember_max_cpu},
    {"max-memory", 0, "N", "sample more slowly when pycap holds more (64M); it empties its caches first",
     option_set_size, MEMBER(session.max_memory), MIB, UINT64_MAX, "an amount of memory: 1M at least, like 64M",
     .setting = "max-memory", .remember = option_remember_u64},
    {"nice", 0, "N", "pycap's own nice value (-20, unless it was started with another than 0)", set_nice,
     .wants = "a nice value: -20 to 19"},
    {"realtime", 0, "PRIORITY", "run pycap itself before all ordinary programs (SCHED_FIFO, 1 to 99); pycap(1) has its risk",
     option_set_u32, MEMBER(session.realtime), 1, 99, "a real-time priority: 1 to 99"},
    {"ring-size", 'm', "N", "size of the sampler's buffer, a power of two (chosen by rate and CPUs)", set_ring_size,
     MEMBER(session.ring_bytes), 4096, 1024 * MIB, "a ring size: a power of two, 4096 to 1G"},
    OPTION_HEADING("how stacks are taken"),
    {"native", 'n', NULL, "native frames too, of extension modules and libraries (the default)", set_native},
    {"no-native", 0, NULL, "no native frames", set_no_native},
    {"no-kernel", 0, NULL, "no kernel frames", option_set_false, MEMBER(session.kernel), .setting = "kernel", .remember = remember_kernel},
    {"unwind", 0, "HOW",
     "native frames by tables (the default: in the kernel, no stack memory is recorded),\n"
     "snapshot (a copy of the stack, unwound by pysym), both (to compare them),\n"
     "fp (frame pointers: wrong where code keeps none), none",
     option_set_choice, MEMBER(session.unwind), .wants = "a way to unwind: tables, snapshot, both, fp or none",
     .names = unwind_names, .setting = "unwind", .remember = option_remember_choice},
    {"stack-size", 0, "N", "with --unwind snapshot or both: copy at most N bytes of a user stack (65536, the most)",
     option_set_size_u32, MEMBER(stack_bytes), 1, 65536, "a stack size: bytes, 1 to 65536", .setting = "stack-size",
     .remember = remember_stack},
    {"unwind-memory", 0, "N", "tables: bytes for them, taken when needed (256M, less on a small host)", option_set_size_u32, MEMBER(session.table_bytes), MIB, 1024 * MIB,
     "a size for unwind tables: 1M to 1024M"},
    {"check-unwind", 0, NULL, "tables: unwind each native stack a second time without cached rows, and say how many differ\n"
     "(none, or it is a bug)",
     option_set_true, MEMBER(session.check_unwind)},
    {"backend", 0, "HOW",
     "bpf; proc (no privilege: Python frames only, of the command or your own processes,\n"
     "and with off-cpu waits as far as reading all threads at a rate shows them);\n"
     "auto (the default): bpf, else proc",
     option_set_choice, MEMBER(session.backend), .wants = "a backend: auto, bpf or proc", .names = backend_names,
     .setting = "backend", .remember = option_remember_choice},
    {NULL, 'g', NULL, "accepted: stacks are always recorded", accept},
    OPTION_HEADING("other"),
    {"verbose", 'v', NULL, "at the end also what became of every tick, each kind of loss, and what recording cost",
     option_set_true, MEMBER(session.verbose), .without = "quiet"},
    {"quiet", 'q', NULL, "no status line and no closing summary", option_set_true, MEMBER(session.quiet)},
    {"no-sandbox", 0, NULL, "keep all privileges, and allow all system calls, while recording", option_set_true,
     MEMBER(session.no_sandbox)},
    {"help", 'h', NULL, "this", option_set_true, MEMBER(help)},
    {"version", 0, NULL, "the version", option_set_true, MEMBER(version)},
    {"idle", 0, NULL, NULL, refuse_idle},
    {"gil", 0, NULL, NULL, refuse_gil},
    {"format", 'f', "NAME", NULL, refuse_format},
    {NULL},
};

/* Checks that involve several options. */
static struct error *check(struct record_options *o)
{
    struct session_options *s = &o->session;

    if (o->stack_bytes && !session_takes_snapshots(s))
        return error_create(ERROR_USAGE, "--stack-size needs --unwind snapshot or --unwind both: otherwise no stack "
                                         "memory is recorded");
    if (s->archive && !strcmp(s->archive, s->output))
        return error_create(ERROR_USAGE, "%s cannot be the trace and the archive", s->archive);
    if (s->status && (!strcmp(s->status, s->output) || (s->archive && !strcmp(s->status, s->archive))))
        return error_create(ERROR_USAGE, "%s cannot be the trace or the archive and the file of --status", s->status);
    if (s->status && (!*s->status || !strcmp(s->status, "-")))
        return error_create(ERROR_USAGE, "--status wants a file: it is replaced by a new one every 10 s");
    if (s->on_demand && s->output == default_output) /* no -o */
        s->output = "trace-%t.bin";
    s->before_ns = s->before_ns ? s->before_ns : BEFORE_NS;
    s->after_ns = s->after_ns ? s->after_ns : AFTER_NS;
    if (s->command && s->pid_count)
        return error_create(ERROR_USAGE, "give either -p or a command, not both");
    if (o->wall)
        TRY(event_list_add_missing(&s->events, "cpu-clock,off-cpu"));
    TRY(event_list_complete(&s->events, s->frequency_hz, o->period));
    TRY(event_list_resolve(&s->events, NULL));
    if (o->cpus && event_list_wait(&s->events) != EVENT_NONE)
        return error_create(ERROR_USAGE, "-C and off-cpu do not go together: a thread that waits is on no CPU");
    if (o->cpus && event_list_first(&s->events, EVENT_TASK) != EVENT_NONE)
        return error_create(ERROR_USAGE, "-C and task-wait do not go together: a task that waits is on no CPU");
    if (o->cpus && event_list_first(&s->events, EVENT_GROWTH) != EVENT_NONE)
        return error_create(ERROR_USAGE, "-C and memory-growth do not go together: a process grows on whichever CPU it runs");
    if (when_list_has(s->when, WHEN_GIL) && event_list_wait(&s->events) == EVENT_NONE)
        return error_create(ERROR_USAGE, "--when gil needs waits: -e off-cpu or --wall");
    if (s->wakers && event_list_wait(&s->events) == EVENT_NONE)
        return error_create(ERROR_USAGE, "--waker needs waits: -e off-cpu or --wall");
    s->frequency_hz = event_list_frequency(&s->events);
    return NULL;
}

void record_options_default(struct record_options *o)
{
    *o = (struct record_options){
        .session = {.output = default_output, .unwind = UNWIND_TABLES,
                    .stack_bytes = 65536, .kernel = true, .follow = true, .messages = stderr},
    };
}

struct option_row record_option_row(const char *name)
{
    const struct option_row *row = record_option_rows;

    while (!row->name || strcmp(row->name, name))
        row++;
    return *row;
}

struct error *record_options_read(struct record_options *o, int argc, char **argv)
{
    return record_options_read_rows(o, record_option_rows, "pycap record", argc, argv);
}

struct error *record_options_read_rows(struct record_options *o, const struct option_row *rows, const char *command, int argc,
                                       char **argv)
{
    int rest;

    record_options_default(o);
    TRY(options_read(rows, argc, argv, true, o, &rest));
    if (o->help || o->version)
        return NULL;
    if (rest < argc) {
        const char *word = argv[rest];
        if (strcmp(argv[rest - 1], "--") && !word[strspn(word, "0123456789")])
            return error_create(ERROR_USAGE, "'%s' is no command: to record a process, %s -p %s", word, command, word);
        o->session.command = argv + rest;
    } else if (!strcmp(argv[rest - 1], "--")) {
        return error_create(ERROR_USAGE, "a command is missing after --");
    }
    o->session.pids = o->pids.data;
    o->session.pid_count = (uint32_t)o->pids.count;
    TRY(check(o));
    if (o->stack_bytes)
        o->session.stack_bytes = o->stack_bytes;
    return NULL;
}

void record_options_deinit(struct record_options *o)
{
    VEC_DEINIT(&o->pids);
    filter_deinit(&o->filter);
    event_list_deinit(&o->session.events);
    free(o->cpus);
}
