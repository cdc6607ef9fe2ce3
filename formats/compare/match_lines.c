/* SPDX-License-Identifier: Apache-2.0 */
/* Gives each line of both sides a key: its place in equal code, or its number in the new source. */
#include "formats/compare/match_lines.h"

/* No byte of it is padding. */
struct line_key {
    uint32_t subject;
    uint32_t place;       /* in the function; of changed code in the file */
    uint64_t fingerprint; /* of equal code; of changed code which side alone has the line, or that both may */
};
enum { CHANGED_IN_BOTH = 0, CHANGED_OLD_ONLY = 1 }; /* real fingerprints are so small by no chance that matters */

/* Code that a side has in a function. No byte of it is padding: they are compared. */
struct known_code {
    uint64_t subject, fingerprint;
};

struct line_matching {
    struct line_match *out;
    const struct run_set *set;
    const struct match *match;
    const struct compare_options *options;
    struct intern keys;
    struct intern codes[SIDE_COUNT]; /* struct known_code */
};

static struct error *collect_codes(struct line_matching *w, enum side side)
{
    for (size_t i = 0; i < w->set->codes.count; i++) {
        const struct run_code *code = &w->set->codes.data[i];
        uint32_t subject = w->match->of_function[side][code->function];
        if (!(w->match->codes.weight[side][i] > 0) || subject == RUN_SET_NONE || !code->fingerprint)
            continue;
        const struct known_code key = {subject, code->fingerprint};
        if (intern_id(&w->codes[side], &key, sizeof key, NULL) == INTERN_NONE)
            return error_no_memory();
    }
    return NULL;
}

/* The line that an old one of changed code is in the new text, see compare_options.new_line. */
static uint32_t new_line_of(const struct line_matching *w, const struct subject *s, uint32_t line)
{
    const struct run_function *functions = w->set->functions.data;
    const struct run_function *old = &functions[s->function[SIDE_OLD]], *new = &functions[s->function[SIDE_NEW]];

    return w->options->new_line(w->options->ctx, run_set_text_get(w->set, old->file), run_set_text_get(w->set, new->file), line);
}

/* False: the line is not compared. */
static bool key_of(const struct line_matching *w, enum side side, const struct run_line *line, struct line_key *key)
{
    const struct run_code *code = &w->set->codes.data[line->code];
    uint32_t subject = w->match->of_function[side][code->function];

    *key = (struct line_key){0};
    if (subject == RUN_SET_NONE || !line->line)
        return false;
    const struct subject *s = &w->match->subjects.data[subject];
    key->subject = subject;
    if (s->function[SIDE_OLD] == RUN_SET_NONE || s->function[SIDE_NEW] == RUN_SET_NONE)
        return false;
    const struct known_code known = {subject, code->fingerprint};
    if (w->match->codes.known && code->fingerprint && intern_find(&w->codes[!side], &known, sizeof known) != INTERN_NONE) {
        key->place = line->line - code->first_line;
        key->fingerprint = code->fingerprint;
        return true;
    }
    if (!w->options->new_line)
        return false;
    uint32_t place = new_line_of(w, s, side == SIDE_NEW ? 1 : line->line);
    if (place == COMPARE_LINE_UNKNOWN)
        return false;
    if (side == SIDE_NEW)
        place = line->line;
    key->place = place ? place : line->line;
    key->fingerprint = place ? CHANGED_IN_BOTH : CHANGED_OLD_ONLY;
    return true;
}

static struct error *match_side(struct line_matching *w, enum side side)
{
    struct line_match *out = w->out;

    if (!limits_work(w->set->limits, 60 * (uint64_t)w->set->lines.count))
        return error_no_memory();
    for (uint32_t i = 0; i < w->set->lines.count; i++) {
        struct line_key key;
        bool added;
        out->of_line[side][i] = RUN_SET_NONE;
        if (!key_of(w, side, &w->set->lines.data[i], &key))
            continue;
        uint32_t class = intern_id(&w->keys, &key, sizeof key, &added);
        if (class == INTERN_NONE ||
            (added && !VEC_PUSH(&out->classes, ((struct line_class){key.subject, {RUN_SET_NONE, RUN_SET_NONE}}))))
            return error_no_memory();
        out->classes.data[class].line[side] = i;
        out->of_line[side][i] = class;
    }
    return NULL;
}

static struct error *match_sides(struct line_matching *w)
{
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        TRY(collect_codes(w, side));
        w->out->of_line[side] = malloc((w->set->lines.count + 1) * sizeof *w->out->of_line[side]);
        if (!w->out->of_line[side])
            return error_no_memory();
    }
    TRY(match_side(w, SIDE_OLD));
    return match_side(w, SIDE_NEW);
}

struct error *line_match_init(struct line_match *m, const struct sides *s, const struct match *match,
                              const struct compare_options *options)
{
    struct line_matching w = {.out = m, .set = s->set, .match = match, .options = options};

    *m = (struct line_match){0};
    w.keys.arena.limits = w.codes[SIDE_OLD].arena.limits = w.codes[SIDE_NEW].arena.limits = s->set->limits;
    struct error *err = match_sides(&w);
    intern_deinit(&w.keys);
    intern_deinit(&w.codes[SIDE_OLD]);
    intern_deinit(&w.codes[SIDE_NEW]);
    return err;
}

void line_match_deinit(struct line_match *m)
{
    VEC_DEINIT(&m->classes);
    for (enum side side = 0; side < SIDE_COUNT; side++)
        free(m->of_line[side]);
    *m = (struct line_match){0};
}
