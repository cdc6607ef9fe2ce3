/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreters of this machine (and of PYCAP_TEST_IMAGES, a colon-separated list) as ELF files, compared with what they
 * say of themselves; stripped, and cut.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/cpython/image.h"

/* Without its symbols 2.7 has the variable in its code, and later versions have to be watched. */
static void check_stripped(const char *path, const struct py_image *whole)
{
    char copy[] = "/tmp/pycap-stripped-XXXXXX", command[1024];
    struct py_image img;
    int fd = mkstemp(copy);

    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "strip -o '%s' '%s'", copy, path);
    assert_int_equal(system(command), 0);
    fd = open(copy, O_RDONLY | O_CLOEXEC);
    OK(py_image_read(fd, copy, &img));
    close(fd);
    unlink(copy);
    assert_int_equal(img.gil.kind, whole->version_hex < 0x03000000 ? PY_GIL_POINTER : PY_GIL_LEARN);
    assert_int_equal(img.gil.address, whole->version_hex < 0x03000000 ? whole->gil.address : 0);
    py_image_deinit(&img);
}

/* Where threads wait for the GIL is known without symbols from 3.7 on. */
static void check_gil(const char *path, const struct py_image *img, unsigned minor)
{
    const struct py_gil *gil = &img->gil;
    uint32_t expected = minor >= 12 ? PY_GIL_INTERPRETER : PY_GIL_RANGE;
    bool pyenv = strstr(path, "/.pyenv/"); /* not stripped */

    if (img->version_hex < 0x03000000)
        expected = PY_GIL_POINTER;
    if (gil->kind == PY_GIL_LEARN) {
        assert_true(!pyenv && img->version_hex >= 0x03000000 && img->version_hex < 0x03070000);
        return;
    }
    assert_int_equal(gil->kind, expected);
    assert_true(gil->len && gil->address);
    if (img->version_hex < 0x03070000)
        check_stripped(path, img);
}

/* Libraries of the same version as the file's name says, and what is known of it. */
static void check_real(const char *path, uint32_t *checked)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *digits = name + strcspn(name, "0123456789");
    unsigned major, minor;
    struct py_image img;
    struct stat st;

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || sscanf(digits, "%u.%u", &major, &minor) != 2) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct error *err = py_image_read(fd, path, &img);
    close(fd);
    if (err)
        fail_msg("%s", error_text(err));
    if (!img.is_python)
        return; /* a launcher of libpython, or a script */
    if (major < 3 || minor < 11) {
        if (img.refused)
            fail_msg("%s: %s", path, img.refused);
        assert_int_equal(img.version_hex >> 16, major << 8 | minor);
        assert_true(img.runtime_vaddr && img.code_type_vaddr && img.eval_range_count);
        assert_int_equal(!img.interpreters_vaddr, major == 3 && minor >= 7);
        assert_int_equal(!img.thread_key_vaddr, major == 2 || minor >= 7);
        check_gil(path, &img, minor);
    } else {
        assert_int_equal(img.version_hex >> 16, major << 8 | minor);
        if (minor > 15) {
            assert_non_null(img.refused);
        } else {
            if (img.refused)
                fail_msg("%s: %s", path, img.refused);
            assert_true(img.runtime_vaddr && img.code_type_vaddr && img.eval_range_count);
            assert_true(minor == 11 || img.tls_tstate.kind != PY_TLS_NONE);
            assert_true((minor >= 15) == (img.tls_gilstate.kind != PY_TLS_NONE));
            check_gil(path, &img, minor);
        }
    }
    printf("  %s: %x%s%s\n", path, img.version_hex, img.refused ? " " : "", img.refused ? img.refused : "");
    py_image_deinit(&img);
    ++*checked;
}

/* Calls `use` for every interpreter of this machine. */
static void each_real(void (*use)(const char *path, uint32_t *count), uint32_t *count)
{
    const char *home = getenv("HOME"), *listed = getenv("PYCAP_TEST_IMAGES");
    char pattern[512];
    glob_t found = {0};

    glob("/usr/bin/python[23].*[0-9]", 0, NULL, &found);
    glob("/usr/lib/*/libpython[23]*.so.1.0", GLOB_APPEND, NULL, &found);
    /* What tests/interpreters.sh, tests/flavours.sh and tests/released.sh left in the cache. */
    const char *cache = getenv("PYCAP_TEST_CACHE");
    char in_home[400];
    snprintf(in_home, sizeof in_home, "%s/.cache/pycap-tests", home ? home : "");
    cache = cache ? cache : in_home;
    snprintf(pattern, sizeof pattern, "%s/roots/*/usr/bin/python[23].*[0-9d]", cache);
    glob(pattern, GLOB_APPEND, NULL, &found);
    snprintf(pattern, sizeof pattern, "%s/flavours/*/bin/python[23].*[0-9dt]", cache);
    glob(pattern, GLOB_APPEND, NULL, &found);
    snprintf(pattern, sizeof pattern, "%s/released/{*/app/python3.*[0-9t],pbs-*/bin/python3.*[0-9t],*/lib/libpython3*.so.1.0}", cache);
    glob(pattern, GLOB_APPEND | GLOB_BRACE, NULL, &found);
    snprintf(pattern, sizeof pattern, "%s/.pyenv/versions/*/lib/libpython[23]*.so.1.0", home ? home : "");
    glob(pattern, GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        use(found.gl_pathv[i], count);
    globfree(&found);
    char *copy = strdup(listed ? listed : ""), *rest = copy;
    for (char *path; (path = strsep(&rest, ":"));) {
        if (*path)
            use(path, count);
    }
    free(copy);
}

TEST(real)
{
    uint32_t checked = 0;

    each_real(check_real, &checked);
    if (!checked) {
        print_message("skipped: no CPython on this machine\n");
        skip();
    }
}

/* Cut at every 64 bytes of its first pages, coarsely further on. */
static void cut_real(const char *path, uint32_t *count)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    assert_int_equal(fstat(fd, &st), 0);
    size_t len = (size_t)st.st_size;
    void *data = *count || len < 1 << 20 ? MAP_FAILED : mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return;
    int copy = memfd_create("image", MFD_CLOEXEC);
    assert_true(copy >= 0);
    assert_int_equal(write(copy, data, len), len);
    for (size_t cut = len; cut > 64; cut = cut <= 16384              ? cut - 64
                                           : cut - len / 200 > 16384 ? cut - len / 200
                                                                     : 16384) {
        struct py_image img;
        assert_int_equal(ftruncate(copy, (off_t)cut), 0);
        struct error *err = py_image_read(copy, path, &img);
        assert_null(err);
        py_image_deinit(&img);
    }
    close(copy);
    munmap(data, len);
    ++*count;
}

TEST(real_cut)
{
    uint32_t count = 0;

    each_real(cut_real, &count);
    if (!count) {
        print_message("skipped: no CPython on this machine\n");
        skip();
    }
}
