/* SPDX-License-Identifier: Apache-2.0 */
/* Errors on the heap, but for the one that says there is no memory, which is static. */
#include "formats/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/printable.h"

/* The one error that must not need memory. */
static struct error no_memory = {.code = ERROR_NO_MEMORY, .os_errno = ENOMEM};

struct error *error_no_memory(void)
{
    return &no_memory;
}

/* Takes over `text` and returns it escaped; NULL when memory ran out. */
static char *make_printable(char *text, bool lines)
{
    struct buf clean = {0};

    if (lines)
        printable_put_lines(&clean, text);
    else
        printable_put(&clean, text);
    free(text);
    text = clean.bad ? NULL : strdup(buf_cstr(&clean));
    buf_deinit(&clean);
    return text;
}

static struct error *create(enum error_code code, int os_errno, const char *path, bool has_offset, uint64_t offset,
                            const char *fmt, va_list ap)
{
    struct error *err = calloc(1, sizeof *err);
    char *text = NULL;

    if (!err || vasprintf(&text, fmt, ap) < 0 || !(text = make_printable(text, false))) {
        free(err);
        return &no_memory;
    }
    err->code = code;
    err->os_errno = os_errno;
    err->has_offset = has_offset;
    err->offset = offset;
    if (path)
        err->path = strdup(path);
    if (os_errno) {
        if (asprintf(&err->message, "%s: %s", text, strerror(os_errno)) < 0)
            err->message = NULL;
        free(text);
    } else {
        err->message = text;
    }
    if (!err->message || (path && !err->path)) {
        error_destroy(err);
        return &no_memory;
    }
    return err;
}

static enum error_code code_of_errno(int os_errno)
{
    switch (os_errno) {
    case EACCES:
    case EPERM:
        return ERROR_PERMISSION;
    case ENOENT:
    case ESRCH:
        return ERROR_NOT_FOUND;
    case ENOMEM:
        return ERROR_NO_MEMORY;
    default:
        return ERROR_IO;
    }
}

struct error *error_create(enum error_code code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    struct error *err = create(code, 0, NULL, false, 0, fmt, ap);
    va_end(ap);
    return err;
}

struct error *error_lines(enum error_code code, const char *fmt, ...)
{
    struct error *err = calloc(1, sizeof *err);
    va_list ap;

    va_start(ap, fmt);
    if (!err || vasprintf(&err->message, fmt, ap) < 0 || !(err->message = make_printable(err->message, true))) {
        free(err);
        err = &no_memory;
    } else {
        err->code = code;
    }
    va_end(ap);
    return err;
}

struct error *error_os(int os_errno, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    struct error *err = create(code_of_errno(os_errno), os_errno, NULL, false, 0, fmt, ap);
    va_end(ap);
    return err;
}

struct error *error_file(int os_errno, const char *path, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    struct error *err = create(code_of_errno(os_errno), os_errno, path, false, 0, fmt, ap);
    va_end(ap);
    return err;
}

struct error *error_path(enum error_code code, const char *path, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    struct error *err = create(code, 0, path, false, 0, fmt, ap);
    va_end(ap);
    return err;
}

struct error *error_at(enum error_code code, const char *path, uint64_t offset, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    struct error *err = create(code, 0, path, true, offset, fmt, ap);
    va_end(ap);
    return err;
}

const char *error_text(struct error *err)
{
    char *full = NULL, *path;
    int n;

    if (err == &no_memory)
        return "out of memory";
    if (!err->path)
        return err->message;
    path = strdup(err->path);
    if (!path || !(path = make_printable(path, false)))
        return err->message;
    if (err->has_offset)
        n = asprintf(&full, "%s: offset %llu: %s", path, (unsigned long long)err->offset, err->message);
    else
        n = asprintf(&full, "%s: %s", path, err->message);
    free(path);
    if (n < 0)
        return err->message;
    /* Fold place and text into the message, so that the error keeps owning it. */
    free(err->message);
    free(err->path);
    err->message = full;
    err->path = NULL;
    err->has_offset = false;
    return full;
}

void error_destroy(struct error *err)
{
    if (!err || err == &no_memory)
        return;
    free(err->path);
    free(err->message);
    free(err);
}

struct error *error_first(struct error *err, struct error *later)
{
    if (!err)
        return later;
    error_destroy(later);
    return err;
}
