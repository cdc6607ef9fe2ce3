/* SPDX-License-Identifier: Apache-2.0 */
/* The filters, and their answers for the current epoch. To add a filter, write a function and a row in `rows`. */
#include "symbolize/pass/sample_filter.h"

/* ---- the filters ---- */

static bool is_listed(const struct option_numbers *ids, uint32_t id)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->data[i] == id)
            return true;
    }
    return false;
}

static bool pid_is_enabled(const struct sample_filter_options *o)
{
    return o->pids.count;
}

static enum sample_filter_answer pid_passes(const struct sample_filter_options *o, const struct sample_filter_view *v)
{
    return is_listed(&o->pids, v->epoch->processes.data[v->process].def.tgid) ? FILTER_YES : FILTER_NO;
}

static bool tid_is_enabled(const struct sample_filter_options *o)
{
    return o->tids.count;
}

static enum sample_filter_answer tid_passes(const struct sample_filter_options *o, const struct sample_filter_view *v)
{
    return is_listed(&o->tids, v->epoch->threads.data[v->thread].def.tid) ? FILTER_YES : FILTER_NO;
}

static bool time_is_enabled(const struct sample_filter_options *o)
{
    return o->from_ns || o->to_ns != UINT64_MAX;
}

static enum sample_filter_answer time_passes(const struct sample_filter_options *o, const struct sample_filter_view *v)
{
    return v->since_start_ns >= o->from_ns && v->since_start_ns < o->to_ns ? FILTER_YES : FILTER_NO;
}

static bool gil_is_enabled(const struct sample_filter_options *o)
{
    return o->gil;
}

static enum sample_filter_answer gil_passes(const struct sample_filter_options *o, const struct sample_filter_view *v)
{
    (void)o;
    if (!(v->sample->flags & TRACE_SAMPLE_GIL_KNOWN))
        return FILTER_UNKNOWN;
    return v->sample->flags & TRACE_SAMPLE_GIL ? FILTER_YES : FILTER_NO;
}

static const struct sample_filter_row rows[] = {
    {"--pid", FILTER_PROCESS, pid_is_enabled, pid_passes, NULL},
    {"--tid", FILTER_THREAD, tid_is_enabled, tid_passes, NULL},
    {"--time", FILTER_SAMPLE, time_is_enabled, time_passes, NULL},
    {"--gil", FILTER_SAMPLE, gil_is_enabled, gil_passes, "the trace does not say which thread held the GIL"},
};

/* ---- evaluating them ---- */

struct error *sample_filter_init(struct sample_filter *f, const struct sample_filter_options *options)
{
    *f = (struct sample_filter){.options = options};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sample_filter_row *row = &rows[i];
        if (!row->is_enabled(options))
            continue;
        if (!VEC_PUSH(&f->enabled[row->subject], ((struct sample_filter_enabled){.row = row})))
            return error_no_memory();
        f->is_enabled = true;
    }
    return NULL;
}

void sample_filter_deinit(struct sample_filter *f)
{
    for (int i = 0; i < FILTER_SUBJECTS; i++)
        VEC_DEINIT(&f->enabled[i]);
    for (int i = 0; i < FILTER_SAMPLE; i++)
        VEC_DEINIT(&f->answers[i]);
}

/* Evaluates the filters of a subject until one says no. */
static enum sample_filter_answer ask(struct sample_filter *f, enum sample_filter_subject subject,
                                     const struct sample_filter_view *v)
{
    enum sample_filter_answer answer = FILTER_YES;

    for (size_t i = 0; i < f->enabled[subject].count && answer == FILTER_YES; i++) {
        struct sample_filter_enabled *enabled = &f->enabled[subject].data[i];
        answer = enabled->row->passes(f->options, v);
        enabled->known_count += answer != FILTER_UNKNOWN;
        enabled->unknown_count += answer == FILTER_UNKNOWN;
    }
    return answer;
}

/* The same, but once for each id of the epoch. */
static struct error *ask_once(struct sample_filter *f, enum sample_filter_subject subject, uint32_t id,
                              const struct sample_filter_view *v, bool *passes)
{
    if (!f->enabled[subject].count)
        return NULL;
    if (!VEC_EXTEND_ZERO(&f->answers[subject], (size_t)id + 1))
        return error_no_memory();
    uint8_t *answer = &f->answers[subject].data[id];
    if (*answer == FILTER_OPEN)
        *answer = (uint8_t)ask(f, subject, v);
    *passes &= *answer == FILTER_YES;
    return NULL;
}

struct error *sample_filter_sample(struct sample_filter *f, const struct epoch *e, uint32_t event,
                                   const struct trace_sample *sample, uint64_t start_ns, bool *passes)
{
    struct sample_filter_view v = {.epoch = e,
                                   .process = e->threads.data[sample->thread].def.process,
                                   .thread = sample->thread,
                                   .event = event,
                                   .label_set = sample->label_set};

    *passes = true;
    TRY(ask_once(f, FILTER_PROCESS, v.process, &v, passes));
    TRY(ask_once(f, FILTER_THREAD, v.thread, &v, passes));
    TRY(ask_once(f, FILTER_EVENT, v.event, &v, passes));
    TRY(ask_once(f, FILTER_LABELS, v.label_set, &v, passes));
    if (*passes && f->enabled[FILTER_SAMPLE].count) {
        v.sample = sample;
        v.since_start_ns = sample->time_ns > start_ns ? sample->time_ns - start_ns : 0;
        *passes = ask(f, FILTER_SAMPLE, &v) == FILTER_YES;
    }
    return NULL;
}

void sample_filter_record(struct sample_filter *f, const struct trace_record *rec)
{
    /* A filter may depend on the names of processes and threads. */
    if (rec->type == TRACE_process_name)
        f->answers[FILTER_PROCESS].count = 0;
    else if (rec->type == TRACE_thread_name)
        f->answers[FILTER_THREAD].count = 0;
}

void sample_filter_end_epoch(struct sample_filter *f)
{
    for (int i = 0; i < FILTER_SAMPLE; i++)
        f->answers[i].count = 0;
}

struct error *sample_filter_check(const struct sample_filter *f)
{
    for (int subject = 0; subject < FILTER_SUBJECTS; subject++) {
        for (size_t i = 0; i < f->enabled[subject].count; i++) {
            const struct sample_filter_enabled *enabled = &f->enabled[subject].data[i];
            if (enabled->unknown_count && !enabled->known_count)
                return error_create(ERROR_UNSUPPORTED, "%s: %s", enabled->row->option, enabled->row->unknown);
        }
    }
    return NULL;
}
