/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/tally.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/columns.h"
#include "formats/base/map.h"
#include "formats/base/printable.h"
#include "formats/emit/top_states.h"

/* Samples of one thread, stack and measure, of the interval that is being counted. */
struct entry {
    uint32_t thread, stack;
    int measure;
    uint64_t weight;
};
/* Where there are more the interval is counted before it has ended. */
enum { ENTRIES_MAX = 1 << 18 };
#define EVENT_UNKNOWN UINT32_MAX
/* A recorder whose clock comes so often streams: it does each second. Two stand together where an epoch begins. */
#define PACE_NS (5 * NS_PER_S)
#define PACE_LEAST_NS (NS_PER_S / 4)

struct live_tally {
    pthread_mutex_t mutex; /* for what both sides use: all but the next two paragraphs */
    uint64_t interval_ns;
    bool frozen;
    struct live_figures shown;
    struct live_places places[LIVE_BYS];
    struct live_cells cells[LIVE_BYS];
    struct live_threads threads;
    uint64_t serial; /* of the interval that is being counted */

    /* Of the side that adds: the interval that is being counted. */
    const struct emit_model *model;
    uint32_t measured; /* event of the model that is shown as LIVE_RAN, or EVENT_UNKNOWN */
    struct map index; /* by measure, one after the other: thread << 32 | stack -> its entry */
    struct map waits;
    VEC(struct entry) entries;
    bool has_time, is_paced; /* paced: by live_tally_clock() */
    uint64_t start_ns, begin_ns, newest_ns, clock_ns;
    struct live_figures next;

    /* Scratch: the stack at which a place was counted last. */
    VEC(uint64_t) counted_at[LIVE_BYS];
    uint64_t stack_serial;
};

struct error *live_tally_create(uint64_t interval_ns, struct live_tally **out)
{
    struct live_tally *t = calloc(1, sizeof *t);

    if (!t)
        return error_no_memory();
    pthread_mutex_init(&t->mutex, NULL);
    t->interval_ns = interval_ns;
    t->serial = 1;
    bool ok = live_threads_init(&t->threads);
    for (int by = 0; by < LIVE_BYS; by++)
        ok = live_places_init(&t->places[by], by == LIVE_BY_LINE) && ok;
    if (!ok) {
        live_tally_destroy(t);
        return error_no_memory();
    }
    *out = t;
    return NULL;
}

void live_tally_destroy(struct live_tally *t)
{
    if (!t)
        return;
    for (int by = 0; by < LIVE_BYS; by++) {
        live_places_deinit(&t->places[by]);
        live_cells_deinit(&t->cells[by]);
        VEC_DEINIT(&t->counted_at[by]);
    }
    live_threads_deinit(&t->threads);
    map_deinit(&t->index);
    map_deinit(&t->waits);
    VEC_DEINIT(&t->entries);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

/* ---- from samples to places: the mutex is held ---- */

/* The cell of a frame for an entry; *again: the stack has been counted there. NULL: out of memory. */
static struct live_weight *weight_at(struct live_tally *t, int by, const struct entry *e, uint32_t frame, bool *again)
{
    uint32_t place = frame == EMIT_NO_STACK ? (uint32_t)LIVE_NO_FRAMES : live_places_of(&t->places[by], t->model, frame);

    if (place == UINT32_MAX || !VEC_EXTEND_ZERO(&t->counted_at[by], t->places[by].list.count))
        return NULL;
    struct live_weight *weights = live_cells_at(&t->cells[by], e->thread, &place, t->serial);
    *again = t->counted_at[by].data[place] == t->stack_serial;
    t->counted_at[by].data[place] = t->stack_serial;
    return weights ? &weights[e->measure] : NULL;
}

/* Adds an entry to each place on its stack, once to each. */
static struct error *count_stack(struct live_tally *t, int by, const struct entry *e)
{
    const struct emit_model *m = t->model;
    uint32_t own = top_states_own(m, e->stack);
    /* What was waited for is no function. */
    uint32_t at = own == e->stack ? own : m->stacks[e->stack].parent;
    bool python_done = false, again;

    t->stack_serial++;
    struct live_weight *weight = weight_at(t, by, e, own == EMIT_NO_STACK ? EMIT_NO_STACK : m->stacks[own].frame, &again);
    if (!weight)
        return error_no_memory();
    weight->self += e->weight;
    if (own == EMIT_NO_STACK)
        weight->total += e->weight;
    t->stack_serial++;
    for (; at != EMIT_NO_STACK; at = m->stacks[at].parent) {
        uint32_t frame = m->stacks[at].frame;
        weight = weight_at(t, by, e, frame, &again);
        if (!weight)
            return error_no_memory();
        weight->total += again ? 0 : e->weight;
        if (m->frames[frame].kind == EMIT_PYTHON && !python_done) {
            weight->python += e->weight;
            python_done = true;
        }
    }
    return NULL;
}

/* Counts all entries; they are gone from then on. */
static struct error *count_entries(struct live_tally *t)
{
    struct error *err = NULL;

    for (size_t i = 0; !err && i < t->entries.count; i++) {
        for (int by = 0; !err && by < LIVE_BYS; by++)
            err = count_stack(t, by, &t->entries.data[i]);
    }
    t->entries.count = 0;
    map_clear(&t->index);
    map_clear(&t->waits);
    return err;
}

/* Makes room for new threads and pairs, between intervals. */
static struct error *make_room(struct live_tally *t, uint64_t serial)
{
    bool many = live_threads_are_many(&t->threads);
    uint32_t *numbers;

    for (int by = 0; by < LIVE_BYS; by++)
        many |= live_cells_are_many(&t->cells[by]);
    if (!many)
        return NULL;
    if (!live_threads_shrink(&t->threads, serial, &numbers))
        return error_no_memory();
    bool ok = true;
    for (int by = 0; by < LIVE_BYS; by++) {
        ok = ok && live_cells_renumber(&t->cells[by], numbers, false, serial);
        if (ok && live_cells_are_many(&t->cells[by])) {
            for (uint32_t i = 0; i < t->threads.list.count; i++)
                numbers[i] = i;
            ok = live_cells_renumber(&t->cells[by], numbers, true, serial);
        }
    }
    free(numbers);
    return ok ? NULL : error_no_memory();
}

/* Copies a text, cut behind so many characters as surely have room. */
static void copy_text(char *out, size_t size, const char *text)
{
    struct buf cut = {0};

    columns_cut_end(&cut, text, strlen(text), (size - 1) / 4);
    snprintf(out, size, "%s", buf_cstr(&cut));
    buf_deinit(&cut);
}

static void spell(const struct emit_event *event, char out[LIVE_EVENT_BYTES])
{
    struct buf name = {0};

    printable_put(&name, event->name);
    copy_text(out, LIVE_EVENT_BYTES, buf_cstr(&name));
    buf_deinit(&name);
}

/* CPU time where the trace has it; else its first event that is no time of waiting; else tasks. EVENT_UNKNOWN: it has none. */
static uint32_t choose_event(const struct emit_model *m)
{
    uint32_t other = EVENT_UNKNOWN;

    for (uint32_t i = 0; i < m->event_count; i++) {
        const struct emit_event *event = &m->events[i];
        if (event->kind == EVENT_CPU_TIME)
            return i;
        if (event->kind == EVENT_OFF_CPU || event->kind == EVENT_BLAME)
            continue;
        if (other == EVENT_UNKNOWN || (m->events[other].kind == EVENT_TASK_WAIT && event->kind != EVENT_TASK_WAIT))
            other = i;
    }
    return other;
}

/* Once the trace has said which events it has. */
static void choose(struct live_tally *t)
{
    const struct emit_model *m = t->model;
    struct live_figures *f = &t->next;

    t->measured = m ? choose_event(m) : EVENT_UNKNOWN;
    if (t->measured == EVENT_UNKNOWN)
        return;
    spell(&m->events[t->measured], f->event);
    f->of = m->events[t->measured];
    f->of.name = f->of.unit = NULL;
}

/* Shows the interval that was being counted, and begins the next. */
static struct error *end_interval(struct live_tally *t)
{
    TRY(count_entries(t));
    if (!*t->next.event)
        choose(t);
    for (int by = 0; by < LIVE_BYS; by++)
        live_cells_end_interval(&t->cells[by], t->serial);
    live_threads_end_interval(&t->threads, t->serial);
    t->next.serial = t->serial;
    t->next.length_ns = t->newest_ns - t->begin_ns;
    t->next.recorded_ns = t->newest_ns - t->start_ns;
    t->shown = t->next;
    t->next.all = (struct live_deeds){0};
    t->next.lost_now = 0;
    t->begin_ns = t->newest_ns;
    TRY(make_room(t, t->serial));
    live_threads_forget_model(&t->threads); /* names of threads come later than their first samples */
    t->serial++;
    return NULL;
}

/* ---- the side that adds ---- */

struct error *live_tally_model(struct live_tally *t, const struct emit_model *model)
{
    struct error *err;

    live_tally_lock(t);
    err = count_entries(t);
    for (int by = 0; by < LIVE_BYS; by++)
        live_places_forget_frames(&t->places[by]);
    live_threads_forget_model(&t->threads);
    t->measured = EVENT_UNKNOWN;
    t->model = model;
    live_tally_unlock(t);
    return err;
}

/* Is it the event that is shown as LIVE_RAN? There is one, whose number may be another one in each model. */
static bool is_measured(struct live_tally *t, uint32_t event)
{
    const struct emit_model *m = t->model;
    struct live_figures *f = &t->next;
    char name[LIVE_EVENT_BYTES];

    if (!*f->event)
        choose(t);
    for (uint32_t i = 0; t->measured == EVENT_UNKNOWN && i < m->event_count; i++) {
        spell(&m->events[i], name);
        if (!strcmp(name, f->event))
            t->measured = i;
    }
    return event == t->measured;
}

/* Which measure an event is of; -1: none that is shown. */
static int measure_of(struct live_tally *t, uint32_t number)
{
    const struct emit_event *event = &t->model->events[number];

    if (event->kind == EVENT_OFF_CPU) {
        t->next.has_waits = true;
        return LIVE_WAITED;
    }
    return event->kind != EVENT_BLAME && is_measured(t, number) ? LIVE_RAN : -1;
}

static void count_deeds(struct live_deeds *d, const struct live_tally *t, int measure, const struct emit_sample *s)
{
    d->ns[measure] += s->value;
    if (measure == LIVE_WAITED) {
        enum emit_wait wait = t->model->label_sets[s->label_set].wait;
        d->wait_ns[wait] += s->value;
        if (wait == EMIT_WAIT_GIL || s->gil != EMIT_GIL_HELD)
            return;
    } else {
        d->samples++;
    }
    if (!live_figures_are_cpu(&t->next))
        return;
    d->gil_known_ns += s->gil != EMIT_GIL_UNKNOWN ? s->value : 0;
    d->gil_held_ns += s->gil == EMIT_GIL_HELD ? s->value : 0;
}

static bool add_entry(struct live_tally *t, uint32_t thread, int measure, const struct emit_sample *s)
{
    struct map *index = measure == LIVE_WAITED ? &t->waits : &t->index;
    uint64_t key = (uint64_t)thread << 32 | s->stack, *known = map_get(index, key);
    struct entry e = {.thread = thread, .stack = s->stack, .measure = measure, .weight = s->value};

    if (known) {
        t->entries.data[*known].weight += s->value;
        return true;
    }
    return VEC_PUSH(&t->entries, e) && map_set(index, key, t->entries.count - 1);
}

/* The row of a thread may be given to another one between intervals, which the other side would see. */
static uint32_t find_thread(struct live_tally *t, uint32_t thread, int measure, const struct emit_sample *s)
{
    live_tally_lock(t);
    uint32_t number = live_threads_of(&t->threads, t->model, thread);
    if (number != UINT32_MAX)
        count_deeds(live_threads_now(&t->threads, number, t->serial), t, measure, s);
    live_tally_unlock(t);
    return number;
}

struct error *live_tally_sample(struct live_tally *t, const struct emit_sample *s)
{
    live_tally_time(t, s->time_ns);
    int measure = measure_of(t, s->event);
    if (measure < 0)
        return NULL;
    uint32_t thread = find_thread(t, s->thread, measure, s);
    if (thread == UINT32_MAX || !add_entry(t, thread, measure, s))
        return error_no_memory();
    count_deeds(&t->next.all, t, measure, s);
    if (t->entries.count < ENTRIES_MAX)
        return NULL;
    live_tally_lock(t);
    struct error *err = count_entries(t);
    live_tally_unlock(t);
    return err;
}

static void note_time(struct live_tally *t, uint64_t ns)
{
    if (!t->has_time)
        t->start_ns = t->begin_ns = t->newest_ns = ns;
    t->has_time = true;
    t->newest_ns = ns > t->newest_ns ? ns : t->newest_ns;
}

/* Neither clocks nor blocks keep to the moment: a little less than an interval is no reason to wait for as long again. */
static struct error *end_if_over(struct live_tally *t)
{
    struct error *err = NULL;

    live_tally_lock(t);
    if (t->newest_ns - t->begin_ns >= t->interval_ns - t->interval_ns / 8 && !t->frozen)
        err = end_interval(t);
    live_tally_unlock(t);
    return err;
}

void live_tally_time(struct live_tally *t, uint64_t ns)
{
    /* In a file clocks may come often for a while, as where memory was short; then no more for long. */
    if (t->is_paced && ns > t->clock_ns && ns - t->clock_ns > PACE_NS)
        t->is_paced = false;
    if (!t->is_paced)
        note_time(t, ns);
}

struct error *live_tally_block(struct live_tally *t)
{
    return t->is_paced ? NULL : end_if_over(t);
}

struct error *live_tally_clock(struct live_tally *t, uint64_t ns)
{
    if (t->clock_ns && ns > t->clock_ns + PACE_LEAST_NS && ns - t->clock_ns < PACE_NS)
        t->is_paced = true;
    t->clock_ns = ns;
    note_time(t, ns);
    return end_if_over(t);
}

void live_tally_last(struct live_tally *t, uint64_t ns)
{
    note_time(t, ns);
}

void live_tally_loss(struct live_tally *t, uint32_t reason, uint64_t count)
{
    if (!loss_class_is_sample(trace_loss_class(reason)))
        return;
    t->next.lost += count;
    t->next.lost_now += count;
    if (reason < LOSS_LIMIT)
        t->next.lost_by[reason] += count;
}

void live_tally_damages(struct live_tally *t, uint64_t count)
{
    t->next.damages = count;
}

void live_tally_recorded(struct live_tally *t, const char *text)
{
    copy_text(t->next.recorded, sizeof t->next.recorded, text);
    live_tally_lock(t);
    memcpy(t->shown.recorded, t->next.recorded, sizeof t->shown.recorded);
    live_tally_unlock(t);
}

/* Of what is left of a short interval shares say little: it is added to the sums, and the one before stays. */
static struct error *end_last(struct live_tally *t)
{
    const struct live_figures before = t->shown;

    TRY(end_interval(t));
    if (!before.serial || t->shown.length_ns >= t->interval_ns / 2)
        return NULL;
    t->shown.serial = before.serial;
    t->shown.length_ns = before.length_ns;
    t->shown.lost_now = before.lost_now;
    t->shown.all = before.all;
    return NULL;
}

/* Nothing more comes: shows what is left. */
static struct error *show_rest(struct live_tally *t)
{
    return !t->frozen && (t->newest_ns > t->begin_ns || t->entries.count) ? end_last(t) : NULL;
}

struct error *live_tally_end(struct live_tally *t, const char *why)
{
    live_tally_lock(t);
    t->next.ended = t->shown.ended = true;
    copy_text(t->next.ending, sizeof t->next.ending, why);
    memcpy(t->shown.ending, t->next.ending, sizeof t->shown.ending);
    struct error *err = show_rest(t);
    live_tally_unlock(t);
    return err;
}

/* ---- the side that shows ---- */

void live_tally_lock(struct live_tally *t)
{
    pthread_mutex_lock(&t->mutex);
}

void live_tally_unlock(struct live_tally *t)
{
    pthread_mutex_unlock(&t->mutex);
}

const struct live_figures *live_tally_figures(const struct live_tally *t)
{
    return &t->shown;
}

const struct live_places *live_tally_places(const struct live_tally *t, int by)
{
    return &t->places[by];
}

const struct live_cells *live_tally_cells(const struct live_tally *t, int by)
{
    return &t->cells[by];
}

const struct live_threads *live_tally_threads(const struct live_tally *t)
{
    return &t->threads;
}

void live_tally_set_interval(struct live_tally *t, uint64_t ns)
{
    t->interval_ns = ns;
}

void live_tally_freeze(struct live_tally *t, bool frozen)
{
    t->frozen = frozen;
    if (t->shown.ended)
        error_destroy(show_rest(t)); /* without memory for it the interval before stays */
}
