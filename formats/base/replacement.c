/* SPDX-License-Identifier: Apache-2.0 */
/* The new file is NAME.XXXXXX, in the same folder, since a rename works within one file system only. */
#include "formats/base/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/output_place.h"

struct error *replacement_create(const char *path, mode_t mode, struct replacement *out)
{
    enum output_place place;
    struct stat st;

    *out = (struct replacement){.fd = -1, .path = path};
    TRY(output_place_folder(path, &out->folder, &out->name));
    struct error *err = output_place_look(path, out->folder, out->name, &st, &place);
    if (!err && place == OUTPUT_STREAM)
        err = error_path(ERROR_IO, path, "is a pipe or a device, which cannot be replaced by a file");
    if (err) {
        close(out->folder);
        return err;
    }
    out->fd = output_place_create_beside(out->folder, out->name, O_APPEND, &out->temporary);
    if (out->fd >= 0 && !fchmod(out->fd, mode))
        return NULL;
    err = error_file(errno, path, "cannot be replaced: no file can be created beside it");
    replacement_deinit(out);
    return err;
}

struct error *replacement_write(struct replacement *r, const void *data, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t n = write(r->fd, (const char *)data + done, len_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_file(errno, r->path, "could not be written");
        done += (size_t)n;
    }
    return NULL;
}

/* A name is on disk when its folder is. */
static struct error *sync_folder(const struct replacement *r)
{
    int fd = openat(r->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct error *err = NULL;

    if (fd < 0 || fsync(fd))
        err = error_file(errno, r->path, "could not be written to disk");
    if (fd >= 0)
        close(fd);
    return err;
}

struct error *replacement_commit(struct replacement *r, bool durable)
{
    if (durable && fsync(r->fd))
        return error_file(errno, r->path, "could not be written to disk");
    if (renameat(r->folder, r->temporary, r->folder, r->name))
        return error_file(errno, r->path, "could not be renamed to this from its temporary name");
    free(r->temporary);
    r->temporary = NULL;
    return durable ? sync_folder(r) : NULL;
}

void replacement_deinit(struct replacement *r)
{
    if (r->fd >= 0)
        close(r->fd);
    if (r->temporary)
        unlinkat(r->folder, r->temporary, 0);
    if (r->name)
        close(r->folder);
    free(r->temporary);
    *r = (struct replacement){.fd = -1};
}
