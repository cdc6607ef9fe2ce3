/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/compare/gather.h"

#include "formats/compare/baseline.h"
#include "symbolize/compare/work.h"

struct error *gathered_init(struct gathered_runs *g, struct limits *limits)
{
    *g = (struct gathered_runs){0};
    return run_set_init(&g->set, limits) ? NULL : error_no_memory();
}

void gathered_deinit(struct gathered_runs *g)
{
    VEC_DEINIT(&g->old_runs);
    VEC_DEINIT(&g->new_runs);
    run_set_deinit(&g->set);
}

/* Puts the runs from `first` on on a side. */
static struct error *take_runs(struct gathered_runs *g, size_t first, size_t end, bool is_old)
{
    for (size_t run = first; run < end; run++) {
        if (!(is_old ? VEC_PUSH(&g->old_runs, (uint32_t)run) : VEC_PUSH(&g->new_runs, (uint32_t)run)))
            return error_no_memory();
    }
    return NULL;
}

static struct error *read_baselines(struct gathered_runs *g, const struct option_texts *paths, bool is_old)
{
    for (size_t i = 0; i < paths->count; i++) {
        size_t before = g->set.runs.count;
        TRY(baseline_read(paths->data[i], &g->set));
        TRY(take_runs(g, before, g->set.runs.count, is_old));
    }
    return NULL;
}

static struct error *check_distinct(const struct gathered_runs *g)
{
    const struct run_set *set = &g->set;

    for (size_t i = 0; i < set->runs.count; i++) {
        if (!limits_work(set->limits, 2 * (uint64_t)i))
            return error_no_memory();
        for (size_t k = 0; k < i; k++) {
            const struct run *a = &set->runs.data[k], *b = &set->runs.data[i];
            if (run_is_same(a, b))
                return error_create(ERROR_USAGE, "%s and %s are the same recording: a run counts but once", run_set_text_get(set, a->name),
                                    run_set_text_get(set, b->name));
        }
    }
    return NULL;
}

struct error *gathered_complete(struct gathered_runs *g, const struct compare_request *request, const char *const *paths, size_t path_count)
{
    TRY(take_runs(g, 0, request->old_count, true));
    TRY(take_runs(g, request->old_count, path_count, false));
    TRY(read_baselines(g, &request->old_baselines, true));
    TRY(read_baselines(g, &request->new_baselines, false));
    TRY(check_distinct(g));
    if (request->work_note)
        work_take_notes(&g->set, request->work_note);
    return request->work ? work_read_file(request->work, &g->set, paths, path_count) : NULL;
}
