/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/top_errors.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/square_root.h"
#include "formats/emit/top_states.h"

enum { SITE_FRAMES = 4 };

void top_errors_deinit(struct top_errors *e)
{
    limits_give(e->limits, e->stacks.count * sizeof(struct top_error_stack));
    VEC_DEINIT(&e->stacks);
    VEC_DEINIT(&e->touched);
    map_deinit(&e->by_stack);
    top_errors_forget_names(e);
}

void top_errors_forget_names(struct top_errors *e)
{
    if (e->variances && e->weights)
        limits_give(e->limits, e->name_count * (sizeof *e->variances + sizeof *e->weights));
    free(e->variances);
    free(e->weights);
    e->variances = NULL;
    e->weights = NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return ((hash ^ value) * UINT64_C(0x9e3779b97f4a7c15)) ^ hash >> 29;
}

/* The newest functions of Python on a stack. */
static uint64_t mix_python(const struct emit_model *m, uint32_t stack, uint64_t site)
{
    for (uint32_t count = 0; stack != EMIT_NO_STACK && count < SITE_FRAMES; stack = m->stacks[stack].parent) {
        if (m->frames[m->stacks[stack].frame].kind != EMIT_PYTHON)
            continue;
        site = mix(site, m->stacks[stack].frame);
        count++;
    }
    return site;
}

/* As the sampler tells call sites apart (bpf/sampler_wait.h), from what the stack shows of that. */
static uint64_t site_of(const struct emit_model *m, const struct emit_sample *s)
{
    uint32_t own = top_states_own(m, s->stack);
    const struct emit_frame *frame = &m->frames[m->stacks[own].frame];
    uint64_t site = mix(mix(1, s->thread), m->stacks[s->stack].frame);
    enum emit_wait wait = m->label_sets[s->label_set].wait;

    if (wait == EMIT_WAIT_PREEMPTED)
        return site;
    if (frame->kind != EMIT_PYTHON)
        return mix(site, s->stack);
    if (wait == EMIT_WAIT_GIL) /* at any instruction of a function */
        return mix(mix(site, (uintptr_t)frame->function), (uintptr_t)frame->file + frame->function_line);
    return mix_python(m, own, site);
}

bool top_errors_add(struct top_errors *e, const struct emit_sample *s)
{
    const struct emit_model *m = e->model;
    const struct emit_event *event = &m->events[s->event];
    uint64_t key = (uint64_t)s->thread << 32 | s->stack;
    double value = (double)s->value;

    if (!(event->kind == EVENT_OFF_CPU || event->kind == EVENT_WALL_TIME) || s->stack == EMIT_NO_STACK ||
        !m->frames[m->stacks[s->stack].frame].wait || (e->stacks.count && e->event != s->event))
        return true;
    const uint64_t *known = map_get(&e->by_stack, key);
    if (!known) {
        const struct top_error_stack first = {.site = site_of(m, s), .thread = s->thread, .stack = s->stack};
        if (!limits_take(e->limits, sizeof first) || !VEC_PUSH(&e->stacks, first) ||
            !map_set(&e->by_stack, key, e->stacks.count - 1))
            return false;
        known = map_get(&e->by_stack, key);
        e->event = s->event;
    }
    struct top_error_stack *at = &e->stacks.data[*known];
    if (s->owed) {
        at->owed += value;
        at->owed_squares += value * value;
        at->payments++;
        e->any = true;
        return true;
    }
    double before = s->continues ? at->last_ns : 0;
    at->last_ns = before + value;
    at->own += value;
    at->own_count += !s->continues;
    at->own_squares += at->last_ns * at->last_ns - before * before;
    return true;
}

/* ---- tables ---- */

static int compare_sites(const void *a, const void *b)
{
    const struct top_error_stack *x = a, *y = b;

    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Adds the weight of a stack to the functions on it, to each once. */
static struct error *add_functions(struct top_errors *e, const struct top_error_stack *at, const uint32_t *ids)
{
    const struct emit_model *m = e->model;

    e->serial++;
    if (!limits_work(e->limits, 10 * (uint64_t)m->stacks[at->stack].depth))
        return error_no_memory();
    for (uint32_t stack = at->stack; stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
        struct top_error_weight *weight = &e->weights[ids[m->stacks[stack].frame]];
        if (weight->serial == e->serial)
            continue; /* a recursion */
        if (weight->sum == 0 && !VEC_PUSH(&e->touched, ids[m->stacks[stack].frame]))
            return error_no_memory();
        weight->sum += at->own + at->owed;
        weight->own_squares += at->own_squares;
        weight->serial = e->serial;
    }
    return NULL;
}

/* The square of how many waits one with a stack stands for, of a site where some have none. */
static double square_of_weights(const struct top_error_stack *site)
{
    double even = site->owed / site->own;
    double differ = (double)site->own_count * site->own_squares / (2 * site->own * site->own);
    double uneven = site->owed_squares / site->own_squares * (differ > 1 ? differ : 1);

    return even * even > uneven ? even * even : uneven;
}

/* The stacks of one call site. */
static struct error *add_site(struct top_errors *e, const struct top_error_stack *stacks, size_t count, const uint32_t *ids)
{
    struct top_error_stack sum = {0};

    for (size_t i = 0; i < count; i++) {
        sum.own += stacks[i].own;
        sum.own_squares += stacks[i].own_squares;
        sum.own_count += stacks[i].own_count;
        sum.owed += stacks[i].owed;
        sum.owed_squares += stacks[i].owed_squares;
        sum.payments += stacks[i].payments;
    }
    if (sum.owed <= 0 || sum.own <= 0)
        return NULL;
    double weights_square = square_of_weights(&sum), payment = sum.owed_squares / (double)sum.payments;
    e->touched.count = 0;
    for (size_t i = 0; i < count; i++)
        TRY(add_functions(e, &stacks[i], ids));
    for (size_t i = 0; i < e->touched.count; i++) {
        struct top_error_weight *weight = &e->weights[e->touched.data[i]];
        double p = weight->sum / (sum.own + sum.owed), q = 1 - p;
        double squares = q * q * weight->own_squares + p * p * (sum.own_squares - weight->own_squares);
        if (p > 0 && p < 1)
            e->variances[e->touched.data[i]] += weights_square * squares + p * q * payment;
        weight->sum = weight->own_squares = 0; /* a function that was touched twice is counted once */
    }
    return NULL;
}

static bool make_room(struct top_errors *e, uint32_t count)
{
    if (!e->sorted)
        qsort(e->stacks.data, e->stacks.count, sizeof *e->stacks.data, compare_sites);
    e->sorted = true;
    if (!e->variances) {
        if (!limits_take(e->limits, count * (sizeof *e->variances + sizeof *e->weights)))
            return false;
        e->variances = calloc(count ? count : 1, sizeof *e->variances);
        e->weights = calloc(count ? count : 1, sizeof *e->weights);
        e->name_count = count;
    }
    if (!e->variances || !e->weights || !limits_work(e->limits, count + 20 * e->stacks.count))
        return false;
    memset(e->variances, 0, count * sizeof *e->variances);
    return true;
}

struct error *top_errors_table(struct top_errors *e, enum emit_merge merge, uint32_t owner, const uint32_t *ids, uint32_t count)
{
    const struct top_error_stack *s = e->stacks.data;

    if (!e->any)
        return NULL;
    if (!make_room(e, count))
        return error_no_memory();
    for (size_t i = 0, end; i < e->stacks.count; i = end) {
        uint32_t of = merge == EMIT_MERGE_THREAD ? s[i].thread : e->model->threads[s[i].thread].process;
        for (end = i + 1; end < e->stacks.count && s[end].site == s[i].site;)
            end++;
        if (end - i > 1 && (merge == EMIT_MERGE_ALL || of == owner))
            TRY(add_site(e, s + i, end - i, ids));
    }
    return NULL;
}

uint64_t top_errors_of(const struct top_errors *e, uint32_t name)
{
    return e->variances ? square_root(e->variances[name]) : 0;
}
