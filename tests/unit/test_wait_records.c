/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the trace builder writes of waits: labels, kernel frames without those of the switch itself, the exact times of
 * threads as differences, and what call sites owe at the end. Read back from the trace as lines of text.
 */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/wait_chance.h"
#include "capture/host/host.h"
#include "capture/host/system_calls.h"
#include "capture/trace/trace_accounts.h"
#include "capture/trace/trace_builder.h"
#include "capture/trace/trace_losses.h"
#include "capture/trace/trace_parts.h"
#include "capture/trace/wait_sites.h"
#include "formats/base/buf.h"
#include "tests/unit/trace_fixture.h"

enum { PERIOD = 1000, FUTEX = 202 };
static const char symbols[] = "ffffffff81000100 t bpf_trace_run4\n"
                              "ffffffff81000200 t __schedule.constprop.0\n"
                              "ffffffff81000300 T schedule\n"
                              "ffffffff81000400 t futex_wait\n"
                              "ffffffff81000500 t do_nanosleep\n"
                              "ffffffff81000600 t perf_syscall_enter\n"
                              "ffffffff81000700 t syscall_trace_enter.isra.0\n"
                              "ffffffff81000800 t do_syscall_64\n"
                              "ffffffff81000900 t entry_SYSCALL_64_after_hwframe\n"
                              "ffffffff81000a00 t __traceiter_sched_process_fork\n"
                              "ffffffff81000b00 t kernel_clone\n"
                              "ffffffff81000c00 t end\n"
                              "ffffffffc0000000 t bpf_prog_1_switched\t[bpf]\n";

struct world {
    struct host host;
    struct settings settings;
    struct processes *processes;
    struct process *process;
    struct kallsyms *kallsyms;
    struct codes *codes;
    struct trace_writer *writer;
    struct trace_builder *builder;
    int fd;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct event_list events = {.list = {{.source = event_source("off-cpu"), .period = PERIOD}}, .count = 1};

    assert_non_null(w);
    w->fd = memory_file();
    OK(processes_create(&(struct processes_options){.whole_host = true, .include_non_python = true}, NULL, &w->processes));
    OK(processes_begin(w->processes, (uint32_t)getpid(), 1, &w->process));
    process_select(w->process, true, true);
    w->process->configured = true;
    OK(kallsyms_create(&w->kallsyms));
    OK(kallsyms_load(w->kallsyms, 1)); /* the real ones; then ours in their place */
    OK(kallsyms_parse(w->kallsyms, symbols, sizeof symbols - 1));
    OK(codes_create(&w->codes));
    OK(trace_writer_create(w->fd, "t", NULL, 1, &w->writer));
    const struct trace_builder_options options = {.writer = w->writer, .host = &w->host, .processes = w->processes,
        .codes = w->codes, .kallsyms = w->kallsyms, .settings = &w->settings, .events = events, .whole_host = true,
        .include_non_python = true};
    OK(trace_builder_create(&options, &w->builder));
    OK(trace_builder_begin_epoch(w->builder, 1));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    trace_builder_destroy(w->builder);
    trace_writer_destroy(w->writer);
    processes_destroy(w->processes);
    kallsyms_destroy(w->kallsyms);
    codes_destroy(w->codes);
    close(w->fd);
    free(w);
    return 0;
}

/* What is said of its call site. */
struct owing {
    uint64_t site, waited_ns, owed_ns, blame_ns, owed_blame_ns;
    uint32_t caller; /* its stack is another one for each */
    enum wire_waker waker;
    uint32_t waker_tgid, waker_tid;
    uint32_t chance; /* 0: one of two waits has a stack */
};

static void send(struct world *w, struct owing o, enum wire_wait_kind kind, int system_call, uint64_t value, uint32_t flags)
{
    const struct {
        struct wire_sample head;
        uint64_t kernel[5];
    } m = {
        .head = {.type = WIRE_SAMPLE, .flags = WIRE_WAITS | WIRE_IN_KERNEL | flags, .tgid = (uint32_t)getpid(),
                 .tid = (uint32_t)getpid(), .time_ns = 100, .start_boottime_ns = 1, .exec_generation = 1, .period = value,
                 .interpreter_id = WIRE_INTERPRETER_ID_NONE, .kernel_count = 5, .wait_kind = kind,
                 .system_call = system_call, .wait_site = o.site, .waited_ns = o.waited_ns, .owed_ns = o.owed_ns,
                 .waker_kind = o.waker, .waker_tgid = o.waker_tgid, .waker_tid = o.waker_tid,
                 .wait_chance = o.chance ? o.chance : WIRE_CHANCE_ALL / 2,
                 .blame_ns = o.blame_ns, .owed_blame_ns = o.owed_blame_ns},
        .kernel = {0xffffffffc0000010, 0xffffffff81000110, 0xffffffff81000210, 0xffffffff81000310, 0xffffffff81000410 + 0x100 * o.caller},
    };

    OK(trace_builder_sample(w->builder, &m.head, sizeof m));
}

/* ---- what the trace says ---- */

/* By ids of the epoch. */
struct names {
    char strings[64][128], frames[16][128], stacks[16][128], labels[16][256];
    uint32_t string_count, symbols[16], symbol_count, frame_count, stack_count, tuples[16], tuple_count, label_count;
    uint32_t event_count, blame; /* the event of blame */
    uint32_t thread_count, process_of[16]; /* by thread */
};

/* Stores "A;B", or B alone. */
static void keep(char to[128], const char *a, const char *b)
{
    char text[128];

    snprintf(text, sizeof text, "%.60s%s%.60s", a, *a ? ";" : "", b);
    memcpy(to, text, sizeof text);
}

static void define(struct names *n, const struct trace_record *rec)
{
    if (rec->type == TRACE_host) {
        /* An epoch begins; its ids of stacks and labels are those of the epoch before. */
        n->event_count = n->blame = n->thread_count = 0;
    } else if (rec->type == TRACE_thread) {
        assert_true(n->thread_count < 15);
        n->process_of[++n->thread_count] = rec->thread.process;
    } else if (rec->type == TRACE_event) {
        n->event_count++;
        n->blame = rec->event.kind == TRACE_EVENT_BLAME ? n->event_count : n->blame;
    } else if (rec->type == TRACE_string) {
        uint64_t len = rec->string.data.len_bytes;
        assert_true(len < sizeof *n->strings);
        memcpy(n->strings[++n->string_count], rec->string.data.data, len);
    } else if (rec->type == TRACE_kernel_symbol) {
        n->symbols[++n->symbol_count] = rec->kernel_symbol.name;
    } else if (rec->type == TRACE_kernel_frame) {
        keep(n->frames[++n->frame_count], "", n->strings[n->symbols[rec->kernel_frame.symbol]]);
    } else if (rec->type == TRACE_stack) {
        uint32_t parent = rec->stack.parent;
        for (uint64_t i = 0; i < rec->stack.frames.count; i++, parent = n->stack_count)
            keep(n->stacks[++n->stack_count], n->stacks[parent], n->frames[rec->stack.frames.values[i]]);
    } else if (rec->type == TRACE_tuple) {
        n->tuples[++n->tuple_count] = rec->tuple.kernel_stack;
    } else if (rec->type == TRACE_label_set) {
        struct buf text = {0};
        for (uint64_t i = 0; i < rec->label_set.pairs.count; i++)
            buf_printf(&text, " %s=%s", n->strings[rec->label_set.pairs.values[2 * i]],
                       n->strings[rec->label_set.pairs.values[2 * i + 1]]);
        assert_true(text.len_bytes < sizeof *n->labels);
        memcpy(n->labels[++n->label_count], text.data, text.len_bytes);
        buf_deinit(&text);
    }
}

static void tell(const struct names *n, const struct trace_record *rec, struct buf *out)
{
    if (rec->type == TRACE_samples) {
        struct trace_sample_iter it;
        struct trace_sample s;
        trace_samples_begin(&it, &rec->samples, PERIOD);
        while (trace_samples_next(&it, &s))
            buf_printf(out, "%s%" PRIu64 "%s;%s%s\n", rec->samples.event == n->blame ? "blame " : "", s.value, s.flags & TRACE_SAMPLE_OWED ? "=" : s.flags & TRACE_SAMPLE_CONTINUES ? "+" : "",
                       n->stacks[n->tuples[s.tuple]], n->labels[s.label_set]);
    } else if (rec->type == TRACE_thread_time) {
        const struct trace_thread_time *t = &rec->thread_time;
        if (n->process_of[t->thread] > 1)
            buf_printf(out, "process %u: ", n->process_of[t->thread]);
        buf_printf(out, "%" PRIu64 "-%" PRIu64 " %" PRIu64, t->since_ns, t->until_ns, t->on_cpu_ns);
        for (uint64_t i = 0; i < t->waits.count; i++)
            buf_printf(out, " %" PRIu64 ":%" PRIu64 "*%" PRIu64, t->waits.values[3 * i], t->waits.values[3 * i + 1],
                       t->waits.values[3 * i + 2]);
        buf_put_u8(out, '\n');
    }
}

static void assert_trace(struct world *w, const char *want)
{
    struct names *n = calloc(1, sizeof *n);
    struct trace_reader *r;
    struct trace_record rec;
    struct buf text = {0};
    bool more;

    OK(trace_writer_finish(w->writer));
    assert_int_equal(lseek(w->fd, 0, SEEK_SET), 0);
    OK(trace_reader_open_fd(w->fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        define(n, &rec);
        tell(n, &rec, &text);
    }
    assert_string_equal(buf_cstr(&text), want);
    buf_deinit(&text);
    trace_reader_close(r);
    free(n);
}

/* ---- tests ---- */

TEST_WITH(samples, set_up, tear_down)
{
    struct world *w = *state;

    send(w, (struct owing){.site = 1}, WIRE_WAIT_LOCK, FUTEX, 70, 0);
    send(w, (struct owing){.site = 1}, WIRE_WAIT_RUN_QUEUE, FUTEX, PERIOD, WIRE_CONTINUES);
    send(w, (struct owing){.site = 2}, WIRE_WAIT_PREEMPTED, WIRE_NO_SYSTEM_CALL, 5, 0);
    send(w, (struct owing){.site = 3}, WIRE_WAIT_BLOCKED, 9999, 6, 0);
    assert_trace(w, "70;futex_wait;schedule wait=lock system call=futex\n"
                    "1000+;futex_wait;schedule wait=run queue system call=futex\n"
                    "5;futex_wait;schedule wait=preempted\n"
                    "6;futex_wait;schedule wait=blocked system call=#9999\n");
}

static struct wire_thread thread(uint64_t switched_ns, uint64_t on_cpu_ns, uint64_t blocked_ns, uint64_t queue_ns, bool runs)
{
    struct wire_thread t = {.type = WIRE_THREAD, .runs = runs, .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(),
                            .since_ns = 100, .switched_ns = switched_ns, .on_cpu_ns = on_cpu_ns, .kind = WIRE_WAIT_BLOCKED};

    t.waits[WIRE_WAIT_BLOCKED] = (struct wire_wait_sum){blocked_ns, blocked_ns / 10};
    t.waits[WIRE_WAIT_RUN_QUEUE] = (struct wire_wait_sum){queue_ns, queue_ns / 10};
    return t;
}

/* Sends a sample with these kernel frames, innermost first, of a thread that runs. */
static void send_hit(struct world *w, const uint64_t *kernel, uint32_t count)
{
    struct {
        struct wire_sample head;
        uint64_t kernel[4];
    } m = {.head = {.type = WIRE_SAMPLE, .flags = WIRE_IN_KERNEL, .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(),
                    .time_ns = 100, .start_boottime_ns = 1, .exec_generation = 1, .period = 7, .kernel_count = count,
                    .interpreter_id = WIRE_INTERPRETER_ID_NONE, .wait_kind = 0, .system_call = WIRE_NO_SYSTEM_CALL}};

    memcpy(m.kernel, kernel, count * sizeof *kernel);
    OK(trace_builder_sample(w->builder, &m.head, sizeof m));
}

/* Of a tracepoint's samples, what the kernel does to call the sampler is no part of the stack; of others it is. */
TEST_WITH(tracepoints, set_up, tear_down)
{
    static const uint64_t call[] = {0xffffffff81000610, 0xffffffff81000710, 0xffffffff81000810, 0xffffffff81000910},
                          fork[] = {0xffffffff81000a10, 0xffffffff81000b10, 0xffffffff81000810, 0xffffffff81000910};
    struct world *w = *state;
    struct event_source point = *event_source("off-cpu");

    send_hit(w, call, 2);
    point.kind = EVENT_TRACEPOINT;
    w->builder->o.events.list[0].source = &point;
    send_hit(w, call, 4);
    send_hit(w, call + 1, 2);
    send_hit(w, fork, 4);
    send_hit(w, fork + 1, 3);
    assert_trace(w, "7;syscall_trace_enter.isra.0;perf_syscall_enter\n"
                    "7;\n"
                    "7;\n"
                    "7;entry_SYSCALL_64_after_hwframe;do_syscall_64;kernel_clone\n"
                    "7;entry_SYSCALL_64_after_hwframe;do_syscall_64;kernel_clone\n");
}

/* Sends what a look at asyncio tasks has found: the text has the task's name and, behind a NUL, that of who awaits it. */
static void send_task(struct world *w, uint64_t life, enum wire_wait_kind kind, const char *text, uint32_t len_bytes)
{
    struct {
        struct wire_sample head;
        char text[64];
    } m = {.head = {.type = WIRE_SAMPLE, .flags = WIRE_TASK, .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(), .time_ns = 100,
                    .period = 7, .interpreter_id = WIRE_INTERPRETER_ID_NONE, .task_len_bytes = len_bytes, .wait_kind = kind,
                    .system_call = WIRE_NO_SYSTEM_CALL, .wait_site = life}};

    memcpy(m.text, text, len_bytes);
    OK(trace_builder_sample(w->builder, &m.head, (uint32_t)sizeof m.head + len_bytes));
}

/* Tasks of a process that no sample has bound to an identity, of one that has begun anew, and of one that is gone. */
TEST_WITH(tasks, set_up, tear_down)
{
    struct world *w = *state;
    uint64_t life = w->process->life, losses[LOSS_LIMIT] = {0};

    send_task(w, life, WIRE_WAIT_TASK, "main", 4);
    send_task(w, life, WIRE_WAIT_FUTURE, "child\0main", 10);
    send_task(w, life, WIRE_WAIT_EVENT_LOOP, "\0main", 5);
    send_task(w, life, WIRE_WAIT_FUTURE, "", 0);
    send_task(w, life, WIRE_WAIT_FUTURE, "child\0", 6);
    assert_false(w->process->bound);
    send_task(w, life + 1, WIRE_WAIT_FUTURE, "late", 4);
    trace_builder_event_losses(w->builder, 0, losses);
    assert_int_equal(losses[LOSS_process_gone], 1);
    assert_trace(w, "7; asyncio task=main wait=task\n"
                    "7; asyncio task=child awaited by=main wait=future\n"
                    "7; awaited by=main wait=event loop\n"
                    "7; wait=future\n"
                    "7; asyncio task=child wait=future\n");
}

/* Each record has what was added since the one before; the last one also what the thread does at the end. */
TEST_WITH(thread_times, set_up, tear_down)
{
    struct world *w = *state;
    struct wire_thread t = thread(200, 40, 60, 0, false);

    OK(trace_builder_thread(w->builder, &t, 0));
    OK(trace_builder_thread(w->builder, &t, 0)); /* nothing was added */
    t = thread(350, 100, 100, 50, true);
    OK(trace_builder_thread(w->builder, &t, 0));
    t.since_ns += 30; /* a switch was not seen: of these ns nothing is known */
    t.switched_ns += 30;
    OK(trace_builder_thread(w->builder, &t, 400));
    t = thread(500, 150, 120, 60, false); /* begins again: another program */
    t.exec_generation = 1;
    OK(trace_builder_thread(w->builder, &t, 520));
    OK(trace_builder_thread_ended(w->builder, &t));
    t = thread(130, 30, 0, 0, false); /* another thread */
    OK(trace_builder_thread_ended(w->builder, &t));
    t.tgid = 1; /* of a process that is not recorded */
    OK(trace_builder_thread_ended(w->builder, &t));
    assert_trace(w, "100-200 40 1:60*6\n"
                    "200-350 60 1:40*4 4:50*5\n"
                    "380-400 20\n"
                    "100-520 150 1:140*12 4:60*6\n"
                    "100-130 30\n");
}

/* The side-band says that the process has executed another program, which has this generation. */
static void execute(struct world *w, uint64_t generation, bool bound)
{
    const struct processes_events events = trace_builder_process_events(w->builder);

    processes_set_events(w->processes, &events);
    OK(processes_begin(w->processes, (uint32_t)getpid(), 400, &w->process));
    process_select(w->process, true, true);
    w->process->configured = true;
    w->process->expected_generation = generation;
    w->process->bound = bound;
    w->process->start_boottime_ns = bound;
    w->process->exec_generation = bound ? generation : 0;
}

static struct wire_thread other_thread(struct wire_thread t, uint32_t tid, uint64_t generation)
{
    t.tid = tid;
    t.start_boottime_ns = 1;
    t.exec_generation = generation;
    return t;
}

/* Times that come when the process has executed another program already are those of the program before. */
TEST_WITH(times_after_exec, set_up, tear_down)
{
    struct world *w = *state;
    struct wire_thread seen = other_thread(thread(200, 40, 60, 0, false), 7, 1);

    w->process->bound = true;
    w->process->start_boottime_ns = w->process->exec_generation = 1;
    OK(trace_builder_thread(w->builder, &seen, 0));
    execute(w, 2, true);
    seen = other_thread(thread(500, 40, 360, 0, false), 7, 1);
    OK(trace_builder_thread(w->builder, &seen, 900)); /* by then it is another thread */
    seen = other_thread(thread(600, 140, 360, 0, false), 7, 1);
    OK(trace_builder_thread_ended(w->builder, &seen));
    for (int i = 0; i < 2; i++) { /* the second one has a record by then, and another thread's id */
        struct wire_thread unseen = other_thread(thread(700, 0, 600, 0, false), 8, 1);
        OK(trace_builder_thread_ended(w->builder, &unseen));
    }
    struct wire_thread next = other_thread(thread(900, 0, 800, 0, false), 7, 2);
    OK(trace_builder_thread(w->builder, &next, 0));
    trace_builder_count_unwritten(w->builder);
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_thread_late], 0);
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_wait_unwritten], (360 + 600 + 600 + 800) / PERIOD);
    assert_trace(w, "100-200 40 1:60*6\n"
                    "200-500 0 1:300*30\n"
                    "500-600 100\n"
                    "100-700 0 1:600*60\n"
                    "100-700 0 1:600*60\n"
                    "process 2: 100-900 0 1:800*80\n");
}

/* The same of processes of which nothing was written, or sampled, before they were replaced. */
TEST_WITH(times_after_exec_of_unknown, set_up, tear_down)
{
    struct world *w = *state;
    struct wire_thread first = other_thread(thread(200, 40, 60, 0, false), 7, 1),
                       second = other_thread(thread(300, 40, 160, 0, false), 7, 2);

    execute(w, 2, false);
    OK(trace_builder_thread_ended(w->builder, &first));
    execute(w, 3, false);
    OK(trace_builder_thread_ended(w->builder, &second));
    assert_trace(w, "100-200 40 1:60*6\n"
                    "process 2: 100-300 40 1:160*16\n");
}

/* In another epoch the program before is not known any more. */
TEST_WITH(times_after_exec_and_epoch, set_up, tear_down)
{
    struct world *w = *state;
    struct wire_thread t = other_thread(thread(1200, 0, 1100, 0, false), 7, 1);

    execute(w, 2, true);
    OK(trace_builder_begin_epoch(w->builder, 500));
    OK(trace_builder_thread_ended(w->builder, &t));
    trace_builder_count_unwritten(w->builder);
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_thread_late], 1);
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_wait_unwritten], 1);
    assert_trace(w, "");
}

/* A process that ends threads without end has the times of as many written as one process may. */
TEST_WITH(threads_without_end, set_up, tear_down)
{
    enum { MOST = 20000, MORE = 50 };
    struct world *w = *state;
    struct wire_thread t = thread(200, 40, 60, 0, false);

    for (uint32_t i = 0; i < MOST - 1; i++)
        assert_true(quota_take(w->processes->quotas, w->process->slot, QUOTA_thread_times, 1, t.switched_ns));
    for (uint32_t i = 0; i < 1 + MORE; i++) {
        t.tid = i + 1;
        OK(trace_builder_thread_ended(w->builder, &t));
    }
    t = thread(300, 40, 160, 0, false); /* of one that goes on all is written */
    OK(trace_builder_thread(w->builder, &t, 0));
    trace_builder_refusals(w->builder, 400);
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_thread_quota], MORE);
    trace_builder_count_unwritten(w->builder); /* these waited all the same */
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_wait_unwritten], ((1 + MORE) * 60 + 160) / PERIOD);
    assert_trace(w, "100-200 40 1:60*6\n"
                    "100-300 40 1:160*16\n");
}

/* A wait that is written while it lasts: if the thread was in the run queue by then, it is written as blocked, and only once. */
TEST_WITH(open_waits, set_up, tear_down)
{
    struct world *w = *state;
    struct wire_thread t = thread(200, 40, 60, 0, false);

    OK(trace_builder_thread(w->builder, &t, 1200));
    OK(trace_builder_thread(w->builder, &t, 2200));
    t = thread(2300, 40, 60 + 1900, 200, true); /* it was woken at 2100 */
    OK(trace_builder_thread(w->builder, &t, 0));
    t = thread(2500, 140, 60 + 1900 + 50, 250, false);
    OK(trace_builder_thread(w->builder, &t, 0));
    t = thread(3000, 140, 60 + 1900 + 500, 300, false);
    OK(trace_builder_thread(w->builder, &t, 0));
    assert_trace(w, "100-1200 40 1:1060*6\n"
                    "1200-2200 0 1:1000*0\n"
                    "2200-2300 0 1:0*190 4:100*20\n"
                    "2300-2500 100 1:0*5 4:100*5\n"
                    "2500-3000 0 1:400*45 4:100*5\n");
}

/* What a site owes is added to the sample of one of its last stacks, in the end to one of them as well. */
TEST_WITH(owed, set_up, tear_down)
{
    struct world *w = *state;
    struct wire_thread t = thread(10100, 0, 10000, 0, true);

    t.start_boottime_ns = t.exec_generation = 1;
    send(w, (struct owing){.site = 1, .waited_ns = 100, .owed_ns = 1000}, WIRE_WAIT_LOCK, FUTEX, 70, 0);
    send(w, (struct owing){.site = 1, .owed_ns = 7}, WIRE_WAIT_RUN_QUEUE, FUTEX, 30, WIRE_CONTINUES);
    trace_builder_owed(w->builder, 1, &(struct wire_wait_site){.owed_ns = 400, .owed_queue_ns = 20}, 900);
    trace_builder_owed(w->builder, 2, &(struct wire_wait_site){.owed_ns = 7000}, 900); /* it never had a stack */
    OK(trace_builder_thread(w->builder, &t, 0));
    trace_builder_count_unwritten(w->builder);
    assert_int_equal(trace_builder_loss_counts(w->builder)[LOSS_wait_unwritten], (10000 - 1527) / PERIOD);
    assert_trace(w, "100-10100 0 1:10000*1000\n"
                    "1000=;futex_wait;schedule wait=lock system call=futex\n"
                    "70;futex_wait;schedule wait=lock system call=futex\n"
                    "7=;futex_wait;schedule wait=run queue system call=futex\n"
                    "30+;futex_wait;schedule wait=run queue system call=futex\n"
                    "400=;futex_wait;schedule wait=lock system call=futex\n"
                    "20=;futex_wait;schedule wait=run queue system call=futex\n");
}

/* Sites that a thread met last are with it: what they owe is written when it ends. */
TEST_WITH(owed_by_a_thread_that_ended, set_up, tear_down)
{
    struct world *w = *state;
    struct wire_thread t = thread(900, 0, 800, 0, false);

    t.start_boottime_ns = t.exec_generation = 1;
    t.near[1] = (struct wire_near_site){1, {.count = 3, .owed_ns = 300, .owed_queue_ns = 2}};
    t.near[3] = (struct wire_near_site){2, {.count = 3, .owed_ns = 5000}}; /* it never had a stack */
    send(w, (struct owing){.site = 1, .waited_ns = 100}, WIRE_WAIT_LOCK, FUTEX, 70, 0);
    OK(trace_builder_thread_ended(w->builder, &t));
    assert_trace(w, "100-900 0 1:800*80\n"
                    "70;futex_wait;schedule wait=lock system call=futex\n"
                    "300=;futex_wait;schedule wait=lock system call=futex\n"
                    "2=;futex_wait;schedule wait=run queue system call=futex\n");
}

/* A thread that is known has its name; of the dead and of strangers there are only numbers. */
TEST_WITH(wakers, set_up, tear_down)
{
    struct world *w = *state;
    uint32_t pid = (uint32_t)getpid();
    char want[512];

    memcpy(process_thread(w->process, pid)->name, "he \n who", sizeof "he \n who");
    send(w, (struct owing){.site = 1, .waker = WIRE_WAKER_THREAD, .waker_tgid = pid, .waker_tid = pid}, WIRE_WAIT_LOCK, FUTEX, 1, 0);
    send(w, (struct owing){.site = 1, .waker = WIRE_WAKER_THREAD, .waker_tgid = 4194300, .waker_tid = 4194301}, WIRE_WAIT_LOCK, FUTEX, 2, 0);
    send(w, (struct owing){.site = 1, .waker = WIRE_WAKER_INTERRUPT}, WIRE_WAIT_BLOCKED, WIRE_NO_SYSTEM_CALL, 3, 0);
    send(w, (struct owing){.site = 1, .waker = WIRE_WAKER_OTHER}, WIRE_WAIT_BLOCKED, WIRE_NO_SYSTEM_CALL, 4, 0);
    send(w, (struct owing){.site = 1, .waker = 77}, WIRE_WAIT_BLOCKED, WIRE_NO_SYSTEM_CALL, 5, 0);
    snprintf(want, sizeof want,
             "1;futex_wait;schedule wait=lock system call=futex waker=%u/%u he \n who\n"
             "2;futex_wait;schedule wait=lock system call=futex waker=4194300/4194301\n"
             "3;futex_wait;schedule wait=blocked waker=interrupt\n"
             "4;futex_wait;schedule wait=blocked waker=other\n"
             "5;futex_wait;schedule wait=blocked\n", pid, pid);
    assert_trace(w, want);
}

/*
 * The time of waits without a stack goes to one of the last stacks, with the waker that this one had; time in a run queue
 * to one that was in it.
 */
TEST_WITH(owed_with_a_waker, set_up, tear_down)
{
    struct world *w = *state;

    send(w, (struct owing){.site = 1, .waited_ns = 1000, .waker = WIRE_WAKER_OTHER}, WIRE_WAIT_LOCK, FUTEX, 1000, 0);
    send(w, (struct owing){.site = 1, .waited_ns = 0, .owed_ns = 500, .waker = WIRE_WAKER_INTERRUPT}, WIRE_WAIT_LOCK, FUTEX, 0, 0);
    send(w, (struct owing){.site = 1, .owed_ns = 7, .waker = WIRE_WAKER_INTERRUPT}, WIRE_WAIT_RUN_QUEUE, FUTEX, 30, WIRE_CONTINUES);
    send(w, (struct owing){.site = 2, .waited_ns = 10, .owed_ns = 90, .waker = WIRE_WAKER_INTERRUPT}, WIRE_WAIT_BLOCKED, FUTEX, 10, 0);
    trace_builder_owed(w->builder, 1, &(struct wire_wait_site){.owed_ns = 400}, 900);
    assert_trace(w, "1000;futex_wait;schedule wait=lock system call=futex waker=other\n"
                    "500=;futex_wait;schedule wait=lock system call=futex waker=other\n"
                    "0;futex_wait;schedule wait=lock system call=futex waker=interrupt\n"
                    "7=;futex_wait;schedule wait=run queue system call=futex waker=interrupt\n"
                    "30+;futex_wait;schedule wait=run queue system call=futex waker=interrupt\n"
                    "90=;futex_wait;schedule wait=blocked system call=futex waker=interrupt\n"
                    "10;futex_wait;schedule wait=blocked system call=futex waker=interrupt\n"
                    "400=;futex_wait;schedule wait=lock system call=futex waker=other\n");
}

/* ---- many waits at one site, of which few have a stack ---- */

enum { MS = 1000000, SIMULATED_PERIOD = 20 * MS, CALLERS = 2 };

/* A number below `limit` (splitmix64). */
static uint64_t chance_below(uint64_t *state, uint64_t limit)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % limit;
}

/* Who waits as the number `i`, and for how long, in ns. */
struct wait {
    uint32_t caller;
    uint64_t len_ns;
};
typedef struct wait pattern(uint32_t i, uint64_t *state);

static struct wait by_turns(uint32_t i, uint64_t *state)
{
    (void)state;
    return (struct wait){i % 2, i % 2 ? 9 * MS : 1 * MS};
}

static struct wait by_chance(uint32_t i, uint64_t *state)
{
    (void)i;
    return (struct wait){chance_below(state, 4) == 0, chance_below(state, 4 * MS)};
}

/* After a burst of short waits of one comes one of the other; each wait of it changes what is usual there. */
static struct wait bursts(uint32_t i, uint64_t *state)
{
    return i % 20 ? (struct wait){0, MS / 2 + chance_below(state, MS)} : (struct wait){1, 10 * MS};
}

/* One of 10 waits for 25 times as long as the others. */
static struct wait heavy_tails(uint32_t i, uint64_t *state)
{
    (void)i;
    return (struct wait){(uint32_t)chance_below(state, 2), chance_below(state, 10) ? MS / 5 : 5 * MS};
}

/* One of them mostly waits in seconds in which there are few stacks. */
static struct wait mostly_when_busy(uint32_t i, uint64_t *state)
{
    return (struct wait){(chance_below(state, 4) != 0) == (i / 1000 % 3 == 0), chance_below(state, 4 * MS)};
}

static struct wait in_phases(uint32_t i, uint64_t *state)
{
    return (struct wait){i / 2000 % 2, MS / 2 + chance_below(state, MS)};
}

/* As testdata/programs/wait_callers.py: one of them waits seldom, and long. */
static struct wait seldom_and_long(uint32_t i, uint64_t *state)
{
    (void)i;
    bool seldom = chance_below(state, 10) == 0;
    return (struct wait){seldom, seldom ? 8 * MS : MS / 5 + chance_below(state, 4 * MS)};
}

/* The period as the wait number `i` begins. */
typedef uint64_t period_rule(uint32_t i);

static uint64_t same_period(uint32_t i)
{
    (void)i;
    return SIMULATED_PERIOD;
}

/* As --max-cpu raises it, and there is room again later. */
static uint64_t raised_period(uint32_t i)
{
    static const uint32_t ms[] = {1, 3, 10, 33, 100, 300, 100, 30};

    return (uint64_t)ms[i / 300 % (sizeof ms / sizeof *ms)] * MS;
}

/*
 * Has `waits` waits at a call site thinned by the sampler's own rule; in each `busy`th thousand of them the process has had many stacks in
 * that second (0: never). Adds up how long each caller waited, and what the trace gives it.
 */
static void simulate(struct world *w, uint64_t id, pattern *next, period_rule *period_at, uint32_t waits, uint32_t busy,
                     uint64_t truth[CALLERS])
{
    struct wire_wait_site site = {0};
    uint64_t seed = id;

    for (uint32_t i = 0; i < waits; i++) {
        struct wait wait = next(i, &seed);
        uint32_t stacks = busy && i / 1000 % busy == 0 ? 3 << WAIT_SECOND_SHIFT : 0;
        uint32_t chance = wait_chance(period_at(i), &site, stacks);
        truth[wait.caller] += wait.len_ns;
        wait_site_add(&site, wait.len_ns);
        if (chance == WIRE_CHANCE_ALL || chance_below(&seed, WIRE_CHANCE_ALL) < chance) {
            send(w, (struct owing){.site = id, .waited_ns = wait.len_ns, .owed_ns = site.owed_ns, .caller = wait.caller, .chance = chance}, WIRE_WAIT_LOCK, FUTEX, wait.len_ns, 0);
            site.owed_ns = 0;
        } else {
            site.owed_ns += wait.len_ns;
        }
    }
    trace_builder_owed(w->builder, id, &site, 900);
}

static void read_callers(struct world *w, uint64_t found[CALLERS])
{
    struct names *n = calloc(1, sizeof *n);
    struct trace_reader *r;
    struct trace_record rec;
    bool more;

    OK(trace_writer_finish(w->writer));
    assert_int_equal(lseek(w->fd, 0, SEEK_SET), 0);
    OK(trace_reader_open_fd(w->fd, "t", &r));
    for (;;) {
        struct trace_sample_iter it;
        struct trace_sample s;
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        define(n, &rec);
        if (rec.type != TRACE_samples)
            continue;
        trace_samples_begin(&it, &rec.samples, PERIOD);
        while (trace_samples_next(&it, &s))
            found[strstr(n->stacks[n->tuples[s.tuple]], "do_nanosleep") != NULL] += s.value;
    }
    trace_reader_close(r);
    free(n);
}

/*
 * The sum is exact, and a caller's share has no bias: over so many waits, at one site or at many, nothing is left but chance,
 * which is small.
 */
static void check_sites(void **state, pattern *next, period_rule *period_at, uint32_t sites, uint32_t waits, uint32_t busy,
                        double most)
{
    struct world *w = *state;
    uint64_t truth[CALLERS] = {0}, found[CALLERS] = {0};

    for (uint32_t i = 1; i <= sites; i++)
        simulate(w, i, next, period_at, waits, busy, truth);
    read_callers(w, found);
    assert_int_equal(found[0] + found[1], truth[0] + truth[1]);
    double error = ((double)found[1] - (double)truth[1]) / (double)truth[1];
    if (error > most || error < -most)
        fail_msg("the caller waited %" PRIu64 " ms, the trace says %" PRIu64, truth[1] / MS, found[1] / MS);
}

static void check_shares(void **state, pattern *next, uint32_t busy, double most)
{
    check_sites(state, next, same_period, 1, 100000, busy, most);
}

/*
 * Sites where few waits have a stack each, as in short recordings: a bias would be the same at all of them, and chance
 * is one in 50 of what it is at one.
 */
TEST_WITH(many_sites, set_up, tear_down)
{
    NOT_SANITIZED();
    check_sites(state, seldom_and_long, same_period, 3000, 1000, 0, 0.012);
}

TEST_WITH(many_sites_while_the_period_changes, set_up, tear_down)
{
    NOT_SANITIZED();
    check_sites(state, seldom_and_long, raised_period, 2000, 2400, 0, 0.012);
}

TEST_WITH(callers_by_turns, set_up, tear_down)
{
    check_shares(state, by_turns, 0, 0.005);
}

TEST_WITH(callers_by_chance, set_up, tear_down)
{
    check_shares(state, by_chance, 0, 0.05);
}

TEST_WITH(bursts, set_up, tear_down)
{
    check_shares(state, bursts, 0, 0.05);
}

TEST_WITH(heavy_tails, set_up, tear_down)
{
    check_shares(state, heavy_tails, 0, 0.1);
}

TEST_WITH(phases, set_up, tear_down)
{
    check_shares(state, in_phases, 0, 0.05);
}

TEST_WITH(busy_seconds, set_up, tear_down)
{
    check_sites(state, mostly_when_busy, same_period, 40, 12000, 3, 0.02);
}

/* ---- blame ---- */

/* Makes the process a Python with a lock. */
static void give_lock(struct world *w, struct module *python)
{
    python->python.gil.kind = PY_GIL_RANGE;
    w->process->python = python;
}

/* What others lost is an event of its own, with the stack and the labels of the wait. */
TEST_WITH(blame, set_up, tear_down)
{
    struct world *w = *state;
    struct module python = {0};

    send(w, (struct owing){.site = 1, .waited_ns = 70, .blame_ns = 5}, WIRE_WAIT_BLOCKED, 230, 70, 0); /* it has no lock */
    give_lock(w, &python);
    send(w, (struct owing){.site = 1, .waited_ns = 70}, WIRE_WAIT_BLOCKED, 230, 70, 0);
    send(w, (struct owing){.site = 1, .waited_ns = 80, .blame_ns = 160, .owed_blame_ns = 9}, WIRE_WAIT_BLOCKED, 230, 80, 0);
    trace_builder_owed(w->builder, 1, &(struct wire_wait_site){.owed_blame_ns = 4}, 900);
    OK(trace_builder_begin_epoch(w->builder, 200));
    trace_builder_owed(w->builder, 1, &(struct wire_wait_site){.owed_blame_ns = 8}, 900); /* no stack in this epoch */
    send(w, (struct owing){.site = 1, .waited_ns = 7, .blame_ns = 6}, WIRE_WAIT_BLOCKED, 230, 7, 0);
    w->process->python = NULL;
    assert_trace(w, "70;futex_wait;schedule wait=blocked system call=clock_nanosleep\n"
                    "70;futex_wait;schedule wait=blocked system call=clock_nanosleep\n"
                    "80;futex_wait;schedule wait=blocked system call=clock_nanosleep\n"
                    "blame 9=;futex_wait;schedule wait=blocked system call=clock_nanosleep\n"
                    "blame 160;futex_wait;schedule wait=blocked system call=clock_nanosleep\n"
                    "blame 4=;futex_wait;schedule wait=blocked system call=clock_nanosleep\n"
                    "7;futex_wait;schedule wait=blocked system call=clock_nanosleep\n"
                    "blame 6;futex_wait;schedule wait=blocked system call=clock_nanosleep\n");
}

/* The account of a lock is one word: at any moment it says how many wait, and between two how long all have waited. */
TEST(account_of_a_lock)
{
    const uint64_t now = UINT64_C(1) << 60; /* the host runs for a while: the word overflows */
    uint64_t waits = 0, before = 0;

    waits += wire_gil_begins(now + 64);
    assert_int_equal(wire_gil_waiters(waits), 1);
    assert_int_equal(wire_gil_waited_ns(before, now, waits, now + 640), 576);
    before = waits;
    waits += wire_gil_begins(now + 1280);
    assert_int_equal(wire_gil_waiters(waits), 2);
    assert_int_equal(wire_gil_waited_ns(before, now + 640, waits, now + 1920), 640 + 2 * 640);
    waits += wire_gil_ends(now + 1984);
    waits += wire_gil_ends(now + 2048);
    assert_int_equal(wire_gil_waiters(waits), 0);
    assert_int_equal(wire_gil_waited_ns(before, now + 640, waits, now + 64000), 640 + 2 * 704 + 64);
    for (uint32_t i = 0; i < WIRE_GIL_WAITERS_MAX; i++)
        waits += wire_gil_begins(now + 64000);
    assert_int_equal(wire_gil_waiters(waits), WIRE_GIL_WAITERS_MAX);
    before = waits;
    assert_int_equal(wire_gil_waited_ns(before, now + 64000, waits, now + 64000 + UINT64_C(60000000000)),
                     WIRE_GIL_WAITERS_MAX * UINT64_C(60000000000));
    /* A wait that began between a time and its reading. */
    assert_int_equal(wire_gil_waited_ns(before, now + 64000, waits + wire_gil_begins(now + 6400000), now + 64000), 0);
}

/* Ids of an epoch mean nothing in the next. */
TEST_WITH(owed_in_the_next_epoch, set_up, tear_down)
{
    struct world *w = *state;

    send(w, (struct owing){.site = 1, .waited_ns = 70}, WIRE_WAIT_LOCK, FUTEX, 70, 0);
    OK(trace_builder_begin_epoch(w->builder, 200));
    trace_builder_owed(w->builder, 1, &(struct wire_wait_site){.owed_ns = 400}, 900);
    assert_trace(w, "70;futex_wait;schedule wait=lock system call=futex\n");
}

TEST(system_calls)
{
    assert_string_equal(system_call_name(0), "read");
    assert_string_equal(system_call_name(FUTEX), "futex");
    assert_string_equal(system_call_name(230), "clock_nanosleep");
    assert_string_equal(system_call_name(455), "futex_wait");
    assert_null(system_call_name(-1));
    assert_null(system_call_name(350)); /* a gap */
    assert_null(system_call_name(1 << 20));
}
