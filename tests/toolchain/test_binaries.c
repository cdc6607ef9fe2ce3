/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a module's files: every place that is searched, and that the build ID decides. */
#include "tests/unit/test.h"

#include <sys/inotify.h>

#include "formats/elf/identity.h"
#include "symbolize/binary/binaries.h"
#include "symbolize/binary/candidate.h"
#include "symbolize/binary/symbols.h"
#include "tests/toolchain/elf_fixture.h"

static const char ours[] = "0123456789abcdef0123456789abcdef01234567";
static const char other[] = "ffffffffffffffffffffffffffffffffffffffff";

static uint32_t bytes_of_hex(const char *hex, uint8_t *out)
{
    uint32_t len = 0;

    for (; hex[2 * len]; len++)
        sscanf(hex + 2 * len, "%2hhx", &out[len]);
    return len;
}

/* `good` with our build ID, `wrong` with another one, `plain` without any; `good.debug` split off `good`. */
static void make_files(const struct fixture *f)
{
    static const char source[] = "int f(int x) { return x + 1; }\n";

    fixture_write(f, "source.c", source, sizeof source - 1);
    assert_true(fixture_run(f, "cc -g -shared -fPIC -Wl,--build-id=0x%s -o full source.c && strip -o good full &&"
                               "objcopy --only-keep-debug full good.debug &&"
                               "cc -g -shared -fPIC -Wl,--build-id=0x%s -o wrong source.c &&"
                               "cc -g -shared -fPIC -Wl,--build-id=none -o plain source.c", ours, other));
}

struct look {
    const char *symfs, *sysroot, *path, *id;
    uint32_t id_kind;
    bool host;
    uint64_t file_size;
};

/* Paths are given relative to the fixture; NULL stays NULL. */
static struct binary_files look_up(const struct fixture *f, struct look l)
{
    char symfs[256], sysroot[256], path[256];
    const char *dirs[2] = {l.symfs ? symfs : NULL, NULL};
    struct binaries_options options = {.symfs = dirs, .sysroot = l.sysroot ? sysroot : NULL, .no_host = !l.host};
    struct binary_files files;
    struct binaries *b;
    uint8_t id[64];

    snprintf(symfs, sizeof symfs, "%s/%s", f->dir, l.symfs ? l.symfs : "");
    snprintf(sysroot, sizeof sysroot, "%s/%s", f->dir, l.sysroot ? l.sysroot : "");
    snprintf(path, sizeof path, "%s", l.path ? l.path : "/gone/libf.so");
    setenv("HOME", f->dir, 1);
    OK(binaries_create(&options, &b));
    struct binary_key key = {.build_id = id, .build_id_len = bytes_of_hex(l.id ? l.id : ours, id),
                             .id_kind = l.id_kind ? l.id_kind : ELF_ID_BUILD_ID, .path = path,
                             .file_size = l.file_size};
    OK(binaries_find(b, &key, &files));
    binaries_destroy(b);
    return files;
}

static void assert_path(const struct fixture *f, const char *found, const char *expected)
{
    char path[512];

    if (!expected) {
        assert_null(found);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", f->dir, expected);
    assert_non_null(found);
    assert_string_equal(found, path);
}

static void assert_found(const struct fixture *f, struct look l, const char *binary, const char *debug, const char *source)
{
    struct binary_files files = look_up(f, l);

    assert_path(f, files.binary, binary);
    assert_path(f, files.debug, debug);
    if (source)
        assert_string_equal(files.source, source);
    if (binary)
        assert_null(files.problem);
    else
        assert_non_null(files.problem);
    binary_files_deinit(&files);
}

TEST_WITH(symfs, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct look l = {.symfs = "s"};

    make_files(f);
    assert_true(fixture_run(f, "mkdir -p s/gone && cp good s/gone/libf.so"));
    assert_found(f, l, "s/gone/libf.so", "s/gone/libf.so", "symfs");
    assert_true(fixture_run(f, "mv s/gone/libf.so s/libf.so"));
    assert_found(f, l, "s/libf.so", "s/libf.so", "symfs");
    assert_true(fixture_run(f, "cp good.debug s/libf.so.debug"));
    assert_found(f, l, "s/libf.so", "s/libf.so.debug", "symfs");
    assert_true(fixture_run(f, "rm s/libf.so"));
    struct binary_files files = look_up(f, l);
    assert_null(files.binary);
    assert_path(f, files.debug, "s/libf.so.debug");
    assert_string_equal(files.problem, "only the debug file was found, not the binary");
    binary_files_deinit(&files);
}

TEST_WITH(build_id_folders, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct look l = {.symfs = "s"};

    make_files(f);
    /* GNU's layout, links as distributions have them. */
    assert_true(fixture_run(f, "mkdir -p s/.build-id/01 s/lib && cp good s/lib/libf.so.1 && cp good.debug s/lib/x &&"
                               "ln -s ../../lib/libf.so.1 s/.build-id/01/%s &&"
                               "ln -s ../../lib/x s/.build-id/01/%s.debug", ours + 2, ours + 2));
    char binary[128], debug[128];
    snprintf(binary, sizeof binary, "s/.build-id/01/%s", ours + 2);
    snprintf(debug, sizeof debug, "s/.build-id/01/%s.debug", ours + 2);
    assert_found(f, l, binary, debug, "symfs build-id folder");
    /* perf's: a folder of that name. */
    assert_true(fixture_run(f, "rm -r s/.build-id && mkdir -p s/.build-id/01/%s && cp good s/.build-id/01/%s/elf &&"
                               "cp good.debug s/.build-id/01/%s/debug", ours + 2, ours + 2, ours + 2));
    snprintf(binary, sizeof binary, "s/.build-id/01/%s/elf", ours + 2);
    snprintf(debug, sizeof debug, "s/.build-id/01/%s/debug", ours + 2);
    assert_found(f, l, binary, debug, "symfs build-id folder");
    /* The same as perf's cache in the home folder. */
    assert_true(fixture_run(f, "mv s .debug"));
    l = (struct look){.host = true};
    snprintf(binary, sizeof binary, ".debug/.build-id/01/%s/elf", ours + 2);
    snprintf(debug, sizeof debug, ".debug/.build-id/01/%s/debug", ours + 2);
    assert_found(f, l, binary, debug, "perf's build-id cache");
}

TEST_WITH(sysroot, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct look l = {.sysroot = "root"};
    char debug[128];

    make_files(f);
    assert_true(fixture_run(f, "mkdir -p root/gone root/usr/lib/debug/.build-id/01 && cp good root/gone/libf.so &&"
                               "cp good.debug root/usr/lib/debug/.build-id/01/%s.debug", ours + 2));
    snprintf(debug, sizeof debug, "root/usr/lib/debug/.build-id/01/%s.debug", ours + 2);
    assert_found(f, l, "root/gone/libf.so", debug, "sysroot");
}

TEST_WITH(recorded_path, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[256];

    make_files(f);
    snprintf(path, sizeof path, "%s/full", f->dir);
    assert_found(f, (struct look){.path = path, .host = true}, "full", "full", "recorded path");
    assert_found(f, (struct look){.path = path}, NULL, NULL, NULL);
    /* The process went on with a file that was deleted, and put back since. */
    snprintf(path, sizeof path, "%s/full (deleted)", f->dir);
    assert_found(f, (struct look){.path = path, .host = true}, "full", "full", "recorded path");
    assert_found(f, (struct look){.path = "[vdso]", .host = true}, NULL, NULL, NULL);
    assert_found(f, (struct look){.path = "/dev/null", .host = true}, NULL, NULL, NULL);
    assert_found(f, (struct look){.path = "/", .host = true}, NULL, NULL, NULL);
    snprintf(path, sizeof path, "%s", f->dir);
    assert_found(f, (struct look){.path = path, .host = true}, NULL, NULL, NULL);
}

TEST_WITH(debuglink, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[256];
    struct look l = {.path = path, .host = true};

    make_files(f);
    snprintf(path, sizeof path, "%s/bin/linked", f->dir);
    assert_true(fixture_run(f, "mkdir -p bin/.debug && objcopy --add-gnu-debuglink=good.debug good bin/linked &&"
                               "cp good.debug bin/"));
    assert_found(f, l, "bin/linked", "bin/good.debug", "recorded path");
    assert_true(fixture_run(f, "mv bin/good.debug bin/.debug"));
    assert_found(f, l, "bin/linked", "bin/.debug/good.debug", "recorded path");
    /* Of another build. */
    assert_true(fixture_run(f, "cp wrong bin/.debug/good.debug"));
    assert_found(f, l, "bin/linked", "bin/linked", "recorded path");

    /* Below --symfs, in the tree of debug files. */
    assert_true(fixture_run(f, "mkdir -p s/opt s/usr/lib/debug/opt && cp bin/linked s/opt/ &&"
                               "cp good.debug s/usr/lib/debug/opt/"));
    assert_found(f, (struct look){.symfs = "s", .path = "/opt/linked"}, "s/opt/linked",
                 "s/usr/lib/debug/opt/good.debug", "symfs");
}

/* Where perf finds names, too, so that a perf.data need not carry them. */
TEST(at_recorded_path)
{
    static const struct {
        const char *binary, *debug;
        bool expected;
    } rows[] = {
        {NULL, NULL, true},
        {"/opt/bin/python3", NULL, true},
        {"/opt/bin/python3", "/opt/bin/python3", true},
        {"/opt/bin/python3", "/opt/bin/python3.debug", true},
        {"/opt/bin/python3", "/opt/bin/.debug/python3.debug", true},
        {"/opt/bin/python3", "/usr/lib/debug/.build-id/01/23.debug", true},
        {"/opt/bin/python3", "/opt/bin/.debug/.build-id/01/23/debug", false}, /* somebody's home */
        {"/opt/bin/python3", "/srv/usr/lib/debug/.build-id/01/23.debug", false},
        {NULL, "/usr/lib/debug/.build-id/01/23.debug", false},
        {"/root/.debug/.build-id/01/23/elf", NULL, false},
        {"/srv/opt/bin/python3", NULL, false},
        {"/opt/bin/python3 (deleted)", NULL, false},
        {"python3", NULL, false}, /* of an archive */
    };
    static const char path[] = "/opt/bin/python3 (deleted)";

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct binary_files files = {.binary = (char *)rows[i].binary, .debug = (char *)rows[i].debug};
        assert_int_equal(binary_files_are_at(&files, path, strlen("/opt/bin/python3")), rows[i].expected);
    }
    const struct binary_files relative = {.binary = (char *)"python3"};
    assert_false(binary_files_are_at(&relative, "python3", strlen("python3")));
}

/* A file may name anything as the supplement of its DWARF, also what has no end. */
TEST_WITH(endless_supplement, fixture_init, fixture_deinit)
{
    static const char link[] = "/dev/zero\0\1\2\3\4";
    struct fixture *f = *state;

    make_files(f);
    fixture_write(f, "link", link, sizeof link - 1);
    assert_true(fixture_run(f, "mkdir s && objcopy --add-section .gnu_debugaltlink=link full s/libf.so"));
    alarm(300); /* it would be read forever */
    struct binary_files files = look_up(f, (struct look){.symfs = "s"});
    alarm(0);
    assert_path(f, files.debug, "s/libf.so");
    assert_null(files.supplement);
    assert_string_equal(files.supplement_source, "missing");
    binary_files_deinit(&files);
}

/* Sets the hash of a file, and returns its size. */
static uint64_t hash_of(const struct fixture *f, const char *name, char hex[33])
{
    struct elf_identity id;
    char path[256];

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    OK(elf_identity_read(fd, path, &id));
    close(fd);
    assert_int_equal(id.id_kind, ELF_ID_CONTENT_HASH);
    assert_int_equal(id.build_id_len, 16);
    for (uint32_t i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", id.build_id[i]);
    uint64_t size = id.file_size;
    elf_identity_deinit(&id);
    return size;
}

TEST_WITH(content_hash, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[256], hash[33];

    make_files(f);
    assert_true(fixture_run(f, "objcopy --only-keep-debug plain plain.debug && strip plain &&"
                               "objcopy --add-gnu-debuglink=plain.debug plain linked"));
    uint64_t size = hash_of(f, "linked", hash);
    snprintf(path, sizeof path, "%s/linked", f->dir);
    struct look l = {.path = path, .host = true, .id = hash, .id_kind = ELF_ID_CONTENT_HASH, .file_size = size};
    /* The debug file has no ID either: the CRC in the link vouches for it. */
    assert_found(f, l, "linked", "plain.debug", "recorded path");
    assert_true(fixture_run(f, "printf x >>plain.debug"));
    assert_found(f, l, "linked", "linked", "recorded path");

    /* Of the same size: it is hashed, and its hash is nobody's business. */
    assert_true(fixture_run(f, "printf x | dd of=linked bs=1 seek=%d conv=notrunc status=none", (int)size - 1));
    char changed[33];
    hash_of(f, "linked", changed);
    struct binary_files files = look_up(f, l);
    assert_null(files.binary);
    assert_non_null(strstr(files.problem, "content differs"));
    assert_non_null(strstr(files.problem, hash));
    assert_null(strstr(files.problem, changed));
    binary_files_deinit(&files);

    /* Of another size: it is not read, however long it is. */
    assert_true(fixture_run(f, "truncate -s 4T linked"));
    alarm(300);
    files = look_up(f, l);
    alarm(0);
    assert_null(files.binary);
    assert_non_null(strstr(files.problem, "content differs"));
    binary_files_deinit(&files);
}

/* Counts how often something in the folder was opened, other than to look at it (O_PATH). */
static unsigned opened(int watch)
{
    _Alignas(struct inotify_event) char events[4096];
    unsigned count = 0;
    ssize_t n;

    while ((n = read(watch, events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < n; count++)
            at += (ssize_t)(sizeof(struct inotify_event) + ((struct inotify_event *)(events + at))->len);
    }
    return count;
}

/* What a trace names is looked at before it is opened, and only a regular file is opened. */
TEST_WITH(only_regular_files, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    static const char *const paths[] = {"fifo", "to-fifo", "/proc/self/environ", "/proc/self/pagemap", "to-proc",
                                        "/proc/self/exe", "/proc/self/cwd/full", "/sys/kernel/notes", "/dev/null",
                                        "/dev/../dev/zero", "to-dev", "loop", "/", "d/../full/", "full/x", "d"};
    char path[512];

    make_files(f);
    assert_true(fixture_run(f, "mkfifo fifo && ln -s fifo to-fifo && ln -s /proc/self/environ to-proc && mkdir d &&"
                               "ln -s /dev to-dev && ln -s loop loop"));
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    snprintf(path, sizeof path, "%s/fifo", f->dir);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(path, sizeof path, "%s%s%s", *paths[i] == '/' ? "" : f->dir, *paths[i] == '/' ? "" : "/", paths[i]);
        int fd = candidate_open(path, 0, false);
        if (fd >= 0 && strcmp(paths[i], "d/../full/"))
            fail_msg("%s was opened", path);
        if (fd >= 0)
            close(fd);
    }
    assert_int_equal(opened(watch), 0);
    /* The watch does see a FIFO that is opened. */
    snprintf(path, sizeof path, "%s/fifo", f->dir);
    close(open(path, O_RDONLY | O_NONBLOCK));
    assert_int_equal(opened(watch), 1);
    close(watch);
}

/* --no-host: no link and no ".." leads out of a folder that was named. */
TEST_WITH(no_host, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct look l = {.symfs = "s"};

    make_files(f);
    assert_true(fixture_run(f, "mkdir -p s/gone s/lib && cp good s/lib/ && ln -s ../lib/good s/gone/libf.so"));
    assert_found(f, l, "s/gone/libf.so", "s/gone/libf.so", "symfs");
    static const char *const ways[] = {"../../good", "../lib/../../good", "$PWD/good", "/../$PWD/good"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_true(fixture_run(f, "ln -sfn \"%s\" s/gone/libf.so && test -e s/gone/libf.so", ways[i]));
        l.host = false;
        assert_found(f, l, NULL, NULL, NULL);
        l.host = true;
        assert_found(f, l, "s/gone/libf.so", "s/gone/libf.so", "symfs");
    }
    /* The way to the named folder itself is the user's business. */
    assert_true(fixture_run(f, "mv s real && ln -s real s && ln -sfn ../lib/good s/gone/libf.so"));
    l.host = false;
    assert_found(f, l, "s/gone/libf.so", "s/gone/libf.so", "symfs");
}

/* The file that was checked is the one that is read, whatever lies at its path later. */
TEST_WITH(replaced_later, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct symbols *s;
    char path[256];

    make_files(f);
    snprintf(path, sizeof path, "%s/full", f->dir);
    struct binary_files files = look_up(f, (struct look){.path = path, .host = true});
    assert_true(fixture_run(f, "rm full && mkfifo full"));
    alarm(300); /* to open it would wait for a writer */
    OK(symbols_open(&files, &s));
    alarm(0);
    assert_int_equal(symbols_quality(s), SYMBOLS_DWARF);
    symbols_close(s);
    binary_files_deinit(&files);
}

TEST_WITH(mismatch, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char path[256], expected[512];

    make_files(f);
    snprintf(path, sizeof path, "%s/wrong", f->dir);
    struct binary_files files = look_up(f, (struct look){.path = path, .host = true});
    assert_null(files.binary);
    assert_null(files.debug);
    snprintf(expected, sizeof expected, "build ID differs: %s has %s, the trace has %s", path, other, ours);
    assert_string_equal(files.problem, expected);
    binary_files_deinit(&files);

    /* The right one elsewhere: the wrong one does not matter. */
    assert_true(fixture_run(f, "mkdir s && cp wrong s/libf.so && mkdir -p s/.build-id/01 && cp full s/.build-id/01/%s",
                            ours + 2));
    char binary[128];
    snprintf(binary, sizeof binary, "s/.build-id/01/%s", ours + 2);
    assert_found(f, (struct look){.symfs = "s"}, binary, binary, "symfs build-id folder");

    snprintf(path, sizeof path, "%s/plain", f->dir);
    files = look_up(f, (struct look){.path = path, .host = true});
    assert_non_null(strstr(files.problem, "has none"));
    binary_files_deinit(&files);
}

TEST_WITH(no_id, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct binaries_options options = {0};
    struct binary_key key = {.path = "/bin/sh"};
    struct binary_files files;
    struct binaries *b;

    (void)f;
    setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
    OK(binaries_create(&options, &b));
    assert_null(getenv("DEBUGINFOD_URLS"));
    OK(binaries_find(b, &key, &files));
    assert_null(files.binary);
    assert_string_equal(files.problem, "the trace has no build ID for it");
    binary_files_deinit(&files);
    binaries_destroy(b);

    options.debuginfod = true;
    struct error *err = binaries_create(&options, &b);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_USAGE);
    error_destroy(err);
}

/* A server that is not there: the file is not found, no more. */
TEST_WITH(debuginfod, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct binaries_options options = {.debuginfod = true, .no_host = true};
    struct binary_files files;
    struct binaries *b;
    uint8_t id[64];

    setenv("HOME", f->dir, 1);
    setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
    struct error *err = binaries_create(&options, &b);
    if (err && err->code == ERROR_UNSUPPORTED) {
        print_message("%s\n", error_text(err));
        error_destroy(err);
        skip();
    }
    OK(err);
    struct binary_key key = {.build_id = id, .build_id_len = bytes_of_hex(ours, id), .id_kind = ELF_ID_BUILD_ID,
                             .path = "/gone"};
    OK(binaries_find(b, &key, &files));
    assert_null(files.binary);
    static const char problem[] = "not found, neither by its path nor by its build ID";
    assert_int_equal(strncmp(files.problem, problem, sizeof problem - 1), 0);
    binary_files_deinit(&files);
    binaries_destroy(b);
    unsetenv("DEBUGINFOD_URLS");
}
