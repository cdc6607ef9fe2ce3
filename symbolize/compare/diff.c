/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/compare/diff.h"

#include <stdlib.h>

#include "formats/compare/report/page.h"

static struct error *read_rules(struct diff *d)
{
    const struct compare_request *r = d->request;

    d->gate = gate_create();
    if (!d->gate)
        return error_no_memory();
    if (r->budget)
        TRY(gate_add_file(d->gate, r->budget));
    for (size_t i = 0; i < r->rules.count; i++)
        TRY(gate_add(d->gate, r->rules.data[i], "--fail-on"));
    return r->looks ? gate_set_look(d->gate, r->look, r->looks) : NULL;
}

struct error *diff_create(const struct compare_request *request, struct limits *limits, struct diff **out)
{
    struct diff *d = calloc(1, sizeof *d);

    *out = d;
    if (!d)
        return error_no_memory();
    d->request = request;
    TRY(gathered_init(&d->runs, limits));
    if (request->old_source)
        TRY(source_maps_create(request->old_source, request->new_source, limits, &d->maps));
    return read_rules(d);
}

void diff_destroy(struct diff *d)
{
    if (!d)
        return;
    comparison_deinit(&d->comparison);
    gate_destroy(d->gate);
    source_maps_destroy(d->maps);
    gathered_deinit(&d->runs);
    free(d);
}

static bool is_ignored(void *ctx, const char *file, const char *function)
{
    return gate_ignores(((const struct diff *)ctx)->gate, file, function);
}

static uint32_t new_line(void *ctx, const char *old_file, const char *new_file, uint32_t old_line)
{
    return source_maps_line(((const struct diff *)ctx)->maps, old_file, new_file, old_line);
}

struct error *diff_judge(struct diff *d, const char *const *paths, size_t path_count, const char *event)
{
    struct gathered_runs *g = &d->runs;
    struct compare_options options = {.event = event, .force = d->request->force, .is_ignored = is_ignored,
                                      .new_line = d->maps ? new_line : NULL, .ctx = d};

    TRY(gathered_complete(g, d->request, paths, path_count));
    TRY(compare_runs(&g->set, g->old_runs.data, g->old_runs.count, g->new_runs.data, g->new_runs.count, &options, &d->comparison));
    if (d->maps)
        TRY(source_maps_error(d->maps));
    return gate_judge(d->gate, &d->comparison, &d->results, &d->result_count);
}

static void complete_report(const struct diff *d, struct report *report)
{
    report->comparison = &d->comparison;
    report->results = d->results;
    report->result_count = d->result_count;
    report->undecided_fails = gate_undecided_fails(d->gate);
}

struct error *diff_write(struct diff *d, struct report *report, FILE *out)
{
    complete_report(d, report);
    return d->request->report->write(report, out);
}

static struct error *write_page(struct emit_comparison *comparison, FILE *out)
{
    struct diff_page *p = (struct diff_page *)comparison; /* its first member */

    TRY(diff_judge(p->diff, p->paths, p->path_count, p->event));
    complete_report(p->diff, p->report);
    return report_page(p->report, p->path_count, out);
}

void diff_page_init(struct diff_page *p, struct diff *d, struct report *report, const char *const *paths, size_t path_count, const char *event)
{
    *p = (struct diff_page){.emit = {write_page}, .diff = d, .report = report, .paths = paths, .path_count = path_count, .event = event};
}

enum gate_answer diff_verdict(const struct diff *d)
{
    enum gate_answer worst = GATE_KEPT;

    for (size_t i = 0; i < d->result_count; i++) {
        enum gate_answer answer = d->results[i].answer;
        if (answer > worst && (answer != GATE_UNDECIDED || gate_undecided_fails(d->gate)))
            worst = answer;
    }
    return worst;
}
