/* SPDX-License-Identifier: Apache-2.0 */
/* A file is opened under a name nobody has, and stays private. */
#include "capture/output/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/output/file_rights.h"
#include "formats/base/clock.h"
#include "formats/base/output_place.h"

/* Times tried when a name is taken, a millisecond apart. */
#define TRIES 1000

bool files_are_one(const char *a, const char *b)
{
    struct stat x, y;

    return strcmp(a, "-") && strcmp(b, "-") && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void files_init(struct files *f, const struct files_options *options)
{
    *f = (struct files){.options = *options, .fd = -1};
}

void files_deinit(struct files *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    for (size_t i = 0; i < f->written.count; i++)
        free(f->written.data[i]);
    VEC_DEINIT(&f->written);
    f->fd = -1;
    f->path = NULL;
}

/* Opens a new file, as of the first millisecond from `realtime_ns` on whose name is not taken, nor was by the one before. */
static struct error *open_new(struct files *f, uint64_t realtime_ns)
{
    const char *name;
    int folder;

    /* One that was removed meanwhile does not lend its name to a later one. A clock that was set back is another matter. */
    if (realtime_ns < f->named_ns + NS_PER_MS && realtime_ns + TRIES * NS_PER_MS > f->named_ns)
        realtime_ns = f->named_ns + NS_PER_MS;
    for (int i = 0; f->fd < 0 && i < TRIES; i++) {
        free(f->path);
        f->named_ns = realtime_ns + (uint64_t)i * NS_PER_MS;
        f->path = files_name(f->options.pattern, f->options.hostname, f->named_ns);
        if (!f->path)
            return error_no_memory();
        TRY(output_place_folder(f->path, &folder, &name));
        f->fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        int why = errno;
        close(folder);
        errno = why;
        if (f->fd < 0 && errno != EEXIST)
            break;
    }
    if (f->fd < 0)
        return error_file(errno, f->path, "cannot be opened for writing");
    flock(f->fd, LOCK_EX | LOCK_NB); /* for files_adopt() of others; where there are no locks it does without */
    return file_rights_set(f->fd, f->path, f->options.group);
}

static struct error *create(struct files *f, int folder, const char *name)
{
    f->fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return f->fd < 0 ? error_file(errno, f->path, "cannot be opened for writing") : NULL;
}

/* A private file is emptied. Another one may be open elsewhere to be read, so it gives way to a new file where it can. */
static struct error *open_existing(struct files *f, int folder, const char *name, const struct stat *st)
{
    if (st->st_mode & (S_IRWXG | S_IRWXO) && !unlinkat(folder, name, 0))
        return create(f, folder, name);
    TRY(output_place_open(f->path, folder, name, st, &f->fd));
    return ftruncate(f->fd, 0) ? error_file(errno, f->path, "cannot be emptied") : NULL;
}

/* A pipe is opened when its reader comes. Asked for now and then: a signal just before open() would not end a wait in it. */
static struct error *open_stream(struct files *f, int folder, const char *name, const struct stat *st)
{
    struct error *err;

    while ((err = output_place_open(f->path, folder, name, st, &f->fd)) && S_ISFIFO(st->st_mode) && err->os_errno == ENXIO) {
        error_destroy(err);
        if (f->options.given_up && f->options.given_up(f->options.given_up_ctx))
            return error_file(EINTR, f->path, "cannot be opened for writing");
        poll(NULL, 0, 50);
    }
    return err;
}

static struct error *open_in(struct files *f, int folder, const char *name)
{
    enum output_place place;
    struct stat st;

    TRY(output_place_look(f->path, folder, name, &st, &place));
    return place == OUTPUT_NOTHING   ? create(f, folder, name)
           : place == OUTPUT_REGULAR ? open_existing(f, folder, name, &st)
                                     : open_stream(f, folder, name, &st);
}

static struct error *open_descriptor(struct files *f, int number)
{
    if (isatty(number))
        return error_create(ERROR_USAGE, "a trace is not for the terminal: name a file with -o, or redirect");
    f->fd = fcntl(number, F_DUPFD_CLOEXEC, 3);
    return f->fd < 0 ? error_file(errno, f->path, "cannot be opened for writing") : NULL;
}

static struct error *open_output(struct files *f)
{
    int number = !strcmp(f->path, "-") ? STDOUT_FILENO : output_descriptor(f->path);
    const char *name;
    int folder;

    if (number >= 0)
        return open_descriptor(f, number);
    TRY(output_place_folder(f->path, &folder, &name));
    struct error *err = open_in(f, folder, name);
    close(folder);
    if (err)
        return err;
    return file_rights_set(f->fd, f->path, f->options.group);
}

struct error *files_open(struct files *f)
{
    uint64_t realtime_ns = clock_ns(CLOCK_REALTIME);

    if (f->options.rotates)
        return open_new(f, realtime_ns);
    char *name = files_name(f->options.pattern, f->options.hostname, realtime_ns);
    if (!name)
        return error_no_memory();
    free(f->path);
    f->path = name;
    return open_output(f);
}

struct error *files_close(struct files *f)
{
    struct error *err = NULL;

    if (f->fd >= 0 && close(f->fd))
        err = error_file(errno, f->path, "cannot be closed");
    f->fd = -1;
    if (!VEC_PUSH(&f->written, f->path)) {
        error_destroy(err);
        return error_no_memory();
    }
    f->path = NULL;
    struct error *trimmed = files_trim(f);
    if (!err)
        return trimmed;
    error_destroy(trimmed);
    return err;
}
