/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an output that lie in memory (struct emit_files), with an output that can be sought. For tests and the fuzzer. */
#ifndef TESTS_TOOLS_MEMORY_FILES_H
#define TESTS_TOOLS_MEMORY_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

struct memory_file {
    char *path;
    char *target; /* of a symbolic link; NULL: a file */
    struct buf data;
    FILE *out;
    size_t at;
};

struct memory_files {
    struct emit_files files;
    VEC(struct memory_file *) list;
    size_t most_bytes; /* of a file: what exceeds it fails like a full disk; 0: no limit */
};

struct memory_stream {
    struct memory_files *owner;
    struct memory_file *file;
};

static inline ssize_t memory_write_(void *cookie, const char *data, size_t len_bytes)
{
    struct memory_stream *s = cookie;
    struct memory_file *f = s->file;

    if (s->owner->most_bytes && f->at + len_bytes > s->owner->most_bytes)
        return 0;
    if (f->at + len_bytes > f->data.len_bytes) {
        size_t more = f->at + len_bytes - f->data.len_bytes;
        uint8_t *space = buf_reserve(&f->data, more);
        if (!space)
            return 0;
        memset(space, 0, more);
        f->data.len_bytes += more;
    }
    memcpy(f->data.data + f->at, data, len_bytes);
    f->at += len_bytes;
    return (ssize_t)len_bytes;
}

static inline int memory_seek_(void *cookie, off64_t *offset, int whence)
{
    struct memory_file *f = ((struct memory_stream *)cookie)->file;
    off64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? (off64_t)f->at : (off64_t)f->data.len_bytes;

    if (from + *offset < 0)
        return -1;
    f->at = (size_t)(from + *offset);
    *offset = (off64_t)f->at;
    return 0;
}

static inline int memory_close_(void *cookie)
{
    free(cookie);
    return 0;
}

static inline struct memory_file *memory_add_(struct memory_files *m, const char *path, const char *target)
{
    struct memory_file *file = calloc(1, sizeof *file);

    if (!file || !VEC_PUSH(&m->list, file))
        abort();
    file->path = strdup(path);
    file->target = target ? strdup(target) : NULL;
    return file;
}

static inline struct error *memory_create_(struct emit_files *files, const char *path, FILE **out)
{
    struct memory_files *m = (struct memory_files *)files;
    struct memory_stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        abort();
    *stream = (struct memory_stream){m, memory_add_(m, path, NULL)};
    *out = stream->file->out = fopencookie(
        stream, "w", (cookie_io_functions_t){.write = memory_write_, .seek = memory_seek_, .close = memory_close_});
    return NULL;
}

static inline struct error *memory_link_(struct emit_files *files, const char *path, const char *target)
{
    memory_add_((struct memory_files *)files, path, target);
    return NULL;
}

/* The files of an output of that name in the folder "/out/". The output itself is the first: returns where to write it. */
static inline FILE *memory_files_open(struct memory_files *m, const char *name)
{
    FILE *out;

    *m = (struct memory_files){.files = {"/out/", name, memory_create_, memory_link_}, .most_bytes = m->most_bytes};
    memory_create_(&m->files, name, &out);
    return out;
}

/* Closes all files, after which their data is complete. False: one could not be written. */
static inline bool memory_files_close(struct memory_files *m)
{
    bool good = true;

    for (size_t i = 0; i < m->list.count; i++) {
        struct memory_file *f = m->list.data[i];
        if (f->out)
            good &= fclose(f->out) == 0;
        f->out = NULL;
    }
    return good;
}

static inline void memory_files_deinit(struct memory_files *m)
{
    memory_files_close(m);
    for (size_t i = 0; i < m->list.count; i++) {
        free(m->list.data[i]->path);
        free(m->list.data[i]->target);
        buf_deinit(&m->list.data[i]->data);
        free(m->list.data[i]);
    }
    VEC_DEINIT(&m->list);
}

/* NULL: there is none of that path. */
static inline const struct memory_file *memory_files_find(const struct memory_files *m, const char *path)
{
    for (size_t i = 0; i < m->list.count; i++) {
        if (!strcmp(m->list.data[i]->path, path))
            return m->list.data[i];
    }
    return NULL;
}

#endif
