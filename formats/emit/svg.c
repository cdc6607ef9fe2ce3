/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as a picture, for a document: from the outermost callers at the top inwards. The width of a box is its share
 * of the event. Names are text that can be selected and searched, and pointing at a box shows its figures.
 *
 * It is one file without scripts and references. Layers have colours (also on a dark page) and, as these alone tell not
 * everyone, different outlines. What is thinner than a few pixels is joined, and deep stacks are cut, so the picture has
 * a bounded height and a moderate size. Each event, and each process or thread that is kept apart, has a graph of its own.
 *
 * The height of the picture stands at its beginning, so the boxes are kept until the end.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/emit/amounts.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"
#include "formats/emit/stack_tree.h"
#include "formats/emit/text_write.h"
#include "formats/emit/top.h"
#include "formats/emit/top_head.h"
#include "formats/emit/xml.h"

enum {
    WIDTH = 1200,
    MARGIN = 10,
    GRAPH_WIDTH = WIDTH - 2 * MARGIN,
    ROW_HEIGHT = 18,
    LINE_HEIGHT = 17,  /* of text above a graph */
    ROWS_MOST = 128,   /* of a graph */
    TITLE_COLUMNS = 300, /* of a name in the text that pointing at a box shows */
    NAME_COLUMNS_LEAST = 3,
};
static const double column_width = 7.3; /* of the font, in most viewers a little less */
static const double min_share_usual = 0.002;

/* The classes of boxes in the style sheet. */
static const char layer_classes[] = {[EMIT_PYTHON] = 'p', [EMIT_NATIVE] = 'n', [EMIT_KERNEL] = 'k', [EMIT_MARK] = 'm'};
static const char *const layer_names[] = {
    [EMIT_PYTHON] = "Python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel", [EMIT_MARK] = "a mark"};

static const char style[] =
    "<style>\n"
    ".pysym .paper{fill:#fff}\n"
    ".pysym text{font:12px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:#1b1b1b;white-space:pre}\n"
    ".pysym rect{stroke-width:1;shape-rendering:crispEdges}\n"
    ".pysym .p rect{fill:#a9cdf0;stroke:#3f74a8}\n"
    ".pysym .n rect{fill:#ecc97c;stroke:#8a6714;stroke-dasharray:5 2}\n"
    ".pysym .k rect{fill:#f3b3c1;stroke:#a8405a;stroke-dasharray:1 2}\n"
    ".pysym .m rect{fill:#e4e4e4;stroke:none}\n"
    ".pysym .m text{font-style:italic}\n"
    "@media (prefers-color-scheme:dark){\n"
    ".pysym .paper{fill:#16181b}\n"
    ".pysym text{fill:#f1f1f1}\n"
    ".pysym .p rect{fill:#274f78;stroke:#7fb2e5}\n"
    ".pysym .n rect{fill:#6b4f10;stroke:#e0b95c}\n"
    ".pysym .k rect{fill:#782c40;stroke:#f08fa5}\n"
    ".pysym .m rect{fill:#45484c}\n"
    "}\n"
    "</style>\n";

struct svg {
    struct buf body;
    uint64_t taken_bytes; /* of the body, from the limits */
    struct limits *limits; /* borrowed; NULL: none */
    uint32_t y;           /* where the next line or box goes */
};

/* A box to be drawn: a node, or what is too thin below one. */
struct box {
    uint32_t node, row;
    uint64_t from, weight; /* of the event: where it begins, and how wide it is */
    uint64_t others;       /* not 0: so many thin children */
};

struct graph {
    struct svg *svg;
    const struct top_view *view;
    const struct emit_event *event;
    uint64_t all, least;
    double min_share;
    struct stack_tree stacks;
    struct stack_children children;
    VEC(struct box) boxes; /* the last is drawn next */
    uint32_t rows;         /* drawn */
};

/* ---- text ---- */

static void put_text(struct svg *svg, uint32_t x, const void *text, size_t len_bytes)
{
    buf_printf(&svg->body, "<text x=\"%u\" y=\"%u\">", x, svg->y + LINE_HEIGHT - 4);
    xml_put(text, len_bytes, &svg->body);
    buf_put_str(&svg->body, "</text>\n");
}

/* Lines above a graph; long ones lose their middle. */
static void put_lines(struct svg *svg, struct buf *text)
{
    const char *at = buf_cstr(text);

    for (size_t len; *at; at += len + (at[len] == '\n')) {
        struct buf line = {0};
        len = strcspn(at, "\n");
        columns_cut(&line, at, len, (size_t)(GRAPH_WIDTH / column_width));
        if (line.len_bytes)
            put_text(svg, MARGIN, line.data, line.len_bytes);
        svg->body.bad |= line.bad;
        buf_deinit(&line);
        svg->y += LINE_HEIGHT;
    }
    svg->body.bad |= text->bad;
}

/* Counts what the body has grown by. */
static bool take_bytes(struct svg *svg)
{
    uint64_t more = svg->body.len_bytes - svg->taken_bytes;

    if (svg->body.bad || !limits_take(svg->limits, more))
        return false;
    svg->taken_bytes += more;
    return limits_work(svg->limits, 500 + more);
}

/* ---- boxes ---- */

static enum emit_frame_kind layer_of(const struct graph *g, const struct box *b)
{
    uint32_t frame = b->others ? STACK_TREE_NO_FRAME : g->stacks.nodes.data[b->node].frame;

    return frame == STACK_TREE_NO_FRAME ? EMIT_MARK : g->view->model->frames[frame].kind;
}

static void put_name(const struct graph *g, const struct box *b, struct buf *out)
{
    struct number n;

    if (b->others) {
        buf_printf(out, "[%s others, each less than %g%%]", grouped(b->others, &n), 100 * g->min_share);
    } else if (b->node == STACK_TREE_ROOT) {
        buf_put_str(out, "all");
    } else {
        const struct intern_entry *name = intern_get(&g->view->texts, g->stacks.nodes.data[b->node].name);
        buf_put(out, name->data, name->len_bytes);
    }
}

/* "render (shop.py:45)\n" and "Python, 53.4 %: 3.65 s, self 0.02 s" */
static void put_title(const struct graph *g, const struct box *b, const struct buf *name, bool cut)
{
    struct buf text = {0};
    struct number share;

    columns_cut(&text, name->data, name->len_bytes, TITLE_COLUMNS);
    buf_put_u8(&text, '\n');
    if (b->node != STACK_TREE_ROOT || b->others)
        buf_printf(&text, "%s, ", b->others ? "joined" : layer_names[layer_of(g, b)]);
    buf_printf(&text, "%s: ", share_text(b->weight, g->all, &share));
    amount_put(g->event, b->weight, g->all, &text);
    if (!b->others && g->stacks.nodes.data[b->node].self) {
        buf_put_str(&text, ", self ");
        amount_put(g->event, g->stacks.nodes.data[b->node].self, g->all, &text);
    }
    if (cut)
        buf_put_str(&text, "\nwhat it calls is left out: the picture has no more rows");
    buf_put_str(&g->svg->body, "<title>");
    xml_put(text.data, text.len_bytes, &g->svg->body);
    buf_put_str(&g->svg->body, "</title>");
    g->svg->body.bad |= text.bad;
    buf_deinit(&text);
}

/* As much of the name as has room: the function rather than its place. */
static void put_label(const struct graph *g, const struct buf *name, double width)
{
    size_t room = width > 6 ? (size_t)((width - 6) / column_width) : 0;
    size_t len = name->len_bytes;
    struct buf text = {0};

    if (room < NAME_COLUMNS_LEAST)
        return;
    const uint8_t *place = columns_of(name->data, len) > room ? memmem(name->data, len, " (", 2) : NULL;
    columns_cut_end(&text, name->data, place ? (size_t)(place - name->data) : len, room);
    buf_put_str(&g->svg->body, "<text x=\"4\" y=\"13\">");
    xml_put(text.data, text.len_bytes, &g->svg->body);
    buf_put_str(&g->svg->body, "</text>");
    g->svg->body.bad |= text.bad;
    buf_deinit(&text);
}

/* An inner <svg> for each box: it cuts off what a wide script takes more than its columns. */
static void draw(const struct graph *g, const struct box *b, bool cut)
{
    double scale = g->all ? (double)GRAPH_WIDTH / (double)g->all : 0;
    double x = MARGIN + scale * (double)b->from, width = scale * (double)b->weight;
    struct buf name = {0};

    put_name(g, b, &name);
    buf_printf(&g->svg->body, "<svg class=\"%c\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\">",
               b->node == STACK_TREE_ROOT && !b->others ? 'm' : layer_classes[layer_of(g, b)], x,
               g->svg->y + b->row * ROW_HEIGHT, width, ROW_HEIGHT);
    put_title(g, b, &name, cut);
    buf_printf(&g->svg->body, "<rect x=\".5\" y=\".5\" width=\"%.1f\" height=\"%u\"/>", width > 2 ? width - 1 : 1,
               ROW_HEIGHT - 2);
    put_label(g, &name, width);
    buf_put_str(&g->svg->body, "</svg>\n");
    g->svg->body.bad |= name.bad;
    buf_deinit(&name);
}

/* Puts what stands below a box on the list. */
static bool push_children(struct graph *g, const struct box *above)
{
    struct stack_children *found = &g->children;

    if (!stack_tree_children(&g->stacks, above->node, g->least, found))
        return false;
    uint64_t at = above->from;
    for (size_t i = 0; i < found->nodes.count; i++) {
        struct box child = {.node = found->nodes.data[i], .row = above->row + 1, .from = at,
                            .weight = g->stacks.nodes.data[found->nodes.data[i]].total};
        at += child.weight;
        if (!VEC_PUSH(&g->boxes, child))
            return false;
    }
    struct box others = {.node = above->node, .row = above->row + 1, .from = at, .weight = found->others_weight,
                         .others = found->others};
    return !found->others || found->others_weight < g->least || VEC_PUSH(&g->boxes, others);
}

static bool draw_all(struct graph *g)
{
    if (!VEC_PUSH(&g->boxes, ((struct box){.node = STACK_TREE_ROOT, .weight = g->all})))
        return false;
    while (g->boxes.count) {
        const struct box b = g->boxes.data[--g->boxes.count];
        bool cut = b.row + 1 == ROWS_MOST && !b.others && g->stacks.nodes.data[b.node].first_child != STACK_TREE_ROOT;
        draw(g, &b, cut);
        if (b.row >= g->rows)
            g->rows = b.row + 1;
        if (!take_bytes(g->svg) || (!b.others && !cut && !push_children(g, &b)))
            return false;
    }
    return true;
}

/* ---- the file ---- */

static struct error *begin_event(const struct top_view *v, const struct top_event *e, bool first)
{
    struct svg *svg = v->own;
    struct buf text = {0};

    svg->y += first ? 0 : LINE_HEIGHT;
    top_head_put(v, e, &text);
    put_lines(svg, &text);
    buf_deinit(&text);
    return take_bytes(svg) ? NULL : error_no_memory();
}

static struct error *table(const struct top_view *v, const struct top_event *e, const struct top_table *t, bool first)
{
    struct graph g = {.svg = v->own, .view = v, .event = &v->model->events[e->event], .all = t->all.weight,
                      .min_share = emit_min_share(&v->options, min_share_usual)};
    struct buf text = {0};

    (void)first;
    g.least = (uint64_t)ceil(g.min_share * (double)g.all);
    g.least += !g.least; /* what weighs nothing has no box */
    top_owner_put(v, e, t, &text);
    put_lines(g.svg, &text);
    buf_deinit(&text);
    g.svg->y += ROW_HEIGHT / 2;
    bool ok = top_stacks(v, t, &g.stacks) && draw_all(&g);
    g.svg->y += g.rows * ROW_HEIGHT + ROW_HEIGHT / 2;
    stack_tree_deinit(&g.stacks);
    stack_children_deinit(&g.children);
    VEC_DEINIT(&g.boxes);
    return ok ? NULL : error_no_memory();
}

static struct error *end_event(const struct top_view *v, const struct top_event *e)
{
    struct svg *svg = v->own;
    struct buf text = {0};

    top_rest_put(v, e, &text);
    put_lines(svg, &text);
    buf_deinit(&text);
    return svg->body.bad ? error_no_memory() : NULL;
}

static void put_legend(struct buf *out)
{
    static const uint32_t widths[] = {[EMIT_PYTHON] = 64, [EMIT_NATIVE] = 64, [EMIT_KERNEL] = 64, [EMIT_MARK] = 220};
    static const char *const texts[] = {
        [EMIT_PYTHON] = "Python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel", [EMIT_MARK] = "waits, and what is left out"};
    uint32_t x = MARGIN;

    for (enum emit_frame_kind kind = EMIT_PYTHON; kind <= EMIT_MARK; kind++) {
        buf_printf(out, "<svg class=\"%c\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"><rect x=\".5\" y=\".5\" width=\"%u\" height=\"%u\"/>"
                   "<text x=\"4\" y=\"13\">%s</text></svg>\n",
                   layer_classes[kind], x, MARGIN, widths[kind], ROW_HEIGHT, widths[kind] - 1, ROW_HEIGHT - 2, texts[kind]);
        x += widths[kind] + MARGIN;
    }
    buf_printf(out, "<text x=\"%u\" y=\"%u\">callers above, what they call below; the width is the share</text>\n", x + MARGIN,
               MARGIN + 13);
}

static struct error *end(const struct top_view *v, bool empty)
{
    struct svg *svg = v->own;
    struct buf head = {0}, name = {0};
    uint32_t height = svg->y + MARGIN;

    if (empty) {
        put_text(svg, MARGIN, "0 samples", strlen("0 samples"));
        height += LINE_HEIGHT;
    }
    name_plain(v->options.name ? v->options.name : "", &name);
    buf_printf(&head, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pysym\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\">\n",
               WIDTH, height, WIDTH, height);
    buf_put_str(&head, "<title>");
    xml_put(name.data, name.len_bytes, &head);
    buf_printf(&head, " (%s)</title>\n%s<rect class=\"paper\" width=\"%u\" height=\"%u\"/>\n", v->options.exporter ? v->options.exporter : "pysym",
               style, WIDTH, height);
    put_legend(&head);
    head.bad |= name.bad;
    buf_deinit(&name);
    TRY(text_write(&head, v->out));
    buf_put_str(&svg->body, "</svg>\n");
    return text_write(&svg->body, v->out);
}

static void svg_destroy(void *state)
{
    struct svg *svg = top_own(state);

    if (svg) {
        limits_give(svg->limits, svg->taken_bytes);
        buf_deinit(&svg->body);
    }
    free(svg);
    top_destroy(state);
}

static struct error *svg_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    static const struct top_writer writer = {
        .begin = top_head_begin, .begin_event = begin_event, .table = table, .end_event = end_event, .end = end};
    struct svg *svg = calloc(1, sizeof *svg);

    if (!svg)
        return error_no_memory();
    *svg = (struct svg){.y = MARGIN + 2 * ROW_HEIGHT, .limits = options->limits};
    struct error *err = top_create(model, options, out, &writer, svg, state);
    if (err)
        free(svg);
    return err;
}

const struct emitter emitter_svg = {
    .name = "svg",
    .joins_thin = true,
    .tells_filters = true,
    .description = "a flame graph as a picture, for a document",
    .extension = ".svg",
    .syntax = JOB_TEXT_XML,
    .begin = svg_begin,
    .sample = top_sample,
    .end = top_end,
    .destroy = svg_destroy,
};
