/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates the filters, keeps their answers for the current epoch, and explains why no sample passed. */
#include "symbolize/pass/sample_filter.h"

#include <assert.h>
#include <time.h>

void sample_filter_options_deinit(struct sample_filter_options *o)
{
    VEC_DEINIT(&o->pids);
    VEC_DEINIT(&o->tids);
    VEC_DEINIT(&o->subinterpreters);
    VEC_DEINIT(&o->cpus);
    VEC_DEINIT(&o->cgroups);
    VEC_DEINIT(&o->containers);
    VEC_DEINIT(&o->events);
    patterns_deinit(&o->comms);
    patterns_deinit(&o->exes);
    patterns_deinit(&o->threads);
    patterns_deinit(&o->tasks);
}

struct error *sample_filter_init(struct sample_filter *f, const struct sample_filter_options *options)
{
    *f = (struct sample_filter){.options = options, .first_ns = UINT64_MAX, .first_date_ns = UINT64_MAX};
    assert(sample_filter_count <= 32);
    for (size_t i = 0; i < sample_filter_count; i++) {
        const struct sample_filter_row *row = &sample_filters[i];
        if (!row->is_enabled(options))
            continue;
        f->of_subject[row->subject] |= UINT32_C(1) << f->enabled.count;
        if (!VEC_PUSH(&f->enabled, ((struct sample_filter_enabled){.row = row})))
            return error_no_memory();
    }
    return NULL;
}

void sample_filter_deinit(struct sample_filter *f)
{
    for (size_t i = 0; i < f->enabled.count; i++) {
        inventory_deinit(&f->enabled.data[i].inventory);
        VEC_DEINIT(&f->enabled.data[i].values);
    }
    VEC_DEINIT(&f->enabled);
    for (int i = 0; i < FILTER_SAMPLE; i++)
        VEC_DEINIT(&f->answers[i]);
    buf_deinit(&f->scratch);
}

/* ---- answers ---- */

/* Evaluates all filters of a subject. Returns the set of those that pass. */
static uint32_t ask(struct sample_filter *f, enum sample_filter_subject subject, const struct sample_filter_view *v)
{
    uint32_t passed = 0;

    for (uint32_t left = f->of_subject[subject]; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        struct sample_filter_enabled *enabled = &f->enabled.data[i];
        enum sample_filter_answer answer = enabled->row->passes(f->options, v);
        enabled->known_count += answer != FILTER_UNKNOWN;
        enabled->unknown_count += answer == FILTER_UNKNOWN;
        passed |= answer == FILTER_YES ? UINT32_C(1) << i : 0;
    }
    return passed;
}

/* The same, but once for each id of the epoch. */
static struct error *ask_once(struct sample_filter *f, enum sample_filter_subject subject, uint32_t id,
                              const struct sample_filter_view *v, uint32_t *passed)
{
    if (!f->of_subject[subject])
        return NULL;
    if (!VEC_EXTEND_ZERO(&f->answers[subject], (size_t)id + 1))
        return error_no_memory();
    struct sample_filter_answers *answers = &f->answers[subject].data[id];
    if (!answers->asked)
        *answers = (struct sample_filter_answers){.asked = true, .passed = ask(f, subject, v)};
    *passed |= answers->passed;
    return NULL;
}

/* ---- what there is, for messages ---- */

static uint32_t find_value(struct sample_filter *f, struct sample_filter_enabled *enabled,
                           const struct sample_filter_view *v)
{
    buf_clear(&f->scratch);
    enabled->row->describe(v, &f->scratch);
    return f->scratch.len_bytes ? inventory_value(&enabled->inventory, buf_cstr(&f->scratch)) : INVENTORY_NONE;
}

/* Counts the sample for what the filter looked at, which is described once for each id of the epoch. */
static struct error *take_stock(struct sample_filter *f, struct sample_filter_enabled *enabled, uint32_t id,
                                const struct sample_filter_view *v, bool chosen)
{
    uint32_t value;

    if (enabled->row->subject == FILTER_SAMPLE) {
        value = find_value(f, enabled, v);
    } else {
        if (!VEC_EXTEND_ZERO(&enabled->values, (size_t)id + 1))
            return error_no_memory();
        if (!enabled->values.data[id])
            enabled->values.data[id] = find_value(f, enabled, v) + 1; /* INVENTORY_NONE + 1 is 0: it is tried again */
        value = enabled->values.data[id] - 1;
    }
    inventory_add(&enabled->inventory, value, v->sample->value ? v->sample->value : 1, chosen);
    return NULL;
}

static struct error *take_all_stock(struct sample_filter *f, const uint32_t ids[FILTER_SAMPLE],
                                    const struct sample_filter_view *v, uint32_t passed)
{
    for (uint32_t i = 0; i < f->enabled.count; i++) {
        struct sample_filter_enabled *enabled = &f->enabled.data[i];
        uint32_t before = (UINT32_C(1) << i) - 1, subject = enabled->row->subject;
        if (enabled->row->values)
            TRY(take_stock(f, enabled, subject < FILTER_SAMPLE ? ids[subject] : 0, v, (passed & before) == before));
    }
    return NULL;
}

/* ---- samples ---- */

/* Notes when samples were taken, for messages. */
static void note_time(struct sample_filter *f, uint64_t since_start_ns)
{
    uint64_t date_ns = f->file.times.start_realtime_ns + since_start_ns;

    f->first_ns = since_start_ns < f->first_ns ? since_start_ns : f->first_ns;
    f->last_ns = since_start_ns > f->last_ns ? since_start_ns : f->last_ns;
    if (!f->file.times.has_clock)
        return;
    f->first_date_ns = date_ns < f->first_date_ns ? date_ns : f->first_date_ns;
    f->last_date_ns = date_ns > f->last_date_ns ? date_ns : f->last_date_ns;
}

/* Forgets what was found for one id of the epoch. */
static void forget(struct sample_filter *f, enum sample_filter_subject subject, uint32_t id)
{
    if (id < f->answers[subject].count)
        f->answers[subject].data[id].asked = false;
    for (size_t i = 0; i < f->enabled.count; i++) {
        struct sample_filter_enabled *enabled = &f->enabled.data[i];
        if (enabled->row->subject == subject && id < enabled->values.count)
            enabled->values.data[id] = 0;
    }
}

static void forget_renamed(struct sample_filter *f, const struct epoch *e)
{
    for (; f->renamed_count < e->renamed.count; f->renamed_count++)
        forget(f, FILTER_PROCESS, e->renamed.data[f->renamed_count]);
}

struct error *sample_filter_sample(struct sample_filter *f, const struct epoch *e, uint32_t event,
                                   const struct trace_sample *sample, bool *passes)
{
    struct sample_filter_view v = {.epoch = e,
                                   .file = &f->file,
                                   .process = e->threads.data[sample->thread].def.process,
                                   .thread = sample->thread,
                                   .event = event,
                                   .label_set = sample->label_set,
                                   .sample = sample};
    const uint32_t ids[FILTER_SAMPLE] = {[FILTER_PROCESS] = v.process,
                                         [FILTER_THREAD] = v.thread,
                                         [FILTER_EVENT] = v.event,
                                         [FILTER_LABELS] = v.label_set};
    uint32_t all = (uint32_t)((UINT64_C(1) << f->enabled.count) - 1), passed = 0;
    uint64_t start_ns = f->file.times.start_ns;

    v.since_start_ns = sample->time_ns > start_ns ? sample->time_ns - start_ns : 0;
    note_time(f, v.since_start_ns);
    forget_renamed(f, e);
    for (int subject = 0; subject < FILTER_SAMPLE; subject++)
        TRY(ask_once(f, (enum sample_filter_subject)subject, ids[subject], &v, &passed));
    passed |= ask(f, FILTER_SAMPLE, &v);
    TRY(take_all_stock(f, ids, &v, passed));
    f->passed_alone |= passed;
    uint32_t together = passed == all ? (uint32_t)f->enabled.count : (uint32_t)__builtin_ctz(~passed);
    f->passed_together = together > f->passed_together ? together : f->passed_together;
    *passes = passed == all;
    return NULL;
}

struct error *sample_filter_whole_thread(struct sample_filter *f, const struct epoch *e, uint32_t thread, bool *whole)
{
    const struct sample_filter_view v = {
        .epoch = e, .file = &f->file, .process = e->threads.data[thread].def.process, .thread = thread};
    uint32_t all = (uint32_t)((UINT64_C(1) << f->enabled.count) - 1), passed = 0;

    forget_renamed(f, e);
    TRY(ask_once(f, FILTER_PROCESS, v.process, &v, &passed));
    TRY(ask_once(f, FILTER_THREAD, v.thread, &v, &passed));
    *whole = passed == all;
    return NULL;
}

/* ---- files and epochs ---- */

static void apply_time(struct sample_filter *f)
{
    struct sample_filter_file *file = &f->file;

    file->time_known = time_range_in_file(&f->options->time, &file->times, &file->from_ns, &file->to_ns);
}

void sample_filter_begin_file(struct sample_filter *f, uint32_t number)
{
    f->file = (struct sample_filter_file){0};
    if (f->scouted)
        f->file.scouted = f->scouted[number];
    f->file.times.duration_ns = f->file.scouted.duration_ns;
    apply_time(f);
}

void sample_filter_record(struct sample_filter *f, const struct trace_record *rec)
{
    struct file_times *times = &f->file.times;

    if (rec->type == TRACE_epoch && !f->file.has_start) {
        f->file.has_start = true;
        times->start_ns = rec->epoch.time_ns;
        apply_time(f);
    } else if (rec->type == TRACE_clock && !times->has_clock) {
        times->has_clock = true;
        /* Unsigned: may wrap and come back. */
        times->start_realtime_ns = rec->clock.realtime_ns - rec->clock.monotonic_ns + times->start_ns;
        apply_time(f);
    }
    /* A filter may depend on the names of processes and threads. */
    if (rec->type == TRACE_process_name)
        forget(f, FILTER_PROCESS, rec->process_name.process);
    else if (rec->type == TRACE_thread_name)
        forget(f, FILTER_THREAD, rec->thread_name.thread);
}

void sample_filter_end_epoch(struct sample_filter *f)
{
    for (int i = 0; i < FILTER_SAMPLE; i++)
        f->answers[i].count = 0;
    for (size_t i = 0; i < f->enabled.count; i++)
        f->enabled.data[i].values.count = 0;
    f->renamed_count = 0;
}

/* ---- messages ---- */

struct error *sample_filter_check(const struct sample_filter *f)
{
    for (size_t i = 0; i < f->enabled.count; i++) {
        const struct sample_filter_enabled *enabled = &f->enabled.data[i];
        if (enabled->unknown_count && !enabled->known_count)
            return error_create(ERROR_UNSUPPORTED, "--%s: %s", enabled->row->option, enabled->row->unknown);
    }
    return NULL;
}

static void put_option(const struct sample_filter *f, size_t i, struct buf *out)
{
    const char *option = f->enabled.data[i].row->option;
    size_t before = out->len_bytes;

    if (f->options->given)
        given_put(f->options->given, option, out);
    if (out->len_bytes == before)
        buf_printf(out, "--%s", option);
}

/* "2026-11-22 14:05:00.25" */
static void put_date(uint64_t realtime_ns, struct buf *out)
{
    time_t seconds = (time_t)(realtime_ns / 1000000000);
    struct tm tm;
    char text[64];

    if (gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm))
        buf_printf(out, "%s.%02u", text, (unsigned)(realtime_ns / 10000000 % 100));
}

static void put_times(const struct sample_filter *f, struct buf *out)
{
    buf_printf(out, "; the samples lie between %.2f s and %.2f s", (double)f->first_ns / 1e9, (double)f->last_ns / 1e9);
    if (!f->last_date_ns)
        return;
    buf_put_str(out, " (");
    put_date(f->first_date_ns, out);
    buf_put_str(out, " to ");
    put_date(f->last_date_ns, out);
    buf_put_str(out, " UTC)");
}

/* What filter `i` could have chosen. */
static void put_what_there_is(const struct sample_filter *f, size_t i, bool chosen, struct buf *out)
{
    const struct sample_filter_enabled *enabled = &f->enabled.data[i];
    const char *whose = chosen ? "they have" : "the trace has";
    struct buf list = {0};

    if (enabled->row->subject == FILTER_SAMPLE && !enabled->row->values) {
        if (enabled->row->is_time)
            put_times(f, out);
        return;
    }
    if (inventory_put(&enabled->inventory, chosen, &list))
        buf_printf(out, "; %s %s %s", whose, enabled->row->values, buf_cstr(&list));
    else
        buf_printf(out, "; %s no %s", whose, enabled->row->values);
    buf_deinit(&list);
}

/* The number of the filter to name, see the top of sample_filter.h; *alone: it lets no sample pass even by itself. */
static size_t find_culprit(const struct sample_filter *f, bool *alone)
{
    for (size_t i = 0; i < f->enabled.count; i++) {
        *alone = !(f->passed_alone >> i & 1);
        if (*alone)
            return i;
    }
    return f->passed_together;
}

struct error *sample_filter_nothing(const struct sample_filter *f)
{
    struct buf text = {0};
    bool alone;

    if (f->first_ns > f->last_ns)
        return error_create(ERROR_NOT_FOUND, "there is nothing to choose from: the trace has no samples");
    size_t culprit = find_culprit(f, &alone);
    buf_put_str(&text, "no sample passes ");
    put_option(f, culprit, &text);
    for (size_t i = 0; !alone && i < culprit; i++) {
        buf_put_str(&text, i ? " and " : " of those that pass ");
        put_option(f, i, &text);
    }
    put_what_there_is(f, culprit, !alone && culprit, &text);
    struct error *err = text.bad ? error_no_memory() : error_create(ERROR_NOT_FOUND, "%s", buf_cstr(&text));
    buf_deinit(&text);
    return err;
}
