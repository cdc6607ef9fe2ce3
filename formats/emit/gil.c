/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds the GIL while others wait, for how long, and where: tables for people, or JSON for scripts. While samples
 * come they are added up by thread, stack and state; tables are made at the end, for one process at a time, with work
 * for each distinct stack.
 */
#include "formats/emit/gil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/map.h"
#include "formats/emit/names.h"

/* What is added up; without padding. */
struct gil_key {
    uint32_t what, owner, stack, state;
};
struct gil_owner {
    uint64_t thread;
    const char *interpreter; /* of the model, where equal texts are one */
};

/* Samples of the clock, of a process. */
struct gil_tally {
    uint64_t known, held;
};

struct gil {
    struct gil_view view;
    struct intern keys, owners, states;
    VEC(struct gil_sum) sums;       /* by key */
    VEC(struct gil_tally) tallies;  /* by process */
    uint32_t clock;                 /* the event that says who ran: the first on-CPU event of time; NO_EVENT: none yet */
    VEC(struct gil_entry) entries;  /* at the end: the sums, group by group */
    VEC(struct gil_group) groups;
};
#define NO_EVENT UINT32_MAX

static struct error *gil_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    if (options->merge == EMIT_MERGE_THREAD)
        return error_create(ERROR_USAGE, "gil has a row for each thread: --merge takes all or process with it");
    struct gil *g = calloc(1, sizeof *g);
    if (!g)
        return error_no_memory();
    g->view = (struct gil_view){.model = model, .options = *options, .out = out, .texts.arena.limits = options->limits};
    g->keys.arena.limits = g->owners.arena.limits = g->states.arena.limits = options->limits;
    g->clock = NO_EVENT;
    *state = g;
    return NULL;
}

/* ---- samples ---- */

/* What a sample shows; GIL_WHATS: nothing of the GIL. */
static enum gil_what what_of(const struct gil *g, const struct emit_sample *s)
{
    const struct emit_model *m = g->view.model;
    const struct emit_event *event = &m->events[s->event];
    enum emit_wait wait = m->label_sets[s->label_set].wait;

    if (event->kind == EVENT_BLAME)
        return GIL_BLAMED;
    if (event->kind == EVENT_CPU_TIME)
        return s->gil == EMIT_GIL_HELD && s->event == g->clock ? GIL_RAN : GIL_WHATS;
    if (event->kind != EVENT_OFF_CPU)
        return GIL_WHATS;
    if (wait == EMIT_WAIT_GIL)
        return GIL_WAITED;
    if (s->gil == EMIT_GIL_HELD)
        return GIL_OFF;
    bool locked = wait == EMIT_WAIT_LOCK || wait == EMIT_WAIT_STOP_THE_WORLD;
    return locked && m->processes[m->threads[s->thread].process].free_threaded ? GIL_LOCKED : GIL_WHATS;
}

/* The number of the sample's state, which is part of the model's labels. */
static bool find_state(struct gil *g, const struct emit_label_set *set, uint32_t *number)
{
    const uint64_t key[] = {set->wait, (uintptr_t)set->system_call};
    bool added;

    *number = intern_id(&g->states, key, sizeof key, &added);
    return *number != INTERN_NONE &&
           (!added || VEC_PUSH(&g->view.states, ((struct gil_state){.wait = set->wait, .system_call = set->system_call})));
}

static bool find_owner(struct gil *g, const struct emit_sample *s, uint32_t *number)
{
    const struct gil_owner owner = {s->thread, g->view.model->label_sets[s->label_set].interpreter};

    *number = intern_id(&g->owners, &owner, sizeof owner, NULL);
    return *number != INTERN_NONE;
}

static bool add_sample(struct gil *g, enum gil_what what, const struct emit_sample *s)
{
    const struct emit_label_set *set = &g->view.model->label_sets[s->label_set];
    struct gil_key key = {.what = what, .stack = s->stack};
    bool added;

    if (!find_owner(g, s, &key.owner) || !find_state(g, set, &key.state))
        return false;
    uint32_t at = intern_id(&g->keys, &key, sizeof key, &added);
    if (at == INTERN_NONE || (added && (!limits_take(g->view.options.limits, sizeof(struct gil_sum)) ||
                                        !VEC_PUSH(&g->sums, (struct gil_sum){0}))))
        return false;
    struct gil_sum *sum = &g->sums.data[at];
    sum->samples++;
    sum->ns += s->value;
    sum->variance += set->wait == EMIT_WAIT_NONE ? (double)s->value * (double)s->value : 0;
    return true;
}

static struct error *gil_sample(void *state, const struct emit_sample *s)
{
    struct gil *g = state;
    const struct emit_model *m = g->view.model;
    const struct emit_event *event = &m->events[s->event];
    uint32_t process = m->threads[s->thread].process;

    if (g->clock == NO_EVENT && event->kind == EVENT_CPU_TIME)
        g->clock = s->event;
    if (!VEC_EXTEND_COUNTED(g->view.options.limits, &g->tallies, (size_t)process + 1))
        return error_no_memory();
    if (!event_is_waiting(event->kind) && s->event == g->clock) {
        g->tallies.data[process].known += s->gil != EMIT_GIL_UNKNOWN;
        g->tallies.data[process].held += s->gil == EMIT_GIL_HELD;
    }
    enum gil_what what = what_of(g, s);
    return what == GIL_WHATS || add_sample(g, what, s) ? NULL : error_no_memory();
}

/* ---- groups ---- */

static void add(struct gil_sum *to, const struct gil_sum *more)
{
    to->samples += more->samples;
    to->ns += more->ns;
    to->variance += more->variance;
}

static struct gil_owner owner_of(const struct gil *g, uint32_t number)
{
    struct gil_owner owner;

    memcpy(&owner, intern_get(&g->owners, number)->data, sizeof owner);
    return owner;
}

/* The group of a process. */
static uint32_t group_of(const struct gil *g, uint32_t process)
{
    return g->view.options.merge == EMIT_MERGE_ALL ? 0 : process;
}

static bool is_wanted(const struct emit_part *part, uint32_t process, uint32_t thread)
{
    return !part || ((part->process == EMIT_PART_ALL || part->process == process) &&
                     (part->thread == EMIT_PART_ALL || part->thread == thread));
}

/* Counts a process of the model, unless it is one that is counted and executed another program. False: out of memory. */
static bool count_process(struct gil_group *group, struct map *first, const struct emit_process *p)
{
    group->process_count += !map_get(first, p->first_program);
    return map_set(first, p->first_program, 1);
}

/* A group for each process that says something of a GIL, or one for all. `first`: the first programs of those that are counted. */
static struct error *add_groups(struct gil *g, struct map *first)
{
    const struct emit_model *m = g->view.model;

    for (uint32_t i = 0; i < g->tallies.count; i++) {
        const struct gil_tally *tally = &g->tallies.data[i];
        uint32_t at = group_of(g, i);
        while (g->groups.count <= at) {
            uint32_t process = g->view.options.merge == EMIT_MERGE_ALL ? EMIT_PART_ALL : (uint32_t)g->groups.count;
            if (!limits_take(g->view.options.limits, sizeof(struct gil_group)) ||
                !VEC_PUSH(&g->groups, ((struct gil_group){.process = process})))
                return error_no_memory();
        }
        struct gil_group *group = &g->groups.data[at];
        bool free_threaded = m->processes[i].free_threaded && !tally->known;
        group->free_threaded |= free_threaded;
        group->has_gil |= tally->known;
        if (group->process != EMIT_PART_ALL)
            map_clear(first);
        if ((tally->known || free_threaded) && !count_process(group, first, &m->processes[i]))
            return error_no_memory();
        group->known_samples += tally->known;
        group->held_samples += tally->held;
    }
    return NULL;
}

/* Adds an entry to its thread's row; row_of_owner: UINT32_MAX until there is one. */
static bool add_to_thread(const struct gil *g, struct gil_group *group, const struct gil_entry *e, uint32_t *row_of_owner)
{
    uint32_t *row = &row_of_owner[e->owner];

    if (*row == UINT32_MAX) {
        struct gil_thread thread = {.thread = e->thread, .interpreter = owner_of(g, e->owner).interpreter};
        *row = (uint32_t)group->threads.count;
        if (!limits_take(g->view.options.limits, sizeof thread) || !VEC_PUSH(&group->threads, thread))
            return false;
        group->subinterpreters |= thread.interpreter != NULL;
    }
    add(&group->threads.data[*row].sums[e->what], &e->sum);
    add(&group->sums[e->what], &e->sum);
    group->has_gil |= e->what != GIL_LOCKED;
    return true;
}

static int compare_entries(const void *a, const void *b)
{
    const struct gil_entry *x = a, *y = b;
    const uint32_t keys[][2] = {{x->group, y->group}, {x->what, y->what}, {x->stack, y->stack}, {x->state, y->state}, {x->owner, y->owner}};
    int order = 0;

    for (size_t i = 0; !order && i < sizeof keys / sizeof *keys; i++)
        order = (keys[i][0] > keys[i][1]) - (keys[i][0] < keys[i][1]);
    return order;
}

static struct gil_entry make_entry(const struct gil *g, uint32_t number)
{
    struct gil_key key;

    memcpy(&key, intern_get(&g->keys, number)->data, sizeof key);
    uint32_t thread = (uint32_t)owner_of(g, key.owner).thread;
    return (struct gil_entry){.group = group_of(g, g->view.model->threads[thread].process), .thread = thread, .owner = key.owner,
                              .what = key.what, .state = key.state, .stack = key.stack, .sum = g->sums.data[number]};
}

/* Puts the sums in order of groups, and adds them up by thread. */
static struct error *add_threads(struct gil *g)
{
    struct limits *limits = g->view.options.limits;
    uint32_t *row_of_owner = malloc((g->owners.count + 1) * sizeof *row_of_owner);
    bool ok = row_of_owner && limits_take(limits, g->keys.count * sizeof(struct gil_entry)) &&
              limits_work(limits, 100 * (uint64_t)g->keys.count) && VEC_RESERVE(&g->entries, g->keys.count);

    memset(row_of_owner, 0xff, row_of_owner ? g->owners.count * sizeof *row_of_owner : 0);
    for (uint32_t i = 0; ok && i < g->keys.count; i++) {
        struct gil_entry e = make_entry(g, i);
        g->entries.data[g->entries.count++] = e;
        ok = add_to_thread(g, &g->groups.data[e.group], &e, row_of_owner);
    }
    free(row_of_owner);
    if (!ok)
        return error_no_memory();
    gil_sort(g->entries.data, g->entries.count, sizeof *g->entries.data, compare_entries);
    for (size_t i = 0; i < g->entries.count; i++) {
        struct gil_group *group = &g->groups.data[g->entries.data[i].group];
        group->entries = group->entry_count ? group->entries : &g->entries.data[i];
        group->entry_count++;
    }
    return NULL;
}

/* ---- exact times ---- */

/* The row of a thread that has no other, so that what is exact of the thread is that of the row; else NULL. */
static struct gil_thread *only_row(struct gil_group *group, const struct map *rows, uint32_t thread)
{
    const uint64_t *row = map_get(rows, thread);

    return row && *row < group->threads.count ? &group->threads.data[*row] : NULL;
}

/* rows: by thread, its row in its group; UINT64_MAX: it has several. */
static bool find_rows(const struct gil *g, struct map *rows)
{
    for (size_t i = 0; i < g->groups.count; i++) {
        const struct gil_group *group = &g->groups.data[i];
        for (size_t k = 0; k < group->threads.count; k++) {
            uint32_t thread = group->threads.data[k].thread;
            if (!map_set(rows, thread, map_get(rows, thread) ? UINT64_MAX : k))
                return false;
        }
    }
    return true;
}

/* Exact times are of whole threads: a window of time has none. */
static struct error *add_exact_times(struct gil *g)
{
    const struct emit_model *m = g->view.model;
    const struct emit_part *part = g->view.options.part;
    struct map rows = {.limits = g->view.options.limits};
    bool ok = find_rows(g, &rows);

    for (uint32_t i = 0; ok && i < m->exact_time_count && !(part && part->window_end_ns); i++) {
        const struct emit_exact_time *t = &m->exact_times[i];
        uint32_t process = m->threads[t->thread].process, at = group_of(g, process);
        if (!is_wanted(part, process, t->thread) || at >= g->groups.count || !g->view.has_blame)
            continue;
        struct gil_group *group = &g->groups.data[at];
        struct gil_thread *row = only_row(group, &rows, t->thread);
        group->exact = true;
        if (row)
            row->exact = true;
        if (t->wait != EMIT_WAIT_GIL)
            continue;
        group->exact_ns += t->ns;
        group->exact_count += t->count;
        group->exact_waiters += t->ns != 0;
        if (row)
            row->exact_ns = t->ns, row->exact_count = t->count;
    }
    map_deinit(&rows);
    return ok ? NULL : error_no_memory();
}

/* ---- order ---- */

static int compare_down(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

static int compare_sums(const struct gil_sum *a, const struct gil_sum *b)
{
    static const enum gil_what order[] = {GIL_BLAMED, GIL_WAITED, GIL_RAN, GIL_OFF, GIL_LOCKED};
    int decided = 0;

    for (size_t i = 0; !decided && i < sizeof order / sizeof *order; i++)
        decided = compare_down(a[order[i]].ns, b[order[i]].ns);
    return decided;
}

/* Those that made others wait come first. */
static int compare_threads(const void *a, const void *b)
{
    const struct gil_thread *x = a, *y = b;
    int order = compare_sums(x->sums, y->sums);

    if (!order)
        order = (x->thread > y->thread) - (x->thread < y->thread);
    return order ? order : strcmp(x->interpreter ? x->interpreter : "", y->interpreter ? y->interpreter : "");
}

static int compare_groups(const void *a, const void *b)
{
    const struct gil_group *x = a, *y = b;
    int order = compare_sums(x->sums, y->sums);

    return order ? order : (x->process > y->process) - (x->process < y->process);
}

static int compare_numbers(const void *a, const void *b)
{
    const struct gil_thread *x = a, *y = b;

    return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Counts threads, which may have several rows, and puts these in order. */
static void finish_group(struct gil_group *group)
{
    struct gil_thread *rows = group->threads.data;

    gil_sort(rows, group->threads.count, sizeof *rows, compare_numbers);
    for (size_t i = 0, end; i < group->threads.count; i = end) {
        bool holds = false, waits = false;
        for (end = i; end < group->threads.count && rows[end].thread == rows[i].thread; end++) {
            const struct gil_sum *sums = rows[end].sums;
            holds |= sums[GIL_RAN].samples || sums[GIL_OFF].samples || sums[GIL_BLAMED].samples;
            waits |= sums[GIL_WAITED].samples != 0;
        }
        group->holders += holds;
        group->waiters += waits;
    }
    gil_sort(rows, group->threads.count, sizeof *rows, compare_threads);
}

/* ---- the end ---- */

/* What the trace has, or could have had if it had been there. */
static void find_events(struct gil *g)
{
    const struct emit_model *m = g->view.model;

    for (uint32_t i = 0; i < m->event_count; i++) {
        g->view.has_waits |= m->events[i].kind == EVENT_OFF_CPU;
        g->view.has_blame |= m->events[i].kind == EVENT_BLAME;
    }
}

static struct error *gather(struct gil *g)
{
    struct names names;
    struct map first = {.limits = g->view.options.limits};

    find_events(g);
    struct error *err = add_groups(g, &first);
    map_deinit(&first);
    TRY(err);
    TRY(add_threads(g));
    TRY(add_exact_times(g));
    for (size_t i = 0; i < g->groups.count; i++)
        finish_group(&g->groups.data[i]);
    gil_sort(g->groups.data, g->groups.count, sizeof *g->groups.data, compare_groups);
    for (size_t i = 0; i < g->groups.count; i++)
        g->view.group_count += g->groups.data[i].process_count != 0;
    enum name_detail detail = g->view.options.by == EMIT_BY_LINE ? NAME_LINE : NAME_FUNCTION;
    err = names_init(&names, g->view.model, &g->view.options);
    if (!err)
        err = names_spell(&names, detail, &g->view.texts, &g->view.ids);
    names_deinit(&names);
    return err;
}

static struct error *write_group(struct gil *g, const struct gil_writer *writer, struct gil_group *group, bool first)
{
    TRY(writer->begin_group(&g->view, group, first));
    for (enum gil_table table = 0; table < GIL_TABLES; table++) {
        TRY(gil_fill_table(&g->view, group, table));
        TRY(writer->table(&g->view, group, table));
    }
    return writer->end_group(&g->view, group);
}

static struct error *gil_end(void *state)
{
    struct gil *g = state;
    const struct gil_writer *writer = g->view.options.json ? &gil_json_writer : &gil_text_writer;
    uint32_t shown = 0;

    TRY(gather(g));
    TRY(writer->begin(&g->view));
    for (size_t i = 0; i < g->groups.count && shown < gil_shown(&g->view, g->view.group_count); i++) {
        if (g->groups.data[i].process_count)
            TRY(write_group(g, writer, &g->groups.data[i], !shown++));
    }
    TRY(writer->end(&g->view));
    return ferror(g->view.out) ? error_os(errno, "cannot write the tables") : NULL;
}

static void gil_destroy(void *state)
{
    struct gil *g = state;

    if (!g)
        return;
    intern_deinit(&g->keys);
    intern_deinit(&g->owners);
    intern_deinit(&g->states);
    intern_deinit(&g->view.texts);
    free(g->view.ids);
    VEC_DEINIT(&g->view.states);
    VEC_DEINIT(&g->sums);
    VEC_DEINIT(&g->tallies);
    VEC_DEINIT(&g->entries);
    for (size_t i = 0; i < g->groups.count; i++) {
        VEC_DEINIT(&g->groups.data[i].threads);
        VEC_DEINIT(&g->groups.data[i].rows);
    }
    VEC_DEINIT(&g->groups);
    free(g);
}

const struct emitter emitter_gil = {
    .name = "gil",
    .joins_thin = true,
    .tells_waits = true,
    .tells_filters = true,
    .description = "who holds the GIL while others wait, for how long, and who waits",
    .extension = ".txt",
    .writes_json = true,
    .begin = gil_begin,
    .sample = gil_sample,
    .end = gil_end,
    .destroy = gil_destroy,
};
