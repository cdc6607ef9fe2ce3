/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads as text:
 *
 *     Process 24034 gunicorn, CPython 3.11.2: 1 thread at 2026-11-22 16:14:50.740 UTC,
 *       the most recent call first
 *
 *       24502 worker-3: waits for the GIL, 12 ms
 *           Cart.add (cart.py:12)
 *           Thread.run (threading.py:975)
 *
 * The order is that of faulthandler. Threads whose stacks and states are alike are one entry, unless each is asked for.
 */
#include "formats/emit/threads/text.h"

#include <string.h>
#include <time.h>

#include "formats/base/numbers.h"
#include "formats/emit/text_write.h"
#include "formats/emit/threads/facts.h"
#include "formats/emit/threads/task_text.h"
#include "formats/emit/threads/text_lines.h"

enum { NAMES_SHOWN = 8 };

/* ---- states ---- */

enum wording { OF_ONE, OF_SEVERAL, BEFORE };

/* What threads wait for, or were waiting for before. */
static void put_wait(const struct shown_thread *e, enum wording wording, struct buf *out)
{
    static const char *const verbs[] = {[OF_ONE] = "waits", [OF_SEVERAL] = "wait", [BEFORE] = "waiting"};
    static const char *const waited_for[EMIT_WAITS] = {[EMIT_WAIT_LOCK] = " for a lock",
                                                       [EMIT_WAIT_RUN_QUEUE] = " for a CPU",
                                                       [EMIT_WAIT_GIL] = " for the GIL",
                                                       [EMIT_WAIT_STOP_THE_WORLD] = " for stop-the-world",
                                                       [EMIT_WAIT_OTHER] = ""};
    bool calls = e->system_call && (e->waits == EMIT_WAIT_BLOCKED || e->waits == EMIT_WAIT_UNINTERRUPTIBLE);

    if (waited_for[e->waits])
        buf_printf(out, "%s%s", verbs[wording], waited_for[e->waits]);
    else
        buf_put_str(out, threads_states[e->waits]);
    if (calls) {
        buf_put_str(out, " in ");
        name_plain(e->system_call, out);
    }
}

/* What a thread does, as the kernel says, where no stack shows it. */
static void put_kernel_state(const struct shown_thread *e, struct buf *out)
{
    static const char *const words[EMIT_STATES] = {[EMIT_STATE_UNKNOWN] = "state unknown",
                                                   [EMIT_STATE_RUNS] = "on CPU or in a run queue",
                                                   [EMIT_STATE_SLEEPS] = "asleep",
                                                   [EMIT_STATE_UNINTERRUPTIBLE] = "uninterruptible",
                                                   [EMIT_STATE_STOPPED] = "stopped",
                                                   [EMIT_STATE_TRACED] = "stopped by a debugger",
                                                   [EMIT_STATE_ENDED] = "ended, and its process goes on"};

    buf_put_str(out, words[e->state->state]);
}

/* The state of threads that are alike. */
static void put_state(const struct shown_thread *threads, uint32_t count, struct buf *out)
{
    uint64_t least_ns = UINT64_MAX, most_ns = 0, ago_least_ns = UINT64_MAX, ago_ns = 0;
    const struct shown_thread *e = threads;
    bool by_kernel = e->slept_since || e->newest->stackless, on_cpu = !by_kernel && (!e->still || e->waits == EMIT_WAIT_NONE);
    bool known = true;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t ns = threads_waited_ns(&threads[i], &known);
        least_ns = ns < least_ns ? ns : least_ns;
        most_ns = ns > most_ns ? ns : most_ns;
        ago_ns = threads[i].ago_ns > ago_ns ? threads[i].ago_ns : ago_ns;
        ago_least_ns = threads[i].ago_ns < ago_least_ns ? threads[i].ago_ns : ago_least_ns;
    }
    bool is_now = threads_is_now(e); /* and so are the others, else they were not alike */
    bool runs = on_cpu && !is_now && e->state && e->state->state == EMIT_STATE_RUNS; /* that is all that is known */
    if (by_kernel || runs)
        put_kernel_state(e, out);
    else if (!on_cpu)
        put_wait(e, count > 1 ? OF_SEVERAL : OF_ONE, out);
    else if (is_now)
        buf_put_str(out, "on CPU");
    if (by_kernel ? most_ns != 0 : !on_cpu && (known || most_ns >= NS_PER_MS)) {
        buf_put_str(out, known ? ", " : ", at least ");
        threads_put_between(least_ns, most_ns, out);
    }
    if (e->holds_gil && (is_now || runs || !on_cpu))
        buf_put_str(out, ", holds the GIL");
    if (is_now)
        return;
    /* A thread that was seen running, or whose wait is over, may have done anything since. */
    buf_put_str(out, !on_cpu || runs ? "; last seen " : e->still ? "last seen " : "ran since it was last seen ");
    if (on_cpu || !e->still || e->slept_since) {
        put_wait(e, BEFORE, out); /* of one that ran: "on CPU" */
        buf_put_str(out, ", ");
    }
    threads_put_between(ago_least_ns, ago_ns, out);
    buf_put_str(out, " before the end");
    if (e->holds_gil && on_cpu && !runs)
        buf_put_str(out, ", with the GIL");
}

/* ---- stacks ---- */

/* The kernel's frames of a wait say how a thread leaves its CPU, which its state says in one word. */
static bool is_shown(const struct shown_thread *e, const struct emit_frame *frame)
{
    return !frame->wait && !(frame->kind == EMIT_KERNEL && e->waits != EMIT_WAIT_NONE);
}

/* Frames that look alike, as of a recursion or of a library without names, are one line. */
static void put_stack(const struct threads *t, const struct shown_thread *e, struct buf *out)
{
    const struct emit_model *m = t->model;
    uint32_t frame = m->frame_count, count = 0;

    if (e->newest->stackless) {
        buf_printf(out, "%6sno stack was taken\n", "");
        return;
    }
    for (uint32_t s = e->newest->stack; s != EMIT_NO_STACK; s = m->stacks[s].parent) {
        uint32_t next = m->stacks[s].frame;
        if (!is_shown(e, &m->frames[next]))
            continue;
        if (count && t->ids[next] != t->ids[frame]) {
            threads_put_frame(t, frame, count, 6, out);
            count = 0;
        }
        frame = next;
        count++;
    }
    threads_put_frame(t, frame, count, 6, out);
}

/* ---- entries ---- */

static void put_thread_name(const struct threads *t, const struct shown_thread *e, struct buf *out)
{
    buf_printf(out, "%u ", e->tid);
    name_plain(t->model->threads[e->thread].name, out);
    if (e->interpreter) {
        buf_put_str(out, ", interpreter ");
        name_plain(e->interpreter, out);
    }
    if (e->task) {
        buf_put_str(out, ", task ");
        name_plain(e->task, out);
    }
}

static void put_entry(const struct threads *t, const struct shown_thread *threads, uint32_t count, struct buf *out)
{
    struct number n;

    buf_put_str(out, "\n  ");
    if (count == 1)
        put_thread_name(t, threads, out);
    else
        buf_put_str(out, counted(count, "thread", "threads", &n));
    buf_put_str(out, ": ");
    put_state(threads, count, out);
    buf_put_u8(out, '\n');
    for (uint32_t i = 0; count > 1 && i < count && i < NAMES_SHOWN; i++) {
        buf_put_str(out, i ? ", " : "    ");
        put_thread_name(t, &threads[i], out);
    }
    if (count > NAMES_SHOWN)
        buf_printf(out, ", and %s more", grouped(count - NAMES_SHOWN, &n));
    if (count > 1)
        buf_put_u8(out, '\n');
    put_stack(t, threads, out);
}

static void put_threads(const struct threads *t, const struct threads_process *p, struct buf *out)
{
    const struct shown_thread *threads = p->count ? &t->list.threads.data[p->first] : NULL;
    struct number n;

    for (uint32_t i = 0, count; i < p->count; i += count) {
        for (count = 1; i + count < p->count && threads[i + count].alike == threads[i].alike;)
            count++;
        put_entry(t, &threads[i], count, out);
        text_write_piece(out, t->out);
    }
    if (p->gone)
        buf_printf(out, "\n  and %s without a sample in the last 2 s, which probably ended\n", counted(p->gone, "thread", "threads", &n));
}

/* ---- the head, and processes ---- */

static void put_version(const char *before, uint32_t version, struct buf *out)
{
    if (version)
        buf_printf(out, "%s%u.%u.%u", before, version >> 24, version >> 16 & 0xff, version >> 8 & 0xff);
}

static void put_time(uint64_t realtime_ns, struct buf *out)
{
    time_t seconds = (time_t)(realtime_ns / NS_PER_S);
    struct tm tm;

    if (realtime_ns && gmtime_r(&seconds, &tm))
        buf_printf(out, " at %04d-%02d-%02d %02d:%02d:%02d.%03u UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                   tm.tm_sec, (unsigned)(realtime_ns % NS_PER_S / NS_PER_MS));
}

/* A process begins with an empty line unless it is the first. */
static void put_process(const struct threads *t, const struct threads_process *p, struct buf *out)
{
    const struct emit_process *process = &t->model->processes[p->process];
    struct number n;

    buf_printf(out, "%sProcess %u ", p == t->list.processes.data ? "" : "\n", process->pid);
    name_process_plain(process, out);
    put_version(", CPython ", process->python_version, out);
    put_version(" and ", process->other_version, out);
    if (process->free_threaded)
        buf_put_str(out, ", free-threaded");
    if (*process->container) {
        buf_put_str(out, ", container ");
        name_plain(process->container, out);
    }
    buf_printf(out, ": %s", counted(p->count, "thread", "threads", &n));
    put_time(p->end_ns, out);
    buf_put_str(out, p->count ? ",\n  the most recent call first\n" : "\n");
}

/* What the recording does not say. */
static void put_notes(const struct threads *t, struct buf *out)
{
    struct number n;

    if (!t->newest.count && !t->has_tasks)
        buf_put_str(out, "0 samples\n");
    else if (!t->list.processes.count && t->list.ended)
        buf_printf(out, "No process was left at the end: %s had ended.\n", counted(t->list.ended, "process", "processes", &n));
    else if (!t->list.processes.count)
        buf_put_str(out, "No thread had a sample, and no task waited at the end.\n");
    else if (!t->has_waits)
        buf_put_str(out, "\nNo waits were recorded (pycap record --wall): each thread is shown where it last ran.\n");
    if (t->has_tasks && !t->tells_lasting)
        buf_put_str(out, "\nWhich tasks still waited at the end is not known: this recording does not say when a wait goes on.\n");
}

struct error *threads_write_text(const struct threads *t)
{
    struct buf text = {0};

    for (size_t i = 0; i < t->list.processes.count; i++) {
        put_process(t, &t->list.processes.data[i], &text);
        put_threads(t, &t->list.processes.data[i], &text);
        if (!threads_put_tasks(t, &t->list.processes.data[i], &text))
            text.bad = true;
        text_write_piece(&text, t->out);
    }
    put_notes(t, &text);
    return text_write(&text, t->out);
}
