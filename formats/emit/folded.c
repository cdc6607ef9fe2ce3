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
#include "formats/emit/stack_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct folded {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct counts counts;
    struct intern texts;
    struct stack_tree tree; /* of each node `self` is the number on the line that ends there; 0: no line does */
};

static struct error *folded_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                  void **state)
{
    struct folded *f = calloc(1, sizeof *f);

    if (!f)
        return error_no_memory();
    *f = (struct folded){.model = model, .options = *options, .out = out, .counts.limits = options->limits,
                         .texts.arena.limits = options->limits};
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

static uint32_t child_of_text(struct folded *f, uint32_t parent, const struct buf *text)
{
    uint32_t name = text->bad ? INTERN_NONE : intern_id(&f->texts, text->data, (uint32_t)text->len_bytes, NULL);

    return stack_tree_child(&f->tree, parent, name, STACK_TREE_NO_FRAME);
}

/* Finds the node of an owner: [event;][comm-pid;][thread;]. That may be STACK_TREE_ROOT. False: memory ran out. */
static bool find_owner(struct folded *f, uint32_t event, uint32_t owner, uint32_t *node)
{
    const struct emit_model *m = f->model;
    bool by_thread = f->options.merge == EMIT_MERGE_THREAD;
    struct buf text = {0};
    bool ok = true;

    *node = STACK_TREE_ROOT;
    if (counts_events(&f->counts) > 1 || (f->options.part && f->options.part->several_events)) {
        name_word(m->events[event].name, &text);
        ok = (*node = child_of_text(f, *node, &text)) != STACK_TREE_ROOT;
    }
    if (ok && f->options.merge != EMIT_MERGE_ALL) {
        buf_clear(&text);
        name_process(&m->processes[by_thread ? m->threads[owner].process : owner], &text);
        ok = (*node = child_of_text(f, *node, &text)) != STACK_TREE_ROOT;
    }
    if (ok && by_thread) {
        buf_clear(&text);
        name_thread(&m->threads[owner], &text);
        ok = (*node = child_of_text(f, *node, &text)) != STACK_TREE_ROOT;
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

    for (uint64_t i = from; i < f->tree.nodes.count; i++) {
        uint64_t *number = &f->tree.nodes.data[i].self;
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

/* Cuts a node's children that weigh less than `least` off, with all that is below them, and joins them in one child. */
static bool join_thin_children(struct folded *f, uint32_t node, uint32_t from, uint64_t least)
{
    struct stack_tree *tree = &f->tree;
    uint32_t *link = &tree->nodes.data[node].first_child;
    uint64_t rest = 0;
    struct buf name = {0};

    while (*link != STACK_TREE_ROOT) {
        struct stack_node *child = &tree->nodes.data[*link];
        if (*link >= from && child->total < least) {
            rest += child->total;
            child->total = 0;
            *link = child->next_sibling;
        } else {
            link = &child->next_sibling;
        }
    }
    if (!rest)
        return true;
    buf_printf(&name, "[less than %g%%]", 100 * f->options.min_share);
    uint32_t joined = child_of_text(f, node, &name);
    buf_deinit(&name);
    tree->nodes.data[joined].self += joined == STACK_TREE_ROOT ? 0 : rest;
    return joined != STACK_TREE_ROOT;
}

static void forget_children(struct stack_tree *tree, uint32_t node)
{
    for (uint32_t c = tree->nodes.data[node].first_child; c != STACK_TREE_ROOT; c = tree->nodes.data[c].next_sibling)
        tree->nodes.data[c].total = 0;
}

/* Joins thin branches of an event's nodes, which are those from `from` on. What was cut off has a total of 0. */
static struct error *join_thin(struct folded *f, uint32_t from)
{
    struct stack_tree *tree = &f->tree;
    uint32_t end = (uint32_t)tree->nodes.count;
    uint64_t total = 0;

    for (uint32_t i = from; i < end; i++)
        total += tree->nodes.data[i].self;
    uint64_t least = (uint64_t)ceil((double)total * f->options.min_share);
    bool ok = join_thin_children(f, STACK_TREE_ROOT, from, least);
    for (uint32_t i = from; ok && i < end; i++) {
        if (tree->nodes.data[i].total)
            ok = join_thin_children(f, i, from, least);
        else
            forget_children(tree, i);
    }
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
    const struct emit_event *facts = &f->model->events[event];
    const struct map *counts = &f->counts.events.data[event];
    struct map owners = {.limits = f->options.limits}; /* owner -> node */
    uint32_t from = (uint32_t)f->tree.nodes.count;
    bool ok = true, weigh = event_is_counted(facts->kind) || differs(f, event);

    for (uint64_t i = 0; ok && i < counts->slot_count; i++) {
        const struct map_slot *slot = &counts->slots[i];
        if (!slot->used)
            continue;
        uint32_t owner = (uint32_t)(slot->key >> 32), node;
        const uint64_t *known = map_get(&owners, owner);
        if (known)
            node = (uint32_t)*known;
        else
            ok = find_owner(f, event, owner, &node) && map_set(&owners, owner, node);
        const struct count *count = counts_get(&f->counts, slot);
        ok = ok && stack_tree_add(&f->tree, node, (uint32_t)slot->key, names, weigh ? count->weight : count->samples);
    }
    map_deinit(&owners);
    if (ok && weigh && event_is_time(facts->kind))
        round_lines(f, from);
    ok = ok && stack_tree_sum(&f->tree, from);
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
        snprintf(tail, 24, " %" PRIu64, f->tree.nodes.data[it->node].self);
}

static uint8_t item_byte(const struct intern_entry *name, const char *tail, size_t i)
{
    return i < name->len_bytes ? name->data[i] : (uint8_t)tail[i - name->len_bytes];
}

/* Orders later lines first, since the item pushed last is taken first. */
static int compare_items(const void *a, const void *b, void *arg)
{
    const struct folded *f = arg;
    const struct intern_entry *na = intern_get(&f->texts, f->tree.nodes.data[((const struct item *)a)->node].name);
    const struct intern_entry *nb = intern_get(&f->texts, f->tree.nodes.data[((const struct item *)b)->node].name);
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
    struct item at = {.node = STACK_TREE_ROOT, .below = true};

    for (;;) {
        const struct stack_node *node = &f->tree.nodes.data[at.node];
        line.len_bytes = at.prefix_bytes;
        if (at.node != STACK_TREE_ROOT) {
            const struct intern_entry *name = intern_get(&f->texts, node->name);
            buf_put(&line, name->data, name->len_bytes);
        }
        if (!at.below) {
            buf_printf(&line, " %" PRIu64 "\n", node->self);
            if (!line.bad && fwrite(line.data, line.len_bytes, 1, f->out) != 1)
                err = error_os(errno, "cannot write the folded stacks");
        } else {
            if (at.node != STACK_TREE_ROOT)
                buf_put_u8(&line, ';');
            size_t from = items.count;
            uint64_t name_bytes = 0;
            for (uint32_t c = node->first_child; c != STACK_TREE_ROOT && !err; c = f->tree.nodes.data[c].next_sibling) {
                struct item it = {.node = c, .prefix_bytes = (uint32_t)line.len_bytes};
                if (f->tree.nodes.data[c].self && !VEC_PUSH(&items, it))
                    err = error_no_memory();
                it.below = true;
                if (f->tree.nodes.data[c].first_child != STACK_TREE_ROOT && !VEC_PUSH(&items, it))
                    err = error_no_memory();
                name_bytes += intern_get(&f->texts, f->tree.nodes.data[c].name)->len_bytes;
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
    if (!err && !stack_tree_init(&f->tree, f->model, f->options.limits, &f->texts))
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
        *(event_is_time(f->model->events[i].kind) ? time_differs : other_differs) |= differs(f, i);
        *bytes |= event_is_bytes(f->model->events[i].kind);
    }
}

static const char *folded_remark(const void *state)
{
    bool time_differs, bytes, other_differs;

    look_at_events(state, &time_differs, &bytes, &other_differs);
    if (time_differs)
        return "samples weigh differently: counts are microseconds";
    if (bytes)
        return "counts of memory are bytes";
    return other_differs ? "samples weigh differently: numbers are the event's, not counts of samples" : NULL;
}

static void folded_destroy(void *state)
{
    struct folded *f = state;

    if (!f)
        return;
    counts_deinit(&f->counts);
    stack_tree_deinit(&f->tree);
    intern_deinit(&f->texts);
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
