/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a root: where links and ".." lead, and what is not opened at all. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/root.h"

static char folder[32];

static char *in(const char *name)
{
    static char path[96];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in(name), "we");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int make(void **state)
{
    char target[96];

    (void)state;
    strcpy(folder, "/tmp/test_root.XXXXXX");
    assert_non_null(mkdtemp(folder));
    put("file", "f");
    assert_int_equal(mkdir(in("sub"), 0700), 0);
    put("sub/inner", "i");
    strcpy(target, in("sub/inner"));
    assert_int_equal(symlink("../file", in("sub/up")), 0);
    assert_int_equal(symlink(target, in("absolute")), 0);
    assert_int_equal(symlink("sub/", in("folder")), 0);
    assert_int_equal(symlink("loop", in("loop")), 0);
    return mkfifo(in("pipe"), 0600);
}

static int clear(void **state)
{
    static const char *const names[] = {"sub/up", "sub/inner", "sub", "absolute", "folder", "loop", "pipe", "file", ""};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(in(names[i]));
    return 0;
}

/* The byte in the file that the path names; 0: it is not opened, with errno. */
static char opens(const char *path)
{
    char byte = 0;
    int fd = root_open(0, path);

    if (fd < 0)
        return 0;
    if (read(fd, &byte, 1) != 1 || fcntl(fd, F_GETFL) & O_PATH)
        byte = '?';
    close(fd);
    return byte;
}

TEST_WITH(paths, make, clear)
{
    assert_int_equal(opens(in("file")), 'f');
    assert_int_equal(opens(in("sub/../file")), 'f');
    assert_int_equal(opens(in("./sub//./inner")), 'i');
    assert_int_equal(opens(in("sub/up")), 'f'); /* a link with ".." */
    assert_int_equal(opens(in("absolute")), 'i');
    assert_int_equal(opens(in("folder/inner")), 'i');
    char path[512];
    snprintf(path, sizeof path, "/../../..%s", in("file"));
    assert_int_equal(opens(path), 'f');
    assert_int_equal(opens(in("loop")), 0);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(opens(in("none")), 0);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(opens(in("file/inner")), 0);
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(opens(in("sub")), 0);
    assert_int_equal(opens(""), 0);
    assert_int_equal(opens("/"), 0);
}

/* Nothing is opened by way of /proc, whose links lead elsewhere, and what is no regular file is not opened. */
TEST_WITH(not_opened, make, clear)
{
    char path[512];
    int fd = open(in("file"), O_RDONLY);

    snprintf(path, sizeof path, "/proc/self/root%s", in("file"));
    assert_int_equal(opens(path), 0);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(opens(path), 0);
    assert_int_equal(errno, EACCES);
    assert_int_equal(unlink(in("file")), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(opens(path), 0);
    assert_int_equal(opens("/dev/null"), 0);
    assert_int_equal(opens(in("pipe")), 0);
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

/* No descriptor stays open, however it ends. */
TEST_WITH(leaks_nothing, make, clear)
{
    int before = open("/dev/null", O_RDONLY);

    close(before);
    opens(in("sub/up"));
    opens(in("sub/none"));
    opens(in("loop"));
    opens(in("sub"));
    opens("/dev/null");
    int after = open("/dev/null", O_RDONLY);
    close(after);
    assert_int_equal(after, before);
}
