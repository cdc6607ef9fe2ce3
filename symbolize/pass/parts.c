/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/parts.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/map.h"
#include "formats/base/sort.h"
#include "formats/base/vec.h"
#include "formats/emit/capture_facts.h"
#include "formats/emit/spool.h"
#include "symbolize/pass/reorder.h"

enum {
    STREAM_BYTES = 1024,   /* memory of a stream to which nothing was written yet */
    BUFFER_BYTES = BUFSIZ, /* what the stream takes more once something was */
};

struct part {
    struct emit_part facts;
    struct emit_model model; /* the whole one's, but for the totals */
    struct emit_options options;
    VEC(struct emit_total) totals; /* by event */
    VEC(bool) differ;              /* likewise */
    uint64_t events_bytes;         /* taken from the limits for both */
    struct part_output out;
    void *state; /* the emitter's */
    uint64_t key;
};

struct parts {
    struct parts_options options;
    const struct emitter *emitter;
    const struct emit_model *model;
    struct emit_options emit;
    struct spool spool;
    VEC(struct part *) open; /* in the order in which they began */
    struct map by_key;       /* of open parts: owner << 32 | number of the window -> struct part * */
    struct map window_numbers; /* of windows with open parts, counted from their begin / length */
    uint32_t window_count, part_count; /* until now */
    struct loss_windows losses;
    /* Of the capture that is being read: */
    uint32_t capture;
    uint64_t newest_ns; /* real time */
    uint64_t closed_ns; /* windows that ended until then are complete */
    uint64_t late_count;
    char *remark;
};

struct error *parts_create(const struct parts_options *options, const struct emitter *emitter, const struct emit_model *model,
                           const struct emit_options *emit, struct parts **out)
{
    struct parts *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory();
    *p = (struct parts){.options = *options, .emitter = emitter, .model = model, .emit = *emit};
    p->by_key.limits = p->window_numbers.limits = emit->limits;
    p->losses = (struct loss_windows){.limits = emit->limits, .texts.arena.limits = emit->limits};
    if (options->by == PARTS_BY_SERIES) {
        p->emit.merge = EMIT_MERGE_ALL;
        p->emit.labels = p->emit.label_cpu = false;
        p->emit.full_paths = p->emit.no_comments = true;
    }
    spool_init(&p->spool);
    *out = p;
    return NULL;
}

uint64_t parts_late_count(const struct parts *p)
{
    return p->late_count;
}

/* ---- a part ---- */

static uint64_t cost_of(const struct parts *p)
{
    return sizeof(struct part) + STREAM_BYTES + (p->emitter->writes_each_sample ? BUFFER_BYTES : 0);
}

static void destroy_part(struct parts *p, struct part *part)
{
    p->emitter->destroy(part->state);
    VEC_DEINIT(&part->totals);
    VEC_DEINIT(&part->differ);
    limits_give(p->emit.limits, cost_of(p) + part->events_bytes);
    free(part);
}

/* Shows the part what has been defined meanwhile. */
static struct error *refresh(const struct parts *p, struct part *part)
{
    const struct emit_model *m = p->model;
    uint64_t more = (m->event_count - part->differ.count) * (sizeof *part->totals.data + sizeof *part->differ.data);

    if (!limits_take(p->emit.limits, more))
        return error_no_memory();
    part->events_bytes += more;
    if (!VEC_EXTEND_ZERO(&part->totals, m->event_count) || !VEC_RESERVE(&part->differ, m->event_count))
        return error_no_memory();
    while (part->differ.count < m->event_count) {
        const struct emit_event *event = &m->events[part->differ.count];
        const char *name = event_is_time(event->kind) ? "" : event->name;
        part->differ.data[part->differ.count++] =
            p->options.weighed && intern_find(&p->options.weighed->differ, name, (uint32_t)strlen(name)) != INTERN_NONE;
    }
    part->model = *m;
    part->model.totals = part->totals.data;
    part->facts.weights_differ = part->differ.data;
    return NULL;
}

/* What of the part's time the captures lasted. */
static void find_span(const struct emit_model *m, struct emit_part *f)
{
    bool windowed = f->window_end_ns;

    f->begin_ns = f->end_ns = 0;
    for (uint32_t i = 0; i < m->capture_count; i++) {
        uint64_t begin = m->captures[i].start_realtime_ns, end = begin + m->captures[i].duration_ns;
        if (!begin)
            continue;
        if (windowed && begin < f->window_begin_ns)
            begin = f->window_begin_ns;
        if (windowed && end > f->window_end_ns)
            end = f->window_end_ns;
        if (begin >= end)
            continue;
        if (!f->end_ns || begin < f->begin_ns)
            f->begin_ns = begin;
        if (end > f->end_ns)
            f->end_ns = end;
    }
}

static struct error *keep_remark(struct parts *p, const struct part *part)
{
    const char *remark = p->emitter->remark && !p->remark ? p->emitter->remark(part->state) : NULL;

    if (remark)
        p->remark = strdup(remark);
    return remark && !p->remark ? error_no_memory() : NULL;
}

/* Writes the chunks of a part; the sink takes all but the last. */
static struct error *write_chunks(struct parts *p, struct part *part)
{
    struct part_output *out = &part->out;

    for (;; out->chunk_number++) {
        TRY(p->emitter->end(part->state));
        if (p->emitter->chunk)
            p->emitter->chunk(part->state, &out->chunk);
        if (!out->chunk.more)
            return NULL;
        TRY(p->options.sink->take(p->options.sink, &part->model, &part->facts, out));
    }
}

/* Writes the rest of a part, which is gone then. */
static struct error *finish_part(struct parts *p, struct part *part)
{
    struct error *err = refresh(p, part);

    find_span(&part->model, &part->facts);
    if (!err)
        err = write_chunks(p, part);
    if (!err)
        err = keep_remark(p, part);
    if (!err)
        err = p->options.sink->close(p->options.sink, &part->model, &part->facts, &part->out);
    destroy_part(p, part);
    return err;
}

static struct error *begin_part(struct parts *p, const struct emit_part *facts, uint64_t key, struct part **out)
{
    if ((p->options.by == PARTS_BY_SERIES ? p->open.count : p->part_count) == PARTS_MAX)
        return error_create(ERROR_LIMIT, "the output would have more than %u parts: choose longer windows, or fewer processes "
                                         "or threads", PARTS_MAX);
    if (!limits_take(p->emit.limits, cost_of(p)))
        return error_no_memory();
    struct part *part = calloc(1, sizeof *part);
    if (!part) {
        limits_give(p->emit.limits, cost_of(p));
        return error_no_memory();
    }
    part->facts = *facts;
    part->key = key;
    part->options = p->emit;
    part->options.part = &part->facts;
    part->options.spool = &p->spool;
    struct error *err = refresh(p, part);
    if (!err)
        err = p->options.sink->open(p->options.sink, &part->out);
    if (!err)
        err = p->emitter->begin(&part->model, &part->options, part->out.file, &part->state);
    if (!err && (!map_set(&p->by_key, key, (uintptr_t)part) || !VEC_PUSH(&p->open, part)))
        err = error_no_memory();
    if (err) {
        map_remove(&p->by_key, key);
        destroy_part(p, part);
        return err;
    }
    p->part_count++;
    *out = part;
    return NULL;
}

/* ---- time ---- */

static void set_window(const struct parts *p, uint64_t window, struct emit_part *facts)
{
    facts->window_begin_ns = window * p->options.window_ns;
    if (__builtin_add_overflow(facts->window_begin_ns, p->options.window_ns, &facts->window_end_ns))
        facts->window_end_ns = UINT64_MAX;
}

/* Hands over what was lost in windows that have begun before then. */
static struct error *finish_losses(struct parts *p, uint64_t before_ns)
{
    const uint64_t length_ns = p->options.window_ns;
    struct window_losses losses;

    for (; length_ns;) {
        struct emit_part facts = {.process = EMIT_PART_ALL, .thread = EMIT_PART_ALL, .series = EMIT_PART_ALL};
        if (!loss_windows_take(&p->losses, before_ns / length_ns + (before_ns % length_ns != 0), &losses))
            return error_no_memory();
        if (!losses.count)
            break;
        set_window(p, losses.window, &facts);
        facts.last_ns = losses.last_ns;
        find_span(p->model, &facts);
        TRY(p->options.sink->losses(p->options.sink, p->model, &facts, &losses));
    }
    return NULL;
}

static int compare_windows(const void *a, const void *b)
{
    const struct part *const *x = a, *const *y = b;
    uint64_t begin_x = (*x)->facts.window_begin_ns, begin_y = (*y)->facts.window_begin_ns;

    return begin_x < begin_y ? -1 : begin_x > begin_y;
}

/* Finishes the open parts of windows that have ended until then, in the order of the windows. */
static struct error *finish_until(struct parts *p, uint64_t until_ns)
{
    struct error *err = NULL;
    size_t left = 0;

    if (!sort_stable(p->open.data, p->open.count, sizeof *p->open.data, compare_windows))
        return error_no_memory();
    for (size_t i = 0; i < p->open.count; i++) {
        struct part *part = p->open.data[i];
        if (err || part->facts.window_end_ns > until_ns) {
            p->open.data[left++] = part;
            continue;
        }
        map_remove(&p->by_key, part->key);
        if (p->options.window_ns)
            map_remove(&p->window_numbers, part->facts.window_begin_ns / p->options.window_ns);
        err = finish_losses(p, part->facts.window_begin_ns);
        if (err)
            destroy_part(p, part);
        else
            err = finish_part(p, part);
    }
    p->open.count = left;
    p->closed_ns = until_ns;
    return err ? err : finish_losses(p, until_ns);
}

static struct error *refuse_clockless(const struct emit_capture *capture)
{
    return error_path(ERROR_FORMAT, capture->name, "does not say what time it was: --window cannot cut it");
}

struct error *parts_lose(struct parts *p, uint32_t capture, uint64_t time_ns, const struct emit_loss *loss)
{
    const struct emit_capture *c = &p->model->captures[capture];

    if (!p->options.window_ns || !p->options.sink->losses)
        return NULL;
    if (!c->realtime_ns)
        return refuse_clockless(c);
    uint64_t real_ns = capture_realtime_ns(c, time_ns);
    if (real_ns < p->closed_ns)
        real_ns = p->newest_ns > p->closed_ns ? p->newest_ns : p->closed_ns;
    const struct loss_window_row row = {.window = real_ns / p->options.window_ns, .capture = capture, .last_ns = real_ns, .loss = *loss};
    return loss_windows_add(&p->losses, &row) ? NULL : error_no_memory();
}

/* Real time of a sample. One that comes when its window is complete gets the newest time. */
static struct error *date(struct parts *p, struct emit_sample *s, uint64_t *real_ns)
{
    const struct emit_capture *capture = &p->model->captures[s->capture];

    if (!capture->realtime_ns)
        return refuse_clockless(capture);
    if (s->capture != p->capture)
        p->newest_ns = 0;
    p->capture = s->capture;
    *real_ns = capture_realtime_ns(capture, s->time_ns);
    if (*real_ns > p->newest_ns)
        p->newest_ns = *real_ns;
    if (*real_ns < p->closed_ns) {
        p->late_count++;
        s->time_ns += p->newest_ns - *real_ns;
        *real_ns = p->newest_ns;
    }
    uint64_t complete_ns = p->newest_ns > REORDER_WINDOW_NS ? p->newest_ns - REORDER_WINDOW_NS : 0;
    complete_ns -= complete_ns % p->options.window_ns;
    return s->capture + 1 == p->options.input_count && complete_ns > p->closed_ns ? finish_until(p, complete_ns) : NULL;
}

/* The number of a window, by which it is part of a key. */
static struct error *number_window(struct parts *p, uint64_t window, uint32_t *number)
{
    const uint64_t *known = map_get(&p->window_numbers, window);

    *number = known ? (uint32_t)*known : p->window_count;
    if (known)
        return NULL;
    return map_set(&p->window_numbers, window, p->window_count++) ? NULL : error_no_memory();
}

/* ---- the emitter ---- */

/* Whose part the sample belongs to; of a part with a window that is set in `facts`. */
static struct error *find_owner(struct parts *p, const struct emit_sample *s, struct emit_part *facts, uint32_t *owner)
{
    *owner = 0;
    if (p->options.by == PARTS_BY_PROCESS || p->options.by == PARTS_BY_THREAD)
        *owner = facts->process = p->model->threads[s->thread].process;
    if (p->options.by == PARTS_BY_THREAD)
        *owner = facts->thread = s->thread;
    if (p->options.by != PARTS_BY_SERIES)
        return NULL;
    struct error *err = p->options.sink->find_series(p->options.sink, p->model, s, facts->window_begin_ns, &facts->series);
    *owner = facts->series;
    return err;
}

/* Finds the sample's part; changes its time if it is late. */
static struct error *find_part(struct parts *p, struct emit_sample *s, struct part **out)
{
    struct emit_part facts = {.process = EMIT_PART_ALL, .thread = EMIT_PART_ALL, .series = EMIT_PART_ALL,
                              .most = p->options.sink->most,
                              .several_events = p->options.weighed && p->options.weighed->several_events};
    uint32_t owner, number = 0;
    uint64_t real_ns = 0;

    if (p->options.window_ns) {
        TRY(date(p, s, &real_ns));
        TRY(number_window(p, real_ns / p->options.window_ns, &number));
        set_window(p, real_ns / p->options.window_ns, &facts);
    }
    TRY(find_owner(p, s, &facts, &owner));
    uint64_t key = (uint64_t)owner << 32 | number;
    const uint64_t *known = map_get(&p->by_key, key);
    *out = known ? (struct part *)(uintptr_t)*known : NULL;
    if (!known)
        TRY(begin_part(p, &facts, key, out));
    if (real_ns > (*out)->facts.last_ns)
        (*out)->facts.last_ns = real_ns;
    return NULL;
}

static struct error *take_sample(void *state, const struct emit_sample *given)
{
    struct parts *p = state;
    struct emit_sample s = *given;
    struct part *part;

    TRY(find_part(p, &s, &part));
    TRY(refresh(p, part));
    struct emit_total *total = &part->totals.data[s.event];
    total->shown_samples++;
    total->shown_value += s.value;
    total->interpreter_value += s.in_interpreter ? s.value : 0;
    return p->emitter->sample(part->state, &s);
}

static struct error *end(void *state)
{
    return finish_until(state, UINT64_MAX);
}

static const char *remark(const void *state)
{
    return ((const struct parts *)state)->remark;
}

static void destroy(void *state)
{
    struct parts *p = state;

    if (!p)
        return;
    for (size_t i = 0; i < p->open.count; i++)
        destroy_part(p, p->open.data[i]);
    VEC_DEINIT(&p->open);
    map_deinit(&p->by_key);
    map_deinit(&p->window_numbers);
    loss_windows_deinit(&p->losses);
    spool_deinit(&p->spool);
    free(p->remark);
    free(p);
}

const struct emitter parts_emitter = {.sample = take_sample, .end = end, .remark = remark, .destroy = destroy};
