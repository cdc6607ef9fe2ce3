/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three rounds over the functions that only one side has: the same code in the same file, the same code and name in another
 * file, and names that lie in what was renamed.
 */
#include "formats/compare/match_moved.h"

#include "formats/base/buf.h"

struct moving {
    const struct match_codes *codes;
    struct subject *subjects;
    size_t count;
    uint32_t *joined; /* by subject: the one that it became part of; RUN_SET_NONE */
};

/* The side that alone has the subject; SIDE_COUNT: both, or neither. */
static enum side only_side(const struct subject *s)
{
    bool old = s->function[SIDE_OLD] != RUN_SET_NONE, new = s->function[SIDE_NEW] != RUN_SET_NONE;

    return old == new ? SIDE_COUNT : old ? SIDE_OLD : SIDE_NEW;
}

static void join(struct moving *w, uint32_t old, uint32_t new, enum compare_match match)
{
    struct subject *s = &w->subjects[old], *from = &w->subjects[new];

    s->function[SIDE_NEW] = from->function[SIDE_NEW];
    s->file = from->file;
    s->match = match;
    from->function[SIDE_NEW] = RUN_SET_NONE;
    w->joined[new] = old;
}

struct candidate {
    uint64_t fingerprint;
    uint32_t place; /* the file's class, or the name */
    uint32_t subject;
    enum side side;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->fingerprint != y->fingerprint)
        return x->fingerprint < y->fingerprint ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (int)x->side - (int)y->side;
}

/* Joins what has the same code and place, where that is one of each side. */
static struct error *match_same_code(struct moving *w, enum compare_match match)
{
    struct candidate *found = calloc(w->count + 1, sizeof *found);
    size_t count = 0;

    if (!found)
        return error_no_memory();
    for (uint32_t i = 0; i < w->count; i++) {
        enum side side = only_side(&w->subjects[i]);
        uint32_t function = side == SIDE_COUNT ? RUN_SET_NONE : w->subjects[i].function[side];
        uint64_t fingerprint = function == RUN_SET_NONE ? 0 : match_codes_fingerprint(w->codes, side, function);
        if (!fingerprint || match_codes_main(w->codes, side, function)->table_bytes < MATCH_TABLE_BYTES_LEAST)
            continue;
        uint32_t place = match == COMPARE_RENAMED ? w->subjects[i].file : w->codes->set->functions.data[function].name;
        found[count++] = (struct candidate){fingerprint, place, i, side};
    }
    qsort(found, count, sizeof *found, compare_candidates);
    for (size_t i = 0, next; i < count; i = next) {
        next = i + 1;
        while (next < count && found[next].fingerprint == found[i].fingerprint && found[next].place == found[i].place)
            next++;
        if (next - i == 2 && found[i].side == SIDE_OLD && found[i + 1].side == SIDE_NEW)
            join(w, found[i].subject, found[i + 1].subject, match);
    }
    free(found);
    return NULL;
}

/* A renamed function or class: what names within it begin with now. */
struct renamed_prefix {
    uint32_t file;
    const char *prefix;
    uint32_t len_bytes;
    bool ambiguous;
};

struct prefixes {
    struct intern keys; /* the old file's class and prefix */
    VEC(struct renamed_prefix) renamed;
    struct map fresh;   /* file << 32 | name: a subject that only the new runs have */
    struct buf text;
};

static const char *name_of(const struct moving *w, uint32_t function)
{
    return run_set_text_get(w->codes->set, w->codes->set->functions.data[function].name);
}

/* The key of the first bytes of a name in a file; bad if memory ran out. */
static void put_key(struct buf *out, uint32_t file, const char *name, size_t len_bytes)
{
    buf_clear(out);
    buf_put_u32(out, file);
    buf_put(out, name, len_bytes);
}

/* Cuts off what two names end in alike, such as ".fill" of Box.fill and Crate.fill; one component stays. */
static void cut_same_ends(const char *a, size_t *a_len, const char *b, size_t *b_len)
{
    for (;;) {
        const char *a_dot = memrchr(a, '.', *a_len), *b_dot = memrchr(b, '.', *b_len);
        size_t len = a_dot ? (size_t)(a + *a_len - a_dot) : 0;
        if (!a_dot || !b_dot || a_dot == a || b_dot == b || len != (size_t)(b + *b_len - b_dot) || memcmp(a_dot, b_dot, len))
            return;
        *a_len -= len;
        *b_len -= len;
    }
}

static bool add_prefix(const struct moving *w, struct prefixes *p, uint32_t old_file, const struct subject *s)
{
    const char *old = name_of(w, s->function[SIDE_OLD]), *new = name_of(w, s->function[SIDE_NEW]);
    size_t old_len = strlen(old), new_len = strlen(new);
    bool added;

    cut_same_ends(old, &old_len, new, &new_len);
    put_key(&p->text, old_file, old, old_len);
    uint32_t id = p->text.bad ? INTERN_NONE : intern_id(&p->keys, p->text.data, (uint32_t)p->text.len_bytes, &added);
    if (id == INTERN_NONE)
        return false;
    if (added)
        return VEC_PUSH(&p->renamed, ((struct renamed_prefix){s->file, new, (uint32_t)new_len, false}));
    struct renamed_prefix *known = &p->renamed.data[id];
    known->ambiguous |= known->file != s->file || known->len_bytes != new_len || memcmp(known->prefix, new, new_len);
    return true;
}

/* The subject of the new runs that this one of the old runs became, as its name begins with a renamed one; RUN_SET_NONE. */
static uint32_t find_renamed(const struct moving *w, struct prefixes *p, const struct subject *s)
{
    const struct run_set *set = w->codes->set;
    const char *name = name_of(w, s->function[SIDE_OLD]);

    for (const char *dot = name; (dot = strchr(dot + 1, '.'));) {
        put_key(&p->text, s->file, name, (size_t)(dot - name));
        uint32_t id = p->text.bad ? INTERN_NONE : intern_find(&p->keys, p->text.data, (uint32_t)p->text.len_bytes);
        if (id == INTERN_NONE || p->renamed.data[id].ambiguous)
            continue;
        const struct renamed_prefix *r = &p->renamed.data[id];
        buf_clear(&p->text);
        buf_put(&p->text, r->prefix, r->len_bytes);
        buf_put_str(&p->text, dot);
        uint32_t text = intern_find(&set->texts, buf_cstr(&p->text), (uint32_t)p->text.len_bytes + 1); /* texts have their NUL */
        const uint64_t *fresh = text == INTERN_NONE ? NULL : map_get(&p->fresh, (uint64_t)r->file << 32 | text);
        if (fresh && only_side(&w->subjects[*fresh]) == SIDE_NEW)
            return (uint32_t)*fresh;
        if (!dot[1])
            break;
    }
    return RUN_SET_NONE;
}

static struct error *match_prefixes(struct moving *w, const uint32_t *old_files, struct prefixes *p)
{
    for (uint32_t i = 0; i < w->count; i++) {
        const struct subject *s = &w->subjects[i];
        bool ok = true;
        if (only_side(s) == SIDE_NEW)
            ok = map_set(&p->fresh, (uint64_t)s->file << 32 | w->codes->set->functions.data[s->function[SIDE_NEW]].name, i);
        else if (s->match != COMPARE_SAME)
            ok = add_prefix(w, p, old_files[i], s);
        if (!ok)
            return error_no_memory();
    }
    for (uint32_t i = 0; i < w->count && p->renamed.count; i++) {
        uint32_t new = only_side(&w->subjects[i]) == SIDE_OLD ? find_renamed(w, p, &w->subjects[i]) : RUN_SET_NONE;
        if (new != RUN_SET_NONE)
            join(w, i, new, COMPARE_RENAMED);
    }
    return p->text.bad ? error_no_memory() : NULL;
}

static struct error *match_all(struct moving *w, uint32_t *old_files)
{
    struct prefixes p = {.keys.arena.limits = w->codes->set->limits, .fresh.limits = w->codes->set->limits};

    for (size_t i = 0; i < w->count; i++)
        old_files[i] = w->subjects[i].file;
    TRY(match_same_code(w, COMPARE_RENAMED));
    TRY(match_same_code(w, COMPARE_MOVED));
    struct error *err = match_prefixes(w, old_files, &p);
    intern_deinit(&p.keys);
    VEC_DEINIT(&p.renamed);
    map_deinit(&p.fresh);
    buf_deinit(&p.text);
    return err;
}

struct error *match_moved(const struct match_codes *codes, struct subject *subjects, size_t count, uint32_t **of_function)
{
    struct moving w = {codes, subjects, count, malloc((count + 1) * sizeof *w.joined)};
    uint32_t *old_files = malloc((count + 1) * sizeof *old_files);
    struct error *err = w.joined && old_files ? NULL : error_no_memory();

    if (!err) {
        memset(w.joined, 0xff, (count + 1) * sizeof *w.joined);
        err = match_all(&w, old_files);
    }
    for (size_t i = 0; i < codes->set->functions.count && !err; i++) {
        uint32_t *subject = &of_function[SIDE_NEW][i];
        if (*subject != RUN_SET_NONE && w.joined[*subject] != RUN_SET_NONE)
            *subject = w.joined[*subject];
    }
    free(w.joined);
    free(old_files);
    return err;
}
