/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/page_head.h"

#include <inttypes.h>

#include "formats/base/clock.h"
#include "formats/emit/amounts.h"

/* A sum of an interval as so many at a time: ns of threads as threads. */
static double rate(uint64_t sum, const struct live_figures *f)
{
    return f->length_ns ? (double)sum / (double)f->length_ns : 0;
}

static void put_gil(const struct live_figures *f, struct buf *out)
{
    const struct live_deeds *d = &f->all;

    /* Whoever holds it while off the CPU is seen only where waits are recorded. */
    if (d->gil_known_ns)
        buf_printf(out, "   GIL held%s %.0f %%", f->has_waits ? "" : " >=", 100 * rate(d->gil_held_ns, f));
    if (d->wait_ns[EMIT_WAIT_GIL])
        buf_printf(out, "%s by %.2f", d->gil_known_ns ? ", waited for" : "   GIL waited for", rate(d->wait_ns[EMIT_WAIT_GIL], f));
}

/* What cost most of the samples that were lost, and parts that could not be read. */
static void put_losses(const struct live_figures *f, struct buf *out)
{
    uint32_t worst = 0;

    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        worst = f->lost_by[i] > f->lost_by[worst] ? i : worst;
    if (f->lost && trace_loss_name(worst))
        buf_printf(out, "   lost: %s", trace_loss_name(worst));
    if (f->damages)
        buf_printf(out, "   damaged: %" PRIu64, f->damages);
}

static void put_recorded(const struct live_figures *f, struct buf *out)
{
    buf_printf(out, "%s%s%.0f s", f->recorded, *f->recorded ? "   " : "", (double)f->recorded_ns / (double)NS_PER_S);
    put_losses(f, out);
}

/* How much there was of what is measured: "0.97 CPUs", "37.8 MiB/s of page-faults". */
static void put_amount(const struct live_figures *f, struct buf *out)
{
    double at_a_time = rate(f->all.ns[LIVE_RAN], f), each_second = at_a_time * (double)NS_PER_S;

    if (!*f->event) /* only waits are recorded */
        return;
    if (live_figures_are_cpu(f)) {
        buf_printf(out, "   %.2f CPUs", at_a_time);
    } else if (f->of.kind == EVENT_TASK_WAIT) {
        buf_printf(out, "   %.2f tasks wait", at_a_time);
    } else {
        buf_put_str(out, "   ");
        amount_put(&f->of, (uint64_t)(each_second < 1e18 ? each_second + 0.5 : 1e18), NS_PER_S, out);
        buf_printf(out, "/s of %s", f->event);
    }
}

static bool put_rates(const struct live_figures *f, struct buf *out)
{
    if (!f->serial) {
        buf_put_str(out, f->ended ? "nothing was recorded" : "waiting for samples");
        return true;
    }
    buf_printf(out, "%.0f samples/s", rate(f->all.samples, f) * (double)NS_PER_S);
    put_amount(f, out);
    /* What was lost is missing in all figures but shares. */
    buf_printf(out, "   lost %" PRIu64, f->lost);
    if (f->lost_now)
        buf_printf(out, " (%.0f %% now)", 100 * (double)f->lost_now / (double)(f->lost_now + f->all.samples));
    put_gil(f, out);
    return true;
}

static bool put_waits(const struct live_figures *f, struct buf *out)
{
    /* What a program can do something about comes first: for the last ones a narrow screen has no room. */
    static const struct {
        enum emit_wait wait;
        const char *name;
    } waits[] = {
        {EMIT_WAIT_GIL, "GIL"}, {EMIT_WAIT_LOCK, "lock"}, {EMIT_WAIT_RUN_QUEUE, "run queue"}, {EMIT_WAIT_PREEMPTED, "preempted"},
        {EMIT_WAIT_STOP_THE_WORLD, "stop the world"}, {EMIT_WAIT_BLOCKED, "blocked"}, {EMIT_WAIT_ASLEEP, "asleep"},
        {EMIT_WAIT_UNINTERRUPTIBLE, "uninterruptible"}, {EMIT_WAIT_STOPPED, "stopped"}, {EMIT_WAIT_OTHER, "other"},
    };

    bool any = false;

    if (!f->has_waits)
        return false;
    buf_put_str(out, "waiting:");
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        if (rate(f->all.wait_ns[waits[i].wait], f) < 0.005)
            continue;
        buf_printf(out, "  %s %.3g", waits[i].name, rate(f->all.wait_ns[waits[i].wait], f));
        any = true;
    }
    if (!any)
        buf_put_str(out, "  no thread");
    return true;
}

/* The thread or process that was chosen. */
static void put_chosen(const struct live_head *h, struct buf *out)
{
    const struct live_threads *threads = live_tally_threads(h->tally);
    const struct live_view *v = h->view;
    const struct live_thread *chosen = NULL;

    for (size_t i = 1; i < threads->list.count && !chosen; i++) {
        if (threads->list.data[i].pid == v->pid && (!v->tid || threads->list.data[i].tid == v->tid))
            chosen = &threads->list.data[i];
    }
    if (!v->pid)
        buf_put_str(out, v->table == LIVE_FUNCTIONS ? "all threads" : v->table == LIVE_THREADS ? "threads" : "processes");
    else if (v->tid)
        buf_printf(out, "thread %s %u of %s %u", chosen ? chosen->name : "", v->tid, chosen ? chosen->process : "", v->pid);
    else
        buf_printf(out, "process %s %u", chosen ? chosen->process : "", v->pid);
}

static bool put_choice(const struct live_head *h, struct buf *out)
{
    const struct live_view *v = h->view;
    double seconds = (double)v->interval_ns / (double)NS_PER_S;

    put_chosen(h, out);
    const struct live_figures *f = live_tally_figures(h->tally);
    if (v->measure == LIVE_WAITED || live_figures_are_cpu(f) || !*f->event)
        buf_put_str(out, v->measure == LIVE_WAITED ? ", waiting" : ", running");
    else
        buf_printf(out, ", %s", f->event);
    buf_printf(out, ", every %g s", seconds);
    if (*v->search)
        buf_printf(out, ", with \"%s\"", v->search);
    if (v->frozen)
        buf_put_str(out, ", FROZEN (Space: on)");
    if (v->measure == LIVE_WAITED && !f->has_waits)
        buf_put_str(out, ": no waits are recorded");
    return true;
}

bool live_head_put(const struct live_head *h, enum live_head_line line, struct buf *out)
{
    const struct live_figures *f = live_tally_figures(h->tally);

    switch (line) {
    case LIVE_HEAD_RATES: return put_rates(f, out);
    case LIVE_HEAD_CHOICE: return put_choice(h, out);
    case LIVE_HEAD_WAITS: return put_waits(f, out);
    default:
        put_recorded(f, out);
        return true;
    }
}
