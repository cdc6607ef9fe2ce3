/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/compare/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/compare/tally_facts.h"
#include "formats/compare/tally_places.h"
#include "formats/compare/tally_tree.h"

enum {
    BLOCK_NS = 500000000,
    BLOCK_SAMPLES = 50,
    BLOCKS_ALIKE = 1024,   /* the next ones are twice as long, and so on */
    DOUBLINGS_MAX = 20,
    DISPERSION_BLOCKS = 8,   /* with fewer, dispersion would be mostly chance */
    DISPERSION_SAMPLES = 10,
};

/*
 * Sums of a node or a function over the blocks of a run, `_now` those of the block. The whole of a node's total is its
 * parent's total, of its self its total; of a function's both it is all.
 */
struct tally_sums {
    double self, total, self_now, total_now;
    double self_square, self_whole, total_square, total_whole; /* of blocks: squares, and products with the whole */
    uint32_t blocks; /* in which it was seen */
};

struct tally_code {
    double self, total;
};

/* What the block has of a stack. */
struct tally_slot {
    double value;
    uint32_t block; /* of tally_event.block; of another one the value is old */
};

/* An event of the capture. */
struct tally_event {
    uint64_t samples;
    double total, squares; /* of values */
    double now, all_square; /* of the block; sum over blocks */
    uint64_t samples_now;
    uint32_t blocks;
    uint32_t block; /* counts on over all captures, from 1 */
    VEC(struct tally_sums) nodes, functions; /* by number in the set */
    VEC(struct tally_code) codes;
    VEC(double) lines;
    VEC(struct tally_slot) slots; /* by stack of the model, counted from 1: [0] is the empty one */
    struct tally_tree node_tree, path_tree;
    VEC(uint32_t) stacks, seen_functions; /* of the block */
};

struct tally {
    const struct emit_model *model;
    struct run_set *set;
    struct tally_places places;
    struct tally_facts facts;
    VEC(struct tally_event) events; /* by number in the model */
    VEC(double) modules;            /* scratch, by text */
    uint32_t capture;               /* whose samples come */
};

struct error *tally_create(const struct emit_model *model, struct run_set *set, void **state)
{
    struct tally *t = calloc(1, sizeof *t);

    if (!t)
        return error_no_memory();
    t->model = model;
    t->set = set;
    *state = t;
    return tally_places_init(&t->places, model, set) ? NULL : error_no_memory();
}

static void tally_destroy(void *state)
{
    struct tally *t = state;

    if (!t)
        return;
    for (size_t i = 0; i < t->events.count; i++) {
        struct tally_event *e = &t->events.data[i];
        VEC_DEINIT(&e->nodes);
        VEC_DEINIT(&e->functions);
        VEC_DEINIT(&e->codes);
        VEC_DEINIT(&e->lines);
        VEC_DEINIT(&e->slots);
        VEC_DEINIT(&e->stacks);
        tally_tree_deinit(&e->node_tree);
        tally_tree_deinit(&e->path_tree);
        VEC_DEINIT(&e->seen_functions);
    }
    VEC_DEINIT(&t->events);
    VEC_DEINIT(&t->modules);
    tally_facts_deinit(&t->facts);
    tally_places_deinit(&t->places);
    free(t);
}

/* ---- blocks ---- */

/* Makes room for what stacks of the block were found to be made of. */
static bool make_room(struct tally *t, struct tally_event *e)
{
    const struct run_set *set = t->set;
    struct limits *limits = set->limits;

    e->node_tree.limits = e->path_tree.limits = limits;
    while (e->node_tree.steps.count < set->nodes.count) {
        uint32_t parent = set->nodes.data[e->node_tree.steps.count].parent;
        if (!tally_tree_push(&e->node_tree, parent == RUN_SET_NONE ? RUN_SET_ROOT : parent))
            return false;
    }
    while (e->path_tree.steps.count < t->places.paths.count) {
        if (!tally_tree_push(&e->path_tree, t->places.paths.data[e->path_tree.steps.count].parent))
            return false;
    }
    return VEC_EXTEND_COUNTED(limits, &e->nodes, set->nodes.count) &&
           VEC_EXTEND_COUNTED(limits, &e->functions, set->functions.count) &&
           VEC_EXTEND_COUNTED(limits, &e->codes, set->codes.count) && VEC_EXTEND_COUNTED(limits, &e->lines, set->lines.count);
}

static bool add_stack(struct tally *t, struct tally_event *e, uint32_t slot)
{
    double value = e->slots.data[slot].value;
    struct tally_place place;

    if (!tally_place_of(&t->places, slot ? slot - 1 : EMIT_NO_STACK, &place) || !make_room(t, e))
        return false;
    e->nodes.data[place.node].self_now += value;
    if (place.line != RUN_SET_NONE) {
        e->lines.data[place.line] += value;
        e->functions.data[t->set->nodes.data[place.node].function].self_now += value;
    }
    return tally_tree_add(&e->node_tree, place.node, value) && tally_tree_add(&e->path_tree, place.path, value);
}

/* `of_total` is the block's value of the whole that the total is a part of, `of_self` that of the self. */
static void end_sums(struct tally_sums *s, double of_self, double of_total)
{
    s->self += s->self_now;
    s->total += s->total_now;
    s->self_square += s->self_now * s->self_now;
    s->self_whole += s->self_now * of_self;
    s->total_square += s->total_now * s->total_now;
    s->total_whole += s->total_now * of_total;
    s->blocks++;
    s->self_now = s->total_now = 0;
}

static void end_nodes(struct tally_event *e)
{
    struct tally_tree *tree = &e->node_tree;

    tally_tree_add_up(tree);
    for (size_t i = 0; i < tree->seen.count; i++) {
        const struct tally_step *step = &tree->steps.data[tree->seen.data[i]];
        struct tally_sums *sums = &e->nodes.data[tree->seen.data[i]];
        sums->total_now = step->now;
        end_sums(sums, step->now, tree->steps.data[step->parent].now);
    }
    tally_tree_clear(tree);
}

/* A stack has each function once in its path, so the paths of a function add up. */
static bool end_functions(struct tally *t, struct tally_event *e)
{
    struct tally_tree *tree = &e->path_tree;

    tally_tree_add_up(tree);
    for (size_t i = 0; i < tree->seen.count; i++) {
        uint32_t path = tree->seen.data[i];
        if (path == TALLY_NO_PATH)
            continue;
        uint32_t code = t->places.paths.data[path].code, function = t->set->codes.data[code].function;
        struct tally_sums *sums = &e->functions.data[function];
        e->codes.data[code].total += tree->steps.data[path].now;
        if (!sums->total_now && !VEC_PUSH(&e->seen_functions, function))
            return false;
        sums->total_now += tree->steps.data[path].now;
    }
    for (size_t i = 0; i < e->seen_functions.count; i++)
        end_sums(&e->functions.data[e->seen_functions.data[i]], e->now, e->now);
    tally_tree_clear(tree);
    return true;
}

static bool end_block(struct tally *t, struct tally_event *e)
{
    for (size_t i = 0; i < e->stacks.count; i++) {
        if (!add_stack(t, e, e->stacks.data[i]))
            return false;
    }
    end_nodes(e);
    if (!end_functions(t, e))
        return false;
    e->all_square += e->now * e->now;
    e->blocks += e->now > 0;
    e->now = 0;
    e->samples_now = 0;
    e->stacks.count = e->seen_functions.count = 0;
    return ++e->block != 0;
}

/* ---- the end of a capture ---- */

/* How much of a whole. */
struct tally_part {
    double part, whole;                         /* sums over blocks */
    double part_square, product, whole_square;  /* sums of squares and products */
    uint32_t blocks;                            /* in which the whole was seen */
};

/* See tally.h. `weight` is that of a sample. */
static float dispersion_of(const struct tally_part *p, double weight)
{
    double ratio = p->whole > 0 ? p->part / p->whole : 0;
    double expected = weight * p->whole * ratio * (1 - ratio);
    double found = p->part_square - 2 * ratio * p->product + ratio * ratio * p->whole_square;

    if (p->blocks < DISPERSION_BLOCKS || p->part < DISPERSION_SAMPLES * weight || !(expected > 0))
        return 1;
    double dispersion = found / expected * p->blocks / (p->blocks - 1);
    dispersion = fmin(fmax(dispersion, 1), RUN_DISPERSION_MAX);
    return (float)(floor(dispersion * RUN_DISPERSION_STEPS + 0.5) / RUN_DISPERSION_STEPS);
}

static bool push_cell(struct tally *t, struct run_cells *cells, struct run_cell cell)
{
    return limits_take(t->set->limits, sizeof cell) && VEC_PUSH(cells, cell);
}

static bool take_nodes(struct tally *t, const struct tally_event *e, struct run_event *out)
{
    for (uint32_t node = 0; node < e->nodes.count; node++) {
        const struct tally_sums *s = &e->nodes.data[node];
        const struct tally_sums *parent = node == RUN_SET_ROOT ? s : &e->nodes.data[t->set->nodes.data[node].parent];
        const struct tally_part of_parent = {s->total,       parent->total,        s->total_square,
                                             s->total_whole, parent->total_square, parent->blocks};
        const struct tally_part self = {s->self, s->total, s->self_square, s->self_whole, s->total_square, s->blocks};
        if (s->total && !push_cell(t, &out->nodes, ((struct run_cell){.id = node,
                                                                      .dispersion = dispersion_of(&of_parent, out->weight),
                                                                      .self_dispersion = dispersion_of(&self, out->weight),
                                                                      .self = s->self,
                                                                      .total = s->total})))
            return false;
    }
    return true;
}

static bool take_functions(struct tally *t, const struct tally_event *e, struct run_event *out)
{
    for (uint32_t function = 0; function < e->functions.count; function++) {
        const struct tally_sums *s = &e->functions.data[function];
        const struct tally_part total = {s->total, e->total, s->total_square, s->total_whole, e->all_square, e->blocks};
        const struct tally_part self = {s->self, e->total, s->self_square, s->self_whole, e->all_square, e->blocks};
        if (s->total && !push_cell(t, &out->functions, ((struct run_cell){.id = function,
                                                                          .dispersion = dispersion_of(&total, out->weight),
                                                                          .self_dispersion = dispersion_of(&self, out->weight),
                                                                          .self = s->self,
                                                                          .total = s->total})))
            return false;
        if (s->self)
            t->modules.data[t->set->functions.data[function].file] += s->self;
    }
    return true;
}

/* A cell without dispersion. */
static bool push_plain(struct tally *t, struct run_cells *cells, uint32_t id, double self, double total)
{
    const struct run_cell cell = {.id = id, .dispersion = 1, .self_dispersion = 1, .self = self, .total = total};

    return !total || push_cell(t, cells, cell);
}

static bool take_cells(struct tally *t, struct tally_event *e, struct run_event *out)
{
    bool ok = VEC_EXTEND_COUNTED(t->set->limits, &t->modules, t->set->texts.count);

    if (!ok)
        return false;
    memset(t->modules.data, 0, t->modules.count * sizeof *t->modules.data);
    ok = take_nodes(t, e, out) && take_functions(t, e, out);
    for (uint32_t line = 0; ok && line < e->lines.count; line++) {
        double value = e->lines.data[line];
        e->codes.data[t->set->lines.data[line].code].self += value;
        ok = push_plain(t, &out->lines, line, value, value);
    }
    for (uint32_t code = 0; ok && code < e->codes.count; code++)
        ok = push_plain(t, &out->codes, code, e->codes.data[code].self, fmax(e->codes.data[code].total, e->codes.data[code].self));
    for (uint32_t file = 0; ok && file < t->modules.count; file++)
        ok = push_plain(t, &out->modules, file, t->modules.data[file], t->modules.data[file]);
    return ok;
}

#define FORGET(limits, v) (limits_give(limits, (v)->count * sizeof *(v)->data), (v)->count = 0)

/* Forgets the sums, for the next capture. Slots are of blocks that will not come again. */
static void clear_event(struct limits *limits, struct tally_event *e)
{
    FORGET(limits, &e->nodes);
    FORGET(limits, &e->functions);
    FORGET(limits, &e->codes);
    FORGET(limits, &e->lines);
    e->samples = 0;
    e->total = e->squares = e->all_square = 0;
    e->blocks = 0;
}

static bool take_event(struct tally *t, uint32_t event, struct run *run)
{
    struct tally_event none = {0}, *e = event < t->events.count ? &t->events.data[event] : &none;
    struct run_event out = {.samples = e->samples, .total = e->total, .weight = e->total > 0 ? e->squares / e->total : 0};

    if (!e->samples && !tally_facts_has_event(t->model, t->capture, event))
        return true;
    if (!tally_facts_event(t->model, t->set, t->capture, event, &out) || !limits_take(t->set->limits, sizeof out) ||
        !VEC_PUSH(&run->events, out))
        return false;
    bool ok = !e->samples || (end_block(t, e) && take_cells(t, e, &run->events.data[run->events.count - 1]));
    if (e != &none)
        clear_event(t->set->limits, e);
    return ok;
}

/* Makes a run of what has come of the capture. */
static bool end_capture(struct tally *t)
{
    struct run *run = run_set_add(t->set);
    bool ok = run && tally_facts_run(&t->facts, t->model, t->set, t->capture, run);

    if (!limits_work(t->set->limits, 10 * (t->set->nodes.count + t->set->functions.count)))
        return false;
    for (uint32_t event = 0; ok && event < t->model->event_count; event++)
        ok = take_event(t, event, run);
    t->capture++;
    return ok;
}

/* ---- the emitter ---- */

static bool ends_block(const struct emit_event *event, const struct tally_event *e)
{
    uint32_t doublings = e->blocks / BLOCKS_ALIKE;
    uint64_t lengths = UINT64_C(1) << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);

    if (event->kind == EVENT_CPU_TIME)
        return e->now >= (double)(BLOCK_NS * lengths);
    return e->samples_now >= BLOCK_SAMPLES * lengths;
}

static bool add_sample(struct tally *t, struct tally_event *e, const struct emit_sample *s)
{
    uint32_t slot = s->stack == EMIT_NO_STACK ? 0 : s->stack + 1;
    double value = (double)s->value;

    if (!VEC_EXTEND_COUNTED(t->set->limits, &e->slots, (size_t)slot + 1))
        return false;
    struct tally_slot *of_stack = &e->slots.data[slot];
    if (of_stack->block != e->block) {
        if (!VEC_PUSH(&e->stacks, slot))
            return false;
        *of_stack = (struct tally_slot){.block = e->block};
    }
    of_stack->value += value;
    e->samples_now++;
    e->now += value;
    e->total += value;
    e->squares += value * value;
    return true;
}

static struct error *tally_sample(void *state, const struct emit_sample *s)
{
    struct tally *t = state;

    while (t->capture < s->capture) {
        if (!end_capture(t))
            return error_no_memory();
    }
    if (!VEC_EXTEND_ZERO(&t->events, (size_t)s->event + 1) || !tally_facts_sample(&t->facts, t->model, t->set, s))
        return error_no_memory();
    struct tally_event *e = &t->events.data[s->event];
    e->samples++;
    e->block += !e->block;
    if (!s->value)
        return NULL;
    if (!add_sample(t, e, s) || (ends_block(&t->model->events[s->event], e) && !end_block(t, e)))
        return error_no_memory();
    return NULL;
}

static struct error *tally_end(void *state)
{
    struct tally *t = state;

    while (t->capture < t->model->capture_count) {
        if (!end_capture(t))
            return error_no_memory();
    }
    return NULL;
}

const struct emitter tally_emitter = {
    .name = "tally",
    .description = "counts for a comparison",
    .sample = tally_sample,
    .end = tally_end,
    .destroy = tally_destroy,
};
