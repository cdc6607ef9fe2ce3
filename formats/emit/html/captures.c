/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/captures.h"

#include <inttypes.h>

#include "formats/emit/json.h"

static bool append_settings(json_t *list, const struct emit_capture *c)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < c->setting_count; i++) {
        json_t *pair = json_array();
        ok = pair && html_append_name(pair, c->settings[i].key) && html_append_name(pair, c->settings[i].value);
        ok = html_append(list, pair, ok);
    }
    return ok;
}

static bool append_rates(json_t *list, const struct emit_capture *c)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < c->rate_count; i++) {
        json_t *rate = json_object();
        ok = rate && json_set(rate, "event", json_integer(c->rates[i].event)) &&
             json_set(rate, "frequencyHz", json_number(c->rates[i].frequency_hz)) &&
             json_set(rate, "period", json_number(c->rates[i].period));
        ok = html_append(list, rate, ok);
    }
    return ok;
}

static bool append_losses(json_t *list, const struct emit_capture *c)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < c->loss_count; i++) {
        const struct emit_loss *l = &c->losses[i];
        json_t *loss = json_object();
        ok = loss && json_set_name(loss, "name", l->name) && json_set_name(loss, "meaning", l->meaning) &&
             json_set_name(loss, "event", l->event) && json_set(loss, "count", json_number(l->count)) &&
             json_set(loss, "isSample", json_boolean(l->is_sample));
        ok = html_append(list, loss, ok);
    }
    return ok;
}

/* Adds a member: a list that `append` fills. */
static bool set_list(json_t *object, const char *key, bool (*append)(json_t *, const struct emit_capture *),
                     const struct emit_capture *c)
{
    json_t *list = json_array();

    if (list && append(list, c))
        return json_set(object, key, list);
    json_decref(list);
    return false;
}

struct error *html_captures_put(struct html_rows *rows, const struct emit_model *model)
{
    for (uint32_t i = 0; i < model->capture_count; i++) {
        const struct emit_capture *c = &model->captures[i];
        json_t *object = json_object();
        char start[24]; /* more digits than JavaScript's numbers have */
        snprintf(start, sizeof start, "%" PRIu64, c->start_realtime_ns);
        bool ok = object && json_set_name(object, "name", c->name) && json_set_name(object, "hostname", c->hostname) &&
                  json_set_name(object, "kernel", c->kernel_release) && json_set_name(object, "machine", c->machine) &&
                  json_set_name(object, "cpuModel", c->cpu_model) && json_set(object, "cpuCount", json_integer(c->cpu_count)) &&
                  json_set(object, "memoryBytes", json_number(c->memory_bytes)) &&
                  json_set_name(object, "recorder", c->recorder) && json_set(object, "startRealtimeNs", json_string(start)) &&
                  json_set(object, "durationNs", json_number(c->duration_ns)) &&
                  set_list(object, "settings", append_settings, c) && set_list(object, "rates", append_rates, c) &&
                  set_list(object, "losses", append_losses, c);
        TRY(html_rows_put(rows, object, ok));
    }
    return NULL;
}
