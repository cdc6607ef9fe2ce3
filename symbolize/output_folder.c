/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/output_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/output_place.h"

enum { NEW_FOLDER_MODE = 0777 };

void output_folder_deinit(struct output_folder *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->last >= 0)
        close(f->last);
    free(f->shown);
    free(f->last_path);
}

bool output_folder_has(const char *path)
{
    size_t total = strlen(path);

    for (const char *part = path;; part++) {
        size_t len = strcspn(part, "/");
        if (!len || len > NAME_MAX || !strncmp(part, ".", len) || (len == 2 && !strncmp(part, "..", 2)))
            return false;
        part += len;
        if (!*part)
            return total < PATH_MAX;
    }
}

struct error *output_folder_blame(const struct output_folder *f, const char *path, int why, enum error_code code, const char *message)
{
    char *name;

    if (asprintf(&name, "%s%s", f->shown ? f->shown : "", path) < 0)
        return error_no_memory();
    struct error *err = why ? error_file(why, name, "%s", message) : error_path(code, name, "%s", message);
    free(name);
    return err;
}

/* The folder `part` of the folder `at`; `path` up to `len` says where that is. Made if it is missing and `make`. */
static struct error *step(struct output_folder *f, int at, const char *part, const char *path, size_t len, bool make, int *out)
{
    enum { FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    char shown[PATH_MAX];
    uid_t owner;
    gid_t group;
    struct stat st;

    snprintf(shown, sizeof shown, "%.*s", (int)len, path);
    *out = openat(at, part, FLAGS);
    if (*out < 0 && errno == ENOENT && make && !mkdirat(at, part, NEW_FOLDER_MODE)) {
        f->made(f, path, len);
        *out = openat(at, part, FLAGS);
    }
    if (*out < 0)
        return errno == ENOTDIR ? output_folder_blame(f, shown, 0, ERROR_PERMISSION, "stands where the output needs a folder: remove it")
                                : output_folder_blame(f, shown, errno, 0, "cannot be used as a folder");
    output_owner(&owner, &group);
    if (!fstat(*out, &st) && (st.st_uid == geteuid() || st.st_uid == owner))
        return NULL;
    close(*out);
    return output_folder_blame(f, shown, 0, ERROR_PERMISSION, "belongs to another user and is not written to");
}

struct error *output_folder_open(struct output_folder *f, const char *path, bool make, int *out)
{
    char part[NAME_MAX + 1];
    const char *end = strrchr(path, '/');
    size_t len = end ? (size_t)(end - path) : 0;

    *out = f->fd;
    if (!len)
        return NULL;
    *out = f->last;
    if (f->last >= 0 && f->last_path && strlen(f->last_path) == len && !memcmp(f->last_path, path, len))
        return NULL;
    free(f->last_path);
    f->last_path = NULL;
    int at = -1;
    for (size_t from = 0; from < len;) {
        size_t part_len = strcspn(path + from, "/");
        int next;
        memcpy(part, path + from, part_len); /* output_folder_has() has measured it */
        part[part_len] = 0;
        struct error *err = step(f, at < 0 ? f->fd : at, part, path, from + part_len, make, &next);
        if (at >= 0)
            close(at);
        if (err)
            return err;
        at = next;
        from += part_len + 1;
    }
    if (f->last >= 0)
        close(f->last);
    f->last_path = strndup(path, len);
    *out = f->last = at;
    return NULL;
}
