/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/summary_consumer.h"

#include "symbolize/summary/summary_json.h"
#include "symbolize/summary/verdict.h"

static struct error *begin_file(void *state, const struct consumer_file *file)
{
    return summary_begin_file(state, file->input->path);
}

static struct error *take_record(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    return summary_record(state, file->epoch, rec);
}

static struct error *take_sample(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    return summary_sample(state, file->epoch, sample->event, sample->raw, sample->shown);
}

static struct error *end_epoch(void *state, const struct consumer_file *file)
{
    return summary_end_epoch(state, file->epoch);
}

static struct error *end_file(void *state, const struct consumer_file *file)
{
    return summary_end_file(state, file->reader);
}

static void destroy(void *state)
{
    summary_destroy(state);
}

const struct consumer summary_consumer = {.wants = CONSUMER_SAMPLES,
                                          .begin_file = begin_file,
                                          .record = take_record,
                                          .sample = take_sample,
                                          .end_epoch = end_epoch,
                                          .end_file = end_file,
                                          .destroy = destroy};

const struct consumer summary_files_consumer = {.begin_file = begin_file, .end_file = end_file, .destroy = destroy};

static struct error *print(void *state)
{
    const struct summary_output *o = state;

    return o->json ? summary_json_print(o->summary, o->resolver, o->exporter, o->out)
                   : summary_print(o->summary, o->resolver, o->verbose, o->out);
}

static void destroy_nothing(void *state)
{
    (void)state;
}

/* Needs stacks because it prints what the resolver counts. */
const struct consumer summary_print_consumer = {.wants = CONSUMER_STACKS, .end = print, .destroy = destroy_nothing};

static struct error *print_verdict(void *state)
{
    const struct summary_output *o = state;

    return verdict_print(o->summary, o->resolver, true, o->out);
}

const struct consumer verdict_consumer = {.wants = CONSUMER_STACKS, .end = print_verdict, .destroy = destroy_nothing};

static struct error *print_for_emitter(struct emit_summary *emit, bool brief, FILE *out)
{
    const struct summary_for_emitter *s = (const struct summary_for_emitter *)emit;

    return brief ? verdict_print(s->summary, s->resolver, true, out) : summary_print(s->summary, s->resolver, true, out);
}

void summary_for_emitter_init(struct summary_for_emitter *s, struct summary *summary, const struct resolver *resolver)
{
    *s = (struct summary_for_emitter){.emit.print = print_for_emitter, .summary = summary, .resolver = resolver};
}
