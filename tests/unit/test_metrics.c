/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as Prometheus reads them: the text, what a parser of its own makes of it, and the file, which is always whole. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/base/metrics.h"
#include "formats/base/replacement.h"
#include "tests/unit/folder_fixture.h"

static char path_of[128];
static const char *at(const struct fixture *f, const char *name)
{
    snprintf(path_of, sizeof path_of, "%s/%s", f->dir, name);
    return path_of;
}

/* What a command prints, without the last line end. */
static const char *printed(const char *command)
{
    static char text[4096];
    FILE *pipe = popen(command, "r");

    assert_non_null(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 0);
    text[strcspn(text, "\n")] = 0;
    return text;
}

static void assert_text(struct buf *text, const char *expected)
{
    assert_string_equal(buf_cstr(text), expected);
    buf_deinit(text);
}

TEST(text)
{
    struct buf text = {0};

    metrics_family(&text, "push_bytes_total", "counter", "Bytes.\nOf C:\\ \"all\".");
    metrics_put_u64(&text, "push_bytes_total", NULL, NULL, UINT64_MAX);
    metrics_family(&text, "push_refused", "gauge", "Refused.");
    metrics_put_u64(&text, "push_refused", "reason", "too_old", 0);
    metrics_put(&text, "push_refused", "reason", "a\"b\\c\nd", 1.5);
    metrics_put(&text, "push_refused", "reason", "\x1b[2J\xff\r", 0.1);
    metrics_put(&text, "push_refused", "reason", "", 1e300);
    assert_text(&text, "# HELP push_bytes_total Bytes.\\nOf C:\\\\ \"all\".\n"
                       "# TYPE push_bytes_total counter\n"
                       "push_bytes_total 18446744073709551615\n"
                       "# HELP push_refused Refused.\n"
                       "# TYPE push_refused gauge\n"
                       "push_refused{reason=\"too_old\"} 0\n"
                       "push_refused{reason=\"a\\\"b\\\\c\\nd\"} 1.5\n"
                       "push_refused{reason=\"\\\\x1b[2J\\\\xff\\\\x0d\"} 0.1\n"
                       "push_refused{reason=\"\"} 1e+300\n");
}

TEST(figures)
{
    static const double figures[] = {0, -0.5, 1.0 / 3, 0.1, 123456789012345678.0, DBL_MAX, DBL_MIN, 1790000000.123456};
    struct buf text = {0};

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        buf_clear(&text);
        metrics_put(&text, "x", NULL, NULL, figures[i]);
        assert_true(strtod(buf_cstr(&text) + 2, NULL) == figures[i]);
    }
    buf_clear(&text);
    metrics_put(&text, "x", NULL, NULL, NAN);
    metrics_put(&text, "x", NULL, NULL, INFINITY);
    metrics_put(&text, "x", NULL, NULL, -INFINITY);
    assert_text(&text, "x NaN\nx +Inf\nx -Inf\n");
}

/* Every byte in a value, and every pair of those that mean something, comes back from the parser of the tests in Python. */
TEST_WITH(a_second_parser, fixture_init, fixture_deinit)
{
    static const char special[] = "\\\"\nn,}=# ";
    struct fixture *f = *state;
    struct buf text = {0}, expected = {0};
    char command[1024];

    metrics_family(&text, "x_total", "counter", "A \\ and\n a line.");
    for (size_t i = 0; i < sizeof special - 1; i++)
        for (size_t k = 0; k < sizeof special - 1; k++) {
            metrics_put_u64(&text, "x_total", "of", (char[]){special[i], special[k], 0}, i * 100 + k);
            for (const char *s = (char[]){special[i], special[k], 0}; *s; s++)
                buf_printf(&expected, "%02x", (unsigned)*s);
            buf_printf(&expected, " %zu ", i * 100 + k);
        }
    metrics_family(&text, "y", "gauge", "");
    for (int byte = 1; byte < 256; byte++)
        metrics_put(&text, "y", "of", (char[]){(char)byte, 0}, byte / 8.0);
    OK(metrics_publish(at(f, "x.prom"), &text));
    snprintf(command, sizeof command,
             "python3 tests/integration/prometheus_text.py %s >%s/json && python3 -c '"
             "import json\n"
             "x = json.load(open(\"%s/json\"))\n"
             "print(\"\".join(v.encode().hex() + \" %%d \" %% n for name, v, n in x if name == \"x_total\"), end=\"\")\n"
             "assert [n * 8 for name, v, n in x if name == \"y\"] == list(range(1, 256))\n"
             "assert all(v == chr(int(n * 8)) for name, v, n in x if name == \"y\" and 32 <= n * 8 < 127)'",
             path_of, f->dir, f->dir);
    const char *result = printed(command);
    assert_string_equal(result, buf_cstr(&expected));
    buf_deinit(&text);
    buf_deinit(&expected);
}

/* The parser finds faults: a test that trusts it can fail. */
TEST_WITH(the_second_parser_is_strict, fixture_init, fixture_deinit)
{
    static const char *const bad[] = {
        "# HELP x H\\n# TYPE x gauge\\nx 1",               /* the last line does not end */
        "x 1\\n",                                          /* no family */
        "# HELP x H\\n# TYPE x gauge\\nx 1\\nx 2\\n",      /* twice */
        "# HELP x H\\n# TYPE x counter\\nx 1\\n",          /* a counter without _total */
        "# HELP x H\\n# TYPE x gauge\\ny 1\\n",            /* another family */
        "# HELP x H\\n# TYPE x gauge\\nx{a=\"\\\\t\"} 1\\n", /* an escape that there is not */
        "# HELP x H\\n# TYPE x gauge\\nx one\\n",
        "# HELP x_total H\\n# TYPE x_total counter\\nx_total -1\\n",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char command[512];
        snprintf(command, sizeof command, "printf '%s' >%s/bad; python3 tests/integration/prometheus_text.py %s/bad 2>&1; test $? = 1",
                 bad[i], f->dir, f->dir);
        printed(command);
    }
}

TEST_WITH(published_whole, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct buf text = {0};
    struct stat st;
    char command[128];

    mode_t mask = umask(0077);
    buf_put_str(&text, "first\n");
    OK(metrics_publish(at(f, "x.prom"), &text));
    assert_int_equal(stat(path_of, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    int before = open(path_of, O_RDONLY | O_CLOEXEC);
    buf_put_str(&text, "second\n");
    OK(metrics_publish(at(f, "x.prom"), &text));
    umask(mask);
    char read_before[32] = "";
    assert_int_equal(read(before, read_before, sizeof read_before), 6); /* who has the old one open keeps it */
    close(before);
    snprintf(command, sizeof command, "cd %s && tr '\\n' ' ' <x.prom && ls", f->dir);
    assert_string_equal(printed(command), "first second x.prom");
    text.bad = true;
    assert_ptr_equal(metrics_publish(path_of, &text), error_no_memory());
    buf_deinit(&text);
}

static void refuses(const char *path, const struct buf *text, const char *says)
{
    struct error *err = metrics_publish(path, text);

    assert_non_null(err);
    if (!strstr(error_text(err), says) || !strstr(error_text(err), path))
        fail_msg("%s", error_text(err));
    error_destroy(err);
}

/* After a failure the old file is there, and nothing beside it. */
TEST_WITH(failures, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct buf text = {0};
    char command[256];

    buf_put_str(&text, "first\n");
    OK(metrics_publish(at(f, "x.prom"), &text));
    assert_true(fixture_run(f, "mkdir folder && mkfifo pipe && ln -s x.prom link"));
    refuses(at(f, "nowhere/x.prom"), &text, "No such file");
    refuses(at(f, "folder"), &text, "Is a directory");
    refuses(at(f, "pipe"), &text, "is a pipe or a device");
    refuses(at(f, "link"), &text, "is a symbolic link");
    /* A file may not grow beyond 4 KiB, as on a full disk. */
    while (text.len_bytes < 10000)
        buf_put_str(&text, "a line\n");
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096});
        struct error *err = metrics_publish(at(f, "x.prom"), &text);
        _exit(err && err->os_errno == EFBIG ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    snprintf(command, sizeof command, "cd %s && cat x.prom | tr '\\n' ' ' && ls | tr '\\n' ' '", f->dir);
    assert_string_equal(printed(command), "first folder link pipe x.prom ");
    buf_deinit(&text);
}

/* A reader that looks again and again sees no half file. */
TEST_WITH(a_reader_beside, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct buf text[2] = {{0}, {0}};
    char seen[1 << 15];

    for (size_t i = 0; i < 20000; i++) {
        buf_put_u8(&text[0], 'a');
        if (i < 9999)
            buf_put_u8(&text[1], 'b');
    }
    OK(metrics_publish(at(f, "x.prom"), &text[0]));
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 500; i++)
            if (metrics_publish(path_of, &text[i % 2]))
                _exit(1);
        _exit(0);
    }
    int status = -1, looks = 0;
    do {
        int fd = open(path_of, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        ssize_t n = read(fd, seen, sizeof seen);
        close(fd);
        assert_true(seen[0] == 'a' ? n == 20000 : seen[0] == 'b' && n == 9999);
        looks++;
    } while (!waitpid(child, &status, WNOHANG));
    assert_int_equal(status, 0);
    assert_true(looks > 0);
    buf_deinit(&text[0]);
    buf_deinit(&text[1]);
}

TEST_WITH(replacement_is_undone, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct replacement r;
    char command[128];

    OK(replacement_create(at(f, "x"), 0600, &r));
    OK(replacement_write(&r, "half", 4));
    replacement_deinit(&r);
    snprintf(command, sizeof command, "ls -A %s", f->dir);
    assert_string_equal(printed(command), "");
    OK(replacement_create(at(f, "x"), 0600, &r));
    OK(replacement_write(&r, "all", 3));
    OK(replacement_commit(&r, true));
    OK(replacement_write(&r, "more", 4)); /* goes on in its place */
    replacement_deinit(&r);
    snprintf(command, sizeof command, "cd %s && ls | tr '\\n' ' ' && stat -c %%a x | tr '\\n' ' ' && cat x", f->dir);
    assert_string_equal(printed(command), "x 600 allmore");
}
