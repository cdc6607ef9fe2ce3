/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/when/judge.h"

#include <string.h>

#include "formats/base/clock.h"

#define STEPS 8
#define STEP_LEAST_NS (50 * NS_PER_MS)
#define STEP_MOST_NS (500 * NS_PER_MS)

static uint64_t step_ns(const struct when_condition *c)
{
    uint64_t ns = c->for_ns / STEPS;

    return ns < STEP_LEAST_NS ? STEP_LEAST_NS : ns > STEP_MOST_NS ? STEP_MOST_NS : ns;
}

void when_judge_init(struct when_judge *j, const struct when_condition *conditions, uint32_t count)
{
    memset(j, 0, sizeof *j);
    j->conditions = conditions;
    j->count = count;
}

uint64_t when_judge_interval_ns(const struct when_judge *j)
{
    uint64_t least = STEP_MOST_NS;

    for (uint32_t i = 0; i < j->count; i++) {
        uint64_t ns = step_ns(&j->conditions[i]);
        if (ns < least)
            least = ns;
    }
    return least;
}

static double average(const struct when_look *from, const struct when_look *to, enum when_fact fact)
{
    return (double)(to->total_ns[fact] - from->total_ns[fact]) / (double)(to->time_ns - from->time_ns);
}

/* Whether the condition holds now that the step which ends with this look is over. */
static bool holds(struct when_state *state, const struct when_condition *c, const struct when_look *look)
{
    struct when_look last = state->last;

    state->last = *look;
    if (!last.time_ns)
        return false;
    if (average(&last, look, c->fact) <= c->limit) {
        state->exceeded &= !state->below;
        state->below = true;
        return false;
    }
    state->below = false;
    if (!state->exceeded)
        state->since = last;
    state->exceeded = true;
    return look->time_ns - state->since.time_ns >= c->for_ns && average(&state->since, look, c->fact) > c->limit;
}

uint32_t when_judge_look(struct when_judge *j, const struct when_look *look, double *level)
{
    uint32_t found = WHEN_NONE;

    for (uint32_t i = 0; i < j->count; i++) {
        const struct when_condition *c = &j->conditions[i];
        struct when_state *state = &j->state[i];
        if (state->last.time_ns && look->time_ns < state->last.time_ns + step_ns(c))
            continue;
        state->holds = holds(state, c, look);
        if (state->holds && (!state->had_event || look->time_ns - state->event_ns >= c->every_ns) && found == WHEN_NONE)
            found = i;
    }
    if (found == WHEN_NONE)
        return found;
    /* It is the event of all that hold. */
    for (uint32_t i = 0; i < j->count; i++) {
        if (!j->state[i].holds)
            continue;
        j->state[i].had_event = true;
        j->state[i].event_ns = look->time_ns;
    }
    *level = average(&j->state[found].since, look, j->conditions[found].fact);
    return found;
}
