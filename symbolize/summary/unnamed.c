/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/unnamed.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "formats/base/sort.h"

enum { MODULES_NAMED = 3 };

static int compare_unnamed(const void *a, const void *b)
{
    const struct modcache_entry *x = *(const struct modcache_entry *const *)a;
    const struct modcache_entry *y = *(const struct modcache_entry *const *)b;

    if (x->unresolved_count != y->unresolved_count)
        return x->unresolved_count > y->unresolved_count ? -1 : 1;
    return strcmp(x->path, y->path);
}

struct error *unnamed_list(const struct resolver *r, struct unnamed *out)
{
    struct modcache *modules = resolver_modules(r);
    uint32_t count = modcache_count(modules);

    *out = (struct unnamed){.modules = malloc((count + 1) * sizeof *out->modules)};
    if (!out->modules)
        return error_no_memory();
    for (uint32_t i = 0; i < count; i++) {
        out->modules[out->count] = modcache_get(modules, i);
        out->count += out->modules[out->count]->unresolved_count != 0;
    }
    if (sort_stable(out->modules, out->count, sizeof *out->modules, compare_unnamed))
        return NULL;
    unnamed_deinit(out);
    return error_no_memory();
}

void unnamed_deinit(struct unnamed *u)
{
    free(u->modules);
    *u = (struct unnamed){0};
}

static bool is_below(const char *path, const char *const *folders)
{
    for (; *folders; folders++) {
        if (!strncmp(path, *folders, strlen(*folders)))
            return true;
    }
    return false;
}

enum unnamed_cause unnamed_cause(const struct modcache_entry *m)
{
    static const char *const temporary[] = {"/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/memfd:", NULL};

    if (m->kind == TRACE_MODULE_ANONYMOUS)
        return UNNAMED_MADE;
    if (m->trouble)
        return UNNAMED_UNREADABLE;
    if (m->files.binary || m->image_len)
        return !m->symbols || symbols_quality(m->symbols) <= SYMBOLS_EXPORTED ? UNNAMED_STRIPPED : UNNAMED_PARTLY;
    if (m->id_kind == TRACE_ID_NONE)
        return UNNAMED_NO_ID;
    if (m->files.is_other)
        return UNNAMED_OTHER_FILE;
    return is_below(m->path, temporary) ? UNNAMED_VANISHED : UNNAMED_NOT_FOUND;
}

const char *unnamed_reason(enum unnamed_cause cause)
{
    static const char *const reasons[UNNAMED_CAUSES] = {
        [UNNAMED_STRIPPED] = "no debug symbols",
        [UNNAMED_PARTLY] = "no symbol for some of its code",
        [UNNAMED_NOT_FOUND] = "the file was not found",
        [UNNAMED_VANISHED] = "the file was in a temporary folder, and was not found",
        [UNNAMED_OTHER_FILE] = "another version of the file was found",
        [UNNAMED_NO_ID] = "the file has no build ID",
        [UNNAMED_UNREADABLE] = "the file cannot be read",
        [UNNAMED_MADE] = "code made at run time, without a table of symbols",
    };

    return reasons[cause];
}

bool unnamed_is_packaged(const struct modcache_entry *m)
{
    static const char *const folders[] = {"/usr/", "/lib", "/bin/", "/sbin/", NULL}, *const local[] = {"/usr/local/", NULL};

    return is_below(m->path, folders) && !is_below(m->path, local);
}

const char *unnamed_package(const struct modcache_entry *m, char *text, size_t size)
{
    /* What Debian ships of libc; each name is followed by ".so". */
    static const char *const libc[] = {"libc.", "libm.", "libpthread.", "libdl.", "librt.", "ld-linux"};
    const char *name = unnamed_base_name(m->path);
    char minor[4];

    if (sscanf(name, "python3.%3[0-9]", minor) == 1 || sscanf(name, "libpython3.%3[0-9]", minor) == 1) {
        snprintf(text, size, "python3.%s-dbg", minor);
        return text;
    }
    for (size_t i = 0; i < sizeof libc / sizeof *libc; i++) {
        if (!strncmp(name, libc[i], strlen(libc[i])))
            return "libc6-dbg";
    }
    return NULL;
}

const char *unnamed_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

void unnamed_put_modules(const struct resolver *r, struct buf *line)
{
    struct unnamed unnamed;
    struct number n;

    struct error *err = unnamed_list(r, &unnamed);
    for (uint32_t i = 0; !err && i < unnamed.count && i < MODULES_NAMED; i++) {
        buf_put_str(line, i ? ", " : ": ");
        printable_put(line, unnamed_base_name(unnamed.modules[i]->path));
    }
    if (!err && unnamed.count > MODULES_NAMED)
        buf_printf(line, " and %s more", grouped(unnamed.count - MODULES_NAMED, &n));
    error_destroy(err);
    unnamed_deinit(&unnamed);
}
