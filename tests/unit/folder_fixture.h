/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder for a test, and shell commands that run in it. */
#ifndef TESTS_UNIT_FOLDER_FIXTURE_H
#define TESTS_UNIT_FOLDER_FIXTURE_H

#include "tests/unit/test.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    char dir[64];
};

static int fixture_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int fixture_init(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/pysym-test-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    *state = f;
    return 0;
}

static int fixture_deinit(void **state)
{
    struct fixture *f = *state;

    nftw(f->dir, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

/* Runs a shell command in the folder; false when it fails. */
__attribute__((unused, format(printf, 2, 3))) static bool fixture_run(const struct fixture *f, const char *fmt, ...)
{
    char command[4096];
    int used = snprintf(command, sizeof command, "cd '%s' && ", f->dir);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command + used, sizeof command - (size_t)used, fmt, ap);
    va_end(ap);
    /* The tools must not run under the sanitizer that the test may run under. */
    unsetenv("LD_PRELOAD");
    return system(command) == 0;
}

__attribute__((unused)) static void fixture_write(const struct fixture *f, const char *name, const void *data,
                                                  size_t len_bytes)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, len_bytes, out), len_bytes);
    assert_int_equal(fclose(out), 0);
}

#endif
