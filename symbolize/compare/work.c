/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/compare/work.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/lines.h"

struct work_file {
    struct run_set *set;
    const char *const *paths;
    size_t path_count;
    bool names_any;
};

/* A decimal number that can be work, and nothing behind it; 0: it is none. */
static double read_work(const char *text)
{
    char *end;
    bool is_decimal = isdigit((unsigned char)*text) && !text[strspn(text, "0123456789.eE+-")];
    double value = is_decimal ? strtod(text, &end) : 0;

    return value >= RUN_WORK_LEAST && value <= RUN_WORK_MOST && !*end ? value : 0;
}

static bool is_path_of(const struct work_file *f, size_t run, const char *name)
{
    return run < f->path_count && !strcmp(f->paths[run], name);
}

static struct error *set_work(struct work_file *f, const char *name, double work, const char *origin)
{
    struct run *found = NULL;
    size_t count = 0;

    for (size_t i = 0; i < f->set->runs.count; i++) {
        struct run *run = &f->set->runs.data[i];
        if (is_path_of(f, i, name)) {
            found = run;
            count = 1;
            break;
        }
        if (!strcmp(run_set_text_get(f->set, run->name), name)) {
            found = run;
            count++;
        }
    }
    if (count > 1)
        return error_create(ERROR_USAGE, "%s: %zu runs have the name %s: write it with its folder, as the command line has it", origin,
                            count, name);
    if (found)
        found->work = work;
    f->names_any |= found != NULL;
    return NULL;
}

static struct error *take_line(void *ctx, const char *line, const char *origin)
{
    const char *space = strrchr(line, ' '), *tab = strrchr(line, '\t'), *number = space > tab ? space : tab;
    double work = number ? read_work(number + 1) : 0;

    if (!(work > 0))
        return error_create(ERROR_USAGE, "%s: '%s': a line is the name of a run and its work, a number over 0, like run1.bin 20000", origin, line);
    while (number > line && (number[-1] == ' ' || number[-1] == '\t'))
        number--;
    char *name = strndup(line, (size_t)(number - line));
    if (!name)
        return error_no_memory();
    struct error *err = set_work(ctx, name, work, origin);
    free(name);
    return err;
}

struct error *work_read_file(const char *path, struct run_set *set, const char *const *paths, size_t path_count)
{
    struct work_file f = {set, paths, path_count, false};

    TRY(lines_read(path, take_line, &f));
    return f.names_any ? NULL : error_path(ERROR_USAGE, path, "names none of the runs that are compared");
}

void work_take_notes(struct run_set *set, const char *key)
{
    for (size_t i = 0; i < set->runs.count; i++) {
        struct run *run = &set->runs.data[i];
        run->work = 0;
        for (size_t k = 0; k < run->notes.count; k++) {
            if (!strcmp(run_set_text_get(set, run->notes.data[k].key), key))
                run->work = read_work(run_set_text_get(set, run->notes.data[k].value));
        }
    }
}
