/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/figures.h"

#include "formats/base/proportion.h"
#include "symbolize/summary/summary_data.h"

uint64_t figures_loss_of_recorded(const struct summary *s, const struct loss_row *row)
{
    for (size_t i = 0; row->reason == LOSS_tick_skipped && i < s->ticks.count; i++) {
        if (s->ticks.data[i].event == row->event)
            return proportion_up(row->count, s->ticks.data[i].own, s->ticks.data[i].busy);
    }
    return row->count;
}

/* Adds the files and what they say was lost. */
static void count_files(const struct summary *s, struct figures *out)
{
    uint64_t recorded = 0, lost = 0, skipped = 0, of_others = 0;

    for (size_t i = 0; i < s->files.count; i++) {
        const struct summary_file *f = &s->files.data[i];
        recorded += f->end.sample_count;
        lost += f->end.lost_count;
        skipped += f->stats.skipped_sample_count;
        out->is_damaged |= !f->stats.ended || f->stats.damage_count;
        out->is_newer |= f->stats.unknown_record_count != 0;
    }
    for (size_t i = 0; i < s->losses.count; i++) {
        const struct loss_row *row = &s->losses.data[i];
        out->lost[trace_loss_class(row->reason)] += row->count;
        of_others += row->count - figures_loss_of_recorded(s, row);
    }
    out->lost[LOSS_CLASS_part] += s->late_count;
    out->recorded_count = recorded;
    /* The records of losses say it at any time, END only in a file that ended well. */
    out->lost_samples.part = out->lost[LOSS_CLASS_sample] + out->lost[LOSS_CLASS_tick];
    if (out->lost_samples.part < lost)
        out->lost_samples.part = lost;
    out->lost_samples.part += skipped - of_others;
}

/* Counts the ends of a kind of stack: those that are whole, of all but those of the classes `but`. */
static struct share whole_of(const struct resolver_ends *ends, unsigned but)
{
    struct share share = {.part = ends->count[LOSS_complete]};

    for (uint32_t i = LOSS_complete; i <= LOSS_LIMIT; i++) {
        enum loss_class class = i < LOSS_LIMIT ? trace_loss_class(i) : LOSS_CLASS_unknown;
        if (!(but >> class & 1))
            share.whole += ends->count[i];
    }
    return share;
}

static void count_stacks(const struct resolver *r, struct figures *out)
{
    const struct resolver_stats *stats = resolver_stats(r);
    const unsigned expected = 1u << LOSS_CLASS_expected, no_python = 1u << LOSS_CLASS_no_python;
    uint64_t samples = stats->sample_count, kernel = out->lost[LOSS_CLASS_kernel];

    out->python = whole_of(&stats->python, expected | no_python);
    out->no_python.whole = whole_of(&stats->python, expected).whole;
    out->no_python.part = out->no_python.whole - out->python.whole;
    out->native = whole_of(&stats->native, expected);
    out->join = whole_of(&stats->join, expected);
    out->kernel = (struct share){samples > kernel ? samples - kernel : 0, samples};
    out->named_samples = (struct share){samples - stats->unresolved_count, samples};
    out->named_native = (struct share){stats->native_frame_count - stats->native_unnamed_count, stats->native_frame_count};
    out->named_python = (struct share){stats->python_frame_count - stats->python_unnamed_count, stats->python_frame_count};
}

static uint64_t loss_count(const struct summary *s, uint32_t reason)
{
    uint64_t count = 0;

    for (size_t i = 0; i < s->losses.count; i++)
        count += s->losses.data[i].reason == reason ? s->losses.data[i].count : 0;
    return count;
}

/* What was lost in sampling periods, by the first period of the clock. */
static void count_time(const struct summary *s, const struct emit_model *m, struct figures *out)
{
    uint64_t period_ns = 0, recorded_ns = 0, lost_ns;

    for (size_t i = 0; i < s->events.count && !period_ns; i++)
        period_ns = s->events.data[i].kind == EVENT_CPU_TIME ? s->events.data[i].period : 0;
    for (uint32_t i = 0; i < m->event_count; i++)
        recorded_ns += m->events[i].kind == EVENT_CPU_TIME ? m->totals[i].all_value : 0;
    if (!period_ns || __builtin_mul_overflow(loss_count(s, LOSS_children_unseen), period_ns, &out->children_ns) ||
        __builtin_mul_overflow(out->lost_samples.part, period_ns, &lost_ns) || !loss_count(s, LOSS_time_unseen) || !recorded_ns ||
        __builtin_add_overflow(recorded_ns, lost_ns, &recorded_ns))
        return;
    out->lost_ns = (struct share){lost_ns, recorded_ns};
    out->lost_samples.whole = recorded_ns / period_ns;
}

/* The event that stands for all: the first that counts time, else the first. NULL: no event has a sample. */
static const struct emit_total *main_total(const struct emit_model *m)
{
    const struct emit_total *found = NULL;

    for (uint32_t i = 0; i < m->event_count; i++) {
        if (m->totals[i].all_samples && (!found || (event_is_time(m->events[i].kind) && !event_is_time(m->events[found - m->totals].kind))))
            found = &m->totals[i];
    }
    return found;
}

void figures_of(const struct summary *s, const struct resolver *r, struct figures *out)
{
    *out = (struct figures){0};
    count_files(s, out);
    if (r) {
        const struct emit_model *model = resolver_model(r);
        const struct emit_total *total = main_total(model);
        uint64_t read = 0;
        for (uint32_t i = 0; i < model->event_count; i++)
            read += model->totals[i].all_samples;
        if (read > out->recorded_count || out->is_damaged)
            out->recorded_count = read; /* a file without END */
        if (total)
            out->interpreter = (struct share){total->interpreter_value, total->shown_value};
        out->main_event = total ? (uint32_t)(total - model->totals) : 0;
        out->sample_count = resolver_stats(r)->sample_count;
        count_stacks(r, out);
    }
    out->parts = (struct share){out->lost[LOSS_CLASS_part] + out->lost[LOSS_CLASS_unknown], out->recorded_count};
    out->lost_samples.whole = out->recorded_count + out->lost_samples.part;
    if (r)
        count_time(s, resolver_model(r), out);
}
