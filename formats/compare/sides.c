/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the event that is compared. */
#include "formats/compare/sides.h"

/* The event's part of the run; NULL: the run has none of it. */
static const struct run_event *event_of(const struct run_set *set, const struct run *run, uint32_t name)
{
    const struct run_event *e = run_event_find(set, run, run_set_text_get(set, name));

    return e && e->samples ? e : NULL;
}

static bool all_have(const struct sides *s, uint32_t name)
{
    for (size_t i = 0; i < s->runs.count; i++)
        if (!event_of(s->set, s->runs.data[i].run, name))
            return false;
    return true;
}

/* CPU time, else the first of the first run's events that all runs have; RUN_SET_NONE: there is none. */
static uint32_t choose_event(const struct sides *s)
{
    const struct run *first = s->runs.data[0].run;
    uint32_t chosen = RUN_SET_NONE;

    for (size_t i = 0; i < first->events.count; i++) {
        const struct run_event *e = &first->events.data[i];
        if (!all_have(s, e->name))
            continue;
        if (event_is_running(e->kind))
            return e->name;
        if (chosen == RUN_SET_NONE)
            chosen = e->name;
    }
    return chosen;
}

/* A text of the set by its bytes; RUN_SET_NONE: no run has it. */
static uint32_t event_named(const struct sides *s, const char *name)
{
    for (size_t i = 0; i < s->runs.count; i++) {
        const struct run_event *e = run_event_find(s->set, s->runs.data[i].run, name);
        if (e)
            return e->name;
    }
    return RUN_SET_NONE;
}

/* Says which run has no samples of the event, or that no event is in all. */
static struct error *no_event(const struct sides *s, uint32_t name, const char *asked)
{
    if (!asked)
        return error_create(ERROR_UNSUPPORTED, "the captures have no event in common that has samples in all of them");
    for (size_t i = 0; i < s->runs.count; i++)
        if (name == RUN_SET_NONE || !event_of(s->set, s->runs.data[i].run, name))
            return error_create(ERROR_UNSUPPORTED, "%s has no samples of the event %s",
                                run_set_text_get(s->set, s->runs.data[i].run->name), asked);
    return NULL;
}

static bool add_runs(struct sides *s, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &s->set->runs.data[numbers[i]];
        if (!VEC_PUSH(&s->runs, ((struct side_run){.number = numbers[i], .run = run})))
            return false;
    }
    return true;
}

struct error *sides_init(struct sides *s, struct run_set *set, const uint32_t *old_runs, size_t old_count,
                         const uint32_t *new_runs, size_t new_count, const char *event)
{
    *s = (struct sides){.set = set, .old_count = old_count};
    if (!old_count || !new_count)
        return error_create(ERROR_USAGE, "there are no %s runs to compare", old_count ? "new" : "old");
    if (!add_runs(s, old_runs, old_count) || !add_runs(s, new_runs, new_count))
        return error_no_memory();
    uint32_t name = event ? event_named(s, event) : choose_event(s);
    if (name == RUN_SET_NONE || !all_have(s, name))
        return no_event(s, name, event);
    for (size_t i = 0; i < s->runs.count; i++) {
        struct side_run *r = &s->runs.data[i];
        r->event = event_of(set, r->run, name);
        double mean = r->event->total / (double)r->event->samples;
        r->weight = r->event->weight > 0 && isfinite(r->event->weight) ? r->event->weight : mean;
        if (!(r->weight > 0 && isfinite(r->weight)))
            return error_create(ERROR_FORMAT, "%s: the samples of %s weigh nothing", run_set_text_get(set, r->run->name),
                                run_set_text_get(set, name));
    }
    return NULL;
}

void sides_deinit(struct sides *s)
{
    VEC_DEINIT(&s->runs);
}
