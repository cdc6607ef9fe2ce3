/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of threads, read out of a running interpreter: this machine's own python3. The live tests do so with every
 * version; here every read fails in turn, and what is read is garbage.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/cpython/image.h"
#include "formats/cpython/main_file.h"
#include "formats/cpython/thread_name.h"

static const char program[] =
    "import sys, threading\n"
    "__file__ = '/srv/sh\u00f6p/app.py'\n"
    "threads = [threading.Thread(target=threading.Event().wait, name='w\\u00f6rker-%d' % n, daemon=True)"
    " for n in range(40)]\n"
    "for t in threads: t.start()\n"
    "t = threads[17]\n"
    "print(threading.get_ident(), t.ident, t.native_id, flush=True)\n"
    "sys.stdin.read()\n";

static struct {
    pid_t pid;
    int to, from;
    uint64_t main_handle, worker_handle, interpreter, bias;
    uint32_t worker_tid;
    struct py_image image;
    uint32_t reads, fail_at;
    bool garbage;
    struct buf storage;
    struct py_names names;
} t;

static bool live(void *ctx, uint64_t address, void *out, uint64_t len)
{
    struct iovec to = {out, len}, from = {(void *)(uintptr_t)address, len};

    (void)ctx;
    bool ok = process_vm_readv(t.pid, &to, 1, &from, 1, 0) == (ssize_t)len;
    if (++t.reads != t.fail_at)
        return ok;
    for (uint64_t i = 0; t.garbage && i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)rand();
    return t.garbage;
}

static uint64_t first_address(void)
{
    char path[64];
    unsigned long long start = 0;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)t.pid);
    FILE *f = fopen(path, "r");
    if (f) {
        assert_int_equal(fscanf(f, "%llx", &start), 1);
        fclose(f);
    }
    return start;
}

static int start(void **state)
{
    int in[2], out[2];
    char path[64], line[128] = {0};
    uint16_t type = 0;

    (void)state;
    if (pipe(in) || pipe(out))
        return 1;
    t.pid = fork();
    if (!t.pid) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        execl("/usr/bin/python3", "python3", "-S", "-c", program, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    t.to = in[1];
    t.from = out[0];
    unsigned long long handles[2];
    unsigned tid;
    for (size_t n = 0; n < sizeof line - 1 && !strchr(line, '\n') && read(t.from, line + n, 1) == 1; n++) {
    }
    if (sscanf(line, "%llu %llu %u", &handles[0], &handles[1], &tid) != 3)
        return 0; /* no Python here: the tests are skipped */
    t.main_handle = handles[0];
    t.worker_handle = handles[1];
    t.worker_tid = tid;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)t.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct error *err = fd < 0 ? NULL : py_image_read(fd, path, &t.image);
    error_destroy(err);
    if (fd >= 0 && t.image.is_python && !t.image.refused && pread(fd, &type, 2, 16) == 2) {
        t.bias = type == 3 ? first_address() : 0;
        t.names = (struct py_names){.layout = &t.image.layout,
                                    .str_type = t.image.str_type_vaddr + t.bias,
                                    .int_type = t.image.int_type_vaddr + t.bias,
                                    .read = live,
                                    .storage = &t.storage};
        if (t.image.layout.runtime_interpreters_head != PY_NONE)
            live(NULL, t.image.runtime_vaddr + t.bias + t.image.layout.runtime_interpreters_head, &t.interpreter, 8);
    }
    if (fd >= 0)
        close(fd);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    close(t.to);
    close(t.from);
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
    py_image_deinit(&t.image);
    buf_deinit(&t.storage);
    return 0;
}

TESTS_WITH(start, stop);

static bool proven;

static const char *name_of(uint64_t handle, struct buf *out)
{
    t.reads = 0;
    buf_clear(out);
    return py_thread_name(&t.names, t.interpreter, handle, 0, out, &proven) ? buf_cstr(out) : NULL;
}

static const char *main_name(struct buf *out)
{
    t.reads = 0;
    buf_clear(out);
    return py_main_thread_name(&t.names, t.interpreter, out) ? buf_cstr(out) : NULL;
}

#define NEEDS_PYTHON() \
    do {               \
        if (!t.interpreter) \
            skip();    \
    } while (0)

TEST(names)
{
    struct buf out = {0};

    NEEDS_PYTHON();
    t.fail_at = 0;
    assert_string_equal(main_name(&out), "MainThread");
    assert_null(name_of(t.main_handle, &out));
    assert_string_equal(name_of(t.worker_handle, &out), "wörker-17");
    assert_null(name_of(t.worker_handle + 8, &out));
    assert_null(name_of(0, &out));
    struct py_names other = t.names;
    other.int_type += 8;
    assert_false(py_thread_name(&other, t.interpreter, t.worker_handle, 0, &out, &proven));
    other = t.names;
    other.str_type += 8;
    assert_false(py_thread_name(&other, t.interpreter, t.worker_handle, 0, &out, &proven));
    assert_false(py_main_thread_name(&other, t.interpreter, &out));
    assert_false(py_thread_name(&t.names, t.interpreter + 8, t.worker_handle, 0, &out, &proven));
    assert_false(py_main_thread_name(&t.names, t.interpreter + 8, &out));
    buf_deinit(&out);
}

/* A handle that another thread has had before: the name is believed of the thread that the Thread says it is. */
TEST(whose_name)
{
    struct buf out = {0};

    NEEDS_PYTHON();
    t.fail_at = 0;
    assert_true(py_thread_name(&t.names, t.interpreter, t.worker_handle, t.worker_tid, &out, &proven));
    assert_true(proven);
    assert_false(py_thread_name(&t.names, t.interpreter, t.worker_handle, t.worker_tid + 1, &out, &proven));
    assert_false(proven);
    assert_true(py_thread_name(&t.names, t.interpreter, t.worker_handle, 0, &out, &proven));
    assert_false(proven);
    buf_deinit(&out);
}

/* The file of the main module; the program is nobody's worker. Where a read fails, or has garbage, there is none, or some text. */
TEST(main_file)
{
    struct buf out = {0};

    NEEDS_PYTHON();
    t.fail_at = t.reads = 0;
    assert_true(py_main_file(&t.names, t.interpreter, &out));
    assert_string_equal(buf_cstr(&out), "/srv/shöp/app.py");
    assert_false(py_main_is_of_parent(&t.names, t.interpreter));
    assert_false(py_main_file(&t.names, 0, &out));
    uint32_t reads = t.reads;
    for (int garbage = 0; garbage < 2; garbage++) {
        t.garbage = garbage;
        for (t.fail_at = 1; t.fail_at <= reads; t.fail_at++) {
            t.reads = 0;
            buf_clear(&out);
            bool found = py_main_file(&t.names, t.interpreter, &out);
            assert_true(garbage || !found || !strcmp(buf_cstr(&out), "/srv/shöp/app.py"));
        }
    }
    t.garbage = false;
    t.fail_at = 0;
    buf_deinit(&out);
}

/* Where a key was found last is looked at first, and the answer is the same wherever that points. */
TEST(hints)
{
    struct py_name_hints hints = {0};
    struct buf out = {0};

    NEEDS_PYTHON();
    t.fail_at = 0;
    assert_string_equal(name_of(t.worker_handle, &out), "wörker-17");
    uint32_t reads = t.reads;
    t.names.hints = &hints;
    assert_string_equal(name_of(t.worker_handle, &out), "wörker-17");
    assert_int_equal(t.reads, reads);
    assert_string_equal(name_of(t.worker_handle, &out), "wörker-17");
    assert_in_range(t.reads, 1, reads / 2);
    assert_string_equal(main_name(&out), "MainThread");
    reads = t.reads;
    assert_string_equal(main_name(&out), "MainThread");
    assert_in_range(t.reads, 1, reads - 1);
    const struct py_name_hints right = hints;
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t *wrong[] = {&hints.module, &hints.active, &hints.attribute, &hints.thread};
        *wrong[i % 4] = i < 150 ? i : UINT32_MAX - i;
        assert_string_equal(name_of(t.worker_handle, &out), "wörker-17");
        assert_memory_equal(&hints, &right, sizeof hints);
        assert_null(name_of(t.worker_handle + 8, &out));
    }
    t.names.hints = NULL;
    buf_deinit(&out);
}

TEST(faults)
{
    struct buf out = {0};

    NEEDS_PYTHON();
    t.fail_at = 0;
    name_of(t.worker_handle, &out);
    uint32_t reads = t.reads, lost = 0;
    t.garbage = false;
    for (uint32_t i = 1; i <= reads; i++) {
        t.fail_at = i;
        const char *name = name_of(t.worker_handle, &out);
        assert_true(!name || !strcmp(name, "wörker-17"));
        lost += !name;
        name = main_name(&out);
        assert_true(!name || !strcmp(name, "MainThread"));
    }
    assert_true(lost >= 10); /* the way there is that long; a key that can't be read is another one */
    buf_deinit(&out);
}

/* Garbage in one read: what is found is the name, or nothing; unless it was the name itself that was read. */
TEST(garbage)
{
    struct buf out = {0};

    NEEDS_PYTHON();
    t.fail_at = 0;
    name_of(t.worker_handle, &out);
    uint32_t reads = t.reads;
    t.garbage = true;
    srand(1);
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 1; i <= reads; i++) {
            t.fail_at = i;
            const char *name = name_of(t.worker_handle, &out);
            assert_true(!name || !strcmp(name, "wörker-17") || i + 2 > reads);
            name = main_name(&out); /* its last read is of the name */
            assert_true(!name || !strcmp(name, "MainThread") || i + 2 > t.reads);
        }
    }
    t.garbage = false;
    buf_deinit(&out);
}
