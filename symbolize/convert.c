/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/convert.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/weights.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/trace/input.h"
#include "symbolize/reorder.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"
#include "symbolize/check/unwind_check.h"

struct convert {
    const struct options *options;
    VEC(struct input) inputs;
    FILE *out;
    struct epoch epoch;
    struct resolver *resolver;
    struct summary *summary;
    struct unwind_check *check;    /* NULL unless it is asked for; then it alone sees the samples */
    const struct emitter *emitter; /* NULL: only the summary or the check is asked for */
    void *emitter_state;
    struct weights *weigh; /* not NULL: samples are weighed, and nothing else is done with them */
    struct intern weigh_keys;
    struct reorder reorder;
    bool has_start, single_pass; /* the file has a start time; it cannot be read twice */
    uint64_t start_ns;    /* of the file */
    VEC(uint8_t) threads; /* by the epoch's id: enum choice */
    uint64_t gil_known_count, gil_unknown_count;
};

/* Does the thread's process or number make its samples wanted? */
enum choice { CHOICE_OPEN, CHOICE_WANTED, CHOICE_UNWANTED };

static void deinit(struct convert *c)
{
    if (c->emitter)
        c->emitter->destroy(c->emitter_state);
    intern_deinit(&c->weigh_keys);
    reorder_deinit(&c->reorder);
    unwind_check_destroy(c->check);
    summary_destroy(c->summary);
    resolver_destroy(c->resolver);
    epoch_deinit(&c->epoch);
    VEC_DEINIT(&c->threads);
    for (size_t i = 0; i < c->inputs.count; i++)
        input_deinit(&c->inputs.data[i]);
    VEC_DEINIT(&c->inputs);
}

static bool listed(const struct option_numbers *ids, uint32_t id)
{
    bool found = !ids->count;

    for (size_t i = 0; i < ids->count && !found; i++)
        found = ids->data[i] == id;
    return found;
}

static struct error *choose_thread(struct convert *c, uint32_t thread)
{
    const struct trace_thread *def = &c->epoch.threads.data[thread].def;
    uint32_t tgid = c->epoch.processes.data[def->process].def.tgid;

    while (c->threads.count <= thread) {
        if (!VEC_PUSH(&c->threads, CHOICE_OPEN))
            return error_no_memory();
    }
    bool wanted = listed(&c->options->pids, tgid) && listed(&c->options->tids, def->tid);
    c->threads.data[thread] = wanted ? CHOICE_WANTED : CHOICE_UNWANTED;
    return NULL;
}

static uint64_t since_start_ns(const struct convert *c, uint64_t time_ns)
{
    return time_ns > c->start_ns ? time_ns - c->start_ns : 0;
}

static bool in_time(const struct convert *c, uint64_t time_ns)
{
    uint64_t since_ns = since_start_ns(c, time_ns);

    return since_ns >= c->options->from_ns && since_ns < c->options->to_ns;
}

/* As weights_class_of() has it, but of an event that no model has. */
static struct error *weigh_sample(struct convert *c, uint32_t event, uint64_t weight)
{
    const struct trace_event *def = &c->epoch.events.data[event].def;
    const char *unit = epoch_text(&c->epoch, def->unit), *name = epoch_text(&c->epoch, def->name);
    uint32_t number = WEIGHTS_OF_TIME;

    if (strcmp(unit, "ns")) {
        struct buf key = {0};
        buf_put(&key, name, strlen(name) + 1);
        buf_put_str(&key, unit);
        number = key.bad ? INTERN_NONE : intern_id(&c->weigh_keys, key.data, (uint32_t)key.len_bytes, NULL);
        buf_deinit(&key);
        if (number == INTERN_NONE)
            return error_no_memory();
        number++;
    }
    return weights_add(c->weigh, number, weight) ? NULL : error_no_memory();
}

static struct error *convert_sample(struct convert *c, uint32_t event, const struct trace_sample *sample)
{
    struct emit_sample shown;

    if (sample->thread >= c->threads.count || c->threads.data[sample->thread] == CHOICE_OPEN)
        TRY(choose_thread(c, sample->thread));
    if (c->threads.data[sample->thread] != CHOICE_WANTED || !in_time(c, sample->time_ns))
        return NULL;
    if (c->options->gil) {
        bool known = sample->flags & TRACE_SAMPLE_GIL_KNOWN;
        c->gil_known_count += known;
        c->gil_unknown_count += !known;
        if (!known || !(sample->flags & TRACE_SAMPLE_GIL))
            return NULL;
    }
    if (c->weigh)
        return weigh_sample(c, event, sample->value);
    if (c->check)
        return unwind_check_sample(c->check, &c->epoch, sample, since_start_ns(c, sample->time_ns));
    TRY(resolver_sample(c->resolver, &c->epoch, event, sample, &shown));
    const struct summary_sample counted = {
        .event = event, .thread = sample->thread, .time_ns = sample->time_ns, .value = sample->value,
        .flags = sample->flags, .label_set = sample->label_set};
    TRY(summary_sample(c->summary, &c->epoch, &counted));
    if (!c->emitter)
        return NULL;
    return c->emitter->time_order ? reorder_sample(&c->reorder, &shown) : c->emitter->sample(c->emitter_state, &shown);
}

static struct error *convert_samples(struct convert *c, const struct trace_samples *samples)
{
    bool changes = c->epoch.events.data[samples->event].changes.count != 0;
    struct trace_sample_iter it;
    struct trace_sample sample;

    trace_samples_begin(&it, samples, epoch_period_at(&c->epoch, samples->event, samples->time_ns));
    while (trace_samples_next(&it, &sample)) {
        if (changes && !(sample.flags & TRACE_SAMPLE_VALUE))
            sample.value = epoch_period_at(&c->epoch, samples->event, sample.time_ns);
        TRY(convert_sample(c, samples->event, &sample));
    }
    return NULL;
}

static struct error *end_epoch(struct convert *c)
{
    c->threads.count = 0;
    if (c->weigh)
        return NULL;
    TRY(summary_end_epoch(c->summary, &c->epoch));
    resolver_end_epoch(c->resolver);
    if (c->check)
        unwind_check_end_epoch(c->check);
    return NULL;
}

static struct error *convert_record(struct convert *c, const struct trace_record *rec)
{
    if (rec->type == TRACE_epoch) {
        TRY(end_epoch(c));
        if (!c->has_start)
            c->start_ns = rec->epoch.time_ns;
        c->has_start = true;
    }
    TRY(epoch_load(&c->epoch, rec));
    if (c->weigh)
        return rec->type == TRACE_samples ? convert_samples(c, &rec->samples) : NULL;
    TRY(summary_record(c->summary, &c->epoch, rec));
    if (rec->type == TRACE_samples)
        return convert_samples(c, &rec->samples);
    if (rec->type == TRACE_perf_map && c->single_pass)
        return modcache_add_perf_map(resolver_modules(c->resolver), &c->epoch, &rec->perf_map);
    return resolver_rename(c->resolver, &c->epoch, rec);
}

static struct error *convert_records(struct convert *c, struct trace_reader *reader)
{
    struct trace_record rec;
    bool more;

    for (;;) {
        TRY(trace_reader_next(reader, &rec, &more));
        if (!more || (c->weigh && c->weigh->differ))
            break;
        TRY(convert_record(c, &rec));
    }
    TRY(end_epoch(c));
    epoch_deinit(&c->epoch);
    if (c->weigh)
        return NULL;
    if (c->emitter && c->emitter->time_order)
        TRY(reorder_flush(&c->reorder));
    return summary_end_file(c->summary, reader);
}

static struct error *convert_file(struct convert *c, const struct input *input)
{
    const char *again = input_again(input);
    struct trace_reader *reader;

    c->has_start = false;
    c->single_pass = !again;
    c->epoch.no_snapshots = c->weigh || (c->options->python_only && !c->check);
    TRY(input_open(input, &reader));
    struct error *err = c->weigh ? NULL : summary_begin_file(c->summary, input->path);
    if (!c->weigh)
        resolver_begin_file(c->resolver, again ? again : input->path);
    if (!err)
        err = convert_records(c, reader);
    trace_reader_close(reader);
    return err;
}

static struct error *convert_files(struct convert *c)
{
    for (size_t i = 0; i < c->inputs.count; i++)
        TRY(convert_file(c, &c->inputs.data[i]));
    summary_late(c->summary, c->reorder.late_count);
    if (c->gil_unknown_count && !c->gil_known_count)
        return error_create(ERROR_UNSUPPORTED, "--gil: the trace does not say which thread held the GIL");
    if (c->emitter)
        return c->emitter->end(c->emitter_state);
    if (c->check)
        return unwind_check_print(unwind_check_report(c->check), c->out);
    return summary_print(c->summary, c->resolver, c->out);
}

/* Do the samples that the options ask for weigh differently? A pass of its own, for which no stack is resolved. */
static bool weights_will_differ(const struct convert *of)
{
    struct weights weights = {0};
    struct convert c = {.options = of->options, .weigh = &weights};
    struct error *err = NULL;

    for (size_t i = 0; i < of->inputs.count && !weights.differ && !err; i++)
        err = convert_file(&c, &of->inputs.data[i]);
    error_destroy(err); /* What is wrong with a file is said when it is converted. */
    deinit(&c);
    weights_deinit(&weights);
    return weights.differ;
}

static struct error *take_inputs(struct convert *c, bool keep)
{
    for (size_t i = 0; i < c->options->inputs.count; i++) {
        struct input in;
        input_init(&in, c->options->inputs.data[i]);
        if (!VEC_PUSH(&c->inputs, in))
            return error_no_memory();
    }
    for (size_t i = 0; keep && i < c->inputs.count; i++)
        TRY(input_keep(&c->inputs.data[i]));
    return NULL;
}

static struct error *start(struct convert *c)
{
    const struct options *o = c->options;
    struct emit_options emit = o->emit;
    const struct resolver_options resolver_options = {
        .binaries = {.archives = o->python_only ? NULL : o->archives.data,
                     .symfs = o->symfs.data,
                     .sysroot = o->sysroot,
                     .debuginfod = o->debuginfod},
        .show_interpreter = o->show_interpreter,
        .python_only = o->python_only,
        .labels = o->labels,
        .interpreters = o->emit.threads,
    };

    TRY(take_inputs(c, o->kind == OUTPUT_EMITTER && o->emitter->wants_weights));
    TRY(resolver_create(&resolver_options, &c->resolver));
    TRY(summary_create(&c->summary));
    if (o->kind == OUTPUT_UNWIND_CHECK)
        TRY(unwind_check_create(resolver_modules(c->resolver), &c->check));
    if (o->kind != OUTPUT_EMITTER)
        return NULL;
    c->emitter = o->emitter;
    emit.weights_differ = c->emitter->wants_weights && weights_will_differ(c);
    TRY(c->emitter->begin(resolver_model(c->resolver), &emit, c->out, &c->emitter_state));
    c->reorder.emitter = c->emitter;
    c->reorder.state = c->emitter_state;
    return NULL;
}

static struct error *run(const struct options *o, FILE *out, FILE *trouble, struct convert_outcome *outcome)
{
    struct convert c = {.options = o, .out = out};
    struct error *err = start(&c);

    if (!err)
        err = convert_files(&c);
    if (!err) {
        const char *remark = c.emitter && c.emitter->remark ? c.emitter->remark(c.emitter_state) : NULL;
        summary_print_trouble(c.summary, trouble);
        if (remark)
            fprintf(trouble, "pysym: %s\n", remark);
        /* The check is about stacks, whatever else was lost. */
        outcome->incomplete = !c.check && !summary_is_complete(c.summary, c.resolver);
        outcome->differs = c.check && !unwind_check_agrees(c.check);
    }
    deinit(&c);
    return err;
}

/* ---- dump ---- */

static void dump_samples(const struct trace_samples *samples, FILE *out)
{
    struct trace_sample_iter it;
    struct trace_sample s;

    trace_samples_begin(&it, samples, 0);
    while (trace_samples_next(&it, &s)) {
        fprintf(out, "  sample time_ns=%" PRIu64 " thread=%u tuple=%u cpu=%u flags=%#x", s.time_ns, s.thread, s.tuple,
                s.cpu, s.flags);
        if (s.flags & TRACE_SAMPLE_VALUE)
            fprintf(out, " value=%" PRIu64, s.value);
        if (s.flags & TRACE_SAMPLE_LABELS)
            fprintf(out, " label_set=%u", s.label_set);
        fputc('\n', out);
    }
}

static struct error *dump_file(const char *path, FILE *out, struct summary *summary)
{
    struct trace_reader *reader;
    struct trace_record rec;
    struct error *err = NULL;
    bool more = true;

    TRY(trace_reader_open(path, &reader));
    while (more && !err && !ferror(out)) {
        err = trace_reader_next(reader, &rec, &more);
        if (err || !more)
            break;
        trace_record_print(&rec, out);
        if (rec.type == TRACE_samples)
            dump_samples(&rec.samples, out);
    }
    if (!err)
        err = summary_begin_file(summary, path);
    if (!err)
        err = summary_end_file(summary, reader);
    trace_reader_close(reader);
    return err;
}

static struct error *dump(const struct options *o, FILE *out, FILE *trouble, struct convert_outcome *outcome)
{
    struct summary *summary;
    struct error *err = NULL;

    TRY(summary_create(&summary));
    for (size_t i = 0; i < o->inputs.count && !err; i++)
        err = dump_file(o->inputs.data[i], out, summary);
    if (!err) {
        summary_print_trouble(summary, trouble);
        outcome->incomplete = !summary_is_complete(summary, NULL);
    }
    summary_destroy(summary);
    return err;
}

struct error *convert_run(const struct options *o, FILE *out, FILE *trouble, struct convert_outcome *outcome)
{
    *outcome = (struct convert_outcome){0};
    return o->kind == OUTPUT_DUMP ? dump(o, out, trouble, outcome) : run(o, out, trouble, outcome);
}
