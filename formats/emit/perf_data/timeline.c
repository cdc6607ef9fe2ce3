/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/perf_data/timeline.h"

#define NS_PER_S INT64_C(1000000000)
/* Readers do not sort records with time 0 or with all bits set. */
#define TIME_MAX_NS (INT64_C(1) << 62)

static bool has_clocks(const struct emit_capture *c)
{
    return c->realtime_ns && c->monotonic_ns;
}

/* How far the monotonic clock of a capture is behind that of the first, by the wall clock; 0 if both have one boot. */
static int64_t clock_difference(const struct emit_capture *first, const struct emit_capture *other)
{
    int64_t before, after, difference;

    if (!has_clocks(first) || !has_clocks(other) ||
        __builtin_sub_overflow(first->realtime_ns, first->monotonic_ns, &before) ||
        __builtin_sub_overflow(other->realtime_ns, other->monotonic_ns, &after) ||
        __builtin_sub_overflow(after, before, &difference))
        return 0;
    /* Within one boot the wall clock is only adjusted. */
    return difference > -NS_PER_S && difference < NS_PER_S ? 0 : difference;
}

/* False: it is no time of the axis. */
static bool shifted(const struct timeline *t, uint64_t time_ns, int64_t *out)
{
    return !__builtin_add_overflow(time_ns, t->shift_ns, out) && *out > 0 && *out <= TIME_MAX_NS;
}

static void begin_capture(struct timeline *t, const struct emit_model *model, const struct emit_sample *sample)
{
    int64_t time_ns;

    t->capture = sample->capture;
    t->shift_ns = clock_difference(&model->captures[0], &model->captures[t->capture]);
    if (!t->last_ns || (shifted(t, sample->time_ns, &time_ns) && (uint64_t)time_ns >= t->last_ns))
        return;
    t->moved = true;
    if (__builtin_sub_overflow(t->last_ns, sample->time_ns, &t->shift_ns))
        t->shift_ns = 0;
}

uint64_t timeline_place(struct timeline *t, const struct emit_model *model, const struct emit_sample *sample)
{
    int64_t time_ns;

    if (sample->capture != t->capture)
        begin_capture(t, model, sample);
    if (!shifted(t, sample->time_ns, &time_ns))
        time_ns = sample->time_ns > TIME_MAX_NS ? TIME_MAX_NS : 1;
    if ((uint64_t)time_ns > t->last_ns)
        t->last_ns = (uint64_t)time_ns;
    if (!t->first_ns)
        t->first_ns = t->last_ns;
    return t->last_ns;
}
