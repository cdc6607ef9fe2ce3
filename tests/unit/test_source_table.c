/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording says of source files that a process names: of which there are records, and how often. The test is
 * itself the process.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/host/own_file.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_task.h"
#include "capture/trace/source_table.h"
#include "formats/base/clock.h"
#include "tests/unit/trace_fixture.h"

STARTS_THREADS;

enum { SLOT = 3, RECORDS_MAX = 64, WAIT_S = 60 };

struct world {
    char dir[32], *folder_before;
    struct quotas *quotas;
    struct source_table *sources;
    struct trace_writer *writer;
    struct source_owner owner;
    int fd;
};

static char *in(const struct world *w, const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    return path;
}

static void put_file(const struct world *w, const char *name, const char *text, time_t modified)
{
    const struct timespec times[2] = {{.tv_sec = modified}, {.tv_sec = modified, .tv_nsec = 123456789}};
    FILE *f = fopen(in(w, name), "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(utimensat(AT_FDCWD, in(w, name), times, 0), 0);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    uint32_t user;

    assert_non_null(w);
    strcpy(w->dir, "/tmp/pycap-src-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->folder_before = procfs_folder(getpid());
    assert_int_equal(chdir(w->dir), 0);
    w->fd = memory_file();
    OK(quotas_create(&w->quotas));
    OK(quotas_begin(w->quotas, SLOT, 1000, false));
    OK(source_table_create(&w->sources));
    OK(trace_writer_create(w->fd, "t", NULL, 1, &w->writer));
    struct trace_process process = {.tgid = (uint32_t)getpid()};
    trace_writer_put(w->writer, TRACE_process, &process);
    trace_writer_put(w->writer, TRACE_process, &process);
    assert_true(own_file_user(getpid(), &user));
    w->owner = (struct source_owner){.asker = {.pid = getpid(), .life = 1, .user = user, .folder = w->dir},
                                     .quotas = w->quotas, .slot = SLOT, .time_ns = 1, .process = 1};
    assert_true(root_identify(getpid(), &w->owner.asker.root));
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    struct world *w = *state;

    assert_int_equal(chdir(w->folder_before), 0);
    nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    source_table_destroy(w->sources);
    trace_writer_destroy(w->writer);
    quotas_destroy(w->quotas);
    close(w->fd);
    free(w->folder_before);
    free(w);
    return 0;
}

static void want(struct world *w, const char *name)
{
    OK(source_table_want(w->sources, &w->owner, name, strlen(name)));
}

static void end_epoch(struct world *w, bool again)
{
    OK(source_table_end_epoch(w->sources, w->writer, again, now_ns() + WAIT_S * NS_PER_S));
}

/* What the trace says; names are numbered beside it. */
struct said {
    uint32_t count;
    struct trace_source list[RECORDS_MAX];
    char names[RECORDS_MAX][PATH_MAX];
};

static struct said *finish(struct world *w)
{
    static struct said said;
    static char strings[RECORDS_MAX][PATH_MAX];
    struct trace_reader *r;
    struct trace_record rec;
    bool more;

    said.count = 0;
    OK(trace_writer_finish(w->writer));
    lseek(w->fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(w->fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        if (rec.type == TRACE_string)
            snprintf(strings[rec.string.id], PATH_MAX, "%.*s", (int)rec.string.data.len_bytes, (const char *)rec.string.data.data);
        if (rec.type != TRACE_source)
            continue;
        strcpy(said.names[said.count], strings[rec.source.file]);
        said.list[said.count++] = rec.source;
    }
    assert_int_equal(trace_reader_stats(r)->damage_count, 0);
    trace_reader_close(r);
    return &said;
}

/* The only record of a name. */
static const struct trace_source *only(const struct said *said, const char *name)
{
    const struct trace_source *found = NULL;

    for (uint32_t i = 0; i < said->count; i++) {
        if (strcmp(said->names[i], name))
            continue;
        assert_null(found);
        found = &said->list[i];
    }
    if (!found)
        fail_msg("nothing is said of %s", name);
    return found;
}

static void assert_state(const struct said *said, const char *name, uint32_t wanted)
{
    const struct trace_source *s = only(said, name);

    if (s->state != wanted)
        fail_msg("%s has state %u", name, s->state);
    assert_true(wanted == TRACE_SOURCE_FILE || (!s->size_bytes && !s->modified_ns));
}

TEST_WITH(what_names_are, set_up, tear_down)
{
    struct world *w = *state;
    static const char *const files[] = {"file.py", "link.py", "back.py", "relative.py"};
    static const char *const none[] = {"fifo.py", "folder", "missing.py", "app.zip/module.py", "out.py", "device.py"};
    char path[PATH_MAX];

    put_file(w, "file.py", "12345", 1600000000);
    put_file(w, "relative.py", "123", 1500000000);
    put_file(w, "app.zip", "PK", 1600000000);
    assert_int_equal(mkdir(in(w, "folder"), 0755), 0);
    assert_int_equal(mkfifo(in(w, "fifo.py"), 0666), 0);
    snprintf(path, sizeof path, "%s/file.py", w->dir);
    assert_int_equal(symlink(path, in(w, "link.py")), 0);
    assert_int_equal(symlink("folder/../file.py", in(w, "back.py")), 0);
    assert_int_equal(symlink("/missing/x", in(w, "out.py")), 0);
    assert_int_equal(symlink("/dev/zero", in(w, "device.py")), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        want(w, in(w, files[i]));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        want(w, in(w, none[i]));
    want(w, "/proc/self/status"); /* nothing in procfs is looked at */
    end_epoch(w, false);
    const struct said *said = finish(w);
    assert_int_equal(said->count, 11);
    for (size_t i = 0; i < 3; i++) {
        const struct trace_source *s = only(said, in(w, files[i]));
        assert_true(s->state == TRACE_SOURCE_FILE && s->size_bytes == 5 && s->process == 1 && s->time_ns);
        assert_true(s->modified_ns == INT64_C(1600000000123456789));
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_state(said, in(w, none[i]), TRACE_SOURCE_NONE);
    assert_state(said, "/proc/self/status", TRACE_SOURCE_UNKNOWN);
}

TEST_WITH(names_of_no_file, set_up, tear_down)
{
    struct world *w = *state;
    char longest[PATH_MAX + 1];

    memset(longest, 'x', PATH_MAX);
    longest[PATH_MAX] = 0;
    want(w, "<string>");
    want(w, "<frozen importlib._bootstrap>");
    want(w, "");
    want(w, longest);
    want(w, "/tmp/\xef\xbf\xbd.py"); /* what could not be encoded */
    OK(source_table_want(w->sources, &w->owner, "/tmp\0/x", 7));
    end_epoch(w, true);
    assert_int_equal(finish(w)->count, 0);
}

/* Where the working directory is the one that the process began in, and not when that is not known any more. */
TEST_WITH(relative_names, set_up, tear_down)
{
    struct world *w = *state;

    put_file(w, "file.py", "12345", 1600000000);
    assert_int_equal(mkdir(in(w, "sub"), 0755), 0);
    assert_int_equal(symlink("file.py", in(w, "link.py")), 0);
    want(w, "file.py");
    want(w, "./file.py");
    want(w, "sub/../file.py");
    want(w, "..");
    want(w, "link.py");
    want(w, "missing.py");
    end_epoch(w, false);
    w->owner.asker.folder = "/somewhere/else";
    w->owner.asker.life++;
    want(w, "elsewhere/file.py");
    w->owner.asker.folder = NULL;
    w->owner.asker.life++;
    want(w, "unknown/file.py");
    end_epoch(w, false);
    const struct said *said = finish(w);
    assert_int_equal(said->count, 8);
    assert_state(said, "file.py", TRACE_SOURCE_FILE);
    assert_state(said, "./file.py", TRACE_SOURCE_FILE);
    assert_state(said, "missing.py", TRACE_SOURCE_NONE);
    static const char *const unknown[] = {"sub/../file.py", "..", "link.py", "elsewhere/file.py", "unknown/file.py"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_state(said, unknown[i], TRACE_SOURCE_UNKNOWN);
}

/* A process that leaves its root and then means other files; once it has ended, what it meant before can be asked. */
TEST_WITH(a_root_that_changes, set_up, tear_down)
{
    struct world *w = *state;
    char left;
    int ready[2];

    put_file(w, "file.py", "12345", 1600000000);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        left = !chroot(w->dir);
        if (write(ready[1], &left, 1) == 1)
            pause();
        _exit(1);
    }
    bool told = read(ready[0], &left, 1) == 1;
    close(ready[0]);
    close(ready[1]);
    w->owner.asker.pid = child;
    want(w, in(w, "file.py"));
    end_epoch(w, false);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(told);
    if (!left)
        skip(); /* not allowed to this user */
    want(w, in(w, "file.py"));
    end_epoch(w, false);
    const struct said *said = finish(w);
    assert_int_equal(said->count, 2);
    assert_int_equal(said->list[0].state, TRACE_SOURCE_UNKNOWN);
    assert_int_equal(said->list[1].state, TRACE_SOURCE_FILE);
}

/* Once in an epoch for a root and a user, and again in the next. */
TEST_WITH(how_often, set_up, tear_down)
{
    struct world *w = *state;

    put_file(w, "file.py", "1", 1600000000);
    for (uint32_t i = 0; i < 3; i++) {
        w->owner.asker.life = 1 + i;
        w->owner.process = 1 + i % 2;
        want(w, in(w, "file.py"));
        source_table_serve(w->sources, w->writer);
    }
    w->owner.asker.root.inode++;
    w->owner.asker.life = 10;
    w->owner.process = 2;
    want(w, in(w, "file.py")); /* a root that is nobody's any more */
    end_epoch(w, true);
    struct trace_process process = {.tgid = 1};
    trace_writer_new_epoch(w->writer, 2);
    trace_writer_put(w->writer, TRACE_process, &process);
    w->owner.asker.root.inode--;
    w->owner.asker.life = 11;
    w->owner.process = 1;
    want(w, in(w, "file.py"));
    end_epoch(w, true);
    const struct said *said = finish(w);
    assert_int_equal(said->count, 3);
    assert_true(said->list[0].state == TRACE_SOURCE_FILE && said->list[0].process == 1);
    assert_true(said->list[1].state == TRACE_SOURCE_UNKNOWN && said->list[1].process == 2);
    assert_true(said->list[2].state == TRACE_SOURCE_FILE && said->list[2].process == 1);
}

/* The second look tells of what is another file now, and of nothing else. */
TEST_WITH(changes, set_up, tear_down)
{
    struct world *w = *state;
    static const char *const names[] = {"same.py", "longer.py", "touched.py", "gone.py"};
    uint64_t until_ns = now_ns() + WAIT_S * NS_PER_S, before;

    for (size_t i = 0; i < 4; i++)
        put_file(w, names[i], "1", 1600000000);
    for (size_t i = 0; i < 4; i++)
        want(w, in(w, names[i]));
    trace_writer_flush(w->writer);
    before = trace_writer_bytes(w->writer);
    while (trace_writer_bytes(w->writer) == before && now_ns() < until_ns) { /* all four are answered together */
        source_table_serve(w->sources, w->writer);
        trace_writer_flush(w->writer);
    }
    put_file(w, "longer.py", "123", 1600000000);
    put_file(w, "touched.py", "1", 1600000001);
    assert_int_equal(unlink(in(w, "gone.py")), 0);
    end_epoch(w, true);
    const struct said *said = finish(w);
    assert_int_equal(said->count, 6);
    assert_state(said, in(w, "same.py"), TRACE_SOURCE_FILE);
    assert_state(said, in(w, "gone.py"), TRACE_SOURCE_FILE);
    for (uint32_t i = 4; i < 6; i++) {
        bool longer = !strcmp(said->names[i], in(w, "longer.py"));
        assert_true(said->list[i].size_bytes == (longer ? 3 : 1));
        assert_true(said->list[i].modified_ns == INT64_C(1600000000123456789) + (longer ? 0 : (int64_t)NS_PER_S));
    }
    assert_string_not_equal(said->names[4], said->names[5]);
}

/* A process that names ever more files is asked for no more than its quota; the rest is counted. */
TEST_WITH(quota, set_up, tear_down)
{
    struct world *w = *state;
    uint64_t counts[QUOTA_COUNT], asked = 0;
    char name[64];

    while (!quotas_any_refused(w->quotas)) {
        snprintf(name, sizeof name, "/nowhere/%" PRIu64 ".py", asked++);
        want(w, name);
        assert_true(asked < 1000000);
    }
    assert_true(asked > 4000);
    assert_true(quotas_refused(w->quotas, SLOT, counts));
    assert_int_equal(counts[QUOTA_sources], 1);
    want(w, "/nowhere/0.py"); /* known already: free */
    assert_false(quotas_any_refused(w->quotas));
}

TEST(groups)
{
    uint32_t groups[4];

    assert_int_equal(procfs_parse_groups("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nNStgid:\t1\n", groups, 4), 3);
    assert_true(groups[0] == 8 && groups[1] == 9 && groups[2] == 10);
    assert_int_equal(procfs_parse_groups("Name:\tx\nGid:\t5\t6\t7\t8\nGroups:\t9 10 11 12 13 14 \n", groups, 4), 4);
    assert_int_equal(procfs_parse_groups("Name:\tx\nGid:\t5\t6\t7\t8\nGroups:\t \nNStgid:\t1\n", groups, 4), 1);
    assert_int_equal(procfs_parse_groups("Name:\tx\n", groups, 4), 0);
}
