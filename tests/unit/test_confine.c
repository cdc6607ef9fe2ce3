/* SPDX-License-Identifier: Apache-2.0 */
/* What pysym can still do once it is confined: each try is made in a child that confines itself as pysym does. */
#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "formats/base/landlock.h"
#include "symbolize/confine.h"
#include "tests/unit/folder_fixture.h"

static bool reads(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0 && read(fd, &byte, 1) >= 0;
}

static bool creates(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0;
}

static bool writes(const char *path)
{
    return open(path, O_WRONLY | O_CLOEXEC) >= 0;
}

static bool removes(const char *path)
{
    return !unlink(path);
}

static bool makes_folder(const char *path)
{
    return !mkdir(path, 0700) && !rmdir(path);
}

static bool links(const char *path)
{
    return !symlink("target", path) && !unlink(path);
}

/* Landlock refuses before anybody is asked; the port is closed. */
static bool connects(const char *unused)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)unused;
    return connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno != EACCES;
}

/* Whether a child that is confined by these options can do it. */
static bool can(const struct options *o, bool (*act)(const char *), const char *path)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid)
        _exit(confine(o) ? 2 : act(path) ? 1 : 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

static bool has_landlock(void)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && landlock_enter(NULL, 0));
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status);
}

/* Under the address sanitizer /proc stays open: it looks for leaks there. */
static bool can_read_proc(const struct options *o)
{
#ifdef __SANITIZE_ADDRESS__
    (void)o;
    return false;
#else
    return can(o, reads, "/proc/self/environ");
#endif
}

TEST_WITH(confine, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char trace[256], out[256], named[256], other[256], beside[256], symfs[256];
    struct options o;

    if (!has_landlock()) {
        print_message("no Landlock\n");
        skip();
    }
    assert_true(fixture_run(f, "mkdir in out s other tmp && touch in/trace.bin in/beside s/lib other/file out/old"));
    snprintf(trace, sizeof trace, "%s/in/trace.bin", f->dir);
    snprintf(beside, sizeof beside, "%s/in/beside", f->dir);
    snprintf(out, sizeof out, "%s/out/new", f->dir);
    snprintf(symfs, sizeof symfs, "%s/s", f->dir);
    snprintf(named, sizeof named, "%s/s/lib", f->dir);
    snprintf(other, sizeof other, "%s/other/file", f->dir);
    char tmp[256], old[256], made[256];
    snprintf(tmp, sizeof tmp, "%s/tmp", f->dir);
    snprintf(old, sizeof old, "%s/out/old", f->dir);
    snprintf(made, sizeof made, "%s/tmp/made", f->dir);
    setenv("TMPDIR", tmp, 1);

    char *all[] = {"pysym", trace, "-f", "folded", "-o", out, "--symfs", symfs, "--no-host", NULL};
    OK(options_parse(9, all, &o));
    assert_true(can(&o, reads, trace) && can(&o, reads, named) && can(&o, creates, made));
    assert_false(can(&o, reads, beside) || can(&o, reads, other) || can(&o, reads, "/etc/passwd"));
    assert_false(can_read_proc(&o) || can(&o, reads, "/dev/zero"));
    assert_false(can(&o, writes, trace) || can(&o, writes, other) || can(&o, writes, old) || can(&o, removes, other));
    assert_false(can(&o, creates, beside) || can(&o, removes, beside));
    assert_true(can(&o, removes, old));
    assert_true(fixture_run(f, "rm -f tmp/made"));
    options_deinit(&o);

    /* Only an output of several files makes folders and links, and opens its files again. */
    char *one[] = {"pysym", trace, "-f", "folded", "-o", out, "--no-host", NULL};
    const struct emitter several[] = {{.name = "several", .needs_files = true}, {.name = "some", .uses_files = true}};
    char folder[256], link[256], outside[256];
    snprintf(folder, sizeof folder, "%s/out/folder", f->dir);
    snprintf(link, sizeof link, "%s/out/link", f->dir);
    snprintf(outside, sizeof outside, "%s/other/folder", f->dir);
    assert_true(fixture_run(f, "touch out/old"));
    OK(options_parse(7, one, &o));
    assert_false(can(&o, makes_folder, folder) || can(&o, links, link) || can(&o, writes, old));
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        o.choice.emitter = &several[i];
        assert_true(can(&o, makes_folder, folder) && can(&o, links, link) && can(&o, writes, old));
        assert_false(can(&o, makes_folder, outside) || can(&o, links, outside) || can(&o, writes, other) || can(&o, reads, old));
    }
    options_deinit(&o);

    /* Of the folders for sources all can be read, and nothing beside them. */
    char place[300], *sources[] = {"pysym", "annotate", trace, "--source", place, "--no-host", NULL};
    snprintf(place, sizeof place, "/srv/app=%s", symfs);
    OK(options_parse(6, sources, &o));
    assert_true(can(&o, reads, named));
    assert_false(can(&o, writes, named) || can(&o, reads, other) || can(&o, reads, beside));
    options_deinit(&o);

    /* With the host's files: read, and no more. */
    char *host[] = {"pysym", trace, "-f", "folded", NULL};
    OK(options_parse(4, host, &o));
    assert_true(can(&o, reads, "/etc/passwd") && can(&o, reads, other));
    assert_false(can_read_proc(&o) || can(&o, reads, "/dev/zero"));
    assert_false(can(&o, writes, other) || can(&o, removes, other));
    if (!can(&o, connects, NULL))
        print_message("TCP is refused\n");

    /* But for the secrets of a push, by whatever name; what lies beside them can be read. */
    char through[256], more[256];
    snprintf(more, sizeof more, "%s/link/more", f->dir);
    snprintf(through, sizeof through, "%s/link/file", f->dir);
    assert_true(fixture_run(f, "ln -s other link && touch other/more"));
    o.push.token_file = through;
    o.push.key_file = beside;
    assert_false(can(&o, reads, other) || can(&o, reads, through) || can(&o, reads, beside));
    assert_true(can(&o, reads, more) && can(&o, reads, trace) && can(&o, reads, "/etc/passwd"));
    options_deinit(&o);
    unsetenv("TMPDIR");
}
