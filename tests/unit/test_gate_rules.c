/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a comparison as they are written: what is understood, and what is said about the rest. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/lines.h"
#include "formats/base/pattern.h"
#include "formats/compare/gate_state.h"

static struct gate *gate_of(const char *const *rules)
{
    struct gate *g = gate_create();

    assert_non_null(g);
    for (; *rules; rules++)
        OK(gate_add(g, *rules, "--fail-on"));
    return g;
}

TEST(every_form)
{
    static const char *const rules[] = {"total 2%", "function app.render:* 5%  # of its parent", "function ~(add|sub) me$\t0.5%",
                                        "file myapp/db/* 3%", "node main;serve;cart.py:add 10%", " new 1% ", "runs 5 7", "alpha 0.01",
                                        "undecided fail", NULL};
    static const enum rule_kind kinds[] = {RULE_TOTAL, RULE_FUNCTION, RULE_FUNCTION, RULE_FILE, RULE_NODE, RULE_NEW};
    static const double limits[] = {0.02, 0.05, 0.005, 0.03, 0.1, 0.01};
    struct gate *g = gate_of(rules);

    assert_int_equal(g->rules.count, 6);
    for (size_t i = 0; i < g->rules.count; i++) {
        assert_int_equal(g->rules.data[i].kind, kinds[i]);
        assert_true(g->rules.data[i].limit > limits[i] - 1e-12 && g->rules.data[i].limit < limits[i] + 1e-12);
    }
    assert_string_equal(g->rules.data[1].text, "function app.render:* 5%");
    assert_true(name_pattern_matches(g->rules.data[2].patterns.data[0], "/srv/a.py", "please add me"));
    assert_int_equal(g->rules.data[4].patterns.count, 3);
    assert_int_equal(g->least_old, 5);
    assert_int_equal(g->least_new, 7);
    assert_true(g->alpha > 0.0099 && g->alpha < 0.0101);
    assert_true(gate_undecided_fails(g));
    gate_destroy(g);
}

TEST(what_is_not_understood)
{
    static const char *const wrong[][2] = {
        {"totl 2%", "--fail-on: 'totl 2%': did you mean total? rules begin with total, function, file, node, new, ignore, runs, alpha or undecided"},
        {"", "--fail-on: '': rules begin with"},
        {"zebra 2%", "--fail-on: 'zebra 2%': rules begin with"},
        {"total", "its last word is the limit, a percentage like 2%"},
        {"total 2", "its last word is the limit, a percentage like 2%"},
        {"total -2%", "its last word is the limit"},
        {"total nan%", "its last word is the limit"},
        {"total 2%%", "its last word is the limit"},
        {"total 1e9%", "its last word is the limit"},
        {"total score 2%", "total takes a limit alone, like total 2%"},
        {"new score 2%", "new takes a limit alone, like new 1%"},
        {"function 5%", "it lacks a name, like app.render:* or ~RE"},
        {"file 5%", "it lacks a name"},
        {"function score", "its last word is the limit"},
        {"function ~( 5%", "--fail-on wants a regular expression, not '(': "},
        {"function ~ 5%", "--fail-on wants a regular expression, not '': it is empty"},
        {"node main;;small 5%", "name calls, outermost first, like main;serve;small"},
        {"ignore", "it lacks a name, like ~^<frozen importlib"},
        {"runs 5", "runs takes two numbers"},
        {"runs 0 5", "runs takes two numbers"},
        {"runs 5 5 5", "runs takes two numbers"},
        {"runs 99999999999999999999 1", "runs takes two numbers"},
        {"alpha 0", "alpha takes how often a rule may fail by chance"},
        {"alpha 5%", "alpha takes"},
        {"alpha nan", "alpha takes"},
        {"undecided maybe", "undecided takes warn or fail"},
    };
    struct gate *g = gate_create();

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error *err = gate_add(g, wrong[i][0], "--fail-on");
        assert_non_null(err);
        assert_int_equal(err->code, ERROR_USAGE);
        if (!strstr(error_text(err), wrong[i][1]))
            fail_msg("'%s': %s", wrong[i][0], error_text(err));
        error_destroy(err);
    }
    assert_int_equal(g->rules.count, 0);
    gate_destroy(g);
}

static void write_file(const char *path, const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* The error of reading a budget with this text; NULL: there is none. */
static struct error *read_budget(struct gate *g, const char *text, size_t len)
{
    char path[] = "/tmp/test-gate-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    write_file(path, text, len);
    struct error *err = gate_add_file(g, path);
    unlink(path);
    return err;
}

TEST(a_budget)
{
    static const char good[] = "# what may not get slower\r\n\n  total 2% # all\n\tfunction a#b 5%\nundecided fail";
    static const char wrong[] = "total 2%\n\nfunktion score 5%\n";
    struct gate *g = gate_create();

    OK(read_budget(g, good, sizeof good - 1));
    assert_int_equal(g->rules.count, 2);
    assert_true(name_pattern_matches(g->rules.data[1].patterns.data[0], "x.py", "a#b"));
    assert_true(gate_undecided_fails(g));
    struct error *err = read_budget(g, wrong, sizeof wrong - 1);
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), ":3: 'funktion score 5%': did you mean function?"));
    error_destroy(err);
    err = read_budget(g, "total\0 2%", 9);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_FORMAT);
    error_destroy(err);
    char *much = calloc(1, LINES_MAX_BYTES + 1);
    err = read_budget(g, memset(much, '\n', LINES_MAX_BYTES + 1), LINES_MAX_BYTES + 1);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_LIMIT);
    error_destroy(err);
    free(much);
    err = gate_add_file(g, "/nonexistent/budget.txt");
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
    gate_destroy(g);
}

TEST(looks)
{
    struct gate *g = gate_create();

    OK(gate_set_look(g, 3, 3));
    for (uint32_t look = 0; look < 5; look += 4) {
        struct error *err = gate_set_look(g, look, 3);
        assert_non_null(err);
        error_destroy(err);
    }
    gate_destroy(g);
}

/* ---- names ---- */

static bool matches(const char *text, const char *file, const char *function)
{
    struct name_pattern *p;

    OK(name_pattern_create("--fail-on", text, &p));
    bool found = name_pattern_matches(p, file, function);
    name_pattern_destroy(p);
    return found;
}

static bool matches_file(const char *text, const char *file)
{
    struct name_pattern *p;

    OK(name_pattern_create("--fail-on", text, &p));
    bool found = name_pattern_matches_file(p, file);
    name_pattern_destroy(p);
    return found;
}

TEST(functions)
{
    static const char file[] = "/srv/shop/app/render.py";

    assert_true(matches("score", file, "score"));
    assert_true(matches("score", file, "Game.score"));
    assert_true(matches("Game.*", file, "Game.score"));
    assert_true(matches("G?me.score", file, "Game.score"));
    assert_false(matches("score", file, "underscore"));
    assert_false(matches("score", file, "score.inner"));
    assert_true(matches("render.py:score", file, "score"));
    assert_true(matches("app/render.py:sc*", file, "score"));
    assert_true(matches("/srv/shop/app/render.py:score", file, "score"));
    assert_false(matches("/shop/app/render.py:score", file, "score"));
    assert_false(matches("ender.py:score", file, "score"));
    assert_true(matches("app.render:*", file, "<module>"));
    assert_true(matches("render:score", file, "score"));
    assert_false(matches("app:*", file, "score"));
    assert_true(matches("app:*", "/srv/shop/app/__init__.py", "score"));
    assert_true(matches("<frozen importlib._bootstrap>:*", "<frozen importlib._bootstrap>", "_load"));
    assert_true(matches("~^/srv/.*:score$", file, "score"));
    assert_true(matches("~^<frozen importlib", "<frozen importlib._bootstrap>", "_load"));
    assert_false(matches("~^score", file, "score"));
}

TEST(files)
{
    assert_true(matches_file("myapp/db/*", "/srv/myapp/db/query.py"));
    assert_true(matches_file("query.py", "/srv/myapp/db/query.py"));
    assert_true(matches_file("*/db/*", "/srv/myapp/db/query.py"));
    assert_false(matches_file("db", "/srv/myapp/db/query.py"));
    assert_false(matches_file("app/db/*", "/srv/myapp/db/query.py"));
    assert_true(matches_file("~/db/", "/srv/myapp/db/query.py"));
}

TEST(globs)
{
    assert_true(glob_matches("", ""));
    assert_true(glob_matches("*", ""));
    assert_false(glob_matches("?", ""));
    assert_true(glob_matches("a*b*c", "axxbxxbxc"));
    assert_false(glob_matches("a*b*c", "axxbxxb"));
    assert_true(glob_matches("**a", "bca"));
    assert_true(glob_matches("[a]*", "[a]b"));
}

/* Stars that nearly match everywhere take no more than the product of both lengths. */
TEST(hostile_names)
{
    enum { LEN = 1 << 20, STARS = 200 };
    char *name = malloc(LEN + 1), glob[2 * STARS + 2];

    memset(name, 'a', LEN);
    name[LEN] = 0;
    for (int i = 0; i < STARS; i++)
        memcpy(glob + 2 * i, "a*", 2);
    strcpy(glob + 2 * STARS, "b");
    assert_false(matches(glob, name, name));
    assert_false(matches_file(glob, name));
    assert_false(matches("~b$", "x.py", name));
    /* Of a longer name the beginning is looked at. */
    name[PATTERN_NAME_LIMIT_BYTES] = 'b';
    assert_false(matches("*b*", "x.py", name));
    name[PATTERN_NAME_LIMIT_BYTES - 1] = 'b';
    assert_true(matches("*b", "x.py", name));
    assert_false(matches("app:*", name, "f"));
    free(name);
}

TEST(ignored)
{
    static const char *const rules[] = {"ignore ~^<frozen importlib", "ignore conftest.py:*", NULL};
    struct gate *g = gate_of(rules);

    assert_true(gate_ignores(g, "<frozen importlib._bootstrap>", "_load"));
    assert_true(gate_ignores(g, "/srv/tests/conftest.py", "app"));
    assert_false(gate_ignores(g, "/srv/app.py", "main"));
    gate_destroy(g);
}

static void refuse_regex(const char *expression)
{
    struct pattern *p;
    struct error *err = pattern_create("--fail-on", expression, &p);

    assert_non_null(err);
    assert_int_equal(err->code, ERROR_USAGE);
    assert_non_null(strstr(error_text(err), "too many"));
    error_destroy(err);
}

/* Regular expressions that libc would take minutes, gigabytes or its whole stack for are refused; usual ones are not. */
TEST(large_regexes)
{
    static const char *const refused[] = {"(((a?){50}){50}){10}", "((((a{1,255}){1,255}){1,255}){1,255}){1,255}", "((a{100})+{100}){,9}"};
    static const char *const taken[] = {"a{1000}", "([0-9a-f]{4}){8}", "[(]{3}\\(x{2,3}", "(a|b){2}(c{3}d){4}{5}", "a{", "{3}"};
    char deep[2 * 5000 + 2];
    struct pattern *p;

    memset(deep, '(', 5000);
    memset(deep + 5000, ')', 5001);
    deep[5000] = 'a';
    deep[10001] = 0;
    refuse_regex(deep);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        refuse_regex(refused[i]);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct error *err = pattern_create("--fail-on", taken[i], &p);
        if (err) /* libc may object */
            assert_null(strstr(error_text(err), "too many"));
        else
            pattern_destroy(p);
        error_destroy(err);
    }
}
