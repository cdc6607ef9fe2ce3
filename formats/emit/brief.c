/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of text for a review comment, or for a program that reads it: how far to trust the recording, the functions and
 * lines that took most, with paths that can be opened, the main paths to them, what is missing, and how to look further.
 *
 * It is at most some 60 lines, whatever was recorded: of several events, and of processes or threads that are kept apart,
 * each gets fewer rows. The numbers are those of `top` (top.h).
 */
#include <errno.h>
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

enum {
    EVENTS_MOST = 3,
    LOSSES_MOST = 3,
    NAME_COLUMNS = 160,   /* of a row */
    STEP_COLUMNS = 48,    /* of a function in a path */
    STEPS_FIRST = 1,      /* of a path that is too long, so many functions at its beginning */
    STEPS_LAST = 5,       /* and so many at its end are shown */
};
static const double path_share = 0.1; /* of the whole: a path goes on as long as a call takes so much */

/* How many rows an event gets, by how many events there are. Owners are processes or threads, where they are kept apart. */
struct rows {
    uint32_t functions, lines, paths, owners, functions_of_owner;
};
static const struct rows rows_by_events[] = {{0}, {10, 8, 5, 5, 5}, {6, 4, 3, 3, 4}, {4, 0, 2, 2, 2}};

struct brief {
    struct rows rows;
    uint64_t gil_known, gil_held; /* samples of running threads */
};

struct path {
    uint32_t node;
    uint64_t weight;
};

/* ---- tables ---- */

/* The columns of weights: as many as the whole needs. */
static int weight_columns(const struct emit_event *event, const struct top_table *t)
{
    struct buf all = {0};

    amount_put(event, t->all.weight, t->all.weight, &all);
    int columns = (int)all.len_bytes;
    buf_deinit(&all);
    return columns;
}

static void put_rows(const struct top_view *v, const struct top_event *e, const struct top_table *t, uint32_t most,
                     struct buf *out)
{
    const struct emit_event *event = &v->model->events[e->event];
    int columns = weight_columns(event, t);

    for (uint32_t i = 0; i < most && i < t->row_count; i++) {
        const struct top_row *row = &t->rows[i];
        const struct intern_entry *name = intern_get(&v->texts, row->name);
        if (!row->self.weight)
            break;
        amount_put_share(event, row->self.weight, t->all.weight, columns, out);
        amount_put_share(event, row->total.weight, t->all.weight, columns + 1, out);
        buf_put_str(out, "  ");
        columns_cut(out, name->data, name->len_bytes, NAME_COLUMNS);
        buf_put_u8(out, '\n');
    }
}

/* "  self           total         function (231 in all)" */
static void put_titles(const struct top_view *v, const struct top_event *e, const struct top_table *t, struct buf *out)
{
    int columns = weight_columns(&v->model->events[e->event], t);
    struct number n;

    buf_printf(out, "%7s %*s%8s %*s  function (%s in all)\n", "self", columns, "", "total", columns, "",
               grouped(t->row_count, &n));
}

/* ---- paths ---- */

static void put_step(const struct top_view *v, const struct stack_tree *tree, uint32_t node, struct buf *out)
{
    uint32_t frame = tree->nodes.data[node].frame;
    const struct emit_frame *f = frame == STACK_TREE_NO_FRAME ? NULL : &v->model->frames[frame];
    struct buf name = {0};

    if (!f)
        buf_put_str(&name, NAME_NO_FRAMES);
    else
        name_plain(f->function, &name);
    if (f && !name.len_bytes)
        name_module(f, &name);
    columns_cut(out, name.data, name.len_bytes, STEP_COLUMNS);
    out->bad |= name.bad;
    buf_deinit(&name);
}

/* "main > … 14 more … > render > join"; `parents` are by node. */
static bool put_path(const struct top_view *v, const struct stack_tree *tree, const uint32_t *parents, uint32_t node,
                     struct buf *out)
{
    VEC(uint32_t) steps = {0}; /* innermost first */
    bool ok = true;
    struct number n;

    for (uint32_t at = node; ok && at != STACK_TREE_ROOT; at = parents[at])
        ok = limits_work(v->options.limits, 10) && VEC_PUSH(&steps, at);
    for (size_t i = steps.count; ok && i--;) {
        size_t step = steps.count - 1 - i, left = steps.count - STEPS_FIRST - STEPS_LAST;
        if (steps.count > STEPS_FIRST + STEPS_LAST + 1 && step == STEPS_FIRST) {
            buf_printf(out, " > [%s more]", grouped(left, &n));
            i -= left - 1;
            continue;
        }
        buf_put_str(out, step ? " > " : "");
        put_step(v, tree, steps.data[i], out);
    }
    VEC_DEINIT(&steps);
    return ok;
}

static int compare_paths(const void *a, const void *b)
{
    const struct path *pa = a, *pb = b;

    if (pa->weight != pb->weight)
        return pa->weight > pb->weight ? -1 : 1;
    return (pa->node > pb->node) - (pa->node < pb->node);
}

/* Where paths end: at nodes of so much weight none of whose children has it. */
static bool find_paths(const struct stack_tree *tree, uint64_t least, uint32_t *parents, struct path *ends, size_t *count)
{
    *count = 0;
    if (!limits_work(tree->limits, 10 * tree->nodes.count))
        return false;
    for (uint32_t i = 0; i < tree->nodes.count; i++) {
        bool ends_here = i != STACK_TREE_ROOT && tree->nodes.data[i].total >= least;
        for (uint32_t c = tree->nodes.data[i].first_child; c != STACK_TREE_ROOT; c = tree->nodes.data[c].next_sibling) {
            parents[c] = i;
            ends_here &= tree->nodes.data[c].total < least;
        }
        if (ends_here)
            ends[(*count)++] = (struct path){.node = i, .weight = tree->nodes.data[i].total};
    }
    qsort(ends, *count, sizeof *ends, compare_paths);
    return true;
}

static bool put_paths(const struct top_view *v, const struct top_event *e, const struct top_table *t, uint32_t most,
                      struct buf *out)
{
    const struct emit_event *event = &v->model->events[e->event];
    uint64_t least = (uint64_t)ceil(path_share * (double)t->all.weight);
    struct stack_tree tree;
    uint32_t *parents = NULL;
    struct path *ends = NULL;
    size_t count = 0;
    int columns = weight_columns(event, t);

    bool ok = top_stacks(v, t, &tree);
    uint64_t bytes = tree.nodes.count * (sizeof *parents + sizeof *ends), taken = ok && limits_take(v->options.limits, bytes) ? bytes : 0;
    parents = taken ? malloc(tree.nodes.count * sizeof *parents) : NULL;
    ends = taken ? malloc(tree.nodes.count * sizeof *ends) : NULL;
    ok = parents && ends && find_paths(&tree, least + !least, parents, ends, &count);
    if (ok && count)
        buf_printf(out, "\n%7s %*s  main paths, from the outermost function inwards\n", "total", columns, "");
    for (size_t i = 0; ok && i < count && i < most; i++) {
        amount_put_share(event, ends[i].weight, t->all.weight, columns, out);
        buf_put_str(out, "  ");
        ok = put_path(v, &tree, parents, ends[i].node, out);
        buf_put_u8(out, '\n');
    }
    limits_give(v->options.limits, taken);
    free(parents);
    free(ends);
    stack_tree_deinit(&tree);
    return ok;
}

/* ---- events ---- */

static struct error *functions_table(const struct top_view *v, const struct top_event *e, const struct top_table *t, bool first)
{
    const struct brief *b = v->own;
    bool apart = v->options.merge != EMIT_MERGE_ALL;
    struct buf text = {0};

    (void)first;
    buf_put_u8(&text, '\n');
    top_owner_put(v, e, t, &text);
    put_titles(v, e, t, &text);
    put_rows(v, e, t, apart ? b->rows.functions_of_owner : b->rows.functions, &text);
    bool ok = apart || put_paths(v, e, t, b->rows.paths, &text);
    struct error *err = text_write(&text, v->out);
    return err || ok ? err : error_no_memory();
}

static struct error *functions_end(const struct top_view *v, const struct top_event *e)
{
    uint32_t left = e->table_count - top_shown(v, e->table_count);
    bool by_thread = v->options.merge == EMIT_MERGE_THREAD;
    struct number n;

    if (left)
        fprintf(v->out, "\nand %s (--%s shows one)\n",
                by_thread ? counted(left, "other thread", "other threads", &n)
                          : counted(left, "other process", "other processes", &n), by_thread ? "tid N" : "pid N");
    return NULL;
}

static const struct top_writer functions_writer = {.begin_event = top_head_write, .table = functions_table,
                                                   .end_event = functions_end};

static struct error *no_head(const struct top_view *v, const struct top_event *e, bool first)
{
    (void)v, (void)e, (void)first;
    return NULL;
}

struct line {
    uint32_t name; /* in the view's texts */
    uint64_t weight;
};

static int compare_lines(const void *a, const void *b)
{
    const struct line *la = a, *lb = b;

    if (la->weight != lb->weight)
        return la->weight > lb->weight ? -1 : 1;
    return (la->name > lb->name) - (la->name < lb->name);
}

/* Gives each sample to the innermost line of Python on its stack. `lines` are by name, all 0; then in order. */
static bool add_lines(const struct top_view *v, const struct top_table *t, struct line *lines)
{
    const struct emit_model *m = v->model;

    for (size_t i = 0; i < t->entry_count; i++) {
        uint32_t at = t->entries[i].stack;
        uint64_t work = 10;
        for (; at != EMIT_NO_STACK && m->frames[m->stacks[at].frame].kind != EMIT_PYTHON; at = m->stacks[at].parent)
            work += 8;
        if (!limits_work(v->options.limits, work))
            return false;
        if (at == EMIT_NO_STACK)
            continue;
        struct line *line = &lines[v->ids[m->stacks[at].frame]];
        line->name = v->ids[m->stacks[at].frame];
        line->weight += t->entries[i].count.weight;
    }
    qsort(lines, v->texts.count, sizeof *lines, compare_lines);
    return true;
}

static void put_lines(const struct top_view *v, const struct top_event *e, const struct top_table *t, const struct line *lines,
                      struct buf *out)
{
    const struct brief *b = v->own;
    const struct emit_event *event = &v->model->events[e->event];
    int columns = weight_columns(event, t);

    if (!v->texts.count || !lines[0].weight)
        return;
    buf_printf(out, "\n%7s %*s  line of Python, with the native code and the kernel that it called\n", "self", columns, "");
    for (uint32_t i = 0; i < b->rows.lines && i < v->texts.count && lines[i].weight; i++) {
        const struct intern_entry *name = intern_get(&v->texts, lines[i].name);
        amount_put_share(event, lines[i].weight, t->all.weight, columns, out);
        buf_put_str(out, "  ");
        columns_cut(out, name->data, name->len_bytes, NAME_COLUMNS);
        buf_put_u8(out, '\n');
    }
}

/* What `top --by line --layer python` shows: which lines of one's own code the time is spent below. */
static struct error *lines_table(const struct top_view *v, const struct top_event *e, const struct top_table *t, bool first)
{
    uint64_t bytes = v->texts.count * sizeof(struct line);
    struct line *lines = limits_take(v->options.limits, bytes) ? calloc(v->texts.count, sizeof *lines) : NULL;
    struct buf text = {0};

    (void)first;
    bool ok = lines && add_lines(v, t, lines);
    if (ok)
        put_lines(v, e, t, lines, &text);
    if (lines)
        limits_give(v->options.limits, bytes);
    free(lines);
    struct error *err = text_write(&text, v->out);
    return err || ok ? err : error_no_memory();
}

static struct error *no_tail(const struct top_view *v, const struct top_event *e)
{
    (void)v, (void)e;
    return NULL;
}

static const struct top_writer lines_writer = {.begin_event = no_head, .table = lines_table, .end_event = no_tail};

/* ---- what else is to be said ---- */

static int compare_losses(const void *a, const void *b)
{
    const struct emit_loss *la = a, *lb = b;

    if (la->count != lb->count)
        return la->count > lb->count ? -1 : 1;
    return strcmp(la->name, lb->name);
}

/* "Missing: 12: frames of the kernel …", of the whole recording. */
static struct error *put_missing(const struct top_view *v, struct buf *out)
{
    const struct emit_model *m = v->model;
    VEC(struct emit_loss) losses = {0};
    bool ok = true;
    struct number n;

    for (uint32_t c = 0; c < m->capture_count; c++) {
        for (uint32_t i = 0; ok && i < m->captures[c].loss_count; i++) {
            const struct emit_loss *loss = &m->captures[c].losses[i];
            size_t at = 0;
            ok = limits_work(v->options.limits, 10 * (losses.count + 1));
            while (at < losses.count && strcmp(losses.data[at].name, loss->name))
                at++;
            if (at < losses.count)
                losses.data[at].count += loss->count;
            else
                ok = ok && VEC_PUSH(&losses, *loss);
        }
    }
    if (losses.count)
        qsort(losses.data, losses.count, sizeof *losses.data, compare_losses);
    for (size_t i = 0; ok && i < losses.count && i < LOSSES_MOST; i++) {
        const struct emit_loss *loss = &losses.data[i];
        buf_printf(out, "%-9s%s: ", i ? "" : "Missing:", grouped(loss->count, &n));
        name_plain(*loss->meaning ? loss->meaning : loss->name, out);
        buf_put_u8(out, '\n');
    }
    VEC_DEINIT(&losses);
    return ok ? NULL : error_no_memory();
}

static void put_further(const struct brief *b, struct buf *out)
{
    struct number n;

    if (b->gil_known)
        buf_printf(out, "%-9sheld in %s of the samples of Python threads that ran (pysym FILE -f gil: by whom, and who waited)\n",
                   "GIL:", share_text(b->gil_held, b->gil_known, &n));
    buf_printf(out, "%-9spysym FILE -f tree         who calls whom, with shares\n", "Further:");
    buf_printf(out, "%-9spysym annotate FUNCTION FILE --source DIR   its lines, with their source\n", "");
    buf_printf(out, "%-9spysym FILE -f top --top 50 more functions; --focus RE, --pid N, --time FROM,TO choose\n", "");
    buf_printf(out, "%-9spysym FILE -f summary -v   how it was recorded, and all that was lost\n", "");
}

static struct error *write_events(void *state)
{
    const struct top_view *v = top_view_of(state);
    struct brief *b = v->own;
    uint32_t count = 0, shown = 0;
    struct number n;

    for (uint32_t event = 0; event < top_event_count(state); event++)
        count += top_has_event(state, event);
    b->rows = rows_by_events[count < EVENTS_MOST ? count : EVENTS_MOST];
    bool lines = b->rows.lines && v->options.merge == EMIT_MERGE_ALL && !v->options.merged_lines;
    for (uint32_t event = 0; event < top_event_count(state) && shown < EVENTS_MOST; event++) {
        if (!top_has_event(state, event))
            continue;
        TRY(top_name(state, EMIT_BY_FUNCTION, b->rows.owners));
        TRY(top_write_event(state, &functions_writer, event, !shown++));
        if (lines)
            TRY(top_name(state, EMIT_BY_LINE, b->rows.owners));
        if (lines)
            TRY(top_write_event(state, &lines_writer, event, false));
    }
    if (!count)
        fputs("0 samples\n", v->out);
    if (count > shown)
        fprintf(v->out, "\nand %s (--event NAME shows one)\n", counted(count - shown, "other event", "other events", &n));
    return NULL;
}

static struct error *brief_end(void *state)
{
    const struct top_view *v = top_view_of(state);
    struct buf text = {0};

    if (v->options.summary)
        TRY(v->options.summary->print(v->options.summary, true, v->out));
    TRY(write_events(state));
    buf_put_u8(&text, '\n');
    struct error *err = put_missing(v, &text);
    if (err) {
        buf_deinit(&text);
        return err;
    }
    put_further(v->own, &text);
    TRY(text_write(&text, v->out));
    return ferror(v->out) ? error_os(errno, "cannot write the page") : NULL;
}

static struct error *brief_sample(void *state, const struct emit_sample *s)
{
    const struct top_view *v = top_view_of(state);
    const struct emit_event *event = &v->model->events[s->event];
    struct brief *b = v->own;

    if (event_is_running(event->kind) && s->gil != EMIT_GIL_UNKNOWN) {
        b->gil_known++;
        b->gil_held += s->gil == EMIT_GIL_HELD;
    }
    return top_sample(state, s);
}

static void brief_destroy(void *state)
{
    free(top_own(state));
    top_destroy(state);
}

static struct error *brief_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    struct brief *b = calloc(1, sizeof *b);
    struct emit_options own = *options;

    if (!b)
        return error_no_memory();
    own.own_paths = true; /* for whoever opens the files: an import finds the others */
    own.terminal = (struct emit_terminal){0};
    struct error *err = top_create(model, &own, out, NULL, b, state);
    if (err)
        free(b);
    return err;
}

const struct emitter emitter_brief = {
    .name = "brief",
    .tells_filters = true,
    .description = "one page of text for a review: verdict, hottest functions and lines, main paths",
    .extension = ".brief",
    .begin = brief_begin,
    .sample = brief_sample,
    .end = brief_end,
    .destroy = brief_destroy,
};
