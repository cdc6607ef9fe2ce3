/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to NAME.XXXXXX beside the file and renames it at the end, so that NAME is never half written. */
#include "formats/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/output_place.h"

enum { BUFFER_BYTES = 1 << 18, NEW_FILE_MODE = 0666 };

static mode_t file_mask(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return mask;
}

/* Makes a stream of an open file, which it takes. */
static struct error *use(int fd, const char *path, struct output *out)
{
    out->file = fdopen(fd, "w");
    if (out->file)
        return NULL;
    int why = errno;
    close(fd);
    return error_file(why, path, "cannot be opened for writing");
}

/* Writes what is there as it is: a pipe or a device, or a regular file, which is emptied. */
static struct error *open_direct(const char *path, const struct stat *st, struct output *out)
{
    int fd;

    TRY(output_place_open(path, out->folder, out->place, st, &fd));
    if (S_ISREG(st->st_mode) && ftruncate(fd, 0)) {
        int why = errno;
        close(fd);
        return error_file(why, path, "cannot be emptied");
    }
    return use(fd, path, out);
}

/* A pipe is opened when its reader comes. */
static struct error *open_stream(const char *path, const struct stat *st, struct output *out)
{
    struct error *err;

    while ((err = open_direct(path, st, out)) && S_ISFIFO(st->st_mode) && err->os_errno == ENXIO) {
        error_destroy(err);
        poll(NULL, 0, 20);
    }
    return err;
}

static struct error *open_descriptor(int number, const char *path, struct output *out)
{
    int fd = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    return fd < 0 ? error_file(errno, path, "cannot be opened for writing") : use(fd, path, out);
}

/* An existing file (`st`, else NULL) keeps its mode. */
static struct error *open_beside(const char *path, const struct stat *st, struct output *out)
{
    mode_t mode = st ? st->st_mode & 0777 : NEW_FILE_MODE & ~file_mask();

    int fd = output_place_create_beside(out->folder, out->place, 0, &out->temporary);
    if (fd < 0) {
        int why = errno;
        /* We may write the file but not create another in its folder. */
        return st && (why == EACCES || why == EPERM || why == EROFS)
                   ? open_direct(path, st, out)
                   : error_file(why, path, "cannot be opened for writing");
    }
    if (fchmod(fd, mode) < 0) {
        int why = errno;
        close(fd);
        return error_file(why, path, "cannot be opened for writing");
    }
    return use(fd, path, out);
}

static struct error *open_path(const char *path, struct output *out)
{
    int number = output_descriptor(path);
    enum output_place place;
    const char *name;
    struct stat st;

    if (number >= 0)
        return open_descriptor(number, path, out);
    TRY(output_place_folder(path, &out->folder, &name));
    out->place = strdup(name);
    if (!out->place) {
        close(out->folder);
        return error_no_memory();
    }
    TRY(output_place_look(path, out->folder, name, &st, &place));
    if (place == OUTPUT_STREAM)
        return open_stream(path, &st, out);
    out->regular = true;
    return open_beside(path, place == OUTPUT_REGULAR ? &st : NULL, out);
}

struct error *output_open(const char *path, struct output *out)
{
    struct error *err = NULL;

    *out = (struct output){.name = path ? path : "standard output"};
    if (path)
        err = open_path(path, out);
    else
        out->file = stdout;
    if (err) {
        output_deinit(out);
        return err;
    }
    setvbuf(out->file, NULL, _IOFBF, BUFFER_BYTES);
    return NULL;
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
        if (renameat(out->folder, out->temporary, out->folder, out->place) < 0)
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
        unlinkat(out->folder, out->temporary, 0);
    if (out->place)
        close(out->folder);
    free(out->temporary);
    free(out->place);
    *out = (struct output){0};
}
