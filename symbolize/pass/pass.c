/* SPDX-License-Identifier: Apache-2.0 */
/* Drives consumers over the inputs: see pass.h. */
#include "symbolize/pass/pass.h"

#include <assert.h>

#include "symbolize/stack/stack_nothing.h"

struct error *pass_init(struct pass *p, const struct input *inputs, size_t input_count,
                        const struct sample_filter_options *filters, struct resolver *resolver)
{
    *p = (struct pass){.inputs = inputs, .input_count = input_count, .resolver = resolver};
    p->names = &p->own_names;
    return sample_filter_init(&p->filter, filters);
}

void pass_deinit(struct pass *p)
{
    for (size_t i = 0; i < p->consumers.count; i++)
        p->consumers.data[i].consumer->destroy(p->consumers.data[i].state);
    VEC_DEINIT(&p->consumers);
    sample_filter_deinit(&p->filter);
    process_names_deinit(&p->own_names);
    epoch_deinit(&p->epoch);
}

struct error *pass_add(struct pass *p, const struct consumer *consumer, void *state)
{
    if (!VEC_PUSH(&p->consumers, ((struct pass_consumer){consumer, state}))) {
        consumer->destroy(state);
        return error_no_memory();
    }
    p->wants |= consumer->wants;
    assert(p->resolver || !(p->wants & CONSUMER_STACKS));
    return NULL;
}

#define EACH_CONSUMER(p, c)                                                                                    \
    for (const struct pass_consumer *c = (p)->consumers.data, *end_ = c + (p)->consumers.count; c < end_; c++)

static bool have_enough(const struct pass *p)
{
    EACH_CONSUMER(p, c) {
        if (!c->consumer->has_enough || !c->consumer->has_enough(c->state))
            return false;
    }
    return true;
}

static struct error *pass_sample(struct pass *p, uint32_t event, const struct trace_sample *raw)
{
    struct consumer_sample sample = {.event = event, .raw = raw};
    struct emit_sample shown;
    bool passes = true;

    TRY(process_names_sample(p->names, &p->epoch, raw, p->file.number + 1));
    if (sample_filter_is_enabled(&p->filter))
        TRY(sample_filter_sample(&p->filter, &p->epoch, event, raw, &passes));
    if (!passes)
        return p->wants & CONSUMER_STACKS ? resolver_leave_out(p->resolver, &p->epoch, event, raw) : NULL;
    p->passed_count++;
    if (p->wants & CONSUMER_STACKS) {
        TRY(resolver_sample(p->resolver, &p->epoch, event, raw, &shown, &passes));
        if (!passes)
            return NULL;
        sample.shown = &shown;
    }
    EACH_CONSUMER(p, c) {
        if (c->consumer->sample)
            TRY(c->consumer->sample(c->state, &p->file, &sample));
    }
    return NULL;
}

static struct error *pass_samples(struct pass *p, const struct trace_record *rec)
{
    const struct trace_samples *samples = &rec->samples;
    bool changes = p->epoch.events.data[samples->event].changes.count != 0;
    struct trace_sample_iter it;
    struct trace_sample sample;

    trace_samples_begin_checked(&it, rec, epoch_period_at(&p->epoch, samples->event, samples->time_ns));
    while (trace_samples_next(&it, &sample)) {
        if (changes && !(sample.flags & TRACE_SAMPLE_VALUE))
            sample.value = epoch_period_at(&p->epoch, samples->event, sample.time_ns);
        TRY(pass_sample(p, samples->event, &sample));
    }
    return NULL;
}

static struct error *end_epoch(struct pass *p)
{
    sample_filter_end_epoch(&p->filter);
    process_names_end_epoch(p->names);
    EACH_CONSUMER(p, c) {
        if (c->consumer->end_epoch)
            TRY(c->consumer->end_epoch(c->state, &p->file));
    }
    if (p->wants & CONSUMER_STACKS)
        resolver_end_epoch(p->resolver);
    return p->renew ? p->renew(p->renew_own, p) : NULL;
}

/* What else is known of a thread goes beside its samples, where all of these are shown. */
static struct error *load_stacks(struct pass *p, const struct trace_record *rec)
{
    bool whole = false;

    TRY(resolver_record(p->resolver, &p->epoch, rec));
    bool has_state = rec->type == TRACE_thread_state;
    if (rec->type != TRACE_thread_time && !has_state)
        return NULL;
    uint32_t thread = has_state ? rec->thread_state.thread : rec->thread_time.thread;
    TRY(sample_filter_whole_thread(&p->filter, &p->epoch, thread, &whole));
    if (!whole)
        return NULL;
    return has_state ? resolver_thread_state(p->resolver, &p->epoch, &rec->thread_state)
                     : resolver_thread_time(p->resolver, &p->epoch, &rec->thread_time);
}

static struct error *load(struct pass *p, const struct trace_record *rec)
{
    if (rec->type == TRACE_epoch) {
        TRY(end_epoch(p));
        if (!p->file.has_start)
            p->file.start_ns = rec->epoch.time_ns;
        p->file.has_start = true;
    }
    p->epoch.limits = p->limits ? &p->limits->limits : NULL;
    TRY(epoch_load(&p->epoch, rec));
    TRY(process_names_record(p->names, &p->epoch, rec, p->file.number + 1));
    sample_filter_record(&p->filter, rec);
    return p->wants & CONSUMER_STACKS ? load_stacks(p, rec) : NULL;
}

static struct error *pass_records(struct pass *p, struct trace_reader *reader)
{
    struct trace_record rec;
    bool more;

    for (;;) {
        TRY(trace_reader_next(reader, &rec, &more));
        if (!more || have_enough(p))
            break;
        if (p->limits)
            TRY(file_limits_record(p->limits, &rec, trace_reader_stats(reader)));
        progress_record(p->progress, trace_reader_stats(reader)->file_bytes, rec.type == TRACE_samples ? rec.samples.count : 0);
        if (p->wants)
            TRY(load(p, &rec));
        EACH_CONSUMER(p, c) {
            if (c->consumer->record)
                TRY(c->consumer->record(c->state, &p->file, &rec));
        }
        if (rec.type == TRACE_samples && p->wants)
            TRY(pass_samples(p, &rec));
    }
    TRY(end_epoch(p));
    epoch_deinit(&p->epoch);
    EACH_CONSUMER(p, c) {
        if (c->consumer->end_file)
            TRY(c->consumer->end_file(c->state, &p->file));
    }
    return NULL;
}

static struct error *begin_file(struct pass *p)
{
    if (p->wants & CONSUMER_STACKS)
        TRY(resolver_begin_file(p->resolver, p->file.input));
    EACH_CONSUMER(p, c) {
        if (c->consumer->begin_file)
            TRY(c->consumer->begin_file(c->state, &p->file));
    }
    return NULL;
}

static struct error *pass_file(struct pass *p, uint32_t number)
{
    const struct input *input = &p->inputs[number];
    struct trace_reader *reader;

    TRY(input_open(input, &reader));
    sample_filter_begin_file(&p->filter, number);
    progress_begin_file(p->progress, number);
    p->file = (struct consumer_file){.input = input, .number = number, .reader = reader, .epoch = &p->epoch};
    if (!(p->wants & (CONSUMER_EPOCH | CONSUMER_STACKS)))
        p->epoch.left_out = EPOCH_STACKS;
    else if (!(p->wants & CONSUMER_EPOCH) && !resolver_unwinds(p->resolver))
        p->epoch.left_out = EPOCH_SNAPSHOT_CONTENTS;
    struct error *err = begin_file(p);
    if (!err)
        err = pass_records(p, reader);
    if (p->limits)
        file_limits_end_file(p->limits, trace_reader_stats(reader));
    progress_end_file(p->progress, trace_reader_stats(reader)->file_bytes);
    trace_reader_close(reader);
    return err;
}

/* Returns an error if the filters left nothing of the samples that there are. */
static struct error *check_left(const struct pass *p)
{
    TRY(sample_filter_check(&p->filter));
    if (sample_filter_is_enabled(&p->filter) && !p->passed_count)
        return sample_filter_nothing(&p->filter);
    return p->passed_count && p->wants & CONSUMER_STACKS && !p->renewed ? stack_nothing_left(resolver_stack_map(p->resolver)) : NULL;
}

static struct error *pass_files(struct pass *p)
{
    for (size_t i = 0; i < p->input_count && !have_enough(p); i++)
        TRY(pass_file(p, (uint32_t)i));
    return check_left(p);
}

struct error *pass_run(struct pass *p)
{
    if (p->limits)
        file_limits_begin(p->limits);
    progress_begin(p->progress, p->inputs, p->input_count);
    struct error *err = pass_files(p);
    progress_clear(p->progress);
    TRY(err);
    EACH_CONSUMER(p, c) {
        if (c->consumer->end)
            TRY(c->consumer->end(c->state));
    }
    return NULL;
}
