/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/shown.h"

#include "formats/base/numbers.h"
#include "formats/base/size_text.h"
#include "formats/emit/names.h"

static void put_value(const struct emit_event *event, uint64_t value, struct buf *out)
{
    struct size_text size;
    struct number digits;

    if (event_is_bytes(event->kind)) {
        buf_put_str(out, size_text(value, &size));
    } else if (event_is_time(event->kind)) {
        buf_printf(out, "%.2f s", (double)value / 1e9);
    } else {
        buf_printf(out, "%s ", grouped(value, &digits));
        name_word(*event->unit ? event->unit : event->name, out);
    }
}

void shown_put(const struct emit_model *model, uint32_t event, struct buf *out)
{
    const struct emit_total *total = &model->totals[event];

    if (!*model->filters)
        return;
    put_value(&model->events[event], total->shown_value, out);
    if (total->all_samples >= total->shown_samples) { /* less: it is not known, see struct emit_part */
        buf_put_str(out, " of ");
        put_value(&model->events[event], total->all_value, out);
    }
    buf_put_str(out, " shown");
}

void shown_put_interpreter(const struct emit_model *model, uint32_t number, struct buf *out)
{
    const struct emit_total *total = &model->totals[number];
    const struct emit_event *event = &model->events[number];
    struct number n;

    buf_printf(out, "%s of the ", share_text(total->interpreter_value, total->shown_value, &n));
    name_unit(event, out);
    buf_printf(out, " %s in the interpreter, working for the functions shown", event_is_time(event->kind) ? "was" : "were");
}

void shown_put_samples(const struct emit_model *model, uint32_t number, uint64_t samples, uint64_t weight, struct buf *out)
{
    const struct emit_event *event = &model->events[number];
    uint64_t duration_ns = 0;
    struct number n;

    for (uint32_t i = 0; i < model->capture_count; i++)
        duration_ns += model->captures[i].duration_ns;
    buf_printf(out, "%s of ", counted(samples, "sample", "samples", &n));
    name_word(event->name, out);
    buf_put_str(out, ": ");
    name_weight(event, weight, out);
    if (event_is_time(event->kind))
        buf_put_str(out, event->kind == EVENT_WALL_TIME   ? " of wall time"
                         : event->kind == EVENT_BLAME     ? " of other threads' waiting"
                         : event->kind == EVENT_TASK_WAIT ? " of tasks' waiting"
                         : event->kind == EVENT_OFF_CPU   ? " of waiting"
                         : event->kind == EVENT_CPU_TIME  ? " of CPU time"
                                                          : "");
    if (duration_ns) {
        buf_put_str(out, ", recorded in ");
        name_weight(&(struct emit_event){.kind = EVENT_CPU_TIME}, duration_ns, out);
    }
    buf_put_u8(out, '\n');
}

void shown_put_totals(const struct emit_model *model, uint32_t event, struct buf *out)
{
    if (!model->totals)
        return;
    if (*model->filters) {
        shown_put(model, event, out);
        buf_put_str(out, " (");
        name_plain(model->filters, out);
        buf_put_str(out, ")\n");
    }
    if (model->totals[event].interpreter_value) {
        shown_put_interpreter(model, event, out);
        buf_put_u8(out, '\n');
    }
}
