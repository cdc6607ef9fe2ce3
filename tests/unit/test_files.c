/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a capture: names, rotation, what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/files.h"
#include "tests/unit/ok.h"

static void test_names(void **state)
{
    (void)state;
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

static void test_patterns(void **state)
{
    (void)state;
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
static void test_names_sort(void **state)
{
    (void)state;
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
static void test_rotation(void **state)
{
    (void)state;
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

static void test_no_folder(void **state)
{
    (void)state;
    struct files f;

    files_init(&f, &(struct files_options){.pattern = "/nowhere/at/all.bin", .hostname = "h"});
    struct error *err = files_open(&f);
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), "/nowhere/at/all.bin"));
    error_destroy(err);
    files_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_sort),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_no_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
