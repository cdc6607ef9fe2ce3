/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests are read whole before they are carried out, so a reader that is killed leaves no half block behind. When all
 * files that may ever be asked for are open, the rest of the rights goes as well.
 */
#include "capture/output/output_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/privileges.h"
#include "capture/host/sandbox.h"
#include "capture/output/archive_file.h"
#include "capture/output/file_rights.h"
#include "capture/output/files.h"
#include "capture/output/output_protocol.h"
#include "capture/output/stream_queue.h"
#include "formats/base/clock.h"
#include "formats/base/landlock.h"
#include "formats/base/metrics.h"
#include "formats/base/output_place.h"

/* A pipe's reader that takes something is reported this often. */
#define MOVING_NS (NS_PER_S / 2)
/* How long a pipe may take nothing once the reader of other processes has gone. */
#define LINGER_NS (3 * NS_PER_S)
/* A payload buffer that is larger is given back after use. */
#define BUFFER_KEPT_BYTES (1 << 20)

struct output_server {
    const struct output_options *options;
    int socket;
    struct files files;
    struct archive_file archive;
    struct stream_queue queue; /* for a pipe's reader */
    bool is_stream;            /* the open file is a pipe or a device */
    int stream_errno;          /* nothing can be written into it any more */
    bool file_named, archive_named; /* one was asked for before */
    bool told_waiting;              /* that a pipe has no reader */
    uint8_t *payload;
    size_t cap;
};

struct error *output_server_find_group(struct output_options *o, gid_t *number)
{
    if (!o->group)
        return NULL;
    o->files.group = number;
    return file_rights_find_group(o->group, number);
}

/* ---- confinement ---- */

/* The folder of a path of which so many bytes are fixed. -1: it cannot be opened. */
static int open_folder(const char *path, size_t fixed)
{
    char folder[PATH_MAX] = ".";

    if (fixed >= sizeof folder)
        return -1;
    while (fixed && path[fixed - 1] != '/')
        fixed--;
    if (fixed) {
        memcpy(folder, path, fixed);
        folder[fixed] = 0;
    }
    return open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * The folder of the files that a pattern names, up to the first part that changes; or the pipe or device that it names.
 * -1: no file is to be opened, or it cannot be.
 */
static int open_place(const char *pattern)
{
    size_t fixed = strcspn(pattern, "%");
    struct stat st;

    if (!strcmp(pattern, "-") || output_descriptor(pattern) >= 0)
        return -1;
    if (!pattern[fixed] && !lstat(pattern, &st) && !S_ISREG(st.st_mode))
        return open(pattern, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return open_folder(pattern, fixed);
}

static void enter_landlock(const struct output_options *o)
{
    enum { ALL = LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_RENAME };
    struct landlock_place places[3] = {{.access = ALL}, {.access = ALL}, {.access = ALL}};
    size_t count = 0;

    if ((places[count].fd = open_place(o->files.pattern)) >= 0)
        count++;
    if (o->archive && (places[count].fd = open_place(o->archive)) >= 0)
        count++;
    if (o->status && (places[count].fd = open_folder(o->status, strlen(o->status))) >= 0)
        count++;
    landlock_enter(places, count);
    while (count)
        close(places[--count].fd);
}

struct error *output_server_confine(const struct output_options *o)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return error_os(errno, "no_new_privs cannot be set");
    enter_landlock(o);
    TRY(privileges_drop_but_files());
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return NULL; /* the sanitizers make calls of their own at the end */
#else
    return sandbox_enter_writer();
#endif
}

/* Nothing will be opened any more. */
static void close_doors(const struct output_server *s)
{
    if (!s->options->confine || s->options->files.rotates || s->options->archive || s->options->status)
        return;
    landlock_enter(NULL, 0);
    privileges_drop_all();
}

/* ---- writing ---- */

static bool reader_is_gone(const struct output_server *s)
{
    struct pollfd end = {.fd = s->socket};

    return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR);
}

/* files_options.given_up: a pipe has no reader, and is asked for again and again. */
static bool given_up(void *ctx)
{
    struct output_server *s = ctx;

    if (!s->told_waiting)
        s->told_waiting = output_reply_send(s->socket, OUTPUT_WAITING, NULL, NULL, NULL);
    return !s->told_waiting || reader_is_gone(s);
}

/* Waits until a pipe takes something. False when that is no longer worth waiting for. */
static bool wait_for_room(const struct output_server *s)
{
    struct pollfd fds[2] = {{.fd = s->files.fd, .events = POLLOUT}, {.fd = s->socket}};

    if (poll(fds, 2, -1) > 0 && fds[0].revents)
        return true; /* write() reports errors */
    return poll(fds, 1, LINGER_NS / NS_PER_MS) > 0;
}

static struct output_backlog backlog_of(struct output_server *s)
{
    struct output_backlog backlog = {0};
    size_t len;

    if (s->files.fd < 0 || !s->is_stream)
        return backlog;
    stream_queue_front(&s->queue, &len);
    backlog.len_bytes = len;
    backlog.room = stream_queue_room(&s->queue, now_ns());
    return backlog;
}

/* Gives the reader of a pipe that has room what it takes without being waited for. */
static void pump(struct output_server *s)
{
    size_t len;
    const uint8_t *data = stream_queue_front(&s->queue, &len);
    ssize_t n = write(s->files.fd, data, len < PIPE_BUF ? len : PIPE_BUF);

    if (n < 0 && errno != EINTR && errno != EAGAIN) {
        s->stream_errno = errno;
        stream_queue_deinit(&s->queue);
        return;
    }
    stream_queue_take(&s->queue, n > 0 ? (size_t)n : 0, now_ns());
}

static bool is_waiting(const struct output_server *s)
{
    size_t len;

    stream_queue_front(&s->queue, &len);
    return len;
}

/* Waits until the reader of a pipe has taken everything. Returns 0 or an errno. */
static int drain_stream(struct output_server *s)
{
    uint64_t told_ns = now_ns();

    while (is_waiting(s) && !s->stream_errno) {
        if (!wait_for_room(s))
            return ECANCELED;
        pump(s);
        if (now_ns() - told_ns >= MOVING_NS && is_waiting(s)) {
            output_reply_send(s->socket, OUTPUT_MOVING, NULL, NULL, NULL);
            told_ns = now_ns();
        }
    }
    return s->stream_errno;
}

/* The reader of a pipe is not waited for, unless more is to be kept for it than a recording that heeds the room ever makes. */
static int write_stream(struct output_server *s, const uint8_t *data, size_t len_bytes)
{
    struct pollfd p = {.fd = s->files.fd, .events = POLLOUT};
    int why = backlog_of(s).len_bytes > STREAM_QUEUE_HARD ? drain_stream(s) : 0;

    if (why)
        return why;
    if (!stream_queue_add(&s->queue, data, len_bytes, now_ns()))
        return ENOMEM;
    while (!s->stream_errno && is_waiting(s) && poll(&p, 1, 0) > 0)
        pump(s);
    return s->stream_errno;
}

/* Cuts off the part of a block that got into a full disk: it is of no use, and takes the room that the end of the file needs. */
static void take_back(int fd, size_t len_bytes)
{
    off_t end = lseek(fd, 0, SEEK_CUR);
    struct stat st;

    if (len_bytes && end >= (off_t)len_bytes && !fstat(fd, &st) && st.st_size == end && !ftruncate(fd, end - (off_t)len_bytes))
        lseek(fd, end - (off_t)len_bytes, SEEK_SET);
}

/* All or nothing, where that can be. */
static int write_regular(struct output_server *s, const uint8_t *data, size_t len_bytes)
{
    size_t taken = 0;

    while (taken < len_bytes) {
        ssize_t n = write(s->files.fd, data + taken, len_bytes - taken);
        if (n < 0 && errno != EINTR) {
            int why = errno;
            take_back(s->files.fd, taken);
            return why;
        }
        taken += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static struct error *write_file(struct output_server *s, const void *data, size_t len_bytes)
{
    int why = s->is_stream ? write_stream(s, data, len_bytes) : write_regular(s, data, len_bytes);

    return why ? error_file(why, s->files.path, "cannot write") : NULL;
}

/* What a pipe's reader has not taken yet it gets first. */
static struct error *close_file(struct output_server *s)
{
    int why = s->is_stream ? drain_stream(s) : 0;
    struct error *err = why ? error_file(why, s->files.path, "cannot write") : NULL;

    stream_queue_deinit(&s->queue);
    return error_first(err, files_close(&s->files));
}

/* ---- requests ---- */

static struct error *refuse(const char *what)
{
    return error_create(ERROR_USAGE, "%s was asked for out of order", what);
}

static struct error *open_file(struct output_server *s)
{
    struct stat st;

    if (s->files.fd >= 0 || (s->file_named && !s->options->files.rotates))
        return refuse("a file");
    if (!s->file_named)
        TRY(files_adopt(&s->files));
    s->file_named = true;
    s->told_waiting = false;
    TRY(files_open(&s->files));
    s->is_stream = !fstat(s->files.fd, &st) && !S_ISREG(st.st_mode);
    const char *limit = getenv("PYCAP_STREAM_LIMIT"); /* for tests */
    s->queue.limit = limit ? strtoul(limit, NULL, 10) : 0;
    close_doors(s);
    return NULL;
}

static struct error *sync_file(const struct output_server *s)
{
    /* Pipes and some file systems cannot be synced; that is not an error. */
    if (fsync(s->files.fd) && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        return error_file(errno, s->files.path, "cannot sync");
    return NULL;
}

static struct error *open_archive(struct output_server *s)
{
    if (s->archive_named || !s->options->archive)
        return refuse("an archive");
    s->archive_named = true;
    return archive_file_open(s->options->archive, s->options->files.group, &s->archive);
}

/* It appears under its name when it is whole. What lies there is not opened: it may be a pipe that nobody reads. */
static struct error *publish(const struct output_server *s, size_t len_bytes)
{
    const struct buf text = {.data = s->payload, .len_bytes = len_bytes};

    if (!s->options->status || len_bytes > OUTPUT_STATUS_MAX)
        return refuse("a file of figures");
    return metrics_publish(s->options->status, &text);
}

static struct error *answer(struct output_server *s, const struct output_request_header *h)
{
    bool file = h->request == OUTPUT_WRITE || h->request == OUTPUT_SYNC || h->request == OUTPUT_CLOSE;
    bool archive = h->request == OUTPUT_ARCHIVE_WRITE || h->request == OUTPUT_ARCHIVE_FINISH;

    if ((file && s->files.fd < 0) || (archive && !s->archive.output.file))
        return refuse("something with a file that is not open");
    switch ((enum output_request)h->request) {
    case OUTPUT_OPEN:
        return open_file(s);
    case OUTPUT_WRITE:
        return write_file(s, s->payload, h->len_bytes);
    case OUTPUT_SYNC:
        return sync_file(s);
    case OUTPUT_CLOSE:
        return close_file(s);
    case OUTPUT_ARCHIVE_OPEN:
        return open_archive(s);
    case OUTPUT_ARCHIVE_WRITE:
        return archive_file_write(&s->archive, s->payload, h->len_bytes);
    case OUTPUT_ARCHIVE_FINISH:
        return archive_file_finish(&s->archive);
    case OUTPUT_STATUS:
        return publish(s, h->len_bytes);
    case OUTPUT_REQUESTS:
        break;
    }
    return refuse("nothing that is known");
}

/* While nothing is asked for, the reader of a pipe gets what it takes. */
static void wait_for_request(struct output_server *s)
{
    struct pollfd fds[2] = {{.fd = s->socket, .events = POLLIN}, {.fd = s->files.fd, .events = POLLOUT}};

    while (s->is_stream && s->files.fd >= 0 && is_waiting(s)) {
        fds[0].revents = fds[1].revents = 0;
        if (poll(fds, 2, -1) < 0 || fds[0].revents)
            return;
        pump(s);
    }
}

static bool reserve(struct output_server *s, size_t len_bytes)
{
    if (s->cap > BUFFER_KEPT_BYTES || s->cap < len_bytes) {
        free(s->payload);
        s->payload = malloc(len_bytes);
        s->cap = s->payload ? len_bytes : 0;
    }
    return s->payload || !len_bytes;
}

/* Receives a request and its payload; false: no other will be understood. */
static bool receive(struct output_server *s, struct output_request_header *h)
{
    return output_read(s->socket, h, sizeof *h) && h->request && h->request < OUTPUT_REQUESTS &&
           h->len_bytes <= OUTPUT_PAYLOAD_MAX && reserve(s, h->len_bytes) && output_read(s->socket, s->payload, h->len_bytes);
}

void output_server_run(int socket, const struct output_options *options)
{
    struct output_server s = {.options = options, .socket = socket};
    struct files_options files = options->files;
    struct output_request_header h;
    bool more = true;

    files.given_up = given_up;
    files.given_up_ctx = &s;
    files_init(&s.files, &files);
    for (;;) {
        wait_for_request(&s);
        if (!more || !receive(&s, &h))
            break;
        struct error *err = answer(&s, &h);
        const struct output_backlog backlog = backlog_of(&s);
        more = output_reply_send(socket, OUTPUT_DONE, err, h.request == OUTPUT_OPEN ? s.files.path : NULL, &backlog);
    }
    if (s.files.fd >= 0 && s.is_stream)
        drain_stream(&s);
    free(s.payload);
    stream_queue_deinit(&s.queue);
    files_deinit(&s.files);
    archive_file_deinit(&s.archive);
}
