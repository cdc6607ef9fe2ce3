/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the socket that asks does not block, so that signals can end each wait. */
#include "capture/output/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/output/interrupt.h"
#include "capture/output/output_protocol.h"
#include "formats/base/helper_process.h"
#include "formats/base/output_place.h"

struct outputs {
    int socket;
    pid_t pid;
    const char *pattern, *archive, *status; /* for messages */
    char *path;
    uint64_t cpu_ns;
    struct output_backlog backlog;
    bool lost, held_up, stream;
};

/* ---- the process ---- */

static int descriptor_of(const char *path)
{
    return !path ? -1 : !strcmp(path, "-") ? STDOUT_FILENO : output_descriptor(path);
}

static void be_writer(int socket, const struct output_options *options)
{
    const int keep[] = {socket, descriptor_of(options->files.pattern), descriptor_of(options->archive)};
    struct output_options o = *options;
    gid_t group;

    helper_begin("pycap-writer", keep, sizeof keep / sizeof *keep);
    struct error *err = output_server_find_group(&o, &group);
    if (!err && o.confine)
        err = output_server_confine(&o);
    bool good = !err;
    if (output_reply_send(socket, OUTPUT_DONE, err, NULL, NULL) && good)
        output_server_run(socket, &o);
    _exit(0);
}

static bool make_sockets(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return false;
    for (int i = 0; i < 2; i++)
        ends[i] = helper_descriptor(ends[i]);
    int why = errno;
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
    }
    errno = why;
    return false;
}

static struct error *fork_writer(struct outputs *o, const struct output_options *options)
{
    int ends[2];

    if (!make_sockets(ends))
        return error_os(errno, "a socket to the process that writes cannot be made");
    o->pid = fork();
    if (!o->pid) {
        close(ends[0]);
        be_writer(ends[1], options);
    }
    int why = errno;
    close(ends[1]);
    o->socket = ends[0];
    if (o->pid < 0)
        return error_os(why, "the process that writes cannot be started");
    fcntl(o->socket, F_SETFL, O_NONBLOCK);
    return NULL;
}

static struct error *gone(const char *path)
{
    return error_path(ERROR_IO, path, "the process that writes it (pycap-writer) has ended unexpectedly");
}

struct error *outputs_create(const struct output_options *options, struct outputs **out)
{
    struct outputs *o = calloc(1, sizeof *o);
    struct output_reply ready = {0};

    if (!o)
        return error_no_memory();
    o->socket = -1;
    o->pattern = options->files.pattern;
    o->archive = options->archive;
    o->status = options->status;
    struct error *err = fork_writer(o, options);
    if (!err && !output_reply_receive(o->socket, &ready))
        err = gone(o->pattern);
    if (!err) {
        err = ready.error;
        ready.error = NULL;
    }
    output_reply_deinit(&ready);
    if (err) {
        outputs_destroy(o);
        return err;
    }
    *out = o;
    return NULL;
}

void outputs_destroy(struct outputs *o)
{
    if (!o)
        return;
    if (o->socket >= 0)
        close(o->socket);
    if (o->pid > 0 && !o->held_up)
        helper_wait(o->pid);
    free(o->path);
    free(o);
}

/* ---- requests ---- */

/* Sends as much as the socket takes; false: the writer has gone. */
static bool send_some(int fd, const uint8_t **data, size_t *len_bytes)
{
    ssize_t n = write(fd, *data, *len_bytes);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    *data += n;
    *len_bytes -= (size_t)n;
    return true;
}

/* Sends bytes, 0 or an errno. */
static int send_all(struct outputs *o, const void *data, size_t len_bytes)
{
    const uint8_t *at = data;

    while (len_bytes) {
        if (!interrupt_wait(o->socket, POLLOUT, INTERRUPT_GRACE_NS)) {
            o->held_up = true;
            return ECANCELED;
        }
        if (!send_some(o->socket, &at, &len_bytes)) {
            o->lost = true;
            return EPIPE;
        }
    }
    return 0;
}

/* Waits for the answer, which `reply` gets; 0 or an errno. */
static int receive_answer(struct outputs *o, struct output_reply *reply)
{
    uint64_t grace_ns = INTERRUPT_GRACE_NS;

    for (;;) {
        if (!interrupt_wait(o->socket, POLLIN, grace_ns)) {
            o->held_up = true;
            return ECANCELED;
        }
        if (!output_reply_receive(o->socket, reply)) {
            o->lost = true;
            output_reply_deinit(reply);
            return EPIPE;
        }
        o->cpu_ns = reply->cpu_ns;
        if (reply->kind == OUTPUT_DONE || reply->kind == OUTPUT_FAILED) {
            o->backlog = reply->backlog;
            o->stream |= reply->backlog.room != OUTPUT_ROOM_FILE;
            return 0;
        }
        if (reply->kind == OUTPUT_WAITING)
            grace_ns = 0; /* nothing is lost when that is given up */
        output_reply_deinit(reply);
    }
}

/* Asks and waits; 0 or an errno. `reply` must be deinited after 0. */
static int ask(struct outputs *o, enum output_request request, const void *data, size_t len_bytes, struct output_reply *reply)
{
    const struct output_request_header h = {.request = request, .len_bytes = (uint32_t)len_bytes};

    if (o->lost || o->held_up) /* an answer to what was asked before may still come */
        return o->lost ? EPIPE : ECANCELED;
    if (len_bytes > OUTPUT_PAYLOAD_MAX)
        return EMSGSIZE;
    int why = send_all(o, &h, sizeof h);
    if (!why)
        why = send_all(o, data, len_bytes);
    return why ? why : receive_answer(o, reply);
}

/* The same, with an error object. */
static struct error *request(struct outputs *o, enum output_request what, const void *data, size_t len_bytes)
{
    const char *path = what == OUTPUT_STATUS ? o->status : what >= OUTPUT_ARCHIVE_OPEN ? o->archive : o->path;
    struct output_reply reply;
    int why = ask(o, what, data, len_bytes, &reply);

    if (o->lost)
        return gone(path);
    if (why)
        return error_file(why, path, "cannot be written");
    struct error *err = reply.error;
    reply.error = NULL;
    output_reply_deinit(&reply);
    return err;
}

/* The same as a system call does it. */
static int call(struct outputs *o, enum output_request what, const void *data, size_t len_bytes)
{
    struct output_reply reply;
    int why = ask(o, what, data, len_bytes, &reply);

    if (!why) {
        why = !reply.error ? 0 : reply.error->os_errno ? reply.error->os_errno : EIO;
        output_reply_deinit(&reply);
    }
    errno = why;
    return why ? -1 : 0;
}

struct error *outputs_open(struct outputs *o)
{
    struct output_reply reply;
    int why = ask(o, OUTPUT_OPEN, NULL, 0, &reply);

    if (o->lost)
        return gone(o->pattern);
    if (why)
        return error_file(why == ECANCELED ? EINTR : why, o->pattern, "cannot be opened for writing");
    struct error *err = reply.error;
    reply.error = NULL;
    if (!err) {
        free(o->path);
        o->path = reply.path;
        reply.path = NULL;
    }
    output_reply_deinit(&reply);
    return err || o->path ? err : error_no_memory();
}

const char *outputs_path(const struct outputs *o)
{
    return o->path;
}

struct error *outputs_close(struct outputs *o)
{
    return request(o, OUTPUT_CLOSE, NULL, 0);
}

ssize_t outputs_write(struct outputs *o, const void *data, size_t len_bytes)
{
    return call(o, OUTPUT_WRITE, data, len_bytes) ? -1 : (ssize_t)len_bytes;
}

int outputs_sync(struct outputs *o)
{
    return call(o, OUTPUT_SYNC, NULL, 0);
}

struct output_backlog outputs_backlog(struct outputs *o, bool now)
{
    if (now && o->path)
        call(o, OUTPUT_WRITE, NULL, 0); /* what is wrong with it the next block says */
    return o->backlog;
}

bool outputs_is_stream(const struct outputs *o)
{
    return o->stream;
}

static struct error *write_archive(void *ctx, const void *data, size_t len_bytes)
{
    return request(ctx, OUTPUT_ARCHIVE_WRITE, data, len_bytes);
}

static struct error *finish_archive(void *ctx)
{
    return request(ctx, OUTPUT_ARCHIVE_FINISH, NULL, 0);
}

struct error *outputs_open_archive(struct outputs *o, struct archive_sink *out)
{
    *out = (struct archive_sink){.write = write_archive, .finish = finish_archive, .ctx = o};
    return request(o, OUTPUT_ARCHIVE_OPEN, NULL, 0);
}

struct error *outputs_publish(struct outputs *o, const void *text, size_t len_bytes)
{
    return request(o, OUTPUT_STATUS, text, len_bytes);
}

bool outputs_lost(const struct outputs *o)
{
    return o->lost;
}

uint64_t outputs_cpu_ns(const struct outputs *o)
{
    return o->cpu_ns;
}
