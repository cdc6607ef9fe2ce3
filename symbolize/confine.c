/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "formats/base/landlock.h"
#include "formats/base/temporary.h"
#include "formats/base/vec.h"
#include "symbolize/source/sources.h"

struct places {
    VEC(struct landlock_place) list;
};

/* A path that does not exist is reported when it is opened. */
static struct error *allow(struct places *p, const char *path, unsigned access)
{
    struct landlock_place place = {open(path, O_PATH | O_CLOEXEC), access};

    if (place.fd < 0)
        return NULL;
    if (VEC_PUSH(&p->list, place))
        return NULL;
    close(place.fd);
    return error_no_memory();
}

static struct error *allow_all(struct places *p, const char *const *paths)
{
    for (; *paths; paths++)
        TRY(allow(p, *paths, LANDLOCK_READ));
    return NULL;
}

/*
 * The temporary file beside the output becomes the output, or is removed. Of several files some are also opened again;
 * those beside an output lie in folders.
 */
static struct error *allow_output(struct places *p, const struct options *o)
{
    const char *slash = o->output ? strrchr(o->output, '/') : NULL;
    bool beside = o->choice.emitter && (o->choice.emitter->needs_files || o->choice.emitter->uses_files);
    unsigned access = LANDLOCK_RENAME | (beside || options_split(o) ? LANDLOCK_WRITE : 0) | (beside ? LANDLOCK_MAKE : 0);

    if (!o->output)
        return NULL;
    char *folder = slash ? strndup(o->output, (size_t)(slash - o->output) + 1) : strdup(".");
    struct error *err = folder ? allow(p, folder, access) : error_no_memory();
    free(folder);
    return err;
}

/* The folders of "/", but for those that hold no files. What a link there leads to is allowed by its own name. */
static struct error *allow_host(struct places *p)
{
    static const char *const not_files[] = {"proc", "sys", "dev", "run", "net"};
    DIR *root = opendir("/");
    struct error *err = NULL;
    const struct dirent *entry;

    while (!err && root && (entry = readdir(root))) {
        bool left_out = entry->d_name[0] == '.' && (!entry->d_name[1] || !strcmp(entry->d_name, ".."));
        struct landlock_place place = {.access = LANDLOCK_READ};
        for (size_t i = 0; i < sizeof not_files / sizeof *not_files; i++)
            left_out |= !strcmp(entry->d_name, not_files[i]);
        if (left_out)
            continue;
        /* By O_NOFOLLOW, so that nothing is looked up behind it, such as an automount. */
        place.fd = openat(dirfd(root), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (place.fd >= 0 && !VEC_PUSH(&p->list, place))
            err = error_no_memory();
    }
    if (root)
        closedir(root);
    return err;
}

/* What a comparison reads beside traces. */
static struct error *allow_compared(struct places *p, const struct compare_request *r)
{
    size_t from_len;
    const char *const files[] = {r->budget, r->work, r->old_source ? source_folder(r->old_source, &from_len) : NULL,
                                 r->new_source ? source_folder(r->new_source, &from_len) : NULL};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i])
            TRY(allow(p, files[i], LANDLOCK_READ));
    }
    for (size_t i = 0; i < r->old_baselines.count; i++)
        TRY(allow(p, r->old_baselines.data[i], LANDLOCK_READ));
    for (size_t i = 0; i < r->new_baselines.count; i++)
        TRY(allow(p, r->new_baselines.data[i], LANDLOCK_READ));
    return NULL;
}

static struct error *collect(const struct options *o, struct places *p)
{
    for (size_t i = 0; i < o->inputs.count; i++)
        TRY(allow(p, o->input_at ? o->input_at : o->inputs.data[i], LANDLOCK_READ));
    TRY(allow_compared(p, &o->compare));
    TRY(allow_all(p, o->archives.data));
    TRY(allow_all(p, o->symfs.data));
    for (size_t i = 0; i < o->sources.count; i++) {
        size_t from_len;
        TRY(allow(p, source_folder(o->sources.data[i], &from_len), LANDLOCK_READ));
    }
    if (o->sysroot)
        TRY(allow(p, o->sysroot, LANDLOCK_READ));
    if (o->push.label_map)
        TRY(allow(p, o->push.label_map, LANDLOCK_READ));
    TRY(allow(p, temporary_folder(), LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_RENAME));
    TRY(allow_output(p, o));
#ifdef __SANITIZE_ADDRESS__
    TRY(allow(p, "/proc", LANDLOCK_READ)); /* where the sanitizer looks for leaks */
#endif
    return o->no_host ? NULL : allow_host(p);
}

struct error *confine(const struct options *o)
{
    struct places places = {0};

    if (o->debuginfod || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return NULL;
    struct error *err = collect(o, &places);
    if (!err)
        landlock_enter(places.list.data, places.list.count);
    for (size_t i = 0; i < places.list.count; i++)
        close(places.list.data[i].fd);
    VEC_DEINIT(&places.list);
    return err;
}
