/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hottest functions or lines, as a table for people or as JSON for scripts. `self` counts the samples in which a
 * function (or line) is the innermost frame, `total` those in which it is anywhere on the stack, once per sample even if
 * it recurs. Both are computed at the end, per distinct stack. Shares and order are by weight, since samples may differ
 * in weight. Of a wait, the time itself is that of the function that waits (top_states.h).
 */
#include "formats/emit/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/emit/names.h"

struct top {
    struct top_view view;
    const struct top_writer *writer;
    struct counts counts; /* by process, or by thread where these are kept apart */
    /* By text, of one table at a time. */
    struct top_row *rows;
    uint64_t *last_stack; /* serial number of the stack that was counted last */
    uint64_t serial;
};

struct error *top_create(const struct emit_model *model, const struct emit_options *options, FILE *out,
                         const struct top_writer *writer, void *own, void **state)
{
    struct top *t = calloc(1, sizeof *t);

    if (!t)
        return error_no_memory();
    t->writer = writer;
    t->view = (struct top_view){
        .model = model, .options = *options, .out = out, .texts.arena.limits = options->limits, .own = own};
    t->counts.limits = t->view.errors.limits = t->view.errors.by_stack.limits = options->limits;
    t->view.errors.model = model;
    if (options->merge == EMIT_MERGE_DEFAULT)
        t->view.options.merge = options->threads ? EMIT_MERGE_THREAD : EMIT_MERGE_ALL;
    *state = t;
    return NULL;
}

static struct error *top_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                               void **state)
{
    return top_create(model, options, out, options->json ? &top_json_writer : &top_text_writer, NULL, state);
}

struct error *top_sample(void *state, const struct emit_sample *s)
{
    struct top *t = state;
    const struct emit_model *m = t->view.model;
    uint32_t owner = t->view.options.merge == EMIT_MERGE_THREAD ? s->thread : m->threads[s->thread].process;

    bool ok = counts_add(&t->counts, m, s, owner) && (t->view.options.waits_chosen || top_errors_add(&t->view.errors, s));
    return ok ? NULL : error_no_memory();
}

static void add(struct count *to, const struct count *more)
{
    to->samples += more->samples;
    to->weight += more->weight;
}

/* ---- rows ---- */

static void add_total(struct top *t, uint32_t frame, uint32_t depth, uint32_t id, const struct count *count)
{
    struct top_row *row = &t->rows[id];

    if (t->last_stack[id] == t->serial)
        return;
    t->last_stack[id] = t->serial;
    if (!row->total.samples) {
        row->frame = frame;
        row->depth = depth;
    }
    add(&row->total, count);
}

/* The samples of a stack, also by what was waited for. */
static void count_states(struct top *t, struct top_states *states, const struct top_entry *e, uint32_t own)
{
    const struct emit_model *m = t->view.model;
    uint32_t state = top_states_of(states, e->stack);

    t->serial++;
    states->rows[t->view.ids[own == EMIT_NO_STACK ? m->frame_count : m->stacks[own].frame]].self[state] += e->count.weight;
    for (uint32_t stack = e->stack; stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
        uint32_t id = t->view.ids[m->stacks[stack].frame];
        if (t->last_stack[id] != t->serial)
            states->rows[id].total[state] += e->count.weight;
        t->last_stack[id] = t->serial;
    }
}

static struct error *count_rows(struct top *t, struct top_states *states, const struct top_table *table)
{
    const struct emit_model *m = t->view.model;

    for (size_t i = 0; i < table->entry_count; i++) {
        const struct top_entry *e = &table->entries[i];
        uint32_t stack = e->stack, own = top_states_own(m, stack);
        t->serial++;
        uint64_t per_frame = states->rows ? 16 : 8;
        if (!limits_work(t->view.options.limits, 10 + (stack == EMIT_NO_STACK ? 0 : per_frame * m->stacks[stack].depth)))
            return error_no_memory();
        add(&t->rows[t->view.ids[own == EMIT_NO_STACK ? m->frame_count : m->stacks[own].frame]].self, &e->count);
        if (stack == EMIT_NO_STACK)
            add_total(t, TOP_NO_FRAME, 1, t->view.ids[m->frame_count], &e->count);
        else if (own != stack)
            stack = m->stacks[stack].parent; /* what was waited for is no function */
        for (; stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
            const struct emit_stack *s = &m->stacks[stack];
            add_total(t, s->frame, s->depth, t->view.ids[s->frame], &e->count);
        }
        if (states->rows)
            count_states(t, states, e, own);
    }
    return NULL;
}

static int compare_down(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

/* By total, callers stand before what they call. */
static int compare_rows(const void *a, const void *b, void *arg)
{
    const struct top_view *v = arg;
    const struct top_row *ra = a, *rb = b;
    int by_self = compare_down(ra->self.weight, rb->self.weight);
    int by_total = compare_down(ra->total.weight, rb->total.weight);
    bool total_first = v->options.sort == EMIT_SORT_TOTAL;
    int order = total_first ? by_total : by_self;

    if (!order)
        order = total_first ? compare_down(rb->depth, ra->depth) : by_total;
    if (!order)
        order = compare_down(ra->total.samples, rb->total.samples);
    if (order)
        return order;
    const struct intern_entry *na = intern_get(&v->texts, ra->name), *nb = intern_get(&v->texts, rb->name);
    order = memcmp(na->data, nb->data, na->len_bytes < nb->len_bytes ? na->len_bytes : nb->len_bytes);
    return order ? order : (na->len_bytes > nb->len_bytes) - (na->len_bytes < nb->len_bytes);
}

/* Makes the rows of a table, in t->rows, where those of the table before were. */
static struct error *fill_table(struct top *t, struct top_states *states, struct top_table *table)
{
    uint32_t count = t->view.texts.count;

    if (!limits_work(t->view.options.limits, 4 * (uint64_t)count) || !top_states_rows(states, count))
        return error_no_memory();
    memset(t->rows, 0, count * sizeof *t->rows);
    memset(t->last_stack, 0, count * sizeof *t->last_stack);
    t->serial = 0;
    TRY(count_rows(t, states, table));
    double least = t->view.options.min_share * (double)table->all.weight;
    table->rows = t->rows;
    table->row_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!t->rows[i].total.samples || (double)t->rows[i].total.weight < least)
            continue;
        t->rows[i].name = i;
        t->rows[table->row_count++] = t->rows[i];
    }
    qsort_r(table->rows, table->row_count, sizeof *table->rows, compare_rows, &t->view);
    return NULL;
}

/* ---- events ---- */

static int compare_entries(const void *a, const void *b, void *arg)
{
    const struct top_entry *ea = a, *eb = b;

    (void)arg;
    if (ea->owner != eb->owner)
        return ea->owner < eb->owner ? -1 : 1;
    return (ea->stack > eb->stack) - (ea->stack < eb->stack);
}

static int compare_tables(const void *a, const void *b, void *arg)
{
    const struct top_table *ta = a, *tb = b;
    int order = compare_down(ta->all.weight, tb->all.weight);

    (void)arg;
    return order ? order : (ta->owner > tb->owner) - (ta->owner < tb->owner);
}

struct top_tables {
    VEC(struct top_entry) entries;
    VEC(struct top_table) tables;
};

static struct error *take_entries(const struct top *t, struct top_event *e, struct top_tables *out)
{
    const struct map *counts = &t->counts.events.data[e->event];

    if (!limits_take(t->view.options.limits, counts->count * sizeof(struct top_entry)) ||
        !limits_work(t->view.options.limits, 100 * counts->count) || !VEC_RESERVE(&out->entries, counts->count))
        return error_no_memory();
    for (uint64_t i = 0; i < counts->slot_count; i++) {
        const struct map_slot *slot = &counts->slots[i];
        if (slot->used)
            out->entries.data[out->entries.count++] = (struct top_entry){
                .owner = (uint32_t)(slot->key >> 32), .stack = (uint32_t)slot->key, .count = *counts_get(&t->counts, slot)};
    }
    qsort_r(out->entries.data, out->entries.count, sizeof *out->entries.data, compare_entries, NULL);
    for (size_t i = 0; i < out->entries.count; i++)
        top_states_add(&e->states, out->entries.data[i].stack, out->entries.data[i].count.weight);
    return NULL;
}

/* A table for each owner, or one for all; and the programs. */
static struct error *split_entries(const struct top *t, struct top_event *e, struct top_tables *out)
{
    const struct top_view *v = &t->view;
    bool by_thread = v->options.merge == EMIT_MERGE_THREAD;
    struct map processes = {.limits = v->options.limits}; /* -> weight */
    struct error *err = NULL;

    for (size_t i = 0, end; !err && i < out->entries.count; i = end) {
        const struct top_entry *first = &out->entries.data[i];
        struct top_table table = {.owner = first->owner, .entries = first};
        for (end = i; end < out->entries.count && out->entries.data[end].owner == first->owner; end++)
            add(&table.all, &out->entries.data[end].count);
        table.entry_count = end - i;
        add(&e->all, &table.all);
        uint32_t process = by_thread ? v->model->threads[first->owner].process : first->owner;
        uint64_t *weight = map_get(&processes, process);
        if ((v->options.merge != EMIT_MERGE_ALL && !VEC_PUSH(&out->tables, table)) ||
            !map_set(&processes, process, (weight ? *weight : 0) + table.all.weight))
            err = error_no_memory();
    }
    if (!err && v->options.merge == EMIT_MERGE_ALL &&
        !VEC_PUSH(&out->tables, ((struct top_table){.all = e->all, .entries = out->entries.data,
                                                    .entry_count = out->entries.count})))
        err = error_no_memory();
    if (!err)
        err = top_programs_find(&e->programs, v->model, v->options.limits, &processes);
    map_deinit(&processes);
    return err;
}

struct error *top_write_event(void *state, const struct top_writer *writer, uint32_t event, bool first)
{
    struct top *t = state;
    struct top_event e = {.event = event,
                          .states = {.model = t->view.model, .limits = t->view.options.limits}};
    struct top_tables tables = {0};

    struct error *err = take_entries(t, &e, &tables);
    if (!err)
        err = split_entries(t, &e, &tables);
    if (!err) {
        qsort_r(tables.tables.data, tables.tables.count, sizeof *tables.tables.data, compare_tables, NULL);
        e.table_count = (uint32_t)tables.tables.count;
        err = writer->begin_event(&t->view, &e, first);
    }
    for (uint32_t i = 0; !err && i < top_shown(&t->view, e.table_count); i++) {
        struct top_table *table = &tables.tables.data[i];
        err = fill_table(t, &e.states, table);
        if (!err && top_has_errors(&t->view, event))
            err = top_errors_table(&t->view.errors, t->view.options.merge, table->owner, t->view.ids, t->view.texts.count);
        if (!err)
            err = writer->table(&t->view, &e, &tables.tables.data[i], i == 0);
    }
    if (!err)
        err = writer->end_event(&t->view, &e);
    VEC_DEINIT(&tables.entries);
    VEC_DEINIT(&tables.tables);
    top_programs_deinit(&e.programs);
    top_states_deinit(&e.states);
    return err;
}

bool top_stacks(const struct top_view *v, const struct top_table *table, struct stack_tree *out)
{
    if (!stack_tree_init(out, v->model, v->options.limits, &v->texts))
        return false;
    for (size_t i = 0; i < table->entry_count; i++) {
        const struct top_entry *e = &table->entries[i];
        if (!stack_tree_add(out, STACK_TREE_ROOT, e->stack, v->ids, e->count.weight))
            return false;
    }
    return stack_tree_sum(out, STACK_TREE_ROOT);
}

/* Forgets the names and the rows. */
static void forget_names(struct top *t)
{
    intern_clear(&t->view.texts);
    top_errors_forget_names(&t->view.errors);
    free(t->view.ids);
    free(t->rows);
    free(t->last_stack);
    t->view.ids = NULL;
    t->rows = NULL;
    t->last_stack = NULL;
}

struct error *top_name(void *state, enum emit_by by, uint32_t top_count)
{
    struct top *t = state;
    struct names names;

    forget_names(t);
    t->view.options.by = by;
    t->view.options.top_count = top_count;
    struct error *err = names_init(&names, t->view.model, &t->view.options);
    if (!err)
        err = names_spell(&names, by == EMIT_BY_LINE ? NAME_LINE : NAME_FUNCTION, &t->view.texts, &t->view.ids);
    names_deinit(&names);
    if (err)
        return err;
    t->rows = calloc(t->view.texts.count, sizeof *t->rows);
    t->last_stack = calloc(t->view.texts.count, sizeof *t->last_stack);
    return t->rows && t->last_stack ? NULL : error_no_memory();
}

uint32_t top_event_count(const void *state)
{
    const struct top *t = state;

    return (uint32_t)t->counts.events.count;
}

bool top_has_event(const void *state, uint32_t event)
{
    const struct top *t = state;

    return t->counts.events.data[event].count;
}

void *top_own(const void *state)
{
    const struct top *t = state;

    return t ? t->view.own : NULL;
}

const struct top_view *top_view_of(const void *state)
{
    const struct top *t = state;

    return &t->view;
}

struct error *top_end(void *state)
{
    struct top *t = state;
    const struct top_writer *writer = t->writer;
    bool empty = true;

    TRY(top_name(t, t->view.options.by, t->view.options.top_count));
    TRY(writer->begin(&t->view));
    for (uint32_t event = 0; event < top_event_count(t); event++) {
        if (!top_has_event(t, event))
            continue;
        TRY(top_write_event(t, writer, event, empty));
        empty = false;
    }
    TRY(writer->end(&t->view, empty));
    return ferror(t->view.out) ? error_os(errno, "cannot write the tables") : NULL;
}

void top_destroy(void *state)
{
    struct top *t = state;

    if (!t)
        return;
    counts_deinit(&t->counts);
    top_errors_deinit(&t->view.errors);
    forget_names(t);
    intern_deinit(&t->view.texts);
    free(t);
}

const struct emitter emitter_top = {
    .name = "top",
    .joins_thin = true,
    .tells_filters = true,
    .description = "table of the hottest functions, or of lines (--by line)",
    .extension = ".txt",
    .writes_json = true,
    .begin = top_begin,
    .sample = top_sample,
    .end = top_end,
    .destroy = top_destroy,
};
