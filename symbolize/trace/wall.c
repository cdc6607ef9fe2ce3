/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/trace/wall.h"

#include <stdbool.h>
#include <string.h>

enum wall_part wall_part_of(const struct epoch *e, uint32_t event)
{
    enum event_value kind = epoch_event_kind(e, event);

    return kind == EVENT_CPU_TIME ? WALL_ON_CPU : kind == EVENT_OFF_CPU ? WALL_OFF_CPU : WALL_NOTHING;
}

static bool is_chosen(const struct option_texts *chosen, const char *name)
{
    for (size_t i = 0; i < chosen->count; i++) {
        if (!strcmp(chosen->data[i], name))
            return true;
    }
    return !chosen->count;
}

struct error *wall_check(const struct epoch *e, const struct option_texts *chosen, const char *name)
{
    const char *clock = NULL, *second = NULL, *counted = NULL;
    bool waits = false;

    for (uint32_t event = 1; event < e->events.count; event++) {
        const struct trace_event *def = &e->events.data[event].def;
        const char *event_name = epoch_text(e, def->name);
        enum wall_part part = wall_part_of(e, event);
        if (!is_chosen(chosen, event_name))
            continue;
        waits |= part == WALL_OFF_CPU;
        if (part == WALL_ON_CPU)
            *(clock && strcmp(clock, event_name) ? &second : &clock) = event_name;
        else if (part == WALL_NOTHING && def->kind == TRACE_EVENT_ON_CPU)
            counted = event_name;
    }
    if (second)
        return error_create(ERROR_USAGE, "--wall: the clocks %s and %s of %s count the same time: choose one, like --event %s "
                                         "--event off-cpu", clock, second, name, clock);
    if (!waits)
        return error_create(ERROR_USAGE, "--wall: %s does not say where threads waited: record with pycap record --wall", name);
    if (!clock && counted)
        return error_create(ERROR_USAGE, "--wall: %s counts %s while threads run, and how long that took is not known: record "
                                         "with pycap record --wall", name, counted);
    if (!clock)
        return error_create(ERROR_USAGE, "--wall: %s says where threads waited, but not where they ran: record with pycap record "
                                         "--wall, or show --event off-cpu", name);
    return NULL;
}
