/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/captures.h"

#include <string.h>

#include "formats/emit/capture_facts.h"

void captures_deinit(struct captures *c)
{
    for (size_t i = 0; i < c->lists.count; i++) {
        VEC_DEINIT(&c->lists.data[i].settings);
        VEC_DEINIT(&c->lists.data[i].rates);
        VEC_DEINIT(&c->lists.data[i].losses);
    }
    VEC_DEINIT(&c->lists);
    VEC_DEINIT(&c->list);
}

static struct emit_capture *newest(struct captures *c)
{
    return &c->list.data[c->list.count - 1];
}

static struct capture_lists *newest_lists(struct captures *c)
{
    return &c->lists.data[c->lists.count - 1];
}

/* The model's copy of a text; NULL when memory ran out. */
static const char *keep(struct captures *c, const char *text)
{
    uint32_t number = model_text(c->model, text, strlen(text));

    return number == MODEL_NONE ? NULL : model_text_get(c->model, number);
}

bool captures_begin(struct captures *c, const char *name)
{
    struct emit_capture capture = {
        .name = keep(c, name), .hostname = "", .kernel_release = "", .machine = "", .cpu_model = "", .recorder = ""};

    if (!capture.name || !VEC_PUSH(&c->lists, (struct capture_lists){0}) || !VEC_PUSH(&c->list, capture))
        return false;
    c->has_start = c->has_clock = false;
    c->model->view.captures = c->list.data;
    c->model->view.capture_count = (uint32_t)c->list.count;
    return true;
}

/* The clocks' difference dates the start. */
static void date_start(struct captures *c)
{
    struct emit_capture *capture = newest(c);

    if (c->has_start && c->has_clock)
        capture->start_realtime_ns = capture_realtime_ns(capture, capture->start_ns);
}

static void take_epoch(struct captures *c, const struct trace_epoch *epoch)
{
    if (!c->has_start)
        newest(c)->start_ns = epoch->time_ns;
    c->has_start = true;
    captures_saw_time(c, epoch->time_ns);
    date_start(c);
}

static void take_clock(struct captures *c, const struct trace_clock *clock)
{
    struct emit_capture *capture = newest(c);

    if (c->has_clock)
        return;
    capture->monotonic_ns = clock->monotonic_ns;
    capture->realtime_ns = clock->realtime_ns;
    capture->boottime_ns = clock->boottime_ns;
    c->has_clock = true;
    date_start(c);
}

static bool take_host(struct captures *c, const struct epoch *e, const struct trace_host *host)
{
    struct emit_capture *capture = newest(c);

    capture->hostname = keep(c, epoch_text(e, host->hostname));
    capture->kernel_release = keep(c, epoch_text(e, host->kernel_release));
    capture->machine = keep(c, epoch_text(e, host->machine));
    capture->cpu_model = keep(c, epoch_text(e, host->cpu_model));
    capture->recorder = keep(c, epoch_text(e, host->tool));
    capture->memory_bytes = host->memory_bytes;
    capture->cpu_count = host->cpu_count;
    capture->page_size = host->page_size;
    return capture->hostname && capture->kernel_release && capture->machine && capture->cpu_model &&
           capture->recorder;
}

static bool take_setting(struct captures *c, const struct epoch *e, const struct trace_meta *meta)
{
    struct emit_setting setting = {keep(c, epoch_text(e, meta->key)), keep(c, epoch_text(e, meta->value))};
    struct capture_lists *lists = newest_lists(c);

    if (!setting.key || !setting.value)
        return false;
    if (!limits_work(c->model->limits, lists->settings.count))
        return false;
    for (size_t i = 0; i < lists->settings.count; i++) {
        if (lists->settings.data[i].key == setting.key) {
            lists->settings.data[i].value = setting.value;
            return true;
        }
    }
    if (!VEC_PUSH(&lists->settings, setting))
        return false;
    newest(c)->settings = lists->settings.data;
    newest(c)->setting_count = (uint32_t)lists->settings.count;
    return true;
}

uint32_t captures_find_rate(const struct captures *c, uint32_t event)
{
    const struct capture_lists *lists = &c->lists.data[c->lists.count - 1];

    for (size_t i = 0; i < lists->rates.count; i++) {
        if (lists->rates.data[i].event == event)
            return (uint32_t)i;
    }
    return CAPTURES_NO_RATE;
}

static bool take_event(struct captures *c, const struct epoch *e, const struct trace_event *event)
{
    struct capture_lists *lists = newest_lists(c);
    struct emit_rate rate = {.event = model_event_of(c->model, e, event->id),
                             .frequency_hz = event->frequency_hz,
                             .period = event->period};
    if (rate.event == MODEL_NONE)
        return false;
    if (!limits_work(c->model->limits, lists->rates.count))
        return false;
    if (captures_find_rate(c, rate.event) != CAPTURES_NO_RATE)
        return true;
    if (!VEC_PUSH(&lists->rates, rate))
        return false;
    newest(c)->rates = lists->rates.data;
    newest(c)->rate_count = (uint32_t)lists->rates.count;
    return true;
}

static void take_ticks(struct captures *c, const struct epoch *e, const struct trace_ticks *ticks)
{
    uint32_t event = model_event_of(c->model, e, ticks->event), rate = captures_find_rate(c, event);
    uint64_t busy = ticks->seen - ticks->idle;

    if (rate == CAPTURES_NO_RATE || ticks->idle > ticks->seen || ticks->unsampled > busy)
        return;
    struct emit_rate *known = &newest_lists(c)->rates.data[rate];
    known->busy_ticks += busy;
    known->own_ticks += busy - ticks->unsampled;
}

static bool take_loss(struct captures *c, const struct epoch *e, const struct trace_loss *loss)
{
    const char *name = trace_loss_name(loss->reason), *meaning = trace_loss_meaning(loss->reason);
    struct emit_loss counted = {.name = keep(c, name ? name : epoch_text(e, loss->name)),
                                .meaning = meaning ? meaning : "",
                                .event = keep(c, epoch_text(e, e->events.data[loss->event].def.name)),
                                .count = loss->count,
                                .is_sample = loss_class_is_sample(trace_loss_class(loss->reason)),
                                .is_everywhere = loss->reason == LOSS_tick_skipped};
    struct capture_lists *lists = newest_lists(c);

    if (!loss->count || loss->reason == LOSS_complete)
        return true;
    if (!counted.name || !counted.event)
        return false;
    if (!limits_work(c->model->limits, lists->losses.count))
        return false;
    for (size_t i = 0; i < lists->losses.count; i++) {
        if (lists->losses.data[i].name == counted.name && lists->losses.data[i].event == counted.event) {
            lists->losses.data[i].count += counted.count;
            return true;
        }
    }
    if (!VEC_PUSH(&lists->losses, counted))
        return false;
    newest(c)->losses = lists->losses.data;
    newest(c)->loss_count = (uint32_t)lists->losses.count;
    return true;
}

bool captures_record(struct captures *c, const struct epoch *e, const struct trace_record *rec)
{
    switch (rec->type) {
    case TRACE_epoch:
        take_epoch(c, &rec->epoch);
        return true;
    case TRACE_clock:
        take_clock(c, &rec->clock);
        return true;
    case TRACE_host:
        return take_host(c, e, &rec->host);
    case TRACE_meta:
        return take_setting(c, e, &rec->meta);
    case TRACE_event:
        return take_event(c, e, &rec->event);
    case TRACE_ticks:
        take_ticks(c, e, &rec->ticks);
        return true;
    case TRACE_loss:
        return take_loss(c, e, &rec->loss);
    case TRACE_end:
        captures_saw_time(c, rec->end.time_ns);
        return true;
    default:
        return true;
    }
}
