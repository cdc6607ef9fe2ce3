/* SPDX-License-Identifier: Apache-2.0 */
/* Which mappings are one module: by what nobody can forge. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/binary/modules.h"
#include "formats/base/clock.h"

STARTS_THREADS;

struct scene {
    char dir[64];
    struct modules *modules;
};

static void scene_init(struct scene *s)
{
    *s = (struct scene){.dir = "/tmp/pycap-test-modules-XXXXXX"};
    assert_non_null(mkdtemp(s->dir));
    OK(modules_create(&s->modules));
}

static void scene_deinit(struct scene *s)
{
    char command[128];

    modules_destroy(s->modules);
    snprintf(command, sizeof command, "rm -r %s", s->dir);
    assert_int_equal(system(command), 0);
}

/* A copy of this program, which has a build ID, with one byte at its end changed. */
static void put_copy(const struct scene *s, const char *name, char last)
{
    char path[128];
    static char data[1 << 16];
    ssize_t n;

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(from >= 0 && to >= 0);
    while ((n = read(from, data, sizeof data)) > 0)
        assert_int_equal(write(to, data, (size_t)n), n);
    assert_int_equal(write(to, &last, 1), 1);
    close(from);
    close(to);
}

/* How a mapping of a file is met: by default this program has mapped it just now. */
struct meeting {
    const char *path; /* how the process calls it; NULL: by its name */
    bool gone;        /* the process has ended */
    uint64_t life;
    uint64_t generation, time_ns;
};

static struct module *meet(struct scene *s, const char *name, struct meeting how)
{
    char real[128];
    struct module *module;
    struct stat st;

    snprintf(real, sizeof real, "%s/%s", s->dir, name);
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    close(fd);
    const struct code_mapping mapping = {
        .time_ns = how.time_ns,
        .address = (uintptr_t)at,
        .length = 4096,
        .device_major = major(st.st_dev),
        .device_minor = minor(st.st_dev),
        .inode = st.st_ino,
        .inode_generation = how.generation,
        .path = how.path ? how.path : real,
    };
    OK(modules_find(s->modules, &(struct module_asker){.pid = how.gone ? INT_MAX : getpid(), .life = how.life}, &mapping, &module));
    assert_non_null(module);
    modules_settle(s->modules, now_ns() + 60 * NS_PER_S); /* on a busy machine the worker is not waited for */
    assert_false(module->pending);
    munmap(at, 4096);
    return module;
}

static struct module *find(struct scene *s, const char *name, const char *path, uint64_t generation)
{
    return meet(s, name, (struct meeting){.path = path, .generation = generation});
}

/* Files have their times by a clock that ticks: waits until that is past this moment. */
static void wait_for_tick(void)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);

    while (clock_ns(CLOCK_REALTIME_COARSE) <= now)
        usleep(1000);
}

TEST(equal_build_ids_are_two_modules)
{
    struct scene s;

    scene_init(&s);
    put_copy(&s, "real", 'r');
    put_copy(&s, "forged", 'f');
    /* Both lie at one path, each in its own mount namespace. */
    struct module *forged = find(&s, "forged", "/usr/bin/program", 1), *real = find(&s, "real", "/usr/bin/program", 1);
    assert_int_equal(forged->identity.id_kind, ELF_ID_BUILD_ID);
    assert_int_equal(forged->identity.build_id_len, real->identity.build_id_len);
    assert_memory_equal(forged->identity.build_id, real->identity.build_id, real->identity.build_id_len);
    assert_ptr_not_equal(forged, real);
    assert_int_not_equal(forged->file, real->file);
    scene_deinit(&s);
}

TEST(one_file_is_inspected_once)
{
    char linked[128], other[128];
    struct scene s;

    scene_init(&s);
    put_copy(&s, "program", 'x');
    struct module *first = find(&s, "program", NULL, 1);
    assert_ptr_equal(find(&s, "program", NULL, 1), first);
    /* /proc does not tell the generation that the side-band reports. */
    assert_ptr_equal(find(&s, "program", NULL, 0), first);
    snprintf(linked, sizeof linked, "%s/program", s.dir);
    snprintf(other, sizeof other, "%s/other", s.dir);
    assert_int_equal(link(linked, other), 0);
    /* link() changes the file's time of change, so one more look is taken at it. */
    struct module *again = find(&s, "program", NULL, 2), *second = find(&s, "other", NULL, 2);
    assert_ptr_not_equal(second, again);
    assert_int_equal(second->file, again->file);
    assert_string_equal(second->path, other);
    assert_memory_equal(second->identity.build_id, again->identity.build_id, again->identity.build_id_len);
    assert_int_equal(second->identity.segments.count, again->identity.segments.count);
    assert_true(second->identity.segments.count > 0);
    assert_ptr_equal(find(&s, "other", NULL, 2), second);
    scene_deinit(&s);
}

TEST(a_file_changed_in_place_is_another)
{
    struct scene s;

    scene_init(&s);
    put_copy(&s, "program", 'x');
    struct module *before = find(&s, "program", NULL, 1);
    wait_for_tick();
    put_copy(&s, "program", 'y');
    assert_ptr_not_equal(find(&s, "program", NULL, 1), before);
    scene_deinit(&s);
}

/* Files that are no longer open, mapped by processes that are not there any more. */
TEST(files_of_processes_that_have_gone)
{
    const struct meeting gone = {.gone = true, .generation = 1};
    struct scene s;

    scene_init(&s);
    put_copy(&s, "program", 'x');
    struct module *before = find(&s, "program", NULL, 1);
    modules_tend(s.modules, now_ns() + 60 * NS_PER_S);
    assert_ptr_equal(meet(&s, "program", gone), before);
    wait_for_tick();
    put_copy(&s, "program", 'y');
    struct module *after = meet(&s, "program", gone);
    assert_ptr_not_equal(after, before);
    assert_false(after->unreadable);
    scene_deinit(&s);
}

/* What one program's file systems do not show, the next one's may: it need not wait until it is tried again. */
TEST(another_program_tries_to_open_the_file_at_once)
{
    struct scene s;
    char path[128];

    scene_init(&s);
    put_copy(&s, "program", 'x');
    snprintf(path, sizeof path, "%s/program", s.dir);
    struct module *module = meet(&s, "program", (struct meeting){.path = "/none/program", .gone = true, .life = 1});
    assert_true(module->unreadable);
    assert_true(meet(&s, "program", (struct meeting){.path = "/none/program", .life = 1})->unreadable);
    assert_ptr_equal(meet(&s, "program", (struct meeting){.path = "/none/program", .life = 2}), module);
    assert_false(module->unreadable);
    scene_deinit(&s);
}

/* A file with the inode of the one that was mapped, which was removed before this one was made. */
TEST(a_file_made_after_the_mapping_is_another)
{
    struct meeting gone = {.gone = true, .time_ns = now_ns()};
    struct statx sx;
    struct scene s;
    char path[128];

    wait_for_tick();
    scene_init(&s);
    put_copy(&s, "program", 'x');
    snprintf(path, sizeof path, "%s/program", s.dir);
    if (statx(AT_FDCWD, path, 0, STATX_BTIME, &sx) || !(sx.stx_mask & STATX_BTIME)) {
        scene_deinit(&s);
        skip();
    }
    assert_true(meet(&s, "program", gone)->unreadable);
    gone.time_ns = now_ns();
    gone.generation = 1;
    assert_false(meet(&s, "program", gone)->unreadable);
    scene_deinit(&s);
}
