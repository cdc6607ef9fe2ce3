/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that read traces: what they say comes, whatever becomes of them, and they end with who asked for them. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "symbolize/push/converter.h"
#include "symbolize/push/message.h"

static const struct profile_label labels[] = {{"__name__", "process_cpu"}, {"service_name", "shop"}};

static struct push_profile made(uint32_t chunk)
{
    return (struct push_profile){.window_begin_ns = 30, .window_end_ns = 45, .last_ns = 44, .chunk = chunk, .samples = 5, .rows = 1,
                                 .labels = labels, .label_count = 2, .data = "pprof", .len_bytes = 5, .raw_len_bytes = 9};
}

/* ---- what the process of a trace does; its path says which ---- */

static struct error *say_profiles(const struct profile_pipe *pipe)
{
    for (uint32_t i = 0; i < 3; i++)
        OK(message_write(pipe, &(struct converter_message){.event = CONVERTER_PROFILE, .profile = made(i)}));
    OK(message_write(pipe, &(struct converter_message){.event = CONVERTER_LOST, .text = "ring_full", .count = 7}));
    return message_write(pipe, &(struct converter_message){.event = CONVERTER_TEXT, .text = "a \x1b[31mline"});
}

static struct error *say_secrets(const struct profile_pipe *pipe)
{
    bool found = getenv("PYSYM_TOKEN") || getenv("PYSYM_PASSWORD");

    return message_write(pipe, &(struct converter_message){.event = CONVERTER_TEXT, .text = found ? "found" : "nothing"});
}

static struct error *say_sockets(const struct profile_pipe *pipe)
{
    static const int families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};
    int pair[2];
    bool made = !socketpair(AF_UNIX, SOCK_STREAM, 0, pair);

    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        made |= socket(families[i], SOCK_DGRAM, 0) >= 0 || errno != EPERM;
    return message_write(pipe, &(struct converter_message){.event = CONVERTER_TEXT, .text = made ? "made" : "none"});
}

static struct error *run(void *own, const struct converter_trace *trace, const struct profile_pipe *pipe, bool *damaged)
{
    const char *path = trace->path;

    *damaged = !strcmp(path, "damaged");
    if (!strcmp(path, "profiles"))
        return say_profiles(pipe);
    if (!strcmp(path, "secrets"))
        return say_secrets(pipe);
    if (!strcmp(path, "sockets"))
        return say_sockets(pipe);
    if (!strcmp(path, "error"))
        return error_create(ERROR_FORMAT, "%s", (const char *)own);
    if (!strcmp(path, "crash") || !strcmp(path, "killed"))
        kill(getpid(), *path == 'c' ? SIGABRT : SIGKILL);
    if (!strcmp(path, "status"))
        _exit(9);
    if (!strcmp(path, "nonsense"))
        assert_int_equal(write(pipe->fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), 8);
    if (!strcmp(path, "long")) /* a head that announces more than may come */
        assert_int_equal(write(pipe->fd, "\x00\x00\x00\x00\xff\xff\xff\x7f", 8), 8);
    if (!strcmp(path, "half")) {
        assert_int_equal(write(pipe->fd, "\x02\x00\x00\x00\x10", 5), 5);
        _exit(0);
    }
    while (!strcmp(path, "endless"))
        TRY(message_write(pipe, &(struct converter_message){.event = CONVERTER_LOST, .text = "ring_full"}));
    if (!strcmp(path, "hang"))
        pause();
    return NULL;
}

/* ---- the sender's side ---- */

static struct converters *create_several(uint32_t count)
{
    static char why[] = "no \x1b trace";
    struct converters *all;

    OK(converters_create(count, run, why, &all));
    return all;
}

/* The only one; it stays valid until `all` is destroyed. */
static struct converter *create(struct converters **all)
{
    *all = create_several(1);
    struct converter *c = converters_idle(*all);
    assert_non_null(c);
    return c;
}

static void begin(struct converter *c, const char *path, enum converter_task task, int fd)
{
    OK(converter_begin(c, &(struct converter_trace){path, fd}, task));
}

/* The next message, however long it takes. */
static struct converter_message next(struct converter *c)
{
    struct converter_message m = {0};
    bool came = false;

    while (!came) {
        OK(converter_next(c, &m, &came));
        if (!came)
            poll(&(struct pollfd){.fd = converter_fd(c), .events = POLLIN}, 1, -1);
    }
    return m;
}

static int nothing(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

TEST(messages)
{
    struct converters *all;
    struct converter *c = create(&all);
    int fd = nothing();

    begin(c, "profiles", CONVERTER_READ, fd);
    for (uint32_t i = 0; i < 3; i++) {
        struct converter_message m = next(c);
        assert_int_equal(m.event, CONVERTER_PROFILE);
        assert_int_equal(m.profile.chunk, i);
        assert_string_equal(m.profile.labels[1].value, "shop");
    }
    struct converter_message m = next(c);
    assert_int_equal(m.event, CONVERTER_LOST);
    assert_string_equal(m.text, "ring_full");
    assert_int_equal(m.count, 7);
    m = next(c);
    assert_int_equal(m.event, CONVERTER_TEXT);
    assert_string_equal(m.text, "a \\x1b[31mline");
    m = next(c);
    assert_int_equal(m.event, CONVERTER_END);
    assert_false(m.damaged || m.ended);
    begin(c, "damaged", CONVERTER_READ, fd);
    m = next(c);
    assert_true(m.event == CONVERTER_END && m.damaged);
    converters_destroy(all);
    close(fd);
}

/* A process that goes wrong is a message like others; the next trace is read all the same. */
TEST(processes_that_go_wrong)
{
    static const struct {
        const char *path, *text;
    } cases[] = {
        {"error", "no \\x1b trace"}, {"crash", "ended by SIGABRT"}, {"killed", "ended by SIGKILL, as the kernel does"},
        {"status", "status 9"}, {"nonsense", "went wrong: no message"}, {"long", "too long"}, {"half", "status 0"},
        {"endless", "more than any trace has"},
    };
    struct converters *all;
    struct converter *c = create(&all);
    int fd = nothing();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(c, cases[i].path, CONVERTER_READ, fd);
        struct converter_message m = next(c);
        while (m.event == CONVERTER_LOST)
            m = next(c);
        assert_int_equal(m.event, CONVERTER_FAILED);
        assert_int_equal(m.killed, !strcmp(cases[i].path, "killed"));
        if (!strstr(m.text, cases[i].text))
            fail_msg("%s: %s", cases[i].path, m.text);
    }
    begin(c, "good", CONVERTER_READ, fd);
    assert_int_equal(next(c).event, CONVERTER_END);
    converters_destroy(all);
    close(fd);
}

/* Waits until all others have closed the pipe's other end. */
static void wait_for_end_of(int fd)
{
    char byte;

    assert_int_equal(read(fd, &byte, 1), 0);
}

TEST(end_in_the_middle)
{
    struct converters *all;
    struct converter *c = create(&all);
    int ends[2], fd = nothing();

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    begin(c, "hang", CONVERTER_READ, ends[1]); /* it has the pipe's end as long as it lives */
    close(ends[1]);
    OK(converter_end(c));
    wait_for_end_of(ends[0]);
    close(ends[0]);
    begin(c, "good", CONVERTER_READ, fd);
    assert_int_equal(next(c).event, CONVERTER_END);
    converters_destroy(all);
    close(fd);
}

/* A sender that is killed leaves no process behind. */
TEST(death_of_the_sender)
{
    int ends[2], status;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (!pid) {
        struct converters *all;
    struct converter *c = create(&all);
        begin(c, "hang", CONVERTER_READ, ends[1]);
        raise(SIGKILL);
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    wait_for_end_of(ends[0]);
    close(ends[0]);
}

TEST(secrets_do_not_reach_them)
{
    int fd = nothing();

    setenv("PYSYM_TOKEN", "hunter2", 1);
    setenv("PYSYM_PASSWORD", "hunter2", 1);
    struct converters *all;
    struct converter *c = create(&all);
    assert_string_equal(getenv("PYSYM_TOKEN"), "hunter2"); /* for the sender */
    begin(c, "secrets", CONVERTER_READ, fd);
    assert_string_equal(next(c).text, "nothing");
    assert_int_equal(next(c).event, CONVERTER_END);
    converters_destroy(all);
    unsetenv("PYSYM_TOKEN");
    unsetenv("PYSYM_PASSWORD");
    close(fd);
}

TEST(no_sockets)
{
    struct converters *all;
    struct converter *c = create(&all);
    int fd = nothing();

    begin(c, "sockets", CONVERTER_READ, fd);
    assert_string_equal(next(c).text, "none");
    assert_int_equal(next(c).event, CONVERTER_END);
    converters_destroy(all);
    close(fd);
}

TEST(look_for_the_end)
{
    struct converters *all;
    struct converter *c = create(&all);
    int fd = memfd_create("trace", MFD_CLOEXEC);

    begin(c, "profiles", CONVERTER_LOOK, fd); /* does not run the converter */
    struct converter_message m = next(c);
    assert_true(m.event == CONVERTER_END && !m.ended);
    converters_destroy(all);
    close(fd);
}

/* Each converter has its own process, messages and end, in whatever order they are asked for. */
TEST(several)
{
    enum { COUNT = 4 };
    static const char *const paths[COUNT] = {"hang", "profiles", "killed", "good"};
    struct converters *all = create_several(COUNT);
    struct converter *each[COUNT];
    int fd = nothing();

    for (size_t i = 0; i < COUNT; i++) {
        each[i] = converters_idle(all);
        assert_non_null(each[i]);
        begin(each[i], paths[i], CONVERTER_READ, fd);
    }
    assert_null(converters_idle(all));
    assert_int_equal(next(each[3]).event, CONVERTER_END);
    assert_ptr_equal(converters_idle(all), each[3]);
    begin(each[3], "error", CONVERTER_READ, fd);
    struct converter_message m = next(each[2]);
    assert_true(m.event == CONVERTER_FAILED && m.killed);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(next(each[1]).profile.chunk, i);
    OK(converter_end(each[0]));
    assert_ptr_equal(converters_idle(all), each[0]);
    m = next(each[3]);
    assert_true(m.event == CONVERTER_FAILED && !m.killed);
    assert_int_equal(next(each[1]).event, CONVERTER_LOST);
    OK(converters_end(all));
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(converter_fd(each[i]), -1);
    begin(each[0], "good", CONVERTER_READ, fd);
    assert_int_equal(next(each[0]).event, CONVERTER_END);
    converters_destroy(all);
    close(fd);
}
