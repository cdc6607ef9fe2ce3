/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/threads/facts.h"

#include <string.h>

uint32_t threads_own_stack(const struct emit_model *m, uint32_t stack)
{
    return stack != EMIT_NO_STACK && m->frames[m->stacks[stack].frame].wait ? m->stacks[stack].parent : stack;
}

const char *threads_label(const struct emit_label_set *set, const char *key)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (!strcmp(set->labels[i].key, key))
            return set->labels[i].value;
    }
    return NULL;
}

const char *const threads_states[EMIT_WAITS] = {"on CPU", "blocked", "uninterruptible", "lock", "run queue", "preempted", "stopped",
                                                "GIL", "stop the world", "asleep", "task", "future", "event loop", "other"};

const char *threads_state_of(const struct shown_thread *e)
{
    static const char *const words[EMIT_STATES] = {[EMIT_STATE_UNKNOWN] = "unknown", [EMIT_STATE_RUNS] = "on CPU",
                                                   [EMIT_STATE_SLEEPS] = "asleep", [EMIT_STATE_UNINTERRUPTIBLE] = "uninterruptible",
                                                   [EMIT_STATE_STOPPED] = "stopped", [EMIT_STATE_TRACED] = "traced",
                                                   [EMIT_STATE_ENDED] = "ended"};

    if (e->state && (e->slept_since || e->newest->stackless))
        return words[e->state->state];
    if (e->still && e->waits != EMIT_WAIT_NONE)
        return threads_states[e->waits];
    return threads_is_now(e) || (e->state && e->state->state == EMIT_STATE_RUNS) ? threads_states[EMIT_WAIT_NONE] : "ran";
}

bool threads_is_now(const struct shown_thread *e)
{
    bool is_there = (e->still || e->waits == EMIT_WAIT_PREEMPTED) && !e->slept_since; /* where its newest stack was taken */

    return e->newest->stackless || (is_there && e->ago_ns <= THREADS_NOW_NS);
}

uint64_t threads_waited_ns(const struct shown_thread *e, bool *known)
{
    const struct thread_newest *n = e->newest;
    bool sleeps = e->state && e->state->since_ns && e->state->since_ns <= e->state->time_ns;

    *known = sleeps || n->since_known;
    if (e->slept_since || n->stackless)
        return sleeps ? e->state->time_ns - e->state->since_ns : 0;
    return n->time_ns - (sleeps && e->waits != EMIT_WAIT_RUN_QUEUE && e->state->since_ns <= n->time_ns ? e->state->since_ns : n->since_ns);
}
