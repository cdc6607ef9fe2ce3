/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/compare/inputs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/vec.h"
#include "formats/compare/baseline.h"

struct named_file {
    const char *path;
    dev_t device;
    ino_t inode;
    bool is_old;
};
struct named_files {
    VEC(struct named_file) list;
};

static struct error *add(struct named_files *files, const char *path, bool is_old)
{
    struct stat st;

    if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
        return NULL;
    for (size_t i = 0; i < files->list.count; i++) {
        const struct named_file *other = &files->list.data[i];
        if (other->device != st.st_dev || other->inode != st.st_ino)
            continue;
        if (other->is_old != is_old)
            return error_path(ERROR_USAGE, path, "is on both sides: a run cannot be compared with itself");
        return error_path(ERROR_USAGE, path, "is named twice: a run counts but once");
    }
    struct named_file file = {path, st.st_dev, st.st_ino, is_old};
    return VEC_PUSH(&files->list, file) ? NULL : error_no_memory();
}

static struct error *check_named_once(const struct compare_request *r, const char *const *paths, size_t count)
{
    struct named_files files = {0};
    struct error *err = NULL;

    for (size_t i = 0; !err && i < r->old_baselines.count; i++)
        err = add(&files, r->old_baselines.data[i], true);
    for (size_t i = 0; !err && i < count; i++)
        err = add(&files, paths[i], i < r->old_count);
    VEC_DEINIT(&files.list);
    return err;
}

/* Only regular files are looked into: what is read of a pipe is gone. */
static bool is_baseline(const char *path)
{
    uint8_t head[BASELINE_MAGIC_BYTES];
    struct stat st;
    int fd = stat(path, &st) || !S_ISREG(st.st_mode) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return false;
    ssize_t len = read(fd, head, sizeof head);
    close(fd);
    return len > 0 && baseline_has_magic(head, (size_t)len);
}

struct error *compare_sort_inputs(struct compare_request *request, const char **paths, size_t *count)
{
    size_t kept = 0, old_count = request->old_count;

    TRY(check_named_once(request, paths, *count));
    for (size_t i = 0; i < *count; i++) {
        bool is_old = i < old_count;
        if (!is_baseline(paths[i])) {
            paths[kept++] = paths[i];
            continue;
        }
        request->old_count -= is_old;
        if (!(is_old ? VEC_PUSH(&request->old_baselines, paths[i]) : VEC_PUSH(&request->new_baselines, paths[i])))
            return error_no_memory();
    }
    *count = kept;
    return NULL;
}
