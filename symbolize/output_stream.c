/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of our own (fopencookie): they see what stdio flushes. */
#include "symbolize/output_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/size_text.h"

static size_t up_to_a_line_end(const char *data, size_t len_bytes)
{
    const char *end = memrchr(data, '\n', len_bytes);

    return end ? (size_t)(end - data) + 1 : len_bytes;
}

/*
 * How much of it may be written. Bytes that are written again count once. A text that would fill the limit is cut at once:
 * when more of it comes, it is too late to end with a line.
 */
static size_t allowed(struct output_stream *s, const char *data, size_t len_bytes)
{
    struct output_limit *limit = s->limit;
    uint64_t end = s->at_bytes + len_bytes, grows = end > s->size_bytes ? end - s->size_bytes : 0;
    uint64_t left = limit->max_bytes - limit->used_bytes;

    if (limit->reached)
        return 0;
    if (s->binary ? grows <= left : grows < left || !grows)
        return len_bytes;
    limit->reached = true;
    len_bytes = grows - left < len_bytes ? len_bytes - (size_t)(grows - left) : 0;
    return s->binary || !len_bytes ? len_bytes : up_to_a_line_end(data, len_bytes);
}

/* False: errno says why. */
static bool write_all(struct output_stream *s, const char *data, size_t len_bytes)
{
    int fd = s->descriptor(s);

    while (fd >= 0 && len_bytes) {
        ssize_t n = s->seekable ? pwrite(fd, data, len_bytes, (off_t)s->at_bytes) : write(fd, data, len_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        len_bytes -= (size_t)n;
        s->at_bytes += (uint64_t)n;
        if (s->at_bytes > s->size_bytes) {
            s->limit->used_bytes += s->at_bytes - s->size_bytes;
            s->size_bytes = s->at_bytes;
        }
    }
    return fd >= 0;
}

/* Makes s->other of what cannot be written as it is; the first `pass` bytes can. */
static bool write_otherwise(struct output_stream *s, const char *data, size_t len_bytes, size_t pass, const char *instead)
{
    buf_clear(&s->other);
    buf_put(&s->other, data, pass);
    buf_put_str(&s->other, instead);
    job_text_put(&s->text, data + pass + 1, len_bytes - pass - 1, &s->other);
    return !s->other.bad;
}

static ssize_t pass_on(void *cookie, const char *data, size_t len_bytes)
{
    struct output_stream *s = cookie;
    const char *instead;
    size_t came_bytes = len_bytes, pass = job_text_pass(&s->text, data, len_bytes, &instead);

    if (pass < len_bytes) {
        if (!write_otherwise(s, data, len_bytes, pass, instead)) {
            s->os_errno = errno = ENOMEM;
            return 0;
        }
        data = (const char *)s->other.data;
        len_bytes = s->other.len_bytes;
    }
    size_t n = allowed(s, data, len_bytes);
    if (n && !write_all(s, data, n))
        s->os_errno = errno;
    else if (n < len_bytes)
        s->os_errno = EFBIG;
    else
        return (ssize_t)came_bytes;
    errno = s->os_errno;
    return 0; /* glibc makes an error of it */
}

static int seek(void *cookie, off64_t *offset, int whence)
{
    struct output_stream *s = cookie;
    uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at_bytes : s->size_bytes;

    if ((*offset < 0 && (uint64_t)-*offset > from) || (*offset > 0 && (uint64_t)*offset > s->size_bytes - from)) {
        errno = EINVAL;
        return -1;
    }
    s->at_bytes = from + (uint64_t)*offset;
    *offset = (off64_t)s->at_bytes;
    return 0;
}

struct error *output_stream_open(struct output_stream *s)
{
    s->file = fopencookie(s, "w", (cookie_io_functions_t){.write = pass_on, .seek = s->seekable ? seek : NULL});
    if (!s->file)
        return error_no_memory();
    s->buffer = s->buffer_bytes ? malloc(s->buffer_bytes) : NULL; /* without one it has a small one of its own */
    if (s->buffer)
        setvbuf(s->file, s->buffer, _IOFBF, s->buffer_bytes);
    return NULL;
}

bool output_stream_close(struct output_stream *s)
{
    FILE *file = s->file;

    s->file = NULL;
    if (file && fclose(file) != 0 && !s->os_errno)
        s->os_errno = errno ? errno : EIO;
    free(s->buffer);
    s->buffer = NULL;
    buf_deinit(&s->other);
    return !s->os_errno;
}

struct error *output_limit_error(const struct output_limit *limit)
{
    struct size_text size;

    if (!limit->reached)
        return NULL;
    return error_create(ERROR_LIMIT, "the output would be larger than %s%s; --max-output allows more", size_text(limit->max_bytes, &size),
                        limit->by_size ? ", which is out of proportion to an input as small as this" : "");
}
