/* SPDX-License-Identifier: Apache-2.0 */
/* Which traces of files and folders are sent, in which order, and what becomes of those that vanish. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/trace/block.h"
#include "symbolize/push/folder.h"
#include "symbolize/push/trace_name.h"

struct fixture {
    char folder[64];
    struct folder *f;
    struct buf told; /* "gone NAME\n", "unreadable\n" */
};

static void note_gone(void *own, const struct folder_trace *trace)
{
    buf_printf(own, "gone %s\n", strrchr(trace->path, '/') + 1);
}

static void note_unreadable(void *own, struct error *err)
{
    buf_put_str(own, "unreadable\n");
    error_destroy(err);
}

static void path_of(const struct fixture *x, const char *name, char out[128])
{
    snprintf(out, 128, "%s/%s", x->folder, name);
}

/* Writes a file that begins as a trace; `number` tells traces apart. Last written `age_s` ago. */
static void put(const struct fixture *x, const char *name, uint8_t number, unsigned age_s)
{
    uint8_t bytes[TRACE_FILE_HEADER_BYTES + TRACE_BLOCK_HEADER_BYTES] = TRACE_FILE_MAGIC;
    char path[128];

    bytes[TRACE_FILE_HEADER_BYTES + 8] = number;
    path_of(x, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    struct timespec now, times[2];
    clock_gettime(CLOCK_REALTIME, &now);
    times[0] = times[1] = timespec_of_ns(timespec_ns(now) - age_s * NS_PER_S);
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static void create(struct fixture *x, const char *place, bool follow)
{
    const char *inputs[] = {place ? place : x->folder};
    const struct option_texts texts = {inputs, 1, 1};
    const struct folder_events events = {&x->told, note_gone, note_unreadable};

    OK(folder_create(&texts, &events, follow, &x->f));
}

/* Folders are looked at once a second: makes another to look now. */
static void look(struct fixture *x)
{
    folder_look_at_once(x->f);
    OK(folder_look(x->f));
}

/* The names of all that folder_next() returns, with '?' behind those whose end is to be looked for; they are put back. */
static const char *all_next(struct fixture *x, char out[256])
{
    struct folder_trace *taken[16];
    enum folder_answer answer;
    size_t count = 0;

    for (*out = 0; (answer = folder_next(x->f, &taken[count])) != FOLDER_NOTHING; count++) {
        strcat(out, strrchr(taken[count]->path, '/') + 1);
        strcat(out, answer == FOLDER_LOOK ? "? " : " ");
    }
    while (count)
        folder_put_back(taken[--count]);
    return out;
}

#define assert_next(x, expected)                           \
    do {                                                   \
        char names[256];                                   \
        look(x);                                           \
        assert_string_equal(all_next(x, names), expected); \
    } while (0)

static int set_up(void **state)
{
    struct fixture *x = calloc(1, sizeof *x);

    strcpy(x->folder, "/tmp/pysym-folder-XXXXXX");
    *state = x;
    return mkdtemp(x->folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *x = *state;
    char command[128];

    folder_destroy(x->f);
    buf_deinit(&x->told);
    snprintf(command, sizeof command, "rm -rf %s", x->folder);
    int status = system(command);
    free(x);
    return status;
}

TEST(names)
{
    uint64_t a, b, c;

    assert_int_equal(trace_name_time("/d/host-20260131T235959.123Z.bin", &a), UINT64_C(1769903999123000000));
    assert_true(trace_name_time("/d/host-20260201T000000.000Z.bin", &b) > UINT64_C(1769903999123000000));
    assert_int_equal(a, b);
    trace_name_time("/d/other-20260131T235959.123Z.bin", &c);
    assert_int_not_equal(a, c);
    trace_name_time("/e/host-20260131T235959.123Z.bin", &c);
    assert_int_not_equal(a, c);
    assert_int_equal(trace_name_time("/d20260131T235959.123Z/host.bin", &c), 0);
    assert_int_equal(trace_name_time("20261331T235959.123Z", &c), 0);
    assert_int_equal(trace_name_time("20260131T235959.12Z", &c), 0);
    assert_int_equal(trace_name_time("", &c), 0);
}

/* In the order of time, by name or by when they were written; of one recorder all but the newest are complete. */
TEST_WITH(order, set_up, tear_down)
{
    struct fixture *x = *state;

    put(x, "a-20260131T000003.000Z.bin", 1, 0);
    put(x, "a-20260131T000001.000Z.bin", 2, 0);
    put(x, "b-20260131T000002.000Z.bin", 3, 0);
    put(x, "old", 4, 1000);
    put(x, "new", 5, 5);
    create(x, NULL, false);
    assert_next(x, "a-20260131T000001.000Z.bin b-20260131T000002.000Z.bin? a-20260131T000003.000Z.bin? old new? ");
    folder_destroy(x->f);
    create(x, NULL, true); /* what was written just now has no end yet */
    assert_next(x, "a-20260131T000001.000Z.bin old new? ");
}

TEST_WITH(done, set_up, tear_down)
{
    struct fixture *x = *state;
    struct folder_trace *t;
    uint64_t oldest;

    put(x, "a", 1, 1000);
    create(x, NULL, false);
    look(x);
    assert_int_equal(folder_next(x->f, &t), FOLDER_COMPLETE);
    assert_int_equal(folder_waiting(x->f, &oldest), 1);
    folder_done(t);
    assert_int_equal(folder_waiting(x->f, &oldest), 0);
    assert_next(x, "");
    put(x, "a", 1, 999); /* written to again */
    assert_next(x, "a? ");
    look(x);
    assert_int_equal(folder_next(x->f, &t), FOLDER_LOOK);
    folder_has_no_end(t);
    assert_next(x, "");
    assert_string_equal(buf_cstr(&x->told), "");
}

/* Other files are not opened to be read, nor told of. */
TEST_WITH(other_files, set_up, tear_down)
{
    struct fixture *x = *state;
    char path[128], target[128];

    put(x, "real", 1, 1000);
    path_of(x, "real", target);
    path_of(x, "link", path);
    assert_int_equal(symlink(target, path), 0);
    path_of(x, "pipe", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    path_of(x, "folder", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_of(x, "text", path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    create(x, NULL, false);
    assert_next(x, "real ");
    put(x, "text", 2, 1000);
    assert_next(x, "real text ");
    assert_string_equal(buf_cstr(&x->told), "");
}

/* What is named has to be a trace, unless there is time for it to become one. */
TEST_WITH(named_file, set_up, tear_down)
{
    struct fixture *x = *state;
    char path[128];

    path_of(x, "text", path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    create(x, path, true);
    assert_next(x, "");
    assert_string_equal(buf_cstr(&x->told), "");
    folder_destroy(x->f);
    create(x, path, false);
    assert_next(x, "");
    assert_next(x, "");
    assert_string_equal(buf_cstr(&x->told), "unreadable\n");
    put(x, "text", 1, 1000);
    assert_next(x, "text ");
    assert_string_equal(buf_cstr(&x->told), "unreadable\n");
}

TEST_WITH(gone, set_up, tear_down)
{
    struct fixture *x = *state;
    struct folder_trace *t;
    char a[128], b[128];

    put(x, "a", 1, 1000);
    put(x, "b", 2, 900);
    put(x, "c", 3, 800);
    create(x, NULL, false);
    look(x);
    assert_int_equal(folder_next(x->f, &t), FOLDER_COMPLETE);
    path_of(x, "a", a);
    unlink(a); /* it is being sent: not gone */
    path_of(x, "b", b);
    path_of(x, "moved", a);
    assert_int_equal(rename(b, a), 0);
    path_of(x, "c", b);
    unlink(b);
    look(x);
    assert_string_equal(buf_cstr(&x->told), "gone c\n");
    folder_done(t);
    assert_next(x, "moved ");
    put(x, "moved", 9, 100); /* another one in its place */
    look(x);
    assert_string_equal(buf_cstr(&x->told), "gone c\ngone moved\n");
}

/* A folder that cannot be seen may come back with all that it had. */
TEST_WITH(folder_vanishes, set_up, tear_down)
{
    struct fixture *x = *state;
    char away[80];

    put(x, "a", 1, 1000);
    create(x, NULL, true);
    assert_next(x, "a ");
    snprintf(away, sizeof away, "%s-away", x->folder);
    assert_int_equal(rename(x->folder, away), 0);
    look(x);
    look(x);
    assert_string_equal(buf_cstr(&x->told), "unreadable\n");
    assert_int_equal(rename(away, x->folder), 0);
    assert_next(x, "a ");
    assert_string_equal(buf_cstr(&x->told), "unreadable\n");
}

TEST_WITH(files_of_the_command_line, set_up, tear_down)
{
    struct fixture *x = *state;
    char a[128], fifo[128];

    put(x, "a", 1, 1000);
    path_of(x, "a", a);
    create(x, a, false);
    assert_next(x, "a ");
    unlink(a);
    look(x);
    assert_string_equal(buf_cstr(&x->told), "gone a\n");
    folder_destroy(x->f);
    create(x, a, false);
    look(x);
    assert_string_equal(buf_cstr(&x->told), "gone a\nunreadable\n");
    folder_destroy(x->f);
    path_of(x, "fifo", fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    create(x, fifo, false);
    look(x);
    assert_string_equal(buf_cstr(&x->told), "gone a\nunreadable\nunreadable\n");
}

/* What is opened is what was looked at. */
TEST_WITH(open, set_up, tear_down)
{
    struct fixture *x = *state;
    struct folder_trace *t;
    int fd;

    put(x, "a", 1, 1000);
    create(x, NULL, false);
    look(x);
    assert_int_equal(folder_next(x->f, &t), FOLDER_COMPLETE);
    OK(folder_open(t, &fd));
    close(fd);
    put(x, "a", 2, 1000);
    struct error *err = folder_open(t, &fd);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    assert_int_equal(fd, -1);
    error_destroy(err);
}

/* A trace whose reader was killed comes again, later each time, and does not hold up others. */
TEST_WITH(put_off, set_up, tear_down)
{
    struct fixture *x = *state;
    struct folder_trace *t;

    put(x, "a.bin", 1, 300);
    create(x, NULL, true);
    look(x);
    assert_int_equal(folder_next(x->f, &t), FOLDER_COMPLETE);
    assert_true(folder_put_off(t));
    put(x, "b.bin", 2, 200);
    assert_next(x, "b.bin ");
    uint64_t oldest_ns;
    assert_int_equal(folder_waiting(x->f, &oldest_ns), 2);
    for (int i = 1; i < 5; i++)
        assert_true(folder_put_off(t));
    assert_false(folder_put_off(t));
    folder_done(t);
    assert_int_equal(folder_waiting(x->f, &oldest_ns), 1);
}
