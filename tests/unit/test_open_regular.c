/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that strangers chose: what is opened, what is refused, and that nothing is opened before it was looked at. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/host/own_file.h"
#include "formats/base/open_regular.h"

struct scene {
    char dir[64];
    int folder; /* dir/root */
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void put(const struct scene *s, const char *name, const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void folder(const struct scene *s, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void link_to(const struct scene *s, const char *name, const char *target)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    assert_int_equal(symlink(target, path), 0);
}

static int scene_init(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    char path[PATH_MAX];

    strcpy(s->dir, "/tmp/pycap-open-XXXXXX");
    if (!mkdtemp(s->dir))
        return -1;
    folder(s, "root");
    folder(s, "root/a");
    folder(s, "root/a/b");
    put(s, "outside", "outside");
    put(s, "root/file", "file");
    put(s, "root/a/b/deep", "deep");
    snprintf(path, sizeof path, "%s/root", s->dir);
    s->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *state = s;
    return s->folder < 0;
}

static int scene_deinit(void **state)
{
    struct scene *s = *state;

    close(s->folder);
    nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
    return 0;
}

static int open_files(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* What is read at the path; "" and errno when it is not opened. Leaves no descriptor open. */
static const char *text_at(int dir, const char *path, enum open_links links)
{
    static char text[64];
    int before = open_files(), fd = open_regular(dir, path, links), why = errno;

    memset(text, 0, sizeof text);
    if (fd >= 0) {
        assert_true(read(fd, text, sizeof text - 1) >= 0);
        close(fd);
    }
    assert_int_equal(open_files(), before);
    errno = why;
    return text;
}

TEST_WITH(paths, scene_init, scene_deinit)
{
    const struct scene *s = *state;
    static const char *const deep[] = {"a/b/deep", "/a/b/deep", "//a/./b//deep", "a/../a/b/../b/deep", "../../a/b/deep",
                                       "a/b/../../../a/b/deep"};
    char longest[PATH_MAX + 16] = "";

    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        assert_string_equal(text_at(s->folder, deep[i], OPEN_NO_LINKS), "deep");
    static const char *const none[] = {"absent", "a/absent", "file/x", "../outside", "/tmp"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_string_equal(text_at(s->folder, none[i], OPEN_FOLLOW), "");
        assert_true(errno == ENOENT || errno == ENOTDIR);
    }
    assert_string_equal(text_at(s->folder, "a", OPEN_FOLLOW), "");
    assert_int_equal(errno, EACCES);
    assert_string_equal(text_at(s->folder, "", OPEN_FOLLOW), "");
    memset(longest, '/', sizeof longest - 1);
    assert_string_equal(text_at(s->folder, longest, OPEN_FOLLOW), "");
    assert_int_equal(errno, ENAMETOOLONG);
    memset(longest, 'x', NAME_MAX + 1);
    longest[NAME_MAX + 1] = 0;
    assert_string_equal(text_at(s->folder, longest, OPEN_FOLLOW), "");
    assert_int_equal(errno, ENAMETOOLONG);
}

TEST_WITH(links, scene_init, scene_deinit)
{
    const struct scene *s = *state;
    char path[PATH_MAX];

    link_to(s, "root/up", "../file");
    link_to(s, "root/a/b/up", "../../file");
    link_to(s, "root/absolute", "/a/b/deep");
    link_to(s, "root/folder", "a/b");
    link_to(s, "root/endless", "endless");
    link_to(s, "root/long", "long/x");
    snprintf(path, sizeof path, "%s/outside", s->dir);
    link_to(s, "root/out", path);
    assert_string_equal(text_at(s->folder, "up", OPEN_FOLLOW), "file"); /* ".." stays in the root */
    assert_string_equal(text_at(s->folder, "a/b/up", OPEN_FOLLOW), "file");
    assert_string_equal(text_at(s->folder, "absolute", OPEN_FOLLOW), "deep");
    assert_string_equal(text_at(s->folder, "folder/deep", OPEN_FOLLOW), "deep");
    assert_string_equal(text_at(s->folder, "folder/../b/up", OPEN_FOLLOW), "file");
    assert_string_equal(text_at(s->folder, "out", OPEN_FOLLOW), "");
    assert_string_equal(text_at(s->folder, "endless", OPEN_FOLLOW), "");
    assert_int_equal(errno, ELOOP);
    assert_string_equal(text_at(s->folder, "long", OPEN_FOLLOW), "");
    static const char *const linked[] = {"up", "folder/deep", "absolute", "a/b/up"};
    for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
        assert_string_equal(text_at(s->folder, linked[i], OPEN_NO_LINKS), "");
        assert_int_equal(errno, ELOOP);
    }
}

/* Links and ".." lead wherever they lead, but not to /dev. */
TEST_WITH(outside, scene_init, scene_deinit)
{
    const struct scene *s = *state;
    char path[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof path, "%s/outside", s->dir);
    link_to(s, "root/out", path);
    link_to(s, "root/up", "../outside");
    link_to(s, "root/dev", "/dev");
    snprintf(path, sizeof path, "%s/root/a", s->dir);
    link_to(s, "root/a/b/round", path);
    static const char *const outside[] = {"out",     "up",              "../outside", "a/b/../../../outside",
                                          "a/../up", "a/b/round/../out"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_string_equal(text_at(s->folder, outside[i], OPEN_OUTSIDE), "outside");
    assert_string_equal(text_at(s->folder, "a/b/round/b/../b/deep", OPEN_OUTSIDE), "deep");
    static const char *const refused[] = {"dev/null", "dev/shm/x", "dev/../dev/null"};
    for (size_t i = 0; !stat("/dev", &st) && i < sizeof refused / sizeof *refused; i++) {
        assert_string_equal(text_at(s->folder, refused[i], OPEN_OUTSIDE), "");
        assert_int_equal(errno, EACCES);
    }
}

/* Where /proc is missing; in a process of its own. 0: good, 2: such a place cannot be made here. */
static int try_without_proc(const struct scene *s)
{
    static const struct {
        const char *path, *text;
        enum open_links links;
    } opened[] = {{"file", "file", OPEN_NO_LINKS},       {"a/b/deep", "deep", OPEN_FOLLOW},
                  {"a/b/up", "file", OPEN_FOLLOW},       {"/absolute", "deep", OPEN_OUTSIDE},
                  {"a/b/up", "file", OPEN_OUTSIDE},      {"a/b/../../file", "file", OPEN_OUTSIDE},
                  {"fifo", "", OPEN_FOLLOW},             {"a", "", OPEN_FOLLOW},
                  {"", "", OPEN_FOLLOW},                 {"a/b/up", "", OPEN_NO_LINKS}};
    char path[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof path, "%s/root", s->dir);
    if (chroot(path) && (unshare(CLONE_NEWUSER) || chroot(path)))
        return 2;
    if (chdir("/") || !lstat("/proc", &st))
        return 1;
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++) {
        if (strcmp(text_at(folder, opened[i].path, opened[i].links), opened[i].text))
            return 1;
    }
    close(folder);
    return 0;
}

TEST_WITH(without_proc, scene_init, scene_deinit)
{
    const struct scene *s = *state;
    char path[PATH_MAX];
    int status;

    link_to(s, "root/a/b/up", "../../file");
    link_to(s, "root/absolute", "/a/b/deep");
    snprintf(path, sizeof path, "%s/root/fifo", s->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t pid = fork();
    if (!pid)
        _exit(try_without_proc(s));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Opening a FIFO for reading lets its writer go on; opening one for writing fails while nobody reads it. */
TEST_WITH(what_is_refused, scene_init, scene_deinit)
{
    const struct scene *s = *state;
    char path[PATH_MAX];
    int root = open("/", O_PATH | O_CLOEXEC);

    snprintf(path, sizeof path, "%s/root/fifo", s->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_string_equal(text_at(s->folder, "fifo", OPEN_FOLLOW), "");
    assert_int_equal(errno, EACCES);
    static const char *const refused[] = {"/proc/self/status", "/proc/self/pagemap", "/sys/kernel/uevent_seqnum",
                                          "/dev/zero", "/dev/null", "/proc/self/root/etc/passwd", "/proc/self/exe"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_string_equal(text_at(root, refused[i], OPEN_FOLLOW), "");
        assert_true(errno == EACCES || errno == ENOENT);
    }
    link_to(s, "root/endless", "/proc/self/pagemap");
    snprintf(path, sizeof path, "%s/root/endless", s->dir);
    assert_string_equal(text_at(root, path, OPEN_FOLLOW), "");
    assert_int_equal(errno, EACCES);
    close(root);
    assert_int_equal(open_regular_reopen(-1), -1);
    assert_int_equal(open_regular_reopen(open("/dev/zero", O_PATH | O_CLOEXEC)), -1);
    int exe = open_regular_reopen(open("/proc/self/exe", O_PATH | O_CLOEXEC)); /* the file, not the link */
    assert_true(exe >= 0);
    close(exe);
}

/* Folders that their owner, their group or everybody may search, asked for by users who are none of us. */
TEST_WITH(whose_folders, scene_init, scene_deinit)
{
    const struct scene *s = *state;
    struct stat st;
    char path[PATH_MAX];
    static const struct {
        mode_t mode;
        bool owner, group, others;
    } cases[] = {{0700, true, false, false}, {0010, true, true, false}, {0001, true, false, true}, {0755, true, true, true}};

    assert_int_equal(fstat(s->folder, &st), 0);
    const uint32_t groups[] = {st.st_gid + 5, st.st_gid};
    const struct open_user owner = {st.st_uid + !st.st_uid, NULL, 0}, group = {st.st_uid + 7, groups, 2},
                           others = {st.st_uid + 7, groups, 1}, nobody = {OPEN_NO_USER, NULL, 0};
    snprintf(path, sizeof path, "%s/root/a", s->dir);
    if (!st.st_uid && chown(path, owner.user, st.st_gid))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct {
            const struct open_user *user;
            bool may;
        } users[] = {{&owner, cases[i].owner}, {&group, cases[i].group}, {&others, cases[i].others}, {&nobody, cases[i].others},
                     {&(struct open_user){0}, true}};
        assert_int_equal(chmod(path, cases[i].mode | (st.st_uid ? 0100 : 0)), 0);
        for (size_t k = 0; k < sizeof users / sizeof *users; k++) {
            int fd = open_path_of(s->folder, "a/b/deep", OPEN_FOLLOW, users[k].user);
            if ((fd >= 0) != users[k].may)
                fail_msg("mode %o, user %zu", (unsigned)cases[i].mode, k);
            if (fd < 0)
                assert_int_equal(errno, EACCES);
            else
                close(fd);
        }
    }
    assert_int_equal(chmod(path, 0700), 0);
}

/* ---- a process's own files ---- */

static uint32_t own_user(void)
{
    uint32_t user = OWN_FILE_NO_USER;

    assert_true(own_file_user(getpid(), &user));
    return user;
}

static bool opens(const char *name, uint32_t user)
{
    int fd = own_file_open(0, name, user);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

TEST(own_file)
{
    char path[64], other[64];
    struct stat st;
    uint32_t user = own_user();

    if (user == OWN_FILE_NO_USER || lstat("/tmp", &st) || !S_ISDIR(st.st_mode))
        skip();
    strcpy(path, "/tmp/pycap-own-XXXXXX");
    int fd = mkstemp(path);
    const char *name = path + strlen("/tmp/");
    snprintf(other, sizeof other, "%s.link", path);
    assert_true(fd >= 0);
    assert_int_equal(user, getuid());
    assert_true(opens(name, user));
    assert_false(opens(name, user + 1)); /* another user's */
    assert_false(opens(name, OWN_FILE_NO_USER));
    assert_int_equal(link(path, other), 0); /* has a second link */
    assert_false(opens(name, user));
    assert_int_equal(unlink(other), 0);
    assert_int_equal(symlink(path, other), 0);
    assert_false(opens(other + strlen("/tmp/"), user));
    assert_int_equal(unlink(other), 0);
    assert_true(opens(name, user));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(own_file_is_of(&st, user));
    close(fd);
}

/* Tries it in a mount namespace of its own. */
static void try_mounts(const char *name, const char *path, uint32_t user, char got[4])
{
    char kept[80];

    snprintf(kept, sizeof kept, "%s.kept", path);
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount(kept, path, NULL, MS_BIND, NULL))
        return;
    got[1] = opens(name, user);
    if (umount(path))
        return;
    got[2] = opens(name, user);
    /* A /tmp of its own, as containers have. */
    if (mount("tmp", "/tmp", "tmpfs", 0, NULL))
        return;
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    got[3] = fd >= 0 && opens(name, user);
    got[0] = 1;
}

/* Another file that is bound over it is not the process's, not even if it has the same owner. */
TEST(mounted_over)
{
    char path[64], kept[80], got[4] = {0};
    uint32_t user = own_user();
    int answer[2], status;
    struct stat st;

    if (user == OWN_FILE_NO_USER || lstat("/tmp", &st) || !S_ISDIR(st.st_mode))
        skip();
    strcpy(path, "/tmp/pycap-own-XXXXXX");
    int fd = mkstemp(path);
    snprintf(kept, sizeof kept, "%s.kept", path);
    int other = open(kept, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && other >= 0 && !pipe(answer));
    pid_t pid = fork();
    if (!pid) {
        try_mounts(path + strlen("/tmp/"), path, user, got);
        _exit(write(answer[1], got, sizeof got) != sizeof got);
    }
    assert_int_equal(read(answer[0], got, sizeof got), sizeof got);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(answer[0]);
    close(answer[1]);
    close(fd);
    close(other);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(kept), 0);
    if (!got[0])
        skip();
    assert_false(got[1]);
    assert_true(got[2]);
    assert_true(got[3]);
}

/* A process whose user ids differ acts for nobody. */
TEST(changed_user)
{
    int ready[2], hold[2];
    uint32_t user = 0;
    char byte = 0;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(hold), 0);
    pid_t pid = fork();
    if (!pid) {
        close(hold[1]);
        byte = !setresuid(-1, 4242, -1);
        byte = write(ready[1], &byte, 1) == 1 && read(hold[0], &byte, 1) > 0;
        _exit(0);
    }
    close(hold[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    bool known = own_file_user(pid, &user);
    close(hold[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ready[0]);
    close(ready[1]);
    assert_false(own_file_user(pid, &user));
    if (!byte)
        skip();
    assert_true(known);
    assert_int_equal(user, OWN_FILE_NO_USER);
}
