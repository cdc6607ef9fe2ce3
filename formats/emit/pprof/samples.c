/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/samples.h"

void pprof_samples_init(struct pprof_samples *s, const struct emit_model *model, const struct emit_options *options)
{
    *s = (struct pprof_samples){.model = model,
                                .merge = options->merge == EMIT_MERGE_DEFAULT ? EMIT_MERGE_THREAD : options->merge,
                                .labels = options->labels,
                                .cpus = options->label_cpu,
                                .limits = options->limits,
                                .owners.arena.limits = options->limits,
                                .row_of.limits = options->limits};
}

void pprof_samples_deinit(struct pprof_samples *s)
{
    intern_deinit(&s->owners);
    limits_give(s->limits, s->rows.count * sizeof *s->rows.data);
    VEC_DEINIT(&s->rows);
    map_deinit(&s->row_of);
    VEC_DEINIT(&s->spans);
}

static uint32_t owner_of(struct pprof_samples *s, const struct emit_sample *sample)
{
    struct pprof_owner o = {.event = sample->event,
                            .thread = sample->thread,
                            .label_set = s->labels ? sample->label_set : PPROF_ANY,
                            .gil = s->labels ? sample->gil : PPROF_ANY,
                            .cpu = s->cpus ? sample->cpu : PPROF_ANY};

    if (s->merge == EMIT_MERGE_ALL)
        o.thread = PPROF_ANY;
    else if (s->merge == EMIT_MERGE_PROCESS)
        o.thread = s->model->threads[sample->thread].process;
    return intern_id(&s->owners, &o, sizeof o, NULL);
}

static bool note_time(struct pprof_samples *s, const struct emit_sample *sample)
{
    if (!VEC_EXTEND_ZERO(&s->spans, (size_t)sample->capture + 1))
        return false;
    struct pprof_span *span = &s->spans.data[sample->capture];
    if (!span->seen)
        *span = (struct pprof_span){sample->time_ns, sample->time_ns, true};
    span->first_ns = sample->time_ns < span->first_ns ? sample->time_ns : span->first_ns;
    span->last_ns = sample->time_ns > span->last_ns ? sample->time_ns : span->last_ns;
    return true;
}

bool pprof_samples_add(struct pprof_samples *s, const struct emit_sample *sample)
{
    uint32_t owner = owner_of(s, sample);
    uint64_t key = (uint64_t)owner << 32 | sample->stack;

    if (owner == INTERN_NONE || !note_time(s, sample))
        return false;
    const uint64_t *known = map_get(&s->row_of, key);
    if (known) {
        struct pprof_row *row = &s->rows.data[*known];
        row->samples = pprof_sum(row->samples, 1);
        row->value = pprof_sum(row->value, sample->value);
        return true;
    }
    return limits_take(s->limits, sizeof(struct pprof_row)) && map_set(&s->row_of, key, s->rows.count) &&
           VEC_PUSH(&s->rows, ((struct pprof_row){.owner = owner, .stack = sample->stack, .samples = 1,
                                                  .value = pprof_sum(0, sample->value)}));
}
