/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to PATH.XXXXXX beside the file and renames it at the end, so that PATH is never half written. */
#include "formats/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 18, NEW_FILE_MODE = 0666 };

static mode_t file_mask(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return mask;
}

static struct error *open_direct(const char *path, struct output *out)
{
    out->file = fopen(path, "we");
    return out->file ? NULL : error_file(errno, path, "cannot be opened for writing");
}

/* An existing file keeps its mode, and where `path` is a link the file that it leads to is replaced. */
static struct error *open_beside(const char *path, const struct stat *st, struct output *out)
{
    mode_t mode = st ? st->st_mode & 07777 : NEW_FILE_MODE & ~file_mask();

    out->place = st ? realpath(path, NULL) : strdup(path);
    if (!out->place || asprintf(&out->temporary, "%s.XXXXXX", out->place) < 0) {
        out->temporary = NULL;
        return error_no_memory();
    }
    int fd = mkostemp(out->temporary, O_CLOEXEC);
    if (fd < 0) {
        int why = errno;
        free(out->temporary);
        out->temporary = NULL;
        /* We may write the file but not create another in its folder. */
        return st && (why == EACCES || why == EPERM || why == EROFS)
                   ? open_direct(path, out)
                   : error_file(why, path, "cannot be opened for writing");
    }
    if (fchmod(fd, mode) < 0 || !(out->file = fdopen(fd, "w"))) {
        int why = errno;
        close(fd);
        return error_file(why, path, "cannot be opened for writing");
    }
    return NULL;
}

struct error *output_open(const char *path, struct output *out)
{
    struct error *err = NULL;
    struct stat st;

    *out = (struct output){.name = path ? path : "standard output"};
    if (!path) {
        out->file = stdout;
    } else if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return error_file(EISDIR, path, "cannot be opened for writing");
        err = S_ISREG(st.st_mode) ? open_beside(path, &st, out) : open_direct(path, out);
    } else {
        err = open_beside(path, NULL, out);
    }
    if (err) {
        output_deinit(out);
        return err;
    }
    setvbuf(out->file, NULL, _IOFBF, BUFFER_BYTES);
    return NULL;
}

struct error *output_blame(const struct output *out, struct error *err)
{
    if (err && err->code == ERROR_IO && !err->path && ferror(out->file))
        err->path = strdup(out->name);
    return err;
}

struct error *output_finish(struct output *out)
{
    bool bad = ferror(out->file);
    int why;

    errno = 0;
    if (fflush(out->file) != 0)
        bad = true;
    why = errno;
    FILE *file = out->file;
    out->file = NULL;
    if (fclose(file) != 0) {
        bad = true;
        why = why ? why : errno;
    }
    if (bad)
        return why ? error_file(why, out->name, "could not be written")
                   : error_path(ERROR_IO, out->name, "could not be written");
    if (out->temporary) {
        if (rename(out->temporary, out->place) < 0)
            return error_file(errno, out->name, "could not be renamed to this from its temporary name");
        free(out->temporary);
        out->temporary = NULL;
    }
    return NULL;
}

void output_deinit(struct output *out)
{
    if (out->file && out->file != stdout)
        fclose(out->file);
    if (out->temporary)
        unlink(out->temporary);
    free(out->temporary);
    free(out->place);
    *out = (struct output){0};
}
