/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a program as a tree, for a terminal, from the outermost callers inwards:
 *
 *      total    time    self    time    function: P Python, N native, K kernel
 *     100.0%  7.31 s                  P <module> (app.py)
 *      98.0%  7.16 s                  P main (app.py:3)
 *      60.0%  4.39 s   12.0%  0.88 s  P |- parse (app.py:12)
 *      48.0%  3.51 s   48.0%  3.51 s  N |  memcpy
 *      38.0%  2.78 s   38.0%  2.78 s  P `- render (app.py:40)
 *
 * Children stand below their caller, the heaviest first. An only child stands right below it without indentation, so that
 * long chains of calls stay narrow, as in perf report. What takes little is left out, and counted. The tables of top.h
 * have the stacks; their rows are not used.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/emit/amounts.h"
#include "formats/emit/emit.h"
#include "formats/emit/layer_colours.h"
#include "formats/emit/names.h"
#include "formats/emit/stack_tree.h"
#include "formats/emit/text_write.h"
#include "formats/emit/top.h"
#include "formats/emit/top_head.h"

enum {
    LEVELS_MOST = 24,        /* of indentation; further ones are given as a number */
    LEVEL_COLUMNS = 3,
    NAME_COLUMNS_LEAST = 16, /* of a narrow terminal; its lines wrap */
    TEXT_BYTES = 1 << 16,    /* are kept before they are written */
};
static const double min_share_usual = 0.005;

/* What is to be printed: a node, or what was left out below one. */
struct item {
    uint32_t node;
    uint32_t level;    /* of indentation; 0: none */
    bool last, chain;  /* chain: the only child of what stands above it */
    uint64_t left_out; /* not 0: so many children, which weigh `weight` */
    uint64_t weight;
};

struct tree {
    const struct top_view *view;
    const struct emit_event *event;
    const struct top_table *table;
    struct stack_tree stacks;
    double min_share;
    uint64_t least;          /* what weighs less is left out */
    uint64_t left_out, left_out_weight;
    int columns;             /* of weights */
    uint32_t levels_most;
    VEC(bool) open;          /* by level: more siblings follow */
    VEC(struct item) items;  /* the last is printed next */
    struct stack_children children; /* of the node that was printed last */
    struct buf text;
};

/* ---- lines ---- */

/* The lines that join a node to its caller; of a deep one those of the innermost levels, behind the number of the others. */
static void put_guides(struct tree *t, const struct item *it)
{
    static const char *const plain[] = {"   ", "|  ", "|- ", "`- "};
    static const char *const drawn[] = {"   ", "\xe2\x94\x82  ", "\xe2\x94\x9c\xe2\x94\x80 ", "\xe2\x94\x94\xe2\x94\x80 "};
    const char *const *parts = t->view->options.terminal.blocks ? drawn : plain;
    uint32_t first = it->level > t->levels_most ? it->level - t->levels_most + 1 : 1;

    if (first > 1)
        buf_printf(&t->text, "+%u ", first - 1);
    for (uint32_t level = first; level <= it->level; level++) {
        bool own = level == it->level && !it->chain;
        buf_put_str(&t->text, own ? parts[it->last ? 3 : 2] : parts[t->open.data[level]]);
    }
}

/* The name of what the line is about, cut to what is left of the terminal's width behind `used` columns. */
static void put_name(struct tree *t, const struct item *it, size_t used, struct buf *out)
{
    uint32_t columns = t->view->options.terminal.columns;
    const struct intern_entry *name = intern_get(&t->view->texts, t->stacks.nodes.data[it->node].name);
    size_t room = !columns ? SIZE_MAX : columns > used + NAME_COLUMNS_LEAST ? columns - used : NAME_COLUMNS_LEAST;
    struct number n;

    if (it->left_out)
        buf_printf(out, "[%s others, each less than %g%%]", grouped(it->left_out, &n), 100 * t->min_share);
    else
        columns_cut(out, name->data, name->len_bytes, room);
}

static enum emit_frame_kind layer_of(const struct tree *t, const struct item *it)
{
    uint32_t frame = it->left_out ? STACK_TREE_NO_FRAME : t->stacks.nodes.data[it->node].frame;

    return frame == STACK_TREE_NO_FRAME ? EMIT_MARK : t->view->model->frames[frame].kind;
}

static void put_line(struct tree *t, const struct item *it)
{
    static const char letters[] = {[EMIT_PYTHON] = 'P', [EMIT_NATIVE] = 'N', [EMIT_KERNEL] = 'K', [EMIT_MARK] = ' '};
    const struct emit_terminal *terminal = &t->view->options.terminal;
    const struct stack_node *node = &t->stacks.nodes.data[it->node];
    uint64_t all = t->table->all.weight, self = it->left_out ? 0 : node->self;
    enum emit_frame_kind layer = layer_of(t, it);
    size_t from = t->text.len_bytes;

    amount_put_share(t->event, it->left_out ? it->weight : node->total, all, t->columns, &t->text);
    buf_put_u8(&t->text, ' ');
    if (self && self >= t->least)
        amount_put_share(t->event, self, all, t->columns, &t->text);
    else
        buf_printf(&t->text, "%*s", 8 + t->columns, "");
    buf_printf(&t->text, "  %c ", letters[layer]);
    put_guides(t, it);
    size_t used = t->text.bad ? 0 : columns_of(t->text.data + from, t->text.len_bytes - from);
    buf_put_str(&t->text, layer_colour(terminal, layer));
    put_name(t, it, used, &t->text);
    buf_printf(&t->text, "%s\n", layer_colour_end(terminal));
}

/* ---- the order of lines ---- */

/* Puts what stands below an item on the list. */
static bool push_children(struct tree *t, const struct item *above)
{
    struct stack_children *found = &t->children;

    if (!stack_tree_children(&t->stacks, above->node, t->least, found))
        return false;
    t->left_out += found->others;
    t->left_out_weight += found->others_weight;
    bool rest_shown = found->others && found->others_weight >= t->least;
    bool chain = found->nodes.count == 1 && !rest_shown && above->node != STACK_TREE_ROOT;
    uint32_t level = above->level + (chain || above->node == STACK_TREE_ROOT ? 0 : 1);

    struct item rest = {.node = above->node, .level = level, .last = true, .left_out = found->others, .weight = found->others_weight};
    if (rest_shown && !VEC_PUSH(&t->items, rest))
        return false;
    for (size_t i = found->nodes.count; i--;) {
        struct item child = {.node = found->nodes.data[i], .level = level, .chain = chain,
                             .last = i + 1 == found->nodes.count && !rest_shown};
        if (!VEC_PUSH(&t->items, child))
            return false;
    }
    return true;
}

static void write_text(struct tree *t)
{
    if (!t->text.bad)
        fwrite(t->text.data, 1, t->text.len_bytes, t->view->out);
    buf_clear(&t->text);
}

static bool write_lines(struct tree *t)
{
    bool ok = push_children(t, &(struct item){.node = STACK_TREE_ROOT});

    while (ok && t->items.count) {
        const struct item it = t->items.data[--t->items.count];
        ok = VEC_EXTEND_ZERO(&t->open, it.level + 1);
        if (!ok)
            break;
        put_line(t, &it);
        if (!it.chain)
            t->open.data[it.level] = !it.last;
        ok = limits_work(t->view->options.limits, 500) && (it.left_out || push_children(t, &it));
        if (t->text.len_bytes >= TEXT_BYTES)
            write_text(t);
    }
    return ok;
}

/* ---- trees ---- */

static void put_titles(struct tree *t)
{
    const struct emit_terminal *terminal = &t->view->options.terminal;
    struct buf unit = {0}, all = {0};

    name_unit(t->event, &unit);
    amount_put(t->event, t->table->all.weight, t->table->all.weight, &all);
    size_t unit_columns = columns_of(unit.data, unit.len_bytes);
    t->columns = (int)(unit_columns > all.len_bytes ? unit_columns : all.len_bytes);
    buf_printf(&t->text, "%7s %*s %7s %*s    %s: ", "total", t->columns, buf_cstr(&unit), "self", t->columns, buf_cstr(&unit),
               t->view->options.by == EMIT_BY_LINE ? "line" : "function");
    buf_printf(&t->text, "%sP Python%s, ", layer_colour(terminal, EMIT_PYTHON), layer_colour_end(terminal));
    buf_printf(&t->text, "%sN native%s, ", layer_colour(terminal, EMIT_NATIVE), layer_colour_end(terminal));
    buf_printf(&t->text, "%sK kernel%s\n", layer_colour(terminal, EMIT_KERNEL), layer_colour_end(terminal));
    buf_deinit(&unit);
    buf_deinit(&all);
}

/* "Left out: 41 calls of less than 0.5 % each, with 12.3 % of the time (--min 0 shows all)" */
static void put_left_out(struct tree *t)
{
    struct number n, share;

    if (!t->left_out)
        return;
    buf_printf(&t->text, "Left out: %s of less than %g%%%s, with %s of the ", counted(t->left_out, "call", "calls", &n),
               100 * t->min_share, t->left_out == 1 ? "" : " each",
               share_text(t->left_out_weight, t->table->all.weight, &share));
    name_unit(t->event, &t->text);
    buf_put_str(&t->text, " (--min 0 shows all)\n");
}

static struct error *table(const struct top_view *v, const struct top_event *e, const struct top_table *table, bool first)
{
    double min_share = emit_min_share(&v->options, min_share_usual);
    struct tree t = {.view = v, .event = &v->model->events[e->event], .table = table, .min_share = min_share,
                     .least = (uint64_t)ceil(min_share * (double)table->all.weight), .levels_most = LEVELS_MOST};

    (void)first;
    if (v->options.terminal.columns && v->options.terminal.columns / 2 / LEVEL_COLUMNS < LEVELS_MOST)
        t.levels_most = 1 + v->options.terminal.columns / 3 / LEVEL_COLUMNS;
    bool ok = top_stacks(v, table, &t.stacks);
    buf_put_u8(&t.text, '\n');
    top_owner_put(v, e, table, &t.text);
    put_titles(&t);
    ok = ok && write_lines(&t);
    put_left_out(&t);
    struct error *err = text_write(&t.text, v->out);
    if (!ok && !err)
        err = error_no_memory();
    stack_tree_deinit(&t.stacks);
    VEC_DEINIT(&t.open);
    VEC_DEINIT(&t.items);
    stack_children_deinit(&t.children);
    return err;
}

static struct error *tree_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    static const struct top_writer writer = {
        .begin = top_head_begin, .begin_event = top_head_write, .table = table, .end_event = top_head_end_event, .end = top_head_end};

    return top_create(model, options, out, &writer, NULL, state);
}

const struct emitter emitter_tree = {
    .name = "tree",
    .joins_thin = true,
    .tells_filters = true,
    .description = "the calls as a tree with their shares, for a terminal",
    .extension = ".tree",
    .begin = tree_begin,
    .sample = top_sample,
    .end = top_end,
    .destroy = top_destroy,
};
