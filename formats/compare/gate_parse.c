/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rules: lines of a word, what it is about, and a limit. See gate.h and docs/compare.md. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/lines.h"
#include "formats/base/nearest.h"
#include "formats/compare/gate_state.h"

struct gate *gate_create(void)
{
    struct gate *g = calloc(1, sizeof *g);

    if (g)
        g->alpha = GATE_ALPHA;
    return g;
}

static void rule_deinit(struct rule *r)
{
    for (size_t i = 0; i < r->patterns.count; i++)
        name_pattern_destroy(r->patterns.data[i]);
    VEC_DEINIT(&r->patterns);
    free(r->pattern_text);
    free(r->text);
    free(r->origin);
}

static void ignore_deinit(struct ignore_rule *r)
{
    name_pattern_destroy(r->pattern);
    free(r->text);
}

void gate_destroy(struct gate *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->rules.count; i++)
        rule_deinit(&g->rules.data[i]);
    for (size_t i = 0; i < g->ignored.count; i++)
        ignore_deinit(&g->ignored.data[i]);
    VEC_DEINIT(&g->rules);
    VEC_DEINIT(&g->ignored);
    VEC_DEINIT(&g->results);
    free(g);
}

/* What is parsed: a line that is taken apart in place. */
struct line {
    const char *whole, *origin;
    char *rest; /* behind the first word */
};

static struct error *refuse(const struct line *l, const char *what)
{
    return error_create(ERROR_USAGE, "%s: '%s': %s", l->origin, l->whole, what);
}

/* Takes the last word of the rest; "": there is none. */
static char *take_last(struct line *l)
{
    char *space = strrchr(l->rest, ' '), *tab = strrchr(l->rest, '\t'), *from = space > tab ? space : tab;

    if (!from) {
        char *all = l->rest;
        l->rest = all + strlen(all);
        return all;
    }
    *from = 0;
    line_trim(l->rest);
    return from + 1;
}

static struct error *read_limit(struct line *l, double *out)
{
    const char *word = take_last(l);
    char *end;
    double percent = strtod(word, &end);

    if (!isdigit((unsigned char)*word) || end == word || strcmp(end, "%") != 0 || !(percent <= 10000))
        return refuse(l, "its last word is the limit, a percentage like 2%");
    *out = percent / 100;
    return NULL;
}

/* ---- rules that are judged ---- */

static struct error *add_pattern(struct rule *r, const char *text)
{
    struct name_pattern *pattern;

    TRY(name_pattern_create(r->origin, text, &pattern));
    if (VEC_PUSH(&r->patterns, pattern))
        return NULL;
    name_pattern_destroy(pattern);
    return error_no_memory();
}

static struct error *read_patterns(const struct line *l, struct rule *r)
{
    r->pattern_text = strdup(l->rest);
    if (!r->pattern_text)
        return error_no_memory();
    for (char *part = r->pattern_text, *next; part; part = next) {
        next = r->kind == RULE_NODE ? strchr(part, ';') : NULL;
        if (next)
            *next++ = 0;
        if (!*part)
            return refuse(l, r->kind == RULE_NODE ? "name calls, outermost first, like main;serve;small" : "it lacks a name, like app.render:* or ~RE");
        TRY(add_pattern(r, part));
    }
    return NULL;
}

static struct error *read_rule(struct line *l, enum rule_kind kind, struct rule *r)
{
    *r = (struct rule){.kind = kind, .text = strdup(l->whole), .origin = strdup(l->origin)};
    if (!r->text || !r->origin)
        return error_no_memory();
    TRY(read_limit(l, &r->limit));
    bool is_named = kind != RULE_TOTAL && kind != RULE_NEW;
    if (!is_named && *l->rest)
        return refuse(l, kind == RULE_TOTAL ? "total takes a limit alone, like total 2%" : "new takes a limit alone, like new 1%");
    return is_named ? read_patterns(l, r) : NULL;
}

static struct error *add_rule(struct gate *g, struct line *l, int kind)
{
    struct rule rule;
    struct error *err = read_rule(l, (enum rule_kind)kind, &rule);

    if (!err && !VEC_PUSH(&g->rules, rule))
        err = error_no_memory();
    if (err)
        rule_deinit(&rule);
    return err;
}

/* ---- what holds for all rules ---- */

static struct error *add_ignored(struct gate *g, struct line *l, int kind)
{
    struct ignore_rule r = {.text = strdup(l->rest)};

    (void)kind;
    struct error *err = !*l->rest ? refuse(l, "it lacks a name, like ~^<frozen importlib") : !r.text ? error_no_memory() : NULL;
    if (!err)
        err = name_pattern_create(l->origin, r.text, &r.pattern);
    if (!err && !VEC_PUSH(&g->ignored, r))
        err = error_no_memory();
    if (err)
        ignore_deinit(&r);
    return err;
}

static bool read_count(char **at, uint32_t *out)
{
    unsigned long value = isdigit((unsigned char)**at) ? strtoul(*at, at, 10) : 0;

    *out = (uint32_t)value;
    return value && value <= 1000000;
}

static struct error *set_runs(struct gate *g, struct line *l, int kind)
{
    char *at = l->rest;

    (void)kind;
    bool good = read_count(&at, &g->least_old);
    at += strspn(at, " \t");
    if (!good || !read_count(&at, &g->least_new) || *at)
        return refuse(l, "runs takes two numbers, of old and new runs at least, like runs 5 5");
    return NULL;
}

static struct error *set_alpha(struct gate *g, struct line *l, int kind)
{
    char *end;
    double alpha = strtod(l->rest, &end);

    (void)kind;
    if (end == l->rest || *end || !(alpha > 0 && alpha < 0.5))
        return refuse(l, "alpha takes how often a rule may fail by chance, like alpha 0.05");
    g->alpha = alpha;
    return NULL;
}

static struct error *set_undecided(struct gate *g, struct line *l, int kind)
{
    (void)kind;
    g->undecided_fails = !strcmp(l->rest, "fail");
    return g->undecided_fails || !strcmp(l->rest, "warn") ? NULL : refuse(l, "undecided takes warn or fail");
}

/* ---- the words that begin a line ---- */

static const struct {
    const char *name;
    struct error *(*read)(struct gate *g, struct line *l, int kind);
    int kind; /* of add_rule(): enum rule_kind */
} words[] = {
    {"total", add_rule, RULE_TOTAL}, {"function", add_rule, RULE_FUNCTION}, {"file", add_rule, RULE_FILE},
    {"node", add_rule, RULE_NODE},   {"new", add_rule, RULE_NEW},           {"ignore", add_ignored, 0},
    {"runs", set_runs, 0},           {"alpha", set_alpha, 0},               {"undecided", set_undecided, 0},
};
enum { WORD_COUNT = sizeof words / sizeof *words };

static struct error *refuse_word(const struct line *l, const char *word)
{
    struct nearest nearest = nearest_to(word, strlen(word));
    char meant[48] = "";

    for (int i = 0; i < WORD_COUNT; i++)
        nearest_consider(&nearest, words[i].name);
    if (*word && nearest.name)
        snprintf(meant, sizeof meant, "did you mean %s? ", nearest.name);
    return error_create(ERROR_USAGE, "%s: '%s': %srules begin with total, function, file, node, new, ignore, runs, alpha or undecided",
                        l->origin, l->whole, meant);
}

static struct error *read_line(struct gate *g, char *text, const char *whole, const char *origin)
{
    size_t len = strcspn(text, " \t");
    struct line l = {whole, origin, text + len};

    if (*l.rest) {
        *l.rest++ = 0;
        l.rest = line_trim(l.rest);
    }
    for (int i = 0; i < WORD_COUNT; i++) {
        if (!strcmp(words[i].name, text))
            return words[i].read(g, &l, words[i].kind);
    }
    return refuse_word(&l, text);
}

struct error *gate_add(struct gate *g, const char *rule, const char *origin)
{
    char *whole = strdup(rule), *copy = NULL;
    struct error *err = NULL;

    if (!whole)
        return error_no_memory();
    const char *trimmed = line_trim(whole);
    copy = strdup(trimmed);
    err = copy ? read_line(g, copy, trimmed, origin) : error_no_memory();
    free(copy);
    free(whole);
    return err;
}

static struct error *take_line(void *ctx, const char *line, const char *origin)
{
    return gate_add(ctx, line, origin);
}

struct error *gate_add_file(struct gate *g, const char *path)
{
    return lines_read(path, take_line, g);
}

struct error *gate_set_look(struct gate *g, uint32_t look, uint32_t looks)
{
    if (!look || look > looks)
        return error_create(ERROR_USAGE, "look %u of %u: there is no such", look, looks);
    g->look = look;
    g->looks = looks;
    return NULL;
}

bool gate_ignores(const struct gate *g, const char *file, const char *function)
{
    for (size_t i = 0; i < g->ignored.count; i++) {
        if (name_pattern_matches(g->ignored.data[i].pattern, file, function))
            return true;
    }
    return false;
}

bool gate_undecided_fails(const struct gate *g)
{
    return g->undecided_fails;
}
