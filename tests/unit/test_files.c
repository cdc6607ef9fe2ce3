/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a capture: names, rotation, what is kept, what earlier runs left. */
#include "tests/unit/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/output/file_rights.h"
#include "capture/output/files.h"
#include "formats/base/output_place.h"
#include "formats/trace/block.h"

TEST(names)
{
    char pid[32];
    char *name = files_name("/var/%h-%t-%p%%.bin", "box", 1767225599 * UINT64_C(1000000000) + 999999999);

    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    char expected[128];
    snprintf(expected, sizeof expected, "/var/box-20251231T235959.999Z-%s%%.bin", pid);
    assert_string_equal(name, expected);
    free(name);
}

static void refused(const char *pattern, bool rotates, const char *word)
{
    struct error *err = files_check(pattern, rotates);

    assert_non_null(err);
    assert_int_equal(err->code, ERROR_USAGE);
    assert_non_null(strstr(error_text(err), word));
    error_destroy(err);
}

TEST(patterns)
{
    OK(files_check("trace.bin", false));
    OK(files_check("trace-%t.bin", true));
    OK(files_check("100%%.bin", false));
    OK(files_check("-", false));
    refused("trace.bin", true, "%t");
    refused("trace-%h-%%t.bin", true, "%t");
    refused("-", true, "standard output");
    refused("%q.bin", false, "%q");
    refused("trace%", false, "not known");
}

/* By time, whatever a locale thinks of punctuation, and of digits beside letters: all as long, digits in the same places. */
TEST(names_sort)
{
    const uint64_t s = UINT64_C(1000000000);
    const uint64_t times[] = {0, 1, 999999, 1000000, 9000000, 10000000, 999 * UINT64_C(1000000), s, 10 * s, 1767225599 * s,
                              1767225599 * s + s / 10, 1767225600 * s, 4102444800 * s};
    char before[FILES_TIME_BYTES] = "", text[FILES_TIME_BYTES];

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        files_time(times[i], text);
        assert_int_equal(strlen(text), strlen("20260131T235959.123Z"));
        for (size_t k = 0; text[k]; k++)
            assert_int_equal(text[k] >= '0' && text[k] <= '9', "00000000T000000.000Z"[k] == '0');
        assert_true(i && times[i] / 1000000 == times[i - 1] / 1000000 ? !strcmp(before, text) : strcmp(before, text) < 0);
        memcpy(before, text, sizeof before);
    }
}

/* Files of one moment get names of their own, which sort; only the newest stay; none is readable by others. */
TEST(rotation)
{
    char dir[] = "/tmp/test_files.XXXXXX", pattern[64], *paths[4];
    struct files f;
    struct stat st;

    assert_non_null(mkdtemp(dir));
    snprintf(pattern, sizeof pattern, "%s/a.b/%%t.bin", dir);
    char sub[64];
    snprintf(sub, sizeof sub, "%s/a.b", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    files_init(&f, &(struct files_options){.pattern = pattern, .hostname = "h", .rotates = true, .keep = 2});
    for (int i = 0; i < 4; i++) {
        OK(files_open(&f));
        paths[i] = strdup(f.path);
        assert_int_equal(fstat(f.fd, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        for (int k = i < 2 ? 0 : i - 2; k < i; k++) /* those that are there */
            assert_true(strcmp(paths[i], paths[k]) > 0);
        OK(files_close(&f));
    }
    DIR *d = opendir(sub);
    int left = 0;
    for (struct dirent *e; (e = readdir(d));)
        left += e->d_name[0] != '.';
    closedir(d);
    assert_int_equal(left, 2);
    assert_int_equal(access(paths[2], F_OK), 0);
    assert_int_equal(access(paths[3], F_OK), 0);
    for (int i = 0; i < 4; i++) {
        unlink(paths[i]);
        free(paths[i]);
    }
    files_deinit(&f);
    rmdir(sub);
    rmdir(dir);
}

static void matches(const char *pattern, const char *name, const char *expected)
{
    char time[FILES_TIME_BYTES];
    bool match = files_match(pattern, "box", name, time);

    if (match != !!expected || (match && strcmp(time, expected)))
        fail_msg("%s is %sone of %s", name, match ? "" : "not ", pattern);
}

/* Only names that the program itself would have made of the pattern. */
TEST(matches)
{
    const char *time = "20251231T235959.007Z", *moment = "20251231T235959.007Z.bin";

    matches("%t.bin", moment, time);
    matches("%h-%t.bin", "box-20251231T235959.007Z.bin", time);
    matches("%h-%t.bin", "fox-20251231T235959.007Z.bin", NULL);
    matches("%t-%p.bin", "20251231T235959.007Z-1.bin", time);
    matches("%p-%t.bin", "4194304-20251231T235959.007Z.bin", time);
    matches("%p%t", "1220251231T235959.007Z", time);
    matches("%p%p-%t", "7878-20251231T235959.007Z", time);
    matches("%p%p-%t", "7879-20251231T235959.007Z", NULL);
    matches("%p%%-%t", "78%-20251231T235959.007Z", time);
    matches("%t%t", "20251231T235959.007Z20251231T235959.007Z", time);
    matches("%t%t", "20251231T235959.007Z20251231T235959.008Z", NULL);
    matches("%p-%t", "-20251231T235959.007Z", NULL);
    matches("%p-%t", "0-20251231T235959.007Z", NULL);
    matches("%p-%t", "07-20251231T235959.007Z", NULL);
    matches("%p-%t", "+7-20251231T235959.007Z", NULL);
    matches("%p-%t", "12345678901-20251231T235959.007Z", NULL);
    matches("%p", "7", NULL);
    matches("%t.bin", "20251231T235959.007Z.bin.gz", NULL);
    matches("%t.bin", "20251231T235959.007Z.bi", NULL);
    matches("%t.bin", "a20251231T235959.007Z.bin", NULL);
    matches("%t", "", NULL);
    matches("%t", "20251231T235959.007", NULL);
    matches("%t", "20251231T235959Z", NULL);
    matches("%t.bin", "20251331T235959.007Z.bin", NULL);
    matches("%t.bin", "20250229T235959.007Z.bin", NULL);
    matches("%t.bin", "20240229T235959.007Z.bin", "20240229T235959.007Z");
    matches("%t.bin", "20251231T235960.007Z.bin", NULL);
    matches("%t.bin", "20251231T235959. 07Z.bin", NULL);
    matches("%t.bin", "20251231T235959.+07Z.bin", NULL);
    matches("%t.bin", "20251231t235959.007z.bin", NULL);
}

struct folder {
    char path[64], pattern[128];
};

static void make_folder(struct folder *f, const char *name)
{
    strcpy(f->path, "/tmp/test_files.XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->pattern, sizeof f->pattern, "%s/%s", f->path, name);
}

static char *in_folder(const struct folder *f, const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", f->path, name);
    return path;
}

static void put(const struct folder *f, const char *name, const char *text)
{
    FILE *file = fopen(in_folder(f, name), "we");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static bool is_there(const struct folder *f, const char *name)
{
    struct stat st;

    return !lstat(in_folder(f, name), &st);
}

/* Removes what the test put there and still is there, and the folder. */
static void remove_folder(const struct folder *f)
{
    DIR *d = opendir(f->path);

    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            assert_int_equal(remove(in_folder(f, e->d_name)), 0);
    }
    closedir(d);
    assert_int_equal(rmdir(f->path), 0);
}

#define TRACE TRACE_FILE_MAGIC "and so on"

/* What earlier runs left counts, the oldest by its name goes first; what only looks like it is left alone. */
TEST(adopts)
{
    static const char *const others[] = {
        "h-7-20000101T000000.000Z.bin.gz", "h-x-20000101T000000.000Z.bin", "g-7-20000101T000000.000Z.bin",
        "h-7-20000101T000000Z.bin", "h-7-20001301T000000.000Z.bin", "trace.bin"};
    struct files f;
    struct folder folder;

    make_folder(&folder, "%h-%p-%t.bin");
    /* The names sort by pid first: it is the time that counts. */
    put(&folder, "h-9-20010101T000000.000Z.bin", TRACE);
    put(&folder, "h-8-20010101T000000.001Z.bin", TRACE);
    put(&folder, "h-10-20020101T000000.000Z.bin", TRACE);
    put(&folder, "h-7-20030101T000000.000Z.bin", TRACE);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        put(&folder, others[i], TRACE);
    put(&folder, "h-7-19990101T000000.000Z.bin", "no trace");
    put(&folder, "h-7-19990101T000000.001Z.bin", "");
    assert_int_equal(symlink("h-7-20030101T000000.000Z.bin", in_folder(&folder, "h-7-19990101T000000.002Z.bin")), 0);
    assert_int_equal(mkdir(in_folder(&folder, "h-7-19990101T000000.003Z.bin"), 0700), 0);
    assert_int_equal(mkfifo(in_folder(&folder, "h-7-19990101T000000.004Z.bin"), 0600), 0);

    files_init(&f, &(struct files_options){.pattern = folder.pattern, .hostname = "h", .rotates = true, .keep = 3});
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 3); /* also where no file is ever ended, as in a run that fails again and again */
    assert_false(is_there(&folder, "h-9-20010101T000000.000Z.bin"));
    assert_true(is_there(&folder, "h-8-20010101T000000.001Z.bin"));
    OK(files_open(&f));
    assert_true(is_there(&folder, "h-8-20010101T000000.001Z.bin"));
    OK(files_close(&f));
    assert_false(is_there(&folder, "h-8-20010101T000000.001Z.bin"));
    assert_true(is_there(&folder, "h-10-20020101T000000.000Z.bin"));
    /* It is another file by now. */
    put(&folder, "h-10-20020101T000000.000Z.bin", "not ours");
    OK(files_open(&f));
    OK(files_close(&f));
    assert_true(is_there(&folder, "h-10-20020101T000000.000Z.bin"));
    assert_true(is_there(&folder, "h-7-20030101T000000.000Z.bin"));
    OK(files_open(&f));
    OK(files_close(&f));
    assert_false(is_there(&folder, "h-7-20030101T000000.000Z.bin"));
    assert_int_equal(f.written.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(access(f.written.data[i], F_OK), 0);
    files_deinit(&f);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(is_there(&folder, others[i]));
    for (int i = 0; i < 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "h-7-19990101T000000.%03dZ.bin", i);
        assert_true(is_there(&folder, name));
    }
    remove_folder(&folder);
}

/* Another capture writes files of that pattern: nobody knows whose the others are. */
TEST(adopts_nothing_beside_another)
{
    struct files other, f;
    struct folder folder;

    make_folder(&folder, "%t.bin");
    put(&folder, "20010101T000000.000Z.bin", TRACE);
    put(&folder, "20010101T000001.000Z.bin", TRACE);
    const struct files_options options = {.pattern = folder.pattern, .hostname = "h", .rotates = true, .keep = 1};
    files_init(&other, &options);
    OK(files_open(&other));
    assert_int_equal(write(other.fd, TRACE, strlen(TRACE)), strlen(TRACE));
    files_init(&f, &options);
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 0);
    assert_true(is_there(&folder, "20010101T000000.000Z.bin"));
    files_deinit(&f);
    OK(files_close(&other));
    files_deinit(&other);
    files_init(&f, &options);
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 1);
    assert_false(is_there(&folder, "20010101T000001.000Z.bin"));
    files_deinit(&f);
    remove_folder(&folder);
}

/* Files of others are not ours to remove: the owner is who would get a new one. */
TEST(adopts_own_files_only)
{
    struct files f;
    struct folder folder;

    if (geteuid())
        skip(); /* only root gives files away */
    make_folder(&folder, "%t.bin");
    put(&folder, "20010101T000000.000Z.bin", TRACE);
    put(&folder, "20010101T000001.000Z.bin", TRACE);
    put(&folder, "20010101T000002.000Z.bin", TRACE);
    assert_int_equal(chown(in_folder(&folder, "20010101T000000.000Z.bin"), 12345, 12345), 0);
    const struct files_options options = {.pattern = folder.pattern, .hostname = "h", .rotates = true, .keep = 1};
    files_init(&f, &options);
    unsetenv("SUDO_UID");
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 1);
    assert_true(is_there(&folder, "20010101T000000.000Z.bin"));
    assert_false(is_there(&folder, "20010101T000001.000Z.bin"));
    files_deinit(&f);
    setenv("SUDO_UID", "12345", 1);
    setenv("SUDO_GID", "12345", 1);
    files_init(&f, &options);
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 1);
    assert_string_equal(f.written.data[0], in_folder(&folder, "20010101T000000.000Z.bin"));
    files_deinit(&f);
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
    remove_folder(&folder);
}

/* Without --keep, and where each file has a folder of its own, nothing is looked for. */
TEST(adopts_when_asked)
{
    struct files f;
    struct folder folder;
    char pattern[160];

    make_folder(&folder, "%t.bin");
    put(&folder, "20010101T000000.000Z.bin", TRACE);
    files_init(&f, &(struct files_options){.pattern = folder.pattern, .hostname = "h", .rotates = true});
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 0);
    snprintf(pattern, sizeof pattern, "%s/%%p/%%t.bin", folder.path);
    files_init(&f, &(struct files_options){.pattern = pattern, .hostname = "h", .rotates = true, .keep = 1});
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 0);
    files_init(&f, &(struct files_options){.pattern = "/nowhere/%t.bin", .hostname = "h", .rotates = true, .keep = 1});
    OK(files_adopt(&f));
    assert_int_equal(f.written.count, 0);
    remove_folder(&folder);
}

/* Opens `path` without rotation; the error's text holds `word`, or there is none where `word` is NULL. */
static void opens(const char *path, const char *word)
{
    struct files f;

    files_init(&f, &(struct files_options){.pattern = path, .hostname = "h"});
    struct error *err = files_open(&f);
    if (!!err != !!word || (err && !strstr(error_text(err), word)))
        fail_msg("%s: %s", path, err ? error_text(err) : "opened");
    if (!err)
        assert_int_equal(write(f.fd, "new", 3), 3);
    error_destroy(err);
    files_deinit(&f);
}

static void holds(const struct folder *folder, const char *name, const char *expected)
{
    char text[16] = "";
    FILE *file = fopen(in_folder(folder, name), "re");

    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, expected);
}

/* What somebody else may have put at the output's name is not written to, and stays as it was. */
TEST(not_through_links)
{
    struct folder folder;
    char target[128];

    make_folder(&folder, "");
    put(&folder, "target", "before");
    strcpy(target, in_folder(&folder, "target"));
    assert_int_equal(symlink("target", in_folder(&folder, "link")), 0);
    assert_int_equal(symlink("nowhere", in_folder(&folder, "dangling")), 0);
    opens(in_folder(&folder, "link"), "symbolic link");
    opens(in_folder(&folder, "dangling"), "symbolic link");
    assert_false(is_there(&folder, "nowhere"));
    assert_int_equal(link(target, in_folder(&folder, "second")), 0);
    opens(in_folder(&folder, "second"), "hard link");
    holds(&folder, "target", "before");
    assert_int_equal(unlink(in_folder(&folder, "second")), 0);
    if (!geteuid()) {
        assert_int_equal(chown(target, 12345, 12345), 0);
        opens(target, "another user");
        assert_int_equal(mkfifo(in_folder(&folder, "pipe"), 0666), 0);
        assert_int_equal(chown(in_folder(&folder, "pipe"), 12345, 12345), 0);
        opens(in_folder(&folder, "pipe"), "another user");
        holds(&folder, "target", "before");
        /* A folder of the path may be a link, but not another user's in a folder like /tmp. */
        struct files f;
        char inside[160], pattern[160];
        assert_int_equal(symlink(".", in_folder(&folder, "way")), 0);
        snprintf(inside, sizeof inside, "%s/way/new", folder.path);
        snprintf(pattern, sizeof pattern, "%s/way/%%t.bin", folder.path);
        opens(inside, NULL);
        assert_int_equal(lchown(in_folder(&folder, "way"), 12345, 12345), 0);
        opens(inside, NULL);
        assert_int_equal(chmod(folder.path, 01777), 0);
        opens(inside, "a symbolic link that another user may have put there");
        files_init(&f, &(struct files_options){.pattern = pattern, .hostname = "h", .rotates = true});
        struct error *err = files_open(&f);
        assert_non_null(err);
        error_destroy(err);
        files_deinit(&f);
        /* The user who called sudo may have the trace anyway. */
        setenv("SUDO_UID", "12345", 1);
        setenv("SUDO_GID", "12345", 1);
        opens(target, NULL);
        unsetenv("SUDO_UID");
        unsetenv("SUDO_GID");
        holds(&folder, "target", "new");
    }
    remove_folder(&folder);
}

/* An own file is overwritten. Who has opened one that he could read does not read the new trace. */
TEST(overwrites_own)
{
    struct folder folder;
    struct stat st;
    char text[8] = "";

    make_folder(&folder, "");
    put(&folder, "own", "before");
    assert_int_equal(chmod(in_folder(&folder, "own"), 0644), 0);
    FILE *reader = fopen(in_folder(&folder, "own"), "re");
    assert_non_null(reader);
    opens(in_folder(&folder, "own"), NULL);
    assert_int_equal(fread(text, 1, 6, reader), 6);
    fclose(reader);
    assert_string_equal(text, "before");
    holds(&folder, "own", "new");
    assert_int_equal(stat(in_folder(&folder, "own"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    ino_t inode = st.st_ino;
    opens(in_folder(&folder, "own"), NULL);
    holds(&folder, "own", "new");
    assert_int_equal(stat(in_folder(&folder, "own"), &st), 0);
    assert_int_equal(st.st_ino, inode);
    opens("/dev/null", NULL);
    remove_folder(&folder);
}

static void expect_rights(const struct folder *folder, const char *name, const gid_t *group, mode_t mode)
{
    struct files f;
    struct stat st;

    put(folder, name, "before");
    files_init(&f, &(struct files_options){.pattern = in_folder(folder, name), .hostname = "h", .group = group});
    OK(files_open(&f));
    assert_int_equal(fstat(f.fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, mode);
    assert_int_equal(st.st_gid, group ? *group : getegid());
    assert_int_equal(st.st_uid, geteuid());
    OK(files_close(&f));
    files_deinit(&f);
}

/* A group may read the files, and nobody else; without one nobody but the owner may. */
TEST(group)
{
    const gid_t own = getegid(), other = 12345;
    struct folder folder;
    gid_t found = 1;

    make_folder(&folder, "");
    expect_rights(&folder, "a", NULL, 0600);
    expect_rights(&folder, "a", &own, 0640);
    expect_rights(&folder, "a", NULL, 0600);
    if (!geteuid())
        expect_rights(&folder, "b", &other, 0640);
    remove_folder(&folder);

    char text[24];
    snprintf(text, sizeof text, "%u", (unsigned)own);
    OK(file_rights_find_group(text, &found));
    assert_int_equal(found, own);
    if (!geteuid()) {
        OK(file_rights_find_group("root", &found));
        assert_int_equal(found, 0);
        OK(file_rights_find_group("12345", &found));
        assert_int_equal(found, other);
    }
}

TEST(no_group)
{
    static const char *const wrong[] = {"", "no-such-group", "-1", "4294967295", "4294967296", "99999999999999999999", "12x", "root:"};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gid_t found;
        struct error *err = file_rights_find_group(wrong[i], &found);
        assert_non_null(err);
        assert_int_equal(err->code, ERROR_USAGE);
        assert_non_null(strstr(error_text(err), wrong[i]));
        error_destroy(err);
    }
}

TEST(descriptors)
{
    assert_int_equal(output_descriptor("/dev/stdout"), 1);
    assert_int_equal(output_descriptor("/dev/fd/12"), 12);
    assert_int_equal(output_descriptor("/proc/self/fd/2"), 2);
    assert_int_equal(output_descriptor("/dev/fd/"), -1);
    assert_int_equal(output_descriptor("/dev/fd"), -1);
    assert_int_equal(output_descriptor("/dev/fd/1x"), -1);
    assert_int_equal(output_descriptor("/dev/fd/123456789"), -1);
    assert_int_equal(output_descriptor("/dev/null"), -1);
}

TEST(no_folder)
{
    struct files f;

    files_init(&f, &(struct files_options){.pattern = "/nowhere/at/all.bin", .hostname = "h"});
    struct error *err = files_open(&f);
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), "/nowhere/at/all.bin"));
    error_destroy(err);
    files_deinit(&f);
}
