/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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

/* ---- the host ---- */

/* Each entry takes a descriptor: of a folder with a secret in it so many can be read. */
enum { SECRETS_MAX = 3, ENTRIES_MAX = 128 };

/* Files of a push that no trace needs, without links in their paths. */
struct secrets {
    char *paths[SECRETS_MAX];
    size_t count;
};

static void find_secrets(const struct push_request *r, struct secrets *out)
{
    const char *const files[SECRETS_MAX] = {r->token_file, r->password_file, r->key_file ? r->key_file : r->cert_file};

    *out = (struct secrets){0};
    for (size_t i = 0; i < SECRETS_MAX; i++) {
        char *path = files[i] ? realpath(files[i], NULL) : NULL;
        if (path)
            out->paths[out->count++] = path;
    }
}

static void forget_secrets(struct secrets *s)
{
    while (s->count)
        free(s->paths[--s->count]);
}

/* Is it the path of a secret, or *inside: of a folder that one is in? */
static bool has_secret(const struct secrets *s, const char *path, bool *inside)
{
    size_t len = strlen(path);
    bool is_one = false;

    *inside = false;
    for (size_t i = 0; i < s->count; i++) {
        bool begins = !strncmp(s->paths[i], path, len);
        is_one |= begins && !s->paths[i][len];
        *inside |= begins && s->paths[i][len] == '/';
    }
    return is_one || *inside;
}

/* Folders of "/" that hold no files. */
static bool holds_no_files(const char *path)
{
    static const char *const folders[] = {"/proc", "/sys", "/dev", "/run", "/net"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!strcmp(path, folders[i]))
            return true;
    }
    return false;
}

/* By O_NOFOLLOW, so that nothing is looked up behind it, such as an automount. What a link leads to is allowed by its own name. */
static struct error *allow_entry(struct places *p, int folder, const char *name)
{
    struct landlock_place place = {openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), LANDLOCK_READ};

    if (place.fd < 0 || VEC_PUSH(&p->list, place))
        return NULL;
    close(place.fd);
    return error_no_memory();
}

/* What is in a folder, "" for that of the host, but for secrets. Goes into folders that have one, as deep as its path. */
static struct error *allow_folder(struct places *p, const char *folder, const struct secrets *s)
{
    DIR *d = opendir(*folder ? folder : "/");
    const struct dirent *entry;
    struct error *err = NULL;
    char path[PATH_MAX];
    size_t count = 0;
    bool inside;

    while (!err && d && (entry = readdir(d))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path || holds_no_files(path))
            continue;
        bool hidden = has_secret(s, path, &inside);
        if (inside)
            err = allow_folder(p, path, s);
        else if (!hidden && count++ < ENTRIES_MAX)
            err = allow_entry(p, dirfd(d), entry->d_name);
    }
    if (d)
        closedir(d);
    return err;
}

static struct error *allow_host(struct places *p, const struct push_request *push)
{
    struct secrets secrets;

    find_secrets(push, &secrets);
    struct error *err = allow_folder(p, "", &secrets);
    forget_secrets(&secrets);
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

/* What ncurses reads of a terminal, when it takes the screen. */
static struct error *allow_terminals(struct places *p)
{
    const char *const places[] = {getenv("TERMINFO"), "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i] && *places[i])
            TRY(allow(p, places[i], LANDLOCK_READ));
    }
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
    if (o->choice.kind == OUTPUT_LIVE)
        TRY(allow_terminals(p));
#ifdef __SANITIZE_ADDRESS__
    TRY(allow(p, "/proc", LANDLOCK_READ)); /* where the sanitizer looks for leaks */
#endif
    return o->no_host ? NULL : allow_host(p, &o->push);
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
