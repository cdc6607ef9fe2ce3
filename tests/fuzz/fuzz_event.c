/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of -e, and the files of the kernel that explain them. The first byte chooses: a list of events, a tracepoint's
 * file `format`, the names of tracepoints, or a PMU's file in `format`.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/event/event.h"
#include "capture/event/pmu.h"
#include "capture/event/tracepoint.h"

/* Names are plain words, and no two are the same; what can be sampled has a rate or a period. */
static void check_list(const struct event_list *events)
{
    for (uint32_t i = 0; i < events->count; i++) {
        const struct event *event = &events->list[i];
        if (!*event->source->name || strlen(event->source->name) > 2 * EVENT_TEXT_MAX || !*event->source->unit)
            abort();
        for (const char *c = event->source->name; *c; c++) {
            if (*c <= ' ' || *c > '~')
                abort();
        }
        for (uint32_t k = 0; k < i; k++) {
            if (!strcmp(events->list[k].source->name, event->source->name))
                abort();
        }
        if (event->period && event->frequency_hz)
            abort();
    }
}

static void read_list(const char *text)
{
    struct event_list events = {0};
    struct error *err = event_list_add(&events, text);

    check_list(&events);
    error_destroy(err);
    err = event_list_complete(&events, 0, 0);
    for (uint32_t i = 0; !err && i < events.count; i++) {
        if (!event_period(&events.list[i]))
            abort();
    }
    error_destroy(err);
    event_list_deinit(&events);
}

static void read_format(const char *text, size_t len)
{
    const char *const weights[] = {NULL, "count", "size"};

    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        struct tracepoint t;
        struct error *err = tracepoint_parse(text, len, weights[i], &t);
        if (!err && (!t.id || (t.weight_size != 0) != (weights[i] != NULL)))
            abort();
        if (!err && t.weight_size && (t.weight_offset < 8 || t.weight_offset + t.weight_size > TRACEPOINT_RECORD_MAX))
            abort();
        error_destroy(err);
    }
}

static void read_bits(const char *text)
{
    struct pmu_event none = {0}, all = {0};
    struct error *no = pmu_put_bits(text, 0, &none), *err = pmu_put_bits(text, UINT64_MAX, &all);

    if (!no && (none.config[0] || none.config[1] || none.config[2]))
        abort();
    error_destroy(no);
    error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    size_t len = len_bytes ? len_bytes - 1 : 0;
    char *text = malloc(len + 1); /* nothing behind it, so that reading on is seen */
    struct buf near = {0};

    if (!text)
        abort();
    if (len)
        memcpy(text, data + 1, len);
    text[len] = 0;
    switch (len_bytes ? data[0] & 3 : 0) {
    case 0:
        read_list(text);
        break;
    case 1:
        read_format(text, len);
        break;
    case 2:
        tracepoint_put_near(text, "sched", "sched_switch", &near);
        break;
    default:
        read_bits(text);
    }
    buf_deinit(&near);
    free(text);
    return 0;
}
