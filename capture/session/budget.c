/* SPDX-License-Identifier: Apache-2.0 */
/* One step down at most for each look, up only after a calm while. */
#include "capture/session/budget.h"

#include "formats/base/clock.h"

/* How long nothing must have been amiss before the rate goes up. */
#define CALM_NS (10 * NS_PER_S)
/* A step is aimed a little below the limit, or the next second would need another. */
#define AIM 0.9
/* So small a part of the samples may be lost in a second: who can have a few lost must not lower everybody's rate. */
#define LOST 0.01
/* Of the CPU allowed: with less in use the rate may go up. */
#define ROOM 0.6
/* Of the CPU allowed: so much is left to what depends on the rate, however much the rest takes. Else there would be no samples. */
#define LEFT 0.25

void budget_init(struct budget *b, const struct budget_options *options, const struct budget_use *now)
{
    *b = (struct budget){
        .options = *options,
        .rate = options->rate,
        .calm_since_ns = now->time_ns,
        .last = *now,
    };
}

static bool lower(struct budget *b, double factor, uint64_t time_ns)
{
    uint64_t to = (uint64_t)((double)b->rate * factor), least = b->options.least ? b->options.least : 1;

    b->calm_since_ns = time_ns;
    if (to < least)
        to = least;
    if (to >= b->rate)
        return false;
    b->rate = to;
    b->steps++;
    return true;
}

/* The rate is halved when half of the bytes are used, again at three quarters, at seven eighths … */
static bool bytes_step_due(const struct budget *b, uint64_t bytes)
{
    uint64_t left = b->options.max_bytes - bytes;

    return b->byte_steps < 32 && left <= b->options.max_bytes >> (b->byte_steps + 1);
}

static double share(uint64_t now, uint64_t then, uint64_t whole)
{
    return whole ? (double)(now - then) / (double)whole : 0;
}

/* By what factor the rate has to change for what depends on it to take no more than is left of max_cpu. */
static double cpu_factor(const struct budget *b, double cpu, double fixed)
{
    double most = b->options.max_cpu, left = most - fixed > LEFT * most ? most - fixed : LEFT * most;

    return cpu - fixed > left ? AIM * left / (cpu - fixed) : 1;
}

/* The same for a buffer that had no room for this part of the samples; never less than a half. */
static double lost_factor(double lost)
{
    double kept = AIM * (1 - lost);

    return kept > 0.5 ? kept : 0.5;
}

enum budget_reason budget_step(struct budget *b, const struct budget_use *now)
{
    const struct budget_options *o = &b->options;
    uint64_t wall_ns = now->time_ns - b->last.time_ns;
    double cpu = share(now->cpu_ns, b->last.cpu_ns, wall_ns), fixed = share(now->fixed_ns, b->last.fixed_ns, wall_ns);
    double lost = share(now->lost, b->last.lost, now->lost - b->last.lost + now->sampled - b->last.sampled);

    b->last = *now;
    if (o->max_cpu > 0 && fixed > o->max_cpu && fixed > b->fixed)
        b->fixed = fixed;
    if (o->max_bytes && now->bytes >= o->max_bytes)
        return BUDGET_END;
    if (o->max_bytes && bytes_step_due(b, now->bytes)) {
        while (bytes_step_due(b, now->bytes))
            b->byte_steps++;
        return lower(b, 0.5, now->time_ns) ? BUDGET_BYTES : BUDGET_UNCHANGED;
    }
    if (lost > LOST)
        return lower(b, lost_factor(lost), now->time_ns) ? BUDGET_LOST : BUDGET_UNCHANGED;
    if (o->max_cpu > 0 && cpu > o->max_cpu)
        return lower(b, cpu_factor(b, cpu, fixed), now->time_ns) ? BUDGET_CPU : BUDGET_UNCHANGED;
    if (o->max_memory && now->memory > o->max_memory)
        return lower(b, 0.5, now->time_ns) ? BUDGET_MEMORY : BUDGET_UNCHANGED;
    if (o->max_cpu > 0 && cpu > ROOM * o->max_cpu)
        b->calm_since_ns = now->time_ns;
    uint64_t most = o->rate >> (b->byte_steps < 63 ? b->byte_steps : 63);
    if (b->rate < most && now->time_ns - b->calm_since_ns >= CALM_NS) {
        uint64_t to = b->rate + (b->rate + 1) / 2;
        b->rate = to < most ? to : most;
        b->calm_since_ns = now->time_ns;
        return BUDGET_ROOM;
    }
    return BUDGET_UNCHANGED;
}

const char *budget_reason_text(enum budget_reason reason)
{
    static const char *const text[] = {
        [BUDGET_UNCHANGED] = "",
        [BUDGET_LOST] = "the buffer was full",
        [BUDGET_CPU] = "--max-cpu was reached",
        [BUDGET_BYTES] = "the file grows towards --max-size",
        [BUDGET_MEMORY] = "--max-memory was reached",
        [BUDGET_ROOM] = "there is room again",
        [BUDGET_END] = "--max-size was reached",
    };

    return text[reason];
}
