/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/firefox/times.h"

#include <inttypes.h>

#include "formats/base/clock.h"
#include "formats/emit/capture_facts.h"

enum { USUAL_HZ = 100 };

void firefox_times_deinit(struct firefox_times *t)
{
    VEC_DEINIT(&t->intervals);
    VEC_DEINIT(&t->lasts);
}

static uint64_t find_interval(const struct emit_model *m, uint32_t event)
{
    const struct emit_rate rate = first_rate_of(m, event);
    uint64_t interval = rate.frequency_hz ? NS_PER_S / rate.frequency_hz : rate.period;

    return event_is_time(m->events[event].kind) && interval && interval < NS_PER_S ? interval : NS_PER_S / USUAL_HZ;
}

uint64_t firefox_interval(struct firefox_times *t, uint32_t event)
{
    if (!VEC_EXTEND_ZERO(&t->intervals, (size_t)event + 1))
        return 0;
    if (!t->intervals.data[event])
        t->intervals.data[event] = find_interval(t->model, event);
    return t->intervals.data[event];
}

uint64_t firefox_time_of(const struct emit_model *m, const struct emit_sample *sample)
{
    uint64_t start_ns = sample->capture < m->capture_count ? m->captures[sample->capture].start_ns : 0;

    return sample->time_ns > start_ns ? sample->time_ns - start_ns : 0;
}

uint64_t firefox_start(const struct emit_model *m)
{
    uint64_t start = 0;

    for (uint32_t i = 0; i < m->capture_count; i++) {
        uint64_t own = m->captures[i].start_realtime_ns;
        start = own && (!start || own < start) ? own : start;
    }
    return start;
}

uint64_t firefox_capture_start(const struct emit_model *m, uint32_t capture)
{
    uint64_t own = capture < m->capture_count ? m->captures[capture].start_realtime_ns : 0;

    return own ? own - firefox_start(m) : 0;
}

bool firefox_times_note(struct firefox_times *t, const struct emit_sample *sample)
{
    uint64_t time_ns = firefox_time_of(t->model, sample);

    if (!VEC_EXTEND_ZERO(&t->lasts, (size_t)sample->capture + 1))
        return false;
    uint64_t *last = &t->lasts.data[sample->capture];
    *last = time_ns > *last ? time_ns : *last;
    return true;
}

uint64_t firefox_end(const struct firefox_times *t)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < t->model->capture_count || i < t->lasts.count; i++) {
        uint64_t own = i < t->model->capture_count ? t->model->captures[i].duration_ns : 0;
        uint64_t last = i < t->lasts.count ? t->lasts.data[i] : 0;
        uint64_t at = firefox_capture_start(t->model, i) + (own > last ? own : last);
        end = at > end ? at : end;
    }
    return end;
}

void firefox_put_ms(uint64_t ns, struct buf *out)
{
    uint64_t part = ns % NS_PER_MS;
    int digits = 6;

    buf_printf(out, "%" PRIu64, ns / NS_PER_MS);
    if (!part)
        return;
    for (; part % 10 == 0; part /= 10)
        digits--;
    buf_printf(out, ".%0*" PRIu64, digits, part);
}
