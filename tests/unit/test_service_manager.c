/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager hears of a recording: a socket stands in for it. */
#include "tests/unit/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/output/service_manager.h"

/* A service manager that listens at a path, or if `abstract` at a name of its own kind. */
static int ignore_closed_pipes(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

TESTS_WITH(ignore_closed_pipes, NULL);

struct listener {
    int fd;
    char folder[32], name[80];
};

static void listen_at(struct listener *l, bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(l->folder, "/tmp/test_manager.XXXXXX");
    assert_non_null(mkdtemp(l->folder));
    snprintf(l->name, sizeof l->name, "%s%s/notify", abstract ? "@" : "", l->folder);
    strcpy(address.sun_path, l->name);
    if (abstract)
        address.sun_path[0] = 0;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(l->name) + !abstract);
    l->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(l->fd >= 0);
    assert_int_equal(bind(l->fd, (struct sockaddr *)&address, size), 0);
}

static void stop_listening(struct listener *l, bool abstract)
{
    close(l->fd);
    if (!abstract)
        assert_int_equal(unlink(l->name), 0);
    assert_int_equal(rmdir(l->folder), 0);
}

static void expect_heard(const struct listener *l, const char *text)
{
    char heard[256];
    ssize_t n = recv(l->fd, heard, sizeof heard - 1, 0);

    assert_true(n > 0);
    heard[n] = 0;
    assert_string_equal(heard, text);
}

static void tells(bool abstract, bool confine)
{
    struct listener l;
    struct service_manager *m;

    listen_at(&l, abstract);
    setenv("NOTIFY_SOCKET", l.name, 1);
    OK(service_manager_create(confine, stderr, &m));
    assert_non_null(m);
    service_manager_ready(m, 1);
    expect_heard(&l, "READY=1\nSTATUS=Recording; 1 Python process found at the start.");
    service_manager_ready(m, 12);
    expect_heard(&l, "READY=1\nSTATUS=Recording; 12 Python processes found at the start.");
    service_manager_stopping(m);
    service_manager_destroy(m);
    expect_heard(&l, "STOPPING=1\nSTATUS=Writing the end of the trace.");
    assert_int_equal(recv(l.fd, &(char){0}, 1, MSG_DONTWAIT), -1);
    stop_listening(&l, abstract);
}

TEST(tells)
{
    tells(false, false);
    tells(false, true);
    tells(true, true);
}

/* Creates the helper with a file for messages, whose text it returns. */
static const char *message(const char *socket)
{
    static char text[512];
    struct service_manager *m;
    FILE *messages = tmpfile();

    assert_non_null(messages);
    setenv("NOTIFY_SOCKET", socket, 1);
    setvbuf(messages, NULL, _IONBF, 0); /* as standard error */
    OK(service_manager_create(true, messages, &m));
    service_manager_ready(m, 1);
    service_manager_stopping(m);
    service_manager_destroy(m);
    rewind(messages);
    text[fread(text, 1, sizeof text - 1, messages)] = 0;
    fclose(messages);
    return text;
}

/* Nobody listens, or the name is none of a local socket: that is said, and the recording goes on. */
TEST(cannot_tell)
{
    char longest[200] = "/";

    assert_non_null(strstr(message("/nowhere/notify"), "NOTIFY_SOCKET (/nowhere/notify): No such file"));
    assert_non_null(strstr(message("@nobody-listens-here"), "Connection refused"));
    assert_non_null(strstr(message("vsock:2:1234"), "not supported"));
    assert_non_null(strstr(message("relative"), "not supported"));
    memset(longest + 1, 'x', sizeof longest - 2);
    assert_non_null(strstr(message(longest), "too long"));
}

/* The manager has gone meanwhile. */
TEST(manager_goes)
{
    struct listener l;
    struct service_manager *m;

    listen_at(&l, false);
    setenv("NOTIFY_SOCKET", l.name, 1);
    OK(service_manager_create(true, stderr, &m));
    service_manager_ready(m, 2);
    expect_heard(&l, "READY=1\nSTATUS=Recording; 2 Python processes found at the start.");
    stop_listening(&l, false);
    service_manager_stopping(m);
    service_manager_destroy(m);
}

TEST(nobody)
{
    struct service_manager *m = (struct service_manager *)"";

    unsetenv("NOTIFY_SOCKET");
    OK(service_manager_create(true, stderr, &m));
    assert_null(m);
    service_manager_ready(m, 1);
    service_manager_stopping(m);
    service_manager_destroy(m);
}
