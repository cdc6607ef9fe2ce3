/* SPDX-License-Identifier: Apache-2.0 */
/* The two processes of a recording: what the writer does for the reader, and what it refuses to a reader that lies. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/output/output_protocol.h"
#include "capture/output/outputs.h"

static char folder[32], trace[64], archive[64];

static int make_folder(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    strcpy(folder, "/tmp/test_outputs.XXXXXX");
    snprintf(trace, sizeof trace, "%s/t.bin", mkdtemp(folder) ? folder : "");
    snprintf(archive, sizeof archive, "%s/t.tar", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(trace);
    unlink(archive);
    return rmdir(folder);
}

static struct output_options options(bool confine)
{
    return (struct output_options){.files = {.pattern = trace, .hostname = "h"}, .archive = archive, .confine = confine};
}

/* The bytes of a file; -1: there is none. */
static ssize_t content(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    text[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
    return n;
}

static void holds(const char *path, const char *expected)
{
    char text[64];

    if (content(path, text, sizeof text) < 0 || strcmp(text, expected))
        fail_msg("%s holds '%s'", path, text);
}

static void fails(struct error *err, const char *word)
{
    assert_non_null(err);
    if (!strstr(error_text(err), word))
        fail_msg("%s", error_text(err));
    error_destroy(err);
}

/* A trace, an archive, and nothing of either twice. */
static void run_through(bool confine)
{
    struct output_options o = options(confine);
    struct outputs *outputs;
    struct archive_sink sink;
    struct stat st;

    OK(outputs_create(&o, &outputs));
    assert_null(outputs_path(outputs));
    assert_int_equal(access(trace, F_OK), -1);
    OK(outputs_open_archive(outputs, &sink));
    OK(outputs_open(outputs));
    assert_string_equal(outputs_path(outputs), trace);
    assert_int_equal(outputs_write(outputs, "a bl", 4), 4);
    assert_int_equal(outputs_write(outputs, "ock", 3), 3);
    holds(trace, "a block"); /* it can be read while it grows */
    assert_int_equal(outputs_sync(outputs), 0);
    OK(outputs_close(outputs));
    fails(outputs_open(outputs), "out of order");
    assert_int_equal(outputs_write(outputs, "x", 1), -1);
    OK(sink.write(sink.ctx, "packed", 6));
    assert_int_equal(access(archive, F_OK), -1);
    OK(sink.finish(sink.ctx));
    holds(archive, "packed");
    fails(sink.write(sink.ctx, "more", 4), "out of order");
    holds(trace, "a block");
    assert_false(outputs_lost(outputs));
    outputs_destroy(outputs);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stat(i ? trace : archive, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
}

TEST_WITH(run, make_folder, remove_folder)
{
    run_through(false);
}

/* The same with all rights given up that this does not need. */
TEST_WITH(run_confined, make_folder, remove_folder)
{
    run_through(true);
}

static void publish(struct outputs *outputs, const char *text)
{
    OK(outputs_publish(outputs, text, strlen(text)));
}

/* The file of figures is replaced, before the trace is opened and after, and also where nothing else is left to be opened. */
static void figures(bool confine)
{
    struct output_options o = options(confine);
    char status[64], *text = calloc(1, OUTPUT_STATUS_MAX + 1);
    struct outputs *outputs;
    struct stat st, later;

    assert_non_null(text);
    snprintf(status, sizeof status, "%s/figures", folder);
    o.archive = NULL;
    o.status = status;
    OK(outputs_create(&o, &outputs));
    publish(outputs, "a 1\n");
    holds(status, "a 1\n");
    assert_int_equal(stat(status, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    OK(outputs_open(outputs));
    int before = open(status, O_RDONLY | O_CLOEXEC);
    publish(outputs, "a 2\nb 1\n");
    holds(status, "a 2\nb 1\n");
    assert_int_equal(stat(status, &later), 0);
    assert_int_not_equal(st.st_ino, later.st_ino);
    char old[8] = "";
    assert_int_equal(read(before, old, sizeof old - 1), 4); /* who has the old one open reads that to its end */
    assert_string_equal(old, "a 1\n");
    close(before);
    fails(outputs_publish(outputs, text, OUTPUT_STATUS_MAX + 1), "out of order");
    holds(status, "a 2\nb 1\n");
    assert_int_equal(outputs_write(outputs, "a block", 7), 7);
    OK(outputs_close(outputs));
    publish(outputs, "a 3\n");
    outputs_destroy(outputs);
    holds(status, "a 3\n");
    holds(trace, "a block");
    assert_int_equal(unlink(status), 0);
    free(text);
}

TEST_WITH(figures, make_folder, remove_folder)
{
    figures(false);
    figures(true);
}

/* Nobody waits for a pipe's reader, no link is followed, and the trace is not disturbed. */
TEST_WITH(figures_fail, make_folder, remove_folder)
{
    struct output_options o = options(true);
    char status[64];
    struct outputs *outputs;

    snprintf(status, sizeof status, "%s/figures", folder);
    o.archive = NULL;
    o.status = status;
    assert_int_equal(mkfifo(status, 0600), 0);
    OK(outputs_create(&o, &outputs));
    OK(outputs_open(outputs));
    fails(outputs_publish(outputs, "a 1\n", 4), "pipe");
    assert_int_equal(unlink(status), 0);
    assert_int_equal(symlink(trace, status), 0);
    fails(outputs_publish(outputs, "a 1\n", 4), "symbolic link");
    assert_int_equal(unlink(status), 0);
    assert_int_equal(mkdir(status, 0700), 0);
    fails(outputs_publish(outputs, "a 1\n", 4), "directory");
    assert_int_equal(rmdir(status), 0);
    publish(outputs, "a 2\n");
    holds(status, "a 2\n");
    assert_int_equal(unlink(status), 0);
    assert_int_equal(outputs_write(outputs, "a block", 7), 7);
    OK(outputs_close(outputs));
    outputs_destroy(outputs);
    holds(trace, "a block");

    o.status = "/nowhere/at/all";
    assert_int_equal(unlink(trace), 0);
    OK(outputs_create(&o, &outputs));
    fails(outputs_publish(outputs, "a 1\n", 4), "No such file");
    OK(outputs_open(outputs));
    outputs_destroy(outputs);
    o.status = NULL;
    OK(outputs_create(&o, &outputs));
    fails(outputs_publish(outputs, "a 1\n", 4), "out of order");
    outputs_destroy(outputs);
}

/* More than a socket holds at once. */
TEST_WITH(large_block, make_folder, remove_folder)
{
    size_t size = OUTPUT_PAYLOAD_MAX;
    uint8_t *block = malloc(size);
    struct output_options o = options(false);
    struct outputs *outputs;
    struct stat st;

    assert_non_null(block);
    memset(block, 'x', size);
    OK(outputs_create(&o, &outputs));
    OK(outputs_open(outputs));
    assert_int_equal(outputs_write(outputs, block, size), size);
    assert_int_equal(outputs_write(outputs, block, size + 1), -1);
    assert_int_equal(errno, EMSGSIZE);
    OK(outputs_close(outputs));
    assert_int_equal(stat(trace, &st), 0);
    assert_int_equal(st.st_size, size);
    outputs_destroy(outputs);
    free(block);
}

/* What goes wrong there is told as if it had happened here. */
TEST_WITH(errors, make_folder, remove_folder)
{
    struct output_options o = options(false);
    struct outputs *outputs;
    struct archive_sink sink;

    o.files.pattern = "/nowhere/at/all.bin";
    o.archive = NULL;
    OK(outputs_create(&o, &outputs));
    struct error *err = outputs_open(outputs);
    assert_non_null(err);
    assert_string_equal(error_text(err), "/nowhere/at/all.bin: cannot be opened for writing: No such file or directory");
    assert_int_equal(err->os_errno, ENOENT);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
    fails(outputs_open_archive(outputs, &sink), "out of order");
    outputs_destroy(outputs);

    o.files.pattern = "/dev/full";
    OK(outputs_create(&o, &outputs));
    OK(outputs_open(outputs));
    assert_int_equal(outputs_write(outputs, "x", 1), -1);
    assert_int_equal(errno, ENOSPC);
    outputs_destroy(outputs);
}

/* The writer of this process. */
static pid_t writer_pid(void)
{
    char path[64], text[64];

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    return content(path, text, sizeof text) > 0 ? atoi(text) : 0;
}

TEST_WITH(writer_is_killed, make_folder, remove_folder)
{
    struct output_options o = options(false);
    struct outputs *outputs;

    OK(outputs_create(&o, &outputs));
    OK(outputs_open(outputs));
    pid_t pid = writer_pid();
    if (!pid) {
        outputs_destroy(outputs);
        skip(); /* a kernel without /proc/PID/task/TID/children */
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(outputs_write(outputs, "x", 1), -1);
    assert_true(outputs_lost(outputs));
    fails(outputs_close(outputs), "has ended unexpectedly");
    outputs_destroy(outputs);
}

/* ---- a reader that lies ---- */

struct liar {
    int socket;
    pid_t writer;
};

static struct liar lie_to(const struct output_options *o)
{
    struct liar l;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    l.writer = fork();
    assert_true(l.writer >= 0);
    if (!l.writer) {
        close(ends[0]);
        output_server_run(ends[1], o);
        _exit(0);
    }
    close(ends[1]);
    l.socket = ends[0];
    return l;
}

static void say(const struct liar *l, uint32_t request, const void *data, uint32_t len_bytes)
{
    struct output_request_header h = {request, len_bytes};

    assert_true(output_write(l->socket, &h, sizeof h));
    assert_true(output_write(l->socket, data, len_bytes));
}

/* What a request is answered with. */
static enum output_reply_kind answer(const struct liar *l, uint32_t request, const void *data, uint32_t len_bytes)
{
    struct output_reply reply;

    say(l, request, data, len_bytes);
    assert_true(output_reply_receive(l->socket, &reply));
    enum output_reply_kind kind = reply.kind;
    output_reply_deinit(&reply);
    return kind;
}

static void end(const struct liar *l)
{
    int status;

    close(l->socket);
    assert_int_equal(waitpid(l->writer, &status, 0), l->writer);
    assert_int_equal(status, 0);
}

TEST_WITH(out_of_order, make_folder, remove_folder)
{
    struct output_options o = options(false);
    struct liar l = lie_to(&o);

    assert_int_equal(answer(&l, OUTPUT_WRITE, "x", 1), OUTPUT_FAILED);
    assert_int_equal(answer(&l, OUTPUT_SYNC, "", 0), OUTPUT_FAILED);
    assert_int_equal(answer(&l, OUTPUT_CLOSE, "", 0), OUTPUT_FAILED);
    assert_int_equal(answer(&l, OUTPUT_ARCHIVE_WRITE, "x", 1), OUTPUT_FAILED);
    assert_int_equal(answer(&l, OUTPUT_ARCHIVE_FINISH, "", 0), OUTPUT_FAILED);
    assert_int_equal(answer(&l, OUTPUT_OPEN, "/etc/passwd", 11), OUTPUT_DONE); /* nothing listens to a name */
    assert_int_equal(answer(&l, OUTPUT_OPEN, "", 0), OUTPUT_FAILED);
    assert_int_equal(answer(&l, OUTPUT_ARCHIVE_OPEN, "", 0), OUTPUT_DONE);
    assert_int_equal(answer(&l, OUTPUT_ARCHIVE_OPEN, "", 0), OUTPUT_FAILED);
    assert_int_equal(answer(&l, OUTPUT_WRITE, "here", 4), OUTPUT_DONE);
    end(&l);
    holds(trace, "here");
    assert_int_equal(access(archive, F_OK), -1);
}

/* What is not a request ends it, and so does more than it may be asked to take. */
TEST_WITH(not_a_request, make_folder, remove_folder)
{
    const struct output_request_header headers[] = {
        {0, 0}, {OUTPUT_REQUESTS, 0}, {UINT32_MAX, 0}, {OUTPUT_WRITE, OUTPUT_PAYLOAD_MAX + 1}, {OUTPUT_WRITE, UINT32_MAX}};

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct output_options o = options(false);
        struct liar l = lie_to(&o);
        char byte;
        assert_int_equal(answer(&l, OUTPUT_OPEN, "", 0), OUTPUT_DONE);
        assert_true(output_write(l.socket, &headers[i], sizeof headers[i]));
        assert_int_equal(read(l.socket, &byte, 1), 0);
        end(&l);
    }
}

/* The reader is killed while it sends a block: the file ends with the one before. */
TEST_WITH(half_a_block, make_folder, remove_folder)
{
    const struct output_request_header h = {OUTPUT_WRITE, 100};
    struct output_options o = options(false);
    struct liar l = lie_to(&o);

    assert_int_equal(answer(&l, OUTPUT_OPEN, "", 0), OUTPUT_DONE);
    assert_int_equal(answer(&l, OUTPUT_ARCHIVE_OPEN, "", 0), OUTPUT_DONE);
    assert_int_equal(answer(&l, OUTPUT_WRITE, "whole", 5), OUTPUT_DONE);
    assert_true(output_write(l.socket, &h, sizeof h));
    assert_true(output_write(l.socket, "half", 4));
    end(&l);
    holds(trace, "whole");
    assert_int_equal(access(archive, F_OK), -1);
}

/* Nothing takes what is written to a pipe, and the reader of processes has gone. */
TEST_WITH(nobody_is_left, make_folder, remove_folder)
{
    static char block[1 << 20];
    struct output_options o = options(false);

    assert_int_equal(mkfifo(trace, 0600), 0);
    int stalled = open(trace, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct liar l = lie_to(&o);
    assert_int_equal(answer(&l, OUTPUT_OPEN, "", 0), OUTPUT_DONE);
    say(&l, OUTPUT_WRITE, block, sizeof block);
    end(&l);
    close(stalled);
}

/* The same where the pipe was never opened to be read. */
TEST_WITH(nobody_ever_came, make_folder, remove_folder)
{
    struct output_options o = options(false);
    struct output_reply reply;

    assert_int_equal(mkfifo(trace, 0600), 0);
    struct liar l = lie_to(&o);
    say(&l, OUTPUT_OPEN, "", 0);
    assert_true(output_reply_receive(l.socket, &reply));
    assert_int_equal(reply.kind, OUTPUT_WAITING);
    output_reply_deinit(&reply);
    end(&l);
}
