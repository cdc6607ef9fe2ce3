/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of the files that are being written only a few have a descriptor; the others are opened again when more is to be
 * written to them.
 *
 * A signal may end pysym at any time, and its handler must find a list that is whole: signals wait while files are created
 * and renamed.
 */
#include "symbolize/output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "formats/base/intern.h"
#include "formats/base/output.h"
#include "formats/base/output_place.h"
#include "symbolize/output_folder.h"
#include "symbolize/output_stream.h"

enum { OPEN_MAX_FILES = 16, NEW_FILE_MODE = 0666, FIRST_BUFFER_BYTES = 1 << 16 };

enum placed {
    PLACED_NOT,
    PLACED_NEW,       /* nothing was there */
    PLACED_EXCHANGED, /* what was there has the temporary name */
    PLACED_OVER,      /* what was there is gone */
};

/* A file or a link that has a temporary name until the end, or a folder that was made. */
struct output_file {
    struct output_stream stream; /* of a file. First: its functions get a pointer to it */
    struct output_files *set;
    struct output_file *next;
    char *path;      /* below the set's folder; of a file where it will be, or NULL: it has no name yet */
    char *temporary; /* likewise, until then; NULL: it is a folder */
    bool is_link;
    enum placed placed;
    int fd;          /* -1: closed */
    dev_t device;
    ino_t inode;
};

struct output_files {
    struct emit_files emit; /* first: its functions get a pointer to it */
    struct output_files_options options;
    struct output_limit limit;
    struct output output;       /* the output itself */
    struct output_stream first; /* writes to it */
    char *folder_path;          /* of the output: absolute, ends in '/' */
    struct output_folder folder; /* the same; of descriptor -1 where nothing can be beside the output */
    struct intern paths;        /* of all files */
    struct output_file *files;  /* the last one comes first */
    struct output_file *open[OPEN_MAX_FILES]; /* those with a descriptor; the latest comes last */
    unsigned open_count;
    bool done; /* all have their names */
};

static void hold_signals(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, before);
}

static void release_signals(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* ---- files ---- */

/* Notes that the folder was made. Without memory for that it stays if the output fails. */
static void note_made(struct output_folder *folder, const char *path, size_t len)
{
    struct output_files *s = (struct output_files *)((char *)folder - offsetof(struct output_files, folder));
    struct output_file *made = calloc(1, sizeof *made);
    char *name = strndup(path, len);

    if (!made || !name) {
        free(made);
        free(name);
        return;
    }
    *made = (struct output_file){.set = s, .next = s->files, .path = name, .fd = -1};
    s->files = made;
}

/* Whether something may be put at the path. *mode: of the file that is there, else 0. */
static struct error *look(const struct output_files *s, int folder, const char *path, bool link, mode_t *mode)
{
    enum output_place place;
    struct stat st;
    char *name;

    *mode = 0;
    if (fstatat(folder, name_of(path), &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? NULL : output_folder_blame(&s->folder, path, errno, 0, "cannot be opened for writing");
    for (size_t i = 0; i < s->options.input_count; i++) {
        const struct stat *input = &s->options.inputs[i];
        if (input->st_dev == st.st_dev && input->st_ino == st.st_ino)
            return output_folder_blame(&s->folder, path, 0, ERROR_USAGE, "is an input and cannot be an output too");
    }
    if (link && S_ISLNK(st.st_mode)) /* it is replaced, and nothing is written where it leads */
        return NULL;
    if (asprintf(&name, "%s%s", s->folder.shown, path) < 0)
        return error_no_memory();
    struct error *err = output_place_judge(name, &st, &place);
    if (!err && place != OUTPUT_REGULAR)
        err = error_path(ERROR_PERMISSION, name, "is a pipe or a device, which cannot be replaced by a file");
    free(name);
    *mode = st.st_mode & 0777;
    return err;
}

/* A name for the time being, in the same folder. NULL: no memory. */
static char *temporary_name(const char *path)
{
    uint64_t random = 0;
    char *name;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)getpid() << 32 ^ (uintptr_t)path; /* O_EXCL refuses a name that is there */
    return asprintf(&name, "%.*s.pysym-%016llx", (int)(name_of(path) - path), path, (unsigned long long)random) < 0 ? NULL : name;
}

static void close_file(struct output_file *f)
{
    struct output_files *s = f->set;
    unsigned at = 0;

    while (at < s->open_count && s->open[at] != f)
        at++;
    if (f->fd < 0)
        return;
    memmove(s->open + at, s->open + at + 1, (--s->open_count - at) * sizeof *s->open);
    if (close(f->fd) && errno != EINTR && !f->stream.os_errno)
        f->stream.os_errno = errno;
    f->fd = -1;
}

/* Closes the one that was opened first, if too many are open. */
static void take_descriptor(struct output_file *f, int fd)
{
    struct output_files *s = f->set;

    if (s->open_count == OPEN_MAX_FILES)
        close_file(s->open[0]);
    s->open[s->open_count++] = f;
    f->fd = fd;
}

/* Opens a file that was closed meanwhile. */
static int descriptor_of(struct output_stream *stream)
{
    struct output_file *f = (struct output_file *)stream;
    struct stat st;
    int folder;

    if (f->fd >= 0)
        return f->fd;
    struct error *err = output_folder_open(&f->set->folder, f->temporary, false, &folder);
    if (err) {
        error_destroy(err);
        errno = ESTALE;
        return -1;
    }
    int fd = openat(folder, name_of(f->temporary), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) || st.st_dev != f->device || st.st_ino != f->inode)) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    if (fd >= 0)
        take_descriptor(f, fd);
    return fd;
}

/* Finds the folder of a new file, which must have a name of its own. *mode: see look(). */
static struct error *find_place(struct output_files *s, const char *path, bool link, int *folder, mode_t *mode)
{
    bool added = false;

    if (!output_folder_has(path))
        return output_folder_blame(&s->folder, path, 0, ERROR_USAGE, "cannot be the name of an output");
    if (intern_id(&s->paths, path, (uint32_t)strlen(path), &added) == INTERN_NONE)
        return error_no_memory();
    if (!added)
        return output_folder_blame(&s->folder, path, 0, ERROR_USAGE, "would be two outputs");
    TRY(output_folder_open(&s->folder, path, true, folder));
    return look(s, *folder, path, link, mode);
}

static void free_file(struct output_file *f)
{
    free(f->path);
    free(f->temporary);
    free(f);
}

/* `beside`: a path in its folder. NULL: no memory. */
static struct output_file *new_file(struct output_files *s, const char *beside)
{
    struct output_file *f = calloc(1, sizeof *f);
    char *temporary = temporary_name(beside);

    if (!f || !temporary) {
        free(f);
        free(temporary);
        return NULL;
    }
    *f = (struct output_file){.set = s, .temporary = temporary, .fd = -1};
    f->stream = (struct output_stream){.limit = &s->limit, .binary = true, .text = {.syntax = s->options.syntax}, .seekable = true, .descriptor = descriptor_of};
    return f;
}

static void add(struct output_file *f)
{
    f->next = f->set->files;
    f->set->files = f;
}

/* Creates a file, without a name, in the folder of `beside`, which is open. */
static struct error *create_file(struct output_files *s, int folder, const char *beside, struct output_file **out)
{
    struct output_file *f = new_file(s, beside);
    struct stat st;

    if (!f)
        return error_no_memory();
    int fd = openat(folder, name_of(f->temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, NEW_FILE_MODE);
    if (fd < 0) {
        int why = errno;
        free_file(f);
        return output_folder_blame(&s->folder, beside, why, 0, "cannot be opened for writing");
    }
    add(f);
    take_descriptor(f, fd);
    if (fstat(fd, &st))
        return output_folder_blame(&s->folder, beside, errno, 0, "cannot be opened for writing");
    f->device = st.st_dev;
    f->inode = st.st_ino;
    *out = f;
    return output_stream_open(&f->stream);
}

/* Gives a file the name that it gets at the end. `mode`: of the file that it replaces, or 0. */
static struct error *name_file(struct output_file *f, const char *path, mode_t mode)
{
    int fd = mode ? descriptor_of(&f->stream) : -1;

    if (mode && (fd < 0 || fchmod(fd, mode)))
        return output_folder_blame(&f->set->folder, path, errno, 0, "cannot be opened for writing");
    f->path = strdup(path);
    return f->path ? NULL : error_no_memory();
}

static struct error *create_beside(struct output_files *s, const char *path, FILE **out)
{
    struct output_file *f;
    mode_t mode;
    int folder;

    TRY(find_place(s, path, false, &folder, &mode));
    TRY(create_file(s, folder, path, &f));
    *out = f->stream.file;
    return name_file(f, path, mode);
}

static struct error *create(struct emit_files *files, const char *path, FILE **out)
{
    sigset_t before;

    hold_signals(&before);
    struct error *err = create_beside((struct output_files *)files, path, out);
    release_signals(&before);
    return err;
}

static struct error *create_link(struct output_files *s, const char *path, const char *target)
{
    mode_t mode;
    int folder;

    TRY(find_place(s, path, true, &folder, &mode));
    struct output_file *f = new_file(s, path);
    char *name = strdup(path);
    if (!f || !name) {
        free(name);
        if (f)
            free_file(f);
        return error_no_memory();
    }
    f->path = name;
    f->is_link = true;
    if (symlinkat(target, folder, name_of(f->temporary))) {
        int why = errno;
        free_file(f);
        return output_folder_blame(&s->folder, path, why, 0, "cannot be made as a symbolic link");
    }
    add(f);
    return NULL;
}

static struct error *add_link(struct emit_files *files, const char *path, const char *target)
{
    sigset_t before;

    hold_signals(&before);
    struct error *err = create_link((struct output_files *)files, path, target);
    release_signals(&before);
    return err;
}

struct error *output_files_create(struct output_files *s, struct output_file **file, FILE **out)
{
    sigset_t before;

    hold_signals(&before);
    struct error *err = create_file(s, s->folder.fd, s->emit.name, file);
    release_signals(&before);
    if (!err)
        *out = (*file)->stream.file;
    return err;
}

struct error *output_files_close(struct output_file *f, const char *path)
{
    struct output_files *s = f->set;
    sigset_t before;
    mode_t mode;
    int folder;

    TRY(find_place(s, path, false, &folder, &mode));
    hold_signals(&before);
    struct error *err = name_file(f, path, mode);
    release_signals(&before);
    if (err)
        return err;
    bool good = output_stream_close(&f->stream);
    close_file(f);
    return good && !f->stream.os_errno ? NULL : output_folder_blame(&s->folder, path, f->stream.os_errno, 0, "could not be written");
}

/* ---- the set ---- */

static int descriptor_of_first(struct output_stream *stream)
{
    struct output_files *s = (struct output_files *)((char *)stream - offsetof(struct output_files, first));

    return fileno(s->output.file);
}

/* Finds out where files beside the output would be. */
static struct error *find_folder(struct output_files *s)
{
    const char *path = s->options.path, *name = name_of(path);
    char *given = strndup(path, (size_t)(name - path)), *real = given ? realpath(*given ? given : ".", NULL) : NULL;

    s->folder.shown = given;
    if (given && !real)
        return error_file(errno, path, errno == ENOENT ? "would lie in a folder that is not there: make it first"
                                                       : "cannot be opened for writing");
    if (!given || asprintf(&s->folder_path, "%s%s", real, strcmp(real, "/") ? "/" : "") < 0) {
        s->folder_path = NULL;
        free(real);
        return error_no_memory();
    }
    free(real);
    TRY(output_place_folder(path, &s->folder.fd, &name));
    if (intern_id(&s->paths, name, (uint32_t)strlen(name), NULL) == INTERN_NONE)
        return error_no_memory();
    s->emit = (struct emit_files){.folder = s->folder_path, .name = name, .create = create, .link = add_link};
    return NULL;
}

/* Writing over a trace or an archive would lose it. */
static struct error *check_input(const struct output_files_options *o)
{
    struct stat st;

    if (!o->path || stat(o->path, &st) || !S_ISREG(st.st_mode))
        return NULL;
    for (size_t i = 0; i < o->input_count; i++) {
        if (o->inputs[i].st_dev == st.st_dev && o->inputs[i].st_ino == st.st_ino)
            return error_create(ERROR_USAGE, "%s is an input and cannot be the output too", o->path);
    }
    return NULL;
}

/* What is there says what -o means: parts have names like the one of a file. */
static struct error *check_parts(const char *path)
{
    struct stat st;

    if (!*name_of(path) || (!stat(path, &st) && !S_ISREG(st.st_mode)))
        return error_create(ERROR_USAGE, "%s cannot be split into several files: name one in a folder, like profile.folded", path);
    return NULL;
}

static struct error *open_first(struct output_files *s)
{
    const struct output_files_options *o = &s->options;

    if (o->parts) {
        TRY(check_parts(o->path));
        return find_folder(s);
    }
    TRY(check_input(o));
    TRY(output_open(o->path, &s->output));
    s->first = (struct output_stream){.limit = &s->limit, .binary = o->binary, .text = {.syntax = o->syntax}, .seekable = s->output.regular,
                                      .descriptor = descriptor_of_first, .buffer_bytes = FIRST_BUFFER_BYTES};
    TRY(output_stream_open(&s->first));
    return s->output.regular ? find_folder(s) : NULL;
}

struct error *output_files_open(const struct output_files_options *options, struct output_files **out)
{
    struct output_files *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s)
        return error_no_memory();
    s->options = *options;
    s->limit = (struct output_limit){.max_bytes = options->max_bytes, .by_size = options->by_size};
    s->folder = (struct output_folder){.fd = -1, .last = -1, .made = note_made};
    struct error *err = open_first(s);
    if (err)
        output_files_destroy(s);
    else
        *out = s;
    return err;
}

FILE *output_files_first(const struct output_files *s)
{
    return s->first.file;
}

struct emit_files *output_files_beside(struct output_files *s)
{
    return s->folder.fd >= 0 ? &s->emit : NULL;
}

/* ---- the end ---- */

/* Adds to the error, or to none, which of the files could not be written. */
static struct error *close_streams(struct output_files *s, struct error *err)
{
    const char *failed = NULL;
    int why = 0;

    for (struct output_file *f = s->files; f; f = f->next) {
        bool good = output_stream_close(&f->stream);
        close_file(f);
        if (good && !f->stream.os_errno)
            continue;
        failed = f->path ? f->path : name_of(s->options.path);
        why = f->stream.os_errno;
    }
    bool first_failed = !s->options.parts && !output_stream_close(&s->first);
    if (first_failed)
        why = s->first.os_errno;
    struct error *limit = output_limit_error(&s->limit);
    if (limit) {
        error_destroy(err);
        return limit;
    }
    if (!err && first_failed)
        return error_file(why, s->output.name, "could not be written");
    if (!err && failed)
        return output_folder_blame(&s->folder, failed, why, 0, "could not be written");
    if (err && err->code == ERROR_IO && !err->path && (failed || first_failed)) {
        if (first_failed)
            err->path = strdup(s->output.name);
        else if (asprintf(&err->path, "%s%s", s->folder.shown, failed) < 0)
            err->path = NULL;
    }
    return err;
}

/* Gives a file or a link its name. */
static struct error *place(struct output_files *s, struct output_file *f)
{
    const char *name = name_of(f->path), *temporary = name_of(f->temporary);
    mode_t mode;
    int folder;

    TRY(output_folder_open(&s->folder, f->path, false, &folder));
    TRY(look(s, folder, f->path, f->is_link, &mode));
    if (!renameat2(folder, temporary, folder, name, RENAME_NOREPLACE))
        f->placed = PLACED_NEW;
    else if (errno == EEXIST && !renameat2(folder, temporary, folder, name, RENAME_EXCHANGE))
        f->placed = PLACED_EXCHANGED;
    else if (!renameat(folder, temporary, folder, name)) /* a file system that knows neither */
        f->placed = PLACED_OVER;
    else
        return output_folder_blame(&s->folder, f->path, errno, 0, "could not be renamed to this from its temporary name");
    return NULL;
}

/* Takes the name away again, and gives it back to what had it. */
static void take_back(struct output_files *s, struct output_file *f)
{
    int folder;

    if (f->placed == PLACED_NOT)
        return;
    struct error *err = output_folder_open(&s->folder, f->path, false, &folder);
    if (!err && !renameat2(folder, name_of(f->path), folder, name_of(f->temporary),
                           f->placed == PLACED_EXCHANGED ? RENAME_EXCHANGE : 0))
        f->placed = PLACED_NOT;
    error_destroy(err);
}

static struct error *place_all(struct output_files *s)
{
    struct error *err = NULL;

    for (struct output_file *f = s->files; f && !err; f = f->next) {
        if (f->temporary && f->path)
            err = place(s, f);
    }
    if (!err && !s->options.parts)
        err = output_finish(&s->output);
    s->done = !err;
    for (struct output_file *f = s->files; f; f = f->next) {
        if (err)
            take_back(s, f);
        else if (f->temporary && (f->placed == PLACED_EXCHANGED || f->placed == PLACED_NOT))
            unlinkat(s->folder.fd, f->temporary, 0);
    }
    return err;
}

struct error *output_files_finish(struct output_files *s, struct error *err)
{
    sigset_t before;

    err = close_streams(s, err);
    if (err)
        return err;
    hold_signals(&before);
    err = place_all(s);
    release_signals(&before);
    return err;
}

void output_files_remove(const struct output_files *s)
{
    for (const struct output_file *f = s->files; f && !s->done; f = f->next) {
        if (!f->temporary)
            unlinkat(s->folder.fd, f->path, AT_REMOVEDIR); /* stays if somebody has put something there */
        else if (f->placed == PLACED_NOT)
            unlinkat(s->folder.fd, f->temporary, 0);
    }
    if (s->output.temporary)
        unlinkat(s->output.folder, s->output.temporary, 0);
}

void output_files_destroy(struct output_files *s)
{
    if (!s)
        return;
    for (struct output_file *f = s->files; f; f = f->next) {
        output_stream_close(&f->stream);
        close_file(f);
    }
    output_stream_close(&s->first);
    output_files_remove(s);
    output_deinit(&s->output);
    while (s->files) {
        struct output_file *f = s->files;
        s->files = f->next;
        free_file(f);
    }
    output_folder_deinit(&s->folder);
    intern_deinit(&s->paths);
    free(s->folder_path);
    free(s);
}
