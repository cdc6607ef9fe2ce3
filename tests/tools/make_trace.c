/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a made-up trace through the real writer, for tests of pysym and for measuring it.
 *
 *     make_trace OUT [NAME=NUMBER...]
 *
 *     samples=1000        in all
 *     stacks=4            distinct Python stacks
 *     depth=5             Python frames in each
 *     processes=1 threads=2   threads are of the processes in turn
 *     native=1            with native frames, a C callback between two runs, and the kernel's (0: Python only)
 *     interval_us=10000   between samples of one CPU; a sample stands for that time
 *     slower_at=0         after so many samples the rate is halved: a PERIOD record, and twice the interval
 *     uneven=0            every sample says its own weight; they go from nothing to 3 intervals
 *     cpus=1              each with samples of its own
 *     epoch_samples=0     begin an epoch after so many (0: when the writer says it is due)
 *     second_event=0      also "page-faults", of value 1, between the samples of the first; so many
 *     torn=0              every so many samples have a Python stack that broke off
 *     unjoined=0          every so many samples have a join without native frames
 *     cut=0               every so many samples have a native stack that ended in code without call frame information
 *     gil=0               say who held the GIL: thread 1 alone
 *     labels=0            samples go round so many asyncio tasks, and every other one is of subinterpreter 1
 *     containers=0        each process is in a container of its own
 *     losses=0            so many samples lost because the ring was full
 *     skipped=0           so many ticks skipped on all CPUs; of those that came one in ten was of what is recorded
 *     end=1               end in good order
 *     foreign=0           from a machine that nobody knows, with snapshots in place of native stacks
 *     pid=1000            of the first process
 *     natural=0           threads, stacks, CPUs, times between ticks and whether the GIL was held are drawn, some stacks and
 *                         threads more often than others: it compresses as real traces do, or worse
 *     jitter_us=0         each sample comes up to so much later than its tick, as the interrupts of timers do; and its time is
 *                         written as a recorder writes that of a clock
 *     zipf=0              stacks are drawn, the one of rank r in proportion to r to the power of -zipf / 100; so are threads, evenly
 *     newer=0             at the end, so many samples more with two flags of a later version, one of which has a payload
 *     hardware=0          the host's CPU model and memory
 *     sources=0           what stat said of up to 3 source files; 9: of 3, and part0.py of the last process is another
 *     command=0           at the end, what came of a command: 1 it exited with 3, 2 signal 9 ended it
 *     work=0              at the end, that the command did so much work (note.work), and of branch "main"
 *     note_cut=0          and that so many bytes of its note were not read, and one line could not be used
 *     run=0               one of several recordings of a program, of another hour: which stacks it has, and in what order, is
 *                         drawn anew with this number
 *     slower=0            so many percent more samples of stack 0
 *     changed=0           the innermost function of stack 0 has other code: so many lines more
 *     moved=0             all functions begin so many lines further down
 *     fresh=0             the innermost function of stack 1 has another name
 *     leaves=0            so many innermost functions, each with stacks that end in other lines (0: as many as stacks)
 *     events=0            so many samples of each event of made_up_events.h: tracepoints, raw events, memory-growth
 *     task_waits=0        so many looks at asyncio tasks that wait for each other
 *     gil_waits=0         so many times the first thread keeps the second waiting for the GIL: 3 ms while it sleeps, 4 ms while it runs
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/trace/trace.h"
#include "tests/tools/made_up_events.h"

enum { PYTHON_3_11 = 0x030b02f0, LINE_STEP_BYTES = 16, START_S = 1000 };

struct setting {
    const char *name;
    uint64_t value;
};
enum {
    SAMPLES,
    STACKS,
    DEPTH,
    PROCESSES,
    THREADS,
    NATIVE,
    INTERVAL_US,
    SLOWER_AT,
    UNEVEN,
    CPUS,
    EPOCH_SAMPLES,
    SECOND_EVENT,
    TORN,
    UNJOINED,
    CUT,
    GIL,
    LABELS,
    CONTAINERS,
    LOSSES,
    SKIPPED,
    END,
    FOREIGN,
    PID,
    NEWER,
    HARDWARE,
    COMMAND,
    WORK,
    NOTE_CUT,
    WAITS,
    CLOCKS, /* 0: cycles in place of cpu-clock; 2: task-clock is there, too */
    GIL_WAITS,
    SOURCES,
    NATURAL,
    RUN,
    SLOWER,
    CHANGED,
    LINELESS, /* frames of that line say that theirs is not known */
    MOVED,
    FRESH,
    LEAVES,
    EVENTS,
    TASK_WAITS,
    JITTER_US,
    ZIPF,
    SETTING_COUNT,
};

struct maker {
    struct trace_writer *w;
    struct setting settings[SETTING_COUNT];
    uint64_t sample_count, period_ns, random;
    uint32_t event, second_event;
    uint32_t *threads, *tuples, *torn_tuples, *unjoined_tuples, *cut_tuples, *label_sets;
    double *shares;   /* with zipf: of the stacks up to this rank */
    uint32_t *ranked; /* the stack of each rank */
};

static uint64_t get(const struct maker *m, int setting)
{
    return m->settings[setting].value;
}

static uint32_t str(struct maker *m, const char *s)
{
    return trace_writer_cstr(m->w, s);
}

static struct trace_bytes bytes(const char *s)
{
    return (struct trace_bytes){.data = (const uint8_t *)s, .len_bytes = strlen(s)};
}

/* A function whose every LINE_STEP_BYTES of bytecode are the next line, or the one after `skipped` lines. */
static uint32_t put_code(struct maker *m, const char *name, const char *file, int64_t first_line, uint64_t skipped)
{
    /* Entries of code 13 (no columns) over 8 code units, with line deltas +0, then +1. */
    uint8_t table[] = {0xef, 0, 0xef, 2, 0xef, 2, 0xef, 2, 0xef, 2, 0xef, 2, 0xef, 2, 0xef, 2};

    table[3] = (uint8_t)(table[3] + 2 * (skipped < 30 ? skipped : 30));
    struct trace_code code = {
        .python_version = PYTHON_3_11,
        .first_line = first_line,
        .code_len_bytes = 8 * LINE_STEP_BYTES,
        .name_form = 1,
        .name_len = strlen(name),
        .name = bytes(name),
        .qualname_form = 1,
        .qualname_len = strlen(name),
        .qualname = bytes(name),
        .filename_form = 1,
        .filename_len = strlen(file),
        .filename = bytes(file),
        .line_table_form = 1,
        .line_table_len = sizeof table,
        .line_table = {.data = table, .len_bytes = sizeof table},
    };
    return trace_writer_intern(m->w, TRACE_code, &code);
}

static uint32_t put_python(struct maker *m, uint32_t code, int64_t line, bool run_start)
{
    struct trace_python_frame f = {
        .code = code, .offset = line * LINE_STEP_BYTES, .flags = run_start ? TRACE_FRAME_RUN_END : 0};
    if (line && (uint64_t)line == get(m, LINELESS)) {
        f.offset = -1;
        f.flags |= TRACE_FRAME_LINE_UNKNOWN;
    }
    return trace_writer_intern(m->w, TRACE_python_frame, &f);
}

static uint32_t put_native(struct maker *m, uint32_t module, uint64_t offset, bool return_address)
{
    struct trace_native_frame f = {
        .module = module, .offset = offset, .flags = return_address ? TRACE_FRAME_RETURN : 0};
    return trace_writer_intern(m->w, TRACE_native_frame, &f);
}

static uint32_t put_kernel_stack(struct maker *m)
{
    static const char *const names[] = {"entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_read"};
    uint32_t frames[3];

    for (uint32_t i = 0; i < 3; i++) {
        struct trace_kernel_symbol symbol = {.address = UINT64_C(0xffffffff81000000) + i * 4096,
                                             .name = str(m, names[i])};
        struct trace_kernel_frame frame = {.address = symbol.address + 92};
        frame.symbol = trace_writer_intern(m->w, TRACE_kernel_symbol, &symbol);
        frames[i] = trace_writer_intern(m->w, TRACE_kernel_frame, &frame);
    }
    return trace_writer_stack(m->w, frames, 3);
}

/* main, eval loop, a function of C that calls back, eval loop; the runs are joined to frames 2 and 4. */
static uint32_t put_native_stack(struct maker *m)
{
    const uint64_t segment[] = {0x400000, 0, 0x100000, 0x100000, 5};
    const uint64_t eval_range[] = {0x402000, 0x403000};
    struct trace_module module = {
        .path = str(m, "/opt/made-up/python3.11"),
        .file_size = 0x100000,
        .segments = {.values = segment, .count = 1},
        .eval_ranges = {.values = eval_range, .count = 1},
    };
    uint32_t frames[4];

    trace_writer_put(m->w, TRACE_module, &module);
    for (uint32_t p = 1; p <= get(m, PROCESSES); p++) {
        struct trace_mapping mapping = {
            .process = p,
            .address = 0x400000,
            .length = 0x100000,
            .protection = TRACE_PROTECTION_READ | TRACE_PROTECTION_EXECUTE,
            .module = module.id,
            .path = module.path,
        };
        trace_writer_put(m->w, TRACE_mapping, &mapping);
    }
    frames[0] = put_native(m, module.id, 0x1000, true);
    frames[1] = put_native(m, module.id, 0x2100, true);
    frames[2] = put_native(m, module.id, 0x5000, true);
    frames[3] = put_native(m, module.id, 0x2200, false);
    return trace_writer_stack(m->w, frames, 4);
}

static uint32_t put_join(struct maker *m, bool joined)
{
    const uint64_t runs[] = {joined ? 2 : 0, joined ? 0 : LOSS_join_outside, joined ? 4 : 0,
                             joined ? 0 : LOSS_join_outside};
    struct trace_join join = {.runs = {.values = runs, .count = 2}};

    return trace_writer_intern(m->w, TRACE_join, &join);
}

static uint32_t put_snapshot(struct maker *m)
{
    static const uint64_t registers[8] = {[6] = 0x1000, [7] = 0x2000};
    static const uint8_t stack[64];
    struct trace_snapshot snapshot = {.process = 1, .registers = {registers, 8}, .stack_address = 0x1000,
                                      .stack = {stack, sizeof stack}};

    trace_writer_put(m->w, TRACE_snapshot, &snapshot);
    return snapshot.id;
}

static void put_tuples(struct maker *m)
{
    bool native = get(m, NATIVE) && !get(m, FOREIGN);
    uint64_t depth = get(m, DEPTH), stacks = get(m, STACKS), leaves = get(m, LEAVES) ? get(m, LEAVES) : stacks;
    uint32_t *frames = calloc(depth + 1, sizeof *frames);
    uint32_t native_stack = native ? put_native_stack(m) : 0;
    uint32_t kernel_stack = native ? put_kernel_stack(m) : 0;

    for (uint64_t s = 0; s < stacks; s++) {
        struct trace_tuple tuple = {.native_stack = native_stack,
                                    .kernel_stack = s % 2 ? kernel_stack : 0,
                                    .python_end = LOSS_complete,
                                    .native_end = native ? LOSS_complete : 0,
                                    .snapshot = get(m, FOREIGN) ? put_snapshot(m) : 0};
        for (uint64_t d = 0; d < depth; d++) {
            char name[64], file[64];
            /* The outer half is common to all stacks; the leaf tells them apart. */
            uint64_t which = d < depth / 2 ? 0 : d + 1 == depth ? s % leaves : s % 7;
            uint64_t line = d + 1 == depth && get(m, LEAVES) ? s / leaves % 7 : which % 7;
            bool is_leaf = d + 1 == depth, is_fresh = is_leaf && which == 1 && get(m, FRESH);
            snprintf(name, sizeof name, "Work.%s%" PRIu64 "_%" PRIu64, is_fresh ? "fresh" : "level", d, which);
            snprintf(file, sizeof file, "/srv/app/part%" PRIu64 ".py", d % 3);
            bool run_start = !d || (native && d == depth - 1);
            uint32_t code = put_code(m, name, file, (int64_t)(10 * d + 1 + get(m, MOVED)), is_leaf && !which ? get(m, CHANGED) : 0);
            frames[d] = put_python(m, code, (int64_t)line, run_start);
        }
        tuple.python_stack = trace_writer_stack(m->w, frames, (uint32_t)depth);
        tuple.join = native ? put_join(m, true) : 0;
        m->tuples[s] = trace_writer_intern(m->w, TRACE_tuple, &tuple);
        struct trace_tuple torn = tuple;
        torn.python_end = LOSS_python_torn;
        m->torn_tuples[s] = get(m, TORN) ? trace_writer_intern(m->w, TRACE_tuple, &torn) : 0;
        struct trace_tuple cut = tuple;
        cut.native_end = LOSS_no_unwind_info;
        m->cut_tuples[s] = get(m, CUT) ? trace_writer_intern(m->w, TRACE_tuple, &cut) : 0;
        tuple.join = native && get(m, UNJOINED) ? put_join(m, false) : 0;
        m->unjoined_tuples[s] = get(m, UNJOINED) ? trace_writer_intern(m->w, TRACE_tuple, &tuple) : 0;
    }
    free(frames);
}

static void put_host(struct maker *m)
{
    static const uint8_t boot_id[16] = "made-up boot id";
    struct trace_host host = {
        .hostname = str(m, "testhost"),
        .kernel_release = str(m, "6.1.0-test"),
        .kernel_version = str(m, "#1 SMP"),
        .machine = str(m, get(m, FOREIGN) ? "pdp11" : "x86_64"),
        .boot_id = {.data = boot_id, .len_bytes = sizeof boot_id},
        .cpu_count = 2,
        .page_size = 4096,
        .tool = str(m, "make_trace"),
    };
    if (get(m, HARDWARE)) {
        host.cpu_model = str(m, "Made-up CPU @ 2.00GHz");
        host.memory_bytes = UINT64_C(8) << 30;
    }
    struct trace_clock clock = {.monotonic_ns = START_S * NS_PER_US * 1000000,
                                .realtime_ns = UINT64_C(1700000000000000000) + get(m, RUN) * 3600 * NS_PER_S};

    trace_writer_put(m->w, TRACE_host, &host);
    trace_writer_put(m->w, TRACE_clock, &clock);
}

/* An asyncio task; and of every other one, subinterpreter 1. */
static uint32_t put_label_set(struct maker *m, uint32_t number)
{
    char task[32];

    snprintf(task, sizeof task, "task-%u", number);
    const uint64_t pairs[] = {str(m, trace_label_key(TRACE_LABEL_task)), str(m, task), str(m, trace_label_key(TRACE_LABEL_interpreter)), str(m, "1")};
    struct trace_label_set set = {.pairs = {.values = pairs, .count = number % 2 ? 2 : 1}};
    return trace_writer_intern(m->w, TRACE_label_set, &set);
}

static void put_source(struct maker *m, uint32_t process, const char *file, uint64_t size_bytes)
{
    struct trace_source source = {.process = process,
                                  .file = str(m, file),
                                  .time_ns = START_S * NS_PER_S,
                                  .state = TRACE_SOURCE_FILE,
                                  .size_bytes = size_bytes,
                                  .modified_ns = INT64_C(1690000000123456789)};

    trace_writer_put(m->w, TRACE_source, &source);
}

/* Of the files that put_tuples() names. */
static void put_sources(struct maker *m)
{
    char file[64];

    for (uint64_t i = 0; i < get(m, SOURCES) && i < 3; i++) {
        snprintf(file, sizeof file, "/srv/app/part%" PRIu64 ".py", i);
        put_source(m, 1, file, 1000 + i);
    }
    if (get(m, SOURCES) == 9)
        put_source(m, (uint32_t)get(m, PROCESSES), "/srv/app/part0.py", 4711);
}

/* Everything that samples refer to: once in each epoch. */
static void define(struct maker *m)
{
    bool cycles = !get(m, CLOCKS);
    struct trace_event event = {
        .name = str(m, cycles ? "cycles" : "cpu-clock"), .unit = str(m, cycles ? "cycles" : "ns"), .period = m->period_ns};
    struct trace_event other_clock = {.name = str(m, "task-clock"), .unit = str(m, "ns"), .period = m->period_ns};
    struct trace_event second = {
        .name = str(m, "page-faults"), .unit = str(m, "faults"), .period = 1, .kind = TRACE_EVENT_COUNTED};
    char name[32], cgroup[80];

    put_host(m);
    trace_writer_put(m->w, TRACE_event, &event);
    m->event = event.id;
    if (get(m, CLOCKS) && get(m, JITTER_US))
        trace_writer_clock(m->w, m->event, m->period_ns);
    if (get(m, CLOCKS) == 2)
        trace_writer_put(m->w, TRACE_event, &other_clock);
    if (get(m, SECOND_EVENT)) {
        trace_writer_put(m->w, TRACE_event, &second);
        m->second_event = second.id;
    }
    for (uint32_t i = 0; i < get(m, LABELS); i++)
        m->label_sets[i] = put_label_set(m, i);
    for (uint32_t i = 0; i < get(m, PROCESSES); i++) {
        snprintf(cgroup, sizeof cgroup, "/docker/%08x%056x", i + 1, 0);
        struct trace_process process = {
            .tgid = (uint32_t)get(m, PID) + 100 * i,
            .start_boottime_ns = 5000 + i,
            .comm = str(m, "python3.11"),
            .exe = str(m, "/opt/made-up/python3.11"),
            .cgroup = get(m, CONTAINERS) ? str(m, cgroup) : 0,
            .python_version = PYTHON_3_11,
        };
        trace_writer_put(m->w, TRACE_process, &process);
    }
    for (uint32_t i = 0; i < get(m, THREADS); i++) {
        uint32_t process = i % (uint32_t)get(m, PROCESSES);
        struct trace_thread thread = {.process = process + 1, .tid = (uint32_t)get(m, PID) + 100 * process + i};
        snprintf(name, sizeof name, "worker-%u", i);
        thread.name = str(m, i ? name : "python3.11");
        trace_writer_put(m->w, TRACE_thread, &thread);
        m->threads[i] = thread.id;
    }
    put_tuples(m);
    put_sources(m);
}

/* At random, and the same each time (xorshift*): below `limit`. */
static uint64_t draw(struct maker *m, uint64_t limit)
{
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return (m->random * UINT64_C(0x2545f4914f6cdd1d) >> 32) * limit >> 32;
}

/* The same with small numbers more often than large ones: half of the numbers are in the first tenth or so. */
static uint64_t draw_low(struct maker *m, uint64_t limit)
{
    return draw(m, draw(m, draw(m, limit) + 1) + 1);
}

static uint64_t draw_rank(struct maker *m)
{
    double drawn = (double)draw(m, UINT64_C(1) << 32) * 0x1p-32;
    uint64_t low = 0, high = get(m, STACKS) - 1;

    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (m->shares[middle] > drawn)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/*
 * How often each stack comes; and their order: a recorder numbers stacks as it meets them, so frequent ones have low
 * numbers, but not in the order of how frequent they are.
 */
static bool prepare_ranks(struct maker *m)
{
    uint64_t stacks = get(m, STACKS);
    uint32_t met = 0;
    double sum = 0;

    m->shares = calloc(stacks, sizeof *m->shares);
    m->ranked = calloc(stacks, sizeof *m->ranked);
    if (!m->shares || !m->ranked)
        return false;
    for (uint64_t s = 0; s < stacks; s++)
        sum += m->shares[s] = pow((double)(s + 1), -(double)get(m, ZIPF) / 100);
    for (uint64_t s = 0; s < stacks; s++)
        m->shares[s] = m->shares[s] / sum + (s ? m->shares[s - 1] : 0);
    for (uint64_t s = 0; s < stacks; s++)
        m->ranked[s] = UINT32_MAX;
    for (uint64_t i = 0; i < 16 * stacks; i++) {
        uint32_t *stack = &m->ranked[draw_rank(m)];
        *stack = *stack == UINT32_MAX ? met++ : *stack;
    }
    for (uint64_t s = 0; s < stacks; s++)
        m->ranked[s] = m->ranked[s] == UINT32_MAX ? met++ : m->ranked[s];
    return true;
}

static void put_sample(struct maker *m, uint64_t i, uint64_t time_ns)
{
    uint64_t thread = i % get(m, THREADS), stack = i * 31 % get(m, STACKS), cpu = i % get(m, CPUS);
    if (get(m, NATURAL)) {
        thread = draw_low(m, get(m, THREADS));
        stack = draw_low(m, get(m, STACKS));
        time_ns += (i % get(m, CPUS) * m->period_ns + draw(m, m->period_ns)) / get(m, CPUS);
        cpu = draw(m, get(m, CPUS));
    }
    if (get(m, RUN)) { /* all stacks as often, but the first */
        uint64_t drawn = draw(m, 100 * get(m, STACKS) + get(m, SLOWER));
        stack = drawn < 100 * get(m, STACKS) ? drawn / 100 : 0;
    }
    if (get(m, ZIPF)) {
        thread = draw(m, get(m, THREADS));
        stack = m->ranked[draw_rank(m)];
    }
    if (get(m, JITTER_US))
        time_ns += draw(m, get(m, JITTER_US) * NS_PER_US);
    struct trace_sample sample = {.time_ns = time_ns,
                                  .thread = m->threads[thread],
                                  .tuple = m->tuples[stack],
                                  .cpu = (uint32_t)cpu};

    if (get(m, TORN) && i % get(m, TORN) == 0)
        sample.tuple = m->torn_tuples[stack];
    if (get(m, UNJOINED) && i % get(m, UNJOINED) == 0)
        sample.tuple = m->unjoined_tuples[stack];
    if (get(m, CUT) && i % get(m, CUT) == 0)
        sample.tuple = m->cut_tuples[stack];
    if (get(m, GIL))
        sample.flags = TRACE_SAMPLE_GIL_KNOWN | ((get(m, NATURAL) ? draw(m, 3) : thread) ? 0 : TRACE_SAMPLE_GIL);
    if (get(m, LABELS)) {
        sample.flags |= TRACE_SAMPLE_LABELS;
        sample.label_set = m->label_sets[i % get(m, LABELS)];
    }
    if (get(m, UNEVEN)) {
        sample.flags |= TRACE_SAMPLE_VALUE;
        sample.value = i * 7919 % 3001 * (m->period_ns / 1000 + 1);
    }
    trace_writer_sample(m->w, m->event, &sample);
    sample.flags &= ~(uint32_t)TRACE_SAMPLE_VALUE;
    m->sample_count++;
    if (m->second_event && i < get(m, SECOND_EVENT)) {
        sample.time_ns += get(m, INTERVAL_US) * NS_PER_US / 2;
        sample.tuple = m->tuples[(stack + 1) % get(m, STACKS)];
        trace_writer_sample(m->w, m->second_event, &sample);
        m->sample_count++;
    }
}

/* Waits of the first thread: each blocks for 3 ms in read(), and then waits 1 ms for a CPU. And what that adds up to. */
static void put_waits(struct maker *m, uint64_t time_ns)
{
    const uint64_t blocked[] = {str(m, trace_label_key(TRACE_LABEL_wait)), str(m, "blocked"),
                                str(m, trace_label_key(TRACE_LABEL_system_call)), str(m, "read")};
    const uint64_t queued[] = {blocked[0], str(m, "run queue"), blocked[2], blocked[3]};
    struct trace_label_set sets[] = {{.pairs = {blocked, 2}}, {.pairs = {queued, 2}}};
    struct trace_event event = {
        .name = str(m, "off-cpu"), .unit = str(m, "ns"), .period = 10 * m->period_ns, .kind = TRACE_EVENT_OFF_CPU};
    uint64_t count = get(m, WAITS), from_ns = time_ns - count * 5000 * NS_PER_US;
    const uint64_t rows[] = {TRACE_WAIT_BLOCKED, count * 3000 * NS_PER_US, count, TRACE_WAIT_RUN_QUEUE,
                             count * 1000 * NS_PER_US, count};
    struct trace_thread_time account = {.thread = m->threads[0], .since_ns = from_ns, .until_ns = time_ns,
                                        .on_cpu_ns = count * 1000 * NS_PER_US, .waits = {rows, 2}};

    trace_writer_put(m->w, TRACE_event, &event);
    for (uint64_t i = 0; i < 2 * count; i++) {
        struct trace_sample sample = {.thread = m->threads[0], .tuple = m->tuples[1 % get(m, STACKS)],
                                      .flags = TRACE_SAMPLE_VALUE | TRACE_SAMPLE_LABELS | (i % 2 ? TRACE_SAMPLE_CONTINUES : 0),
                                      .value = (i % 2 ? 1000 : 3000) * NS_PER_US,
                                      .label_set = trace_writer_intern(m->w, TRACE_label_set, &sets[i % 2])};
        sample.time_ns = from_ns + (i / 2 * 5000 + (i % 2 ? 5000 : 4000)) * NS_PER_US;
        trace_writer_sample(m->w, event.id, &sample);
        m->sample_count++;
    }
    trace_writer_put(m->w, TRACE_thread_time, &account);
}

/* A sample of a wait or of blame, of the first thread or the second, whose waits are for the GIL. */
static void put_gil_sample(struct maker *m, uint32_t event, uint64_t time_ns, uint32_t thread, uint64_t value_us, const char *call)
{
    const uint64_t pairs[] = {str(m, trace_label_key(TRACE_LABEL_wait)), str(m, thread ? "GIL" : "blocked"),
                              str(m, trace_label_key(TRACE_LABEL_system_call)), str(m, call ? call : "")};
    struct trace_label_set set = {.pairs = {pairs, 2}};
    struct trace_sample sample = {.time_ns = time_ns, .thread = m->threads[thread], .tuple = m->tuples[thread % get(m, STACKS)],
                                  .flags = TRACE_SAMPLE_VALUE | TRACE_SAMPLE_GIL_KNOWN | (thread ? 0 : TRACE_SAMPLE_GIL),
                                  .value = value_us * NS_PER_US};

    if (call) {
        sample.flags |= TRACE_SAMPLE_LABELS;
        sample.label_set = trace_writer_intern(m->w, TRACE_label_set, &set);
    }
    trace_writer_sample(m->w, event, &sample);
    m->sample_count++;
}

static void put_gil_waits(struct maker *m, uint64_t time_ns)
{
    struct trace_event waits = {
        .name = str(m, "off-cpu"), .unit = str(m, "ns"), .period = 10 * m->period_ns, .kind = TRACE_EVENT_OFF_CPU};
    struct trace_event blame = {.name = str(m, "gil-blame"), .unit = waits.unit, .period = m->period_ns, .kind = TRACE_EVENT_BLAME};
    uint64_t count = get(m, GIL_WAITS), from_ns = time_ns - count * 10000 * NS_PER_US;
    const uint64_t slept[] = {TRACE_WAIT_BLOCKED, count * 3500 * NS_PER_US, count};
    const uint64_t waited[] = {TRACE_WAIT_GIL, count * 7250 * NS_PER_US, 2 * count};
    struct trace_thread_time accounts[] = {
        {.thread = m->threads[0], .since_ns = from_ns, .until_ns = time_ns, .on_cpu_ns = count * 6500 * NS_PER_US, .waits = {slept, 1}},
        {.thread = m->threads[1], .since_ns = from_ns, .until_ns = time_ns, .on_cpu_ns = count * 2750 * NS_PER_US, .waits = {waited, 1}}};

    trace_writer_put(m->w, TRACE_event, &waits);
    trace_writer_put(m->w, TRACE_event, &blame);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at_ns = from_ns + i * 10000 * NS_PER_US;
        put_gil_sample(m, waits.id, at_ns + 3500 * NS_PER_US, 0, 3500, "clock_nanosleep");
        put_gil_sample(m, blame.id, at_ns + 3500 * NS_PER_US, 0, 3000, "clock_nanosleep");
        put_gil_sample(m, waits.id, at_ns + 9000 * NS_PER_US, 1, 7000, "futex");
        put_gil_sample(m, blame.id, at_ns + 9000 * NS_PER_US, 0, 4000, NULL);
    }
    trace_writer_put(m->w, TRACE_thread_time, &accounts[0]);
    trace_writer_put(m->w, TRACE_thread_time, &accounts[1]);
}

/* Coroutines of Python alone: outer's stack, that of outer and inner, and ready's. */
static void put_coroutines(struct maker *m, uint32_t tuples[3])
{
    static const char *const names[] = {"outer", "inner", "ready"};
    uint32_t frames[3];

    for (int i = 0; i < 3; i++) {
        uint32_t code = put_code(m, names[i], "/srv/app/tasks.py", 10 * i + 1, 0);
        frames[i] = put_python(m, code, i, true);
        struct trace_tuple tuple = {.python_end = LOSS_complete};
        tuple.python_stack = i == 1 ? trace_writer_stack(m->w, frames, 2) : trace_writer_stack(m->w, frames + i, 1);
        tuples[i] = trace_writer_intern(m->w, TRACE_tuple, &tuple);
    }
}

static void put_other_events(struct maker *m, uint64_t time_ns)
{
    const struct made_up made = {m->w, m->threads, m->tuples, get(m, THREADS), get(m, STACKS)};
    uint32_t coroutines[3];

    if (get(m, EVENTS))
        m->sample_count += made_up_put_events(&made, time_ns, get(m, EVENTS));
    if (get(m, TASK_WAITS)) {
        put_coroutines(m, coroutines);
        m->sample_count += made_up_put_task_waits(&made, coroutines, time_ns, get(m, TASK_WAITS));
    }
}

static void put_meta(struct maker *m, const char *key, const char *value)
{
    struct trace_meta meta = {.key = str(m, key), .value = str(m, value)};

    trace_writer_put(m->w, TRACE_meta, &meta);
}

static void put_meta_number(struct maker *m, const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    put_meta(m, key, text);
}

static void put_note(struct maker *m)
{
    if (get(m, WORK)) {
        put_meta_number(m, TRACE_META_WORK, get(m, WORK));
        put_meta(m, TRACE_META_NOTE_PREFIX "branch", "main");
    }
    if (get(m, NOTE_CUT)) {
        put_meta_number(m, TRACE_META_NOTE_CUT, get(m, NOTE_CUT));
        put_meta_number(m, TRACE_META_NOTE_REFUSED, 1);
    }
}

/* What the writer would not write. */
static void put_newer(struct maker *m, uint64_t time_ns)
{
    const uint32_t flags = TRACE_SAMPLE_KERNEL | 1 << 5 | 1 << 8;
    struct buf data = {0};

    for (uint64_t i = 0; i < get(m, NEWER); i++) {
        buf_put_zigzag(&data, (int64_t)m->period_ns);
        buf_put_uleb(&data, m->threads[0]);
        buf_put_uleb(&data, m->tuples[0]);
        buf_put_uleb(&data, 0); /* CPU */
        buf_put_uleb(&data, flags);
        buf_put_uleb(&data, 1000 * i); /* of flag 1 << 8 */
    }
    struct trace_samples record = {.event = m->event,
                                   .time_ns = time_ns,
                                   .count = (uint32_t)get(m, NEWER),
                                   .data = {.data = data.data, .len_bytes = data.len_bytes}};
    trace_writer_put(m->w, TRACE_samples, &record);
    m->sample_count += get(m, NEWER);
    buf_deinit(&data);
}

static void put_loss(struct maker *m, uint64_t time_ns, uint32_t reason, uint64_t count)
{
    if (!count)
        return;
    struct trace_loss loss = {.time_ns = time_ns, .reason = reason, .event = m->event, .name = str(m, trace_loss_name(reason)),
                              .count = count};
    trace_writer_put(m->w, TRACE_loss, &loss);
}

static void put_skipped(struct maker *m, uint64_t time_ns)
{
    struct trace_ticks ticks = {.event = m->event, .time_ns = time_ns, .seen = 10 * m->sample_count, .unsampled = 9 * m->sample_count};

    put_loss(m, time_ns, LOSS_tick_skipped, get(m, SKIPPED));
    if (get(m, SKIPPED))
        trace_writer_put(m->w, TRACE_ticks, &ticks);
}

static void make(struct maker *m)
{
    uint64_t time_ns = START_S * NS_PER_US * 1000000, flushed_ns = time_ns;

    m->period_ns = get(m, INTERVAL_US) * NS_PER_US;
    m->random += get(m, RUN) * UINT64_C(0x9e3779b97f4a7c15);
    define(m);
    for (uint64_t i = 0; i < get(m, SAMPLES); i++) {
        if (get(m, SLOWER_AT) && i == get(m, SLOWER_AT)) {
            m->period_ns *= 2;
            struct trace_period period = {.event = m->event, .time_ns = time_ns + 1, .period = m->period_ns};
            trace_writer_put(m->w, TRACE_period, &period);
        }
        if (i % get(m, CPUS) == 0)
            time_ns += m->period_ns;
        if ((get(m, EPOCH_SAMPLES) && i && i % get(m, EPOCH_SAMPLES) == 0) || trace_writer_epoch_due(m->w, time_ns)) {
            trace_writer_new_epoch(m->w, time_ns);
            define(m);
        }
        put_sample(m, i, time_ns);
        if (time_ns - flushed_ns > NS_PER_US * 1000000) {
            trace_writer_flush(m->w);
            flushed_ns = time_ns;
        }
    }
    if (get(m, NEWER))
        put_newer(m, time_ns);
    if (get(m, WAITS))
        put_waits(m, time_ns);
    if (get(m, GIL_WAITS))
        put_gil_waits(m, time_ns);
    put_other_events(m, time_ns);
    if (get(m, COMMAND)) {
        put_meta(m, get(m, COMMAND) == 1 ? TRACE_META_EXIT_STATUS : TRACE_META_SIGNAL, get(m, COMMAND) == 1 ? "3" : "9");
        put_meta(m, TRACE_META_WALL_NS, "2500000000");
        put_meta(m, TRACE_META_CPU_NS, "1250999000");
    }
    put_note(m);
    put_loss(m, time_ns, LOSS_ring_full, get(m, LOSSES));
    put_skipped(m, time_ns);
    if (get(m, END)) {
        trace_writer_flush(m->w);
        struct trace_end end = {.time_ns = time_ns,
                                .reason = TRACE_END_DURATION,
                                .sample_count = m->sample_count,
                                .lost_count = get(m, LOSSES) + get(m, SKIPPED)};
        trace_writer_put(m->w, TRACE_end, &end);
    }
}

static bool set(struct maker *m, const char *text)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        size_t len = strlen(m->settings[i].name);
        if (!strncmp(text, m->settings[i].name, len) && text[len] == '=') {
            m->settings[i].value = strtoull(text + len + 1, NULL, 10);
            return true;
        }
    }
    fprintf(stderr, "make_trace: unknown setting %s\n", text);
    return false;
}

int main(int argc, char **argv)
{
    struct maker m = {.settings = {
                          [SAMPLES] = {"samples", 1000},
                          [STACKS] = {"stacks", 4},
                          [DEPTH] = {"depth", 5},
                          [PROCESSES] = {"processes", 1},
                          [THREADS] = {"threads", 2},
                          [NATIVE] = {"native", 1},
                          [INTERVAL_US] = {"interval_us", 10000},
                          [SLOWER_AT] = {"slower_at", 0},
                          [UNEVEN] = {"uneven", 0},
                          [CPUS] = {"cpus", 1},
                          [EPOCH_SAMPLES] = {"epoch_samples", 0},
                          [SECOND_EVENT] = {"second_event", 0},
                          [TORN] = {"torn", 0},
                          [UNJOINED] = {"unjoined", 0},
                          [CUT] = {"cut", 0},
                          [GIL] = {"gil", 0},
                          [LABELS] = {"labels", 0},
                          [CONTAINERS] = {"containers", 0},
                          [LOSSES] = {"losses", 0},
                          [SKIPPED] = {"skipped", 0},
                          [END] = {"end", 1},
                          [FOREIGN] = {"foreign", 0},
                          [PID] = {"pid", 1000},
                          [NEWER] = {"newer", 0},
                          [HARDWARE] = {"hardware", 0},
                          [COMMAND] = {"command", 0},
                          [WORK] = {"work", 0},
                          [NOTE_CUT] = {"note_cut", 0},
                          [WAITS] = {"waits", 0},
                          [GIL_WAITS] = {"gil_waits", 0},
                          [CLOCKS] = {"clocks", 1},
                          [SOURCES] = {"sources", 0},
                          [NATURAL] = {"natural", 0},
                          [RUN] = {"run", 0},
                          [SLOWER] = {"slower", 0},
                          [CHANGED] = {"changed", 0},
                          [LINELESS] = {"lineless", 0},
                          [MOVED] = {"moved", 0},
                          [FRESH] = {"fresh", 0},
                          [LEAVES] = {"leaves", 0},
                          [EVENTS] = {"events", 0},
                          [TASK_WAITS] = {"task_waits", 0},
                          [JITTER_US] = {"jitter_us", 0},
                          [ZIPF] = {"zipf", 0},
                      },
                      .random = 1};
    struct error *err;

    if (argc < 2) {
        fprintf(stderr, "usage: make_trace OUT [NAME=NUMBER...]; names are in make_trace.c\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (!set(&m, argv[i]))
            return 2;
    }
    m.threads = calloc(get(&m, THREADS), sizeof *m.threads);
    m.tuples = calloc(4 * get(&m, STACKS), sizeof *m.tuples);
    m.label_sets = calloc(get(&m, LABELS) + 1, sizeof *m.label_sets);
    m.torn_tuples = m.tuples + get(&m, STACKS);
    m.unjoined_tuples = m.torn_tuples + get(&m, STACKS);
    m.cut_tuples = m.unjoined_tuples + get(&m, STACKS);
    if (get(&m, ZIPF) && !prepare_ranks(&m)) {
        fprintf(stderr, "make_trace: no memory for %" PRIu64 " stacks\n", get(&m, STACKS));
        return 1;
    }
    int fd = strcmp(argv[1], "-") ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : 1;
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    err = trace_writer_create(fd, argv[1], NULL, START_S * NS_PER_US * 1000000, &m.w);
    if (!err) {
        make(&m);
        err = trace_writer_finish(m.w);
    }
    if (err)
        fprintf(stderr, "make_trace: %s\n", error_text(err));
    int status = err ? 1 : 0;
    error_destroy(err);
    trace_writer_destroy(m.w);
    free(m.threads);
    free(m.tuples);
    free(m.label_sets);
    free(m.shares);
    free(m.ranked);
    return status;
}
