/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/convert.h"

#include <string.h>

#include "formats/base/vec.h"
#include "formats/compare/baseline.h"
#include "formats/compare/tally.h"
#include "symbolize/check/check_consumer.h"
#include "symbolize/compare/diff.h"
#include "symbolize/compare/gather.h"
#include "symbolize/convert_messages.h"
#include "symbolize/live/live_consumer.h"
#include "symbolize/pass/dump.h"
#include "symbolize/pass/emit_consumer.h"
#include "symbolize/pass/loss_consumer.h"
#include "symbolize/pass/parts.h"
#include "symbolize/pass/pass.h"
#include "symbolize/pass/scout.h"
#include "symbolize/pass/wall_consumer.h"
#include "symbolize/pass/weigh.h"
#include "symbolize/source/sources.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/stack/stack_nothing.h"
#include "symbolize/summary/gil_figures.h"
#include "symbolize/summary/strict.h"
#include "symbolize/summary/summary_consumer.h"
#include "symbolize/trace/file_limits.h"
#include "symbolize/trace/input.h"
#include "symbolize/trace/process_names.h"

/* Memory that a view of a stream keeps of what it resolved, before it begins anew. */
#define LIVE_RESOLVED_BYTES (UINT64_C(128) << 20)

struct convert {
    const struct options *options;
    FILE *out, *trouble;
    struct convert_outcome *outcome;
    struct part_sink *parts;  /* NULL: the output is whole */
    struct live_feed *live;   /* NULL: the output is none that goes on a terminal as it comes */
    struct live_consumer *live_consumer; /* the pass owns it */
    struct weigh_result weighed;   /* for parts */
    VEC(struct input) inputs;
    struct file_limits limits;
    struct scout scout;
    struct process_names names; /* of all passes */
    struct resolver *resolver; /* NULL for an output that resolves nothing */
    struct sources *sources;   /* NULL: no --source was given */
    struct summary *summary;   /* the pass owns it from add_summary() on */
    struct summary_output summary_output;
    struct summary_for_emitter emit_summary;
    struct check_output check_output;
    struct progress progress;
};

static struct error *take_inputs(struct convert *c)
{
    for (size_t i = 0; i < c->options->inputs.count; i++) {
        struct input in;
        input_init(&in, c->options->inputs.data[i]);
        if (c->live)
            in.wake_fd = c->live->wake_fd;
        if (c->options->input_at)
            input_read_at(&in, c->options->input_at);
        if (!VEC_PUSH(&c->inputs, in))
            return error_no_memory();
    }
    return NULL;
}

static struct error *init_pass(struct convert *c, struct pass *p)
{
    TRY(pass_init(p, c->inputs.data, c->inputs.count, &c->options->filters, c->resolver));
    p->limits = &c->limits;
    p->progress = &c->progress;
    p->names = &c->names;
    p->filter.scouted = c->scout.files.data;
    return NULL;
}

/* With `scouting` the stacks that --around asks for, as they were recorded; else as the options want them. */
static struct error *create_resolver(const struct convert *c, struct limits *limits, bool scouting, struct resolver **out)
{
    const struct options *o = c->options;
    struct resolver_options options = {
        .binaries = {.archives = o->python_only ? NULL : o->archives.data,
                     .named = c->scout.knows_named ? &c->scout.named : NULL,
                     .symfs = o->symfs.data,
                     .sysroot = o->sysroot,
                     .no_host = o->no_host,
                     .debuginfod = o->debuginfod},
        .interpreter = o->interpreter,
        .wall = o->filters.wall,
        .python_only = o->python_only,
        .limits = limits,
        .filters = o->filters_given,
        .fingerprints = o->command == COMMAND_DIFF || o->command == COMMAND_BASELINE,
    };

    if (scouting) {
        options.stacks.given = o->stacks.given;
        options.stacks.patterns[STACK_AROUND] = o->stacks.patterns[STACK_AROUND];
    } else {
        options.stacks = o->stacks;
        options.stacks.interpreters = o->emit.threads;
        options.stacks.labels &= !(o->choice.emitter && o->choice.emitter->shows_labels);
        options.stacks.patterns[STACK_AROUND] = (struct patterns){0};
    }
    return resolver_create(&options, out);
}

/* A pass without filters, with limits of its own, for what filters must know beforehand. Does not report damage. */
static struct error *scout_for(struct convert *c, const struct consumer *consumer)
{
    const struct sample_filter_options none = {0};
    struct resolver *resolver = NULL;
    struct file_limits limits;
    struct pass p;

    file_limits_init(&limits, c->options->max_memory_bytes);
    struct error *err = consumer->wants & CONSUMER_STACKS ? create_resolver(c, &limits.limits, true, &resolver) : NULL;
    if (err)
        return err;
    err = pass_init(&p, c->inputs.data, c->inputs.count, &none, resolver);
    p.limits = &limits;
    p.progress = &c->progress;
    p.names = &c->names;
    if (!err)
        err = pass_add(&p, consumer, &c->scout);
    if (!err)
        err = pass_run(&p);
    pass_deinit(&p);
    resolver_destroy(resolver);
    return file_limits_explain(&limits, err);
}

static bool can_be_read_again(const struct convert *c)
{
    for (size_t i = 0; i < c->inputs.count; i++) {
        if (!input_again(&c->inputs.data[i]))
            return false;
    }
    return true;
}

static struct error *scout(struct convert *c)
{
    bool durations = time_range_has_share(&c->options->filters.time), matches = c->options->filters.around;

    for (size_t i = 0; (durations || matches) && i < c->inputs.count; i++)
        TRY(input_keep(&c->inputs.data[i]));
    if (!c->options->python_only && scout_of_binaries_pays(c->options->archives.data, c->inputs.data, c->inputs.count)) {
        c->scout.named.texts.arena.limits = &c->limits.limits;
        TRY(scout_for(c, &scout_binaries));
        c->scout.knows_named = true;
    }
    if (durations)
        TRY(scout_for(c, &scout_durations));
    if (c->options->filters.comms.count && !c->live && can_be_read_again(c))
        TRY(scout_for(c, &scout_names));
    return matches ? scout_for(c, &scout_matches) : NULL;
}

static struct error *add_wall(const struct convert *c, struct pass *p)
{
    struct wall_state *wall;

    if (!c->options->filters.wall)
        return NULL;
    TRY(wall_consumer_create(&c->options->filters.events, &wall));
    return pass_add(p, &wall_consumer, wall);
}

static struct error *add_summary(struct convert *c, struct pass *p, const struct consumer *consumer)
{
    TRY(summary_create(&c->limits.limits, &c->summary));
    return pass_add(p, consumer, c->summary);
}

/* Finds out whether the samples have different weights; for parts, more. Does not report damage: the conversion will. */
static bool weights_will_differ(struct convert *c)
{
    struct pass p;
    struct weigh *weigh = NULL;
    bool differ = false;

    struct error *err = init_pass(c, &p);
    if (!err)
        err = weigh_create(c->parts ? &c->weighed : NULL, &weigh);
    if (!err)
        err = pass_add(&p, &weigh_consumer, weigh);
    if (!err) {
        err = pass_run(&p);
        differ = weigh_differs(weigh);
    }
    c->weighed.several_events &= !c->options->filters.wall; /* they are one */
    error_destroy(err);
    pass_deinit(&p);
    return differ;
}

static void check_strict(struct convert *c)
{
    c->outcome->incomplete = c->options->strict.is_on &&
                             !strict_check(&c->options->strict, c->summary, c->resolver, c->trouble);
}

static void tell_filters(const struct convert *c, bool shown)
{
    convert_tell_filters(c->options, c->resolver, shown, c->trouble);
}

/* ---- the outputs: each adds its consumers, runs the pass, and sets the outcome ---- */

/* Begins the emitter, or one that splits the samples between several of its kind. */
static struct error *begin_emitter(struct convert *c, const struct emit_options *options, struct parts **parts, struct emit_consumer **out)
{
    const struct emitter *emitter = c->options->choice.emitter;
    const struct emit_model *model = resolver_model(c->resolver);
    const struct parts_options split = {.by = c->options->split,
                                        .window_ns = c->options->window_ns,
                                        .input_count = (uint32_t)c->inputs.count,
                                        .weighed = c->options->split == PARTS_BY_SERIES ? NULL : &c->weighed,
                                        .sink = c->parts};
    void *state = NULL;

    *parts = NULL;
    if (c->parts) {
        TRY(parts_create(&split, emitter, model, options, parts));
        return emit_consumer_create(&parts_emitter, *parts, emitter->time_order, out);
    }
    struct error *err = emitter->begin(model, options, c->out, &state);
    if (err) {
        emitter->destroy(state);
        return err;
    }
    return emit_consumer_create(emitter, state, emitter->time_order, out);
}

/* Completes the options of the emitter. The resolver is there. */
static struct error *complete_emit_options(struct convert *c, const struct pass *p, struct emit_options *out)
{
    struct emit_options options = c->options->emit;

    options.merged_lines = c->options->stacks.by_function || c->options->stacks.no_lines || c->options->stacks.group;
    options.labels = c->options->stacks.labels;
    options.times_chosen = !time_range_is_open(&c->options->filters.time) || c->options->filters.around;
    options.waits_chosen = p->filter.of_subject[FILTER_LABELS] || p->filter.of_subject[FILTER_SAMPLE] ||
                           stack_map_chooses(resolver_stack_map(c->resolver));
    options.limits = &c->limits.limits;
    if (c->options->sources.count)
        TRY(sources_create(&c->options->sources, &c->limits.limits, &c->sources));
    options.sources = sources_for_emitters(c->sources);
    *out = options;
    return NULL;
}

/* Adds the summary, and what emitters show of it. */
static struct error *add_summary_for_emitter(struct convert *c, struct pass *p, struct emit_options *options)
{
    TRY(add_summary(c, p, &summary_consumer));
    c->summary_output = (struct summary_output){.summary = c->summary, .resolver = c->resolver, .out = c->out};
    summary_for_emitter_init(&c->emit_summary, c->summary, c->resolver);
    options->summary = c->parts ? NULL : &c->emit_summary.emit;
    return NULL;
}

/* `above` is called before the emitter ends; NULL: nothing is. */
static struct error *run_emitter_below(struct convert *c, struct pass *p, const struct consumer *above)
{
    const struct emitter *emitter = c->options->choice.emitter;
    struct emit_options options;
    struct emit_consumer *emit;
    struct parts *parts;

    bool weighs = emitter->wants_weights || (c->parts && c->options->split != PARTS_BY_SERIES);
    for (size_t i = 0; weighs && i < c->inputs.count; i++)
        TRY(input_keep(&c->inputs.data[i]));
    TRY(create_resolver(c, &c->limits.limits, false, &c->resolver));
    p->resolver = c->resolver;
    TRY(complete_emit_options(c, p, &options));
    options.weights_differ = weighs && weights_will_differ(c);
    TRY(add_wall(c, p));
    TRY(add_summary_for_emitter(c, p, &options));
    if (above)
        TRY(pass_add(p, above, &c->summary_output));
    TRY(begin_emitter(c, &options, &parts, &emit));
    TRY(pass_add(p, &emit_consumer, emit));
    if (parts)
        TRY(pass_add(p, &loss_consumer, parts));
    TRY(pass_run(p));
    summary_late(c->summary, emit_consumer_late_count(emit));
    if (parts)
        summary_late(c->summary, parts_late_count(parts));
    summary_print_trouble(c->summary, c->trouble);
    const char *remark = emit_consumer_remark(emit);
    if (remark)
        fprintf(c->trouble, "pysym: %s\n", remark);
    tell_filters(c, !emitter->tells_filters);
    check_strict(c);
    c->outcome->damaged = summary_is_damaged(c->summary);
    return NULL;
}

static struct error *run_emitter(struct convert *c, struct pass *p)
{
    return run_emitter_below(c, p, NULL);
}

/* The input's name if a shell takes it as one word, for commands to be copied; else "FILE". */
static const char *word_of_input(const struct options *o)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/+-";
    const char *name = o->inputs.data[0];

    return o->inputs.count == 1 && *name != '-' && strlen(name) <= 60 && !name[strspn(name, plain)] ? name : "FILE";
}

/* Complete after the pass. */
static bool has_samples(const struct emit_model *m)
{
    for (uint32_t event = 0; event < m->event_count; event++) {
        if (m->totals[event].all_samples)
            return true;
    }
    return false;
}

/* The verdict in short, the hottest functions, and where to go from there. */
static struct error *run_page(struct convert *c, struct pass *p)
{
    const char *name = word_of_input(c->options), *const rows[][2] = {
        {"-o profile.html", "then open it in a browser: flame graph, tables, times"},
        {"-f summary", "processes, threads, what is missing and why"},
    };
    int width = (int)(strlen(name) + 1 + strlen(rows[0][0]));

    TRY(run_emitter_below(c, p, &verdict_consumer));
    if (!has_samples(resolver_model(c->resolver))) {
        fprintf(c->out, "\nNext: pysym %s -f summary -v   how it was recorded, and what was lost\n", name);
        return NULL;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        fprintf(c->out, "%s pysym %s %-*s   %s\n", i ? "     " : "\nNext:", name, width - (int)strlen(name) - 1, rows[i][0], rows[i][1]);
    if (gil_figures_matter(c->summary, c->resolver))
        fprintf(c->out, "      pysym %s %-*s   who holds the GIL: threads wait for it\n", name, width - (int)strlen(name) - 1, "-f gil");
    fprintf(c->out, "      pysym %-*s   other formats, filters by process, function or time\n", width, "--help");
    return NULL;
}

static struct error *run_summary(struct convert *c, struct pass *p)
{
    TRY(create_resolver(c, &c->limits.limits, false, &c->resolver));
    p->resolver = c->resolver;
    TRY(add_summary(c, p, &summary_consumer));
    c->summary_output = (struct summary_output){.summary = c->summary, .resolver = c->resolver,
                                                .verbose = c->options->verbose, .json = c->options->emit.json,
                                                .exporter = c->options->emit.exporter, .out = c->out};
    TRY(pass_add(p, &summary_print_consumer, &c->summary_output));
    TRY(pass_run(p));
    summary_print_trouble(c->summary, c->trouble);
    tell_filters(c, false);
    check_strict(c);
    return NULL;
}

/* The outcome is about stacks alone; other losses do not count. */
static struct error *run_check(struct convert *c, struct pass *p)
{
    TRY(create_resolver(c, &c->limits.limits, false, &c->resolver));
    TRY(unwind_check_create(resolver_modules(c->resolver), &c->check_output.check));
    c->check_output.out = c->out;
    TRY(pass_add(p, &check_consumer, &c->check_output));
    TRY(add_summary(c, p, &summary_files_consumer));
    TRY(pass_run(p));
    summary_print_trouble(c->summary, c->trouble);
    c->outcome->differs = !unwind_check_agrees(c->check_output.check);
    return NULL;
}

static struct error *run_dump(struct convert *c, struct pass *p)
{
    struct dump *dump;

    TRY(dump_create(c->out, &dump));
    TRY(pass_add(p, &dump_consumer, dump));
    TRY(add_summary(c, p, &summary_files_consumer));
    TRY(pass_run(p));
    summary_print_trouble(c->summary, c->trouble);
    check_strict(c);
    return NULL;
}

/*
 * A stream may go on for days: what was resolved of it is kept from epoch to epoch, as long as it is not too much. Then the next
 * epoch, which defines all that it needs, is resolved anew.
 */
static struct error *renew_resolver(void *own, struct pass *p)
{
    const uint64_t most = LIVE_RESOLVED_BYTES;
    struct convert *c = own;
    struct resolver *made;

    if (c->limits.limits.memory_used < (most < c->limits.limits.memory_max / 2 ? most : c->limits.limits.memory_max / 2))
        return NULL;
    TRY(create_resolver(c, &c->limits.limits, false, &made));
    struct error *err = resolver_begin_file(made, p->file.input);
    if (!err)
        err = live_consumer_renew(c->live_consumer, resolver_model(made));
    if (err) {
        resolver_destroy(made);
        return err;
    }
    resolver_destroy(c->resolver);
    c->resolver = p->resolver = made;
    p->renewed = true;
    return NULL;
}

static struct error *run_live(struct convert *c, struct pass *p)
{
    TRY(create_resolver(c, &c->limits.limits, false, &c->resolver));
    p->resolver = c->resolver;
    p->renew = renew_resolver;
    p->renew_own = c;
    TRY(live_consumer_create(c->live, resolver_model(c->resolver), &c->live_consumer));
    TRY(pass_add(p, &live_consumer, c->live_consumer));
    TRY(pass_run(p));
    /* There is no view whose head would say so. */
    if (!atomic_load(&c->live->begun) && !atomic_load(&c->live->stop))
        return error_path(ERROR_FORMAT, c->options->inputs.data[0], "nothing of it could be read: it ends too soon, or is damaged");
    return NULL;
}

/* Adds the emitter of a comparison behind the tally. */
static struct error *add_compared(struct convert *c, struct pass *p, const struct emit_options *options, struct emit_comparison *comparison)
{
    struct emit_options own = *options;
    struct emit_consumer *emit;
    struct parts *parts;

    own.comparison = comparison;
    TRY(begin_emitter(c, &own, &parts, &emit));
    return pass_add(p, &emit_consumer, emit);
}

/*
 * Adds up the samples of the traces, a run for each, in their order. `comparison` goes to the emitter that was chosen; NULL:
 * there is none.
 */
static struct error *run_tally(struct convert *c, struct pass *p, struct run_set *set, struct emit_comparison *comparison)
{
    struct emit_options options;
    struct emit_consumer *emit;
    void *state = NULL;

    if (!c->inputs.count && !comparison)
        return NULL;
    TRY(create_resolver(c, &c->limits.limits, false, &c->resolver));
    p->resolver = c->resolver;
    TRY(complete_emit_options(c, p, &options));
    TRY(add_summary_for_emitter(c, p, &options));
    struct error *err = tally_create(resolver_model(c->resolver), set, &state);
    if (err) {
        tally_emitter.destroy(state);
        return err;
    }
    TRY(emit_consumer_create(&tally_emitter, state, tally_emitter.time_order, &emit));
    TRY(pass_add(p, &emit_consumer, emit));
    if (comparison)
        TRY(add_compared(c, p, &options, comparison));
    TRY(pass_run(p));
    summary_late(c->summary, emit_consumer_late_count(emit));
    summary_print_trouble(c->summary, c->trouble);
    tell_filters(c, true);
    check_strict(c);
    return NULL;
}

static struct error *diff_below(struct convert *c, struct pass *p, struct diff **diff)
{
    const struct options *o = c->options;
    struct report report = {.exporter = o->emit.exporter, .terminal = o->emit.terminal, .top_count = o->emit.top_count,
                            .full_paths = o->emit.full_paths};

    const char *event = o->filters.events.count ? o->filters.events.data[0] : NULL;
    bool is_page = !o->compare.report;
    struct diff_page page;

    TRY(diff_create(&o->compare, &c->limits.limits, diff));
    diff_page_init(&page, *diff, &report, o->inputs.data, o->inputs.count, event);
    TRY(run_tally(c, p, &(*diff)->runs.set, is_page ? &page.emit : NULL));
    if (!is_page)
        TRY(diff_judge(*diff, o->inputs.data, o->inputs.count, event));
    c->outcome->verdict = diff_verdict(*diff);
    return is_page ? NULL : diff_write(*diff, &report, c->out);
}

static struct error *run_diff(struct convert *c, struct pass *p)
{
    struct diff *diff = NULL;
    struct error *err = diff_below(c, p, &diff);

    diff_destroy(diff);
    return err;
}

static struct error *run_baseline(struct convert *c, struct pass *p)
{
    const struct options *o = c->options;
    struct baseline_written what = {0};
    struct gathered_runs runs;

    struct error *err = gathered_init(&runs, &c->limits.limits);
    if (!err)
        err = run_tally(c, p, &runs.set, NULL);
    if (!err)
        err = gathered_complete(&runs, &o->compare, o->inputs.data, o->inputs.count);
    if (!err)
        err = baseline_write(&runs.set, c->out, &what);
    if (!err)
        convert_tell_baseline(c->options, &runs.set, &what, c->trouble);
    gathered_deinit(&runs);
    return err;
}

static struct error *(*const outputs[])(struct convert *, struct pass *) = {[OUTPUT_EMITTER] = run_emitter,
                                                                            [OUTPUT_PAGE] = run_page,
                                                                            [OUTPUT_SUMMARY] = run_summary,
                                                                            [OUTPUT_DUMP] = run_dump,
                                                                            [OUTPUT_UNWIND_CHECK] = run_check,
                                                                            [OUTPUT_LIVE] = run_live,
                                                                            [OUTPUT_DIFF] = run_diff,
                                                                            [OUTPUT_BASELINE] = run_baseline};

struct error *convert_run(const struct options *o, const struct convert_output *out, FILE *trouble,
                          struct convert_outcome *outcome)
{
    struct convert c = {.options = o, .out = out->file, .parts = out->parts, .live = out->live, .trouble = trouble, .outcome = outcome};
    struct pass p = {0};

    *outcome = (struct convert_outcome){0};
    file_limits_init(&c.limits, o->max_memory_bytes);
    process_names_init(&c.names, &c.limits.limits);
    if (options_shows_progress(o))
        progress_init(&c.progress);
    struct error *err = take_inputs(&c);
    if (!err)
        err = scout(&c);
    if (!err)
        err = init_pass(&c, &p);
    if (!err)
        err = outputs[o->choice.kind](&c, &p);
    pass_deinit(&p);
    process_names_deinit(&c.names);
    resolver_destroy(c.resolver);
    sources_destroy(c.sources);
    for (size_t i = 0; i < c.inputs.count; i++)
        input_deinit(&c.inputs.data[i]);
    VEC_DEINIT(&c.inputs);
    VEC_DEINIT(&c.scout.files);
    named_ids_deinit(&c.scout.named);
    intern_deinit(&c.weighed.differ);
    return file_limits_explain(&c.limits, err);
}
