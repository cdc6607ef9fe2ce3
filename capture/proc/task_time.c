/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a thread that is running the kernel counts in steps, at its ticks. So a look may see less than has been used, and the
 * next one more than has passed: then the account runs ahead of the clock until that has caught up.
 */
#include "capture/proc/task_time.h"

static uint64_t added(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

void task_time_look(struct task_time *t, const struct task_schedstat *now, uint64_t time_ns)
{
    if (!t->since_ns) {
        t->since_ns = t->until_ns = time_ns;
        t->last = *now;
        return;
    }
    uint64_t run_ns = added(t->last.run_ns, now->run_ns), queued_ns = added(t->last.queued_ns, now->queued_ns);
    uint64_t asleep_ns = added(t->until_ns + run_ns + queued_ns, time_ns);
    t->run_ns += run_ns;
    t->queued_ns += queued_ns;
    t->queue_owed_ns += queued_ns;
    t->asleep_ns += asleep_ns;
    t->asleep_owed_ns += asleep_ns;
    t->arrivals += added(t->last.arrivals, now->arrivals);
    t->until_ns += run_ns + queued_ns + asleep_ns;
    t->last = *now;
}

void task_time_sleeps(struct task_time *t, uint64_t time_ns)
{
    uint64_t asleep_ns = added(t->until_ns, time_ns);

    t->asleep_ns += asleep_ns;
    t->until_ns += asleep_ns;
}

bool task_time_ran(const struct task_time *t, const struct task_schedstat *now)
{
    return now->run_ns != t->last.run_ns || now->arrivals != t->last.arrivals;
}
