/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error objects.
 *
 * A function that can fail returns `struct error *`: NULL is success, anything
 * else is owned by the caller, who passes it on, or prints and destroys it. An
 * error carries a code (what kind of trouble, so that a caller can decide), a
 * message for a person, and where it is known the file and the byte offset.
 */
#ifndef FORMATS_BASE_ERR_H
#define FORMATS_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

enum error_code {
    ERROR_NO_MEMORY = 1,
    ERROR_IO,           /* a system call failed; os_errno says why */
    ERROR_USAGE,        /* the user asked for something that makes no sense */
    ERROR_FORMAT,       /* input bytes break their own format */
    ERROR_TRUNCATED,    /* input ended too early */
    ERROR_VERSION,      /* input needs a newer reader, or an unknown CPython */
    ERROR_NOT_FOUND,
    ERROR_PERMISSION,
    ERROR_UNSUPPORTED,  /* this host or build cannot do it */
    ERROR_LIMIT,        /* larger than what we are ready to read */
};

struct error {
    enum error_code code;
    int os_errno;    /* 0 where no system call was involved */
    bool has_offset;
    uint64_t offset; /* bytes from the start of `path` */
    char *path;      /* as it is, not escaped; NULL when it is not about a file */
    char *message;
};

/*
 * Messages are printable: what a terminal would obey in the text or in `path`, which often come from other people's
 * processes and files, is escaped (printable.h).
 */
#define ERR_PRINTF(f, a) __attribute__((format(printf, f, a), warn_unused_result))

struct error *error_create(enum error_code code, const char *fmt, ...) ERR_PRINTF(2, 3);
/* The same for a text of several lines, which must hold nothing from elsewhere. */
struct error *error_lines(enum error_code code, const char *fmt, ...) ERR_PRINTF(2, 3);
/* Appends strerror(os_errno). The code is ERROR_PERMISSION, _NO_MEMORY or _NOT_FOUND by errno, else ERROR_IO. */
struct error *error_os(int os_errno, const char *fmt, ...) ERR_PRINTF(2, 3);
/* The same about a file; `path` is copied. */
struct error *error_file(int os_errno, const char *path, const char *fmt, ...) ERR_PRINTF(3, 4);
/* About the file `path`, where no system call failed. */
struct error *error_path(enum error_code code, const char *path, const char *fmt, ...) ERR_PRINTF(3, 4);
/* About the bytes at `offset` of the file `path`. */
struct error *error_at(enum error_code code, const char *path, uint64_t offset, const char *fmt, ...) ERR_PRINTF(4, 5);
/* A static object: needs no memory, and error_destroy() leaves it alone. */
struct error *error_no_memory(void);

/* "PATH: offset N: message". The string lives until error_destroy(). */
const char *error_text(struct error *err);
void error_destroy(struct error *err);
/* The first of two errors, either of which may be NULL; destroys the other. */
struct error *error_first(struct error *err, struct error *later);

/* Returns from the calling function if `expr` is an error. */
#define TRY(expr)                         \
    do {                                  \
        struct error *try_err_ = (expr);  \
        if (try_err_)                     \
            return try_err_;              \
    } while (0)

#endif
