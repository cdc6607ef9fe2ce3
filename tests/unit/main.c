/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main program of every unit test file: runs the tests that the file has registered.
 *
 * With CMOCKA_TEST in the environment, only the test functions whose names match that pattern ("*" and "?") run.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

__attribute__((weak)) bool unit_starts_threads; /* what STARTS_THREADS defines */
static bool *started; /* a thread, here or in a child */

/* The linker puts this in the place of pthread_create(). */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx)
{
    *started = true;
    return __real_pthread_create(thread, attributes, run, ctx);
}

static struct unit_test *first; /* by line: constructors run in no order that is promised */
static size_t count;
static CMFixtureFunction group_setup, group_teardown;

void unit_test_register(struct unit_test *test)
{
    struct unit_test **at = &first;

    while (*at && (*at)->line < test->line)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
    count++;
}

void unit_tests_with(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    group_setup = setup;
    group_teardown = teardown;
}

int main(void)
{
    const char *pattern = getenv("CMOCKA_TEST");
    struct CMUnitTest tests[count];
    size_t n = 0;

    for (const struct unit_test *t = first; t; t = t->next)
        tests[n++] = t->test;
    if (pattern)
        cmocka_set_test_filter(pattern);
    started = mmap(NULL, sizeof *started, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (started == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    int failed = cmocka_run_group_tests_name(program_invocation_short_name, tests, group_setup, group_teardown);
    if (*started && !unit_starts_threads) {
        fprintf(stderr, "%s starts threads: write STARTS_THREADS; into it (test.h)\n", program_invocation_short_name);
        return 1;
    }
    return failed;
}
