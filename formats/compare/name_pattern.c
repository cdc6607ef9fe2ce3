/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions and files in rules. See name_pattern.h. */
#include "formats/compare/name_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/pattern.h"

/* Globs begin with "*", a divider, and then the glob itself: so they match ends of names, see matches_end(). */
struct name_pattern {
    struct pattern *regex; /* NULL: the globs below */
    char *whole;           /* the text as one of paths */
    char *function;
    char *file, *dotted;   /* before the colon: as a path, and a dotted name as a path; NULL: any file */
};

bool glob_matches(const char *glob, const char *text)
{
    const char *star = NULL, *from = text;

    /* With a mismatch the last star takes one character more; those before it need not be tried again. */
    while (*text) {
        if (*glob == '*') {
            star = glob++;
            from = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++, text++;
        } else if (star) {
            glob = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*glob == '*')
        glob++;
    return !*glob;
}

/* Does the text match, or what stands behind one of the dividers in it? */
static bool matches_end(const char *glob, const char *text)
{
    return glob_matches(glob + 2, text) || glob_matches(glob, text);
}

static char *end_glob(char divider, const char *text, size_t len)
{
    char *glob = malloc(len + 3);

    if (glob) {
        glob[0] = '*';
        glob[1] = divider;
        memcpy(glob + 2, text, len);
        glob[len + 2] = 0;
    }
    return glob;
}

static bool make_globs(struct name_pattern *p, const char *text)
{
    const char *colon = strrchr(text, ':'), *function = colon ? colon + 1 : text;

    p->whole = end_glob('/', text, strlen(text));
    p->function = end_glob('.', function, strlen(function));
    if (colon) {
        p->file = end_glob('/', text, (size_t)(colon - text));
        p->dotted = end_glob('/', text, (size_t)(colon - text));
    }
    for (char *c = p->dotted; c && *c; c++)
        *c = *c == '.' ? '/' : *c;
    return p->whole && p->function && (!colon || (p->file && p->dotted));
}

struct error *name_pattern_create(const char *who, const char *text, struct name_pattern **out)
{
    struct name_pattern *p = calloc(1, sizeof *p);
    struct error *err = NULL;

    *out = p;
    if (!p)
        return error_no_memory();
    if (*text == '~')
        err = pattern_create(who, text + 1, &p->regex);
    else if (!make_globs(p, text))
        err = error_no_memory();
    if (err) {
        name_pattern_destroy(p);
        *out = NULL;
    }
    return err;
}

void name_pattern_destroy(struct name_pattern *p)
{
    if (!p)
        return;
    pattern_destroy(p->regex);
    free(p->whole);
    free(p->function);
    free(p->file);
    free(p->dotted);
    free(p);
}

/* A name that is not too long; `cut` has room for one that is. */
static const char *shortened(const char *name, char cut[PATTERN_NAME_LIMIT_BYTES + 1])
{
    if (strnlen(name, PATTERN_NAME_LIMIT_BYTES + 1) <= PATTERN_NAME_LIMIT_BYTES)
        return name;
    memcpy(cut, name, PATTERN_NAME_LIMIT_BYTES);
    cut[PATTERN_NAME_LIMIT_BYTES] = 0;
    return cut;
}

/* "/srv/app/render.py" is the module app.render, "/srv/app/__init__.py" is app: app/render and app as ends of a path. */
static bool is_in_module(const char *dotted, const char *file)
{
    static const char suffix[] = ".py", package[] = "/__init__";
    char path[PATTERN_NAME_LIMIT_BYTES + 1];
    size_t len = strlen(file), end = sizeof suffix - 1;

    if (len <= end || strcmp(file + len - end, suffix) != 0)
        return false;
    len -= end;
    memcpy(path, file, len);
    path[len] = 0;
    end = sizeof package - 1;
    if (len > end && !strcmp(path + len - end, package))
        path[len - end] = 0;
    return matches_end(dotted, path);
}

static bool matches_regex(const struct name_pattern *p, const char *file, const char *function)
{
    struct buf both = {0};

    buf_printf(&both, "%s:%s", file, function);
    bool found = !both.bad && pattern_finds(p->regex, buf_cstr(&both));
    buf_deinit(&both);
    return found;
}

bool name_pattern_matches(const struct name_pattern *p, const char *file, const char *function)
{
    char cut_file[PATTERN_NAME_LIMIT_BYTES + 1], cut[PATTERN_NAME_LIMIT_BYTES + 1];

    file = shortened(file, cut_file);
    function = shortened(function, cut);
    if (p->regex)
        return matches_regex(p, file, function);
    return matches_end(p->function, function) &&
           (!p->file || matches_end(p->file, file) || is_in_module(p->dotted, file));
}

bool name_pattern_matches_file(const struct name_pattern *p, const char *file)
{
    char cut[PATTERN_NAME_LIMIT_BYTES + 1];

    file = shortened(file, cut);
    return p->regex ? pattern_finds(p->regex, file) : matches_end(p->whole, file);
}
