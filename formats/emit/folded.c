/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, for flamegraph.pl, inferno, speedscope and many others: one line per distinct stack, outermost frame
 * first, and the count of its samples. When samples differ in weight, counts would give wrong shares; then the number is
 * the weight, in microseconds for clocks and in the event's unit for other events. For an event that counts occurrences
 * it is always what was counted; page faults are given as bytes.
 *
 * Samples are counted by stack, and by process or thread as they are kept apart. At the end the stacks become a tree of names, in which different
 * stacks with the same names are one. Walking the tree in the order of names writes the lines in the order of
 * `LC_ALL=C sort`, without holding them all in memory.
 */
#include "formats/emit/counts.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct node {
    uint32_t name; /* in texts */
    uint32_t first_child, next_sibling;
    uint64_t number; /* on the line that ends here; 0: no line does */
};
#define NODE_ROOT 0 /* stands for no node, too: the root is no node's child */

struct folded {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct counts counts;
    struct intern texts;
    VEC(struct node) nodes;
    struct map children; /* parent node << 32 | name -> node */
};

static struct error *folded_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                  void **state)
{
    struct folded *f = calloc(1, sizeof *f);

    if (!f)
        return error_no_memory();
    *f = (struct folded){.model = model, .options = *options, .out = out, .counts.limits = options->limits,
                         .texts.arena.limits = options->limits, .children.limits = options->limits};
    if (f->options.merge == EMIT_MERGE_DEFAULT)
        f->options.merge = options->threads ? EMIT_MERGE_THREAD : EMIT_MERGE_PROCESS;
    *state = f;
    return NULL;
}

static struct error *folded_sample(void *state, const struct emit_sample *s)
{
    struct folded *f = state;
    uint32_t owner = 0;

    if (f->options.merge == EMIT_MERGE_THREAD)
        owner = s->thread;
    else if (f->options.merge == EMIT_MERGE_PROCESS)
        owner = f->model->threads[s->thread].process;
    return counts_add(&f->counts, f->model, s, owner) ? NULL : error_no_memory();
}

/* NODE_ROOT when memory ran out. */
static uint32_t child_of(struct folded *f, uint32_t parent, uint32_t name)
{
    uint64_t key = (uint64_t)parent << 32 | name;
    uint64_t *known = map_get(&f->children, key);

    if (known)
        return (uint32_t)*known;
    uint32_t id = (uint32_t)f->nodes.count;
    if (name == INTERN_NONE || f->nodes.count == UINT32_MAX || !limits_take(f->options.limits, sizeof(struct node)) ||
        !map_set(&f->children, key, id) ||
        !VEC_PUSH(&f->nodes, ((struct node){.name = name, .next_sibling = f->nodes.data[parent].first_child})))
        return NODE_ROOT;
    f->nodes.data[parent].first_child = id;
    return id;
}

static uint32_t child_of_text(struct folded *f, uint32_t parent, const struct buf *text)
{
    return text->bad ? NODE_ROOT
                     : child_of(f, parent, intern_id(&f->texts, text->data, (uint32_t)text->len_bytes, NULL));
}

/* Finds the node of an owner: [event;][comm-pid;][thread;]. That may be NODE_ROOT. False: memory ran out. */
static bool find_owner(struct folded *f, uint32_t event, uint32_t owner, uint32_t *node)
{
    const struct emit_model *m = f->model;
    bool by_thread = f->options.merge == EMIT_MERGE_THREAD;
    struct buf text = {0};
    bool ok = true;

    *node = NODE_ROOT;
    if (counts_events(&f->counts) > 1 || (f->options.part && f->options.part->several_events)) {
        name_word(m->events[event].name, &text);
        ok = (*node = child_of_text(f, *node, &text)) != NODE_ROOT;
    }
    if (ok && f->options.merge != EMIT_MERGE_ALL) {
        buf_clear(&text);
        name_process(&m->processes[by_thread ? m->threads[owner].process : owner], &text);
        ok = (*node = child_of_text(f, *node, &text)) != NODE_ROOT;
    }
    if (ok && by_thread) {
        buf_clear(&text);
        name_thread(&m->threads[owner], &text);
        ok = (*node = child_of_text(f, *node, &text)) != NODE_ROOT;
    }
    buf_deinit(&text);
    return ok;
}

/*
 * Rounds nanoseconds to microseconds, on all lines from a node on, so that the sum stays right: each line also takes over
 * what the lines before it were rounded by. A line of less than a microsecond gets one; later lines give it back.
 */
static void round_lines(struct folded *f, uint64_t from)
{
    int64_t rest_ns = 0; /* not on any line yet; negative: the lines have too much */

    for (uint64_t i = from; i < f->nodes.count; i++) {
        uint64_t *number = &f->nodes.data[i].number;
        if (!*number)
            continue;
        rest_ns += (int64_t)(*number % 1000);
        *number /= 1000;
        if (rest_ns >= 500) {
            ++*number;
            rest_ns -= 1000;
        }
        if (!*number) {
            *number = 1;
            rest_ns -= 1000;
        }
        if (rest_ns < -500) {
            uint64_t back = (uint64_t)(500 - rest_ns) / 1000;
            back = back < *number ? back : *number - 1;
            *number -= back;
            rest_ns += (int64_t)back * 1000;
        }
    }
}

/*
 * Cuts a node's children that weigh less than `least` off, with all that is below them, and joins them in one child. `sums`
 * are by node; 0 stands for what was cut off.
 */
static bool join_thin_children(struct folded *f, uint32_t node, uint64_t from, uint64_t least, uint64_t *sums)
{
    uint32_t *link = &f->nodes.data[node].first_child;
    uint64_t rest = 0;
    struct buf name = {0};

    while (*link != NODE_ROOT) {
        uint32_t child = *link;
        if (child >= from && sums[child - from] < least) {
            rest += sums[child - from];
            sums[child - from] = 0;
            *link = f->nodes.data[child].next_sibling;
        } else {
            link = &f->nodes.data[child].next_sibling;
        }
    }
    if (!rest)
        return true;
    buf_printf(&name, "[less than %g%%]", 100 * f->options.min_share);
    uint32_t joined = child_of_text(f, node, &name);
    buf_deinit(&name);
    f->nodes.data[joined].number += joined == NODE_ROOT ? 0 : rest;
    return joined != NODE_ROOT;
}

static void forget_children(const struct folded *f, uint32_t node, uint64_t from, uint64_t *sums)
{
    for (uint32_t c = f->nodes.data[node].first_child; c != NODE_ROOT; c = f->nodes.data[c].next_sibling)
        sums[c - from] = 0;
}

/* Joins thin branches of an event's nodes, which are those from `from` on: children have higher numbers than parents. */
static struct error *join_thin(struct folded *f, uint64_t from)
{
    uint64_t count = f->nodes.count - from, total = 0;
    uint64_t *sums = calloc(count ? count : 1, sizeof *sums);
    bool ok = sums;

    for (uint64_t i = count; ok && i--;) {
        sums[i] = f->nodes.data[from + i].number;
        total += sums[i];
        for (uint32_t c = f->nodes.data[from + i].first_child; c != NODE_ROOT; c = f->nodes.data[c].next_sibling)
            sums[i] += sums[c - from];
    }
    uint64_t least = (uint64_t)ceil((double)total * f->options.min_share);
    if (ok)
        ok = join_thin_children(f, NODE_ROOT, from, least, sums);
    for (uint64_t i = 0; ok && i < count; i++) {
        if (sums[i])
            ok = join_thin_children(f, (uint32_t)(from + i), from, least, sums);
        else
            forget_children(f, (uint32_t)(from + i), from, sums);
    }
    free(sums);
    return ok ? NULL : error_no_memory();
}

/* Do the samples of an event weigh differently? In a part of an output: do those of all parts? */
static bool differs(const struct folded *f, uint32_t event)
{
    const struct emit_part *part = f->options.part;

    return part ? part->weights_differ[event] : weights_differ(&f->counts.weights, weights_class_of(f->model, event));
}

/* Adds the stacks of one event to the tree. Events share no node but the root. */
static struct error *plant(struct folded *f, uint32_t event, const uint32_t *names)
{
    const struct emit_model *m = f->model;
    const struct map *counts = &f->counts.events.data[event];
    struct map known = {.limits = f->options.limits}; /* owner << 32 | stack (or EMIT_NO_STACK, for the owner itself) -> node */
    VEC(uint32_t) todo = {0};
    uint64_t from = f->nodes.count;
    bool ok = true, weigh = m->events[event].is_counted || differs(f, event);

    for (uint64_t i = 0; ok && i < counts->slot_count; i++) {
        const struct map_slot *slot = &counts->slots[i];
        if (!slot->used)
            continue;
        uint64_t owner = slot->key >> 32 << 32;
        uint32_t node = NODE_ROOT;
        /* Outwards to the first part that the tree has already, then inwards again. */
        todo.count = 0;
        for (uint32_t stack = (uint32_t)slot->key; ok; stack = m->stacks[stack].parent) {
            uint64_t *v = map_get(&known, owner | stack);
            if (v) {
                node = (uint32_t)*v;
                break;
            }
            if (stack == EMIT_NO_STACK) {
                ok = find_owner(f, event, (uint32_t)(owner >> 32), &node) && map_set(&known, owner | stack, node);
                break;
            }
            ok = limits_work(f->options.limits, 60) && VEC_PUSH(&todo, stack);
        }
        while (ok && todo.count) {
            uint32_t stack = todo.data[--todo.count];
            node = child_of(f, node, names[m->stacks[stack].frame]);
            ok = node != NODE_ROOT && map_set(&known, owner | stack, node);
        }
        if (ok && (uint32_t)slot->key == EMIT_NO_STACK)
            ok = (node = child_of(f, node, names[m->frame_count])) != NODE_ROOT;
        const struct count *count = counts_get(&f->counts, slot);
        if (ok)
            f->nodes.data[node].number += weigh ? count->weight : count->samples;
    }
    if (ok && weigh && m->events[event].is_time)
        round_lines(f, from);
    VEC_DEINIT(&todo);
    map_deinit(&known);
    if (ok && f->options.min_share > 0)
        return join_thin(f, from);
    return ok ? NULL : error_no_memory();
}

/* A node's own line, or all lines below it: other lines may sort between the two. */
struct item {
    uint32_t node;
    uint32_t prefix_bytes; /* of the line, before the node's name */
    bool below;
};

/* The text behind the name on the line. */
static void item_tail(const struct folded *f, const struct item *it, char tail[24])
{
    if (it->below)
        strcpy(tail, ";");
    else
        snprintf(tail, 24, " %" PRIu64, f->nodes.data[it->node].number);
}

static uint8_t item_byte(const struct intern_entry *name, const char *tail, size_t i)
{
    return i < name->len_bytes ? name->data[i] : (uint8_t)tail[i - name->len_bytes];
}

/* Orders later lines first, since the item pushed last is taken first. */
static int compare_items(const void *a, const void *b, void *arg)
{
    const struct folded *f = arg;
    const struct intern_entry *na = intern_get(&f->texts, f->nodes.data[((const struct item *)a)->node].name);
    const struct intern_entry *nb = intern_get(&f->texts, f->nodes.data[((const struct item *)b)->node].name);
    size_t i = na->len_bytes < nb->len_bytes ? na->len_bytes : nb->len_bytes;
    int order = memcmp(nb->data, na->data, i);
    char ta[24], tb[24];

    if (order)
        return order;
    item_tail(f, a, ta);
    item_tail(f, b, tb);
    for (;; i++) {
        uint8_t ca = item_byte(na, ta, i), cb = item_byte(nb, tb, i);
        if (ca != cb || !ca)
            return (int)cb - (int)ca;
    }
}

static struct error *write_lines(struct folded *f)
{
    VEC(struct item) items = {0};
    struct buf line = {0};
    struct error *err = NULL;
    struct item at = {.node = NODE_ROOT, .below = true};

    for (;;) {
        const struct node *node = &f->nodes.data[at.node];
        line.len_bytes = at.prefix_bytes;
        if (at.node != NODE_ROOT) {
            const struct intern_entry *name = intern_get(&f->texts, node->name);
            buf_put(&line, name->data, name->len_bytes);
        }
        if (!at.below) {
            buf_printf(&line, " %" PRIu64 "\n", node->number);
            if (!line.bad && fwrite(line.data, line.len_bytes, 1, f->out) != 1)
                err = error_os(errno, "cannot write the folded stacks");
        } else {
            if (at.node != NODE_ROOT)
                buf_put_u8(&line, ';');
            size_t from = items.count;
            uint64_t name_bytes = 0;
            for (uint32_t c = node->first_child; c != NODE_ROOT && !err; c = f->nodes.data[c].next_sibling) {
                struct item it = {.node = c, .prefix_bytes = (uint32_t)line.len_bytes};
                if (f->nodes.data[c].number && !VEC_PUSH(&items, it))
                    err = error_no_memory();
                it.below = true;
                if (f->nodes.data[c].first_child != NODE_ROOT && !VEC_PUSH(&items, it))
                    err = error_no_memory();
                name_bytes += intern_get(&f->texts, f->nodes.data[c].name)->len_bytes;
            }
            /* Long names that begin alike are compared to their ends, a few times each. */
            if (!err && !limits_work(f->options.limits, 100 * (items.count - from) + name_bytes))
                err = error_no_memory();
            if (!err && items.count > from)
                qsort_r(items.data + from, items.count - from, sizeof *items.data, compare_items, f);
        }
        if (!err && line.bad)
            err = error_no_memory();
        if (err || !items.count)
            break;
        at = items.data[--items.count];
    }
    VEC_DEINIT(&items);
    buf_deinit(&line);
    return err;
}

static struct error *folded_end(void *state)
{
    struct folded *f = state;
    struct names names;
    uint32_t *ids = NULL;

    struct error *err = names_init(&names, f->model, &f->options);
    if (!err)
        err = names_spell(&names, NAME_AS_ASKED, &f->texts, &ids);
    if (!err && !VEC_PUSH(&f->nodes, ((struct node){0})))
        err = error_no_memory();
    for (uint32_t event = 0; !err && event < f->counts.events.count; event++) {
        if (f->counts.events.data[event].count)
            err = plant(f, event, ids);
    }
    if (!err)
        err = write_lines(f);
    free(ids);
    names_deinit(&names);
    return err;
}

/* What is shown of the events that have samples. */
static void look_at_events(const struct folded *f, bool *time_differs, bool *bytes, bool *other_differs)
{
    *time_differs = *bytes = *other_differs = false;
    for (uint32_t i = 0; i < f->counts.events.count; i++) {
        if (!f->counts.events.data[i].count)
            continue;
        *(f->model->events[i].is_time ? time_differs : other_differs) |= differs(f, i);
        *bytes |= f->model->events[i].is_bytes;
    }
}

static const char *folded_remark(const void *state)
{
    bool time_differs, bytes, other_differs;

    look_at_events(state, &time_differs, &bytes, &other_differs);
    if (time_differs)
        return "samples weigh differently: counts are microseconds";
    if (bytes)
        return "counts of page faults are bytes";
    return other_differs ? "samples weigh differently: numbers are the event's, not counts of samples" : NULL;
}

static void folded_destroy(void *state)
{
    struct folded *f = state;

    if (!f)
        return;
    counts_deinit(&f->counts);
    intern_deinit(&f->texts);
    limits_give(f->options.limits, f->nodes.count ? (f->nodes.count - 1) * sizeof(struct node) : 0);
    VEC_DEINIT(&f->nodes);
    map_deinit(&f->children);
    free(f);
}

const struct emitter emitter_folded = {
    .name = "folded",
    .description = "one line per stack with its count of samples, for flamegraph.pl, inferno, speedscope",
    .extension = ".folded",
    .joins_thin = true,
    .begin = folded_begin,
    .sample = folded_sample,
    .end = folded_end,
    .remark = folded_remark,
    .destroy = folded_destroy,
};
