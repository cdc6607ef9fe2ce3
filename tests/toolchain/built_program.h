/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a test has compiled in its fixture's folder, run up to where they stop (int3). */
#ifndef TESTS_TOOLCHAIN_BUILT_PROGRAM_H
#define TESTS_TOOLCHAIN_BUILT_PROGRAM_H

#include "tests/unit/test.h"
#include "tests/toolchain/elf_fixture.h"
#include "tests/unit/stopped.h"

/* Returns the thread that stopped. */
static pid_t start_built(const struct fixture *f, const char *name, const char *argument, pid_t *pid)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    *pid = fork();
    assert_true(*pid >= 0);
    if (!*pid) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execl(path, path, argument, NULL);
        _exit(127);
    }
    return run_to_stop(*pid);
}

/* The teardown that goes with fixture_init(). */
static int stop_and_deinit(void **state)
{
    stop_running(NULL);
    return fixture_deinit(state);
}

#endif
