/* SPDX-License-Identifier: Apache-2.0 */
/* The way to an output: through links that only we and root may have put there, and never through others. */
#include "tests/unit/test.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/output_place.h"
#include "tests/unit/folder_fixture.h"

#define OTHERS "12345"
#define LINK "a symbolic link that another user may have put there"

static const char *at(const struct fixture *f, const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    return path;
}

/* The way is free, and ends in the folder `expected` of the fixture. */
static void leads_to(struct fixture *f, const char *path, const char *expected)
{
    struct stat st, folder;
    const char *name;
    char full[PATH_MAX];
    int fd;

    snprintf(full, sizeof full, "%s/%s", f->dir, expected);
    OK(output_place_folder(path, &fd, &name));
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(stat(full, &folder), 0);
    assert_int_equal(st.st_ino, folder.st_ino);
    assert_int_equal(st.st_dev, folder.st_dev);
    close(fd);
}

static void refused(const char *path, const char *why)
{
    const char *name;
    int fd;
    struct error *err = output_place_folder(path, &fd, &name);

    assert_non_null(err);
    if (!strstr(error_text(err), why))
        fail_msg("%s: %s", path, error_text(err));
    assert_int_equal(fd, -1);
    error_destroy(err);
}

TEST_WITH(names, fixture_init, fixture_deinit)
{
    static const char *const pairs[][2] = {{"x", "x"}, {"/x", "x"}, {"/", "."}, {"//", "."}, {"./", "."}, {"", "."}, {"/tmp/../x", "x"}};
    const char *name;
    int fd;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        OK(output_place_folder(pairs[i][0], &fd, &name));
        assert_string_equal(name, pairs[i][1]);
        close(fd);
    }
}

TEST_WITH(own_links_lead_on, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[PATH_MAX], cwd[PATH_MAX];

    assert_true(fixture_run(f, "mkdir -p a/b c && ln -s a/b to && ln -s \"$PWD/c\" far && ln -s ../../to a/b/back && ln -s loop loop && "
                               "touch file && ln -s file to-file"));
    leads_to(f, at(f, "a/b/x"), "a/b");
    leads_to(f, at(f, "to/x"), "a/b");
    leads_to(f, at(f, "to//./back/x"), "a/b");
    leads_to(f, at(f, "to/../x"), "a");
    leads_to(f, at(f, "far/x"), "c");
    leads_to(f, at(f, "far/../to/back/back/x"), "a/b");
    refused(at(f, "loop/x"), strerror(ELOOP));
    refused(at(f, "file/x"), strerror(ENOTDIR));
    refused(at(f, "to-file/x"), strerror(ENOTDIR));
    refused(at(f, "nothing/x"), strerror(ENOENT));
    snprintf(path, sizeof path, "/%0300d/x", 1);
    refused(path, strerror(ENAMETOOLONG));

    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(f->dir), 0);
    leads_to(f, "to/x", "a/b");
    leads_to(f, "x", ".");
    leads_to(f, "/proc/self/cwd/to/x", "a/b");
    assert_int_equal(chdir(cwd), 0);
    if (!geteuid())
        refused("/proc/1/cwd/x", LINK);
}

TEST_WITH(links_of_others_do_not, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;

    if (geteuid())
        skip();
    assert_true(fixture_run(f, "mkdir target theirs open sticky group && chown " OTHERS " theirs && chmod 777 open && chmod 1777 sticky && "
                               "chgrp " OTHERS " group && chmod 775 group && for d in theirs open sticky group; do ln -s ../target $d/way; done"));
    /* In their folder, whosever the link is: they may have moved it there. */
    refused(at(f, "theirs/way/x"), LINK);
    refused(at(f, "open/way/x"), LINK);
    refused(at(f, "group/way/x"), LINK);
    leads_to(f, at(f, "sticky/way/x"), "target");
    /* A second name of a link of ours. */
    assert_true(fixture_run(f, "ln -P sticky/way sticky/second"));
    refused(at(f, "sticky/second/x"), LINK);
    assert_true(fixture_run(f, "rm sticky/second && chown -h " OTHERS " sticky/way"));
    refused(at(f, "sticky/way/x"), LINK);
    /* Behind a link that leads on, too. */
    assert_true(fixture_run(f, "ln -s open/way again"));
    refused(at(f, "again/x"), LINK);
    /* Folders of theirs may be walked, and are no links. */
    assert_true(fixture_run(f, "mkdir theirs/inside && chown " OTHERS " theirs/inside"));
    leads_to(f, at(f, "theirs/inside/x"), "theirs/inside");
    /* Who called sudo is we. */
    setenv("SUDO_UID", OTHERS, 1);
    setenv("SUDO_GID", OTHERS, 1);
    leads_to(f, at(f, "theirs/way/x"), "target");
    leads_to(f, at(f, "group/way/x"), "target");
    leads_to(f, at(f, "sticky/way/x"), "target");
    refused(at(f, "open/way/x"), LINK);
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
}

TEST_WITH(created_beside, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char *temporary;
    const char *name;
    struct stat st;
    int folder;

    OK(output_place_folder(at(f, "out"), &folder, &name));
    int fd = output_place_create_beside(folder, name, 0, &temporary);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_memory_equal(temporary, "out.", 4);
    assert_int_equal(strlen(temporary), 10);
    assert_null(strchr(temporary, 'X'));
    assert_int_equal(unlinkat(folder, temporary, 0), 0);
    close(fd);
    close(folder);
    free(temporary);
}
