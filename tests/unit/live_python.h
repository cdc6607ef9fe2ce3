/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters that run, as subjects for unwinders. */
#ifndef TESTS_UNIT_LIVE_PYTHON_H
#define TESTS_UNIT_LIVE_PYTHON_H

#include "tests/unit/test.h"

#include <stdio.h>

#include "tests/unit/stopped.h"

static bool spawn(char *const argv[], pid_t *pid)
{
    int ready[2], status;
    char byte;

    if (access(argv[0], X_OK) || pipe(ready))
        return false;
    *pid = running = fork();
    if (!*pid) {
        dup2(ready[1], 1);
        close(ready[0]);
        close(ready[1]);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ready[1]);
    bool ok = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!ok)
        waitpid(*pid, &status, 0);
    return ok;
}

/*
 * Starts a program of an interpreter, and traces it from when it has written its first byte to standard output. Skips
 * the test where the interpreter is not to be had.
 */
static pid_t start_python(const char *python, const char *program)
{
    char *argv[] = {(char *)python, "-c", (char *)program, NULL};
    pid_t pid = 0;

    if (!spawn(argv, &pid)) {
        print_message("%s is not there or does not start\n", python);
        skip();
    }
    assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_EXITKILL), 0);
    return pid;
}

/* The path of "VERSION/bin/NAME" in pyenv's folder; until the next call. */
static const char *pyenv_path(const char *rest)
{
    static char path[4096];

    snprintf(path, sizeof path, "%s/.pyenv/versions/%s", getenv("HOME") ? getenv("HOME") : "", rest);
    return path;
}

#endif
