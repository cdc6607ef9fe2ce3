/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of fixed length, then bytes. Both ends are one program, so numbers are in the machine's order. */
#include "capture/output/output_protocol.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"

/* Waits until something can be read or written, where the descriptor does not do that itself. */
static bool may_go_on(int fd, short events)
{
    if (errno == EAGAIN)
        poll(&(struct pollfd){.fd = fd, .events = events}, 1, -1);
    return errno == EINTR || errno == EAGAIN;
}

bool output_read(int fd, void *to, size_t len_bytes)
{
    while (len_bytes) {
        ssize_t n = read(fd, to, len_bytes);
        if (!n || (n < 0 && !may_go_on(fd, POLLIN)))
            return false;
        if (n > 0) {
            to = (uint8_t *)to + n;
            len_bytes -= (size_t)n;
        }
    }
    return true;
}

bool output_write(int fd, const void *data, size_t len_bytes)
{
    while (len_bytes) {
        ssize_t n = write(fd, data, len_bytes);
        if (n < 0 && !may_go_on(fd, POLLOUT))
            return false;
        if (n > 0) {
            data = (const uint8_t *)data + n;
            len_bytes -= (size_t)n;
        }
    }
    return true;
}

static uint32_t text_len(const char *text)
{
    return text ? (uint32_t)strnlen(text, OUTPUT_TEXT_MAX) : 0;
}

bool output_reply_send(int fd, enum output_reply_kind kind, struct error *err, const char *path,
                       const struct output_backlog *backlog)
{
    const char *message = err ? err->message : NULL;
    struct buf bytes = {0};

    if (err)
        path = err->path;
    struct output_reply_header h = {
        .kind = err ? OUTPUT_FAILED : kind,
        .code = err ? err->code : 0,
        .os_errno = err ? (uint32_t)err->os_errno : 0,
        .path_len_bytes = text_len(path),
        .message_len_bytes = text_len(message),
        .room = backlog ? backlog->room : OUTPUT_ROOM_FILE,
        .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
        .backlog_bytes = backlog ? backlog->len_bytes : 0,
    };
    buf_put(&bytes, &h, sizeof h);
    buf_put(&bytes, path, h.path_len_bytes);
    buf_put(&bytes, message, h.message_len_bytes);
    bool sent = !bytes.bad && output_write(fd, bytes.data, bytes.len_bytes);
    buf_deinit(&bytes);
    error_destroy(err);
    return sent;
}

/* The next `len_bytes` as a string, malloc'd; NULL: none, or they did not come. */
static char *receive_text(int fd, uint32_t len_bytes)
{
    char *text = len_bytes && len_bytes <= OUTPUT_TEXT_MAX ? calloc(1, len_bytes + 1) : NULL;

    if (text && !output_read(fd, text, len_bytes)) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Makes the error again that the other process had; its message has the text of os_errno already. */
static struct error *error_of(const struct output_reply_header *h, const char *path, const char *message)
{
    enum error_code code = h->code >= ERROR_NO_MEMORY && h->code <= ERROR_LIMIT ? h->code : ERROR_IO;
    struct error *err = path ? error_path(code, path, "%s", message ? message : "cannot be written")
                             : error_create(code, "%s", message ? message : "the output cannot be written");

    if (err != error_no_memory())
        err->os_errno = (int)h->os_errno;
    return err;
}

bool output_reply_receive(int fd, struct output_reply *out)
{
    struct output_reply_header h;

    *out = (struct output_reply){0};
    if (!output_read(fd, &h, sizeof h) || h.kind < OUTPUT_DONE || h.kind > OUTPUT_WAITING ||
        h.room > OUTPUT_ROOM_NONE)
        return false;
    char *path = receive_text(fd, h.path_len_bytes), *message = receive_text(fd, h.message_len_bytes);
    bool complete = (path || !h.path_len_bytes) && (message || !h.message_len_bytes);
    *out = (struct output_reply){.kind = h.kind, .cpu_ns = h.cpu_ns, .path = path, .backlog = {h.room, h.backlog_bytes}};
    if (complete && h.kind == OUTPUT_FAILED)
        out->error = error_of(&h, path, message);
    free(message);
    return complete;
}

void output_reply_deinit(struct output_reply *r)
{
    error_destroy(r->error);
    free(r->path);
    *r = (struct output_reply){0};
}
