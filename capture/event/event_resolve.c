/* SPDX-License-Identifier: Apache-2.0 */
/* What only this host knows of events that the user named: the numbers of tracepoints, the types and bits of PMUs. */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/event_made.h"
#include "capture/event/pmu.h"
#include "capture/event/tracefs.h"

static struct error *about(const struct event_source *source, struct error *why)
{
    if (!why)
        return NULL;
    struct error *err = error_create(why->code, "event %s: %s", source->name, error_text(why));
    error_destroy(why);
    return err;
}

/* Fields that say how much there is at the hit, not how much more: a sum of them says nothing. */
static const struct {
    const char *category, *point, *field;
} levels[] = {
    {"kmem", "rss_stat", "size"},
};

static struct error *check_weight(const struct event_source *source)
{
    for (size_t i = 0; source->weight && i < sizeof levels / sizeof *levels; i++) {
        if (!strcmp(source->category, levels[i].category) && !strcmp(source->point, levels[i].point) &&
            !strcmp(source->weight, levels[i].field))
            return error_create(ERROR_USAGE, "its field '%s' says how much memory there is at that moment, not how much more, so it "
                                "cannot be added up; -e page-faults and -e memory-growth show what grows", source->weight);
    }
    return NULL;
}

static struct error *resolve_tracepoint(struct event_source *source, int *tracefs)
{
    TRY(check_weight(source));
    if (*tracefs < 0)
        TRY(tracefs_open(tracefs));
    TRY(tracepoint_find(*tracefs, source->category, source->point, source->weight, &source->tracepoint));
    source->type = PERF_TYPE_TRACEPOINT;
    source->config = source->tracepoint.id;
    return NULL;
}

static struct error *resolve_pmu(struct event_made *made, const struct event_places *places)
{
    struct event_source *source = &made->source;
    struct pmu_event event;

    TRY(pmu_find(places && places->devices ? places->devices : PMU_DEVICES, source->device, source->terms, &event));
    source->type = event.type;
    source->config = event.config[0];
    source->config1 = event.config[1];
    source->config2 = event.config[2];
    memcpy(made->cpus, event.cpus, sizeof event.cpus);
    source->cpus = *made->cpus ? made->cpus : NULL;
    return NULL;
}

bool event_counts_on(const struct event_source *source, int cpu)
{
    if (!event_has_counter(source) || !source->cpus)
        return event_has_counter(source);
    for (const char *at = source->cpus; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (first <= cpu && cpu <= last)
            return true;
        at = end + strcspn(end, ",");
        at += *at == ',';
    }
    return false;
}

struct error *event_list_resolve(struct event_list *events, const struct event_places *places)
{
    int given = places ? places->tracefs : -1, tracefs = given;
    struct error *err = NULL;

    for (uint32_t i = 0; !err && i < events->count; i++) {
        struct event_made *made = event_made_of(&events->list[i]);
        if (made && made->source.category)
            err = about(&made->source, resolve_tracepoint(&made->source, &tracefs));
        else if (made && made->source.device)
            err = about(&made->source, resolve_pmu(made, places));
    }
    if (tracefs != given)
        close(tracefs);
    return err;
}
