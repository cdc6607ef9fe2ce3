/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one output: all of them appear or none, nothing that stands there leads them astray, and they share a limit. */
#include "tests/unit/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/output_files.h"
#include "tests/unit/folder_fixture.h"

static char path_of[512];
static const char *at(const struct fixture *f, const char *name)
{
    snprintf(path_of, sizeof path_of, "%s/%s", f->dir, name);
    return path_of;
}

static struct output_files *open_at(const char *path, uint64_t max_bytes)
{
    struct output_files *s;

    OK(output_files_open(&(struct output_files_options){.path = path, .max_bytes = max_bytes}, &s));
    return s;
}

/* Creates a file beside the output, with a text. */
static void put(struct output_files *s, const char *path, const char *text)
{
    struct emit_files *files = output_files_beside(s);
    FILE *file;

    OK(files->create(files, path, &file));
    assert_true(fputs(text, file) >= 0);
}

static void refuses(struct output_files *s, const char *path, const char *says)
{
    struct emit_files *files = output_files_beside(s);
    FILE *file;
    struct error *err = files->create(files, path, &file);

    assert_non_null(err);
    if (!strstr(error_text(err), says))
        fail_msg("%s", error_text(err));
    error_destroy(err);
}

/* What is below the folder, a line each: names, of files with their contents, of links with their targets. */
static void assert_tree(struct fixture *f, const char *expected)
{
    char text[4096] = "";
    char command[1024];

    snprintf(command, sizeof command,
             "cd %s && find . -mindepth 1 | LC_ALL=C sort | while read -r p; do if [ -L \"$p\" ]; then echo \"$p -> $(readlink \"$p\")\"; "
             "elif [ -d \"$p\" ]; then echo \"$p/\"; else echo \"$p $(cat \"$p\")\"; fi; done", f->dir);
    FILE *pipe = popen(command, "r");
    size_t n = fread(text, 1, sizeof text - 1, pipe);
    text[n] = 0;
    pclose(pipe);
    assert_string_equal(text, expected);
}

TEST_WITH(together, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char out[512];

    snprintf(out, sizeof out, "%s", at(f, "x.data"));
    struct output_files *s = open_at(out, 1000);
    struct emit_files *files = output_files_beside(s);
    assert_string_equal(files->name, "x.data");
    assert_true(files->folder[0] == '/' && files->folder[strlen(files->folder) - 1] == '/');
    fputs("first", output_files_first(s));
    put(s, "x.data.d/a/b", "beside");
    OK(files->link(files, "x.data.d/l", "a/b"));
    refuses(s, "x.data.d/a/b", "x.data.d/a/b: would be two outputs");
    refuses(s, "x.data", "would be two outputs");
    OK(output_files_finish(s, NULL));
    output_files_destroy(s);
    assert_tree(f, "./x.data first\n./x.data.d/\n./x.data.d/a/\n./x.data.d/a/b beside\n./x.data.d/l -> a/b\n");

    /* Again: what is written again is replaced, links too, and what somebody else has put there stays. */
    assert_true(fixture_run(f, "touch x.data.d/mine && chmod 640 x.data.d/a/b"));
    s = open_at(out, 1000);
    files = output_files_beside(s);
    put(s, "x.data.d/a/b", "new");
    OK(files->link(files, "x.data.d/l", "mine"));
    OK(output_files_finish(s, NULL));
    output_files_destroy(s);
    assert_tree(f, "./x.data \n./x.data.d/\n./x.data.d/a/\n./x.data.d/a/b new\n./x.data.d/l -> mine\n./x.data.d/mine \n");
    struct stat st;
    assert_int_equal(stat(at(f, "x.data.d/a/b"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

TEST_WITH(none, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char out[512];

    snprintf(out, sizeof out, "%s", at(f, "x"));
    assert_true(fixture_run(f, "mkdir old && echo before >old/file"));

    /* After an error nothing is there, nor are the folders. */
    struct output_files *s = open_at(out, 1000);
    put(s, "d/e/file", "text");
    put(s, "old/file", "text");
    struct error *err = output_files_finish(s, error_create(ERROR_FORMAT, "damaged"));
    assert_string_equal(error_text(err), "damaged");
    error_destroy(err);
    output_files_destroy(s);
    assert_tree(f, "./old/\n./old/file before\n");

    /* When one cannot get its name the others lose theirs again, and what was there comes back. */
    s = open_at(out, 1000);
    put(s, "d/e/file", "text");
    put(s, "old/file", "text");
    assert_true(fixture_run(f, "rm x.*"));
    err = output_files_finish(s, NULL);
    assert_non_null(strstr(error_text(err), "could not be renamed"));
    error_destroy(err);
    output_files_destroy(s);
    assert_tree(f, "./old/\n./old/file before\n");

    /* Somebody puts a folder in the place of one. */
    s = open_at(out, 1000);
    put(s, "first", "text");
    put(s, "second", "text");
    assert_true(fixture_run(f, "mkdir second"));
    err = output_files_finish(s, NULL);
    assert_non_null(strstr(error_text(err), "second"));
    error_destroy(err);
    output_files_destroy(s);
    assert_tree(f, "./old/\n./old/file before\n./second/\n");
}

TEST_WITH(places, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char out[512];
    struct stat input;

    snprintf(out, sizeof out, "%s", at(f, "x"));
    assert_true(fixture_run(f, "mkdir victim d pipes && echo v >victim/file && ln -s victim way && ln -s ../victim/file d/link && "
                               "ln victim/file d/hard && mkfifo pipes/p && echo trace >trace.bin"));
    assert_int_equal(stat(at(f, "trace.bin"), &input), 0);
    struct output_files *s;
    OK(output_files_open(&(struct output_files_options){.path = out, .max_bytes = 99, .inputs = &input, .input_count = 1}, &s));
    refuses(s, "way/new", "way: stands where the output needs a folder");
    refuses(s, "trace.bin/new", "trace.bin: stands where the output needs a folder");
    refuses(s, "d/link", "is a symbolic link");
    refuses(s, "d/hard", "hard link");
    refuses(s, "d", "");
    refuses(s, "pipes/p", "is a pipe or a device");
    refuses(s, "trace.bin", "is an input");
    static const char *const odd[] = {"", "/etc/x", "../x", "a/../b", ".", "a//b", "a/", "./a"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        refuses(s, odd[i], "cannot be the name");
    char longer[300];
    memset(longer, 'a', sizeof longer);
    longer[256] = 0;
    refuses(s, longer, "cannot be the name");
    longer[255] = 0;
    put(s, longer, "the longest");
    OK(output_files_finish(s, NULL));
    output_files_destroy(s);
    assert_true(fixture_run(f, "[ \"$(cat victim/file)\" = v ] && [ ! -e victim/new ] && [ \"$(cat a*)\" = 'the longest' ]"));

    /* Files are not beside a pipe, nor beside standard output. */
    s = open_at("/dev/null", 99);
    assert_null(output_files_beside(s));
    OK(output_files_finish(s, NULL));
    output_files_destroy(s);
}

/* Many files at a time, with few descriptors; and the start of one that is written last. */
TEST_WITH(many, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct rlimit before, few;
    enum { FILES = 200 };
    FILE *open[FILES];
    char name[32], out[512];
    snprintf(out, sizeof out, "%s", at(f, "x"));
    struct output_files *s = open_at(out, UINT64_MAX);
    struct emit_files *files = output_files_beside(s);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "d%d/f%d", i % 3, i);
        OK(files->create(files, name, &open[i]));
        fprintf(open[i], "????");
        assert_int_equal(fflush(open[i]), 0);
    }
    for (int i = FILES - 1; i >= 0; i--)
        fprintf(open[i], " of %d", i);
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(fseeko(open[i], 0, SEEK_SET), 0);
        fprintf(open[i], "%4d", i);
        assert_int_equal(fseeko(open[i], 1, SEEK_END), -1);
        assert_int_equal(fseeko(open[i], 0, SEEK_END), 0);
        assert_true(ftello(open[i]) > 8);
        fputc('\n', open[i]);
    }
    OK(output_files_finish(s, NULL));
    output_files_destroy(s);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(fixture_run(f, "[ \"$(cat d*/f* | wc -l)\" = 200 ] && [ \"$(cat d1/f199)\" = ' 199 of 199' ] && [ \"$(ls -A | wc -l)\" = 4 ]"));
}

TEST_WITH(limit, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char out[512];

    snprintf(out, sizeof out, "%s", at(f, "x"));
    /* Exactly the limit; what is written again counts once. */
    struct output_files *s;
    OK(output_files_open(&(struct output_files_options){.path = out, .max_bytes = 10, .binary = true}, &s));
    put(s, "y", "12345");
    FILE *first = output_files_first(s);
    fputs("abcde", first);
    assert_int_equal(fseeko(first, 0, SEEK_SET), 0);
    fputs("ABC", first);
    OK(output_files_finish(s, NULL));
    output_files_destroy(s);
    assert_tree(f, "./x ABCde\n./y 12345\n");
    /* One byte more, in all files together: nothing changes. */
    s = open_at(out, 10);
    put(s, "y", "123456");
    fputs("abcde", output_files_first(s));
    struct error *err = output_files_finish(s, NULL);
    assert_int_equal(err->code, ERROR_LIMIT);
    assert_non_null(strstr(error_text(err), "--max-output"));
    error_destroy(err);
    output_files_destroy(s);
    assert_tree(f, "./x ABCde\n./y 12345\n");
}

/* On a pipe the part up to the limit is seen: of a text whole lines. */
TEST_WITH(cut, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    static const char *const expected[] = {"one\n", "one\ntw"};
    char text[64], fd_path[32];

    (void)f;
    for (int binary = 0; binary < 2; binary++) {
        int ends[2];
        struct output_files *s;
        assert_int_equal(pipe(ends), 0);
        snprintf(fd_path, sizeof fd_path, "/dev/fd/%d", ends[1]);
        OK(output_files_open(&(struct output_files_options){.path = fd_path, .max_bytes = 6, .binary = binary}, &s));
        assert_null(output_files_beside(s));
        FILE *out = output_files_first(s);
        assert_int_equal(fseeko(out, 0, SEEK_SET), -1);
        fputs("one\ntwo\nthree\n", out);
        struct error *err = output_files_finish(s, NULL);
        assert_int_equal(err->code, ERROR_LIMIT);
        error_destroy(err);
        output_files_destroy(s);
        close(ends[1]);
        ssize_t n = read(ends[0], text, sizeof text - 1);
        close(ends[0]);
        assert_true(n >= 0);
        text[n] = 0;
        assert_string_equal(text, expected[binary]);
    }
}

/* A file that cannot be written is named, also when its writer has not said which it was. */
TEST_WITH(blame, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct rlimit before, small;
    char out[512];

    snprintf(out, sizeof out, "%s", at(f, "x"));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 3;
    signal(SIGXFSZ, SIG_IGN);
    for (int said = 0; said < 2; said++) {
        struct output_files *s = open_at(out, 1000);
        put(s, "d/y", "12345");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        struct error *err = output_files_finish(s, said ? error_os(EFBIG, "cannot write the profile") : NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_non_null(err);
        if (!strstr(error_text(err), "/d/y: "))
            fail_msg("%s", error_text(err));
        error_destroy(err);
        output_files_destroy(s);
    }
    assert_tree(f, "");
}

/* What a signal's handler removes, while a file is being written. */
TEST_WITH(signal, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char out[512];

    snprintf(out, sizeof out, "%s", at(f, "x"));
    struct output_files *s = open_at(out, 1000);
    put(s, "d/e/y", "text");
    OK(output_files_beside(s)->link(output_files_beside(s), "l", "d"));
    fflush(NULL);
    output_files_remove(s);
    assert_tree(f, "");
    output_files_destroy(s);
}
