/* SPDX-License-Identifier: Apache-2.0 */
/* Run by run: files that are known keep their class, others look for one by the end of their path, from long to short. */
#include "formats/compare/match_files.h"

#include <string.h>

#include "formats/base/code_file.h"
#include "formats/emit/names.h"

/* Folders of a path that count. */
enum { COMPONENTS_MAX = 32 };

/* A file of a run that no class has yet. */
struct stray {
    uint32_t path;
    bool matched;
};

/* What one run is matched with. */
struct round {
    const struct run_set *set;
    struct file_match *match;
    size_t run;
    VEC(struct stray) strays;
    struct intern stayed; /* folders of files that lie where they did */
};

static const char *path_of(const struct round *r, uint32_t text)
{
    return names_package_path(run_set_text_get(r->set, text));
}

/* The last `components` of a path; NULL: it has fewer. */
static const char *path_end(const char *path, int components)
{
    const char *s = path + strlen(path);

    while (components--) {
        if (s == path)
            return NULL;
        s--; /* the slash before what is found already, or the last byte */
        while (s > path && s[-1] != '/')
            s--;
    }
    return s;
}

/* Do these last components name a file? A package's __init__.py says nothing alone. */
static bool tells_enough(const char *end, int components)
{
    return components > 1 || (strcmp(end, "__init__.py") && strcmp(end, "__main__.py"));
}

/* Remembers all folders that the path lies in; the outermost, / or that of relative paths, is none. */
static bool add_folders(struct round *r, const char *path)
{
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));)
        if (intern_id(&r->stayed, path, (uint32_t)(slash - path), NULL) == INTERN_NONE)
            return false;
    return true;
}

/* Does the folder in front of `end` still have files that stayed there? */
static bool has_stayed(const struct round *r, const char *path, const char *end)
{
    size_t len = (size_t)(end - path);

    return len > 1 && intern_find(&r->stayed, path, (uint32_t)len - 1) != INTERN_NONE;
}

static struct error *add_file(struct round *r, struct map *met, uint32_t text)
{
    const uint64_t *known = map_get(&r->match->of_text, text);

    if (map_get(met, text))
        return NULL;
    const char *path = path_of(r, text);
    if (!map_set(met, text, 0))
        return error_no_memory();
    if (!known)
        return VEC_PUSH(&r->strays, ((struct stray){.path = text})) ? NULL : error_no_memory();
    r->match->classes.data[*known] = (struct file_class){text, r->run};
    return !code_file_is_path(path) || add_folders(r, path) ? NULL : error_no_memory();
}

/* The files of a run, each once. */
static struct error *add_files(struct round *r, const struct run_event *event)
{
    struct map met = {.limits = r->set->limits};
    struct error *err = NULL;

    for (size_t i = 0; i < event->functions.count && !err; i++) {
        const struct run_cell *cell = &event->functions.data[i];
        if (cell->total > 0)
            err = add_file(r, &met, r->set->functions.data[cell->id].file);
    }
    map_deinit(&met);
    return err;
}

/* The two that end alike: how many there are of each, and the first of them. */
struct same_end {
    uint32_t strays, classes, stray, class;
};

struct ends {
    struct intern texts;
    VEC(struct same_end) same; /* by text */
};

/* NULL: out of memory, or the path has fewer components. */
static struct same_end *end_of(struct ends *e, const char *path, int components, bool *failed)
{
    const char *end = code_file_is_path(path) ? path_end(path, components) : NULL;

    if (!end || !tells_enough(end, components))
        return NULL;
    uint32_t id = intern_id(&e->texts, end, (uint32_t)strlen(end), NULL);
    *failed = id == INTERN_NONE || !VEC_EXTEND_ZERO(&e->same, id + 1);
    return *failed ? NULL : &e->same.data[id];
}

static bool collect_ends(struct round *r, struct ends *e, int components)
{
    bool failed = false;

    for (uint32_t i = 0; i < r->strays.count && !failed; i++) {
        const struct stray *stray = &r->strays.data[i];
        struct same_end *same = stray->matched ? NULL : end_of(e, path_of(r, stray->path), components, &failed);
        if (same && !same->strays++)
            same->stray = i;
    }
    for (uint32_t i = 0; i < r->match->classes.count && !failed; i++) {
        const struct file_class *class = &r->match->classes.data[i];
        struct same_end *same = class->last_run == r->run ? NULL : end_of(e, path_of(r, class->path), components, &failed);
        if (same && !same->classes++)
            same->class = i;
    }
    return !failed;
}

/* Matches files that have so many last components in common. */
static struct error *match_ends(struct round *r, int components)
{
    struct ends e = {.texts.arena.limits = r->set->limits};
    struct error *err = collect_ends(r, &e, components) ? NULL : error_no_memory();

    for (size_t i = 0; i < e.same.count && !err; i++) {
        const struct same_end *same = &e.same.data[i];
        if (same->strays != 1 || same->classes != 1)
            continue;
        struct stray *stray = &r->strays.data[same->stray];
        struct file_class *class = &r->match->classes.data[same->class];
        const char *new_path = path_of(r, stray->path), *old_path = path_of(r, class->path);
        if (has_stayed(r, new_path, path_end(new_path, components)) ||
            has_stayed(r, old_path, path_end(old_path, components)))
            continue;
        *class = (struct file_class){stray->path, r->run};
        stray->matched = true;
        err = map_set(&r->match->of_text, stray->path, same->class) ? NULL : error_no_memory();
    }
    intern_deinit(&e.texts);
    VEC_DEINIT(&e.same);
    return err;
}

static struct error *match_run(struct round *r, const struct run_event *event)
{
    struct file_match *m = r->match;

    TRY(add_files(r, event));
    for (int components = COMPONENTS_MAX; components && r->strays.count && m->classes.count; components--) {
        if (!limits_work(r->set->limits, 100 * (r->strays.count + m->classes.count)))
            return error_no_memory();
        TRY(match_ends(r, components));
    }
    for (size_t i = 0; i < r->strays.count; i++) {
        const struct stray *stray = &r->strays.data[i];
        if (!stray->matched && (!map_set(&m->of_text, stray->path, m->classes.count) ||
                                !VEC_PUSH(&m->classes, ((struct file_class){stray->path, r->run}))))
            return error_no_memory();
    }
    return NULL;
}

struct error *file_match_init(struct file_match *m, const struct sides *s)
{
    struct error *err = NULL;

    *m = (struct file_match){.of_text.limits = s->set->limits};
    for (size_t i = 0; i < s->runs.count && !err; i++) {
        struct round r = {.set = s->set, .match = m, .run = i, .stayed.arena.limits = s->set->limits};
        err = match_run(&r, s->runs.data[i].event);
        VEC_DEINIT(&r.strays);
        intern_deinit(&r.stayed);
    }
    return err;
}

void file_match_deinit(struct file_match *m)
{
    map_deinit(&m->of_text);
    VEC_DEINIT(&m->classes);
}

uint32_t file_match_class(const struct file_match *m, uint32_t text)
{
    const uint64_t *class = map_get(&m->of_text, text);

    return class ? (uint32_t)*class : RUN_SET_NONE;
}
