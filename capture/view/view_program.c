/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable is opened before the user changes, and started by its descriptor where the new user cannot reach its path,
 * such as one below /root.
 */
#include "capture/view/view_program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/host/messages.h"
#include "capture/host/privileges.h"
#include "formats/base/clock.h"
#include "formats/base/helper_process.h"
#include "formats/base/output_place.h"

static const char name[] = "pysym", users[] = "/etc/passwd";
/* How long `pysym --version` may take, on a machine that is out of breath. */
#define VERSION_NS (10 * NS_PER_S)

/* ---- where it is ---- */

/* The path of a file of that name in the first `len` bytes of `folder`; NULL: there is none that can be executed. */
static char *in_folder(const char *folder, size_t len)
{
    char *path;

    if (asprintf(&path, "%.*s/%s", len ? (int)len : 1, len ? folder : ".", name) < 0)
        return NULL;
    if (!access(path, X_OK))
        return path;
    free(path);
    return NULL;
}

static char *beside_pycap(void)
{
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own);

    while (n > 0 && own[n - 1] != '/')
        n--;
    return n > 0 ? in_folder(own, n > 1 ? (size_t)n - 1 : 1) : NULL;
}

static char *on_path(void)
{
    const char *folders = getenv("PATH");
    char *found = NULL;

    for (const char *at = folders; at && !found; at = *at ? at + 1 : NULL) {
        size_t len = strcspn(at, ":");
        found = in_folder(at, len);
        at += len;
    }
    return found;
}

/* ---- the process ---- */

static char *const *kept_environment(void)
{
    static const char *const kept[] = {"TERM",   "TERMINFO", "TERMINFO_DIRS",   "COLORTERM",    "NO_COLOR",     "LANG", "LC_ALL",
                                       "LC_CTYPE", "TZ",     "DEBUGINFOD_URLS", "ASAN_OPTIONS", "UBSAN_OPTIONS", "HOME", "PATH"};
    static char *list[sizeof kept / sizeof *kept + 1];
    size_t count = 0;

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *value = getenv(kept[i]);
        if (value && asprintf(&list[count], "%s=%s", kept[i], value) >= 0)
            count++;
    }
    return list;
}

/* The folder of that user, for what lies in it; no name service is asked (file_rights.c says why). */
static void go_home(uid_t user)
{
    FILE *f = fopen(users, "re");
    bool found = false;

    for (struct passwd *p; f && !found && (p = fgetpwent(f));)
        found = p->pw_uid == user && !setenv("HOME", p->pw_dir, 1);
    if (f)
        fclose(f);
    if (!found)
        unsetenv("HOME");
}

static bool become_user(void)
{
    uid_t user;
    gid_t group;

    if (output_owner(&user, &group) && user) {
        if (setgroups(0, NULL) || setresgid(group, group, group) || setresuid(user, user, user))
            return false;
        go_home(user);
    } else if (!geteuid() || !getuid()) {
        privileges_leave_root(); /* where a user namespace has nobody else it stays, without capabilities */
        unsetenv("HOME");
    }
    privileges_drop_all();
    return true;
}

/* Descriptor 3 stays, the program. */
static void start(const char *path, int fd, const char *const argv[])
{
    char *const *environment = kept_environment();

    if (fd > STDERR_FILENO + 1 && dup3(fd, STDERR_FILENO + 1, O_CLOEXEC) < 0)
        return;
    syscall(SYS_close_range, STDERR_FILENO + 2, ~0u, 0);
    execve(path, (char *const *)argv, environment);
    if (errno == EACCES && fd >= 0)
        syscall(SYS_execveat, STDERR_FILENO + 1, "", argv, environment, AT_EMPTY_PATH);
}

/* A change of user would undo it. False: the parent has gone already. */
static bool end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent;
}

_Noreturn void view_program_become(const char *path, const char *const *arguments, pid_t parent)
{
    size_t count = 0;
    int fd = helper_descriptor(open(path, O_PATH | O_CLOEXEC));

    while (arguments[count])
        count++;
    const char *argv[count + 2];
    argv[0] = name;
    memcpy(argv + 1, arguments, (count + 1) * sizeof *argv);
    if (become_user()) {
        if (!end_with(parent))
            _exit(126);
        start(path, fd, argv);
    }
    messages_line(stderr, "%s cannot be executed: %s", path, strerror(errno));
    _exit(126);
}

/* ---- its version ---- */

/* Reads what the child says, up to its end, or for so long. */
static void hear(int fd, char *text, size_t size)
{
    uint64_t until_ns = now_ns() + VERSION_NS, now;
    size_t len = 0;

    while (len < size - 1 && (now = now_ns()) < until_ns) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1) > 0 ? read(fd, text + len, size - 1 - len) : -1;
        if (!n)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    text[len] = 0;
}

/* What `pysym --version` says. */
static struct error *ask_version(const char *path, char *text, size_t size)
{
    static const char *const arguments[] = {"--version", NULL};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return error_os(errno, "a pipe to pysym cannot be made");
    pid_t own = getpid(), pid = fork();
    if (!pid) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL); /* so that it can be asked to end */
        dup2(ends[1], STDOUT_FILENO);
        view_program_become(path, arguments, own);
    }
    int why = errno;
    close(ends[1]);
    if (pid > 0) {
        hear(ends[0], text, size);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    return pid < 0 ? error_os(why, "pysym cannot be started") : NULL;
}

struct error *view_program_find(char **path)
{
    static const char expected[] = "pysym " TOOL_VERSION;
    char text[128];

    *path = beside_pycap();
    if (!*path)
        *path = on_path();
    if (!*path)
        return error_create(ERROR_NOT_FOUND, "pysym, which shows what is recorded, is neither beside pycap nor on PATH: install it");
    struct error *err = ask_version(*path, text, sizeof text);
    if (!err) {
        text[strcspn(text, "\n")] = 0;
        if (strcmp(text, expected))
            err = error_path(ERROR_VERSION, *path, "is '%s', but pycap " TOOL_VERSION " needs pysym " TOOL_VERSION, text);
    }
    if (err) {
        free(*path);
        *path = NULL;
    }
    return err;
}
