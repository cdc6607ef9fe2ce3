/* SPDX-License-Identifier: Apache-2.0 */
/* pysym is found, refused when it is another version, and has no privilege when it runs. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/view/view_program.h"

static char folder[40], program[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_view_program.XXXXXX");
    if (!mkdtemp(folder) || chmod(folder, 0755))
        return -1;
    snprintf(program, sizeof program, "%s/pysym", folder);
    setenv("HOME", "/nowhere", 1);
    return setenv("PATH", folder, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(program);
    return rmdir(folder);
}

TESTS_WITH(make_folder, remove_folder);

/* A shell script stands for pysym: its shell's own commands only, as PATH leads nowhere else. */
static void write_program(const char *script)
{
    FILE *f = fopen(program, "we");

    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(program, 0755), 0);
}

static void refuses(enum error_code code, const char *word)
{
    char *path;
    struct error *err = view_program_find(&path);

    assert_non_null(err);
    assert_int_equal(err->code, code);
    if (!strstr(error_text(err), word))
        fail_msg("%s", error_text(err));
    error_destroy(err);
    assert_null(path);
}

TEST(none)
{
    refuses(ERROR_NOT_FOUND, "install it");
}

TEST(another_version)
{
    write_program("echo pysym 0.0.1");
    refuses(ERROR_VERSION, "is 'pysym 0.0.1'");
    write_program("exit 1");
    refuses(ERROR_VERSION, "is ''");
    write_program("while :; do echo pysym; done"); /* it is not heard to its end */
    refuses(ERROR_VERSION, "is 'pysym'");
}

/* What the program says that pycap becomes, in a child. */
static void run(const char *const *arguments, char *text, size_t size)
{
    int ends[2], status;
    size_t len = 0;

    assert_int_equal(pipe(ends), 0);
    pid_t own = getpid(), pid = fork();
    if (!pid) {
        dup2(ends[1], STDOUT_FILENO);
        view_program_become(program, arguments, own);
    }
    close(ends[1]);
    for (ssize_t n; len < size - 1 && (n = read(ends[0], text + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void says(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("'%s' is not in:\n%s", line, text);
}

TEST(found_and_run)
{
    static const char *const arguments[] = {"-f", "live", "-", NULL};
    char text[8192], *path;

    write_program("test \"$1\" = --version && echo pysym " TOOL_VERSION " && exit\n"
                  "echo \"arguments: $*\"\n"
                  "echo \"secret: ${SECRET-none}, TERM: ${TERM-none}, HOME: ${HOME-none}\"\n"
                  "echo \"descriptors: $(echo /proc/self/fd/*)\"\n"
                  "while read -r line; do echo \"$line\"; done </proc/self/status\n");
    OK(view_program_find(&path));
    assert_string_equal(path, program);
    free(path);
    setenv("SECRET", "word", 1);
    setenv("TERM", "xterm", 1);
    int kept = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
    assert_true(kept >= 0);
    run(arguments, text, sizeof text);
    close(kept);
    says(text, "arguments: -f live -\n");
    says(text, geteuid() ? "TERM: xterm, HOME: /nowhere\n" : "TERM: xterm, HOME: none\n");
    says(text, "secret: none");
    says(text, "CapPrm:\t0000000000000000\n");
    says(text, "CapEff:\t0000000000000000\n");
    says(text, "NoNewPrivs:\t1\n");
    if (!geteuid() && strstr(text, "Uid:\t0\t"))
        fail_msg("it is root:\n%s", text);
}

/* sudo's caller, whose files these may be. */
TEST(caller_of_sudo)
{
    static const char *const arguments[] = {NULL};
    char text[8192];

    if (geteuid())
        skip(); /* only root can become another user */;
    setenv("SUDO_UID", "1", 1);
    setenv("SUDO_GID", "2", 1);
    run(arguments, text, sizeof text);
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
    says(text, "Uid:\t1\t1\t1\t1\n");
    says(text, "Gid:\t2\t2\t2\t2\n");
    if (strstr(text, "Groups:\t0"))
        fail_msg("it has root's groups:\n%s", text);
    says(text, "CapEff:\t0000000000000000\n");
    if (strstr(text, "HOME: /nowhere"))
        fail_msg("it has root's home:\n%s", text);
}

/* In a folder that only root enters. */
TEST(out_of_reach)
{
    static const char *const arguments[] = {"--version", NULL};
    char text[256];

    if (geteuid())
        skip(); /* others would not become another user */;
    assert_int_equal(chmod(folder, 0700), 0);
    unlink(program);
    assert_int_equal(symlink("/bin/true", program), 0);
    run(arguments, text, sizeof text);
    assert_int_equal(chmod(folder, 0755), 0);
}
