/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with time, sorted by file and name: each group becomes a subject, or several. Then what is left looks farther. */
#include "formats/compare/match.h"

#include "formats/base/sort.h"
#include "formats/compare/match_moved.h"
#include "formats/compare/match_repeated.h"

/* A function that has time on a side. */
struct entry {
    uint32_t file; /* class */
    uint32_t name, first_line, function;
    enum side side;
    bool unqualified; /* its file may have several functions of this name */
};

#define BY(member)                     \
    do {                               \
        if (x->member != y->member)    \
            return x->member < y->member ? -1 : 1; \
    } while (0)

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    BY(file);
    BY(name);
    BY(side);
    BY(first_line);
    BY(function);
    return 0;
}

struct matching {
    struct match *match;
    const struct sides *sides;
    VEC(struct entry) entries;
};

static struct error *add_side(struct matching *w, enum side side)
{
    const struct run_set *set = w->sides->set;
    uint8_t *met = calloc(1, set->functions.count + 1);
    bool ok = met;

    for (size_t i = 0; i < w->sides->runs.count && ok; i++) {
        const struct run_event *e = w->sides->runs.data[i].event;
        for (size_t j = 0; side_of(w->sides, i) == side && j < e->functions.count && ok; j++) {
            uint32_t function = e->functions.data[j].id;
            if (!(e->functions.data[j].total > 0) || met[function])
                continue;
            met[function] = 1;
            const struct run_function *f = &set->functions.data[function];
            const struct entry entry = {file_match_class(&w->match->files, f->file), f->name, f->first_line, function, side,
                                        f->unqualified};
            ok = limits_take(set->limits, sizeof entry) && VEC_PUSH(&w->entries, entry);
        }
    }
    free(met);
    return ok ? NULL : error_no_memory();
}

static struct error *collect_entries(struct matching *w)
{
    for (enum side side = 0; side < SIDE_COUNT; side++)
        TRY(add_side(w, side));
    return sort_stable(w->entries.data, w->entries.count, sizeof *w->entries.data, compare_entries) ? NULL : error_no_memory();
}

/* Makes the entries a subject, or adds them to it. */
static struct error *add_subject(struct matching *w, size_t from, size_t to, uint32_t subject)
{
    struct match *m = w->match;

    if (subject == m->subjects.count &&
        !VEC_PUSH(&m->subjects, ((struct subject){.file = w->entries.data[from].file, .function = {RUN_SET_NONE, RUN_SET_NONE}})))
        return error_no_memory();
    for (size_t i = from; i < to; i++) {
        const struct entry *e = &w->entries.data[i];
        m->subjects.data[subject].function[e->side] = e->function;
        m->of_function[e->side][e->function] = subject;
    }
    return NULL;
}

/* One side of a group whose name is repeated: its lines, and where the entries of each begin. */
struct repeated_side {
    VEC(struct repeated) lines;
    VEC(size_t) starts; /* one more, where the last ends */
};

static bool add_line(struct repeated_side *side, const struct matching *w, size_t i)
{
    const struct entry *e = &w->entries.data[i];
    size_t count = side->lines.count;

    if (count && side->lines.data[count - 1].first_line == e->first_line)
        return true;
    const struct repeated line = {e->first_line, match_codes_fingerprint(&w->match->codes, e->side, e->function), REPEATED_NONE};
    return VEC_PUSH(&side->lines, line) && VEC_PUSH(&side->starts, i);
}

static struct error *add_lines(struct matching *w, const struct repeated_side *old, const struct repeated_side *new)
{
    uint32_t first = (uint32_t)w->match->subjects.count;

    for (size_t i = 0; i < old->lines.count; i++)
        TRY(add_subject(w, old->starts.data[i], old->starts.data[i + 1], first + (uint32_t)i));
    for (size_t i = 0; i < new->lines.count; i++) {
        uint32_t partner = new->lines.data[i].partner;
        uint32_t subject = partner == REPEATED_NONE ? (uint32_t)w->match->subjects.count : first + partner;
        TRY(add_subject(w, new->starts.data[i], new->starts.data[i + 1], subject));
    }
    return NULL;
}

static struct error *match_repeated_group(struct matching *w, size_t from, size_t to)
{
    struct repeated_side sides[SIDE_COUNT] = {0};
    size_t middle = from;
    bool ok = true;

    while (middle < to && w->entries.data[middle].side == SIDE_OLD)
        middle++;
    for (size_t i = from; i < to && ok; i++)
        ok = add_line(&sides[w->entries.data[i].side], w, i);
    ok = ok && VEC_PUSH(&sides[SIDE_OLD].starts, middle) && VEC_PUSH(&sides[SIDE_NEW].starts, to) &&
         match_repeated(sides[SIDE_OLD].lines.data, sides[SIDE_OLD].lines.count, sides[SIDE_NEW].lines.data,
                        sides[SIDE_NEW].lines.count);
    struct error *err = ok ? add_lines(w, &sides[SIDE_OLD], &sides[SIDE_NEW]) : error_no_memory();
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        VEC_DEINIT(&sides[side].lines);
        VEC_DEINIT(&sides[side].starts);
    }
    return err;
}

static struct error *match_groups(struct matching *w)
{
    for (size_t from = 0, to; from < w->entries.count; from = to) {
        const struct entry *first = &w->entries.data[from];
        bool unqualified = false;
        for (to = from; to < w->entries.count; to++) {
            const struct entry *e = &w->entries.data[to];
            if (e->file != first->file || e->name != first->name)
                break;
            unqualified |= e->unqualified;
        }
        TRY(unqualified ? match_repeated_group(w, from, to) : add_subject(w, from, to, (uint32_t)w->match->subjects.count));
    }
    return NULL;
}

/* Says what became of a function whose name led to it: on another line, or in another file, it moved. */
static void describe(const struct match *m, const struct run_set *set, struct subject *s)
{
    uint32_t old = s->function[SIDE_OLD], new = s->function[SIDE_NEW];

    if (old == RUN_SET_NONE || new == RUN_SET_NONE) {
        s->match = old == RUN_SET_NONE ? COMPARE_NEW : COMPARE_VANISHED;
    } else if (s->match == COMPARE_SAME) {
        const struct run_code *old_code = match_codes_main(&m->codes, SIDE_OLD, old);
        const struct run_code *new_code = match_codes_main(&m->codes, SIDE_NEW, new);
        bool line = old_code && new_code && old_code->first_line != new_code->first_line;
        bool file = set->functions.data[old].file != set->functions.data[new].file;
        s->match = line || file ? COMPARE_MOVED : COMPARE_SAME;
    }
}

struct error *match_init(struct match *m, const struct sides *s)
{
    struct matching w = {.match = m, .sides = s};
    size_t bytes = (s->set->functions.count + 1) * sizeof **m->of_function;

    *m = (struct match){0};
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        m->of_function[side] = malloc(bytes);
        if (!m->of_function[side])
            return error_no_memory();
        memset(m->of_function[side], 0xff, bytes);
    }
    TRY(file_match_init(&m->files, s));
    TRY(match_codes_init(&m->codes, s));
    struct error *err = collect_entries(&w);
    if (!err)
        err = match_groups(&w);
    VEC_DEINIT(&w.entries);
    TRY(err);
    TRY(match_moved(&m->codes, m->subjects.data, m->subjects.count, m->of_function));
    for (size_t i = 0; i < m->subjects.count; i++)
        describe(m, s->set, &m->subjects.data[i]);
    return match_code_states(&m->codes, m->of_function, m->subjects.data);
}

void match_deinit(struct match *m)
{
    file_match_deinit(&m->files);
    match_codes_deinit(&m->codes);
    VEC_DEINIT(&m->subjects);
    for (enum side side = 0; side < SIDE_COUNT; side++)
        free(m->of_function[side]);
    *m = (struct match){0};
}
