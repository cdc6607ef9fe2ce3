/* SPDX-License-Identifier: Apache-2.0 */
/* What lies there is looked at before it is opened, because opening a device may have an effect, and again afterwards. */
#include "formats/base/output_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct error *output_place_judge(const char *path, const struct stat *st, enum output_place *out)
{
    uid_t owner;
    gid_t group;

    output_owner(&owner, &group);
    bool ours = st->st_uid == geteuid() || st->st_uid == owner;

    switch (st->st_mode & S_IFMT) {
    case S_IFLNK:
        return error_path(ERROR_PERMISSION, path, "is a symbolic link, which an output does not follow: name the file itself");
    case S_IFDIR:
        return error_file(EISDIR, path, "cannot be opened for writing");
    case S_IFSOCK:
        return error_file(ENXIO, path, "cannot be opened for writing");
    case S_IFREG:
        if (st->st_nlink > 1)
            return error_path(ERROR_PERMISSION, path,
                              "has another name (a hard link) and is not overwritten: remove it, or name another file");
        *out = OUTPUT_REGULAR;
        break;
    default:
        ours |= !st->st_uid;
        *out = OUTPUT_STREAM;
    }
    if (!ours)
        return error_path(ERROR_PERMISSION, path,
                          "belongs to another user and is not written to: remove it, or name another file");
    return NULL;
}

/* The rule of fs.protected_symlinks: in a folder that everybody may write to, only links of ours and of its owner lead on. */
static bool leads_astray(const char *link)
{
    const char *slash = strrchr(link, '/');
    char folder[PATH_MAX];
    struct stat st, in;

    if (lstat(link, &st) || !S_ISLNK(st.st_mode))
        return false;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - link) + 1 : 1, slash ? link : ".");
    return !stat(folder, &in) && in.st_mode & S_ISVTX && in.st_mode & S_IWOTH && st.st_uid != geteuid() &&
           st.st_uid != in.st_uid;
}

struct error *output_place_check_way(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        if (!len || len >= sizeof part)
            continue;
        memcpy(part, path, len);
        part[len] = 0;
        if (leads_astray(part))
            return error_path(ERROR_PERMISSION, path,
                              "leads through %s, a symbolic link of another user in a folder that everybody may write to", part);
    }
    return NULL;
}

struct error *output_place_look(const char *path, struct stat *st, enum output_place *out)
{
    *out = OUTPUT_NOTHING;
    TRY(output_place_check_way(path));
    if (!lstat(path, st))
        return output_place_judge(path, st, out);
    return errno == ENOENT ? NULL : error_file(errno, path, "cannot be opened for writing");
}

struct error *output_place_open(const char *path, const struct stat *st, int *fd)
{
    enum output_place place;
    struct stat opened;
    int opened_fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    *fd = -1;
    if (opened_fd < 0)
        return error_file(errno, path, "cannot be opened for writing");
    struct error *err = fstat(opened_fd, &opened) ? error_file(errno, path, "cannot be looked at") : NULL;
    if (!err && (opened.st_dev != st->st_dev || opened.st_ino != st->st_ino))
        err = error_path(ERROR_PERMISSION, path, "was replaced by another file while it was opened");
    if (!err)
        err = output_place_judge(path, &opened, &place);
    if (!err && fcntl(opened_fd, F_SETFL, O_WRONLY))
        err = error_file(errno, path, "cannot be opened for writing");
    if (err)
        close(opened_fd);
    else
        *fd = opened_fd;
    return err;
}

bool output_owner(uid_t *uid, gid_t *gid)
{
    const char *sudo_uid = getenv("SUDO_UID"), *sudo_gid = getenv("SUDO_GID");
    bool given = sudo_uid && sudo_gid && !geteuid();

    *uid = given ? (uid_t)strtoul(sudo_uid, NULL, 10) : geteuid();
    *gid = given ? (gid_t)strtoul(sudo_gid, NULL, 10) : getegid();
    return given;
}

int output_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    if (!strcmp(path, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr"))
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t len = strlen(folders[i]), digits = strlen(path) > len ? strspn(path + len, "0123456789") : 0;
        if (!strncmp(path, folders[i], len) && digits && digits < 8 && !path[len + digits])
            return atoi(path + len);
    }
    return -1;
}
