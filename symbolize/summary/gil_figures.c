/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/gil_figures.h"

#include "symbolize/summary/summary_data.h"

/* From what share of the CPU time on, in percent, waiting for the GIL is worth a line of its own. */
enum { MATTERS_PERCENT = 10 };

static void count_samples(const struct summary *s, struct gil_figures *out)
{
    for (uint32_t i = 0; i < s->threads.count; i++) {
        const struct thread_row *row = &s->threads.data[i];
        out->waited_ns += row->gil_wait_ns;
        out->waiters += row->gil_wait_ns != 0;
        out->blamed_ns += row->blame_ns;
        if (row->blame_ns > out->culprit_ns) {
            out->culprit = i;
            out->culprit_ns = row->blame_ns;
        }
    }
}

void gil_figures_of(const struct summary *s, const struct resolver *r, struct gil_figures *out)
{
    const struct emit_model *m = resolver_model(r);

    *out = (struct gil_figures){.culprit = SUMMARY_NO_ROW, .exact = m->exact_time_count};
    count_samples(s, out);
    if (out->exact)
        out->waited_ns = out->waiters = 0;
    for (uint32_t i = 0; i < m->exact_time_count; i++) {
        const struct emit_exact_time *t = &m->exact_times[i];
        out->waited_ns += t->wait == EMIT_WAIT_GIL ? t->ns : 0;
        out->waiters += t->wait == EMIT_WAIT_GIL && t->ns;
    }
}

bool gil_figures_matter(const struct summary *s, const struct resolver *r)
{
    const struct emit_model *m = resolver_model(r);
    struct gil_figures f;
    uint64_t cpu_ns = 0;

    gil_figures_of(s, r, &f);
    for (uint32_t i = 0; i < m->event_count; i++) {
        if (event_is_running(m->events[i].kind))
            cpu_ns += m->totals[i].shown_value;
    }
    return f.waited_ns && f.waited_ns / MATTERS_PERCENT >= cpu_ns / 100;
}
