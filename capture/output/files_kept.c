/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the files of earlier runs, and removes old ones. A service that is started again
 * must count the files of its earlier runs, or they would stay for ever. A file is removed
 * only if it is certainly a trace of the same capture.
 */
#include "capture/output/files_kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/output/file_names.h"
#include "formats/base/output_place.h"
#include "formats/trace/block.h"

/* Whether it is a regular file of our user that begins as traces do. `busy`: another pycap is writing it. */
static bool is_trace_of_ours(int folder, const char *name, bool *busy)
{
    char magic[TRACE_MAGIC_BYTES];
    struct stat before, st;
    bool result = false;
    uid_t uid;
    gid_t gid;

    output_owner(&uid, &gid);
    if (fstatat(folder, name, &before, AT_SYMLINK_NOFOLLOW) || !S_ISREG(before.st_mode) || before.st_uid != uid)
        return false;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && st.st_dev == before.st_dev && st.st_ino == before.st_ino &&
        pread(fd, magic, sizeof magic, 0) == sizeof magic && !memcmp(magic, TRACE_FILE_MAGIC, sizeof magic)) {
        result = true;
        *busy = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    }
    close(fd);
    return result;
}

/* Removes a file. One of an earlier run is looked at before: it may be another by now. */
static struct error *remove_file(const char *path, bool adopted)
{
    const char *name;
    int folder;
    bool busy = false;
    struct error *err = output_place_folder(path, &folder, &name);

    if (err) {
        bool gone = err->os_errno == ENOENT;
        if (gone)
            error_destroy(err);
        return gone ? NULL : err;
    }
    bool remove = !adopted || (is_trace_of_ours(folder, name, &busy) && !busy);
    if (remove && unlinkat(folder, name, 0) && errno != ENOENT)
        err = error_file(errno, path, "is older than --keep allows, and cannot be removed");
    close(folder);
    return err;
}

struct error *files_trim(struct files *f)
{
    struct error *err = NULL;

    while (f->options.keep && f->written.count > f->options.keep) {
        err = error_first(err, remove_file(f->written.data[0], f->adopted_count));
        if (f->adopted_count)
            f->adopted_count--;
        free(f->written.data[0]);
        memmove(f->written.data, f->written.data + 1, --f->written.count * sizeof *f->written.data);
    }
    return err;
}

struct candidate {
    char time[FILES_TIME_BYTES];
    char *path;
};

static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int times = strcmp(x->time, y->time);

    return times ? times : strcmp(x->path, y->path);
}

struct candidates {
    VEC(struct candidate) list;
};

static void candidates_deinit(struct candidates *c)
{
    for (size_t i = 0; i < c->list.count; i++)
        free(c->list.data[i].path);
    VEC_DEINIT(&c->list);
}

static void free_string(char **text)
{
    free(*text);
}

static void close_folder(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

/* NULL: it cannot be read. */
static DIR *open_folder(const char *prefix)
{
    const char *name;
    int folder;
    struct error *err = output_place_folder(prefix, &folder, &name);

    if (err) {
        error_destroy(err);
        return NULL;
    }
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    close(folder);
    return dir;
}

/* Finds the candidates in a folder, unsorted. `prefix` is the folder with its last slash, or empty. */
static struct error *find(const struct files *f, const char *prefix, const char *pattern, struct candidates *out, bool *busy)
{
    DIR *folder __attribute__((cleanup(close_folder))) = open_folder(prefix);

    if (!folder)
        return NULL; /* files_open() is about to fail in that folder, too, and reports it */
    for (struct dirent *e; (e = readdir(folder));) {
        struct candidate c;
        bool is_busy = false;
        if (!files_match(pattern, f->options.hostname, e->d_name, c.time))
            continue;
        if (asprintf(&c.path, "%s%s", prefix, e->d_name) < 0)
            return error_no_memory();
        if (!is_trace_of_ours(dirfd(folder), e->d_name, &is_busy)) {
            free(c.path);
        } else if (!VEC_PUSH(&out->list, c)) {
            free(c.path);
            return error_no_memory();
        }
        *busy |= is_busy;
    }
    return NULL;
}

struct error *files_adopt(struct files *f)
{
    const char *pattern = f->options.pattern, *slash = strrchr(pattern, '/'), *name = slash ? slash + 1 : pattern;
    struct candidates found __attribute__((cleanup(candidates_deinit))) = {0};
    bool busy = false;

    if (!f->options.keep)
        return NULL;
    char *folder __attribute__((cleanup(free_string))) = strndup(pattern, (size_t)(name - pattern));
    if (!folder)
        return error_no_memory();
    if (strstr(folder, "%t") || strstr(folder, "%p")) /* each file has a folder of its own */
        return NULL;
    char *prefix __attribute__((cleanup(free_string))) = files_name(folder, f->options.hostname, 0);
    if (!prefix)
        return error_no_memory();
    TRY(find(f, prefix, name, &found, &busy));
    if (busy || !found.list.count)
        return NULL;
    qsort(found.list.data, found.list.count, sizeof *found.list.data, compare);
    for (size_t i = 0; i < found.list.count; i++) {
        if (!VEC_PUSH(&f->written, found.list.data[i].path))
            return error_no_memory();
        found.list.data[i].path = NULL;
    }
    f->adopted_count = f->written.count;
    return files_trim(f);
}
