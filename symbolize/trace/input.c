/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/temporary.h"

enum { CHUNK = 1 << 16 };

static bool is_stdin(const struct input *in)
{
    return !strcmp(in->path, "-");
}

static const char *name_of(const struct input *in)
{
    return is_stdin(in) ? "standard input" : in->path;
}

const char *input_title(const char *path)
{
    const struct input in = {.path = path};
    const char *slash = strrchr(path, '/');

    return !input_again(&in) ? "standard input" : slash ? slash + 1 : path;
}

void input_init(struct input *in, const char *path)
{
    *in = (struct input){.path = path, .fd = -1, .wake_fd = -1};
}

void input_read_at(struct input *in, const char *place)
{
    snprintf(in->copy, sizeof in->copy, "%s", place);
}

void input_deinit(struct input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    input_init(in, in->path);
}

const char *input_again(const struct input *in)
{
    struct stat st;

    if (*in->copy)
        return in->copy;
    return !is_stdin(in) && !stat(in->path, &st) && S_ISREG(st.st_mode) ? in->path : NULL;
}

static struct error *copy(const struct input *in, int from, char *chunk)
{
    for (;;) {
        ssize_t n = read(from, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_file(errno, name_of(in), "cannot read");
        if (!n)
            return NULL;
        for (ssize_t done = 0; done < n;) {
            ssize_t written = write(in->fd, chunk + done, (size_t)(n - done));
            if (written < 0 && errno == EINTR)
                continue;
            if (written <= 0)
                return error_file(written ? errno : ENOSPC, temporary_folder(),
                                  "%s has to be read twice, and a copy of it cannot be kept here", name_of(in));
            done += written;
        }
    }
}

struct error *input_keep(struct input *in)
{
    struct stat st;

    /* A missing file is reported when it is opened. */
    if (input_again(in) || (!is_stdin(in) && (stat(in->path, &st) || S_ISDIR(st.st_mode))))
        return NULL;
    int from = is_stdin(in) ? STDIN_FILENO : open(in->path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return error_file(errno, in->path, "cannot open");
    char *chunk = malloc(CHUNK);
    struct error *err = chunk ? temporary_open(&in->fd) : error_no_memory();
    if (!err)
        err = copy(in, from, chunk);
    free(chunk);
    if (!is_stdin(in))
        close(from);
    /* Opening this path gives each reader its own file position. */
    if (!err)
        snprintf(in->copy, sizeof in->copy, "/proc/self/fd/%d", in->fd);
    return err;
}

struct error *input_open(const struct input *in, struct trace_reader **out)
{
    return *in->copy ? trace_reader_open_as(in->copy, name_of(in), out) : trace_reader_open_until(in->path, in->wake_fd, out);
}
