/* SPDX-License-Identifier: Apache-2.0 */
/* Short names of Python files. */
#include "formats/emit/names.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/code_file.h"

/* Whether `s` names a folder of the standard library: python3.12, python3.13t, pypy3.10, python312.zip. */
static bool is_library_folder(const char *s, size_t len)
{
    size_t i;

    if (len > 6 && !memcmp(s, "python", 6))
        i = 6;
    else if (len > 4 && !memcmp(s, "pypy", 4))
        i = 4;
    else
        return false;
    size_t digits = i;
    bool dot = false;
    while (i < len && ((s[i] >= '0' && s[i] <= '9') || (s[i] == '.' && !dot && len - i > 1 && s[i + 1] != 'z')))
        dot |= s[i++] == '.';
    if (i == digits)
        return false;
    if (len - i == 4 && !memcmp(s + i, ".zip", 4))
        return true;
    return dot && (i == len || (i + 1 == len && (s[i] == 't' || s[i] == 'd')));
}

/* Where the part of the path begins that an import names, if site-packages or the like shows it; else 0. */
static size_t package_start(const char *path)
{
    const char *start = path;

    if (!code_file_is_path(path))
        return 0;
    for (const char *s = path, *slash; (slash = strchr(s, '/')); s = slash + 1) {
        size_t len = (size_t)(slash - s);
        if (slash[1] && ((len == 13 && (!memcmp(s, "site-packages", 13) || !memcmp(s, "dist-packages", 13))) ||
                         is_library_folder(s, len)))
            start = slash + 1;
    }
    return (size_t)(start - path);
}

/* The same; else the last component. */
static size_t module_start(const char *path)
{
    size_t package = package_start(path);

    if (package || !code_file_is_path(path))
        return package;
    const char *start = name_base(path);
    /* These names say nothing alone: keep the package. */
    if (!strcmp(start, "__init__.py") || !strcmp(start, "__main__.py")) {
        while (start > path && start[-1] == '/')
            start--;
        while (start > path && start[-1] != '/')
            start--;
    }
    return (size_t)(start - path);
}

/* Takes in one more component on the left. */
static uint32_t start_earlier(const char *path, uint32_t start)
{
    while (start && path[start - 1] == '/')
        start--;
    while (start && path[start - 1] != '/')
        start--;
    return start;
}

static const char *path_of(const struct names *n, uint32_t id)
{
    return (const char *)intern_get(&n->paths, id)->data;
}

/* Lengthens short names until no two files share one. All that share a name grow, so the order of files does not matter. */
static struct error *tell_apart(struct names *n)
{
    uint32_t count = n->paths.count;
    uint32_t *first = malloc((count + 1) * sizeof *first); /* by short name: the first path that has it */
    bool *shared = malloc(count + 1);
    struct error *err = first && shared ? NULL : error_no_memory();

    for (bool again = true; again && !err;) {
        struct intern shorts = {.arena.limits = n->options->limits};
        if (!limits_work(n->options->limits, 50 * (uint64_t)count + n->paths.arena.total_bytes))
            err = error_no_memory();
        again = false;
        memset(shared, 0, count + 1);
        for (uint32_t id = 0; id < count && !err; id++) {
            const char *s = path_of(n, id) + n->starts[id];
            bool added;
            uint32_t sid = intern_id(&shorts, s, (uint32_t)strlen(s), &added);
            if (sid == INTERN_NONE)
                err = error_no_memory();
            else if (added)
                first[sid] = id;
            else
                shared[id] = shared[first[sid]] = true;
        }
        for (uint32_t id = 0; id < count && !err; id++) {
            if (shared[id] && n->starts[id]) {
                n->starts[id] = start_earlier(path_of(n, id), n->starts[id]);
                again = true;
            }
        }
        intern_deinit(&shorts);
    }
    free(first);
    free(shared);
    return err;
}

struct error *names_init(struct names *n, const struct emit_model *model, const struct emit_options *options)
{
    *n = (struct names){.model = model, .options = options, .paths.arena.limits = options->limits};
    if (options->full_paths)
        return NULL;
    for (uint32_t i = 0; i < model->frame_count; i++) {
        const struct emit_frame *f = &model->frames[i];
        /* With the NUL, so that the table's bytes are strings. */
        if (f->kind == EMIT_PYTHON && intern_id(&n->paths, f->file, (uint32_t)strlen(f->file) + 1, NULL) == INTERN_NONE)
            return error_no_memory();
    }
    n->starts = malloc((n->paths.count + 1) * sizeof *n->starts);
    if (!n->starts)
        return error_no_memory();
    for (uint32_t id = 0; id < n->paths.count; id++)
        n->starts[id] = (uint32_t)(options->own_paths ? package_start(path_of(n, id)) : module_start(path_of(n, id)));
    return tell_apart(n);
}

void names_deinit(struct names *n)
{
    intern_deinit(&n->paths);
    free(n->starts);
    *n = (struct names){0};
}

const char *names_package_path(const char *path)
{
    return path + package_start(path);
}

const char *names_import_path(const char *path)
{
    return path + module_start(path);
}

const char *names_file(const struct names *n, const struct emit_frame *f)
{
    if (n->options->full_paths)
        return f->file;
    if (f->kind != EMIT_PYTHON)
        return name_base(f->file);
    return f->file + n->starts[intern_find(&n->paths, f->file, (uint32_t)strlen(f->file) + 1)];
}
