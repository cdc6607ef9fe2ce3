/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "formats/base/base64.h"

enum { SECRET_MAX = 16 << 10 };

struct secrets {
    const char *path; /* of the file, borrowed; NULL: it stood in the environment */
    const char *what; /* "token" or "password" */
    const char *user; /* of a password; borrowed */
    char *text;       /* the secret; NULL: there is none */
    char *header;
    bool was_dumpable;
};

static void forget(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void forget_variable(const char *name)
{
    char *value = getenv(name);

    if (value)
        explicit_bzero(value, strlen(value));
    unsetenv(name);
}

void secrets_forget_environment(void)
{
    static const char *const names[] = {"PYSYM_TOKEN", "PYSYM_PASSWORD", "http_proxy",  "https_proxy",
                                        "HTTPS_PROXY", "all_proxy",      "ALL_PROXY"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        forget_variable(names[i]);
}

struct error *secrets_check_file(int fd, const char *path, const char *what)
{
    struct stat st;
    struct statfs fs;

    if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
        return error_file(errno, path, "cannot be read");
    if (!S_ISREG(st.st_mode))
        return error_path(ERROR_USAGE, path, "a %s has to be in a regular file", what);
    bool handed_in = (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC) && (fs.f_flags & ST_RDONLY);
    if ((st.st_mode & S_IWOTH) || ((st.st_mode & S_IROTH) && !handed_in))
        return error_path(ERROR_USAGE, path, "everybody may %s this %s; 'chmod o-rwx' on the file mends it",
                          st.st_mode & S_IWOTH ? "write" : "read", what);
    return NULL;
}

/* Takes a line's end away, and refuses what does not fit into a header. */
static struct error *check_text(const struct secrets *s, char *text, const char *from)
{
    text[strcspn(text, "\r\n")] = 0;
    if (!*text)
        return error_create(ERROR_USAGE, "%s holds no %s", from, s->what);
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f || (!s->user && (*c == ' ' || (unsigned char)*c > '~')))
            return error_create(ERROR_USAGE, "%s holds no %s: a character in it cannot be part of one", from, s->what);
    }
    return NULL;
}

static struct error *read_open_file(const struct secrets *s, int fd, char *text)
{
    size_t len = 0;
    ssize_t got;

    TRY(secrets_check_file(fd, s->path, s->what));
    while (len < SECRET_MAX && (got = read(fd, text + len, SECRET_MAX - len)) != 0) {
        if (got < 0 && errno != EINTR)
            return error_file(errno, s->path, "cannot be read");
        len += got > 0 ? (size_t)got : 0;
    }
    if (len == SECRET_MAX)
        return error_path(ERROR_USAGE, s->path, "this is too long for a %s", s->what);
    text[len] = 0;
    return check_text(s, text, s->path);
}

/* The secret that the file holds, to be freed with forget(). */
static struct error *read_file(const struct secrets *s, char **out)
{
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return error_file(errno, s->path, "the %s cannot be read", s->what);
    char *text = calloc(1, SECRET_MAX + 1);
    struct error *err = text ? read_open_file(s, fd, text) : error_no_memory();
    close(fd);
    if (err) {
        if (text)
            explicit_bzero(text, SECRET_MAX);
        free(text);
        return err;
    }
    *out = text;
    return NULL;
}

/* "Basic" (RFC 7617) or "Bearer" (RFC 6750). */
static char *make_header(const struct secrets *s)
{
    char *header = NULL, *pair = NULL;

    if (!s->user)
        return asprintf(&header, "Authorization: Bearer %s", s->text) < 0 ? NULL : header;
    int len = asprintf(&pair, "%s:%s", s->user, s->text);
    if (len < 0)
        return NULL;
    static const char prefix[] = "Authorization: Basic ";
    header = calloc(1, sizeof prefix + BASE64_CHARS((size_t)len));
    if (header) {
        memcpy(header, prefix, sizeof prefix - 1);
        base64_encode((uint8_t *)pair, (size_t)len, header + sizeof prefix - 1);
    }
    forget(pair);
    return header;
}

/* Takes over `text`. */
static struct error *set_text(struct secrets *s, char *text)
{
    forget(s->text);
    forget(s->header);
    s->text = text;
    s->header = make_header(s);
    return s->header ? NULL : error_no_memory();
}

static struct error *take_variable(struct secrets *s, const char *name)
{
    char *text = strdup(getenv(name));

    forget_variable(name);
    if (!text)
        return error_no_memory();
    struct error *err = check_text(s, text, name);
    if (err) {
        forget(text);
        return err;
    }
    return set_text(s, text);
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

static struct error *check_request(const struct push_request *request)
{
    bool token = is_set("PYSYM_TOKEN"), password = is_set("PYSYM_PASSWORD");

    if (token && request->token_file)
        return error_create(ERROR_USAGE, "there are two tokens: that of --token-file, and PYSYM_TOKEN");
    if (password && request->password_file)
        return error_create(ERROR_USAGE, "there are two passwords: that of --password-file, and PYSYM_PASSWORD");
    token |= request->token_file != NULL;
    password |= request->password_file != NULL;
    if (token && (password || request->user))
        return error_create(ERROR_USAGE, "there are a token, and a user or a password: a store takes one of them");
    if (password && !request->user)
        return error_create(ERROR_USAGE, "there is a password, but no --user");
    if (request->user && !password)
        return error_create(ERROR_USAGE, "--user wants a password, in PYSYM_PASSWORD or a --password-file");
    if (request->user && (!*request->user || strpbrk(request->user, ":\r\n")))
        return error_create(ERROR_USAGE, "--user wants a name without ':'");
    return NULL;
}

static struct error *read_all(struct secrets *s, const struct push_request *request)
{
    TRY(check_request(request));
    s->path = request->token_file ? request->token_file : request->password_file;
    s->user = request->user;
    s->what = s->user ? "password" : "token";
    const char *variable = s->user ? "PYSYM_PASSWORD" : "PYSYM_TOKEN";
    if (!s->path && !is_set(variable))
        return NULL;
    s->was_dumpable = prctl(PR_GET_DUMPABLE) == 1;
    if (s->was_dumpable)
        prctl(PR_SET_DUMPABLE, 0);
    if (!s->path)
        return take_variable(s, variable);
    char *text;
    TRY(read_file(s, &text));
    return set_text(s, text);
}

struct error *secrets_open(const struct push_request *request, struct secrets **out)
{
    struct secrets *s = calloc(1, sizeof *s);
    struct error *err = s ? read_all(s, request) : error_no_memory();

    if (err) {
        secrets_close(s);
        return err;
    }
    *out = s;
    return NULL;
}

void secrets_close(struct secrets *s)
{
    if (!s)
        return;
    forget(s->text);
    forget(s->header);
    if (s->was_dumpable)
        prctl(PR_SET_DUMPABLE, 1);
    free(s);
}

const char *secrets_header(const struct secrets *s)
{
    return s->header;
}

struct error *secrets_renew(struct secrets *s, bool *changed)
{
    char *text;

    *changed = false;
    if (!s->path)
        return NULL;
    TRY(read_file(s, &text));
    if (strcmp(text, s->text) == 0) {
        forget(text);
        return NULL;
    }
    TRY(set_text(s, text));
    *changed = true;
    return NULL;
}

static void hide(char *text, const char *secret)
{
    size_t len = strlen(secret);

    for (char *at = text; len && (at = strstr(at, secret)) != NULL; at += len)
        memset(at, '*', len);
}

void secrets_hide(const struct secrets *s, char *text)
{
    if (!s->text)
        return;
    hide(text, s->text);
    hide(text, strrchr(s->header, ' ') + 1);
}
