/* SPDX-License-Identifier: Apache-2.0 */
/* The lock is of the file, not of its name: who has got it looks whether the name still leads there. */
#include "symbolize/push/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/output_place.h"
#include "formats/base/printable.h"
#include "formats/base/replacement.h"

#define FIRST_LINE "pysym push state 1\n"
#define ANY_VERSION "pysym push state "
#define DESTINATION "destination "

enum {
    LINE_MAX_BYTES = 1 << 16,  /* with its end */
    EVENT_MAX_BYTES = 64,      /* "settled", two keys, a number below LEDGER_NUMBER_MAX, and the end */
    PIECE_BYTES = 1 << 16,     /* of a file that is written anew */
};

static const struct {
    const char *word;
    bool has_key;
} kinds[] = {
    [LEDGER_SENT] = {"sent", true},       [LEDGER_SETTLED] = {"settled", true},     [LEDGER_UNSTORED] = {"unstored", true},
    [LEDGER_DIVIDED] = {"divided", true}, [LEDGER_COMPLETE] = {"complete", false}, [LEDGER_PAUSED] = {"paused", false},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- opening ---- */

static struct error *lock(int fd, const char *path)
{
    if (!flock(fd, LOCK_EX | LOCK_NB))
        return NULL;
    if (errno == EWOULDBLOCK)
        return error_path(ERROR_USAGE, path, "another pysym push is using it: end that one, or give each its own --state file");
    return error_file(errno, path, "cannot be locked; a --state file has to be on a file system with locks, best on a local disk");
}

/* Opens what lies there, or an empty file. */
static struct error *open_in(const char *path, int folder, const char *name, int *fd)
{
    enum output_place place;
    struct stat st;

    TRY(output_place_look(path, folder, name, &st, &place));
    if (place == OUTPUT_STREAM)
        return error_path(ERROR_USAGE, path, "is a pipe or a device, which remembers nothing: name a regular file for --state");
    *fd = openat(folder, name, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (*fd < 0)
        return error_file(errno, path, "cannot be opened for writing");
    struct error *err = fstat(*fd, &st) ? error_file(errno, path, "cannot be looked at") : output_place_judge(path, &st, &place);
    if (!err && place != OUTPUT_REGULAR)
        err = error_path(ERROR_USAGE, path, "was replaced while it was opened");
    if (err)
        close(*fd);
    return err;
}

/* Does the name lead to the open file? */
static bool leads_to(int folder, const char *name, int fd)
{
    struct stat named, opened;

    return !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &opened) && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/* Another process may write the file anew between our opening and locking the old one. */
static struct error *open_locked(const char *path, int folder, const char *name, int *fd)
{
    for (;;) {
        TRY(open_in(path, folder, name, fd));
        struct error *err = lock(*fd, path);
        if (!err && leads_to(folder, name, *fd))
            return NULL;
        close(*fd);
        if (err)
            return err;
    }
}

static struct error *open_path(const char *path, int *fd)
{
    const char *name;
    int folder, opened = -1;

    TRY(output_place_folder(path, &folder, &name));
    struct error *err = open_locked(path, folder, name, &opened);
    close(folder);
    if (!err)
        *fd = opened;
    return err;
}

struct error *state_file_open(const char *path, const char *destination, struct state_file *out)
{
    struct buf clean = {0};
    struct error *err = NULL;

    *out = (struct state_file){.fd = -1};
    printable_put(&clean, destination);
    out->destination = clean.bad ? NULL : strdup(buf_cstr(&clean));
    buf_deinit(&clean);
    if (out->destination && strlen(out->destination) > LINE_MAX_BYTES - sizeof DESTINATION - 1)
        err = error_create(ERROR_LIMIT, "the rules of labels are longer than %d bytes", LINE_MAX_BYTES);
    if (!err && path)
        err = open_path(path, &out->fd);
    out->path = path && !err ? strdup(path) : NULL;
    if (!err && (!out->destination || (path && !out->path)))
        err = error_no_memory();
    if (err)
        state_file_close(out);
    return err;
}

void state_file_close(struct state_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->destination);
    *f = (struct state_file){.fd = -1};
}

/* ---- reading ---- */

struct reader {
    FILE *file;
    const char *path;
    uint64_t line_number;
    char line[LINE_MAX_BYTES];
};

static struct error *damaged(const struct reader *r)
{
    return error_path(ERROR_FORMAT, r->path,
                      "line %" PRIu64 " is damaged. Remove that line to go on: what it was about may then be sent once more", r->line_number);
}

/* Reads a line, without its end. *more is false at the end of the file, and at a line that has no end. */
static struct error *next_line(struct reader *r, bool *more)
{
    *more = false;
    r->line_number++;
    if (!fgets(r->line, sizeof r->line, r->file))
        return ferror(r->file) ? error_file(errno, r->path, "cannot be read") : NULL;
    size_t len = strlen(r->line);
    *more = len && r->line[len - 1] == '\n';
    if (*more)
        r->line[len - 1] = 0;
    else if (!feof(r->file))
        return damaged(r);
    return NULL;
}

/* The texts without the words that they begin and end with alike. */
static void leave_differing_words(const char **a, const char **b, int *a_len, int *b_len)
{
    size_t begin = 0, end = 0, i, a_all = strlen(*a), b_all = strlen(*b);

    for (i = 0; (*a)[i] && (*a)[i] == (*b)[i]; i++)
        if ((*a)[i] == ' ')
            begin = i + 1;
    for (i = 0; i < a_all - begin && i < b_all - begin && (*a)[a_all - 1 - i] == (*b)[b_all - 1 - i]; i++)
        if ((*a)[a_all - 1 - i] == ' ')
            end = i + 1;
    *a += begin;
    *b += begin;
    *a_len = (int)(a_all - begin - end);
    *b_len = (int)(b_all - begin - end);
}

static struct error *check_destination(const struct state_file *f, const char *line)
{
    const char *there = line + strlen(DESTINATION), *here = f->destination;
    int there_len, here_len;

    if (!strcmp(there, here))
        return NULL;
    leave_differing_words(&there, &here, &there_len, &here_len);
    return error_path(ERROR_USAGE, f->path,
                      "is the state of a push with \"%.*s\", and this one has \"%.*s\". What was sent cannot be compared: push as before, or "
                      "name another --state file, with which all traces that lie there are sent from their beginning",
                      there_len, there, here_len, here);
}

/* Reads the first two lines. *more is false if there is nothing behind them. */
static struct error *read_head(struct state_file *f, struct reader *r, bool *more)
{
    TRY(next_line(r, more));
    if (!strncmp(r->line, FIRST_LINE, strlen(r->line)) && !*more)
        return NULL;
    if (strncmp(r->line, ANY_VERSION, strlen(ANY_VERSION)) != 0)
        return error_path(ERROR_FORMAT, f->path, "is no state file of pysym push, and is left as it is: name another --state file");
    if (strncmp(r->line, FIRST_LINE, strlen(FIRST_LINE) - 1) != 0 || r->line[strlen(FIRST_LINE) - 1])
        return error_path(ERROR_VERSION, f->path, "was written by another version of pysym push: use that one, or name another --state file");
    TRY(next_line(r, more));
    if (!*more)
        return NULL;
    if (strncmp(r->line, DESTINATION, strlen(DESTINATION)) != 0)
        return damaged(r);
    return check_destination(f, r->line);
}

/* Reads " " and 16 digits in lower case. */
static bool take_key(const char **at, uint64_t *out)
{
    if (**at != ' ' || strspn(*at + 1, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(*at + 1, NULL, 16);
    *at += 17;
    return true;
}

static bool parse_event(const char *line, struct ledger_event *out)
{
    size_t len = strcspn(line, " "), digits;
    int kind = 0;

    while (kind < KINDS && (strlen(kinds[kind].word) != len || memcmp(kinds[kind].word, line, len) != 0))
        kind++;
    if (kind == KINDS)
        return false;
    *out = (struct ledger_event){.kind = (enum ledger_kind)kind};
    line += len;
    if (!take_key(&line, &out->trace) || (kinds[kind].has_key && !take_key(&line, &out->key)))
        return false;
    digits = *line == ' ' ? strspn(line + 1, "0123456789") : 0;
    if (!digits || digits > 19 || line[1 + digits])
        return false;
    out->number = strtoull(line + 1, NULL, 10);
    return out->number < LEDGER_NUMBER_MAX;
}

static struct error *read_lines(struct state_file *f, struct reader *r, ledger_taker *take, void *ctx)
{
    struct ledger_event event;
    bool more;

    TRY(read_head(f, r, &more));
    while (more) {
        TRY(next_line(r, &more));
        if (!more)
            break;
        if (!parse_event(r->line, &event))
            return damaged(r);
        TRY(take(ctx, &event));
    }
    return NULL;
}

struct error *state_file_read(struct state_file *f, ledger_taker *take, void *ctx)
{
    if (!f->path)
        return NULL;
    int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    struct reader *r = calloc(1, sizeof *r);
    struct error *err = NULL;

    if (r && fd >= 0)
        r->file = fdopen(fd, "r");
    if (!r || !r->file) {
        err = r ? error_file(errno, f->path, "cannot be read") : error_no_memory();
        if (fd >= 0)
            close(fd);
    } else {
        r->path = f->path;
        err = read_lines(f, r, take, ctx);
        fclose(r->file);
    }
    free(r);
    return err;
}

/* ---- writing ---- */

static void put_event(struct buf *out, const struct ledger_event *e)
{
    buf_printf(out, "%s %016" PRIx64, kinds[e->kind].word, e->trace);
    if (kinds[e->kind].has_key)
        buf_printf(out, " %016" PRIx64, e->key);
    buf_printf(out, " %" PRIu64 "\n", e->number);
}

struct rewriting {
    struct replacement file;
    struct buf text;
    uint64_t len_bytes;
};

static struct error *write_text(struct rewriting *w)
{
    if (w->text.bad)
        return error_no_memory();
    w->len_bytes += w->text.len_bytes;
    TRY(replacement_write(&w->file, w->text.data, w->text.len_bytes));
    buf_clear(&w->text);
    return NULL;
}

static struct error *rewrite_event(void *ctx, const struct ledger_event *event)
{
    struct rewriting *w = ctx;

    put_event(&w->text, event);
    return w->text.len_bytes < PIECE_BYTES ? NULL : write_text(w);
}

static struct error *rewrite(struct state_file *f, const struct ledger *ledger, struct rewriting *w)
{
    TRY(lock(w->file.fd, f->path));
    buf_printf(&w->text, FIRST_LINE DESTINATION "%s\n", f->destination);
    TRY(ledger_tell(ledger, rewrite_event, w));
    TRY(write_text(w));
    return replacement_commit(&w->file, true);
}

struct error *state_file_rewrite(struct state_file *f, const struct ledger *ledger)
{
    struct rewriting w = {0};

    if (!f->path)
        return NULL;
    struct error *err = replacement_create(f->path, 0600, &w.file);
    if (err)
        return err;
    err = rewrite(f, ledger, &w);
    if (!w.file.temporary) {
        /* It is in its place, even if the folder could not be written to disk. */
        close(f->fd);
        f->fd = w.file.fd;
        w.file.fd = -1;
        f->len_bytes = w.len_bytes;
        f->spoilt = err != NULL;
    }
    buf_deinit(&w.text);
    replacement_deinit(&w.file);
    return err;
}

static struct error *append(struct state_file *f, const struct buf *text, bool durable)
{
    struct stat st;

    for (size_t done = 0; done < text->len_bytes;) {
        ssize_t n = write(f->fd, text->data + done, text->len_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_file(errno, f->path, "could not be written");
        done += (size_t)n;
    }
    f->len_bytes += text->len_bytes;
    if (durable && fdatasync(f->fd))
        return error_file(errno, f->path, "could not be written to disk");
    if (durable && (fstat(f->fd, &st) || !st.st_nlink))
        return error_path(ERROR_IO, f->path, "was removed or replaced while it was used");
    return NULL;
}

struct error *state_file_append(struct state_file *f, const struct ledger *ledger, const struct ledger_event *events, size_t count,
                                bool durable)
{
    struct buf text = {0};

    if (!f->path)
        return NULL;
    if (f->spoilt)
        return state_file_rewrite(f, ledger);
    for (size_t i = 0; i < count; i++)
        put_event(&text, &events[i]);
    struct error *err = text.bad ? error_no_memory() : append(f, &text, durable);
    f->spoilt = err != NULL;
    buf_deinit(&text);
    return err;
}

uint64_t state_file_least_bytes(const struct state_file *f, const struct ledger *ledger)
{
    return strlen(FIRST_LINE DESTINATION) + strlen(f->destination) + ledger_event_count(ledger) * EVENT_MAX_BYTES;
}
